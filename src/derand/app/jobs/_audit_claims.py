"""What a certified file claims about some of its rows: labels, intervals or radii of a tolerance.

Owns the way from a written table and its record back to certificates. Must not know how a claim is proven, nor which
rows are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.files import PathLike
from derand._core.origin import Cell
from derand.certificates import PROOFS, Certificates, Intervals, ToleranceRadii
from derand.fitted import FittedModel, answers_numbers
from derand.storage import CertificateRecord, NumbersRequest
from derand.tables import inspect_file

if TYPE_CHECKING:
    import pyarrow as pa

_VERDICTS = ("holds", "flips", "undecided")


def read_claims(
    certified: PathLike,
    estimator: FittedModel,
    record: CertificateRecord,
    chosen: IntArray,
) -> Certificates | Intervals | ToleranceRadii:
    """What the file claims about the chosen rows."""
    if answers_numbers(estimator):
        if record.numbers is None:
            raise ValueError(f"{os.fspath(certified)} is about labels, but the model's answers are numbers.")
        return _read_numbers(certified, record, record.numbers, chosen)
    if record.numbers is not None:
        raise ValueError(f"{os.fspath(certified)} is about numbers, but the model is a classifier.")
    return _read_certificates(certified, estimator.classes_.tolist(), record, chosen)


def list_columns(record: CertificateRecord) -> list[str]:
    """The columns of a certified file that say what is claimed."""
    if record.numbers is None:
        return ["label", "failure", "verdict" if record.threat.norm is None else "radius", "proof"]
    return ["value", *(("low", "high") if record.numbers.tolerance is None else ("radius",))]


def list_unread(written: Collection[str], copied: Collection[str], record: CertificateRecord) -> dict[str, str]:
    """The columns of a certified file that say nothing that an audit looks at, each with a reason."""
    reasons = dict.fromkeys(written, "no column of results")
    reasons["attacked"] = "the changes are in another file"
    reasons |= dict.fromkeys(copied, "copied from the data")
    return {name: reasons[name] for name in written if name not in ("row", *list_columns(record))}


def _read_numbers(
    certified: PathLike, record: CertificateRecord, asked: NumbersRequest, chosen: IntArray
) -> Intervals | ToleranceRadii:
    names = list_columns(record)
    written = _read_rows(certified, names, [], record.n_rows, chosen)
    found = {name: _as_numbers(written.column(name), certified, name) for name in names}
    if asked.tolerance is None:
        ends = (found["low"], found["high"], asked.radius)
        return Intervals(found["value"], *ends, record.threat, rule=record.rule, noise=record.noise)
    value, radius = found["value"], found["radius"]
    return ToleranceRadii(value, asked.tolerance, radius, record.threat, rule=record.rule, noise=record.noise)


def _read_rows(certified: PathLike, names: list[str], as_text: list[str], n_rows: int, chosen: IntArray) -> pa.Table:
    """The chosen rows of a file that has some columns and as many rows as its record says, counted from 1."""
    file = inspect_file(certified)
    file.require_columns(["row", *names])
    written = file.read(as_text=[name for name in as_text if name in file.names])
    if written.num_rows != n_rows:
        raise ValueError(f"{os.fspath(certified)} has {written.num_rows} rows, its record {n_rows}.")
    claims = written.take(chosen)
    if not (_as_numbers(claims.column("row"), certified, "row") == chosen + 1).all():
        raise ValueError(f"`row` of {os.fspath(certified)} must count the rows from 1, in their order.")
    return claims


def _read_certificates(
    certified: PathLike, classes: list[object], record: CertificateRecord, chosen: IntArray
) -> Certificates:
    claims = _read_rows(certified, list_columns(record), ["label", "runner_up"], record.n_rows, chosen)
    label = _read_labels(claims.column("label").to_pylist(), classes, certified, "label")
    runner_up = None
    if "runner_up" in claims.column_names:  # of more than two classes
        runner_up = _read_labels(claims.column("runner_up").to_pylist(), classes, certified, "runner_up")
    failure = _as_numbers(claims.column("failure"), certified, "failure")
    if record.threat.norm is None:
        verdicts = _read_words(claims.column("verdict"), _VERDICTS, certified, "verdict")
        radius = np.where(np.array(verdicts) == "holds", np.inf, 0.0)
    else:
        radius = _as_numbers(claims.column("radius"), certified, "radius")
    allowed = PROOFS if record.proof == "best" else ("none", record.proof)
    proofs = [PROOFS.index(word) for word in _read_words(claims.column("proof"), allowed, certified, "proof")]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_failure = np.nextafter(np.log(failure), np.inf)  # the file claims the mass itself
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
        _proof=np.array(proofs, dtype=np.uint8),
    )


def _read_words(column: pa.ChunkedArray, known: Sequence[str], path: PathLike, name: str) -> list[object]:
    """The words of a column, each one of those that may stand there."""
    written: list[object] = column.to_pylist()
    for word in written:
        if word not in known:
            raise ValueError(f"`{name}` of {os.fspath(path)} must be one of {', '.join(known)}, got {word!r}.")
    return written


def _as_numbers(column: pa.ChunkedArray, path: PathLike, name: str) -> FloatArray:
    try:
        values = [np.nan if value is None else float(value) for value in column.to_pylist()]
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` of {os.fspath(path)} must hold numbers.") from None
    return np.array(values, dtype=np.float64)


def _read_labels(written: list[Cell], classes: list[object], path: PathLike, name: str) -> NDArray[np.int64]:
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
