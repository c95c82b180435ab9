"""LightGBM: zeros and gaps, the user's own categories, forests, DART, several classes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import from_model
from derand.convert import read_file, read_model
from experiments.importing.models import make_numbers, make_people
from tests.convert.examples import as_categories, require_example, require_limits
from tests.convert.parity import require_parity

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
OPTIONS = {"n_estimators": 20, "max_depth": 1, "verbose": -1, "n_jobs": 1, "min_data_per_group": 5, "cat_smooth": 1}


def _classify(X: Any, y: Any, **options: Any) -> Any:
    return lightgbm.LGBMClassifier(**{**OPTIONS, **options}).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"max_cat_to_onehot": 10},
        {"boosting_type": "dart", "drop_rate": 0.5},
        {"boosting_type": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
        {"sigmoid": 2.5},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_the_users_own_frame(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = make_people()
    model = _classify(X, np.where(y, "yes", "no"), **options)
    cast = as_categories(X)
    imported = require_parity(model, tmp_path, ask=lambda table: model.predict(cast(table)))
    assert imported.encoding_.categories == {1: ("clerk", "cook", "farmer", "nurse"), 3: (3, 7, 40)}
    np.testing.assert_allclose(imported.predict_proba(X), model.predict_proba(X), atol=1e-9)


def test_zeros_that_are_missing_have_a_band_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 1)) < 0.4, 0.0, rng.normal(size=(500, 1)))
    model = _classify(X, (np.abs(X[:, 0]) > 0) & (X[:, 0] < 0.5), zero_as_missing=True)
    imported = require_parity(model, tmp_path)
    near = np.array([[0.0], [1e-36], [-1e-36], [1e-34], [-1e-34], [np.nan]])
    np.testing.assert_allclose(imported.decision_function(near), model.predict(near, raw_score=True), atol=1e-12)


def test_numbers_next_to_zero_are_zeros(tmp_path: Path) -> None:
    X = np.repeat([[-1.0], [0.0], [1.0]], 100, axis=0)
    model = _classify(X, np.repeat([0, 1, 0], 100))
    imported = require_parity(model, tmp_path)
    edges = imported.ensemble_.terms[0].edges
    assert edges.tolist() == [-float(np.float32(1e-35)), float(np.nextafter(np.float64(np.float32(1e-35)), 1))]


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
def test_several_classes(objective: str, tmp_path: Path) -> None:
    X, y = make_numbers(n_classes=3)
    largest = 1e-9 if objective == "multiclass" else 1e-6
    require_parity(_classify(X, y, objective=objective), tmp_path, largest_error=largest)


@pytest.mark.parametrize("objective", ["regression", "mae", "huber", "quantile"])
def test_numbers(objective: str, tmp_path: Path) -> None:
    X, y = make_people()
    model = lightgbm.LGBMRegressor(**OPTIONS, objective=objective).fit(X, y + X["income"])
    require_parity(model, tmp_path, ask=lambda table: model.predict(as_categories(X)(table)))


def test_deep_trees_of_few_columns(tmp_path: Path) -> None:
    X, y = make_numbers()
    require_parity(_classify(X, y, max_depth=4, interaction_constraints=[[0, 1], [2]], max_bin=15), tmp_path)


def test_whole_numbers_as_categories_of_an_array(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 40, 500), 3 * rng.integers(0, 5, 500)], axis=1).astype(float)
    model = lightgbm.LGBMClassifier(**OPTIONS).fit(X, (X[:, 0] % 3 == 0) ^ (X[:, 1] > 6), categorical_feature=[0, 1])
    imported = require_parity(model, tmp_path)
    assert imported.encoding_.categories[1] == (0, 3, 6, 9, 12)


def test_trees_after_the_best_round_are_left_out() -> None:
    X, y = make_numbers(800)
    model = lightgbm.LGBMClassifier(**{**OPTIONS, "n_estimators": 200, "learning_rate": 1.0})
    model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], callbacks=[lightgbm.early_stopping(3, verbose=False)])
    imported = from_model(model)
    np.testing.assert_allclose(imported.decision_function(X), model.predict(X, raw_score=True), atol=1e-9)
    booster = lightgbm.train({"objective": "binary", "max_depth": 1, "verbose": -1}, lightgbm.Dataset(X, y), 20)
    booster.best_iteration = 3
    short = from_model(booster)
    np.testing.assert_allclose(short.decision_function(X), booster.predict(X, raw_score=True), atol=1e-9)
    assert np.abs(short.decision_function(X) - booster.predict(X, raw_score=True, num_iteration=20)).max() > 0.01


def test_a_file_is_the_model(tmp_path: Path) -> None:
    X, y = make_people()
    model = _classify(X, y)
    model.booster_.save_model(tmp_path / "model.txt")
    kept, own = read_file(tmp_path / "model.txt"), read_model(model)
    assert kept.encoding.categories == own.encoding.categories
    assert kept.classes is not None
    np.testing.assert_array_equal(kept.classes, [0, 1])
    rows = own.encoding.encode(X)
    np.testing.assert_array_equal(kept.build().score(rows), own.build().score(rows))
    (tmp_path / "no.txt").write_text("once upon a time")
    with pytest.raises(ValueError, match="no model of LightGBM"):
        read_file(tmp_path / "no.txt")


def test_names_with_spaces_come_from_a_table() -> None:
    X, y = make_people()
    X = X.rename(columns={"income": "income of 2020"})
    imported = from_model(_classify(X, y), X)
    assert imported.feature_names_in_[0] == "income of 2020"
    assert imported.certify(X[:3]).radius.shape == (3,)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: lightgbm.LGBMRegressor(**OPTIONS, objective="poisson").fit(X, y), "answers exp of its raw score"),
        (lambda X, y: lightgbm.LGBMRegressor(**OPTIONS, reg_sqrt=True).fit(X, y), "reg_sqrt"),
        (lambda X, y: lightgbm.LGBMRegressor(**OPTIONS, linear_tree=True).fit(X, y), "linear_tree"),
        (lambda X, y: lightgbm.LGBMRanker(**OPTIONS).fit(X, y, group=[20] * 20), "ranking"),
        (lambda X, y: lightgbm.LGBMClassifier(), "must be fitted"),
        (lambda X, y: _classify(X, y, pred_early_stop=True), "leaves trees out"),
        (lambda X, y: _classify(np.nan_to_num(X), y + 0, objective="cross_entropy"), "cross_entropy"),
    ],
    ids=["poisson", "sqrt", "linear", "rank", "unfitted", "early", "cross_entropy"],
)
def test_what_is_refused(make: Any, words: str) -> None:
    X, y = make_numbers()
    X = np.concatenate([X, np.random.default_rng(0).normal(size=X.shape)], axis=1)
    with pytest.raises(ValueError, match=words):
        read_model(make(X, y))


def test_ordered_categories_are_refused() -> None:
    X, y = make_people()
    X["plan"] = pd.Categorical(X["plan"], ordered=True)
    with pytest.raises(ValueError, match="does not keep which are which"):
        read_model(_classify(X, y))


def test_saturated_probabilities_are_refused() -> None:
    X, y = make_numbers(n_classes=3)
    with pytest.raises(ValueError, match="round to 1"):
        read_model(_classify(X, y, objective="multiclassova", learning_rate=1.0, n_estimators=60))


def test_own_objective_has_raw_scores_alone() -> None:
    X, y = make_numbers()
    model = _classify(X, y, objective=lambda y, p: (1 / (1 + np.exp(-p)) - y, np.full_like(p, 0.25)))
    assert read_model(model).link == "none"


def test_limits_and_files(tmp_path: Path) -> None:
    X, y = make_people()
    require_limits(_classify(X, y), X, "income", tmp_path)


def test_draws_attacks_and_audits() -> None:
    require_example("LightGBM")


def test_categories_of_a_column_that_cannot_have_them_are_refused() -> None:
    rng = np.random.default_rng(0)
    sizes = pd.Categorical(rng.choice(["L", "M", "S"], 200), categories=["S", "M", "L"], ordered=True)
    table = pd.DataFrame({"size": sizes, "code": rng.integers(10, 14, 200)})
    options = {"n_estimators": 5, "max_depth": 1, "min_data_per_group": 2, "cat_smooth": 1, "verbose": -1}
    model = lightgbm.LGBMClassifier(**options).fit(table, table["code"] % 2, categorical_feature=["code"])
    with pytest.raises(ValueError, match="does not keep which are which"):
        from_model(model)


def test_fractions_are_no_categories() -> None:
    rng = np.random.default_rng(0)
    table = np.stack([rng.integers(0, 6, 200), rng.normal(size=200)], axis=1)
    options = {"n_estimators": 5, "max_depth": 1, "min_data_per_group": 2, "cat_smooth": 1, "verbose": -1}
    model = lightgbm.LGBMClassifier(**options).fit(table, table[:, 0] % 2 == 0, categorical_feature=[0])
    with pytest.raises(ValueError, match=r"must hold whole numbers.*cut it off"):
        from_model(model).predict(table + np.array([0.5, 0.0]))
