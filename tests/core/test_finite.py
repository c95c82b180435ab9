"""Finiteness: found once, counted by column, and named by whoever knows the names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from derand import AdditiveEnsemble, StepFunction, StumpClassifier, certify
from derand._core.finite import MissingNumbersError, cast_exactly, name_gaps, require_finite


def test_gaps_are_counted_by_column() -> None:
    """NaN and both infinities count; columns that are not asked for do not."""
    rows = np.array([[np.nan, 1.0, np.inf], [0.0, np.nan, -np.inf]])
    with pytest.raises(MissingNumbersError, match=r"column 0 \(1 rows\), column 2 \(2 rows\): drop") as error:
        require_finite(rows, [0, 2])
    assert error.value.counts == {0: 1, 2: 2}
    require_finite(np.array([[1, 2]]), [0, 1])
    with name_gaps(lambda column: "abc"[column]), pytest.raises(MissingNumbersError):
        require_finite(rows, [0])


def test_where_values_may_be_missing_only_infinity_is_refused() -> None:
    """NaN passes there, and an error does not speak of it; elsewhere it says how NaN would be taken."""
    rows = np.array([[np.nan, np.inf], [0.0, np.nan]])
    require_finite(rows[:, :1], [0], may_miss=[0])
    with pytest.raises(
        MissingNumbersError, match=r"got infinity in column 1 \(1 rows\): replace it by .* missing one\.$"
    ):
        require_finite(rows, [0, 1], may_miss=[0, 1])
    with pytest.raises(MissingNumbersError, match=r"got NaN or infinity in column 1 .* trained with missing values"):
        require_finite(rows, [0, 1], may_miss=[0])
    with (
        pytest.raises(MissingNumbersError, match=r"got infinity in column 'b'"),
        name_gaps(lambda column: "ab"[column]),
    ):
        require_finite(rows, [0, 1], may_miss=[0, 1])


def test_names_are_added_on_the_way_up() -> None:
    """The same counts, with the names of the outer level."""
    with pytest.raises(MissingNumbersError, match=r"column 'b' \(1 rows\)"), name_gaps(lambda column: "ab"[column]):
        require_finite(np.array([[0.0, np.nan]]), [0, 1])


def test_a_row_of_a_frame_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a frame to its certificate every number passes one check, and so from an array."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0], "b": ["x", "y", "x", "y"]})
    clf = StumpClassifier(noise="gaussian:0.5").fit(frame, [0, 0, 1, 1])
    calls = []

    def count(rows: np.ndarray, columns: object, *rest: object) -> None:
        calls.append(rows.shape)
        require_finite(rows, columns, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("derand.tables._encoding.require_finite", count)
    monkeypatch.setattr("derand.certificates.classification.require_finite", count)
    clf.certify(frame)
    assert calls == [(4, 2)]
    certify(AdditiveEnsemble([StepFunction(0, [0.5], [0, 1])], 0, 1), [[0.0]], "gaussian:1")
    assert calls == [(4, 2), (1, 1)]


def test_a_new_value_in_a_column_of_one_category_is_no_gap() -> None:
    """The model does not read such a column: what it holds later cannot be missing."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0], "k": ["x"] * 4})
    clf = StumpClassifier(noise="gaussian:0.5").fit(frame, [0, 0, 1, 1])
    assert clf.predict(pd.DataFrame({"a": [0.5, 6.0], "k": ["new", None]})).tolist() == [0, 1]


MODEL = AdditiveEnsemble([StepFunction(0, [0.5], [0, 1])], 0, 2)
HUGE = 2**53 + 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([[1.0, np.longdouble("1e400")]], dtype=np.longdouble), r"doubles can hold, got 1e\+400 in column 1"),
        (
            np.array([[np.longdouble(1) / 3, 0]], dtype=np.longdouble),
            "doubles can hold, got 0.3333333333333.* in column 0",
        ),
        (np.array([[0, HUGE]]), "doubles can hold, got 9007199254740993 in column 1"),
        (np.array([[0, 2**64 - 1]], dtype=np.uint64), "doubles can hold, got 18446744073709551615 in column 1"),
        ([[0, HUGE]], "doubles can hold, got 9007199254740993 in column 1"),
        (np.array([[0, HUGE]], dtype=object), "doubles can hold, got 9007199254740993 in column 1"),
        (np.array([[0.5, HUGE]], dtype=object), "doubles can hold, got 9007199254740993 in column 1"),
        (np.array([[0.5, 10**400]], dtype=object), "must hold numbers, got dtype object"),
        (np.array([[1 + 2j, 0]]), "must hold numbers, got dtype complex128"),
        (np.array([["2026-01-01", "2026-01-02"]], dtype="datetime64[D]"), "must hold numbers, got dtype datetime64"),
        (np.array([[1, 2]], dtype="timedelta64[s]"), "must hold numbers, got dtype timedelta64"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]), "an ordinary array, got a masked one"),
    ],
)
def test_numbers_that_would_change_in_a_cast_are_refused(rows: Any, message: str) -> None:
    """What no double equals, and what is no number, is refused by the core, naming the column."""
    with pytest.raises(ValueError, match=message):
        certify(MODEL, rows, "gaussian:1")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda data: np.column_stack([*data.values()])])
def test_integers_beyond_doubles_are_refused_in_every_table(make: Any) -> None:
    """Frames name the column; whole numbers that are doubles pass, however large."""
    y = [0, 0, 1, 1]
    clf = StumpClassifier(noise="gaussian:0.5", scaling="standard")
    clf.fit(make({"a": np.array([0, 1, 4, 2**60]), "id": np.array([1, 2, 3, 2**54])}), y)
    bad = make({"a": np.array([0, 1, 4, 5]), "id": np.array([1, 2, 3, HUGE])})
    for call in (lambda: clf.predict(bad), lambda: StumpClassifier(noise="gaussian:0.5").fit(bad, y)):
        with pytest.raises(ValueError, match=r"doubles can hold, got .* in column ('id'|1)"):
            call()


def test_integers_among_other_objects_are_refused_by_classifiers() -> None:
    """Columns of objects are judged cell by cell."""
    clf = StumpClassifier(noise="gaussian:0.5").fit(np.array([[0.0], [1.0], [4.0], [5.0]]), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="doubles can hold, got 9007199254740993 in column 0"):
        clf.predict(np.array([[0.5], [HUGE]], dtype=object))


def test_masked_arrays_are_refused_by_classifiers() -> None:
    """scikit-learn's own checks would drop the mask."""
    X = np.ma.masked_array(np.arange(8.0).reshape(4, 2), mask=False)
    with pytest.raises(ValueError, match="masked"):
        StumpClassifier().fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, np.uint64, bool])
def test_ordinary_numbers_pass_unchanged(dtype: Any) -> None:
    """Every type whose numbers are doubles."""
    values = np.array([[0, 1], [1, 0]], dtype=dtype)
    assert cast_exactly(values).tolist() == [[0.0, 1.0], [1.0, 0.0]]
