"""The mean, the sharper rule: class 1 iff the expected score is above the threshold; without noise, the score itself.

Owns the expected score of a row and the margin that the worst case of the sum (`worst_case`) is asked about. Must not
know how worst cases are found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.missing_changes import add_largest, find_falls, find_floor_falls, list_changing
from derand.certificates.bounds.missing_values import Filled, fill_gaps
from derand.certificates.bounds.packing import PackedTerms, Problem
from derand.certificates.bounds.worst_case import (
    NORMS,
    SmoothedCase,
    find_deployed_case,
    find_reach,
    find_smoothed_case,
    take_reach,
)
from derand.certificates.bounds.worst_case_base import WorstCase
from derand.certificates.rules.base import DUAL, EXACT, NO_PROOF, Bounds, Engine, Rule, require_norm
from derand.certificates.rules.mean_on_device import DeviceMeans
from derand.kernels import as_device
from derand.kernels.worst_case.envelopes import AskedMeans
from derand.kernels.worst_case.steps import Reach
from derand.noise import Noise
from derand.perturbation import Perturbation

_BLOCK_ROWS = 2**13
_FEW_ROWS = 2**9  # not worth a thread of their own


class ByMean(Rule):
    """Class 1 iff the expected score is above the threshold; the radius is that of the worst case of the sum."""

    def check(self, noise: Noise | None, norm: float | None, proof: str) -> None:
        """Refuse norms without a worst case, and the paper's proof, which knows only votes."""
        require_norm(norm, NORMS, "the rule 'mean'")
        if proof == "paper":
            raise ValueError("`proof` must be 'best' under the rule 'mean', got 'paper': that one proves votes alone.")

    def looks_on_device(
        self, problem: Problem, noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> bool:
        """Where a device takes the rows, and sees all columns."""
        device = _find_device_means(problem, noise, perturbation, engine)
        return device is not None and device.sees_all(problem.n_features)

    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each budget of categorical changes."""
        device = _find_device_means(problem, noise, perturbation, engine)
        if device is None:
            return self._bound_on_host(problem, rows, noise, perturbation, engine)
        return [device.bound(rows, lambda part: self._bound_on_host(problem, part, noise, perturbation, engine)[0])]

    def _bound_on_host(
        self, problem: Problem, rows: NDArray[Any], noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> list[Bounds]:
        terms, has_ball = problem.terms, perturbation.norm is not None
        budgets = np.array(perturbation.budgets, dtype=np.int64)
        label = np.empty(rows.shape[0], dtype=np.int64)
        radius = np.zeros((rows.shape[0], budgets.size))
        proof = np.full(radius.shape, NO_PROOF, dtype=np.uint8)
        is_draft = np.zeros(rows.shape[0], dtype=bool)
        worst = None if has_ball else np.empty_like(radius)

        def bound_block(block: slice) -> None:
            x = np.ascontiguousarray(rows[block], dtype=np.float64)
            filled = fill_gaps(terms, x, noise)
            reach = find_reach(perturbation, filled.rows, filled.gaps)
            falls, rises = terms.category_shifts(x, budgets, perturbation)
            cut = (problem.threshold - terms.base - terms.fixed_scores(x))[:, None]
            is_one = find_mean_labels(problem, x, noise)
            label[block] = is_one
            for side in (0, 1):
                at = np.flatnonzero(is_one == side)
                own, part = filled.take(at), take_reach(reach, at)
                fall = find_fall(terms, own, noise, perturbation, part, side)
                moved = cut[at] + falls[at] + fall if side else cut[at] - rises[at] - fall
                wider = moved + problem.widening if side else moved - problem.widening
                asked = terms, own.rows, noise, perturbation, part, side, wider
                sketched = sketch_radii(*asked) if engine.draft else None
                if sketched is not None:
                    radius[block][at], is_draft[block][at] = sketched, np.isfinite(sketched).any(axis=1)
                    proof[block][at] = np.where(sketched > 0, DUAL, NO_PROOF)
                    continue
                radius[block][at], how = find_radii(*asked)
                # beside a ball a fall is that from where the row stands: a bound
                is_bound = (how == EXACT) & has_ball & (np.asarray(fall) > 0)
                proof[block][at] = np.where(is_bound, DUAL, how)
                if worst is not None and part is not None:
                    lowest = _find_worst(terms, own.rows, noise, perturbation, part, side)
                    worst[block][at] = problem.threshold - moved + lowest[:, None]

        engine.run(bound_block, rows.shape[0], block_rows(rows.shape[0], engine))
        nothing = np.full(rows.shape[0], np.nan)
        return [
            Bounds(
                label,
                nothing,
                radius[:, k],
                proof[:, k],
                worst=None if worst is None else worst[:, k],
                is_draft=is_draft,
            )
            for k in range(budgets.size)
        ]

    def find_labels(self, problem: Problem, rows: NDArray[Any], noise: Noise | None, engine: Engine) -> IntArray:
        """The labels alone."""
        label = np.empty(rows.shape[0], dtype=np.int64)

        def fill_block(block: slice) -> None:
            label[block] = find_mean_labels(problem, np.ascontiguousarray(rows[block], dtype=np.float64), noise)

        engine.run(fill_block, rows.shape[0], block_rows(rows.shape[0], engine))
        return label


def _find_device_means(
    problem: Problem, noise: Noise | None, perturbation: Perturbation, engine: Engine
) -> DeviceMeans | None:
    """The device that takes the rows first; None where there is none, or where it has no kernel for what is asked."""
    device, terms = as_device(engine.kernels), problem.terms
    if device is None or noise is None or engine.draft or len(perturbation.budgets) > 1 or perturbation.has_box:
        return None
    if terms.grids or terms.gaps or not 0 < terms.n_terms <= device.MOST_TERMS:
        return None
    units = noise.units_of(np.arange(problem.n_features))
    curve = find_smoothed_case(terms, noise, 2, units, 1)
    cases = tuple(find_case(terms, noise, perturbation, label) for label in (0, 1))
    assert isinstance(curve, SmoothedCase)
    if any(not isinstance(case, SmoothedCase) or case.find_side() is None for case in cases):
        return None

    def ask(rows: FloatArray) -> AskedMeans:
        falls, rises = terms.category_shifts(rows, np.array(perturbation.budgets), perturbation)
        cut = problem.threshold - terms.base - terms.fixed_scores(rows)
        ends = cut - rises[:, 0] - problem.widening, cut + falls[:, 0] + problem.widening
        low, high = (_find_levels(terms, noise, label, end) for label, end in enumerate(ends))
        return AskedMeans(cut / terms.step, curve.curve_error + 2 * mean_error(terms), (low, high))

    return DeviceMeans(device, curve, cases, ask, must_look=engine.must_look)


def block_rows(n_rows: int, engine: Engine) -> int:
    return min(_BLOCK_ROWS, max(_FEW_ROWS, -(-n_rows // engine.n_threads)))


def find_mean_labels(problem: Problem, rows: FloatArray, noise: Noise | None) -> BoolArray:
    """Whether each row is of class 1: its expected score, rounded downward, is above the threshold.

    Where the curves that stand for the terms decide, they do; near the threshold every cell's probability is added up.
    Both agree: what the sum over cells can be off by is counted in both (kernels/README.md, step 9).
    """
    terms = problem.terms
    cut = problem.threshold - terms.base - terms.fixed_scores(rows)
    if not terms.n_terms:
        return cut < 0
    rows = fill_gaps(terms, rows, noise).rows
    if noise is None:
        case = find_deployed_case(terms, 2, np.ones(rows.shape[1]), 1)
        return case.add_scores(rows) > np.floor_divide(cut, terms.step)
    if terms.grids:  # terms of several columns have no curves
        return _add_cells(terms, rows, noise) > cut / terms.step
    smoothed = find_smoothed_case(terms, noise, 2, noise.units_of(np.arange(rows.shape[1])), 1)
    assert isinstance(smoothed, SmoothedCase)
    sums, errors = smoothed.add_curves(rows)
    distance = sums - cut / terms.step
    errors += 2 * mean_error(terms) + 8 * EPSILON * np.abs(cut / terms.step)
    is_one = distance > 0
    near = np.flatnonzero(np.abs(distance) <= errors)
    if near.size:
        is_one[near] = _add_cells(terms, rows[near], noise) > cut[near] / terms.step
    return is_one


def expect_scores(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """Expected score of each row, without its fixed scores, rounded downward (but for the last rounding)."""
    if not terms.n_terms:
        return np.full(rows.shape[0], float(terms.base))
    rows = fill_gaps(terms, rows, noise).rows
    if noise is None:
        case = find_deployed_case(terms, 2, np.ones(rows.shape[1]), 1)
        return (terms.base + terms.step * case.add_scores(rows)).astype(np.float64)
    return np.asarray(terms.base + terms.step * _add_cells(terms, rows, noise))


def sketch_scores(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """The same by the curves that stand for the terms: quick, and off by some 1e-4 of a term's range."""
    if noise is None or not terms.n_terms or terms.grids:
        return expect_scores(terms, rows, noise)
    rows = fill_gaps(terms, rows, noise).rows
    smoothed = find_smoothed_case(terms, noise, 2, noise.units_of(np.arange(rows.shape[1])), 1)
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


def find_fall(
    terms: PackedTerms,
    filled: Filled,
    noise: Noise | None,
    perturbation: Perturbation,
    reach: Reach | None,
    label: int,
) -> Any:
    """What numbers that go missing or appear take off the worst case at most, (n_rows, 1); 0 without a budget."""
    gaps = list_changing(terms, perturbation)
    if not gaps or not filled.rows.size:
        return 0
    if perturbation.norm is None and terms.n_terms:  # nothing is lost there: each number is at its worst, or missing
        assert reach is not None  # without a ball there is always one
        floors = find_case(terms, noise, perturbation, label).find_floors(filled.rows, reach)
        falls = find_floor_falls(gaps, filled, terms, floors, label)
    else:
        falls = find_falls(gaps, filled, noise, label)
    return add_largest(falls, perturbation.missing_budget)[:, None]


def find_case(terms: PackedTerms, noise: Noise | None, perturbation: Perturbation, label: int) -> WorstCase:
    norm, units = perturbation.norm, perturbation.units
    if noise is None:
        return find_deployed_case(terms, norm, units, label)
    return find_smoothed_case(terms, noise, norm, units, label)


def _find_worst(
    terms: PackedTerms, rows: FloatArray, noise: Noise | None, perturbation: Perturbation, reach: Reach, label: int
) -> FloatArray:
    """The lowest sum of unreduced scores within the reach, but for the base; for label 0 the highest."""
    if not rows.size or not terms.n_terms:
        return np.zeros(rows.shape[0])
    lowest = find_case(terms, noise, perturbation, label).find_lowest(rows, reach)
    return terms.step * (lowest if label else terms.largest - lowest)


def find_radii(
    terms: PackedTerms,
    rows: FloatArray,
    noise: Noise | None,
    perturbation: Perturbation,
    reach: Reach | None,
    label: int,
    cuts: NDArray[Any],
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """Radii of rows of one label, and how they are proven, for each of their cuts, (n_rows, n_cuts).

    Class 1 holds while the sum of unreduced scores stays above the cut, class 0 while it does not get there.
    """
    if not rows.size or not terms.n_terms:
        holds = cuts < 0 if label else cuts >= 0
        return np.where(holds, np.inf, 0.0), np.where(holds, EXACT, NO_PROOF).astype(np.uint8)
    case = find_case(terms, noise, perturbation, label)
    radius, exact = case.find_radii(rows, _find_levels(terms, noise, label, cuts), reach)
    proof = np.where(exact, EXACT, DUAL)
    return radius, np.where(radius > 0, proof, NO_PROOF).astype(np.uint8)


def sketch_radii(
    terms: PackedTerms,
    rows: FloatArray,
    noise: Noise | None,
    perturbation: Perturbation,
    reach: Reach | None,
    label: int,
    cuts: NDArray[Any],
) -> FloatArray | None:
    """Lower bounds of these radii, at far less cost; None where there are none to be had."""
    if not rows.size or not terms.n_terms:
        return None
    case = find_case(terms, noise, perturbation, label)
    return case.sketch_radii(rows, _find_levels(terms, noise, label, cuts), reach)


def _find_levels(terms: PackedTerms, noise: Noise | None, label: int, cuts: NDArray[Any]) -> NDArray[Any]:
    """Above which the sum of reduced scores that is to stay high for a label must stay."""
    if noise is None:  # sums are whole: class 0 holds below the next whole one
        low = np.floor_divide(cuts, terms.step)
        return np.asarray(low if label else terms.largest - low - 1)
    level = cuts / terms.step
    level += (1 if label else -1) * (mean_error(terms) + 4 * EPSILON * np.abs(level))
    return np.asarray(level if label else terms.largest - level)
