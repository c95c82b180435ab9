"""Linear models of scikit-learn: raw scores as read, on rows of any size, and what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.utils import all_estimators

from derand.convert import IMPORTERS, compare_scores, is_explained, probe_rows, read_model

NAMES = sorted(name.partition(".")[2] for name, module in IMPORTERS.items() if module == "readers._sklearn_linear")
QUICK = {"LogisticRegressionCV", "TheilSenRegressor"}  # take seconds to train, and are read like the others


def fit(kind: Any, load: Any, dtype: Any = np.float64) -> Any:
    X, y = load(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind().fit((X / np.abs(X).max()).astype(dtype), y)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUICK])
def test_raw_scores_are_the_librarys(name: str) -> None:
    """On 5,000 rows with numbers from 1e-3 to 1e6 within the stated error; probabilities where it has a link."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = dict(all_estimators())
    if name not in kinds:
        pytest.skip(f"this scikit-learn has no {name}")
    is_classifier = hasattr(kinds[name], "decision_function")
    for load in (load_breast_cancer, load_iris) if is_classifier else (load_diabetes,):
        model = fit(kinds[name], load)
        reading = read_model(model)
        ensemble = reading.build()
        rows = probe_rows(reading, ensemble, 5_000)
        assert is_explained(reading, ensemble, rows)
        if reading.link == "logit":
            raw = reading.raw_scores(rows)  # type: ignore[misc]
            ours = softmax(raw, axis=1)[:, 1] if raw.ndim == 2 else expit(raw)
            np.testing.assert_allclose(model.predict_proba(rows)[:, 1], ours, atol=1e-9)


def test_a_slope_that_is_off_by_a_part_in_a_thousand_million_is_noticed() -> None:
    """The comparison that every import makes is no formality."""
    model = fit(LogisticRegression, load_breast_cancer)
    reading = read_model(model)
    ensemble = reading.build()
    rows = probe_rows(reading, ensemble, 500)
    assert compare_scores(reading, ensemble, rows) < 1e-7
    model.coef_ = model.coef_ * (1 + 1e-9)
    assert not is_explained(reading, ensemble, rows)


def test_single_precision_is_covered() -> None:
    """A model that was trained in single precision multiplies rows of that precision in it."""
    model = fit(LogisticRegression, load_breast_cancer, np.float32)
    if model.coef_.dtype != np.float32:
        pytest.skip("this release of scikit-learn trains in doubles")
    reading = read_model(model)
    ensemble = reading.build()
    rows = probe_rows(reading, ensemble, 2_000).astype(np.float32)
    theirs = model.decision_function(rows).astype(np.float64)
    exact = rows.astype(np.float64)
    ours = (ensemble.score(exact) - ensemble.threshold) / ensemble.levels
    off = np.abs(theirs - ours)
    assert off.max() > 1e-4  # which doubles would not explain
    assert (off <= ensemble.bound_errors(exact) / ensemble.levels).all()


def test_probabilities_have_a_link_only_where_they_are_one_of_raw_scores() -> None:
    """One-vs-rest normalises several logistic functions, which is no softmax."""
    X, y = load_iris(return_X_y=True)
    liblinear = LogisticRegression(solver="liblinear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            liblinear.fit(X, y)
        except ValueError:
            pytest.skip("this scikit-learn refuses liblinear for several classes")
        assert read_model(liblinear).link == "none"
    assert read_model(LogisticRegression(max_iter=1000).fit(X, y)).link == "logit"
    assert read_model(RidgeClassifier().fit(X, y)).link == "none"


def test_what_cannot_be_certified_is_refused() -> None:
    """By name: models that are not fitted, several targets or labels at once, numbers that are not finite."""
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="must be fitted"):
        read_model(LinearRegression())
    with pytest.raises(ValueError, match="several targets"):
        read_model(LinearRegression().fit(X, np.stack([y, y], axis=1)))
    with pytest.raises(ValueError, match="several"):
        read_model(RidgeClassifier().fit(X, np.stack([y > 100, y > 200], axis=1).astype(int)))
    model = LinearRegression().fit(X, y)
    model.coef_ = model.coef_ * np.inf
    with pytest.raises(ValueError, match="finite"):
        read_model(model)
