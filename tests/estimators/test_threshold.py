"""Decisions that do not cut at one half: `decision_threshold`, `cost`, and what scikit-learn's wrappers found."""

from __future__ import annotations

import warnings
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from derand import (
    AdditiveClassifier,
    Report,
    RobTreeBoostClassifier,
    SmoothedClassifier,
    StumpClassifier,
    Threat,
    export_onnx,
    from_model,
    load,
    save,
)
from derand.estimators._threshold import read_threshold
from derand.model import AdditiveEnsemble, StepFunction, move_threshold

KINDS: dict[str, dict[str, Any]] = {
    "smoothed": {"radius": 0.2},
    "plain": {"radius": 0},
    "weighted": {"radius": 0.1, "class_weight": "balanced"},
    "vote": {"radius": 0.2, "rule": "vote"},
}


def read_table() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:200, [0, 1, 4, 8]], y[:200]


@cache
def train(kind: str) -> AdditiveClassifier:
    """A quick model with rows of all probabilities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AdditiveClassifier(regularization=0.3, n_cuts=8, **KINDS[kind]).fit(*read_table())


@cache
def read_logistic() -> Any:
    X, y = read_table()
    return LogisticRegression().fit(X / X.std(axis=0), y)


@pytest.mark.parametrize("kind", ["smoothed", "plain", "weighted"])
@settings(max_examples=10)
@given(threshold=st.floats(1e-6, 1 - 1e-6))
def test_predict_is_whether_the_probability_is_above_the_threshold(kind: str, threshold: float) -> None:
    X, _ = read_table()
    clf = train(kind)
    moved = clf.with_threshold(threshold)
    labels, probabilities = moved.predict(X) == moved.classes_[1], moved.predict_proba(X)
    np.testing.assert_array_equal(labels, probabilities[:, 1] > threshold)
    np.testing.assert_array_equal(labels, probabilities[:, 1] >= threshold)
    np.testing.assert_array_equal(labels, moved.decision_function(X) > 0)
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-5)
    assert moved.decision_threshold_ == threshold
    assert moved._read_cut().probability == pytest.approx(threshold, rel=1e-2, abs=1e-9)


@settings(max_examples=10)
@given(at=st.integers(0, 199))
def test_a_threshold_at_the_probability_of_a_row_leaves_that_row_at_the_lower_class(at: int) -> None:
    """Without noise scores are whole and the crossing exact: above means above."""
    X, _ = read_table()
    clf = train("plain")
    probabilities = clf.predict_proba(X)[:, 1]
    own = float(probabilities[at])
    below = clf.with_threshold(float(np.nextafter(own, 0) if own < 1e-12 else own * (1 - 1e-9)))
    above = clf.with_threshold(own * (1 + 1e-9))
    assert below.predict(X[[at]])[0] == 1
    assert above.predict(X[[at]])[0] == 0
    np.testing.assert_array_equal(above.predict(X), probabilities > own * (1 + 1e-9))


@pytest.mark.parametrize("kind", list(KINDS))
def test_certificates_attacks_and_audits_go_by_the_moved_threshold(kind: str) -> None:
    X, _ = read_table()
    clf = train(kind)
    rows = X[::50]
    moved = clf.with_threshold(0.1 if kind == "weighted" else 0.9)
    assert (moved.predict(X) != clf.predict(X)).any()
    certificates = moved.certify(rows)
    np.testing.assert_array_equal(certificates.label, moved.predict(rows))
    moved.attack(rows).require_outside(certificates)
    assert moved.audit(rows, certificates, rows=2).passed
    deployed = moved.certify(rows, rule="mean", noise="none")
    assert moved.audit(rows, deployed, rows=2).passed


def test_a_lower_threshold_answers_the_second_class_more_often_and_makes_it_safer() -> None:
    X, _ = read_table()
    clf = train("smoothed")
    low = clf.with_threshold(0.1).certify(X)
    usual = clf.certify(X)
    stays = (usual.label == 1) & (low.label == 1)
    assert (low.label >= usual.label).all()
    assert (low.radius[stays] >= usual.radius[stays] * (1 - 1e-6)).all()


def test_fitting_with_a_threshold_is_moving_it_afterwards() -> None:
    X, y = read_table()
    before = train("smoothed")
    asked = clone(before).set_params(cost={"false_positive": 1, "false_negative": 5}).fit(X, y)
    moved = before.with_cost(false_positive=1, false_negative=5)
    for one in (asked, moved):
        assert one.decision_threshold_ == pytest.approx(1 / 6)
        assert one.ensemble_.threshold == moved.ensemble_.threshold
    assert before.decision_threshold_ == 0.5  # the one that was moved stays as it was
    assert before.cost is None
    np.testing.assert_array_equal(asked.certify(X).radius, moved.certify(X).radius)


def test_moving_again_starts_from_the_same_probabilities() -> None:
    X, _ = read_table()
    clf = train("smoothed")
    there = clf.with_threshold(0.1).with_threshold(0.8)
    np.testing.assert_array_equal(there.predict(X), clf.with_threshold(0.8).predict(X))
    np.testing.assert_array_equal(there.with_threshold(0.5).predict(X), clf.predict(X))
    assert there.ensemble_.levels == clf.with_threshold(0.8).ensemble_.levels  # it is not refined twice


def test_class_weights_move_the_decision_and_the_threshold_tells_where() -> None:
    X, _ = read_table()
    clf = train("weighted")
    assert clf.decision_threshold_ != 0.5
    np.testing.assert_array_equal(clf.with_threshold(clf.decision_threshold_).predict(X), clf.predict(X))


@pytest.mark.parametrize("kind", ["smoothed", "vote"])
def test_a_moved_threshold_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    X, _ = read_table()
    moved = train(kind).with_cost(false_positive=1, false_negative=9)
    save(moved, tmp_path / "model.json")
    back = load(tmp_path / "model.json")
    assert back.cost == {"false_positive": 1, "false_negative": 9}
    assert back.decision_threshold_ == 0.1
    np.testing.assert_array_equal(back.predict_proba(X), moved.predict_proba(X))
    np.testing.assert_array_equal(back.certify(X[:20]).radius, moved.certify(X[:20]).radius)
    np.testing.assert_array_equal(back.with_threshold(0.5).predict(X), train(kind).predict(X))


def test_models_that_were_not_moved_come_back_without_a_threshold(tmp_path: Path) -> None:
    save(train("plain"), tmp_path / "model.json")
    assert load(tmp_path / "model.json").decision_threshold is None


@pytest.mark.parametrize(
    ("given_threshold", "cost", "message"),
    [
        (0.0, None, "between 0 and 1"),
        (1, None, "between 0 and 1"),
        (True, None, "between 0 and 1"),
        ("half", None, "between 0 and 1"),
        (float("nan"), None, "between 0 and 1"),
        (0.2, {"false_positive": 1, "false_negative": 1}, "got both"),
        (None, {"false_positive": 1}, "both mistakes"),
        (None, {"false_positive": 1, "false_negative": 0}, "above 0"),
        (None, {"false_positive": 1, "false_negative": float("inf")}, "above 0"),
        (None, [1, 5], "both mistakes"),
    ],
)
def test_thresholds_and_costs_that_make_no_sense_are_refused(given_threshold: Any, cost: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_threshold(given_threshold, cost)
    with pytest.raises(ValueError, match=message):
        AdditiveClassifier(decision_threshold=given_threshold, cost=cost).fit(*read_table())


def test_the_threshold_of_a_share_of_votes_is_refused_with_the_reason() -> None:
    X, y = read_table()
    for clf in (StumpClassifier(), RobTreeBoostClassifier(n_estimators=2)):
        clf.fit(X, y)
        with pytest.raises(ValueError, match=r"share of noisy copies .* `class_weight` .* AdditiveClassifier"):
            clf.with_threshold(0.2)
        assert not hasattr(clf, "decision_threshold_")


def test_several_classes_are_refused() -> None:
    X, y = read_table()
    three = np.where(X[:, 0] > 16, 2, y)
    with pytest.raises(ValueError, match=r"two classes, got 3: the cheapest of several .* Weigh the classes by `clas"):
        AdditiveClassifier(decision_threshold=0.2).fit(X, three)
    clf = AdditiveClassifier(radius=0, regularization=1.0, n_cuts=4).fit(X, three)
    with pytest.raises(ValueError, match="two classes, got 3"):
        clf.with_threshold(0.2)


@pytest.mark.filterwarnings("ignore:Every one of", "ignore:Smoothing costs")
def test_smoothed_models_of_other_libraries_take_a_threshold(tmp_path: Path) -> None:
    X, y = read_table()
    inner = GradientBoostingClassifier(max_depth=1, n_estimators=10, random_state=0)
    settings: dict[str, Any] = {"augment": 2, "random_state": 0}
    plain = SmoothedClassifier(inner, **settings).fit(X, y)
    moved = SmoothedClassifier(inner, **settings, decision_threshold=0.1).fit(X, y)
    np.testing.assert_array_equal(moved.predict(X), plain.with_threshold(0.1).predict(X))
    assert moved.predict(X).sum() > plain.predict(X).sum()
    save(moved, tmp_path / "model.json")
    back = load(tmp_path / "model.json")
    assert back.decision_threshold_ == 0.1
    np.testing.assert_array_equal(back.certify(X[:20]).radius, moved.certify(X[:20]).radius)


@settings(max_examples=10)
@given(threshold=st.floats(1e-4, 1 - 1e-4))
def test_imported_models_cut_where_their_probability_does(threshold: float) -> None:
    X, _ = read_table()
    rows = X / X.std(axis=0)
    model = read_logistic()
    moved = from_model(model, decision_threshold=threshold)
    theirs = model.predict_proba(rows)[:, 1]
    sure = np.abs(theirs - threshold) > 1e-12
    np.testing.assert_array_equal((moved.predict(rows) == 1)[sure], (theirs > threshold)[sure])
    np.testing.assert_array_equal(moved.predict(rows) == 1, moved.predict_proba(rows)[:, 1] > threshold)
    np.testing.assert_allclose(moved.predict_proba(rows)[:, 1], theirs, atol=1e-9)
    again = from_model(model).with_threshold(threshold)
    np.testing.assert_array_equal(again.predict(rows)[sure], moved.predict(rows)[sure])


def test_a_linear_model_without_intercept_has_room_for_far_thresholds() -> None:
    X, y = read_table()
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LogisticRegression(fit_intercept=False).fit(rows, y)
    for threshold in (1e-6, 0.01, 0.999):
        moved = from_model(model).with_threshold(threshold)
        np.testing.assert_array_equal(moved.predict(rows) == 1, model.predict_proba(rows)[:, 1] > threshold)
        certificates = moved.certify(rows[:10])
        assert moved.audit(rows[:10], certificates).passed
        moved.attack(rows[:10]).require_outside(certificates)


def test_models_without_probabilities_and_regressors_are_refused() -> None:
    X, y = read_table()
    with pytest.raises(ValueError, match="its raw score is none"):
        from_model(RidgeClassifier().fit(X, y), decision_threshold=0.2)
    with pytest.raises(ValueError, match="are for classes"):
        from_model(Ridge().fit(X, y), decision_threshold=0.2)


def test_own_classifiers_are_moved_by_from_model() -> None:
    clf = train("plain")
    assert from_model(clf) is clf
    assert from_model(clf, decision_threshold=0.2).decision_threshold_ == 0.2


@pytest.mark.parametrize(("method", "positive"), [("predict_proba", 0), ("decision_function", 1)])
def test_a_tuned_threshold_around_an_additive_classifier_is_certified(method: str, positive: int) -> None:
    X, y = read_table()
    inner = AdditiveClassifier(radius=0.1, regularization=0.3, n_cuts=8)
    scoring = make_scorer(f1_score, pos_label=positive)
    tuned = TunedThresholdClassifierCV(inner, scoring=scoring, cv=2, response_method=method, random_state=0).fit(X, y)
    clf = from_model(tuned)
    assert isinstance(clf, AdditiveClassifier)
    np.testing.assert_array_equal(clf.predict(X), tuned.predict(X))
    np.testing.assert_array_equal(clf.certify(X[:30]).label, clf.predict(X[:30]))


def test_a_fixed_threshold_meets_ties_as_scikit_learn_does() -> None:
    """From the threshold on means at it, too: a row whose score is the threshold gets the positive class."""
    X, y = read_table()
    clf = AdditiveClassifier(radius=0, regularization=0.3, n_cuts=8).fit(X, y)
    score = int(clf.ensemble_.score(X[:1])[0])
    tie = clf.with_threshold(0.5)
    tie.ensemble_ = AdditiveEnsemble(clf.ensemble_.terms, score, X.shape[1], clf.ensemble_.levels)
    for positive in (0, 1):
        fixed = FixedThresholdClassifier(tie, threshold=0.0, response_method="decision_function", pos_label=positive)
        found = from_model(fixed)
        np.testing.assert_array_equal(found.predict(X), fixed.predict(X))


def test_a_tuned_share_of_votes_is_refused_with_the_reason() -> None:
    X, y = read_table()
    fixed = FixedThresholdClassifier(StumpClassifier(), threshold=0.3).fit(X, y)
    with pytest.raises(ValueError, match=r"share of noisy copies and certified at one half only: train an Additive"):
        from_model(fixed)
    fixed = FixedThresholdClassifier(train("vote"), threshold=0.3).fit(X, y)
    with pytest.raises(ValueError, match="move the threshold of the score by `decision_threshold`"):
        from_model(fixed)


@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(max_iter=1000),
        make_pipeline(StandardScaler(), LogisticRegression()),
        HistGradientBoostingClassifier(max_depth=1, max_iter=10),
        GradientBoostingClassifier(max_depth=1, n_estimators=10),
        RandomForestClassifier(max_depth=1, n_estimators=5, random_state=0),
        make_pipeline(StandardScaler(), AdditiveClassifier(radius=0, noise="none", regularization=0.3, n_cuts=8)),
    ],
    ids=lambda inner: type(inner[-1] if hasattr(inner, "steps") else inner).__name__ + str(hasattr(inner, "steps")),
)
def test_tuned_models_of_other_libraries_are_certified(inner: Any) -> None:
    X, y = read_table()
    positive = int(hasattr(inner, "n_estimators") or hasattr(inner, "steps"))  # either class, of each kind of model
    scoring = make_scorer(f1_score, pos_label=positive)
    tuned = TunedThresholdClassifierCV(inner, scoring=scoring, cv=2, random_state=0).fit(X, y)
    clf = from_model(tuned, X)
    np.testing.assert_array_equal(clf.predict(X), tuned.predict(X))
    np.testing.assert_allclose(clf.predict_proba(X), tuned.predict_proba(X), atol=1e-6)
    certificates = clf.certify(X[:10], threat=Threat(norm=2))
    clf.attack(X[:10], threat=Threat(norm=2)).require_outside(certificates)
    expected = tuned.best_threshold_ if positive else 1 - tuned.best_threshold_
    assert clf.decision_threshold_ == pytest.approx(expected)


def test_a_threshold_of_raw_scores_needs_no_probabilities() -> None:
    X, y = read_table()
    fixed = FixedThresholdClassifier(RidgeClassifier(), threshold=0.4).fit(X, y)
    np.testing.assert_array_equal(from_model(fixed, X).predict(X), fixed.predict(X))
    boosted = GradientBoostingClassifier(max_depth=1, n_estimators=5)
    fixed = FixedThresholdClassifier(boosted, threshold=-0.7, response_method="decision_function").fit(X, y)
    np.testing.assert_array_equal(from_model(fixed, X).predict(X), fixed.predict(X))


def test_wrappers_that_cannot_be_read_are_refused() -> None:
    X, y = read_table()
    with pytest.raises(ValueError, match="must be fitted"):
        from_model(TunedThresholdClassifierCV(LogisticRegression()))
    with pytest.raises(ValueError, match="between 0 and 1"):
        from_model(FixedThresholdClassifier(LogisticRegression(max_iter=1000), threshold=1.0).fit(X, y))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("plain", "It says “1” from a probability of 16.7 % on."),
        ("vote", "Each noisy copy counts for “1” from a probability of 16.7 % on."),
    ],
)
def test_reports_say_from_which_probability_on_an_answer_is_given(kind: str, sentence: str) -> None:
    X, y = read_table()
    told = Report(train(kind).with_cost(false_positive=1, false_negative=5), X[:20], y[:20]).to_dict()
    assert told["rule"]["sentence"].endswith(sentence)
    assert told["model"]["decision_threshold"] == pytest.approx(1 / 6)
    assert "probability" not in Report(train(kind), X[:20], y[:20]).to_dict()["rule"]["sentence"]


def test_exported_labels_go_by_the_moved_threshold(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, _ = read_table()
    moved = train("plain").with_threshold(0.05)
    export_onnx(moved, tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    (labels,) = session.run(["label"], {"X": X})
    np.testing.assert_array_equal(labels, moved.predict(X))


@settings(max_examples=50)
@given(lead=st.floats(-1e3, 1e3), refine=st.booleans())
def test_exactly_the_scores_that_are_ahead_by_more_are_above_a_moved_level(lead: float, refine: bool) -> None:
    """Compared in exact fractions, on the finer grid, too."""
    scores = [-700, -3, 0, 14, 120, 900]
    model = AdditiveEnsemble([StepFunction(0, [1, 2, 3, 4, 5], scores)], threshold=7, n_features=1, levels=13)
    moved = move_threshold(model, lead, refine=refine)
    found = moved.score(np.arange(0.5, 6)[:, None]) > moved.threshold
    assert found.tolist() == [Fraction(score - 7, 13) > Fraction(lead) for score in scores]


def test_models_without_a_threshold_have_none_to_move() -> None:
    model = AdditiveEnsemble([StepFunction(0, [1], [0, 1])], threshold=None, n_features=1)
    with pytest.raises(ValueError, match="must have a threshold"):
        move_threshold(model, 1.0)
    with pytest.raises(ValueError, match="must be finite"):
        move_threshold(AdditiveEnsemble(model.terms, 0, 1), float("inf"))


@pytest.mark.parametrize("kind", ["plain"])
def test_a_probability_of_a_row_as_threshold_is_not_above_itself(kind: str) -> None:
    """As curves of scikit-learn give thresholds: the row's own number, to the last digit."""
    clf, (X, y) = train(kind), read_table()
    probabilities, margins = clf.predict_proba(X), clf.decision_function(X)
    for at in range(0, 200, 10):
        own = float(probabilities[at, 1])
        np.testing.assert_array_equal(clf.with_threshold(own).predict(X), probabilities[:, 1] > own)
    for at in range(0, 200, 50):
        for positive in (0, 1):
            for method, scores in (
                ("predict_proba", probabilities[:, positive]),
                ("decision_function", margins if positive else -margins),
            ):
                wrapper = FixedThresholdClassifier(
                    FrozenEstimator(clf), threshold=float(scores[at]), pos_label=positive, response_method=method
                ).fit(X, y)
                np.testing.assert_array_equal(from_model(wrapper).predict(X), wrapper.predict(X))
