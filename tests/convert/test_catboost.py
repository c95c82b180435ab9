"""CatBoost: borders in single precision, missing values as least or largest, symmetric and other trees, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand.convert import read_file, read_model
from experiments.importing.models import make_numbers, make_people
from tests.convert.examples import require_example, require_limits
from tests.convert.parity import require_parity

catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
OPTIONS = {"iterations": 20, "depth": 1, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def _classify(X: Any, y: Any, **options: Any) -> Any:
    return catboost.CatBoostClassifier(**{**OPTIONS, **options}).fit(X, y)


def _ask(model: Any) -> Any:
    return lambda table: np.asarray(model.predict(table)).ravel()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nan_mode": "Max"},
        {"depth": 3, "border_count": 10},
        {"depth": 3, "border_count": 10, "grow_policy": "Depthwise"},
        {"depth": 3, "border_count": 10, "grow_policy": "Lossguide"},
        {"loss_function": "CrossEntropy"},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "plain",
)
def test_scores_and_labels(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = make_numbers()
    model = _classify(X, y, **options)
    imported = require_parity(model, tmp_path, ask=_ask(model))
    np.testing.assert_allclose(imported.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
def test_several_classes(loss: str, tmp_path: Path) -> None:
    X, y = make_numbers(n_classes=3)
    model = _classify(X, np.array(["low", "middle", "high"])[y], loss_function=loss)
    require_parity(model, tmp_path, ask=_ask(model))


@pytest.mark.parametrize("loss", ["RMSE", "MAE", "Quantile:alpha=0.7"])
def test_numbers(loss: str, tmp_path: Path) -> None:
    X, y = make_numbers()
    model = catboost.CatBoostRegressor(**OPTIONS, loss_function=loss).fit(X, 10 + y + np.nan_to_num(X[:, 2]))
    require_parity(model, tmp_path)


def test_scale_and_bias(tmp_path: Path) -> None:
    X, y = make_numbers()
    model = _classify(X, y)
    model.set_scale_and_bias(0.3, 0.25)
    require_parity(model, tmp_path, ask=_ask(model))


def test_a_file_is_the_model(tmp_path: Path) -> None:
    X, y = make_numbers()
    model = _classify(X, np.where(y, "yes", "no"))
    model.save_model(str(tmp_path / "model.cbm"))
    kept = read_file(tmp_path / "model.cbm")
    assert kept.classes is not None
    assert kept.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(kept.build().score(X), read_model(model).build().score(X))
    (tmp_path / "no.cbm").write_text("once upon a time")
    with pytest.raises(ValueError, match="no model that this version of CatBoost can read"):
        read_file(tmp_path / "no.cbm")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must end with one of"):
        read_file(tmp_path / "model.pkl")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_file(tmp_path / "model.cbm")


def _set_threshold(X: Any, y: Any) -> Any:
    model = _classify(X, y)
    model.set_probability_threshold(0.3)
    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: catboost.CatBoostRegressor(**OPTIONS, loss_function="Poisson").fit(X, y), "not its raw score"),
        (
            lambda X, y: catboost.CatBoostRegressor(**OPTIONS, loss_function="MultiRMSE").fit(
                X, np.stack([y, y], axis=1)
            ),
            "several numbers",
        ),
        (_set_threshold, "at a probability of 0.3"),
        (lambda X, y: catboost.CatBoostClassifier(), "must be fitted"),
    ],
    ids=["poisson", "targets", "threshold", "unfitted"],
)
def test_what_is_refused(make: Any, words: str) -> None:
    X, y = make_numbers()
    X = np.concatenate([X, np.random.default_rng(0).normal(size=X.shape)], axis=1)
    with pytest.raises(ValueError, match=words):
        read_model(make(X, y))


def test_categories_are_refused() -> None:
    X, y = make_people(gaps=False)
    X = X.astype({"job": str, "plan": str})
    with pytest.raises(ValueError, match="hashes"):
        read_model(_classify(X, y, cat_features=["job", "plan"]))


def test_limits_and_files(tmp_path: Path) -> None:
    X, y = make_numbers()
    frame = pd.DataFrame(X, columns=["income", "age", "debt"])
    require_limits(_classify(frame, y), frame, "income", tmp_path)


def test_draws_attacks_and_audits() -> None:
    require_example("CatBoost")
