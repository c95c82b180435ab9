"""The bound on dropped frequencies for terms of many cells: their characteristic functions themselves, on a grid.

Contract: as `fourier.py`, for rows whose terms have too many cells, or are too few, for its cosine polynomial. The
characteristic functions of some terms, those that spread their mass most, are known by real transforms of their tilted
cells at (k pi / n_points). Between two points such a function is a chord but for its second derivative, which is at
most the term's variance; terms that are left out count by their moments next to frequency 0 and as 1 elsewhere.
Cost per row: a transform per chosen term, whose length grows like the tilted deviation, and cells x frequencies kept.
Rounding and bounds: README.md, step 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels import MANY_CELLS
from derand.kernels.compiling import compile_loop
from derand.kernels.tails.costs import FOURIER_CELL, LAW_CELL, MIN_TERMS_FOR_FOURIER, SPECTRUM_POINT
from derand.kernels.tails.fourier import (
    ALIASES,
    GROUP,
    Batch,
    allow_dropped,
    bound_log_mass,
    choose_accuracy,
    choose_period,
    compute_moments,
    drop_along_parabola,
    make_batch,
    tilt_row,
)
from derand.kernels.tails.frequencies import MAX_FREQUENCIES, period_of
from derand.kernels.tails.tilted import LOW, Terms, Workspace, fill_powers

_SPECTRUM_ERROR = 3e-5  # of a transform in single precision: of |phi|, which is at most 1
_ACCURACY_OF_MANY = 2e-9  # for 64 terms and more of many cells: what may be added to the sum, relative to it
_MARGIN = 8.0  # by how much, in logarithms, |phi| should be below what may be dropped on the average
_MOST_POINTS = 2**16
_BATCH_ROWS = 64
_BATCH_NUMBERS = 2**18  # in the transforms of a part of a batch
_MOST_TRIES = 1  # on a finer grid
_POINTS = 1.2  # intervals of the first grid over the deviation of the chosen terms
_LEAST_POINTS = 64


class Spread(NamedTuple):
    """What the rows of a batch have beside `Batch`."""

    chosen: BoolArray
    """(rows, terms): whose characteristic functions are transformed."""
    variances: FloatArray
    """(rows, terms)."""
    n_chosen: IntArray
    """How many are chosen."""
    n_points: IntArray
    """Intervals of the grid."""
    decline: FloatArray
    bend: FloatArray
    """Of the terms that are not chosen: f(w) >= decline * w**2 - bend * w**4."""
    n_tries: IntArray
    """On grids that were too coarse."""
    work: FloatArray
    """(terms,)."""


def _make_spread(n_rows: int, terms: Terms) -> Spread:
    """Arrays for so many rows."""
    n_terms = terms.shifts.size
    return Spread(
        chosen=np.zeros((n_rows, n_terms), dtype=np.bool_),
        variances=np.zeros((n_rows, n_terms)),
        n_chosen=np.zeros(n_rows, dtype=np.int64),
        n_points=np.zeros(n_rows, dtype=np.int64),
        n_tries=np.zeros(n_rows, dtype=np.int64),
        decline=np.zeros(n_rows),
        bend=np.zeros(n_rows),
        work=np.zeros(n_terms),
    )


def invert_by_spectra(
    terms: Terms,
    shortest: float,
    find_turns: Callable[[int], FloatArray],
    table: FloatArray,
    thresholds: IntArray,
    work: Workspace,
) -> tuple[BoolArray, FloatArray]:
    """Whether the lower side was inverted, and the logarithm of the mass; NaN where it is not certified to fail.

    Takes the shortest period of the model and what finds the table of a period.
    """
    size = min(_BATCH_ROWS, thresholds.size)
    batch, spread = make_batch(size, terms, 1), _make_spread(size, terms)
    is_low, log_mass = np.empty(thresholds.size, dtype=np.bool_), np.full(thresholds.size, np.nan)
    for start in range(0, thresholds.size, size):
        rows = slice(start, start + size)
        _begin_spectra(table[rows], thresholds[rows], terms, shortest, batch, spread, work)
        begun = np.flatnonzero(batch.slot >= 0)
        while begun.size:
            for part in _split_rows(begun, spread):
                log_mass[start + part] = _finish_part(terms, batch, spread, part, shortest, find_turns)
            begun = begun[log_mass[start + begun] == np.inf]
            log_mass[start + begun] = np.nan
            begun = begun[_refine(spread, begun)]
        is_low[rows] = batch.side[: thresholds[rows].size] == LOW
    return is_low, log_mass


def _finish_part(
    terms: Terms, batch: Batch, spread: Spread, part: IntArray, shortest: float, find_turns: Callable[[int], FloatArray]
) -> FloatArray:
    """The logarithms of the masses of some rows on the same grid."""
    n_spectra = int(spread.n_chosen[part].sum())
    dense = np.empty((-(-n_spectra // GROUP) * GROUP, 2 * int(spread.n_points[part[0]])), dtype=np.float32)
    _spread_cells(terms, batch, spread, part, dense)
    spectra, at, found = _transform(dense), 0, np.empty(part.size)
    for place, row in enumerate(part.tolist()):
        period = period_of(shortest, int(batch.period_number[row]))
        after = at + int(spread.n_chosen[row])
        found[place] = _finish_row(terms, batch, spread, row, period, find_turns(period), spectra[at:after])
        at = after
    return found


def _split_rows(rows: IntArray, spread: Spread) -> list[IntArray]:
    """The rows in parts on the same grid, whose transforms fit in memory that caches hold."""
    rows = rows[np.argsort(spread.n_points[rows], kind="stable")]
    points = spread.n_points[rows]
    filled = np.cumsum(spread.n_chosen[rows] * 2 * points) // _BATCH_NUMBERS
    return np.split(rows, np.flatnonzero(np.diff(filled) | np.diff(points)) + 1)


def _refine(spread: Spread, rows: IntArray) -> BoolArray:
    """Twice as fine a grid for some rows; where that is worth a try."""
    spread.n_points[rows] *= 2
    spread.n_tries[rows] += 1
    return np.asarray((spread.n_tries[rows] <= _MOST_TRIES) & (spread.n_points[rows] <= _MOST_POINTS))


@compile_loop()
def _begin_spectra(
    table: FloatArray,
    thresholds: IntArray,
    terms: Terms,
    shortest: float,
    batch: Batch,
    spread: Spread,
    work: Workspace,
) -> None:
    """Tilt the rows and choose what is transformed of those that may be inverted."""
    batch.slot[:] = -1
    spread.n_tries[:] = 0
    for row in range(table.shape[0]):
        is_tilted = tilt_row(table[row], terms, thresholds[row], batch, row, 2.0, work)
        if is_tilted and _begin_row(terms, batch, spread, row, shortest, work):
            batch.slot[row] = row


@compile_loop()
def _begin_row(terms: Terms, batch: Batch, spread: Spread, row: int, shortest: float, work: Workspace) -> bool:
    """Choose the period, the terms and their grid for a row; False where that is of no use, or pmfs are cheaper."""
    chosen, variances = spread.chosen[row], spread.variances[row]
    expected = 0.8 * _expect_sum(batch.theta[row] * batch.deviation[row], batch.gap[row] / batch.deviation[row])
    log_expected = min(batch.log_prefactor[row] + math.log(expected), 0.0)
    batch.expected[row] = expected
    batch.accuracy[row] = choose_accuracy(chosen.size, log_expected)
    if chosen.size >= MIN_TERMS_FOR_FOURIER and terms.n_cells >= MANY_CELLS * chosen.size:  # as `failure_excess` counts
        batch.accuracy[row] = _ACCURACY_OF_MANY
    below = _reach_below(terms, batch, row, work.powers)
    if not choose_period(terms, batch, row, below, shortest, log_expected):
        return False
    fourth, alike, scores = spread.work, np.empty(chosen.size), terms.scores[batch.side[row]]
    for term in range(chosen.size):
        begin, end = terms.starts[term], terms.starts[term + 1]
        variances[term], fourth[term], alike[term] = compute_moments(batch.weights[row], scores, begin, end)
    wanted, found, spreading = math.log(allow_dropped(batch, row)), 0.0, 0.0
    chosen[:] = False
    batch.decline[row], batch.bend[row] = variances.sum(), (fourth + 3.0 * variances * variances).sum() / 12.0
    count = 0
    turn = batch.decline[row] / (2.0 * batch.bend[row]) if batch.bend[row] > 0.0 else 0.0  # w**2 where the others end
    there = 0.0
    for term in np.argsort(alike):
        reached = max(found, there - 3.0) if chosen.size >= MIN_TERMS_FOR_FOURIER else found
        if reached < wanted - _MARGIN or alike[term] > 0.98:
            break
        chosen[term] = True
        found += 0.5 * math.log(alike[term])
        there += max(0.5 * math.log(alike[term]), -0.5 * variances[term] * turn)
        spreading += variances[term]
        count += 1
    if found > wanted:
        return False
    spread.decline[row], spread.bend[row] = batch.decline[row], batch.bend[row]
    for term in range(chosen.size):
        if chosen[term]:
            spread.decline[row] -= variances[term] * (1.0 + 1e-12)
            spread.bend[row] -= (fourth[term] + 3.0 * variances[term] * variances[term]) / 12.0 * (1.0 - 1e-12)
    points = _LEAST_POINTS
    while points < _POINTS * math.sqrt(spreading):
        points *= 2
    n_cells = terms.scores.shape[1]
    cost = SPECTRUM_POINT * count * points + FOURIER_CELL * n_cells
    spread.n_chosen[row], spread.n_points[row] = count, points
    return points <= _MOST_POINTS and cost < LAW_CELL * n_cells * batch.deviation[row]


@compile_loop()
def _expect_sum(theta: float, gap: float) -> float:
    """The tilted sum of a normal distribution, both numbers in its deviations."""
    apart = theta - gap
    if apart > 5.0:
        return math.exp(-0.5 * gap * gap) / (2.5066 * apart)
    return math.exp(0.5 * theta * theta - theta * gap) * 0.5 * math.erfc(apart * 0.7071067811865476)


@compile_loop()
def _reach_below(terms: Terms, batch: Batch, row: int, powers: FloatArray) -> float:
    """A period N such that the tilted mass at or below limit - N is less than exp(-ALIASES), by Chernoff's bound."""
    weights, places = batch.weights[row], terms.places[batch.side[row]]
    steep = math.sqrt(2.0 * ALIASES) / batch.deviation[row]
    fill_powers(terms.levels, -steep, powers)
    log_mass, product = 0.0, 1.0
    for term in range(terms.starts.size - 1):
        mass = 0.0
        for cell in range(terms.starts[term], terms.starts[term + 1]):
            mass += weights[cell] * powers[places[cell]]
        product *= max(mass, 1e-100)
        if product < 1e-100:
            log_mass += math.log(product)
            product = 1.0
    log_mass += math.log(product)
    return batch.limit[row] + 1.0 + (log_mass + ALIASES + 0.01) / steep


def _transform(dense: NDArray[np.float32]) -> NDArray[np.float32]:
    """The characteristic functions, (transforms, points, 2), of densities of as many scores."""
    from scipy.fft import rfft

    found = rfft(dense, axis=1)
    return np.asarray(found.view(np.float32).reshape(*found.shape, 2))


@compile_loop()
def _spread_cells(terms: Terms, batch: Batch, spread: Spread, rows: IntArray, dense: NDArray[np.float32]) -> None:
    """Lay the cells of the chosen terms out by score, row after row; scores fold exactly onto the grid."""
    dense[:] = 0.0
    size = dense.shape[1]
    at = 0
    for row in rows:
        weights = batch.weights[row]
        for term in range(spread.chosen.shape[1]):
            if spread.chosen[row, term]:
                for cell in range(terms.starts[term], terms.starts[term + 1]):
                    dense[at, terms.scores[LOW, cell] & (size - 1)] += np.float32(weights[cell])
                at += 1


@compile_loop()
def _finish_row(
    terms: Terms, batch: Batch, spread: Spread, row: int, period: int, turns: FloatArray, spectra: NDArray[np.float32]
) -> float:
    """The logarithm of the mass of a row that is proven to fail, infinite where the grid is too coarse, else NaN.

    Takes the period's table and the transforms of the row's chosen terms.
    """
    points = spread.n_points[row]
    bounds, squares = np.ones(points, dtype=np.float32), np.empty(points + 1, dtype=np.float32)
    at = 0
    for term in range(spread.chosen.shape[1]):
        if spread.chosen[row, term]:
            slack = (math.pi / points) ** 2 * spread.variances[row, term] / 8.0 + _SPECTRUM_ERROR
            _lower_bounds(spectra[at], squares, np.float32(slack), bounds)
            at += 1
    kept, dropped = _bound_dropped(batch, spread, row, period, bounds)
    if kept > MAX_FREQUENCIES:
        return np.inf
    return bound_log_mass(terms, batch, row, period, kept, dropped, turns)


@compile_loop()
def _lower_bounds(
    spectrum: NDArray[np.float32], squares: NDArray[np.float32], slack: np.float32, bounds: NDArray[np.float32]
) -> None:
    """Multiply the bound of each interval by that of one more term: the larger one of its ends, and the slack."""
    one, least = np.float32(1.0), np.float32(1e-25)
    for k in range(squares.size):
        squares[k] = spectrum[k, 0] * spectrum[k, 0] + spectrum[k, 1] * spectrum[k, 1]
    before, after = squares[:-1], squares[1:]
    for k in range(bounds.size):
        factor = min(np.sqrt(max(before[k], after[k])) + slack, one)
        bounds[k] = max(bounds[k] * factor, least)


@compile_loop()
def _bound_dropped(
    batch: Batch, spread: Spread, row: int, period: int, bounds: NDArray[np.float32]
) -> tuple[int, float]:
    """How many frequencies to keep, and an upper bound of what all others add, not above what is allowed."""
    allowed, width = allow_dropped(batch, row), math.pi / bounds.size
    frequencies = period // (2 * bounds.size) + 1  # in an interval, at most
    decline, bend = 0.999999 * max(spread.decline[row], 0.0), 1.000001 * max(spread.bend[row], 0.0)
    total, first = 0.0, bounds.size
    while first > 1:
        left, right = (first - 1) * width, first * width
        part = 2.002 / period * frequencies * bounds[first - 1] / (math.sin(left) if 2 * left < math.pi else 1.0)
        if 2.0 * bend * right * right <= decline:  # the other terms decline up to here
            part *= math.exp(-0.5 * (decline - bend * left * left) * left * left)
        if not total + part <= allowed:
            break
        total += part
        first -= 1
    if first == bounds.size:
        return period, 0.0
    kept = math.ceil(first * width * period / (2 * math.pi)) + 1
    return drop_along_parabola(batch.decline[row], batch.bend[row], period, kept, total, allowed)
