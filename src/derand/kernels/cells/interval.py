"""Shares of an interval on the sides of an edge or in the cells of terms, compiled and rounded upward.

Owns the overlap of [x - half, x + half] with a cell, which is all that uniform noise asks for. Must not know noises
or units. README.md, step 1, counts the errors.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray
from derand.kernels.compiling import compile_loop

LEAST = 2.0**-1074
STEP_UP = 0.5 * EPSILON * (1 + EPSILON)
"""Added to a number, so much of it and LEAST reach the next double: more than half a unit in the last place."""


def bound_sides(x: FloatArray, edges: FloatArray, halves: FloatArray) -> FloatArray:
    """Upper bounds of the shares of [x - half, x + half] below and above an edge, (n_rows, n_edges, 2).

    They are exactly 0 and 1 where the shares are.

    >>> bound_sides(np.array([[0.0, 3.0]]), np.array([1.0, 0.0]), np.array([2.0, 2.0])).round(3).tolist()
    [[[0.75, 0.25], [0.0, 1.0]]]
    """
    sides = np.empty((*x.shape, 2))
    _fill_sides(np.ascontiguousarray(x), edges, halves, sides.reshape(x.shape[0], -1))
    return sides


def bound_cells(x: FloatArray, edges: FloatArray, halves: FloatArray, starts: IntArray) -> FloatArray:
    """The same for all cells, term after term, (n_rows, n_edges + n_terms); `starts` as in `normal.bound_cells`.

    >>> bound_cells(np.zeros((1, 2)), np.array([-1.0, 5.0]), np.full(2, 2.0), np.array([0, 2])).round(3).tolist()
    [[0.25, 0.75, 0.0]]
    """
    cells = np.empty((x.shape[0], edges.size + starts.size - 1))
    _fill_cells(np.ascontiguousarray(x), edges, halves, starts, cells)
    return cells


@compile_loop(error_model="numpy")
def _fill_sides(x: FloatArray, edges: FloatArray, halves: FloatArray, sides: FloatArray) -> None:
    for row in range(x.shape[0]):
        for i in range(edges.size):
            half = halves[i]
            sides[row, 2 * i] = _share(half, subtract_up(edges[i], x[row, i]), half)
            sides[row, 2 * i + 1] = _share(subtract_up(x[row, i], edges[i]), half, half)


@compile_loop(error_model="numpy")
def _fill_cells(x: FloatArray, edges: FloatArray, halves: FloatArray, starts: IntArray, cells: FloatArray) -> None:
    between = np.empty(edges.size)
    for row in range(x.shape[0]):
        for i in range(edges.size - 1):  # also from the last edge of a term to the first one of the next: never read
            left, right = subtract_up(x[row, i], edges[i]), subtract_up(edges[i + 1], x[row, i])
            between[i] = _share(left, right, halves[i])
        for term in range(starts.size - 1):
            first, last = starts[term], starts[term + 1] - 1
            right, left = subtract_up(edges[first], x[row, first]), subtract_up(x[row, last], edges[last])
            cells[row, first + term] = _share(halves[first], right, halves[first])
            for i in range(first, last):
                cells[row, i + term + 1] = between[i]
            cells[row, last + term + 1] = _share(left, halves[last], halves[last])


@compile_loop(error_model="numpy")
def _share(left: float, right: float, half: float) -> float:
    """Share of a cell that reaches so far to the left and to the right of the centre: 0 only without an overlap."""
    overlap = subtract_up(min(right, half), -min(left, half))
    share = min(max(overlap / (2.0 * half) * (1.0 + 4.0 * EPSILON), TINY), 1.0)
    return share if overlap > 0.0 else 0.0


@compile_loop(error_model="numpy")
def subtract_up(a: float, b: float) -> float:
    """a - b rounded upward: exact where the difference is representable (Knuth's error-free sum)."""
    difference = a - b
    rest = difference - a
    error = (a - (difference - rest)) - (b + rest)
    above = difference + (STEP_UP * abs(difference) + LEAST)  # the next double
    return above if error > 0.0 else difference
