"""Deep ensembles of every library, as they are by default: raw scores on edges and beside them, labels, files."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from derand import export_onnx, from_model
from derand.convert import probe_rows, read_file, read_model
from derand.model import AdditiveEnsemble, Threshold, coarsen, move_threshold
from experiments.importing.models import make_people
from tests.convert.examples import SINGLE_ERROR, as_categories
from tests.convert.parity import require_parity

N_PROBES = 2_500


@cache
def make_wide(*, gaps: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Six columns that all matter, and classes 0, 1 and 2."""
    rng = np.random.default_rng(2)
    X = np.round(rng.normal(size=(500, 6)), 2)
    score = X[:, 0] * X[:, 1] + X[:, 2] - np.abs(X[:, 3]) + X[:, 4] * X[:, 5] + 0.3 * rng.normal(size=500)
    if gaps:
        X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.searchsorted(np.quantile(score, [0.4, 0.7]), score)


def require_trees(model: Any, folder: Path, largest_error: float = 1e-9, ask: Any = None) -> Any:
    """An imported model that holds trees, with the library's scores and labels."""
    imported = require_parity(model, folder, n_rows=N_PROBES, largest_error=largest_error, ask=ask)
    assert imported.ensemble_.has_trees
    return imported


def _xgboost(**options: Any) -> Any:
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBClassifier(**{"n_estimators": 30, "n_jobs": 1, **options})


def _lightgbm(**options: Any) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMClassifier(**{"n_estimators": 30, "n_jobs": 1, "verbose": -1, **options})


def _catboost(**options: Any) -> Any:
    catboost = pytest.importorskip("catboost")
    return catboost.CatBoostClassifier(
        **{"iterations": 30, "thread_count": 1, "verbose": 0, "allow_writing_files": False, **options}
    )


MODELS: dict[str, tuple[Callable[[], Any], bool, float]] = {
    "xgboost": (_xgboost, True, SINGLE_ERROR),
    "xgboost, dart": (lambda: _xgboost(booster="dart", rate_drop=0.3), True, SINGLE_ERROR),
    "lightgbm": (_lightgbm, True, 1e-9),
    "lightgbm, zeros": (lambda: _lightgbm(zero_as_missing=True, n_estimators=10), True, 1e-9),
    "catboost": (_catboost, True, 1e-9),
    "catboost, by depth": (lambda: _catboost(grow_policy="Depthwise"), True, 1e-9),
    "catboost, by loss": (lambda: _catboost(grow_policy="Lossguide"), True, 1e-9),
    "forest": (lambda: RandomForestClassifier(20, random_state=0), True, 1e-9),
    "forest of shares": (lambda: RandomForestClassifier(20, min_samples_leaf=3, random_state=0), True, 1e-9),
    "extra trees": (lambda: ExtraTreesClassifier(20, random_state=0), False, 1e-9),
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=15, random_state=0), False, 1e-9),
    "histogram": (lambda: HistGradientBoostingClassifier(max_iter=15), True, 1e-9),
    "tree": (lambda: DecisionTreeClassifier(random_state=0), True, 1e-9),
    "ada": (lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=10), False, 1e-9),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_scores_and_labels(name: str, n_classes: int, tmp_path: Path) -> None:
    make, gaps, largest = MODELS[name]
    X, y = make_wide(gaps=gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, np.minimum(y, n_classes - 1))
        imported = require_trees(model, tmp_path, largest, lambda table: np.ravel(model.predict(table)))
        np.testing.assert_array_equal(imported.predict(X), np.ravel(model.predict(X)))


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost", "forest"])
def test_numbers(name: str, tmp_path: Path) -> None:
    X, y = make_wide()
    kinds: dict[str, tuple[str, str, dict[str, Any]]] = {
        "xgboost": ("xgboost", "XGBRegressor", {"n_estimators": 30, "n_jobs": 1}),
        "lightgbm": ("lightgbm", "LGBMRegressor", {"n_estimators": 30, "n_jobs": 1, "verbose": -1}),
        "catboost": ("catboost", "CatBoostRegressor", {"iterations": 30, "verbose": 0, "allow_writing_files": False}),
    }
    if name == "forest":
        model: Any = RandomForestRegressor(20, random_state=0)
    else:
        library, kind, options = kinds[name]
        model = getattr(pytest.importorskip(library), kind)(**options)
    require_trees(model.fit(X, 100 + 7.3 * y), tmp_path, 1e-2 if name == "xgboost" else 1e-9)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "histogram"])
def test_categories_beside_numbers(name: str, tmp_path: Path) -> None:
    X, y = make_people()
    if name == "xgboost":
        model = _xgboost(enable_categorical=True, tree_method="hist", max_cat_to_onehot=1)
    elif name == "lightgbm":
        model = _lightgbm(min_data_per_group=5, cat_smooth=1.0, min_child_samples=5)
    else:
        model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20, min_samples_leaf=5)
    model.fit(X, y)
    reading = read_model(model)
    cast = as_categories(X)

    def ask(table: Any) -> Any:
        if name == "xgboost":  # it refuses a frame with a category that training did not see, but takes its code
            assert reading.raw_scores is not None
            return reading.raw_scores(reading.encoding.encode(table)) > 0
        return model.predict(cast(table))

    imported = require_trees(model, tmp_path, SINGLE_ERROR if name == "xgboost" else 1e-9, ask)
    (term,) = imported.ensemble_.terms
    assert dict(term.categories) == {1: 4, 3: 3}
    np.testing.assert_array_equal(imported.predict(X), model.predict(X))


def make_pipelines() -> dict[str, Any]:
    """Encoders, imputers, scalers, bins and selectors before a forest."""
    words, numbers = ["job", "plan"], ["income", "age"]
    one_hot = OneHotEncoder(handle_unknown="ignore")
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    fill = SimpleImputer(strategy="median", add_indicator=True)

    def join(encoder: Any, *steps: Any) -> ColumnTransformer:
        return ColumnTransformer([("words", encoder, words), ("numbers", make_pipeline(*steps), numbers)])

    forest = RandomForestClassifier(10, random_state=0)
    shallow = GradientBoostingClassifier(max_depth=3, n_estimators=10, random_state=0)
    histogram = HistGradientBoostingClassifier(max_iter=15)
    falling = FunctionTransformer(np.negative)
    return {
        "one-hot": make_pipeline(join(one_hot, fill), forest),
        "ordinal": make_pipeline(join(ordinal, fill), forest),
        "ordinal, categories": make_pipeline(
            join(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), StandardScaler()),
            HistGradientBoostingClassifier(max_iter=15, categorical_features=[0, 1]),
        ),
        "scaled": make_pipeline(join(one_hot, StandardScaler(), fill), histogram),
        "falling": make_pipeline(join(one_hot, falling, fill), shallow),
        "bins": make_pipeline(join(one_hot, fill, KBinsDiscretizer(4, encode="onehot-dense")), shallow),
        "selected": make_pipeline(join(ordinal, fill), SelectKBest(k=5), forest),
    }


@pytest.mark.parametrize("name", sorted(make_pipelines()))
def test_pipelines(name: str, tmp_path: Path) -> None:
    X, y = make_people()
    X = X.astype({"job": object, "plan": int})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipelines()[name].fit(X, y)
        imported = require_trees(model, tmp_path)
        np.testing.assert_array_equal(imported.predict(X), model.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_of_numbers_and_categories(n_classes: int, tmp_path: Path) -> None:
    glassbox = pytest.importorskip("interpret.glassbox")
    X, y = make_people()
    X = X.assign(debt=np.random.default_rng(0).normal(size=len(X)), spare=np.arange(len(X)) % 17 + 0.5)
    y = np.where((y == 1) & (X["debt"] > 0), n_classes - 1, y)
    kinds = ["continuous", "nominal", "continuous", "nominal", "continuous", "continuous"]
    pairs = [(0, 1), (1, 2), (0, 2)]
    options = {"interactions": pairs} if n_classes == 2 else {"interactions": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = glassbox.ExplainableBoostingClassifier(
            feature_types=kinds, outer_bags=2, max_rounds=40, random_state=1, n_jobs=1, **options
        ).fit(X, y)
        if n_classes == 3:
            assert not read_model(model).trees
            return
        imported = require_parity(model, tmp_path, n_rows=N_PROBES)
    features = {term.features: term.is_tree for term in imported.ensemble_.terms}
    assert features == {(0, 1, 2): True, (3,): False, (4,): False, (5,): False}


def test_ties_of_pure_forests_go_to_the_first_class() -> None:
    """Of shares that are exact no row is within an error of the threshold, ties included."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 6)), 1)
    model = RandomForestClassifier(10, random_state=0).fit(X, rng.random(300) < 0.5)
    imported = from_model(model)
    rows = rng.normal(size=(3_000, 6))
    is_tie = model.predict_proba(rows)[:, 1] == 0.5
    assert is_tie.sum() > 100
    ensemble = imported.ensemble_
    lead = ensemble.score(rows) - ensemble.threshold
    assert (np.abs(lead) > ensemble.bound_errors(rows)).all()
    np.testing.assert_array_equal(lead > 0, model.predict(rows))
    np.testing.assert_array_equal(imported.predict(rows), model.predict(rows))


def test_ties_of_several_classes() -> None:
    X, y = make_wide(gaps=False)
    model = RandomForestClassifier(6, random_state=0).fit(X, y)
    rows = np.random.default_rng(0).normal(size=(2_000, 6))
    shares = np.sort(model.predict_proba(rows), axis=1)
    assert (shares[:, -1] == shares[:, -2]).sum() > 100
    imported = from_model(model)
    np.testing.assert_array_equal(imported.predict(rows), model.predict(rows))
    for contrast in imported.ensemble_.contrasts():
        (term,) = contrast.terms
        errors = contrast.score_error + term.bound_rounding(rows)[:, 0]
        assert (np.abs(term.score_rows(rows) - contrast.threshold) > errors).all()


def test_scores_of_xgboost_decide_where_its_own_link_does() -> None:
    """Raw scores of up to 1.2e-7 round to a probability of one half, which is class 0."""
    X, y = make_wide()
    reading = read_model(_xgboost().fit(X, y > 0))
    assert reading.respond is not None
    near = np.nextafter(np.float32(reading.tie), np.float32([-1, 1])).astype(float)
    assert 0 < reading.tie < 2e-7
    assert (reading.respond(near)[:, 1] > 0.5).tolist() == [False, True]
    assert reading.arithmetic_error < 2e-6  # what the base loses


def test_files_of_deep_models(tmp_path: Path) -> None:
    X, y = make_wide()
    boosted, light, own = _xgboost().fit(X, y > 0), _lightgbm().fit(X, y > 0), _catboost().fit(X, y > 0)
    boosted.save_model(tmp_path / "m.ubj")
    light.booster_.save_model(tmp_path / "m.txt")
    own.save_model(str(tmp_path / "m.cbm"))
    for path, model in ((tmp_path / "m.ubj", boosted), (tmp_path / "m.txt", light), (tmp_path / "m.cbm", own)):
        kept, here = read_file(path), read_model(model)
        ensemble = kept.build()
        rows = probe_rows(here, ensemble, 1_000)
        np.testing.assert_array_equal(ensemble.score(rows), here.build().score(rows))


def test_categories_take_the_order_of_a_table(tmp_path: Path) -> None:
    """Numbers that are text in the user's table are in another order there."""
    X, y = make_people(gaps=False)
    pipeline = make_pipeline(
        ColumnTransformer([("words", OrdinalEncoder(), ["plan"])], remainder="drop"), DecisionTreeClassifier()
    )
    reading = read_model(pipeline.fit(X.astype({"plan": int}), y))
    assert reading.encoding.categories[3] == (3, 7, 40)
    light = _lightgbm(min_data_per_group=5, cat_smooth=1.0, min_child_samples=5)
    table = pd.DataFrame({"plan": X["plan"].astype(int), "age": X["age"], "income": X["income"]})
    array = table.to_numpy(dtype=float)
    light.fit(array, y, categorical_feature=[0])
    text = table.astype({"plan": str})
    imported = from_model(light, text)
    assert imported.encoding_.categories[0] == ("3", "40", "7")
    np.testing.assert_array_equal(imported.predict(text), light.predict(array))


def test_what_trees_are_not_for_is_refused_in_one_line(tmp_path: Path) -> None:
    X, y = make_wide()
    imported = from_model(_lightgbm().fit(X, y > 0))
    with pytest.raises(ValueError, match="not written as ONNX"):
        export_onnx(imported, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="the trees of this model join many"):
        imported.plot()
    with pytest.raises(ValueError, match=r"[Nn]oise"):
        imported.certify(X[:2], noise="gaussian:0.5")


def test_models_of_trees_are_moved_and_made_coarser() -> None:
    X, y = make_wide()
    ensemble = from_model(_lightgbm().fit(X, y > 0)).ensemble_
    coarse = coarsen(ensemble, 1_000)
    low, high = coarse.terms[0].score_range()
    assert 900 < high - low < 1_200
    assert (
        np.sign(coarse.score(X) - coarse.threshold) == np.sign(ensemble.score(X) - ensemble.threshold)
    ).mean() > 0.95
    whole = AdditiveEnsemble(coarse.terms, Threshold(3), 6, 10)
    moved = move_threshold(whole, 0.55, refine=True)
    np.testing.assert_array_equal(moved.score(X) > moved.threshold, whole.score(X) > 3 + 5.5)


def test_comparisons_of_classes_keep_the_trees_that_matter() -> None:
    """A tree of one class alone is no part of a comparison of two others; errors add up. Exact ones count as well."""
    X, y = make_wide()
    forest = from_model(RandomForestClassifier(5, random_state=0).fit(X, y)).ensemble_
    for low, high in forest.pairs:
        leads = forest.score(X)[:, high] - forest.score(X)[:, low]
        np.testing.assert_array_equal(forest.duel(low, high).score(X), leads)
    ensemble = from_model(_lightgbm(n_estimators=10).fit(X, y)).ensemble_
    scores, offsets = ensemble.score(X), np.array(ensemble.offsets)
    for low, high in ensemble.pairs:
        pair = ensemble.duel(low, high)
        assert pair.terms[0].roots.size == 20
        lead = scores[:, high] - scores[:, low]
        np.testing.assert_array_equal(pair.score(X), lead)
        np.testing.assert_array_equal(pair.score(X) > pair.threshold, lead + offsets[high] - offsets[low] > 0)
        errors = ensemble.bound_errors(X)[:, [low, high]].sum(axis=1)
        np.testing.assert_allclose(pair.bound_errors(X), errors, rtol=1e-9)
