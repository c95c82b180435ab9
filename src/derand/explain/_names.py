"""Names of columns and of their values, as the user has them. Must not know what is said with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from derand._core.origin import Cell
from derand._core.text import format_exactly, format_readable, quote_short
from derand.tables import format_moment

MISSING = "(missing)"
NEW = "(new)"
_DIGITS = 6


def name_category(code: float, categories: Sequence[object], *, has_new: bool) -> str:
    """A category as the user wrote it.

    `categories`: by code; a code beyond them stands for itself; `has_new`: whether a negative code is one that training
    did not see.

    Examples
    --------
    >>> [name_category(code, ["cook", "clerk"], has_new=True) for code in (0.0, 7.0, -1.0)]
    ['cook', '7', '(new)']
    """
    if math.isnan(code):
        return "(missing or new)"
    if code < 0 and has_new:
        return NEW
    at = int(code)
    return str(categories[at]) if 0 <= at < len(categories) else str(at)


@dataclass(frozen=True, slots=True)
class Names:
    """Names of columns and categories.

    Attributes
    ----------
    columns : tuple of str
    categories : mapping of column number to sequence
        Values of categorical columns, by code.
    dates : tuple of int
        Columns whose numbers are days since 1970-01-01.
    """

    columns: tuple[str, ...]
    categories: Mapping[int, Sequence[Cell]]
    dates: tuple[int, ...] = ()

    def quote(self, feature: int) -> str:
        """The name of a column in a sentence."""
        return quote_short(self.columns[feature])

    def is_category(self, feature: int) -> bool:
        """Whether a column holds categories."""
        return feature in self.categories

    def write(self, feature: int, value: float) -> str:
        """A cell as the user reads it."""
        if feature in self.categories:
            return name_category(value, self.categories[feature], has_new=True)
        if math.isnan(value):
            return MISSING
        if feature in self.dates:
            return format_moment(value)
        text = format_readable(value, _DIGITS)
        return text if float(text.replace(",", "")) != 0 or value == 0 else format_exactly(value)

    def quote_value(self, feature: int, value: float) -> str:
        """The same in a sentence: text of the user's is quoted."""
        text = self.write(feature, value)
        return quote_short(text) if feature in self.categories and not text.startswith("(") else text
