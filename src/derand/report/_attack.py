"""The nearest change that was found to flip a row, as a reader sees it. Must not know how it is searched for."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from derand._arrays import FloatArray
from derand.certificates import find_flip
from derand.report._inputs import Inputs, Subject
from derand.report._types import Attack, Change
from derand.report._verdicts import describe_witness
from derand.text import format_short, format_short_up

_LISTED = 6
_WORTH_TELLING = 1e-3
"""A feature counts as moved where its move is at least this share of the whole change."""


def summarize_attack(inputs: Inputs, row: int) -> Attack:
    """The nearest flip that was found from a row, and which features it moves most."""
    if inputs.plain.flips is not None:
        return _tell_witness(inputs, row)
    subject = inputs.subject
    flip = find_flip(subject.model, inputs.matrix, subject.noise, inputs.plain, row=row)
    if flip is None or not _is_allowed(inputs, row, flip.row):
        possible = subject.model.numerical_features and np.isfinite(inputs.plain.radius[row])
        return {"found": False, "searched": bool(possible)}
    start = inputs.matrix[row]
    moved = _list_moved(inputs, start, flip.row, flip.distance)
    return {
        "found": True,
        "searched": True,
        "distance": flip.distance,
        "distance_text": format_short_up(flip.distance),
        "label": str(flip.label),
        "n_changes": len(moved),
        "changes": [_describe_change(subject, start, flip.row, feature) for feature in moved[:_LISTED]],
    }


def _tell_witness(inputs: Inputs, row: int) -> Attack:
    """The witness of a row that flips within its limits."""
    if inputs.plain.flips is None or not inputs.plain.flips[row]:
        return {"found": False, "searched": bool(inputs.plain.radius[row] == 0)}
    witness = describe_witness(inputs, row)
    keys: tuple[Literal["name", "before", "after", "move"], ...] = ("name", "before", "after", "move")
    told = [{key: change[key] for key in keys} for change in witness["changes"][:_LISTED]]
    return {
        "found": True,
        "searched": True,
        "distance": None,
        "distance_text": "",
        "label": witness["other"],
        "n_changes": len(witness["changes"]),
        "changes": cast(list[Change], told),
    }


def _is_allowed(inputs: Inputs, row: int, flipped: FloatArray) -> bool:
    """Whether a flip keeps to frozen columns, limits and domains, of which the search does not know."""
    if not inputs.threat.has_box:
        return True
    columns = inputs.subject.model.numerical_features
    low, high = inputs.threat.find_box(inputs.matrix[row : row + 1], columns)
    at = [column for column in columns if not np.isnan(flipped[column])]  # what is missing stays so
    return bool(((flipped[at] >= low[0, at]) & (flipped[at] <= high[0, at])).all())


def _list_moved(inputs: Inputs, before: FloatArray, after: FloatArray, distance: float) -> list[int]:
    """Features that a change moves by more than a trifle, from the largest move in units to the smallest."""
    features = np.array(inputs.subject.model.numerical_features, dtype=np.int64)
    sizes = np.abs(after[features] - before[features]) / inputs.units[features]
    order = np.argsort(-sizes, kind="stable")
    least = 0.0 if inputs.threat.norm == 0 else _WORTH_TELLING * distance  # there a distance counts columns
    return [int(features[at]) for at in order if sizes[at] > least]


def _describe_change(subject: Subject, before: FloatArray, after: FloatArray, feature: int) -> Change:
    return {
        "name": subject.names[feature],
        "before": format_short(before[feature], 5),
        "after": format_short(after[feature], 5),
        "move": f"{after[feature] - before[feature]:+.3g}",
    }
