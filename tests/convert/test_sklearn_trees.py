"""Trees of scikit-learn: raw scores on every edge and one step of doubles and singles beside it; refusals by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from derand import Threat, from_model
from derand.convert import read_model
from tests.convert.parity import require_parity

TWO = load_breast_cancer(return_X_y=True, as_frame=True)
THREE = load_iris(return_X_y=True)
NUMBER = load_diabetes(return_X_y=True)


def _with_gaps(table: Any) -> Any:
    X, y = table
    rows = np.array(X, dtype=np.float64)
    rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    return rows, y


@pytest.mark.parametrize(
    ("model", "table"),
    [
        (GradientBoostingClassifier(max_depth=1, n_estimators=30), TWO),
        (GradientBoostingClassifier(max_depth=1, n_estimators=10), THREE),
        (GradientBoostingClassifier(max_depth=1, n_estimators=10, init="zero"), TWO),
        (GradientBoostingClassifier(max_depth=1, loss="exponential", n_iter_no_change=2), TWO),
        (GradientBoostingRegressor(max_depth=1, n_estimators=30, loss="huber"), NUMBER),
        (RandomForestClassifier(max_depth=1, n_estimators=30), TWO),
        (RandomForestClassifier(max_depth=1, n_estimators=30), _with_gaps(THREE)),
        (RandomForestRegressor(max_depth=1, n_estimators=30), _with_gaps(NUMBER)),
        (ExtraTreesClassifier(max_depth=1, n_estimators=30), THREE),
        (ExtraTreesRegressor(max_depth=1, n_estimators=30), NUMBER),
        (DecisionTreeClassifier(max_depth=3), _with_gaps(THREE)),
        (DecisionTreeRegressor(max_depth=2), NUMBER),
        (AdaBoostClassifier(n_estimators=20), TWO),
        (AdaBoostClassifier(n_estimators=20), THREE),
    ],
    ids=lambda value: repr(value)[:40] if hasattr(value, "fit") else "",
)
def test_scores_and_labels_are_the_librarys(model: Any, table: Any, tmp_path: Path) -> None:
    require_parity(model.set_params(random_state=0).fit(*table), tmp_path)


def test_probabilities_are_the_librarys() -> None:
    for model, table in (
        (GradientBoostingClassifier(max_depth=1, n_estimators=20), TWO),
        (AdaBoostClassifier(n_estimators=10), TWO),
        (RandomForestClassifier(max_depth=1, n_estimators=20), TWO),
        (RandomForestClassifier(max_depth=1, n_estimators=20), THREE),
    ):
        model.fit(*table)
        np.testing.assert_allclose(from_model(model).predict_proba(table[0]), model.predict_proba(table[0]), atol=1e-9)


def test_limits_speak_of_the_users_columns() -> None:
    model = from_model(RandomForestClassifier(max_depth=1, n_estimators=20, random_state=0).fit(*TWO))
    within = model.certify(TWO[0][:40], threat=Threat(norm=None, limits={"worst radius": "5%", "mean texture": 0.5}))
    assert 0.5 < (within.verdict == "holds").mean() <= 1.0


def test_a_tree_that_keeps_missing_values_tells_them_from_numbers() -> None:
    rows = np.array([[0.0], [1.0], [2.0], [np.nan], [np.nan], [3.0]])
    tree = DecisionTreeClassifier(max_depth=1).fit(rows, [0, 0, 1, 1, 1, 1])
    assert read_model(tree).shapes[0].missing is not None
    assert from_model(tree).predict([[np.nan], [-5.0]]).tolist() == [1, 0]
    boosted = from_model(GradientBoostingClassifier(max_depth=1, n_estimators=2).fit(rows[:3], [0, 0, 1]))
    with pytest.raises(ValueError, match=r"NaN|missing"):
        boosted.predict([[np.nan]])


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (GradientBoostingClassifier(max_depth=1), "must be fitted, got a GradientBoostingClassifier"),
        (RandomForestClassifier(), "must be fitted, got a RandomForestClassifier"),
        (AdaBoostRegressor(n_estimators=2).fit(*NUMBER), "weighted median"),
        (AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(*THREE), "AdaBoost of LogisticRegression"),
        (RandomForestRegressor(max_depth=1).fit(NUMBER[0], np.stack([NUMBER[1]] * 2, axis=1)), "2 outputs"),
        (RandomForestClassifier(max_depth=1).fit(THREE[0], np.zeros(150)), "only one class"),
        (GradientBoostingClassifier(max_depth=1, init=RandomForestClassifier(max_depth=1)).fit(*TWO), "`init`"),
        (
            GradientBoostingClassifier(max_depth=1, n_estimators=2, init=DummyClassifier(strategy="stratified")).fit(
                *TWO
            ),
            "at random",
        ),
    ],
    ids=range(8),
)
def test_what_cannot_be_read_is_refused_with_the_reason(model: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        from_model(model)


def test_trees_of_very_many_columns_are_read() -> None:
    """Their joint cells are more than a double can count."""
    rows = np.random.default_rng(0).normal(size=(500, 250))
    forest = RandomForestClassifier(n_estimators=60, random_state=0).fit(rows, rows.sum(axis=1) > 0)
    imported = from_model(forest)
    assert len(imported.ensemble_.terms[0].features) > 200
    np.testing.assert_array_equal(imported.predict(rows), forest.predict(rows))
