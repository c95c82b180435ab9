"""The page lists all rows in columns, the weakest first; some of them have details."""

from __future__ import annotations

from typing import Any

import numpy as np

from derand import StumpClassifier
from derand.report import Report
from tests.report.samples import make_rows


def test_every_row_is_listed_and_some_have_details() -> None:
    """Columns are those of the certificates; rows with details are the weakest and a sample, in their places."""
    X, y = make_rows(900)
    clf = StumpClassifier(noise="gaussian:0.5").fit(X[:200], y[:200])
    summary = Report(clf, X, y, n_detailed=40, n_explained=2).to_dict()
    listed, table = summary["rows"]["listed"], summary["rows"]["table"]
    found = clf.certify(X)
    at = np.array(listed["row"]) - 1
    assert sorted(at.tolist()) == list(range(900))
    assert listed["radius"] == [found.radius[at].tolist()]
    assert listed["radius"][0] == sorted(found.radius.tolist())
    classes = np.array(summary["model"]["classes"])
    assert classes[listed["label"]].tolist() == [str(one) for one in found.label[at]]
    assert classes[listed["truth"]].tolist() == [str(one) for one in y[at]]
    assert not summary["rows"]["sampled"]
    assert [listed["row"][place] for place in listed["detailed"]] == [row["row"] for row in table]
    assert listed["detailed"][:10] == list(range(10))
    assert len(table) == 40
    assert summary["what_if"]["n_rows"] == 900
    column = summary["what_if"]["columns"][0]["feature"]
    assert summary["what_if"]["cells"][0] == X[at, column].tolist()
    assert any("40 rows of the table: the 10 weakest" in note for note in summary["left_out"])


def test_no_more_rows_are_listed_than_asked_for(numbers: Any) -> None:
    clf, X, y = numbers
    rows = Report(clf, X, y, max_rows=12, n_explained=0).to_dict()["rows"]
    assert len(rows["listed"]["row"]) == len(rows["table"]) == 12
    assert rows["sampled"]
    assert rows["listed"]["detailed"] == list(range(12))
