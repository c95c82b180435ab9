"""The row table shows the weakest rows, their exact laws and percentiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveEnsemble, StumpClassifier, certify
from derand.report import Report
from tests.report.pages import check_page
from tests.report.samples import make_rows


def test_laws_on_the_wrong_side_are_the_failure_mass(numbers: Any) -> None:
    """The cdf at the threshold's bin is the failure mass, or what is left of it, to the picture's resolution."""
    clf, X, y = numbers
    rows = Report(clf, X, y).to_dict()["rows"]
    axis = rows["law_axis"]
    for row in rows["table"]:
        law = row["law"]
        at = axis["threshold_bin"] - 1 - law["start"]
        below = 0 if at < 0 else law["cdf"][min(at, len(law["cdf"]) - 1)] / 1000
        expected = row["failure"] if row["is_one"] else 1 - row["failure"]
        assert below == pytest.approx(expected, abs=2e-3)


def test_percentiles_pass_the_threshold_at_the_certified_radius(numbers: Any) -> None:
    """A row's percentile is on the answer's side at exactly the radii at which it is certified."""
    clf, X, y = numbers
    summary = Report(clf, X, y).to_dict()
    axis = summary["rows"]["law_axis"]
    for row in summary["rows"]["table"]:
        for radius, place in zip(summary["scale"]["radii"], row["law"]["percentile"], strict=True):
            if abs(radius - row["radius"][0]) > 1e-6:
                assert ((place > axis["threshold_bin"]) == row["is_one"]) == (row["radius"][0] > radius)


def test_fine_models_show_the_laws_of_fewer_rows(numbers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where laws would take too long, only the first rows have one; the explained ones always do."""
    clf, X, y = numbers
    monkeypatch.setattr("derand.report.sections.rows._LAW_NUMBERS", 1)
    monkeypatch.setattr("derand.report.sections.rows._CHUNK_NUMBERS", 1)
    report = Report(clf, X, y, n_explained=2)
    check_page(report)
    table = report.to_dict()["rows"]["table"]
    assert all(row["law"] for row in table[:2])
    assert table[2]["law"] is table[-1]["law"] is None
    assert any("distributions of 2 rows" in note for note in report.to_dict()["left_out"])


def test_failure_masses_below_all_doubles_are_bounded_by_a_power_of_ten() -> None:
    """Far from every edge the failure mass is shown by its logarithm, rounded up."""
    model = AdditiveEnsemble.from_stumps([0], [0.0], [0.1], [0.9], n_features=1)
    (row,) = Report(model, [[30.0]], noise="gaussian:0.5").to_dict()["rows"]["table"]
    log_failure = certify(model, [[30.0]], "gaussian:0.5").log_failure[0]
    assert row["failure_text"].startswith("below 1e-")
    assert float(row["failure_text"].removeprefix("below 1e")) >= log_failure / math.log(10)


def test_the_weakest_rows_come_first_and_a_sample_is_announced() -> None:
    """Of many rows the table shows the weakest and a sample, and says so; all other numbers count every row."""
    X, y = make_rows(2000)
    clf = StumpClassifier(noise="gaussian:0.5").fit(X[:200], y[:200])
    report = Report(clf, X, y, max_rows=60, n_explained=3)
    summary = report.to_dict()
    radius = clf.certify(X).radius
    shown = [row["row"] - 1 for row in summary["rows"]["table"]]
    assert len(shown) == len(set(shown)) == 60
    assert radius[shown[:15]].tolist() == np.sort(radius)[:15].tolist()
    assert [row["radius"][0] for row in summary["rows"]["table"]] == radius[shown].tolist()
    assert any("60 rows of 2,000" in note for note in summary["left_out"])
    assert "60 rows of 2,000" in report.to_html()
    assert sum(summary["histogram"]["right"]) + sum(summary["histogram"]["wrong"]) <= 2000
    histogram = summary["histogram"]
    beside = histogram["beyond"] + histogram["nothing_certified"] + histogram["cannot_flip"]
    assert sum(histogram["right"]) + sum(histogram["wrong"]) + beside == 2000


def test_rows_are_named_by_the_index_of_a_frame() -> None:
    """An index of its own names rows wherever they stand, escaped; the default one leaves numbers."""
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0]}, index=["<b>A-1</b>", "A-2", "A-3", "A-4"])
    y = ["no", "no", "yes", "yes"]
    clf = StumpClassifier(noise="gaussian:0.5").fit(frame, y)
    report = Report(clf, frame, y, notes=["Look at <i>code_1</i>."], left_out=["<u>id</u> is not read."])
    told = [report.to_html(), report.to_markdown(), report.to_latex(), report.to_json()]
    parts = ("&lt;i&gt;code_1&lt;/i&gt;", r"\<i\>code\_1", r"code\_1", "<i>code_1</i>")
    assert all(part in text for part, text in zip(parts, told, strict=True))
    assert "&lt;u&gt;id&lt;/u&gt; is not read." in told[0]
    assert {row["name"]: row["row"] for row in report.to_dict()["rows"]["table"]}["A-3"] == 3
    page = report.to_html()
    assert "&lt;b&gt;A-1&lt;/b&gt;" in page
    assert "<b>A-1" not in page
    assert "A-2" in report.to_markdown()
    plain = Report(clf, frame.reset_index(drop=True), y)
    assert all(row["name"] is None for row in plain.to_dict()["rows"]["table"])
    named = Report(clf, frame, y, row_names=["p", "q", None, "s"])
    assert {row["name"] for row in named.to_dict()["rows"]["table"]} == {"p", "q", None, "s"}
    with pytest.raises(ValueError, match="one name per row, 4 in all, got 1"):
        Report(clf, frame, y, row_names=["p"])
