"""The failing tail of each row: Fourier inversion where that is cheaper and can be certified, else tilted laws.

Contract: `failures` of README.md. Rows go through in batches, since the cosine transforms of a batch are one call.
Inversion is tried on the side that seems to fail; where its bound is not good enough, and on the other side, which
only rows next to a tie need, the tilted laws are built.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from derand.kernels import EPSILON, LOG_HALF
from derand.kernels._numba_fourier import (
    Batch,
    Plan,
    begin_inversion,
    bound_sizes,
    fill_tables,
    finish_inversion,
    make_batch,
    plan_inversion,
)
from derand.kernels._numba_tilted import (
    HIGH,
    LOW,
    Room,
    Terms,
    count_roundings,
    cut_of,
    enter,
    find_tilt,
    is_possible,
    log_tail_by_laws,
    make_room,
    prepare_terms,
    steepen,
    tilt_cells,
    tilt_stumps,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LANES = 16  # transforms come in multiples of that, so that a row's result does not depend on the rows beside it
_BATCH_ROWS = 64
_BATCH_NUMBERS = 2**20  # coefficients in a batch


class Model(NamedTuple):
    """A model as `failures` works on it."""

    terms: Terms
    plan: Plan | None
    """What its rows share in Fourier inversion, if that applies."""
    filled: set[int]
    """The periods whose tables are filled."""
    order: IntArray
    """The cells, those of a term by score; empty where all its scores differ."""
    firsts: IntArray
    """The first cell of each score, in that order."""


def failures(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    model = _prepare(starts.tobytes(), scores.tobytes())
    if model.plan is None:
        return failures_by_laws(table, starts, scores, thresholds)
    return _failures_by_inversion(*_lay_out(table, thresholds, model), model.terms, model.plan, model.filled)


def failures_by_laws(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """`failures` without Fourier inversion."""
    model = _prepare(starts.tobytes(), scores.tobytes())
    return _walk(*_lay_out(table, thresholds, model), model.terms, make_room(model.terms))


@lru_cache(maxsize=8)
def _prepare(starts: bytes, scores: bytes) -> Model:
    """The model, its cells of equal score merged."""
    cell_starts, cell_scores = (np.frombuffer(side, dtype=np.int64).copy() for side in (starts, scores))
    term_of = np.repeat(np.arange(cell_starts.size - 1), np.diff(cell_starts))
    order = np.lexsort((cell_scores, term_of))
    begins = np.diff(term_of[order], prepend=-1) > 0
    differs = np.diff(cell_scores[order], prepend=-1) != 0
    firsts = np.flatnonzero(begins | differs)
    if firsts.size == order.size:  # nothing to merge
        order = firsts = order[:0]
        terms = prepare_terms(cell_starts, cell_scores, cell_scores.size)
    else:
        merged_starts = np.append(np.flatnonzero(begins[firsts]), firsts.size)
        terms = prepare_terms(merged_starts, cell_scores[order][firsts], cell_scores.size)
    return Model(terms, plan_inversion(terms), set(), order, firsts)


def _lay_out(table: FloatArray, thresholds: IntArray, model: Model) -> tuple[FloatArray, IntArray]:
    """The arrays without gaps, for which alone the kernels are compiled, and cells of equal score merged."""
    if model.order.size:
        table = np.add.reduceat(np.take(table, model.order, axis=1), model.firsts, axis=1)
    return np.ascontiguousarray(table), np.ascontiguousarray(thresholds)


@njit(nogil=True, cache=True)
def _walk(table: FloatArray, thresholds: IntArray, terms: Terms, room: Room) -> tuple[NDArray[np.bool_], FloatArray]:
    proven, log_failure = np.zeros(table.shape[0], dtype=np.bool_), np.zeros(table.shape[0])
    for row in range(table.shape[0]):
        gap, _ = enter(table[row], terms, thresholds[row], room)
        side = LOW if gap < 0.0 else HIGH
        mass = log_tail_by_laws(table[row], terms, side, thresholds[row], room)
        proven[row], log_failure[row] = _conclude(table[row], terms, side, thresholds[row], mass, room)
    return proven, log_failure


@njit(nogil=True, cache=True)
def _conclude(row: FloatArray, terms: Terms, side: int, threshold: int, mass: float, room: Room) -> tuple[bool, float]:
    """The row's result, given the logarithm of one side's mass; the other side is computed where that is too large."""
    if mass < LOG_HALF:
        return side == LOW, mass
    other = 1 - side
    other_mass = log_tail_by_laws(row, terms, other, threshold, room)
    if other_mass < LOG_HALF:
        return other == LOW, other_mass
    return False, other_mass if side == LOW else mass  # undecided: class 0, whose failing side is the upper one


def _failures_by_inversion(
    table: FloatArray, thresholds: IntArray, terms: Terms, plan: Plan, filled: set[int]
) -> tuple[NDArray[np.bool_], FloatArray]:
    n_rows = table.shape[0]
    size = max(_LANES, min(_BATCH_ROWS, _BATCH_NUMBERS // plan.n_points))
    batch, room = make_batch(size, terms, plan), make_room(terms)
    coefficients = np.empty((size, plan.n_points), dtype=np.float32)
    proven, log_failure = np.zeros(n_rows, dtype=np.bool_), np.zeros(n_rows)
    for start in range(0, n_rows, size):
        rows = slice(start, start + size)
        used = _begin(table[rows], thresholds[rows], terms, plan, batch, room, coefficients)
        sizes = coefficients[:0]
        if used:
            padded = -(-used // _LANES) * _LANES
            coefficients[used:padded] = 0.0
            sizes = bound_sizes(coefficients[:padded])
            fill_tables(plan, terms.levels, filled, batch.grade[batch.slot >= 0])
        proven[rows], log_failure[rows] = _finish(table[rows], thresholds[rows], terms, plan, batch, room, sizes)
    return proven, log_failure


@njit(nogil=True, cache=True)
def _begin(
    table: FloatArray,
    thresholds: IntArray,
    terms: Terms,
    plan: Plan,
    batch: Batch,
    room: Room,
    coefficients: NDArray[np.float32],
) -> int:
    """Tilt the rows and fill the coefficients of those that may be inverted; how many."""
    used = 0
    batch.slot[:] = -1
    for row in range(table.shape[0]):
        gap, deviation = enter(table[row], terms, thresholds[row], room)
        side = LOW if gap < 0.0 else HIGH  # the side that seems to fail
        cut = cut_of(terms, side, thresholds[row])
        batch.side[row] = side
        if not is_possible(table[row], terms, side, cut, room):
            continue
        tilt, gap, deviation = find_tilt(table[row], terms, side, cut, gap, deviation, room)
        tilt, gap, deviation = steepen(table[row], terms, side, cut, tilt, gap, deviation, room)
        if deviation <= 0.0:
            continue
        shift = 0
        if terms.are_stumps:
            stay, move = batch.weights[row, : terms.shifts.size], batch.weights[row, terms.shifts.size :]
            fraction, exponent = tilt_stumps(terms, side, room, stay, move)
        else:
            fraction, exponent, shift = tilt_cells(table[row], terms, side, tilt, room.powers, batch.weights[row])
        batch.theta[row], batch.gap[row], batch.deviation[row] = -tilt, gap, deviation
        batch.log_prefactor[row] = math.log(fraction) + exponent * math.log(2.0) + tilt * (shift - cut)
        batch.roundings[row] = count_roundings(terms, tilt, cut, exponent, shift)
        if begin_inversion(terms, plan, batch, row, cut, coefficients[used]):
            batch.slot[row] = used
            used += 1
    return used


@njit(nogil=True, cache=True)
def _finish(
    table: FloatArray,
    thresholds: IntArray,
    terms: Terms,
    plan: Plan,
    batch: Batch,
    room: Room,
    sizes: NDArray[np.float32],
) -> tuple[NDArray[np.bool_], FloatArray]:
    """The rows' results, given upper bounds of |phi| on the grid."""
    proven, log_failure = np.zeros(table.shape[0], dtype=np.bool_), np.zeros(table.shape[0])
    for row in range(table.shape[0]):
        side = batch.side[row]
        cut = cut_of(terms, side, thresholds[row])
        total = -1.0
        if batch.slot[row] >= 0:
            total = finish_inversion(terms, plan, batch, row, cut, sizes[batch.slot[row]])
        if total > 0.0:
            mass = math.log(total) + batch.log_prefactor[row] + batch.roundings[row] * EPSILON
        else:
            mass = log_tail_by_laws(table[row], terms, side, thresholds[row], room)
        proven[row], log_failure[row] = _conclude(table[row], terms, side, thresholds[row], mass, room)
    return proven, log_failure
