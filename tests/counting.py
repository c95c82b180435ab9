"""Names that count how often they are compared: what shows that work grows with their number, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterable


class CountedName(str):
    """Text that counts its comparisons with other text; those of one object with itself need none."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def count_names(names: Iterable[str]) -> tuple[CountedName, ...]:
    """The same names; counting begins anew."""
    CountedName.compared = 0
    return tuple(map(CountedName, names))
