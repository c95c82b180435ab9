"""Nonconformity of answers, and the largest that a change within a threat can make it.

Of classes the score of the strongest rival less that of the class, of numbers the distance from the answer. Whether the
true answer of a changed row stays in a set is asked of the row before the change: percentages and one-sided limits
around the row that is seen are another set. Owns these scores. Must not know how many rows a set must cover.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.pairwise import build_pair
from derand.certificates.regression import certify_interval_checked, find_answers
from derand.certificates.statements.domain import require_sum
from derand.model import AdditiveEnsemble, Model, Value
from derand.noise import Noise
from derand.threat import Threat


def measure_nonconformity(model: Model, rows: FloatArray, noise: Noise | None) -> FloatArray:
    """The nonconformity of each class in each row, (n_rows, n_classes): above 0 where a rival is ahead."""
    found = np.full((len(rows), model.n_classes), -np.inf)
    for low, high, lead in _list_leads(model, noise):
        value = find_answers(lead, rows, noise, rule="mean")
        found[:, high] = np.maximum(found[:, high], -value)
        found[:, low] = np.maximum(found[:, low], value)
    return found


def bound_nonconformity(
    model: Model, rows: FloatArray, truth: IntArray, noise: Noise | None, threat: Threat, radius: float | None
) -> FloatArray:
    """Upper bounds of the nonconformity of each row's true class within a threat, (n_rows,)."""
    found = np.full(len(rows), -np.inf)
    for low, high, lead in _list_leads(model, noise):
        for label in (low, high):
            at = np.flatnonzero(truth == label)
            if at.size:
                ends = certify_interval_checked(lead, rows[at], noise, threat, radius=radius, rule="mean")
                found[at] = np.maximum(found[at], -ends.low if label == high else ends.high)
    return found


def bound_distance(
    model: Model, rows: FloatArray, truth: FloatArray, noise: Noise | None, threat: Threat, radius: float | None
) -> FloatArray:
    """Upper bounds of how far the answer of each row lies from its true number within a threat, (n_rows,)."""
    require_sum(model, noise, "mean")
    ends = certify_interval_checked(model, rows, noise, threat, radius=radius, rule="mean")
    return np.maximum(np.abs(truth - ends.low), np.abs(ends.high - truth))


def _list_leads(model: Model, noise: Noise | None) -> list[tuple[int, int, AdditiveEnsemble]]:
    """For each pair of classes how far the higher one is ahead of the lower one, as a number."""
    ensemble = require_sum(model, noise, "mean")
    pairs = [(0, 1)] if ensemble.n_outputs == 1 else list(ensemble.pairs)
    found = []
    for low, high in pairs:
        pair = ensemble if ensemble.n_outputs == 1 else build_pair(ensemble, low, high)
        offset = Value(-(pair.threshold or 0))
        found.append((low, high, AdditiveEnsemble(pair.terms, offset, pair.n_features, pair.levels, pair.score_error)))
    return found
