"""How far a row can be moved, in l2 under Gaussian noise, before a sum of functions of single jumps can fall.

A function of several columns that has one edge along each of them is 2 to the power of its columns scores; its worst
case for a multiple of the squared distance is looked up axis after axis (`jumps`), so that a whole search for the best
multiplier takes a fraction of a millisecond for hundreds of functions. Arrays in, arrays out, lower bounds throughout.
Must not know noises or models. docs/theory.md, section 13; README.md, step 10, has the rounding argument.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels.cells.normal import compute_tail
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case.jumps import JumpTable, locate_column, take_jumps

JUMP_ERROR = 2.0**-38
"""Per axis, relative to a function's range: what roundings of a bound can come to."""
_STEP = 1.3  # ratio of neighbouring multipliers
_MOST_STEPS = 60
_FARTHEST = 38.0


class Jumps(NamedTuple):
    """Functions of one jump along each of their axes, one after the other; scores are from 0 on, in C order.

    The axes of function i are those from `axis_starts[i]` to `axis_starts[i + 1] - 1`.
    """

    axis_starts: IntArray
    features: IntArray
    """(n_axes,)"""
    edges: FloatArray
    scales: FloatArray
    """(n_axes,): of the noise, as rows count."""
    worths: FloatArray
    """(n_axes,): what a move by the scale costs at multiplier 1, rounded down."""
    score_starts: IntArray
    scores: FloatArray
    table: JumpTable


def search_jump_squares(rows: FloatArray, thresholds: FloatArray, jumps: Jumps, error: float) -> FloatArray:
    """Lower bounds of the squared distance within which the sum stays above each row's threshold, (n_rows,).

    They are 0 where nothing is proven. A bound of the sum can be off by `error`.
    """
    squares = np.zeros(rows.shape[0])
    _search_squares(np.ascontiguousarray(rows), thresholds, jumps, error, squares)
    return squares


class _Row(NamedTuple):
    """Where a row stands on each axis, its columns of the table in either direction, and room for values."""

    positions: FloatArray
    forth: FloatArray
    """(n_axes, 3): column, share and arch, as `locate_column` returns them; `back` those of the mirrored position."""
    back: FloatArray
    values: FloatArray


@compile_loop(error_model="numpy")
def _search_squares(rows: FloatArray, thresholds: FloatArray, jumps: Jumps, error: float, squares: FloatArray) -> None:
    n_axes = jumps.features.size
    positions, forth, back = np.empty(n_axes), np.empty((n_axes, 3)), np.empty((n_axes, 3))
    longest = 1
    for i in range(jumps.score_starts.size - 1):
        longest = max(longest, jumps.score_starts[i + 1] - jumps.score_starts[i])
    at = _Row(positions, forth, back, np.empty(longest))
    for row in range(rows.shape[0]):
        for axis in range(n_axes):
            u = (rows[row, jumps.features[axis]] - jumps.edges[axis]) / jumps.scales[axis]
            positions[axis] = u
            k, share, arch = locate_column(u, jumps.table.values.shape[0])
            forth[axis, 0], forth[axis, 1], forth[axis, 2] = k, share, arch
            k, share, arch = locate_column(-u, jumps.table.values.shape[0])
            back[axis, 0], back[axis, 1], back[axis, 2] = k, share, arch
        level = thresholds[row] + error + 4.0 * EPSILON * abs(thresholds[row])
        margin = _average(at, jumps) - level
        if margin > 0.0:
            squares[row] = _search(margin, level, at, jumps)


@compile_loop(error_model="numpy")
def _average(row: _Row, jumps: Jumps) -> float:
    """The sum of all functions where the row stands."""
    positions, values = row.positions, row.values
    total = 0.0
    for i in range(jumps.score_starts.size - 1):
        start, size = jumps.score_starts[i], jumps.score_starts[i + 1] - jumps.score_starts[i]
        values[:size] = jumps.scores[start : start + size]
        for axis in range(jumps.axis_starts[i], jumps.axis_starts[i + 1]):
            size //= 2
            z = min(max(positions[axis], -_FARTHEST), _FARTHEST)
            tail = compute_tail(abs(z), math.exp(-0.5 * (z * z)))
            beyond = tail if z < 0.0 else 1.0 - tail
            for at in range(size):
                values[at] += (values[size + at] - values[at]) * beyond
        total += values[0]
    return total


@compile_loop(error_model="numpy")
def _bound(multiplier: float, row: _Row, jumps: Jumps) -> float:
    """A lower bound, but for `error`, of the least over all moves of the sum plus the cost of the move."""
    positions, forth, back, values, table = row.positions, row.forth, row.back, row.values, jumps.table
    total = 0.0
    for i in range(jumps.score_starts.size - 1):
        start, size = jumps.score_starts[i], jumps.score_starts[i + 1] - jumps.score_starts[i]
        for at in range(size):
            values[at] = jumps.scores[start + at]
        for axis in range(jumps.axis_starts[i], jumps.axis_starts[i + 1]):
            size //= 2
            to = int(forth[axis, 0]), forth[axis, 1], forth[axis, 2]
            fro = int(back[axis, 0]), back[axis, 1], back[axis, 2]
            worth = multiplier * jumps.worths[axis]
            take_jumps(positions[axis], worth, (to, fro), size, values, table, values)
        total += values[0]
    return total


@compile_loop(error_model="numpy")
def _search(margin: float, level: float, row: _Row, jumps: Jumps) -> float:
    """The best of several multipliers. What a multiplier proves rises and falls but once.

    To first order a multiplier m loses A / (4 m), A being the square of the slope: the best one is A / (2 margin).
    """
    multiplier = margin / jumps.worths.max()  # at which the distance is at most a scale of the noise
    if not 1e-140 < multiplier < 1e140:
        return 0.0
    best, at, guesses = 0.0, multiplier, 0
    for _ in range(_MOST_STEPS):
        left = max(_bound(multiplier, row, jumps) - level, 0.0)
        if left == 0.0 and best == 0.0:  # too low: a high one always proves something
            multiplier *= 16.0
            continue
        if left / multiplier > best:
            best, at = left / multiplier, multiplier
        elif guesses > 0:
            break
        guesses += 1
        guess = max(2.0 * multiplier * ((margin - left) / margin), multiplier * 1e-3)
        if guesses == 3 or multiplier / _STEP < guess < multiplier * _STEP:
            break
        multiplier = guess
    best = _climb(best, at, level, row, jumps)
    return best * (1.0 - 8.0 * EPSILON)


@compile_loop(error_model="numpy")
def _climb(best: float, at: float, level: float, row: _Row, jumps: Jumps) -> float:
    """From a multiplier that proves `best` to its neighbours while they prove more, then to the top between them."""
    low = high = -1.0
    for _ in range(_MOST_STEPS):
        if high < 0.0:
            high = max(_bound(at * _STEP, row, jumps) - level, 0.0) / (at * _STEP)
            if high > best:
                low, best, at, high = best, high, at * _STEP, -1.0
        elif low < 0.0:
            low = max(_bound(at / _STEP, row, jumps) - level, 0.0) / (at / _STEP)
            if low > best:
                high, best, at, low = best, low, at / _STEP, -1.0
        else:
            break
    bend = low - 2.0 * best + high
    if best > 0.0 and bend < 0.0:  # the top of the parabola through all three
        multiplier = at * math.exp(0.5 * (low - high) / bend * math.log(_STEP))
        best = max(best, (_bound(multiplier, row, jumps) - level) / multiplier)
    return best
