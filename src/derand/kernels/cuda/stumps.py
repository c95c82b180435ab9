"""Rows of terms of two cells on the GPU: their probabilities and their tilt, by the whole block of threads.

A model is one array, its terms by ascending shift: column, edge, unit, whether the upper cell is the higher one, shift.
The cells of a row stand in `work`: the probabilities of score 0 of all terms, then those of the other score; for the
side HIGH both change places. Terms of equal shift form groups of at most GROUP_TERMS.
Rounding: README.md, steps 1, 6 and 8. Any tilt is sound, a good one is fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from derand._core.arrays import TINY, FloatArray, IntArray
from derand.kernels import LOG_HALF, STEEPEST
from derand.kernels.cuda.cells import bound_sides
from derand.kernels.cuda.pmfs import THREADS, add_up, on_device
from derand.kernels.tails.tilted import is_close, step_tilt

COLUMN, EDGE, UNIT, RISES, SHIFT = range(5)
"""The rows of a model."""
GROUP_TERMS = 16
MOST_LISTED = 16
"""Terms of which all outcomes are listed."""
OPEN, PROVEN, DID_NOT_FIT, TO_DO, NOT_FINITE = range(5)
"""What a row's state says: P(S <= threshold) < 1/2 is not proven, is proven, the pmf outgrew its memory, or is still to
be built; or the row holds NaN or infinity."""
BY_INVERSION, BY_LISTING = 8, 16
"""Added to the state of a row that Fourier inversion, or listing its outcomes, has settled."""

_MOST_RANKS = 2**16
_LARGEST = float(np.finfo(np.float64).max)


class Stumps(NamedTuple):
    """Terms of two cells by ascending shift."""

    order: IntArray
    """Which term stands there."""
    rises: FloatArray
    """1 where the upper cell is the higher one, else 0."""
    shifts: IntArray
    groups: IntArray
    """Where groups begin, and the end of the last."""
    halves: tuple[IntArray, IntArray, IntArray] | None
    """What `list_halves` says of few terms; else None."""


def list_stumps(starts: IntArray, scores: IntArray) -> Stumps | None:
    """The terms by ascending shift; None where one is no stump."""
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
    ends = np.append(np.concatenate(groups), shifts.size)
    return Stumps(order, (change[order] > 0).astype(np.float64), shifts, ends, list_halves(shifts))


def list_halves(shifts: IntArray) -> tuple[IntArray, IntArray, IntArray] | None:
    """All outcomes of few terms, in two halves; None where there are too many.

    An outcome is the set of terms that move, term i of its half being bit i. Returns those of the first half by
    ascending score, how many of them score at most 0, 1, 2, ..., and the score of each one of the second half.
    """
    first, second = shifts[: shifts.size // 2], shifts[shifts.size // 2 :]
    if shifts.size > MOST_LISTED or first.sum() >= _MOST_RANKS:
        return None
    scores = _score_sets(first)
    order = np.argsort(scores, kind="stable")
    ranks = np.searchsorted(scores[order], np.arange(scores.max() + 1), side="right")
    return order, ranks, _score_sets(second)


def _score_sets(shifts: IntArray) -> IntArray:
    scores = np.zeros(1, dtype=np.int64)
    for shift in shifts:
        scores = np.concatenate([scores, scores + shift])
    return scores


_is_close, _step_tilt = on_device(is_close), on_device(step_tilt)


@cuda.jit(device=True, fastmath=False)
def store_failure(
    row: int, fits: bool, low_mass: float, high_mass: float, state: NDArray[np.int8], log_failure: FloatArray
) -> None:
    """Note what the logarithms of both masses, one of which may not have been needed, say of a row."""
    if cuda.threadIdx.x == 0:
        if not fits:
            state[row], log_failure[row] = DID_NOT_FIT, 0.0
        elif low_mass < LOG_HALF:
            state[row], log_failure[row] = PROVEN, low_mass
        else:
            state[row], log_failure[row] = OPEN, high_mass
    cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def bound_stump(x: FloatArray, model: FloatArray, term: int, noise: int, magnitude: float) -> tuple[float, float]:
    """Upper bounds of the probabilities of score 0 and of the other score."""
    value = x[int(model[COLUMN, term])]
    below, above = bound_sides(noise, value, model[EDGE, term], magnitude, model[UNIT, term])
    return (below, above) if model[RISES, term] > 0.0 else (above, below)


@cuda.jit(device=True, fastmath=False)
def load_cells(x: FloatArray, model: FloatArray, noise: int, magnitude: float, work: FloatArray) -> None:
    """Fill the probabilities of a row."""
    n_terms = model.shape[1]
    for term in range(cuda.threadIdx.x, n_terms, THREADS):
        work[term], work[n_terms + term] = bound_stump(x, model, term, noise, magnitude)
    cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def is_finite(x: FloatArray, first: int, step: int) -> bool:
    """Whether every number of a row from the first one on, by steps, is neither NaN nor infinite."""
    found = True
    for column in range(first, x.size, step):
        found = found and abs(x[column]) <= _LARGEST
    return found


@cuda.jit(device=True, fastmath=False)
def are_finite(x: FloatArray, parts: FloatArray) -> bool:
    """Whether every number of a row is, by the whole block."""
    return add_up(parts, 0.0 if is_finite(x, cuda.threadIdx.x, THREADS) else 1.0, 0.0)[0] == 0.0


@cuda.jit(device=True, fastmath=False)
def lowest_score(work: FloatArray, shifts: FloatArray, side: int, parts: FloatArray) -> float:
    """Least score of positive probability on a side; whole numbers below 2**53 add up exactly."""
    least = 0.0
    for term in range(cuda.threadIdx.x, shifts.size, THREADS):
        if work[side * shifts.size + term] == 0.0:
            least += shifts[term]
    return add_up(parts, least, 0.0)[0]


@cuda.jit(device=True, fastmath=False)
def compute_moments(
    work: FloatArray, shifts: FloatArray, side: int, tilt: float, parts: FloatArray
) -> tuple[float, float]:
    """Mean and deviation of the tilted pmf; to nearest, they only steer."""
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
def solve_tilt(
    work: FloatArray, shifts: FloatArray, side: int, limit: int, largest: float, parts: FloatArray
) -> tuple[float, float, float]:
    """About the t <= 0 at which the tilted mean is the threshold, by Newton steps kept between bounds.

    Within two deviations of the mean t is 0: by Cantelli's inequality a tie lies there, and failure_excess counts
    on it. Returns t, limit minus tilted mean, and tilted deviation.
    """
    low, high, tilt = -STEEPEST / largest, 0.0, 0.0
    gap = deviation = 0.0
    for step in range(40):
        mean, deviation = compute_moments(work, shifts, side, tilt, parts)
        gap = limit - mean
        if _is_close(tilt, gap, deviation) or step == 39:
            break
        tilt, low, high = _step_tilt(tilt, gap, deviation, low, high)
    return tilt, gap, deviation


@cuda.jit(device=True, fastmath=False)
def steepen_tilt(deviation: float, largest: float) -> float:
    """A tilt of one over the deviation, which inversion needs even near the mean."""
    return max(-1.0 / deviation, -STEEPEST / largest)


@cuda.jit(device=True, fastmath=False)
def tilt_cells(work: FloatArray, shifts: FloatArray, side: int, tilt: float, parts: FloatArray) -> tuple[float, float]:
    """Turn the probabilities into normalised tilted weights, in place.

    Returns the product of the normalisers as a logarithm plus an exponent of 2. Nothing underflows: one cell of each
    stump has a probability of 1/2 or more, and no power is below exp(-700).
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
    n_terms: int, tilt: float, limit: int, largest: float, log_fraction: float, exponent: float
) -> float:
    """Of the weights, the normalisers' product and the final logarithm, in units of EPSILON (README.md, step 8)."""
    whole = 1024.0 + 6.0 * abs(log_fraction) + 2.0 * abs(exponent)
    return whole + n_terms * (8.0 - tilt * largest) - 4.0 * tilt * limit
