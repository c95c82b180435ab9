"""The failing tail of rows of few stumps on the GPU: every outcome is listed, one thread per row.

Contract: `failures` of README.md, from the rows themselves. The terms stand in two halves. The outcomes of the first
are added up by ascending score, once for each row; those of the second are gone through one by one, and what the first
may still score beside each is looked up in these sums. No pmf and no tilt: a mass too faint for a double is left to
those. Cost per row: twice the outcomes of half of the terms. Rounding: README.md, step 8.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels import FLOOR, LOG_HALF
from derand.kernels.cuda.device import OnDevice
from derand.kernels.cuda.pmfs import compile_kernel
from derand.kernels.cuda.stumps import (
    BY_LISTING,
    MOST_LISTED,
    NOT_FINITE,
    OPEN,
    PROVEN,
    SHIFT,
    TO_DO,
    bound_stump,
    is_finite,
)

_QUARTER = 4  # terms whose products are kept
_PRODUCTS = 2**_QUARTER
_MOST_CELLS, _MOST_PRODUCTS, _MOST_SUMS = 2 * MOST_LISTED, 4 * _PRODUCTS, 2 ** (MOST_LISTED // 2) + 1
_FAINT = 1e-280  # near FLOOR: the logarithm is needed


@compile_kernel
def sum_outcomes(
    x: FloatArray,
    model: FloatArray,
    order: IntArray,
    ranks: IntArray,
    second: IntArray,
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
    """State and log of the failing mass of each row; the cells of those that are left to do go into `table`."""
    row = cuda.grid(1)
    if row >= n_rows:
        return
    if must_look and not is_finite(x[row], 0, 1):
        state[row] = NOT_FINITE
        return
    n_terms, threshold = model.shape[1], thresholds[row]
    cells = cuda.local.array(_MOST_CELLS, float64)
    products = cuda.local.array(_MOST_PRODUCTS, float64)
    sums = cuda.local.array(_MOST_SUMS, float64)
    mean = 0.0
    for term in range(n_terms):
        cells[term], cells[MOST_LISTED + term] = bound_stump(x[row], model, term, noise, magnitude)
        mean += model[SHIFT, term] * cells[MOST_LISTED + term]
    low_first = threshold < mean
    low_mass = high_mass = 0.0
    for attempt in range(2):
        is_low = low_first == (attempt == 0)
        side, limit = (0, threshold) if is_low else (1, whole - threshold - 1)
        log_mass = _log_tail((cells, products, sums), model[SHIFT], (order, ranks, second), side, limit)
        if is_low:
            low_mass = log_mass
        else:
            high_mass = log_mass
        if log_mass < LOG_HALF or log_mass == math.inf:
            break
    if max(low_mass, high_mass) == math.inf:
        for term in range(n_terms):
            table[row, term], table[row, n_terms + term] = cells[term], cells[MOST_LISTED + term]
        state[row], log_failure[row] = TO_DO, 0.0
    elif low_mass < LOG_HALF:
        state[row], log_failure[row] = PROVEN + BY_LISTING, low_mass
    else:
        state[row], log_failure[row] = OPEN + BY_LISTING, high_mass


@cuda.jit(device=True, fastmath=False)
def _log_tail(memory: OnDevice, shifts: FloatArray, halves: OnDevice, side: int, limit: int) -> float:
    """Upper bound of log P(S <= limit); -inf if and only if that is impossible, inf where it is too faint."""
    (cells, products, sums), (order, ranks, second) = memory, halves
    n_terms = shifts.size
    half = n_terms // 2
    stay, move = side * MOST_LISTED, (1 - side) * MOST_LISTED
    least = 0.0
    for term in range(n_terms):
        if cells[stay + term] == 0.0:
            least += shifts[term]
    if limit < least:
        return -math.inf
    _multiply(cells, products, 0, stay, move, 0, min(_QUARTER, half))
    _multiply(cells, products, 1, stay, move, min(_QUARTER, half), half)
    _multiply(cells, products, 2, stay, move, half, min(half + _QUARTER, n_terms))
    _multiply(cells, products, 3, stay, move, min(half + _QUARTER, n_terms), n_terms)
    total = 0.0
    sums[0] = 0.0
    for place in range(order.size):
        moved = order[place]
        total += products[moved % _PRODUCTS] * products[_PRODUCTS + moved // _PRODUCTS]
        sums[place + 1] = total
    total = 0.0
    for moved in range(second.size):
        left = limit - second[moved]
        if left >= 0:
            rank = ranks[min(left, ranks.size - 1)]
            mass = products[2 * _PRODUCTS + moved % _PRODUCTS] * products[3 * _PRODUCTS + moved // _PRODUCTS]
            total += mass * sums[rank]
    if total < _FAINT:
        return math.inf
    log_total = math.log(total + FLOOR)
    return log_total + (n_terms + order.size + second.size + 64.0 + 2.0 * abs(log_total)) * EPSILON


@cuda.jit(device=True, fastmath=False)
def _multiply(cells: FloatArray, products: FloatArray, number: int, stay: int, move: int, begin: int, end: int) -> None:
    """The probability of each set of terms that move, of a few terms."""
    first, size = number * _PRODUCTS, 1
    products[first] = 1.0
    for term in range(begin, end):
        for at in range(first, first + size):
            products[at + size] = products[at] * cells[move + term]
            products[at] *= cells[stay + term]
        size *= 2
