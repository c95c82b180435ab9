"""A change that flips a row made smaller: fewer columns, and each moved no farther than needed, as far as was found.

What comes out flips by the same labels as `predict` and keeps to what the change kept to: columns go back to their own
values, or part of the way. Must not know how changes are told.
"""

from __future__ import annotations

import numpy as np

from derand._arrays import BoolArray, FloatArray
from derand.certificates import find_labels
from derand.explaining import round_flip
from derand.report._inputs import Inputs

_PARTS = 16
_PASSES = 3


def shrink_change(inputs: Inputs, row: int, changed: FloatArray) -> FloatArray:
    """A smaller change of the same kind; the change itself where the model only stands for another one."""
    if any(member.score_error for member in inputs.subject.model.members):
        return changed  # a smaller change could flip this model alone
    own = inputs.matrix[row]
    kept = _drop_columns(inputs, own, changed, row)
    for feature in _order(inputs, own, kept)[::-1]:
        if feature in inputs.subject.categories or np.isnan(own[feature]) or np.isnan(kept[feature]):
            continue
        kept = _pull_back(inputs, row, kept, feature)
    return kept


def _flips(inputs: Inputs, row: int, rows: FloatArray) -> BoolArray:
    """Which of some changed rows get another answer, and keep to the limits."""
    plain, model = inputs.plain, inputs.subject.model
    own = inputs.matrix[row]
    home = int(np.searchsorted(plain.classes, plain.label[row]))
    low, high = inputs.perturbation.box(own[None])
    inside = ((rows >= low) & (rows <= high) | (rows == own) | np.isnan(rows) | np.isnan(own)).T
    numerical = list(model.numerical_features)
    keeps = inside[numerical].all(axis=0)
    return np.asarray(keeps & (find_labels(model, rows, plain.noise, rule=plain.rule) != home))


def _differ(own: FloatArray, changed: FloatArray) -> list[int]:
    return [int(at) for at in np.flatnonzero(~((own == changed) | (np.isnan(own) & np.isnan(changed))))]


def _order(inputs: Inputs, own: FloatArray, changed: FloatArray) -> list[int]:
    """Changed columns from the smallest move in units to the largest; those without a size come last."""
    moves = np.nan_to_num(np.abs(changed - own) / inputs.units, nan=np.inf)
    for feature in inputs.subject.categories:
        moves[feature] = np.inf
    return sorted(_differ(own, changed), key=lambda at: float(moves[at]))


def _drop_columns(inputs: Inputs, own: FloatArray, changed: FloatArray, row: int) -> FloatArray:
    """The same without columns that it does not need, the smallest moves tried first; once more, from the largest."""
    best = changed
    for order in (_order(inputs, own, changed), _order(inputs, own, changed)[::-1]):
        kept = changed.copy()
        for feature in order:
            tried = kept.copy()
            tried[feature] = own[feature]
            if _flips(inputs, row, tried[None])[0]:
                kept = tried
        if best is changed or len(_differ(own, kept)) < len(_differ(own, best)):
            best = kept
    return best


def _pull_back(inputs: Inputs, row: int, changed: FloatArray, feature: int) -> FloatArray:
    """The same with one number as near to its own value as was found to flip, and with few digits."""
    before, after = float(inputs.matrix[row, feature]), float(changed[feature])
    step = float(inputs.threat.steps.get(feature, 0.0)) or _find_grain(inputs, feature, before, after)
    near = before
    for _ in range(_PASSES):
        places = _list_places(before, near, after, step)
        if not places.size:
            break
        tried = np.tile(changed, (places.size, 1))
        tried[:, feature] = places
        good = np.flatnonzero(_flips(inputs, row, tried))
        if not good.size:
            near = float(places[-1])
            continue
        first = int(good[0])
        after, near = float(places[first]), float(places[first - 1]) if first else near
    found = changed.copy()
    found[feature] = after
    if not step:
        is_date = feature in inputs.subject.dates
        start = found.copy()
        start[feature] = before
        found[feature] = round_flip(start, feature, after, lambda rows: _flips(inputs, row, rows), is_date=is_date)
    return found


def _find_grain(inputs: Inputs, feature: int, before: float, after: float) -> float:
    """1 where whole numbers stay whole, as the change does; 0 for any number."""
    return 1.0 if feature in inputs.whole and before.is_integer() and after.is_integer() else 0.0


def _list_places(before: float, near: float, after: float, step: float) -> FloatArray:
    """Values between one that was tried and one that flips, from the nearest on: multiples of a step, or any."""
    if not step:
        places = near + (after - near) * np.arange(1, _PARTS) / _PARTS
        return np.asarray(places[(places != near) & (places != after)])
    first, last = (round(abs(end - before) / step) for end in (near, after))
    counts = np.unique(np.linspace(first, last, _PARTS + 1).round()[1:-1])
    counts = counts[(counts > first) & (counts < last)]
    return np.asarray(before - counts * step if after < before else before + counts * step)
