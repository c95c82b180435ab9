"""The nearest change that was found to flip a row, as a reader sees it. Must not know how it is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np

from derand._arrays import FloatArray
from derand.certificates import Attacks, attack
from derand.report._inputs import Inputs
from derand.report._types import Attack, Change
from derand.report._verdicts import list_changes
from derand.text import format_short_up

_LISTED = 6
_WORTH_TELLING = 1e-3
"""A feature counts as moved where its move is at least this share of the whole change."""
_KEYS: tuple[Literal["name", "before", "after", "move"], ...] = ("name", "before", "after", "move")


def summarize_attacks(inputs: Inputs, rows: Sequence[int]) -> list[Attack]:
    """The nearest flips that were found from some rows, and which features they move most.

    A flip inside what is certified ends the report with an UnsoundError.
    """
    if inputs.plain.flips is not None:
        return [_tell_witness(inputs, row) for row in rows]
    subject, plain = inputs.subject, inputs.plain
    at = np.asarray(rows, dtype=np.int64)
    found = attack(
        subject.model, inputs.matrix[at], subject.noise, rule=plain.rule, threat=plain.threat, others=inputs.matrix
    ).with_classes(plain.classes)
    found.require_outside(plain[at])
    return [_tell_flip(inputs, row, found, k) for k, row in enumerate(rows)]


def _tell_flip(inputs: Inputs, row: int, attacks: Attacks, at: int) -> Attack:
    model, threat = inputs.subject.model, inputs.plain.threat
    if not attacks.found[at]:
        possible = model.numerical_features or (threat.l0 and model.categorical_features)
        return {"found": False, "searched": bool(possible and np.isfinite(inputs.plain.radius[row]))}
    distance = float(attacks.distance[at])
    changes = _choose_changes(inputs, inputs.matrix[row], attacks.rows[at], distance)
    return {
        "found": True,
        "searched": True,
        "distance": distance,
        "distance_text": format_short_up(distance),
        "label": str(attacks.flipped[at]),
        "n_changes": len(changes),
        "changes": changes[:_LISTED],
    }


def _tell_witness(inputs: Inputs, row: int) -> Attack:
    """The witness of a row that flips within its limits."""
    plain = inputs.plain
    if plain.flips is None or plain.witness is None or not plain.flips[row]:
        return {"found": False, "searched": bool(plain.radius[row] == 0)}
    changes = _choose_changes(inputs, inputs.matrix[row], plain.witness[row], 0.0)
    classes = plain.classes.tolist()
    return {
        "found": True,
        "searched": True,
        "distance": None,
        "distance_text": "",
        "label": str(classes[1 - classes.index(plain.label[row])]),
        "n_changes": len(changes),
        "changes": changes[:_LISTED],
    }


def _choose_changes(inputs: Inputs, before: FloatArray, after: FloatArray, distance: float) -> list[Change]:
    """Changes of more than a trifle, from the largest move in units to the smallest."""
    least = 0.0 if not inputs.plain.norm else _WORTH_TELLING * distance  # for norm 0 a distance counts columns
    told = []
    for change in list_changes(inputs, before, after):
        old, new = change["before_value"], change["after_value"]
        if old is None or new is None or abs(new - old) / inputs.units[change["feature"]] > least:
            told.append({key: change[key] for key in _KEYS})
    return cast(list[Change], told)
