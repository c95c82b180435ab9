"""Attacks of classifiers: changed rows in the words of the table, which `predict` takes and answers otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, RobAdaBoostClassifier, StumpClassifier, Threat


def make_frame(n_rows: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n_rows).astype(float),
            "income": rng.normal(3000.0, 800.0, n_rows),
            "job": rng.choice(["clerk", "nurse", "pilot"], n_rows),
        }
    )
    score = frame["age"] / 20 + frame["income"] / 800 + (frame["job"] == "pilot") + rng.normal(0, 0.5, n_rows)
    return frame, np.where(score > score.median(), "yes", "no")


def check(classifier: Any, X: Any, **options: Any) -> Any:
    """Attacks flip by `predict`, and lie outside of what is certified."""
    found = classifier.attack(X, **options)
    found.require_outside(classifier.certify(X, **options))
    assert np.array_equal(classifier.predict(found.rows), found.flipped)
    assert np.array_equal(classifier.predict(X), found.label)
    assert np.array_equal(found.found, found.label != found.flipped)
    return found


@pytest.mark.parametrize("threat", [None, Threat(l0=1), Threat(norm=None, limits={"income": "10%"}, frozen=["age"])])
def test_changed_rows_of_a_frame_are_a_frame(threat: Threat | None) -> None:
    """Columns by name, categories in words; frozen columns stay."""
    X, y = make_frame()
    clf = StumpClassifier(scaling="standard").fit(X, y)
    found = check(clf, X[:30], threat=threat)
    assert found.found.any()
    assert list(found.rows.columns) == list(X.columns)
    assert found[2:5].rows.shape == (3, 3)
    if threat is not None and threat.frozen:
        assert np.array_equal(found.rows["age"], X["age"][:30])


def test_changed_rows_of_an_array_are_an_array() -> None:
    """Numbers alone stay numbers; with categories cells are objects."""
    frame, y = make_frame()
    numbers = frame[["age", "income"]].to_numpy()
    clf = AdditiveClassifier(regularization=0.01, random_state=0).fit(numbers, y)
    found = check(clf, numbers[:20])
    assert found.rows.dtype == np.float64
    mixed = frame.to_numpy()
    clf = StumpClassifier(scaling="standard", categorical_features=[2]).fit(mixed, y)
    assert check(clf, mixed[:20], threat=Threat(l0=1)).rows.dtype == object


def test_a_category_that_was_never_seen_is_one_that_predict_takes() -> None:
    """With `unseen` an attack may need a value of no training row; it is told as such a value."""
    frame, y = make_frame()
    clf = RobAdaBoostClassifier(scaling="standard", n_estimators=2).fit(frame, y)
    found = check(clf, frame[:15], threat=Threat(l0=1, may_become={"job": ["sailor"]}))
    changed = found.rows["job"][found.n_categories > 0]
    assert not set(changed) & {"clerk", "nurse", "pilot"}


def test_the_model_as_deployed_is_attacked_without_noise() -> None:
    """As `certify` certifies it."""
    X, y = make_frame()
    clf = StumpClassifier(scaling="standard", rule="mean").fit(X, y)
    found = clf.attack(X[:20], noise="none")
    found.require_outside(clf.certify(X[:20], noise="none"))
    assert found.noise is None


def test_an_unfitted_classifier_is_not_attacked() -> None:
    """The error is scikit-learn's."""
    with pytest.raises(ValueError, match="not fitted"):
        StumpClassifier().attack([[1.0]])
