"""The audit's own reading of a threat: what each number of a row may become, written from the fields of `Threat` alone.

A box that is computed wrongly must not pass both the certificate and its audit, so that nothing here calls a method of
`Threat`. Ends are those that docs/threats.md defines, to the last bit: sums and products of doubles, each rounded to
nearest; they are computed as exact fractions here and rounded afterwards. Owns this reading, and whether a changed row
is allowed. Must not know noise, labels or proofs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._balls import to_double
from derand.model import Model
from derand.threat import Threat

_EVERY = "*"
_MOST_STEPS = 2**50


@dataclass(frozen=True, slots=True)
class AllowedChanges:
    """What may change of a row of a model, columns by number and categories by code.

    Attributes
    ----------
    norm : float or None
        Of the ball; None where there is none.
    units : tuple of float or None
        What counts as a distance of 1 in each column; None is 1 in all of them.
    l0, missing : int
        How many categories may change, and how many numbers may go missing or appear.
    unseen : bool
    frozen : frozenset of int
    limits : dict of int, or "*", to limit
    domain, steps, may_become, linked : dict of int to ends, step, codes or link
    """

    norm: float | None = None
    units: tuple[float, ...] | None = None
    l0: int = 0
    missing: int = 0
    unseen: bool = True
    frozen: frozenset[int] = frozenset()
    limits: Mapping[Any, Any] = field(default_factory=dict)
    domain: Mapping[Any, tuple[float, float]] = field(default_factory=dict)
    steps: Mapping[Any, float] = field(default_factory=dict)
    may_become: Mapping[Any, tuple[Any, ...]] = field(default_factory=dict)
    linked: Mapping[Any, tuple[Any, str, Any, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, threat: Threat, model: Model) -> Self:
        """What a threat says; one that names no norm, or columns that the model does not have, is refused."""
        _require_numbers(threat, model.n_features)
        _require_columns(threat, model)
        return cls(
            None if threat.norm is None else float(threat.norm),
            threat.units,
            threat.l0,
            0 if threat.missing == "fixed" else threat.missing,
            bool(threat.unseen),
            frozenset(int(column) for column in threat.frozen),
            threat.limits,
            threat.domain,
            threat.steps,
            threat.may_become,
            threat.linked,
        )

    def require_inside(self, rows: FloatArray) -> None:
        """Refuse rows that are outside of the domain themselves; a missing number has none."""
        for column, (least, most) in self.domain.items():
            own = rows[:, column]
            outside = np.flatnonzero((own < least) | (own > most))
            if outside.size:
                raise ValueError(
                    f"`domain` of the certificates' threat must hold the rows' own values, got [{least}, {most}] for "
                    f"column {column} and {own[outside[0]]} in row {outside[0]}."
                )
        for column, link in self.linked.items():
            for at, row in enumerate(rows.tolist()):
                if not (math.isnan(row[column]) or self._keeps(row[column], row, link)):
                    raise ValueError(
                        f"`linked` of the certificates' threat must hold in the rows themselves, got {row[column]} for "
                        f"column {column} in row {at}."
                    )

    def reach(self, column: int, row: Sequence[float]) -> tuple[float, float]:
        """`interval` of a number of a row: of a linked one what follows from the ends of the others.

        Quotients and differences are computed as fractions and rounded to nearest, as doubles are. Where a divisor may
        be 0, or an end is infinite, anything follows.
        """
        if column not in self.linked or math.isnan(row[column]):
            return self.interval(column, row[column])
        left, sign, right, tolerance = self.linked[column]
        lefts, rights = self.reach(left, row), self.reach(right, row)
        is_open = not all(map(math.isfinite, (*lefts, *rights)))
        if is_open or (sign == "/" and rights[0] <= 0 <= rights[1]):
            return -math.inf, math.inf
        corners = [_follow(one, sign, other) for one in lefts for other in rights]
        return _add(min(corners), -tolerance), _add(max(corners), tolerance)

    def _keeps(self, value: float, row: Sequence[float], link: tuple[Any, str, Any, float]) -> bool:
        """Whether a number follows from the others of its row."""
        left, sign, right, tolerance = link
        if not (math.isfinite(row[left]) and math.isfinite(row[right])) or (sign == "/" and row[right] == 0):
            return False
        expected = _follow(row[left], sign, row[right])
        return _add(expected, -tolerance) <= value <= _add(expected, tolerance)

    def interval(self, column: int, own: float) -> tuple[float, float]:
        """The least and the largest double that a number may become, both included; its own where it is fixed.

        An end is the row's value with the limit taken off or added, rounded to nearest, and no farther than the domain;
        of a column that changes by steps, the last step that is not beyond it. A percentage is rounded after the
        division by 100 and after the product with the value.
        """
        limit = self.limits.get(column, self.limits.get(_EVERY))
        is_named = limit is not None or column in self.domain
        if column in self.frozen or (self.norm is None and not is_named):
            return own, own
        down, up = (math.inf, math.inf) if limit is None else _measure_limit(limit, own)
        least, most = self.domain.get(column, (-math.inf, math.inf))
        low, high = max(_add(own, -down), least), min(_add(own, up), most)
        if column in self.steps:
            step = self.steps[column]
            low, high = _take_last_step(own, low, -step), _take_last_step(own, high, step)
        return low, high

    def step(self, column: int) -> float:
        """By multiples of which a number changes; 0 where by anything."""
        return self.steps.get(column, 0.0)

    def unit(self, column: int) -> Fraction:
        """What counts as a distance of 1."""
        return Fraction(1) if self.units is None else Fraction(self.units[column])

    def allows(self, model: Model, row: FloatArray, changed: FloatArray) -> bool:
        """Whether limits, steps, budgets and frozen columns allow a change; columns that no term reads do not count."""
        pairs = list(zip(row.tolist(), changed.tolist(), strict=True))
        moved = {at for at, (x, z) in enumerate(pairs) if not (x == z or (math.isnan(x) and math.isnan(z)))}
        if moved & self.frozen:
            return False
        codes = moved.intersection(model.categorical_features)
        numbers = moved.intersection(model.numerical_features)
        gaps = {at for at in numbers if any(map(math.isnan, pairs[at]))}
        if len(codes) > self.l0 or len(gaps) > self.missing:
            return False
        own, new = row.tolist(), changed.tolist()
        for column, link in self.linked.items():
            is_moved = not math.isnan(own[column]) and {column, link[0], link[2]} & moved
            if is_moved and not self._keeps(new[column], new, link):
                return False
        read = numbers | {at for at in moved if any(at in (link[0], link[2]) for link in self.linked.values())}
        return all(self._allows_number(at, own, new[at]) for at in read - gaps) and all(
            self._allows_code(model, at, pairs[at][1]) for at in codes
        )

    def is_near(self, model: Model, row: FloatArray, changed: FloatArray, radius: float) -> bool:
        """Whether a changed row lies in the closed ball; missing numbers have no distance."""
        at = list(model.numerical_features)
        pairs = zip(at, row[at].tolist(), changed[at].tolist(), strict=True)
        there = [(column, x, z) for column, x, z in pairs if not (math.isnan(x) or math.isnan(z))]
        away = [abs(Fraction(z) - Fraction(x)) / self.unit(column) for column, x, z in there]
        if self.norm == 0:
            return sum(one > 0 for one in away) <= radius
        if self.norm in (1, 2):
            return sum((one ** int(self.norm) for one in away), Fraction(0)) <= Fraction(radius) ** int(self.norm)
        return max(away, default=Fraction(0)) <= Fraction(radius)

    def _allows_number(self, column: int, row: Sequence[float], z: float) -> bool:
        x = row[column]
        low, high = self.reach(column, row)
        if not low <= z <= high:
            return False
        step = self.step(column)
        near = round((z - x) / step) if step else 0
        return not step or any(x + (near + more) * step == z for more in range(-2, 3))

    def _allows_code(self, model: Model, column: int, code: float) -> bool:
        if column in self.may_become:
            listed = [float(one) for one in self.may_become[column]]
            return code in listed or (math.isnan(code) and any(map(math.isnan, listed)))
        terms = [term for one in model.members for term in one.terms if column in term.features]
        known: set[float] = set()
        for told in (term.describe() for term in terms if term.kind == "category_table"):
            known.update(map(float, told["categories"]))
        for term in terms:
            if term.kind == "tree_term":  # not described: it may be large
                known.update(term.category_codes[column].tolist())
                if not math.isnan(code) and not code.is_integer():
                    return False
        return self.unseen or not known or code in known


def _measure_limit(limit: str | float | tuple[float, float], own: float) -> tuple[float, float]:
    """How far down and up a limit lets a number go."""
    if isinstance(limit, str):
        share = to_double(Fraction(float(limit.partition("%")[0])) / 100)
        size = to_double(Fraction(share) * abs(Fraction(own)))
        return size, size
    return limit if isinstance(limit, tuple) else (limit, limit)


def _follow(left: float, sign: str, right: float) -> float:
    """The double nearest to a quotient or a difference."""
    return to_double(Fraction(left) / Fraction(right) if sign == "/" else Fraction(left) - Fraction(right))


def _add(own: float, change: float) -> float:
    """The double nearest to a sum."""
    return change if math.isinf(change) else to_double(Fraction(own) + Fraction(change))


def _take_last_step(own: float, end: float, step: float) -> float:
    """The farthest own + count * step, computed in doubles, that is not beyond an end; a negative step goes down.

    Sums of a count above the exact quotient lie beyond the end, or are rounded to it; the first of them says which. An
    end that is too many steps away stays as it is: then there are steps beside every double.
    """
    if math.isinf(end):
        return end
    count = math.floor((Fraction(end) - Fraction(own)) / Fraction(step))
    if count >= _MOST_STEPS:
        return end
    places = (own + max(count + more, 0) * step for more in (1, 0, -1))
    return next((z for z in places if (z <= end if step > 0 else z >= end)), own)


def _require_numbers(threat: Threat, n_features: int) -> None:
    """Refuse a threat that is not spelt out: a norm that the noise decides, units by name, `whole` numbers."""
    if threat.norm == "auto" or threat.whole:
        what = "its `norm`" if threat.norm == "auto" else "`whole` as `steps`"
        raise ValueError(f"The certificates' threat must name {what} to be audited, as `certify` does.")
    if threat.units is not None and (type(threat.units) is not tuple or len(threat.units) != n_features):
        raise ValueError(
            f"`units` of the certificates' threat must be one number for each of the {n_features} columns, got "
            f"{threat.units!r}."
        )


def _require_columns(threat: Threat, model: Model) -> None:
    """Refuse columns that do not exist, or of the wrong sort: what is said of them would count for nothing."""
    every = set(range(model.n_features))
    numbers, codes = every - set(model.categorical_features), every - set(model.numerical_features)
    named: dict[str, tuple[Collection[Any], set[int], str]] = {
        "frozen": (threat.frozen, every, ""),
        "limits": ([column for column in threat.limits if column != _EVERY], numbers, "numerical "),
        "domain": (threat.domain, numbers, "numerical "),
        "steps": (threat.steps, numbers, "numerical "),
        "may_become": (threat.may_become, codes, "categorical "),
        "linked": (
            [at for one, link in threat.linked.items() for at in (one, link[0], link[2])],
            numbers,
            "numerical ",
        ),
    }
    for name, (columns, known, sort) in named.items():
        for column in columns:
            if column not in known:
                raise ValueError(
                    f"`{name}` of the certificates' threat must name {sort}columns of the model by number to be "
                    f"audited, got {column!r}."
                )
