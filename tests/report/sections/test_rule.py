"""The text says how the answer is found and which proof gave how many radii; nothing speaks of what a rule lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, Threat, certified_accuracy, certify, distribution
from derand._core.text import plural
from derand.fitted import encode_rows
from derand.report import Report
from tests.report.pages import check_page, join_words
from tests.report.samples import make_rows, make_vote, report_on_bare, series


def test_two_proofs_are_counted(numbers: Any) -> None:
    """A vote's radii are the larger ones of two proofs, and the text says how many rows each one gave."""
    clf, X, y = numbers
    summary = Report(clf, X, y).to_dict()
    found = clf.certify(X).proof
    for one in summary["rule"]["proofs"]:
        assert one["n_rows"] == (found == one["proof"]).sum()
    assert sum(one["n_rows"] for one in summary["rule"]["proofs"]) == len(X)
    paper, second = (plural(int((found == name).sum()), "row") for name in ("paper", "dual"))
    told = f"the larger one of two proofs: the probability of the other label gave it for {paper}"
    assert told in join_words(summary)
    assert f"the worst case of the expected score for {second}" in join_words(summary)
    assert "the label that most noisy copies of the row get" in join_words(summary)


def test_the_paper_s_proof_alone_is_told(numbers: Any) -> None:
    """With proof="paper" the radii are the paper's, and the text says so."""
    clf, X, y = numbers
    report = Report(clf, X, y, proof="paper")
    assert report._inputs.plain.radius.tolist() == clf.certify(X, proof="paper").radius.tolist()
    assert "the proof of the paper: it gave one for" in join_words(report.to_dict())


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_a_rule_and_a_norm_are_certified_as_the_classifier_does(mixed: Any, norm: float) -> None:
    """Radii and curves are those of `certify` with the same rule and threat, and text and axes name the norm."""
    clf, X, y = mixed
    threat = Threat(norm=norm, l0=1)
    report = Report(clf, X, y, rule="mean", threat=threat)
    expected = clf.certify(X, rule="mean", threat=threat)
    summary = report.to_dict()
    assert series(summary, "all") == certified_accuracy(y, expected, summary["scale"]["radii"]).tolist()
    assert summary["threat"]["norm"] == ("inf" if norm == np.inf else norm)
    assert f"(l{norm} norm)" in join_words(summary)
    assert "“1” where the expected score under noise is above the threshold" in join_words(summary)
    assert f"radius (l{norm}, in standard deviations)" in report.to_html()
    assert f"radius (l{norm})" in report.to_latex()
    assert not any(row["key"].startswith("l0=") for row in summary["table"]["rows"])


def test_the_classifier_s_own_rule_is_the_default() -> None:
    """A classifier of the rule "mean" is reported on by it, and labels are those of `predict`."""
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5", rule="mean").fit(X, y)
    report = Report(clf, X, y)
    assert report.to_dict()["rule"]["name"] == "mean"
    assert report._inputs.plain.label.tolist() == clf.predict(X).tolist()


def test_expected_scores_stand_where_failure_masses_would(mixed: Any) -> None:
    """By the rule "mean" a row has a score and a margin, those of its law, no failure mass and no percentile."""
    clf, X, y = mixed
    report = Report(clf, X, y, rule="mean")
    check_page(report)
    rows = report.to_dict()["rows"]
    assert rows["law_axis"]["failure_at"] == []
    for row in rows["table"][:10]:
        law = distribution(clf.ensemble_, encode_rows(clf, X.iloc[[row["row"] - 1]]), clf.noise_)
        mean = float(law.pmf[0] @ law.support)
        assert row["score"] == pytest.approx(mean, abs=0.01)
        assert row["margin"] == pytest.approx(mean - clf.ensemble_.threshold, abs=0.01)
        assert row["failure"] is row["failure_text"] is None
        assert row["law"]["percentile"] == []
        place = (mean - rows["law_axis"]["low"] + 0.5) / rows["law_axis"]["width"]
        assert row["law"]["mean"] == pytest.approx(place, abs=0.06)
    assert "Failure mass" not in report.to_html().split("<script")[0]
    assert "ertified percentile at" not in report.to_html().split("<script")[0]
    assert "failure mass |" not in report.to_markdown()


def test_the_model_as_deployed_has_no_noise_to_show(mixed: Any) -> None:
    """Without noise there are steps and scores, no law and no smooth shape; units are the classifier's."""
    clf, X, y = mixed
    report = Report(clf, X, y, X_train=X, y_train=y, rule="mean", noise="none")
    check_page(report)
    summary = report.to_dict()
    expected = clf.certify(X, rule="mean", noise="none")
    assert series(summary, "all") == certified_accuracy(y, expected, summary["scale"]["radii"]).tolist()
    assert "the model as deployed, without noise" in join_words(summary)
    assert all(row["law"] is None for row in summary["rows"]["table"])
    assert all(shape["smooth"] == [] for shape in summary["shapes"] if shape["kind"] == "numerical")
    assert summary["noise"] | {"unit": "standard", "magnitude": None, "norm": None, "name": "none"} == summary["noise"]
    assert "smoothed by the noise" not in report.to_html()
    assert {one["key"] for one in summary["accuracy"]["baselines"]} == {"constant", "without-noise"}


def test_a_bare_model_without_noise_is_reported_on(numbers: Any) -> None:
    """A bare model takes "none" as its noise, by the rule "mean"."""
    clf, X, _ = numbers
    report = Report(clf.ensemble_, X, noise="none", rule="mean")
    check_page(report)
    assert report._inputs.plain.radius.tolist() == certify(clf.ensemble_, X, None, rule="mean").radius.tolist()


def test_a_vote_of_ensembles_says_what_its_members_answer() -> None:
    """By either rule, the text speaks of members."""
    for rule, told in (("vote", "most noisy copies"), ("mean", "its own expected score")):
        report = report_on_bare(make_vote(), rule=rule)
        check_page(report)
        answer = report.to_dict()["rule"]["answer"]
        assert answer.startswith("a weighted vote of 3 ensembles")
        assert told in answer
