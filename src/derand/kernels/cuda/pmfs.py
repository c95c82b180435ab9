"""The pmf of a sum of independent terms on the GPU: one block of threads per row.

Contract: `tails` of README.md, and the pmf on which the tilted method (`tilted.py`) is built. A pmf
lives in two buffers of `capacity` states that take turns, in shared memory where it fits, else in device memory. Every
eight terms, states are dropped at both ends as long as they weigh no more than `budget`, and those above `ceiling`.
Cost per row: terms x cells x states / threads, and one barrier per term.
Rounding: every state gathers its cells in ascending order of the score (two cells) or of the cell, at most one rounding
per cell (README.md, step 2). Sums run over every THREADS-th state, compensated, then over the threads in pairs; the
order depends on nothing but the pmf. Products may be contracted with sums: one rounding instead of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import config, cuda, float64

from derand._core.arrays import FloatArray, IntArray
from derand.kernels import FLOOR, NEGLIGIBLE
from derand.kernels.compiling import compile_once
from derand.kernels.cuda.device import OnDevice
from derand.kernels.tails import pmfs as host_pmfs

THREADS = 4 if config.ENABLE_CUDASIM else 128
"""Threads per block: a power of two."""
TERMS_PER_TRIM = 8
MANY_CELLS = 2**40
"""Stands in `jumps` for a term of more than two cells; else the jump is the second score minus the first, or 0."""
_REGISTERS = 128
_CHUNK = 16  # states that are dropped together
PARTS = 2 * THREADS + 4
"""Numbers in shared memory for sums over a block. Kernels own them: numba-cuda mixes up those of two functions."""
_HALF = THREADS // 2


def compile_kernel(function: Callable[..., None]) -> OnDevice:
    """A kernel kept on disk where possible, of few enough registers that several blocks share a multiprocessor."""
    if config.ENABLE_CUDASIM:
        return cuda.jit(function, fastmath=False)
    return compile_once(cuda.jit, function, fastmath=False, max_registers=_REGISTERS)


def on_device(loop: OnDevice) -> OnDevice:
    """A loop of the CPU that calls no other one, as a function of the device: one source for the same formula."""
    return cuda.jit(device=True, fastmath=False)(loop.py_func)


possible_scores = on_device(host_pmfs.possible_scores)
_add_compensated = on_device(host_pmfs.add_compensated)


@compile_kernel
def tails_in_shared(
    table: FloatArray,
    starts: IntArray,
    scores: IntArray,
    jumps: IntArray,
    low: IntArray,
    high: IntArray,
    capacity: int,
    n_rows: int,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    """P(S <= low) and P(S > high) for each row and each of its thresholds, pmfs in shared memory."""
    work, parts = cuda.shared.array(0, float64), cuda.shared.array(PARTS, float64)
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        model, memory = (starts, scores, jumps), (work, parts, capacity)
        _write_tails(table[row], model, low[row], high[row], memory, low_mass[row], high_mass[row])


@compile_kernel
def tails_in_global(
    table: FloatArray,
    starts: IntArray,
    scores: IntArray,
    jumps: IntArray,
    low: IntArray,
    high: IntArray,
    workspaces: FloatArray,
    capacity: int,
    n_rows: int,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    """The same with pmfs in device memory, one workspace per block; blocks without one stay idle."""
    if cuda.blockIdx.x < workspaces.shape[0]:
        work, parts = workspaces[cuda.blockIdx.x], cuda.shared.array(PARTS, float64)
        for row in range(cuda.blockIdx.x, n_rows, workspaces.shape[0]):
            model, memory = (starts, scores, jumps), (work, parts, capacity)
            _write_tails(table[row], model, low[row], high[row], memory, low_mass[row], high_mass[row])


# Functions take what belongs together in one tuple: a `model` is (starts, scores, jumps), `memory` is (work, parts,
# capacity).


@cuda.jit(device=True, fastmath=False)
def _write_tails(
    row: FloatArray,
    model: OnDevice,
    low: IntArray,
    high: IntArray,
    memory: OnDevice,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    work, parts, capacity = memory
    least, most = possible_range(row, model, parts)
    first, size, at, certain, _ = build_pmf(row, model, memory, NEGLIGIBLE, capacity)
    for k in range(low.size):
        below = _add_states(work, parts, first, 0, min(max(low[k] + 1 - at, 0), size))
        above = _add_states(work, parts, first, min(max(high[k] + 1 - at, 0), size), size)
        if cuda.threadIdx.x == 0:
            low_mass[k] = certain * below + FLOOR if low[k] >= least else 0.0
            high_mass[k] = certain * above + FLOOR if high[k] < most else 0.0
    cuda.syncthreads()


@cuda.jit(device=True, fastmath=False)
def _add_states(work: FloatArray, parts: FloatArray, first: int, start: int, stop: int) -> float:
    """Sum of the states start..stop-1 by the whole block."""
    total = lost = 0.0
    for t in range(start + cuda.threadIdx.x, stop, THREADS):
        total, lost = _add_compensated(total, lost, work[first + t])
    return add_up(parts, total + lost, 0.0)[0]


@cuda.jit(device=True, fastmath=False)
def add_up(parts: FloatArray, one: float, other: float) -> tuple[float, float]:
    """Sums of two numbers over all threads of the block, in pairs; every thread gets both."""
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
def possible_range(row: FloatArray, model: OnDevice, parts: FloatArray) -> tuple[int, int]:
    """Least and most score of positive probability of the whole sum; whole numbers below 2**53 add up exactly."""
    starts, scores, _ = model
    least = most = 0.0
    for term in range(cuda.threadIdx.x, starts.size - 1, THREADS):
        bottom, top = possible_scores(row, scores, starts[term], starts[term + 1], 0.0)
        least += bottom
        most += top
    least, most = add_up(parts, least, most)
    return int(least), int(most)


@cuda.jit(device=True, fastmath=False)
def build_pmf(
    row: FloatArray, model: OnDevice, memory: OnDevice, budget: float, ceiling: int
) -> tuple[int, int, int, float, float]:
    """The pmf of the sum of all terms, by the whole block.

    Returns where in `work` the pmf begins, its size (0 where it outgrew the capacity), the score of its first state, a
    factor of all states (from terms of one outcome), and the mass dropped. States of a score above `ceiling` may be
    missing: scores never fall.
    """
    (starts, scores, jumps), (work, parts, capacity) = model, memory
    side = first = at = since = 0
    size = 1
    certain, lost = 1.0, 0.0
    if cuda.threadIdx.x == 0:
        work[0] = 1.0
    cuda.syncthreads()
    for term in range(starts.size - 1):
        begin, end, jump = starts[term], starts[term + 1], jumps[term]
        stay = move = 0.0
        bottom = top = 0
        if jump == MANY_CELLS:
            bottom, top = possible_scores(row, scores, begin, end, 0.0)
        elif jump != 0:
            stay, move = row[begin], row[begin + 1]
            if jump < 0:
                stay, move = move, stay
            bottom, top = abs(jump) if stay == 0.0 else 0, abs(jump) if move > 0.0 else 0
        at += bottom
        shift = top - bottom
        if shift == 0:  # a certain outcome moves all states
            certain *= _sum_cells(row, begin, end)
            continue
        if since == TERMS_PER_TRIM or size + shift > capacity:
            since = 0
            first, size, at, mass = trim(work, parts, first, size, at, budget, ceiling)
            lost += mass
            if size + shift > capacity:
                return 0, 0, at, certain, lost
        since += 1
        side = capacity - side
        if jump == MANY_CELLS:
            _add_steps(work, (first, size, side), row, scores, (begin, end), bottom, shift)
        else:
            _add_stump(work, (first, size, side), stay, move, shift)
        first = side
        size += shift
        cuda.syncthreads()
    return first, size, at, certain, lost


@cuda.jit(device=True, fastmath=False)
def _sum_cells(row: FloatArray, begin: int, end: int) -> float:
    mass = 0.0
    for cell in range(begin, end):
        mass += row[cell]
    return mass


# Indices are unsigned here, because signed ones are checked for a wrap at each access, and loops have no branches.
@cuda.jit(device=True, fastmath=False)
def _add_stump(work: FloatArray, pmf: tuple[int, int, int], stay: float, move: float, shift: int) -> None:
    """The pmf after one more term of two cells, `shift` apart, written to the other buffer.

    `pmf` says where it begins, its size, and where the other buffer begins.
    """
    first, size, target = pmf
    old, new = np.uint64(first), np.uint64(target)
    length, gap = np.uint64(size), np.uint64(shift)
    thread, step = np.uint64(cuda.threadIdx.x), np.uint64(THREADS)
    t = thread
    while t < min(gap, length):
        work[new + t] = stay * work[old + t]
        t += step
    t = length + thread
    while t < gap:
        work[new + t] = 0.0
        t += step
    t = gap + thread
    while t < length:
        work[new + t] = stay * work[old + t] + move * work[old + t - gap]
        t += step
    t = max(gap, length) + thread
    while t < length + gap:
        work[new + t] = move * work[old + t - gap]
        t += step


@cuda.jit(device=True, fastmath=False)
def _add_steps(
    work: FloatArray,
    pmf: tuple[int, int, int],
    row: FloatArray,
    scores: IntArray,
    cells: tuple[int, int],
    bottom: int,
    shift: int,
) -> None:
    """The pmf after one more term of any number of cells, the first of them and the end of them given."""
    (first, size, target), (begin, end) = pmf, cells
    old, new = np.uint64(first), np.uint64(target)
    for t in range(cuda.threadIdx.x, size + shift, THREADS):
        value = 0.0
        for cell in range(begin, end):
            mass = row[cell]
            source = t - (scores[cell] - bottom)
            if mass > 0.0 and 0 <= source < size:
                value += mass * work[old + np.uint64(source)]
        work[new + np.uint64(t)] = value


@cuda.jit(device=True, fastmath=False)
def trim(
    work: FloatArray, parts: FloatArray, first: int, size: int, at: int, budget: float, ceiling: int
) -> tuple[int, int, int, float]:
    """Drop light states at both ends, and those of a score above `ceiling`; `at` is the score of the first state.

    Returns where the pmf begins, its size, the score of its first state, and the mass of the light states dropped.
    Half of the threads add up chunks on the left, half on the right; two threads then walk over the chunks.
    """
    size = max(min(size, ceiling - at + 1), 1)
    thread, ends = cuda.threadIdx.x, 2 * THREADS
    on_left = thread < _HALF
    number = thread if on_left else thread - _HALF
    chunks = (size - 1) // (2 * _CHUNK)  # on each side, so that the two sides never meet and a state is left
    if number < chunks:
        start = first + number * _CHUNK if on_left else first + size - (number + 1) * _CHUNK
        mass = 0.0
        for t in range(start, start + _CHUNK):
            mass += work[t]
        parts[thread] = mass
    cuda.syncthreads()
    if number == 0:
        kept, dropped = 0, 0.0
        while kept < min(chunks, _HALF) and dropped + parts[thread + kept] <= budget:
            dropped += parts[thread + kept]
            kept += 1
        side = 0 if on_left else 2
        parts[ends + side], parts[ends + side + 1] = kept * _CHUNK, dropped
    cuda.syncthreads()
    left, right = int(parts[ends]), int(parts[ends + 2])
    mass = parts[ends + 1] + parts[ends + 3]
    cuda.syncthreads()
    return first + left, size - left - right, at + left, mass


@cuda.jit(device=True, fastmath=False)
def add_tilted(work: FloatArray, parts: FloatArray, first: int, size: int, limit: int, tilt: float) -> float:
    """Sum over the states t <= limit of pmf[t] * exp(tilt * (limit - t))."""
    total = 0.0
    for t in range(cuda.threadIdx.x, min(size, limit + 1), THREADS):
        total += work[first + t] * math.exp(tilt * (limit - t))
    return add_up(parts, total, 0.0)[0]
