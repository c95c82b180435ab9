"""What libraries say of the columns of their tables: names, categories and their codes; rows in the words of a table.

Must not know any library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.later import import_extra
from derand._core.origin import Cell, Fitted, Frame
from derand.convert._reading import Reading
from derand.model import CategoryShape, TreeShape
from derand.tables import Category, ColumnKind, Labels, TableEncoding, kind_of_values

UNSEEN_TEXT = "a category that training did not see"


def require_fitted(model: object, is_fitted: bool) -> None:
    """Refuse a model that was not fitted."""
    if not is_fitted:
        name = type(model).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise ValueError(f"`model` must be fitted, got {article} {name} that is not: call `fit` first.")


def read_encoding(model: Fitted, categories: Mapping[int, tuple[Category, ...]] | None = None) -> TableEncoding:
    """Number and names of the columns that a fitted model of scikit-learn's habits was trained on."""
    require_fitted(model, hasattr(model, "n_features_in_"))
    names = getattr(model, "feature_names_in_", None)
    return TableEncoding(
        int(model.n_features_in_), None if names is None else tuple(map(str, names)), dict(categories or {})
    )


def choose_values(texts: Sequence[str]) -> list[Category]:
    """What categories are likely to be in the user's table, where a library keeps their text alone.

    Numbers, where every text is how a number is written; `adopt_table` knows better once there is a table.

    Examples
    --------
    >>> choose_values(["2", "10"]), choose_values(["0.5", "1"]), choose_values(["01", "2"]), choose_values(["nan"])
    ([2, 10], [0.5, 1], ['01', '2'], ['nan'])
    """
    numbers = [_parse_number(text) for text in texts]
    found = [number for number in numbers if number is not None]
    return list(texts) if len(found) < len(texts) else list(found)


def _parse_number(text: str) -> int | float | None:
    """The number that is written like that and in no other way; None where there is none."""
    for kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError:
            continue
        if math.isfinite(number) and str(number) == text:
            return number
    return None


def adopt_table(reading: Reading, X: Frame) -> Reading:
    """The same model with the names and the kinds of categories of a table that it was trained on, or of one like it.

    The result: categories that were read as numbers are text or booleans where they are in X.
    """
    encoding = reading.encoding
    if getattr(X, "shape", (0, 0))[1:] != (encoding.n_features,):
        return reading  # whoever encodes it says so
    found = TableEncoding.learn(X, list(encoding.categories))
    names = _choose_names(encoding.names, found.names)
    reading = replace(reading, encoding=replace(encoding, names=names, booleans=found.booleans))
    for column, values in encoding.categories.items():
        if not found.categories[column] or not values:
            continue
        theirs = _as_kind(values, found.kind(column))
        if theirs is not None:
            reading = _renumber(reading, column, theirs)
    return reading


def _choose_names(own: tuple[str, ...] | None, theirs: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of a table where a library keeps none, or keeps them with '_' for every space."""
    if own is None or theirs is None:
        return own or theirs
    return theirs if own == tuple(name.replace(" ", "_") for name in theirs) else own


def _as_kind(values: Sequence[Category], kind: ColumnKind) -> tuple[Category, ...] | None:
    """Categories as those of another kind, None where they are of it already or cannot be."""
    texts = tuple(map(str, values))
    if kind is ColumnKind.TEXT:
        return None if texts == tuple(values) else texts
    if kind is ColumnKind.BOOLEAN:
        truth = {"0": False, "1": True, "False": False, "True": True}
        return tuple(truth[text] for text in texts) if set(texts) <= set(truth) else None
    return None


def _renumber(reading: Reading, column: int, values: Sequence[Cell]) -> Reading:
    """The same model with other values for the categories of a column, of which code k is the k-th in order."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    categories = {**reading.encoding.categories, column: tuple(values[at] for at in order)}
    scores = reading.raw_scores
    back = np.array([*order, -1.0, np.nan])

    def raw_scores(rows: FloatArray) -> FloatArray:
        assert scores is not None
        rows = rows.copy()
        codes = np.where(np.isnan(rows[:, column]), len(order) + 1, rows[:, column])
        rows[:, column] = back[np.where(codes < 0, len(order), codes).astype(np.int64)]
        return scores(rows)

    tables = [
        CategoryShape(one.feature, one.categories, one.values[order], one.other, one.missing)
        if one.feature == column
        else one
        for one in reading.tables
    ]
    return replace(
        reading,
        encoding=replace(reading.encoding, categories=categories),
        tables=tables,
        trees=[_renumber_trees(one, column, order) for one in reading.trees],
        raw_scores=None if scores is None else raw_scores,
    )


def _renumber_trees(shape: TreeShape, column: int, order: Sequence[int]) -> TreeShape:
    """Trees with other codes for the categories of a column: code k was `order[k]`."""
    codes = [
        np.sort(np.append(np.flatnonzero(np.isin(order, own)), own[own < 0])) if asked == column else own
        for asked, own in zip(shape.columns[shape.category_splits].tolist(), shape.left_codes, strict=True)
    ]
    return shape._replace(left_codes=tuple(codes))


def clean_categories(values: Iterable[Cell], name: str | int) -> tuple[Category, ...]:
    """The categories of a column as plain Python values; NaN, which scikit-learn puts last, is left out.

    `name`: of the column, for errors.
    """
    plain = _as_plain(values)
    if None in plain:
        raise ValueError(
            f"Column {name!r} has None among its categories, which scikit-learn distinguishes from a missing value "
            "and a table does not: use NaN for what is missing, or a word of its own."
        )
    return tuple(value for value in plain if value == value)  # noqa: PLR0124 - NaN is not itself


def order_categories(values: Iterable[Cell], column: str | int) -> tuple[tuple[Category, ...], tuple[int, ...]]:
    """Values of a category in increasing order, and the library's code of each.

    `values`: value k has the library's code k; `column`: its name, for the error.
    """
    plain = _as_plain(values)
    if len({kind_of_values([value]) for value in plain}) > 1:
        raise ValueError(
            f"The categories of column {column!r} are of several kinds, which no table of ours can hold: turn all of "
            "them into text before training."
        )
    order = sorted(range(len(plain)), key=plain.__getitem__)
    return tuple(plain[code] for code in order), tuple(order)


def _as_plain(values: Iterable[Cell]) -> list[Cell]:
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def recode_rows(rows: FloatArray, codes: Mapping[int, tuple[int, ...]]) -> FloatArray:
    """Encoded rows with the library's codes of categories; unseen (-1) and missing ones stay as they are."""
    if not codes:
        return rows
    found = np.array(rows, dtype=np.float64)
    for column, own in codes.items():
        seen = found[:, column] >= 0
        found[seen, column] = np.asarray(own, dtype=np.float64)[found[seen, column].astype(np.intp)]
    return found


def decode_rows(encoding: TableEncoding, rows: FloatArray) -> Frame:
    """Encoded rows as the table that a model of this encoding is asked with.

    The result: NaN for what is missing, a value of its own for a category that training did not see.
    """
    columns = [
        _decode_column(rows[:, column], encoding.categories.get(column)) for column in range(encoding.n_features)
    ]
    if encoding.names is None:
        kind = object if any(column.dtype == object for column in columns) else np.float64
        return np.stack([column.astype(kind) for column in columns], axis=1) if columns else rows
    pd = import_extra("pandas", None, "A table of rows with names")
    return pd.DataFrame(dict(enumerate(columns))).set_axis(list(encoding.names), axis=1)


def _decode_column(codes: FloatArray, categories: tuple[Category, ...] | None) -> Labels:
    if categories is None:
        return np.asarray(codes, dtype=np.float64)
    words = any(isinstance(value, str | bool) for value in categories)
    unseen = UNSEEN_TEXT if words or not categories else _choose_unseen(categories)
    values = np.empty(len(categories) + 2, dtype=object)
    values[:] = [*categories, unseen, np.nan]
    places = np.where(np.isnan(codes), len(categories) + 1, np.where(codes < 0, len(categories), codes))
    found = values[places.astype(np.int64)]
    if words or not categories or any(float(value) != value for value in (*categories, unseen)):
        return found  # doubles would make one of two whole numbers beyond 2**53
    return found.astype(np.float64)


def _choose_unseen(categories: Sequence[Cell]) -> float:
    """A number that is none of some; large doubles are their own successors."""
    tried = (max(categories) + 1, 2 * max(categories), min(categories) - 1, 0.5)
    return next(number for number in tried if number not in categories and math.isfinite(number))
