"""The failing tail of each row by exponential tilting, compiled.

Contract: `failures` of README.md, one threshold per row, in logarithms. With weights w_c = p_c exp(t s_c) / M_i the
law of the score is tilted so that its mean lies on the threshold T, and for t <= 0
P(S <= T) = prod M_i * exp(-t T) * sum over s <= T of tilted(s) exp(t (T - s)),
where the sum is of order one however small the tail is. So relative accuracy is kept far below the smallest double,
and the law can be cut to the few deviations around T that carry mass: what is dropped is added to the bound.
Cost per row: terms x cells x (about 12 tilted deviations). Rounding: README.md, step 6. Any t is sound, a good one
is fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from derand.kernels import EPSILON, FLOOR, LOG_HALF, NEGLIGIBLE, TINY
from derand.kernels._numba_fourier import Plan, invert_tilted, plan_inversion
from derand.kernels._numba_laws import add_compensated, build_law, possible_scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LOST = 1e-13  # mass that a first pass may drop, relative to the whole tilted law
_STEEPEST = 500.0  # largest exponent of a weight


class Room(NamedTuple):
    """Arrays to work in."""

    weights: FloatArray
    """Of all cells."""
    powers: FloatArray
    """exp(tilt * score) for the smaller scores."""
    buffers_a: FloatArray
    buffers_b: FloatArray
    """Two laws for each half of the terms."""
    sums: FloatArray
    """As long as a law of the second half."""


def failures(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    return find_failures_by_plan(table, starts, scores, thresholds, plan_inversion(starts, scores))


def find_failures_by_plan(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray, plan: Plan
) -> tuple[NDArray[np.bool_], FloatArray]:
    """`failures`, with Fourier inversion where the plan has a grid."""
    most = np.maximum.reduceat(scores, starts[:-1]) if scores.size else np.zeros(0, dtype=np.int64)
    half = most.size // 2
    sizes = int(most[:half].sum()) + 1, int(most[half:].sum()) + 1
    room = Room(
        weights=np.empty(scores.size),
        powers=np.empty(min(int(most.max(initial=0)) + 1, 4096)),
        buffers_a=np.empty((2, sizes[0])),
        buffers_b=np.empty((2, sizes[1])),
        sums=np.empty(sizes[1]),
    )
    mirrored = np.repeat(most, np.diff(starts)) - scores
    return _find_failures(table, starts, scores, mirrored, thresholds, int(most.sum()), plan, room)


@njit(nogil=True, cache=True)
def _find_failures(
    table: FloatArray,
    starts: IntArray,
    scores: IntArray,
    mirrored: IntArray,
    thresholds: IntArray,
    whole: int,
    plan: Plan,
    room: Room,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """`failures`, prepared: `mirrored` are the scores counted from each term's largest, `whole` the sum of those."""
    proven = np.zeros(table.shape[0], dtype=np.bool_)
    log_failure = np.zeros(table.shape[0])
    for row in range(table.shape[0]):
        mean = 0.0
        for cell in range(scores.size):
            mean += table[row, cell] * scores[cell]
        is_low = mean > thresholds[row]  # begin with the side that seems to fail
        mass = high_mass = 0.0
        for _ in range(2):
            side = scores if is_low else mirrored
            cut = thresholds[row] if is_low else whole - thresholds[row] - 1  # P(S > T) is a lower tail when mirrored
            mass = _log_tail(table[row], starts, side, cut, plan, room)
            high_mass = high_mass if is_low else mass
            proven[row] = is_low and mass < LOG_HALF
            if mass < LOG_HALF:
                break
            is_low = not is_low
        log_failure[row] = mass if proven[row] else high_mass
    return proven, log_failure


@njit(nogil=True, cache=True)
def _log_tail(row: FloatArray, starts: IntArray, scores: IntArray, threshold: int, plan: Plan, room: Room) -> float:
    """Upper bound of log P(S <= threshold); -inf if and only if that is impossible."""
    terms = starts.size - 1
    least, largest = 0, 1
    for term in range(terms):
        bottom, top = possible_scores(row, scores, starts[term], starts[term + 1])
        least += bottom
        largest = max(largest, top)
    if threshold < least:
        return -np.inf
    weights, powers = room.weights, room.powers
    tilt, gap, deviation = _find_tilt(row, starts, scores, threshold, largest, powers)
    for by_fourier in (True, False):
        used, length = tilt, 0
        if by_fourier and (not plan.grid.size or deviation <= 0.0):
            continue
        if by_fourier and -tilt * deviation < 1.0:  # inversion needs a tilt, even near the mean
            used = max(-1.0 / deviation, -_STEEPEST / largest)
            gap, deviation = _tilted_moments(row, starts, scores, threshold, used, powers)
        elif not by_fourier:
            _fill_powers(used, powers)
        fraction, exponent, shift = _tilt_weights(row, starts, scores, used, powers, weights)
        log_prefactor = math.log(fraction) + exponent * math.log(2.0) + used * (shift - threshold)
        if by_fourier:
            total = invert_tilted(weights, starts, scores, threshold, -used, gap, deviation, log_prefactor, plan)
        else:
            total, length = _sum_laws(weights, starts, scores, threshold, used, room)
        if total > 0.0:
            break
    roundings = scores.size + terms * (8 - used * largest) + 512 + (2 * length if used < 0.0 else 0)
    roundings += 2 * abs(exponent) - 4 * used * (shift + threshold)
    return float(math.log(total) + log_prefactor + roundings * EPSILON)


@njit(nogil=True, cache=True)
def _sum_laws(
    weights: FloatArray, starts: IntArray, scores: IntArray, threshold: int, tilt: float, room: Room
) -> tuple[float, int]:
    """The tilted sum from the laws of two halves of the terms, with what was dropped, and the second one's length."""
    terms = starts.size - 1
    middle = terms // 2
    budget = _LOST / (2 * terms + 1)
    total = lost = 0.0
    length = 1
    for _ in range(2):
        law_a, at_a, _, _, lost_a = build_law(weights, starts, scores, 0, middle, room.buffers_a, budget)
        law_b, at_b, _, _, lost_b = build_law(weights, starts, scores, middle, terms, room.buffers_b, budget)
        total = _join_tilted(law_a, law_b, threshold - at_a - at_b, tilt, room.sums)
        lost, length = lost_a + lost_b, law_b.size
        if lost <= 1e-10 * total:
            break
        budget = NEGLIGIBLE  # the tilt is poor for this row: once more, dropping next to nothing
    return total + 2 * lost + FLOOR, length


@njit(nogil=True, cache=True)
def _find_tilt(
    row: FloatArray, starts: IntArray, scores: IntArray, threshold: int, largest: int, powers: FloatArray
) -> tuple[float, float, float]:
    """About the t <= 0 at which the tilted mean is the threshold, by Newton steps kept between bounds.

    Within two deviations of the mean t is 0: by Cantelli's inequality a tie lies there, and failure_excess counts
    on it. Returns t, threshold minus tilted mean, and tilted deviation.
    """
    low, high, tilt = -_STEEPEST / largest, 0.0, 0.0
    gap = deviation = 0.0
    for step in range(40):
        gap, deviation = _tilted_moments(row, starts, scores, threshold, tilt, powers)
        close = abs(gap) <= 0.5 * deviation + 0.5 or (tilt == 0.0 and gap >= -2.0 * deviation)
        if close or step == 39:  # `powers` stay those of the tilt that is returned
            break
        if gap < 0.0:
            high = tilt
        else:
            low = tilt
        tilt += gap / deviation**2 if deviation > 0.0 else -np.inf
        if not low < tilt < high:
            tilt = 0.5 * (low + high)
    return tilt, gap, deviation


@njit(nogil=True, cache=True)
def _tilted_moments(
    row: FloatArray, starts: IntArray, scores: IntArray, threshold: int, tilt: float, powers: FloatArray
) -> tuple[float, float]:
    """Threshold minus mean, and deviation, of the tilted law; to nearest, they only steer the search."""
    _fill_powers(tilt, powers)
    mean = variance = 0.0
    for term in range(starts.size - 1):
        mass = first = second = 0.0
        for cell in range(starts[term], starts[term + 1]):
            score = scores[cell]
            weight = row[cell] * _power(tilt, score, powers)
            mass += weight
            first += weight * score
            second += weight * score * score
        if mass > 0.0:
            share = 1.0 / mass
            first *= share
            mean += first
            variance += max(second * share - first * first, 0.0)
    return threshold - mean, math.sqrt(variance)


@njit(nogil=True, cache=True)
def _fill_powers(tilt: float, powers: FloatArray) -> None:
    """exp(tilt * score) for the scores that have a place in the table."""
    for score in range(powers.size):
        powers[score] = math.exp(tilt * score)


@njit(nogil=True, cache=True, inline="always")
def _power(tilt: float, score: int, powers: FloatArray) -> float:
    return powers[score] if score < powers.size else math.exp(tilt * score)


@njit(nogil=True, cache=True)
def _tilt_weights(
    row: FloatArray, starts: IntArray, scores: IntArray, tilt: float, powers: FloatArray, weights: FloatArray
) -> tuple[float, int, int]:
    """Fill the normalised weights, given the powers of this tilt.

    Returns the product of the normalisers as fraction * 2**exponent * exp(tilt * shift).
    """
    fraction, exponent, shift = 1.0, 0, 0
    for term in range(starts.size - 1):
        begin, end = starts[term], starts[term + 1]
        mass = 0.0
        faint = False
        for cell in range(begin, end):
            weights[cell] = row[cell] * _power(tilt, scores[cell], powers)
            mass += weights[cell]
            faint = faint or (row[cell] > 0.0 and weights[cell] < 1e-280)
        if faint:  # near underflow: weigh the cells against the heaviest one
            heaviest = _heaviest_cell(row, scores, begin, end, tilt)
            mass = 0.0
            for cell in range(begin, end):
                if row[cell] > 0.0:
                    power = math.exp(tilt * (scores[cell] - scores[heaviest]))
                    weights[cell] = max(row[cell] / row[heaviest] * power, TINY)
                mass += weights[cell]
            shift += scores[heaviest]
            part, more = math.frexp(row[heaviest])
            fraction *= part
            exponent += more
        for cell in range(begin, end):
            weights[cell] /= mass
            if 0.0 < weights[cell] < TINY:
                weights[cell] = TINY
        fraction *= mass
        if fraction < 1e-10:
            fraction, more = math.frexp(fraction)
            exponent += more
    return fraction, exponent, shift


@njit(nogil=True, cache=True)
def _heaviest_cell(row: FloatArray, scores: IntArray, begin: int, end: int, tilt: float) -> int:
    """The cell whose tilted weight is largest."""
    best, heaviest = -np.inf, begin
    for cell in range(begin, end):
        if row[cell] > 0.0 and math.log(row[cell]) + tilt * scores[cell] > best:
            best, heaviest = math.log(row[cell]) + tilt * scores[cell], cell
    return heaviest


@njit(nogil=True, cache=True)
def _join_tilted(law_a: FloatArray, law_b: FloatArray, cut: int, tilt: float, sums: FloatArray) -> float:
    """Sum over a + b <= cut of law_a[a] * law_b[b] * exp(tilt * (cut - a - b))."""
    decay = math.exp(tilt)
    total = lost = 0.0
    for b in range(law_b.size):
        total, lost = add_compensated(total * decay, lost * decay, law_b[b])
        sums[b] = total + lost
    total = lost = 0.0
    last = law_b.size - 1
    for a in range(min(law_a.size, cut + 1)):
        rest = cut - a
        ahead = sums[rest] if rest <= last else sums[last] * math.exp(tilt * (rest - last))
        total, lost = add_compensated(total, lost, law_a[a] * ahead)
    return total + lost
