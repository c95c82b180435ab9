"""The failing tail of rows of stumps by Fourier inversion on the GPU: one block of threads per row.

Contract: `failures` of README.md for the rows that can be certified so; the others are marked, and pmfs are built for
them (`groups.py`), from the cells that this kernel leaves in device memory. The method is that of
`tails/fourier.py`; what differs is how dropped frequencies are bounded: -log |phi|**2 is at least a polynomial of
degree six in sin(w s / 2)**2 for each shift s, and single precision evaluates it at every frequency of the period, so
that neither a transform nor anything between points of a grid is needed. Cosines are computed, not looked up: a period
may have any length. Rounding and bounds: README.md, steps 7 and 8.
Cost per row: groups of equal shifts x frequencies in single, terms x frequencies kept in double precision.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float32, float64
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels import LOG_HALF
from derand.kernels.cuda.device import OnDevice
from derand.kernels.cuda.pmfs import PARTS, THREADS, add_up, compile_kernel
from derand.kernels.cuda.stumps import (
    BY_INVERSION,
    NOT_FINITE,
    OPEN,
    PROVEN,
    SHIFT,
    TO_DO,
    are_finite,
    compute_moments,
    count_roundings,
    load_cells,
    lowest_score,
    solve_tilt,
    steepen_tilt,
    tilt_cells,
)
from derand.kernels.tails.costs import MIN_TERMS_FOR_FOURIER, WHOLE_SINGLES

SinglesArray = NDArray[np.float32]

NEAR = 128
"""Fewer frequencies than that are kept."""
_ACCURACY = 4.4e-10  # what may be added to the sum, relative to it; the sum itself may be as much too large
_ACCURACY_NEAR_TIES = 5e-11
_ALIASES = 30.0  # the tilted mass more than a period below the threshold is less than exp(-30)
_DEGREE = 6  # of the Taylor polynomial of -log(1 - x)
_MEANS = tuple(math.comb(2 * j, j) / 4**j / j for j in range(1, _DEGREE + 1))  # of sin**(2 j) / j over a turn
_AT_ONCE = 4  # frequencies of a thread that share what is known of a group
_ZERO, _ONE, _FOUR = np.float32(0.0), np.float32(1.0), np.float32(4.0)
_MAGIC = np.float32(1.5 * 2**23)  # added and taken off, it rounds to the nearest whole number
_S0, _S1, _S2, _S3, _S4 = (
    np.float32(c)
    for c in (3.1415926395313267, -5.167709989817586, 2.5500753126697617, -0.5982750001124723, 0.07762084739515959)
)
"""Of y, y**3, ..., y**9: the Chebyshev series of sin(pi y) for |y| < 0.502; its square is off by less than 5e-7."""


def count_shared_bytes(n_terms: int, n_groups: int) -> int:
    """Bytes of shared memory that a row takes."""
    return 16 * n_terms + 4 * _DEGREE * n_groups + 4 * NEAR + 8


@compile_kernel
def invert_rows(
    x: FloatArray,
    model: FloatArray,
    groups: IntArray,
    thresholds: IntArray,
    noise: int,
    magnitude: float,
    whole: int,
    must_look: int,
    n_rows: int,
    table: FloatArray,
    state: NDArray[np.int8],
    log_failure: FloatArray,
) -> None:
    """Fill the cells of each row into `table`, and state and log of the failing mass where inversion settles them."""
    work, singles = cuda.shared.array(0, float64), cuda.shared.array(0, float32)
    parts = cuda.shared.array(PARTS, float64)
    n_terms = model.shape[1]
    shifts, largest = model[SHIFT], model[SHIFT, n_terms - 1]
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        if must_look and not are_finite(x[row], parts):
            if cuda.threadIdx.x == 0:
                state[row] = NOT_FINITE
            continue
        load_cells(x[row], model, noise, magnitude, work)
        for cell in range(cuda.threadIdx.x, 2 * n_terms, THREADS):
            table[row, cell] = work[cell]
        mean, _ = compute_moments(work, shifts, 0, 0.0, parts)
        side = 0 if thresholds[row] < mean else 1
        limit = thresholds[row] if side == 0 else whole - thresholds[row] - 1
        found, log_mass = TO_DO, 0.0
        if limit < lowest_score(work, shifts, side, parts):
            found, log_mass = (PROVEN if side == 0 else OPEN), -math.inf
        elif n_terms >= MIN_TERMS_FOR_FOURIER:
            log_mass = _log_tail((work, singles, parts), shifts, groups, side, limit, largest)
            if log_mass < LOG_HALF:
                found = (PROVEN if side == 0 else OPEN) + BY_INVERSION
        if cuda.threadIdx.x == 0:
            state[row], log_failure[row] = found, log_mass
        cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def _log_tail(  # noqa: PLR0911 - each return is one reason for which a pmf is built instead
    memory: OnDevice, shifts: FloatArray, groups: IntArray, side: int, limit: int, largest: float
) -> float:
    """Upper bound of the logarithm of the mass at or below `limit`; infinite where inversion does not settle it."""
    work, singles, parts = memory
    n_terms = shifts.size
    tilt, gap, deviation = solve_tilt(work, shifts, side, limit, largest, parts)
    if deviation <= 0.0:
        return math.inf
    if -tilt * deviation < 1.0:
        tilt = steepen_tilt(deviation, largest)
        mean, deviation = compute_moments(work, shifts, side, tilt, parts)
        gap = limit - mean
    theta = -tilt
    if deviation <= 0.0 or theta * (n_terms * largest + 4.0 * limit) > 1e5:  # roundings that count near ties
        return math.inf
    log_fraction, exponent = tilt_cells(work, shifts, side, tilt, parts)
    log_prefactor = log_fraction + exponent * math.log(2.0) + theta * limit
    expected = math.exp(min(gap / deviation, 0.0)) / (1.0 + 2.5 * theta * deviation)
    log_expected = min(log_prefactor + math.log(expected), 0.0)
    accuracy = _ACCURACY_NEAR_TIES if log_expected >= -4.0 else _ACCURACY
    period = _choose_period(gap, deviation, theta, accuracy, log_expected, largest)
    if 0.5 * period * largest >= WHOLE_SINGLES:
        return math.inf
    size, mean = _sum_powers(work, singles, parts, groups, n_terms)
    if mean <= -2.0 * math.log(accuracy * expected):  # |phi| is on the average not small enough
        return math.inf
    share = 0.9 if accuracy == _ACCURACY else 0.5  # near ties rounding takes the other half
    slack = (groups.size + 64.0) * 2.0**-23 * size
    allowed = share * accuracy * expected
    kept, dropped = _bound_dropped(memory, shifts, groups, theta, period, slack, allowed)
    if kept >= NEAR or 2 * kept >= period:
        return math.inf
    total, errors = _sum_kept(memory, shifts, groups, (side, limit), theta, period, kept)
    bound = total + dropped + errors * (18.0 * n_terms + 80.0) * EPSILON
    if not 0.0 < bound <= (1.0 + accuracy) * total:
        return math.inf
    log_bound = math.log(bound)
    if accuracy > _ACCURACY_NEAR_TIES and log_bound + log_prefactor > -2.0:  # the estimate was far off
        return math.inf
    if math.log(0.1 * accuracy * total) < max(-_ALIASES, -theta * period - log_prefactor):
        return math.inf
    roundings = 2.0 * n_terms + count_roundings(n_terms, tilt, limit, largest, log_fraction, exponent)
    return log_bound + log_prefactor + (roundings + 2.0 * abs(log_bound)) * EPSILON


@cuda.jit(device=True, fastmath=False)
def _choose_period(
    gap: float, deviation: float, theta: float, accuracy: float, log_expected: float, largest: float
) -> float:
    """The period N: long enough for aliases on both sides to be small, a whole number."""
    reach = _ALIASES / 3.0 * largest  # Bernstein's inequality
    below = abs(gap) + reach + math.sqrt(reach * reach + 2.0 * _ALIASES * deviation * deviation)
    above = (-math.log(0.05 * accuracy) - log_expected) / theta
    return math.ceil(max(below, above, 64.0))


@cuda.jit(device=True, fastmath=False)
def _sum_powers(
    work: FloatArray, singles: SinglesArray, parts: FloatArray, groups: IntArray, n_terms: int
) -> tuple[float, float]:
    """Sums of powers of c = 4 p (1 - p) over the terms of each group, power j divided by j.

    Returns the sum of all powers, not divided, and the mean of f = sum over terms and j <= 6 of x**j / j,
    x = c sin(w s / 2)**2, over all frequencies.
    """
    start = np.uint64(4 * n_terms)
    size = mean = 0.0
    for group in range(cuda.threadIdx.x, groups.size - 1, THREADS):
        p1 = p2 = p3 = p4 = p5 = p6 = 0.0
        for term in range(groups[group], groups[group + 1]):
            c = 4.0 * work[term] * work[n_terms + term]
            square = c * c
            p1 += c
            p2 += square
            p3 += square * c
            p4 += square * square
            p5 += square * square * c
            p6 += square * square * square
        size += p1 + p2 + p3 + p4 + p5 + p6
        mean += p1 * _MEANS[0] + p2 * _MEANS[1] + p3 * _MEANS[2]
        mean += p4 * _MEANS[3] + p5 * _MEANS[4] + p6 * _MEANS[5]
        at = start + np.uint64(_DEGREE * group)
        singles[at] = p1
        singles[at + np.uint64(1)] = p2 / 2.0
        singles[at + np.uint64(2)] = p3 / 3.0
        singles[at + np.uint64(3)] = p4 / 4.0
        singles[at + np.uint64(4)] = p5 / 5.0
        singles[at + np.uint64(5)] = p6 / 6.0
    return add_up(parts, size, mean)


@cuda.jit(device=True, fastmath=False)
def _square_of_sine(turns: np.float32, inverse: np.float32, period: np.float32) -> np.float32:
    """sin(pi turns / period)**2 for a whole number of turns below 2**24, in single precision."""
    whole = (turns * inverse + _MAGIC) - _MAGIC
    y = (turns - whole * period) * inverse
    u = y * y
    sine = ((((_S4 * u + _S3) * u + _S2) * u + _S1) * u + _S0) * y
    return sine * sine


@cuda.jit(device=True, fastmath=False)
def _bound_dropped(
    memory: OnDevice, shifts: FloatArray, groups: IntArray, theta: float, period: float, slack: float, allowed: float
) -> tuple[int, float]:
    """How many frequencies to keep, NEAR where that is too few, and an upper bound of what all others add."""
    _, singles, parts = memory
    thread, last = cuda.threadIdx.x, int(period) // 2
    inverse, length = np.float32(1.0 / period), np.float32(period)
    decay, rest = np.float32(math.exp(-theta)), np.float32(-math.expm1(-theta))
    lift = np.float32(0.5 * slack)
    first = np.uint64(4 * shifts.size + _DEGREE * (groups.size - 1))  # where the lowest frequencies are noted
    beyond = 0.0
    for start in range(thread, last + 1, _AT_ONCE * THREADS):
        k0, k1 = np.float32(start), np.float32(start + THREADS)
        k2, k3 = np.float32(start + 2 * THREADS), np.float32(start + 3 * THREADS)
        f0 = f1 = f2 = f3 = _ZERO
        at = np.uint64(4 * shifts.size)
        for group in range(groups.size - 1):
            shift = np.float32(shifts[groups[group]])
            p1, p2, p3 = singles[at], singles[at + np.uint64(1)], singles[at + np.uint64(2)]
            p4, p5, p6 = singles[at + np.uint64(3)], singles[at + np.uint64(4)], singles[at + np.uint64(5)]
            at += np.uint64(_DEGREE)
            s = _square_of_sine(k0 * shift, inverse, length)
            f0 += (((((p6 * s + p5) * s + p4) * s + p3) * s + p2) * s + p1) * s
            s = _square_of_sine(k1 * shift, inverse, length)
            f1 += (((((p6 * s + p5) * s + p4) * s + p3) * s + p2) * s + p1) * s
            s = _square_of_sine(k2 * shift, inverse, length)
            f2 += (((((p6 * s + p5) * s + p4) * s + p3) * s + p2) * s + p1) * s
            s = _square_of_sine(k3 * shift, inverse, length)
            f3 += (((((p6 * s + p5) * s + p4) * s + p3) * s + p2) * s + p1) * s
        for i in range(_AT_ONCE):
            k, f = (k0, f0) if i == 0 else (k1, f1) if i == 1 else (k2, f2) if i == 2 else (k3, f3)
            number = start + i * THREADS
            if number <= last:
                bound = _weigh(k, f, lift, inverse, length, decay, rest)
                if number < NEAR:
                    singles[first + np.uint64(number)] = bound
                else:
                    beyond += bound
    factor = 2.002 / period
    far = factor * add_up(parts, beyond, 0.0)[0]
    too_few = 0.0
    for number in range(max(thread, 1), NEAR, THREADS):
        near = 0.0  # if this frequency and all above are left out
        for above in range(number, min(last + 1, NEAR)):
            near += singles[first + np.uint64(above)]
        too_few += 0.0 if far + factor * near <= allowed else 1.0
    kept = int(add_up(parts, too_few, 0.0)[0]) + 1
    near = 0.0
    for other in range(kept + thread, min(last + 1, NEAR), THREADS):
        near += singles[first + np.uint64(other)]
    return kept, far + factor * add_up(parts, near, 0.0)[0]


@cuda.jit(device=True, fastmath=False)
def _weigh(
    k: np.float32,
    f: np.float32,
    lift: np.float32,
    inverse: np.float32,
    length: np.float32,
    decay: np.float32,
    rest: np.float32,
) -> np.float32:
    """exp(-f / 2) / |1 - exp(-theta + i w)|, the denominator's square being rest**2 + 4 decay sin(w / 2)**2."""
    square = rest * rest + _FOUR * decay * _square_of_sine(k, inverse, length)
    return np.float32(math.exp(lift - np.float32(0.5) * f)) / np.float32(math.sqrt(square))


@cuda.jit(device=True, fastmath=False)
def _unit_root(number: float, period: float) -> tuple[float, float]:
    """Cosine and sine of 2 pi number / period, the argument reduced exactly."""
    at = number - period * math.floor(number / period + 0.5)
    angle = 2.0 * math.pi * at / period
    return math.cos(angle), math.sin(angle)


@cuda.jit(device=True, fastmath=False)
def _sum_kept(
    memory: OnDevice,
    shifts: FloatArray,
    groups: IntArray,
    tail: tuple[int, int],
    theta: float,
    period: float,
    kept: int,
) -> tuple[float, float]:
    """The sum over the frequencies that are kept, and by how much an error of all values of phi can change it.

    The threads are spread over frequencies and, as far as they reach, over groups of terms.
    """
    (work, _, parts), (side, limit), thread = memory, tail, cuda.threadIdx.x
    width = THREADS
    while width // 2 >= kept:
        width //= 2
    layers = THREADS // width
    stay, move = np.uint64(side * shifts.size), np.uint64((1 - side) * shifts.size)
    decay, rest = math.exp(-theta), -math.expm1(-theta)
    angle = limit - period * math.floor(limit / period)
    total = errors = 0.0
    for start in range(0, kept, width):
        k = start + thread % width
        real, imaginary = 1.0, 0.0
        for group in range(thread // width, groups.size - 1, layers):
            cosine, sine = _unit_root(k * shifts[groups[group]], period)
            for term in range(groups[group], groups[group + 1]):
                place = np.uint64(term)
                light, heavy = work[stay + place], work[move + place]
                a, b = light + heavy * cosine, heavy * sine
                real, imaginary = real * a - imaginary * b, real * b + imaginary * a
        parts[thread], parts[THREADS + thread] = real, imaginary
        cuda.syncthreads()
        if thread < width and k < kept:
            for layer in range(1, layers):
                a, b = parts[layer * width + thread], parts[THREADS + layer * width + thread]
                real, imaginary = real * a - imaginary * b, real * b + imaginary * a
            cosine, sine = _unit_root(k * angle, period)  # phi * exp(-i w limit)
            a, b = real * cosine + imaginary * sine, imaginary * cosine - real * sine
            half = math.sin(math.pi * k / period)  # over 1 - exp(-theta + i w), without cancellation
            over, aside = rest + 2.0 * decay * half * half, -decay * math.sin(2.0 * math.pi * k / period)
            square = over * over + aside * aside
            share = (1.0 if k == 0 else 2.0) / period
            total += share * (a * over + b * aside) / square
            errors += share / math.sqrt(square)
        cuda.syncthreads()
    total, errors = add_up(parts, total, errors)
    return -math.expm1(-theta * period) * total, errors
