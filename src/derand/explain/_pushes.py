"""Pushes: scores of single columns, measured so that they add up to the distance from the threshold.

Must not know tables, names or rows' certificates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.explain.plots import measure_heights
from derand.model import AdditiveEnsemble, Model, Term
from derand.noise import Noise


def find_sum(model: Model) -> AdditiveEnsemble | None:
    """The one sum that a model is; None for a vote of several."""
    if model.weights is not None and (len(model.members) > 1 or model.weights[0] <= 0):
        return None
    return model.members[0]


class Pushes:
    """Scores measured from a neutral point: above 0 pushes towards class 1, and all pushes add up to score - threshold.

    The neutral point divides every term's range at the same share, so that all terms at their neutral points sit
    exactly on the threshold. It needs no data. Of a linear model, whose terms have no range, it is the mean over some
    rows, and what these are off the threshold is shared. `points` is how many whole scores count as 1.
    """

    def __init__(self, model: AdditiveEnsemble, points: float = 1.0, rows: FloatArray | None = None) -> None:
        self._points = points
        if model.is_linear:
            self.neutral = _find_neutral(model, rows)
            return
        ranges = {term.features: term.score_range() for term in model.terms}
        lowest = sum(low for low, _ in ranges.values())
        span = sum(high - low for low, high in ranges.values())
        room = (model.threshold or 0) - lowest
        share = room / span if span else 0.0
        self.neutral = {features: low + share * (high - low) for features, (low, high) in ranges.items()}

    def of_scores(self, term: Term, scores: ArrayLike) -> FloatArray:
        """Pushes of scores of a term."""
        return (np.asarray(scores, dtype=np.float64) - self.neutral[term.features]) / self._points

    def under_noise(self, term: Term, x: FloatArray, noise: Noise | None) -> FloatArray:
        """Mean push of values of the term's column under noise, if there is any; it acts neither on categories nor on
        missing values. Of several columns x has one more axis."""
        return self.of_scores(term, measure_heights(term, x, noise)[:, 0])


def _find_neutral(model: AdditiveEnsemble, rows: FloatArray | None) -> dict[tuple[int, ...], float]:
    """Neutral points of a linear model: mean scores of terms, moved alike so that they sit on the threshold."""
    table = np.zeros((1, model.n_features)) if rows is None or not len(rows) else rows
    means = {term.features: float(term.score_rows(table).mean()) for term in model.terms}
    shared = ((model.threshold or 0) - math.fsum(means.values())) / len(means)
    return {features: mean + shared for features, mean in means.items()}
