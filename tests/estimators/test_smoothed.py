"""SmoothedClassifier and SmoothedRegressor: noisy copies, scikit-learn's checks, warnings, saving."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from derand import Gaussian, SmoothedClassifier, SmoothedRegressor, load, save
from derand.estimators import ImportedClassifier, ImportedRegressor
from derand.tables import stack_copies

STUMPS = GradientBoostingClassifier(max_depth=1, n_estimators=8, random_state=0)
REGRESSION_STUMPS = GradientBoostingRegressor(max_depth=1, n_estimators=30, learning_rate=0.3, random_state=0)
EXCUSED = {
    "check_sample_weight_equivalence_on_dense_data": "copies of a row get noise of their own, its weight does not; nor "
    "does scikit-learn's gradient boosting pass it",
}
OF_CLASSIFIERS = {"check_estimators_nan_inf": "a column that no stump reads may hold anything: the answer is the same"}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [
        SmoothedClassifier(STUMPS, scaling="standard", augment=2, rule="mean", random_state=0),
        SmoothedRegressor(REGRESSION_STUMPS, scaling="standard", augment=0, rule="mean"),
    ],
    expected_failed_checks=lambda one: EXCUSED | (OF_CLASSIFIERS if isinstance(one, SmoothedClassifier) else {}),
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """Every check that scikit-learn has, but for those excused above."""
    check(estimator)


@pytest.fixture(scope="module")
def tumours() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :5], np.where(y == 1, "benign", "malignant")


class Recorder(GradientBoostingClassifier):
    """Keeps what it was trained on."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.seen_ = X, np.asarray(y), sample_weight
        return super().fit(np.asarray(X, dtype=float), y, sample_weight)


def test_copies_are_the_rows_and_noise_in_its_units(tumours: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Each row comes `augment` times, with labels and weights, off by noise of the sigma asked for in each column."""
    X, y = tumours
    weights = np.linspace(0.5, 1.5, len(y))
    clf = SmoothedClassifier(
        Recorder(max_depth=1, n_estimators=3), noise="gaussian:0.5", augment=4, scaling="standard", random_state=1
    ).fit(X, y, weights)
    rows, labels, given = clf.estimator_.seen_
    assert list(rows.columns) == list(X.columns)
    assert (labels == np.tile(y, 4)).all()
    assert np.allclose(given, np.tile(weights, 4))
    moves = (rows.to_numpy() - np.tile(X.to_numpy(), (4, 1))) / X.std(ddof=0).to_numpy()
    assert np.allclose(moves.std(axis=0), 0.5, rtol=0.06)
    assert np.allclose(moves.mean(axis=0), 0.0, atol=0.06)
    assert len(np.unique(moves)) == moves.size
    assert np.allclose(clf.noise_.units, X.std(ddof=0), rtol=1e-12)


def test_no_copies_train_on_the_rows_themselves(tumours: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = tumours
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = SmoothedClassifier(clone(STUMPS), augment=0, scaling="standard").fit(X, y)
    assert (clf.estimator_.predict(X) == clone(STUMPS).fit(X, y).predict(X)).all()


def test_what_smoothing_costs_is_told() -> None:
    """Stripes that noise blurs: the warning names `augment`, then less noise, which costs nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 2))
    y = (np.sin(8 * X[:, 0]) > 0) | (X[:, 1] > 0.5)
    inner = GradientBoostingClassifier(max_depth=1, n_estimators=80, learning_rate=0.5, random_state=0)
    loud = SmoothedClassifier(inner, noise="gaussian:0.5", augment=0, rule="mean", random_state=0)
    with pytest.warns(UserWarning, match=r"Smoothing costs .* points of accuracy .* set `augment`, to 10"):
        loud.fit(X, y)
    with pytest.warns(UserWarning, match=r"trained without noise.* 8 noisy copies of each row.* take less noise"):
        clone(loud).set_params(augment=8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = clone(loud).set_params(augment=8, noise="gaussian:0.01").fit(X, y)
    assert quiet.score(X, y) > loud.score(X, y)


def test_a_model_of_one_answer_is_told() -> None:
    """Noise that drowns the columns: the larger class for every row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] > 0.8, "yes", "no")
    inner = GradientBoostingClassifier(max_depth=1, n_estimators=10, random_state=0)
    with pytest.warns(UserWarning, match="300 training rows gets the same answer, 'no'.*less noise"):
        SmoothedClassifier(inner, noise="gaussian:20", augment=5, random_state=0).fit(X, y)


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_saved_as_the_model_that_was_read(tumours: tuple[pd.DataFrame, np.ndarray], rule: str, tmp_path: Path) -> None:
    """A file holds an ImportedClassifier, with the same noise, rule, labels, radii and probabilities."""
    X, y = tumours
    clf = SmoothedClassifier(STUMPS, augment=2, scaling="standard", rule=rule, random_state=0).fit(X, y)
    save(clf, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert type(again) is ImportedClassifier
    assert again.rule == rule
    assert again.noise_ == clf.noise_
    rows = X.iloc[:40]
    assert again.certify(rows).radius.tobytes() == clf.certify(rows).radius.tobytes()
    assert (again.predict_proba(rows) == clf.predict_proba(rows)).all()
    with pytest.raises(ValueError, match="must be fitted, got a SmoothedClassifier"):
        save(SmoothedClassifier(STUMPS), tmp_path / "other.json")


def test_regressors(tumours: tuple[pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    """Trained on noisy copies, certified by intervals that hold the answer, saved as what was read."""
    X, _ = tumours
    rows, target = X.iloc[:, 1:], X.iloc[:, 0].to_numpy()
    model = SmoothedRegressor(
        GradientBoostingRegressor(max_depth=1, n_estimators=60, random_state=0),
        noise="gaussian:0.1",
        augment=3,
        scaling="standard",
        random_state=0,
    ).fit(rows, target)
    assert model.score(rows, target) > 0.9
    found = model.certify_interval(rows.iloc[:20], 0.05)
    answers = model.predict(rows.iloc[:20])
    assert ((found.low <= answers) & (answers <= found.high)).all()
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert type(again) is ImportedRegressor
    assert (again.predict(rows.iloc[:20]) == answers).all()


def test_grid_search_reaches_the_inner_model(tumours: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = tumours
    search = GridSearchCV(
        SmoothedClassifier(STUMPS, scaling="standard", rule="mean", random_state=0),
        {"estimator__n_estimators": [2, 12], "augment": [0, 2]},
        cv=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    assert search.best_params_["estimator__n_estimators"] == 12
    assert search.best_estimator_.estimator_.n_estimators == 12
    assert STUMPS.n_estimators == 8


def test_pipelines_are_trained_and_read_as_a_whole() -> None:
    """Noise is added in the user's own columns, before any step; weights reach the last one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(5, 3, 200), "job": rng.choice(["cook", "clerk"], 200)})
    y = frame["x"] + 2 * (frame["job"] == "cook") > 6
    columns = ColumnTransformer([("numbers", StandardScaler(), ["x"]), ("categories", OneHotEncoder(), ["job"])])
    inner = make_pipeline(columns, GradientBoostingClassifier(max_depth=1, n_estimators=20, random_state=0))
    clf = SmoothedClassifier(inner, augment=3, scaling="standard", rule="mean", random_state=0)
    clf.fit(frame, y, np.where(y, 2.0, 1.0))
    assert clf.encoding_.names == ("x", "job")
    assert clf.encoding_.categories == {1: ("clerk", "cook")}
    assert clf.score(frame, y) > 0.85


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "objects", "whole numbers"])
def test_tables_keep_their_kind(kind: str) -> None:
    """Noise is added to numbers alone: text, booleans and gaps stay as they are, and so does the kind of the table."""
    frame = pd.DataFrame(
        {"n": [1, 2, 3], "x": [0.5, np.nan, 1.5], "word": ["a", "b", None], "flag": [True, False, True]}
    )
    noisy = np.arange(24.0).reshape(2, 3, 4)
    noisy[:, 1, 1] = np.nan
    if kind == "whole numbers":
        out = stack_copies(np.ones((3, 4), dtype=int), [0, 1, 2, 3], noisy)
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out, noisy.reshape(6, 4))
        return
    tables = {
        "pandas": frame.astype({"word": "category"}),
        "polars": pl.DataFrame({name: [None if pd.isna(cell) else cell for cell in frame[name]] for name in frame}),
        "pyarrow": pa.Table.from_pandas(frame),
        "objects": frame.to_numpy(dtype=object),
    }
    out = stack_copies(tables[kind], [0, 1], noisy)
    assert type(out) is type(tables[kind])
    if kind == "pandas":
        assert out.dtypes["word"] == "category"
        assert out.index.tolist() == list(range(6))
    cells = out if kind == "objects" else np.stack([np.asarray(out[name], dtype=object) for name in frame], axis=1)
    np.testing.assert_array_equal(cells[:, :2].astype(float), noisy.reshape(6, 4)[:, :2])
    assert cells[:, 3].tolist() == [True, False, True] * 2
    assert [word if isinstance(word, str) else None for word in cells[:, 2]] == ["a", "b", None] * 2


class Coder(BaseEstimator):
    """A model that nobody can read."""

    def fit(self, X: Any, y: Any) -> Coder:
        return self


def test_bad_input_is_named(tumours: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = tumours
    for augment in (-1, 2.5, True, 10**6):
        with pytest.raises(ValueError, match="`augment` must be a whole number from 0 to 1000"):
            SmoothedClassifier(STUMPS, augment=augment).fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`estimator` must be a model to be trained"):
        SmoothedClassifier(GradientBoostingClassifier).fit(X, y)
    with pytest.raises(ValueError, match="`noise` of SmoothedClassifier must be a noise, got 'none'"):
        SmoothedClassifier(STUMPS, noise="none").fit(X, y)
    with pytest.raises(TypeError, match="which is no sum of functions of few columns"):
        SmoothedClassifier(Coder()).fit(X, y)
    with pytest.raises(ValueError, match="`scaling` is 'standard' and the noise has `units` of its own"):
        SmoothedClassifier(STUMPS, noise=Gaussian(0.2, units=(1.0,) * 5), scaling="standard").fit(X, y)


def test_noise_on_categories_is_refused() -> None:
    """Whole numbers that the inner model reads as categories must be said to be such, or they would get noise."""
    glassbox = pytest.importorskip("interpret.glassbox")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "code": rng.integers(0, 4, 200)})
    y = frame["x"] + frame["code"] > 1.5
    inner = glassbox.ExplainableBoostingClassifier(
        interactions=0, feature_types=["continuous", "nominal"], outer_bags=1, max_rounds=20, n_jobs=1
    )
    with pytest.raises(ValueError, match=r"categories to which noise was added: code\. Name them in"):
        SmoothedClassifier(inner, augment=2, random_state=0).fit(frame, y)
    clf = SmoothedClassifier(inner, augment=2, categorical_features=["code"], random_state=0).fit(frame, y)
    assert clf.encoding_.categories == {1: (0, 1, 2, 3)}
    assert clf.score(frame, y) > 0.8
