"""Tables as small whole numbers: numerical columns cut into bins, a code of its own for what is missing.

Owns where columns are cut, and the codes. Must not know what is learned from them. Depends on rows and their weights
alone, not on their order: a row of weight 2 and the same row twice give the same bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand._core.threads import run_blocks
from derand.train.losses.margin_loops import code_values, hash_rows, index_edges
from derand.train.table import TrainingTable

MAX_BINS = 254
"""Of a numerical column, besides the one for missing values: codes then take a byte."""
_SAMPLE = 200_000  # rows that say where columns are cut
_BLOCK_ROWS = 2**14
_FEW_ROWS = 10_000  # of which columns are cut so quickly that threads would wait for each other
_BY_MASS = 0.75  # share of cuts that are quantiles; the others are quantiles of the distinct values
_TIE = 1e-9
_CELLS = 1024  # even ones between the outer edges of a column, each of which knows its edges; no more than rows


@dataclass(frozen=True, slots=True, eq=False)
class NumberBins:
    """One numerical column in bins.

    Attributes
    ----------
    feature : int
    edges : array of shape (n_bins - 1,)
        Bin i holds values from `edges[i - 1]` up to, but not including, `edges[i]`.
    centers : array of shape (n_bins,)
        Mean of the values in each bin.
    shares : array of shape (n_bins,)
        Share of the weight of all rows.
    missing : float
        Share of the weight of rows that have no value here.
    """

    feature: int
    edges: FloatArray
    centers: FloatArray
    shares: FloatArray
    missing: float

    def choose_cuts(self, n_cuts: int) -> FloatArray:
        """At most so many of the edges, most of them quantiles."""
        if self.edges.size <= n_cuts:
            return self.edges
        by_mass = max(1, int(np.ceil(_BY_MASS * n_cuts)))
        running = np.cumsum(self.shares)[:-1] / self.shares.sum()
        wanted = (np.arange(by_mass) + 1) / (by_mass + 1)
        chosen = np.unique(np.minimum(np.searchsorted(running, wanted - _TIE), self.edges.size - 1))
        # where many values are equal, quantiles coincide: what is left is spread over the bins
        evenly = np.linspace(0, self.edges.size - 1, n_cuts - chosen.size + 2).round().astype(np.int64)
        return np.asarray(self.edges[np.union1d(chosen, evenly[1:-1])])


@dataclass(frozen=True, slots=True, eq=False)
class BinnedTable:
    """Rows as codes, numerical columns first.

    Attributes
    ----------
    codes : array of shape (n_rows, n_columns)
        The bin of a number, the code of a category; one more than the largest of the column where it is missing.
    target : array of shape (n_rows,)
    weights : array of shape (n_rows,)
        Of mean 1 where they are those of all rows.
    numbers : tuple of NumberBins
        Of columns that are not constant.
    categories : tuple of (feature, n_categories)
    keys : array of shape (n_rows,)
        Of random order, equal for rows that are equal.
    penalties : mapping of feature to array of shape (n_categories,)
        How strongly the weight of each category is drawn to nothing; 1 for features that are not there.
    cuts : mapping of feature to array of shape (n_cuts,)
        Where the function of a column may jump, if that was chosen with its bins.
    """

    codes: Numbers
    target: NDArray[np.uint8]
    weights: FloatArray
    numbers: tuple[NumberBins, ...]
    categories: tuple[tuple[int, int], ...]
    keys: NDArray[np.uint64]
    penalties: Mapping[int, FloatArray] = field(default_factory=dict)
    cuts: Mapping[int, FloatArray] = field(default_factory=dict)

    @property
    def sizes(self) -> IntArray:
        """How many codes each column has."""
        return np.array(
            [one.centers.size + 1 for one in self.numbers] + [count + 1 for _, count in self.categories], dtype=np.int64
        )

    def count_distinct(self) -> int:
        """How many different rows there are: what repeating rows does not change."""
        ordered = np.sort(self.keys)
        return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))

    def miss_categories(self) -> list[bool]:
        """Whether some row misses each categorical column."""
        first = len(self.numbers)
        return [bool((self.codes[:, at] == count).any()) for at, (_, count) in enumerate(self.categories, first)]

    def take(self, rows: IntArray) -> BinnedTable:
        """Some of the rows."""
        return replace(
            self,
            codes=self.codes[rows],
            target=self.target[rows],
            weights=self.weights[rows],
            keys=self.keys[rows],
        )

    def keep(self, numbers: IntArray) -> BinnedTable:
        """Some of the numerical columns, by their places, and all categorical ones."""
        categories = np.arange(len(self.numbers), self.codes.shape[1])
        return replace(
            self,
            codes=np.ascontiguousarray(self.codes[:, np.concatenate([numbers, categories])]),
            numbers=tuple(self.numbers[at] for at in numbers.tolist()),
        )


def bin_table(table: TrainingTable, *, n_bins: int = MAX_BINS, seed: int = 0, n_threads: int = 1) -> BinnedTable:
    """Cut the numerical columns of a table into bins.

    `n_bins`: of a column, at most; `seed`: of the order of `keys`.

    Examples
    --------
    >>> table = TrainingTable(np.array([[1.0], [3.0], [np.nan]]), np.array([0, 1, 1], dtype=np.uint8))
    >>> binned = bin_table(table)
    >>> binned.codes.ravel().tolist(), binned.numbers[0].edges.tolist()
    ([0, 1, 2], [2.0])
    """
    weights = table.row_weight
    n_rows = table.X.shape[0]
    stride = -(-n_rows // _SAMPLE)
    some, some_weights = table.X[::stride], weights[::stride]
    numerical = table.numerical
    numbers: list[Any] = [None] * numerical.size

    def cut_columns(block: slice) -> None:
        for place in range(block.start, block.stop):
            numbers[place] = _cut_column(int(numerical[place]), some, some_weights, n_bins)

    run_blocks(cut_columns, numerical.size, 1, n_threads if n_rows > _FEW_ROWS else 1)
    numbers = [one for one in numbers if one.edges.size or one.missing]
    categories = tuple((feature, count) for feature, count in sorted(table.n_categories.items()))
    codes = code_rows(table.X, numbers, categories, n_threads)
    keys = np.empty(n_rows, dtype=np.uint64)

    def hash_block(block: slice) -> None:
        hash_rows(codes[block], table.target[block], np.uint64(seed), keys[block])

    run_blocks(hash_block, n_rows, _BLOCK_ROWS, n_threads)
    return BinnedTable(codes, table.target, weights, tuple(numbers), categories, keys)


def _cut_column(feature: int, rows: FloatArray, weights: FloatArray, n_bins: int) -> NumberBins:
    """Bins of one column: one per distinct value, or fewer, most of them of like weight."""
    column = np.ascontiguousarray(rows[:, feature])
    there = ~np.isnan(column)
    total = weights.sum()
    values, place = np.unique(column[there], return_inverse=True)
    mass = np.bincount(place, weights=weights[there], minlength=values.size)
    if values.size > n_bins:
        n_cuts = n_bins - 1
        by_mass = int(_BY_MASS * n_cuts)
        running = np.cumsum(mass) / mass.sum()
        wanted = (np.arange(by_mass) + 1) / (by_mass + 1)
        chosen = np.searchsorted(running, wanted - _TIE)
        evenly = np.linspace(0, values.size - 2, n_cuts - by_mass).round().astype(np.int64)
        last = np.union1d(np.minimum(chosen, values.size - 2), evenly)  # last value of each bin but the last one
        starts = np.concatenate([[0], last + 1])
    else:
        starts = np.arange(values.size)
    edges = _separate(values[starts[1:] - 1], values[starts[1:]])
    shares = np.add.reduceat(mass, starts)
    middle = np.add.reduceat(mass * (values / 2), starts) / shares * 2  # halves: a sum of doubles may be infinite
    centers = np.clip(middle, values[starts], values[np.append(starts[1:] - 1, values.size - 1)])
    return NumberBins(feature, edges, centers, shares / total, float(weights[~there].sum() / total))


def _separate(low: FloatArray, high: FloatArray) -> FloatArray:
    """Numbers above the lower and at most the higher ones: in the middle, where there is room."""
    middle = low + (high - low) / 2
    return np.where((middle > low) & np.isfinite(middle), middle, high)


def code_rows(
    X: FloatArray, numbers: Sequence[NumberBins], categories: tuple[tuple[int, int], ...], n_threads: int = 1
) -> NDArray[np.generic]:
    """Codes of rows, columns in the order of the bins and categories."""
    columns = np.array([one.feature for one in numbers] + [feature for feature, _ in categories], dtype=np.int64)
    edges = [one.edges for one in numbers] + [np.arange(1, count, dtype=np.float64) for _, count in categories]
    missing_codes = np.array([one.centers.size for one in numbers] + [count for _, count in categories], dtype=np.int64)
    starts = np.cumsum([0, *(one.size for one in edges)], dtype=np.int64)
    flat = np.concatenate(edges) if edges else np.empty(0)
    index, origins, scales = _index(edges, flat, starts, min(_CELLS, max(X.shape[0], 1)))
    codes = np.empty((X.shape[0], columns.size), dtype=np.uint8 if missing_codes.max(initial=0) < 256 else np.uint32)

    def fill(block: slice) -> None:
        code_values(
            np.ascontiguousarray(X[block]), columns, flat, starts, origins, scales, index, missing_codes, codes[block]
        )

    run_blocks(fill, X.shape[0], _BLOCK_ROWS, n_threads)
    return codes


def _index(
    edges: list[FloatArray], flat: FloatArray, starts: IntArray, n_cells: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Even cells between the outer edges of each column: how many edges lie before each, their origin and scale."""
    origins = np.array([one[0] if one.size else 0.0 for one in edges])
    widths = np.array([one[-1] - one[0] if one.size else 0.0 for one in edges])
    usable = (widths > 0) & np.isfinite(widths) & np.isfinite(n_cells / np.where(widths > 0, widths, 1.0))
    scales = np.where(usable, n_cells / np.where(usable, widths, 1.0), 0.0)
    origins = np.where(usable, origins, 0.0)  # one cell: whatever is not above 0 is in it, and so is the rest
    index = np.empty((len(edges), n_cells + 1), dtype=np.int64)
    index_edges(flat, starts, origins, scales, index)
    return index, origins, scales
