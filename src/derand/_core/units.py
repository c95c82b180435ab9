"""Units of columns, in which noise and radii count: one positive number per column, or some of them by name.

Owns how units are checked, and how those by name become one number per column. Must not know noises, threats or tables.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from derand._core.arrays import is_number

_ALIKE = 0.7  # "age" is no slip of "garage"
_LARGEST_SCALE = 1e300  # differences of finite numbers that overflow are then too many scales to matter


def as_positive(value: object, what: str) -> float:
    """A positive number of a size that can be computed with; `what` names it in the error."""
    if not is_number(value):
        raise TypeError(f"{what} must be a positive number, got {value!r}.")
    if not 1 / _LARGEST_SCALE < value < _LARGEST_SCALE:
        raise ValueError(f"{what} must be positive and finite, between 1e-300 and 1e300, got {value!r}.")
    return float(value)


class NamedUnits(tuple[float, ...]):
    """Units of some columns by name: numbers that nobody can use before the columns of a table are known.

    Examples
    --------
    >>> NamedUnits({"age": 5.0}).resolve(["income", "age"], None, "`units`")
    (1.0, 5.0)
    """

    names: tuple[str, ...]

    def __new__(cls, units: Mapping[str, float]) -> NamedUnits:
        made = super().__new__(cls, units.values())
        made.names = tuple(units)
        return made

    def __getnewargs__(self) -> tuple[dict[str, float]]:
        return (self.by_name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedUnits) and self.by_name == other.by_name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self.by_name.items()))

    def __repr__(self) -> str:
        return repr(self.by_name)

    @property
    def by_name(self) -> dict[str, float]:
        """The units as they were given."""
        return dict(zip(self.names, self, strict=True))

    def resolve(self, names: Sequence[str] | None, others: Sequence[float] | None, what: str) -> tuple[float, ...]:
        """One unit per column.

        `names`: of the columns of the table; None where they have none, which is refused; `others`: the units of
        columns that are not named; None is 1 for all; `what`: names the units in errors, such as "`units` of Threat".
        """
        if names is None:
            raise ValueError(f"{what} by column name need a table with names: give one positive number per column.")
        units = [1.0] * len(names) if others is None else list(others)
        known = {name: at for at, name in enumerate(names)}
        for name, unit in self.by_name.items():
            units[look_up(name, known, what)] = unit
        return tuple(units)


def as_units(units: object, what: str) -> tuple[float, ...]:
    """Units that were given as one positive number per column, or as a dict by name; `what` names them in errors."""
    if isinstance(units, NamedUnits):
        return units
    if isinstance(units, Mapping):
        for name in units:
            if not isinstance(name, str):
                raise TypeError(f"{what} as a dict must name columns by their names, got {name!r}.")
        return NamedUnits({name: as_positive(unit, f"{what} for {name!r}") for name, unit in units.items()})
    if isinstance(units, str) or not isinstance(units, Iterable):
        raise TypeError(
            f"{what} must be one positive number per column, or a dict of column name to number, got {units!r}."
        )
    return tuple(as_positive(unit, f"every entry of {what}") for unit in units)


def require_numbered(units: tuple[float, ...] | None, what: str) -> None:
    """Refuse units by name where nobody knows the names of columns."""
    if isinstance(units, NamedUnits):
        raise ValueError(
            f"{what} must be one positive number per column here, got {units!r}: only an estimator that was fitted on "
            "a table with names knows names."
        )


def look_up(column: str, known: Mapping[str, int], what: str) -> int:
    """The number of a column by its name; one that does not exist is refused with the nearest, or with all."""
    if column not in known:
        same = [name for name in known if name.casefold() == column.casefold()]
        near = same or difflib.get_close_matches(column, known, n=1, cutoff=_ALIKE)
        meant = f"; did you mean {near[0]!r}?" if near else f": the columns are {', '.join(known) or 'numbers alone'}."
        raise ValueError(f"{what} names the column {column!r}, which does not exist{meant}")
    return known[column]
