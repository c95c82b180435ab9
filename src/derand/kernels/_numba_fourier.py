"""The tilted sum of a row by Fourier inversion, compiled.

Contract: for terms of at most two cells, an upper bound of `sum over s <= T of tilted(s) exp(-theta (T - s))` that is
at most 1e-10 too large relative to itself, or -1 where that cannot be proven cheaply (the caller then builds laws).
With phi the characteristic function of the tilted law and w_k = 2 pi k / N,
(1 - exp(-theta N)) / N * sum over all k of phi(w_k) exp(-i w_k T) / (1 - exp(-theta + i w_k))
is never below that sum, and exceeds it by aliases alone. phi falls like a Gaussian: some forty frequencies
carry everything, the others are bounded on intervals of frequencies and added. Cost per row: terms x frequencies
kept, whatever the number of levels between the scores' least and most. Rounding and bounds: README.md, step 7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from derand.kernels import ACCURACY_NEAR_TIES, EPSILON, MIN_TERMS_FOR_FOURIER

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Plan(NamedTuple):
    """What all rows of a model share."""

    bins: IntArray
    """Bin of each term, by its shift; -1 for a certain term."""
    shifts: IntArray
    """Shift of each bin."""
    grid: FloatArray
    """Frequencies from 0 to pi."""
    sines: FloatArray
    """sin(w s / 2)**2 for each bin on the grid."""
    tables: FloatArray
    """Room for cosines and sines: (periods, bins, 2, frequencies)."""
    filled: IntArray
    """How many frequencies of each period's tables are filled."""


MAX_FREQUENCIES = 160
_N_PERIODS = 40  # periods N = 64 * 2**(g / 2), g = 0 .. 39
ACCURACY = 5e-10
_SPACING = 3.0  # of the grid of frequencies, over the largest deviation that the model can have
_LARGEST_GRID = 2**20


def plan_inversion(starts: IntArray, scores: IntArray) -> Plan:
    """What all rows of a model share; an empty grid means that the method does not apply."""
    lengths = np.diff(starts)
    shift_of = np.maximum.reduceat(scores, starts[:-1]) if lengths.size else np.zeros(0, dtype=np.int64)
    shifts = np.unique(shift_of[shift_of > 0])
    largest_deviation = 0.5 * math.sqrt(float((shift_of.astype(np.float64) ** 2).sum()))
    points = int(math.pi * largest_deviation / _SPACING) + 2
    few_cells = lengths.size >= MIN_TERMS_FOR_FOURIER and lengths.max() <= 2
    applies = few_cells and 0 < points * shifts.size <= _LARGEST_GRID
    grid = np.linspace(0.0, math.pi, points if applies else 0)
    return Plan(
        bins=np.where(shift_of > 0, np.searchsorted(shifts, shift_of), -1),
        shifts=shifts,
        grid=grid,
        sines=np.sin(0.5 * shifts[:, None] * grid) ** 2,
        tables=np.empty((_N_PERIODS if applies else 0, shifts.size, 2, MAX_FREQUENCIES)),
        filled=np.zeros(_N_PERIODS if applies else 0, dtype=np.int64),
    )


@njit(nogil=True, cache=True)
def invert_tilted(
    weights: FloatArray,
    starts: IntArray,
    scores: IntArray,
    cut: int,
    theta: float,
    gap: float,
    deviation: float,
    log_prefactor: float,
    plan: Plan,
) -> float:
    """Upper bound of the tilted sum, or -1; `gap` is cut minus the tilted mean, `log_prefactor` = log(mass / sum)."""
    if not plan.grid.size or deviation <= 0.0:
        return -1.0
    expected = 1.0 / (1.0 + 2.5 * theta * deviation)  # an estimate of the sum; the result is checked below
    log_expected = min(log_prefactor + math.log(expected), 0.0)
    accuracy = ACCURACY if log_expected < -4.0 else ACCURACY_NEAR_TIES
    need = max(16.5 * deviation, (-math.log(0.05 * accuracy) - log_expected) / theta)
    grade = math.ceil(2 * math.log2(max(need, 64.0) / 64.0))
    period = math.ceil(64 * 2.0 ** (grade / 2))
    far = period - abs(gap)
    lower_aliases = (
        0.5 * far * far / (deviation * deviation + plan.shifts[-1] * far / 3)
    )  # Bernstein: exp of minus that
    exponents = theta * (starts.size * plan.shifts[-1] + 4 * cut)  # their roundings, which count near ties
    if grade >= _N_PERIODS or lower_aliases < 30.0 or exponents > 1e5:
        return -1.0
    first, dropped = _bound_dropped(weights, starts, deviation, period, 0.8 * accuracy * expected, plan)
    kept = math.ceil(first * period / (2 * math.pi)) + 1
    if kept > MAX_FREQUENCIES or 2 * kept >= period:
        return -1.0
    total, doubt = _sum_kept(weights, starts, scores, cut, theta, kept, period, grade, plan)
    bound = total + dropped + doubt
    accurate = 0.0 < bound <= (1 + accuracy) * total
    if not accurate or -theta * period > math.log(0.1 * accuracy * total) + log_prefactor:  # the latter: upper aliases
        return -1.0
    return bound


@njit(nogil=True, cache=True)
def _bound_dropped(
    weights: FloatArray,
    starts: IntArray,
    deviation: float,
    period: int,
    allowed: float,
    plan: Plan,
) -> tuple[float, float]:
    """The frequency from which on all may be dropped, and an upper bound of what they add, not above `allowed`.

    With x = 4 p (1 - p) sin(w s / 2)**2, |phi|**2 = product of (1 - x) <= exp(-f), f = sum of x + x**2 / 2 + x**3 / 3.
    |f''| <= 6 deviation**2: between two points of the grid f is at least the smaller of its values there, less
    6 deviation**2 width**2 / 8.
    """
    bins, shifts, grid, sines = plan.bins, plan.shifts, plan.grid, plan.sines
    powers = np.zeros((shifts.size, 3))
    for term in range(starts.size - 1):
        if bins[term] >= 0:
            c = 4 * weights[starts[term]] * weights[starts[term] + 1]
            powers[bins[term], 0] += c
            powers[bins[term], 1] += c * c / 2
            powers[bins[term], 2] += c * c * c / 3
    if powers.sum() < -2.5 * math.log(allowed):  # f, half of that sum on the average, is too small somewhere
        return math.pi, 0.0
    falls = np.zeros(grid.size)
    for b in range(shifts.size):
        sine, one, two, three = sines[b], powers[b, 0], powers[b, 1], powers[b, 2]
        for j in range(grid.size):
            falls[j] += sine[j] * (one + sine[j] * (two + sine[j] * three))
    width = grid[1]
    slack = 0.75 * (1.001 * deviation * width) ** 2
    count = 1.001 * (width / math.pi + 2.0 / period)  # frequencies of both signs in an interval, over the period
    total = 0.0
    for j in range(grid.size - 2, 0, -1):
        weight = 1.0 if 2 * grid[j] >= math.pi else 1.0 / math.sin(grid[j])
        part = count * weight * math.exp(0.5 * (slack - 0.999999 * min(falls[j], falls[j + 1])))
        if total + part > allowed:
            return grid[j + 1], total
        total += part
    return grid[1], total


@njit(nogil=True, cache=True)
def _sum_kept(
    weights: FloatArray,
    starts: IntArray,
    scores: IntArray,
    cut: int,
    theta: float,
    kept: int,
    period: int,
    grade: int,
    plan: Plan,
) -> tuple[float, float]:
    """The sum over the frequencies |k| < kept, and a bound of its rounding errors."""
    bins, shifts, filled, table = plan.bins, plan.shifts, plan.filled, plan.tables[grade]
    for place in range(shifts.size):
        for k in range(filled[grade], kept):
            table[place, 0, k], table[place, 1, k] = _unit_root(k * shifts[place], period)
    filled[grade] = max(filled[grade], kept)
    real, imaginary = np.ones(kept), np.zeros(kept)
    for term in range(starts.size - 1):
        if bins[term] < 0:
            continue
        low, high = weights[starts[term]], weights[starts[term] + 1]
        if scores[starts[term]] > scores[starts[term] + 1]:
            low, high = high, low
        cosines, sines = table[bins[term], 0], table[bins[term], 1]
        for k in range(kept):
            a, b = low + high * cosines[k], high * sines[k]
            x, y = real[k], imaginary[k]
            real[k], imaginary[k] = x * a - y * b, x * b + y * a
    decay = math.exp(-theta)
    total = doubt = 0.0
    for k in range(kept):
        cosine, sine = _unit_root(k * (cut % period), period)  # phi * exp(-i w cut)
        x, y = real[k] * cosine + imaginary[k] * sine, imaginary[k] * cosine - real[k] * sine
        cosine, sine = _unit_root(k, period)  # over 1 - exp(-theta + i w)
        a, b = decay * (1.0 - cosine) - math.expm1(-theta), -decay * sine
        square = a * a + b * b
        share = (1.0 if k == 0 else 2.0) / period
        total += share * (x * a + y * b) / square
        doubt += share * (32 * starts.size / math.sqrt(square) + 8 / square)
    return -math.expm1(-theta * period) * total, doubt * EPSILON


@njit(nogil=True, cache=True)
def _unit_root(number: int, period: int) -> tuple[float, float]:
    """Cosine and sine of 2 pi number / period, the argument reduced in integers."""
    at = number % period
    if 2 * at > period:
        angle = 2 * math.pi * (period - at) / period
        return math.cos(angle), -math.sin(angle)
    angle = 2 * math.pi * at / period
    return math.cos(angle), math.sin(angle)
