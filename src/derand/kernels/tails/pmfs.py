"""Pmfs and tails by the paper's dynamic programme, one row at a time, compiled.

Contract: `tails` and `pmfs` of README.md, several thresholds per row. The terms are cut into two halves; each half's
pmf is built term by term, and the two are joined by one pass over running sums (meet in the middle):
P(A + B <= T) = sum over a of P(A = a) P(B <= T - a).
Cost per row: terms x cells x (states that carry mass) / 2. Rounding: README.md, steps 2 and 3. No fastmath here: it
would reorder the sums that the argument counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.kernels import FLOOR, NEGLIGIBLE
from derand.kernels.compiling import compile_loop


@compile_loop()
def pmfs(table: FloatArray, starts: IntArray, scores: IntArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score."""
    terms = starts.size - 1
    size = largest_score(starts, scores, 0, terms) + 1
    result = np.zeros((table.shape[0], size))
    margin = _largest_shift(scores)
    buffers = np.empty((2, size + 2 * margin))
    order = np.arange(terms)
    for row in range(table.shape[0]):
        pmf, at, _, _, _ = build_pmf(table[row], starts, scores, order, buffers, margin, NEGLIGIBLE)
        result[row, at : at + pmf.size] = pmf
    return result


@compile_loop()
def tails(
    table: FloatArray, starts: IntArray, scores: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    terms = starts.size - 1
    middle = terms // 2
    first, second = np.arange(middle), np.arange(middle, terms)
    margin = _largest_shift(scores)
    buffers_a = np.empty((2, largest_score(starts, scores, 0, middle) + 1 + 2 * margin))
    buffers_b = np.empty((2, largest_score(starts, scores, middle, terms) + 1 + 2 * margin))
    below, above = np.empty(buffers_b.shape[1] + 1), np.empty(buffers_b.shape[1] + 1)
    low_mass, high_mass = np.zeros(low.shape), np.zeros(high.shape)
    for row in range(table.shape[0]):
        pmf_a, at_a, least_a, most_a, _ = build_pmf(table[row], starts, scores, first, buffers_a, margin, NEGLIGIBLE)
        pmf_b, at_b, least_b, most_b, _ = build_pmf(table[row], starts, scores, second, buffers_b, margin, NEGLIGIBLE)
        _running_sums(pmf_b, below, above)
        for k in range(low.shape[1]):
            if low[row, k] >= least_a + least_b:
                low_mass[row, k] = _join(pmf_a, below, pmf_b.size, low[row, k] - at_a - at_b) + FLOOR
            if high[row, k] < most_a + most_b:
                high_mass[row, k] = _join(pmf_a, above, pmf_b.size, high[row, k] - at_a - at_b) + FLOOR
    return low_mass, high_mass


@compile_loop()
def largest_score(starts: IntArray, scores: IntArray, first: int, stop: int) -> int:
    """Largest sum of the scores of terms first..stop-1."""
    total = 0
    for term in range(first, stop):
        total += scores[starts[term] : starts[term + 1]].max()
    return total


@compile_loop()
def _largest_shift(scores: IntArray) -> int:
    """The largest score of all cells."""
    largest = 0
    for score in scores:
        largest = max(largest, score)
    return largest


@compile_loop()
def build_pmf(
    row: FloatArray,
    starts: IntArray,
    scores: IntArray,
    chosen: IntArray,
    buffers: FloatArray,
    margin: int,
    budget: float,
) -> tuple[FloatArray, int, int, int, float]:
    """The pmf of the sum of the chosen terms, added in that order, as a view of a buffer.

    A buffer has room for `margin` states, no less than any score, on either side of the pmf. Returns the pmf, the
    score of its first entry, the least and the most score of positive probability, and the mass dropped: after every
    second term, states are dropped at each end as long as they weigh no more than twice `budget` together.
    """
    pmf, grown = buffers[0], buffers[1]
    first, stop = margin, margin + 1  # the pmf's place in its buffer
    pmf[first] = 1.0
    least = most = offset = 0
    lost = 0.0
    is_trimmed = True
    for term in chosen:
        begin, end = starts[term], starts[term + 1]
        bottom, top = possible_scores(row, scores, begin, end, 0.0)
        least += bottom
        most += top
        if end - begin > 2:
            weak = budget / (end - begin)  # cells that weigh no more are dropped
            bottom, top = possible_scores(row, scores, begin, end, weak)
            lost += _weigh_weak(row, begin, end, weak)
            offset += bottom
        else:
            weak = 0.0
            offset += bottom
        if bottom == top:  # a certain outcome is a shift
            mass = 0.0
            for cell in range(begin, end):
                mass += row[cell] if row[cell] > weak else 0.0
            if mass != 1.0:
                for t in range(first, stop):  # slices of arrays set by others take seconds to compile
                    pmf[t] *= mass
            continue
        span = top - bottom
        if end - begin > 2 and 2 * (stop - first) < span:
            _scatter_steps(pmf, grown, first, stop, span, row, scores, _Cells(begin, end, bottom, weak))
        else:
            pmf[first - span : first] = 0.0
            pmf[stop : stop + span] = 0.0
            if end - begin == 2:
                low = begin if scores[begin] < scores[begin + 1] else begin + 1
                _add_stump(pmf, grown, first, stop + span, span, row[low], row[2 * begin + 1 - low])
            else:
                _gather_steps(pmf, grown, first, stop + span, row, scores, _Cells(begin, end, bottom, weak))
        pmf, grown = grown, pmf
        stop += span
        is_trimmed = not is_trimmed
        if is_trimmed:
            first, stop, mass = _drop_light_ends(pmf, first, stop, 2 * budget)
            lost += mass
    return pmf[first:stop], first - margin + offset, least, most, lost


class _Cells(NamedTuple):
    """The cells of a term that are added: from `begin` to `end - 1`, of more than the weak probability."""

    begin: int
    end: int
    bottom: int
    """The least of their scores."""
    weak: float


@compile_loop()
def possible_scores(row: FloatArray, scores: IntArray, begin: int, end: int, weak: float) -> tuple[int, int]:
    """Lowest and highest score among the cells of more than that probability."""
    bottom, top = -1, -1
    for cell in range(begin, end):
        if row[cell] > weak:
            if bottom < 0:
                bottom, top = scores[cell], scores[cell]
            else:
                bottom, top = min(bottom, scores[cell]), max(top, scores[cell])
    return bottom, top


@compile_loop()
def _weigh_weak(row: FloatArray, begin: int, end: int, weak: float) -> float:
    """Mass of the cells of a term that have no more than that probability."""
    mass = 0.0
    for cell in range(begin, end):
        mass += row[cell] if row[cell] <= weak else 0.0
    return mass


@compile_loop()
def _drop_light_ends(pmf: FloatArray, first: int, stop: int, budget: float) -> tuple[int, int, float]:
    """The range left when light states are dropped at both ends, eight at a time, and their mass."""
    left = right = 0.0
    while stop - first > 8:
        more = left + _sum_of_eight(pmf, first)
        if more > budget:
            break
        left = more
        first += 8
    while stop - first > 8:
        more = right + _sum_of_eight(pmf, stop - 8)
        if more > budget:
            break
        right = more
        stop -= 8
    return first, stop, left + right


@compile_loop(inline="always")
def _sum_of_eight(pmf: FloatArray, at: int) -> float:
    a, b = (pmf[at] + pmf[at + 1]) + (pmf[at + 2] + pmf[at + 3]), (pmf[at + 4] + pmf[at + 5])
    return a + (b + (pmf[at + 6] + pmf[at + 7]))


def _add_stump_in_numpy(
    pmf: FloatArray, grown: FloatArray, first: int, stop: int, span: int, stay: float, move: float
) -> None:
    grown[first:stop] = stay * pmf[first:stop] + move * pmf[first - span : stop - span]


# The loops below run over slices from 0 upward: only so are they compiled to vector instructions.
@compile_loop(early=_add_stump_in_numpy)
def _add_stump(pmf: FloatArray, grown: FloatArray, first: int, stop: int, span: int, stay: float, move: float) -> None:
    """The pmf after one more term of two cells; it is 0 for `span` states on either side."""
    after, unmoved, moved = grown[first:stop], pmf[first:stop], pmf[first - span : stop - span]
    for t in range(after.size):
        after[t] = stay * unmoved[t] + move * moved[t]


@compile_loop()
def _scatter_steps(
    pmf: FloatArray,
    grown: FloatArray,
    first: int,
    stop: int,
    span: int,
    row: FloatArray,
    scores: IntArray,
    cells: _Cells,
) -> None:
    """The pmf after one more term of any number of cells, cell after cell: for a pmf that is short beside the term."""
    before = pmf[first:stop]
    grown[first : stop + span] = 0.0
    for cell in range(cells.begin, cells.end):
        mass = row[cell]
        if mass > cells.weak:
            shifted = grown[first + scores[cell] - cells.bottom :]
            for t in range(before.size):
                shifted[t] += mass * before[t]


@compile_loop()
def _gather_steps(
    pmf: FloatArray, grown: FloatArray, first: int, stop: int, row: FloatArray, scores: IntArray, cells: _Cells
) -> None:
    """The same, eight cells at a time, which reads and writes the new pmf less often; the old one is 0 around it."""
    after = grown[first:stop]
    added, count = np.empty(cells.end - cells.begin + 8, dtype=np.int64), 0
    for cell in range(cells.begin, cells.end):
        if row[cell] > cells.weak:
            added[count] = cell
            count += 1
    masses, shifts = np.zeros(8), np.zeros(8, dtype=np.int64)
    for start in range(0, count, 8):
        for j in range(8):
            is_there = start + j < count
            masses[j] = row[added[start + j]] if is_there else 0.0
            shifts[j] = scores[added[start + j]] - cells.bottom if is_there else 0
        _add_eight(pmf[first - shifts.max() :], after, masses, shifts.max() - shifts, start == 0)


def _add_eight_in_numpy(
    before: FloatArray, after: FloatArray, masses: FloatArray, at: IntArray, is_first: bool
) -> None:
    a, b, c, d, e, f, g, h = (mass * before[start : start + after.size] for mass, start in zip(masses, at, strict=True))
    if is_first:
        after[:] = 0.0
    after += ((a + b) + (c + d)) + ((e + f) + (g + h))


@compile_loop(early=_add_eight_in_numpy)
def _add_eight(before: FloatArray, after: FloatArray, masses: FloatArray, at: IntArray, is_first: bool) -> None:
    """Add eight shifted pmfs, each times its mass."""
    a, b, c, d = before[at[0] :], before[at[1] :], before[at[2] :], before[at[3] :]
    e, f, g, h = before[at[4] :], before[at[5] :], before[at[6] :], before[at[7] :]
    p, q, r, s = masses[0], masses[1], masses[2], masses[3]
    t, u, v, w = masses[4], masses[5], masses[6], masses[7]
    if is_first:
        after[:] = 0.0
    for i in range(after.size):
        low = (p * a[i] + q * b[i]) + (r * c[i] + s * d[i])
        after[i] += low + ((t * e[i] + u * f[i]) + (v * g[i] + w * h[i]))


@compile_loop()
def _running_sums(pmf: FloatArray, below: FloatArray, above: FloatArray) -> None:
    """below[j] = pmf[0] + ... + pmf[j-1] and above[j] = pmf[j] + ... + pmf[size-1], both compensated."""
    size = pmf.size
    below[0] = 0.0
    total, lost = 0.0, 0.0
    for t in range(size):
        total, lost = add_compensated(total, lost, pmf[t])
        below[t + 1] = total + lost
    above[size] = 0.0
    total, lost = 0.0, 0.0
    for t in range(size - 1, -1, -1):
        total, lost = add_compensated(total, lost, pmf[t])
        above[t] = total + lost


@compile_loop()
def _join(pmf: FloatArray, sums: FloatArray, last: int, limit: int) -> float:
    """Sum over a of pmf[a] * sums[limit - a + 1], the index kept within 0 .. last; compensated."""
    total, lost = 0.0, 0.0
    for a in range(pmf.size):
        total, lost = add_compensated(total, lost, pmf[a] * sums[min(max(limit - a + 1, 0), last)])
    return total + lost


@compile_loop(inline="always")
def add_compensated(total: float, lost: float, value: float) -> tuple[float, float]:
    """One step of a compensated sum of non-negative numbers (Neumaier)."""
    grown = total + value
    if total >= value:
        lost += (total - grown) + value
    else:
        lost += (value - grown) + total
    return grown, lost
