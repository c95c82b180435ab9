"""The column check: what a column of a table is good for, before a classifier is trained on it.

Owns when a column is left out and when it must be mended first. Must not know classifiers, files or the command line.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

import numpy as np

from derand.frames._encoding import find_columns
from derand.frames._kinds import ColumnKind, reads_as_number
from derand.frames._tables import Table, open_table
from derand.text import quote_short

_MANY_CATEGORIES = 0.5
"""A text column is taken for a name or a number of the row where more than this share of its cells differ ..."""
_FEW_CATEGORIES = 20
"""... and more than this many do."""


class ColumnUse(Enum):
    """What a column is good for."""

    NUMERICAL = "numerical"
    CATEGORICAL = "categorical"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """What was found out about a column.

    Attributes
    ----------
    name : str or int
        Its name; its number where the table has no names.
    kind : ColumnKind
        What it holds.
    use : ColumnUse
        NUMERICAL or CATEGORICAL: it can be learnt from. IGNORED: nothing can be learnt from it, or it was asked for.
        REFUSED: it must be mended first, training would fail.
    reason : str or None
        Why it is ignored or refused.
    gaps : int
        How many cells of a numerical column are infinite.
    missing : int
        How many of its cells are empty: training takes them as a cell of their own.
    stray : tuple of (str, int)
        Text in a column of numbers, and in how many cells.
    """

    name: str | int
    kind: ColumnKind
    use: ColumnUse
    reason: str | None = None
    gaps: int = 0
    missing: int = 0
    stray: tuple[tuple[str, int], ...] = ()


def check_columns(
    table: object, *, categorical: Collection[str | int] = (), ignored: Collection[str | int] = ()
) -> tuple[ColumnCheck, ...]:
    """What the columns of a table of features are good for: to be asked before `fit`, as `derand train` does.

    A column is left out where it is empty, constant, neither numbers nor text (dates), without a name, or text of
    which nearly every cell is another (a name, or a number of the row). It must be mended where numbers are infinite,
    or stand among text.

    Parameters
    ----------
    table : array, or pandas, polars or pyarrow frame, of shape (n_rows, n_features)
        The features alone: the target is no column to learn from.
    categorical : collection of str or int
        Columns that are categories though they hold numbers, or text of very many values; by name or number.
    ignored : collection of str or int
        Columns to leave out.

    Returns
    -------
    tuple of ColumnCheck
        One per column, in order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> ages, jobs = [31, 45, None, 29], ["cook", "clerk", "cook", "cook"]
    >>> for check in check_columns(pa.table({"age": ages, "job": jobs, "land": ["DE"] * 4, "zip": [1, 2, 2, 1]}),
    ...                            categorical=["zip"]):
    ...     print(check.name, check.use.value, check.reason)
    age numerical None
    job categorical None
    land ignored constant
    zip categorical None
    """
    opened = open_table(table)
    chosen = find_columns(opened, categorical, "categorical")
    left_out = find_columns(opened, ignored, "ignored")
    return tuple(
        _check_column(opened, column, is_chosen=column in chosen, is_left_out=column in left_out)
        for column in range(opened.n_columns)
    )


def _check_column(table: Table, column: int, *, is_chosen: bool, is_left_out: bool) -> ColumnCheck:
    name = column if table.names is None else table.names[column]
    try:
        kind = table.kind(column)
    except TypeError:  # a cell that no column may hold
        kind = ColumnKind.OTHER
    if is_left_out:
        return ColumnCheck(name, kind, ColumnUse.IGNORED, "as asked")
    if name == "":
        return ColumnCheck(name, kind, ColumnUse.IGNORED, "has no name")
    if kind is ColumnKind.MIXED:
        return ColumnCheck(name, kind, ColumnUse.REFUSED, f"mixes {table.describe(column)}")
    if kind is ColumnKind.NUMBER and not is_chosen:
        return _check_numbers(table, column, name)
    if kind is ColumnKind.NUMBER or kind.is_categorical:
        return _check_categories(table, column, ColumnCheck(name, kind, ColumnUse.CATEGORICAL), is_chosen=is_chosen)
    return ColumnCheck(name, kind, ColumnUse.IGNORED, f"holds {kind.value}")


def _check_numbers(table: Table, column: int, name: str | int) -> ColumnCheck:
    kind = ColumnKind.NUMBER
    try:
        values = table.read_numbers(column)
    except ValueError:  # pyarrow does not round whole numbers
        return ColumnCheck(name, kind, ColumnUse.REFUSED, "holds whole numbers that are too large for a double")
    present = values[~np.isnan(values)]
    if not present.size:
        return _say_empty(name)
    if present.size == values.size and (present == present[0]).all():
        return ColumnCheck(name, kind, ColumnUse.IGNORED, "constant")
    gaps, missing = int(np.count_nonzero(np.isinf(values))), values.size - present.size
    if gaps:
        reason = f"{gaps} of {values.size} cells are infinite"
        return ColumnCheck(name, kind, ColumnUse.REFUSED, reason, gaps, missing)
    return ColumnCheck(name, kind, ColumnUse.NUMERICAL, missing=missing)


def _check_categories(table: Table, column: int, found: ColumnCheck, *, is_chosen: bool) -> ColumnCheck:
    """The check of a column of categories, `found` if nothing is wrong with it."""
    name, kind = found.name, found.kind
    codes, values = table.code_values(column)
    counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
    seen = {value: count for value, count in zip(values, counts, strict=True) if count}
    total = sum(seen.values())
    if not seen:
        return _say_empty(name)
    if len(seen) == 1:
        return ColumnCheck(name, kind, ColumnUse.IGNORED, "constant")
    if kind is not ColumnKind.TEXT or is_chosen:
        return found
    stray = {str(value): count for value, count in seen.items() if not reads_as_number(str(value))}
    n_stray = sum(stray.values())
    if len(seen) > max(_FEW_CATEGORIES, _MANY_CATEGORIES * total) and 2 * n_stray >= total:
        reason = f"text with {len(seen)} different values in {table.n_rows} rows"
        return ColumnCheck(name, kind, ColumnUse.IGNORED, reason)
    if 0 < n_stray < 0.5 * total:
        reason = f"{n_stray} of {table.n_rows} cells are text among numbers, such as {quote_short(next(iter(stray)))}"
        return ColumnCheck(name, kind, ColumnUse.REFUSED, reason, stray=tuple(stray.items()))
    return found


def _say_empty(name: str | int) -> ColumnCheck:
    kind = ColumnKind.EMPTY
    return ColumnCheck(name, kind, ColumnUse.IGNORED, f"holds {kind.value}")
