"""The failing tail of each row: Fourier inversion where that is cheaper and can be certified, else tilted laws.

Contract: `failures` of README.md. Rows go through in batches, since the cosine transforms of a batch are one call.
Inversion is tried on the side that seems to fail. For rows where its bound is not good enough, or which lie next to
a tie, the tilted laws are built.
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
    bound_phi,
    finish_inversion,
    make_batch,
    period_of,
    plan_inversion,
    tabulate,
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
_MOST_SPARE = 8


class Model(NamedTuple):
    """A model as `failures` works on it."""

    terms: Terms
    plans: tuple[Plan, ...]
    """What its rows share in Fourier inversion, for each grid that is tried."""
    tables: dict[int, FloatArray]
    """Cosines and sines of each period that was needed."""
    order: IntArray
    """The cells, those of a term by score; empty where all its scores differ."""
    firsts: IntArray
    """The first cell of each score, in that order."""
    spare: dict[int, list[tuple[Batch, NDArray[np.float32]]]]
    """Arrays for each grid that no thread uses now: fresh ones cost page faults, which hold other threads up."""


def failures(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    model = _prepare(starts.tobytes(), scores.tobytes())
    table, thresholds = _lay_out(table, thresholds, model)
    room = make_room(model.terms)
    proven, log_failure = np.zeros(thresholds.size, dtype=np.bool_), np.full(thresholds.size, np.nan)
    for plan in (*model.plans, None):
        left = np.flatnonzero(np.isnan(log_failure))
        if not left.size:
            break
        rows = left if left.size < thresholds.size else slice(None)  # a slice copies nothing
        if plan is not None:
            proven[rows], log_failure[rows] = _invert(table[rows], thresholds[rows], model, plan, room)
        else:
            proven[rows], log_failure[rows] = _walk(table[rows], thresholds[rows], model.terms, room)
    return proven, log_failure


def failures_by_laws(
    table: FloatArray, starts: IntArray, scores: IntArray, thresholds: IntArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """`failures` without Fourier inversion."""
    model = _prepare(starts.tobytes(), scores.tobytes())
    return _walk(*_lay_out(table, thresholds, model), model.terms, make_room(model.terms))


@lru_cache(maxsize=4)
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
    plans = plan_inversion(terms)
    return Model(terms, plans, {}, order, firsts, {plan.n_points: [] for plan in plans})


def _lay_out(table: FloatArray, thresholds: IntArray, model: Model) -> tuple[FloatArray, IntArray]:
    """The arrays without gaps, for which alone the kernels are compiled, and cells of equal score merged."""
    if model.order.size:
        table = np.add.reduceat(np.take(table, model.order, axis=1), model.firsts, axis=1)
    return np.ascontiguousarray(table), np.ascontiguousarray(thresholds)


@njit(nogil=True, cache=True)
def _walk(table: FloatArray, thresholds: IntArray, terms: Terms, room: Room) -> tuple[NDArray[np.bool_], FloatArray]:
    """Row by row: the side that seems to fail, and the other one where that does not."""
    proven, log_failure = np.zeros(thresholds.size, dtype=np.bool_), np.empty(thresholds.size)
    for row in range(thresholds.size):
        gap, _ = enter(table[row], terms, thresholds[row], room)
        side = LOW if gap < 0.0 else HIGH
        mass = high_mass = 0.0
        for _ in range(2):
            mass = log_tail_by_laws(table[row], terms, side, thresholds[row], room)
            high_mass = mass if side == HIGH else high_mass
            if mass < LOG_HALF:
                break
            side = 1 - side
        proven[row] = side == LOW and mass < LOG_HALF
        log_failure[row] = mass if proven[row] else high_mass  # undecided is class 0, whose failing side is the upper
    return proven, log_failure


def _invert(
    table: FloatArray, thresholds: IntArray, model: Model, plan: Plan, room: Room
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether the lower side was inverted, and the logarithm of the mass; NaN where it is not certified to fail."""
    terms, spare = model.terms, model.spare[plan.n_points]
    try:
        batch, coefficients = spare.pop()
    except IndexError:
        batch, coefficients = _make_arrays(terms, plan)
    size = batch.slot.size
    is_low, log_mass = np.empty(thresholds.size, dtype=np.bool_), np.empty(thresholds.size)
    for start in range(0, thresholds.size, size):
        rows = slice(start, start + size)
        used = _begin(table[rows], thresholds[rows], terms, plan, batch, room, coefficients)
        padded = -(-used // _LANES) * _LANES
        coefficients[used:padded] = 0.0
        phi_bounds = bound_phi(coefficients[:padded])
        log_mass[rows] = np.nan
        for grade in np.unique(batch.grade[batch.slot >= 0]).tolist():
            table_of_period = _table_of(model, plan, grade)
            _finish(thresholds[rows], terms, plan, batch, grade, table_of_period, phi_bounds, log_mass[rows])
        is_low[rows] = batch.side[: thresholds[rows].size] == LOW
    if len(spare) < _MOST_SPARE:
        spare.append((batch, coefficients))
    return is_low, log_mass


def _table_of(model: Model, plan: Plan, grade: int) -> FloatArray:
    """The cosines and sines of a period, which all threads share."""
    if grade not in model.tables:
        model.tables[grade] = tabulate(model.terms.levels, period_of(plan.shortest, grade))
    return model.tables[grade]


def _make_arrays(terms: Terms, plan: Plan) -> tuple[Batch, NDArray[np.float32]]:
    size = max(_LANES, min(_BATCH_ROWS, _BATCH_NUMBERS // plan.n_points))
    return make_batch(size, terms, plan), np.empty((size, plan.n_points), dtype=np.float32)


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
        if begin_inversion(terms, plan, batch, row, cut, shift, coefficients[used]):
            batch.slot[row] = used
            used += 1
    return used


@njit(nogil=True, cache=True)
def _finish(
    thresholds: IntArray,
    terms: Terms,
    plan: Plan,
    batch: Batch,
    grade: int,
    table: FloatArray,
    phi_bounds: NDArray[np.float32],
    log_mass: FloatArray,
) -> None:
    """Fill in the logarithm of the mass of each row of this period that is inverted and proven to fail."""
    for row in range(thresholds.size):
        if batch.slot[row] >= 0 and batch.grade[row] == grade:
            cut = cut_of(terms, batch.side[row], thresholds[row])
            total = finish_inversion(terms, plan, batch, row, cut, table, phi_bounds[batch.slot[row]])
            if total > 0.0:
                mass = math.log(total) + batch.log_prefactor[row] + batch.roundings[row] * EPSILON
                log_mass[row] = mass if mass < LOG_HALF else np.nan
