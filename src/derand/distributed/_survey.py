"""The first pass over a table of parts: which columns and classes there are, and between which ends numbers lie.

Owns what is learnt of a part, and how that of several parts is joined: parts with other columns or types are refused.
Must not know how parts are read, nor what is trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.origin import Frame
from derand._core.text import quote_short
from derand.tables import MOST_CLASSES, CategoricalFeatures, Category, ColumnKind, TableEncoding, is_whole
from derand.tables import Labels as ClassLabels
from derand.train import Moments, Spread

MOST_WEIGHT = 10**6
MOST_CATEGORIES = 2**16
"""Of a column: beyond that it says which row is which, and not what it is like."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What a first look at some rows found.

    Attributes
    ----------
    n_rows : int
    names : tuple of str
    kinds : tuple of str
        What each column holds: "numbers", "booleans" that are read as numbers, or the type of its categories, ""
        where it has no value.
    categories : mapping of column to set
    lows, highs : arrays of shape (n_features,)
        Ends of the numbers; infinite where there is none.
    whole : array of shape (n_features,)
        Whether all numbers of a column are whole.
    labels : mapping of label to int
        How many rows have each.
    label_type : str
        Of an array of them.
    moments : tuple of Moments
        Of the numbers of each column; none where they were not asked for.
    largest_weight : int
        Of a row.
    sources : tuple of str
        By column the name of a part that holds its kind; the last one is that of some part.
    """

    n_rows: int
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    categories: Mapping[int, frozenset[Category]]
    lows: FloatArray
    highs: FloatArray
    whole: BoolArray
    labels: Mapping[Category, int]
    label_type: str
    moments: tuple[Moments, ...] = ()
    sources: tuple[str, ...] = ()
    largest_weight: int = 1

    def list_classes(self) -> ClassLabels:
        """The labels that occur, in order."""
        seen = [label for label, count in self.labels.items() if count]
        return np.unique(np.array(seen, dtype=self.label_type))

    def encode(self) -> TableEncoding:
        """How the whole table is read."""
        categories = {column: tuple(sorted(values)) for column, values in self.categories.items()}
        whole = {
            column: (int(self.lows[column]), int(self.highs[column]))
            for column in range(len(self.names))
            if column not in categories and self.whole[column] and self.lows[column] < self.highs[column] < np.inf
        }
        is_boolean = [kind == ColumnKind.BOOLEAN.value for kind in self.kinds]
        booleans = tuple(at for at in range(len(self.names)) if is_boolean[at] and at not in categories)
        return TableEncoding(len(self.names), self.names, categories, whole, booleans=booleans)

    def measure_spreads(self) -> dict[int, Spread]:
        """How far numbers lie apart, by column."""
        ranges = self.highs - self.lows
        return {at: Spread(float(ranges[at]), self.moments[at]) for at in self.list_known().tolist() if self.moments}

    def list_known(self) -> IntArray:
        """Numerical columns that hold some number."""
        every = [at for at in range(len(self.names)) if at not in self.categories and np.isfinite(self.lows[at])]
        return np.array(every, dtype=np.int64)


class Labels(NamedTuple):
    """A column of labels: the different ones, which of them each row has, and the type of an array of them."""

    values: list[Category]
    codes: IntArray
    type: str

    def count_rows(self, weights: IntArray | None) -> dict[Category, int]:
        """How many rows have each, by their weights."""
        counts = np.zeros(len(self.values), dtype=np.int64)
        np.add.at(counts, self.codes, 1 if weights is None else weights)
        return dict(zip(self.values, counts.tolist(), strict=True))


def split_target(table: Frame, target: str) -> tuple[object, Labels]:
    """A table without the column of labels, and the labels."""
    names = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
    if target not in names:
        raise ValueError(f"there is no column {quote_short(target)} of labels; the columns are {', '.join(names[:8])}.")
    if hasattr(table, "column_names"):
        return table.drop_columns([target]), _read_labels(table.column(target), target)
    rest = table.drop(columns=[target]) if hasattr(table, "iloc") else table.drop(target)
    return rest, _read_labels(table[target], target)


def split_weights(table: Frame, column: str | None) -> tuple[Frame, IntArray | None]:
    """A table without the column of weights, and these; rows of weight 0 are left out."""
    if column is None:
        return table, None
    is_arrow, is_pandas = hasattr(table, "column_names"), hasattr(table, "iloc")
    if column not in (table.column_names if is_arrow else table.columns):
        raise ValueError(f"there is no column {quote_short(column)} of weights.")
    given = np.asarray(table[column], dtype=np.float64)
    if not ((given >= 0) & (given == np.rint(given)) & (given <= MOST_WEIGHT)).all():
        raise ValueError(
            f"the weights in {quote_short(column)} must be whole numbers from 0 to {MOST_WEIGHT:,}: a row of weight 3 "
            "counts as three rows."
        )
    kept = given > 0
    if not kept.all():
        table = table[kept] if is_pandas else table.filter(kept)
    rest = table.drop(columns=[column]) if is_pandas else table.drop([column])
    return rest, given[kept].astype(np.int64)


def _read_labels(column: object, target: str) -> Labels:
    import pyarrow as pa

    try:
        cells = column.combine_chunks() if hasattr(column, "combine_chunks") else pa.array(column, from_pandas=True)
    except pa.ArrowException as error:
        raise ValueError(
            f"the labels in {quote_short(target)} are of several types ({error}): store them with one type."
        ) from None
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if cells.null_count:
        raise ValueError(f"{cells.null_count} rows have no label in {quote_short(target)}: leave them out.")
    coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    values = coded.dictionary.to_pylist()
    if any(isinstance(value, float) and value != np.floor(value) for value in values):
        raise ValueError(
            f"the labels in {quote_short(target)} are numbers with fractions: classes are whole numbers or text."
        )
    if len(values) > MOST_CLASSES:
        raise ValueError(
            f"{quote_short(target)} holds {len(values)} different labels, {MOST_CLASSES} at most are taken."
        )
    kind = "O" if values and isinstance(values[0], str) else coded.dictionary.to_numpy(zero_copy_only=False).dtype.str
    return Labels(values, coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), kind)


def survey_part(
    table: object,
    target: str,
    weights: str | None,
    categorical: CategoricalFeatures,
    is_scaled: bool,
    name: str,
) -> Survey:
    """A first look at the rows of a part; moments are for models that are scaled."""
    table, by_row = split_weights(table, weights)
    X, labels = split_target(table, target)
    encoding = TableEncoding.learn(X, categorical)
    if encoding.names is None:
        raise ValueError("the columns must have names.")
    matrix = encoding.encode_finite(X, may_miss=encoding.numerical)
    lows, highs = np.full(encoding.n_features, np.inf), np.full(encoding.n_features, -np.inf)
    whole = np.ones(encoding.n_features, dtype=bool)
    moments = [Moments()] * encoding.n_features
    for column in encoding.numerical:
        present = matrix[:, column]
        present = present[~np.isnan(present)]
        if present.size:
            lows[column], highs[column] = present.min() + 0.0, present.max() + 0.0
            whole[column] = bool(is_whole(present).all())
            moments[column] = Moments.measure(present) if is_scaled else moments[column]
    kinds = [
        encoding.kind(column).value if encoding.categories.get(column, ("",)) else ""
        for column in range(encoding.n_features)
    ]
    for column in encoding.booleans or ():
        kinds[column] = ColumnKind.BOOLEAN.value
    categories = {column: frozenset(values) for column, values in encoding.categories.items()}
    _refuse_many(categories, encoding.names)
    counts = labels.count_rows(by_row)
    largest = 1 if by_row is None else int(by_row.max(initial=1))
    shown = (encoding.names, tuple(kinds), categories, lows, highs, whole, counts, labels.type)
    known = tuple(moments) if is_scaled else ()
    return Survey(sum(counts.values()), *shown, known, (name,) * (len(kinds) + 1), largest)


def _refuse_many(categories: Mapping[int, frozenset[Category]], names: Sequence[str]) -> None:
    for column, values in categories.items():
        if len(values) > MOST_CATEGORIES:
            raise ValueError(
                f"the column {quote_short(names[column])} has more than {MOST_CATEGORIES:,} different categories, as "
                "an identifier has: leave it out."
            )


def join_surveys(parts: Sequence[Survey]) -> Survey:
    """What is known of several parts together."""
    first = parts[0]
    for part in parts[1:]:
        _refuse_other(first, part)
    categories = {
        column: frozenset().union(*(part.categories[column] for part in parts)) for column in first.categories
    }
    _refuse_many(categories, first.names)
    sources = [
        next((part.sources[at] for part in parts if part.kinds[at]), first.sources[at])
        for at in range(len(first.kinds))
    ]
    labels: Counter[Category] = Counter()
    for part in parts:
        labels.update(part.labels)
    return Survey(
        sum(part.n_rows for part in parts),
        first.names,
        tuple(max(kinds) for kinds in zip(*(part.kinds for part in parts), strict=True)),
        categories,
        np.min([part.lows for part in parts], axis=0),
        np.max([part.highs for part in parts], axis=0),
        np.all([part.whole for part in parts], axis=0),
        dict(labels),
        first.label_type,
        tuple(sum(own, Moments()) for own in zip(*(part.moments for part in parts), strict=True)),
        (*sources, first.sources[-1]),
        max(part.largest_weight for part in parts),
    )


def _refuse_other(first: Survey, other: Survey) -> None:
    """Refuse parts that do not belong to one table; both are named."""
    one, two = first.sources[-1], other.sources[-1]
    if first.names != other.names:
        missing = [name for name in first.names if name not in other.names]
        more = [name for name in other.names if name not in first.names]
        what = (
            f"lacks {missing[0]!r}" if missing else f"has {more[0]!r} as well" if more else "has them in another order"
        )
        raise ValueError(f"{two} {what}, but must have the columns of {one}: {', '.join(first.names[:8])} ...")
    for at, (kind, another) in enumerate(zip(first.kinds, other.kinds, strict=True)):
        if kind and another and kind != another:
            raise ValueError(
                f"{other.sources[at]}: the column {quote_short(first.names[at])} holds {another}, but {kind} in "
                f"{first.sources[at]}: store it with one type."
            )
    if first.label_type != other.label_type:
        raise ValueError(
            f"{two}: the labels are {_name_types(other)} ({other.label_type}), but {_name_types(first)} "
            f"({first.label_type}) in {one}: all parts must hold labels of one type."
        )


def _name_types(survey: Survey) -> str:
    return " and ".join(sorted({type(label).__name__ for label in survey.labels}))
