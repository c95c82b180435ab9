"""A search for a change that does flip the label: an upper bound of the true radius, beside the certified lower one.

Tries the direction in which the score falls fastest, followed as it bends; single features; and the ways to the nearest
rows that have the other label. It proves nothing where it finds nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.certificates import certify
from derand.ensemble import StepFunction
from derand.report._inputs import FloatArray, Inputs, Subject
from derand.text import format_short, format_short_up

_STEPS = 24
_REFINEMENTS = 12
_SINGLE_FEATURES = 4
_NEAREST_ROWS = 8
_CANDIDATE_ROWS = 20_000
_REACH = 12.0
"""How far the search goes, in magnitudes of the noise beyond the certified radius."""
_LISTED = 6
_WORTH_TELLING = 1e-3
"""A feature counts as moved where its move is at least this share of the whole change."""


def find_attack(inputs: Inputs, row: int) -> dict[str, Any]:
    """The nearest flip that was found from a row, in the radius's own measure; only numerical features change.

    Returns
    -------
    dict
        `found`; and where it is true `distance` (an upper bound of the true radius), `label` and the `changes`.
    """
    subject = inputs.subject
    free = np.array(subject.numerical, dtype=np.int64)
    if not free.size or np.isinf(inputs.plain.radius[row]):
        return {"found": False, "searched": False}
    start = inputs.matrix[row]
    home = _label(subject, start[None])[0]
    ends = _list_ends(inputs, row, free, bool(home))
    flips = _first_flips(subject, start, np.reshape(ends, (-1, start.size)), home)
    if not flips.size:
        return {"found": False, "searched": True}
    distances = [measure(subject, flip - start, free) for flip in flips]
    distance, best = min(distances), flips[int(np.argmin(distances))]
    sizes = np.abs(best[free] - start[free]) / subject.units[free]
    moved = [int(free[at]) for at in np.argsort(-sizes, kind="stable") if sizes[at] > _WORTH_TELLING * distance]
    return {
        "found": True,
        "searched": True,
        "distance": distance,
        "distance_text": format_short_up(distance),
        "label": str(subject.classes[1 - int(home)]),
        "n_changes": len(moved),
        "changes": [
            {
                "name": subject.names[feature],
                "before": format_short(start[feature], 5),
                "after": format_short(best[feature], 5),
                "move": f"{best[feature] - start[feature]:+.3g}",
            }
            for feature in moved[:_LISTED]
        ],
    }


def measure(subject: Subject, change: FloatArray, features: NDArray[np.int64]) -> float:
    """Size of a change in the noise's norm and units, rounded up by a hair."""
    scaled = change[features] / subject.units[features]
    return float(np.linalg.norm(scaled, ord=subject.noise.norm) * (1 + 1e-12))


def _label(subject: Subject, rows: FloatArray) -> NDArray[Any]:
    return np.asarray(certify(subject.model, rows, subject.noise, n_jobs=1).label)


def _list_ends(inputs: Inputs, row: int, free: NDArray[np.int64], is_one: bool) -> list[FloatArray]:
    """Points to walk to in straight lines."""
    subject, start = inputs.subject, inputs.matrix[row]
    reach = float(inputs.plain.radius[row]) + _REACH * subject.noise.magnitude
    ends = _near_rows(inputs, row, free)
    directions = _downhill(inputs, start, free, is_one, reach)
    for direction in directions:
        length = np.linalg.norm(direction, ord=subject.noise.norm)
        if length > 0:
            end = start.copy()
            end[free] += direction / length * reach * subject.units[free]
            ends.append(end)
    return ends


def _near_rows(inputs: Inputs, row: int, free: NDArray[np.int64]) -> list[FloatArray]:
    """The nearest rows of the other label, with the categories of this one."""
    subject, start = inputs.subject, inputs.matrix[row]
    others = np.flatnonzero(inputs.plain.label != inputs.plain.label[row])
    others = others[:: max(1, others.size // _CANDIDATE_ROWS)]
    if not others.size:
        return []
    scaled = (inputs.matrix[np.ix_(others, free)] - start[free]) / subject.units[free]
    nearest = np.argsort(np.linalg.norm(scaled, ord=subject.noise.norm, axis=1), kind="stable")[:_NEAREST_ROWS]
    ends = []
    for other in others[nearest].tolist():
        end = start.copy()
        end[free] = inputs.matrix[other, free]
        ends.append(end)
    return ends


def _downhill(
    inputs: Inputs, start: FloatArray, free: NDArray[np.int64], is_one: bool, reach: float
) -> list[FloatArray]:
    """Directions in units: single features, and the steepest one at the row and at points further along it."""
    model = inputs.subject.additive
    if model is None:
        both = np.concatenate([np.eye(free.size), -np.eye(free.size)])
        return list(both[: 8 * _SINGLE_FEATURES])
    terms = {term.feature: term for term in model.step_functions}
    used = [terms[feature] for feature in free.tolist()]
    sign = -1.0 if is_one else 1.0
    here = start.copy()
    directions: list[FloatArray] = []
    for share in (0.1, 0.2, 0.4, 0.8):
        slope = sign * np.array([_slope(inputs.subject, term, here[term.feature]) for term in used])
        directions.append(slope)
        if not directions[:-1]:
            for at in np.argsort(-np.abs(slope), kind="stable")[:_SINGLE_FEATURES].tolist():
                directions.append(np.sign(slope[at]) * np.eye(free.size)[at])
        total = np.linalg.norm(slope, ord=inputs.subject.noise.norm)
        if total == 0:
            break
        here = start.copy()
        here[free] += slope / total * share * reach * inputs.subject.units[free]
    return directions


def _slope(subject: Subject, term: StepFunction, x: float) -> float:
    """Rise of the mean score per unit, over one magnitude of the noise."""
    half = 0.5 * float(subject.noise.scales(np.array([term.feature]))[0])
    cells = subject.noise.cell_probabilities([x - half, x + half], term.edges, term.feature)
    low, high = cells @ term.scores[:, 0]
    return float(high - low)


def _first_flips(subject: Subject, start: FloatArray, ends: FloatArray, home: Any) -> FloatArray:
    """The first points seen to flip on the ways from start to each end, brought nearer by halving, if there are any."""
    ways = ends - start
    if not len(ways):
        return ways
    shares = np.linspace(0.0, 1.0, _STEPS + 1)[1:]
    points = start + shares[:, None, None] * ways
    flipped = (_label(subject, points.reshape(-1, start.size)) != home).reshape(_STEPS, len(ends))
    ways, flipped = ways[flipped.any(axis=0)], flipped[:, flipped.any(axis=0)]
    if not len(ways):
        return np.asarray(ways)
    far = shares[flipped.argmax(axis=0)]
    near = far - 1.0 / _STEPS
    for _ in range(_REFINEMENTS):
        middle = 0.5 * (near + far)
        flips = _label(subject, start + middle[:, None] * ways) != home
        near, far = np.where(flips, near, middle), np.where(flips, middle, far)
    return np.asarray(start + far[:, None] * ways)
