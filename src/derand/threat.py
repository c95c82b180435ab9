"""Threats: what an adversary, or an accident, may change of a row.

Owns the description of the change against which a certificate holds, in the words of users: names of columns,
percentages, "auto". `derand.perturbation` turns it into arrays. Must not know models; a noise says in which norm its
own certificates are.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from derand._core.arrays import is_number, is_whole
from derand._core.origin import Cell
from derand._core.text import Facts
from derand._core.units import NamedUnits, as_positive, as_units, look_up
from derand.noise import Noise

Column = int | str
"""A column by its number or, in estimators, by its name."""
Limit = str | float | tuple[float, float]
"""Percent of the value as text ("5%"), an absolute change, or how far down and up."""
Link = tuple[Column, str, Column, float]
"""How a number follows from two others: the first, "/" or "-", the second, and by how much it may be off."""
_MOST = 2**31 - 1
EVERY = "*"
"""Stands for all columns that are not named otherwise."""


@dataclass(frozen=True, slots=True)
class Threat:
    """What may change: numbers within a ball and within limits, some categorical features, and which numbers there are.

    Parameters
    ----------
    norm : "auto", float or None
        Norm of the ball in which numerical features may move: 1, 2 or inf, or 0 for how many of them may become
        anything; "auto" is that of the noise, and 2 without noise. None is no ball: limits alone say what may change,
        and a number without a limit or a domain stays as it is.
    l0 : int
        How many categorical features may change at the same time; more than the model has counts as all of them.
    unseen : bool
        Whether a categorical feature may change to a value that is not in its table.
    units : sequence of float, dict of column name to number, or None
        What counts as a change of 1 of each feature, one positive number per column; None takes the units of the
        noise, and 1 without any. In estimators also by name: columns that are not named keep the estimator's units.
    frozen : sequence of columns
        Columns that do not change, by number, or by name in estimators; numerical or categorical.
    limits : dict of column to limit
        By how much a number may change at most: "5%" of its absolute value, 500, or (down, up). The column "*" stands
        for all numbers that have no limit of their own here and are not frozen; a domain holds beside it.
    domain : dict of column to (lowest, highest)
        Between which ends a number stays; the row's own must lie between them.
    steps : dict of column to step
        Numbers that change by multiples of a step alone, such as 1 for whole numbers. Without noise, and where limits
        alone say what may change, they count exactly; for a ball under noise they are left out of account, which is
        sound.
    whole : bool
        Whether columns that held whole numbers alone in training stay whole: they get steps of 1 where they have no
        step of their own, and those of 0 and 1 alone the domain (0, 1). Estimators know which ones these are; for bare
        models use `steps`.
    may_become : dict of column to list of values
        To what a category may change; columns that are not named to anything. By code in the core.
    missing : "fixed" or int
        How many numbers may go missing or, where they are missing, appear as any number, whatever the limits of their
        columns say; only columns whose terms have a cell for missing values, and no frozen ones. "fixed", as 0: what is
        missing stays so, and what is there stays there.
    linked : dict of column to (column, "/" or "-", column) or (column, sign, column, tolerance)
        Numbers that follow from two others, such as {"debt_ratio": ("debt", "/", "income")}: they change with these,
        as doubles are divided or subtracted, and by nothing else. The tolerance, 0 unless given, is by how much they
        may differ from that, such as 0.005 where a table holds two decimals. Without noise, and where limits alone say
        what may change (`norm=None`).

    Examples
    --------
    >>> from derand import Gaussian, Threat
    >>> Threat(l0=1).resolve(Gaussian(0.25)).norm
    2
    >>> threat = Threat(norm=None, limits={0: "5%", 1: (0, 30)}, frozen=[2])
    >>> threat.may_move(1), threat.may_move(2)
    (True, False)
    """

    norm: float | Literal["auto"] | None = "auto"
    l0: int = 0
    unseen: bool = True
    units: Any = None  # a tuple from then on, or None
    frozen: tuple[Column, ...] = ()
    limits: Mapping[Column, Limit] = field(default_factory=dict)
    domain: Mapping[Column, tuple[float, float]] = field(default_factory=dict)
    steps: Mapping[Column, float] = field(default_factory=dict)
    may_become: Mapping[Column, tuple[Cell, ...]] = field(default_factory=dict)
    missing: int | Literal["fixed"] = "fixed"
    whole: bool = False
    linked: Mapping[Column, Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.missing != "fixed":
            object.__setattr__(self, "missing", _as_missing(self.missing))
        if self.norm is not None and self.norm != "auto":
            object.__setattr__(self, "norm", _as_norm(self.norm))
        object.__setattr__(self, "l0", as_budget(self.l0))
        if not isinstance(self.unseen, bool | np.bool_):
            raise TypeError(f"`unseen` of Threat must be True or False, got {self.unseen!r}.")
        if not isinstance(self.whole, bool | np.bool_):
            raise TypeError(
                f"`whole` of Threat must be True or False, got {self.whole!r}: it holds for all columns that are known "
                "to hold whole numbers; `steps` is for columns by name."
            )
        if self.units is not None:
            object.__setattr__(self, "units", as_units(self.units, "`units` of Threat"))
        if isinstance(self.frozen, str) or not isinstance(self.frozen, Iterable):
            raise TypeError(f"`frozen` of Threat must be a list of columns, got {self.frozen!r}.")
        object.__setattr__(self, "frozen", tuple(_as_column(column, "frozen") for column in self.frozen))
        for name, read in _READERS.items():
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise TypeError(f"`{name}` of Threat must be a dict by column, got {given!r}.")
            object.__setattr__(self, name, {_as_column(at, name): read(value, at) for at, value in given.items()})
        for column in self.frozen:
            if any(column in getattr(self, name) for name in _READERS):
                raise ValueError(f"`frozen` of Threat must not name {column!r}, which has limits or the like as well.")
        self._read_links()

    def _read_links(self) -> None:
        """Check what follows from other columns, and refuse what cannot hold beside it."""
        if not isinstance(self.linked, Mapping):
            raise TypeError(f"`linked` of Threat must be a dict by column, got {self.linked!r}.")
        links = {_as_column(at, "linked"): _as_link(link, at) for at, link in self.linked.items()}
        object.__setattr__(self, "linked", links)
        order_links(links)
        for column in links:
            for name in ("frozen", *_READERS):
                if column in getattr(self, name):
                    raise ValueError(
                        f"`{name}` of Threat must not name {column!r}, which is linked: it follows from "
                        f"{links[column][0]!r} and {links[column][2]!r}, and changes by nothing else."
                    )
        if links and self.missing_budget:
            raise ValueError(
                f"`missing` of Threat must be 'fixed' beside `linked`, got {self.missing}: what follows from a number "
                "that goes missing is not known."
            )

    def __hash__(self) -> int:  # dicts have none; what is equal has the same
        return hash((self.norm, self.l0, self.unseen, self.units, self.frozen, self.missing, self.whole))

    def find_norm(self, noise: Noise | None) -> float | None:
        """The norm, that of the noise for "auto"; 2 without noise."""
        return (2 if noise is None else noise.norm) if self.norm == "auto" else self.norm

    def resolve(self, noise: Noise | None) -> Threat:
        """The same with the noise's norm for "auto", and with the noise's units where it has none of its own."""
        norm = self.find_norm(noise)
        units = noise.units if self.units is None and noise is not None else self.units
        if norm == self.norm and units is self.units:
            return self
        return replace(self, norm=norm, units=units)

    def name_columns(
        self,
        names: Sequence[str] | None,
        categories: Mapping[int, Sequence[object]] | None = None,
        units: Sequence[float] | None = None,
        whole: Mapping[int, tuple[int, int]] | None = None,
    ) -> Threat:
        """The same with columns by number and categories by code, for a table with these names and categories.

        `units` are those of columns that units by name leave out; None is 1. `whole` holds the table's columns of whole
        numbers, with the least and the largest of each; None where that is not asked yet.
        """
        if not any((self.frozen, self.limits, self.domain, self.steps, self.may_become, self.whole, self.linked)):
            return self._name_units(names, units)
        known = {name: at for at, name in enumerate(names or ())}
        found: Facts = {
            name: {_find_column(column, known, name): value for column, value in getattr(self, name).items()}
            for name in _READERS
        }
        found["linked"] = {
            _find_column(column, known, "linked"): (
                _find_column(left, known, "linked"),
                sign,
                _find_column(right, known, "linked"),
                tolerance,
            )
            for column, (left, sign, right, tolerance) in self.linked.items()
        }
        numbers = {name: list(found[name]) for name in ("limits", "domain", "steps")}
        numbers["linked"] = [one for column, link in found["linked"].items() for one in (column, link[0], link[2])]
        for name, columns in numbers.items():
            for column in columns:
                if names is not None and column in (categories or {}):
                    raise refuse_category(name, repr(names[column]))
        for column, values in (categories or {}).items():
            if column in found["may_become"]:
                codes = {value: float(code) for code, value in enumerate(values)} | {None: np.nan}
                chosen = found["may_become"][column]
                _warn_of_strange(chosen, codes, column if names is None else names[column])
                found["may_become"][column] = tuple(codes.get(value, -1.0) for value in chosen)  # -1: never seen
        named = replace(self, frozen=tuple(_find_column(column, known, "frozen") for column in self.frozen), **found)
        named = named._name_units(names, units)
        if not self.whole or whole is None:
            return named
        if not whole:
            warnings.warn(
                "`whole` of Threat changes nothing: no column is known to hold only whole numbers. Name them in "
                "`steps`, such as steps={'children': 1}, or train again if the model was saved before that was kept.",
                stacklevel=2,
            )
        return named.with_whole(whole)

    def _name_units(self, names: Sequence[str] | None, others: Sequence[float] | None) -> Threat:
        """The same with one unit per column, where they were given by name."""
        if not isinstance(self.units, NamedUnits):
            return self
        return replace(self, units=self.units.resolve(names, others, "`units` of Threat"))

    def with_whole(self, columns: Mapping[int, tuple[int, int]]) -> Threat:
        """The same where some columns stay whole numbers: `whole` spelt out in steps and domains.

        Parameters
        ----------
        columns : mapping of column number to (least, largest)
            Those of (0, 1) stay 0 or 1. Columns that do not change, or have a step of their own, are left alone.

        Examples
        --------
        >>> threat = Threat(norm=None, limits={"*": 2}, frozen=[1]).with_whole({0: (0, 9), 1: (0, 5), 2: (0, 1)})
        >>> threat.steps, threat.domain
        ({0: 1.0, 2: 1.0}, {2: (0.0, 1.0)})
        """
        chosen = [at for at in columns if self.may_move(at) and at not in self.steps and at not in self.linked]
        yes_or_no: dict[Column, tuple[float, float]] = {
            at: (0.0, 1.0) for at in chosen if columns[at] == (0, 1) and at not in self.domain
        }
        return replace(
            self,
            whole=False,
            steps={**self.steps, **dict.fromkeys(chosen, 1.0)},
            domain={**self.domain, **yes_or_no},
        )

    @property
    def missing_budget(self) -> int:
        """How many numbers may go missing or appear."""
        return 0 if self.missing == "fixed" else self.missing

    @property
    def ball_norm(self) -> float | None:
        """The norm of a threat that is resolved; None where there is no ball."""
        if self.norm == "auto":
            raise ValueError("`norm` of this Threat is 'auto': use `Threat.resolve(noise)`.")
        return self.norm

    def may_move(self, column: Column) -> bool:
        """Whether a numerical column may change at all."""
        named = column in self.limits or column in self.domain or EVERY in self.limits or column in self.linked
        return column not in self.frozen and (named or self.norm is not None)


def _as_norm(norm: object) -> float:
    """A norm, a whole number where it is one."""
    if not is_number(norm) or not (norm == 0 or norm >= 1):
        raise ValueError(f"`norm` of Threat must be 'auto', None, 0, 1, 2 or inf, got {norm!r}.")
    return int(norm) if float(norm).is_integer() else float(norm)


def _as_missing(missing: object) -> int:
    if not is_whole(missing) or missing < 0:
        raise ValueError(
            "`missing` of Threat must be 'fixed' or how many numbers may go missing or appear, 0 or larger, "
            f"got {missing!r}."
        )
    return min(int(missing), _MOST)


def _as_column(column: object, name: str) -> Column:
    if isinstance(column, bool) or not isinstance(column, int | np.integer | str):
        raise TypeError(f"`{name}` of Threat must name columns by number or name, got {column!r}.")
    return column if isinstance(column, str) else int(column)


def _find_column(column: Column, known: Mapping[str, int], name: str) -> Column:
    if not isinstance(column, str) or (column == EVERY and name == "limits"):
        return column
    return look_up(column, known, f"`{name}` of Threat")


def find_column(column: object, names: Sequence[str] | None, n_features: int, what: str) -> int:
    """The number of a column that is given by name or number, for a table with these names.

    `what`: names the parameter in errors, such as "`monotone`".

    Examples
    --------
    >>> find_column("age", ["income", "age"], 2, "`monotone`")
    1
    """
    if isinstance(column, str):
        return look_up(column, {name: at for at, name in enumerate(names or ())}, what)
    if not is_whole(column) or not 0 <= column < n_features:
        raise ValueError(f"{what} must name columns, or number them from 0 to {n_features - 1}, got {column!r}.")
    return int(column)


def _as_limit(limit: object, column: object) -> Limit:
    what = f"`limits` of Threat for {column!r}"
    if isinstance(limit, str):
        number, percent, rest = limit.partition("%")
        try:
            share = float(number) / 100
        except ValueError:
            share = float("nan")
        if not (percent and not rest and np.isfinite(share) and share >= 0):
            raise ValueError(f"{what} must be a percentage such as '5%', got {limit!r}.")
        return limit
    pair = limit if isinstance(limit, tuple | list) else (limit, limit)
    if len(pair) != 2 or not all(isinstance(end, int | float | np.integer | np.floating) for end in pair):
        raise TypeError(f"{what} must be '5%', a number, or (down, up), got {limit!r}.")
    down, up = (float(end) for end in pair)
    if not (down >= 0 and up >= 0):
        raise ValueError(f"{what} must be 0 or larger on both sides, got {limit!r}.")
    return (down, up) if isinstance(limit, tuple | list) else down


def _as_domain(domain: object, column: object) -> tuple[float, float]:
    what = f"`domain` of Threat for {column!r}"
    if not isinstance(domain, tuple | list) or len(domain) != 2:
        raise TypeError(f"{what} must be a pair (lowest, highest), got {domain!r}.")
    lowest, highest = (float(end) for end in domain)
    if not lowest <= highest:
        raise ValueError(f"{what} must be a pair (lowest, highest) in this order, got {domain!r}.")
    return lowest, highest


def _as_step(step: object, column: object) -> float:
    return as_positive(step, f"`steps` of Threat for {column!r}")


def _as_link(link: object, column: object) -> Link:
    what = f"`linked` of Threat for {column!r}"
    if not isinstance(link, tuple | list) or len(link) not in (3, 4):
        raise TypeError(f'{what} must be such as ("debt", "/", "income"), got {link!r}.')
    left, sign, right, *more = link
    if sign not in ("/", "-"):
        raise ValueError(f'{what} must be a ratio ("/") or a difference ("-") of two columns, got {sign!r}.')
    left, right = _as_column(left, "linked"), _as_column(right, "linked")
    if left == right:
        raise ValueError(f"{what} must name two different columns, got {left!r} twice.")
    tolerance = more[0] if more else 0.0
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | np.integer | np.floating):
        raise TypeError(f"{what} must end with a tolerance, a number, got {tolerance!r}.")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"{what} must have a finite tolerance, 0 or larger, got {tolerance!r}.")
    return left, sign, right, float(tolerance)


def order_links(links: Mapping[Column, Link]) -> list[Column]:
    """Linked columns, each behind those that it follows from; a column that follows from itself is refused."""
    order: list[Column] = []
    while len(order) < len(links):
        ready = [
            at for at, one in links.items() if at not in order and not {one[0], one[2]} & (links.keys() - set(order))
        ]
        if not ready:
            left = ", ".join(repr(column) for column in links if column not in order)
            raise ValueError(f"`linked` of Threat must not lead back to a column itself, as that of {left} does.")
        order += ready
    return order


def _as_values(values: object, column: object) -> tuple[object, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"`may_become` of Threat for {column!r} must be a list of values, got {values!r}.")
    return tuple(values)


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "limits": _as_limit,
    "domain": _as_domain,
    "steps": _as_step,
    "may_become": _as_values,
}
"""Fields that say something of columns, and how a value of each is checked."""
COLUMN_FIELDS = tuple(_READERS)


def as_budget(l0: object) -> int:
    """A number of categorical features that may change."""
    if not is_whole(l0) or l0 < 0:
        raise ValueError(f"`l0` must be a number of categorical features that may change, 0 or larger, got {l0!r}.")
    return min(int(l0), _MOST)  # more than there are columns counts as all of them


def as_threats(l0: int | Iterable[int] | None, unseen: bool | None, threat: Threat | None) -> list[Threat]:
    """The threats that are asked for: one, or one per budget; `l0` and `unseen` beside `threat` are an error."""
    if threat is not None:
        if not isinstance(threat, Threat):
            raise TypeError(f"`threat` must be a Threat such as Threat(norm=inf), got {threat!r}.")
        if l0 is not None or unseen is not None:
            given = "l0" if l0 is not None else "unseen"
            raise ValueError(f"Give `{given}` or `threat`, got both: write Threat({given}=...) alone.")
        return [threat]
    budgets: list[object] = [0] if l0 is None else [l0] if np.ndim(l0) == 0 else list(l0)  # type: ignore[arg-type]
    return [Threat(l0=as_budget(budget), unseen=True if unseen is None else unseen) for budget in budgets]


def refuse_category(name: str, column: str) -> ValueError:
    """The error for a categorical column where a numerical one belongs."""
    return ValueError(
        f"`{name}` of Threat must name numerical columns, got {column}, which is categorical: `l0` says how many of "
        "those may change, `frozen` which may not."
    )


def refuse_linked(threat: Threat, what: str) -> None:
    """Refuse linked columns where they move one by one; `what` says where that is."""
    if threat.linked:
        raise ValueError(
            f"`linked` of Threat is not for {what}, where columns change one by one: leave it out there. `certify` "
            "knows it."
        )


def _warn_of_strange(chosen: Sequence[object], codes: Mapping[object, float], column: str | int) -> None:
    """Say which values of `may_become` no training row had: they are allowed, and often misspelt."""
    strange = [value for value in chosen if value not in codes]
    if strange:
        near = difflib.get_close_matches(str(strange[0]), [str(value) for value in codes], n=1)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        warnings.warn(
            f"`may_become` of Threat names {strange[0]!r} for column {column!r}, which no training row had: it counts "
            f"as a category that was never seen.{guess}",
            stacklevel=2,
        )
