"""The encoding of tables: arrays and frames become one float64 matrix with category codes.

Owns what is remembered of the training table: column names, which columns are categorical, and their categories. It is
the one place that is asked which columns are categorical. Must not know models, noise or scikit-learn, nor what differs
between the kinds of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derand._arrays import FloatArray
from derand.finite import cast_exactly, name_gaps, require_finite
from derand.frames._dates import read_days
from derand.frames._kinds import Category, ColumnKind, is_missing, kind_of_values
from derand.frames._tables import Table, find_columns, judge_cell, name_column, open_table

UNSEEN = -1.0
"""Code of a category that training did not see; that of a missing one is NaN."""
CategoricalFeatures = str | Iterable[object] | None
"""What the parameter `categorical_features` of a classifier may be."""


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
    dates : tuple of int
        Numerical columns whose numbers are days: dates, and text that reads as dates, are taken there as well.

    Examples
    --------
    >>> rows = np.array([[31.0, "cook"], [45.0, "clerk"], [29.0, "cook"]], dtype=object)
    >>> encoding = TableEncoding.learn(rows, "from_dtype")
    >>> encoding.categorical, encoding.categories[1], encoding.encode(rows).tolist()
    ((1,), ('clerk', 'cook'), [[31.0, 1.0], [45.0, 0.0], [29.0, 1.0]])
    """

    n_features: int
    names: tuple[str, ...] | None
    categories: Mapping[int, tuple[Category, ...]]
    dates: tuple[int, ...] = ()

    @classmethod
    def learn(cls, X: object, categorical_features: CategoricalFeatures) -> TableEncoding:
        """The encoding of a training table.

        Parameters
        ----------
        X : array, or pandas, polars or pyarrow frame, of shape (n_rows, n_features)
        categorical_features : "from_dtype", None, or a list of names or of column numbers, or a mask
            "from_dtype" takes the columns of text, of booleans and of a category type.

        Returns
        -------
        TableEncoding
        """
        table = open_table(X)
        return cls(
            table.n_columns,
            table.names,
            {column: _learn_categories(table, column) for column in _choose_categorical(table, categorical_features)},
        )

    def encode(self, X: object) -> FloatArray:
        """The matrix: numbers as they are, categories as codes, -1 for an unseen category; NaN for what is missing.

        Parameters
        ----------
        X : array, or pandas, polars or pyarrow frame, of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_features)
            An array of float64 without categorical columns is returned as it is.
        """
        if isinstance(X, np.ndarray) and X.dtype.kind in "iuf" and not self.categories:
            return cast_exactly(X, self.name)
        table = open_table(X)
        matrix = np.empty((table.n_rows, table.n_columns), order="F")
        for column in range(table.n_columns):
            if column in self.categories:
                matrix[:, column] = _encode_categories(table, column, self.categories[column])
            elif column in self.dates:
                matrix[:, column] = read_days(table, column)
            else:
                _refuse_text(table, column)
                matrix[:, column] = table.read_numbers(column)
        return matrix

    @property
    def categorical(self) -> tuple[int, ...]:
        """Numbers of the categorical columns, in increasing order."""
        return tuple(sorted(self.categories))

    @property
    def numerical(self) -> tuple[int, ...]:
        """Numbers of the numerical columns, in increasing order."""
        return tuple(column for column in range(self.n_features) if column not in self.categories)

    def kind(self, column: int) -> ColumnKind:
        """What the cells of a column must be: NUMBER, or what its categories are."""
        return kind_of_values(self.categories.get(column, ()))

    def name(self, column: int) -> str | int:
        """Name of a column, or its number where the table had no names."""
        return self.names[column] if self.names is not None else column

    def encode_finite(self, X: Any, may_miss: Iterable[int] = ()) -> FloatArray:
        """`encode`, where NaN and infinity in a numerical column are an error that names it and counts the rows.

        Parameters
        ----------
        X : array, or pandas, polars or pyarrow frame, of shape (n_rows, n_features)
        may_miss : iterable of int
            Columns that may hold NaN; infinity is refused there, too.
        """
        matrix = self.encode(X)
        with name_gaps(self.name):
            require_finite(matrix, self.numerical, may_miss)
        return matrix

    def with_dates(self, names: Iterable[str]) -> TableEncoding:
        """The same encoding, in which some numerical columns hold days and are read from dates; others are unknown."""
        wanted = set(names)
        found = tuple(column for column in self.numerical if self.name(column) in wanted)
        return replace(self, dates=found)

    def require_some(self, matrix: FloatArray) -> None:
        """Refuse a numerical column, for training, of which every value is missing."""
        for column in self.numerical:
            if np.isnan(matrix[:, column]).all():
                raise ValueError(
                    f"`X` must hold some number in every numerical column, got none in column {self.name(column)!r}: "
                    "all its values are missing. Drop it."
                )


def _choose_categorical(table: Table, chosen: CategoricalFeatures) -> list[int]:
    """Numbers of the categorical columns."""
    if chosen is None:
        return []
    if isinstance(chosen, str):
        if chosen != "from_dtype":
            raise ValueError(
                f"`categorical_features` must be 'from_dtype', None, or a list of columns, got {chosen!r}: "
                f"write [{chosen!r}] for one column of that name."
            )
        return [column for column in range(table.n_columns) if table.kind(column).is_categorical]
    entries = np.asarray(chosen).reshape(-1).tolist() if isinstance(chosen, np.ndarray) else list(chosen)
    if entries and all(isinstance(entry, bool) for entry in entries):
        if len(entries) != table.n_columns:
            raise ValueError(
                f"`categorical_features` as a mask must have {table.n_columns} entries, one per column, "
                f"got {len(entries)}."
            )
        return [column for column, is_categorical in enumerate(entries) if is_categorical]
    or_mask = "one boolean per column"
    return sorted(find_columns(table, entries, "categorical_features", or_mask))


def _refuse_text(table: Table, column: int) -> None:
    kind = table.kind(column)
    if kind in (ColumnKind.NUMBER, ColumnKind.BOOLEAN):
        return
    if kind is ColumnKind.DATE:
        raise ValueError(
            f"A numerical column must hold numbers, but {name_column(table, column)} holds dates: turn them into days "
            "by `derand.dates_to_numbers(X)`, here and for all later rows, or drop the column."
        )
    values = table.code_values(column)[1] if kind is ColumnKind.TEXT else []
    example = f", such as {values[0]!r}" if values else ""
    raise ValueError(
        f"A numerical column must hold numbers, but {name_column(table, column)} holds {table.describe(column)}"
        f"{example}: name it in `categorical_features`, or turn it into numbers first."
    )


def _judge_values(table: Table, column: int, values: Sequence[Category]) -> ColumnKind | None:
    """What the distinct values of a categorical column are: TEXT, BOOLEAN or NUMBER; None where there is no value."""
    kinds = {judge_cell(value, table, column) for value in values if not is_missing(value)}
    if len(kinds) > 1:
        raise ValueError(
            f"A categorical column must hold one type, but {name_column(table, column)} mixes "
            f"{' and '.join(sorted(kind.value for kind in kinds))}: turn all its cells into text, for instance."
        )
    return next(iter(kinds), None)


def _learn_categories(table: Table, column: int) -> tuple[Category, ...]:
    """The values that occur in rows, in increasing order."""
    codes, values = table.code_values(column)
    seen = [values[code] for code in np.unique(codes[codes >= 0])]
    _judge_values(table, column, seen)
    return tuple(sorted(value.item() if isinstance(value, np.generic) else value for value in seen))


def _encode_categories(table: Table, column: int, categories: tuple[Category, ...]) -> FloatArray:
    codes, values = table.code_values(column)
    kind, learnt = _judge_values(table, column, values), _judge_values(table, column, categories)
    if kind is not None and learnt is not None and kind is not learnt:
        raise ValueError(
            f"A categorical column must hold what it held in training, but {name_column(table, column)} holds "
            f"{kind.value} now and held {learnt.value} then: read both tables with the same types."
        )
    known = {value: code for code, value in enumerate(categories)}
    lookup = np.array([*(known.get(value, UNSEEN) for value in values), np.nan])  # the last is the missing cell's
    return np.asarray(lookup[codes], dtype=np.float64)
