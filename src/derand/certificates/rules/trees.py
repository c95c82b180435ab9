"""Regression by trees without noise: the prediction is the score; ends and distances are what the search proves.

Must not know how sums of trees are searched.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.trees import HOLDS, bound_scores, decide_within, measure_radii
from derand.certificates.rules.base import EXACT, NO_PROOF, Distances, Ends, Query, Score, join_ends
from derand.certificates.rules.mean import block_rows
from derand.model import AdditiveEnsemble, Contrast

_FAR = 2.0**55
"""More than any score."""


def open_ball(radius: float, norm: float | None, n_rows: int) -> FloatArray | None:
    """The radius of each row, closer than which changes are; for norm 0 so many columns change at most."""
    if norm is None:
        return None
    return np.full(n_rows, math.floor(min(radius, _FAR)) + 1.0 if norm == 0 else radius)


class TreeScore(Score):
    """The answer is the score, a whole number."""

    def __init__(self, model: AdditiveEnsemble, query: Query, n_rows: int) -> None:
        self._model, self._contrast, self._query = model, model.as_sum(), query
        self.block_rows = block_rows(n_rows, query)

    def compute(self, rows: FloatArray) -> IntArray:
        """The scores."""
        return np.asarray(self._model.score(rows), dtype=np.int64)

    def bound_interval(self, rows: FloatArray, radius: float) -> Ends:
        """The least and the largest score within the threat that the search proves, errors included."""
        asked, scores = self._query.perturbation, self.compute(rows)
        reach = open_ball(radius, asked.norm, len(rows))
        found = bound_scores(self._contrast, rows, asked, self._query.search.budget, 1, reach)
        low, high = np.maximum(np.floor(found.least), -_FAR), np.minimum(np.ceil(found.most), _FAR)
        low, high = np.minimum(low.astype(np.int64), scores), np.maximum(high.astype(np.int64), scores)
        return Ends(scores, low, high)

    def bound_radius(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the score stays within so many grid units."""
        scores, room = self.compute(rows), math.floor(tolerance)
        terms = self._contrast.terms
        is_exact = not self._contrast.score_error and not any(term.largest_rounding for term in terms if term.is_tree)
        found = []  # whole scores above a level are at least one more; with errors they are just above it
        for is_high, levels in ((False, scores + room), (True, scores - room - int(is_exact))):
            radius = self._bound_levels(rows, levels, is_high=is_high)
            found.append((radius, np.where(radius > 0, EXACT, NO_PROOF)))
        return join_ends(scores, *found)

    def _bound_levels(self, rows: FloatArray, levels: IntArray, *, is_high: bool) -> FloatArray:
        """How far rows may be moved while the score stays above a level of each row, or does not get above it."""
        asked, budget, radius = self._query.perturbation, self._query.search.budget, np.zeros(len(rows))
        for level in np.unique(levels).tolist():
            at = np.flatnonzero(levels == level)
            contrast: Contrast = replace(self._contrast, threshold=level)
            is_one = np.full(at.size, is_high)
            if asked.norm is None:
                held = decide_within(contrast, rows[at], is_one, asked, budget, 1).status == HOLDS
                radius[at] = np.where(held, np.inf, 0.0)
            else:
                radius[at] = measure_radii(contrast, rows[at], is_one, asked, budget, 1).certified
        return radius
