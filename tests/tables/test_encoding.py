"""Encoding: every kind of table gives the same matrix, and bad cells are named."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from derand.tables import ColumnKind, ColumnUse, TableEncoding, check_columns, dates_to_numbers

AGES = [20.0, 30.0, 40.0, 50.0]
JOBS = ["cook", "smith", None, "cook"]
OWNS = [True, False, True, None]
DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def make_pandas() -> pd.DataFrame:
    return pd.DataFrame({"age": AGES, "job": JOBS, "owns": pd.array(OWNS, dtype="boolean")})


def make_pandas_categories() -> pd.DataFrame:
    frame = pd.DataFrame({"age": AGES, "job": JOBS, "owns": pd.array(OWNS, dtype="boolean")})
    return frame.assign(job=pd.Categorical(JOBS, categories=["zoo keeper", "smith", "cook"]))


def make_pandas_objects() -> pd.DataFrame:
    return pd.DataFrame({"age": AGES, "job": JOBS, "owns": OWNS}, dtype=object)


def make_pandas_arrow() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": pd.Series([20, 30, 40, 50], dtype="int64[pyarrow]"),
            "job": pd.Series(pa.array(JOBS).dictionary_encode().to_pandas(), dtype=pd.ArrowDtype(DICTIONARY)),
            "owns": pd.Series(OWNS, dtype="bool[pyarrow]"),
        }
    )


def make_polars() -> pl.DataFrame:
    return pl.DataFrame({"age": AGES, "job": JOBS, "owns": OWNS})


def make_polars_categories() -> pl.DataFrame:
    return make_polars().with_columns(pl.col("job").cast(pl.Categorical))


def make_arrow() -> pa.Table:
    return pa.table({"age": AGES, "job": JOBS, "owns": OWNS})


def make_objects() -> np.ndarray:
    return np.array([list(row) for row in zip(AGES, JOBS, OWNS, strict=True)], dtype=object)


MAKERS = [
    make_pandas,
    make_pandas_categories,
    make_pandas_objects,
    make_pandas_arrow,
    make_polars,
    make_polars_categories,
    make_arrow,
    make_objects,
]


@pytest.mark.parametrize("make", MAKERS)
def test_every_table_gives_the_same_matrix(make: Any) -> None:
    """Text, category and boolean columns become codes of the values seen, in increasing order; missing is NaN."""
    encoding = TableEncoding.learn(make(), "from_dtype")
    assert dict(encoding.categories) == {1: ("cook", "smith"), 2: (False, True)}
    expected = [[20, 0, 1], [30, 1, 0], [40, np.nan, 1], [50, 0, np.nan]]
    np.testing.assert_array_equal(encoding.encode(make()), expected)


@pytest.mark.parametrize("make", MAKERS)
def test_tables_of_another_kind_are_read_alike(make: Any) -> None:
    """An encoding learnt from one kind of table reads every other kind."""
    encoding = TableEncoding.learn(make_pandas(), "from_dtype")
    np.testing.assert_array_equal(encoding.encode(make()), encoding.encode(make_pandas()))


def test_unseen_categories_are_told_apart_from_missing_ones() -> None:
    """A category that training did not see has the code -1, a missing one NaN."""
    encoding = TableEncoding.learn(make_pandas(), "from_dtype")
    matrix = encoding.encode(make_pandas().assign(job=["baker", "smith", None, "cook"]))
    np.testing.assert_array_equal(matrix[:, 1], [-1, 1, np.nan, 0])


@pytest.mark.parametrize("chosen", [["owns", "job"], [1, 2], np.array([2, 1]), [False, True, True]], ids=str)
def test_categorical_columns_may_be_named(chosen: Any) -> None:
    """A list of names, of numbers or a mask says which columns are categorical."""
    assert sorted(TableEncoding.learn(make_pandas(), chosen).categories) == [1, 2]


def test_numbers_may_be_categories() -> None:
    """A numerical column that is named holds categories; an integer and the same float are one."""
    encoding = TableEncoding.learn(pd.DataFrame({"zip": [7, 3, 7], "x": [0.0, 1.0, 2.0]}), ["zip"])
    assert dict(encoding.categories) == {0: (3, 7)}
    later = pd.DataFrame({"zip": [7.0, np.nan, 9.0], "x": [0.0, 1.0, 2.0]})
    np.testing.assert_array_equal(encoding.encode(later)[:, 0], [1, np.nan, -1])


def test_a_plain_array_is_not_copied() -> None:
    """A float64 array without categories is used as it is."""
    X = np.zeros((3, 2))
    assert TableEncoding.learn(X, "from_dtype").encode(X) is X


def test_arrays_of_text_and_of_booleans_hold_categories() -> None:
    """The type of an array says what all its columns hold."""
    assert dict(TableEncoding.learn(np.array([["b"], ["a"]]), "from_dtype").categories) == {0: ("a", "b")}
    assert dict(TableEncoding.learn(np.array([[True], [False]]), "from_dtype").categories) == {0: (False, True)}
    assert dict(TableEncoding.learn(np.array([[True], [False]]), None).categories) == {}


@pytest.mark.parametrize("make", [make_pandas, make_polars, make_arrow, make_objects])
def test_text_in_a_numerical_column_is_refused(make: Any) -> None:
    """Text where numbers are wanted is an error that names the column and a cell."""
    name = "1" if make is make_objects else "'job'"
    with pytest.raises(ValueError, match=f"column {name} of `X` holds text, such as 'cook'"):
        TableEncoding.learn(make(), None).encode(make())


def test_text_in_a_column_that_held_numbers_is_refused() -> None:
    """A later table with text in a numerical column is an error as well."""
    encoding = TableEncoding.learn(make_pandas(), "from_dtype")
    with pytest.raises(ValueError, match="column 'age' of `X` holds text, such as 'old'"):
        encoding.encode(make_pandas().assign(age=["old", "new", "old", "new"]))


def test_other_types_than_in_training_are_refused() -> None:
    """A category column of numbers where training had text would be unseen throughout: an error instead."""
    encoding = TableEncoding.learn(make_pandas(), "from_dtype")
    with pytest.raises(ValueError, match="column 'job' of `X` holds numbers now and held text then"):
        encoding.encode(make_pandas().assign(job=[1, 2, 1, 2]))


@pytest.mark.parametrize("chosen", ["from_dtype", ["a"]])
def test_mixed_types_are_refused(chosen: Any) -> None:
    """Text and numbers in one column are an error that names the column."""
    frame = pd.DataFrame({"a": pd.Series(["x", 1, "y"], dtype=object)})
    with pytest.raises(ValueError, match=r"column 'a' of `X` (mixes|holds) numbers and text"):
        TableEncoding.learn(frame, chosen).encode(frame)


@pytest.mark.parametrize("cell", [[1, 2], {"k": 1}, (1, 2), b"x"], ids=str)
def test_strange_cells_are_refused(cell: Any) -> None:
    """An unhashable cell, or any that is neither text, number nor boolean, is an error that names column and type."""
    frame = pd.DataFrame({"a": pd.Series(["x", cell, "y"], dtype=object)})
    for chosen in ("from_dtype", ["a"]):
        with pytest.raises(TypeError, match=f"column 'a' of `X` has one of type {type(cell).__name__}"):
            TableEncoding.learn(frame, chosen).encode(frame)


def test_polars_objects_are_refused() -> None:
    """A polars column of Python objects is an error that names it."""
    frame = pl.DataFrame({"a": pl.Series([object(), object()], dtype=pl.Object)})
    with pytest.raises(TypeError, match="column 'a' of `X` has the type Object"):
        TableEncoding.learn(frame, "from_dtype")


def test_dates_are_refused() -> None:
    """A column that holds neither numbers nor categories is an error that names it and what to do."""
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(ValueError, match=r"column 'when' of `X` holds dates: turn them into days by `derand\.dates_to"):
        TableEncoding.learn(frame, "from_dtype").encode(frame)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["jobs"], "names column 'jobs', which `X` does not have; it has age, job, owns"),
        ("job", r"write \['job'\] for one column"),
        ([3], "column numbers from 0 to 2"),
        ([-1], "column numbers from 0 to 2"),
        ([1.5], "got 1.5"),
        ([True, False], "must have 3 entries"),
    ],
    ids=str,
)
def test_unknown_columns_are_refused(chosen: Any, message: str) -> None:
    """A wrong `categorical_features` is an error that says what there is."""
    with pytest.raises(ValueError, match=message):
        TableEncoding.learn(make_pandas(), chosen)


def test_names_need_a_frame() -> None:
    """Column names with an array are an error that says so."""
    with pytest.raises(ValueError, match="`X` has no column names"):
        TableEncoding.learn(np.zeros((2, 2)), ["age"])


def test_gaps_are_named_and_counted() -> None:
    """NaN and infinity in numerical columns are an error that says where and how many."""
    frame = pd.DataFrame({"a": [1.0, np.nan, np.nan], "b": [np.inf, 0.0, 0.0], "c": ["x", None, "y"]})
    encoding = TableEncoding.learn(frame, "from_dtype")
    with pytest.raises(ValueError, match=r"column 'a' \(2 rows\), column 'b' \(1 rows\): drop"):
        encoding.encode_finite(frame)


def test_large_finite_numbers_are_no_gaps() -> None:
    """Numbers whose sum overflows are still finite."""
    X = np.full((4, 1), 1.7e308)
    assert TableEncoding.learn(X, None).encode_finite(X) is X


def test_the_encoding_knows_the_kind_of_every_column() -> None:
    """Which columns are categorical, and what cells must be, is asked of the encoding."""
    encoding = TableEncoding.learn(make_pandas(), "from_dtype")
    assert (encoding.numerical, encoding.categorical) == ((0,), (1, 2))
    assert [encoding.kind(column) for column in range(3)] == [ColumnKind.NUMBER, ColumnKind.TEXT, ColumnKind.BOOLEAN]


def test_no_frame_library_is_imported_for_arrays() -> None:
    """Encoding an array loads neither pandas nor polars nor pyarrow."""
    code = """
import sys
import numpy as np
from derand.tables import TableEncoding, check_columns
rows = np.array([[1.0, "a"], [2.0, "b"]], dtype=object)
TableEncoding.learn(rows, "from_dtype").encode(rows)
check_columns(rows)
print([name for name in ("pandas", "polars", "pyarrow", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_columns_of_whole_numbers_are_found() -> None:
    """Two different whole numbers or more, gaps aside; no huge ones, no constants, no categories."""
    rows = np.array(
        [
            [1.0, 0.0, 0.5, 7.0, 2.0**53, np.nan, -3.0, 0.0],
            [2.0, 1.0, 1.0, 7.0, 1.0, np.nan, np.nan, 1.0],
            [9.0, 0.0, 2.0, 7.0, 2.0, np.nan, -5.0, 0.0],
        ]
    )
    encoding = TableEncoding(8, None, {7: (0, 1)}).learn_whole(rows)
    assert encoding.whole == {0: (1, 9), 1: (0, 1), 6: (-5, -3)}
    assert encoding.list_integers(rows) == (0, 1)
    assert encoding.find_whole(rows) == encoding.whole
    assert encoding.find_whole(rows + np.array([0.5, 1, 0, 0, 0, 0, 0, 0])) == {6: (-5, -3)}
    late = np.ones((3000, 1))
    late[:, 0] = np.arange(3000)
    late[2999] = 0.5
    assert TableEncoding(1, None, {}).learn_whole(late).whole == {}


NUMBERS = [pa.int8(), pa.uint64(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)]


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_numbers_of_every_type_of_pyarrow_in_pandas(kind: pa.DataType) -> None:
    """With missing values, too; a number that no double equals is refused as everywhere."""
    cells = [None if value is None else Decimal(value) for value in (3, None, 5)]
    given = cells if pa.types.is_decimal(kind) else [None if value is None else int(value) for value in cells]
    frame = pd.DataFrame({"x": pd.Series(pa.array(given, kind).to_pandas(types_mapper=pd.ArrowDtype))})
    assert frame.x.dtype == pd.ArrowDtype(kind)
    (check,) = check_columns(frame)
    assert (check.kind, check.use, check.missing) == (ColumnKind.NUMBER, ColumnUse.NUMERICAL, 1)
    np.testing.assert_array_equal(TableEncoding.learn(frame, "from_dtype").encode(frame)[:, 0], [3.0, np.nan, 5.0])
    large = pd.DataFrame({"x": pd.Series([2**60 + 1, None], dtype="int64[pyarrow]")})
    with pytest.raises(ValueError, match="got 1152921504606846977 in column 'x'"):
        TableEncoding.learn(large, "from_dtype").encode(large)


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("ms"), pa.timestamp("ns", "UTC")], ids=str)
def test_dates_of_types_of_pyarrow_in_pandas(kind: pa.DataType) -> None:
    dates = pa.array([datetime.datetime(1970, 1, 3), None], pa.timestamp("us")).cast(kind)
    frame = pd.DataFrame({"day": dates.to_pandas(types_mapper=pd.ArrowDtype)})
    with pytest.raises(ValueError, match="column 'day' of `X` holds dates"):
        TableEncoding.learn(frame, "from_dtype").encode(frame)
    np.testing.assert_array_equal(dates_to_numbers(frame)["day"], [2.0, np.nan])


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long doubles are doubles here")
def test_long_doubles_of_a_frame_must_be_doubles() -> None:
    frame = pd.DataFrame({"x": np.array([1, 2], dtype=np.longdouble)})
    encoding = TableEncoding(1, ("x",), {})
    assert encoding.encode(frame).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match=r"numbers that doubles can hold, got 0.3333333333333333333. in column 'x'"):
        encoding.encode(frame / 3)


def test_booleans_in_place_of_numbers_are_refused() -> None:
    """Unless training held booleans there, or nothing is known of training."""
    numbers, booleans = pd.DataFrame({"x": [3, 1, 0]}), pd.DataFrame({"x": [True, True, False]})
    for table in (booleans, pl.from_pandas(booleans), pa.table({"x": [True, False]}), booleans.astype("bool[pyarrow]")):
        with pytest.raises(ValueError, match="column 'x' of `X` holds booleans now: read both tables with the same"):
            TableEncoding.learn(numbers, "from_dtype").encode(table)
    learnt = TableEncoding.learn(booleans, None)
    assert (learnt.booleans, learnt.encode(booleans).T.tolist()) == ((0,), [[1.0, 1.0, 0.0]])
    assert learnt.encode(numbers).T.tolist() == [[3.0, 1.0, 0.0]]
    assert TableEncoding(1, ("x",), {}).encode(booleans).T.tolist() == [[1.0, 1.0, 0.0]]


def test_unseen_and_missing_categories_are_told_apart() -> None:
    """Back in the words of the table, a code of no category is what the caller says, and NaN is nothing."""
    encoding = TableEncoding(1, None, {0: ("cook", "smith")})
    rows = encoding.decode(np.array([[1.0], [-1.0], [np.nan]]), unseen=lambda categories: f"none of {len(categories)}")
    assert rows[:, 0].tolist() == ["smith", "none of 2", None]
