"""The column check: every kind of table gets the same answer, and each reason is given where it holds."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from derand import StumpClassifier
from derand.tables import ColumnCheck, ColumnKind, ColumnUse, check_columns

N_ROWS = 30
COLUMNS: dict[str, list[Any]] = {
    "age": [20.0 + row for row in range(N_ROWS)],
    "job": ["cook" if row % 3 else "clerk" for row in range(N_ROWS)],
    "owns": [row % 2 == 0 for row in range(N_ROWS)],
    "same": [3.0] * N_ROWS,
    "word": ["one"] * (N_ROWS - 1) + [None],
    "name": [f"person {row}" for row in range(N_ROWS)],
    "gaps": [None, float("inf"), *([1.0, 2.0] * 14)],
    "some": [None, *([1.0] * 28), 2.0],
    "typed": ["n/v", "n/v", "?", *(str(row) for row in range(N_ROWS - 3))],
}
EXPECTED = {
    "age": (ColumnKind.NUMBER, ColumnUse.NUMERICAL, None),
    "job": (ColumnKind.TEXT, ColumnUse.CATEGORICAL, None),
    "owns": (ColumnKind.BOOLEAN, ColumnUse.CATEGORICAL, None),
    "same": (ColumnKind.NUMBER, ColumnUse.IGNORED, "constant"),
    "word": (ColumnKind.TEXT, ColumnUse.IGNORED, "constant"),
    "name": (ColumnKind.TEXT, ColumnUse.IGNORED, "text with 30 different values in 30 rows"),
    "gaps": (ColumnKind.NUMBER, ColumnUse.REFUSED, "1 of 30 cells are infinite"),
    "some": (ColumnKind.NUMBER, ColumnUse.NUMERICAL, None),
    "typed": (ColumnKind.TEXT, ColumnUse.REFUSED, "3 of 30 cells are text among numbers, such as 'n/v'"),
}
MAKERS = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 7), pa.table(columns).slice(7)]),
}


def check_one(values: Any, **options: Any) -> ColumnCheck:
    (check,) = check_columns(pd.DataFrame({"a": values}), **options)
    return check


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_every_frame_gets_the_same_answer(make: Any) -> None:
    """Kinds, uses and reasons do not depend on the library."""
    checks = check_columns(make(COLUMNS))
    assert {check.name: (check.kind, check.use, check.reason) for check in checks} == EXPECTED


def test_columns_of_an_array_go_by_their_numbers() -> None:
    """An array of objects is judged cell by cell, and its columns are named by number."""
    rows = np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)
    checks = check_columns(rows, ignored=[0])
    assert [check.name for check in checks] == list(range(len(COLUMNS)))
    assert [check.use for check in checks[1:]] == [use for _, use, _ in list(EXPECTED.values())[1:]]
    assert checks[0].reason == "as asked"
    assert [check.use for check in check_columns(np.zeros((3, 2)))] == [ColumnUse.IGNORED] * 2


def test_what_must_be_mended_is_counted() -> None:
    """Gaps and stray cells are told in numbers, too."""
    checks = {check.name: check for check in check_columns(pa.table(COLUMNS))}
    assert (checks["gaps"].gaps, checks["gaps"].missing) == (1, 1)
    assert (checks["some"].gaps, checks["some"].missing) == (0, 1)
    assert checks["typed"].stray == (("n/v", 2), ("?", 1))
    assert checks["age"].gaps == 0
    assert checks["age"].stray == ()


def test_what_is_usable_can_be_learnt_from() -> None:
    """A classifier takes the columns that are neither ignored nor refused, and refuses those that are."""
    frame = pd.DataFrame(COLUMNS)
    checks = check_columns(frame)
    used = [check.name for check in checks if check.use in (ColumnUse.NUMERICAL, ColumnUse.CATEGORICAL)]
    classifier = StumpClassifier().fit(frame[used], frame["age"] > 30)
    assert classifier.encoding_.names == ("age", "job", "owns", "some")
    assert classifier.encoding_.categorical == (1, 2)
    with pytest.raises(ValueError, match="column 'gaps'"):
        StumpClassifier().fit(frame[["age", "gaps"]], frame["age"] > 30)


def test_declared_categories_are_used_as_they_are() -> None:
    """Numbers, text with numbers in it and text of many values are categories where that is said or declared."""
    for values in (range(30), COLUMNS["typed"], COLUMNS["name"], COLUMNS["gaps"]):
        assert check_one(values, categorical=["a"]).use is ColumnUse.CATEGORICAL
    declared = check_one(pd.Categorical(COLUMNS["name"]))
    assert (declared.kind, declared.use) == (ColumnKind.CATEGORY, ColumnUse.CATEGORICAL)


def test_few_different_texts_are_categories() -> None:
    """Twenty different values, or half as many as there are rows, are no names yet."""
    assert check_one([f"p{row}" for row in range(20)]).use is ColumnUse.CATEGORICAL
    assert check_one([f"p{row}" for row in range(21)]).use is ColumnUse.IGNORED
    assert check_one([f"p{row // 2}" for row in range(100)]).use is ColumnUse.CATEGORICAL


@pytest.mark.parametrize(
    "values", [[None, None], [np.nan, np.nan], pd.Categorical([None, None]), pd.array([None, None], dtype="string")]
)
def test_a_column_without_any_value_holds_nothing(values: Any) -> None:
    """Whatever its type, an empty column is left out."""
    assert check_one(values) == ColumnCheck("a", ColumnKind.EMPTY, ColumnUse.IGNORED, "holds nothing")


def test_a_number_with_gaps_is_no_constant() -> None:
    """One number and an empty cell: what is missing may teach something."""
    check = check_one([1.0, None, 1.0])
    assert (check.use, check.missing) == (ColumnUse.NUMERICAL, 1)


@pytest.mark.parametrize("values", [[[1], [2], [3]], [b"a", b"b", b"c"], pd.to_timedelta([1, 2, 3])])
def test_what_is_neither_numbers_nor_text_is_left_out(values: Any) -> None:
    """Lists, bytes and durations are no features."""
    check = check_one(values)
    assert (check.use, check.reason) == (ColumnUse.IGNORED, "holds neither numbers nor text")


def test_cells_of_several_kinds_must_be_mended() -> None:
    """An object column of numbers and text is refused in the words of the error that training would give."""
    check = check_one(["a", 1, 2])
    assert (check.kind, check.use, check.reason) == (ColumnKind.MIXED, ColumnUse.REFUSED, "mixes numbers and text")


def test_whole_numbers_that_doubles_cannot_hold_are_refused() -> None:
    """pyarrow does not round them, and training would fail."""
    (check,) = check_columns(pa.table({"a": [2**53 + 1, 2]}))
    assert (check.use, check.reason) == (ColumnUse.REFUSED, "holds whole numbers that are too large for a double")


def test_a_column_without_a_name_is_left_out() -> None:
    """pandas writes its index so."""
    (check,) = check_columns(pd.DataFrame({"": [1, 2]}))
    assert (check.name, check.reason) == ("", "has no name")


def test_unknown_columns_are_refused() -> None:
    """The error names the parameter and what there is."""
    frame = pd.DataFrame({"a": [1, 2]})
    with pytest.raises(ValueError, match="`ignored` names column 'b', which `X` does not have; it has a"):
        check_columns(frame, ignored=["b"])
    with pytest.raises(ValueError, match="`categorical` must hold column names or column numbers from 0 to 0, got 7"):
        check_columns(frame, categorical=[7])


def test_a_check_is_a_frozen_value() -> None:
    """Equal checks are equal, and they can be stored and sent."""
    check = check_columns(pa.table(COLUMNS))[-1]
    assert pickle.loads(pickle.dumps(check)) == check
    with pytest.raises(AttributeError):
        check.reason = None  # type: ignore[misc]
