"""Rows of terms of two cells on the GPU: their probabilities and their tilt, by the whole block of threads.

A model is one array, its terms by ascending shift: column, edge, unit, whether the upper cell is the higher one, shift.
The cells of a row stand in `work`: the probabilities of score 0 of all terms, then those of the other score; for the
side HIGH both change places. Terms of equal shift form groups of at most GROUP_TERMS.
Rounding: README.md, steps 1, 6 and 8. Any tilt is sound, a good one is fast.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

from derand._arrays import TINY, FloatArray, IntArray
from derand.kernels._cuda_cells import bound_sides
from derand.kernels._cuda_laws import THREADS, add_up

COLUMN, EDGE, UNIT, RISES, SHIFT = range(5)
"""The rows of a model."""
GROUP_TERMS = 16
OPEN, PROVEN, DID_NOT_FIT, TO_DO = range(4)
"""What a row's state says: P(S <= threshold) < 1/2 is not proven, is proven, the law outgrew its memory, or is still to
be built."""
BY_INVERSION = 8
"""Added to the state of a row that Fourier inversion has settled."""

_STEEPEST = 500.0  # largest exponent of a weight


def list_stumps(starts: IntArray, scores: IntArray) -> tuple[IntArray, FloatArray, IntArray, IntArray] | None:
    """Order by shift, rises and shifts in that order, and where groups begin; None where a term is no stump."""
    if not (np.diff(starts) == 2).all() or not scores.size:
        return None
    change = scores[1::2] - scores[::2]
    if not change.all():
        return None
    order = np.argsort(np.abs(change), kind="stable")
    shifts = np.abs(change[order])
    firsts = np.flatnonzero(np.diff(shifts, prepend=-1))
    ends = np.append(firsts[1:], shifts.size)
    groups = [np.arange(first, end, GROUP_TERMS) for first, end in zip(firsts, ends, strict=True)]
    return order, (change[order] > 0).astype(np.float64), shifts, np.append(np.concatenate(groups), shifts.size)


@cuda.jit(device=True, fastmath=False)
def load_cells(x: FloatArray, model: FloatArray, noise: int, magnitude: float, work: FloatArray) -> None:
    """Fill the probabilities of a row."""
    n_terms = model.shape[1]
    for term in range(cuda.threadIdx.x, n_terms, THREADS):
        value = x[int(model[COLUMN, term])]
        below, above = bound_sides(noise, value, model[EDGE, term], magnitude, model[UNIT, term])
        rises = model[RISES, term] > 0.0
        work[term] = below if rises else above
        work[n_terms + term] = above if rises else below
    cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def lowest_score(work: FloatArray, shifts: FloatArray, side: int, parts: FloatArray) -> float:
    """Least score of positive probability on a side; whole numbers below 2**53 add up exactly."""
    least = 0.0
    for term in range(cuda.threadIdx.x, shifts.size, THREADS):
        if work[side * shifts.size + term] == 0.0:
            least += shifts[term]
    return add_up(parts, least, 0.0)[0]


@cuda.jit(device=True, fastmath=False)
def find_moments(
    work: FloatArray, shifts: FloatArray, side: int, tilt: float, parts: FloatArray
) -> tuple[float, float]:
    """Mean and deviation of the tilted law; to nearest, they only steer."""
    stay, move = side * shifts.size, (1 - side) * shifts.size
    mean = variance = 0.0
    for term in range(cuda.threadIdx.x, shifts.size, THREADS):
        heavy = work[move + term] * math.exp(tilt * shifts[term])
        part = shifts[term] * (heavy / max(work[stay + term] + heavy, TINY))
        mean += part
        variance += part * (shifts[term] - part)
    mean, variance = add_up(parts, mean, variance)
    return mean, math.sqrt(max(variance, 0.0))


@cuda.jit(device=True, fastmath=False)
def find_tilt(
    work: FloatArray, shifts: FloatArray, side: int, cut: int, largest: float, parts: FloatArray
) -> tuple[float, float, float]:
    """About the t <= 0 at which the tilted mean is the threshold, by Newton steps kept between bounds.

    Within two deviations of the mean t is 0: by Cantelli's inequality a tie lies there, and failure_excess counts
    on it. Returns t, cut minus tilted mean, and tilted deviation.
    """
    low, high, tilt = -_STEEPEST / largest, 0.0, 0.0
    gap = deviation = 0.0
    for step in range(40):
        mean, deviation = find_moments(work, shifts, side, tilt, parts)
        gap = cut - mean
        close = abs(gap) <= 0.5 * deviation + 0.5 or (tilt == 0.0 and gap >= -2.0 * deviation)
        if close or step == 39:
            break
        if gap < 0.0:
            high = tilt
        else:
            low = tilt
        tilt += gap / (deviation * deviation) if deviation > 0.0 else -math.inf
        if not low < tilt < high:
            tilt = 0.5 * (low + high)
    return tilt, gap, deviation


@cuda.jit(device=True, fastmath=False)
def steepen_tilt(deviation: float, largest: float) -> float:
    """A tilt of one over the deviation, which inversion needs even near the mean."""
    return max(-1.0 / deviation, -_STEEPEST / largest)


@cuda.jit(device=True, fastmath=False)
def tilt_cells(
    work: FloatArray, shifts: FloatArray, side: int, tilt: float, parts: FloatArray
) -> tuple[float, float]:
    """Turn the probabilities into normalised tilted weights, in place.

    Returns the product of the normalisers as a logarithm plus an exponent of 2. Nothing underflows: one cell of each
    stump has a probability of 1/2 or more, and no power is below exp(-500).
    """
    stay, move = side * shifts.size, (1 - side) * shifts.size
    fraction, exponent = 1.0, 0
    for term in range(cuda.threadIdx.x, shifts.size, THREADS):
        low, high = work[stay + term], work[move + term]
        heavy = high * math.exp(tilt * shifts[term])
        if heavy < TINY and high > 0.0:
            heavy = TINY
        mass = low + heavy
        work[stay + term] = low / mass
        work[move + term] = heavy / mass
        fraction, more = math.frexp(fraction * mass)
        exponent += more
    log_fraction, exponents = add_up(parts, math.log(fraction), float(exponent))
    return log_fraction, exponents


@cuda.jit(device=True, fastmath=False)
def count_roundings(
    n_terms: int, tilt: float, cut: int, largest: float, log_fraction: float, exponent: float
) -> float:
    """Of the weights, the normalisers' product and the final logarithm, in units of EPSILON (README.md, step 8)."""
    whole = 1024.0 + 6.0 * abs(log_fraction) + 2.0 * abs(exponent)
    return whole + n_terms * (8.0 - tilt * largest) - 4.0 * tilt * cut
