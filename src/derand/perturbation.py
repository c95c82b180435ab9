"""Perturbations: a threat resolved for a model, as arrays. Built once, where a request enters, and passed down.

Owns what each number of a row may become (`Perturbation.box`), in which norm and units changes are measured, and which
categories and missing values may change. Must not know names of columns, percentages or "auto": `Threat` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand._core.text import join_words
from derand._core.units import require_numbered
from derand.model import Model
from derand.noise import Noise
from derand.threat import COLUMN_FIELDS, EVERY, Threat, order_links, refuse_category

_MOST_STEPS = 2.0**50


class Link(NamedTuple):
    """A number that follows from two others, and by how much it may be off."""

    column: int
    left: int
    sign: str
    right: int
    tolerance: float

    def compute(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """The number that follows, as doubles are divided or subtracted."""
        with np.errstate(all="ignore"):
            return np.asarray(left / right if self.sign == "/" else left - right)

    def bound(self, left: tuple[FloatArray, FloatArray], right: tuple[FloatArray, FloatArray]) -> list[FloatArray]:
        """The least and the largest number that follows from two between these ends.

        Both signs are monotone in each number, and so is rounding to nearest: what is computed at the corners are the
        ends, to the last bit. Where a corner has no value, or a divisor may be 0, anything follows.
        """
        corners = np.stack([self.compute(one, other) for one in left for other in right])
        anything = np.isnan(corners).any(axis=0)
        if self.sign == "/":
            anything |= (right[0] <= 0) & (right[1] >= 0)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = corners.min(axis=0) - self.tolerance, corners.max(axis=0) + self.tolerance
        return [np.where(anything, -np.inf, low), np.where(anything, np.inf, high)]


@dataclass(frozen=True, slots=True, eq=False)
class Perturbation:
    """What may change, as arrays over the columns of a model; the same for all rows.

    Attributes
    ----------
    threats : tuple of Threat
        The threats that were resolved, one per entry of `budgets`; results name them.
    norm : {0, 1, 2, inf} or None
        Of the ball around a row; None where the box alone bounds changes.
    units : array of shape (n_features,)
        What counts as a change of 1.
    free : array of booleans, shape (n_features,)
        Numerical columns that may change.
    share, down, up : arrays of shape (n_features,)
        A number x may change by `share * abs(x) + down` downward and `share * abs(x) + up` upward.
    least, most : arrays of shape (n_features,)
        The domain of each number.
    steps : array of shape (n_features,)
        Numbers change by multiples of it alone; 0 for any change.
    has_box : bool
        Whether anything but the ball bounds changes of numbers.
    budgets : tuple of int
        How many categories may change; several budgets are certified together.
    frozen : frozenset of int
        Columns that do not change.
    codes : mapping of column to array
        The codes that a category may change to, where these are restricted.
    unseen : bool
        Whether other categories may change to codes that no table holds.
    missing_budget : int
        How many numbers may go missing or appear.
    links : tuple of Link
        Numbers that follow from others, each behind those that it follows from. The box is larger than the set of rows
        that keep to them: what holds in it holds, and `follow` makes rows that do keep to them.
    """

    threats: tuple[Threat, ...]
    norm: float | None
    units: FloatArray
    free: BoolArray
    share: FloatArray
    down: FloatArray
    up: FloatArray
    least: FloatArray
    most: FloatArray
    steps: FloatArray
    has_box: bool
    budgets: tuple[int, ...]
    frozen: frozenset[int]
    codes: Mapping[int, FloatArray]
    unseen: bool
    missing_budget: int
    links: tuple[Link, ...] = ()

    @classmethod
    def of(cls, threats: Threat | Sequence[Threat], n_features: int, numerical: Iterable[int]) -> Perturbation:
        """The arrays of threats that differ in `l0` alone, whose norm is not "auto" and whose columns are numbers."""
        every = (threats,) if isinstance(threats, Threat) else tuple(threats)
        threat = every[0]
        require_numbered(threat.units, "`units` of Threat")
        links = _read_links(threat)
        every_number = {*numerical, *(at for one in links for at in (one.column, one.left, one.right))}
        free, numbers = np.zeros(n_features, dtype=bool), np.array(sorted(every_number), dtype=np.int64)
        free[numbers] = [threat.may_move(column) for column in numbers.tolist()]
        share, least = np.zeros(n_features), np.full(n_features, -np.inf)
        down, most = np.where(free, np.inf, 0.0), np.full(n_features, np.inf)
        up = down.copy()
        every_limit = threat.limits.get(EVERY)
        for column in np.flatnonzero(free).tolist() if threat.limits or threat.domain else ():
            limit = threat.limits.get(column, every_limit)
            if isinstance(limit, str):
                share[column], down[column], up[column] = float(limit.rstrip("%")) / 100, 0.0, 0.0
            elif limit is not None:
                down[column], up[column] = limit if isinstance(limit, tuple) else (limit, limit)
            if column in threat.domain:
                least[column], most[column] = threat.domain[column]
        steps = np.zeros(n_features)
        for stepped, step in threat.steps.items():
            steps[int(stepped)] = step
        return cls(
            every,
            threat.ball_norm,
            np.ones(n_features) if threat.units is None else np.asarray(threat.units, dtype=np.float64),
            free,
            share,
            down,
            up,
            least,
            most,
            steps,
            has_box=threat.norm is None
            or bool(threat.frozen or threat.limits or threat.domain or threat.steps or threat.linked),
            budgets=tuple(one.l0 for one in every),
            frozen=frozenset(int(column) for column in threat.frozen),
            codes={int(at): np.asarray(own, dtype=np.float64) for at, own in threat.may_become.items()},
            unseen=bool(threat.unseen),
            missing_budget=threat.missing_budget,
            links=links,
        )

    @property
    def n_features(self) -> int:
        """Columns of the rows."""
        return int(self.units.size)

    @property
    def l0(self) -> int:
        """How many categories may change, where one budget was asked for."""
        (budget,) = self.budgets
        return budget

    @property
    def threat(self) -> Threat:
        """The threat that was resolved, where one budget was asked for."""
        (threat,) = self.threats
        return threat

    def box(self, rows: object) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of each number of some rows, both (n_rows, n_features).

        The ends belong to the box, to the last bit. Where a column changes by steps they are the outermost steps.
        Columns that do not change keep their values. Linked ones lie between what follows from the ends of others.
        """
        values = np.array(rows, dtype=np.float64)
        low, high = values.copy(), values.copy()
        at = np.flatnonzero(self.free)
        own = values[:, at]
        with np.errstate(over="ignore", invalid="ignore"):
            size = self.share[at] * np.abs(own)
            low[:, at] = np.where(self.down[at] < np.inf, own - (size + self.down[at]), -np.inf)
            high[:, at] = np.where(self.up[at] < np.inf, own + (size + self.up[at]), np.inf)
        low[:, at], high[:, at] = np.maximum(low[:, at], self.least[at]), np.minimum(high[:, at], self.most[at])
        for column in at[self.steps[at] > 0].tolist():
            own, step = values[:, column], self.steps[column]
            low[:, column] = _find_last_step(own, low[:, column], -step)
            high[:, column] = _find_last_step(own, high[:, column], step)
        for link in self.links:
            ends = link.bound(*((low[:, one], high[:, one]) for one in (link.left, link.right)))
            own = values[:, link.column]
            low[:, link.column], high[:, link.column] = (np.where(np.isnan(own), own, end) for end in ends)
        return low, high

    def follow(self, rows: FloatArray, changed: FloatArray) -> FloatArray:
        """Changed rows whose linked numbers follow from the others; where these are unchanged they stay as they were.

        A linked number that is missing stays so.
        """
        if not self.links:
            return changed
        found = changed.copy()
        for link in self.links:
            pair, own = [link.left, link.right], rows[:, link.column]
            stays = np.isnan(own) | (found[:, pair] == rows[:, pair]).all(axis=1)
            found[:, link.column] = np.where(stays, own, link.compute(*(found[:, one] for one in pair)))
        return found

    def freeze(self, columns: Iterable[int]) -> Perturbation:
        """The same without changes of some more numerical columns."""
        held = np.zeros(self.n_features, dtype=bool)
        held[list(columns)] = True
        return replace(
            self,
            free=self.free & ~held,
            steps=np.where(held, 0.0, self.steps),
            has_box=self.has_box or bool(held.any()),
            frozen=self.frozen | frozenset(np.flatnonzero(held).tolist()),
        )

    def with_norm(self, norm: float) -> Perturbation:
        """The same in a ball of that norm."""
        return replace(self, norm=norm, threats=tuple(replace(one, norm=norm) for one in self.threats))

    def within(self, column: int, low: float, high: float) -> Perturbation:
        """One number between two ends, by its steps, and nothing else."""
        only = np.arange(self.n_features) == column
        return replace(
            self,
            norm=None,
            free=self.free & only,
            share=np.zeros(self.n_features),
            down=np.where(only, np.inf, 0.0),
            up=np.where(only, np.inf, 0.0),
            least=np.where(only, low, -np.inf),
            most=np.where(only, high, np.inf),
            has_box=True,
        )

    def check_rows(self, rows: Any) -> None:
        """Refuse rows whose own values lie outside their domain; a missing value lies in every domain."""
        for column, (least, most) in self.threats[0].domain.items():
            own = np.asarray(rows[:, int(column)], dtype=np.float64)
            outside = np.flatnonzero((own < least) | (own > most))
            if outside.size:
                raise ValueError(
                    f"`domain` of Threat must hold the rows' own values, got [{least}, {most}] for column {column} and "
                    f"{own[outside[0]]} in row {outside[0]}{_explain_domain(self.threats[0], column)}."
                )
        if self.links and len(rows):
            self._check_links(np.asarray(rows, dtype=np.float64))

    def _check_links(self, rows: FloatArray) -> None:
        """Refuse rows that do not keep to the links themselves, or whose divisor may become 0."""
        low, high = self.box(rows)
        for link in self.links:
            own, what = rows[:, link.column], f"`linked` of Threat for column {link.column}"
            zero = np.flatnonzero((low[:, link.right] <= 0) & (high[:, link.right] >= 0) & ~np.isnan(own))
            if link.sign == "/" and zero.size:
                at = zero[0]
                raise ValueError(
                    f"{what} divides by column {link.right}, which may lie between {low[at, link.right]} and "
                    f"{high[at, link.right]} in row {at}: limit it so that it cannot be 0, or leave the row out."
                )
            expected = link.compute(rows[:, link.left], rows[:, link.right])
            inside = (own >= expected - link.tolerance) & (own <= expected + link.tolerance)
            broken = np.flatnonzero(~inside & ~np.isnan(own))
            if broken.size:
                at = broken[0]
                raise ValueError(
                    f"{what} must hold in the rows themselves, got {own[at]} and not {expected[at]} in row {at}: give "
                    "a tolerance as fourth entry where the column is rounded, compute it anew, or leave the row out."
                )


def resolve(threats: Threat | Sequence[Threat], model: Model, noise: Noise | None) -> Perturbation:
    """Threats that differ in `l0` alone, checked against a model and resolved for it.

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Threat
    >>> model = AdditiveEnsemble.from_stumps([0, 1], [0.5, 9.0], [0.1, 0.3], [0.9, 0.4], n_features=3)
    >>> perturbation = resolve(Threat(norm=None, limits={0: "5%", 1: (0, 30)}), model, None)
    >>> low, high = perturbation.box([[200.0, 10.0, 7.0]])
    >>> low.tolist(), high.tolist()
    ([[190.0, 10.0, 7.0]], [[210.0, 40.0, 7.0]])
    """
    every = (threats,) if isinstance(threats, Threat) else tuple(threats)
    resolved = tuple(one.resolve(noise) for one in every)
    for threat in resolved:
        _check_links(threat, noise)
        check_columns(threat, model.n_features, model.categorical_features, model.numerical_features)
        _check_missing(threat, model)
    found = Perturbation.of(resolved, model.n_features, model.numerical_features)
    return replace(found, codes={**_list_known(resolved[0], model), **found.codes})


def _read_links(threat: Threat) -> tuple[Link, ...]:
    """The links of a threat whose columns are numbers, each behind those that it needs."""
    found = []
    for column in order_links(threat.linked):
        left, sign, right, tolerance = threat.linked[column]
        found.append(Link(int(column), int(left), sign, int(right), tolerance))
    return tuple(found)


def _check_links(threat: Threat, noise: Noise | None) -> None:
    """Refuse linked columns under noise or in a ball, where no bound knows them."""
    if threat.linked and noise is not None:
        raise ValueError(
            f"`linked` of Threat holds without noise alone, got noise {noise}: noise moves each column by itself. "
            "Certify the model as deployed: noise='none', rule='mean'."
        )
    if threat.linked and threat.norm is not None:
        raise ValueError(
            f"`linked` of Threat needs limits alone, got norm {threat.norm}: write Threat(norm=None, limits=...)."
        )


def _list_known(threat: Threat, model: Model) -> dict[int, FloatArray]:
    """The codes that the tables of a vote know together: what one table lacks, a change to it reaches nevertheless."""
    if threat.unseen or model.weights is None:
        return {}
    codes: dict[int, set[float]] = {}
    for term in model.member_terms:
        for feature in term.features:
            codes.setdefault(feature, set()).update(term.codes.tolist())
    return {feature: np.array(sorted(own)) for feature, own in codes.items() if own and feature not in threat.frozen}


def check_columns(threat: Threat, n_features: int, categorical: Iterable[int], numerical: Iterable[int]) -> None:
    """Refuse columns that do not exist, limits of categories, and categories of numbers."""
    codes, numbers = set(categorical), set(numerical)
    require_numbered(threat.units, "`units` of Threat")
    if threat.units is not None and len(threat.units) != n_features:
        raise ValueError(
            f"`units` of Threat must have one entry per feature, {n_features} in all, categorical ones included, "
            f"got {len(threat.units)}."
        )
    if threat.whole:
        raise ValueError(
            "`whole` of Threat must be False for a bare model, which does not know which columns hold whole "
            "numbers: give `steps`, such as steps={0: 1}, or certify a fitted estimator."
        )
    named = {name: list(getattr(threat, name)) for name in ("frozen", *COLUMN_FIELDS)}
    named["linked"] = [at for column, link in threat.linked.items() for at in (column, link[0], link[2])]
    for name, columns in named.items():
        for column in columns:
            if column == EVERY and name == "limits":
                continue
            if not isinstance(column, int):
                raise ValueError(
                    f"`{name}` of Threat must name columns by number here, 0 to {n_features - 1}, got {column!r}: "
                    "only an estimator that was fitted on a table with names knows names."
                )
            if not 0 <= column < n_features:
                raise ValueError(f"`{name}` of Threat must name columns from 0 to {n_features - 1}, got {column!r}.")
            if name == "may_become" and column in numbers:
                raise ValueError(
                    f"`may_become` of Threat must name categorical columns, got column {column}, which holds "
                    "numbers: `limits` and `domain` say what those may become."
                )
            if name in ("limits", "domain", "steps", "linked") and column in codes:
                raise refuse_category(name, f"column {column}")


def _check_missing(threat: Threat, model: Model) -> None:
    """Refuse a budget of missing numbers where a model has no bound for them."""
    if not threat.missing_budget:
        return
    if not model.missing_features:
        raise ValueError(
            f"`missing` of Threat must be 'fixed' for a model that takes no missing numbers, got {threat.missing}: "
            "train it on a table in which some are missing, or leave it out."
        )
    if model.is_linear:
        raise ValueError(
            f"`missing` of Threat must be 'fixed' for a linear model, got {threat.missing}: a number that appears may "
            "be anything, and what that adds to a line has no bound. Leave it out."
        )


def describe_unused(threat: Threat, model: Model, names: Sequence[str] | None = None) -> str | None:
    """What to say of limits of columns that the model does not use; None where there are none."""
    named = {one for one in (*threat.limits, *threat.domain) if isinstance(one, int) and 0 <= one < model.n_features}
    others = {at for link in threat.linked.values() for at in (link[0], link[2])}  # what follows from them may be used
    unused = sorted(named - others - set(model.numerical_features) - set(model.categorical_features))
    if not unused:
        return None
    told = [f"column {at}" if names is None else f"column {names[at]!r}" for at in unused]
    return f"The model does not use {join_words(told)}: what limits allow there changes nothing."


def warn_of_nothing(threat: Threat) -> None:
    """Warn where nothing may change, so every answer holds."""
    if threat.norm is None and not (threat.limits or threat.domain or threat.l0 or threat.missing_budget):
        warnings.warn(
            "Nothing may change: this Threat has norm None and neither limits, domain, l0 nor missing, so that "
            "every answer holds. Say what may change, such as Threat(norm=None, limits={'*': '5%'}).",
            stacklevel=2,
        )


def _find_last_step(own: FloatArray, ends: FloatArray, step: float) -> FloatArray:
    """The farthest own + k * step that is not beyond each end; a negative step goes down.

    Steps are computed like this everywhere. A quotient below 2**50 is off by less than one, so that no count beyond the
    next two can lie inside unless it is rounded to the end, as one of these is. Ends farther away stay.
    """
    with np.errstate(all="ignore"):
        counts = np.floor((ends - own) / step)
        found = np.where(np.isnan(own) | ~(counts < _MOST_STEPS), ends, own)
        for more in (-1, 0, 1, 2):
            stepped = own + np.maximum(counts + more, 0.0) * step
            inside = (counts < _MOST_STEPS) & ((stepped <= ends) if step > 0 else (stepped >= ends))
            found = np.where(inside, stepped, found)
    return found


def _explain_domain(threat: Threat, column: Any) -> str:
    """Where a domain may come from that nobody wrote."""
    if threat.domain[column] != (0.0, 1.0) or threat.steps.get(column) != 1.0:
        return ""
    return ": by `whole`, a column of 0 and 1 stays so; give it a `domain` of its own to allow more"
