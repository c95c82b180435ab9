"""Reports on rows with missing numbers: every part of the page is there, and what may go missing is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier, Threat
from derand.report import Report
from tests.report.pages import check_page, join_words
from tests.report.samples import make_mixed


def make_gaps() -> tuple[StumpClassifier, pd.DataFrame, np.ndarray]:
    frame, y = make_mixed()
    rng = np.random.default_rng(4)
    frame["income"] = rng.exponential(3, len(frame)).round(2)
    for name in ("age", "income"):
        frame.loc[rng.random(len(frame)) < 0.2, name] = np.nan
    clf = StumpClassifier(noise="gaussian:0.3", scaling="standard", class_weight="balanced", max_entropy=1.0)
    return clf.fit(frame, y), frame, y


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_a_report_on_rows_with_gaps(rule: str) -> None:
    """In all formats, with groups, shapes, moves and explanations; a missing value is called so."""
    clf, frame, y = make_gaps()
    report = Report(clf, frame, y, X_train=frame, y_train=y, subgroups=["age", "job"], rule=rule, max_rows=200)
    check_page(report)
    summary = report.to_dict()
    shapes = {shape["name"]: shape for shape in summary["shapes"]}
    age: Any = shapes["age"]
    assert age["missing"]["count"] == int(frame["age"].isna().sum())
    assert np.isfinite([age["low"], age["high"], *age["smooth"]]).all()
    assert "(missing)" in {group["name"] for group in summary["subgroups"][0]["groups"]}
    values = [push["value"] for row in summary["rows"]["table"] for push in (row["pushes"] or {"listed": []})["listed"]]
    assert "(missing)" in values
    assert "Numbers that go missing, or missing ones that appear, are not covered." in summary["guarantee"]["limits"]
    assert summary["threat"]["missing"] == 0


def test_numbers_that_may_go_missing_are_told_by_name() -> None:
    """The budget, the columns, and what stays where there is none."""
    clf, frame, y = make_gaps()
    told = Report(clf, frame, y, threat=Threat(missing=1, l0=1)).to_dict()
    check_page(Report(clf, frame, y, threat=Threat(missing=1, l0=1)))
    assert (
        "up to 1 number of “age” and “income” may go missing or, where it is missing, appear as any number"
        in join_words(told)
    )
    assert "up to 1 category and of up to 1 number that may go missing or appear" in told["guarantee"]["paragraph"]
    assert told["threat"]["missing"] == 1
    frozen = Report(clf, frame, y, threat=Threat(missing=2, frozen=["income"])).to_dict()
    assert "At the same time “age” may go missing" in join_words(frozen)
    fixed = Report(clf, frame, y, threat=Threat(norm=1)).to_dict()
    assert "No number goes missing, and none that is missing appears." in join_words(fixed)


def test_witnesses_tell_what_goes_missing() -> None:
    """A number that goes missing or appears has no move."""
    clf, frame, y = make_gaps()
    threat = Threat(norm=None, limits={"age": 0.1, "income": 0.1}, missing=1)
    report = Report(clf, frame, y, threat=threat, rule="mean", max_rows=200)
    check_page(report)
    table = report.to_dict()["verdicts"]
    assert table is not None
    changes = [change for witness in table["witnesses"] for change in witness["changes"]]
    gone = [change for change in changes if "(missing)" in (change["before"], change["after"])]
    assert gone
    assert all(change["move"] == "" for change in gone)


def test_a_column_that_is_missing_throughout_the_report() -> None:
    """Nothing of it can be drawn but its steps."""
    clf, frame, y = make_gaps()
    check_page(Report(clf, frame.assign(age=np.nan), y, subgroups="age"))
