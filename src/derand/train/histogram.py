"""Histograms of the distinct values of columns, per class: all that training needs to know of the rows.

Owns the coding of values as levels, the counting, and the joining of histograms of parts of a table. Must not know
noise, splits or scikit-learn. Counts are integers where rows have no weights, so that the histograms of parts of a
table add up to that of the whole, exactly, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray, Numbers, freeze
from derand.train._compiled import N_SLOTS, accumulate, encode, gather

Codes = NDArray[np.uint16]
Target = NDArray[np.uint8]
Counts = Numbers
"""Integers, or sums of weights in double precision."""

MAX_LEVELS = N_SLOTS // 2
"""A column of at most this many distinct values is counted exactly; the values of any other are put into bins."""
MAX_BINS = 2**16
SHARED_LEVELS = 2**11  # columns share a histogram while they have at most this many distinct values together
_BLOCK_COLUMNS = 64
_BLOCK_NUMBERS = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often each level occurs in each class, for columns that share their levels.

    Attributes
    ----------
    columns : array of shape (n_columns,)
        Which columns of the table these are.
    lows, highs, units : arrays of shape (n_columns,)
        Smallest and largest value; the unit.
    values : array of shape (n_levels,), or None
        The distinct values as they stand in the table, increasing; None where values were put into bins.
    levels : array of shape (n_levels,)
        Distances from the smallest value, in units, increasing.
    counts : array of shape (n_columns, n_classes, n_levels)
        Rows of each class at each level: integers, or sums of the rows' weights.
    """

    columns: IntArray
    lows: FloatArray
    highs: FloatArray
    units: FloatArray
    values: FloatArray | None
    levels: FloatArray
    counts: Counts

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            if array is not None:
                freeze(array)

    @property
    def spans(self) -> FloatArray:
        """Largest value minus smallest, in units."""
        return (self.highs - self.lows) / self.units

    def __getitem__(self, chosen: IntArray | NDArray[np.bool_] | slice) -> Histogram:
        """The same for some of the columns."""
        return Histogram(
            self.columns[chosen],
            self.lows[chosen],
            self.highs[chosen],
            self.units[chosen],
            self.values,
            self.levels,
            self.counts[chosen],
        )


def cut_into_blocks(columns: IntArray, n_rows: int) -> list[IntArray]:
    """Blocks of columns that are tabulated together; their size depends on the shape of the table alone."""
    size = int(np.clip(_BLOCK_NUMBERS // max(n_rows, 1), 1, _BLOCK_COLUMNS))
    return [columns[start : start + size] for start in range(0, columns.size, size)]


def tabulate(
    X: FloatArray,
    columns: IntArray,
    target: Target,
    sample_weight: FloatArray | None,
    units: FloatArray,
    resolution: float,
    *,
    limits: tuple[FloatArray, FloatArray] | None = None,
    n_classes: int = 2,
) -> list[Histogram]:
    """Histograms of some columns of a table.

    Exact for columns of at most MAX_LEVELS distinct values. Of any other column the values are moved, by at most half
    a `resolution` (in units; more where MAX_BINS bins do not cover the column so finely), onto a regular grid that
    starts at the smallest value.

    `X` (n_rows, n_features): finite in the columns named, or NaN, a missing value, which counts nowhere; `target`
    (n_rows,): classes from 0 on; `sample_weight` (n_rows,): positive; `limits`: smallest and largest value of each
    column in the table of which X is a part, so that bins of all parts are the same; None: those of X; `columns` has
    shape (n_columns,), `units` (n_columns,). The result: each column is in one of them.

    Examples
    --------
    >>> X, target = np.array([[3.0], [5.0], [3.0]]), np.array([0, 1, 1], dtype=np.uint8)
    >>> (histogram,) = tabulate(X, np.array([0]), target, None, np.ones(1), 0.01)
    >>> histogram.levels.tolist(), histogram.counts[0].tolist()
    ([0.0, 2.0], [[1, 0], [1, 1]])
    """
    block = np.empty((columns.size, X.shape[0]))
    lows, highs = np.full(columns.size, np.inf), np.full(columns.size, -np.inf)
    gather(X, columns, block, lows, highs)
    frame = _Frame(columns, lows, highs, units)
    weights = np.broadcast_to(np.int64(1), target.shape) if sample_weight is None else sample_weight
    entries = [_list_present(values, target, weights) for values in block]
    return _assemble(frame if limits is None else _widen(frame, *limits), entries, resolution, n_classes)


def merge_histograms(parts: Sequence[Sequence[Histogram]], resolution: float) -> list[Histogram]:
    """The histograms of a table from those of its parts, identical to what `tabulate` makes of the whole.

    Levels are united by the values themselves, so that nothing is lost to rounding, and grouped anew. Integer counts
    are exact whatever the order of the parts. Sums of weights are exact where every partial sum is a double (whole
    weights, multiples of a power of two); otherwise they differ from those of the whole by the rounding of the order
    of addition, by at most n_rows * 2**-53 of their size.

    `parts`: what `tabulate` made of the same columns, in the same order and units, for each part of the rows. Where one
    part has more than MAX_LEVELS distinct values in a column, all parts must have been given the `limits` of the whole
    table: bins of different grids cannot be joined, and are refused. Where the parts have more than that only together,
    their values are known and are put into bins here. `resolution`: as for `tabulate`.

    Examples
    --------
    >>> X, target = np.array([[3.0], [5.0], [3.0]]), np.array([0, 1, 1], dtype=np.uint8)
    >>> parts = [tabulate(X[rows], np.array([0]), target[rows], None, np.ones(1), 0.01) for rows in ([0, 1], [2])]
    >>> (histogram,) = merge_histograms(parts, 0.01)
    >>> histogram.levels.tolist(), histogram.counts[0].tolist()
    ([0.0, 2.0], [[1, 0], [1, 1]])
    """
    homes = _locate_columns(parts)
    columns = np.array(sorted(homes[0]), dtype=np.int64)
    every = [[home[column] for home in homes] for column in columns.tolist()]
    frame = _Frame(
        columns,
        np.array([min(histogram.lows[row] for histogram, row in places) for places in every]),
        np.array([max(histogram.highs[row] for histogram, row in places) for places in every]),
        np.array([places[0][0].units[places[0][1]] for places in every]),
    )
    n_classes = every[0][0][0].counts.shape[1] if every else 2
    return _assemble(frame, [_join_column(places) for places in every], resolution, n_classes)


_Home = tuple[Histogram, int]
"""Where a column is: its histogram, and which of its columns."""


def _locate_columns(parts: Sequence[Sequence[Histogram]]) -> list[dict[int, _Home]]:
    """The places of all columns in each part; parts that do not belong to one table are refused."""
    if not parts:
        raise ValueError("`parts` must hold the histograms of at least one part of a table, got none.")
    homes = [
        {int(column): (histogram, row) for histogram in part for row, column in enumerate(histogram.columns)}
        for part in parts
    ]
    for number, home in enumerate(homes):
        if home.keys() != homes[0].keys():
            raise ValueError(
                f"`parts` must hold the same columns, got {sorted(homes[0])} in the first and {sorted(home)} in part "
                f"{number}."
            )
        for column, (histogram, row) in home.items():
            first, place = homes[0][column]
            if histogram.units[row] != first.units[place] or histogram.counts.dtype != first.counts.dtype:
                raise ValueError(
                    f"`parts` must count in the same units, and all with weights or all without, but part {number} "
                    f"differs from the first in column {column}."
                )
    return homes


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Columns with their smallest and largest values and units."""

    columns: IntArray
    lows: FloatArray
    highs: FloatArray
    units: FloatArray


def _widen(frame: _Frame, lows: FloatArray, highs: FloatArray) -> _Frame:
    """The same columns with the limits of the table that they are a part of."""
    limits = []
    for limit in (lows, highs):
        values = np.asarray(limit, dtype=np.float64) + 0.0  # a negative zero is the same value as a positive one
        if values.shape != frame.columns.shape:
            raise ValueError(
                f"`limits` must hold two numbers for each of {frame.columns.size} columns, got an array of shape "
                f"{values.shape}."
            )
        limits.append(values)
    outside = np.flatnonzero((frame.lows < limits[0]) | (frame.highs > limits[1]))
    if outside.size:
        raise ValueError(
            f"`limits` must hold the smallest and largest value of the whole table, but column "
            f"{frame.columns[outside[0]]} has values beyond: take them over all parts."
        )
    return _Frame(frame.columns, limits[0], limits[1], frame.units)


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Weights of a class that were put into bins before: the levels of a histogram that starts at `low`."""

    levels: FloatArray
    low: float
    target: Target
    weights: Counts


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """What occurs in a column: values with the class and weight of each, and what is known by its bin alone."""

    values: FloatArray
    target: Target
    weights: Counts
    bins: tuple[_Bins, ...] = ()


def _list_present(values: FloatArray, target: Target, weights: Counts) -> _Column:
    """What occurs in a column, without rows in which it is missing."""
    is_missing = np.isnan(values)
    if not is_missing.any():
        return _Column(values, target, weights)
    return _Column(values[~is_missing], target[~is_missing], weights[~is_missing])


def _join_column(places: Sequence[_Home]) -> _Column:
    """All that the parts know of a column."""
    values, target, weights, bins = [], [], [], []
    for histogram, row in places:
        counts = histogram.counts[row]
        if histogram.values is None:
            low, size = float(histogram.lows[row]), histogram.levels.size
            levels = np.tile(histogram.levels, counts.shape[0])
            bins.append(_Bins(levels, low, _repeat_classes(counts.shape[0], size), counts.ravel()))
            continue
        own = counts.any(axis=0)  # the other values are those of columns that share the histogram
        values += [histogram.values[own]] * counts.shape[0]
        weights.append(counts[:, own].ravel())
        target.append(_repeat_classes(counts.shape[0], int(own.sum())))
    nothing = np.empty(0, dtype=places[0][0].counts.dtype)
    return _Column(
        np.concatenate([np.empty(0), *values]),
        np.concatenate([_repeat_classes(0, 0), *target]),
        np.concatenate([nothing, *weights]),
        tuple(bins),
    )


def _repeat_classes(n_classes: int, size: int) -> Target:
    return np.repeat(np.arange(n_classes).astype(np.uint8), size)


def _assemble(frame: _Frame, entries: Sequence[_Column], resolution: float, n_classes: int) -> list[Histogram]:
    """Histograms of the columns: exact ones, shared by columns that are alike, then those with bins."""
    alike: dict[tuple[float, float], list[int]] = {}
    for position, key in enumerate(zip(frame.lows.tolist(), frame.units.tolist(), strict=True)):
        alike.setdefault(key, []).append(position)
    parts: list[_Part] = []
    binned: list[int] = []
    dictionary = _Dictionary(max((entry.values.size for entry in entries), default=0), n_classes)
    for (low, unit), positions in alike.items():
        parts += _share_levels(entries, positions, (low, unit), dictionary, binned)
    parts += _share_bins(entries, binned, frame, resolution, n_classes)
    return [
        Histogram(
            frame.columns[part.members],
            frame.lows[part.members],
            frame.highs[part.members],
            frame.units[part.members],
            *part.table(),
        )
        for part in parts
    ]


@dataclass(slots=True)
class _Part:
    """Columns whose levels are the same; with values in any order, without in increasing order of levels.

    A count may lack the last levels.
    """

    members: list[int]
    values: FloatArray | None
    levels: FloatArray
    counts: list[Counts]

    def table(self) -> tuple[FloatArray | None, FloatArray, Counts]:
        """Values and levels in increasing order, and the counts of all columns in the same order."""
        n_classes = self.counts[0].shape[0]
        padded = np.zeros((len(self.counts), n_classes, self.levels.size), dtype=self.counts[0].dtype)
        for row, count in zip(padded, self.counts, strict=True):
            row[:, : count.shape[1]] = count
        if self.values is None:
            return None, self.levels, padded
        order = np.argsort(self.values)
        return self.values[order], self.levels[order], padded[:, :, order]


def _share_levels(
    entries: Sequence[_Column],
    positions: list[int],
    origin: tuple[float, float],
    dictionary: _Dictionary,
    binned: list[int],
) -> Iterator[_Part]:
    """Exact histograms of columns with the same smallest value and unit; adds to `binned` those with too many values.

    Columns share one dictionary of values while it stays small: then they also share one matrix of probabilities.
    """
    members: list[int] = []
    counts: list[Counts] = []

    def finish() -> Iterator[_Part]:
        if members:
            values = dictionary.values()
            yield _Part(members.copy(), values, (values - origin[0]) / origin[1], counts.copy())
        members.clear()
        counts.clear()
        dictionary.clear()

    for position in positions:
        column = entries[position]
        codes = dictionary.encode(column.values, SHARED_LEVELS) if members and not column.bins else None
        if codes is None:
            yield from finish()
            codes = None if column.bins else dictionary.encode(column.values, MAX_LEVELS)
        if codes is None:
            binned.append(position)
            continue
        members.append(position)
        counts.append(_count(codes, column.target, column.weights, dictionary.n_classes, dictionary.size))
    yield from finish()


def _share_bins(
    entries: Sequence[_Column], positions: list[int], frame: _Frame, resolution: float, n_classes: int
) -> Iterator[_Part]:
    """Histograms on regular grids; columns share a grid unless theirs has to be coarser."""
    parts: dict[float, _Part] = {}
    for position in positions:
        column, low, unit = entries[position], frame.lows[position], frame.units[position]
        span = float((frame.highs[position] - low) / unit)
        width = max(resolution, span / (MAX_BINS - 1))
        codes = np.rint((column.values - low) / (unit * width)).astype(np.uint16)
        known = [_match_bins(bins, low, width, int(frame.columns[position])) for bins in column.bins]
        size = 1 + max(int(part.max(initial=0)) for part in (codes, *known))
        counts = _count(codes, column.target, column.weights, n_classes, size)
        for bins, places in zip(column.bins, known, strict=True):
            accumulate(places, bins.target, bins.weights, counts)
        part = parts.setdefault(width, _Part([], None, np.empty(0), []))
        part.members.append(position)
        part.counts.append(counts)
        if size > part.levels.size:
            part.levels = np.arange(size, dtype=np.float64) * width
    yield from parts.values()


def _match_bins(bins: _Bins, low: float, width: float, column: int) -> Codes:
    """Numbers of bins on a grid; bins of another one are refused."""
    codes = np.rint(bins.levels / width)
    if bins.low != low or not np.array_equal(codes * width, bins.levels):
        raise ValueError(
            f"`parts` must have the same bins in column {column}, which has more than {MAX_LEVELS} distinct values: "
            "tabulate every part with the `limits` of the whole table and the same `resolution`."
        )
    return codes.astype(np.uint16)


class _Dictionary:
    """Numbers the distinct values of columns in the order of their first appearance (an open hash table)."""

    def __init__(self, n_entries: int, n_classes: int) -> None:
        self.size = 0
        self.n_classes = n_classes
        self._codes = np.empty(n_entries, dtype=np.uint16)
        self._keys = np.empty(MAX_LEVELS, dtype=np.uint64)
        self._slots = np.full(N_SLOTS, -1, dtype=np.int32)
        self._taken = np.empty(MAX_LEVELS, dtype=np.int32)

    def encode(self, column: FloatArray, limit: int) -> Codes | None:
        """Codes of a column, until the next call; None, and nothing learnt, where more than `limit` values would be
        known."""
        codes = self._codes[: column.size]
        size = encode(column.view(np.uint64), codes, self._keys, self._slots, self._taken, self.size, limit)
        if size < 0:
            return None
        self.size = size
        return codes

    def values(self) -> FloatArray:
        return self._keys[: self.size].copy().view(np.float64)

    def clear(self) -> None:
        self._slots[self._taken[: self.size]] = -1
        self.size = 0


def _count(codes: Codes, target: Target, weights: Counts, n_classes: int, n_levels: int) -> Counts:
    """Sum of the weights of each class at each level, of the weights' type; shape (n_classes, n_levels)."""
    counts = np.zeros((n_classes, n_levels), dtype=weights.dtype)
    accumulate(codes, target, weights, counts)
    return counts
