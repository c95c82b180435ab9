"""Reading tables: numpy arrays and pandas, polars or pyarrow frames become one float64 matrix with category codes.

Owns what is remembered of the training table: column names, which columns are categorical, and their categories.
Must not know models, noise or scikit-learn. No frame library is imported here unless the table is one of its frames.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Category = str | int | float | bool

NUMBER, TEXT, BOOLEAN, CATEGORY = "numbers", "text", "booleans", "categories"
_KINDS = {"i": NUMBER, "u": NUMBER, "f": NUMBER, "b": BOOLEAN, "U": TEXT}  # by numpy's letter for a type


class _Table(Protocol):
    """A table that is read column by column."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None

    def kind(self, column: int) -> str:
        """What the column holds: NUMBER, TEXT, BOOLEAN, CATEGORY, or else the name of the type."""

    def read_numbers(self, column: int) -> FloatArray:
        """The column as float64, NaN where a cell is missing."""

    def number_values(self, column: int) -> tuple[IntArray, list[Any]]:
        """The distinct values, and for each row the place of its own among them; -1 where the cell is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class TableEncoding:
    """How a table becomes a matrix: fixed by the training rows, applied to any later table.

    Attributes
    ----------
    n_features : int
    names : tuple of str, or None
        Column names, where the training table had them.
    categories : mapping of column number to tuple
        For each categorical column the values seen in training rows, in increasing order; value k has code k.
    """

    n_features: int
    names: tuple[str, ...] | None
    categories: Mapping[int, tuple[Category, ...]]

    @classmethod
    def learn(cls, X: Any, categorical_features: Any) -> TableEncoding:
        """The encoding of a training table.

        Parameters
        ----------
        X : array, or pandas, polars or pyarrow frame, of shape (n_rows, n_features)
        categorical_features : "from_dtype", None, or a list of names or of column numbers, or a mask
            "from_dtype" takes the columns of text, of booleans and of a category type.
        """
        table = _open(X)
        return cls(
            table.n_columns,
            table.names,
            {column: _learn_categories(table, column) for column in _choose_categorical(table, categorical_features)},
        )

    def encode(self, X: Any) -> FloatArray:
        """The matrix: numbers as they are, categories as codes, NaN for an unseen or missing category.

        Returns
        -------
        array of shape (n_rows, n_features)
            An array of float64 without categorical columns is returned as it is.
        """
        if isinstance(X, np.ndarray) and X.dtype.kind in "iuf" and not self.categories:
            return np.asarray(X, dtype=np.float64)
        table = _open(X)
        matrix = np.empty((table.n_rows, table.n_columns), order="F")
        for column in range(table.n_columns):
            if column in self.categories:
                matrix[:, column] = _encode_categories(table, column, self.categories[column])
            else:
                _refuse_text(table, column)
                matrix[:, column] = table.read_numbers(column)
        return matrix

    def name(self, column: int) -> str | int:
        """Name of a column, or its number where the table had no names."""
        return self.names[column] if self.names is not None else column

    def check_finite(self, matrix: FloatArray) -> None:
        """Refuse NaN and infinity in numerical columns, naming the columns and how many rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.categories and np.isfinite(matrix.sum()):
                return
        bad = {
            column: int(np.count_nonzero(~np.isfinite(matrix[:, column])))
            for column in range(self.n_features)
            if column not in self.categories
        }
        wrong = [f"column {self.name(column)!r} ({count} rows)" for column, count in bad.items() if count]
        if wrong:
            more = f" and {len(wrong) - 10} more columns" if len(wrong) > 10 else ""
            raise ValueError(
                f"`X` must hold finite numbers in its numerical columns, got NaN or infinity in "
                f"{', '.join(wrong[:10])}{more}: drop those rows or fill the gaps first."
            )


def _name(table: _Table, column: int) -> str:
    return f"column {column if table.names is None else table.names[column]!r} of `X`"


def _choose_categorical(table: _Table, chosen: Any) -> list[int]:
    """Numbers of the categorical columns."""
    if chosen is None:
        return []
    if isinstance(chosen, str):
        if chosen != "from_dtype":
            raise ValueError(
                f"`categorical_features` must be 'from_dtype', None, or a list of columns, got {chosen!r}: "
                f"write [{chosen!r}] for one column of that name."
            )
        return [column for column in range(table.n_columns) if table.kind(column) in (TEXT, BOOLEAN, CATEGORY)]
    entries = np.asarray(chosen).reshape(-1).tolist() if isinstance(chosen, np.ndarray) else list(chosen)
    if entries and all(isinstance(entry, bool) for entry in entries):
        if len(entries) != table.n_columns:
            raise ValueError(
                f"`categorical_features` as a mask must have {table.n_columns} entries, one per column, "
                f"got {len(entries)}."
            )
        return [column for column, is_categorical in enumerate(entries) if is_categorical]
    return sorted({_find_column(table, entry) for entry in entries})


def _find_column(table: _Table, entry: Any) -> int:
    if isinstance(entry, str):
        if table.names is None:
            raise ValueError(
                f"`categorical_features` names column {entry!r}, but `X` has no column names: give column numbers."
            )
        if entry not in table.names:
            raise ValueError(
                f"`categorical_features` names column {entry!r}, which `X` does not have; it has "
                f"{', '.join(table.names[:20])}{', ...' if len(table.names) > 20 else ''}."
            )
        return table.names.index(entry)
    if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < table.n_columns:
        raise ValueError(
            f"`categorical_features` must hold column names, column numbers from 0 to {table.n_columns - 1}, or one "
            f"boolean per column, got {entry!r}."
        )
    return int(entry)


def _refuse_text(table: _Table, column: int) -> None:
    kind = table.kind(column)
    if kind in (NUMBER, BOOLEAN):
        return
    values = table.number_values(column)[1] if kind == TEXT else []
    example = f", such as {values[0]!r}," if values else ""
    raise ValueError(
        f"A numerical column must hold numbers, but {_name(table, column)} holds {kind}{example}: "
        "name it in `categorical_features`, or turn it into numbers first."
    )


def _family(table: _Table, column: int, values: Sequence[Any]) -> str | None:
    """What the distinct values of a categorical column are: TEXT, BOOLEAN or NUMBER; None where there is no value."""
    families = sorted({_kind_of_cell(value, table, column) for value in values if not _is_missing(value)})
    if len(families) > 1:
        raise ValueError(
            f"A categorical column must hold one type, but {_name(table, column)} mixes {' and '.join(families)}: "
            "turn all its cells into text, for instance."
        )
    return families[0] if families else None


def _kind_of_cell(value: Any, table: _Table, column: int) -> str:
    if isinstance(value, str):
        return TEXT
    if isinstance(value, bool | np.bool_):
        return BOOLEAN
    if isinstance(value, numbers.Real):
        return NUMBER
    raise TypeError(
        f"Cells must be text, numbers or booleans, but {_name(table, column)} has one of type {type(value).__name__}, "
        f"{value!r}: turn such cells into text first."
    )


def _learn_categories(table: _Table, column: int) -> tuple[Category, ...]:
    """The values that occur in rows, in increasing order."""
    codes, values = table.number_values(column)
    seen = [values[code] for code in np.unique(codes[codes >= 0])]
    _family(table, column, seen)
    return tuple(sorted(value.item() if isinstance(value, np.generic) else value for value in seen))


def _encode_categories(table: _Table, column: int, categories: tuple[Category, ...]) -> FloatArray:
    codes, values = table.number_values(column)
    family, learnt = _family(table, column, values), _family(table, column, categories)
    if family is not None and learnt is not None and family != learnt:
        raise ValueError(
            f"A categorical column must hold what it held in training, but {_name(table, column)} holds {family} now "
            f"and held {learnt} then: read both tables with the same types."
        )
    known = {value: code for code, value in enumerate(categories)}
    lookup = np.array([*(known.get(value, np.nan) for value in values), np.nan])  # the last is the missing cell's
    return np.asarray(lookup[codes], dtype=np.float64)


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars frame or a pyarrow table."""
    return _frame_library(X) is not None


def _frame_library(X: Any) -> str | None:
    for library, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        module = sys.modules.get(library)
        if module is not None and isinstance(X, getattr(module, kind, ())):
            return library
    return None


def _open(X: Any) -> _Table:
    library = _frame_library(X)
    if library == "pandas":
        return _PandasTable(X)
    if library == "polars":
        return _PolarsTable(X)
    if library == "pyarrow":
        return _ArrowTable(X)
    return _ArrayTable(np.asarray(X))


def _as_names(names: Any) -> tuple[str, ...] | None:
    """Names, where all of them are text."""
    listed = tuple(names)
    return listed if all(isinstance(name, str) for name in listed) else None


class _ArrayTable:
    """A numpy array: of numbers, booleans or text, or of objects, whose columns are judged by their cells."""

    names: tuple[str, ...] | None = None

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.n_rows, self.n_columns = array.shape

    def kind(self, column: int) -> str:
        return _kind_of_array(self._array[:, column], self, column)

    def read_numbers(self, column: int) -> FloatArray:
        return _read_numbers(self._array[:, column])

    def number_values(self, column: int) -> tuple[IntArray, list[Any]]:
        return _number_values(self._array[:, column], self, column)


class _PandasTable:
    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.n_rows, self.n_columns = frame.shape
        self.names = _as_names(frame.columns)

    def kind(self, column: int) -> str:
        series = self._frame.iloc[:, column]
        if series.dtype.name == "category":
            return CATEGORY
        if series.dtype.name == "object":
            return _kind_of_array(series.to_numpy(), self, column)
        if series.dtype.kind == "O":  # the types of text
            return TEXT
        return _KINDS.get(series.dtype.kind, str(series.dtype))

    def read_numbers(self, column: int) -> FloatArray:
        series = self._frame.iloc[:, column]
        if series.dtype.name == "object":
            return _read_numbers(series.to_numpy())
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))

    def number_values(self, column: int) -> tuple[IntArray, list[Any]]:
        series = self._frame.iloc[:, column]
        if series.dtype.name == "object":
            return _number_values(series.to_numpy(), self, column)
        codes, values = series.factorize()
        return np.asarray(codes, dtype=np.int64), list(values)


class _ArrowTable:
    def __init__(self, table: Any) -> None:
        self._table = table
        self.n_rows, self.n_columns = table.shape
        self.names = _as_names(table.column_names)

    def _column(self, column: int) -> Any:
        return self._table.column(column)

    def kind(self, column: int) -> str:
        import pyarrow.types as kinds

        of = self._column(column).type
        if kinds.is_dictionary(of):
            return CATEGORY
        if kinds.is_string(of) or kinds.is_large_string(of) or kinds.is_string_view(of):
            return TEXT
        if kinds.is_boolean(of):
            return BOOLEAN
        return NUMBER if kinds.is_integer(of) or kinds.is_floating(of) or kinds.is_decimal(of) else str(of)

    def read_numbers(self, column: int) -> FloatArray:
        numbers_only = self._column(column).cast("float64")
        return np.asarray(numbers_only.to_numpy(), dtype=np.float64)

    def number_values(self, column: int) -> tuple[IntArray, list[Any]]:
        encoded = self._column(column).dictionary_encode().unify_dictionaries().combine_chunks()
        if not len(encoded):
            return np.empty(0, dtype=np.int64), []
        values = encoded.dictionary.to_pylist()
        codes = np.asarray(encoded.indices.cast("int64").fill_null(-1).to_numpy())
        return _mark_missing(codes, values)


class _PolarsTable(_ArrowTable):
    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.n_rows, self.n_columns = frame.shape
        self.names = tuple(frame.columns)

    def _column(self, column: int) -> Any:
        import polars as pl
        import pyarrow as pa

        series = self._frame.to_series(column)
        if series.dtype == pl.Object:
            raise TypeError(
                f"Cells must be text, numbers or booleans, but {_name(self, column)} has the type Object of polars: "
                "cast it first."
            )
        return pa.chunked_array([series.to_arrow(compat_level=pl.CompatLevel.oldest())])


def _is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas (of which NA has no truth value)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Real) and bool(value != value)  # noqa: PLR0124 - NaN alone differs from itself


def _kind_of_array(array: NDArray[Any], table: _Table, column: int) -> str:
    """Kind of an array by its type; by its cells where it holds objects."""
    if array.dtype.kind != "O":
        return _KINDS.get(array.dtype.kind, str(array.dtype))
    types = {type(value): value for value in array.tolist() if not _is_missing(value)}
    kinds = sorted({_kind_of_cell(value, table, column) for value in types.values()})
    if len(kinds) > 1:
        return " and ".join(kinds)
    return kinds[0] if kinds else NUMBER


def _read_numbers(array: NDArray[Any]) -> FloatArray:
    if array.dtype.kind != "O":
        return np.asarray(array, dtype=np.float64)
    return np.array([np.nan if _is_missing(value) else value for value in array.tolist()], dtype=np.float64)


def _number_values(array: NDArray[Any], table: _Table, column: int) -> tuple[IntArray, list[Any]]:
    if array.dtype.kind != "O":
        found, codes = np.unique(array, return_inverse=True)
        return _mark_missing(codes.astype(np.int64), found.tolist())
    kinds = {type(value): _kind_of_cell(value, table, column) for value in array.tolist() if not _is_missing(value)}
    places: dict[Any, int] = {}  # the kind is part of the key, because True and 1 are equal
    codes = np.empty(array.size, dtype=np.int64)
    for row, value in enumerate(array.tolist()):
        codes[row] = -1 if _is_missing(value) else places.setdefault((kinds[type(value)], value), len(places))
    return codes, [value for _, value in places]


def _mark_missing(codes: IntArray, values: list[Any]) -> tuple[IntArray, list[Any]]:
    """The same with code -1 for rows whose value is a missing one."""
    missing = np.array([*(_is_missing(value) for value in values), True])
    return np.where(missing[codes], -1, codes), values
