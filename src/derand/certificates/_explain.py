"""Explaining a row: the least change of each column that flips its answer alone, and the cheapest change of all.

Owns what `explain` returns: certified lower bounds beside changes that were found. Must not know tables or names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import EPSILON, FloatArray, freeze
from derand.certificates._attack import attack
from derand.certificates._attack_ground import measure_changes
from derand.certificates._labels import find_labels
from derand.certificates._results import Certificates
from derand.certificates._run import certify
from derand.certificates._witness import list_outside
from derand.model import Model, as_model
from derand.noise import Noise, as_noise_or_none
from derand.threat import EVERY, Threat

_HALVINGS = 48
_OFFSETS = np.linspace(-8.0, 8.0, 65)
_MOST_STEPS = 2.0**50


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What is known of the least change of some columns that flips a row.

    Attributes
    ----------
    feature : int or None
        The one column that changes; None for all together.
    certified : float
        In units of the threat: no smaller change flips. Infinite where none does. Not a number for a category, whose
        changes have no size.
    attacked : float
        Size of the change that was found; infinite where none was.
    row : array of shape (n_features,) or None
        The changed row, read-only.
    """

    feature: int | None
    certified: float
    attacked: float
    row: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What flips a row.

    Attributes
    ----------
    label : object
        Its answer.
    columns : tuple of Change
        For each column of the model that may change, alone: from the smallest change to the largest.
    joint : Change
        For all numbers together.
    """

    label: Any
    columns: tuple[Change, ...]
    joint: Change


def explain(
    model: Model,
    row: ArrayLike,
    noise: Noise | str | float | None,
    *,
    rule: str = "vote",
    threat: Threat | None = None,
) -> Explanation:
    """The least change of each column that flips the answer of a row alone, and the cheapest one of all numbers.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    row : array-like of shape (n_features,)
    noise : Noise, str or None
    rule : {"vote", "mean"}
    threat : Threat or None
        Its norm and units measure changes, and within its limits they stay; frozen columns are left out. Categories
        are tried whatever its budget is. Numbers that are missing stay so, and are left out, too. A number that has a
        step changes by whole steps, those nearer than the one found are proven to flip nothing where that is possible.

    Returns
    -------
    Explanation
        Certified and attacked agree where the answer is exact: one column by the rule "mean" (under noise up to the
        resolution of tables), all of them in linf or without noise; else the truth lies between.

    Examples
    --------
    >>> from derand import AdditiveEnsemble
    >>> model = AdditiveEnsemble.from_stumps([0, 1], [0.5, 1.0], [0.1, 0.3], [0.9, 0.4], n_features=2)
    >>> found = explain(model, [2.0, 2.0], None, rule="mean")
    >>> [(change.feature, round(change.certified, 3), round(change.attacked, 3)) for change in found.columns]
    [(0, 1.5, 1.5), (1, inf, inf)]
    """
    smoothing = as_noise_or_none(noise, (threat or Threat()).norm)
    start = np.array(row, dtype=np.float64)
    if start.shape != (as_model(model).n_features,):
        raise ValueError(f"`row` must hold the {model.n_features} numbers of one row, got shape {start.shape}.")
    asked = (threat or Threat()).resolve(smoothing)
    numbers = [at for at in model.numerical_features if not np.isnan(start[at])]
    held = tuple(at for at, free in zip(numbers, asked.find_free(numbers), strict=True) if not free)
    kept = tuple(dict.fromkeys((*asked.frozen, *held)))  # without a ball, numbers that are named nowhere stay, too
    norm = np.inf if asked.norm is None else asked.norm
    steps = {at: step for at, step in asked.steps.items() if at not in kept}
    ball = replace(asked, norm=norm, l0=0, frozen=kept, missing="fixed", steps=steps)
    whole = certify(model, start[None], smoothing, rule=rule, threat=ball)
    home = int(whole.label[0])
    changes = [
        _explain_number(model, start, smoothing, rule, ball, feature, home)
        for feature, free in zip(numbers, asked.find_free(numbers), strict=True)
        if free
    ]
    changes += [
        _explain_category(model, start, smoothing, rule, asked, feature, home)
        for feature in model.categorical_features
        if feature not in asked.frozen
    ]
    order = sorted(changes, key=lambda change: change.attacked)
    return Explanation(home, tuple(order), _explain_joint(model, start, smoothing, whole, changes))


def _explain_number(
    model: Model, start: FloatArray, noise: Noise | None, rule: str, threat: Threat, feature: int, home: int
) -> Change:
    """One number alone: certified with all others frozen, attacked at every place that matters."""
    others = tuple(at for at in model.numerical_features if at != feature)
    named: dict[str, Any] = {
        name: {at: value for at, value in getattr(threat, name).items() if at in (feature, EVERY)}
        for name in _BY_COLUMN
    }
    alone = replace(threat, norm=np.inf, frozen=(*others, *threat.frozen), **named)
    certified = float(certify(model, start[None], noise, rule=rule, threat=alone).radius[0])
    changed = _find_flip(model, start, noise, rule, alone, feature, home)
    size = np.inf
    if changed is not None:
        unit = threat.units_of(start.size)[[feature]]
        size = float(measure_changes((changed - start)[None, [feature]], unit, np.inf)[0])
    if feature in alone.steps and certified < size:
        certified = max(certified, _prove_steps(model, start, noise, rule, alone, feature, changed))
    return Change(feature, certified, size, None if changed is None else freeze(changed))


def _find_flip(
    model: Model, start: FloatArray, noise: Noise | None, rule: str, alone: Threat, feature: int, home: int
) -> FloatArray | None:
    """The row after the least change of one number that was found to flip it."""
    if model.is_linear:
        found = attack(model, start[None], noise, rule=rule, threat=alone)
        return found.rows[0].copy() if found.found[0] else None
    own, step = float(start[feature]), alone.steps.get(feature)
    low, high = (float(end[0, feature]) for end in alone.find_box(start[None], model.numerical_features))
    places = _list_places(model, noise, feature, own)
    if step is not None:
        places = own + _count_steps(places, own, step) * step
    places = places[(places >= low) & (places <= high)]
    rows = np.tile(start, (places.size, 1))
    rows[:, feature] = places
    flips = places[find_labels(model, rows, noise, rule=rule) != home] if places.size else places
    if not flips.size:
        return None
    changed = start.copy()
    changed[feature] = flips[np.argmin(np.abs(flips - own))]
    if step is None or noise is not None:  # without noise no step between the edges is nearer
        changed[feature] = _halve(model, start, noise, rule, feature, float(changed[feature]), home, step)
    return changed


def _count_steps(places: FloatArray, own: float, step: float) -> FloatArray:
    """How many steps lead to either side of each place; they are rounded outward, never to nearest alone."""
    counts = np.floor((places - own) / step)
    counts = np.unique(np.concatenate([counts - 1, counts, counts + 1]))
    return np.asarray(counts[(counts != 0) & (np.abs(counts) < _MOST_STEPS)])


def _prove_steps(
    model: Model,
    start: FloatArray,
    noise: Noise | None,
    rule: str,
    alone: Threat,
    feature: int,
    changed: FloatArray | None,
) -> float:
    """The size of a change by steps, where it is proven that no smaller one flips; 0 where it is not.

    A ball under noise leaves steps out of account; what lies before the flip that was found is certified as limits
    alone, which count them. Infinite where no flip was found and none is possible.
    """
    own, step = float(start[feature]), alone.steps[feature]
    low, high = (float(end[0, feature]) for end in alone.find_box(start[None], model.numerical_features))
    bound = np.inf
    if changed is not None:
        count = np.rint(abs(changed[feature] - own) / step) - 1
        low, high = max(low, own - count * step), min(high, own + count * step)
        unit = float(alone.units_of(start.size)[feature])
        bound = abs(float(changed[feature]) - own) / unit * (1 - 4 * EPSILON)
    nearer = replace(alone, norm=None, limits={}, domain={feature: (low, high)})
    held = certify(model, start[None], noise, rule=rule, threat=nearer)
    return bound if held.radius[0] > 0 else 0.0


_BY_COLUMN = ("limits", "domain", "steps")


def _list_places(model: Model, noise: Noise | None, feature: int, own: float) -> FloatArray:
    """Places of a number at which its terms may be worst."""
    edges = np.concatenate([axis.edges for term in model.member_terms for axis in term.axes if axis.feature == feature])
    if noise is None:
        return np.concatenate([edges, np.nextafter(edges, -np.inf)])
    scale = float(noise.scales(np.array([feature]))[0])
    return np.unique(np.concatenate([(edges[:, None] + scale * _OFFSETS).ravel(), own + scale * _OFFSETS]))


def _halve(
    model: Model,
    start: FloatArray,
    noise: Noise | None,
    rule: str,
    feature: int,
    flipped: float,
    home: int,
    step: float | None,
) -> float:
    """The nearest value that flips between the row's own and one that does, by halving; whole steps stay whole."""
    own = near = float(start[feature])
    far = flipped
    point = start[None].copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        if step is not None:
            middle = own + np.rint((middle - own) / step) * step
        if middle in (near, far):
            break
        point[0, feature] = middle
        if find_labels(model, point, noise, rule=rule)[0] != home:
            far = middle
        else:
            near = middle
    return far


def _explain_category(
    model: Model, start: FloatArray, noise: Noise | None, rule: str, threat: Threat, feature: int, home: int
) -> Change:
    """One category alone: the first value that flips; size 1 where there is one."""
    codes = np.unique(np.concatenate([term.codes for term in model.member_terms if feature in term.features]))
    options = np.concatenate([codes, list_outside(codes)]) if threat.unseen else codes
    if feature in threat.may_become:
        options = np.asarray(threat.may_become[feature], dtype=np.float64)
    rows = np.tile(start, (options.size, 1))
    rows[:, feature] = options
    flips = np.flatnonzero(find_labels(model, rows, noise, rule=rule) != home) if options.size else np.empty(0, int)
    if not flips.size:
        return Change(feature, np.inf, np.inf, None)
    return Change(feature, np.nan, 1.0, freeze(rows[flips[0]].copy()))


def _explain_joint(
    model: Model, start: FloatArray, noise: Noise | None, whole: Certificates, alone: Sequence[Change]
) -> Change:
    """All numbers together: the certificate, and the nearest flip that was found, maybe of one column alone."""
    radius, threat = float(whole.radius[0]), whole.threat
    found = attack(model, start[None], noise, rule=whole.rule, threat=threat)
    found.require_outside(whole)
    size, row = float(found.distance[0]), freeze(found.rows[0]) if found.found[0] else None
    numbers = list(model.numerical_features)
    for one in alone:
        if one.row is not None and one.feature in numbers:
            change = np.nan_to_num(one.row - start)[None, numbers]  # what is missing stays so
            other = float(measure_changes(change, threat.units_of(start.size)[numbers], threat.ball_norm)[0])
            size, row = (other, one.row) if other < size else (size, row)
    return Change(None, radius, size, row)
