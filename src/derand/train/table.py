"""TrainingTable: what a trainer sees. Owns rows, target, weights and the measuring of units.

Must not know how a table was read, noise, or scikit-learn. Whoever makes a table checks it: numbers are finite or
missing, every numerical column has some, every class occurs, rows of weight 0 are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.train._moments import Moments
from derand.train._quartiles import measure_quartile_range
from derand.train.histogram import Counts, Histogram, tabulate
from derand.train.parts import WholeTable

MAX_CLASSES = 256
"""A class takes a byte."""


class Spread(NamedTuple):
    """How far the numbers of a column lie apart, in all rows of a table of which only a sample is at hand."""

    range: float
    moments: Moments


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTable:
    """Checked and encoded rows with their labels and weights.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Categorical columns hold codes from 0 on. NaN is a missing value, in any column. Never written to.
    target : array of shape (n_rows,)
        The class of each row, from 0 on.
    class_weight : array of shape (n_classes,)
        One entry per class, 256 of them at most; ones for two classes where it is not given.
    sample_weight : array of shape (n_rows,) or None
        Positive, of mean 1; not yet multiplied by the class weights.
    n_categories : mapping of column number to int
        How many categories each categorical column has; all other columns are numerical.
    names : tuple of str, or None
        Names of the columns.
    spreads : mapping of column number to Spread
        Of numerical columns, where the rows are a sample of a table whose units count.
    whole : WholeTable or None
        The table that the rows are a sample of, where all of its rows are to be fitted.

    Examples
    --------
    >>> table = TrainingTable(np.array([[0.5, 1.0], [2.0, 0.0]]), np.array([0, 1], dtype=np.uint8), n_categories={1: 2})
    >>> table.numerical.tolist(), table.row_weight.tolist(), table.name(0)
    ([0], [1.0, 1.0], 0)
    """

    X: FloatArray
    target: NDArray[np.uint8]
    class_weight: FloatArray = field(default_factory=lambda: np.ones(2))
    sample_weight: FloatArray | None = None
    n_categories: Mapping[int, int] = field(default_factory=dict)
    names: tuple[str, ...] | None = None
    spreads: Mapping[int, Spread] = field(default_factory=dict)
    whole: WholeTable | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.n_classes <= MAX_CLASSES:
            raise ValueError(
                f"`class_weight` of TrainingTable must have one entry per class, 2 to {MAX_CLASSES} of them, got "
                f"{self.n_classes}: merge rare classes, or keep rows of the most frequent ones."
            )

    @property
    def n_classes(self) -> int:
        """How many classes there are, whether or not each of them occurs."""
        return int(self.class_weight.size)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def numerical(self) -> IntArray:
        """Numbers of the numerical columns."""
        every = range(self.n_features)
        return np.array([column for column in every if column not in self.n_categories], dtype=np.int64)

    def list_missing(self) -> tuple[int, ...]:
        """Numerical columns in which some value is missing, increasing."""
        return tuple(column for column in self.numerical.tolist() if np.isnan(self.X[:, column]).any())

    def list_known(self) -> IntArray:
        """Numerical columns in which some value is there."""
        return np.array([at for at in self.numerical.tolist() if not np.isnan(self.X[:, at]).all()], dtype=np.int64)

    @property
    def n_rows(self) -> int:
        return int(self.target.size)

    def count_classes(self) -> Counts:
        """Rows of each class, or the weights of the rows where they have some; not weighted by class."""
        return self._count(np.ones(self.n_rows, dtype=bool), np.zeros(self.n_rows, dtype=np.int64), 1)[:, 0]

    def count_categories(self, column: int) -> Counts:
        """The same by category of a column, (n_classes, n_categories)."""
        codes = self.X[:, column]
        known = ~np.isnan(codes)
        return self._count(known, codes[known].astype(np.int64), self.n_categories[column])

    def count_category_rows(self, column: int) -> IntArray:
        """How many rows each category of a column has, whatever they weigh."""
        codes = self.X[:, column]
        return np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=self.n_categories[column])

    def count_missing(self, column: int) -> Counts:
        """What `count_classes` counts, of the rows in which a column is missing."""
        missing = np.isnan(self.X[:, column])
        return self._count(missing, np.zeros(int(missing.sum()), dtype=np.int64), 1)[:, 0]

    def _count(self, rows: NDArray[np.bool_], codes: IntArray, n_codes: int) -> Counts:
        """Rows of each class and code, (n_classes, n_codes); `codes` are those of `rows`."""
        places = codes + n_codes * self.target[rows].astype(np.int64)
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return np.bincount(places, weights=weights, minlength=self.n_classes * n_codes).reshape(self.n_classes, n_codes)

    def tabulate(self, columns: IntArray, units: FloatArray, resolution: float) -> list[Histogram]:
        """Histograms of some columns; see `derand.train.histogram.tabulate`."""
        data = (self.X, columns, self.target, self.sample_weight)
        return tabulate(*data, units, resolution, n_classes=self.n_classes)

    @property
    def row_weight(self) -> FloatArray:
        """Sample weight times class weight of each row."""
        by_class = self.class_weight[self.target]
        return by_class if self.sample_weight is None else by_class * self.sample_weight

    def name(self, column: int) -> str | int:
        """Name of a column, or its number where the table has no names."""
        return self.names[column] if self.names is not None else column

    def take(self, rows: IntArray) -> TrainingTable:
        """Some of the rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, X=self.X[rows], target=self.target[rows], sample_weight=weights)

    def weigh(self, row_weight: FloatArray) -> TrainingTable:
        """The same rows with other weights, which hold those of the classes, too."""
        return replace(self, sample_weight=row_weight, class_weight=np.ones(self.n_classes))


SCALINGS = ("standard", "range", "robust")
"""What `measure_units` can measure."""


def measure_units(table: TrainingTable, scaling: str) -> FloatArray:
    """The unit of each column, 1 for constant and categorical ones; cells that are not finite do not count.

    The population deviation ("standard"), the range ("range"), or the interquartile range and, where that is 0, the
    deviation ("robust"). Deviations and quartiles count the rows' weights; deviations of rows that weigh alike do not
    depend on their order, and ranges and deviations are those of all rows where `table` is a sample that knows them.

    Returns shape (n_features,).

    Examples
    --------
    >>> table = TrainingTable(np.array([[0.0, 3.0], [4.0, 3.0]]), np.array([0, 1], dtype=np.uint8))
    >>> [measure_units(table, scaling).tolist() for scaling in ("standard", "range", "robust")]
    [[2.0, 1.0], [4.0, 1.0], [4.0, 1.0]]
    """
    units = np.ones(table.n_features)
    for column in table.numerical.tolist():
        values, weights = np.ascontiguousarray(table.X[:, column]), table.sample_weight
        known = np.isfinite(values)
        if not known.all():
            values, weights = values[known], None if weights is None else weights[known]
        span = float(values.max() - values.min()) if values.size else 0.0
        moments = None
        if column in table.spreads:
            span, moments = table.spreads[column]
        if span > 0:
            units[column] = span if scaling == "range" else _measure_spread(values, weights, moments, scaling)
    return units


def _measure_spread(values: FloatArray, weights: FloatArray | None, moments: Moments | None, scaling: str) -> float:
    """Deviation of values that are not all equal, or their interquartile range where that is asked for and not 0."""
    quartiles = measure_quartile_range(values, weights) if scaling == "robust" else 0.0
    if quartiles > 0:
        return quartiles
    if weights is None or moments is not None:
        return (Moments.measure(values) if moments is None else moments).compute_deviation()
    return _measure_weighted(values, weights)


def _measure_weighted(values: FloatArray, weights: FloatArray) -> float:
    """Deviation of values that weigh differently."""
    with np.errstate(over="ignore"):
        mean = np.average(values, weights=weights)
        spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))
    if np.isfinite(spread):
        return spread
    largest = float(np.abs(values).max())  # squares of values beyond 1e154 overflow: those of their shares do not
    return largest * _measure_weighted(values / largest, weights)
