"""How good the answers are, beside a constant one, in every output; a worthless model is told at the very top."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

from derand import AdditiveClassifier, StumpClassifier, Threat, measure_answers
from derand.fitted import grade_rows
from derand.report import Report
from tests.app.jobs.tables import make_loans
from tests.report.pages import check_page
from tests.report.samples import make_rows, make_vote, report_on_bare


@pytest.fixture(scope="module")
def collapsed() -> Report:
    """12 % positives, and so much noise that every row gets the other label."""
    frame = make_loans()
    X, y = frame[["age", "debt"]], frame["outcome"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = StumpClassifier(noise="gaussian:1", scaling="standard").fit(X, y)
    return Report(clf, X, y)


@pytest.fixture(scope="module")
def weighed() -> tuple[AdditiveClassifier, Any, np.ndarray, Report]:
    """The same with class weights, by a model whose probabilities are some."""
    frame = make_loans()
    X, y = frame[["age", "debt"]], frame["outcome"].to_numpy()
    clf = AdditiveClassifier(radius=0.02, regularization=1.0, class_weight="balanced").fit(X, y)
    return clf, X, y, Report(clf, X, y)


def test_a_collapsed_model_is_told_at_the_top_of_every_output(collapsed: Report) -> None:
    """Nobody can take 88 % for a result: the banner comes before the title, the first number and the first table."""
    summary = collapsed.to_dict()
    told = "This model gives every row the answer 'repaid'; 88.0 % is what the constant answer 'repaid' gets, too."
    assert summary["banner"] is not None
    assert summary["banner"]["level"] == "warning"
    assert summary["banner"]["text"].startswith(told)
    page = collapsed.to_html()
    assert page.index('data-test="banner"') < page.index("<h1>") < page.index('class="numbers"')
    assert collapsed.to_markdown().splitlines()[2].startswith("> **This model is worth no more than a constant answer")
    first = collapsed.to_latex().splitlines()[0]
    assert first.startswith(r"\noindent\textbf{This model is worth no more than a constant answer.} This model gives")
    assert r"88.0 \%" in first
    assert json.loads(collapsed.to_json())["banner"] == summary["banner"]
    check_page(collapsed)


def test_headline_shares_stand_beside_the_constant_answer(collapsed: Report) -> None:
    """Right answers and certified accuracy name what the majority gets; the part on answers says it, too."""
    guarantee = collapsed.to_dict()["guarantee"]
    notes = {one["name"]: one["note"].replace("\N{NO-BREAK SPACE}", " ") for one in guarantee["numbers"]}
    for name in ("Right answers", "Certified accuracy"):
        assert notes[name].endswith("; always “repaid”: 88.0 %")
    assert notes["Balanced accuracy"] == "mean over the classes; any constant answer: 50.0 %"
    answers = collapsed.to_dict()["answers"]
    assert answers is not None
    told = answers["sentence"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Always answering “repaid” would be right on 88.0 % of these rows" in told
    assert answers["sentence"] in collapsed.to_html()
    assert "inf" not in collapsed.to_markdown().split()


def test_figures_are_the_metrics(weighed: Any) -> None:
    """All of them, in the dict, the page, Markdown and LaTeX; a trade for the rare class is a note."""
    clf, X, y, report = weighed
    summary = report.to_dict()
    found = measure_answers(y, clf.predict(X), classes=clf.classes_, probability=clf.predict_proba(X))
    assert summary["answers"] is not None
    assert summary["answers"]["figures"] == found.to_dict()
    assert [line["name"] for line in summary["answers"]["lines"]] == [
        "Accuracy",
        "Balanced accuracy",
        "AUC",
        "Log-loss",
    ]
    assert summary["banner"] is not None
    assert summary["banner"]["level"] == "note"
    page = check_page(report)
    tests = {attributes.get("data-test") for _, attributes in page.tags}
    assert {"answers", "matrix", "calibration", "banner"} <= tests
    assert found.calibration is not None
    assert len(page.all("circle")) == len(found.calibration)
    assert "## Is the model any good?" in report.to_markdown()
    assert "| truth | answer default | answer repaid |" in report.to_markdown()
    assert "AUC & 0." in report.to_latex()


def test_costs_decide_whether_there_is_a_banner(weighed: Any) -> None:
    """Cheaper than every constant answer: no note, whatever the accuracy; the cost stands beside the constant's."""
    clf, X, y, _ = weighed
    summary = Report(
        clf.with_cost(false_positive=5, false_negative=1), X, y, max_rows=5, n_explained=0, what_if=False
    ).to_dict()
    cost = summary["answers"]["figures"]["cost"]
    assert cost["total"] < cost["constant_total"]
    assert summary["banner"] is None
    assert "false positive costs 5" in summary["answers"]["lines"][-1]["name"]
    names = [one["name"] for one in summary["guarantee"]["numbers"]]
    assert names[0] == "Proven to hold"
    assert names[-3:] == ["Cost of mistakes", "Right answers", "Balanced accuracy"]


def test_what_is_no_probability_has_no_log_loss(numbers: Any) -> None:
    """A vote of noisy copies, another rule than the model's own, bare models: AUC alone, and the reason."""
    clf, X, y = numbers
    answers = Report(clf, X, y).to_dict()["answers"]
    assert answers is not None
    figures = answers["figures"]
    assert figures["log_loss"] is None
    assert figures["auc"] is not None
    expected = measure_answers(y, clf.predict(X), score=clf.decision_function(X)).auc
    assert expected is not None
    assert figures["auc"]["value"] == pytest.approx(expected.value)
    assert "is a share of votes" in figures["left_out"][0]
    additive = AdditiveClassifier(regularization=1.0, radius=0.25).fit(X, y)
    other = Report(additive, X, y, noise="none").to_dict()["answers"]
    assert other is not None
    assert "own rule and noise" in other["figures"]["left_out"][0]
    bare = report_on_bare(make_vote()).to_dict()["answers"]
    assert bare is not None
    assert bare["figures"]["auc"] is not None
    assert "a bare model gives none" in bare["figures"]["left_out"][0]


def test_the_mass_after_a_change_does_not_rank_rows(mixed: Any) -> None:
    """With a budget of categories the failure mass is that after a change: rows are ranked as they are."""
    clf, X, _ = mixed
    plain = grade_rows(clf, X, clf.certify(X))
    budget = grade_rows(clf, X, clf.certify(X, threat=Threat(l0=2)))
    np.testing.assert_allclose(budget.score, plain.score)


def test_without_labels_one_answer_is_told_and_no_figures() -> None:
    """From 50 rows on; a few rows that get one answer are nothing to speak of."""
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    assert Report(clf, X).to_dict()["banner"] is None
    ones = X[clf.predict(X) == "yes"]
    assert Report(clf, ones[:30]).to_dict()["banner"] is None
    summary = Report(clf, np.repeat(ones[:30], 2, axis=0)).to_dict()
    assert summary["banner"] is not None
    assert summary["banner"]["text"].startswith("All 60 rows get the answer 'yes'. Unless all of them")
    assert summary["answers"] is None
