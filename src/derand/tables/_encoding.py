"""The encoding of tables: arrays and frames become one float64 matrix with category codes.

Owns what is remembered of the training table: column names, which columns are categorical, and their categories, and
which columns held whole numbers alone. It is the one place that is asked which columns are categorical, or whole. Must
not know models, noise or scikit-learn, nor what differs between the kinds of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand._core.finite import cast_exactly, name_gaps, require_finite
from derand._core.origin import Origin
from derand.tables._dates import read_days
from derand.tables._kinds import Category, ColumnKind, is_missing, kind_of_values
from derand.tables._tables import Table, judge_cell, name_column, number_columns, open_table

UNSEEN = -1.0
"""Code of a category that training did not see; that of a missing one is NaN."""
_MOST_WHOLE = 2.0**53
_FIRST_ROWS = 1000
_MOST_DECIMALS = 6
CategoricalFeatures = str | Iterable[object] | None
"""What the parameter `categorical_features` of a classifier may be."""


class CategoryKindError(ValueError):
    """A categorical column holds another type than it held in training."""


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
    whole : mapping of column number to (least, largest)
        The numerical columns that held whole numbers alone in training rows, two different ones or more, with their
        ends; (0, 1) for a column of yes and no. Empty where the training table was not looked at.
    dates : tuple of int
        Numerical columns whose numbers are days: dates, and text that reads as dates, are taken there as well.
    booleans : tuple of int, or None
        Numerical columns that held booleans in training: booleans are taken there as 0 and 1, and refused in others.
        None where the training table was not looked at: booleans are taken as the library of the model takes them.

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
    whole: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    dates: tuple[int, ...] = ()
    booleans: tuple[int, ...] | None = None

    @classmethod
    def learn(cls, X: object, categorical_features: CategoricalFeatures) -> TableEncoding:
        """The encoding of a training table.

        `categorical_features`: "from_dtype" (columns of text, booleans and of a category type), None, a list of names
        or of column numbers, or a mask.
        """
        table = open_table(X)
        categorical = _choose_categorical(table, categorical_features)
        numerical = (column for column in range(table.n_columns) if column not in set(categorical))
        return cls(
            table.n_columns,
            table.names,
            {column: _learn_categories(table, column) for column in categorical},
            booleans=tuple(column for column in numerical if _is_boolean(table, column)),
        )

    def encode(self, X: object) -> FloatArray:
        """The matrix: numbers as they are, categories as codes, -1 for an unseen category; NaN for what is missing.

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
                self._refuse_other_kinds(table, column)
                matrix[:, column] = table.read_numbers(column)
        return matrix

    def takes_booleans(self, column: int) -> bool:
        """Whether booleans in a numerical column are read as 0 and 1."""
        return self.booleans is None or column in self.booleans

    def _refuse_other_kinds(self, table: Table, column: int) -> None:
        """Refuse a numerical column that holds something else than numbers, but for booleans where they are taken."""
        if table.kind(column) is ColumnKind.BOOLEAN and not self.takes_booleans(column):
            raise ValueError(
                f"A numerical column must hold numbers, as in training, but {name_column(table, column)} holds "
                "booleans now: read both tables with the same types, or turn the booleans into 0 and 1 if these are "
                "what training held."
            )
        _refuse_text(table, column)

    def decode(
        self,
        rows: FloatArray,
        origin: Origin | None = None,
        unseen: Callable[[tuple[Category, ...]], object] = lambda categories: None,
    ) -> object:
        """Rows as the model reads them, in the words of the table; an array of objects where that had no names.

        `origin`: which index and which kind of table they get, None is pandas; `unseen`: what stands for a category
        that training did not see, told those that it saw. A missing category is None. Columns that held whole numbers
        alone in training, and do so here, are integers.
        """
        matrix, cells = np.asarray(rows, dtype=np.float64), np.array(rows, dtype=object)
        for column, values in self.categories.items():
            names = np.array([*values, unseen(values), None], dtype=object)
            codes = matrix[:, column]
            known = (codes >= 0) & (codes < len(values))
            others = np.where(np.isnan(codes), len(values) + 1, len(values))
            cells[:, column] = names[np.where(known, codes, others).astype(np.int64)]
        kinds = dict.fromkeys(self.list_integers(matrix), np.int64)
        for column in kinds:
            cells[:, column] = matrix[:, column].astype(np.int64)
        if self.names is None:
            return cells
        columns = {
            name: cells[:, at] if at in self.categories else matrix[:, at].astype(kinds.get(at, np.float64))
            for at, name in enumerate(self.names)
        }
        return (origin or Origin()).make_table(columns)

    def learn_whole(self, matrix: FloatArray) -> TableEncoding:
        """The same with the columns that hold whole numbers alone in the rows of a training table, encoded.

        Examples
        --------
        >>> rows = np.array([[12.0, 0.5, 0.0], [np.nan, 2.0, 1.0], [7.0, 1.0, 0.0]])
        >>> TableEncoding(3, None, {}).learn_whole(rows).whole
        {0: (7, 12), 2: (0, 1)}
        """
        ends = {column: _measure_whole(matrix[:, column]) for column in self.numerical}
        return replace(self, whole={column: pair for column, pair in ends.items() if pair is not None})

    def find_whole(self, rows: FloatArray) -> dict[int, tuple[int, int]]:
        """The columns of `whole` in which these rows are as training rows were: whole or missing, 0 or 1 where those
        were so."""
        found = {}
        for column, ends in self.whole.items():
            values = rows[:, column]
            present = values[~np.isnan(values)]
            is_other = ends == (0, 1) and not ((present == 0) | (present == 1)).all()
            if is_whole(present).all() and not is_other:
                found[column] = ends
        return found

    def list_integers(self, rows: FloatArray) -> tuple[int, ...]:
        """The columns that are known to hold whole numbers and do so in all of these rows: integers, to a reader."""
        return tuple(column for column in self.whole if is_whole(rows[:, column]).all())

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

    def encode_finite(self, X: object, may_miss: Iterable[int] = ()) -> FloatArray:
        """`encode`, where NaN and infinity in a numerical column are an error that names it and counts the rows.

        `may_miss`: columns that may hold NaN; infinity is refused there, too.
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


def is_whole(values: FloatArray) -> BoolArray:
    """Which numbers are whole, and so small that their neighbours are numbers, too (below 2**53); none is missing."""
    return np.asarray((np.rint(values) == values) & (np.abs(values) < _MOST_WHOLE))


def count_decimals(matrix: FloatArray) -> dict[int, int]:
    """With how many decimals each column of numbers is written, where these are few in its first rows.

    Examples
    --------
    >>> count_decimals(np.array([[1.25, 3.0, 1 / 3], [2.5, 4.0, 0.1]]))
    {0: 2, 1: 0}
    """
    found = {}
    first = matrix[:_FIRST_ROWS]
    for column in range(matrix.shape[1]):
        values = first[:, column][np.isfinite(first[:, column])]
        for decimals in range(_MOST_DECIMALS + 1):
            if values.size and (np.round(values, decimals) == values).all():
                found[column] = decimals
                break
    return found


def _measure_whole(values: FloatArray) -> tuple[int, int] | None:
    """The least and the largest of a column's numbers where all are whole and not all are the same."""
    first = values[:_FIRST_ROWS]
    if not is_whole(first[~np.isnan(first)]).all():
        return None  # nearly every column of fractions has one early
    present = values[~np.isnan(values)]
    if not present.size or not is_whole(present).all():
        return None
    least, largest = int(present.min()), int(present.max())
    return (least, largest) if least < largest else None


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
    return sorted(number_columns(table, entries, "categorical_features", or_mask))


def _is_boolean(table: Table, column: int) -> bool:
    try:
        return table.kind(column) is ColumnKind.BOOLEAN
    except TypeError:  # a cell that no column may hold: whoever reads the column complains
        return False


def _refuse_text(table: Table, column: int) -> None:
    kind = table.kind(column)
    if kind in (ColumnKind.NUMBER, ColumnKind.BOOLEAN, ColumnKind.EMPTY):  # of nothing: all its numbers are missing
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
        f"{example}: turn it into numbers, or name it in `categorical_features` before fitting."
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
        raise CategoryKindError(
            f"A categorical column must hold what it held in training, but {name_column(table, column)} holds "
            f"{kind.value} now and held {learnt.value} then: read both tables with the same types."
        )
    known = {value: code for code, value in enumerate(categories)}
    lookup = np.array([*(known.get(value, UNSEEN) for value in values), np.nan])  # the last is the missing cell's
    return np.asarray(lookup[codes], dtype=np.float64)
