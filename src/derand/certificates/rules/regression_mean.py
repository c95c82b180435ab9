"""The expected sum as the answer; without noise, the sum itself.

Owns the answer by the rule "mean", the ends that it cannot leave and how far it may be moved. Must not know how worst
cases are found.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray
from derand.certificates.bounds.missing_values import Filled, fill_gaps
from derand.certificates.bounds.packing import Problem
from derand.certificates.bounds.worst_case import find_reach
from derand.certificates.rules.base import DUAL, EXACT
from derand.certificates.rules.mean import expect_scores, find_case, find_fall, find_radii, mean_error
from derand.certificates.rules.regression import Distances, Ends, NumberRule, find_least_sums
from derand.kernels.worst_case.steps import Reach
from derand.noise import Noise
from derand.perturbation import Perturbation


class NumberByMean(NumberRule):
    """The answer is the expected score."""

    def __init__(self, problem: Problem, noise: Noise | None, perturbation: Perturbation) -> None:
        self._problem, self._terms, self._noise, self._perturbation = problem, problem.terms, noise, perturbation

    def find_scores(self, rows: FloatArray) -> NDArray[Any]:
        """Expected scores; without noise whole numbers."""
        expected = expect_scores(self._terms, rows, self._noise)
        if self._noise is None or not self._terms.n_terms:
            return expected.astype(np.int64) + self._terms.fixed_scores(rows)
        return np.asarray(expected + self._terms.fixed_scores(rows))

    def bound(self, rows: FloatArray, radius: float) -> Ends:
        """The lowest and the highest expected score within the threat.

        By more than it can be off, ends lie beyond the computed answer, too (docs/regression.md).
        """
        terms, wider = self._terms, self._problem.widening
        filled, reach = self._place(rows)
        fixed, (falls, rises) = terms.fixed_scores(rows), self._shift(rows)
        least: list[NDArray[Any]] = [self._find_least(filled, reach, radius, side) for side in (0, 1)]
        gone = [np.ravel(find_fall(terms, filled, self._noise, self._perturbation, reach, side)) for side in (0, 1)]
        scores = self.find_scores(rows)
        if scores.dtype.kind == "i":
            least, gone = ([np.ceil(one).astype(np.int64) for one in sides] for sides in (least, gone))
        low = terms.base + terms.step * least[1] + fixed - falls - gone[1] - wider
        high = terms.base + terms.step * (terms.largest - least[0]) + fixed + rises + gone[0] + wider
        if scores.dtype.kind == "f":
            slack = terms.step * mean_error(terms) + self._find_slack(fixed) + 8 * EPSILON * (falls + rises + sum(gone))
            low, high = low - slack, high + slack
        return Ends(scores, low, high)

    def measure(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the expected score stays within so many grid units."""
        terms, wider = self._terms, self._problem.widening
        filled, reach = self._place(rows)
        fixed, (falls, rises) = terms.fixed_scores(rows), self._shift(rows)
        scores = self.find_scores(rows)
        cuts: list[NDArray[Any]]
        if scores.dtype.kind == "i":
            room = math.floor(tolerance)
            cuts = [scores + room - fixed - terms.base, scores - room - 1 - fixed - terms.base]
        else:
            near = float(tolerance) * (1 - 2 * EPSILON)
            slack = self._find_slack(fixed) + 4 * EPSILON * near
            cuts = [scores - fixed - terms.base + near - slack, scores - fixed - terms.base - near + slack]
        found = []
        for side, shift in ((0, rises), (1, falls)):
            fall = find_fall(terms, filled, self._noise, self._perturbation, reach, side)
            moved = shift[:, None] + fall + wider
            cut = cuts[side][:, None] + moved if side else cuts[side][:, None] - moved
            radius, proof = find_radii(terms, filled.rows, self._noise, self._perturbation, reach, side, cut)
            is_bound = (proof == EXACT) & (self._perturbation.norm is not None) & (np.asarray(fall) > 0)
            found.append((radius[:, 0], np.where(is_bound, DUAL, proof)[:, 0]))
        (high, by_high), (low, by_low) = found
        return Distances(scores, np.minimum(low, high), np.where(low < high, by_low, by_high).astype(np.uint8))

    def _place(self, rows: FloatArray) -> tuple[Filled, Reach | None]:
        filled = fill_gaps(self._terms, rows, self._noise)
        return filled, find_reach(self._perturbation, filled.rows, filled.gaps)

    def _shift(self, rows: FloatArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Largest fall and rise by categories."""
        falls, rises = self._terms.category_shifts(rows, np.array(self._perturbation.budgets), self._perturbation)
        return falls[:, 0], rises[:, 0]

    def _find_least(self, filled: Filled, reach: Reach | None, radius: float, side: int) -> FloatArray:
        """The least sum of reduced scores, of side 0 that of what is missing to the largest one."""
        terms, rows = self._terms, filled.rows
        if not terms.n_terms or not rows.size:
            return np.zeros(rows.shape[0])
        if radius == 0:
            here = (expect_scores(terms, rows, self._noise) - terms.base) / terms.step
            return here if side else terms.largest - here
        case = find_case(terms, self._noise, self._perturbation, side)
        whole = self._noise is None
        return find_least_sums(case, rows, self._perturbation, radius, reach, terms.largest, whole=whole)

    def _find_slack(self, fixed: NDArray[Any]) -> FloatArray:
        """More than all roundings between the expected sum of reduced scores and an answer, in grid units."""
        terms, problem = self._terms, self._problem
        size = abs(terms.base) + terms.step * terms.largest + abs(problem.threshold) + problem.widening
        return np.asarray(32 * EPSILON * (np.abs(fixed) + float(size)))
