"""HistGradientBoosting: deep trees of one column, missing values, the user's own categories, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from derand import Threat, from_model
from derand.convert import read_model
from tests.convert.parity import require_parity


def _make_people(n_rows: int = 400) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Numbers with gaps and categories of words and of numbers, which an encoder would renumber."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "income": rng.lognormal(3, 1, n_rows),
            "job": rng.choice(["cook", "clerk", "farmer", "nurse"], n_rows),
            "age": rng.integers(18, 90, n_rows).astype(float),
            "plan": rng.choice([7, 3, 40], n_rows),
        }
    )
    y = (people["age"] > 50).astype(int) + (people["job"] == "cook") + 2 * (people["plan"] == 40) > 1
    people.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    people.loc[rng.random(n_rows) < 0.1, "job"] = np.nan
    return people, y.to_numpy()


@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 1},
        {"interaction_cst": "no_interactions"},
        {"interaction_cst": [{0, 1}, {2}, {3}], "max_leaf_nodes": 5},
        {"interaction_cst": "no_interactions", "early_stopping": True, "n_iter_no_change": 2},
    ],
    ids=["stumps", "no_interactions", "groups", "early_stopping"],
)
def test_scores_and_labels_of_three_classes(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = HistGradientBoostingClassifier(max_iter=15, random_state=0, **options).fit(X, y)
    imported = require_parity(model, tmp_path)
    np.testing.assert_allclose(imported.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
def test_numbers(loss: str, tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    options = {"quantile": 0.7} if loss == "quantile" else {}
    model = HistGradientBoostingRegressor(loss=loss, max_iter=20, interaction_cst="no_interactions", **options)
    require_parity(model.fit(X, y), tmp_path)


@pytest.mark.parametrize("depth", [1, None])
def test_categories_are_the_users_own(depth: int | None, tmp_path: Path) -> None:
    people, y = _make_people()
    model = HistGradientBoostingClassifier(
        categorical_features=["job", "plan"], max_depth=depth, max_iter=20, interaction_cst="no_interactions"
    ).fit(people, y)
    imported = require_parity(model, tmp_path)
    assert imported.encoding_.categories == {1: ("clerk", "cook", "farmer", "nurse"), 3: (3, 7, 40)}
    np.testing.assert_allclose(imported.decision_function(people), model.decision_function(people), atol=1e-9)
    odd = pd.DataFrame({"income": [5.0] * 3, "job": ["pilot", np.nan, "cook"], "age": [30.0] * 3, "plan": [3, 8, 40]})
    np.testing.assert_allclose(imported.decision_function(odd), model.decision_function(odd), atol=1e-9)
    for frozen, verdict in ((["plan"], "holds"), (["income"], "flips")):  # the plan decides
        threat = Threat(norm=None, limits={"age": 2.0}, l0=1, frozen=frozen)
        assert (imported.certify(people[:50], threat=threat).verdict == verdict).all()


def test_categories_of_an_array_are_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 6, 300) * 10.0, rng.normal(size=300)])
    y = (X[:, 1] % 20 == 0) ^ (X[:, 0] > 1)
    model = HistGradientBoostingClassifier(categorical_features=[1], max_depth=1, max_iter=20).fit(X, y)
    imported = require_parity(model, tmp_path)
    assert imported.encoding_.categories[1] == (0.0, 10.0, 20.0, 30.0, 40.0, 50.0)
    assert read_model(model).tables[0].feature == 1


def test_what_cannot_be_read_is_refused_with_the_reason() -> None:
    X, y = load_diabetes(return_X_y=True)
    for loss in ("poisson", "gamma"):
        with pytest.raises(ValueError, match=f"'{loss}'.*exponential"):
            from_model(HistGradientBoostingRegressor(loss=loss, max_iter=2).fit(X, y))
    with pytest.raises(ValueError, match="must be fitted"):
        from_model(HistGradientBoostingRegressor())
