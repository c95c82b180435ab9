"""Tables in memory, read column by column: numpy arrays and pandas, polars or pyarrow frames.

Owns what differs between them. Must not know encodings or files. No frame library is imported here unless the table is
one of its frames.

narwhals (2.28) was tried in place of these adapters and loses what must be exact: whole numbers beyond 2**53 in columns
with missing cells are rounded silently (`Int64` of pandas, int64 of pyarrow), two columns of one name are refused,
categories that are numbers lose their type, long doubles and columns of nulls are of an unknown type, and columns of
objects are not judged by their cells (True is not told from 1). Cells would still be read library by library, and
importing it takes five times as long as importing this package.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from derand._core.arrays import Cells, FloatArray, IntArray
from derand._core.finite import cast_exactly, require_unchanged
from derand._core.origin import Cell, Frame, find_library, take_rows
from derand._core.text import Facts
from derand.tables._kinds import Category, ColumnKind, is_missing, kind_of_arrow_type, kind_of_cell, kind_of_letter

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Table(Protocol):
    """A table that is read column by column."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None

    def kind(self, column: int) -> ColumnKind:
        """What the column holds."""

    def describe(self, column: int) -> str:
        """What the column holds in words: the name of its type where it is of no kind that has a name."""

    def read_numbers(self, column: int) -> FloatArray:
        """The column as float64, NaN where a cell is missing."""

    def read_dates(self, column: int) -> Cells:
        """A column of dates as numpy's, in millionths of a second; those with a time zone in universal time."""

    def code_values(self, column: int) -> tuple[IntArray, list[Category]]:
        """For each row the place of its value among the distinct ones, -1 where the cell is missing; and those."""


def is_frame(X: object) -> bool:
    """Whether X is a pandas or polars frame or a pyarrow table."""
    return find_library(X) is not None


_OTHER_FLOATS = frozenset({"float32", "float16", "float", "halffloat", "float[pyarrow]", "halffloat[pyarrow]"})
_OTHER_FLOATS |= {name for name in [np.dtype(np.longdouble).name] if name != "float64"}


def list_other_floats(X: Frame) -> list[int]:
    """Numbers of the columns of a frame or an array that hold floats of less or more than double precision."""
    if isinstance(X, np.ndarray):
        return list(range(X.shape[1])) if X.dtype.name in _OTHER_FLOATS else []
    kinds = X.schema.types if hasattr(X, "column_names") else X.dtypes
    return [at for at, kind in enumerate(kinds) if str(kind).lower() in _OTHER_FLOATS]


def as_rows(X: object) -> Frame:
    """A frame or array as it is, lists as an array, in which text leaves the numbers beside it as they are."""
    if is_frame(X) or hasattr(X, "dtype"):
        return X
    array = np.asarray(X)
    return np.array(X, dtype=object) if array.dtype.kind in "US" else array


def stack_copies(X: Frame, columns: Iterable[int], copies: FloatArray) -> object:
    """Copies of a table, one below the other, with other numbers in some of its columns.

    `columns`: those that hold numbers; `copies`: their numbers, (n_copies, n_rows, n_features). Columns of whole
    numbers hold floats then; those of single precision stay so.
    """
    numbers = copies.reshape(-1, copies.shape[-1])
    library = find_library(X)
    if library is None:
        array = np.tile(np.asarray(X), (copies.shape[0], 1))
        chosen = list(columns)
        if array.dtype.kind in "iub" and chosen:
            array = array.astype(np.float64)
        array[:, chosen] = numbers[:, chosen]
        return array
    rows = take_rows(X, np.tile(np.arange(X.shape[0]), copies.shape[0]))
    if library == "pandas":
        rows = rows.reset_index(drop=True)
    for at in columns:
        if library == "pandas":
            name = rows.columns[at]
            rows[name] = numbers[:, at].astype(np.float32 if rows[name].dtype == np.float32 else np.float64)
        else:
            rows = put_numbers(rows, at, numbers[:, at])
    return rows


def put_numbers(X: Frame, column: int, numbers: FloatArray) -> object:
    """A frame with other numbers in a column; NaN is null where there is such a thing."""
    if hasattr(X, "iloc"):
        changed = X.copy(deep=False)
        changed.isetitem(column, numbers)
        return changed
    import pyarrow as pa

    cells = pa.array(numbers, from_pandas=True)
    if hasattr(X, "column_names"):
        return X.set_column(column, X.column_names[column], cells)
    import polars as pl

    return X.with_columns(pl.Series(X.columns[column], cells))


def open_table(X: object) -> Table:
    """An array or frame as a table that is read column by column."""
    library = find_library(X)
    return _ADAPTERS[library](X) if library is not None else ArrayTable(np.asarray(X))


def _name_or_number(table: Table, column: int) -> str | int:
    return column if table.names is None else table.names[column]


def name_column(table: Table, column: int) -> str:
    """How errors name a column."""
    return f"column {_name_or_number(table, column)!r} of `X`"


def number_columns(table: Table, entries: Iterable[object], parameter: str, or_mask: str = "") -> set[int]:
    """Numbers of the columns that the entries of a parameter name; of two with one name, the first."""
    places = {name: column for column, name in reversed(list(enumerate(table.names or ())))}
    return {_number_column(table, places, entry, parameter, or_mask) for entry in entries}


def _number_column(table: Table, places: Mapping[str, int], entry: object, parameter: str, or_mask: str) -> int:
    if isinstance(entry, str):
        if table.names is None:
            raise ValueError(f"`{parameter}` names column {entry!r}, but `X` has no column names: give column numbers.")
        if entry not in places:
            raise ValueError(
                f"`{parameter}` names column {entry!r}, which `X` does not have; it has "
                f"{', '.join(table.names[:20])}{', ...' if len(table.names) > 20 else ''}."
            )
        return places[entry]
    if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < table.n_columns:
        or_number = f"column numbers from 0 to {table.n_columns - 1}"
        choices = f"column names, {or_number}, or {or_mask}" if or_mask else f"column names or {or_number}"
        raise ValueError(f"`{parameter}` must hold {choices}, got {entry!r}.")
    return int(entry)


def _as_names(names: Iterable[object]) -> tuple[str, ...] | None:
    """Names, where all of them are text."""
    listed = tuple(names)
    texts = tuple(name for name in listed if isinstance(name, str))
    return texts if len(texts) == len(listed) else None


class ArrayTable:
    """A numpy array: of numbers, booleans or text, or of objects, whose columns are judged by their cells."""

    names: tuple[str, ...] | None = None

    def __init__(self, array: Cells) -> None:
        self._array = array
        self.n_rows, self.n_columns = array.shape

    def kind(self, column: int) -> ColumnKind:
        return _kind_of_array(self._array[:, column], self, column)

    def describe(self, column: int) -> str:
        return _describe_array(self._array[:, column], self, column)

    def read_numbers(self, column: int) -> FloatArray:
        return _read_numbers(self._array[:, column], self, column)

    def read_dates(self, column: int) -> Cells:
        return _read_dates(self._array[:, column])

    def code_values(self, column: int) -> tuple[IntArray, list[Category]]:
        return _code_values(self._array[:, column], self, column)


class ArrowTable:
    """A pyarrow table."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.n_rows, self.n_columns = table.shape
        self.names = _as_names(table.column_names)

    def _column(self, column: int) -> pa.ChunkedArray:
        return self._table.column(column)

    def kind(self, column: int) -> ColumnKind:
        return kind_of_arrow_type(self._column(column).type)

    def describe(self, column: int) -> str:
        kind = self.kind(column)
        return str(self._column(column).type) if kind in (ColumnKind.OTHER, ColumnKind.EMPTY) else kind.value

    def read_numbers(self, column: int) -> FloatArray:
        import pyarrow.types as kinds

        cells = self._column(column)
        if kinds.is_integer(cells.type):
            cast_exactly(cells.drop_null().to_numpy(), lambda _: _name_or_number(self, column))
        if not kinds.is_float64(cells.type):
            cells = cells.cast("float64", safe=False)
        return np.asarray(cells.to_numpy(), dtype=np.float64)

    def read_dates(self, column: int) -> Cells:
        import pyarrow as pa

        cells = self._column(column)
        exact = cells.cast(pa.timestamp("us", getattr(cells.type, "tz", None)), safe=False).cast("int64")
        numbers = exact.fill_null(np.iinfo(np.int64).min).to_numpy()  # which is how numpy writes no date
        return np.asarray(numbers).astype("datetime64[us]")

    def code_values(self, column: int) -> tuple[IntArray, list[Category]]:
        encoded = self._column(column).dictionary_encode().unify_dictionaries().combine_chunks()
        if not len(encoded):
            return np.empty(0, dtype=np.int64), []
        values = encoded.dictionary.to_pylist()
        codes = np.asarray(encoded.indices.cast("int64").fill_null(-1).to_numpy())
        return _mark_missing(codes, values)


class _PandasArrowTable(ArrowTable):
    """A pandas frame, whose columns of a type of pyarrow are read as pyarrow's."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self.n_rows, self.n_columns = frame.shape
        self.names = _as_names(frame.columns)

    def _column(self, column: int) -> pa.ChunkedArray:
        import pyarrow as pa

        cells = pa.array(self._frame.iloc[:, column].array)
        return cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])


class PandasTable:
    """A pandas frame; columns of objects are judged by their cells, those of a type of pyarrow read as pyarrow's."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame, self._arrow = frame, _PandasArrowTable(frame)
        self.n_rows, self.n_columns, self.names = self._arrow.n_rows, self._arrow.n_columns, self._arrow.names

    def _is_arrow(self, column: int) -> bool:
        return hasattr(self._frame.dtypes.iloc[column], "pyarrow_dtype")

    def kind(self, column: int) -> ColumnKind:
        if self._is_arrow(column):
            return self._arrow.kind(column)
        series = self._frame.iloc[:, column]
        if series.dtype.name == "category":
            return ColumnKind.CATEGORY
        if series.dtype.name == "object":
            return _kind_of_array(series.to_numpy(), self, column)
        return ColumnKind.TEXT if series.dtype.kind == "O" else kind_of_letter(series.dtype.kind)  # O: types of text

    def describe(self, column: int) -> str:
        if self._is_arrow(column):
            return self._arrow.describe(column)
        series, kind = self._frame.iloc[:, column], self.kind(column)
        if series.dtype.name == "object":
            return _describe_array(series.to_numpy(), self, column)
        return str(series.dtype) if kind is ColumnKind.OTHER else kind.value

    def read_numbers(self, column: int) -> FloatArray:
        if self._is_arrow(column):
            return self._arrow.read_numbers(column)
        series = self._frame.iloc[:, column]
        if isinstance(series.dtype, np.dtype):
            return _read_numbers(series.to_numpy(), self, column)
        if series.dtype.kind in "iu":  # a type of pandas may have gaps beside its integers
            cast_exactly(
                series.dropna().to_numpy(dtype=series.dtype.name.lower()), lambda _: _name_or_number(self, column)
            )
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))

    def read_dates(self, column: int) -> Cells:
        import pandas as pd

        if self._is_arrow(column):
            return self._arrow.read_dates(column)
        series = self._frame.iloc[:, column]
        if series.dtype.name == "object":
            return _read_dates(series.to_numpy())
        return np.asarray(pd.to_datetime(series, utc=True).dt.tz_localize(None).to_numpy(dtype="datetime64[us]"))

    def code_values(self, column: int) -> tuple[IntArray, list[Category]]:
        if self._is_arrow(column):
            return self._arrow.code_values(column)
        series = self._frame.iloc[:, column]
        if series.dtype.name == "object":
            return _code_values(series.to_numpy(), self, column)
        codes, values = series.factorize()
        return np.asarray(codes, dtype=np.int64), list(values)


class PolarsTable(ArrowTable):
    """A polars frame, whose columns are read as pyarrow's."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self.n_rows, self.n_columns = frame.shape
        self.names = tuple(frame.columns)

    def _column(self, column: int) -> pa.ChunkedArray:
        import polars as pl
        import pyarrow as pa

        series = self._frame.to_series(column)
        if series.dtype == pl.Object:
            raise TypeError(
                f"Cells must be text, numbers or booleans, but {name_column(self, column)} has the type Object of "
                "polars: cast it first."
            )
        return pa.chunked_array([series.to_arrow(compat_level=pl.CompatLevel.oldest())])


_ADAPTERS: Facts = {"pandas": PandasTable, "polars": PolarsTable, "pyarrow": ArrowTable}


def judge_cell(value: object, table: Table, column: int) -> ColumnKind:
    """TEXT, BOOLEAN or NUMBER; any other cell is refused."""
    kind = kind_of_cell(value)
    if kind is None:
        raise TypeError(
            f"Cells must be text, numbers or booleans, but {name_column(table, column)} has one of type "
            f"{type(value).__name__}, {value!r}: turn such cells into text first."
        )
    return kind


def _is_date(value: object) -> bool:
    return isinstance(value, datetime.date | np.datetime64)  # a datetime is a date, and so is one of pandas


def _kinds_of_objects(array: Cells, table: Table, column: int) -> list[ColumnKind]:
    """All kinds of the cells of an array of objects, in the order of their words."""
    types = {type(value): value for value in array.tolist() if not is_missing(value)}
    kinds = {ColumnKind.DATE if _is_date(value) else judge_cell(value, table, column) for value in types.values()}
    return sorted(kinds, key=lambda kind: kind.value)


def _kind_of_array(array: Cells, table: Table, column: int) -> ColumnKind:
    """Kind of an array by its type; by its cells where it holds objects."""
    if array.dtype.kind != "O":
        return kind_of_letter(array.dtype.kind)
    kinds = _kinds_of_objects(array, table, column)
    if len(kinds) > 1:
        return ColumnKind.MIXED
    return kinds[0] if kinds else ColumnKind.NUMBER


def _describe_array(array: Cells, table: Table, column: int) -> str:
    if array.dtype.kind == "O":
        kinds = _kinds_of_objects(array, table, column) or [ColumnKind.NUMBER]
        return " and ".join(kind.value for kind in kinds)
    kind = kind_of_letter(array.dtype.kind)
    return str(array.dtype) if kind is ColumnKind.OTHER else kind.value


def _read_numbers(array: Cells, table: Table, column: int) -> FloatArray:
    if array.dtype.kind != "O":
        return cast_exactly(array, lambda _: _name_or_number(table, column))
    numbers = np.array([np.nan if is_missing(value) else value for value in array.tolist()], dtype=np.float64)
    require_unchanged(array, numbers, lambda _: _name_or_number(table, column))
    return numbers


def _read_dates(array: Cells) -> Cells:
    """Dates and times as numpy's; those with a time zone in universal time."""
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]")
    dates: list[Cell] = [None if is_missing(value) else value for value in array.tolist()]
    zoned = {at: value for at, value in enumerate(dates) if getattr(value, "tzinfo", None) is not None}
    for at, value in zoned.items():
        dates[at] = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.array(dates, dtype="datetime64[us]")


def _code_values(array: Cells, table: Table, column: int) -> tuple[IntArray, list[Category]]:
    if array.dtype.kind != "O":
        found, codes = np.unique(array, return_inverse=True)
        return _mark_missing(codes.astype(np.int64), found.tolist())
    kinds = {type(value): judge_cell(value, table, column) for value in array.tolist() if not is_missing(value)}
    places: dict[tuple[ColumnKind, Category], int] = {}  # the kind is part of the key, because True and 1 are equal
    codes = np.empty(array.size, dtype=np.int64)
    for row, value in enumerate(array.tolist()):
        codes[row] = -1 if is_missing(value) else places.setdefault((kinds[type(value)], value), len(places))
    return codes, [value for _, value in places]


def _mark_missing(codes: IntArray, values: list[Category]) -> tuple[IntArray, list[Category]]:
    """The same with code -1 for rows whose value is a missing one."""
    missing = np.array([*(is_missing(value) for value in values), True])
    return np.where(missing[codes], -1, codes), values
