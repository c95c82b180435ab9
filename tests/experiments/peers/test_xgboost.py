"""XGBoost's stumps as step functions: the same margin within the stated error, edges exact to the last double."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from derand import StepFunction
from derand._core.arrays import FloatArray
from experiments.peers import convert_stumps, find_edge

REASON = "the dependency group `peers` is not installed"
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0**-126, -(2.0**-126), 2.0**-149, -(2.0**-149), 16777217.0]
LARGEST = float(np.finfo(np.float32).max)


@pytest.fixture(scope="module")
def xgboost() -> Any:
    """The library, or a skip."""
    return pytest.importorskip("xgboost", reason=REASON)


def draw_rows(n_rows: int = 400, seed: int = 7) -> tuple[FloatArray, Any]:
    """Columns of very different size, one of them of few values, and classes that depend on all but the last."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5)) * [1.0, 1e-6, 1e7, 1.0, 1.0]
    X[:, 3] = np.round(X[:, 3])
    return X, (X @ [1.0, 1e6, 1e-7, 1.0, 0.0] + 0.5 * rng.normal(size=n_rows) > 0.3).astype(int)


def list_neighbours(model: Any) -> FloatArray:
    """A row at every edge of the model, and one ulp of doubles and of single precision around it."""
    rng, rows = np.random.default_rng(1), []
    for term in model.step_functions:
        for edge in term.edges:
            threshold = np.float32(edge)
            if float(threshold) < edge:  # the middle went to the predecessor
                threshold = np.nextafter(threshold, np.float32(np.inf))
            around = [edge, float(threshold)]
            around += [float(np.nextafter(at, to)) for at in around for to in (-np.inf, np.inf)]
            around += [float(np.nextafter(threshold, np.float32(to))) for to in (-np.inf, np.inf)]
            for value in around:
                row = rng.normal(size=model.n_features)
                row[term.feature] = value
                rows.append(row)
    return np.array(rows)


def measure_gap(xgboost: Any, classifier: Any, model: Any, rows: FloatArray) -> float:
    """Largest distance of score and margin beyond the stated error, in grid units; the threshold is rounded down."""
    margin = classifier.get_booster().predict(xgboost.DMatrix(rows), output_margin=True).astype(np.float64)
    distance = model.score(rows) - model.threshold - margin * model.levels
    return float(np.maximum(distance - 1, -distance).max() - model.score_error)


def test_the_edge_is_the_first_double_that_is_not_below() -> None:
    """At the edge and one double above, the rounded number is not below the threshold; one double below, it is."""
    rng = np.random.default_rng(0)
    drawn = np.concatenate([SPECIAL, rng.normal(size=300), np.exp(rng.uniform(-100, 85, 300)), [LARGEST]])
    for threshold in np.concatenate([drawn, -drawn]).astype(np.float32):
        edge = find_edge(threshold)
        with np.errstate(over="ignore"):  # beyond the largest number
            assert not np.float32(edge) < threshold
            assert not np.float32(np.nextafter(edge, np.inf)) < threshold
            assert np.float32(np.nextafter(edge, -np.inf)) < threshold


@pytest.mark.parametrize("n_trees", [1, 30, 200])
@pytest.mark.parametrize("levels", [1000, 2**20])
def test_margins_agree_within_the_stated_error(xgboost: Any, n_trees: int, levels: int) -> None:
    """On training rows, fresh rows, and around every edge."""
    X, y = draw_rows()
    classifier = xgboost.XGBClassifier(n_estimators=n_trees, max_depth=1, n_jobs=1).fit(X, y)
    model = convert_stumps(classifier, X.shape[1], levels)
    assert all(isinstance(term, StepFunction) for term in model.terms)
    for rows in (X, draw_rows(seed=8)[0], list_neighbours(model)):
        assert measure_gap(xgboost, classifier, model, rows) <= 0
        is_clear = np.abs(model.score(rows) - model.threshold) > model.score_error + 1
        assert (((model.score(rows) > model.threshold) == classifier.predict(rows)) | ~is_clear).all()
    assert model.score_error / levels < 1e-3 + 5 / levels


def test_a_wrong_edge_would_be_noticed(xgboost: Any) -> None:
    """The rows around edges tell a model whose edges are XGBoost's thresholds from the one that is deployed."""
    X, y = draw_rows()
    classifier = xgboost.XGBClassifier(n_estimators=30, max_depth=1, n_jobs=1).fit(X, y)
    model = convert_stumps(classifier, X.shape[1])
    terms = [StepFunction(term.feature, np.nextafter(term.edges, np.inf), term.scores) for term in model.step_functions]
    wrong = type(model)(terms, model.threshold, model.n_features, model.levels, model.score_error)
    assert measure_gap(xgboost, classifier, wrong, list_neighbours(model)) > 0


def test_a_booster_and_its_classifier_are_one_model(xgboost: Any) -> None:
    """Also with a start of one's own, and several trees in a round."""
    X, y = draw_rows()
    options = {"n_estimators": 20, "max_depth": 1, "base_score": 0.9, "num_parallel_tree": 2, "subsample": 0.5}
    classifier = xgboost.XGBClassifier(n_jobs=1, **options).fit(X, y)
    model = convert_stumps(classifier, 5)
    other = convert_stumps(classifier.get_booster(), 5)
    assert model.threshold == other.threshold
    assert [term.describe() for term in model.terms] == [term.describe() for term in other.terms]
    assert measure_gap(xgboost, classifier, model, X) <= 0


def test_trees_without_a_split_move_the_threshold(xgboost: Any) -> None:
    """Nothing to split: constants alone."""
    X, y = np.zeros((20, 2)), np.arange(20) % 5 == 0
    classifier = xgboost.XGBClassifier(n_estimators=3, max_depth=1, n_jobs=1, base_score=0.5).fit(X, y)
    model = convert_stumps(classifier, 2)
    assert model.terms == ()
    assert model.threshold > 0
    assert measure_gap(xgboost, classifier, model, X) <= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"booster": "dart"}, 'must have the booster "gbtree", got "dart"'),
        ({"booster": "gblinear"}, 'must have the booster "gbtree", got "gblinear"'),
        ({"objective": "binary:logitraw"}, 'must have the objective "binary:logistic", got "binary:logitraw"'),
        ({"objective": "multi:softprob", "num_class": 3}, 'must have the objective "binary:logistic", got "multi'),
        ({"max_depth": 2}, "tree 0 is deeper: train with max_depth=1"),
    ],
)
def test_other_models_are_refused(xgboost: Any, options: dict[str, Any], message: str) -> None:
    """The error says what the model must be."""
    X, y = draw_rows()
    settings = {"max_depth": 1, "objective": "binary:logistic", **options}
    if settings.get("booster") == "gblinear":
        del settings["max_depth"]
    booster = xgboost.train(settings, xgboost.DMatrix(X, y), num_boost_round=3)
    with pytest.raises(ValueError, match=message):
        convert_stumps(booster, 5)


def test_several_outputs_are_refused(xgboost: Any) -> None:
    """One model has one output."""
    X, y = draw_rows()
    classifier = xgboost.XGBClassifier(n_estimators=2, max_depth=1, n_jobs=1).fit(X, np.stack([y, 1 - y], axis=1))
    with pytest.raises(ValueError, match="must have one output, got 2"):
        convert_stumps(classifier, 5)


def test_categories_are_refused(xgboost: Any) -> None:
    """A split by category has no edge."""
    pandas = pytest.importorskip("pandas", reason="a table with categories needs pandas")
    codes = np.random.default_rng(2).integers(0, 3, 200)
    table = pandas.DataFrame({"kind": pandas.Categorical.from_codes(codes, ["a", "b", "c"])})
    classifier = xgboost.XGBClassifier(n_estimators=2, max_depth=1, n_jobs=1, enable_categorical=True)
    with pytest.raises(ValueError, match="tree 0 splits a categorical one"):
        convert_stumps(classifier.fit(table, codes == 1), 1)


def test_a_model_that_stopped_early_is_refused_until_it_is_cut(xgboost: Any) -> None:
    """It predicts with its best rounds alone."""
    X, y = draw_rows()
    classifier = xgboost.XGBClassifier(n_estimators=300, max_depth=1, n_jobs=1, early_stopping_rounds=2)
    classifier.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    with pytest.raises(ValueError, match="stopped early"):
        convert_stumps(classifier, 5)
    model = convert_stumps(classifier.get_booster()[: classifier.best_iteration + 1], 5)
    margin = classifier.predict(X, output_margin=True)
    assert (np.abs(model.score(X) - model.threshold - margin * model.levels) <= model.score_error + 1).all()


def test_what_is_no_model_is_refused(xgboost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another object, another width, and no xgboost at all."""
    X, y = draw_rows()
    classifier = xgboost.XGBClassifier(n_estimators=2, max_depth=1, n_jobs=1).fit(X, y)
    with pytest.raises(TypeError, match=r"must be an xgboost\.Booster or an xgboost\.XGBClassifier, got dict"):
        convert_stumps({}, 5)
    with pytest.raises(ValueError, match="`n_features` must be the model's 5, got 6"):
        convert_stumps(classifier, 6)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ValueError, match=r"needs xgboost, which is not installed: pip install --group peers"):
        convert_stumps(classifier, 5)
