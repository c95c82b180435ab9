"""Dates as numbers: days since the first of January 1970, a part of a day being a fraction.

Owns how dates and text that reads as dates become days, and how days are written. Must not know encodings or files.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.text import quote_short
from derand.tables._kinds import ColumnKind, is_missing
from derand.tables._tables import Table, is_frame, name_column, number_columns, open_table, put_numbers

_ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
_DOTS = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_OTHER = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}([ T].*)?")
_DAY = 86_400_000_000
"""In millionths of a second."""
SECONDS = 86_400
"""Of a day."""


def dates_to_numbers(frame: object, columns: Collection[str | int] | None = None) -> object:
    """A frame with dates as numbers: days since 1970-01-01, with which models can be trained.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame
    columns : collection of str or int, or None
        Columns of dates, by name or number; text is read as 2024-12-31, with or without a time, or as 31.12.2024.
        None takes all columns of a type of dates.

    Returns
    -------
    frame of the same kind
        These columns hold floats, the others are as they were. A missing date is a missing number.

    Examples
    --------
    >>> import pyarrow as pa
    >>> dates_to_numbers(pa.table({"opened": ["2024-01-01", None], "sum": [3, 4]}), ["opened"]).to_pydict()
    {'opened': [19723.0, None], 'sum': [3, 4]}
    """
    if not is_frame(frame):
        raise TypeError(
            f"`frame` must be a pandas, polars or pyarrow frame, got {type(frame).__name__}: an array has no dates "
            "beside numbers."
        )
    table = open_table(frame)
    if columns is None:
        chosen = [column for column in range(table.n_columns) if _is_date(table, column)]
    else:
        chosen = sorted(number_columns(table, columns, "columns"))
    for column in chosen:
        frame = put_numbers(frame, column, read_days(table, column))
    return frame


def _is_date(table: Table, column: int) -> bool:
    try:
        return table.kind(column) is ColumnKind.DATE
    except TypeError:  # a cell that no column may hold: whoever reads the column complains
        return False


def read_days(table: Table, column: int) -> FloatArray:
    """A column of dates, or of text that reads as dates, in days; numbers are days already, NaN is a missing cell."""
    kind = table.kind(column)
    if kind is ColumnKind.NUMBER:
        return table.read_numbers(column)
    if kind is ColumnKind.DATE:
        dates = table.read_dates(column)
        return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / _DAY)
    if kind is ColumnKind.EMPTY:
        return np.full(table.n_rows, np.nan)
    if kind in (ColumnKind.TEXT, ColumnKind.CATEGORY):
        codes, values = table.code_values(column)
        days = [np.nan if is_missing(value) else _read_text(value, table, column) for value in values]
        return np.asarray(np.array([*days, np.nan])[codes])  # the last is the missing cell's
    raise ValueError(f"A column of dates must hold dates, but {name_column(table, column)} holds {kind.value}.")


def _read_text(value: object, table: Table, column: int) -> float:
    """Days of one date; of a number it is the number itself."""
    text = str(value).strip()
    try:
        if _ISO.fullmatch(text):
            day, _, clock = text.replace("T", " ").partition(" ")
            year, month, number = (int(part) for part in day.split("-"))
            found = datetime.datetime.fromisoformat(f"{year:04}-{month:02}-{number:02} {_fill(clock)}")
        elif _DOTS.fullmatch(text):
            number, month, year = (int(part) for part in text.split("."))
            found = datetime.datetime(year, month, number)
        else:
            return float(text)
    except ValueError:
        raise ValueError(
            f"A column of dates must hold dates, but {name_column(table, column)} holds {quote_short(value)}: write "
            "dates as 2024-12-31 (with or without a time) or 31.12.2024."
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=datetime.UTC)
    since = found - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (since // datetime.timedelta(microseconds=1)) / _DAY


def _fill(clock: str) -> str:
    """A time that Python reads: hours of two digits; midnight where there is none."""
    return "00:00" if not clock else clock if clock[1].isdigit() else f"0{clock}"


def reads_as_date(text: str) -> bool:
    """Whether text looks like a date, in whichever order day, month and year stand."""
    return bool(_ISO.fullmatch(text.strip()) or _OTHER.fullmatch(text.strip()))


def format_days(days: float) -> str:
    """The date on which a number of days falls; the number itself where no date is so far off.

    Examples
    --------
    >>> format_days(19723.0), format_days(19723.25), format_days(1e9)
    ('2024-01-01', '2024-01-01', '1e+09')
    """
    try:
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=math.floor(days))).isoformat()
    except OverflowError:
        return f"{days:.6g}"


def format_moment(days: float) -> str:
    """The same with the time, to the second, where a number of days is not whole.

    Examples
    --------
    >>> format_moment(19723.0), format_moment(19723.25), format_moment(1e9)
    ('2024-01-01', '2024-01-01 06:00:00', '1e+09')
    """
    if days == math.floor(days):
        return format_days(days)
    try:
        return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=round(days * SECONDS)))
    except OverflowError:
        return f"{days:.6g}"
