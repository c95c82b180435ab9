"""Where searches for changes begin: rows after changes that have no size, and the feasible set around them.

Owns the order of such changes (categories, numbers that go missing or appear), from the worst one to none. Must not
know how a search goes on from there.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.search.feasible_set import FeasibleSet
from derand.certificates.search.worst_positions import change_categories, change_missing
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise
from derand.perturbation import Perturbation

_STARTS = 3


def list_starts(
    model: Model, noise: Noise | None, perturbation: Perturbation, rows: FloatArray, labels: IntArray
) -> list[FloatArray]:
    """The rows after changes that have no size, each way that is worth trying, from the worst one to none."""
    starts = []
    for member, weight in _list_weighted(model):
        signs = np.where(labels == 1, 1.0, -1.0) * (1.0 if weight >= 0 else -1.0)
        moved = rows.copy()
        tables = [term for term in member.terms if not term.axes and term.features[0] not in perturbation.frozen]
        change_categories(moved, rows, tables, perturbation, signs)
        may_miss = set(model.missing_features) - perturbation.frozen
        changing = [term for term in member.terms if len(term.axes) == 1 and term.axes[0].feature in may_miss]
        missed = moved.copy()
        change_missing(missed, noise, changing, perturbation, signs)
        starts += [missed, moved]
    starts.append(rows)
    every = [one for k, one in enumerate(starts) if not any(are_same(one, other).all() for other in starts[:k])]
    return every[:_STARTS]


def _list_weighted(model: Model) -> list[tuple[AdditiveEnsemble, float]]:
    weights = np.ones(len(model.members)) if model.weights is None else model.weights
    return list(zip(model.members, weights.tolist(), strict=True))


def build_feasible_set(
    model: Model,
    noise: Noise | None,
    rule: str,
    perturbation: Perturbation,
    rows: FloatArray,
    starts: FloatArray,
    labels: IntArray,
) -> FeasibleSet:
    """The ground of rows that were changed already: columns that went missing or appeared stay as they are."""
    low, high = perturbation.box(rows)
    moving = perturbation.free & (rows == starts) & (low < high)
    low, high = np.where(moving, low, starts), np.where(moving, high, starts)
    return FeasibleSet(
        model,
        noise,
        rule,
        perturbation.norm,
        starts,
        labels,
        perturbation.units,
        low,
        high,
        perturbation.steps,
        moving,
        np.flatnonzero(moving.any(axis=0)),
    )


def are_same(first: FloatArray, second: FloatArray) -> BoolArray:
    """Where two arrays hold the same numbers, or none in both."""
    return np.asarray((first == second) | (np.isnan(first) & np.isnan(second)))
