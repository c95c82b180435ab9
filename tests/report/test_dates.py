"""Columns that were dates are shown as dates: in rows, changes, moves, shapes and "What if"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier, Threat, dates_to_numbers
from derand.report import Report
from tests.report.pages import check_page


@pytest.fixture(scope="module")
def dated() -> tuple[Any, pd.DataFrame, np.ndarray]:
    """A model of dates, as `derand train --dates` gives it."""
    rng = np.random.default_rng(0)
    opened = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, size=120), unit="D")
    frame = pd.DataFrame({"opened": opened, "sum": rng.normal(size=120)})
    y = np.where((opened > pd.to_datetime("2024-08-01")) ^ (frame["sum"] > 1.5), "new", "old")
    clf = StumpClassifier(noise="gaussian:0.2", scaling="standard", rule="mean").fit(dates_to_numbers(frame), y)
    clf.encoding_ = clf.encoding_.with_dates(["opened"])
    return clf, frame, y


def test_rows_moves_and_shapes_show_dates(dated: Any) -> None:
    """What pushes a row, how far the column may move, and the axis of its shape."""
    clf, frame, y = dated
    report = Report(clf, frame, y, n_explained=1)
    check_page(report)
    told = report.to_dict()
    for row in told["rows"]["table"][:5]:
        (value,) = (one["value"] for one in row["pushes"]["listed"] if one["feature"] == 0)
        assert value == frame["opened"][row["row"] - 1].date().isoformat()
    (move,) = (one for one in told["moves"] if one["name"] == "opened")
    assert move["days"]
    assert " days if nothing else moves" in move["sentence"]
    assert " days" in report.to_markdown()
    page = report.to_html()
    assert f"{frame['opened'].min().date()} to {frame['opened'].max().date()}" in page
    (column,) = (one for one in told["what_if"]["columns"] if one["name"] == "opened")
    assert column["date"]


def test_changes_within_limits_are_told_as_dates(dated: Any) -> None:
    """Before and after are days of the calendar, and the move is in days."""
    clf, frame, y = dated
    threat = Threat(norm=None, limits={"opened": 60})
    report = Report(clf, frame, y, threat=threat, what_if=False, subgroups=["opened"])
    (first, *_, last) = (one["name"] for one in report.to_dict()["subgroups"][0]["groups"])
    days = frame["opened"].quantile([0.25, 0.75], interpolation="lower").dt.date
    assert (first, last) == (f"up to {days[0.25]}", f"after {days[0.75]}")
    column = report.to_dict()["threat_table"]["columns"][0]
    assert (column["kind"], column["change"]) == ("date", "by at most 60 days")
    assert "“opened” by at most 60 days" in report.to_markdown()
    witnesses = report.to_dict()["verdicts"]["witnesses"]
    assert witnesses
    for witness in witnesses:
        (change,) = witness["changes"]
        assert change["before"] == frame["opened"][witness["row"] - 1].date().isoformat()
        assert pd.Timestamp(change["after"]).year in (2024, 2025)
        assert change["move"].endswith(" days")
