"""The failing tail of rows of stumps from tilted pmfs on the GPU: one block of threads per row.

Contract: `failures` of README.md for the rows that are marked as still to do, from the cells in `table`. Terms of equal
shift s are taken together: how many of them move is a small pmf of its own, of which few counts carry mass, and the
pmf of the sum takes one pass for each group in place of one for each term. It stands in two buffers of `capacity`
states that take turns; a row whose pmf outgrows them is marked, and a launch with more memory computes it again.
Cost per row: groups x counts that carry mass x (about 12 tilted deviations) / threads.
Rounding: README.md, step 8.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels import FLOOR, LOG_HALF, NEGLIGIBLE
from derand.kernels.cuda.device import OnDevice
from derand.kernels.cuda.pmfs import PARTS, THREADS, add_tilted, add_up, compile_kernel, trim
from derand.kernels.cuda.stumps import (
    DID_NOT_FIT,
    TO_DO,
    compute_moments,
    count_roundings,
    lowest_score,
    solve_tilt,
    store_failure,
    tilt_cells,
)

_LOST = 1e-13  # mass that a first pass may drop, relative to the whole tilted pmf
_GROUPS_PER_TRIM = 2


def count_shared_numbers(n_terms: int, n_groups: int) -> int:
    """Numbers in shared memory that a row takes besides its pmf: weights, counts of groups, their ends."""
    return 3 * n_terms + 5 * n_groups


@compile_kernel
def sum_in_shared(
    table: FloatArray,
    shifts: FloatArray,
    groups: IntArray,
    thresholds: IntArray,
    whole: int,
    capacity: int,
    n_rows: int,
    state: NDArray[np.int8],
    log_failure: FloatArray,
) -> None:
    """State and log of the failing mass of each row that is to do or did not fit, pmfs in shared memory."""
    work, parts = cuda.shared.array(0, float64), cuda.shared.array(PARTS, float64)
    pmf = work[3 * shifts.size + 5 * (groups.size - 1) :]
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        if state[row] == TO_DO or state[row] == DID_NOT_FIT:
            model, memory = (shifts, groups, whole), (work, pmf, parts, capacity)
            _settle_row(row, table[row], thresholds[row], model, memory, state, log_failure)


@compile_kernel
def sum_in_global(
    table: FloatArray,
    shifts: FloatArray,
    groups: IntArray,
    thresholds: IntArray,
    whole: int,
    workspaces: FloatArray,
    capacity: int,
    n_rows: int,
    state: NDArray[np.int8],
    log_failure: FloatArray,
) -> None:
    """The same with pmfs in device memory, one workspace per block; blocks without one stay idle."""
    if cuda.blockIdx.x >= workspaces.shape[0]:
        return
    work, parts = cuda.shared.array(0, float64), cuda.shared.array(PARTS, float64)
    pmf = workspaces[cuda.blockIdx.x]
    for row in range(cuda.blockIdx.x, n_rows, workspaces.shape[0]):
        if state[row] == TO_DO or state[row] == DID_NOT_FIT:
            model, memory = (shifts, groups, whole), (work, pmf, parts, capacity)
            _settle_row(row, table[row], thresholds[row], model, memory, state, log_failure)


@cuda.jit(device=True, fastmath=False)
def _settle_row(
    row: int,
    cells: FloatArray,
    threshold: int,
    model: OnDevice,
    memory: OnDevice,
    state: NDArray[np.int8],
    log_failure: FloatArray,
) -> None:
    """The likelier side to fail first; the other one only where that did not settle it.

    A `model` is (shifts, groups, whole), `memory` is (work, pmf, parts, capacity).
    """
    (shifts, groups, whole), (work, _, parts, _) = model, memory
    low_first = True
    low_mass = high_mass = 0.0
    fits = True
    for attempt in range(2):
        for cell in range(cuda.threadIdx.x, 2 * shifts.size, THREADS):  # weights take their place
            work[cell] = cells[cell]
        cuda.syncthreads()
        if attempt == 0:
            low_first = threshold < compute_moments(work, shifts, 0, 0.0, parts)[0]
        is_low = low_first == (attempt == 0)
        limit = threshold if is_low else whole - threshold - 1  # P(S > T) is P(mirrored S <= whole - T - 1)
        log_mass = _log_tail(shifts, groups, memory, 0 if is_low else 1, limit)
        fits = log_mass < math.inf
        if is_low:
            low_mass = log_mass
        else:
            high_mass = log_mass
        if log_mass < LOG_HALF or not fits:
            break
    store_failure(row, fits, low_mass, high_mass, state, log_failure)


@cuda.jit(device=True, fastmath=False)
def _log_tail(shifts: FloatArray, groups: IntArray, memory: OnDevice, side: int, limit: int) -> float:
    """Upper bound of log P(S <= limit); -inf if and only if that is impossible, inf where the pmf did not fit."""
    work, pmf, parts, _ = memory
    n_terms, n_groups = shifts.size, groups.size - 1
    largest = shifts[n_terms - 1]
    if limit < lowest_score(work, shifts, side, parts):
        return -math.inf
    tilt, _, _ = solve_tilt(work, shifts, side, limit, largest, parts)
    log_fraction, exponent = tilt_cells(work, shifts, side, tilt, parts)
    _count_moves(work, groups, side, n_terms)
    budget = _LOST / (4.0 * n_groups + 4.0)
    total = lost = 0.0
    size = 1
    for _ in range(2):
        cuda.syncthreads()
        dropped = add_up(parts, _choose_counts(work, groups, n_terms, budget), 0.0)[0]
        first, size, at, certain, lost = _build_pmf(shifts, groups, memory, budget, limit)
        if size == 0:
            return math.inf
        lost += dropped
        total = certain * add_tilted(pmf, parts, first, size, limit - at, tilt)
        if lost <= 1e-10 * total:
            break
        budget = NEGLIGIBLE  # the tilt is poor for this row: once more, dropping next to nothing
    log_total = math.log(total + 2.0 * lost + FLOOR)
    roundings = 4.0 * n_terms + size // THREADS + 2.0 * abs(log_total)
    roundings += count_roundings(n_terms, tilt, limit, largest, log_fraction, exponent)
    return log_total + log_fraction + exponent * math.log(2.0) - tilt * limit + roundings * EPSILON


@cuda.jit(device=True, fastmath=False)
def _count_moves(work: FloatArray, groups: IntArray, side: int, n_terms: int) -> None:
    """How many terms of each group move: a pmf of few states, one group per thread.

    Terms that are certain to stay or to move are left out; noted are how many move for certain, and how many may.
    """
    n_groups = groups.size - 1
    stay, move = side * n_terms, (1 - side) * n_terms
    for group in range(cuda.threadIdx.x, n_groups, THREADS):
        begin, end = groups[group], groups[group + 1]
        base, certain, count = 2 * n_terms + begin + group, 0, 0
        work[base] = 1.0
        for term in range(begin, end):
            light, heavy = work[stay + term], work[move + term]
            if light == 0.0:
                certain += 1
            elif heavy > 0.0:
                previous = work[base + count]
                work[base + count + 1] = previous * heavy
                for place in range(count, 0, -1):
                    before = work[base + place - 1]
                    work[base + place] = previous * light + before * heavy
                    previous = before
                work[base] = previous * light
                count += 1
        noted = 3 * n_terms + 3 * n_groups + 2 * group
        work[noted], work[noted + 1] = certain, count


@cuda.jit(device=True, fastmath=False)
def _choose_counts(work: FloatArray, groups: IntArray, n_terms: int, budget: float) -> float:
    """Note for each group which counts carry mass; what the others of this thread's groups weigh."""
    n_groups = groups.size - 1
    ends = 3 * n_terms + n_groups
    lost = 0.0
    for group in range(cuda.threadIdx.x, n_groups, THREADS):
        base = 2 * n_terms + groups[group] + group
        low, high = 0, int(work[ends + 2 * n_groups + 2 * group + 1])
        dropped = 0.0
        while low < high and dropped + work[base + low] <= budget:
            dropped += work[base + low]
            low += 1
        lost += dropped
        dropped = 0.0
        while high > low and dropped + work[base + high] <= budget:
            dropped += work[base + high]
            high -= 1
        lost += dropped
        work[ends + 2 * group], work[ends + 2 * group + 1] = low, high
    return lost


@cuda.jit(device=True, fastmath=False)
def _build_pmf(
    shifts: FloatArray, groups: IntArray, memory: OnDevice, budget: float, ceiling: int
) -> tuple[int, int, int, float, float]:
    """The pmf of the sum of all groups.

    Returns where in `pmf` it begins, its size (0 where it outgrew the capacity), the score of its first state, a
    factor of all states (of groups of one count), and the mass dropped. States of a score above `ceiling` may be
    missing: scores never fall.
    """
    work, pmf, parts, capacity = memory
    n_terms, n_groups = shifts.size, groups.size - 1
    ends = 3 * n_terms + n_groups
    side = first = at = since = 0
    size = 1
    certain, lost = 1.0, 0.0
    if cuda.threadIdx.x == 0:
        pmf[0] = 1.0
    cuda.syncthreads()
    for group in range(n_groups):
        shift = int(shifts[groups[group]])
        low, high = int(work[ends + 2 * group]), int(work[ends + 2 * group + 1])
        base = 2 * n_terms + groups[group] + group + low
        at += (int(work[ends + 2 * n_groups + 2 * group]) + low) * shift
        span = (high - low) * shift
        if span == 0:
            certain *= work[base]
            continue
        if since == _GROUPS_PER_TRIM or size + span > capacity:
            since = 0
            first, size, at, mass = trim(pmf, parts, first, size, at, budget, ceiling)
            lost += mass
            if size + span > capacity:
                return 0, 0, at, certain, lost
        since += 1
        side = capacity - side
        _add_group(pmf, work, first, size, side, base, high - low, shift)
        first = side
        size += span
        cuda.syncthreads()
    return first, size, at, certain, lost


# Indices are unsigned here, because signed ones are checked for a wrap at each access.
@cuda.jit(device=True, fastmath=False)
def _add_group(
    pmf: FloatArray, work: FloatArray, first: int, size: int, target: int, base: int, count: int, shift: int
) -> None:
    """The pmf after one more group, of which up to `count` terms move, written to the other buffer."""
    old, new, counts = np.uint64(first), np.uint64(target), np.uint64(base)
    thread, step, gap, span = np.uint64(cuda.threadIdx.x), np.uint64(THREADS), np.uint64(shift), count * shift
    t, end = np.uint64(span) + thread, np.uint64(size)  # where every count has a state to come from
    if count == 1:
        light, heavy = work[counts], work[counts + np.uint64(1)]
        while t < end:
            pmf[new + t] = light * pmf[old + t] + heavy * pmf[old + t - gap]
            t += step
    else:
        last = counts + np.uint64(count)
        while t < end:
            place, source = counts, old + t
            value = work[place] * pmf[source]
            while place < last:
                place += np.uint64(1)
                source -= gap
                value += work[place] * pmf[source]
            pmf[new + t] = value
            t += step
    overlaps = size >= span
    for number in range(cuda.threadIdx.x, 2 * span if overlaps else size + span, THREADS):
        at = number + size - span if overlaps and number >= span else number
        value, state = 0.0, at
        for moved in range(count + 1):
            if 0 <= state < size:
                value += work[counts + np.uint64(moved)] * pmf[old + np.uint64(state)]
            state -= shift
        pmf[new + np.uint64(at)] = value
