"""The text says this model's numbers, and only what is proven."""

from __future__ import annotations

from typing import Any

from derand import certified_accuracy
from derand._core.text import format_exactly
from derand.report import Report
from derand.report._markup import percent
from derand.report.sections.computed import list_facts
from tests.report.samples import make_vote, report_on_bare, report_on_words, series


def test_a_chosen_radius_is_quoted(numbers: Any) -> None:
    """The text, the table and the curves speak of the radius that was asked for."""
    clf, X, y = numbers
    summary = Report(clf, X, y, radius=0.123).to_dict()
    assert summary["scale"]["quoted"] == 0.123
    assert 0.123 in summary["table"]["radii"]
    share = certified_accuracy(y, clf.certify(X), [0.123])[0]
    assert series(summary, "all")[summary["scale"]["radii"].index(0.123)] == share
    assert "smaller than 0.123" in summary["guarantee"]["paragraph"]
    assert percent(share) in summary["guarantee"]["paragraph"]


def test_the_text_tells_what_changed_categories_leave(mixed: Any) -> None:
    """With categories, the paragraph and the headline give the share that holds where one of them changes."""
    clf, X, y = mixed
    summary = Report(clf, X, y).to_dict()
    share = percent(series(summary, "l0=1")[summary["scale"]["radii"].index(summary["scale"]["quoted"])])
    assert f"{share} of the rows remain" in summary["guarantee"]["paragraph"]
    (headline,) = [one for one in summary["guarantee"]["numbers"] if one["name"] == "With 1 category changed"]
    assert headline["value"] == share
    assert any("0 to 2 changed ones" in limit for limit in summary["guarantee"]["limits"])


def test_the_paragraph_is_short_and_the_rest_stands_in_tables() -> None:
    """One to three sentences; rule, proofs and the threat are facts; the median is a headline, cut."""
    report = report_on_bare(make_vote())
    summary = report.to_dict()
    assert len(summary["guarantee"]["paragraph"]) < 300
    facts = dict(list_facts(summary))
    assert "weighted vote" in facts["Rule"]
    assert "rounding errs on the safe side" in facts["Proof"]
    (median,) = [one["value"] for one in summary["guarantee"]["numbers"] if one["name"] == "Median radius"]
    assert float(median) <= float(summary["radii"]["median"]) < float(median) + 0.01
    assert "<details" not in report.to_html().split("What is not guaranteed")[1].split("</ul>")[0]


def test_the_radius_of_the_text_is_the_same_for_every_model(numbers: Any) -> None:
    """0.25 whatever the rows and the model; the text says where the radius comes from, and what was trained for."""
    clf, X, y = numbers
    for rows in (X, X / 50, X * 50):
        summary = Report(clf, rows, y, n_explained=0, what_if=False, max_rows=5).to_dict()
        assert summary["scale"]["quoted"] == 0.25
        assert summary["scale"]["end"] <= 2 * max(summary["histogram"]["edges"][-1], 0.25)
    assert "The radius 0.25 is that of every report" in summary["guarantee"]["measure"]
    stated = Report(clf, X, y, radius=0.5, n_explained=0, what_if=False, max_rows=5).to_dict()
    assert "The radius 0.5 was stated" in stated["guarantee"]["measure"]


def test_a_radius_far_beyond_all_others_does_not_squeeze_the_charts(numbers: Any) -> None:
    """The axis ends where the radii do, and the text speaks of the radius all the same."""
    clf, X, y = numbers
    summary = Report(clf, X, y, radius=1000.0, n_explained=0, what_if=False, max_rows=5).to_dict()
    assert summary["scale"]["end"] < 10
    assert summary["scale"]["radii"][-1] == 1000.0
    assert series(summary, "all")[-1] == 0.0


def test_a_model_without_numbers_promises_no_radius() -> None:
    """Where no number is read, the text says so, and there is no measure of a change."""
    guarantee = report_on_words(subgroups="job").to_dict()["guarantee"]
    assert "the model reads none" in guarantee["paragraph"]
    assert guarantee["measure"] == ""


def test_an_example_in_units_of_one_is_left_out(numbers: Any) -> None:
    """A move by less than 0.25 is smaller than 0.25: nobody needs to be told."""
    clf, X, y = numbers
    summary = Report(clf, X, y, n_explained=0, max_rows=5, what_if=False).to_dict()
    quoted, measure = format_exactly(summary["scale"]["quoted"]), summary["guarantee"]["measure"]
    assert f"by less than {quoted} is smaller than {quoted}" not in measure
    notes = {one["name"]: one["note"] for one in summary["guarantee"]["numbers"]}
    assert notes["Median radius"] == "half of all rows, right or wrong, have this or more"
