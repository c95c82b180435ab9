"""Certifying the rows of a file: labels by a classifier, numbers by a regressor.

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

from derand._core.arrays import Cells
from derand._core.files import PathLike
from derand._core.text import Facts
from derand._core.threads import count_threads
from derand.app import Spell, Summary, quote_parameter
from derand.app.jobs._classifiers import load_fitted, refuse_other_task
from derand.app.jobs._copying import NUMBER_COLUMNS, RESULT_COLUMNS, Copies
from derand.app.jobs._pipeline import run_pipeline
from derand.app.jobs._recording import require_places, write_record
from derand.app.jobs._request import Request, ValueRequest, note_other_answers
from derand.app.jobs._tally import IntervalTally, Tally
from derand.app.jobs._witnesses import Witnesses
from derand.app.settings import CertifySettings, fill_settings
from derand.certificates import Certificates, Intervals, ToleranceRadii
from derand.fitted import FittedModel, answers_numbers, grade_rows
from derand.noise import resolve_noise
from derand.storage import find_record
from derand.tables import match_file, write_batches

if TYPE_CHECKING:
    import pyarrow as pa

RADII = (0.0, 0.25, 0.5, 1.0)
"""Where certified accuracy is measured unless it is said."""


class _Parts(NamedTuple):
    """What is written of a batch."""

    results: Mapping[str, object]
    n_rows: int


def certify_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    settings: CertifySettings | None = None,
    *,
    spell: Spell = quote_parameter,
    advance: Callable[[int], None] = lambda rows: None,
    **options: object,
) -> Summary:
    """Certify every row of a CSV or Parquet file, batch by batch, and write what is certified of each.

    Of a classifier that is row, label, failure, radius and proof; where limits alone say what may change (`norm=None`
    of the threat), there is a verdict instead of a radius. Of trees that join columns a radius has the distance of the
    nearest flip that is known beside it (attacked). Of a regressor it is row, value, low and high; with a
    tolerance row, value and radius.

    Parameters
    ----------
    model : path-like
        A saved classifier or regressor.
    data : path-like
        Columns are matched by name (by position, where the model was trained without names); others are not read.
    output : path-like
        .csv or .parquet; rows count from 1. "-" is standard output, and standard input as `data`: CSV or Arrow's IPC
        stream, read and written as it comes, without a record.
    settings : CertifySettings or None
        What is asked for; None is the model's own.
    spell : callable
        How a setting is named in errors.
    advance : callable
        Called with the number of rows of each batch that is written.
    **options
        Fields of CertifySettings, which replace those of `settings`.

    Returns
    -------
    dict
        What was read, what was not, and the results in short.
        `notes`: such as that accuracy is below that of a constant answer, or that answers are not those of
        `predict`.
        `warnings`: of classes: what a reader must know first: that the model is worth no more than a constant
        answer.
        `certified_rows`: of classes, and with a tolerance: rows with a radius above 0.
        `proofs`: of classes: how many rows are certified by which proof; "none" where nothing is.
        `verdicts`: where limits alone say what may change: how many rows hold, flip, or are undecided.
        `ties`: of models whose trees join columns: how many of those that are undecided, or have no radius, lie within
        the rounding of the model's own arithmetic; for the others the budget was spent.
        `certified_radii`: in a ball: how many rows no change can flip, average and median of the others;
        wrong rows count 0.
        `proven_accuracy`: where limits alone say what may change: right, and proven to hold within them.
        `answers`: how good the answers are, whatever is certified of them, beside a constant answer.
        `mean_width`: of intervals.
        `rmse`: of numbers, with a target: root of the mean square of what is missed.
        `targets_inside`: with a target: how many of its numbers lie in their interval, or within the
        tolerance of the answer.
        `record`: what the certificates are about, for `audit_file`; None of streams.
        `empty_columns`: categorical ones without any value, which count like values that training did not
        see.
        `proof`: which proofs were allowed.
        `witness`: of classes.
        `l0`: of classes.
        `radius`: of intervals; None within limits alone, and where a tolerance was given.
        `tolerance`: of numbers.
    """
    start, asked = time.perf_counter(), fill_settings(CertifySettings, settings, options)
    resolve_noise(asked.noise)  # refused before any file is looked at
    threat_files = [asked.threat] if isinstance(asked.threat, str | os.PathLike) else []
    _require_places(output, asked.witness, [model, data, *threat_files])
    estimator = load_fitted(model)
    refuse_other_task(asked, estimator, model, spell)
    answers = (_Values if answers_numbers(estimator) else _Labels)(estimator, data, asked)
    source, request, tally = answers.source, answers.request, answers.tally
    with ExitStack() as files:
        arrow = source.file.is_arrow_stream
        write = files.enter_context(write_batches(output, safe_csv=asked.safe_csv, arrow=arrow))
        write_flips = None
        if asked.witness is not None:
            write_flips = files.enter_context(write_batches(asked.witness, safe_csv=asked.safe_csv))

        def write_parts(parts: _Parts) -> None:
            write(parts.results)

        def tell(parts: _Parts) -> None:
            advance(parts.n_rows)

        threads = count_threads(estimator.n_jobs if asked.n_jobs is None else asked.n_jobs)
        places: Facts = {"data": data, "output": output, "n_threads": threads}
        run_pipeline(source.read_batches(), answers.certify, write_parts, tell, **places)
        source.file.require_rows(tally.n_rows)
        if write_flips is not None:
            write_flips(answers.witnesses.list_columns())
    record = write_record(
        model,
        data,
        output,
        n_rows=tally.n_rows,
        rule=request.rule,
        proof=asked.proof,
        noise=request.noise,
        threat=request.resolved,
        numbers=request.numbers,
    )
    found: Summary = tally.summarize()
    found["notes"] += [*request.list_notes(), *note_other_answers(estimator, request.rule, request.noise)]
    return {
        "output": os.fspath(output),
        "record": None if record is None else os.fspath(record),
        "columns_not_used": source.not_used,
        "columns_copied": list(answers.copies.names),
        "unseen_categories": dict(tally.unseen),
        "empty_columns": sorted(tally.empty or ()),
        "rule": request.rule,
        "proof": asked.proof,
        "noise": "none" if request.noise is None else str(request.noise),
        "norm": request.resolved.ball_norm,
        **answers.list_asked(),
        "threat": request.summarize(),
        **found,
        "seconds": time.perf_counter() - start,
    }


class _Labels:
    """The labels of a classifier: what is written and counted of a batch of rows."""

    tally: Any
    taken: tuple[str, ...] = RESULT_COLUMNS

    def __init__(self, estimator: FittedModel, data: PathLike, asked: CertifySettings) -> None:
        self.estimator, self.asked = estimator, asked
        self.copies = Copies.choose(asked.identity, asked.keep, self.taken)
        classes = getattr(estimator, "classes_", None)
        encoding, copied = estimator.encoding_, self.copies.names
        self.source = match_file(data, encoding, target=asked.target, classes=classes, copied=copied)
        self.witnesses = Witnesses(estimator, self.source, self.copies)
        self.prepare()

    def prepare(self) -> None:
        """Read the request, and begin to count."""
        self.request = Request(self.estimator, self.source, self.asked)
        self.tally = Tally(RADII if self.asked.radii is None else self.asked.radii)
        if self.asked.witness is not None and self.request.resolved.norm is not None:
            raise ValueError(
                "Witnesses are written only where limits alone say what may change (norm none), got norm "
                f"{self.request.resolved.norm}."
            )

    def certify(self, batch: pa.Table) -> _Parts:
        """Certify a batch, count it, and give what is written of it."""
        first_row = self.tally.n_rows + 1
        rows, truth = self.source.split(batch, first_row=first_row)
        with self.source.name_gaps(batch, first_row=first_row):
            found = self.request.certify(rows, batch, first_row)
        if self.asked.witness is not None:
            self.witnesses.add(rows, batch, found, first_row)
        self.count(found, rows, truth, batch)
        return _Parts(self.copies.join(batch, _list_results(found, first_row)), batch.num_rows)

    def count(self, found: Any, rows: object, truth: Any, batch: pa.Table) -> None:
        """Count a batch, with grades where the truth is known."""
        grades = None if truth is None else grade_rows(self.estimator, rows, found)
        self.tally.add(found, truth, grades, self.source, batch)

    def list_asked(self) -> dict[str, object]:
        """What is told of a request of labels alone."""
        witness = None if self.asked.witness is None else os.fspath(self.asked.witness)
        return {"witness": witness, "l0": self.request.resolved.l0}


class _Values(_Labels):
    """The numbers of a regressor: what is written and counted of a batch of rows."""

    taken = NUMBER_COLUMNS

    def prepare(self) -> None:
        """Read the request, and begin to count."""
        self.request = ValueRequest(self.estimator, self.source, self.asked)
        self.tally = IntervalTally()

    def count(self, found: object, rows: object, truth: object, batch: pa.Table) -> None:
        """Count a batch."""
        self.tally.add(found, truth, self.source, batch)

    def list_asked(self) -> dict[str, object]:
        """What is told of a request of numbers alone."""
        assert self.request.numbers is not None
        return {"radius": self.request.numbers.radius, "tolerance": self.request.numbers.tolerance}


def _require_places(output: PathLike, witness: PathLike | None, inputs: Sequence[PathLike]) -> None:
    """Refuse files that cannot be written, that are read, or that two results would go to."""
    require_places(output, inputs)
    if witness is None:
        return
    require_places(witness, inputs, with_record=False)
    for taken in (output, find_record(output)):
        if os.path.realpath(witness) == os.path.realpath(taken):
            raise ValueError(f"The witnesses cannot go to {os.fspath(taken)} as well: name another file.")


def _list_results(found: Certificates | Intervals | ToleranceRadii, first_row: int) -> dict[str, Cells]:
    """What is written of a batch, by column."""
    row = np.arange(first_row, first_row + len(found))
    if isinstance(found, Intervals):
        return {"row": row, "value": found.value, "low": found.low, "high": found.high}
    if isinstance(found, ToleranceRadii):
        return {"row": row, "value": found.value, "radius": found.radius}
    several = found.runner_up is not None and found.classes.size > 2
    return {
        "row": row,
        "label": found.label,
        **({"runner_up": np.asarray(found.runner_up)} if several else {}),
        "failure": found.failure,
        **({"radius": found.radius} if found.verdict is None else {"verdict": found.verdict}),
        **({} if found.attacked is None else {"attacked": found.attacked}),
        "proof": found.proof,
    }
