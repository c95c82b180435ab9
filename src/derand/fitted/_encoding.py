"""Tables as a fitted model reads them: a matrix of numbers and codes.

Owns what is refused for a model of another library, because that would refuse it or take it for something else. Must
not know what a model answers.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand.convert import truncates_categories
from derand.model import Model
from derand.tables import CategoryKindError, TableEncoding, as_rows, list_other_floats, take_rows


class Reader(Protocol):
    """What reads tables."""

    ensemble_: Model
    encoding_: TableEncoding


def encode_table(model: Reader, X: Any) -> FloatArray:
    """A table of the columns that the model was trained on as a matrix; what its library refuses is refused."""
    refuses = set(model.ensemble_.refuses_missing)
    may_miss = [column for column in model.encoding_.numerical if column not in refuses]
    source = getattr(model, "source_", None)
    if source is None:
        return model.encoding_.encode_finite(X, may_miss=may_miss)
    try:
        rows = model.encoding_.encode_finite(X, may_miss=may_miss)
    except CategoryKindError as error:
        if not source.startswith("interpret."):
            raise
        raise CategoryKindError(
            f"{error} interpret keeps only the text of categories, so their type was guessed: give such a "
            "table when the model is read, as from_model(model, X)."
        ) from None
    table = as_rows(X)
    _refuse_other_floats(model, table)
    for column in getattr(model, "refuses_unseen_", ()):
        _refuse_cells(model, source, column, rows[:, column] < 0, "a category that training did not see")
    for column in getattr(model, "refuses_gaps_", ()):
        _refuse_cells(model, source, column, np.isnan(rows[:, column]), "a missing category")
    if truncates_categories(source):
        _refuse_fractions(model, source, table, rows)
    return rows


def _refuse_other_floats(model: Reader, table: object) -> None:
    """Steps of a pipeline compute in the precision of a column: in another one, with other numbers than read."""
    precise = getattr(model, "precise_columns_", ())
    other = sorted(set(list_other_floats(table)) & set(precise)) if len(precise) else []
    if other:
        raise ValueError(
            f"Column {model.encoding_.name(int(other[0]))!r} of `X` must hold doubles, got floats of another "
            "precision, in which the steps of the pipeline compute other numbers than in doubles, and than "
            "certificates speak of: use X.astype('float64'), for the pipeline itself, too."
        )


def _refuse_cells(model: Reader, source: str, column: int, is_odd: BoolArray, what: str) -> None:
    """Missing and unseen categories, where a step of the pipeline has no answer to them."""
    if is_odd.any():
        raise ValueError(
            f"Column {model.encoding_.name(int(column))!r} of `X` holds {what} in {int(is_odd.sum())} rows, the "
            f"first of them row {int(is_odd.argmax())}, which {source} refuses, or takes for another: drop "
            "these rows, or train it with an encoder that takes them, such as "
            "OneHotEncoder(handle_unknown='ignore')."
        )


def _refuse_fractions(model: Reader, source: str, table: object, rows: FloatArray) -> None:
    """Numbers that the library cuts off to whole ones, which are other categories."""
    for column, values in model.encoding_.categories.items():
        odd = np.flatnonzero(rows[:, column] < 0)
        if not odd.size or not all(type(value) is int for value in values):
            continue
        found = TableEncoding.learn(take_rows(table, odd), [column]).categories[column]
        fractions = [value for value in found if isinstance(value, float) and not value.is_integer()]
        if fractions:
            raise ValueError(
                f"Column {model.encoding_.name(column)!r} of `X` must hold whole numbers, which are its categories, "
                f"got {fractions[0]!r}: {source} would cut it off to {int(fractions[0])}."
            )
