"""Groups of columns that interact: found, trained for the certificate, saved; and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from derand import AdditiveClassifier, load, save
from derand.threat import Threat
from derand.train import AdditiveOptions, TrainingTable, train_additive


def draw_crossed(n_rows: int, seed: int, n_columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Class 1 where exactly one of two columns is positive: neither says anything by itself."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, n_columns))
    return X, ((X[:, 0] > 0) ^ (X[:, 2] > 0)).astype(int)


@pytest.mark.parametrize("groups", [[[0, 2]], "auto"])
def test_what_single_columns_cannot_tell_groups_do(groups: Any) -> None:
    X, y = draw_crossed(1200, 0)
    X_test, y_test = draw_crossed(400, 1)
    single = AdditiveClassifier(radius=0.0, regularization=1.0).fit(X, y)
    assert (single.predict(X_test) == y_test).mean() < 0.62
    joint = AdditiveClassifier(radius=0.05, regularization=0.1, groups=groups).fit(X, y)
    assert joint.groups_ == ((0, 2),)
    assert (joint.predict(X_test) == y_test).mean() > 0.95
    found = joint.certify(X_test[:100])
    assert ((found.label == y_test[:100]) & (found.radius >= 0.05)).mean() > 0.8


def test_nothing_is_found_where_nothing_interacts() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=1500) > 0).astype(int)
    clf = AdditiveClassifier(radius=0.1, regularization=0.1, groups="auto").fit(X, y)
    assert clf.groups_ == ()


def test_one_column_per_group_is_the_model_without_groups() -> None:
    X, y = draw_crossed(300, 0)
    y[X[:, 1] > 0] = 1
    plain, grouped = (
        AdditiveClassifier(radius=0.1, regularization=0.3, groups=groups).fit(X, y)
        for groups in (None, [[0], [1], [2], [3]])
    )
    assert [one.describe() for one in plain.ensemble_.terms] == [one.describe() for one in grouped.ensemble_.terms]
    assert plain.ensemble_.threshold == grouped.ensemble_.threshold
    assert plain.groups_ == grouped.groups_ == ()


@pytest.mark.parametrize("rule", ["mean", "vote"])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_groups_of_three_and_four_are_trained_in_every_norm(rule: str, norm: float) -> None:
    X, y = draw_crossed(300, 0, 8)
    groups = [[0, 2, 5], [1, 3, 4, 6]]
    clf = AdditiveClassifier(radius=0.05, norm=norm, rule=rule, regularization=0.3, groups=groups).fit(X, y)
    assert {term.features for term in clf.ensemble_.terms} >= {(0, 2, 5)}
    assert (clf.predict(X) == y).mean() > 0.8
    assert clf.feature_importances_[[0, 2]].sum() > 0.3
    assert np.isfinite(clf.predict_proba(X[:5])).all()


def test_what_it_scores_is_what_was_trained() -> None:
    """Without noise and at radius 0: the score of the model is the sum of jumps and products that training saw."""
    X, y = draw_crossed(400, 0)
    table = TrainingTable(X, y.astype(np.uint8))
    options = AdditiveOptions(radius=0.0, regularization=0.1, groups=((0, 2),))
    training = train_additive(table, None, Threat(norm=2), options)
    assert training.groups == ((0, 2),)
    assert training.model.threshold is not None
    assert ((training.model.score(X) > training.model.threshold) == y).mean() > 0.9


def test_a_classifier_with_groups_comes_back_from_a_file(tmp_path: Path) -> None:
    X, y = draw_crossed(300, 0)
    clf = AdditiveClassifier(radius=0.05, regularization=0.3, groups=[[0, 2]]).fit(X, y)
    save(clf, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.groups == [[0, 2]]
    assert again.groups_ == ((0, 2),)
    assert again.predict(X).tolist() == clf.predict(X).tolist()
    plain = AdditiveClassifier(radius=0.05, regularization=0.3).fit(X, y)
    save(plain, tmp_path / "plain.json")
    assert load(tmp_path / "plain.json").groups is None


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[0, 0]], r"each column once, got 0 twice"),
        ([[0, 1], [1, 2]], r"each column once, got 1 twice"),
        ([[0, 1, 2, 3, 4]], r"at most 4 columns each, got 5"),
        ([[0, 9]], r"`groups` must name columns, or number them from 0 to 5, got 9"),
        ([[0, 5]], r"numerical columns, got 5, which is categorical"),
        ([[0, 4]], r"without missing values, got 4"),
        ([[0, 3]], r"must not name columns of `monotone`, got 3"),
        ("all", r"`groups` must be None, 'auto', 'patches:3'"),
        ([0, 1], r"got the group 0"),
        (3, r"`groups` must be None, 'auto', 'patches:3'"),
    ],
)
def test_bad_groups_are_refused(groups: Any, words: str) -> None:
    X, y = draw_crossed(60, 0, 6)
    X[3, 4] = np.nan
    X[:, 5] = np.arange(60) % 3
    options: dict[str, Any] = {"categorical_features": [5], "monotone": {3: 1}}
    clf = AdditiveClassifier(radius=0.1, regularization=0.1, groups=groups, **options)
    with pytest.raises(ValueError, match=words):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)
