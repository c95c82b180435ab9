"""Training on tables of parts.

Owns the passes over the parts: a first look, a sample, and then counts (stumps) or codes that are fitted (additive
models). Must not know how parts are read, nor how anything is trained: `derand.train` does that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.origin import Fitted, Frame
from derand._core.progress import tell
from derand._core.text import quote_short
from derand.distributed._parts import Parts, drop_empty
from derand.distributed._sampling import SAMPLE_ROWS, Sample, draw_part, join_samples
from derand.distributed._shards import DaskShards
from derand.distributed._survey import Survey, join_surveys, split_target, split_weights, survey_part
from derand.estimators import (
    AdditiveClassifier,
    StumpClassifier,
    check_parameters,
    fit_table,
    resolve_class_weight,
)
from derand.noise import Noise
from derand.tables import ColumnWarning, Labels, TableEncoding, refuse_identifiers
from derand.train import (
    BinnedTable,
    CodedRows,
    CountedTable,
    CountingPlan,
    PartCounts,
    PartsInMemory,
    SplitGrid,
    TrainingTable,
    WholeTable,
    add_counts,
    choose_first_step,
    code_rows,
    compute_resolution,
    count_part,
)

Estimator = TypeVar("Estimator", StumpClassifier, AdditiveClassifier)


def fit(
    estimator: Estimator,
    data: object,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    weights: str | None = None,
) -> Estimator:
    """Train on a table of parts; the model does not depend on how the rows are cut into parts, nor on their order.

    A StumpClassifier is the one that its own `fit` finds on all rows, bit for bit, unless `scaling` is "robust". What
    needs rows rather than counts (quartiles, and bins, penalties and the first weights of an AdditiveClassifier) comes
    from a sample: at most 65,536 different rows, each with how often it occurs, chosen by their values. All rows are
    fitted then, by sums of 64-bit integers.

    Parameters
    ----------
    estimator : StumpClassifier or AdditiveClassifier
        It is fitted itself. AdditiveClassifier takes two classes, and neither `groups` nor `min_rows_per_category`.
    data : Dask dataframe; paths of Parquet files, a folder or a pattern; or a pandas, polars or pyarrow table
        Work on parts goes to the Dask client that is there, else to threads.
    target : str
        The column of labels.
    columns : sequence of str, or None
        Columns to learn from; None is all but the target. Columns to look at before the model is trusted, such as
        identifiers, are named in a ColumnWarning, as by `fit` of the estimator.
    weights : str or None
        A column of whole numbers: a row of weight 3 counts as three rows, one of weight 0 is left out. Not with
        `scaling="standard"`.

    Returns
    -------
    The estimator.

    Examples
    --------
    >>> import pandas as pd
    >>> from derand import StumpClassifier
    >>> from derand.distributed import fit
    >>> frame = pd.DataFrame({"size": [0.0, 1.0, 4.0, 5.0], "kind": ["no", "no", "yes", "yes"]})
    >>> clf = fit(StumpClassifier(noise="gaussian:0.5"), frame, "kind")
    >>> clf.predict(frame[["size"]]).tolist()
    ['no', 'no', 'yes', 'yes']
    """
    _require_supported(estimator)
    if weights is not None and estimator.scaling == "standard":
        raise ValueError('`scaling` must not be "standard" beside `weights` on tables of parts: take "range".')
    before = vars(estimator).copy()
    try:
        with estimator._listen():
            messages, found = _fit(estimator, data, target, columns, weights)
    except BaseException:  # an interrupted fit, too, leaves the estimator as it was
        estimator.__dict__ = before
        raise
    for text in messages:
        warnings.warn(text, stacklevel=2)
    if found is not None:
        warnings.warn(found, ColumnWarning, stacklevel=2)
    return estimator


def _require_supported(estimator: object) -> None:
    if not isinstance(estimator, StumpClassifier | AdditiveClassifier):
        raise TypeError(
            f"`estimator` must be a StumpClassifier or an AdditiveClassifier, got a {type(estimator).__name__}: others "
            "are trained on one machine, and certified on many."
        )
    check_parameters(estimator)
    if isinstance(estimator, AdditiveClassifier):
        for name in ("groups", "min_rows_per_category"):
            if getattr(estimator, name) is not None:
                raise ValueError(f"`{name}` of AdditiveClassifier must be None on tables of parts: leave it out.")


def _fit(
    estimator: Fitted, data: object, target: str, columns: Sequence[str] | None, weighed: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Train; the warnings, and the message of the data checks."""
    more = (target,) if weighed is None else (target, weighed)
    parts = Parts.open(data, None if columns is None else (*columns, *more))
    tell(f"reading {len(parts.parts):,} parts: columns and classes")
    is_scaled = estimator.scaling is not None
    asked = (target, weighed, estimator.categorical_features, is_scaled)
    survey = parts.reduce(survey_part, join_surveys, *asked, with_names=True)
    if survey is None or not survey.n_rows:
        raise ValueError("The table has no rows.")
    reading = replace(_Reading.plan(survey, target), weights=weighed)
    _refuse_classes(estimator, reading.classes, target)
    refuse_identifiers(reading.classes.size, survey.n_rows, f"The column {quote_short(target)}")
    tell(f"{survey.n_rows:,} rows; drawing a sample")
    sample = parts.reduce(_draw, join_samples, reading, SAMPLE_ROWS)
    assert sample is not None  # there are rows
    totals = np.array([survey.labels[label] for label in reading.classes.tolist()], dtype=np.float64)
    class_weight = resolve_class_weight(estimator.class_weight, reading.classes, totals)
    weights = None if (sample.counts == 1).all() else sample.counts * (sample.counts.size / sample.counts.sum())
    names = reading.encoding.names
    seen = (sample.rows, sample.target, class_weight, weights, reading.n_categories, names)
    table = TrainingTable(*seen, survey.measure_spreads())
    estimator.n_features_in_ = reading.encoding.n_features
    estimator.feature_names_in_ = np.array(names, dtype=object)
    rows: Callable[[Noise | None], Any]
    if isinstance(estimator, StumpClassifier):
        rows = lambda noise: _count(estimator, parts, reading, survey, class_weight, noise)  # noqa: E731
    else:
        rows = lambda noise: _share(parts, reading, table, totals, sample, survey.largest_weight)  # noqa: E731
    messages = tuple(fit_table(estimator, table, reading.encoding, reading.classes, totals, rows))
    labels = reading.classes[sample.target]
    return messages, estimator._doubt_columns(reading.encoding.decode(sample.rows), labels)


def _refuse_classes(estimator: object, classes: Labels, target: str) -> None:
    if classes.size < 2:
        raise ValueError(f"{quote_short(target)} holds only one label, {classes.tolist()}: there is nothing to learn.")
    if classes.size > 2 and isinstance(estimator, AdditiveClassifier):
        raise ValueError(
            f"{quote_short(target)} holds {classes.size} classes: an AdditiveClassifier of several classes is trained "
            "on one machine. Use StumpClassifier, or a table of two classes."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """How the rows of every part are read."""

    target: str
    encoding: TableEncoding
    classes: Labels
    weights: str | None = None

    @classmethod
    def plan(cls, survey: Survey, target: str) -> _Reading:
        encoding = survey.encode()
        known = set(survey.list_known().tolist())
        empty = [column for column in encoding.numerical if column not in known]
        if empty:
            raise ValueError(
                f"`X` must hold some number in every numerical column, got none in column {encoding.name(empty[0])!r}: "
                "all its values are missing. Drop it."
            )
        return cls(target, encoding, survey.list_classes())

    @property
    def n_categories(self) -> dict[int, int]:
        return {column: len(values) for column, values in self.encoding.categories.items()}

    def read(self, table: object) -> tuple[FloatArray, NDArray[np.uint8], IntArray | None]:
        """Rows as the model reads them, their classes, and their weights where they have some."""
        table, weights = split_weights(table, self.weights)
        X, labels = split_target(table, self.target)
        rows = self.encoding.encode_finite(X, may_miss=self.encoding.numerical)
        places = {label: place for place, label in enumerate(self.classes.tolist())}
        lookup = np.array([places.get(value, 0) for value in labels.values], dtype=np.uint8)
        return rows, lookup[labels.codes], weights


def _draw(table: object, reading: _Reading, most: int) -> Sample:
    return draw_part(*reading.read(table), most)


def _count(
    estimator: StumpClassifier,
    parts: Parts,
    reading: _Reading,
    survey: Survey,
    class_weight: FloatArray,
    noise: Noise | None,
) -> CountedTable:
    """The table by its counts."""
    assert noise is not None  # stumps are trained under noise
    columns = survey.list_known()
    grid = SplitGrid.around(noise, choose_first_step(noise, estimator.split_step))
    plan = CountingPlan(
        survey.n_rows,
        columns,
        survey.lows[columns],
        survey.highs[columns],
        noise.units_of(columns),
        compute_resolution(noise, grid),
    )
    tell("counting all rows")
    counts = parts.reduce(_count_rows, partial(add_counts, resolution=plan.resolution), reading, plan, class_weight)
    assert counts is not None  # there are rows
    names = reading.encoding.names
    return CountedTable(counts, plan, len(survey.names), class_weight, reading.n_categories, names)


def _count_rows(table: object, reading: _Reading, plan: CountingPlan, class_weight: FloatArray) -> PartCounts:
    rows, target, weights = reading.read(table)
    by_row = None if weights is None else weights.astype(np.float64)
    part = TrainingTable(rows, target, class_weight, by_row, reading.n_categories, reading.encoding.names)
    return count_part(part, plan)


def _share(
    parts: Parts, reading: _Reading, table: TrainingTable, totals: FloatArray, sample: Sample, largest_weight: int
) -> TrainingTable:
    """The sample as a table, with the way to all rows."""

    def share(binned: BinnedTable) -> Any:
        coded = parts.map(_code, _join_codes, reading, binned.numbers, binned.categories)
        return DaskShards(coded) if parts.on_workers else PartsInMemory(drop_empty(coded))

    whole = WholeTable(totals.astype(np.int64), sample.count_distinct(), share, largest_weight)
    return replace(table, whole=whole)


def _code(table: object, reading: _Reading, numbers: Frame, categories: Frame) -> CodedRows:
    rows, target, weights = reading.read(table)
    return CodedRows(code_rows(rows, numbers, categories), target, weights)


def _join_codes(found: Sequence[CodedRows]) -> CodedRows:
    codes, target = (np.concatenate(own) for own in zip(*((one.codes, one.target) for one in found), strict=True))
    weights = [one.weights for one in found if one.weights is not None]
    return CodedRows(codes, target, np.concatenate(weights) if weights else None)
