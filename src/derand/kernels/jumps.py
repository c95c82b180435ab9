"""One jump under Gaussian noise, moved at a price: the least of its probability's worth and the square of a move.

Owns one function of two numbers, E(u, k) = min over w of k P(noise < w) + (w - u)**2, tabulated once for all models:
noise of another scale, another jump and another price come down to it (docs/theory.md, section 13). Lower bounds
throughout. Must not know terms or rows. README.md, step 10, has the rounding argument.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from derand._arrays import FloatArray, freeze
from derand.kernels.compiling import compile_loop
from derand.kernels.normal import upper_tail

_PER_UNIT = 64  # nodes of u per scale of the noise
_END = 6.0
_PER_OCTAVE = 8  # nodes of k between powers of 2
_LEAST, _MOST = -13, 8  # powers of 2 between which k has nodes
_FINE = 8  # steps of w between nodes of u
_BOTTOM = 9.0  # left of minus this, only the square counts
_STEEPEST = 0.24198  # the largest slope of the density, 1 / sqrt(2 pi e), rounded up
_ROUNDING = 2.0**-40


class JumpTable(NamedTuple):
    """Lower bounds of E at its nodes.

    Attributes
    ----------
    values : array of shape (n_k, n_u)
    arches : array of shape (n_k,)
        By how much, at most, E lies below its chord between two nodes of u: this times (u - left) * (right - u).
    """

    values: FloatArray
    arches: FloatArray


NO_JUMPS = JumpTable(freeze(np.zeros((2, 2))), freeze(np.zeros(2)))
"""Where no table holds."""


@cache
def tabulate_jumps() -> JumpTable:
    """The table, made when it is first asked for."""
    octaves, parts = np.divmod(np.arange(_PER_OCTAVE * (_MOST - _LEAST) + 1), _PER_OCTAVE)
    sizes = np.ldexp(1.0 + parts / _PER_OCTAVE, octaves + _LEAST)
    step = 1.0 / (_PER_UNIT * _FINE)
    places = np.arange(-int(_BOTTOM / step), int(_END / step) + 1) * step
    tails = upper_tail(np.abs(places))
    below = np.where(places < 0, tails * (1 - _ROUNDING), 1 - tails * (1 + _ROUNDING))
    values = np.empty((sizes.size, 2 * int(_END) * _PER_UNIT + 1))
    _fill_table(sizes, places, below, values)
    bends = _STEEPEST * sizes
    return JumpTable(freeze(values), freeze(bends / (2 + bends) * (1 + _ROUNDING)))


@compile_loop(error_model="numpy")
def _fill_table(sizes: FloatArray, places: FloatArray, below: FloatArray, values: FloatArray) -> None:
    """E at all nodes: interval after interval of w, left of u, chords less what a curve can lie below them."""
    step = places[1] - places[0]
    first = places.size - 1 - (values.shape[1] - 1) * _FINE
    for i in range(sizes.size):
        size = sizes[i]
        sag = size * _STEEPEST * step * step / 8.0
        for k in range(values.shape[1]):
            at = first + k * _FINE
            u = places[at]
            best = (u + _BOTTOM) * (u + _BOTTOM)
            while at > 0:
                away = u - places[at]
                if away * away >= best:
                    break
                slope = size * (below[at] - below[at - 1]) / step
                move = min(max(0.5 * slope, away), away + step)  # of the least point of chord and square
                best = min(best, size * below[at] - slope * (move - away) + move * move)
                at -= 1
            values[i, k] = max(best * (1.0 - _ROUNDING) - sag * (1.0 + _ROUNDING) - _ROUNDING * size, 0.0)


@compile_loop(error_model="numpy")
def lose_jump(u: float, size: float, table: JumpTable) -> float:
    """A lower bound of E(u, size), for a positive size."""
    if not u > -_END:
        return 0.0
    place = (min(u, _END) + _END) * _PER_UNIT  # E rises with u and with the size
    k = min(int(place), table.values.shape[1] - 2)
    share = place - k
    mantissa, exponent = math.frexp(size)
    node = (2.0 * mantissa - 1.0) * _PER_OCTAVE
    part = int(node)
    i = (exponent - 1 - _LEAST) * _PER_OCTAVE + part
    if i < 0:  # E is concave in the size, and 0 at 0
        least = 2.0**_LEAST
        return max(_between(table, 0, k, share) * (size / least) - _ROUNDING * size, 0.0)
    if i >= table.arches.size - 1:
        return max(_between(table, table.arches.size - 1, k, share) - _ROUNDING * 2.0**_MOST, 0.0)
    rest = node - part
    found = (1.0 - rest) * _between(table, i, k, share) + rest * _between(table, i + 1, k, share)
    return max(found - _ROUNDING * size, 0.0)


@compile_loop(error_model="numpy", inline="always")
def _between(table: JumpTable, i: int, k: int, share: float) -> float:
    chord = (1.0 - share) * table.values[i, k] + share * table.values[i, k + 1]
    return chord - table.arches[i] * (share * (1.0 - share) / (_PER_UNIT * _PER_UNIT))


@compile_loop(error_model="numpy")
def bound_jump(x: float, edge: float, scale: float, worth: float, low: float, high: float, table: JumpTable) -> float:
    """A lower bound of the least, over all z, of low or high left and right of an edge, averaged at z, and the price.

    Parameters
    ----------
    x, edge, scale : float
        Where the number stands, where the jump is, and the scale of the noise.
    worth : float
        What a move by the scale costs, rounded down; positive.
    low, high : float
        Values left and right of the edge.
    table : JumpTable
    """
    u = (x - edge) / scale
    if high >= low:
        return low + worth * lose_jump(u, min((high - low) / worth, 2.0**60), table) if high > low else low
    return high + worth * lose_jump(-u, min((low - high) / worth, 2.0**60), table)
