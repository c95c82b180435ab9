"""The one vocabulary of what a column holds, whatever table or file it stands in.

Must not know tables. pyarrow is imported only where one of its types is judged.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

Category = str | int | float | bool


class ColumnKind(Enum):
    """What the cells of a column are; the value says it in words.

    Examples
    --------
    >>> ColumnKind.TEXT.value, ColumnKind.TEXT.is_categorical, ColumnKind.NUMBER.is_categorical
    ('text', True, False)
    """

    NUMBER = "numbers"
    TEXT = "text"
    BOOLEAN = "booleans"
    CATEGORY = "categories"
    MIXED = "cells of several kinds"
    DATE = "dates"
    EMPTY = "nothing"
    OTHER = "neither numbers nor text"

    @property
    def is_categorical(self) -> bool:
        """Whether a column of this kind is categorical unless it is said otherwise."""
        return self in (ColumnKind.TEXT, ColumnKind.BOOLEAN, ColumnKind.CATEGORY)


_BY_LETTER = {"i": ColumnKind.NUMBER, "u": ColumnKind.NUMBER, "f": ColumnKind.NUMBER}
_BY_LETTER |= {"b": ColumnKind.BOOLEAN, "U": ColumnKind.TEXT, "M": ColumnKind.DATE}


def kind_of_letter(letter: str) -> ColumnKind:
    """Kind of an array by numpy's letter for its type."""
    return _BY_LETTER.get(letter, ColumnKind.OTHER)


def kind_of_arrow_type(found: pa.DataType) -> ColumnKind:
    """Kind of a column by its type in pyarrow."""
    from pyarrow import types

    if types.is_integer(found) or types.is_floating(found) or types.is_decimal(found):
        return ColumnKind.NUMBER
    if types.is_string(found) or types.is_large_string(found) or types.is_string_view(found):
        return ColumnKind.TEXT
    if types.is_dictionary(found):
        return ColumnKind.CATEGORY
    if types.is_boolean(found):
        return ColumnKind.BOOLEAN
    if types.is_date(found) or types.is_timestamp(found):
        return ColumnKind.DATE
    return ColumnKind.EMPTY if types.is_null(found) else ColumnKind.OTHER


def kind_of_cell(value: object) -> ColumnKind | None:
    """TEXT, BOOLEAN or NUMBER; None for a cell that no column may hold."""
    if isinstance(value, str):
        return ColumnKind.TEXT
    if isinstance(value, bool | np.bool_):
        return ColumnKind.BOOLEAN
    return ColumnKind.NUMBER if isinstance(value, numbers.Real) else None


def kind_of_values(values: Iterable[Category]) -> ColumnKind:
    """Kind of the column in which these labels or categories stand, all of one kind; of numbers, where there are none.

    Examples
    --------
    >>> kind_of_values(["a", "b"]).value, kind_of_values([False, True]).value, kind_of_values([]).value
    ('text', 'booleans', 'numbers')
    """
    first = next(iter(values), None)
    return kind_of_cell(first) or ColumnKind.NUMBER


def is_missing(value: object) -> bool:
    """None, NaN, and the missing values of pandas (of which NA has no truth value)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Real) and bool(value != value)  # noqa: PLR0124 - NaN alone differs from itself


def reads_as_number(text: str) -> bool:
    """Whether text would be a number in a number column."""
    try:
        float(text)
    except ValueError:
        return False
    return True
