"""Laws and tails by the paper's dynamic programme, one row at a time, compiled.

Contract: `tails` and `laws` of README.md, several thresholds per row. The terms are cut into two halves; each half's
law is built term by term, and the two are joined by one pass over running sums (meet in the middle):
P(A + B <= T) = sum over a of P(A = a) P(B <= T - a).
Cost per row: terms x cells x (states that carry mass) / 2. Rounding: README.md, steps 2 and 3. No fastmath here: it
would reorder the sums that the argument counts.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from derand.kernels import FLOOR, NEGLIGIBLE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(nogil=True, cache=True)
def laws(table: FloatArray, starts: IntArray, scores: IntArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score."""
    terms = starts.size - 1
    size = largest_score(starts, scores, 0, terms) + 1
    result = np.zeros((table.shape[0], size))
    buffers = np.empty((2, size))
    for row in range(table.shape[0]):
        law, at, _, _, _ = build_law(table[row], starts, scores, 0, terms, buffers, NEGLIGIBLE)
        result[row, at : at + law.size] = law
    return result


@njit(nogil=True, cache=True)
def tails(
    table: FloatArray, starts: IntArray, scores: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    terms = starts.size - 1
    middle = terms // 2
    buffers_a = np.empty((2, largest_score(starts, scores, 0, middle) + 1))
    buffers_b = np.empty((2, largest_score(starts, scores, middle, terms) + 1))
    below, above = np.empty(buffers_b.shape[1] + 1), np.empty(buffers_b.shape[1] + 1)
    low_mass, high_mass = np.zeros(low.shape), np.zeros(high.shape)
    for row in range(table.shape[0]):
        law_a, at_a, least_a, most_a, _ = build_law(table[row], starts, scores, 0, middle, buffers_a, NEGLIGIBLE)
        law_b, at_b, least_b, most_b, _ = build_law(table[row], starts, scores, middle, terms, buffers_b, NEGLIGIBLE)
        _running_sums(law_b, below, above)
        for k in range(low.shape[1]):
            if low[row, k] >= least_a + least_b:
                low_mass[row, k] = _join(law_a, below, law_b.size, low[row, k] - at_a - at_b) + FLOOR
            if high[row, k] < most_a + most_b:
                high_mass[row, k] = _join(law_a, above, law_b.size, high[row, k] - at_a - at_b) + FLOOR
    return low_mass, high_mass


@njit(nogil=True, cache=True)
def largest_score(starts: IntArray, scores: IntArray, first: int, stop: int) -> int:
    """Largest sum of the scores of terms first..stop-1."""
    total = 0
    for term in range(first, stop):
        total += scores[starts[term] : starts[term + 1]].max()
    return total


@njit(nogil=True, cache=True)
def build_law(
    row: FloatArray, starts: IntArray, scores: IntArray, first: int, stop: int, buffers: FloatArray, budget: float
) -> tuple[FloatArray, int, int, int, float]:
    """Law of the sum of terms first..stop-1, as a view of a buffer.

    Returns the law, the score of its first entry, the least and the most score of positive probability, and the mass
    dropped: after each term, states are dropped at each end as long as they weigh no more than `budget` together.
    """
    side = 0
    buffers[0, 0] = 1.0
    law = buffers[0, :1]
    at = least = most = 0
    lost = 0.0
    for term in range(first, stop):
        begin, end = starts[term], starts[term + 1]
        bottom, top = possible_scores(row, scores, begin, end)
        if bottom == top:  # a certain outcome is a shift
            mass = row[begin:end].sum()
            if mass != 1.0:
                law *= mass
        else:
            side = 1 - side
            grown = buffers[side, : law.size + top - bottom]
            if end - begin == 2:
                _add_stump(law, grown, row, scores, begin)
            else:
                _add_steps(law, grown, row, scores, begin, end, bottom)
            dropped, kept, mass = _light_ends(grown, budget)
            law = grown[dropped:kept]
            at += dropped
            lost += mass
        at += bottom
        least += bottom
        most += top
    return law, at, least, most, lost


@njit(nogil=True, cache=True)
def possible_scores(row: FloatArray, scores: IntArray, begin: int, end: int) -> tuple[int, int]:
    """Lowest and highest score among the cells of positive probability."""
    bottom, top = -1, -1
    for cell in range(begin, end):
        if row[cell] > 0.0:
            if bottom < 0:
                bottom, top = scores[cell], scores[cell]
            else:
                bottom, top = min(bottom, scores[cell]), max(top, scores[cell])
    return bottom, top


@njit(nogil=True, cache=True)
def _light_ends(law: FloatArray, budget: float) -> tuple[int, int, float]:
    """The range left when light states are dropped at both ends, eight at a time, and their mass."""
    start, stop = 0, law.size
    left = right = 0.0
    while stop - start > 8:
        more = left + _sum_of_eight(law, start)
        if more > budget:
            break
        left = more
        start += 8
    while stop - start > 8:
        more = right + _sum_of_eight(law, stop - 8)
        if more > budget:
            break
        right = more
        stop -= 8
    return start, stop, left + right


@njit(nogil=True, cache=True, inline="always")
def _sum_of_eight(law: FloatArray, at: int) -> float:
    total = 0.0
    for t in range(at, at + 8):
        total += law[t]
    return total


# The loops below run over slices from 0 upward: only so are they compiled to vector instructions.
@njit(nogil=True, cache=True)
def _add_stump(law: FloatArray, grown: FloatArray, row: FloatArray, scores: IntArray, begin: int) -> None:
    """The law after one more term of two cells, in one pass."""
    if scores[begin] < scores[begin + 1]:
        stay, move = row[begin], row[begin + 1]
    else:
        stay, move = row[begin + 1], row[begin]
    size = law.size
    shift = grown.size - size
    alone = min(shift, size)
    for t in range(alone):
        grown[t] = stay * law[t]
    grown[alone:shift] = 0.0
    both, upper, lower = grown[shift:size], law[shift:], law[: max(size - shift, 0)]
    for t in range(both.size):
        both[t] = stay * upper[t] + move * lower[t]
    last, upper = grown[grown.size - alone :], law[size - alone :]
    for t in range(last.size):
        last[t] = move * upper[t]


@njit(nogil=True, cache=True)
def _add_steps(
    law: FloatArray, grown: FloatArray, row: FloatArray, scores: IntArray, begin: int, end: int, bottom: int
) -> None:
    """The law after one more term of any number of cells."""
    grown[:] = 0.0
    for cell in range(begin, end):
        mass = row[cell]
        if mass > 0.0:
            shifted = grown[scores[cell] - bottom :]
            for t in range(law.size):
                shifted[t] += mass * law[t]


@njit(nogil=True, cache=True)
def _running_sums(law: FloatArray, below: FloatArray, above: FloatArray) -> None:
    """below[j] = law[0] + ... + law[j-1] and above[j] = law[j] + ... + law[size-1], both compensated."""
    size = law.size
    below[0] = 0.0
    total, lost = 0.0, 0.0
    for t in range(size):
        total, lost = add_compensated(total, lost, law[t])
        below[t + 1] = total + lost
    above[size] = 0.0
    total, lost = 0.0, 0.0
    for t in range(size - 1, -1, -1):
        total, lost = add_compensated(total, lost, law[t])
        above[t] = total + lost


@njit(nogil=True, cache=True)
def _join(law: FloatArray, sums: FloatArray, last: int, cut: int) -> float:
    """Sum over a of law[a] * sums[cut - a + 1], the index kept within 0 .. last; compensated."""
    total, lost = 0.0, 0.0
    for a in range(law.size):
        total, lost = add_compensated(total, lost, law[a] * sums[min(max(cut - a + 1, 0), last)])
    return total + lost


@njit(nogil=True, cache=True, inline="always")
def add_compensated(total: float, lost: float, value: float) -> tuple[float, float]:
    """One step of a compensated sum of non-negative numbers (Neumaier)."""
    grown = total + value
    if total >= value:
        lost += (total - grown) + value
    else:
        lost += (value - grown) + total
    return grown, lost
