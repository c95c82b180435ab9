"""Every output is whole and small, and text from the data stays text."""

from __future__ import annotations

import warnings

import numpy as np

from derand import StumpClassifier
from derand.report import Report
from tests.report.pages import check_page
from tests.report.samples import make_mixed, make_rows

NASTY = '</script><script>alert("x")</script> & <b>'


def test_many_columns_with_long_foreign_names_stay_small() -> None:
    """500 columns of long, non-ASCII names: the page stays below the limit and names are cut."""
    X, y = make_rows(200, 500)
    names = [f"Messgröße {k} «{'sehr ' * 40}lang» 測定値" for k in range(500)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = StumpClassifier(noise="gaussian:0.5", max_entropy=10.0).fit(X, y)
    report = Report(clf, X, y, feature_names=names)
    check_page(report)
    assert len(report.to_dict()["shapes"]) == 24
    assert len(report.to_dict()["moves"]) == 500


def test_text_from_the_data_is_escaped() -> None:
    """Names, categories, labels, groups and titles cannot become markup, in any format."""
    frame, target = make_mixed()
    frame.columns = [NASTY + "1", NASTY + "2", "a|b_$%"]
    frame[NASTY + "2"] = frame[NASTY + "2"].replace("cook", NASTY)
    labels = np.where(target == 1, NASTY, "<i>no</i>")
    clf = StumpClassifier(noise="gaussian:0.5", scaling="standard").fit(frame, labels)
    report = Report(clf, frame, labels, title=NASTY, subgroups=[NASTY + "2", NASTY + "1"])
    page = check_page(report)
    assert len(page.all("script")) == 4  # data and script of the page, and of "What if"
    assert not page.all("b")
    assert not page.all("i")
    assert "<script>alert" not in report._repr_html_()
    assert "<b>" not in report.to_markdown()
    assert r"\$\%" in report.to_latex().replace(r"\_", "") or r"\textless{}" in report.to_latex()
    (table,) = [part for part in report.to_markdown().split("\n\n") if part.startswith("| column | half")]
    assert len({line.replace(r"\|", "").count("|") for line in table.splitlines()}) == 1
