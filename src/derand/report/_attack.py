"""The nearest change that was found to flip a row, as a reader sees it. Must not know how it is searched for."""

from __future__ import annotations

import numpy as np

from derand._arrays import FloatArray
from derand.certificates import find_flip
from derand.report._inputs import Inputs, Subject
from derand.report._types import Attack, Change
from derand.text import format_short, format_short_up

_LISTED = 6
_WORTH_TELLING = 1e-3
"""A feature counts as moved where its move is at least this share of the whole change."""


def summarize_attack(inputs: Inputs, row: int) -> Attack:
    """The nearest flip that was found from a row, and which features it moves most."""
    subject = inputs.subject
    flip = find_flip(subject.model, inputs.matrix, subject.noise, inputs.plain, row=row)
    if flip is None:
        possible = subject.model.numerical_features and np.isfinite(inputs.plain.radius[row])
        return {"found": False, "searched": bool(possible)}
    start = inputs.matrix[row]
    moved = _list_moved(subject, start, flip.row, flip.distance)
    return {
        "found": True,
        "searched": True,
        "distance": flip.distance,
        "distance_text": format_short_up(flip.distance),
        "label": str(flip.label),
        "n_changes": len(moved),
        "changes": [_describe_change(subject, start, flip.row, feature) for feature in moved[:_LISTED]],
    }


def _list_moved(subject: Subject, before: FloatArray, after: FloatArray, distance: float) -> list[int]:
    """Features that a change moves by more than a trifle, from the largest move in units to the smallest."""
    features = np.array(subject.model.numerical_features, dtype=np.int64)
    sizes = np.abs(after[features] - before[features]) / subject.units[features]
    order = np.argsort(-sizes, kind="stable")
    return [int(features[at]) for at in order if sizes[at] > _WORTH_TELLING * distance]


def _describe_change(subject: Subject, before: FloatArray, after: FloatArray, feature: int) -> Change:
    return {
        "name": subject.names[feature],
        "before": format_short(before[feature], 5),
        "after": format_short(after[feature], 5),
        "move": f"{after[feature] - before[feature]:+.3g}",
    }
