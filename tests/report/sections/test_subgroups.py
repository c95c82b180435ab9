"""Subgroups are measured on their own rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, certified_accuracy
from derand.report import Report
from tests.report.samples import make_rows


def test_subgroups_are_the_metrics_of_their_rows(mixed: Any) -> None:
    """Groups by a category, by a number and by what the user brings, each measured on its own rows."""
    clf, X, y = mixed
    summary = Report(clf, X, y, subgroups=["job", "age"]).to_dict()
    certificates = clf.certify(X)
    jobs, ages = summary["subgroups"]
    for group in jobs["groups"]:
        at = np.flatnonzero(X["job"] == group["name"])
        assert group["n_rows"] == at.size
        assert group["certified"] == certified_accuracy(y[at], certificates[at], [summary["scale"]["quoted"]])[0]
        assert (certificates.radius[at] >= float(group["median_radius"])).mean() >= 0.5
    limit = float(ages["groups"][0]["name"].removeprefix("up to "))
    assert ages["groups"][0]["n_rows"] == (X["age"] <= limit).sum()
    assert [group["n_rows"] for group in ages["groups"]] == pytest.approx([len(X) / 4] * 4, abs=3)
    assert ages["groups"][-1]["name"].startswith("above")
    own = Report(clf, X, y, subgroups={"my groups": ["a"] * 50 + [None] * (len(X) - 50)}).to_dict()["subgroups"]
    assert [(group["name"], group["n_rows"]) for group in own[0]["groups"]] == [("(missing or new)", 70), ("a", 50)]


def test_many_groups_are_put_together(numbers: Any) -> None:
    """Beyond a dozen kinds the rarest share one line."""
    clf, X, y = numbers
    report = Report(clf, X, y, subgroups={"kind": [str(k % 40) for k in range(len(X))]})
    (group,) = report.to_dict()["subgroups"]
    assert len(group["groups"]) == 12
    assert group["groups"][0]["name"] == "(other, 29 kinds)"


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("nothing", "names the column 'nothing'"),
        (7, "by number from 0 to 2"),
        ({"a": [1]}, r"`groups\['a'\]` must"),
    ],
)
def test_groups_that_are_not_there_are_refused_with_a_hint(numbers: Any, groups: Any, message: str) -> None:
    """Errors name the columns that there are, or how many groups are needed."""
    clf, X, y = numbers
    with pytest.raises(ValueError, match=message):
        Report(clf, X, y, subgroups=groups).to_dict()


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (5, ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"]),
        (80, ["2024-01", "2024-02", "2024-03"]),
        (500, [*(f"2024, quarter {k}" for k in (1, 2, 3, 4)), "2025, quarter 1", "2025, quarter 2"]),
        (1500, ["2024", "2025", "2026", "2027", "2028"]),
    ],
)
def test_dates_are_put_together_in_order(days: int, expected: list[str]) -> None:
    """By day, month, quarter or year, not by the most frequent single days; as text, and as numpy's dates."""
    X, y = make_rows(120)
    dates = np.datetime64("2024-01-01") + np.arange(120) * days // 120
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    for given in (dates, [str(date) + "T10:00" for date in dates]):
        (found,) = Report(clf, X, y, subgroups={"opened": given}, n_explained=0).to_dict()["subgroups"]
        assert [one["name"] for one in found["groups"]] == expected
        assert sum(one["n_rows"] for one in found["groups"]) == 120
