"""Certifying the rows of a file.

Owns the loop over batches and what is written of each. Must not know the command line, how files are read and written,
nor how a threat is made of what the user asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import IntArray
from derand._core.files import PathLike
from derand._core.threads import count_threads
from derand.certificates import Certificates, find_labels
from derand.estimators import CertifiedClassifier, grade_rows
from derand.frames import MatchedFile, match_file, write_batches
from derand.jobs._classifiers import load_classifier
from derand.jobs._copying import RESULT_COLUMNS, Copies
from derand.jobs._pipeline import run_pipeline
from derand.jobs._recording import require_places, write_record
from derand.jobs._request import Request, ThreatSummary, note_other_answers
from derand.jobs._tally import Tally, TallySummary
from derand.noise import Noise, as_noise_or_none
from derand.storage import find_record
from derand.threat import Threat

if TYPE_CHECKING:
    import pyarrow as pa


class _Parts(NamedTuple):
    """What is written of a batch."""

    results: Mapping[str, Any]
    flips: Mapping[str, Any] | None
    n_rows: int


class CertifyingSummary(TallySummary):
    """What `certify_file` read and what it did not, and the results in short."""

    output: str
    record: str | None
    """What the certificates are about, for `audit_file`; None of streams."""
    witness: str | None
    columns_not_used: list[str]
    columns_copied: list[str]
    unseen_categories: dict[str, int]
    empty_columns: list[str]
    """Categorical ones without any value, which count like values that training did not see."""
    rule: str
    proof: str
    """Which proofs were allowed."""
    noise: str
    norm: float | None
    l0: int
    threat: ThreatSummary
    seconds: float


def certify_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    radii: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
    l0: int | None = None,
    rule: str | None = None,
    proof: str = "best",
    noise: Noise | str | float | None = None,
    threat: Threat | PathLike | None = None,
    changes: Mapping[str, Any] | None = None,
    witness: PathLike | None = None,
    safe_csv: bool = False,
    identity: str | None = None,
    keep: Sequence[str] = (),
    n_jobs: int | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> CertifyingSummary:
    """Certify every row of a CSV or Parquet file, batch by batch, and write row, label, failure, radius and proof.

    Where limits alone say what may change (`norm=None` of the threat), there is a verdict instead of a radius.

    Parameters
    ----------
    model : path-like
        A saved classifier.
    data : path-like
        Columns are matched by name (by position, where the classifier was trained without names); others are not read.
    output : path-like
        .csv or .parquet; rows count from 1. "-" is standard output, and standard input as `data`: CSV or Arrow's IPC
        stream, read and written as it comes, without a record.
    target : str or None
        Column with the true labels.
    radii : sequence of float
        Where certified accuracy is measured, with a target.
    l0 : int or None
        How many categorical features may change at the same time. None is that of the classifier's `default_threat`:
        what it was trained for, or 0.
    rule, proof, noise
        As for `certify` of the classifier.
    threat : Threat, path-like or None
        What may change, instead of `l0`, with columns by their names in the file; or a TOML file that says it. None
        is the classifier's `default_threat`.
    changes : mapping of str to value, or None
        Fields of Threat that differ from those of the classifier's `default_threat`, such as {"norm": inf}; not beside
        `threat`.
    witness : path-like or None
        .csv or .parquet, for a threat without norm: one line per row that flips, with row, label, new_label and the
        classifier's columns, changed so that they get the new label.
    safe_csv : bool
        Put an apostrophe before text and column names that a spreadsheet would take for formulas; for .csv alone.
    identity : str or None
        A column of the data that says which row is which: it is copied, and stands first in what is written. It need
        not be one of the model.
    keep : sequence of str
        Further columns of the data that are copied; they stand last.
    n_jobs : int or None
        Threads; None is the classifier's own, and without one all cores.
    advance : callable
        Called with the number of rows of each batch that is written.

    Returns
    -------
    CertifyingSummary
        A dict: what was read, what was not, and the results in short.
    """
    start = time.perf_counter()
    as_noise_or_none(noise)  # refused before any file is looked at
    _require_places(output, witness, [model, data, *([threat] if isinstance(threat, str | os.PathLike) else [])])
    copies = Copies.choose(identity, keep, RESULT_COLUMNS)
    classifier = load_classifier(model)
    source = match_file(data, classifier.encoding_, target=target, classes=classifier.classes_, copied=copies.names)
    how: dict[str, Any] = {"rule": rule, "proof": proof, "noise": noise, "n_jobs": n_jobs}
    request = Request(classifier, source, l0, threat, changes or {}, **how)
    if witness is not None and request.resolved.norm is not None:
        raise ValueError(
            "Witnesses are written only where limits alone say what may change (norm none), got norm "
            f"{request.resolved.norm}."
        )
    tally, threads = Tally(radii), count_threads(classifier.n_jobs if n_jobs is None else n_jobs)
    with ExitStack() as files:
        arrow = source.file.is_arrow_stream
        write = files.enter_context(write_batches(output, safe_csv=safe_csv, arrow=arrow))
        write_flips = None if witness is None else files.enter_context(write_batches(witness, safe_csv=safe_csv))

        def certify_batch(batch: pa.Table) -> _Parts:
            first_row = tally.n_rows + 1
            rows, labels = source.split(batch, first_row=first_row)
            with source.name_gaps(batch, first_row=first_row):
                certificates = request.certify(rows, batch, first_row)
            flips = None
            if witness is not None:
                at = _find_flips(certificates)
                if at.size or not tally.n_rows:  # a file without witnesses has a header line
                    flips = _join_flips(classifier, source, copies, batch, certificates, at, first_row)
            grades = None if labels is None else grade_rows(classifier, rows, certificates)
            tally.add(certificates, labels, grades, source.count_unseen(batch), source.find_empty(batch))
            return _Parts(copies.join(batch, _list_results(certificates, first_row)), flips, batch.num_rows)

        def write_parts(parts: _Parts) -> None:
            write(parts.results)
            if write_flips is not None and parts.flips is not None:
                write_flips(parts.flips)

        def tell(parts: _Parts) -> None:
            advance(parts.n_rows)

        places: dict[str, Any] = {"data": data, "output": output, "n_threads": threads}
        run_pipeline(source.read_batches(), certify_batch, write_parts, tell, **places)
        source.file.require_rows(tally.n_rows)
    record = write_record(
        model,
        data,
        output,
        n_rows=tally.n_rows,
        rule=request.rule,
        proof=proof,
        noise=request.noise,
        threat=request.resolved,
    )
    summary = tally.summarize()
    summary["notes"] += note_other_answers(classifier, request.rule, request.noise)
    return {
        "output": os.fspath(output),
        "record": None if record is None else os.fspath(record),
        "witness": None if witness is None else os.fspath(witness),
        "columns_not_used": source.not_used,
        "columns_copied": list(copies.names),
        "unseen_categories": dict(tally.unseen),
        "empty_columns": sorted(tally.empty or ()),
        "rule": request.rule,
        "proof": proof,
        "noise": "none" if request.noise is None else str(request.noise),
        "norm": request.resolved.ball_norm,
        "l0": request.resolved.l0,
        "threat": request.summarize(),
        **summary,
        "seconds": time.perf_counter() - start,
    }


def _require_places(output: PathLike, witness: PathLike | None, inputs: Sequence[PathLike]) -> None:
    """Refuse files that cannot be written, that are read, or that two results would go to."""
    require_places(output, inputs)
    if witness is None:
        return
    require_places(witness, inputs, with_record=False)
    for taken in (output, find_record(output)):
        if os.path.realpath(witness) == os.path.realpath(taken):
            raise ValueError(f"The witnesses cannot go to {os.fspath(taken)} as well: name another file.")


def _list_results(certificates: Certificates, first_row: int) -> dict[str, NDArray[Any]]:
    """What is written of a batch, by column."""
    rivals = certificates.runner_up
    held = {"radius": certificates.radius} if certificates.verdict is None else {"verdict": certificates.verdict}
    return {
        "row": np.arange(first_row, first_row + len(certificates)),
        "label": certificates.label,
        **({} if rivals is None or certificates.classes.size == 2 else {"runner_up": rivals}),
        "failure": certificates.failure,
        **held,
        "proof": certificates.proof,
    }


def _find_flips(certificates: Certificates) -> IntArray:
    assert certificates.flips is not None  # without a norm there are flips, and witnesses of them
    return np.flatnonzero(certificates.flips)


def _join_flips(
    classifier: CertifiedClassifier,
    source: MatchedFile,
    copies: Copies,
    batch: pa.Table,
    certificates: Certificates,
    at: IntArray,
    first_row: int,
) -> dict[str, Any]:
    """The rows of a batch that flip, changed so that they do, with both labels and what is copied of them."""
    import pyarrow as pa

    assert certificates.witness is not None
    changed, flipped = certificates.witness[at], batch.take(at)
    codes = find_labels(classifier.ensemble_, changed, certificates.noise, rule=certificates.rule)
    classes = classifier.classes_.tolist()
    kind = pa.array(classes).type
    found = {
        "row": at + first_row,
        "label": pa.array(certificates.label[at].tolist(), type=kind),
        "new_label": pa.array([classes[code] for code in codes.tolist()], type=kind),
    }
    return copies.join_changed(flipped, found, source.decode(flipped, changed))
