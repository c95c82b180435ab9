"""Tails of the normal distribution and cells between them, compiled: one exponential per edge.

Owns P(noise > z) for z >= 0, the mass between two ends, and the loops that take them over arrays. Must not know
noises or what a bound is for: callers say how far a tail is widened. README.md, step 1, counts the errors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._core.arrays import Entries, FloatArray, IntArray
from derand.kernels.compiling import compile_loop

COEFFICIENTS = (
    0.46151582985003775,
    -0.09155228183400904,
    0.031030368425963708,
    0.010002352385229382,
    -0.026401042966308307,
    0.024536963243678652,
    -0.015170415402514863,
    0.006522000667783896,
    -0.00167607234455447,
    7.791597409338999e-06,
    0.00018233414511643843,
    -5.36075811148722e-05,
    -9.896097759279782e-06,
    9.05982468125664e-06,
    -7.034644683537101e-08,
    -1.3074486019237587e-06,
    1.27878221820937e-07,
    1.9627809920091187e-07,
    -2.6286205089898754e-08,
    -3.095201755804207e-08,
    3.627373163401201e-09,
    4.4011596227599254e-09,
    -2.8220772290629865e-10,
    -3.815816262632953e-10,
)
"""Of 1, t, t**2, ..., t = (z - 5) / (z + 5): the Chebyshev series of (z + 1) exp(z**2 / 2) P(noise > z) up to t**23."""
N_TERMS = 8
"""Of the series that integrates the density over a narrow cell; what is left out is below 7e-18."""
_C = COEFFICIENTS
_DENSITY = 1 / math.sqrt(2 * math.pi)
_END = 40.0  # the tail beyond is below the smallest normal double


class Widening(NamedTuple):
    """By how much bounds lie above what is computed."""

    error: float
    growth: float
    """A tail is widened by the factor 1 + error + growth * z**2, z being the distance in scales."""
    least: float
    """Stands in for a smaller bound; the tail beyond 40 scales must not exceed it."""


def upper_tail(z: FloatArray) -> FloatArray:
    """P(noise > z) for an array of 0 <= z <= 40, to nearest.

    >>> upper_tail(np.array([0.0, 1.0, 2.0])).round(6).tolist()
    [0.5, 0.158655, 0.02275]
    """
    decay = np.exp(-0.5 * (z * z))
    _fill_tails(z, decay, decay)
    return decay


def bound_sides(x: FloatArray, edges: FloatArray, scales: FloatArray, widening: Widening) -> FloatArray:
    """Upper bounds of P(x + scale * noise < edge) and P(x + scale * noise >= edge), (n_rows, n_edges, 2).

    The smaller tail is widened as said, the larger one by 1 + error.

    >>> bound_sides(np.array([[1.0, 1.0]]), np.array([1.0, 0.0]), np.ones(2), Widening(1e-14, 1e-15, 1e-300)).round(3)
    array([[[0.5  , 0.5  ],
            [0.159, 0.841]]])
    """
    z, decay = np.empty(x.size), np.empty(x.size)
    sides = np.empty((*x.shape, 2))
    _fill_distances(np.ascontiguousarray(x), edges, scales, z, decay)
    np.exp(decay, out=decay)
    _fill_sides(z, decay, sides.reshape(-1), widening)
    return sides


def bound_cells(
    x: FloatArray, edges: FloatArray, scales: FloatArray, starts: IntArray, widening: Widening
) -> FloatArray:
    """Upper bounds of the probabilities of all cells, term after term, (n_rows, n_edges + n_terms).

    The edges of term t are those from `starts[t]` to `starts[t + 1] - 1`, increasing, at least one. Bounds are widened
    as in `bound_sides`; a cell astride x by 1 + 2 * error, a narrow one by its middle's distance.

    >>> edges, starts = np.array([-1.0, 0.0, 1.0]), np.array([0, 3])
    >>> bound_cells(np.zeros((1, 3)), edges, np.ones(3), starts, Widening(1e-14, 1e-15, 1e-300)).round(3)
    array([[0.159, 0.341, 0.341, 0.159]])
    """
    cells, widths = np.empty((x.shape[0], edges.size + starts.size - 1)), np.diff(edges) / scales[:-1]
    z, decay = np.empty(x.shape), np.empty(x.shape)
    _fill_distances(np.ascontiguousarray(x), edges, scales, z.reshape(-1), decay.reshape(-1))
    np.exp(decay, out=decay)
    _fill_cells(z, decay, widths, starts, cells, widening)
    return cells


# Early versions take arrays where loops take numbers; what is arithmetic alone runs as written, on arrays.


def _fill_distances_in_numpy(
    x: FloatArray, edges: FloatArray, scales: FloatArray, z: FloatArray, exponents: FloatArray
) -> None:
    z[:] = np.minimum(np.maximum((x - edges) / scales, -_END), _END).ravel()
    exponents[:] = -0.5 * (z * z)


def _fill_tails_in_numpy(z: FloatArray, decay: FloatArray, tails: FloatArray) -> None:
    tails[:] = compute_tail(z, decay)


def _fill_sides_in_numpy(z: FloatArray, decay: FloatArray, sides: FloatArray, widening: Widening) -> None:
    tails = compute_tail(np.abs(z), decay)
    sides[0::2] = _side_in_numpy(z, tails, widening)
    sides[1::2] = _side_in_numpy(-z, tails, widening)


def _side_in_numpy(z: FloatArray, tail: FloatArray, widening: Widening) -> FloatArray:
    error, growth, least = widening
    small = np.maximum(tail * (1.0 + (error + growth * (z * z))), least)
    return np.where(z > 0.0, small, np.minimum((1.0 - tail) * (1.0 + error), 1.0))


def _fill_cells_in_numpy(
    z: FloatArray, decay: FloatArray, widths: FloatArray, starts: IntArray, cells: FloatArray, widening: Widening
) -> None:
    error, growth, least = widening
    tails, roots = compute_tail(np.abs(z), decay), np.sqrt(decay)
    left, right, widenings = z[:, :-1], z[:, 1:], error + growth * (z * z)
    less, more = tails * (1.0 - widenings), tails * (1.0 + widenings)
    apart = np.where(left + right > 0.0, more[:, 1:] - less[:, :-1], more[:, :-1] - less[:, 1:])
    astride = (1.0 - (tails[:, :-1] + tails[:, 1:])) * (1.0 + 2.0 * error)
    wide = np.where((left > 0.0) & (right < 0.0), astride, apart)
    middle = 0.5 * (left + right)
    narrow = _integrate(middle, widths, roots[:, :-1] * roots[:, 1:], widening)
    between = np.where(widths * (np.abs(middle) + 2.0) < 1.0, narrow, wide)
    firsts, lasts, terms = starts[:-1], starts[1:] - 1, np.arange(starts.size - 1)
    inner = np.setdiff1d(np.arange(z.shape[1] - 1), lasts)  # not from one term to the next
    places = inner + np.searchsorted(firsts, inner, side="right")
    cells[:, places] = np.minimum(np.maximum(between[:, inner], least), 1.0)
    cells[:, firsts + terms] = _side_in_numpy(z[:, firsts], tails[:, firsts], widening)
    cells[:, lasts + terms + 1] = _side_in_numpy(-z[:, lasts], tails[:, lasts], widening)


# The loops below are compiled to vector instructions: hence the coefficients are written out one by one, nothing
# branches and division follows NumPy's rules. The exponential in between is NumPy's, which takes many numbers at a
# time, too. Products and sums are not contracted: a number does not depend on its place in an array.


@compile_loop(early=_fill_distances_in_numpy, numbers=lambda x, *_: x.size, error_model="numpy")
def _fill_distances(x: FloatArray, edges: FloatArray, scales: FloatArray, z: FloatArray, exponents: FloatArray) -> None:
    n_edges = edges.size
    for row in range(x.shape[0]):
        start = row * n_edges
        for i in range(n_edges):
            distance = min(max((x[row, i] - edges[i]) / scales[i], -_END), _END)
            z[start + i] = distance
            exponents[start + i] = -0.5 * (distance * distance)


@compile_loop(early=_fill_tails_in_numpy, numbers=lambda z, *_: z.size, error_model="numpy")
def _fill_tails(z: FloatArray, decay: FloatArray, tails: FloatArray) -> None:
    for i in range(z.size):
        tails[i] = compute_tail(z[i], decay[i])


@compile_loop(early=_fill_sides_in_numpy, numbers=lambda z, *_: z.size, error_model="numpy")
def _fill_sides(z: FloatArray, decay: FloatArray, sides: FloatArray, widening: Widening) -> None:
    for i in range(z.size):
        tail = compute_tail(abs(z[i]), decay[i])
        sides[2 * i] = _side(z[i], tail, widening)
        sides[2 * i + 1] = _side(-z[i], tail, widening)


@compile_loop(early=_fill_cells_in_numpy, numbers=lambda z, *_: 3 * z.size, error_model="numpy")
def _fill_cells(
    z: FloatArray, decay: FloatArray, widths: FloatArray, starts: IntArray, cells: FloatArray, widening: Widening
) -> None:
    n_edges = z.shape[1]
    tails, roots, between = np.empty(n_edges), np.empty(n_edges), np.empty(n_edges)
    for row in range(z.shape[0]):
        ends = z[row]
        for i in range(n_edges):
            tails[i] = compute_tail(abs(ends[i]), decay[row, i])
            roots[i] = math.sqrt(decay[row, i])
        for i in range(n_edges - 1):  # also from the last edge of a term to the first one of the next: never read
            middle, width = 0.5 * (ends[i] + ends[i + 1]), widths[i]
            wide = _subtract(ends[i], ends[i + 1], tails[i], tails[i + 1], widening)
            narrow = _integrate(middle, width, roots[i] * roots[i + 1], widening)
            is_narrow = width * (abs(middle) + 2.0) < 1.0  # there tails would cancel
            between[i] = min(max(narrow if is_narrow else wide, widening.least), 1.0)
        for term in range(starts.size - 1):
            first, last = starts[term], starts[term + 1] - 1
            cells[row, first + term] = _side(ends[first], tails[first], widening)
            for i in range(first, last):
                cells[row, i + term + 1] = between[i]
            cells[row, last + term + 1] = _side(-ends[last], tails[last], widening)


@compile_loop(error_model="numpy")
def _side(z: float, tail: float, widening: Widening) -> float:
    """Upper bound of P(noise > z), from the tail at the distance of z."""
    error, growth, least = widening
    small = max(tail * (1.0 + (error + growth * (z * z))), least)
    # 1 - tail is at least 1/2: the tail's own error, not widened before, weighs no more in it than in the tail
    large = min((1.0 - tail) * (1.0 + error), 1.0)
    return small if z > 0.0 else large


@compile_loop(error_model="numpy")
def _subtract(left: float, right: float, left_tail: float, right_tail: float, widening: Widening) -> float:
    """Upper bound of P(left > noise > right), from the tails at their distances, for ends that are not close."""
    error, growth, _ = widening
    left_error, right_error = error + growth * (left * left), error + growth * (right * right)
    # of tails on the same side, the larger one is rounded upward and the smaller one downward
    on_the_left = right_tail * (1.0 + right_error) - left_tail * (1.0 - left_error)
    on_the_right = left_tail * (1.0 + left_error) - right_tail * (1.0 - right_error)
    apart = on_the_left if left + right > 0.0 else on_the_right
    astride = (1.0 - (left_tail + right_tail)) * (1.0 + 2.0 * error)
    return astride if (left > 0.0) & (right < 0.0) else apart


@compile_loop(error_model="numpy")
def _integrate(middle: Entries, width: Entries, decay: Entries, widening: Widening) -> Entries:
    """Upper bound of the mass of a narrow cell, from the geometric mean of exp(-z**2 / 2) at its two ends."""
    # its density integrated by a power series, all of whose terms are positive
    square, half_square = middle * middle, 0.25 * (width * width)
    product = square * half_square
    power, term, total = 1.0, 1.0, 1.0
    for k in range(1, N_TERMS):
        power = power * product * (1.0 / (2 * k * (2 * k - 1)))
        term = (half_square * term + power) * (1.0 / (2 * k + 1))
        total += term
    return _DENSITY * decay * width * total * (1.0 + (widening.error + widening.growth * square))


@compile_loop(error_model="numpy")
def compute_tail(z: Entries, decay: Entries) -> Entries:
    """P(noise > z) for 0 <= z <= 40 from exp(-z**2 / 2), to nearest."""
    t = (z - 5.0) / (z + 5.0)
    s = t * t
    even = _C[22]
    even = ((((even * s + _C[20]) * s + _C[18]) * s + _C[16]) * s + _C[14]) * s + _C[12]
    even = (((((even * s + _C[10]) * s + _C[8]) * s + _C[6]) * s + _C[4]) * s + _C[2]) * s + _C[0]
    odd = _C[23]
    odd = ((((odd * s + _C[21]) * s + _C[19]) * s + _C[17]) * s + _C[15]) * s + _C[13]
    odd = (((((odd * s + _C[11]) * s + _C[9]) * s + _C[7]) * s + _C[5]) * s + _C[3]) * s + _C[1]
    return (even + t * odd) / (z + 1.0) * decay
