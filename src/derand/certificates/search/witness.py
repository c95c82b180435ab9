"""Witnesses: rows within a box that flip the label, found where it is worst, term by term.

Whether such a row does flip is asked of the rule, by the function that `predict` calls. Must not know how a rule proves
what it says.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.bounds.pairwise import build_pair
from derand.certificates.kinds import Linear, Pairwise, kind_of
from derand.certificates.labels import find_labels
from derand.certificates.search.linear import attack_linear
from derand.certificates.search.worst_positions import change_missing, move_to_worst
from derand.model import Model
from derand.noise import Noise
from derand.perturbation import Perturbation


def search_witnesses(
    model: Model, rows: FloatArray, noise: Noise | None, rule: str, perturbation: Perturbation, labels: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Which rows have a change within the limits that flips their label, and the changed rows.

    The ball of the perturbation is not looked at. Rows that do not flip are as they were.
    """
    kind = kind_of(model)
    if isinstance(kind, Linear):
        changed, distance = attack_linear(kind.ensemble, rows, labels, perturbation)
        return np.isfinite(distance), changed
    if isinstance(kind, Pairwise):
        return _search_pairs(model, rows, noise, rule, perturbation, labels)
    low, high = perturbation.box(rows)
    signs = np.where(labels == 1, 1.0, -1.0)  # what is worst is lowest, after this
    may_miss = set(model.missing_features) - perturbation.frozen
    flips, witnesses = np.zeros(rows.shape[0], dtype=bool), np.array(rows, dtype=np.float64)
    for member in model.members:
        moved = move_to_worst(member, rows, noise, perturbation, signs, low, high)
        changing = [term for term in member.terms if len(term.axes) == 1 and term.axes[0].feature in may_miss]
        change_missing(moved, noise, changing, perturbation, signs)
        found = ~flips & (find_labels(model, moved, noise, rule=rule) != labels)
        witnesses[found], flips = moved[found], flips | found
    return flips, witnesses


def _search_pairs(
    model: Model, rows: FloatArray, noise: Noise | None, rule: str, perturbation: Perturbation, labels: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Of several classes: what flips a comparison, where it flips the label as well."""
    (ensemble,) = model.members
    flips, witnesses = np.zeros(rows.shape[0], dtype=bool), np.array(rows, dtype=np.float64)
    for low, high in ensemble.pairs:
        at = np.flatnonzero(~flips & ((labels == low) | (labels == high)))
        if not at.size:
            continue
        own_labels = (labels[at] == high).astype(np.int64)
        moved, changed = search_witnesses(
            build_pair(ensemble, low, high), rows[at], noise, rule, perturbation, own_labels
        )
        at, changed = at[moved], changed[moved]
        found = find_labels(model, changed, noise, rule=rule) != labels[at] if at.size else np.empty(0, dtype=bool)
        flips[at[found]], witnesses[at[found]] = True, changed[found]
    return flips, witnesses
