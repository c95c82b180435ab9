"""Grids: lower bounds of functions of several numbers within windows plus multiples of the distance, axis after axis.

Owns the least of an expected step function on boxes over all moves of its numbers: one axis is taken away after the
other, each cell of the others keeping its own worst move (docs/theory.md, section 13). Arrays in, arrays out, lower
bounds throughout. Must not know noises or models. README.md, step 10, has the rounding argument.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case.curves import bisect_right
from derand.kernels.worst_case.jumps import JumpTable, average_jumps, bound_jumps

GRID_ERROR = 64 * EPSILON
"""Taken off for every axis, relative to the largest value, and 2 EPSILON more per cell of the axis."""


class Grids(NamedTuple):
    """Functions of several numbers from 0 up to their range, one after the other, under noise.

    The axes of function i are those from `axis_starts[i]` to `axis_starts[i + 1] - 1`, the knots of axis j those from
    `knot_starts[j]` to `knot_starts[j + 1] - 1`. Scores are in C order; the last cell of an axis is that of missing
    numbers where `has_gap`.
    """

    axis_starts: IntArray
    features: IntArray
    """(n_axes,)"""
    sizes: IntArray
    """(n_axes,): cells of each axis."""
    has_gap: IntArray
    units: FloatArray
    """(n_axes,): what counts as distance 1."""
    score_starts: IntArray
    scores: FloatArray
    knot_starts: IntArray
    knots: FloatArray
    bend_by_variation: FloatArray
    """By how much a function may leave its chord right of each knot, as a share of its total variation."""
    bend_by_range: FloatArray
    """The same as a share of its range."""
    cell_starts: IntArray
    """(n_axes,): where the cells of an axis begin in `cells`, knot after knot."""
    cells: FloatArray
    """Upper bounds of the probabilities of all cells but that of missing numbers, at each knot."""
    beyond: FloatArray
    """(n_axes, 2): upper bounds of the probability to leave the first cell left of all knots, and the last one."""
    first_starts: IntArray
    """(n_functions + 1,): where `first` holds the first axis of each function, seen from its knots."""
    first: FloatArray
    """Lower bounds at the knots of the first axis, for each cell of the others; empty where that is too much."""
    jump_edges: FloatArray
    """(n_axes,): the edge of an axis of two cells."""
    jump_scales: FloatArray
    """(n_axes,): the scale of the noise along such an axis; 0 where `jumps` does not hold for it."""
    jumps: JumpTable


class _Move(NamedTuple):
    """A number of a row, the ends between which it may be moved, and what the move costs."""

    x: float
    low: float
    high: float
    multiplier: float
    power: int
    unit: float


class _Line(NamedTuple):
    """One cell of the other axes, seen along an axis."""

    axis: int
    first: int
    """The function whose first axis this is; -1 for other axes."""
    rest: int
    """How many cells the other axes have."""
    at: int


@compile_loop()
def bound_grids(
    rows: FloatArray, grids: Grids, low: FloatArray, high: FloatArray, multipliers: FloatArray, power: int
) -> FloatArray:
    """Lower bounds of each function plus a multiple of the distance to the power 1 or 2, (n_rows, n_functions).

    Numbers of rows may become anything from `low` to `high`, all (n_rows, n_features); missing ones (NaN) stay missing.
    Multipliers, (n_rows,), are per distance in units; 0 for none.
    """
    bounds, longest = np.empty((rows.shape[0], grids.axis_starts.size - 1)), 1
    for i in range(grids.score_starts.size - 1):
        longest = max(longest, grids.score_starts[i + 1] - grids.score_starts[i])
    values, fewer = np.empty(longest), np.empty(longest)
    jump_edges, jump_scales, table = grids.jump_edges, grids.jump_scales, grids.jumps
    for row in range(rows.shape[0]):
        for i in range(bounds.shape[1]):
            start, stop = grids.score_starts[i], grids.score_starts[i + 1]
            size = stop - start
            values[:size] = grids.scores[start:stop]
            for axis in range(grids.axis_starts[i], grids.axis_starts[i + 1]):
                rest = size // grids.sizes[axis]
                feature = grids.features[axis]
                x = rows[row, feature]
                move = _Move(x, low[row, feature], high[row, feature], multipliers[row], power, grids.units[axis])
                if x != x:  # noqa: PLR0124 - NaN
                    fewer[:rest] = values[size - rest : size]
                elif not _take_jump(move, (jump_edges[axis], jump_scales[axis]), rest, table, values, fewer):
                    first = i if axis == grids.axis_starts[i] else -1
                    _take_axis(move, axis, first, rest, grids, values, fewer)
                values, fewer = fewer, values
                size = rest
            bounds[row, i] = values[0]
    return bounds


@compile_loop()
def _take_jump(
    move: _Move, jump: tuple[float, float], rest: int, table: JumpTable, values: FloatArray, fewer: FloatArray
) -> bool:
    """The same as `_take_axis` for an axis of one edge, where that is known without walking; else false.

    `jump` holds the edge and the scale of the noise, 0 where the table does not hold.
    """
    edge, scale = jump
    is_open = move.low == -math.inf and move.high == math.inf
    stays = move.low == move.x and move.high == move.x
    if not scale > 0.0 or not (stays or (is_open and (move.multiplier == 0.0 or move.power == 2))):
        return False
    u, away = (move.x - edge) / scale, scale / move.unit
    worth = move.multiplier * (away * away) * (1.0 - 16.0 * EPSILON)
    if stays:
        average_jumps(u, rest, values, fewer)
    elif worth > 0.0:
        bound_jumps(u, worth, rest, values, table, fewer)
    for at in range(rest):
        low, high = values[at], values[rest + at]
        least, most = min(low, high), max(low, high)
        found = fewer[at] if stays or worth > 0.0 else least
        fewer[at] = min(max(found - GRID_ERROR * most, least), most)
    return True


@compile_loop()
def _take_axis(
    move: _Move, axis: int, first: int, rest: int, grids: Grids, values: FloatArray, fewer: FloatArray
) -> None:
    """For each cell of the other axes the least over moves along this one."""
    n_cells = grids.sizes[axis] - grids.has_gap[axis]
    own = bisect_right(move.x, grids.knot_starts[axis], grids.knot_starts[axis + 1], grids.knots) - 1
    for at in range(rest):
        least, most, variation = values[at], values[at], 0.0
        for cell in range(1, n_cells):
            value = values[cell * rest + at]
            least, most = min(least, value), max(most, value)
            variation += abs(value - values[(cell - 1) * rest + at])
        if most <= least:
            fewer[at] = least
            continue
        found = _search(move, _Line(axis, first, rest, at), own, least, most, variation, grids, values)
        found -= (GRID_ERROR + 2.0 * EPSILON * n_cells) * most
        fewer[at] = min(max(found, least), most)


@compile_loop()
def _look_up(knot: int, line: _Line, most: float, grids: Grids, values: FloatArray) -> float:
    """Lower bound at a knot, for one cell of the other axes: the largest score less what probabilities take off it."""
    axis, first, rest, at = line
    if first >= 0 and grids.first_starts[first + 1] > grids.first_starts[first]:
        return grids.first[grids.first_starts[first] + (knot - grids.knot_starts[axis]) * rest + at]
    n_cells = grids.sizes[axis] - grids.has_gap[axis]
    where = grids.cell_starts[axis] + (knot - grids.knot_starts[axis]) * n_cells
    taken = 0.0
    for cell in range(n_cells):
        taken += (most - values[cell * rest + at]) * grids.cells[where + cell]
    return most - taken


@compile_loop()
def _search(
    move: _Move, line: _Line, own: int, least: float, most: float, variation: float, grids: Grids, values: FloatArray
) -> float:
    """The least of value plus cost over the window: interval after interval, away from x, while it can pay."""
    axis, _, rest, at = line
    start, stop, knots, x = grids.knot_starts[axis], grids.knot_starts[axis + 1], grids.knots, move.x
    if stop - start < 2:  # nothing is known but the range
        return least
    n_cells, best = grids.sizes[axis] - grids.has_gap[axis], math.inf
    spread = most - least
    if move.low < knots[start]:  # left of all knots
        end = values[at] - spread * grids.beyond[axis, 0]
        best = min(best, end + _cost(max(x - knots[start], 0.0), move))
    if move.high > knots[stop - 1]:
        end = values[(n_cells - 1) * rest + at] - spread * grids.beyond[axis, 1]
        best = min(best, end + _cost(max(knots[stop - 1] - x, 0.0), move))
    knot = min(max(own, start), stop - 2)
    left = _look_up(knot, line, most, grids, values)
    begin = left
    for k in range(knot, stop - 1):  # to the right
        if knots[k] > move.high or _cost(max(knots[k] - x, 0.0), move) + least >= best:
            break
        right = _look_up(k + 1, line, most, grids, values)
        sag = min(grids.bend_by_variation[k] * variation, grids.bend_by_range[k] * spread)
        best = min(best, _least_of_chord(move, knots[k], knots[k + 1], left, right) - sag)
        left = right
    right = begin
    for k in range(knot - 1, start - 1, -1):  # to the left
        if knots[k + 1] < move.low or _cost(max(x - knots[k + 1], 0.0), move) + least >= best:
            break
        left = _look_up(k, line, most, grids, values)
        sag = min(grids.bend_by_variation[k] * variation, grids.bend_by_range[k] * spread)
        best = min(best, _least_of_chord(move, knots[k], knots[k + 1], left, right) - sag)
        right = left
    return max(best, least)


@compile_loop()
def _cost(distance: float, move: _Move) -> float:
    if move.multiplier == 0.0 or distance <= 0.0:
        return 0.0
    away = distance / move.unit
    return move.multiplier * (away if move.power == 1 else away * away) * (1.0 - 8.0 * EPSILON)


@compile_loop()
def _least_of_chord(move: _Move, left: float, right: float, at_left: float, at_right: float) -> float:
    """The least of a chord plus the cost over its interval within the window; infinite where there is none."""
    x, multiplier, power, unit = move.x, move.multiplier, move.power, move.unit
    begin, end = max(left, move.low), min(right, move.high)
    if begin > end:
        return math.inf
    slope = (at_right - at_left) / (right - left)
    best = _on_chord(begin, move, left, right, at_left, at_right)
    best = min(best, _on_chord(end, move, left, right, at_left, at_right))
    if multiplier > 0.0:
        lowest = x
        if power == 2:  # where the parabola on the chord is least
            lowest = x - 0.5 * slope * (unit / multiplier) * unit
        if begin < lowest < end:
            slip = EPSILON * abs(x) / unit  # by which the position may be off; a parabola is flat there
            at_lowest = _on_chord(lowest, move, left, right, at_left, at_right)
            best = min(best, at_lowest - (multiplier * slip * slip if power == 2 else 0.0))
    return best


@compile_loop()
def _on_chord(z: float, move: _Move, left: float, right: float, at_left: float, at_right: float) -> float:
    share = (z - left) / (right - left)
    return (1.0 - share) * at_left + share * at_right + _cost(abs(z - move.x), move)
