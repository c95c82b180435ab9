"""Several classes through the estimators: labels, probabilities, files, tuning, reports, the command line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from derand import (
    AdditiveClassifier,
    Report,
    RobAdaBoostClassifier,
    RobTreeBoostClassifier,
    StumpClassifier,
    Threat,
    load,
    make_certified_scorer,
    save,
    tune,
)
from derand.app.jobs import CertifySettings, audit_file, certify_file, train_file

QUICK: dict[str, Any] = {"radius": 0.25, "regularization": 0.1, "n_cuts": 8, "random_state": 0}


def read_wine() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["Barolo", "Grignolino", "Barbera"])[y]
    X["cellar"] = np.where(X["proline"] > 700, "old", "new")
    return X.iloc[:, [0, 6, 9, 12, 13]], names


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    X, y = read_wine()
    return {
        "additive, mean": AdditiveClassifier(**QUICK).fit(X[::2], y[::2]),
        "additive, vote": AdditiveClassifier(rule="vote", **QUICK).fit(X[::2], y[::2]),
        "stumps, vote": StumpClassifier(noise="gaussian:0.25", scaling="standard").fit(X[::2], y[::2]),
        "stumps, mean": StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean").fit(X[::2], y[::2]),
    }


WAYS = ["additive, mean", "additive, vote", "stumps, vote", "stumps, mean"]


@pytest.mark.parametrize("way", WAYS)
def test_labels_probabilities_and_certificates_agree(fitted: dict[str, Any], way: str) -> None:
    """One label, whoever is asked; probabilities add up to 1."""
    X, y = read_wine()
    clf, rows, truth = fitted[way], X[1::2], y[1::2]
    labels, found = clf.predict(rows), clf.certify(rows)
    assert clf.classes_.tolist() == ["Barbera", "Barolo", "Grignolino"]
    assert (labels == found.label).all()
    assert (found.runner_up != found.label).all()
    assert np.isin(found.runner_up, clf.classes_).all()
    assert (labels == truth).mean() > 0.8
    shares, scores = clf.predict_proba(rows), clf.decision_function(rows)
    assert shares.shape == scores.shape == (len(rows), 3)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert (clf.classes_[shares.argmax(axis=1)] == labels).all()
    assert (clf.classes_[scores.argmax(axis=1)] == labels).all()


@pytest.mark.parametrize("way", WAYS)
def test_models_are_saved_and_loaded(fitted: dict[str, Any], way: str, tmp_path: Path) -> None:
    """What comes back certifies to the last bit the same."""
    X, _ = read_wine()
    save(fitted[way], tmp_path / "model.json")
    before, after = (clf.certify(X[1::2], l0=1) for clf in (fitted[way], load(tmp_path / "model.json")))
    for name in ("label", "radius", "runner_up"):
        assert np.array_equal(getattr(before, name), getattr(after, name))


def test_attacks_explanations_and_audits(fitted: dict[str, Any]) -> None:
    """Attacks flip by `predict` and outside the radius; the audit proves a few rows."""
    X, _ = read_wine()
    clf, rows = fitted["additive, mean"], X[1:9:2]
    found = clf.certify(rows)
    attacks = clf.attack(rows)
    attacks.require_outside(found)
    at = np.flatnonzero(attacks.found)
    assert at.size
    assert (clf.predict(attacks.rows.iloc[at]) == attacks.flipped[at]).all()
    explained = clf.explain(rows[:1])
    assert explained.label == found.label[0]
    pytest.importorskip("flint")
    assert clf.audit(rows, found, rows=2).passed


def test_boosting_takes_two_classes() -> None:
    """The error says so, and what to use instead."""
    X, y = load_iris(return_X_y=True)
    for kind in (RobTreeBoostClassifier, RobAdaBoostClassifier):
        with pytest.raises(ValueError, match=r"3 classes.*AdditiveClassifier"):
            kind().fit(X, y)


@pytest.mark.parametrize("kind", [AdditiveClassifier, StumpClassifier])
def test_a_class_seen_once_is_told(kind: type[Any]) -> None:
    """By name, with the cure; rows of weight 0 do not count."""
    options = QUICK if kind is AdditiveClassifier else {}
    X = np.arange(20.0)[:, None]
    y = np.repeat(["a", "b"], 10).astype(object)
    y[3] = "rare"
    with pytest.warns(UserWarning, match=r"1 of 3 classes is there in only one row \('rare'\).*Leave such rows out"):
        kind(**options).fit(X, y)
    weights = np.ones(20)
    weights[3] = 0.0
    assert kind(**options).fit(X, y, weights).classes_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="at most 256 classes, got 300"):
        kind().fit(np.arange(600.0)[:, None], np.repeat(np.arange(300), 2))


def test_directions_are_for_two_classes() -> None:
    """Refused by name; groups are taken."""
    X, y = load_iris(return_X_y=True)
    grouped = AdditiveClassifier(groups=[[0, 1]], **QUICK).fit(X, y)
    assert grouped.groups_ == ((0, 1),)
    assert grouped.score(X, y) > 0.8
    with pytest.raises(ValueError, match=r"`monotone`.*3 classes"):
        AdditiveClassifier(monotone={0: 1}, **QUICK).fit(X, y)


def test_tuning_and_scoring() -> None:
    """Balanced, a constant answer gets a third of three classes."""
    X, y = load_iris(return_X_y=True)
    clf = StumpClassifier(scaling="standard")
    tuning = tune(clf, X, y, radii=[0.1], values=[0.1, 0.3], cv=3, balanced=True)
    assert tuning.constant == pytest.approx(1 / 3)
    assert tuning.natural.min() > 0.5
    assert 0 < make_certified_scorer(0.1)(clf.fit(X, y), X, y) < 1


def test_reports_show_which_class_is_taken_for_which(fitted: dict[str, Any]) -> None:
    """Every row is counted once by truth and answer, and once by answer and rival."""
    X, y = read_wine()
    report = Report(fitted["additive, vote"], X[1::2], y[1::2])
    confusion = report.to_dict()["confusion"]
    assert confusion is not None
    assert confusion["classes"] == ["Barbera", "Barolo", "Grignolino"]
    counts = np.array([row["answers"] for row in confusion["rows"]])
    deciding = np.array([[cell["n_rows"] for cell in line] for line in report.to_dict()["rivals"]["cells"]])
    assert counts.sum() == deciding.sum() == len(X[1::2])
    assert np.diag(deciding).sum() == 0
    page, text = report.to_html(), report.to_markdown()
    assert 'data-test="confusion"' in page
    assert "Nearest rival" in page
    assert "Which class is taken for which" in text
    two = Report(fitted["additive, vote"], X[1::2], None).to_dict()
    assert two["confusion"] is None


def test_from_file_to_file(tmp_path: Path) -> None:
    """Train, certify and audit: the certificates name the nearest rival."""
    X, y = read_wine()
    X.assign(wine=y).to_csv(tmp_path / "wine.csv", index=False)
    summary = train_file(tmp_path / "wine.csv", "wine", tmp_path / "model.json", regularization=0.1)
    assert set(summary["classes"]) == {"Barbera", "Barolo", "Grignolino"}
    certify_file(tmp_path / "model.json", tmp_path / "wine.csv", tmp_path / "out.csv", CertifySettings(target="wine"))
    written = pd.read_csv(tmp_path / "out.csv")
    assert written.columns.tolist()[:3] == ["row", "label", "runner_up"]
    assert (written["label"] != written["runner_up"]).all()
    pytest.importorskip("flint")
    audited = audit_file(tmp_path / "model.json", tmp_path / "wine.csv", tmp_path / "out.csv", rows=2)
    assert audited["proven"] == 2


def test_limits_alone(fitted: dict[str, Any]) -> None:
    """Verdicts and witnesses of several classes."""
    X, _ = read_wine()
    clf = fitted["additive, mean"]
    found = clf.certify(X[1::2], threat=Threat(norm=None, limits={"proline": "60%", "alcohol": 1.5}))
    assert found.verdict is not None
    assert {"holds", "flips"} <= set(found.verdict.tolist())
    flipping = np.flatnonzero(found.flips)
    assert (clf.predict(clf.decode_rows(found.witness[flipping])) != found.label[flipping]).all()


def test_automatic_groups_say_which_columns_they_leave_out() -> None:
    """A single gap takes a column out of the search."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    y = X[:, 0] * X[:, 1] > 0
    X[3, 1] = np.nan
    with pytest.warns(UserWarning, match="only at columns without missing values, and so not at 1: fill the missing"):
        AdditiveClassifier(groups="auto", **(QUICK | {"radius": 0.0})).fit(X, y)


@pytest.mark.parametrize("kind", [AdditiveClassifier, StumpClassifier])
def test_a_class_that_no_row_gets_is_told(kind: type[Any]) -> None:
    """By name, with how many rows have it and the cure; with weights it is predicted, and nothing is said of it."""
    rng = np.random.default_rng(0)
    y = np.repeat(["left", "right", "rare"], [200, 200, 12])
    X = rng.normal(size=(y.size, 1)) + np.array([{"left": -2.0, "right": 2.0, "rare": 0.0}[one] for one in y])[:, None]
    options = {"regularization": 0.1} if kind is AdditiveClassifier else {"max_entropy": 2.0}
    with pytest.warns(UserWarning, match=r"gets the class 'rare' \(12 rows\).*`class_weight`.* or `sample_weight`"):
        told = kind(**options).fit(X, y)
    assert "rare" not in told.predict(X)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        weighted = kind(**options).fit(X, y, sample_weight=np.where(y == "rare", 40.0, 1.0))
    assert "rare" in weighted.predict(X)
    assert not any("gets the class 'rare'" in str(one.message) for one in heard)
