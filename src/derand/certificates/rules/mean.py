"""The mean, the sharper rule: class 1 iff the expected score is above the threshold; without noise, the score itself.

Owns the expected score of a row and the margin that the worst case of the sum (`worst_case`) is asked about. Must not
know how worst cases are found.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, Entries, FloatArray, Numbers
from derand.certificates.bounds.grid_worst_case import DeployedGridCase
from derand.certificates.bounds.levels import bound_least_sums
from derand.certificates.bounds.missing import (
    Filled,
    add_largest,
    compute_decreases,
    compute_floor_decreases,
    fill_missing,
    list_changing,
)
from derand.certificates.bounds.packing import PackedTerms, Problem
from derand.certificates.bounds.worst_case import DeployedCase, SmoothedCase, compute_box, get_case, take_box
from derand.certificates.bounds.worst_case_base import WorstCase
from derand.certificates.rules.base import (
    DUAL,
    EXACT,
    NO_PROOF,
    BlockBounds,
    Bounds,
    Distances,
    Ends,
    Query,
    Rule,
    SmoothedScore,
    join_ends,
)
from derand.certificates.rules.mean_on_device import DeviceMeans
from derand.kernels import as_device
from derand.kernels.worst_case.envelopes import AskedMeans
from derand.kernels.worst_case.steps import Reach
from derand.noise import Noise

_BLOCK_ROWS = 2**13
_FEW_ROWS = 2**9  # not worth a thread of their own


class Mean(SmoothedScore):
    """The expected score; without noise the score itself, a whole number."""

    def __init__(self, problem: Problem, query: Query, n_rows: int) -> None:
        self._problem, self._terms, self._query = problem, problem.terms, query
        self._noise, self._perturbation = query.noise, query.perturbation
        self.block_rows = block_rows(n_rows, query)

    def label(self, rows: FloatArray) -> BoolArray:
        """Whether each row is of class 1: its expected score, rounded downward, is above the threshold.

        Where the curves that stand for the terms decide, they do; near the threshold every cell's probability is added
        up. Both agree: what the sum over cells can be off by is counted in both (kernels/README.md, step 9).
        """
        terms, noise = self._terms, self._noise
        threshold = self._problem.threshold - terms.base - terms.fixed_scores(rows)
        if not terms.n_terms:
            return threshold < 0
        rows = fill_missing(terms, rows, noise).rows
        if noise is None:
            return _add_deployed(terms, rows) > np.floor_divide(threshold, terms.step)
        if terms.grids:  # terms of several columns have no curves
            return _add_cells(terms, rows, noise) > threshold / terms.step
        sums, errors = _get_curves(terms, rows.shape[1], noise).add_curves(rows)
        distance = sums - threshold / terms.step
        errors += 2 * mean_error(terms) + 8 * EPSILON * np.abs(threshold / terms.step)
        is_one = distance > 0
        near = np.flatnonzero(np.abs(distance) <= errors)
        if near.size:
            is_one[near] = _add_cells(terms, rows[near], noise) > threshold[near] / terms.step
        return is_one

    def bound(self, rows: FloatArray) -> BlockBounds:
        """Label and radius of each row, for each budget of categorical changes."""
        terms, problem, asked = self._terms, self._problem, self._perturbation
        filled, box = self._fill(rows)
        decreases, increases = terms.category_shifts(rows, np.array(asked.budgets, dtype=np.int64), asked)
        level = (problem.threshold - terms.base - terms.fixed_scores(rows))[:, None]
        is_one = self.label(rows)
        radius, is_preliminary = np.zeros(decreases.shape), np.zeros(rows.shape[0], dtype=bool)
        proof = np.full(radius.shape, NO_PROOF, dtype=np.uint8)
        worst = None if asked.norm is not None else np.empty_like(radius)
        for label, shifts in ((0, increases), (1, decreases)):
            at = np.flatnonzero(is_one == label)
            own, part = filled.take(at), take_box(box, at)
            moved, gone = self._shift_level(own, part, label, level[at], shifts[at])
            wider = moved + problem.widening if label else moved - problem.widening
            sketched = self._sketch_radii(own.rows, part, label, wider) if self._query.preliminary else None
            if sketched is not None:
                radius[at], is_preliminary[at] = sketched, np.isfinite(sketched).any(axis=1)
                proof[at] = np.where(sketched > 0, DUAL, NO_PROOF)
                continue
            radius[at], proof[at] = self._bound_radii(own.rows, part, label, wider, gone)
            if worst is not None and part is not None:
                worst[at] = problem.threshold - moved + self._compute_worst(own.rows, part, label)[:, None]
        nothing = np.full(radius.shape, np.nan)
        return BlockBounds(is_one, nothing, radius, proof, None, worst, is_preliminary)

    def compute(self, rows: FloatArray) -> Numbers:
        """Expected scores; without noise whole numbers."""
        expected = expect_scores(self._terms, rows, self._noise)
        if self._noise is None or not self._terms.n_terms:
            return expected.astype(np.int64) + self._terms.fixed_scores(rows)
        return np.asarray(expected + self._terms.fixed_scores(rows))

    def bound_interval(self, rows: FloatArray, radius: float) -> Ends:
        """The lowest and the highest expected score within the threat.

        By more than it can be off, ends lie beyond the computed prediction, too (docs/theory.md, section 15).
        """
        terms, wider = self._terms, self._problem.widening
        filled, box = self._fill(rows)
        fixed, (decreases, increases) = terms.fixed_scores(rows), self._shift_categories(rows)
        least: list[Numbers] = [self._bound_least(filled, box, radius, label) for label in (0, 1)]
        gone = [np.ravel(self._bound_missing(filled, box, label)) for label in (0, 1)]
        scores = self.compute(rows)
        if scores.dtype.kind == "i":
            least, gone = ([np.ceil(one).astype(np.int64) for one in ends] for ends in (least, gone))
        low: Numbers = terms.base + terms.step * least[1] + fixed - decreases - gone[1] - wider
        high: Numbers = terms.base + terms.step * (terms.largest - least[0]) + fixed + increases + gone[0] + wider
        if scores.dtype.kind == "f":
            slack = (
                terms.step * mean_error(terms)
                + self._compute_slack(fixed)
                + 8 * EPSILON * (decreases + increases + sum(gone))
            )
            low, high = low - slack, high + slack
        return Ends(scores, low, high)

    def bound_radius(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the expected score stays within so many grid units."""
        terms, wider = self._terms, self._problem.widening
        filled, box = self._fill(rows)
        fixed, (decreases, increases) = terms.fixed_scores(rows), self._shift_categories(rows)
        scores = self.compute(rows)
        levels: list[Numbers]
        if scores.dtype.kind == "i":
            room = math.floor(tolerance)
            levels = [scores + room - fixed - terms.base, scores - room - 1 - fixed - terms.base]
        else:
            near = float(tolerance) * (1 - 2 * EPSILON)
            slack = self._compute_slack(fixed) + 4 * EPSILON * near
            levels = [scores - fixed - terms.base + near - slack, scores - fixed - terms.base - near + slack]
        found = []
        for label, shifts in ((0, increases), (1, decreases)):
            moved, gone = self._shift_level(filled, box, label, levels[label][:, None], shifts[:, None])
            moved = moved + wider if label else moved - wider
            radius, proof = self._bound_radii(filled.rows, box, label, moved, gone)
            found.append((radius[:, 0], proof[:, 0]))
        return join_ends(scores, *found)

    def _fill(self, rows: FloatArray) -> tuple[Filled, Reach | None]:
        filled = fill_missing(self._terms, rows, self._noise)
        return filled, compute_box(self._perturbation, filled.rows, filled.is_missing)

    def _shift_categories(self, rows: FloatArray) -> tuple[Numbers, Numbers]:
        """Largest decrease and increase by categories."""
        asked = self._perturbation
        decreases, increases = self._terms.category_shifts(rows, np.array(asked.budgets), asked)
        return decreases[:, 0], increases[:, 0]

    def _compute_slack(self, fixed: Numbers) -> FloatArray:
        """More than all roundings between the expected sum of reduced scores and a prediction, in grid units."""
        terms, problem = self._terms, self._problem
        size = abs(terms.base) + terms.step * terms.largest + abs(problem.threshold) + problem.widening
        return np.asarray(32 * EPSILON * (np.abs(fixed) + float(size)))

    def _shift_level(
        self, filled: Filled, box: Reach | None, label: int, level: Numbers, shifts: Numbers
    ) -> tuple[Numbers, Entries]:
        """A level after what changes of categories and of missing values take off, and the latter alone."""
        gone = self._bound_missing(filled, box, label)
        return level + shifts + gone if label else level - shifts - gone, gone

    def _bound_missing(self, filled: Filled, box: Reach | None, label: int) -> Entries:
        """What numbers that go missing or appear take off the worst case at most, (n_rows, 1); 0 without a budget."""
        missing_cells = list_changing(self._terms, self._perturbation)
        if not missing_cells or not filled.rows.size:
            return 0
        if self._perturbation.norm is None and self._terms.n_terms:  # exact: each number is at its worst, or missing
            assert box is not None  # without a ball there is always one
            floors = self.get_case(label).compute_floors(filled.rows, box)
            decreases = compute_floor_decreases(missing_cells, filled, self._terms, floors, label)
        else:
            decreases = compute_decreases(missing_cells, filled, self._noise, label)
        return add_largest(decreases, self._perturbation.missing_budget)[:, None]

    def _bound_radii(
        self, rows: FloatArray, box: Reach | None, label: int, thresholds: Numbers, gone: Entries
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Radii of rows of one label, and how they are proven, for each of their thresholds, (n_rows, n_thresholds).

        Class 1 holds while the sum of unreduced scores stays above the threshold, class 0 while it does not get there.
        Beside a ball, what missing values take off where the row stands is a bound.
        """
        if not rows.size or not self._terms.n_terms:
            holds = thresholds < 0 if label else thresholds >= 0
            radius, how = np.where(holds, np.inf, 0.0), holds.astype(np.uint8)
        else:
            radius, how = self.get_case(label).bound_radii(rows, self.compute_levels(label, thresholds), box)
        is_exact = how.astype(bool) & ((self._perturbation.norm is None) | (np.asarray(gone) <= 0))
        return radius, np.where(radius > 0, np.where(is_exact, EXACT, DUAL), NO_PROOF).astype(np.uint8)

    def _sketch_radii(self, rows: FloatArray, box: Reach | None, label: int, thresholds: Numbers) -> FloatArray | None:
        """Lower bounds of these radii, at far less cost; None where there are none to be had."""
        if not rows.size or not self._terms.n_terms:
            return None
        return self.get_case(label).sketch_radii(rows, self.compute_levels(label, thresholds), box)

    def _compute_worst(self, rows: FloatArray, box: Reach, label: int) -> FloatArray:
        """The lowest sum of unreduced scores within the box, but for the base; for label 0 the highest."""
        if not rows.size or not self._terms.n_terms:
            return np.zeros(rows.shape[0])
        lowest = self.get_case(label).compute_lowest(rows, box)
        return self._terms.step * (lowest if label else self._terms.largest - lowest)

    def _bound_least(self, filled: Filled, box: Reach | None, radius: float, label: int) -> FloatArray:
        """The least sum of reduced scores, of label 0 that of what is missing to the largest one."""
        terms, rows = self._terms, filled.rows
        if not terms.n_terms or not rows.size:
            return np.zeros(rows.shape[0])
        if radius == 0:
            here = (expect_scores(terms, rows, self._noise) - terms.base) / terms.step
            return here if label else terms.largest - here
        case, whole = self.get_case(label), self._noise is None
        return bound_least_sums(case, rows, self._perturbation, radius, box, terms.largest, whole=whole)

    def get_case(self, label: int) -> WorstCase:
        """The worst case of the sum for a label."""
        return get_case(self._terms, self._noise, self._perturbation.norm, self._perturbation.units, label)

    def compute_levels(self, label: int, thresholds: Numbers) -> Numbers:
        """Above which the sum of reduced scores that is to stay high for a label must stay."""
        terms = self._terms
        if self._noise is None:  # sums are whole: class 0 holds below the next whole one
            low = np.floor_divide(thresholds, terms.step)
            return np.asarray(low if label else terms.largest - low - 1)
        level = thresholds / terms.step
        level += (1 if label else -1) * (mean_error(terms) + 4 * EPSILON * np.abs(level))
        return np.asarray(level if label else terms.largest - level)

    def prepare_device(self) -> DeviceMeans | None:
        """The device that takes rows first; None where there is none, or where it has no kernel for what is asked."""
        terms, noise, query, asked = self._terms, self._noise, self._query, self._perturbation
        device = as_device(query.kernels)
        if device is None or noise is None or query.preliminary or len(asked.budgets) > 1 or asked.has_box:
            return None
        if terms.grids or terms.missing_cells or not 0 < terms.n_terms <= device.MOST_TERMS:
            return None
        problem, curve = self._problem, _get_curves(terms, self._problem.n_features, noise)
        cases = tuple(self.get_case(label) for label in (0, 1))
        if any(not isinstance(case, SmoothedCase) or case.build_label_tables() is None for case in cases):
            return None

        def ask(rows: FloatArray) -> AskedMeans:
            decreases, increases = self._shift_categories(rows)
            threshold = problem.threshold - terms.base - terms.fixed_scores(rows)
            ends = threshold - increases - problem.widening, threshold + decreases + problem.widening
            low, high = (self.compute_levels(label, end) for label, end in enumerate(ends))
            return AskedMeans(threshold / terms.step, curve.curve_error + 2 * mean_error(terms), (low, high))

        return DeviceMeans(device, curve, cases, ask, must_look=query.must_look)


class ByMean(Rule):
    """Class 1 iff the expected score is above the threshold; the radius is that of the worst case of the sum."""

    smooth = Mean

    def check(self, noise: Noise | None, proof: str) -> None:
        """Refuse the paper's proof, which knows only votes."""
        if proof == "paper":
            raise ValueError("`proof` must be 'best' under the rule 'mean', got 'paper', which proves votes only.")

    def looks_on_device(self, problem: Problem, query: Query) -> bool:
        """Where a device takes the rows, and sees all columns."""
        device = Mean(problem, query, 1).prepare_device()
        return device is not None and device.sees_all(problem.n_features)

    def _bound_alike(self, problem: Problem, rows: Numbers, query: Query) -> list[Bounds]:
        """First by a device, if there is one."""
        on_host = super()._bound_alike
        device = None if as_device(query.kernels) is None else Mean(problem, query, rows.shape[0]).prepare_device()
        if device is None:
            return on_host(problem, rows, query)
        return [device.bound(rows, lambda part: on_host(problem, part, query)[0])]


def block_rows(n_rows: int, query: Query) -> int:
    """Rows per block."""
    return min(_BLOCK_ROWS, max(_FEW_ROWS, -(-n_rows // query.n_threads)))


def expect_scores(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Expected score of each row, without its fixed scores, rounded downward (but for the last rounding)."""
    if not terms.n_terms:
        return np.full(rows.shape[0], float(terms.base))
    rows = fill_missing(terms, rows, noise).rows
    if noise is None:
        return (terms.base + terms.step * _add_deployed(terms, rows)).astype(np.float64)
    return np.asarray(terms.base + terms.step * _add_cells(terms, rows, noise))


def sketch_scores(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """The same by the curves that stand for the terms: quick, and off by some 1e-4 of a term's range."""
    if noise is None or not terms.n_terms or terms.grids:
        return expect_scores(terms, rows, noise)
    rows = fill_missing(terms, rows, noise).rows
    return np.asarray(terms.base + terms.step * _get_curves(terms, rows.shape[1], noise).add_curves(rows)[0])


def _get_curves(terms: PackedTerms, n_features: int, noise: Noise) -> SmoothedCase:
    """The curves of terms of one column each, in the noise's own units."""
    case = get_case(terms, noise, 2, noise.units_of(np.arange(n_features)), 1)
    assert isinstance(case, SmoothedCase)
    return case


def _add_deployed(terms: PackedTerms, rows: FloatArray) -> NDArray[np.int64]:
    """The sum of reduced scores, without noise."""
    case = get_case(terms, None, 2, np.ones(rows.shape[1]), 1)
    assert isinstance(case, DeployedCase | DeployedGridCase)
    return case.add_scores(rows)


def _add_cells(terms: PackedTerms, rows: FloatArray, noise: Noise) -> FloatArray:
    """The expected sum of reduced scores: what is missing to the largest one, by upper bounds of probabilities."""
    missing = np.repeat(terms.ranges, np.diff(terms.starts)) - terms.scores
    total = np.empty(rows.shape[0])
    size = max(1, 2**19 // terms.scores.size)
    for start in range(0, rows.shape[0], size):
        part = slice(start, start + size)
        table = terms.table(rows[part], noise)
        total[part] = [float(np.dot(one, missing)) for one in table]  # one by one: a row is the same wherever it stands
    return terms.largest - total


def mean_error(terms: PackedTerms) -> float:
    """By how much the expected sum that is added up over cells can be off."""
    return float((terms.ranges * terms.cell_errors()).sum()) + EPSILON * (2 * terms.scores.size + 64) * float(
        terms.ranges.sum()
    )
