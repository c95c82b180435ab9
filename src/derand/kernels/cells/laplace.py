"""Tails of the Laplace distribution and cells between them, rounded upward; arrays in, arrays out.

Owns the sides of an edge and the cells of terms for Laplace noise. Must not know noises or units. README.md, step 1,
counts the errors.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import TINY, FloatArray, IntArray
from derand.kernels import TAIL_ERROR, TAIL_ERROR_GROWTH

_END = 750.0  # the tail beyond is below TINY


def bound_sides(x: FloatArray, edges: FloatArray, scales: FloatArray) -> FloatArray:
    """Upper bounds of P(x + scale * noise < edge) and P(x + scale * noise >= edge), (n_rows, n_edges, 2).

    >>> bound_sides(np.array([[0.0, 3.0]]), np.array([1.0, 0.0]), np.array([2.0, 2.0])).round(3).tolist()
    [[[0.697, 0.303], [0.112, 0.888]]]
    """
    z = np.clip((x - edges) / scales, -_END, _END)
    distance = np.abs(z)
    tail = 0.5 * np.exp(-distance)
    small = np.maximum(tail * (1 + (TAIL_ERROR + TAIL_ERROR_GROWTH * distance)), TINY)
    # 1 - tail is at least 1/2: the tail's own error, not widened before, weighs no more in it than in the tail
    large = np.minimum((1 - tail) * (1 + TAIL_ERROR), 1.0)
    is_right = z > 0
    return np.stack([np.where(is_right, small, large), np.where(is_right, large, small)], axis=-1)


def bound_cells(x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray) -> FloatArray:
    """The same for all cells, term after term, (n_rows, n_edges + n_terms); `starts` as in `normal.bound_cells`.

    >>> bound_cells(np.zeros((1, 2)), np.array([-1.0, 5.0]), np.full(2, 2.0), np.array([0, 2])).round(3).tolist()
    [[0.303, 0.656, 0.041]]
    """
    start, stop, width = _mirror(x, edges, scales, starts)
    start = np.clip(start, -_END, _END)
    near = np.maximum(start, 0.0)
    one_sided = -0.5 * np.exp(-near) * np.expm1(-width)
    astride = -0.5 * (np.expm1(-stop) + np.expm1(np.minimum(start, 0.0)))
    mass = np.where(start > 0, one_sided, astride)
    return np.clip(mass * (1 + (TAIL_ERROR + TAIL_ERROR_GROWTH * near)), TINY, 1.0)


def _mirror(
    x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ends and width of all cells of terms with several edges, in scales from x, reflected to lie right of it."""
    edge = np.insert(np.arange(edges.size), starts[:-1], starts[:-1])  # one of the cell's
    lows, highs = np.insert(edges, starts[:-1], -np.inf), np.insert(edges, starts[1:], np.inf)
    start, stop = (lows - x[:, edge]) / scales[edge], (highs - x[:, edge]) / scales[edge]
    left = start + stop < 0
    return np.where(left, -stop, start), np.where(left, -start, stop), (highs - lows) / scales[edge]
