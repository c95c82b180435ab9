"""Limits alone: every count is the certificates', and every witness flips and keeps to the limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import StumpClassifier, Threat
from derand.report import Report
from derand.report.sections.limits import MAX_WITNESSES
from tests.report.pages import check_page, join_words
from tests.report.samples import LIMITS

RULES = [{"rule": "mean"}, {"rule": "vote"}, {"rule": "mean", "noise": "none"}]


@pytest.mark.parametrize("options", RULES)
def test_verdicts_are_counted_for_all_rows_and_each_class(mixed: Any, options: dict[str, str]) -> None:
    """Counts, sentence, headline and accuracy are what the certificates say, in every format."""
    clf, X, y = mixed
    report = Report(clf, X, y, threat=LIMITS, subgroups="job", **options)
    check_page(report)
    found = clf.certify(X, threat=LIMITS, **options)
    summary = report.to_dict()
    verdicts = summary["verdicts"]
    groups = [np.ones(len(X), dtype=bool), y == 0, y == 1]
    for count, at in zip(verdicts["counts"], groups, strict=True):
        assert count["n_rows"] == at.sum()
        for name in ("holds", "flips", "undecided"):
            assert count[name] == (found.verdict[at] == name).sum()
    flips, holds, undecided = (verdicts["counts"][0][name] for name in ("flips", "holds", "undecided"))
    assert flips > 0
    sentence = f"{flips} of 120 decisions can be flipped within these limits; {holds} are proven to hold; {undecided} "
    assert verdicts["sentence"].startswith(sentence)
    assert summary["guarantee"]["paragraph"].startswith(sentence)
    assert sentence.strip() in report.to_html()
    assert f"| all rows | 120 | {flips} | {holds} | {undecided} |" in report.to_markdown()
    assert f"all rows & 120 & {flips} & {holds} & {undecided}" in report.to_latex()
    right = float(((found.verdict == "holds") & (found.label == y)).mean())
    assert [row["values"] for row in summary["table"]["rows"] if row["key"] == "all"] == [[right]]
    assert sum(group["flips"] for group in summary["subgroups"][0]["groups"]) == flips
    assert summary["moves"] == []


@pytest.mark.parametrize("options", RULES)
def test_witnesses_flip_and_keep_to_the_limits(mixed: Any, options: dict[str, str]) -> None:
    """A row with the told changes gets the other answer; frozen columns and all others are as they were."""
    clf, X, y = mixed
    verdicts = Report(clf, X, y, threat=LIMITS, **options).to_dict()["verdicts"]
    found = clf.certify(X, threat=LIMITS, **options)
    first = np.flatnonzero(found.flips)[:MAX_WITNESSES]
    assert [one["row"] - 1 for one in verdicts["witnesses"]] == first.tolist()
    for witness in verdicts["witnesses"]:
        row = X.iloc[[witness["row"] - 1]].copy()
        categories = 0
        for change in witness["changes"]:
            name = change["name"]
            if change["after_value"] is None:
                assert change["before"] == row[name].iloc[0]
                row[name] = None if change["after"] == "(missing or new)" else change["after"]
                categories += 1
            else:
                assert abs(change["after_value"] - change["before_value"]) <= 0.2 * abs(change["before_value"]) + 1e-12
                row[name] = change["after_value"]
        assert categories <= 1
        assert "town" not in {change["name"] for change in witness["changes"]}
        (label,) = clf.certify(row, **options).label.tolist()
        assert str(label) == witness["other"] != witness["label"]


def test_the_weakest_rows_are_those_that_flip(mixed: Any) -> None:
    """The row table shows verdicts, those that flip first, and explains them by their witnesses."""
    clf, X, y = mixed
    report = Report(clf, X, y, rule="mean", threat=LIMITS)
    rows = report.to_dict()["rows"]
    order = [["flips", "undecided", "holds"].index(row["verdict"]) for row in rows["table"]]
    assert order == sorted(order)
    assert [row["radius_text"] for row in rows["table"]] == [[row["verdict"]] for row in rows["table"]]
    attack = rows["explained"][0]["attack"]
    assert attack["found"]
    assert attack["distance"] is None
    assert "A change within the limits flips it" in report.to_html()
    assert "radius" not in report.to_markdown().split("## How it was computed")[0].lower()


def test_whole_numbers_stay_whole_and_names_are_cut() -> None:
    """A witness at a whole value is shown as one, a small move in full, and long names and many columns are cut."""
    rng = np.random.default_rng(0)
    names = [f"Zahl {k} {'lang ' * 20}" for k in range(9)]
    X = pd.DataFrame(rng.integers(0, 100_000, (200, 9)), columns=names)
    y = (X.sum(axis=1) > 450_000).to_numpy().astype(int)
    clf = StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean").fit(X, y)
    report = Report(clf, X, y, threat=Threat(norm=None, limits={"*": 20_000}))
    check_page(report)
    verdicts = report.to_dict()["verdicts"]
    assert len(verdicts["witnesses"]) == MAX_WITNESSES < verdicts["counts"][0]["flips"]
    for witness in verdicts["witnesses"]:
        for change in witness["changes"]:
            assert change["before"] == str(int(change["before_value"]))
            assert change["after"] != change["before"]
            if change["after_value"].is_integer():
                assert change["after"] == str(int(change["after_value"]))
    assert "more column" in report.to_markdown()
    assert max(len(line) for line in report.to_markdown().splitlines() if line.startswith("| ")) < 1000
    assert "limits: every number by at most 20000" in join_words(report.to_dict()).lower()


def test_nothing_flips_where_nothing_may_change(mixed: Any) -> None:
    """With everything frozen all rows hold, and no witness is shown."""
    clf, X, y = mixed
    report = Report(clf, X, y, rule="mean", threat=Threat(norm=None, frozen=list(X.columns)))
    check_page(report)
    verdicts = report.to_dict()["verdicts"]
    assert verdicts["witnesses"] == []
    assert verdicts["counts"][0]["holds"] == 120
    assert "no number that the model reads" in join_words(report.to_dict())
