"""Histograms of the distinct values of columns, per class: all that training needs to know of the rows.

Owns the coding of values as levels and the counting. Must not know noise, splits or scikit-learn.
Counts are integers where rows have no weights, so that the histograms of parts of a table add up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.learn._compiled import N_SLOTS, accumulate, encode, gather

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    lows, units, spans : arrays of shape (n_columns,)
        Smallest value; the unit; largest value minus smallest, in units.
    levels : array of shape (n_levels,)
        Distinct values as distances from the smallest one, in units, increasing.
    counts : array of shape (n_columns, 2, n_levels)
        Rows of each class at each level: integers, or sums of the rows' weights.
    """

    columns: IntArray
    lows: FloatArray
    units: FloatArray
    spans: FloatArray
    levels: FloatArray
    counts: NDArray[Any]

    def __getitem__(self, chosen: Any) -> Histogram:
        """The same for some of the columns."""
        return Histogram(
            self.columns[chosen],
            self.lows[chosen],
            self.units[chosen],
            self.spans[chosen],
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
    target: NDArray[np.uint8],
    sample_weight: FloatArray | None,
    units: FloatArray,
    resolution: float,
) -> list[Histogram]:
    """Histograms of some columns of a table.

    Exact for columns of at most MAX_LEVELS distinct values. Of any other column the values are moved, by at most half
    a `resolution` (in units; more where MAX_BINS bins do not cover the column so finely), onto a regular grid that
    starts at the smallest value.

    Parameters
    ----------
    X : array of shape (n_rows, n_features), finite in the columns named
    columns : array of shape (n_columns,)
    target : array of shape (n_rows,), 0 or 1
    sample_weight : array of shape (n_rows,) or None
    units : array of shape (n_columns,)
    resolution : float

    Returns
    -------
    list of Histogram
        Each column is in one of them.
    """
    block = np.empty((columns.size, X.shape[0]))
    lows, highs = np.full(columns.size, np.inf), np.full(columns.size, -np.inf)
    gather(X, columns, block, lows, highs)
    spans = (highs - lows) / units
    weights = np.broadcast_to(np.int64(1), target.shape) if sample_weight is None else sample_weight
    alike: dict[tuple[float, float], list[int]] = {}
    for position, key in enumerate(zip(lows.tolist(), units.tolist(), strict=True)):
        alike.setdefault(key, []).append(position)
    parts: list[_Part] = []
    binned: list[int] = []
    dictionary = _Dictionary(target.size)
    for (low, unit), positions in alike.items():
        parts += _tabulate_alike(block, positions, (low, unit), target, weights, dictionary, binned)
    parts += _tabulate_binned(block, binned, lows, units, spans, target, weights, resolution)
    return [
        Histogram(columns[part.members], lows[part.members], units[part.members], spans[part.members], *part.table())
        for part in parts
    ]


@dataclass(slots=True)
class _Part:
    """Columns of a block whose levels are the same, in any order; a count may lack the last levels."""

    members: list[int]
    levels: FloatArray
    counts: list[NDArray[Any]]

    def table(self) -> tuple[FloatArray, NDArray[Any]]:
        """Levels in increasing order, and the counts of all columns in the same order."""
        order = np.argsort(self.levels)
        padded = np.zeros((len(self.counts), 2, self.levels.size), dtype=self.counts[0].dtype)
        for row, count in zip(padded, self.counts, strict=True):
            row[:, : count.shape[1]] = count
        return self.levels[order], padded[:, :, order]


def _tabulate_alike(
    block: FloatArray,
    positions: list[int],
    frame: tuple[float, float],
    target: NDArray[np.uint8],
    weights: NDArray[Any],
    dictionary: _Dictionary,
    binned: list[int],
) -> Iterator[_Part]:
    """Exact histograms of columns with the same smallest value and unit; adds to `binned` those with too many values.

    Columns share one dictionary of values while it stays small: then they also share one matrix of probabilities.
    """
    members: list[int] = []
    counts: list[NDArray[Any]] = []

    def finish() -> Iterator[_Part]:
        if members:
            yield _Part(members.copy(), (dictionary.values() - frame[0]) / frame[1], counts.copy())
        members.clear()
        counts.clear()
        dictionary.clear()

    for position in positions:
        fits = dictionary.encode(block[position], SHARED_LEVELS) if members else False
        if not fits:
            yield from finish()
            if not dictionary.encode(block[position], MAX_LEVELS):
                binned.append(position)
                continue
        members.append(position)
        counts.append(_count(dictionary.codes, target, weights, dictionary.size))
    yield from finish()


def _tabulate_binned(
    block: FloatArray,
    positions: list[int],
    lows: FloatArray,
    units: FloatArray,
    spans: FloatArray,
    target: NDArray[np.uint8],
    weights: NDArray[Any],
    resolution: float,
) -> Iterator[_Part]:
    """Histograms on regular grids; columns share a grid unless theirs has to be coarser."""
    parts: dict[float, _Part] = {}
    for position in positions:
        width = max(resolution, float(spans[position]) / (MAX_BINS - 1))
        codes = np.rint((block[position] - lows[position]) / (units[position] * width)).astype(np.uint16)
        part = parts.setdefault(width, _Part([], np.empty(0), []))
        size = int(codes.max()) + 1
        part.members.append(position)
        part.counts.append(_count(codes, target, weights, size))
        if size > part.levels.size:
            part.levels = np.arange(size, dtype=np.float64) * width
    yield from parts.values()


class _Dictionary:
    """Numbers the distinct values of columns in the order of their first appearance (an open hash table)."""

    def __init__(self, n_rows: int) -> None:
        self.codes = np.empty(n_rows, dtype=np.uint16)
        self.size = 0
        self._keys = np.empty(MAX_LEVELS, dtype=np.uint64)
        self._slots = np.full(N_SLOTS, -1, dtype=np.int32)
        self._taken = np.empty(MAX_LEVELS, dtype=np.int32)

    def encode(self, column: FloatArray, limit: int) -> bool:
        """Write `codes` of a column; False, and nothing learnt, where more than `limit` values would be known."""
        size = encode(column.view(np.uint64), self.codes, self._keys, self._slots, self._taken, self.size, limit)
        if size < 0:
            return False
        self.size = size
        return True

    def values(self) -> FloatArray:
        return self._keys[: self.size].copy().view(np.float64)

    def clear(self) -> None:
        self._slots[self._taken[: self.size]] = -1
        self.size = 0


def _count(codes: NDArray[np.uint16], target: NDArray[np.uint8], weights: NDArray[Any], n_levels: int) -> NDArray[Any]:
    """Sum of the weights of each class at each level, of the weights' type; shape (2, n_levels)."""
    counts = np.zeros((2, n_levels), dtype=weights.dtype)
    accumulate(codes, target, weights, counts)
    return counts
