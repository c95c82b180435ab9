"""The median of noisy copies as the answer.

Owns the answer by the rule "vote", the lower median of the exact law, the ends that it cannot leave and how far it may
be moved, by both proofs of a vote: at any level, "the score is above it" is a label. Must not know how masses are
summed or worst cases found.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.deduction import choose_caps, deduct
from derand.certificates.bounds.failure_masses import Law
from derand.certificates.bounds.missing_changes import (
    MOST_SETS,
    add_largest,
    bound_falls,
    change_rows,
    count_sets,
    list_changing,
    list_sets,
)
from derand.certificates.bounds.missing_values import Filled, fill_gaps, find_ends
from derand.certificates.bounds.packing import Problem
from derand.certificates.bounds.worst_case import find_reach, find_smoothed_case
from derand.certificates.rules.base import NO_PROOF, PAPER, Engine
from derand.certificates.rules.regression import Distances, Ends, NumberRule, find_least_sums, holds_at, search_levels
from derand.certificates.rules.vote import Columns, SecondProof, carry_over
from derand.kernels.worst_case.steps import Reach
from derand.noise import Noise
from derand.perturbation import Perturbation

_CUTS = 15
"""Levels that one pass over the law is asked about."""


class NumberByVote(NumberRule):
    """The answer is the lowest score that noisy copies do not exceed with a probability of 1/2 or more."""

    def __init__(self, problem: Problem, noise: Noise, perturbation: Perturbation, engine: Engine) -> None:
        self._problem, self._terms, self._noise, self._perturbation = problem, problem.law, noise, perturbation
        self._law = Law(engine.kernels, problem.law, noise)
        self._is_best = engine.proof == "best"
        self._moving = self._terms.moving
        self._columns = Columns(problem, perturbation)
        self._second = SecondProof(problem, noise, perturbation) if self._is_best and self._terms.n_terms else None

    def find_scores(self, rows: FloatArray) -> IntArray:
        """Medians of the scores."""
        terms = self._terms
        median = self._find_medians(fill_gaps(terms, rows, self._noise))
        return np.asarray(terms.base + terms.step * median + terms.fixed_scores(rows))

    def bound(self, rows: FloatArray, radius: float) -> Ends:
        """Whole scores that the median does not leave within the threat.

        A variant, in which some numbers go missing or appear, has ends of its own: the outermost ones count.
        """
        terms, wider, asked = self._terms, self._problem.widening + self._terms.error, self._perturbation
        filled = fill_gaps(terms, rows, self._noise)
        falls, rises = (side[:, 0] for side in terms.category_shifts(rows, np.array(asked.budgets), asked))
        median = self._find_medians(filled)
        low, high = self._find_ends(filled, radius, median, median)
        gaps = list_changing(terms, asked)
        budget = min(asked.missing_budget, len(gaps))
        if count_sets(len(gaps), budget) > MOST_SETS:
            low = low - add_largest(bound_falls(gaps, filled, 1), budget)
            high = high + add_largest(bound_falls(gaps, filled, 0), budget)
        else:
            for chosen in list_sets(gaps, budget):
                variant = change_rows(filled, chosen, self._noise)
                least, most = self._list_ends(variant.filled)
                lower, higher = self._find_ends(variant.filled, radius, most, least)
                low, high = np.minimum(low, lower - variant.falls), np.maximum(high, higher + variant.rises)
        fixed = terms.fixed_scores(rows)
        score = terms.base + terms.step * median + fixed
        return Ends(score, low + fixed - falls - wider, high + fixed + rises + wider)

    def measure(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the median stays within so many grid units."""
        scores, room = self.find_scores(rows), math.floor(tolerance)
        cut = scores - self._terms.fixed_scores(rows)
        high, by_high = self._measure_side(rows, 0, cut + room)
        low, by_low = self._measure_side(rows, 1, cut - room - 1)
        return Distances(scores, np.minimum(low, high), np.where(low < high, by_low, by_high).astype(np.uint8))

    def _find_medians(self, filled: Filled) -> IntArray:
        """Reduced scores, each the first at which class 1 is not proven: what `Law.decide` says of it and of the next.

        The search ends between a level of class 1 and one that is not; labels are computed as everywhere.
        """
        terms = self._terms
        least, most = self._list_ends(filled)

        def is_above(cuts: IntArray) -> BoolArray:
            return self._law.decide_each(filled, terms.base + terms.step * cuts)

        return search_levels(is_above, least - 1, most, _CUTS) + 1

    def _list_ends(self, filled: Filled) -> tuple[IntArray, IntArray]:
        """The lowest and the highest reduced score that noise can give each row."""
        ends = find_ends(self._terms, filled.gaps)
        least, most = (np.broadcast_to(np.ravel(end), filled.rows.shape[:1]).astype(np.int64) for end in ends)
        return least, most

    def _find_ends(self, filled: Filled, radius: float, below: IntArray, above: IntArray) -> tuple[IntArray, IntArray]:
        """The scores that the median does not leave, without those of fixed terms: the better one of both proofs.

        The lower end is not looked for at the reduced score `below` or higher, the higher one not below `above`.
        """
        terms = self._terms
        reach = find_reach(self._perturbation, filled.rows, filled.gaps)
        least, most = self._list_ends(filled)

        def search(label: int, sure: IntArray, doubtful: IntArray) -> IntArray:
            is_one = np.full(filled.rows.shape[0], bool(label))

            def holds(cuts: IntArray) -> BoolArray:
                levels = terms.base + terms.step * cuts
                found = self._law.bound_side(filled, is_one, levels, levels)
                if radius == 0:
                    return holds_at(found.radius, radius)
                carried = carry_over(found.radius, self._noise, self._perturbation, self._moving, filled.rows, reach)
                return holds_at(np.where(found.constant, np.inf, carried), radius)

            return search_levels(holds, sure, doubtful, _CUTS)

        low = terms.base + terms.step * (search(1, least - 1, below) + 1)
        high = terms.base + terms.step * search(0, most, above - 1)
        if radius > 0 and self._is_best and self._problem.terms.n_terms and filled.rows.size:
            lower, higher = self._find_mean_ends(filled, radius, reach)
            low, high = np.maximum(low, lower), np.minimum(high, higher)
        return low, high

    def _find_mean_ends(self, filled: Filled, radius: float, reach: Reach | None) -> tuple[IntArray, IntArray]:
        """The same by the worst case of the expected score (docs/theory.md, section 8)."""
        terms, is_coarse = self._problem.terms, bool(self._terms.error)
        norm, units = self._perturbation.norm, self._perturbation.units
        ranges, band = terms.ranges, self._terms.tie_band()
        wider = self._terms.step / terms.step if is_coarse else 0.0
        best = np.full((2, filled.rows.shape[0]), -np.inf)
        for cap in choose_caps(ranges):
            deduction = deduct(np.minimum(ranges, cap) + wider, band)
            for label in (0, 1):
                case = find_smoothed_case(terms, self._noise, norm, units, label, cap)
                least = find_least_sums(
                    case, filled.rows, self._perturbation, radius, reach, terms.largest, whole=False
                )
                level = least - deduction - 4 * EPSILON * (least + deduction)
                best[label] = np.maximum(best[label], level)
        above = np.floor(best[1]).astype(np.int64)  # more than half of the copies exceed this reduced score
        reached = terms.largest - 1 - np.floor(best[0]).astype(np.int64)  # and more than half do not exceed this one
        if is_coarse:  # the law's own scores lie between those of the fine grid: only whole scores are left
            return terms.base + terms.step * above + 1, terms.base + terms.step * (reached + 1) - 1
        return terms.base + terms.step * (above + 1), terms.base + terms.step * reached

    def _measure_side(self, rows: FloatArray, label: int, cut: IntArray) -> tuple[FloatArray, NDArray[np.uint8]]:
        """How far rows may be moved while the median stays above a level, or for label 0 not above it; by what."""
        terms, columns, noise = self._terms, self._columns, self._noise
        filled, is_one = fill_gaps(terms, rows, noise), np.full(rows.shape[0], bool(label))
        reach = find_reach(self._perturbation, filled.rows, filled.gaps)
        falls, rises = terms.category_shifts(rows, columns.budgets, self._perturbation)
        highest, lowest = cut[:, None] + falls + columns.widenings, cut[:, None] - rises - columns.widenings
        found = self._law.bound_side(filled, is_one, *columns.shift_cuts(filled, highest, lowest))
        for variant in columns.list_variants(filled, noise):
            cuts = columns.take(highest) + variant.falls[:, None], columns.take(lowest) - variant.rises[:, None]
            found = found.lower(columns.missing, self._law.bound_side(variant.filled, is_one, *cuts))
        carried = carry_over(found.radius, noise, self._perturbation, self._moving, filled.rows, reach)
        radius = np.where(found.constant, np.inf, carried)
        proof = np.where(radius > 0, PAPER, NO_PROOF).astype(np.uint8)
        if self._second is not None:
            gone = columns.find_falls(filled, noise, is_one)
            self._second.improve(filled.rows, is_one, (highest, lowest, gone), reach, radius, proof)
        (at,) = columns.of_budgets
        return radius[:, at], proof[:, at]
