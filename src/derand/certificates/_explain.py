"""Explaining a row: the least change of each column that flips its answer alone, and the cheapest change of all.

Owns what `explain` returns: certified lower bounds beside changes that were found. Must not know tables or names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import FloatArray, freeze
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
        are tried whatever its budget is. Numbers that are missing stay so, and are left out, too.

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
    ball = replace(asked, norm=norm, l0=0, frozen=kept, missing="fixed")
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
    return Explanation(home, tuple(order), _explain_joint(model, start, smoothing, whole))


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
    if model.is_linear:
        found = attack(model, start[None], noise, rule=rule, threat=alone)
        return Change(
            feature, certified, float(found.distance[0]), freeze(found.rows[0].copy()) if found.found[0] else None
        )
    low, high = (float(end[0, feature]) for end in alone.find_box(start[None], model.numerical_features))
    places = _list_places(model, noise, feature, float(start[feature]))
    step = alone.steps.get(feature)
    if step is not None:
        places = start[feature] + np.unique(np.rint((places - start[feature]) / step)) * step
    places = places[(places >= low) & (places <= high)]
    rows = np.tile(start, (places.size, 1))
    rows[:, feature] = places
    flips = places[find_labels(model, rows, noise, rule=rule) != home] if places.size else places
    if not flips.size:
        return Change(feature, certified, np.inf, None)
    nearest = float(flips[np.argmin(np.abs(flips - start[feature]))])
    changed = start.copy()
    changed[feature] = nearest if step is not None else _halve(model, start, noise, rule, feature, nearest, home)
    unit = threat.units_of(start.size)[[feature]]
    size = float(measure_changes((changed - start)[None, [feature]], unit, np.inf)[0])
    return Change(feature, certified, size, freeze(changed))


_BY_COLUMN = ("limits", "domain", "steps")


def _list_places(model: Model, noise: Noise | None, feature: int, own: float) -> FloatArray:
    """Places of a number at which its terms may be worst."""
    edges = np.concatenate([axis.edges for term in model.member_terms for axis in term.axes if axis.feature == feature])
    if noise is None:
        return np.concatenate([edges, np.nextafter(edges, -np.inf)])
    scale = float(noise.scales(np.array([feature]))[0])
    return np.unique(np.concatenate([(edges[:, None] + scale * _OFFSETS).ravel(), own + scale * _OFFSETS]))


def _halve(
    model: Model, start: FloatArray, noise: Noise | None, rule: str, feature: int, flipped: float, home: int
) -> float:
    """The nearest value that flips between the row's own and one that does, by halving."""
    near, far = float(start[feature]), flipped
    point = start[None].copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
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


def _explain_joint(model: Model, start: FloatArray, noise: Noise | None, whole: Certificates) -> Change:
    """All numbers together: the certificate, and the nearest flip that was found."""
    radius = float(whole.radius[0])
    found = attack(model, start[None], noise, rule=whole.rule, threat=whole.threat)
    found.require_outside(whole)
    return Change(None, radius, float(found.distance[0]), freeze(found.rows[0]) if found.found[0] else None)
