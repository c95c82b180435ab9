"""Certifying the rows of a file by a model whose answers are numbers.

Owns the loop over batches, what is written of each, and the results in short. Must not know the command line, how files
are read and written, nor how a threat is made of what the user asked for.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand._core.files import PathLike
from derand._core.threads import count_threads
from derand.certificates import Intervals, ToleranceRadii
from derand.estimators import choose_radius
from derand.frames import MatchedFile, match_file, write_batches
from derand.jobs._classifiers import load_regressor
from derand.jobs._copying import NUMBER_COLUMNS, Copies
from derand.jobs._pipeline import run_pipeline
from derand.jobs._recording import require_places, write_record
from derand.jobs._request import ThreatSummary, note_other_answers, read_named, require_domains, summarize_threat
from derand.noise import Noise, as_noise_or_none
from derand.storage import NumbersRequest
from derand.threat import Threat

if TYPE_CHECKING:
    import pyarrow as pa


class _NumbersTally(TypedDict):
    """Results of all batches in short; widths where intervals were asked for, radii where a tolerance was given."""

    rows: int
    mean_width: NotRequired[float]
    largest_width: NotRequired[float]
    certified_rows: NotRequired[int]
    """Rows with a radius above 0."""
    rows_of_infinite_radius: NotRequired[int]
    rmse: NotRequired[float]
    """With a target: root of the mean square of what is missed."""
    targets_inside: NotRequired[int]
    """With a target: how many of its numbers lie in their interval, or within the tolerance of the answer."""


class CertifyingNumbersSummary(_NumbersTally):
    """What `certify_numbers_file` read and what it did not, and the results in short."""

    output: str
    record: str | None
    """What the intervals or radii are about, for `audit_file`."""
    columns_not_used: list[str]
    columns_copied: list[str]
    unseen_categories: dict[str, int]
    empty_columns: list[str]
    rule: str
    proof: str
    """Which proofs were allowed."""
    noise: str
    norm: float | None
    radius: float | None
    """Of the intervals; None within limits alone, and where a tolerance was given."""
    tolerance: float | None
    threat: ThreatSummary
    notes: list[str]
    """Such as that values are not those of `predict`."""
    seconds: float


def certify_numbers_file(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    target: str | None = None,
    radius: float | None = None,
    tolerance: float | None = None,
    l0: int | None = None,
    rule: str | None = None,
    proof: str = "best",
    noise: Noise | str | float | None = None,
    threat: Threat | PathLike | None = None,
    changes: Mapping[str, Any] | None = None,
    safe_csv: bool = False,
    identity: str | None = None,
    keep: Sequence[str] = (),
    n_jobs: int | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> CertifyingNumbersSummary:
    """Certify every row of a CSV or Parquet file, batch by batch, and write row, value, low and high.

    With a tolerance there is row, value and radius instead.

    Parameters
    ----------
    model : path-like
        A saved regressor.
    data, output, l0, rule, proof, noise, threat, changes, safe_csv, identity, keep, n_jobs, advance
        As for `certify_file`.
    target : str or None
        Column with the true numbers.
    radius : float or None
        Of the intervals; None is what the regressor was trained for.
    tolerance : float or None
        By how much an answer may move, in units of the target; then each row's radius is found.

    Returns
    -------
    CertifyingNumbersSummary
        A dict: what was read, what was not, and the results in short.
    """
    start = time.perf_counter()
    as_noise_or_none(noise)  # refused before any file is looked at
    if radius is not None and tolerance is not None:
        raise ValueError(f"Give `radius` or `tolerance`, got both, {radius!r} and {tolerance!r}.")
    inputs = [model, data, *([] if threat is None or isinstance(threat, Threat) else [threat])]
    require_places(output, inputs)
    copies = Copies.choose(identity, keep, NUMBER_COLUMNS)
    regressor = load_regressor(model)
    source = match_file(data, regressor.encoding_, target=target, classes=None, copied=copies.names)
    given, named = read_named(regressor, source, l0, threat, changes or {})
    size = None if tolerance is not None else choose_radius(regressor, named, radius)
    tally, threads = _Tally(), count_threads(regressor.n_jobs if n_jobs is None else n_jobs)
    asked: dict[str, Any] = {"threat": named, "rule": rule, "proof": proof, "noise": noise, "n_jobs": n_jobs}
    found: Intervals | ToleranceRadii
    with write_batches(output, safe_csv=safe_csv, arrow=source.file.is_arrow_stream) as write:

        def certify_batch(batch: pa.Table) -> Mapping[str, Any]:
            nonlocal found
            first_row = tally.n_rows + 1
            rows, numbers = source.split(batch, first_row=first_row)
            require_domains(source, named, batch, first_row)
            with source.name_gaps(batch, first_row=first_row):
                if tolerance is None:
                    found = regressor.certify_interval(rows, size, **asked)
                else:
                    found = regressor.certify_radius(rows, tolerance, **asked)
            tally.add(found, numbers, source, batch)
            return copies.join(batch, _list_results(found, first_row))

        def tell(results: Mapping[str, Any]) -> None:
            advance(len(results["row"]))

        places: dict[str, Any] = {"data": data, "output": output, "n_threads": threads}
        run_pipeline(source.read_batches(), certify_batch, write, tell, **places)
        source.file.require_rows(tally.n_rows)
    record = write_record(
        model,
        data,
        output,
        n_rows=tally.n_rows,
        rule=found.rule,
        proof=proof,
        noise=found.noise,
        threat=found.threat,
        numbers=NumbersRequest(size, tolerance),
    )
    return {
        "output": os.fspath(output),
        "record": None if record is None else os.fspath(record),
        "columns_not_used": source.not_used,
        "columns_copied": list(copies.names),
        "unseen_categories": dict(tally.unseen),
        "empty_columns": sorted(tally.empty or ()),
        "rule": found.rule,
        "proof": proof,
        "noise": "none" if found.noise is None else str(found.noise),
        "norm": found.threat.ball_norm,
        "radius": size,
        "tolerance": tolerance,
        "threat": summarize_threat(given, named, found.threat, source),
        "notes": note_other_answers(regressor, found.rule, found.noise),
        **tally.summarize(),
        "seconds": time.perf_counter() - start,
    }


def _list_results(found: Intervals | ToleranceRadii, first_row: int) -> dict[str, NDArray[Any]]:
    """What is written of a batch, by column."""
    ends = {"low": found.low, "high": found.high} if isinstance(found, Intervals) else {"radius": found.radius}
    return {"row": np.arange(first_row, first_row + len(found)), "value": found.value, **ends}


class _Tally:
    """Results of all batches so far."""

    def __init__(self) -> None:
        self.n_rows = self.n_certified = self.n_infinite = self.n_known = self.n_inside = 0
        self.sum_width = self.largest_width = self.sum_squares = 0.0
        self.is_intervals = True
        self.unseen: Counter[str] = Counter()
        self.empty: set[str] | None = None
        """Columns that were empty in every batch; None before the first."""

    def add(
        self, found: Intervals | ToleranceRadii, numbers: FloatArray | None, source: MatchedFile, batch: pa.Table
    ) -> None:
        self.unseen.update(source.count_unseen(batch))
        empty = source.find_empty(batch)
        self.empty = empty if self.empty is None else self.empty & empty
        self.n_rows += len(found)
        if isinstance(found, Intervals):
            low, high = found.low, found.high
            self.sum_width += float(found.width.sum())
            self.largest_width = max(self.largest_width, float(found.width.max()))
        else:
            low, high = found.value - found.tolerance, found.value + found.tolerance
            self.is_intervals = False
            self.n_certified += int((found.radius > 0).sum())
            self.n_infinite += int(np.isinf(found.radius).sum())
        if numbers is not None:
            self.n_known += len(numbers)
            self.sum_squares += float(((found.value - numbers) ** 2).sum())
            self.n_inside += int(((low <= numbers) & (numbers <= high)).sum())

    def summarize(self) -> _NumbersTally:
        result: _NumbersTally = {"rows": self.n_rows}
        if self.is_intervals:
            result["mean_width"] = self.sum_width / self.n_rows
            result["largest_width"] = self.largest_width
        else:
            result["certified_rows"] = self.n_certified
            result["rows_of_infinite_radius"] = self.n_infinite
        if self.n_known:
            result["rmse"] = math.sqrt(self.sum_squares / self.n_known)
            result["targets_inside"] = self.n_inside
        return result
