"""Step functions on boxes: how little must change before a sum of them falls by so much, exactly, for every row.

Owns the frontier of a row on functions of several numbers: the least distance at which each drop of a function can be
had; `drops` says what follows from frontiers in any norm. Arrays in, arrays out; radii are rounded downward. Must not
know noises or models. README.md, steps 9 and 10, has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case.curves import bisect_right
from derand.kernels.worst_case.drops import AFFORDABLE, FARTHEST, NEAREST, WHOLE, measure_drop
from derand.kernels.worst_case.steps import Reach


class GridStairs(NamedTuple):
    """Functions of several numbers, one after the other, without noise; fields as in `grids.Grids`."""

    axis_starts: IntArray
    features: IntArray
    sizes: IntArray
    units: FloatArray
    edge_starts: IntArray
    edges: FloatArray
    score_starts: IntArray
    scores: IntArray


def add_grid_scores(rows: FloatArray, stairs: GridStairs) -> IntArray:
    """The sum of each row's scores, (n_rows,)."""
    return np.asarray(compute_grid_floors(rows, stairs, Reach(rows, rows, np.zeros(rows.shape[1]))).sum(axis=1))


def compute_grid_floors(rows: FloatArray, stairs: GridStairs, reach: Reach) -> IntArray:
    """The least score of each function within the reach, (n_rows, n_functions); missing numbers stay missing."""
    floors = np.empty((rows.shape[0], stairs.axis_starts.size - 1), dtype=np.int64)
    _compute_floors(rows, stairs, reach.low, reach.high, floors)
    return floors


def measure_grid_distances(
    rows: FloatArray, stairs: GridStairs, thresholds: IntArray, norm: float, reach: Reach
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """How far each row can be moved before its sum can fall to a threshold, and how that was found.

    As `steps.measure_distances`; for norm 0 a change of any number of a function counts as one that lets it fall all
    the way, which is a bound.
    """
    distances, how = np.zeros(thresholds.shape), np.full(thresholds.shape, WHOLE, dtype=np.uint8)
    _measure_distances(rows, stairs, reach.low, reach.high, thresholds, float(norm), AFFORDABLE, distances, how)
    distances[~(distances >= NEAREST)] = 0.0  # not a number where costs overflow
    return distances, how


@compile_loop()
def _make_workspace(stairs: GridStairs) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Arrays for the cells of an axis, and twice for the boxes of a function: as long as the longest ones."""
    longest, widest = 1, 1
    for i in range(stairs.axis_starts.size - 1):
        longest = max(longest, stairs.score_starts[i + 1] - stairs.score_starts[i])
    for axis in range(stairs.sizes.size):
        widest = max(widest, stairs.sizes[axis])
    return np.empty(widest), np.empty(longest), np.empty(longest)


@compile_loop()
def _measure_axis(x: float, low: float, high: float, axis: int, stairs: GridStairs, far: FloatArray) -> None:
    """The distance to each cell of an axis, infinite where it is not within reach."""
    first, last = stairs.edge_starts[axis], stairs.edge_starts[axis + 1]
    n_cells, size = last - first + 1, stairs.sizes[axis]
    if x != x:  # noqa: PLR0124 - NaN
        far[:n_cells] = np.inf
        far[n_cells:size] = 0.0
        return
    far[n_cells:size] = np.inf
    shrink = (1.0 - 4.0 * EPSILON) / stairs.units[axis]
    for cell in range(n_cells):
        begins = -np.inf if cell == 0 else stairs.edges[first + cell - 1]
        ends = np.inf if cell == n_cells - 1 else stairs.edges[first + cell]
        if begins <= x < ends:
            far[cell] = 0.0
        elif x >= ends:
            far[cell] = min((x - ends) * shrink, FARTHEST) if low < ends else np.inf
        else:
            far[cell] = min((begins - x) * shrink, FARTHEST) if high >= begins else np.inf


@compile_loop()
def _spread_distances(
    row: int,
    i: int,
    rows: FloatArray,
    stairs: GridStairs,
    low: FloatArray,
    high: FloatArray,
    norm: float,
    side: FloatArray,
    far: FloatArray,
    longer: FloatArray,
) -> None:
    """The distance to each box of a function: the largest one of its sides, their sum, or that of their squares."""
    far[0] = 0.0
    count = 1
    for axis in range(stairs.axis_starts[i], stairs.axis_starts[i + 1]):
        feature, size = stairs.features[axis], stairs.sizes[axis]
        _measure_axis(rows[row, feature], low[row, feature], high[row, feature], axis, stairs, side)
        for at in range(count):
            for cell in range(size):
                value = max(far[at], side[cell])  # infinite where one of them is
                if value < np.inf and norm == 1.0:
                    value = min(far[at] + side[cell], FARTHEST)
                elif value < np.inf and norm == 2.0:
                    value = min(far[at] + side[cell] * side[cell], FARTHEST)
                longer[at * size + cell] = value
        count *= size
        far[:count] = longer[:count]


@compile_loop()
def _compute_floors(rows: FloatArray, stairs: GridStairs, low: FloatArray, high: FloatArray, floors: IntArray) -> None:
    side, far, longer = _make_workspace(stairs)
    for row in range(rows.shape[0]):
        for i in range(floors.shape[1]):
            _spread_distances(row, i, rows, stairs, low, high, np.inf, side, far, longer)
            start, least = stairs.score_starts[i], np.int64(2**62)
            for at in range(stairs.score_starts[i + 1] - start):
                if far[at] < np.inf:
                    least = min(least, stairs.scores[start + at])
            floors[row, i] = least


@compile_loop()
def _measure_distances(
    rows: FloatArray,
    stairs: GridStairs,
    low: FloatArray,
    high: FloatArray,
    thresholds: IntArray,
    norm: float,
    affordable: int,
    distances: FloatArray,
    how: NDArray[np.uint8],
) -> None:
    n_functions = stairs.axis_starts.size - 1
    side, boxes, longer = _make_workspace(stairs)
    options = np.zeros(n_functions + 1, dtype=np.int64)
    far, deep = np.empty(stairs.scores.size), np.empty(stairs.scores.size, dtype=np.int64)
    for row in range(rows.shape[0]):
        own, deepest = 0, 0
        for i in range(n_functions):
            _spread_distances(row, i, rows, stairs, low, high, norm, side, boxes, longer)
            start, size = stairs.score_starts[i], stairs.score_starts[i + 1] - stairs.score_starts[i]
            home = _look_up_score(row, i, rows, stairs)
            own += home
            count = _list_options(home, stairs.scores[start : start + size], boxes[:size], norm, far, deep, options[i])
            options[i + 1] = options[i] + count
            if count > 0:
                deepest += deep[options[i + 1] - 1]
        for k in range(thresholds.shape[1]):
            drop = own - thresholds[row, k]
            distances[row, k], how[row, k] = measure_drop(options, far, deep, drop, deepest, norm, affordable)


@compile_loop()
def _look_up_score(row: int, i: int, rows: FloatArray, stairs: GridStairs) -> int:
    """The score where the row stands."""
    index = 0
    for axis in range(stairs.axis_starts[i], stairs.axis_starts[i + 1]):
        x = rows[row, stairs.features[axis]]
        low, high = stairs.edge_starts[axis], stairs.edge_starts[axis + 1]
        is_missing = x != x  # noqa: PLR0124 - NaN
        cell = stairs.sizes[axis] - 1 if is_missing else bisect_right(x, low, high, stairs.edges) - low
        index = index * stairs.sizes[axis] + cell
    return stairs.scores[stairs.score_starts[i] + index]


@compile_loop()
def _list_options(
    home: int, scores: IntArray, boxes: FloatArray, norm: float, far: FloatArray, deep: IntArray, at: int
) -> int:
    """Write the ways down of a function, the nearer ones first, each deeper than the one before: distance and drop."""
    lower = np.flatnonzero((scores < home) & (boxes < np.inf))
    order = lower[np.argsort(boxes[lower])]
    count, deepest = 0, 0
    for box in order:
        drop = home - scores[box]
        if drop > deepest:
            distance = boxes[box]
            if norm == 2.0:
                distance = np.sqrt(distance)
            far[at + count] = min(distance * (1.0 - 16.0 * EPSILON), FARTHEST)
            deep[at + count] = drop
            deepest = drop
            count += 1
    return count
