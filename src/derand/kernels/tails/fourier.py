"""The tilted sum of a row by Fourier inversion, compiled.

Contract: an upper bound of `sum over s <= T of tilted(s) exp(-theta (T - s))` that is at most 1e-9 too large
relative to itself, or -1 where that cannot be proven cheaply (the caller then builds pmfs).
With phi the characteristic function of the tilted pmf and w_k = 2 pi k / N,
(1 - exp(-theta N)) / N * sum over all k of phi(w_k) exp(-i w_k T) / (1 - exp(-theta + i w_k))
is never below that sum, and exceeds it by aliases alone. phi falls like a Gaussian: some twenty frequencies carry
everything. The others are bounded: -log |phi|**2 is at least a trigonometric polynomial, which one cosine transform
evaluates at once for all frequencies. Work on a batch of rows therefore has three steps: `begin_inversion`, the
transform (by the caller), `finish_inversion`.
Cost per row: cells x frequencies kept, and a transform whose length grows like the largest score.
Rounding and bounds: README.md, step 7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray, Numbers
from derand.kernels import LOG_HALF, STEEPEST
from derand.kernels.compiling import compile_loop
from derand.kernels.tails.costs import LAW_CELL, LAW_STUMP, MIN_TERMS_FOR_FOURIER
from derand.kernels.tails.frequencies import DEGREE, FINE, MAX_FREQUENCIES, N_PERIODS, Grid, period_of
from derand.kernels.tails.tilted import (
    HIGH,
    LOW,
    PlaceArray,
    Terms,
    Workspace,
    count_roundings,
    is_possible,
    load_row,
    orient_threshold,
    solve_tilt,
    tilt_cells,
    tilt_stumps,
    tilted_moments,
)

GROUP = 16
"""Transforms come in multiples of that, so that a row's result does not depend on the rows beside it."""
_ACCURACY = 4.4e-10  # what may be added to the sum, relative to it; the sum itself may be as much too large
_ACCURACY_NEAR_TIES = 5e-11
_ACCURACY_OF_FEW = 1e-7  # for fewer than 64 terms
_ACCURACY_OF_FEW_NEAR_TIES = 3e-8
_NEAR_TIE = -2.0
_NEAR_TIE_OF_FEW = -0.8  # logarithms of masses above which the others do not do
ALIASES = 30.0  # the tilted mass more than a period below the threshold is less than exp(-30)
_TRANSFORM_ERROR = 2e-5  # of the cosine transform in single precision, relative to the sum of all coefficients
_FALLEN = -60.0  # log |phi| below which nothing counts
_FAINT = 1e-20  # weights below do not count beside the rounding of a factor
_BLOCK = 32  # points that are dropped at once


class Batch(NamedTuple):
    """Rows on their way through the inversion."""

    side: IntArray
    slot: IntArray
    """Row of the transform, -1 where the method is of no use."""
    limit: IntArray
    """The threshold, as a lower tail of the side."""
    shift: IntArray
    """Of the normalisers' product, by `tilt_cells`."""
    theta: FloatArray
    gap: FloatArray
    """Threshold minus tilted mean."""
    deviation: FloatArray
    log_prefactor: FloatArray
    """log(mass / tilted sum)."""
    expected: FloatArray
    """An estimate of the tilted sum."""
    accuracy: FloatArray
    """What may be added to it, relatively."""
    roundings: FloatArray
    """Of the logarithm of the mass, in units of EPSILON."""
    period_number: IntArray
    """Which period N, counted from the shortest."""
    size: FloatArray
    """Sum of the absolute coefficients of f."""
    curvature: FloatArray
    """Upper bound of f''."""
    decline: FloatArray
    bend: FloatArray
    """f(w) >= decline * w**2 - bend * w**4."""
    weights: FloatArray
    """(rows, cells): for stumps those of score 0, then those of the other score."""
    pairs: FloatArray
    """(n_points,): to work in, for the coefficients of one row."""


def make_batch(n_rows: int, terms: Terms, n_points: int) -> Batch:
    """Arrays for so many rows."""
    whole = {"side", "slot", "limit", "shift", "period_number"}
    kinds = {name: np.int64 if name in whole else np.float64 for name in Batch._fields[:-2]}
    own: dict[str, Numbers] = {name: np.zeros(n_rows, dtype=kind) for name, kind in kinds.items()}
    return Batch(**own, weights=np.empty((n_rows, terms.scores.shape[1])), pairs=np.empty(n_points))


_period_of = compile_loop()(period_of)


@compile_loop()
def tilt_row(
    cells: FloatArray, terms: Terms, threshold: int, batch: Batch, row: int, steepness: float, work: Workspace
) -> bool:
    """Tilt a row of the table on the side that seems to fail, by at least `steepness` over its deviation.

    Whether it can be inverted: that needs a tilt near the mean, too.
    """
    gap, deviation = load_row(cells, terms, threshold, work)
    side = LOW if gap < 0.0 else HIGH
    limit = orient_threshold(terms, side, threshold)
    batch.side[row] = side
    if not is_possible(cells, terms, side, limit, work):
        return False
    tilt, gap, deviation = solve_tilt(cells, terms, side, limit, gap, deviation, work)
    if -tilt * deviation < steepness and deviation > 0.0:
        tilt = max(-steepness / deviation, -STEEPEST / terms.largest)
        gap, deviation = tilted_moments(cells, terms, side, limit, tilt, work)
    if deviation <= 0.0:
        return False
    shift = 0
    if terms.are_stumps:
        stay, move = batch.weights[row, : terms.shifts.size], batch.weights[row, terms.shifts.size :]
        fraction, exponent = tilt_stumps(terms, side, work, stay, move)
    else:
        fraction, exponent, shift = tilt_cells(cells, terms, side, tilt, work.powers, batch.weights[row])
    batch.limit[row], batch.shift[row] = limit, shift
    batch.theta[row], batch.gap[row], batch.deviation[row] = -tilt, gap, deviation
    batch.log_prefactor[row] = math.log(fraction) + exponent * math.log(2.0) + tilt * (shift - limit)
    batch.roundings[row] = count_roundings(terms, tilt, limit, exponent, shift)
    return True


@compile_loop()
def begin_inversion(terms: Terms, grid: Grid, batch: Batch, row: int, coefficients: NDArray[np.float32]) -> bool:
    """Choose the period and fill the coefficients of -f / 2 for a row; False where inversion is of no use."""
    deviation = batch.deviation[row]
    if grid.cost > (LAW_STUMP if terms.are_stumps else LAW_CELL) * terms.scores.shape[1] * deviation:
        return False
    reach = ALIASES / 3 * terms.largest  # Bernstein's inequality
    below = abs(batch.gap[row]) + reach + math.sqrt(reach * reach + 2 * ALIASES * deviation * deviation)
    expected = math.exp(min(batch.gap[row] / deviation, 0.0)) / (1.0 + 2.5 * batch.theta[row] * deviation)
    log_expected = min(batch.log_prefactor[row] + math.log(expected), 0.0)
    accuracy = choose_accuracy(terms.shifts.size, log_expected)
    batch.expected[row], batch.accuracy[row] = expected, accuracy
    if not choose_period(terms, batch, row, below, grid.shortest, log_expected):
        return False
    if terms.are_stumps:
        coefficients[:] = 0.0
        mean = _spread_stumps(terms, grid, batch, row, coefficients)
    else:
        mean = _spread_cells(terms, grid, batch, row, coefficients)
    coefficients[0] -= 0.5 * mean
    return mean > -2.0 * math.log(accuracy * expected)  # f is on the average not too small


@compile_loop()
def choose_accuracy(n_terms: int, log_expected: float) -> float:
    """What may be added to the tilted sum, relatively, given an estimate of the mass."""
    if n_terms < MIN_TERMS_FOR_FOURIER:
        return _ACCURACY_OF_FEW_NEAR_TIES if log_expected > _NEAR_TIE_OF_FEW - 0.3 else _ACCURACY_OF_FEW
    return _ACCURACY_NEAR_TIES if log_expected >= -4.0 else _ACCURACY


@compile_loop()
def choose_period(terms: Terms, batch: Batch, row: int, below: float, shortest: float, log_expected: float) -> bool:
    """Fill in the period of a row, given one without aliases from below and an estimate of the mass; False: no use."""
    theta, accuracy = batch.theta[row], batch.accuracy[row]
    above = (-math.log(0.05 * accuracy) - log_expected) / theta
    batch.period_number[row] = math.ceil(4 * math.log2(max(below, above, shortest) / shortest))
    # roundings of the exponents, which count near ties
    exponents = theta * (terms.starts.size * terms.largest + 4 * (batch.limit[row] + batch.shift[row]))
    return batch.period_number[row] < N_PERIODS and exponents <= 1e5


@compile_loop()
def _spread_stumps(terms: Terms, grid: Grid, batch: Batch, row: int, coefficients: NDArray[np.float32]) -> float:
    """Coefficients of -f / 2, f = sum over terms and j <= 6 of x**j / j, x = 4 p (1 - p) sin(w s / 2)**2; its mean."""
    n_terms, n_bins = terms.shifts.size, grid.shifts.size
    stay, move = batch.weights[row, :n_terms], batch.weights[row, n_terms:]
    powers = np.zeros((n_bins + 1, DEGREE))
    for term in range(n_terms):
        c = 4.0 * stay[term] * move[term]
        square = c * c
        sums = powers[grid.bins[term]]
        sums[0] += c
        sums[1] += square
        sums[2] += square * c
        sums[3] += square * square
        sums[4] += square * square * c
        sums[5] += square * square * square
    mean = size = curvature = decline = bend = 0.0
    for b in range(n_bins):
        square, first, sums = grid.shifts[b] ** 2, powers[b, 0], powers[b]
        decline += 0.25 * first * square
        bend += first * square * square / 48.0
        curvature += 0.5 * square * 0.4375 * first
        for j in range(DEGREE):
            curvature += 0.5 * square * 0.5625 * sums[j]
            sums[j] /= j + 1
            size += sums[j]
            mean += sums[j] * grid.harmonics[0, j]
        for k in range(1, DEGREE + 1):
            coefficient = 0.0
            for j in range(k - 1, DEGREE):
                coefficient += sums[j] * grid.harmonics[k, j]
            coefficients[grid.slots[b, k - 1]] -= 0.5 * grid.factors[b, k - 1] * coefficient
    batch.size[row], batch.curvature[row] = size, curvature
    batch.decline[row], batch.bend[row] = decline, bend
    return mean


@compile_loop()
def _spread_cells(terms: Terms, grid: Grid, batch: Batch, row: int, coefficients: NDArray[np.float32]) -> float:
    """Coefficients of -f / 2, f = sum over terms of slope * x + level; the mean of f.

    x is the sum over pairs of cells of 4 p q sin(w (s - t) / 2)**2.
    """
    weights, scores = batch.weights[row], terms.scores[LOW]  # differences of scores are the same on both sides
    pairs = batch.pairs
    pairs[:] = 0.0
    mean = decline = bend = 0.0
    for term in range(terms.starts.size - 1):
        begin, end = terms.starts[term], terms.starts[term + 1]
        for cell in range(begin, end):
            _pair_up(weights, scores, cell, end, pairs)
        square, fourth, alike = compute_moments(weights, scores, begin, end)
        mean += 1.0 - alike
        decline += square  # sum over pairs of p q (s - t)**2
        bend += (fourth + 3.0 * square * square) / 12.0  # sum over pairs of p q (s - t)**4 / 12
    for k in range(coefficients.size):
        coefficients[k] = 0.5 * grid.slope * pairs[k]
    coefficients[0] *= 2.0
    levels = grid.level * (terms.starts.size - 1)
    batch.size[row], batch.curvature[row] = 2.0 * grid.slope * mean - levels, 2.0 * grid.slope * decline
    batch.decline[row], batch.bend[row] = decline, bend
    return grid.slope * mean + levels


@compile_loop()
def compute_moments(weights: FloatArray, scores: IntArray, begin: int, end: int) -> tuple[float, float, float]:
    """Variance and fourth moment of a term, and the probability that two copies of it are alike."""
    center = square = fourth = alike = 0.0
    for cell in range(begin, end):
        center += weights[cell] * scores[cell]
    for cell in range(begin, end):
        apart = (scores[cell] - center) ** 2
        square += weights[cell] * apart
        fourth += weights[cell] * apart * apart
        alike += weights[cell] * weights[cell]
    return square, fourth, alike


@compile_loop()
def _pair_up(weights: FloatArray, scores: IntArray, cell: int, end: int, pairs: FloatArray) -> None:
    """Add p q to the coefficient of cos(w (s - t)), for a cell and all that follow in its term."""
    points = pairs.size
    for other in range(cell + 1, end):
        apart = abs(scores[cell] - scores[other])
        product = weights[cell] * weights[other]
        if apart >= points:  # the same rule as in `fold`
            apart %= 4 * points
            apart = min(apart, 4 * points - apart)
            product = 0.0 if apart == points else -product if apart > points else product
            apart = 0 if apart == points else 2 * points - apart if apart > points else apart
        pairs[apart] += product


def bound_phi(coefficients: NDArray[np.float32]) -> NDArray[np.float32]:
    """exp(-f / 2), an upper bound of |phi|, at all points of the grid, from the coefficients; destroys those."""
    from scipy.fft import dct

    values = dct(coefficients, type=3, axis=1, overwrite_x=True)
    np.maximum(values, _FALLEN, out=values)
    return np.asarray(np.exp(values, out=values))


@compile_loop()
def finish_inversion(
    terms: Terms, grid: Grid, batch: Batch, row: int, turns: FloatArray, phi_bounds: NDArray[np.float32]
) -> float:
    """The logarithm of the mass, or NaN, given the period's `tabulate` and upper bounds of |phi| on the grid."""
    period = _period_of(grid.shortest, batch.period_number[row])
    kept, dropped = _bound_dropped(grid, batch, row, period, allow_dropped(batch, row), phi_bounds)
    return bound_log_mass(terms, batch, row, period, kept, dropped, turns)


@compile_loop()
def allow_dropped(batch: Batch, row: int) -> float:
    """How much the frequencies that are dropped may add."""
    share = 0.5 if batch.accuracy[row] == _ACCURACY_NEAR_TIES else 0.9  # near ties rounding takes the other half
    return share * batch.accuracy[row] * batch.expected[row]


@compile_loop()
def bound_log_mass(
    terms: Terms, batch: Batch, row: int, period: int, kept: int, dropped: float, turns: FloatArray
) -> float:
    """The logarithm of the mass of a row from so many frequencies; NaN where it is not proven to fail."""
    total = _bound_sum(terms, batch, row, period, kept, dropped, turns)
    if total <= 0.0:
        return np.nan
    mass = math.log(total) + batch.log_prefactor[row] + batch.roundings[row] * EPSILON
    return mass if mass < LOG_HALF else np.nan


@compile_loop()
def _bound_sum(
    terms: Terms, batch: Batch, row: int, period: int, kept: int, dropped: float, turns: FloatArray
) -> float:
    """Upper bound of the tilted sum from so many frequencies, or -1 where it is not known well enough."""
    if kept > MAX_FREQUENCIES or 2 * kept >= period:
        return -1.0
    theta, log_prefactor, accuracy = batch.theta[row], batch.log_prefactor[row], batch.accuracy[row]
    padded = kept if terms.are_stumps else min(-(-kept // 8) * 8, MAX_FREQUENCIES)  # whole vectors
    real, imaginary = np.ones(padded), np.zeros(padded)
    if terms.are_stumps:
        _multiply_stumps(batch.weights[row], terms.shift_places, turns, real, imaginary)
    else:
        _multiply_cells(batch.weights[row], terms.starts, terms.scores[batch.side[row]], turns, real, imaginary)
    roundings = (16 if terms.are_stumps else 32) * terms.starts.size + terms.scores.shape[1] + 64
    total, errors = _sum_kept(real[:kept], imaginary[:kept], batch.limit[row], theta, period)
    bound = total + dropped + errors * roundings * EPSILON
    if not 0.0 < bound <= (1 + accuracy) * total:
        return -1.0
    log_mass = math.log(bound) + log_prefactor
    if accuracy == _ACCURACY and log_mass > _NEAR_TIE:  # the estimate was far off
        return -1.0
    if accuracy == _ACCURACY_OF_FEW and log_mass > _NEAR_TIE_OF_FEW:
        return -1.0
    log_allowed = math.log(0.1 * accuracy * total)  # for aliases from below and from above
    return bound if log_allowed >= max(-ALIASES, -theta * period - log_prefactor) else -1.0


@compile_loop()
def _bound_dropped(
    grid: Grid, batch: Batch, row: int, period: int, allowed: float, phi_bounds: NDArray[np.float32]
) -> tuple[int, float]:
    """How many frequencies to keep, and an upper bound of what all others add, not above `allowed`."""
    step, width = 2 * math.pi / period, math.pi / grid.n_points
    ratio = width / step
    frequencies = ratio + 0.25 / ratio if ratio >= 1.0 else 1.0  # under the tent of a point, at most
    slack = batch.curvature[row] * width * width / 8 + _TRANSFORM_ERROR * batch.size[row]
    factor = 2.002 / period * frequencies * math.exp(0.5 * slack)
    first = grid.n_points
    total = 0.0
    while first > 0:
        block = _BLOCK if first > 2 * _BLOCK else 1  # single points next to frequency 0
        part = factor * _weigh(phi_bounds, grid.point_weights, first - block, block)
        if not total + part <= allowed:
            break
        total += part
        first -= block
    if first == grid.n_points:
        return period, 0.0
    kept = math.ceil((first + 0.5) * ratio) + 1
    return drop_along_parabola(batch.decline[row], batch.bend[row], period, kept, total, allowed)


@compile_loop()
def _weigh(phi_bounds: NDArray[np.float32], weights: FloatArray, at: int, count: int) -> float:
    """Sum of bounds times weights over some points; four running sums are faster than one."""
    if count % 4:
        return phi_bounds[at] * weights[at]
    a = b = c = d = 0.0
    for k in range(at, at + count, 4):
        a += phi_bounds[k] * weights[k]
        b += phi_bounds[k + 1] * weights[k + 1]
        c += phi_bounds[k + 2] * weights[k + 2]
        d += phi_bounds[k + 3] * weights[k + 3]
    return (a + b) + (c + d)


@compile_loop()
def drop_along_parabola(
    decline: float, bend: float, period: int, kept: int, total: float, allowed: float
) -> tuple[int, float]:
    """`_bound_dropped`, continued towards frequency 0, where f is nearly a parabola."""
    step = 2 * math.pi / period
    decline, bend = 0.999999 * decline, 1.000001 * bend
    while kept > 1:
        frequency = (kept - 1) * step
        square = frequency * frequency
        if 2.0 * bend * square > decline or frequency > 1.0:
            break
        part = 2.002 / period / math.sin(frequency) * math.exp(-0.5 * (decline - bend * square) * square)
        if not total + part <= allowed:
            break
        total += part
        kept -= 1
    return kept, total


@compile_loop()
def _multiply_stumps(
    weights: FloatArray, places: PlaceArray, table: FloatArray, real: FloatArray, imaginary: FloatArray
) -> None:
    """The characteristic function of stumps at the frequencies that are kept."""
    n_terms = places.size
    for term in range(n_terms):
        stay, move = weights[term], weights[n_terms + term]
        cosines, sines = table[places[term], 0], table[places[term], 1]
        for k in range(real.size):
            a, b = stay + move * cosines[k], move * sines[k]
            x, y = real[k], imaginary[k]
            real[k], imaginary[k] = x * a - y * b, x * b + y * a


@compile_loop()
def _multiply_cells(
    weights: FloatArray, starts: IntArray, scores: IntArray, table: FloatArray, real: FloatArray, imaginary: FloatArray
) -> None:
    """The same for terms of any number of cells, sorted by score, with the table of `split_levels`."""
    count = real.size
    a, b, c, d = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for term in range(starts.size - 1):
        a[:], b[:] = 0.0, 0.0
        cell, end = starts[term], starts[term + 1]
        while cell < end:
            block = scores[cell] // FINE
            c[:], d[:] = 0.0, 0.0
            while cell < end and block * FINE <= scores[cell] < (block + 1) * FINE:
                last = cell
                for _ in range(3):  # four cells at a time, as long as the block lasts
                    if last + 1 < end and block * FINE <= scores[last + 1] < (block + 1) * FINE:
                        last += 1
                _turn_four(weights, scores, cell, last, block * FINE, table, c, d)
                cell = last + 1
            coarse = table[np.uint64(FINE + block)]
            cosines, sines = coarse[0], coarse[1]
            for k in range(count):
                a[k] += c[k] * cosines[k] - d[k] * sines[k]
                b[k] += c[k] * sines[k] + d[k] * cosines[k]
        for k in range(count):
            x, y = real[k], imaginary[k]
            real[k], imaginary[k] = x * a[k] - y * b[k], x * b[k] + y * a[k]


@compile_loop()
def _turn_four(
    weights: FloatArray,
    scores: IntArray,
    first: int,
    last: int,
    base: int,
    table: FloatArray,
    c: FloatArray,
    d: FloatArray,
) -> None:
    """Add up to four cells of a block, each turned by all frequencies."""
    second, third = min(first + 1, last), min(first + 2, last)
    p = weights[first]
    q = weights[second] if second > first else 0.0
    r = weights[third] if third > second else 0.0
    s = weights[last] if last > third else 0.0
    if p + q + r + s <= _FAINT:
        return
    at, to = np.uint64(scores[first] - base), np.uint64(scores[second] - base)
    on, up = np.uint64(scores[third] - base), np.uint64(scores[last] - base)
    for k in range(c.size):
        c[k] += (p * table[at, 0, k] + q * table[to, 0, k]) + (r * table[on, 0, k] + s * table[up, 0, k])
    for k in range(d.size):
        d[k] += (p * table[at, 1, k] + q * table[to, 1, k]) + (r * table[on, 1, k] + s * table[up, 1, k])


@compile_loop()
def _sum_kept(real: FloatArray, imaginary: FloatArray, limit: int, theta: float, period: int) -> tuple[float, float]:
    """The sum over the frequencies that are kept, and by how much an error of all values of phi can change it."""
    decay, rest = math.exp(-theta), -math.expm1(-theta)
    total = errors = 0.0
    for k in range(real.size):
        cosine, sine = _unit_root(k * (limit % period), period)  # phi * exp(-i w limit)
        x, y = real[k] * cosine + imaginary[k] * sine, imaginary[k] * cosine - real[k] * sine
        half = math.sin(math.pi * k / period)  # over 1 - exp(-theta + i w), without cancellation
        a, b = rest + 2 * decay * half * half, -decay * math.sin(2 * math.pi * k / period)
        square = a * a + b * b
        share = (1.0 if k == 0 else 2.0) / period
        total += share * (x * a + y * b) / square
        errors += share / math.sqrt(square)
    return -math.expm1(-theta * period) * total, errors


@compile_loop()
def _unit_root(number: int, period: int) -> tuple[float, float]:
    """Cosine and sine of 2 pi number / period, the argument reduced in integers."""
    at = number % period
    if 2 * at > period:
        angle = 2 * math.pi * (period - at) / period
        return math.cos(angle), -math.sin(angle)
    angle = 2 * math.pi * at / period
    return math.cos(angle), math.sin(angle)
