"""The failing tail of each row by exponential tilting on the GPU: one block of threads per row.

Contract: `failures` of README.md. The method is that of `tails/tilted.py` without meeting in the middle: the tilted
pmf of all terms is built in shared memory (`pmfs.py`), cut to the states that carry mass, and its sum up to the
threshold T is of order one. A row whose pmf outgrows shared memory is marked, and the second kernel computes it again
in device memory. Cost per row: terms x cells x (about 12 tilted deviations) / threads.
Rounding (README.md, steps 6 and 8): as there, but the last sum runs over every THREADS-th state and then over the
threads in pairs, and each of its products takes an exponential of an argument down to -745.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, FloatArray, IntArray
from derand.kernels import FLOOR, LOG_HALF, NEGLIGIBLE, STEEPEST
from derand.kernels.cuda.device import OnDevice
from derand.kernels.cuda.pmfs import (
    PARTS,
    TERMS_PER_TRIM,
    THREADS,
    add_tilted,
    add_up,
    build_pmf,
    compile_kernel,
    on_device,
    possible_range,
)
from derand.kernels.cuda.stumps import DID_NOT_FIT, store_failure
from derand.kernels.tails.tilted import heaviest_cell, is_close, step_tilt

StateArray = NDArray[np.int8]

_LOST = 1e-13  # mass that a first pass may drop, relative to the whole tilted pmf
_is_close, _step_tilt, _heaviest_cell = on_device(is_close), on_device(step_tilt), on_device(heaviest_cell)


@compile_kernel
def failures_in_shared(
    table: FloatArray,
    starts: IntArray,
    both_scores: IntArray,
    both_jumps: IntArray,
    thresholds: IntArray,
    whole: int,
    steepest: int,
    weights: FloatArray,
    capacity: int,
    n_rows: int,
    state: StateArray,
    log_failure: FloatArray,
) -> None:
    """State and log of the failing mass of each row; both scores and jumps hold the mirrored ones, too."""
    work, parts = cuda.shared.array(0, float64), cuda.shared.array(PARTS, float64)
    for row in range(cuda.blockIdx.x, n_rows, cuda.gridDim.x):
        model, memory = (starts, both_scores, both_jumps, whole, steepest), (work, parts, capacity)
        _settle_row(row, (table, thresholds, weights), model, memory, state, log_failure)


@compile_kernel
def failures_in_global(
    table: FloatArray,
    starts: IntArray,
    both_scores: IntArray,
    both_jumps: IntArray,
    thresholds: IntArray,
    whole: int,
    steepest: int,
    weights: FloatArray,
    workspaces: FloatArray,
    capacity: int,
    n_rows: int,
    state: StateArray,
    log_failure: FloatArray,
) -> None:
    """The same for the rows that did not fit, with pmfs in device memory, one workspace per block."""
    if cuda.blockIdx.x >= workspaces.shape[0]:
        return
    work, parts = workspaces[cuda.blockIdx.x], cuda.shared.array(PARTS, float64)
    for row in range(cuda.blockIdx.x, n_rows, workspaces.shape[0]):
        if state[row] == DID_NOT_FIT:
            cuda.syncthreads()  # all threads have read the state before one of them writes it
            model, memory = (starts, both_scores, both_jumps, whole, steepest), (work, parts, capacity)
            _settle_row(row, (table, thresholds, weights), model, memory, state, log_failure)


@cuda.jit(device=True, fastmath=False)
def _settle_row(
    row: int, given: OnDevice, model: OnDevice, memory: OnDevice, state: StateArray, log_failure: FloatArray
) -> None:
    """The likelier side to fail first; the other one only where that did not settle it.

    Takes (table, thresholds, weights), (starts, both scores, both jumps, whole, steepest) and (work, parts, capacity).
    """
    (table, thresholds, weights), (starts, both_scores, both_jumps, whole, steepest) = given, model
    cells, threshold, mean = table[row], thresholds[row], 0.0
    for cell in range(cuda.threadIdx.x, cells.size, THREADS):
        mean += cells[cell] * both_scores[0, cell]
    low_first = add_up(memory[1], mean, 0.0)[0] > threshold
    low_mass = high_mass = 0.0
    fits = True
    for attempt in range(2):
        is_low = low_first == (attempt == 0)
        limit = threshold if is_low else whole - threshold - 1  # P(S > T) is P(mirrored S <= whole - T - 1)
        side = 0 if is_low else 1
        oriented = starts, both_scores[side], both_jumps[side]
        log_mass = _log_tail(cells, oriented, limit, steepest, weights[row], memory)
        fits = log_mass < math.inf
        if is_low:
            low_mass = log_mass
        else:
            high_mass = log_mass
        if log_mass < LOG_HALF or not fits:
            break
    store_failure(row, fits, low_mass, high_mass, state, log_failure)


@cuda.jit(device=True, fastmath=False)
def _log_tail(
    row: FloatArray, model: OnDevice, threshold: int, steepest: int, weights: FloatArray, memory: OnDevice
) -> float:
    """Upper bound of log P(S <= threshold); -inf if and only if that is impossible, inf where the pmf did not fit."""
    (starts, scores, _), (work, parts, _) = model, memory
    terms = starts.size - 1
    if threshold < possible_range(row, model, parts)[0]:
        return -math.inf
    tilt = _solve_tilt(row, starts, scores, parts, threshold, steepest)
    log_fraction, exponent, shift = _tilt_weights(row, starts, scores, parts, tilt, weights)
    budget = _LOST * TERMS_PER_TRIM / (2 * terms + 2 * TERMS_PER_TRIM)
    total = lost = 0.0
    size = 1
    for _ in range(2):
        first, size, at, certain, lost = build_pmf(weights, model, memory, budget, threshold)
        if size == 0:
            return math.inf
        total = certain * add_tilted(work, parts, first, size, threshold - at, tilt)
        if lost <= 1e-10 * total:
            break
        budget = NEGLIGIBLE  # the tilt is poor for this row: once more, dropping next to nothing
    log_total = math.log(total + 2 * lost + FLOOR)
    log_mass = log_total + log_fraction + exponent * math.log(2.0) + tilt * (shift - threshold)
    roundings = scores.size + terms * (8 - tilt * steepest) + size // THREADS + 1024
    roundings += 2 * (abs(log_total) + 3 * abs(log_fraction) + abs(exponent)) - 4 * tilt * (shift + threshold)
    return log_mass + roundings * EPSILON


@cuda.jit(device=True, fastmath=False)
def _solve_tilt(
    row: FloatArray, starts: IntArray, scores: IntArray, parts: FloatArray, threshold: int, steepest: int
) -> float:
    """About the t <= 0 at which the tilted mean is the threshold, by Newton steps kept between bounds; any t is sound.

    Within two deviations of the mean t is 0: by Cantelli's inequality ties lie there, and failure_excess counts on it.
    """
    low, high, tilt = -STEEPEST / steepest, 0.0, 0.0
    for _ in range(25):
        mean, variance = _tilted_moments(row, starts, scores, parts, tilt)
        gap, deviation = threshold - mean, math.sqrt(variance)
        if _is_close(tilt, gap, deviation):
            break
        tilt, low, high = _step_tilt(tilt, gap, deviation, low, high)
    return tilt


@cuda.jit(device=True, fastmath=False)
def _tilted_moments(
    row: FloatArray, starts: IntArray, scores: IntArray, parts: FloatArray, tilt: float
) -> tuple[float, float]:
    """Mean and variance of the tilted pmf; to nearest, they only steer the search."""
    mean = variance = 0.0
    for term in range(cuda.threadIdx.x, starts.size - 1, THREADS):
        mass = first = second = 0.0
        for cell in range(starts[term], starts[term + 1]):
            score = float(scores[cell])
            weight = row[cell] * math.exp(tilt * score)
            mass += weight
            first += weight * score
            second += weight * score * score
        if mass > 0.0:
            first /= mass
            mean += first
            variance += max(second / mass - first * first, 0.0)
    return add_up(parts, mean, variance)


@cuda.jit(device=True, fastmath=False)
def _tilt_weights(
    row: FloatArray, starts: IntArray, scores: IntArray, parts: FloatArray, tilt: float, weights: FloatArray
) -> tuple[float, float, float]:
    """Fill the normalised weights.

    Returns the product of the normalisers as the sum of a logarithm, an exponent of 2 and an exponent of exp(tilt).
    """
    fraction, exponent, shift = 1.0, 0, 0
    for term in range(cuda.threadIdx.x, starts.size - 1, THREADS):
        begin, end = starts[term], starts[term + 1]
        mass = 0.0
        faint = False
        for cell in range(begin, end):
            weights[cell] = row[cell] * math.exp(tilt * scores[cell])
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
            if weights[cell] > 0.0:
                weights[cell] = max(weights[cell] / mass, TINY)
        fraction, more = math.frexp(fraction * mass)
        exponent += more
    log_fraction, exponents = add_up(parts, math.log(fraction), float(exponent))
    return log_fraction, exponents, add_up(parts, float(shift), 0.0)[0]
