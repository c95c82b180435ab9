"""What libraries of scikit-learn's habits say of the columns of their tables, and rows in the words of such a table.

Must not know any library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._arrays import FloatArray
from derand.frames import TableEncoding

UNSEEN_TEXT = "a category that training did not see"


def read_encoding(model: Any, categories: Mapping[int, tuple[Any, ...]] | None = None) -> TableEncoding:
    """Number and names of the columns that a fitted model of scikit-learn's habits was trained on."""
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    names = getattr(model, "feature_names_in_", None)
    return TableEncoding(
        int(model.n_features_in_), None if names is None else tuple(map(str, names)), dict(categories or {})
    )


def refuse_odd_outputs(model: Any) -> None:
    """Refuse a model that answers with several labels or numbers for a row, or knows one label alone."""
    if getattr(model, "n_outputs_", 1) != 1:
        raise ValueError(
            f"`model` answers with {model.n_outputs_} outputs for each row; certificates are for one: train one model "
            "for each."
        )
    if len(getattr(model, "classes_", (0, 1))) < 2:
        raise ValueError(
            f"`model` knows one class alone, {model.classes_[0]!r}: no change of a row can move its answer."
        )


def clean_categories(values: Iterable[Any], name: str | int) -> tuple[Any, ...]:
    """The categories of a column as plain Python values; NaN, which scikit-learn puts last, is left out.

    Parameters
    ----------
    values : iterable
    name : str or int
        Of the column, for errors.
    """
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if None in plain:
        raise ValueError(
            f"Column {name!r} has None among its categories, which scikit-learn tells from a missing value and a table "
            "does not: use NaN for what is missing, or a word of its own."
        )
    return tuple(value for value in plain if value == value)  # noqa: PLR0124 - NaN is not itself


def decode_rows(encoding: TableEncoding, rows: FloatArray) -> Any:
    """Encoded rows as the table that a model of this encoding is asked with.

    Parameters
    ----------
    encoding : TableEncoding
    rows : array of shape (n_rows, n_features)

    Returns
    -------
    pandas DataFrame, or an array where the model knows no names
        NaN for what is missing, a value of its own for a category that training did not see.
    """
    columns = [
        _decode_column(rows[:, column], encoding.categories.get(column)) for column in range(encoding.n_features)
    ]
    if encoding.names is None:
        kind = object if any(column.dtype == object for column in columns) else np.float64
        return np.stack([column.astype(kind) for column in columns], axis=1) if columns else rows
    import pandas as pd

    return pd.DataFrame(dict(enumerate(columns))).set_axis(list(encoding.names), axis=1)


def _decode_column(codes: FloatArray, categories: tuple[Any, ...] | None) -> NDArray[Any]:
    if categories is None:
        return np.asarray(codes, dtype=np.float64)
    words = any(isinstance(value, str | bool) for value in categories)
    unseen = UNSEEN_TEXT if words or not categories else max(categories) + 1
    values = np.empty(len(categories) + 2, dtype=object)
    values[:] = [*categories, unseen, np.nan]
    places = np.where(np.isnan(codes), len(categories) + 1, np.where(codes < 0, len(categories), codes))
    found = values[places.astype(np.int64)]
    return found if words or not categories else found.astype(np.float64)
