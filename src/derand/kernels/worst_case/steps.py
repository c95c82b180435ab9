"""Steps: how little must change before a sum of step functions falls by so much, exactly, for every row.

Owns the frontier of a row, on functions of one number each and on functions of several: the least distance at which
each drop of a function can be had; `drops` says what follows from frontiers in any norm. Arrays in, arrays out; radii
are rounded downward. Must not know noises or models. README.md, steps 9 and 10, has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case.curves import bisect_right
from derand.kernels.worst_case.drops import FARTHEST, NEAREST, WHOLE, Frontier, Measure, measure_drops

AFFORDABLE = 2**20
"""Steps that the programme over whole drops may take for a row."""


class Stairs(NamedTuple):
    """Step functions, one after the other, in which a drop is a move to a cell of a smaller score.

    The edges of function i are those from `starts[i]` to `starts[i + 1] - 1`; it has one more cell than edges, and its
    cells begin at `starts[i] + i`.
    """

    features: IntArray
    starts: IntArray
    edges: FloatArray
    scores: IntArray
    units: FloatArray
    left: IntArray
    """For each cell the nearest one to its left, within its function, whose score is smaller; -1 without."""
    right: IntArray


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


class Reach(NamedTuple):
    """What numbers of rows may become."""

    low: FloatArray
    """(n_rows, n_features): the least value, included."""
    high: FloatArray
    steps: FloatArray
    """(n_features,): numbers that change by multiples of it alone; 0 for any change."""


class _Number(NamedTuple):
    """A number of a row that lies in a cell of function i, and what it may become."""

    x: float
    low: float
    high: float
    step: float
    cell: int
    i: int


def prepare_stairs(
    features: IntArray, starts: IntArray, edges: FloatArray, scores: IntArray, units: FloatArray
) -> Stairs:
    """Step functions with the ways down from each of their cells."""
    return Stairs(features, starts, edges, scores, units, *_link_cells(starts, scores))


def measure_distances(
    rows: FloatArray, stairs: Stairs | GridStairs, thresholds: IntArray, norm: float, reach: Reach | None = None
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """How far each row can be moved before its sum can fall to a threshold, and how that was found: RELAXED or WHOLE.

    Both have the shape of the thresholds, (n_rows, n_thresholds). A distance is 0 where the sum is at the threshold or
    below, infinite where it cannot fall to it; for norm 0 it counts features: changing so many of them is safe. (Of a
    function of several numbers a change of any of them counts as one that lets it fall all the way, which is a bound.)
    Without a reach numbers may become anything.
    """
    distances, how = np.zeros(thresholds.shape), np.full(thresholds.shape, WHOLE, dtype=np.uint8)
    measure = Measure(float(norm), AFFORDABLE)
    allowed = _reach_all(rows.shape[1]) if reach is None else reach
    if isinstance(stairs, GridStairs):
        _measure_boxes(rows, stairs, allowed, thresholds, measure, distances, how)
    else:
        _measure_steps(rows, stairs, allowed, thresholds, measure, distances, how)
    distances[~(distances >= NEAREST)] = 0.0  # not a number where costs overflow
    return distances, how


def compute_lowest(rows: FloatArray, stairs: Stairs, reach: Reach) -> IntArray:
    """The least sum that each row can reach, (n_rows,)."""
    nothing = np.empty((rows.shape[0], 0), dtype=np.int64)
    no_distances, no_how = np.empty(nothing.shape), np.empty(nothing.shape, np.uint8)
    return _measure_steps(rows, stairs, reach, nothing, Measure(np.inf, 0), no_distances, no_how)


def add_grid_scores(rows: FloatArray, stairs: GridStairs) -> IntArray:
    """The sum of each row's scores, (n_rows,)."""
    return np.asarray(compute_grid_floors(rows, stairs, Reach(rows, rows, np.zeros(rows.shape[1]))).sum(axis=1))


def _reach_all(n_features: int) -> Reach:
    wide = np.full((1, n_features), np.inf)
    return Reach(-wide, wide, np.zeros(n_features))


@compile_loop()
def _locate_cell(x: float, i: int, starts: IntArray, edges: FloatArray) -> int:
    """The cell of a function that x lies in, counted from the first of all."""
    return bisect_right(x, starts[i], starts[i + 1], edges) + i


@compile_loop()
def add_scores(rows: FloatArray, stairs: Stairs) -> IntArray:
    """The sum of each row's scores, (n_rows,)."""
    features, starts, edges, scores = stairs.features, stairs.starts, stairs.edges, stairs.scores
    sums = np.empty(rows.shape[0], dtype=np.int64)
    for row in range(rows.shape[0]):
        total = 0
        for i in range(features.size):
            total += scores[_locate_cell(rows[row, features[i]], i, starts, edges)]
        sums[row] = total
    return sums


@compile_loop()
def _link_cells(starts: IntArray, scores: IntArray) -> tuple[IntArray, IntArray]:
    """For each cell the nearest ones of a smaller score, to its left and to its right within its function; else -1."""
    left, right = np.full(scores.size, -1, dtype=np.int64), np.full(scores.size, -1, dtype=np.int64)
    for i in range(starts.size - 1):
        first, last = starts[i] + i, starts[i + 1] + i
        for cell in range(first, last + 1):
            at = cell - 1
            while at >= first and scores[at] >= scores[cell]:
                at = left[at]
            left[cell] = at if at >= first else -1
        for cell in range(last, first - 1, -1):
            at = cell + 1
            while at != -1 and at <= last and scores[at] >= scores[cell]:
                at = right[at]
            right[cell] = at if at != -1 and at <= last else -1
    return left, right


@compile_loop()
def _make_frontier(n_terms: int, n_cells: int) -> Frontier:
    """Room for the ways down of a row."""
    options = np.zeros(n_terms + 1, dtype=np.int64)
    return Frontier(options, np.empty(n_cells), np.empty(n_cells, dtype=np.int64))


@compile_loop()
def _measure_steps(
    rows: FloatArray,
    stairs: Stairs,
    reach: Reach,
    thresholds: IntArray,
    measure: Measure,
    distances: FloatArray,
    how: NDArray[np.uint8],
) -> IntArray:
    """Fill in the distances of functions of one number; the least sum that each row can reach."""
    features, starts, edges, scores = stairs.features, stairs.starts, stairs.edges, stairs.scores
    lows, highs, steps = reach.low, reach.high, reach.steps
    frontier, lowest = _make_frontier(features.size, scores.size), np.empty(rows.shape[0], dtype=np.int64)
    options, far, deep = frontier
    for row in range(rows.shape[0]):
        own, box = 0, min(row, lows.shape[0] - 1)
        for i in range(features.size):
            feature = features[i]
            x = rows[row, feature]
            cell = _locate_cell(x, i, starts, edges)
            number = _Number(x, lows[box, feature], highs[box, feature], steps[feature], cell, i)
            own += scores[cell]
            if number.step > 0.0:
                count = _list_steps(number, stairs, far, deep, options[i])
            else:
                count = _list_options(number, stairs, far, deep, options[i])
            options[i + 1] = options[i] + count
        lowest[row] = own - measure_drops(frontier, own - thresholds[row], measure, distances[row], how[row])
    return lowest


@compile_loop()
def _list_options(number: _Number, stairs: Stairs, far: FloatArray, deep: IntArray, at: int) -> int:
    """Write the ways down of a term, the nearer ones first, each deeper than the one before: distance and drop."""
    x, least, most, _, cell, i = number
    edges, scores, left, right, unit = stairs.edges, stairs.scores, stairs.left, stairs.right, stairs.units[i]
    own = scores[cell]
    down_left, down_right = left[cell], right[cell]
    shrink = 1.0 - 4.0 * EPSILON
    count, deepest = 0, 0
    while True:
        if down_left >= 0 and edges[down_left - i] <= least:  # a cell ends before its edge, and farther ones sooner
            down_left = -1
        if down_right >= 0 and edges[down_right - i - 1] > most:
            down_right = -1
        if down_left < 0 and down_right < 0:
            break
        to_left = (x - edges[down_left - i]) / unit * shrink if down_left >= 0 else np.inf
        to_right = (edges[down_right - i - 1] - x) / unit * shrink if down_right >= 0 else np.inf
        if down_right < 0 or (down_left >= 0 and to_left <= to_right):  # both may be infinite
            distance, drop = to_left, own - scores[down_left]
            down_left = left[down_left]
        else:
            distance, drop = to_right, own - scores[down_right]
            down_right = right[down_right]
        if drop > deepest:
            far[at + count], deep[at + count] = min(distance, FARTHEST), drop
            deepest = drop
            count += 1
    return count


@compile_loop()
def _list_steps(number: _Number, stairs: Stairs, far: FloatArray, deep: IntArray, at: int) -> int:
    """The same for numbers that change by whole steps: cell after cell, those that no step meets left out."""
    x, least, most, step, cell, i = number
    edges, scores, unit = stairs.edges, stairs.scores, stairs.units[i]
    own, first, last = scores[cell], stairs.starts[i] + i, stairs.starts[i + 1] + i
    shrink = 1.0 - 4.0 * EPSILON
    to_left, to_right, count, deepest = cell - 1, cell + 1, 0, 0
    left_value, right_value = x, x
    while True:
        left_value, right_value = np.inf, np.inf
        while to_left >= first:
            left_value = step_down(x, step, edges[to_left - i])
            if left_value >= least and (to_left == first or left_value >= edges[to_left - i - 1]):
                break
            left_value = np.inf
            to_left -= 1
        while to_right <= last:
            right_value = step_up(x, step, edges[to_right - i - 1])
            if right_value <= most and (to_right == last or right_value < edges[to_right - i]):
                break
            right_value = np.inf
            to_right += 1
        if left_value == np.inf and right_value == np.inf:
            return count
        is_left = right_value == np.inf or (left_value != np.inf and x - left_value <= right_value - x)
        distance = (x - left_value if is_left else right_value - x) / unit * shrink
        drop = own - scores[to_left if is_left else to_right]
        if is_left:
            to_left -= 1
        else:
            to_right += 1
        if drop > deepest:
            far[at + count], deep[at + count] = min(distance, FARTHEST), drop
            deepest = drop
            count += 1


@compile_loop()
def step_down(x: float, step: float, edge: float) -> float:
    """The nearest x - k * step, k whole, that is below the edge."""
    k, least = max(np.floor((x - edge) / step) - 1.0, 1.0), _choose_stride(x, step)
    while x - k * step >= edge and x - k * step > -FARTHEST:
        k += max(least, k * EPSILON)
    return x - k * step


@compile_loop()
def step_up(x: float, step: float, edge: float) -> float:
    """The nearest x + k * step, k whole, that is not below the edge."""
    k, least = max(np.floor((edge - x) / step) - 1.0, 1.0), _choose_stride(x, step)
    while x + k * step < edge and x + k * step < FARTHEST:
        k += max(least, k * EPSILON)
    return x + k * step


@compile_loop()
def _choose_stride(x: float, step: float) -> float:
    """How many steps to take at once: less than half of an ulp of x, so that no double is passed over.

    Counts beyond 2**52 grow by their own ulp; what that passes over is less than distances are shortened by.
    """
    return max(np.floor(abs(x) * EPSILON / 8.0 / step), 1.0)


class _Room(NamedTuple):
    """Arrays for the cells of an axis, and twice for the boxes of a function."""

    side: FloatArray
    far: FloatArray
    longer: FloatArray


@compile_loop()
def _make_room(stairs: GridStairs) -> _Room:
    """Arrays as long as the longest ones."""
    longest, widest = 1, 1
    for i in range(stairs.axis_starts.size - 1):
        longest = max(longest, stairs.score_starts[i + 1] - stairs.score_starts[i])
    for axis in range(stairs.sizes.size):
        widest = max(widest, stairs.sizes[axis])
    return _Room(np.empty(widest), np.empty(longest), np.empty(longest))


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
    row: int, i: int, rows: FloatArray, stairs: GridStairs, reach: Reach, norm: float, room: _Room
) -> None:
    """The distance to each box of a function: the largest one of its sides, their sum, or that of their squares."""
    low, high, (side, far, longer) = reach.low, reach.high, room
    far[0] = 0.0
    count, box = 1, min(row, low.shape[0] - 1)
    for axis in range(stairs.axis_starts[i], stairs.axis_starts[i + 1]):
        feature, size = stairs.features[axis], stairs.sizes[axis]
        _measure_axis(rows[row, feature], low[box, feature], high[box, feature], axis, stairs, side)
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
def compute_grid_floors(rows: FloatArray, stairs: GridStairs, reach: Reach) -> IntArray:
    """The least score of each function within the reach, (n_rows, n_functions); missing numbers stay missing."""
    floors, room = np.empty((rows.shape[0], stairs.axis_starts.size - 1), dtype=np.int64), _make_room(stairs)
    for row in range(rows.shape[0]):
        for i in range(floors.shape[1]):
            _spread_distances(row, i, rows, stairs, reach, np.inf, room)
            start, least = stairs.score_starts[i], np.int64(2**62)
            for at in range(stairs.score_starts[i + 1] - start):
                if room.far[at] < np.inf:
                    least = min(least, stairs.scores[start + at])
            floors[row, i] = least
    return floors


@compile_loop()
def _measure_boxes(
    rows: FloatArray,
    stairs: GridStairs,
    reach: Reach,
    thresholds: IntArray,
    measure: Measure,
    distances: FloatArray,
    how: NDArray[np.uint8],
) -> None:
    """`_measure_steps` for functions of several numbers; steps count as any change."""
    n_functions, room = stairs.axis_starts.size - 1, _make_room(stairs)
    frontier = _make_frontier(n_functions, stairs.scores.size)
    options, far, deep = frontier
    for row in range(rows.shape[0]):
        own = 0
        for i in range(n_functions):
            _spread_distances(row, i, rows, stairs, reach, measure.norm, room)
            scores = stairs.scores[stairs.score_starts[i] : stairs.score_starts[i + 1]]
            home = _look_up_score(row, i, rows, stairs)
            own += home
            count = _list_boxes(home, scores, room.far[: scores.size], measure.norm, far, deep, options[i])
            options[i + 1] = options[i] + count
        measure_drops(frontier, own - thresholds[row], measure, distances[row], how[row])


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
def _list_boxes(
    home: int, scores: IntArray, boxes: FloatArray, norm: float, far: FloatArray, deep: IntArray, at: int
) -> int:
    """`_list_options` for a function of several numbers, given the distances of its boxes."""
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
