"""Whole pipelines in the user's own columns: raw scores on every edge and beside it, categories, gaps, refusals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

from derand import (
    AdditiveClassifier,
    AdditiveRegressor,
    SmoothedClassifier,
    StumpClassifier,
    Threat,
    from_model,
    load,
    save,
)
from derand.convert import is_explained, probe_rows, read_model
from derand.convert.pipelines._links import Ordered
from derand.convert.readers._sklearn_linear import bound_dot_error
from tests.convert.parity import require_parity

TWO = load_breast_cancer(return_X_y=True, as_frame=True)
THREE = load_iris(return_X_y=True)
NUMBER = load_diabetes(return_X_y=True)
STUMPS = GradientBoostingClassifier(max_depth=1, n_estimators=15, random_state=0)


def make_people(n_rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Numbers and categories with gaps, categories that are numbers, a rare one, and a column of no use."""
    rng = np.random.default_rng(seed)
    jobs = rng.choice(["cook", "clerk", "farmer", "nurse", "pilot"], n_rows, p=[0.3, 0.3, 0.2, 0.18, 0.02])
    people = pd.DataFrame(
        {
            "income": rng.lognormal(3, 1, n_rows),
            "job": jobs,
            "age": rng.integers(18, 90, n_rows).astype(float),
            "plan": rng.choice([7, 3, 40], n_rows),
            "note": rng.choice(["x", "y"], n_rows),
        }
    )
    score = (people["age"] > 50) + 1.0 * (people["job"] == "cook") + (people["plan"] == 40) + rng.normal(size=n_rows)
    people.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    people.loc[rng.random(n_rows) < 0.1, "job"] = np.nan
    return people, (score > 1).to_numpy()


PEOPLE = make_people()
ONE_HOT = OneHotEncoder(handle_unknown="ignore", sparse_output=False)


def _join(*parts: Any, **options: Any) -> ColumnTransformer:
    return ColumnTransformer([(f"part {at}", *part) for at, part in enumerate(parts)], **options)


NUMERICAL: list[tuple[Any, Any]] = [
    (make_pipeline(StandardScaler(), STUMPS), TWO),
    (make_pipeline(MinMaxScaler(clip=True), RobustScaler(), MaxAbsScaler(), STUMPS), THREE),
    (make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)), THREE),
    (
        make_pipeline(RobustScaler(), "passthrough", make_pipeline(MinMaxScaler(), DecisionTreeRegressor(max_depth=1))),
        NUMBER,
    ),
    (make_pipeline(FunctionTransformer(np.rint), StandardScaler(), FunctionTransformer(np.negative), STUMPS), THREE),
    (make_pipeline(FunctionTransformer(np.negative), SelectKBest(k=5), STUMPS), TWO),
    (make_pipeline(StandardScaler(), Binarizer(threshold=0.3), LogisticRegression()), THREE),
    (make_pipeline(FeatureUnion([("a", MinMaxScaler()), ("b", Binarizer(threshold=2.0))]), STUMPS), THREE),
    (make_pipeline(KBinsDiscretizer(strategy="uniform"), LogisticRegression()), THREE),
    (make_pipeline(StandardScaler(), KBinsDiscretizer(strategy="uniform", encode="ordinal"), Ridge()), NUMBER),
    (make_pipeline(KBinsDiscretizer(3, strategy="uniform"), RidgeClassifier()), TWO),
    (make_pipeline(KBinsDiscretizer(4, strategy="uniform"), SGDClassifier(random_state=0)), TWO),
]


@pytest.mark.parametrize(("model", "table"), NUMERICAL, ids=range(len(NUMERICAL)))
def test_numbers_keep_their_own_units(model: Any, table: Any, tmp_path: Path) -> None:
    require_parity(model.fit(*table), tmp_path)


MIXED = {
    "one-hot and scaled": make_pipeline(
        _join((make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]), (ONE_HOT, ["job", "plan"])), STUMPS
    ),
    "sparse": make_pipeline(
        _join((SimpleImputer(strategy="median"), ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["job", "note"])),
        RandomForestClassifier(max_depth=1, n_estimators=15, random_state=0),
    ),
    "dropped and rare": make_pipeline(
        _join(
            (OrdinalEncoder(), ["plan"]),
            (OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist", drop="first"), ["job"]),
        ),
        AdaBoostClassifier(n_estimators=10),
    ),
    "codes of their own": make_pipeline(
        _join(
            (
                OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
                ["plan", "job"],
            ),
            (SimpleImputer(add_indicator=True, strategy="constant", fill_value=-5.0), ["age"]),
        ),
        STUMPS,
    ),
    "unseen is NaN": make_pipeline(
        _join(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), ["plan", "job"]),
            (TargetEncoder(), ["note"]),
            ("passthrough", ["age"]),
        ),
        HistGradientBoostingClassifier(interaction_cst="no_interactions", max_iter=15),
    ),
    "filled categories": make_pipeline(
        _join((make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(), VarianceThreshold()), ["job"])),
        STUMPS,
    ),
    "categories of the last step": make_pipeline(
        _join(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), ["job"]),
            (StandardScaler(), ["income", "age"]),
        ),
        HistGradientBoostingClassifier(
            categorical_features=[0], interaction_cst="no_interactions", max_iter=15, random_state=0
        ),
    ),
    "one of ours": make_pipeline(
        _join((StandardScaler(), ["age"]), remainder="passthrough").set_output(transform="pandas"),
        AdditiveClassifier(radius=0.0, regularization=0.1),
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_categories_are_the_users_own(name: str, tmp_path: Path) -> None:
    people, y = PEOPLE
    model = MIXED[name].fit(people, y)
    imported = require_parity(model, tmp_path)
    assert imported.encoding_.names == tuple(people.columns)
    assert all(set(values) <= {*people.iloc[:, at]} for at, values in imported.encoding_.categories.items())
    np.testing.assert_array_equal(imported.predict(people), model.predict(people))


@pytest.mark.parametrize(
    ("library", "name", "options"),
    [
        ("xgboost", "XGBClassifier", {"max_depth": 1, "n_estimators": 10, "n_jobs": 1}),
        ("lightgbm", "LGBMClassifier", {"max_depth": 1, "n_estimators": 10, "n_jobs": 1, "verbose": -1}),
        ("catboost", "CatBoostClassifier", {"depth": 1, "iterations": 10, "verbose": 0, "allow_writing_files": False}),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_models_of_other_libraries_may_be_last(library: str, name: str, options: Any, tmp_path: Path) -> None:
    people, y = PEOPLE
    last = getattr(pytest.importorskip(library), name)(**options)
    try:
        get_tags(last)
    except AttributeError:
        pytest.skip(f"this release of {library} does not know pipelines of this scikit-learn")
    model = make_pipeline(MIXED["one-hot and scaled"][0], last).fit(people, y)
    imported = require_parity(model, tmp_path, largest_error=1e-5)
    np.testing.assert_array_equal(imported.predict(people).astype(bool), model.predict(people).astype(bool))


def test_bins_and_lines_of_codes_beside_scaled_numbers_are_lines(tmp_path: Path) -> None:
    people, y = PEOPLE
    people = people.dropna()
    y = y[people.index]
    model = make_pipeline(
        _join((make_pipeline(MinMaxScaler(), StandardScaler()), ["age", "income"]), (ONE_HOT, ["job", "plan"])),
        LogisticRegression(),
    ).fit(people, y)
    reading = read_model(model)
    assert (len(reading.shapes), len(reading.tables), [one.feature for one in reading.lines]) == (0, 2, [0, 2])
    ensemble = reading.build()
    assert is_explained(reading, ensemble, probe_rows(reading, ensemble, 5_000))
    imported = from_model(model)
    np.testing.assert_allclose(imported.predict_proba(people), model.predict_proba(people), atol=1e-9)
    verdict = imported.certify(people, threat=Threat(norm=None, limits={"age": 1.0}, frozen=["income"])).verdict
    assert {"holds", "flips"} == set(verdict)
    mixed = make_pipeline(
        _join((StandardScaler(), ["age"]), (KBinsDiscretizer(3, strategy="uniform"), ["income"])), LogisticRegression()
    )
    with pytest.raises(ValueError, match=r"line of column 'age' to steps of column 'income'"):
        from_model(mixed.fit(people, y))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("indicator", [False, True])
def test_lines_score_a_gap_as_its_filling(indicator: bool, classes: int, tmp_path: Path) -> None:
    """The most common pipeline: imputer, scaler, one-hot, logistic regression; an indicator is a part of what a gap
    scores."""
    people, y = PEOPLE
    people = people.copy()
    people.loc[people.index[::7], "income"] = np.nan
    if classes == 3:
        y = np.where(y, 2, (people["plan"] == 7).to_numpy().astype(int))
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=indicator), StandardScaler())
    model = make_pipeline(_join((numbers, ["age", "income"]), (ONE_HOT, ["job", "plan"])), LogisticRegression())
    model.fit(people, y)
    imported = from_model(model, people)
    reading = read_model(model)
    rows = probe_rows(reading, imported.ensemble_, 5_000)
    assert np.isnan(rows[:, [0, 2]]).any(axis=0).all()
    assert is_explained(reading, imported.ensemble_, rows)
    np.testing.assert_allclose(imported.decision_function(people), model.decision_function(people), atol=1e-12)
    np.testing.assert_array_equal(imported.predict(people), model.predict(people))
    save(imported, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    gapped = people[people[["age", "income"]].isna().any(axis=1)].iloc[:30]
    found = again.certify(gapped, threat=Threat(norm=2))
    assert (found.radius > 0).any()
    assert again.audit(gapped, found).passed
    attacks = again.attack(gapped, threat=Threat(norm=2))
    attacks.require_outside(found)
    flips = np.isfinite(found.radius) & (found.radius > 1e-6)
    assert attacks.found[flips].all()
    np.testing.assert_allclose(attacks.distance[flips], found.radius[flips], rtol=1e-6)
    moved = attacks.rows[flips]
    assert (moved[["age", "income"]].isna().to_numpy() == gapped[flips][["age", "income"]].isna().to_numpy()).all()
    scores = np.asarray(model.decision_function(moved.astype({"plan": int})))
    lead = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1))[:, -1]
    assert lead.max() < 1e-9  # the library's own boundary


def test_lines_refuse_gaps_that_no_step_fills() -> None:
    """As the last step does; columns that are filled take them."""
    people, y = PEOPLE
    parts = _join((make_pipeline(SimpleImputer(), StandardScaler()), ["age"]), (StandardScaler(), ["income"]))
    imported = from_model(make_pipeline(parts, LogisticRegression()).fit(people, y))
    assert (imported.ensemble_.missing_features, imported.ensemble_.refuses_missing) == ((2,), (0,))
    gap = people.iloc[[0]].copy()
    gap["income"] = np.nan
    with pytest.raises(ValueError, match="income"):
        imported.predict(gap)


def test_what_a_gap_scores_is_off_by_no_more_than_it_says() -> None:
    """In exact fractions: the slope times the scaled filling, and what the library's sum loses of that."""
    X, y = TWO
    fill = SimpleImputer(strategy="constant", fill_value=1e7)
    model = make_pipeline(fill, StandardScaler(), LogisticRegression(max_iter=1000)).fit(X.iloc[:, :2], y)
    lines, (_, scaler, last) = read_model(model).lines, model.named_steps.values()
    filled = scaler.transform(np.full((1, 2), 1e7))[0].tolist()
    for line, slope, number, mean, scale in zip(lines, last.coef_[0], filled, scaler.mean_, scaler.scale_, strict=True):
        exact = Fraction(float(slope)) * (Fraction(number) + Fraction(float(mean)) / Fraction(float(scale)))
        lost = Fraction(bound_dot_error(3, 2.0**-53)) * abs(Fraction(float(slope)) * Fraction(number))
        rounded = abs(Fraction(float(line.missing)) - exact)  # type: ignore[arg-type]
        assert lost + rounded <= Fraction(float(line.missing_error)) <= 10 * lost  # type: ignore[arg-type]


def test_lines_that_cancel_keep_their_errors() -> None:
    """A number that is added and taken away again is rounded twice by the library."""
    X, y = TWO
    twice = FeatureUnion([("a", FunctionTransformer()), ("b", FunctionTransformer())])
    model = make_pipeline(twice, LogisticRegression()).fit(X.iloc[:, :1], y)
    model[-1].coef_ = np.array([[0.1, -0.1]])
    (line,) = read_model(model).lines
    assert line.slope == 0.0
    assert line.error > 0  # type: ignore[operator]


def test_limits_and_explanations_speak_of_the_users_units() -> None:
    """The scaled model alone, asked in scaled units, gives the same verdicts."""
    X, y = TWO
    model = make_pipeline(StandardScaler(), STUMPS).fit(X, y)
    outer, inner = from_model(model), from_model(model[-1])
    step = 3.0
    scaled = step / float(model[0].scale_[X.columns.get_loc("worst area")])
    rows = X.iloc[:60]
    outside = outer.certify(rows, threat=Threat(norm=None, limits={"worst area": step, "worst texture": 0.5}))
    texture = 0.5 / float(model[0].scale_[X.columns.get_loc("worst texture")])
    numbers = {X.columns.get_loc("worst area"): scaled, X.columns.get_loc("worst texture"): texture}
    inside = inner.certify(model[0].transform(rows), threat=Threat(norm=None, limits=numbers))
    np.testing.assert_array_equal(outside.verdict, inside.verdict)
    assert {"holds"} < set(outside.verdict) | {"holds", "flips"}
    assert outer.encoding_.names == tuple(X.columns)


def test_no_attack_flips_what_holds_and_audits_pass() -> None:
    people, y = PEOPLE
    imported = from_model(MIXED["one-hot and scaled"].fit(people, y), people)
    rows = people.iloc[:60]
    within = Threat(norm=None, limits={"age": "5%", "income": "10%"}, frozen=["job"])
    held = imported.certify(rows, threat=within)
    assert set(held.verdict) == {"holds", "flips"}
    assert not imported.attack(rows, threat=within).found[held.verdict == "holds"].any()
    assert imported.audit(rows.iloc[:10], held[:10]).passed
    smoothed = imported.certify(rows.iloc[:10], noise="gaussian:2.0", rule="vote")
    assert imported.audit(rows.iloc[:10], smoothed).passed


def test_a_gap_scores_as_its_filling() -> None:
    people, y = PEOPLE
    model = make_pipeline(_join((SimpleImputer(strategy="median"), ["age", "income"])), STUMPS).fit(people, y)
    imported = from_model(model)
    gap, filled = people.iloc[[0]].copy(), people.iloc[[0]].copy()
    gap["age"], filled["age"] = np.nan, people["age"].median()
    assert imported.decision_function(gap) == imported.decision_function(filled)


def test_edges_are_those_of_the_scalers_own_arithmetic() -> None:
    """A formula is an ulp off on most edges; the bisected ones compare as the scaler does, on both sides."""
    X, y = TWO
    model = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_depth=1, max_iter=30)).fit(X, y)
    inner, outer = read_model(model[-1]), read_model(model)
    off = count = 0
    for before, behind in zip(outer.shapes, inner.shapes, strict=True):
        scaler = model[0]
        mean, scale = scaler.mean_[before.feature], scaler.scale_[before.feature]
        formula = np.asarray(behind.edges) * scale + mean
        off += int((formula != before.edges).sum())
        count += formula.size
        assert ((before.edges - mean) / scale >= behind.edges).all()
        assert ((np.nextafter(before.edges, -np.inf) - mean) / scale < behind.edges).all()
    assert off > count / 3


@settings(max_examples=100)
@given(st.floats(-1e300, 1e300), st.floats(1e-5, 1e5), st.floats(-1e5, 1e5), st.booleans())
def test_a_folded_edge_is_the_first_number_that_crosses(edge: float, scale: float, shift: float, falls: bool) -> None:
    sign = -1.0 if falls else 1.0
    link = Ordered("a step", function=lambda x: sign * ((x - shift) / scale))
    found = link.fold_edges(np.array([edge]))
    if not np.isfinite(found[0]):
        return
    below, above = link.apply(np.array([np.nextafter(found[0], -np.inf), found[0]]))
    assert (below >= edge > above) if falls else (below < edge <= above)


class _Doubler(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Any:
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X: Any) -> Any:
        return 2 * np.asarray(X)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (make_pipeline(PCA(2), STUMPS), r"Step 'pca' \(PCA\) is not known to act on every column"),
        (make_pipeline(StandardScaler(), PolynomialFeatures(2), STUMPS), "'polynomialfeatures'.*PolynomialFeatures"),
        (make_pipeline(Normalizer(), STUMPS), "Normalizer"),
        (make_pipeline(KNNImputer(), STUMPS), "KNNImputer"),
        (make_pipeline(_Doubler(), STUMPS), "_Doubler"),
        (make_pipeline(FunctionTransformer(np.square), STUMPS), "function 'square'"),
        (make_pipeline(SimpleImputer(missing_values=0.0), STUMPS), "fills cells that hold 0.0"),
        (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), "MinMaxScaler.*bends column 0"),
        (make_pipeline(FunctionTransformer(np.floor), LogisticRegression()), "bends column 0"),
        (make_pipeline(FunctionTransformer(np.log1p), STUMPS), "function 'log1p' is not known to keep the order"),
        (make_pipeline(StandardScaler(), OneHotEncoder(), STUMPS), "takes for categories"),
        (FeatureUnion([("a", StandardScaler())]), "FeatureUnion"),
        (
            make_pipeline(SimpleImputer(), AdditiveClassifier(radius=0.1, regularization=0.1)),
            "'simpleimputer'.* before the noise of derand.AdditiveClassifier, and not only by a scale and a shift",
        ),
        (
            make_pipeline(FeatureUnion([("a", StandardScaler())], transformer_weights={"a": 2.0}), STUMPS),
            "weighs its parts",
        ),
    ],
    ids=range(14),
)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_step(model: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        from_model(model.fit(*THREE))


def test_unfitted_pipelines_and_no_model_at_the_end_are_refused() -> None:
    with pytest.raises(ValueError, match="must be fitted"):
        from_model(make_pipeline(StandardScaler(), STUMPS.__class__()))
    with pytest.raises(ValueError, match="must be fitted"):
        from_model(Pipeline([("scale", StandardScaler()), ("model", RandomForestClassifier(max_depth=1).fit(*THREE))]))
    with pytest.raises(TypeError, match="'end', must be a model, got 'passthrough'"):
        from_model(Pipeline([("scale", StandardScaler()), ("end", "passthrough")]).fit(*THREE))


def test_a_column_that_is_number_and_category_is_refused() -> None:
    people, y = PEOPLE
    model = make_pipeline(_join((StandardScaler(), ["plan"]), (ONE_HOT, ["plan"])), STUMPS).fit(people, y)
    with pytest.raises(ValueError, match="'plan' is read both as a number and as a category"):
        from_model(model)


def test_our_own_estimators_are_given_back() -> None:
    own = AdditiveRegressor(radius=0.0, regularization=0.1).fit(*NUMBER)
    assert from_model(own) is own
    with pytest.raises(ValueError, match="keeps the noise, rule and scaling"):
        from_model(own, noise="gaussian:0.25")


def test_a_search_is_the_best_model_that_it_fitted() -> None:
    X, y = TWO
    search = GridSearchCV(make_pipeline(StandardScaler(), STUMPS), {"gradientboostingclassifier__n_estimators": [2, 4]})
    with pytest.raises(ValueError, match="GridSearchCV that is not"):
        from_model(search)
    search.fit(X, y)
    np.testing.assert_array_equal(from_model(search).predict(X), search.predict(X))


def _draw_numbers(rng: np.random.Generator) -> Any:
    scalers = [
        StandardScaler(),
        MinMaxScaler(clip=bool(rng.integers(2))),
        RobustScaler(),
        MaxAbsScaler(),
        FunctionTransformer(np.negative),
        FunctionTransformer(np.floor),
        KBinsDiscretizer(4, strategy="uniform"),
        KBinsDiscretizer(3, strategy="uniform", encode="ordinal"),
        Binarizer(threshold=float(rng.normal())),
    ]
    fills = [SimpleImputer(), SimpleImputer(strategy="median", add_indicator=True), SimpleImputer(strategy="constant")]
    chosen = [scalers[at] for at in rng.choice(len(scalers), size=int(rng.integers(0, 3)), replace=False)]
    bins = [one for one in chosen if isinstance(one, KBinsDiscretizer) and one.encode == "onehot"]
    return make_pipeline(fills[int(rng.integers(3))], *(one for one in chosen if one not in bins), *bins[:1])


def _draw_categories(rng: np.random.Generator) -> Any:
    encoders = [
        OneHotEncoder(handle_unknown="ignore", drop=[None, "first", "if_binary"][int(rng.integers(3))]),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=int(rng.integers(2, 5))),
        OneHotEncoder(),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-3, encoded_missing_value=7),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99, min_frequency=20, encoded_missing_value=9),
        TargetEncoder(),
    ]
    fill = [SimpleImputer(strategy="most_frequent")] if rng.integers(2) else []
    scale = [StandardScaler(with_mean=False)] if rng.integers(2) else []
    return make_pipeline(*fill, encoders[int(rng.integers(len(encoders)))], *scale)


@pytest.mark.filterwarnings("ignore:Feature .* is constant")
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_random_pipelines_score_as_the_library_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people, y = make_people(150, seed % 7)
    lasts = [
        GradientBoostingClassifier(max_depth=1, n_estimators=5, random_state=0),
        RandomForestClassifier(max_depth=1, n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_depth=1, max_iter=5, random_state=0),
        AdaBoostClassifier(n_estimators=5, random_state=0),
        DecisionTreeClassifier(max_depth=1),
    ]
    parts = _join(
        (_draw_numbers(rng), ["age", "income"]),
        (_draw_numbers(rng), ["income"]),
        (_draw_categories(rng), ["job", "plan"]),
        (_draw_categories(rng), ["note"]),
        sparse_threshold=0,
    )
    model = make_pipeline(parts, lasts[int(rng.integers(len(lasts)))]).fit(people, y)
    imported = from_model(model)
    reading = read_model(model)
    assert is_explained(reading, imported.ensemble_, probe_rows(reading, imported.ensemble_, 1_000, seed=seed))


def test_whole_numbers_beyond_doubles_stay_apart() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": rng.choice(10**17 + np.arange(6), 200), "x": rng.normal(size=200)})
    y = ((table["id"] % 2 == 0) ^ (table["x"] > 1)).to_numpy()
    for encoder in (ONE_HOT, OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)):
        model = make_pipeline(_join((encoder, ["id"]), ("passthrough", ["x"])), STUMPS).fit(table, y)
        imported = from_model(model, table)
        other = table.assign(id=10**17 + 77)
        for rows in (table, other):
            np.testing.assert_array_equal(imported.predict(rows), model.predict(rows))


def test_an_unseen_number_is_none_of_large_ones() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": rng.choice([1e17, 2e17, 3e18], 200), "x": rng.normal(size=200)})
    y = ((table["id"] == 3e18) ^ (table["x"] > 1)).to_numpy()
    model = make_pipeline(_join((ONE_HOT, ["id"]), ("passthrough", ["x"])), STUMPS).fit(table, y)
    other = table.assign(id=5.0)
    np.testing.assert_array_equal(from_model(model).predict(other), model.predict(other))


def test_encoders_whose_columns_are_all_dropped_refuse_what_they_refuse() -> None:
    table, y = PEOPLE
    steps = _join((OneHotEncoder(sparse_output=False), ["note", "plan"])), SelectKBest(k=1)
    model = make_pipeline(*steps, STUMPS).fit(table, y)
    imported = from_model(model, table)
    np.testing.assert_array_equal(imported.predict(table), model.predict(table))
    for odd in (table.assign(note="z"), table.assign(plan=8)):
        with pytest.raises(ValueError, match="unknown categories"):
            model.predict(odd)
        with pytest.raises(ValueError, match="training did not see in 400 rows"):
            imported.predict(odd)


def test_missing_categories_that_an_encoder_refuses_are_refused(tmp_path: Path) -> None:
    table, y = PEOPLE
    full = table.assign(job=table["job"].fillna("cook"))
    model = make_pipeline(_join((OneHotEncoder(), ["job"])), STUMPS).fit(full, y)
    save(from_model(model), tmp_path / "model.json")
    for imported in (from_model(model), load(tmp_path / "model.json")):
        with pytest.raises(ValueError, match="'job' of `X` holds a missing category"):
            imported.predict(table)
        np.testing.assert_array_equal(imported.predict(full), model.predict(full))


@pytest.mark.parametrize("step", [StandardScaler(), MinMaxScaler(clip=True), Binarizer(threshold=0.1)])
def test_single_precision_is_refused_where_steps_compute(step: Any) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2)).astype(np.float32)
    model = make_pipeline(step, STUMPS).fit(table, table[:, 0] > 0.3)
    with pytest.raises(ValueError, match="must hold doubles"):
        from_model(model, table)
    imported, frame = from_model(model), pd.DataFrame(table)
    with pytest.raises(ValueError, match="must hold doubles"):
        imported.certify(frame)
    doubles = table.astype(np.float64)
    np.testing.assert_array_equal(imported.predict(doubles), model.predict(doubles))


def test_single_precision_is_taken_where_nothing_is_computed() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2)).astype(np.float32)
    model = make_pipeline(VarianceThreshold(), STUMPS).fit(table, table[:, 0] > 0.3)
    np.testing.assert_array_equal(from_model(model, table).predict(table), model.predict(table))


def test_lines_that_cancel_are_read_with_their_errors() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2))
    both = FeatureUnion([("as it is", FunctionTransformer()), ("turned", FunctionTransformer(np.negative))])
    model = make_pipeline(both, LogisticRegression()).fit(table, table[:, 0] > 0)
    model[-1].coef_[:] = [[1e8, 2.0, 1e8, 3.0]]
    far, imported = table * 1e3, from_model(model)
    ensemble = imported.ensemble_
    bound = ensemble.bound_errors(far) / ensemble.levels
    assert (bound >= 2.0**-53 * 1e8 * np.abs(far[:, 0])).all()  # the digits that one product alone may lose
    assert (np.abs(model.decision_function(far) - imported.decision_function(far)) <= bound).all()


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_random_pipelines_of_lines_score_as_the_library_does(seed: int) -> None:
    """Gaps are filled, told or both, before scalers and after them; a column may go several ways."""
    rng = np.random.default_rng(seed)
    people, y = make_people(150, seed % 7)

    def draw() -> Any:
        scalers = [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), FunctionTransformer(np.negative)]
        chosen = [scalers[at] for at in rng.choice(len(scalers), size=int(rng.integers(0, 3)), replace=False)]
        value = float(rng.normal() * 50)
        fills = [
            SimpleImputer(),
            SimpleImputer(strategy="median"),
            SimpleImputer(strategy="constant", fill_value=value),
        ]
        fill = fills[int(rng.integers(3))].set_params(add_indicator=bool(rng.integers(2)))
        chosen.insert(0 if rng.integers(2) else len(chosen), fill)
        return make_pipeline(*chosen)

    lasts = [LogisticRegression(), RidgeClassifier(), Lasso(alpha=0.05)]  # of which the last leaves columns out
    last = lasts[int(rng.integers(len(lasts)))]
    if isinstance(last, RidgeClassifier):
        y = np.where(y, 2, (people["plan"] == 7).to_numpy().astype(int))
    parts = _join((draw(), ["age", "income"]), (draw(), ["age"]), (ONE_HOT, ["job", "plan"]))
    model = make_pipeline(parts, last).fit(people, y)
    reading = read_model(model)
    ensemble = reading.build()
    assert not reading.shapes
    assert not set(ensemble.refuses_missing) & {0, 2}
    assert is_explained(reading, ensemble, probe_rows(reading, ensemble, 1_000, seed=seed))


@pytest.mark.parametrize("noise", ["gaussian:0.2", "laplace:0.1", "uniform:0.4"])
@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler(), MinMaxScaler(feature_range=(-2, 3))], ids=repr)
def test_a_smoothed_model_behind_scalers_is_certified_as_without_them(noise: str, scaler: Any, tmp_path: Path) -> None:
    """Its noise becomes one in units of the table: labels, probabilities and radii are those of the last step."""
    rng = np.random.default_rng(0)
    columns = {"income": rng.normal(50_000, 12_000, 700), "debt": -rng.gamma(2, 4_000, 700)}
    X = pd.DataFrame(columns | {"x": rng.normal(size=700)})
    y = (X["income"] / 12_000 + X["debt"] / 5_000 + rng.normal(0, 0.7, 700) > 2.5).astype(int)
    inner = AdditiveClassifier(noise=noise, norm=1, radius=0.2, regularization=1.0, scaling=None)
    pipeline = make_pipeline(scaler, inner).fit(X, y)
    model, scaled, last = from_model(pipeline, X), pipeline[:-1].transform(X), pipeline[-1]
    assert model.noise_.magnitude == last.noise_.magnitude
    np.testing.assert_allclose(model.predict_proba(X), pipeline.predict_proba(X), rtol=0, atol=1e-12)
    assert (model.predict(X) == pipeline.predict(X)).all()
    found, own = model.certify(X, threat=Threat(norm=1)), last.certify(scaled, threat=Threat(norm=1))
    np.testing.assert_allclose(found.radius, own.radius, rtol=1e-5, atol=1e-5)
    assert 0 < model.ensemble_.score_error / model.ensemble_.members[0].levels < 1e-7
    within = model.certify(X, threat=Threat(norm=None, limits={"income": "3%"}))
    assert within.flips is not None
    assert within.witness is not None
    flipped = pipeline.predict(model.decode_rows(within.witness[within.flips]))
    assert (flipped != found.label[within.flips]).all()
    save(model, tmp_path / "model.json")
    assert (load(tmp_path / "model.json").certify(X, threat=Threat(norm=1)).radius == found.radius).all()


def test_noise_that_no_noise_on_the_table_equals_is_refused() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    y = (X["a"] + X["b"] > 0).astype(int)
    twice = FeatureUnion([("one", StandardScaler()), ("two", MinMaxScaler())])
    smoothed = AdditiveClassifier(noise="gaussian:0.2", radius=0.1, regularization=1.0)
    with pytest.raises(ValueError, match=r"is given to derand\.AdditiveClassifier more than once"):
        from_model(make_pipeline(twice, smoothed).fit(X, y))
    with pytest.raises(ValueError, match="answers by votes of noisy copies"):
        from_model(make_pipeline(StandardScaler(), StumpClassifier()).fit(X, y))
    pipeline = make_pipeline(StandardScaler(), smoothed).fit(X, y)
    with pytest.raises(ValueError, match="which is smoothed: give the pipeline itself"):
        from_model(FixedThresholdClassifier(pipeline, threshold=0.3, response_method="predict_proba").fit(X, y))
    moved = from_model(pipeline, decision_threshold=0.3)
    assert (moved.predict(X) == (pipeline.predict_proba(X)[:, 1] > 0.3)).all()
    plain = from_model(pipeline, noise="none")
    assert plain.noise_ is None
    with pytest.raises(ValueError, match="is smoothed already"):
        SmoothedClassifier(make_pipeline(StandardScaler(), smoothed), noise="gaussian:0.1").fit(X, y)
