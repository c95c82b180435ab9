"""Threats are told in words and in the user's column names, and radii, moves and flips keep to them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, Threat
from derand.report import Report
from derand.report.sections.weakest import search_flips
from tests.report.pages import check_page, join_words
from tests.report.samples import CASES, make_rows

BOUNDED = Threat(
    norm=2,
    l0=1,
    unseen=False,
    frozen=["town"],
    limits={"age": (5.0, 2.5)},
    domain={"age": (-100.0, 200.0)},
)


def test_every_part_of_a_threat_is_told_by_name(mixed: Any) -> None:
    """Norm, units, categories, frozen columns, limits and domains are in the guarantee, in all formats."""
    clf, X, y = mixed
    report = Report(clf, X, y, threat=BOUNDED)
    check_page(report)
    words = join_words(report.to_dict())
    for told in (
        "(l2 norm)",
        "its standard deviation in the training data",
        "“age” down by at most 5 and up by at most 2.5",
        "“age” stays between -100 and 200",
        "Frozen: “town” does not change",
        "“job” may take any value that training saw",
    ):
        assert told in words
        assert told in report.to_html().replace("&#34;", '"')
    assert "Frozen: “town”" in report.to_markdown()
    assert "Frozen: “town”" in report.to_latex()


@pytest.mark.parametrize(
    ("scaling", "unit", "axis"),
    [
        ("standard", "its standard deviation", "in standard deviations"),
        ("range", "its range", "in ranges"),
        ("robust", "its interquartile range", "in interquartile ranges"),
    ],
)
def test_what_a_change_is_divided_by_is_told(scaling: str, unit: str, axis: str) -> None:
    """Every scaling has its words, in the text and on the axis."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 0
    report = Report(StumpClassifier(scaling=scaling).fit(X, y), X, y)
    assert f"{unit} in the training data" in report.to_html()
    assert axis in report.to_html()


def test_columns_of_a_bare_model_go_by_number_or_shown_name(numbers: Any) -> None:
    """A frozen column may be named as the report shows it."""
    clf, X, _ = numbers
    for column, names in ((1, None), ("feature 1", None), ("b", ["a", "b", "c"])):
        threat = Threat(frozen=[column])
        report = Report(clf.ensemble_, X, noise="gaussian:0.5", feature_names=names, threat=threat)
        assert report._inputs.threat.frozen == (1,)
        assert report.to_dict()["threat"]["frozen"] == [names[1] if names else "feature 1"]


def test_frozen_columns_have_no_moves_and_no_flips(numbers: Any) -> None:
    """Nothing is said about the move of a frozen column, and a flip that would move one is no flip."""
    clf, X, y = numbers
    report = Report(clf, X, y, threat=Threat(frozen=[0]))
    assert [move["feature"] for move in report.to_dict()["moves"]] == [1, 2]
    for attack in search_flips(report._inputs, range(0, 80, 8)):
        if attack["found"]:
            assert all(change["name"] != "feature 0" for change in attack["changes"])


def test_moves_tell_their_limits(mixed: Any) -> None:
    """A move within a ball is told with the limit that holds besides."""
    clf, X, y = mixed
    report = Report(clf, X, y, threat=BOUNDED)
    (move,) = report.to_dict()["moves"]
    assert move["limit"] == "down by at most 5 and up by at most 2.5, between -100 and 200"
    assert move["limit"] in report.to_html()
    assert "| limit |" in report.to_markdown()


def test_a_move_of_all_columns_never_flips_a_row(numbers: Any) -> None:
    """In linf, rows of the median radius keep their answer when every column moves by what the table says."""
    clf, X, y = numbers
    threat = Threat(norm=np.inf)
    summary = Report(clf, X, y, rule="mean", threat=threat).to_dict()
    found = clf.certify(X, rule="mean", threat=threat)
    sure = found.radius >= float(summary["radii"]["median"])
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = X[sure].copy()
        for move in summary["moves"]:
            moved[:, move["feature"]] += rng.choice([-1, 1], sure.sum()) * float(move["half_of_rows"])
        again = clf.certify(moved, rule="mean", threat=threat)
        assert (again.label == found.label[sure]).all()
    assert "while every other column moves as far" in summary["moves"][0]["sentence"]


def test_radii_that_count_columns_are_whole_numbers() -> None:
    """For norm 0 the scale, the bins and the radius of the text count columns."""
    X, y = make_rows(80, 6)
    y = np.where(X.sum(axis=1) > 0, "yes", "no")
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    report = Report(clf, X, y, rule="mean", threat=Threat(norm=0))
    check_page(report)
    summary = report.to_dict()
    radius = clf.certify(X, rule="mean", threat=Threat(norm=0)).radius
    assert radius.max() >= 1
    assert all(float(value).is_integer() for value in summary["scale"]["radii"])
    assert summary["histogram"]["right"][0] + summary["histogram"]["wrong"][0] == (radius == 1).sum()
    assert "columns that may become anything" in report.to_html()
    assert re.search(r"no change of any (one|\d+) of the row's numbers", summary["guarantee"]["paragraph"])
    assert {move["half_of_rows"] for move in summary["moves"]} <= {"inf", 0.0}
    with pytest.raises(ValueError, match="`radius` must be a whole number of columns"):
        Report(clf, X, y, radius=0.5, rule="mean", threat=Threat(norm=0)).to_dict()


@pytest.mark.parametrize("case", CASES)
def test_nothing_shows_nan(case: str) -> None:
    """What does not exist is left out, in every format."""
    report = CASES[case][0]()
    page = report.to_html().split('<script type="application/json"')[0]
    for text in (page.split("</style>")[1], report.to_markdown(), report.to_latex()):
        assert not re.search(r"\bnan\b", text, re.IGNORECASE)
        assert "None" not in text.replace("=None", "")
    assert not any(math.isnan(float(row["radius"][0])) for row in report.to_dict()["rows"]["table"])


def test_steps_and_allowed_categories_are_told(mixed: Any) -> None:
    """What a number moves by, and the only values that a category may take."""
    clf, X, y = mixed
    number = next(name for name in X.columns if X[name].dtype.kind in "if")
    word = next(name for name in X.columns if X[name].dtype.kind not in "if")
    value = str(X[word].iloc[0])
    threat = Threat(norm=None, limits={number: 2}, steps={number: 1}, l0=1, may_become={word: [value]})
    told = " ".join(Report(clf, X, y, threat=threat).to_dict()["threat"]["sentences"])
    assert f"Whole steps: “{number}” by 1." in told
    assert f"“{word}” only {value}" in told
