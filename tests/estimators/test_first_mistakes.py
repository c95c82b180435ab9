"""What people get wrong in the first hour: each is told in one sentence what was wrong and what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from derand import (
    AdditiveClassifier,
    AdditiveRegressor,
    Report,
    RobTreeBoostClassifier,
    SmoothedClassifier,
    StumpClassifier,
    Threat,
    average_certified_radius,
    certified_accuracy,
    from_model,
    measure_answers,
)
from derand.estimators._inputs import read_labels, warn_of_lone_labels
from derand.tables import ColumnWarning

RNG = np.random.default_rng(0)
N = 60
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = (X["a"] > 0).astype(int)
WORDS = Y.map({0: "no", 1: "yes"})
GAP = pd.Series(range(N)) == 3


@pytest.fixture(scope="module")
def classifier() -> StumpClassifier:
    return StumpClassifier().fit(X, Y)


@pytest.mark.parametrize(
    "y",
    [
        Y.astype(float).mask(GAP),
        Y.astype("Int64").mask(GAP),
        WORDS.astype(object).mask(GAP, None),
        WORDS.astype(object).mask(GAP, np.nan),
        WORDS.astype("category").mask(GAP),
        np.array([None if row == 3 else label for row, label in enumerate(Y)], dtype=object),
        [None if row == 3 else label for row, label in enumerate(WORDS)],
    ],
    ids=["float", "Int64", "None", "NaN", "category", "array", "list"],
)
def test_labels_that_are_missing(y: Any) -> None:
    with pytest.raises(ValueError, match=r"a label in every row.* in 1 of 60 rows, the first of them at position 3"):
        StumpClassifier().fit(X, y)


@pytest.mark.parametrize(
    "y", [X["b"].mask(GAP), X["b"].astype("Float64").mask(GAP), X["b"].astype(object).mask(GAP, None)]
)
def test_numbers_that_are_missing(y: Any) -> None:
    with pytest.raises(ValueError, match=r"a number in every row.* in 1 of 60 rows, the first of them at position 3"):
        AdditiveRegressor().fit(X, y)


def test_a_number_for_a_classifier() -> None:
    for clf in (StumpClassifier(), RobTreeBoostClassifier()):
        with pytest.raises(ValueError, match=r"60 different numbers with fractions, .* use AdditiveRegressor"):
            clf.fit(X, X["b"])
    with pytest.raises(ValueError, match=r"60 different numbers, which look like numbers .*; use AdditiveRegressor"):
        RobTreeBoostClassifier().fit(X, 3 * np.arange(N))
    many = pd.DataFrame({"a": np.arange(600.0)})
    with pytest.raises(ValueError, match=r"at most 256 classes, got 300 different numbers.*: use AdditiveRegressor"):
        AdditiveClassifier().fit(many, np.arange(600) // 2)
    with pytest.raises(ValueError, match="at most 256 classes, got 300 classes: merge rare ones"):
        AdditiveClassifier().fit(many, [f"class {row // 2}" for row in range(600)])
    classes, target = np.arange(30), np.arange(N, dtype=np.uint8) // 2
    (told,) = warn_of_lone_labels(classes, target)
    assert "30 different numbers, which look like numbers to be predicted and not like classes: use" in told
    assert not warn_of_lone_labels(np.arange(3), target % 3)


@pytest.mark.parametrize("kind", [AdditiveClassifier, StumpClassifier, SmoothedClassifier])
def test_an_identifier_as_the_target(kind: type[Any]) -> None:
    """Refused before anything is trained, with the cure; few rows of few classes are honest."""
    model = kind(HistGradientBoostingClassifier(max_depth=1)) if kind is SmoothedClassifier else kind()
    rows = pd.DataFrame({"a": np.arange(200.0)})
    with pytest.raises(ValueError, match=r"classes of several rows each, got 200 different labels in 200 rows"):
        model.fit(rows, [f"customer {row}" for row in range(200)])
    with pytest.raises(ValueError, match=r"got 110 different labels in 200 rows.*another target.* Or use AdditiveR"):
        model.fit(rows, np.arange(200) * 110 // 200)
    assert read_labels(rows[:10], np.arange(10) % 5, several=True)[0].size == 5
    assert read_labels(rows[:20], np.arange(20), several=True)[0].size == 20
    assert read_labels(rows, np.arange(200) // 2, several=True)[0].size == 100


def test_labels_of_one_column_in_a_frame() -> None:
    with pytest.warns(UserWarning, match="column-vector y"):
        clf = StumpClassifier().fit(X, Y.to_frame())
    assert clf.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"1d array, got an array of shape \(60, 2\)"):
        StumpClassifier().fit(X, X)


def test_labels_and_certificates_in_the_wrong_order(classifier: StumpClassifier) -> None:
    certificates = classifier.certify(X)
    for measure in (lambda *given: certified_accuracy(*given, [0.0]), average_certified_radius):
        with pytest.raises(TypeError, match="got it as `y`: the true labels come first"):
            measure(certificates, Y)
        with pytest.raises(TypeError, match="`certificates` must be what `certify` gave, got a ndarray"):
            measure(Y, certificates.radius)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("nope", "`subgroups` names the column 'nope', which the model does not have; it has a, b"),
        ({"title": "nope"}, "`subgroups` names the column 'nope'"),
        ([7], "by number from 0 to 1, got 7"),
        ({"title": ["north", "south"]}, "one group per row, 60 in all"),
    ],
)
def test_groups_that_are_none_are_refused_at_once(classifier: StumpClassifier, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Report(classifier, X, Y, subgroups=groups)


def test_a_threat_in_which_nothing_may_change(classifier: StumpClassifier) -> None:
    with pytest.warns(UserWarning, match="Nothing may change: this Threat has norm None and neither limits"):
        classifier.certify(X[:2], threat=Threat(norm=None), rule="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.certify(X[:2], threat=Threat(norm=None, limits={"a": 1.0}), rule="mean")


def test_words_as_labels_of_a_model_that_takes_numbers_alone() -> None:
    xgboost = pytest.importorskip("xgboost")
    inner = xgboost.XGBClassifier(max_depth=1, n_estimators=3, n_jobs=1)
    for labels in (WORDS, Y + 1):
        clf = SmoothedClassifier(inner, noise=0.1, augment=2, random_state=0).fit(X, labels)
        assert clf.classes_.tolist() == sorted(set(labels))
        assert clf.score(X, labels) > 0.8
    with pytest.raises(ValueError, match=r"Invalid|must be"):
        SmoothedClassifier(inner.set_params(learning_rate=-1.0), noise=0.1).fit(X, WORDS)


def test_truth_values_of_an_explainable_boosting_machine() -> None:
    glassbox = pytest.importorskip("interpret.glassbox")
    frame = X.assign(own=(X["b"] > 0).astype("category"))
    model = glassbox.ExplainableBoostingClassifier(interactions=0, max_rounds=5, outer_bags=1).fit(frame, Y)
    with pytest.raises(ValueError, match=r"interpret keeps only the text of categories.* as from_model\(model, X\)"):
        from_model(model).certify(frame)
    assert len(from_model(model, frame).certify(frame)) == N


def test_trees_behind_a_step_of_a_pipeline_are_read() -> None:
    """Encoders before trees that join all columns: labels of the pipeline, in the columns that it is given."""
    frame = pd.DataFrame(RNG.normal(size=(N, 6)), columns=list("abcdef")).assign(job=["cook", "clerk", "smith"] * 20)
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), remainder="passthrough")
    labels = (frame["a"] * frame["b"] + frame["c"] * frame["d"] + frame["e"] * frame["f"] > 0).astype(int)
    model = make_pipeline(steps, HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=1)).fit(frame, labels)
    assert from_model(model).predict(frame).tolist() == model.predict(frame).tolist()


def test_columns_in_another_order_or_beside_others(classifier: StumpClassifier) -> None:
    for other in (X[["b", "a"]], X.assign(c=1.0)):
        with pytest.raises(ValueError, match=r"(?s)feature names should match.*give `X\[clf\.feature_names_in_\]`"):
            classifier.certify(other)
        assert classifier.predict(other[classifier.feature_names_in_]).size == N
    with pytest.raises(ValueError, match="feature names should match") as told:
        classifier.certify(X[["a"]])
    assert "All columns" not in str(told.value)


def test_certificates_as_answers(classifier: StumpClassifier) -> None:
    certificates = classifier.certify(X)
    with pytest.raises(TypeError, match=r"`label` must hold .* got certificates: give .* `c\.label`"):
        measure_answers(Y, certificates)
    with pytest.raises(TypeError, match=r"`y` must hold .* the true labels come first"):
        measure_answers(certificates, Y)


@pytest.mark.parametrize("kind", [str, object])
def test_text_for_a_regressor(kind: type) -> None:
    with pytest.raises(ValueError, match=r"must hold numbers, got text.* such as AdditiveClassifier"):
        AdditiveRegressor().fit(X, np.array(["yes", "no"] * (N // 2), dtype=kind))


def test_limits_of_a_category_name_it() -> None:
    frame = X.assign(job=["cook", "clerk"] * (N // 2))
    clf = StumpClassifier().fit(frame, Y)
    with pytest.raises(ValueError, match="`limits` of Threat must name numerical columns, got 'job', which is categor"):
        clf.certify(frame, threat=Threat(limits={"job": 1}))


def test_an_identifier_as_a_number_to_be_predicted_is_told() -> None:
    """By its name, which a target of pandas has; an array of the same numbers says nothing."""
    numbers = pd.Series(RNG.permutation(10**6)[:N], name="customer_id")
    model = AdditiveRegressor(radius=0.1, regularization=1.0)
    with pytest.warns(ColumnWarning, match="The target 'customer_id' has another whole number in every row"):
        model.fit(X, numbers)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        model.fit(X, numbers.to_numpy())
