"""Explaining a row: the least change of each column that flips its answer alone, and the cheapest change of all.

Owns what `explain` returns: certified lower bounds beside changes that were found. Must not know tables or names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, FloatArray, freeze
from derand._core.origin import Cell
from derand.certificates.classification import certify_perturbed, check_request, read_rows
from derand.certificates.kinds import Linear, kind_of
from derand.certificates.results.certificates import Certificates
from derand.certificates.search.attacks import Request, attack_rows
from derand.certificates.search.feasible_set import Target, measure_changes
from derand.certificates.search.worst_positions import list_outside
from derand.model import Model, as_model
from derand.noise import Noise, resolve_noise
from derand.perturbation import resolve
from derand.threat import Threat, refuse_linked

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

    label: Cell
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
    given = threat or Threat()
    smoothing = resolve_noise(noise, norm=given.norm)
    start = np.array(row, dtype=np.float64)
    if start.shape != (as_model(model).n_features,):
        raise ValueError(f"`row` must hold the {model.n_features} numbers of one row, got shape {start.shape}.")
    check_request(rule, "best", smoothing, [given])
    read_rows(model, start[None], smoothing)
    refuse_linked(given, "`explain`")
    asked = resolve(replace(given, l0=0, missing="fixed"), model, smoothing)
    asked.check_rows(start[None])
    numbers = [at for at in model.numerical_features if not np.isnan(start[at])]
    ball = asked.freeze(at for at in numbers if not asked.free[at])  # without a ball, numbers without limits stay
    ball = ball if asked.norm is not None else ball.with_norm(np.inf)
    target = Target(model, smoothing, rule, ball)
    whole = _certify(target, start)
    home = int(whole.label[0])
    changes = [_explain_number(target, start, feature, home) for feature in numbers if ball.free[feature]]
    by_code = replace(target, perturbation=asked)
    codes = [feature for feature in model.categorical_features if feature not in asked.frozen]
    changes += [_explain_category(by_code, start, feature, home) for feature in codes]
    order = sorted(changes, key=lambda change: change.attacked)
    return Explanation(home, tuple(order), _explain_joint(target, start, whole, changes))


def _certify(target: Target, start: FloatArray) -> Certificates:
    (found,) = certify_perturbed(target.model, start[None], target.noise, target.perturbation, rule=target.rule)
    return found


def _explain_number(target: Target, start: FloatArray, feature: int, home: int) -> Change:
    """One number alone: certified with all others frozen, attacked at every position that matters."""
    ball = target.perturbation
    alone = replace(ball.freeze(at for at in target.model.numerical_features if at != feature), norm=np.inf)
    target = replace(target, perturbation=alone)
    certified = float(_certify(target, start).radius[0])
    changed = _search_flip(target, start, feature, home)
    size = np.inf
    if changed is not None:
        size = float(measure_changes((changed - start)[None, [feature]], ball.units[[feature]], np.inf)[0])
    if alone.steps[feature] and certified < size:
        certified = max(certified, _prove_steps(target, start, feature, changed))
    return Change(feature, certified, size, None if changed is None else freeze(changed))


def _search_flip(target: Target, start: FloatArray, feature: int, home: int) -> FloatArray | None:
    """The row after the least change of one number that was found to flip it."""
    if isinstance(kind_of(target.model), Linear):
        found = attack_rows(start[None], Request(target))
        return found.rows[0].copy() if found.found[0] else None
    own, step = float(start[feature]), float(target.perturbation.steps[feature])
    feasible = target.surround(start[None], start[None], np.array([home]))
    positions = _list_positions(target, feature, own)
    if step:
        positions = own + _count_steps(positions, own, step) * step
    positions = positions[(positions >= feasible.low[0, feature]) & (positions <= feasible.high[0, feature])]
    rows = np.tile(start, (positions.size, 1))
    rows[:, feature] = positions
    flips = positions[feasible.check_flips(rows, np.zeros(positions.size, dtype=np.int64))]
    if not flips.size:
        return None
    changed = start.copy()
    changed[feature] = flips[np.argmin(np.abs(flips - own))]
    if not step or target.noise is not None:  # without noise no step between the edges is nearer
        changed = feasible.halve(start[None], changed[None], np.zeros(1, dtype=np.int64), _HALVINGS)[0]
    return changed


def _count_steps(positions: FloatArray, own: float, step: float) -> FloatArray:
    """How many steps lead to either side of each position; they are rounded outward, never to nearest alone."""
    counts = np.floor((positions - own) / step)
    counts = np.unique(np.concatenate([counts - 1, counts, counts + 1]))
    return np.asarray(counts[(counts != 0) & (np.abs(counts) < _MOST_STEPS)])


def _prove_steps(target: Target, start: FloatArray, feature: int, changed: FloatArray | None) -> float:
    """The size of a change by steps, where it is proven that no smaller one flips; 0 where it is not.

    A ball under noise leaves steps out of account; what lies before the flip that was found is certified as limits
    alone, which count them. Infinite where no flip was found and none is possible.
    """
    alone = target.perturbation
    own, step = float(start[feature]), float(alone.steps[feature])
    low, high = (float(end[0, feature]) for end in alone.box(start[None]))
    bound = np.inf
    if changed is not None:
        count = np.rint(abs(changed[feature] - own) / step) - 1
        low, high = max(low, own - count * step), min(high, own + count * step)
        bound = abs(float(changed[feature]) - own) / float(alone.units[feature]) * (1 - 4 * EPSILON)
    held = _certify(replace(target, perturbation=alone.within(feature, low, high)), start)
    return bound if held.radius[0] > 0 else 0.0


def _list_positions(target: Target, feature: int, own: float) -> FloatArray:
    """Positions of a number at which its terms may be worst."""
    terms, noise = target.model.member_terms, target.noise
    edges = np.concatenate([axis.edges for term in terms for axis in term.axes if axis.feature == feature])
    if noise is None:
        return np.concatenate([edges, np.nextafter(edges, -np.inf)])
    scale = float(noise.scales(np.array([feature]))[0])
    return np.unique(np.concatenate([(edges[:, None] + scale * _OFFSETS).ravel(), own + scale * _OFFSETS]))


def _explain_category(target: Target, start: FloatArray, feature: int, home: int) -> Change:
    """One category alone: the first value that flips; size 1 where there is one."""
    asked, terms = target.perturbation, target.model.member_terms
    codes = np.unique(np.concatenate([term.category_codes.get(feature, np.empty(0)) for term in terms]))
    options = np.concatenate([codes, list_outside(codes)]) if asked.unseen else codes
    options = asked.codes.get(feature, options)
    rows = np.tile(start, (options.size, 1))
    rows[:, feature] = options
    flips = np.flatnonzero(target.label(rows) != home) if options.size else np.empty(0, int)
    if not flips.size:
        return Change(feature, np.inf, np.inf, None)
    return Change(feature, np.nan, 1.0, freeze(rows[flips[0]].copy()))


def _explain_joint(target: Target, start: FloatArray, whole: Certificates, alone: Sequence[Change]) -> Change:
    """All numbers together: the certificate, and the nearest flip that was found, maybe of one column alone."""
    found = attack_rows(start[None], Request(target))
    found.require_outside(whole)
    size, row = float(found.distance[0]), freeze(found.rows[0]) if found.found[0] else None
    numbers, ball = list(target.model.numerical_features), target.perturbation
    for one in alone:
        if one.row is not None and one.feature in numbers:
            change = np.nan_to_num(one.row - start)[None, numbers]  # what is missing stays so
            other = float(measure_changes(change, ball.units[numbers], ball.norm)[0])
            size, row = (other, one.row) if other < size else (size, row)
    return Change(None, float(whole.radius[0]), size, row)
