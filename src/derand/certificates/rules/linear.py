"""Linear regression: the prediction is the score, under any rule and noise; ends are that less its decrease.

Owns the ends and distances of such predictions. What the program rounds of a score counts as an error of its slopes, so
that computed predictions stay within the ends as well as those of the model that is meant. Must not know how decreases
are bounded.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand.certificates.bounds.linear import LinearSum
from derand.certificates.bounds.linear_duality import bound_decreases, bound_distances
from derand.certificates.rules.base import EXACT, NO_PROOF, Distances, Ends, Query, Score, join_ends
from derand.certificates.rules.mean import block_rows
from derand.model import AdditiveEnsemble


class LinearScore(Score):
    """The answer is the score."""

    def __init__(self, model: AdditiveEnsemble, query: Query, n_rows: int) -> None:
        assert model.offset is not None  # see `require_number`
        own = LinearSum.of(model, -model.offset)
        self._rounding = (len(model.terms) + 8) * EPSILON
        self._linear = replace(own, errors=own.errors + self._rounding * np.abs(own.slopes))
        self._perturbation, self.block_rows = query.perturbation, block_rows(n_rows, query)

    def compute(self, rows: FloatArray) -> FloatArray:
        """The scores."""
        return self._linear.model.score(rows)

    def bound_interval(self, rows: FloatArray, radius: float) -> Ends:
        """The score less its decrease, and plus its increase, within the threat."""
        scores, slack = self.compute(rows), self._compute_slack(rows)
        low, high = (self._bound_decrease(rows, radius, is_high) + slack for is_high in (1, 0))
        return Ends(scores, scores - low * (1 + 4 * EPSILON), scores + high * (1 + 4 * EPSILON))

    def bound_radius(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the score stays within so many grid units."""
        room = float(tolerance) * (1 - 2 * EPSILON) - self._compute_slack(rows)
        multipliers = self._linear.compute_multipliers(self._perturbation)
        found = []
        for is_high in (0, 1):
            caps = self._linear.compute_caps(self._perturbation, rows, is_high)
            shift = self._linear.shift_categories(rows, self._perturbation, is_high)[:, 0]
            left = (room - shift) - 2 * EPSILON * (np.abs(room) + shift)
            radius = bound_distances(left, multipliers, caps, self._perturbation.norm)
            found.append((radius, np.where(radius > 0, EXACT, NO_PROOF)))
        return join_ends(self.compute(rows), *found)

    def _bound_decrease(self, rows: FloatArray, radius: float, is_high: int) -> FloatArray:
        multipliers = self._linear.compute_multipliers(self._perturbation)
        caps = self._linear.compute_caps(self._perturbation, rows, is_high)
        norm = self._perturbation.norm
        shift = self._linear.shift_categories(rows, self._perturbation, is_high)[:, 0]
        size = radius * (1 + EPSILON) if norm and math.isfinite(radius) else radius
        return bound_decreases(size, multipliers, caps, norm) + shift

    def _compute_slack(self, rows: FloatArray) -> FloatArray:
        """More than all that is off in the row itself, and in what is made of a score: the offset, the levels."""
        model = self._linear.model
        far = sum(max(map(abs, one.score_range())) for one in self._linear.tables.fixed)
        size = np.abs(self.compute(rows)) + abs(float(self._linear.threshold)) + far
        return np.asarray((2 * model.bound_errors(rows) + 2 * self._rounding * size) * (1 + 8 * EPSILON))
