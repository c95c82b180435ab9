"""Splits under noise: where a column is best cut in two, and the leaves that follow (paper, section 4.1).

Owns the search for the split of least entropy. Knows histograms and the noise's distribution function; must not know
rows, models or scikit-learn. All positions are counted from a column's smallest value, in units of the noise.

With `counts[class, level]` of a column, the rows expected left of the candidates are `counts @ cdf[level, candidate]`,
which the noise sums up itself; columns with the same levels share that matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import TINY, FloatArray, IntArray, freeze
from derand.noise import Noise
from derand.train.counts import CountedRows
from derand.train.histogram import Histogram, cut_into_blocks
from derand.train.table import TrainingTable

MAX_CANDIDATES = 20_000
"""Most candidates per column: beyond that the step grows."""
BINS_PER_STEP = 8
"""Where values are put into bins, this many of them lie between two candidates, and in one scale of the noise."""
_ENTROPY_ERROR = 2.0**-47  # more than the rounding error of an entropy
_REFINED_MINIMA = 4
_ZOOM_POINTS = 17
_ZOOM_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class SplitGrid:
    """Candidates of a column: `smallest - below`, then every `step`, while less than `largest + above`; in units."""

    below: float
    above: float
    step: float

    @classmethod
    def around(cls, noise: Noise, step: float) -> SplitGrid:
        """The paper's grid, which leaves two scales of the noise on both sides."""
        margin = 2 * noise.magnitude
        return cls(margin, margin + step, step)

    @classmethod
    def within(cls, noise: Noise, step: float) -> SplitGrid:
        """The grid of boosting: over the range of the values, and as far beyond as bounded noise reaches."""
        return cls(noise.overhang + 0.5 * step, noise.overhang + step, step)

    def compute_steps(self, spans: FloatArray) -> FloatArray:
        """The step, or a larger one with which a column of such a span has MAX_CANDIDATES candidates."""
        lengths = spans + self.below + self.above
        return np.where(lengths <= MAX_CANDIDATES * self.step, self.step, lengths / MAX_CANDIDATES)

    def count(self, span: float) -> int:
        """How many candidates a column of this span has."""
        return min(math.ceil((span + self.below + self.above) / self.step), MAX_CANDIDATES)

    def candidates(self, span: float) -> FloatArray:
        return -self.below + self.step * np.arange(self.count(span), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """The best split of each column; arrays of shape (n_columns,).

    Attributes
    ----------
    columns : which columns these are
    thresholds : split points in raw units; a row goes right where its value is at least that
    left, right : shares of class 1 among the rows expected on each side, the MLE values
    entropy : impurity of the split in nats; of the whole column where it is constant
    spans : largest minus smallest value, in units; 0 where the column is constant
    steps : distance of the candidates, in units
    """

    columns: IntArray
    thresholds: FloatArray
    left: FloatArray
    right: FloatArray
    entropy: FloatArray
    spans: FloatArray
    steps: FloatArray

    def __post_init__(self) -> None:
        for field in fields(self):
            freeze(getattr(self, field.name))


Search = Callable[[Histogram, FloatArray, SplitGrid, Noise], "tuple[FloatArray, FloatArray]"]
"""(histogram, class_weight, grid, noise) -> positions (n_columns,), rows left of them (n_columns, n_classes)."""


def search_grid(
    histogram: Histogram, class_weight: FloatArray, grid: SplitGrid, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """The first of the grid's candidates with the least entropy."""
    return _search_grids([histogram], class_weight, grid, noise)


def search_splits(
    X: FloatArray,
    columns: IntArray,
    target: NDArray[np.uint8],
    noise: Noise,
    grid: SplitGrid,
    *,
    class_weight: FloatArray,
    search: Search | None = None,
    n_threads: int = 1,
) -> Splits:
    """The best split of each of the given columns.

    `X` (n_rows, n_features): rows in which a column is missing, NaN, are left out of its search; `columns`
    (n_columns,): each with some number; `target` (n_rows,): classes from 0 on; `noise`: its distribution function,
    magnitude and units are used; `search`: `search_grid` (None) or `search_minimum`; `n_threads`: the result does not
    depend on it; `class_weight` has shape (n_classes,). The result: in the order of `columns`. Exact but for rounding,
    with one exception: a column with more than `MAX_LEVELS` distinct values is searched on bins, BINS_PER_STEP of them
    per step and per scale of the noise.
    """
    table = TrainingTable(X, target, class_weight)
    return split_columns(table, columns, noise, grid, search=search or search_grid, n_threads=n_threads)[0]


def compute_resolution(noise: Noise, grid: SplitGrid) -> float:
    """How finely values are put into bins, in units, where there are too many of them."""
    return min(grid.step, noise.magnitude) / BINS_PER_STEP


def split_columns(
    table: CountedRows,
    columns: IntArray,
    noise: Noise,
    grid: SplitGrid,
    *,
    rest_weight: FloatArray | None = None,
    search: Search = search_grid,
    n_threads: int = 1,
) -> list[Splits]:
    """The best split of each column, from one histogram of each block of columns.

    With `rest_weight` (n_classes, 2), what the rest and the class count in a class's own splits, there is an entry per
    class: the best splits of columns into it and the rest. Otherwise all classes are told apart together, in one entry.
    """
    resolution, class_weight = compute_resolution(noise, grid), table.class_weight
    units = noise.units_of(np.arange(table.n_features))

    def oppose(histogram: Histogram, code: int) -> Histogram:
        rows = histogram.counts * class_weight[:, None]
        rest = np.delete(rows, code, axis=1).sum(axis=1)
        return replace(histogram, counts=np.stack([rest, rows[:, code]], axis=1))

    def work(block: IntArray) -> list[Splits]:
        histograms = table.tabulate(block, units[block], resolution)
        if rest_weight is None:
            return [_split(histograms, class_weight, grid, noise, search)]
        return [
            _split([oppose(one, code) for one in histograms], weight, grid, noise, search)
            for code, weight in enumerate(rest_weight)
        ]

    blocks = cut_into_blocks(columns, table.n_rows)
    if n_threads == 1 or len(blocks) <= 1:
        results = [work(block) for block in blocks]
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            results = list(pool.map(work, blocks))
    n_entries = 1 if rest_weight is None else len(rest_weight)
    return [_in_order(columns, [result[at] for result in results]) for at in range(n_entries)]


def _in_order(columns: IntArray, parts: list[Splits]) -> Splits:
    if not parts:
        return Splits(columns.copy(), *[np.empty(0)] * 6)
    joined = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Splits)}
    place = np.argsort(joined["columns"])[np.argsort(np.argsort(columns))]
    return Splits(**{name: values[place] for name, values in joined.items()})


def _split(
    histograms: Sequence[Histogram], class_weight: FloatArray, grid: SplitGrid, noise: Noise, search: Search
) -> Splits:
    """The best splits of the columns of some histograms, one or more."""
    totals = np.concatenate([one.counts.sum(axis=2) for one in histograms]) * class_weight
    spans = np.concatenate([one.spans for one in histograms])
    position, left = np.zeros(spans.size), totals.copy()
    steps = grid.compute_steps(spans)
    starts = np.cumsum([0, *(one.columns.size for one in histograms)])
    for step in np.unique(steps[spans > 0]):
        own = SplitGrid(grid.below, grid.above, float(step))
        wanted = (steps == step) & (spans > 0)
        parts = [
            (one, np.flatnonzero(wanted[start:stop]))
            for one, start, stop in zip(histograms, starts[:-1], starts[1:], strict=True)
        ]
        some = [one if rows.size == one.columns.size else one[rows] for one, rows in parts if rows.size]
        position[wanted], left[wanted] = _search_all(some, class_weight, own, noise, search)
    right = np.maximum(totals - left, 0.0)
    lows, units = (np.concatenate([getattr(one, name) for one in histograms]) for name in ("lows", "units"))
    return Splits(
        np.concatenate([one.columns for one in histograms]),
        lows + units * position,
        _share_classes(left),
        _share_classes(right),
        measure_entropy(left[:, :, None], totals)[:, 0],
        spans,
        steps,
    )


def _share_classes(rows: FloatArray) -> FloatArray:
    """The share of class 1, (n_columns,); one half where there are no rows."""
    total = rows.sum(axis=1)
    return np.where(total > 0, rows[:, 1] / np.where(total > 0, total, 1.0), 0.5)


def _search_all(
    histograms: Sequence[Histogram], class_weight: FloatArray, grid: SplitGrid, noise: Noise, search: Search
) -> tuple[FloatArray, FloatArray]:
    """What a search finds in each of some histograms; columns on the grid together, those of like ranges."""
    if search is not search_grid:
        found = [search(one, class_weight, grid, noise) for one in histograms]
        return np.concatenate([one for one, _ in found]), np.concatenate([rows for _, rows in found])
    sizes = np.array([one.columns.size for one in histograms])
    ends = np.cumsum(sizes)
    position, left = np.empty(ends[-1]), np.empty((ends[-1], class_weight.size))
    alike: dict[int, list[int]] = {}
    for at, one in enumerate(histograms):
        alike.setdefault(grid.count(float(one.spans.max())).bit_length(), []).append(at)
    for places in alike.values():
        rows = np.concatenate([np.arange(ends[at] - sizes[at], ends[at]) for at in places])
        position[rows], left[rows] = _search_grids([histograms[at] for at in places], class_weight, grid, noise)
    return position, left


def _search_grids(
    histograms: Sequence[Histogram], class_weight: FloatArray, grid: SplitGrid, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """The same for the columns of several histograms, each of which has candidates as far as its own columns reach."""
    spans = np.concatenate([one.spans for one in histograms])
    candidates = grid.candidates(float(spans.max()))
    left = np.zeros((spans.size, class_weight.size, candidates.size))
    beyond = candidates >= (spans + grid.above)[:, None]
    start = 0
    for one in histograms:
        stop, size = start + one.columns.size, grid.count(float(one.spans.max()))
        left[start:stop, :, :size] = measure_left(one, candidates[:size], noise)
        beyond[start:stop, size:] = True
        start = stop
    left *= class_weight[:, None]
    totals = np.concatenate([one.counts.sum(axis=2) for one in histograms]) * class_weight
    entropy = measure_entropy(left, totals)
    entropy[beyond] = np.inf
    best = _select_first_minimum(entropy)
    return candidates[best], left[np.arange(best.size), :, best]


def search_minimum(
    histogram: Histogram, class_weight: FloatArray, grid: SplitGrid, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """The split of least entropy: found exactly where the noise's cdf is piecewise linear, else refined from the grid.

    Under uniform noise, say, the expected rows are linear in the split between two kinks (a level plus or minus
    the half-width), and entropy is concave in them: the minimum lies on a kink, and all of these are tried.
    Otherwise the best local minima of the grid are zoomed into until the entropy no longer falls.
    """
    if noise.kinks:
        kinks = np.unique(np.add.outer(noise.magnitude * np.array(noise.kinks), histogram.levels))
        left, entropy = _try_candidates(histogram, class_weight, grid, noise, kinks)
        best = _select_first_minimum(entropy)
        return kinks[best], left[np.arange(best.size), :, best]
    candidates = grid.candidates(float(histogram.spans.max()))
    _, entropy = _try_candidates(histogram, class_weight, grid, noise, candidates)
    position, masses = np.empty(entropy.shape[0]), np.empty((entropy.shape[0], class_weight.size))
    for row in range(entropy.shape[0]):
        starts = candidates[_local_minima(entropy[row])]
        position[row], masses[row] = _zoom(histogram[row : row + 1], class_weight, grid.step, noise, starts)
    return position, masses


def _select_first_minimum(entropy: FloatArray) -> IntArray:
    """First candidate of the least entropy of each column; what rounding alone tells apart counts as equal."""
    return np.asarray((entropy <= entropy.min(axis=1, keepdims=True) + _ENTROPY_ERROR).argmax(axis=1))


def _local_minima(entropy: FloatArray) -> IntArray:
    """Where a grid's entropy is no larger than on both sides: the best few, the best first."""
    padded = np.concatenate([[np.inf], entropy, [np.inf]])
    low = np.flatnonzero((entropy <= padded[:-2]) & (entropy <= padded[2:]) & np.isfinite(entropy))
    return low[np.argsort(entropy[low], kind="stable")[:_REFINED_MINIMA]]


def _zoom(
    histogram: Histogram, class_weight: FloatArray, step: float, noise: Noise, starts: Iterable[float]
) -> tuple[float, FloatArray]:
    """Best split found by ever finer grids around each start, for one column."""
    totals = histogram.counts.sum(axis=2) * class_weight
    best = (np.inf, 0.0, totals[0])
    for start in starts:
        centre, width = float(start), step
        for _ in range(_ZOOM_ROUNDS):
            candidates = np.linspace(centre - width, centre + width, _ZOOM_POINTS)
            left = measure_left(histogram, candidates, noise) * class_weight[:, None]
            entropy = measure_entropy(left, totals)[0]
            at = int(entropy.argmin())
            if entropy[at] < best[0]:
                best = (float(entropy[at]), float(candidates[at]), left[0, :, at])
            centre, width = float(candidates[at]), width / 8
    return best[1], best[2]


def _try_candidates(
    histogram: Histogram, class_weight: FloatArray, grid: SplitGrid, noise: Noise, candidates: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rows left of candidates, (n_columns, n_classes, n_candidates), and entropy, infinite beyond a column's range."""
    left = measure_left(histogram, candidates, noise) * class_weight[:, None]
    entropy = measure_entropy(left, histogram.counts.sum(axis=2) * class_weight)
    entropy[candidates >= (histogram.spans + grid.above)[:, None]] = np.inf
    return left, entropy


def measure_entropy(left: FloatArray, totals: FloatArray) -> FloatArray:
    """Entropy impurity in nats, (n, n_candidates), for the rows of each class left of the candidates and in all.

    `left` has shape (n, n_classes, n_candidates), `totals` (n, n_classes).
    """
    right = np.maximum(totals[:, :, None] - left, 0.0)
    result = np.zeros((left.shape[0], left.shape[2]))
    for side in (left, right):
        every = np.maximum(_add_classes(side), TINY)
        for rows in side.transpose(1, 0, 2):
            share = np.maximum(rows / every, TINY)
            result -= rows * np.log(share, out=share)
    return np.asarray(result / totals.sum(axis=1)[:, None])


def _add_classes(rows: FloatArray) -> FloatArray:
    total = rows[:, 0]
    for label in range(1, rows.shape[1]):
        total = total + rows[:, label]
    return total


def measure_left(histogram: Histogram, candidates: FloatArray, noise: Noise) -> FloatArray:
    """Rows of each class expected left of increasing candidates, not yet weighted by class.

    Returns shape (n_columns, n_classes, n_candidates).
    """
    return noise.expected_left(histogram.levels, histogram.counts, candidates)
