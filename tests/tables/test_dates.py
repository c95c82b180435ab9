"""Dates as numbers: days since 1970, whatever library and type they stand in."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from derand import dates_to_numbers
from derand.tables import TableEncoding

DATES = [datetime.datetime(2024, 1, 1, 6), None, datetime.datetime(1969, 12, 31)]
DAYS = [19723.25, np.nan, -1.0]
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame({"when": DATES, "x": [1, 2, 3]}),
    "pandas objects": pd.DataFrame({"when": pd.Series(DATES, dtype=object), "x": [1, 2, 3]}),
    "pandas with a zone": pd.DataFrame({"when": pd.to_datetime(DATES).tz_localize("UTC"), "x": [1, 2, 3]}),
    "polars": pl.DataFrame({"when": DATES, "x": [1, 2, 3]}),
    "pyarrow": pa.table({"when": DATES, "x": [1, 2, 3]}),
    "pyarrow with a zone": pa.table({"when": pa.array(DATES, pa.timestamp("ns", "UTC")), "x": [1, 2, 3]}),
}


def read(frame: Any, name: str) -> list[float]:
    """The numbers of a column, NaN where it is missing."""
    column = frame[name]
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return [np.nan if cell is None else float(cell) for cell in cells]


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_every_frame_gives_the_same_days(frame: Any) -> None:
    """Types of dates are found by themselves; other columns and the frame that was given stay as they are."""
    found = dates_to_numbers(frame)
    assert type(found) is type(frame)
    np.testing.assert_array_equal(read(found, "when"), DAYS)
    assert read(found, "x") == [1, 2, 3]
    assert found is not frame
    assert dates_to_numbers(found[["x"]] if hasattr(found, "iloc") else found.select(["x"])).shape == (3, 1)


def test_dates_without_a_time_are_whole_days() -> None:
    """Also as objects."""
    dates = [datetime.date(2024, 1, 1), None]
    for frame in (pl.DataFrame({"a": dates}), pa.table({"a": dates}), pd.DataFrame({"a": dates})):
        np.testing.assert_array_equal(read(dates_to_numbers(frame), "a"), [19723.0, np.nan])


def test_times_of_another_zone_are_moved() -> None:
    """One hour east of London the day begins an hour earlier."""
    zone = datetime.timezone(datetime.timedelta(hours=6))
    date = datetime.datetime(2024, 1, 1, tzinfo=zone)
    assert read(dates_to_numbers(pd.DataFrame({"a": pd.Series([date], dtype=object)})), "a") == [19722.75]
    assert read(dates_to_numbers(pd.DataFrame({"a": ["2024-01-01T00:00:00+06:00"]}), ["a"]), "a") == [19722.75]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-01-01", 19723.0),
        ("2024-1-1 6:00", 19723.25),
        ("2024-01-01T12:00:00.5", 19723.5 + 0.5 / 86400),
        ("2024-01-01T00:00:00Z", 19723.0),
        ("01.01.2024", 19723.0),
        ("19723", 19723.0),
    ],
)
def test_text_is_read_where_it_is_named(text: str, days: float) -> None:
    """The usual way to write dates, and that with points; days as they are."""
    frame = pd.DataFrame({"a": [text, None]})
    np.testing.assert_array_equal(read(dates_to_numbers(frame, ["a"]), "a"), [days, np.nan])
    assert dates_to_numbers(frame) is frame


@pytest.mark.parametrize("text", ["12/31/2024", "2024-13-01", "soon", "31.02.2024", "2024-01-01 25:00"])
def test_what_is_no_date_is_named(text: str) -> None:
    """Days and months apart by slashes may be either: they are refused."""
    with pytest.raises(ValueError, match=r"column 'a' of `X` holds .*: write dates as 2024-12-31"):
        dates_to_numbers(pd.DataFrame({"a": [text]}), ["a"])


def test_other_columns_and_arrays_are_refused() -> None:
    """With what they are."""
    with pytest.raises(ValueError, match="`columns` names column 'b', which"):
        dates_to_numbers(pd.DataFrame({"a": [1]}), ["b"])
    with pytest.raises(ValueError, match="holds booleans"):
        dates_to_numbers(pd.DataFrame({"a": [True]}), ["a"])
    with pytest.raises(TypeError, match="`frame` must be a pandas, polars or pyarrow frame, got ndarray"):
        dates_to_numbers(np.zeros((2, 2)))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_an_encoding_that_knows_of_dates_reads_them(frame: Any) -> None:
    """As dates, as text and as days."""
    encoding = TableEncoding.learn(dates_to_numbers(frame), "from_dtype").with_dates(["when"])
    assert encoding.dates == (0,)
    for rows in (frame, dates_to_numbers(frame)):
        np.testing.assert_array_equal(encoding.encode(rows)[:, 0], DAYS)
    text = pd.DataFrame({"when": ["2024-01-01 06:00", None, "31.12.1969"], "x": [1, 2, 3]})
    np.testing.assert_array_equal(encoding.encode(text)[:, 0], DAYS)
