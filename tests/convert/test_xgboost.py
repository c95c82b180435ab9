"""XGBoost: single precision, bases, DART's weights, categories that go right, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derand import from_model
from derand.convert import read_file, read_model
from experiments.importing.models import make_numbers, make_people
from tests.convert.examples import SINGLE_ERROR, require_example, require_limits
from tests.convert.parity import require_parity

xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
OPTIONS = {"n_estimators": 20, "max_depth": 1, "n_jobs": 1}
KEEPS_CATEGORIES = tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 1)
CATEGORIES = {"enable_categorical": True, "tree_method": "hist", "max_cat_to_onehot": 1}


def _classify(X: Any, y: Any, **options: Any) -> Any:
    return xgboost.XGBClassifier(**{**OPTIONS, **options}).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base_score": 0.9},
        {"booster": "dart", "rate_drop": 0.5},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"tree_method": "exact"},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_scores_and_labels(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = make_numbers()
    model = _classify(X, y, **options)
    imported = require_parity(model, tmp_path, largest_error=SINGLE_ERROR)
    np.testing.assert_allclose(imported.predict_proba(X), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"objective": "multi:softmax"}, {"booster": "dart", "rate_drop": 0.5}], ids=str
)
def test_several_classes(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = make_numbers(n_classes=3)
    require_parity(_classify(X, y, **options), tmp_path, largest_error=SINGLE_ERROR)


def test_forests(tmp_path: Path) -> None:
    X, y = make_numbers()
    model = xgboost.XGBRFClassifier(**OPTIONS).fit(X, y)
    require_parity(model, tmp_path, largest_error=SINGLE_ERROR)


@pytest.mark.parametrize("objective", ["reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror"])
def test_numbers(objective: str, tmp_path: Path) -> None:
    X, y = make_numbers()
    model = xgboost.XGBRegressor(**OPTIONS, objective=objective).fit(X, 10 + y + np.nan_to_num(X[:, 2]))
    require_parity(model, tmp_path, largest_error=1e-2)


def test_deep_trees_of_few_columns(tmp_path: Path) -> None:
    X, y = make_numbers()
    model = _classify(X, y, max_depth=4, interaction_constraints="[[0, 1], [2]]", max_bin=15, tree_method="hist")
    require_parity(model, tmp_path, largest_error=SINGLE_ERROR)


@pytest.mark.skipif(not KEEPS_CATEGORIES, reason="XGBoost keeps the values of categories since 3.1")
@pytest.mark.parametrize("onehot", [1, 10])
def test_the_users_own_categories(onehot: int, tmp_path: Path) -> None:
    X, y = make_people()
    model = _classify(X, y, **{**CATEGORIES, "max_cat_to_onehot": onehot})
    reading = read_model(model)
    assert reading.raw_scores is not None

    def ask(table: Any) -> Any:  # it refuses a frame with a category that training did not see, but takes its code
        return reading.raw_scores(reading.encoding.encode(table)) > 0

    imported = require_parity(model, tmp_path, largest_error=SINGLE_ERROR, ask=ask)
    assert imported.encoding_.categories == {1: ("clerk", "cook", "farmer", "nurse"), 3: (3, 7, 40)}
    require_limits(model, X, "income", tmp_path)
    require_example("XGBoost, categories")


@pytest.mark.skipif(not KEEPS_CATEGORIES, reason="XGBoost keeps the values of categories since 3.1")
def test_letters_that_xgboost_loses() -> None:
    X, y = make_people()
    X["job"] = X["job"].cat.rename_categories({"cook": "Köchin"})
    with pytest.raises(ValueError, match="other letters than ASCII"):
        read_model(_classify(X, y, **CATEGORIES))


@pytest.mark.skipif(KEEPS_CATEGORIES, reason="XGBoost keeps the values of categories since 3.1")
def test_categories_that_were_not_kept() -> None:
    X, y = make_people()
    with pytest.raises(ValueError, match="did not keep its values"):
        read_model(_classify(X, y, **CATEGORIES))


def test_codes_of_an_array(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 40, 500), 3 * rng.integers(0, 5, 500)], axis=1).astype(float)
    table = xgboost.DMatrix(X, (X[:, 0] % 3 == 0) ^ (X[:, 1] > 6), feature_types=["c", "c"], enable_categorical=True)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 1, "tree_method": "hist"}, table, 20)
    imported = from_model(booster)
    own = booster.predict(table, output_margin=True)
    np.testing.assert_allclose(imported.decision_function(X), own, atol=1e-5)


def test_trees_after_the_best_round_are_left_out() -> None:
    X, y = make_numbers(800)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=1, learning_rate=1.0, early_stopping_rounds=5, n_jobs=1)
    model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    own = model.predict(X, output_margin=True)
    np.testing.assert_allclose(from_model(model).decision_function(X), own, atol=1e-5)
    native = from_model(model.get_booster())  # which predicts with all trees, unless told otherwise
    every = model.get_booster().predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(native.decision_function(X), every, atol=1e-5)
    assert np.abs(own - every).max() > 0.01


@pytest.mark.parametrize("suffix", [pytest.param(".json", marks=pytest.mark.long), ".ubj"])
def test_a_file_is_the_model(suffix: str, tmp_path: Path) -> None:
    X, y = make_numbers()
    model = _classify(X, y)
    model.save_model(tmp_path / f"model{suffix}")
    kept = read_file(tmp_path / f"model{suffix}")
    np.testing.assert_array_equal(kept.build().score(X), read_model(model).build().score(X))
    (tmp_path / f"no{suffix}").write_text("{}")
    with pytest.raises(ValueError, match="no model that this version of XGBoost can read"):
        read_file(tmp_path / f"no{suffix}")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: xgboost.XGBRegressor(**OPTIONS, objective="count:poisson").fit(X, y), "not its raw score"),
        (lambda X, y: xgboost.XGBRegressor(**OPTIONS, objective="binary:logistic").fit(X, y), "probabilities"),
        (lambda X, y: xgboost.XGBClassifier(booster="gblinear", n_estimators=3).fit(X, y), "gblinear"),
        (lambda X, y: _classify(X, y, objective="binary:hinge"), "binary:hinge"),
        (lambda X, y: _classify(X, y, missing=-1.0), "missing value"),
        (lambda X, y: xgboost.XGBClassifier(), "must be fitted"),
        (lambda X, y: xgboost.XGBRanker(**OPTIONS).fit(X, y, group=[20] * 20), "rank"),
        (lambda X, y: xgboost.XGBRegressor(**OPTIONS).fit(X, np.stack([y, y], axis=1)), "several targets"),
    ],
    ids=["poisson", "logistic", "gblinear", "hinge", "missing", "unfitted", "rank", "targets"],
)
def test_what_is_refused(make: Any, words: str) -> None:
    X, y = make_numbers()
    X = np.concatenate([X, np.random.default_rng(0).normal(size=X.shape)], axis=1)
    with pytest.raises(ValueError, match=words):
        read_model(make(X, y))


def test_own_objective_has_raw_scores_alone() -> None:
    X, y = make_numbers()
    model = _classify(X, y, objective=lambda y, p: (1 / (1 + np.exp(-p)) - y, np.full_like(p, 0.25)))
    assert read_model(model).link == "none"
    np.testing.assert_array_equal(from_model(model).predict(X), model.predict(X))


def test_draws_attacks_and_audits() -> None:
    require_example("XGBoost")


def test_fractions_are_no_categories() -> None:
    rng = np.random.default_rng(0)
    table = np.stack([rng.integers(0, 6, 200), rng.normal(size=200)], axis=1)
    model = _classify(table, table[:, 0] % 2 == 0, feature_types=["c", "q"], **CATEGORIES)
    imported = from_model(model)
    np.testing.assert_array_equal(imported.predict(table), model.predict(table))
    with pytest.raises(ValueError, match=r"must hold whole numbers.*cut it off"):
        imported.predict(table + np.array([0.5, 0.0]))
