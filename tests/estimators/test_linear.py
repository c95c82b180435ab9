"""Linear models of scikit-learn as estimators of ours: answers, certificates, files, explanations and reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier

from derand import Report, Threat, audit, from_model, load, save

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
LOGISTIC = LogisticRegression(max_iter=5000).fit(X, Y)


@pytest.fixture(scope="module")
def model() -> object:
    return from_model(LOGISTIC, X, scaling="standard")


def test_it_answers_as_the_library(model: object) -> None:
    """Labels, probabilities and raw scores."""
    assert (model.predict(X) == LOGISTIC.predict(X)).all()  # type: ignore[attr-defined]
    np.testing.assert_allclose(model.predict_proba(X), LOGISTIC.predict_proba(X), atol=1e-12)  # type: ignore[attr-defined]
    np.testing.assert_allclose(model.decision_function(X), LOGISTIC.decision_function(X), rtol=1e-9, atol=1e-9)  # type: ignore[attr-defined]


def test_its_radius_is_the_margin_over_the_length_of_the_slopes(model: object) -> None:
    """By the textbook, in standard deviations; attacks and audits stand beside it."""
    found = model.certify(X)  # type: ignore[attr-defined]
    length = np.linalg.norm(LOGISTIC.coef_[0] * model.units_)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found.radius, np.abs(LOGISTIC.decision_function(X)) / length, rtol=1e-8, atol=1e-9)
    few = X.iloc[:10]
    model.attack(few).require_outside(model.certify(few))  # type: ignore[attr-defined]
    pytest.importorskip("flint")
    assert audit(model.ensemble_, few.to_numpy(), model.certify(few)).passed  # type: ignore[attr-defined]


def test_it_comes_back_from_a_file(model: object, tmp_path: Path) -> None:
    """Certificates to the last bit."""
    save(model, tmp_path / "model.json")  # type: ignore[arg-type]
    again = load(tmp_path / "model.json")
    assert again.certify(X).radius.tolist() == model.certify(X).radius.tolist()  # type: ignore[attr-defined]


def test_reports_show_lines(model: object) -> None:
    """A shape has the pushes at both ends; pushes of a row add up to its raw score."""
    few = X.iloc[:60]
    report = Report(model, few, Y[:60])  # type: ignore[arg-type]
    summary = report.to_dict()
    shape = summary["shapes"][0]
    assert shape["kind"] == "numerical"
    assert (shape["edges"], len(shape["pushes"])) == ([], 2)
    assert "A line; pushes" in report.to_html()
    first = summary["rows"]["table"][0]
    assert first["margin"] == pytest.approx(LOGISTIC.decision_function(few)[first["row"] - 1], abs=2e-4)
    limits = Threat(norm=None, limits={"mean radius": "5%"})
    assert "linear" in Report(model, few, Y[:60], threat=limits).to_html()  # type: ignore[arg-type]
    smoothed = from_model(LOGISTIC, X, scaling="standard", noise="gaussian:0.3", rule="vote")
    assert Report(smoothed, few, Y[:60]).to_dict()["rows"]["law_axis"] is None


def test_several_classes_and_numbers() -> None:
    """A softmax, scores without a link, and answers that are numbers."""
    rows, labels = load_iris(return_X_y=True)
    theirs = LogisticRegression(max_iter=500).fit(rows, labels)
    ours = from_model(theirs)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-12)
    assert (ours.certify(rows).radius > 0).all()
    Report(ours, rows, labels)
    ridge = from_model(RidgeClassifier().fit(rows, labels))
    assert (ridge.predict_proba(rows).argmax(axis=1) == ridge.predict(rows)).all()
    vote = from_model(RidgeClassifier().fit(rows, labels), noise="laplace:0.5", rule="vote")
    assert (vote.predict(rows) == ridge.predict(rows)).all()
    assert (vote.predict_proba(rows).argmax(axis=1) == ridge.predict(rows)).all()
    rows, target = load_diabetes(return_X_y=True)
    line = LinearRegression().fit(rows, target)
    number = from_model(line)
    np.testing.assert_allclose(number.predict(rows), line.predict(rows))
    found = number.certify_interval(rows, radius=0.01)
    np.testing.assert_allclose(found.width, 0.02 * np.linalg.norm(line.coef_), rtol=1e-8)
    Report(number, rows, target, radius=0.01)
