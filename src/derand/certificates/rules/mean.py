"""The mean, the sharper rule: class 1 iff the expected score is above the threshold; without noise, the score itself.

Owns the expected score of a row and the margin that the worst case of the sum (`worst_case`) is asked about. Must not
know how worst cases are found.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.levels import bound_least_sums
from derand.certificates.bounds.missing_changes import (
    add_largest,
    compute_decreases,
    compute_floor_decreases,
    list_changing,
)
from derand.certificates.bounds.missing_values import Filled, fill_missing
from derand.certificates.bounds.packing import PackedTerms, Problem
from derand.certificates.bounds.worst_case import (
    NORMS,
    SmoothedCase,
    compute_box,
    get_deployed_case,
    get_smoothed_case,
    take_box,
)
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
    require_norm,
)
from derand.certificates.rules.mean_on_device import DeviceMeans
from derand.kernels import as_device
from derand.kernels.worst_case.envelopes import AskedMeans
from derand.kernels.worst_case.steps import Reach
from derand.noise import Noise
from derand.perturbation import Perturbation

_BLOCK_ROWS = 2**13
_FEW_ROWS = 2**9  # not worth a thread of their own


class Mean(SmoothedScore):
    """The expected score; without noise the score itself, a whole number."""

    def __init__(self, problem: Problem, query: Query, n_rows: int) -> None:
        self._problem, self._terms, self._query = problem, problem.terms, query
        self._noise, self._perturbation = query.noise, query.perturbation
        self.block_rows = block_rows(n_rows, query)

    def label(self, rows: FloatArray) -> BoolArray:
        """Whether the expected score is above the threshold."""
        return label_by_mean(self._problem, rows, self._noise)

    def bound(self, rows: FloatArray) -> BlockBounds:
        """Label and radius of each row, for each budget of categorical changes."""
        terms, problem, asked = self._terms, self._problem, self._perturbation
        filled, box = self._fill(rows)
        budgets = np.array(asked.budgets, dtype=np.int64)
        decreases, increases = terms.category_shifts(rows, budgets, asked)
        level = (problem.threshold - terms.base - terms.fixed_scores(rows))[:, None]
        is_one = self.label(rows)
        radius, is_preliminary = np.zeros((rows.shape[0], budgets.size)), np.zeros(rows.shape[0], dtype=bool)
        proof = np.full(radius.shape, NO_PROOF, dtype=np.uint8)
        worst = None if asked.norm is not None else np.empty_like(radius)
        for label, shifts in ((0, increases), (1, decreases)):
            at = np.flatnonzero(is_one == label)
            own, part = filled.take(at), take_box(box, at)
            moved, decrease = self._shift_level(own, part, label, level[at], shifts[at])
            wider = moved + problem.widening if label else moved - problem.widening
            question = terms, own.rows, self._noise, asked, part, label, wider
            sketched = sketch_radii(*question) if self._query.preliminary else None
            if sketched is not None:
                radius[at], is_preliminary[at] = sketched, np.isfinite(sketched).any(axis=1)
                proof[at] = np.where(sketched > 0, DUAL, NO_PROOF)
                continue
            radius[at], proof[at] = self._bound_level(question, decrease)
            if worst is not None and part is not None:
                lowest = _compute_worst(terms, own.rows, self._noise, asked, part, label)
                worst[at] = problem.threshold - moved + lowest[:, None]
        nothing = np.full(radius.shape, np.nan)
        return BlockBounds(is_one, nothing, radius, proof, None, worst, is_preliminary)

    def _shift_level(
        self, filled: Filled, box: Reach | None, label: int, level: NDArray[Any], shifts: IntArray
    ) -> tuple[NDArray[Any], Any]:
        """A level after what changes of categories and of missing values take off, and the latter alone."""
        decrease = bound_missing_decrease(self._terms, filled, self._noise, self._perturbation, box, label)
        return level + shifts + decrease if label else level - shifts - decrease, decrease

    def _bound_level(self, question: tuple[Any, ...], decrease: Any) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Radii and what proves them: beside a ball, what missing values take off where the row stands is a bound."""
        radius, proof = bound_radii(*question)
        is_bound = (proof == EXACT) & (self._perturbation.norm is not None) & (np.asarray(decrease) > 0)
        return radius, np.where(is_bound, DUAL, proof)

    def compute(self, rows: FloatArray) -> NDArray[Any]:
        """Expected scores; without noise whole numbers."""
        expected = expect_scores(self._terms, rows, self._noise)
        if self._noise is None or not self._terms.n_terms:
            return expected.astype(np.int64) + self._terms.fixed_scores(rows)
        return np.asarray(expected + self._terms.fixed_scores(rows))

    def bound_interval(self, rows: FloatArray, radius: float) -> Ends:
        """The lowest and the highest expected score within the threat.

        By more than it can be off, ends lie beyond the computed answer, too (docs/regression.md).
        """
        terms, wider = self._terms, self._problem.widening
        filled, box = self._fill(rows)
        fixed, (decreases, increases) = terms.fixed_scores(rows), self._shift(rows)
        least: list[NDArray[Any]] = [self._bound_least(filled, box, radius, label) for label in (0, 1)]
        gone = [
            np.ravel(bound_missing_decrease(terms, filled, self._noise, self._perturbation, box, label))
            for label in (0, 1)
        ]
        scores = self.compute(rows)
        if scores.dtype.kind == "i":
            least, gone = ([np.ceil(one).astype(np.int64) for one in ends] for ends in (least, gone))
        low = terms.base + terms.step * least[1] + fixed - decreases - gone[1] - wider
        high = terms.base + terms.step * (terms.largest - least[0]) + fixed + increases + gone[0] + wider
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
        fixed, (decreases, increases) = terms.fixed_scores(rows), self._shift(rows)
        scores = self.compute(rows)
        levels: list[NDArray[Any]]
        if scores.dtype.kind == "i":
            room = math.floor(tolerance)
            levels = [scores + room - fixed - terms.base, scores - room - 1 - fixed - terms.base]
        else:
            near = float(tolerance) * (1 - 2 * EPSILON)
            slack = self._compute_slack(fixed) + 4 * EPSILON * near
            levels = [scores - fixed - terms.base + near - slack, scores - fixed - terms.base - near + slack]
        found = []
        for label, shifts in ((0, increases), (1, decreases)):
            moved, decrease = self._shift_level(filled, box, label, levels[label][:, None], shifts[:, None])
            moved = moved + wider if label else moved - wider
            question = terms, filled.rows, self._noise, self._perturbation, box, label, moved
            radius, proof = self._bound_level(question, decrease)
            found.append((radius[:, 0], proof[:, 0]))
        return join_ends(scores, *found)

    def _fill(self, rows: FloatArray) -> tuple[Filled, Reach | None]:
        filled = fill_missing(self._terms, rows, self._noise)
        return filled, compute_box(self._perturbation, filled.rows, filled.is_missing)

    def _shift(self, rows: FloatArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Largest fall and rise by categories."""
        decreases, increases = self._terms.category_shifts(
            rows, np.array(self._perturbation.budgets), self._perturbation
        )
        return decreases[:, 0], increases[:, 0]

    def _bound_least(self, filled: Filled, box: Reach | None, radius: float, label: int) -> FloatArray:
        """The least sum of reduced scores, of label 0 that of what is missing to the largest one."""
        terms, rows = self._terms, filled.rows
        if not terms.n_terms or not rows.size:
            return np.zeros(rows.shape[0])
        if radius == 0:
            here = (expect_scores(terms, rows, self._noise) - terms.base) / terms.step
            return here if label else terms.largest - here
        case = get_case(terms, self._noise, self._perturbation, label)
        whole = self._noise is None
        return bound_least_sums(case, rows, self._perturbation, radius, box, terms.largest, whole=whole)

    def _compute_slack(self, fixed: NDArray[Any]) -> FloatArray:
        """More than all roundings between the expected sum of reduced scores and an answer, in grid units."""
        terms, problem = self._terms, self._problem
        size = abs(terms.base) + terms.step * terms.largest + abs(problem.threshold) + problem.widening
        return np.asarray(32 * EPSILON * (np.abs(fixed) + float(size)))


class ByMean(Rule):
    """Class 1 iff the expected score is above the threshold; the radius is that of the worst case of the sum."""

    smooth = Mean

    def check(self, noise: Noise | None, norm: float | None, proof: str) -> None:
        """Refuse norms without a worst case, and the paper's proof, which knows only votes."""
        require_norm(norm, NORMS, "the rule 'mean'")
        if proof == "paper":
            raise ValueError("`proof` must be 'best' under the rule 'mean', got 'paper': that one proves votes alone.")

    def looks_on_device(self, problem: Problem, query: Query) -> bool:
        """Where a device takes the rows, and sees all columns."""
        device = _prepare_device_means(problem, query)
        return device is not None and device.sees_all(problem.n_features)

    def _bound_alike(self, problem: Problem, rows: NDArray[Any], query: Query) -> list[Bounds]:
        """First by a device, if there is one."""
        device, on_host = _prepare_device_means(problem, query), super()._bound_alike
        if device is None:
            return on_host(problem, rows, query)
        return [device.bound(rows, lambda part: on_host(problem, part, query)[0])]


def _prepare_device_means(problem: Problem, query: Query) -> DeviceMeans | None:
    """The device that takes the rows first; None where there is none, or where it has no kernel for what is asked."""
    device, terms, noise, perturbation = as_device(query.kernels), problem.terms, query.noise, query.perturbation
    if device is None or noise is None or query.preliminary or len(perturbation.budgets) > 1 or perturbation.has_box:
        return None
    if terms.grids or terms.missing_cells or not 0 < terms.n_terms <= device.MOST_TERMS:
        return None
    units = noise.units_of(np.arange(problem.n_features))
    curve = get_smoothed_case(terms, noise, 2, units, 1)
    cases = tuple(get_case(terms, noise, perturbation, label) for label in (0, 1))
    assert isinstance(curve, SmoothedCase)
    if any(not isinstance(case, SmoothedCase) or case.build_label_tables() is None for case in cases):
        return None

    def ask(rows: FloatArray) -> AskedMeans:
        decreases, increases = terms.category_shifts(rows, np.array(perturbation.budgets), perturbation)
        threshold = problem.threshold - terms.base - terms.fixed_scores(rows)
        ends = threshold - increases[:, 0] - problem.widening, threshold + decreases[:, 0] + problem.widening
        low, high = (_compute_levels(terms, noise, label, end) for label, end in enumerate(ends))
        return AskedMeans(threshold / terms.step, curve.curve_error + 2 * mean_error(terms), (low, high))

    return DeviceMeans(device, curve, cases, ask, must_look=query.must_look)


def block_rows(n_rows: int, query: Query) -> int:
    return min(_BLOCK_ROWS, max(_FEW_ROWS, -(-n_rows // query.n_threads)))


def label_by_mean(problem: Problem, rows: FloatArray, noise: Noise | None) -> BoolArray:
    """Whether each row is of class 1: its expected score, rounded downward, is above the threshold.

    Where the curves that stand for the terms decide, they do; near the threshold every cell's probability is added up.
    Both agree: what the sum over cells can be off by is counted in both (kernels/README.md, step 9).
    """
    terms = problem.terms
    threshold = problem.threshold - terms.base - terms.fixed_scores(rows)
    if not terms.n_terms:
        return threshold < 0
    rows = fill_missing(terms, rows, noise).rows
    if noise is None:
        case = get_deployed_case(terms, 2, np.ones(rows.shape[1]), 1)
        return case.add_scores(rows) > np.floor_divide(threshold, terms.step)
    if terms.grids:  # terms of several columns have no curves
        return _add_cells(terms, rows, noise) > threshold / terms.step
    smoothed = get_smoothed_case(terms, noise, 2, noise.units_of(np.arange(rows.shape[1])), 1)
    assert isinstance(smoothed, SmoothedCase)
    sums, errors = smoothed.add_curves(rows)
    distance = sums - threshold / terms.step
    errors += 2 * mean_error(terms) + 8 * EPSILON * np.abs(threshold / terms.step)
    is_one = distance > 0
    near = np.flatnonzero(np.abs(distance) <= errors)
    if near.size:
        is_one[near] = _add_cells(terms, rows[near], noise) > threshold[near] / terms.step
    return is_one


def expect_scores(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Expected score of each row, without its fixed scores, rounded downward (but for the last rounding)."""
    if not terms.n_terms:
        return np.full(rows.shape[0], float(terms.base))
    rows = fill_missing(terms, rows, noise).rows
    if noise is None:
        case = get_deployed_case(terms, 2, np.ones(rows.shape[1]), 1)
        return (terms.base + terms.step * case.add_scores(rows)).astype(np.float64)
    return np.asarray(terms.base + terms.step * _add_cells(terms, rows, noise))


def sketch_scores(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """The same by the curves that stand for the terms: quick, and off by some 1e-4 of a term's range."""
    if noise is None or not terms.n_terms or terms.grids:
        return expect_scores(terms, rows, noise)
    rows = fill_missing(terms, rows, noise).rows
    smoothed = get_smoothed_case(terms, noise, 2, noise.units_of(np.arange(rows.shape[1])), 1)
    assert isinstance(smoothed, SmoothedCase)
    return np.asarray(terms.base + terms.step * smoothed.add_curves(rows)[0])


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


def bound_missing_decrease(
    terms: PackedTerms,
    filled: Filled,
    noise: Noise | None,
    perturbation: Perturbation,
    box: Reach | None,
    label: int,
) -> Any:
    """What numbers that go missing or appear take off the worst case at most, (n_rows, 1); 0 without a budget."""
    missing_cells = list_changing(terms, perturbation)
    if not missing_cells or not filled.rows.size:
        return 0
    if perturbation.norm is None and terms.n_terms:  # nothing is lost there: each number is at its worst, or missing
        assert box is not None  # without a ball there is always one
        floors = get_case(terms, noise, perturbation, label).compute_floors(filled.rows, box)
        decreases = compute_floor_decreases(missing_cells, filled, terms, floors, label)
    else:
        decreases = compute_decreases(missing_cells, filled, noise, label)
    return add_largest(decreases, perturbation.missing_budget)[:, None]


def get_case(terms: PackedTerms, noise: Noise | None, perturbation: Perturbation, label: int) -> WorstCase:
    norm, units = perturbation.norm, perturbation.units
    if noise is None:
        return get_deployed_case(terms, norm, units, label)
    return get_smoothed_case(terms, noise, norm, units, label)


def _compute_worst(
    terms: PackedTerms, rows: FloatArray, noise: Noise | None, perturbation: Perturbation, box: Reach, label: int
) -> FloatArray:
    """The lowest sum of unreduced scores within the box, but for the base; for label 0 the highest."""
    if not rows.size or not terms.n_terms:
        return np.zeros(rows.shape[0])
    lowest = get_case(terms, noise, perturbation, label).compute_lowest(rows, box)
    return terms.step * (lowest if label else terms.largest - lowest)


def bound_radii(
    terms: PackedTerms,
    rows: FloatArray,
    noise: Noise | None,
    perturbation: Perturbation,
    box: Reach | None,
    label: int,
    thresholds: NDArray[Any],
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """Radii of rows of one label, and how they are proven, for each of their thresholds, (n_rows, n_thresholds).

    Class 1 holds while the sum of unreduced scores stays above the cut, class 0 while it does not get there.
    """
    if not rows.size or not terms.n_terms:
        holds = thresholds < 0 if label else thresholds >= 0
        return np.where(holds, np.inf, 0.0), np.where(holds, EXACT, NO_PROOF).astype(np.uint8)
    case = get_case(terms, noise, perturbation, label)
    radius, exact = case.bound_radii(rows, _compute_levels(terms, noise, label, thresholds), box)
    proof = np.where(exact, EXACT, DUAL)
    return radius, np.where(radius > 0, proof, NO_PROOF).astype(np.uint8)


def sketch_radii(
    terms: PackedTerms,
    rows: FloatArray,
    noise: Noise | None,
    perturbation: Perturbation,
    box: Reach | None,
    label: int,
    thresholds: NDArray[Any],
) -> FloatArray | None:
    """Lower bounds of these radii, at far less cost; None where there are none to be had."""
    if not rows.size or not terms.n_terms:
        return None
    case = get_case(terms, noise, perturbation, label)
    return case.sketch_radii(rows, _compute_levels(terms, noise, label, thresholds), box)


def _compute_levels(terms: PackedTerms, noise: Noise | None, label: int, thresholds: NDArray[Any]) -> NDArray[Any]:
    """Above which the sum of reduced scores that is to stay high for a label must stay."""
    if noise is None:  # sums are whole: class 0 holds below the next whole one
        low = np.floor_divide(thresholds, terms.step)
        return np.asarray(low if label else terms.largest - low - 1)
    level = thresholds / terms.step
    level += (1 if label else -1) * (mean_error(terms) + 4 * EPSILON * np.abs(level))
    return np.asarray(level if label else terms.largest - level)
