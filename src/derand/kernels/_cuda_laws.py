"""The law of a sum of independent terms on the GPU: one block of threads per row.

Contract: `tails` and `laws` of README.md, and the law that the tilted method (`_cuda_tilted.py`) builds on. A law lives in two
buffers of `capacity` states that take turns, in shared memory where it fits, else in device memory. Every eight terms,
states are dropped at both ends as long as they weigh no more than `budget`, and those above `ceiling` as well.
Cost per row: terms x cells x states / threads, one barrier per term.
Rounding: every state gathers its cells in ascending order, at most one rounding per cell (README.md, step 2). Sums run
over every THREADS-th state, compensated, then over the threads in pairs; the order does not depend on the machine.
"""

from __future__ import annotations

import numpy as np
from numba import config, cuda, float64
from numpy.typing import NDArray

from derand.kernels import FLOOR, NEGLIGIBLE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

THREADS = 4 if config.ENABLE_CUDASIM else 256
"""Threads per block: a power of two."""
TERMS_PER_TRIM = 8
_CHUNK = 8  # states that are dropped together
_PARTS = 2 * THREADS  # numbers in shared memory for sums over a block, two at a time
_HALF = THREADS // 2


@cuda.jit(fastmath=False)
def laws_in_shared(
    table: FloatArray, starts: IntArray, scores: IntArray, capacity: int, n_rows: int, result: FloatArray
) -> None:
    """P(S = s) for each row, laws in shared memory; `result` is filled whole."""
    room = cuda.shared.array(0, float64)
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        _write_law(table[row], starts, scores, room, capacity, result[row])


@cuda.jit(fastmath=False)
def laws_in_global(
    table: FloatArray,
    starts: IntArray,
    scores: IntArray,
    rooms: FloatArray,
    capacity: int,
    n_rows: int,
    result: FloatArray,
) -> None:
    """The same with laws in device memory, one room per block; blocks without a room stay idle."""
    if cuda.blockIdx.x < rooms.shape[0]:
        for row in range(cuda.blockIdx.x, n_rows, rooms.shape[0]):
            _write_law(table[row], starts, scores, rooms[cuda.blockIdx.x], capacity, result[row])


@cuda.jit(fastmath=False)
def tails_in_shared(
    table: FloatArray,
    starts: IntArray,
    scores: IntArray,
    low: IntArray,
    high: IntArray,
    capacity: int,
    n_rows: int,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    """P(S <= low) and P(S > high) for each row and each of its thresholds, laws in shared memory."""
    room = cuda.shared.array(0, float64)
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        _write_tails(table[row], starts, scores, low[row], high[row], room, capacity, low_mass[row], high_mass[row])


@cuda.jit(fastmath=False)
def tails_in_global(
    table: FloatArray,
    starts: IntArray,
    scores: IntArray,
    low: IntArray,
    high: IntArray,
    rooms: FloatArray,
    capacity: int,
    n_rows: int,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    """The same with laws in device memory, one room per block; blocks without a room stay idle."""
    if cuda.blockIdx.x < rooms.shape[0]:
        room = rooms[cuda.blockIdx.x]
        for row in range(cuda.blockIdx.x, n_rows, rooms.shape[0]):
            _write_tails(table[row], starts, scores, low[row], high[row], room, capacity, low_mass[row], high_mass[row])


@cuda.jit(device=True, fastmath=False)
def _write_law(
    row: FloatArray, starts: IntArray, scores: IntArray, room: FloatArray, capacity: int, result: FloatArray
) -> None:
    first, size, at, certain, _ = build_law(row, starts, scores, room, capacity, NEGLIGIBLE, result.size)
    for s in range(cuda.threadIdx.x, result.size, THREADS):
        result[s] = certain * room[first + s - at] if at <= s < at + size else 0.0
    cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def _write_tails(
    row: FloatArray,
    starts: IntArray,
    scores: IntArray,
    low: IntArray,
    high: IntArray,
    room: FloatArray,
    capacity: int,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    least, most = possible_range(row, starts, scores)
    first, size, at, certain, _ = build_law(row, starts, scores, room, capacity, NEGLIGIBLE, capacity)
    for k in range(low.size):
        below = _add_states(room, first, 0, min(max(low[k] + 1 - at, 0), size))
        above = _add_states(room, first, min(max(high[k] + 1 - at, 0), size), size)
        if cuda.threadIdx.x == 0:
            low_mass[k] = certain * below + FLOOR if low[k] >= least else 0.0
            high_mass[k] = certain * above + FLOOR if high[k] < most else 0.0
    cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def _add_states(room: FloatArray, first: int, start: int, stop: int) -> float:
    """Sum of the states start..stop-1 by the whole block."""
    total = lost = 0.0
    for t in range(start + cuda.threadIdx.x, stop, THREADS):
        value = room[first + t]
        grown = total + value
        if total >= value:
            lost += (total - grown) + value
        else:
            lost += (value - grown) + total
        total = grown
    return add_up(total + lost, 0.0)[0]


@cuda.jit(device=True, fastmath=False)
def add_up(one: float, other: float) -> tuple[float, float]:
    """Sums of two numbers over all threads of the block, in pairs; every thread gets both."""
    parts = cuda.shared.array(_PARTS, float64)
    thread = cuda.threadIdx.x
    parts[thread] = one
    parts[THREADS + thread] = other
    cuda.syncthreads()
    width = THREADS // 2
    while width > 0:
        if thread < width:
            parts[thread] += parts[thread + width]
            parts[THREADS + thread] += parts[THREADS + thread + width]
        cuda.syncthreads()
        width //= 2
    one, other = parts[0], parts[THREADS]
    cuda.syncthreads()
    return one, other


@cuda.jit(device=True, fastmath=False)
def possible_scores(row: FloatArray, scores: IntArray, begin: int, end: int) -> tuple[int, int]:
    """Lowest and highest score among the cells of positive probability."""
    bottom, top = -1, -1
    for cell in range(begin, end):
        if row[cell] > 0.0:
            score = scores[cell]
            if bottom < 0:
                bottom, top = score, score
            else:
                bottom, top = min(bottom, score), max(top, score)
    return bottom, top


@cuda.jit(device=True, fastmath=False)
def possible_range(row: FloatArray, starts: IntArray, scores: IntArray) -> tuple[int, int]:
    """Least and most score of positive probability of the whole sum; whole numbers below 2**53 add up exactly."""
    least = most = 0.0
    for term in range(cuda.threadIdx.x, starts.size - 1, THREADS):
        bottom, top = possible_scores(row, scores, starts[term], starts[term + 1])
        least += bottom
        most += top
    least, most = add_up(least, most)
    return int(least), int(most)


@cuda.jit(device=True, fastmath=False)
def build_law(
    row: FloatArray, starts: IntArray, scores: IntArray, room: FloatArray, capacity: int, budget: float, ceiling: int
) -> tuple[int, int, int, float, float]:
    """Law of the sum of all terms, by the whole block.

    Returns where in `room` the law begins, its size (0 where it outgrew the capacity), the score of its first state,
    a factor of all states (from terms of one outcome), and the mass dropped. States of a score above `ceiling` may be missing:
    scores never fall.
    """
    side = first = at = since = 0
    size = 1
    certain, lost = 1.0, 0.0
    if cuda.threadIdx.x == 0:
        room[0] = 1.0
    cuda.syncthreads()
    for term in range(starts.size - 1):
        begin, end = starts[term], starts[term + 1]
        bottom, top = possible_scores(row, scores, begin, end)
        at += bottom
        if bottom == top:  # a certain outcome is a shift
            mass = 0.0
            for cell in range(begin, end):
                mass += row[cell]
            certain *= mass
            continue
        if since == TERMS_PER_TRIM or size + top - bottom > capacity:
            since = 0
            size = max(min(size, ceiling - at + 1), 1)
            dropped, size, mass = _trim(room, first, size, budget)
            first += dropped
            at += dropped
            lost += mass
            if size + top - bottom > capacity:
                return 0, 0, at, certain, lost
        since += 1
        side = capacity - side
        _add_term(room, first, size, side, row, scores, begin, end, bottom, size + top - bottom)
        first = side
        size += top - bottom
        cuda.syncthreads()
    return first, size, at, certain, lost


@cuda.jit(device=True, fastmath=False)
def _add_term(
    room: FloatArray,
    first: int,
    size: int,
    target: int,
    row: FloatArray,
    scores: IntArray,
    begin: int,
    end: int,
    bottom: int,
    grown: int,
) -> None:
    """The law after one more term, written to the other buffer."""
    if end - begin == 2:
        shift = grown - size
        stay, move = row[begin], row[begin + 1]
        if scores[begin] > scores[begin + 1]:
            stay, move = move, stay
        for t in range(cuda.threadIdx.x, grown, THREADS):
            value = 0.0
            if t < size:
                value = stay * room[first + t]
            if t >= shift:
                value += move * room[first + t - shift]
            room[target + t] = value
        return
    for t in range(cuda.threadIdx.x, grown, THREADS):
        value = 0.0
        for cell in range(begin, end):
            mass = row[cell]
            source = t - (scores[cell] - bottom)
            if mass > 0.0 and 0 <= source < size:
                value += mass * room[first + source]
        room[target + t] = value


@cuda.jit(device=True, fastmath=False)
def _trim(room: FloatArray, first: int, size: int, budget: float) -> tuple[int, int, float]:
    """Drop light states at both ends: how many on the left, how many are left over, and the mass dropped.

    Half of the threads add up chunks on the left, half on the right; two threads then walk over the chunks.
    """
    parts = cuda.shared.array(THREADS, float64)
    ends = cuda.shared.array(4, float64)
    thread = cuda.threadIdx.x
    on_left = thread < _HALF
    number = thread if on_left else thread - _HALF
    chunks = (size - 1) // (2 * _CHUNK)  # on each side, so that the two sides never meet and a state is left
    if number < chunks:
        start = first + number * _CHUNK if on_left else first + size - (number + 1) * _CHUNK
        mass = 0.0
        for t in range(start, start + _CHUNK):
            mass += room[t]
        parts[thread] = mass
    cuda.syncthreads()
    if number == 0:
        kept, dropped = 0, 0.0
        while kept < min(chunks, _HALF) and dropped + parts[thread + kept] <= budget:
            dropped += parts[thread + kept]
            kept += 1
        side = 0 if on_left else 2
        ends[side], ends[side + 1] = kept * _CHUNK, dropped
    cuda.syncthreads()
    left, right = int(ends[0]), int(ends[2])
    mass = ends[1] + ends[3]
    cuda.syncthreads()
    return left, size - left - right, mass
