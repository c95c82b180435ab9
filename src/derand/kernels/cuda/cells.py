"""The probability table on the GPU: upper bounds of all cell probabilities, one thread per cell.

Contract: entry (row, cell) of `table` is at least P(x + magnitude * unit * noise falls into the cell), 0 only where
that is impossible; the formulas, branches and widenings are those of the package's noises. Cost: one or two calls of
erfc, exp or expm1 per cell. Rounding (README.md, steps 1 and 8): tests measure the device's functions against 60
digits, and ten times the worst error stays within the widenings. Sums and quotients are IEEE; a product contracted
with a sum rounds once instead of twice. No fastmath.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray
from derand.kernels import TAIL_ERROR, TAIL_ERROR_GROWTH
from derand.kernels.cells.interval import LEAST, STEP_UP, subtract_up
from derand.kernels.cuda.pmfs import compile_kernel, on_device

GAUSSIAN, UNIFORM, LAPLACE = 0, 1, 2
NOISE_CODES = {"gaussian": GAUSSIAN, "uniform": UNIFORM, "laplace": LAPLACE}
"""The noises that the GPU knows; tables of any other are computed by the caller."""

_SQRT_HALF = math.sqrt(0.5)
_INVERSE_ROOT = 1 / math.sqrt(2 * math.pi)
_GAUSSIAN_END = 40.0  # the tail beyond is below TINY
_LAPLACE_END = 750.0
_NODES, _WEIGHTS = (tuple(side[4:].tolist()) for side in np.polynomial.legendre.leggauss(8))
_subtract_up = on_device(subtract_up)


@compile_kernel
def fill_table(
    x: FloatArray,
    columns: IntArray,
    edges: FloatArray,
    units: FloatArray,
    lower: IntArray,
    upper: IntArray,
    magnitude: float,
    noise: int,
    n_rows: int,
    table: FloatArray,
) -> None:
    """Fill the table; `lower` and `upper` hold the edges that bound each cell, -1 where the cell is open."""
    n_cells = lower.size
    for number in range(cuda.grid(1), n_rows * n_cells, cuda.gridsize(1)):
        row, cell = number // n_cells, number % n_cells
        low, high = lower[cell], upper[cell]
        mass = 1.0
        if low >= 0 and high >= 0:
            mass = _between(noise, x[row, columns[low]], edges[low], edges[high], magnitude, units[low])
        elif high >= 0:
            mass = bound_below(noise, x[row, columns[high]], edges[high], magnitude, units[high])
        elif low >= 0:  # symmetry: P(x + noise >= edge) = P(edge + noise <= x)
            mass = bound_below(noise, edges[low], x[row, columns[low]], magnitude, units[low])
        table[row, cell] = mass


@cuda.jit(device=True, fastmath=False)
def bound_below(noise: int, x: float, edge: float, magnitude: float, unit: float) -> float:
    """Upper bound of P(x + magnitude * unit * noise < edge)."""
    if noise == UNIFORM:
        half = _half(magnitude, unit)
        return _share(_subtract_up(min(_subtract_up(edge, x), half), -half), half)
    z = (x - edge) / (magnitude * unit)
    if noise == GAUSSIAN:
        return _gaussian_tail(_clip(z, -_GAUSSIAN_END, _GAUSSIAN_END))
    z = _clip(z, -_LAPLACE_END, _LAPLACE_END)
    mass = 0.5 * math.exp(-z) if z > 0.0 else 0.5 - 0.5 * math.expm1(z)
    return _clip(mass * (1.0 + (TAIL_ERROR + TAIL_ERROR_GROWTH * max(z, 0.0))), TINY, 1.0)


@cuda.jit(device=True, fastmath=False)
def bound_sides(noise: int, x: float, edge: float, magnitude: float, unit: float) -> tuple[float, float]:
    """Upper bounds of P(x + magnitude * unit * noise < edge) and of the other side of the edge.

    For Gaussian noise the larger side is 1 less the tail, which is not widened before (README.md, step 1).
    """
    if noise != GAUSSIAN:
        return bound_below(noise, x, edge, magnitude, unit), bound_below(noise, edge, x, magnitude, unit)
    z = _clip((x - edge) / (magnitude * unit), -_GAUSSIAN_END, _GAUSSIAN_END)
    tail = 0.5 * math.erfc(abs(z) * _SQRT_HALF)
    small = _clip(tail * (1.0 + (TAIL_ERROR + TAIL_ERROR_GROWTH * z * z)), TINY, 1.0)
    large = min((1.0 - tail) * (1.0 + TAIL_ERROR), 1.0)
    return (small, large) if z > 0.0 else (large, small)


@cuda.jit(device=True, fastmath=False)
def _between(noise: int, x: float, low: float, high: float, magnitude: float, unit: float) -> float:
    """Upper bound of P(low <= x + magnitude * unit * noise < high)."""
    if noise == UNIFORM:
        half = _half(magnitude, unit)
        stop = min(_subtract_up(high, x), half)
        start = min(_subtract_up(x, low), half)  # how far the cell reaches to the left of x
        return _share(_subtract_up(stop, -start), half)
    scale = magnitude * unit
    start, stop, width = (low - x) / scale, (high - x) / scale, (high - low) / scale
    if start + stop < 0.0:  # reflected, to lie right of the centre
        start, stop = -stop, -start
    if noise == GAUSSIAN:
        start = _clip(start, -_GAUSSIAN_END, _GAUSSIAN_END)
        return _gaussian_between(start, _clip(stop, -_GAUSSIAN_END, _GAUSSIAN_END), width)
    start = _clip(start, -_LAPLACE_END, _LAPLACE_END)
    if start > 0.0:
        mass = -0.5 * math.exp(-start) * math.expm1(-width)
    else:
        mass = -0.5 * (math.expm1(-stop) + math.expm1(start))
    return _clip(mass * (1.0 + (TAIL_ERROR + TAIL_ERROR_GROWTH * max(start, 0.0))), TINY, 1.0)


@cuda.jit(device=True, fastmath=False)
def _gaussian_tail(z: float) -> float:
    growth = max(z, 0.0)
    tail = 0.5 * math.erfc(z * _SQRT_HALF)
    return _clip(tail * (1.0 + (TAIL_ERROR + TAIL_ERROR_GROWTH * growth * growth)), TINY, 1.0)


@cuda.jit(device=True, fastmath=False)
def _gaussian_between(start: float, stop: float, width: float) -> float:
    """Mass between two ends in scales, the nearer one first: astride the centre, narrow, or a difference of tails."""
    if start <= 0.0:
        mass = (0.5 + TAIL_ERROR) * (math.erf(stop * _SQRT_HALF) + math.erf(-start * _SQRT_HALF))
    elif width * (start + 1.0) < 1.0:
        middle = 0.5 * (start + stop)
        square = middle * middle
        total = 0.0
        for k in range(4):
            aside = 0.5 * _NODES[k] * width
            total += _WEIGHTS[k] * math.exp(-0.5 * aside * aside) * math.cosh(middle * aside)
        density = math.exp(-0.5 * square) * _INVERSE_ROOT
        mass = density * width * total * (1.0 + (TAIL_ERROR + TAIL_ERROR_GROWTH * square))
    else:  # both tails are rounded away from each other
        shrinking = 1.0 - (TAIL_ERROR + TAIL_ERROR_GROWTH * stop * stop)
        mass = _gaussian_tail(start) - 0.5 * math.erfc(stop * _SQRT_HALF) * shrinking
    return _clip(mass, TINY, 1.0)


@cuda.jit(device=True, fastmath=False)
def _half(magnitude: float, unit: float) -> float:
    """Upper bound of the half-width in raw units, exact where the unit is 1."""
    return magnitude if unit == 1.0 else magnitude * unit + (STEP_UP * (magnitude * unit) + LEAST)


@cuda.jit(device=True, fastmath=False)
def _share(overlap: float, half: float) -> float:
    """Upper bound of overlap / (2 * half): exactly 0 without overlap, exactly 1 where it is full."""
    if not overlap > 0.0:
        return 0.0
    return _clip(overlap / (2.0 * half) * (1.0 + 4.0 * EPSILON), TINY, 1.0)


@cuda.jit(device=True, fastmath=False)
def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
