"""One jump under Gaussian noise: the least over moves of its probability plus a multiple of the squared move.

Owns one function of two numbers, E(u, k) = min over w of k P(noise < w) + (w - u)**2, tabulated once for all models:
noise of another scale, another jump and another multiplier come down to it (docs/theory.md, section 13). Lower bounds
throughout. Must not know terms or rows. README.md, step 10, has the rounding argument.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, freeze
from derand.kernels.cells.normal import compute_tail, upper_tail
from derand.kernels.compiling import compile_loop

_PER_UNIT = 64  # nodes of u per scale of the noise
END = 6.0
"""Beyond so many scales on either side, the table is not asked."""
_PER_OCTAVE = 8  # nodes of k between powers of 2
_LEAST, _MOST = -13, 8  # powers of 2 between which k has nodes
_FINE = 8  # steps of w between nodes of u
_BOTTOM = 9.0  # left of minus this, only the square counts
_STEEPEST = 0.24198  # the largest slope of the density, 1 / sqrt(2 pi e), rounded up
_ROUNDING = 2.0**-40
HUGE = 2.0**60
"""Of jumps: what stands for larger ones."""
# a double's bits: those of its octave begin at 52, and the first three digits after it tell eight nodes apart
_SHIFT = 52 - 3
_FIRST_NODE = (1023 + _LEAST) << 3
_MASK = (1 << _SHIFT) - 1
_SHARE = 2.0**-_SHIFT
_ONE_LEAST, _LARGEST = 2.0**-_LEAST, 2.0**_MOST
_FARTHEST = 38.0


class JumpTable(NamedTuple):
    """Lower bounds of E at its nodes."""

    values: FloatArray
    """(n_u, n_k)."""
    arches: FloatArray
    """(n_k,): by how much, at most, E lies below its chord between two nodes of u, over (u - left) * (right - u)."""


NO_JUMPS = JumpTable(freeze(np.zeros((2, 2))), freeze(np.zeros(2)))
"""Where no table holds."""


@cache
def tabulate_jumps() -> JumpTable:
    """The table, made when it is first asked for."""
    octaves, parts = np.divmod(np.arange(_PER_OCTAVE * (_MOST - _LEAST) + 1), _PER_OCTAVE)
    sizes = np.ldexp(1.0 + parts / _PER_OCTAVE, octaves + _LEAST)
    step = 1.0 / (_PER_UNIT * _FINE)
    positions = (np.arange(-int(_BOTTOM / step), int(END / step) + 1) * step).astype(np.float64)
    tails = upper_tail(np.abs(positions))
    below = np.where(positions < 0, tails * (1 - _ROUNDING), 1 - tails * (1 + _ROUNDING))
    values = np.empty((2 * int(END) * _PER_UNIT + 1, sizes.size))
    _fill_table(sizes, positions, below, values)
    bends = _STEEPEST * sizes
    return JumpTable(freeze(values), freeze(bends / (2 + bends) * (1 + _ROUNDING)))


@compile_loop(error_model="numpy")
def _fill_table(sizes: FloatArray, positions: FloatArray, below: FloatArray, values: FloatArray) -> None:
    """E at all nodes: interval after interval of w, left of u, chords less what a curve can lie below them."""
    step = positions[1] - positions[0]
    first = positions.size - 1 - (values.shape[0] - 1) * _FINE
    for i in range(sizes.size):
        size = sizes[i]
        sag = size * _STEEPEST * step * step / 8.0
        for k in range(values.shape[0]):
            at = first + k * _FINE
            u = positions[at]
            best = (u + _BOTTOM) * (u + _BOTTOM)
            while at > 0:
                away = u - positions[at]
                if away * away >= best:
                    break
                slope = size * (below[at] - below[at - 1]) / step
                move = min(max(0.5 * slope, away), away + step)  # of the least point of chord and square
                best = min(best, size * below[at] - slope * (move - away) + move * move)
                at -= 1
            values[k, i] = max(best * (1.0 - _ROUNDING) - sag * (1.0 + _ROUNDING) - _ROUNDING * size, 0.0)


@compile_loop(error_model="numpy", inline="always")
def locate_column(u: float, n_nodes: int) -> tuple[int, float, float]:
    """Between which nodes of u: the left one, how far from it, and the height of an arch there. E rises with u."""
    position = (min(max(u, -END), END) + END) * _PER_UNIT
    k = min(int(position), n_nodes - 2)
    share = position - k
    return k, share, share * (1.0 - share) / (_PER_UNIT * _PER_UNIT)


@compile_loop(error_model="numpy", inline="always")
def look_up(size: float, share: float, arch: float, left: FloatArray, right: FloatArray, arches: FloatArray) -> float:
    """E between two columns of the table; it rises with the size, is concave in it, and 0 at 0."""
    bits: Any = np.float64(size).view(np.int64)  # a size's octave and its first digits are its node
    i = (bits >> _SHIFT) - _FIRST_NODE
    rest = (bits & _MASK) * _SHARE
    if i < 0:
        i, rest = -1, size * _ONE_LEAST
    elif i >= arches.size - 1:
        i, rest, size = arches.size - 2, 1.0, _LARGEST
    found = rest * ((1.0 - share) * left[i + 1] + share * right[i + 1] - arch * arches[i + 1])
    if i >= 0:
        found += (1.0 - rest) * ((1.0 - share) * left[i] + share * right[i] - arch * arches[i])
    return max(found - _ROUNDING * size, 0.0)


Columns = tuple[tuple[int, float, float], tuple[int, float, float]]
"""What `locate_column` returns for a position, and for the mirrored one."""


@compile_loop(error_model="numpy")
def bound_jumps(u: float, worth: float, n_jumps: int, values: FloatArray, table: JumpTable, out: FloatArray) -> None:
    """Lower bounds of the least, over all moves, of functions of one jump under noise plus the cost of the move.

    The number stands u scales of the noise right of the jump; a move by the scale costs `worth`, which is positive and
    rounded down. `values` holds the functions left of the jump, one after the other, then right of it.
    """
    n_nodes = table.values.shape[0]
    take_jumps(u, worth, (locate_column(u, n_nodes), locate_column(-u, n_nodes)), n_jumps, values, table, out)


@compile_loop(error_model="numpy", inline="always")
def take_jumps(
    u: float, worth: float, columns: Columns, n_jumps: int, values: FloatArray, table: JumpTable, out: FloatArray
) -> None:
    """`bound_jumps`, given its columns of the table; `out` may be the values."""
    (forth, share, arch), (back, back_share, back_arch) = columns
    nodes, arches, inverse = table.values, table.arches, 1.0 / worth
    left, right, back_left, back_right = nodes[forth], nodes[forth + 1], nodes[back], nodes[back + 1]
    for at in range(n_jumps):
        low, high = values[at], values[n_jumps + at]
        out[at] = min(low, high)
        if high > low and u > -END:
            size = min((high - low) * inverse, HUGE)
            out[at] = low + worth * look_up(size, share, arch, left, right, arches)
        elif high < low and u < END:
            size = min((low - high) * inverse, HUGE)
            out[at] = high + worth * look_up(size, back_share, back_arch, back_left, back_right, arches)


@compile_loop(error_model="numpy")
def average_jumps(u: float, n_jumps: int, values: FloatArray, out: FloatArray) -> None:
    """Lower bounds of the same where the number stands."""
    z = min(max(u, -_FARTHEST), _FARTHEST)
    tail = compute_tail(abs(z), math.exp(-0.5 * (z * z)))
    beyond = tail if z < 0.0 else 1.0 - tail
    for at in range(n_jumps):
        jump = values[n_jumps + at] - values[at]
        out[at] = values[at] + jump * beyond - _ROUNDING * abs(jump)
