"""Subgroups beside all other rows: counts, intervals and marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import fisher_exact

from derand import StumpClassifier
from derand.metrics import adjust_chances
from derand.report import Report
from tests.report.samples import make_rows


def test_contrasts_are_counted_on_the_rows(mixed: Any) -> None:
    """Certified rows, wrong answers, and those to each true class, for a group and for all other rows."""
    clf, X, y = mixed
    summary = Report(clf, X, y, subgroups=["job"], what_if=False, n_explained=0).to_dict()
    certificates = clf.certify(X)
    wrong = certificates.label != y
    held = ~wrong & (certificates.radius >= 0.25)
    chances = []
    for group in summary["subgroups"][0]["groups"]:
        inside = (X["job"] == group["name"]).to_numpy()
        yes = certificates.label == 1
        wanted = [(held, True), (wrong, True), (wrong, y == 0), (wrong, y == 1), (yes, True)]
        for contrast, (mask, among) in zip(group["contrasts"], wanted, strict=True):
            own, others = inside & among, ~inside & among
            assert (contrast["count"], contrast["n_rows"]) == ((mask & own).sum(), own.sum())
            assert contrast["share"] is not None
            assert contrast["others"] is not None
            assert contrast["difference"] is not None
            exact, shown = (
                100 * contrast["share"]["value"],
                float(contrast["share_text"].split("\N{NO-BREAK SPACE}")[0]),
            )
            assert contrast["kind"] != "certified" or shown <= exact + 1e-9
            assert contrast["kind"] != "wrong" or shown >= exact - 1e-9
            assert contrast["others"]["value"] == (mask & others).sum() / others.sum()
            difference = contrast["difference"]
            assert difference["value"] == contrast["share"]["value"] - contrast["others"]["value"]
            assert difference["low"] <= difference["value"] <= difference["high"]
            table = [[(mask & one).sum(), (~mask & one).sum()] for one in (own, others)]
            chances.append((float(fisher_exact(table).pvalue), contrast["chance"]))
    told = summary["group_comparison"]
    assert told is not None
    assert told["n_comparisons"] == len(chances) == 15
    assert [raised for _, raised in chances] == pytest.approx(adjust_chances([one for one, _ in chances]))


def test_a_planted_difference_is_marked_and_chance_is_not() -> None:
    """A group whose labels were turned around stands out; groups drawn at random do not; two groups are one test."""
    X, y = make_rows(400)
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    turned = np.arange(400) % 5 == 0
    truth = np.where(turned, np.where(y == "yes", "no", "yes"), y)
    groups = {"turned": turned, "chance": np.random.default_rng(0).integers(0, 2, 400)}
    report = Report(clf, X, truth, subgroups=groups, what_if=False, n_explained=0)
    told = report.to_dict()
    planted, chance = told["subgroups"]
    marks = {one["name"]: [contrast["mark"] for contrast in one["contrasts"]] for one in planted["groups"]}
    assert marks["True"] == ["less", "more", "more", "more", ""]
    assert marks["False"] == ["more", "less", "less", "less", ""]
    assert not any(contrast["mark"] for one in chance["groups"] for contrast in one["contrasts"])
    assert told["group_comparison"] is not None
    assert (told["group_comparison"]["n_comparisons"], told["group_comparison"]["n_marked"]) == (10, 4)
    assert "all 10 comparisons of this part taken together" in report.to_html()
    assert "(beyond chance)" in report.to_markdown()
    assert 'data-test="group-answers"' in report.to_html()
    assert "Gets “yes”" in report.to_markdown()


def test_a_group_of_all_rows_or_without_a_class_has_nothing_to_compare() -> None:
    """No difference is told where there are no other rows, or none of the class."""
    X, y = make_rows(60)
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    report = Report(clf, X, y, subgroups={"all": ["a"] * 60, "class": y}, what_if=False, n_explained=0)
    everyone, classes = report.to_dict()["subgroups"]
    assert [one["difference"] for one in everyone["groups"][0]["contrasts"]] == [None] * 5
    assert all(any(contrast["share"] is None for contrast in one["contrasts"]) for one in classes["groups"])
    assert report.to_html()
