"""Auditing a certified file: its claims proven again from the model and the data.

Owns which rows of the files are looked at, and the way from a written certificate back to a claim. Must not know how a
claim is proven, nor the command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from derand._arrays import FloatArray, IntArray
from derand.auditing import Audit, audit_rows, choose_rows
from derand.certificates import PROOFS, Certificates
from derand.files import PathLike, require_writable
from derand.frames import MatchedFile, inspect_file, match_file, write_batches
from derand.jobs._classifiers import Classifier, load_classifier
from derand.jobs._request import ThreatSummary, summarize_threat
from derand.storage import CertificateRecord, find_record, load_record
from derand.threat import Threat

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 20


class MachineSummary(TypedDict):
    """A test of this machine's arithmetic."""

    name: str
    passed: bool
    detail: str


class NotProven(TypedDict):
    """A row of which some claim was not proven."""

    row: int
    claim: str
    """Which: label, failure, radius (without a norm: that the label holds) or witness."""
    label: str
    """As claimed."""
    claimed: float
    """The radius."""
    proven: float
    """A radius that was proven instead; the claimed one where that is not what failed."""


class AuditingSummary(TypedDict):
    """What `audit_file` looked at and found."""

    passed: bool
    """Whether all claims were proven, the files are those of the record and the machine passed its tests."""
    rows: int
    audited: int
    proven: int
    labels_alone: int
    """Rows that claim no more than their label: not certified, or within limits "flips" or "undecided"."""
    not_proven: list[NotProven]
    """The first of them; rows count from 1."""
    changed: list[str]
    """Files that are not those that the record is about."""
    machine: list[MachineSummary]
    version: str
    """Of the package that made the certificates."""
    rule: str
    noise: str
    norm: float | None
    threat: ThreatSummary
    own_units: bool
    """Whether radii count in the model's own units."""
    seed: int
    seconds_per_row: float
    slowest_row: float
    output: str | None
    seconds: float


def audit_file(
    model: PathLike,
    data: PathLike,
    certified: PathLike,
    *,
    rows: int | None = 200,
    random_state: int = 0,
    output: PathLike | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> AuditingSummary:
    """Prove again what a file of certificates claims, from the model and the data alone.

    Parameters
    ----------
    model, data : path-like
        What was certified.
    certified : path-like
        What `certify_file` wrote, with its record beside it.
    rows : int or None
        How many rows to look at, at random where there are more; None is all.
    random_state : int
        Which ones.
    output : path-like or None
        Where to write row, claimed, proven, verdict and claim of each row, .csv or .parquet.
    advance : callable
        Called after each row.

    Returns
    -------
    AuditingSummary
    """
    start = time.perf_counter()
    if output is not None:
        require_writable(output, model, data, certified)
    if not Path(certified).exists():
        raise FileNotFoundError(f"{os.fspath(certified)} does not exist: name a table that `derand certify` wrote.")
    classifier = load_classifier(
        model, "audits of files do not know intervals yet (in Python, `audit` of the loaded model does)"
    )
    record = load_record(find_record(certified))
    changed = _find_changed(record, model, data, certified)
    source = match_file(data, classifier.encoding_, target=None, classes=classifier.classes_)
    chosen = choose_rows(record.n_rows, rows, random_state)
    table = _read_rows(source, classifier, chosen, record.n_rows)
    claims = _read_claims(certified, classifier, record, chosen)
    found = audit_rows(classifier.ensemble_, table, claims, advance)
    if output is not None:
        _write_rows(found, chosen, output)
    failed = np.flatnonzero(found.verdict != "proven")
    return {
        "passed": found.passed and not changed,
        "rows": record.n_rows,
        "audited": len(found),
        "proven": len(found) - int(failed.size),
        "labels_alone": int((claims.radius == 0).sum()),
        "not_proven": [_describe_row(found, claims, int(at), int(chosen[at]), classifier) for at in failed[:_SHOWN]],
        "changed": changed,
        "machine": [{"name": one.name, "passed": one.passed, "detail": one.detail} for one in found.machine],
        "version": record.version,
        "rule": record.rule,
        "noise": "none" if record.noise is None else str(record.noise),
        "norm": record.threat.ball_norm,
        "threat": _summarize_record(record.threat, source),
        "own_units": record.threat.units == classifier.units,
        "seed": random_state,
        "seconds_per_row": float(found.seconds.mean()),
        "slowest_row": float(found.seconds.max()),
        "output": None if output is None else os.fspath(output),
        "seconds": time.perf_counter() - start,
    }


def _find_changed(record: CertificateRecord, model: PathLike, data: PathLike, certified: PathLike) -> list[str]:
    """The files whose bytes are not those that the record is about."""
    marks = ((record.model, model), (record.data, data), (record.certified, certified))
    return [os.fspath(path) for mark, path in marks if not mark.matches(path)]


def _read_rows(source: MatchedFile, classifier: Classifier, chosen: IntArray, n_rows: int) -> FloatArray:
    """The chosen rows as the model reads them."""
    parts, first = [], 0
    for batch in source.read_batches():
        at = chosen[(chosen >= first) & (chosen < first + batch.num_rows)] - first
        if at.size:
            rows, _ = source.split(batch.take(at), first_row=first + 1)
            with source.name_gaps(batch, first_row=first + 1):
                parts.append(classifier.encode_rows(rows))
        first += batch.num_rows
    if first != n_rows:
        raise ValueError(f"{source.file.path} has {first} rows, but {n_rows} were certified: audit the same table.")
    return np.concatenate(parts)


def _read_claims(
    certified: PathLike, classifier: Classifier, record: CertificateRecord, chosen: IntArray
) -> Certificates:
    """What the file claims about the chosen rows."""
    held = "verdict" if record.threat.norm is None else "radius"
    file = inspect_file(certified)
    file.require_columns(["row", "label", "failure", held, "proof"])
    written = file.read(as_text=["label", *(name for name in file.names if name == "runner_up")])
    if written.num_rows != record.n_rows:
        raise ValueError(f"{os.fspath(certified)} has {written.num_rows} rows, its record {record.n_rows}.")
    claims = written.take(chosen)
    order = _as_numbers(claims.column("row"), certified, "row")
    if not (order == chosen + 1).all():
        raise ValueError(f"`row` of {os.fspath(certified)} must count the rows from 1, in their order.")
    classes = classifier.classes_.tolist()
    label = _read_labels(claims.column("label").to_pylist(), classes, certified, "label")
    runner_up = None
    if "runner_up" in written.column_names:  # of more than two classes
        runner_up = _read_labels(claims.column("runner_up").to_pylist(), classes, certified, "runner_up")
    failure = _as_numbers(claims.column("failure"), certified, "failure")
    if held == "radius":
        radius = _as_numbers(claims.column("radius"), certified, "radius")
    else:
        radius = np.where(np.array(claims.column("verdict").to_pylist()) == "holds", np.inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_failure = np.log(failure)
    return Certificates(
        label,
        failure,
        log_failure,
        radius,
        record.threat,
        classes=np.arange(len(classes)),
        rule=record.rule,
        noise=record.noise,
        runner_up=runner_up,
        _proof=_read_proofs(claims.column("proof").to_pylist(), certified),
    )


def _read_proofs(written: list[Any], path: PathLike) -> NDArray[np.uint8]:
    for value in written:
        if value not in PROOFS:
            raise ValueError(f"`proof` of {os.fspath(path)} must be one of {', '.join(PROOFS)}, got {value!r}.")
    return np.array([PROOFS.index(value) for value in written], dtype=np.uint8)


def _as_numbers(column: pa.ChunkedArray, path: PathLike, name: str) -> FloatArray:
    try:
        values = [np.nan if value is None else float(value) for value in column.to_pylist()]
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` of {os.fspath(path)} must hold numbers.") from None
    return np.array(values, dtype=np.float64)


def _read_labels(written: list[Any], classes: list[Any], path: PathLike, name: str) -> NDArray[np.int64]:
    """Labels as numbers of classes, by how the classes are written."""
    known = {str(value): code for code, value in enumerate(classes)}
    known |= {f"'{text}": code for text, code in known.items()}  # as `--safe-csv` writes some
    numbers = {value: code for code, value in enumerate(classes) if isinstance(value, float)}  # "1" is written for 1.0
    codes = [known.get(text, _find_number(text, numbers)) for text in written]
    for text, code in zip(written, codes, strict=True):
        if code is None:
            names = ", ".join(map(str, classes))
            raise ValueError(f"`{name}` of {os.fspath(path)} must be a class of the model, {names}, got {text!r}.")
    return np.array(codes, dtype=np.int64)


def _find_number(text: str | None, numbers: dict[float, int]) -> int | None:
    """The class whose number a text is; None where it is none."""
    try:
        return None if text is None else numbers.get(float(text))
    except ValueError:
        return None


def _summarize_record(threat: Threat, source: MatchedFile) -> ThreatSummary:
    """What may change by a record, with columns by name and categories by value."""
    values = {
        column: tuple(dict(enumerate(source.encoding.categories.get(int(column), ()))).get(code) for code in codes)
        for column, codes in threat.may_become.items()
    }
    named = replace(threat, may_become=values)
    return summarize_threat(named, named, named, source)


def _describe_row(found: Audit, claims: Certificates, at: int, row: int, classifier: Classifier) -> NotProven:
    return {
        "row": row + 1,
        "claim": str(found.claim[at]),
        "label": str(classifier.classes_[claims.label[at]]),
        "claimed": float(found.claimed[at]),
        "proven": float(found.proven[at]),
    }


def _write_rows(found: Audit, chosen: IntArray, output: PathLike) -> None:
    columns = {name: getattr(found, name) for name in ("claimed", "proven", "verdict", "claim")}
    with write_batches(output) as write:
        write({"row": chosen + 1, **columns})
