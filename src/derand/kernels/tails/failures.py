"""The failing tail of each row: Fourier inversion where that is cheaper and can be certified, else tilted pmfs.

Contract: `failures` of README.md. Owns the plan, all that is known of a model before its rows. Rows go through in
batches, since the cosine transforms of a batch are one call. Inversion is tried on the side that seems to fail. For
rows where its bound is not good enough, or which lie next to a tie, the tilted pmfs are built.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels import INVERTED, LOG_HALF, MANY_CELLS, TILTED, Failures, may_invert
from derand.kernels.compiling import compile_loop
from derand.kernels.tails.costs import MIN_TERMS_FOR_FOURIER
from derand.kernels.tails.fourier import (
    GROUP,
    Batch,
    begin_inversion,
    bound_phi,
    finish_inversion,
    make_batch,
    tilt_row,
)
from derand.kernels.tails.frequencies import Grid, choose_grids, period_of, shortest_period, split_levels, tabulate
from derand.kernels.tails.spectra import invert_by_spectra
from derand.kernels.tails.tilted import (
    HIGH,
    LOW,
    Terms,
    Workspace,
    load_row,
    log_tail_by_pmfs,
    make_workspace,
    prepare_terms,
)

_BATCH_ROWS = 64
_BATCH_NUMBERS = 2**20  # coefficients in a batch
_MOST_IDLE = 8
_TABLE_NUMBERS = 2**24  # cosines and sines that a plan keeps: 128 MiB


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A model as the compiled kernels work on it; nobody writes to its arrays."""

    starts: IntArray
    scores: IntArray
    terms: Terms
    """The terms, their cells of equal score merged."""
    merged: IntArray
    """The merged cell that each cell belongs to, those of a term by score; empty where cells stay as they are."""
    grids: tuple[Grid, ...]
    """What its rows share in Fourier inversion, for each grid that is tried."""
    shortest: float
    """The shortest period of inversion by spectra; 0 where that is not tried."""
    turns: PeriodTables
    """Cosines and sines of each period, made when first needed."""
    idle: dict[int, deque[tuple[Batch, NDArray[np.float32]]]] = field(repr=False)
    """Arrays for each grid that no thread uses now: fresh ones cost page faults, which hold other threads up."""


class PeriodTables:
    """The cosines and sines of the periods that were needed last, for all threads; bounded in memory."""

    def __init__(self, levels: FloatArray) -> None:
        self._levels = levels
        self._known: OrderedDict[int, FloatArray] = OrderedDict()
        self._lock = Lock()

    def find(self, period: int) -> FloatArray:
        """The table of a period."""
        with self._lock:
            if period in self._known:
                self._known.move_to_end(period)
                return self._known[period]
        table = tabulate(self._levels, period)
        with self._lock:
            self._known[period] = table
            while len(self._known) > 1 and len(self._known) * table.size > _TABLE_NUMBERS:
                self._known.popitem(last=False)
        return table


def prepare(starts: IntArray, scores: IntArray, *, invert: bool = True) -> Plan:
    """The plan of a model; `invert=False` keeps Fourier inversion out."""
    starts, scores = starts.copy(), scores.copy()  # writable, as the kernels are compiled for
    counts = np.diff(starts)
    term_of = np.repeat(np.arange(counts.size), counts)
    order = np.lexsort((scores, term_of))
    begins = np.diff(term_of[order], prepend=-1) > 0
    is_first = begins | (np.diff(scores[order], prepend=-1) != 0)
    merged = order[:0]
    if is_first.all() and ((counts <= 2).all() or (order[1:] > order[:-1]).all()):
        terms = prepare_terms(starts, scores, scores.size)
    else:
        merged = np.empty_like(order)
        merged[order] = np.cumsum(is_first) - 1
        terms = prepare_terms(
            np.append(np.flatnonzero(begins[is_first]), is_first.sum()), scores[order][is_first], scores.size
        )
    grids = choose_grids(terms) if invert else ()
    idle: dict[int, deque[tuple[Batch, NDArray[np.float32]]]] = {grid.n_points: deque() for grid in grids}
    has_many = counts.size >= MIN_TERMS_FOR_FOURIER or scores.size >= MANY_CELLS * counts.size
    by_spectra = invert and has_many and may_invert(counts.size, scores.size) and not terms.are_stumps
    shortest = shortest_period(terms) if by_spectra else 0.0
    return Plan(starts, scores, terms, merged, grids, shortest, PeriodTables(split_levels(terms)), idle)


def failures(plan: Plan, table: FloatArray, thresholds: IntArray) -> Failures:
    """Whether P(S <= threshold) < 1/2 is proven, and the logarithm of the failing side's mass, rounded upward."""
    table, thresholds = _lay_out(plan, table, thresholds)
    work = make_workspace(plan.terms)
    proven, log_failure = np.zeros(thresholds.size, dtype=np.bool_), np.full(thresholds.size, np.nan)
    path = np.full(thresholds.size, INVERTED, dtype=np.uint8)
    for way in (*plan.grids, plan.shortest, None):
        left = np.flatnonzero(np.isnan(log_failure))
        if not left.size:
            break
        rows = left if left.size < thresholds.size else slice(None)  # a slice copies nothing
        if isinstance(way, Grid):
            proven[rows], log_failure[rows] = _invert(plan, way, table[rows], thresholds[rows], work)
        elif way is None:
            proven[rows], log_failure[rows] = _walk(table[rows], thresholds[rows], plan.terms, work)
            path[rows] = TILTED
        elif way:
            proven[rows], log_failure[rows] = invert_by_spectra(
                plan.terms, plan.shortest, plan.turns.find, table[rows], thresholds[rows], work
            )
    return Failures(proven, log_failure, path)


def _lay_out(plan: Plan, table: FloatArray, thresholds: IntArray) -> tuple[FloatArray, IntArray]:
    """The arrays without gaps, for which alone the kernels are compiled, and cells of equal score merged."""
    if plan.merged.size:
        table = _merge(np.ascontiguousarray(table), plan.merged, plan.terms.scores.shape[1])
    return np.ascontiguousarray(table), np.ascontiguousarray(thresholds)


@compile_loop(numbers=lambda table, *_: 16 * table.size)
def _merge(table: FloatArray, merged: IntArray, n_merged: int) -> FloatArray:
    """The table with the probabilities of merged cells added up."""
    sums = np.zeros((table.shape[0], n_merged))
    for row in range(table.shape[0]):
        for cell in range(merged.size):
            sums[row, merged[cell]] += table[row, cell]
    return sums


def _count_numbers(table: FloatArray, thresholds: IntArray, terms: Terms, work: Workspace) -> int:
    """How many numbers `_walk` counts as, as written: at most."""
    width = min(float(terms.whole), 6.0 * math.sqrt(float((terms.shifts**2).sum())))
    return int(thresholds.size * terms.shifts.size * (width + 64.0) * 16)


@compile_loop(numbers=_count_numbers)
def _walk(table: FloatArray, thresholds: IntArray, terms: Terms, work: Workspace) -> tuple[BoolArray, FloatArray]:
    """Row by row: the side that seems to fail, and the other one where that does not."""
    proven, log_failure = np.zeros(thresholds.size, dtype=np.bool_), np.empty(thresholds.size)
    for row in range(thresholds.size):
        gap, _ = load_row(table[row], terms, thresholds[row], work)
        side = LOW if gap < 0.0 else HIGH
        mass = high_mass = 0.0
        for _ in range(2):
            mass = log_tail_by_pmfs(table[row], terms, side, thresholds[row], work)
            high_mass = mass if side == HIGH else high_mass
            if mass < LOG_HALF:
                break
            side = 1 - side
        proven[row] = side == LOW and mass < LOG_HALF
        log_failure[row] = mass if proven[row] else high_mass  # undecided is class 0, whose failing side is the upper
    return proven, log_failure


def _invert(
    plan: Plan, grid: Grid, table: FloatArray, thresholds: IntArray, work: Workspace
) -> tuple[BoolArray, FloatArray]:
    """Whether the lower side was inverted, and the logarithm of the mass; NaN where it is not certified to fail."""
    terms, idle = plan.terms, plan.idle[grid.n_points]
    try:
        batch, coefficients = idle.pop()
    except IndexError:
        batch, coefficients = _make_arrays(terms, grid)
    size = batch.slot.size
    is_low, log_mass = np.empty(thresholds.size, dtype=np.bool_), np.empty(thresholds.size)
    for start in range(0, thresholds.size, size):
        rows = slice(start, start + size)
        used = _begin(table[rows], thresholds[rows], terms, grid, batch, work, coefficients)
        padded = -(-used // GROUP) * GROUP
        coefficients[used:padded] = 0.0
        phi_bounds = bound_phi(coefficients[:padded])
        log_mass[rows] = np.nan
        for number in np.unique(batch.period_number[batch.slot >= 0]).tolist():
            turns = plan.turns.find(period_of(grid.shortest, number))
            _finish(terms, grid, batch, number, turns, phi_bounds, log_mass[rows])
        is_low[rows] = batch.side[: thresholds[rows].size] == LOW
    if len(idle) < _MOST_IDLE:
        idle.append((batch, coefficients))
    return is_low, log_mass


def _make_arrays(terms: Terms, grid: Grid) -> tuple[Batch, NDArray[np.float32]]:
    size = max(GROUP, min(_BATCH_ROWS, _BATCH_NUMBERS // grid.n_points))
    return make_batch(size, terms, grid.n_points), np.empty((size, grid.n_points), dtype=np.float32)


@compile_loop()
def _begin(
    table: FloatArray,
    thresholds: IntArray,
    terms: Terms,
    grid: Grid,
    batch: Batch,
    work: Workspace,
    coefficients: NDArray[np.float32],
) -> int:
    """Tilt the rows and fill the coefficients of those that may be inverted; how many."""
    used = 0
    batch.slot[:] = -1
    for row in range(table.shape[0]):
        is_tilted = tilt_row(table[row], terms, thresholds[row], batch, row, 1.0, work)
        if is_tilted and begin_inversion(terms, grid, batch, row, coefficients[used]):
            batch.slot[row] = used
            used += 1
    return used


@compile_loop()
def _finish(
    terms: Terms,
    grid: Grid,
    batch: Batch,
    number: int,
    turns: FloatArray,
    phi_bounds: NDArray[np.float32],
    log_mass: FloatArray,
) -> None:
    """Fill in the logarithm of the mass of each row of this period that is inverted and proven to fail."""
    for row in range(log_mass.size):
        if batch.slot[row] >= 0 and batch.period_number[row] == number:
            log_mass[row] = finish_inversion(terms, grid, batch, row, turns, phi_bounds[batch.slot[row]])
