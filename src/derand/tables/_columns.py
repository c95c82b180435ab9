"""The column check: what a column of a table is good for, before a classifier is trained on it.

Owns when a column is left out and when it must be mended first. Must not know classifiers, files or the command line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand._core.origin import Frame, take_rows
from derand._core.text import quote_short
from derand.tables._data_checks import (
    ADVICE_ON_DATES,
    Leaks,
    check_identifier,
    check_sentinel,
    check_spellings,
    check_text,
    sample_rows,
)
from derand.tables._kinds import ColumnKind, reads_as_number
from derand.tables._tables import Table, as_rows, number_columns, open_table

_MANY_CATEGORIES = 0.5
"""A text column is taken for a name or a number of the row where more than this share of its cells differ ..."""
_FEW_CATEGORIES = 20
"""... and more than this many do."""


_MOST_NAMED = 12
"""Columns that a warning names."""


class ColumnWarning(UserWarning):
    """Columns of a table to look at before a model that was trained on them is trusted."""


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
    doubts : tuple of str
        What to look at before the column is used: it may be an identifier, a date or a number written as text, or tell
        the target by itself.
    """

    name: str | int
    kind: ColumnKind
    use: ColumnUse
    reason: str | None = None
    gaps: int = 0
    missing: int = 0
    stray: tuple[tuple[str, int], ...] = ()
    doubts: tuple[str, ...] = ()


def check_columns(
    table: object,
    *,
    categorical: Collection[str | int] = (),
    ignored: Collection[str | int] = (),
    numerical: Collection[str | int] = (),
    target: ArrayLike | None = None,
) -> tuple[ColumnCheck, ...]:
    """What the columns of a table of features are good for: to be asked before `fit`, as `derand train` does.

    A column is left out where it is empty, constant, neither numbers nor text (dates), without a name, or where nearly
    every cell is another: text, or whole numbers that are named like an identifier or count rows. It must be mended
    where numbers are infinite, or stand among text. Of the others it is said what to look at.

    Parameters
    ----------
    table : array, or pandas, polars or pyarrow frame, of shape (n_rows, n_features)
        The features alone: the target is no column to learn from.
    categorical : collection of str or int
        Columns that are categories though they hold numbers, or text of very many values; by name or number.
    ignored : collection of str or int
        Columns to leave out.
    numerical : collection of str or int
        Columns of numbers that are to be used though they look like an identifier.
    target : array-like of shape (n_rows,), or None
        Labels, or the numbers to be predicted: columns that tell them almost by themselves are named.

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
    chosen = number_columns(opened, categorical, "categorical")
    left_out = number_columns(opened, ignored, "ignored")
    kept = number_columns(opened, numerical, "numerical")
    checks = [
        _check_column(opened, column, is_chosen=column in chosen, is_left_out=column in left_out)
        for column in range(opened.n_columns)
    ]
    rows = sample_rows(opened.n_rows)
    sample = opened if rows is None else open_table(take_rows(as_rows(table), rows))
    leaks = None if target is None else Leaks(np.asarray(target) if rows is None else np.asarray(target)[rows])
    return tuple(_add_data_checks(sample, checks, opened.n_rows, leaks, {*chosen, *kept}))


def describe_data_checks(table: Frame, target: ArrayLike, categorical: Collection[int] = ()) -> str | None:
    """The data checks of a frame that a model was trained on, in one message; None where nothing was found.

    `categorical`: columns that were named as categorical.
    """
    n_rows = table.shape[0]
    rows, labels = sample_rows(n_rows), np.asarray(target).reshape(-1)
    sample = open_table(table if rows is None else take_rows(table, rows))
    leaks = Leaks(labels if rows is None else labels[rows])
    checks = []
    for column in range(sample.n_columns):
        check = _check_column(sample, column, is_chosen=column in categorical, is_left_out=False)
        if check.reason == "constant" and rows is not None:  # the rows that were not looked at may differ
            check = _check_column(open_table(table), column, is_chosen=column in categorical, is_left_out=False)
        checks.append(check)
    return format_data_checks(_add_data_checks(sample, checks, n_rows, leaks, categorical))


def format_data_checks(checks: Iterable[ColumnCheck]) -> str | None:
    """One message of all data checks, columns that teach nothing included; None where nothing was found."""
    messages = []
    for check in checks:
        reasons = check.doubts
        if check.use is ColumnUse.IGNORED and check.reason is not None:
            reasons = (_format_reason(check.reason),)
        if reasons:
            messages.append(f"{quote_short(check.name)} {'; it also '.join(reasons)}")
    if not messages:
        return None
    more = f". And {len(messages) - _MOST_NAMED} more columns" if len(messages) > _MOST_NAMED else ""
    return f"Columns to look at before the model is trusted: {'. '.join(messages[:_MOST_NAMED])}{more}."


_LEAVE = ": leave it out"
_KEEP = " (to keep it: --numerical, in Python `numerical`)"
_NOTHING = {"constant": "is constant", "holds nothing": "is empty"}


def _format_reason(reason: str) -> str:
    """Why a column would be left out, as what follows its name where it was not."""
    if reason in _NOTHING:
        return f"{_NOTHING[reason]}: nothing can be learnt from it"
    if reason.startswith("text with "):
        return f"is text of which nearly every cell is another, as names and identifiers are{_LEAVE}"
    return reason.replace(_KEEP, _LEAVE)


def _add_data_checks(
    sample: Table, checks: Sequence[ColumnCheck], n_rows: int, leaks: Leaks | None, chosen: Collection[int]
) -> list[ColumnCheck]:
    """The same checks with the messages of the data checks; an identifier is left out unless it was chosen."""
    checked = list(checks)
    numbers: dict[int, FloatArray] = {}
    for column, check in enumerate(checks):
        if check.use is ColumnUse.NUMERICAL:
            values = sample.read_numbers(column)
            message, is_certain = (None, False) if column in chosen else check_identifier(check.name, values, n_rows)
            if is_certain:
                checked[column] = replace(check, use=ColumnUse.IGNORED, reason=f"{message}{_KEEP}")
                continue
            numbers[column] = values
            checked[column] = _add_messages(check, message and f"{message}{_LEAVE}", check_sentinel(values))
        elif check.use is ColumnUse.CATEGORICAL:
            codes, seen = sample.code_values(column)
            is_text = check.kind is ColumnKind.TEXT and column not in chosen
            leak = None if leaks is None else leaks.check_categories(codes)
            checked[column] = _add_messages(check, check_text(seen) if is_text else None, check_spellings(seen), leak)
    if leaks is not None:
        for column, leak in zip(numbers, leaks.check_many(list(numbers.values())), strict=True):
            checked[column] = _add_messages(checked[column], leak)
    return checked


def _add_messages(check: ColumnCheck, *messages: str | None) -> ColumnCheck:
    more = tuple(message for message in messages if message is not None)
    return replace(check, doubts=(*check.doubts, *more)) if more else check


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
    advice = f": {ADVICE_ON_DATES}" if kind is ColumnKind.DATE else ""
    return ColumnCheck(name, kind, ColumnUse.IGNORED, f"holds {kind.value}{advice}")


def _check_numbers(table: Table, column: int, name: str | int) -> ColumnCheck:
    kind = ColumnKind.NUMBER
    try:
        values = table.read_numbers(column)
    except ValueError:  # pyarrow does not round whole numbers
        return ColumnCheck(name, kind, ColumnUse.REFUSED, "holds whole numbers that are too large for a double")
    present = values[~np.isnan(values)]
    if not present.size:
        return _make_empty(name)
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
        return _make_empty(name)
    if len(seen) == 1:
        return ColumnCheck(name, kind, ColumnUse.IGNORED, "constant")
    if kind is not ColumnKind.TEXT or is_chosen:
        return found
    stray = {str(value): count for value, count in seen.items() if not reads_as_number(str(value))}
    n_stray = sum(stray.values())
    if len(seen) > max(_FEW_CATEGORIES, _MANY_CATEGORIES * total) and 2 * n_stray >= total:
        reason = check_text(seen) or f"text with {len(seen)} different values in {table.n_rows} rows"
        return ColumnCheck(name, kind, ColumnUse.IGNORED, reason)
    if 0 < n_stray < 0.5 * total:
        reason = f"{n_stray} of {table.n_rows} cells are text among numbers, such as {quote_short(next(iter(stray)))}"
        return ColumnCheck(name, kind, ColumnUse.REFUSED, reason, stray=tuple(stray.items()))
    return found


def _make_empty(name: str | int) -> ColumnCheck:
    kind = ColumnKind.EMPTY
    return ColumnCheck(name, kind, ColumnUse.IGNORED, f"holds {kind.value}")
