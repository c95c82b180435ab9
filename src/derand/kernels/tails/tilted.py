"""Exponential tilting of a row's cells, and the failing tail from tilted pmfs, compiled.

Contract: with weights w_c = p_c exp(t s_c) / M_i, t <= 0, the pmf of the score is tilted so that its mean lies near
the threshold T, and P(S <= T) = prod M_i * exp(-t T) * sum over s <= T of tilted(s) exp(t (T - s)),
where the sum is of order one however small the tail is. So relative accuracy is kept far below the smallest double,
and the pmf can be cut to the few deviations around T that carry mass: what is dropped is added to the bound.
Cost per row: some passes over the cells for the tilt; by pmfs, terms x cells x (about 12 tilted deviations).
Rounding: README.md, step 6. Any t is sound, a good one is fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray
from derand.kernels import FLOOR, NEGLIGIBLE, STEEPEST
from derand.kernels.compiling import compile_loop
from derand.kernels.tails.pmfs import add_compensated, build_pmf, possible_scores

PlaceArray = NDArray[np.uint64]  # unsigned: a signed index is checked for wrapping around, which no loop survives

_FINE = 64  # powers of more scores than four times that are products of two
_LOST = 1e-13  # mass that a first pass may drop, relative to the whole tilted pmf
LOW, HIGH = 0, 1
"""The sides: P(S <= T), and P(S > T), which is a lower tail when the scores are mirrored."""


class Terms(NamedTuple):
    """The terms of a model, prepared; arrays with two rows hold both sides."""

    starts: IntArray
    n_cells: int
    """How many sums and products a path takes at most: the cells, before those of equal score were merged."""
    scores: IntArray
    """(2, cells): the scores, and each counted from its term's largest."""
    whole: int
    """Largest sum of scores."""
    largest: int
    """Largest score."""
    levels: FloatArray
    """Distinct scores of both sides, increasing."""
    places: PlaceArray
    """(2, cells): place of each score among the levels."""
    are_stumps: bool
    """Whether every term has two cells."""
    stump_cells: PlaceArray
    """(2, terms), for stumps: the cell of score 0, and the other one."""
    shifts: FloatArray
    """(terms,): largest score of each term."""
    shift_places: PlaceArray
    """(terms,): its place among the levels."""


class Workspace(NamedTuple):
    """Arrays to work in."""

    powers: FloatArray
    """exp(tilt * level) for each level."""
    stumps: FloatArray
    """(2, terms), for stumps: the probability of score 0, and of the other score."""
    masses: FloatArray
    """(terms,): the normalisers of stumps."""
    weights: FloatArray
    """Of all cells."""
    buffers_a: FloatArray
    buffers_b: FloatArray
    """Two pmfs for each half of the terms."""
    sums: FloatArray
    """As long as a pmf of the second half."""


def prepare_terms(starts: IntArray, scores: IntArray, n_cells: int) -> Terms:
    """What the kernels below need to know of a model, which had so many cells before some were merged."""
    counts = np.diff(starts)
    most = np.maximum.reduceat(scores, starts[:-1]) if scores.size else np.zeros(0, dtype=np.int64)
    sides = np.stack([scores, np.repeat(most, counts) - scores])
    levels = np.unique(sides)
    are_stumps = bool((counts == 2).all())
    other = starts[:-1] + (scores[starts[:-1]] == 0) if are_stumps else starts[:0]
    zero = 2 * starts[: other.size] + 1 - other
    return Terms(
        starts=starts,
        n_cells=n_cells,
        scores=sides,
        whole=int(most.sum()),
        largest=max(int(most.max(initial=0)), 1),
        levels=levels.astype(np.float64),
        places=np.searchsorted(levels, sides).astype(np.uint64),
        are_stumps=are_stumps,
        stump_cells=np.stack([zero, other]).astype(np.uint64),
        shifts=most.astype(np.float64),
        shift_places=np.searchsorted(levels, most).astype(np.uint64),
    )


def make_workspace(terms: Terms) -> Workspace:
    """Arrays for one thread."""
    half = terms.shifts.size // 2
    size = int(np.sort(terms.shifts)[half:].sum()) + 1
    return Workspace(
        powers=np.empty(terms.levels.size),
        stumps=np.empty((2, terms.shifts.size)),
        masses=np.empty(terms.shifts.size),
        weights=np.empty(terms.scores.shape[1]),
        buffers_a=np.empty((2, size + 2 * terms.largest)),
        buffers_b=np.empty((2, size + 2 * terms.largest)),
        sums=np.empty(size),
    )


@compile_loop()
def orient_threshold(terms: Terms, side: int, threshold: int) -> int:
    """The threshold as a lower tail of that side's scores."""
    return threshold if side == LOW else terms.whole - threshold - 1


@compile_loop()
def load_row(row: FloatArray, terms: Terms, threshold: int, work: Workspace) -> tuple[float, float]:
    """Lay a row of stumps out in the workspace; threshold minus mean, and deviation, of the untilted pmf."""
    if terms.are_stumps:
        for term in range(terms.shifts.size):
            work.stumps[0, term] = row[terms.stump_cells[0, term]]
            work.stumps[1, term] = row[terms.stump_cells[1, term]]
    return tilted_moments(row, terms, LOW, threshold, 0.0, work)


@compile_loop()
def is_possible(row: FloatArray, terms: Terms, side: int, limit: int, work: Workspace) -> bool:
    """Whether an outcome of positive probability has a score of at most `limit`."""
    least = 0.0
    if terms.are_stumps:
        for term in range(terms.shifts.size):
            if work.stumps[side, term] == 0.0:
                least += terms.shifts[term]
    else:
        for term in range(terms.starts.size - 1):
            least += possible_scores(row, terms.scores[side], terms.starts[term], terms.starts[term + 1], 0.0)[0]
    return limit >= least


@compile_loop()
def log_tail_by_pmfs(row: FloatArray, terms: Terms, side: int, threshold: int, work: Workspace) -> float:
    """Upper bound of the logarithm of the mass on that side of the threshold; -inf if and only if it is impossible."""
    limit = orient_threshold(terms, side, threshold)
    gap, deviation = load_row(row, terms, threshold, work)
    if not is_possible(row, terms, side, limit, work):
        return -np.inf
    tilt, _, _ = solve_tilt(row, terms, side, limit, gap, deviation, work)
    fraction, exponent, shift = tilt_cells(row, terms, side, tilt, work.powers, work.weights)
    log_prefactor = math.log(fraction) + exponent * math.log(2.0) + tilt * (shift - limit)
    total, length = _sum_pmfs(work.weights, terms, side, limit, tilt, work)
    roundings = count_roundings(terms, tilt, limit, exponent, shift) + (2 * length if tilt < 0.0 else 0)
    return math.log(total) + log_prefactor + roundings * EPSILON


@compile_loop()
def count_roundings(terms: Terms, tilt: float, limit: int, exponent: int, shift: int) -> float:
    """Of the weights, the normalisers' product and the final logarithm, in units of EPSILON (README.md, step 6)."""
    n_terms = terms.starts.size - 1
    of_term = (8 if terms.levels.size <= 4 * _FINE else 16) - tilt * terms.largest
    return terms.n_cells + n_terms * of_term + 512 + 2 * abs(exponent) - 4 * tilt * (shift + limit)


@compile_loop()
def _sum_pmfs(
    weights: FloatArray, terms: Terms, side: int, limit: int, tilt: float, work: Workspace
) -> tuple[float, int]:
    """The tilted sum from the pmfs of two halves of the terms, with what was dropped, and the second one's length."""
    starts, scores = terms.starts, terms.scores[side]
    order = _order_by_variance(weights, starts, scores)
    first, second = order[1::2], order[0::2]
    budget = _LOST / (2 * order.size + 1)
    total = lost = 0.0
    length = 1
    for _ in range(2):
        pmf_a, at_a, _, _, lost_a = build_pmf(weights, starts, scores, first, work.buffers_a, terms.largest, budget)
        pmf_b, at_b, _, _, lost_b = build_pmf(weights, starts, scores, second, work.buffers_b, terms.largest, budget)
        total = _join_tilted(pmf_a, pmf_b, limit - at_a - at_b, tilt, work.sums)
        lost, length = lost_a + lost_b, pmf_b.size
        if lost <= 1e-10 * total:
            break
        budget = NEGLIGIBLE  # the tilt is poor for this row: once more, dropping next to nothing
    return total + 2 * lost + FLOOR, length


@compile_loop()
def _order_by_variance(weights: FloatArray, starts: IntArray, scores: IntArray) -> IntArray:
    """The terms from small to large variance, sorted by powers of two: a pmf stays narrow for as long as possible."""
    n_terms = starts.size - 1
    ranks, counts = np.empty(n_terms, dtype=np.int64), np.zeros(130, dtype=np.int64)  # how many rank below
    for term in range(n_terms):
        first = second = 0.0
        for cell in range(starts[term], starts[term + 1]):
            first += weights[cell] * scores[cell]
            second += weights[cell] * scores[cell] * scores[cell]
        _, exponent = math.frexp(max(second - first * first, 0.0))
        ranks[term] = min(max(exponent + 64, 0), 128)
        counts[ranks[term] + 1] += 1
    for rank in range(counts.size - 1):
        counts[rank + 1] += counts[rank]
    order = np.empty(n_terms, dtype=np.int64)
    for term in range(n_terms):
        order[counts[ranks[term]]] = term
        counts[ranks[term]] += 1
    return order


@compile_loop()
def solve_tilt(
    row: FloatArray, terms: Terms, side: int, limit: int, gap: float, deviation: float, work: Workspace
) -> tuple[float, float, float]:
    """About the t <= 0 at which the tilted mean is the threshold, by Newton steps kept between bounds.

    Within two deviations of the mean t is 0: by Cantelli's inequality a tie lies there, and failure_excess counts
    on it. Begins with the results of `load_row`. Returns t, limit minus tilted mean, and tilted deviation;
    `work.powers` are those of t.
    """
    low, high, tilt = -STEEPEST / terms.largest, 0.0, 0.0
    if side == HIGH:
        gap = -gap - 1.0
    for step in range(40):
        if step > 0:
            gap, deviation = tilted_moments(row, terms, side, limit, tilt, work)
        if is_close(tilt, gap, deviation) or step == 39:
            break
        tilt, low, high = step_tilt(tilt, gap, deviation, low, high)
    return tilt, gap, deviation


@compile_loop()
def is_close(tilt: float, gap: float, deviation: float) -> bool:
    """Whether the tilted mean is near enough to the threshold."""
    return abs(gap) <= 0.5 * deviation + 0.5 or (tilt == 0.0 and gap >= -2.0 * deviation)


@compile_loop()
def step_tilt(tilt: float, gap: float, deviation: float, low: float, high: float) -> tuple[float, float, float]:
    """The next tilt, by a Newton step kept between bounds, and the bounds."""
    if gap < 0.0:
        high = tilt
    else:
        low = tilt
    tilt += gap / (deviation * deviation) if deviation > 0.0 else -math.inf
    if not low < tilt < high:
        tilt = 0.5 * (low + high)
    return tilt, low, high


@compile_loop()
def fill_powers(levels: FloatArray, tilt: float, powers: FloatArray) -> None:
    """exp(tilt * level) for increasing whole levels; of many, those of multiples of 64 times those of the rest."""
    if levels.size <= 4 * _FINE:
        for place in range(levels.size):
            powers[place] = math.exp(tilt * levels[place])
        return
    fine = np.empty(_FINE)
    for rest in range(_FINE):
        fine[rest] = math.exp(tilt * rest)
    block, coarse = -1, 0.0
    for place in range(levels.size):
        level = int(levels[place])
        if level // _FINE != block:
            block = level // _FINE
            coarse = math.exp(tilt * (block * _FINE))
        powers[place] = coarse * fine[level % _FINE]


@compile_loop()
def tilted_moments(
    row: FloatArray, terms: Terms, side: int, limit: int, tilt: float, work: Workspace
) -> tuple[float, float]:
    """Threshold minus mean, and deviation, of the tilted pmf; to nearest, they only steer. Fills `work.powers`."""
    fill_powers(terms.levels, tilt, work.powers)
    if terms.are_stumps:
        stay, move = work.stumps[side], work.stumps[1 - side]
        mean, variance = _moments_of_stumps(stay, move, terms.shifts, terms.shift_places, work.powers)
    else:
        mean, variance = _moments_of_cells(row, terms.starts, terms.scores[side], terms.places[side], work.powers)
    return limit - mean, math.sqrt(variance)


@compile_loop(error_model="numpy")
def _moments_of_stumps(
    stay: FloatArray, move: FloatArray, shifts: FloatArray, places: PlaceArray, powers: FloatArray
) -> tuple[float, float]:
    """Mean and variance of the tilted pmf of stumps."""
    mean = variance = 0.0
    for term in range(stay.size):
        heavy = move[term] * powers[places[term]]
        part = shifts[term] * (heavy / max(stay[term] + heavy, TINY))
        mean += part
        variance += part * (shifts[term] - part)
    return mean, variance


@compile_loop()
def _moments_of_cells(
    row: FloatArray, starts: IntArray, scores: IntArray, places: PlaceArray, powers: FloatArray
) -> tuple[float, float]:
    """Mean and variance of the tilted pmf of terms of any number of cells."""
    mean = variance = 0.0
    for term in range(starts.size - 1):
        mass = first = second = 0.0
        for cell in range(starts[term], starts[term + 1]):
            score = scores[cell]
            weight = row[cell] * powers[places[cell]]
            mass += weight
            first += weight * score
            second += weight * score * score
        if mass > 0.0:
            share = 1.0 / mass
            first *= share
            mean += first
            variance += max(second * share - first * first, 0.0)
    return mean, variance


@compile_loop()
def tilt_cells(
    row: FloatArray, terms: Terms, side: int, tilt: float, powers: FloatArray, weights: FloatArray
) -> tuple[float, int, int]:
    """Fill the normalised weights of all cells, given the powers of this tilt.

    Returns the product of the normalisers as fraction * 2**exponent * exp(tilt * shift).
    """
    scores, places = terms.scores[side], terms.places[side]
    fraction, exponent, shift = 1.0, 0, 0
    for term in range(terms.starts.size - 1):
        begin, end = terms.starts[term], terms.starts[term + 1]
        mass = 0.0
        faint = False
        for cell in range(begin, end):
            weights[cell] = row[cell] * powers[places[cell]]
            mass += weights[cell]
            faint = faint or (row[cell] > 0.0 and weights[cell] < 1e-280)
        if faint:  # near underflow: weigh the cells against the heaviest one
            heaviest = heaviest_cell(row, scores, begin, end, tilt)
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
        fraction, exponent = _normalise(fraction * mass, exponent)
    return fraction, exponent, shift


@compile_loop()
def tilt_stumps(terms: Terms, side: int, work: Workspace, stay: FloatArray, move: FloatArray) -> tuple[float, int]:
    """`tilt_cells` for the row of stumps in the workspace: fills the weights of score 0 and of the other score.

    Nothing underflows: one cell of each stump has a probability of 1/2 or more, and no power is below exp(-700).
    """
    powers, places = work.powers, terms.shift_places
    for term in range(move.size):
        move[term] = powers[places[term]]
    _weigh_stumps(work.stumps[side], work.stumps[1 - side], work.masses, stay, move)
    fraction, exponent = 1.0, 0
    for term in range(stay.size):
        fraction, exponent = _normalise(fraction * work.masses[term], exponent)
    return fraction, exponent


@compile_loop(error_model="numpy")
def _weigh_stumps(low: FloatArray, high: FloatArray, masses: FloatArray, stay: FloatArray, move: FloatArray) -> None:
    """Weights of stumps, given their powers in `move`; one loop of vector instructions."""
    for term in range(low.size):
        heavy = high[term] * move[term]
        heavy = heavy if (heavy >= TINY) | (high[term] == 0.0) else TINY
        mass = low[term] + heavy
        masses[term] = mass
        stay[term] = low[term] / mass
        move[term] = heavy / mass


@compile_loop(inline="always")
def _normalise(fraction: float, exponent: int) -> tuple[float, int]:
    """The same fraction * 2**exponent, the fraction kept from underflow and overflow."""
    if fraction < 1e-10 or fraction > 1e10:
        fraction, more = math.frexp(fraction)
        exponent += more
    return fraction, exponent


@compile_loop()
def heaviest_cell(row: FloatArray, scores: IntArray, begin: int, end: int, tilt: float) -> int:
    """The cell whose tilted weight is largest."""
    best, heaviest = -math.inf, begin
    for cell in range(begin, end):
        if row[cell] > 0.0 and math.log(row[cell]) + tilt * scores[cell] > best:
            best, heaviest = math.log(row[cell]) + tilt * scores[cell], cell
    return heaviest


@compile_loop()
def _join_tilted(pmf_a: FloatArray, pmf_b: FloatArray, limit: int, tilt: float, sums: FloatArray) -> float:
    """Sum over a + b <= limit of pmf_a[a] * pmf_b[b] * exp(tilt * (limit - a - b))."""
    decay = math.exp(tilt)
    total = lost = 0.0
    for b in range(pmf_b.size):
        total, lost = add_compensated(total * decay, lost * decay, pmf_b[b])
        sums[b] = total + lost
    total = lost = 0.0
    last = pmf_b.size - 1
    for a in range(min(pmf_a.size, limit + 1)):
        rest = limit - a
        ahead = sums[rest] if rest <= last else sums[last] * math.exp(tilt * (rest - last))
        total, lost = add_compensated(total, lost, pmf_a[a] * ahead)
    return total + lost
