"""scikit-learn's own checks, and life with its tools."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from derand import (
    AdditiveClassifier,
    Gaussian,
    Laplace,
    RobAdaBoostClassifier,
    RobTreeBoostClassifier,
    StumpClassifier,
    Uniform,
    certified_accuracy,
    make_certified_scorer,
)
from derand.estimators import TRAINERS, CertifiedClassifier

EXCUSED: dict[type, dict[str, str]] = {
    RobAdaBoostClassifier: {
        "check_decision_proba_consistency": "the share of votes and the certified radius rank rows differently, "
        "as they should: a row that all members vote for may be certified for a small radius only",
    }
}
VARIANTS = [
    StumpClassifier(noise="uniform:0.1", class_weight="balanced", split_step=None, scaling="range"),
    RobTreeBoostClassifier(n_estimators=5, noise="uniform:0.5", radius=0.1, scaling="standard"),
    RobAdaBoostClassifier(n_estimators=5, noise="uniform:0.1", class_weight="balanced", scaling="range"),
]


def make_small(kind: type[CertifiedClassifier]) -> CertifiedClassifier:
    """A trainer with its own defaults, but few rounds and one penalty."""
    classifier, quick = kind(), {"n_estimators": 5, "regularization": 1.0}
    return classifier.set_params(**{name: quick[name] for name in quick.keys() & classifier.get_params().keys()})


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [make_small(kind) for kind in TRAINERS.values()],
    expected_failed_checks=lambda estimator: EXCUSED.get(type(estimator), {}),
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """Every check that scikit-learn has for classifiers passes for every trainer, but for those excused above."""
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [AdditiveClassifier(), *VARIANTS], expected_failed_checks=lambda estimator: EXCUSED.get(type(estimator), {})
)
def test_scikit_learn_checks_with_other_options(estimator: Any, check: Any) -> None:
    """The same with cross-validation, other noises, weights and scalings."""
    check(estimator)


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y


def test_grid_search_over_noises(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """A grid search tunes the noise, given as objects or text, by certified accuracy."""
    noises = [Gaussian(0.1), Gaussian(1.0), Laplace(0.5), "uniform:2"]
    search = GridSearchCV(
        StumpClassifier(scaling="standard"), {"noise": noises}, scoring=make_certified_scorer(0.5, balanced=True), cv=3
    ).fit(*tumours)
    assert search.best_params_["noise"] in noises
    assert len(set(search.cv_results_["mean_test_score"])) == 4


def test_pipeline(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """In a pipeline with a scaler the classifier equals one that scales by itself, also for the scorer."""
    X, y = tumours
    by_hand = make_pipeline(StandardScaler(), StumpClassifier()).fit(X, y)
    alone = StumpClassifier(scaling="standard").fit(X, y)
    np.testing.assert_array_equal(by_hand.predict(X), alone.predict(X))
    np.testing.assert_allclose(by_hand.decision_function(X), alone.decision_function(X), rtol=1e-9, atol=1e-12)
    scorer = make_certified_scorer(0.5)
    assert scorer(by_hand, X, y) == scorer(alone, X, y)
    assert scorer(make_pipeline(alone), X, y) == scorer(alone, X, y)


def test_scorer_is_certified_accuracy(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """The scorer gives the certified accuracy at its radius, plain or balanced."""
    X, y = tumours
    clf = StumpClassifier(scaling="standard").fit(X, y)
    for balanced in (False, True):
        expected = certified_accuracy(y, clf.certify(X), [0.4], balanced=balanced)[0]
        assert make_certified_scorer(0.4, balanced=balanced)(clf, X, y) == expected
    with pytest.raises(ValueError, match="`radius` must be a number, 0 or larger, got -1"):
        make_certified_scorer(-1)


def test_cross_validation_with_strings() -> None:
    """Cross-validation works with labels of text."""
    X, y = make_classification(200, 5, random_state=0)
    scores = cross_val_score(StumpClassifier(), X, np.array(["no", "yes"])[y], cv=3)
    assert (scores > 0.7).all()


def test_clone_and_pickle(tumours: tuple[np.ndarray, np.ndarray]) -> None:
    """A clone has the same parameters and trains the same model; a pickled classifier predicts the same."""
    X, y = tumours
    clf = StumpClassifier(noise=Uniform(3.0), scaling="range", class_weight={0: 2.0}).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    twin = clone(clf).fit(X, y)
    assert twin.get_params() == clf.get_params()
    for other in (again, twin):
        np.testing.assert_array_equal(other.decision_function(X), clf.decision_function(X))


def test_html_repr_shows_the_noise() -> None:
    """Notebooks show the estimator with its parameters."""
    assert "Gaussian(sigma=0.5" in StumpClassifier(noise=Gaussian(0.5))._repr_html_()
