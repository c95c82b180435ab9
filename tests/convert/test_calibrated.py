"""Calibrated classifiers and moved thresholds around trees: the library's own labels, on ties, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from derand import from_model, load, save
from derand.convert import probe_rows, read_model
from derand.convert._edges import bracket_single
from tests.convert.test_deep import make_wide

X, Y = make_wide(gaps=False)
LABEL = (Y > 0).astype(int)


def make_inner(name: str) -> Any:
    """A model with few trees."""
    if name == "xgboost":
        return pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, n_jobs=1)
    if name == "lightgbm":
        return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)
    if name == "forest":
        return RandomForestClassifier(20, random_state=0)
    return GradientBoostingClassifier(n_estimators=10, random_state=0)


INNER = ("boosting", "forest", "lightgbm", "xgboost")


def require_labels(model: Any, folder: Path) -> Any:
    """Labels of an imported model on edges, on random rows and of a file, nearly all of them sure."""
    imported = from_model(model)
    rows = np.concatenate([probe_rows(read_model(model), imported.ensemble_, 2_000), X])
    lead = imported.ensemble_.score(rows) - imported.ensemble_.threshold
    is_sure = np.abs(lead) > imported.ensemble_.bound_errors(rows)
    assert is_sure.mean() > 0.99
    np.testing.assert_array_equal(imported.predict(rows)[is_sure], model.predict(rows)[is_sure])
    np.testing.assert_array_equal(imported.predict(rows), imported.classes_[(lead > 0).astype(int)])
    save(imported, folder / "model.json")
    np.testing.assert_array_equal(load(folder / "model.json").predict(rows), imported.predict(rows))
    return imported


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", INNER)
def test_one_calibrator_is_a_threshold(name: str, method: str, tmp_path: Path) -> None:
    model = CalibratedClassifierCV(make_inner(name), method=method, ensemble=False, cv=3).fit(X, LABEL)
    assert require_labels(model, tmp_path).link_ == "none"


@pytest.mark.parametrize("name", INNER)
def test_a_falling_map_turns_the_score_around(name: str, tmp_path: Path) -> None:
    """The model inside was fitted before, to the opposite labels."""
    inner = make_inner(name).fit(X, 1 - LABEL)
    model = CalibratedClassifierCV(FrozenEstimator(inner), method="sigmoid").fit(X, LABEL)
    imported = require_labels(model, tmp_path)
    assert (imported.predict(X) == LABEL).mean() > 0.8


@pytest.mark.parametrize("positive", [None, 0])
@pytest.mark.parametrize("threshold", [0.3, 0.85])
@pytest.mark.parametrize("name", INNER)
def test_fixed_thresholds(name: str, threshold: float, positive: int | None, tmp_path: Path) -> None:
    """Of a forest of 20 trees shares of 0.3 and 0.85 are common: they are at the threshold."""
    inner = make_inner(name)
    model = FixedThresholdClassifier(inner, threshold=threshold, pos_label=positive, response_method="predict_proba")
    imported = require_labels(model.fit(X, LABEL), tmp_path)
    np.testing.assert_allclose(imported.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_tuned_thresholds(tmp_path: Path) -> None:
    for name in ("forest", "xgboost"):
        require_labels(TunedThresholdClassifierCV(make_inner(name), cv=3).fit(X, LABEL), tmp_path)


def test_thresholds_are_moved_by_ours(tmp_path: Path) -> None:
    """`decision_threshold` moves the threshold of an imported forest."""
    model = RandomForestClassifier(20, random_state=0).fit(X, LABEL)
    moved = from_model(model, decision_threshold=0.325)
    np.testing.assert_array_equal(moved.predict(X), (model.predict_proba(X)[:, 1] > 0.325).astype(int))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CalibratedClassifierCV(make_inner("forest"), cv=3).fit(X, LABEL), "averages 3 .*ensemble=False"),
        (
            lambda: CalibratedClassifierCV(make_inner("forest"), ensemble=False, cv=3).fit(X, Y),
            "only that of two classes",
        ),
        (lambda: CalibratedClassifierCV(make_inner("forest")), "must be fitted"),
        (
            lambda: CalibratedClassifierCV(
                FixedThresholdClassifier(make_inner("forest"), threshold=0.3), ensemble=False, cv=3
            ).fit(X, LABEL),
            "whose own threshold it leaves out",
        ),
        (
            lambda: CalibratedClassifierCV(
                FrozenEstimator(make_inner("boosting").fit(X, 1 - LABEL)), method="isotonic"
            ).fit(X, LABEL),
            "answers the same",
        ),
    ],
    ids=["ensemble", "classes", "unfitted", "threshold", "constant"],
)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_model(make())


def test_linear_models_are_calibrated_too() -> None:
    model = CalibratedClassifierCV(LogisticRegression(), ensemble=False, cv=3).fit(X, LABEL)
    np.testing.assert_array_equal(from_model(model).predict(X), model.predict(X))


def test_answers_in_single_precision_are_bracketed() -> None:
    """By the two neighbours, or by all that lies between the first change and the last one."""
    step = float(np.float32(0.1))
    low, high = bracket_single(lambda x: x >= step)
    assert high == step
    assert low == float(np.nextafter(np.float32(0.1), np.float32(0)))
    assert bracket_single(lambda x: x > np.inf) == (np.inf, np.inf)
    assert bracket_single(lambda x: x < np.inf) == (-np.inf, -np.inf)
    low, high = bracket_single(lambda x: (x > 0.5) & (x != 0.75) | (x > 1e30))
    assert low <= 0.5 < high
