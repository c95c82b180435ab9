"""StumpClassifier: what it learns, predicts, certifies, warns of and refuses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from derand import CategoryTable, Certificates, Gaussian, Laplace, StepFunction, StumpClassifier, Uniform, certify
from derand.estimators import assemble
from derand.estimators._classifier import INFINITE_RADIUS
from derand.tables import ColumnWarning


def make_mixed(n_rows: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numerical and two categorical columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40 + 10 * y, 10),
            "job": np.where(rng.random(n_rows) < 0.7, np.array(["cook", "smith"])[y], "baker"),
            "income": rng.exponential(2000 * (1 + y)),
            "owns": rng.random(n_rows) < 0.3 + 0.4 * y,
        }
    )
    return frame, np.array(["bad", "good"])[y]


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    return make_mixed()


@pytest.fixture(scope="module")
def fitted(mixed: tuple[pd.DataFrame, np.ndarray]) -> StumpClassifier:
    return StumpClassifier(scaling="standard", class_weight="balanced").fit(*mixed)


def test_one_stump_by_hand() -> None:
    """On four points the split lies in the middle and the leaves are the shares of class 1 under noise."""
    X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
    clf = StumpClassifier(noise=Gaussian(1.0), levels=10**6).fit(X, y)
    (term,) = clf.ensemble_.terms
    assert isinstance(term, StepFunction)
    np.testing.assert_allclose(term.edges, [2.5])
    goes_left = stats.norm.cdf(2.5 - X[:, 0])
    share = goes_left[2:].sum() / goes_left.sum()
    np.testing.assert_allclose(term.scores[:, 0] / 10**6, [share, 1 - share], atol=1e-6)


def test_leaves_are_rounded_half_to_even() -> None:
    """Leaves are multiples of 1/levels; a leaf half-way between two goes to the even one."""
    X = np.repeat([[0.0], [100.0]], 8, axis=0)
    y = np.repeat([1, 0, 1, 0], [1, 7, 3, 5])
    clf = StumpClassifier(noise=Uniform(1.0), levels=4).fit(X, y)
    assert clf.ensemble_.terms[0].scores.ravel().tolist() == [0, 2]  # 0.5 and 1.5 levels


@pytest.mark.parametrize("noise", [None, "gaussian:0.25", Gaussian(0.25)], ids=str)
def test_noise_may_be_text_or_left_out(noise: Any) -> None:
    """No noise is Gaussian(0.25), and text is read; the parameter itself stays as given."""
    clf = StumpClassifier(noise=noise).fit([[0.0], [1.0]], [0, 1])
    assert clf.noise_ == Gaussian(0.25)
    assert clf.noise is noise


def iqr(X: np.ndarray, axis: int) -> np.ndarray:
    low, high = np.quantile(X, [0.25, 0.75], axis=axis, method="averaged_inverted_cdf")
    return high - low


@pytest.mark.parametrize("noise", [Gaussian(0.4), Uniform(1.5), Laplace(0.4)], ids=str)
@pytest.mark.parametrize(("scaling", "unit"), [("standard", np.std), ("range", np.ptp), ("robust", iqr)])
def test_scaling_equals_scaling_by_hand(noise: Any, scaling: str, unit: Any) -> None:
    """With `scaling`, labels and radii are those of columns scaled by hand, and thresholds are in raw units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 50, 0.01] + [0, 7, -3]
    y = (X[:, 0] + X[:, 1] / 50 > rng.normal(size=200)).astype(int)
    units = unit(X, axis=0)
    scaled = StumpClassifier(noise=noise, scaling=scaling).fit(X, y)
    by_hand = StumpClassifier(noise=noise).fit(X / units, y)
    np.testing.assert_allclose(scaled.noise_.units, units)
    ours, theirs = scaled.certify(X), by_hand.certify(X / units)
    np.testing.assert_array_equal(ours.label, theirs.label)
    np.testing.assert_allclose(ours.radius, theirs.radius, rtol=1e-9, atol=1e-10)
    for mine, other in zip(scaled.ensemble_.step_functions, by_hand.ensemble_.step_functions, strict=True):
        np.testing.assert_allclose(mine.edges, other.edges * units[mine.feature], rtol=1e-9, atol=1e-9)


def test_units_of_constant_and_categorical_columns_are_one() -> None:
    """Scaling leaves constant and categorical columns alone."""
    frame, y = make_mixed()
    clf = StumpClassifier(scaling="range").fit(frame.assign(fixed=0.1), y)
    assert clf.noise_.units is not None
    assert [clf.noise_.units[column] for column in (1, 3, 4)] == [1.0, 1.0, 1.0]
    assert clf.noise_.units[0] == np.ptp(frame["age"])


def test_weights_equal_repeated_rows() -> None:
    """Whole weights train the model that repeated rows train, also with scaling and balanced classes."""
    frame, y = make_mixed(80)
    repeats = np.random.default_rng(1).integers(0, 4, 80)
    kwargs: dict[str, Any] = {"scaling": "standard", "class_weight": "balanced"}
    weighted = StumpClassifier(**kwargs).fit(frame, y, sample_weight=repeats * 5.0)
    repeated = StumpClassifier(**kwargs).fit(frame.loc[frame.index.repeat(repeats)], np.repeat(y, repeats))
    np.testing.assert_allclose(weighted.noise_.units, repeated.noise_.units, rtol=1e-12)
    for one, other in zip(weighted.ensemble_.terms, repeated.ensemble_.terms, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)


def test_balanced_weights_are_those_of_the_paper() -> None:
    """Balanced classes equal weights of the larger class's count over the smaller's for the smaller one."""
    rng = np.random.default_rng(2)
    y = (rng.random(300) < 0.2).astype(int)
    X = rng.normal(y[:, None], 1.0, (300, 2))
    balanced = StumpClassifier(class_weight="balanced").fit(X, y)
    paper = StumpClassifier(class_weight={1: (y == 0).sum() / (y == 1).sum()}).fit(X, y)
    plain = StumpClassifier().fit(X, y)
    scores = [[term.scores.ravel().tolist() for term in clf.ensemble_.terms] for clf in (balanced, paper, plain)]
    assert scores[0] == scores[1] != scores[2]


def test_frames_give_the_same_model(mixed: tuple[pd.DataFrame, np.ndarray], fitted: StumpClassifier) -> None:
    """numpy, pandas and polars tables train the same model and get the same certificates."""
    frame, y = mixed
    tables = [frame.to_numpy(dtype=object), pl.DataFrame(frame.to_dict("list"))]
    tables.append(frame.assign(job=frame["job"].astype("category")))
    expected = fitted.certify(frame, l0=1)
    for table in tables:
        other = StumpClassifier(scaling="standard", class_weight="balanced").fit(table, y)
        np.testing.assert_array_equal(other.certify(table, l0=1).radius, expected.radius)
    assert fitted.feature_names_in_.tolist() == ["age", "job", "income", "owns"]
    assert fitted.n_features_in_ == 4


def test_lists_that_mix_text_and_numbers_keep_the_numbers() -> None:
    """A list of rows with text and numbers is not turned into text throughout."""
    rows = [["a", 0.0], ["b", 1.0], ["a", 4.0], ["b", 5.0]]
    clf = StumpClassifier().fit(rows, [0, 0, 1, 1])
    assert isinstance(clf.ensemble_.terms[0], StepFunction)
    assert sorted(clf.encoding_.categories) == [0]


def test_predict_and_certify_agree(mixed: tuple[pd.DataFrame, np.ndarray], fitted: StumpClassifier) -> None:
    """Labels, probabilities, decision values and certificates tell one story, in the user's labels."""
    frame, y = mixed
    certificates = fitted.certify(frame)
    label, proba, decision = fitted.predict(frame), fitted.predict_proba(frame), fitted.decision_function(frame)
    np.testing.assert_array_equal(label, certificates.label)
    assert set(label) == {"bad", "good"}
    np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], label)
    np.testing.assert_array_equal(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.classes_[(decision > 0).astype(int)], label)
    np.testing.assert_allclose(np.abs(decision), certificates.radius, atol=1e-300)
    np.testing.assert_allclose(proba.min(axis=1), np.minimum(certificates.failure, 0.5))
    assert fitted.score(frame, y) == np.mean(label == y)


def test_certificates_are_those_of_the_core(mixed: tuple[pd.DataFrame, np.ndarray], fitted: StumpClassifier) -> None:
    """The estimator adds encoding and labels to `derand.certify`, for every budget and for unseen categories."""
    frame, _ = mixed
    matrix = fitted.encoding_.encode(frame)
    several = fitted.certify(frame, l0=[0, 1, 2], unseen=False)
    assert isinstance(several, list)
    for budget, one in enumerate(several):
        expected = certify(fitted.ensemble_, matrix, fitted.noise_, l0=budget, unseen=False)
        np.testing.assert_allclose(one.radius, expected.radius, rtol=1e-9)
        np.testing.assert_array_equal(one.label, fitted.classes_[expected.label])
        assert one.l0 == budget
    single = fitted.certify(frame, l0=2)
    assert isinstance(single, Certificates)
    assert (single.radius <= several[2].radius).all()


def test_probabilities_are_exact() -> None:
    """One stump's probability of a vote is the probability of its side of the split."""
    clf = StumpClassifier(noise=Gaussian(0.5)).fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    edge = clf.ensemble_.terms[0].edges[0]
    x = np.array([-3.0, 2.0, 2.4, 2.6, 9.0])
    proba = clf.predict_proba(x[:, None])
    np.testing.assert_allclose(proba[:, 1], stats.norm.sf((edge - x) / 0.5), rtol=1e-12)
    np.testing.assert_allclose(proba[:, 0], stats.norm.cdf((edge - x) / 0.5), rtol=1e-12)


def test_category_leaves() -> None:
    """A category's leaf lies 1/8 above or below 1/2, by the majority of its rows; a tie is above; unseen is 1/2."""
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "c": ["a", "a", "b", "b", "d", "d"]})
    clf = StumpClassifier().fit(frame, [0, 0, 0, 1, 1, 1])
    (table,) = clf.ensemble_.category_tables
    assert clf.ensemble_.levels == 200
    assert (table.scores.ravel().tolist(), table.other) == ([75, 125, 125], 100)
    stump = clf.ensemble_.step_functions[0].scores.ravel()
    assert (stump % 2 == 0).all()  # still multiples of 1/100
    mle = StumpClassifier(categorical_leaf=None).fit(frame, [0, 0, 0, 1, 1, 1])
    assert mle.ensemble_.category_tables[0].scores.ravel().tolist() == [0, 100, 200]


def test_a_balanced_tie_is_not_decided_by_rounding() -> None:
    """A category with exactly half of the weight of both classes has the upper leaf, whatever the weights round to."""
    for zeros, ones in ((7, 3), (49, 11), (98, 51), (3, 7)):
        frame = pd.DataFrame({"c": ["a"] * (zeros + ones) + ["b"] * (zeros + ones)})
        y = [0] * zeros + [1] * ones + [0] * zeros + [1] * ones
        clf = StumpClassifier(class_weight="balanced").fit(frame, y)
        assert clf.ensemble_.category_tables[0].scores.ravel().tolist() == [125, 125]


def test_categories_alone_have_infinite_or_no_radius() -> None:
    """Without numerical features a certificate holds for every numerical change, or for none."""
    frame = pd.DataFrame({name: ["a", "a", "b", "b"] for name in "uvw"})
    clf = StumpClassifier().fit(frame, [0, 0, 1, 1])
    radii = [one.radius.tolist() for one in clf.certify(frame, l0=[0, 1, 2, 3], unseen=False)]
    assert radii == [[np.inf] * 4, [np.inf] * 4, [0.0] * 4, [0.0] * 4]
    decision = clf.decision_function(frame)
    np.testing.assert_array_equal(np.abs(decision), INFINITE_RADIUS * 0.25)


def test_missing_and_unseen_categories_teach_and_decide_nothing() -> None:
    """A missing category is left out of training, and counts 1/2 like an unseen one when predicting."""
    frame = pd.DataFrame({"x": [0.0, 1.0, 4.0, 5.0], "c": ["a", "a", "b", "b"]})
    y = [0, 0, 1, 1]
    gap = pd.concat([frame, pd.DataFrame({"x": [2.0], "c": [None]})], ignore_index=True)
    clf = StumpClassifier().fit(gap, [*y, 0])
    assert clf.encoding_.categories[1] == ("a", "b")
    new = pd.DataFrame({"x": [0.0, 0.0], "c": ["z", None]})
    radius = clf.certify(new).radius
    assert radius[0] == radius[1]


def test_ignored_features_are_reported() -> None:
    """Constant features, features without information and one-valued categories are left out and named."""
    rng = np.random.default_rng(3)
    y = np.tile([0, 1], 100)
    frame = pd.DataFrame(
        {"good": y + 0.0, "fixed": 1.5, "useless": np.repeat(rng.normal(size=100), 2), "kind": "only", "none": None}
    ).astype({"none": "string"})
    clf = StumpClassifier(class_weight="balanced").fit(frame, y)
    assert [term.feature for term in clf.ensemble_.terms] == [0]
    assert clf.ignored_features_["fixed"] == "constant in training"
    assert "is not below max_entropy" in clf.ignored_features_["useless"]
    assert clf.ignored_features_["kind"] == clf.ignored_features_["none"] == "fewer than two categories in training"
    assert np.isnan(clf.entropy_).tolist() == [False, False, False, True, True]


def test_no_stump_gives_a_warned_constant_model() -> None:
    """Where every stump is rejected the model is the heavier class, for any change, and a warning says what to do."""
    X, y = np.tile([[0.0], [1.0]], (3, 1)), np.array(["n", "n", "n", "y", "y", "y"])
    weights = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]
    with pytest.warns(
        UserWarning, match=r"the model is constant: every row gets 'y'.*Try .*less noise.* a larger max_entropy"
    ):
        clf = StumpClassifier(max_entropy=0.1).fit(X, y, sample_weight=weights)
    assert clf.predict(X).tolist() == ["y"] * 6
    assert clf.certify(X).radius.tolist() == [np.inf] * 6
    assert np.isfinite(clf.decision_function(X)).all()
    with pytest.warns(UserWarning, match="constant"):
        tie = StumpClassifier(max_entropy=0.1).fit(X, y)
    assert tie.predict(X).tolist() == ["n"] * 6


def test_a_huge_range_warns_and_still_learns() -> None:
    """A column whose range is huge beside the noise is searched with a larger step, and a warning names it."""
    frame = pd.DataFrame({"money": np.linspace(0, 1e6, 400)})
    y = (frame["money"] > 4e5).astype(int)
    with pytest.warns(UserWarning, match=r"more than 20,000 candidate splits in 1 features.*'money' \(step 50\)"):
        clf = StumpClassifier().fit(frame, y)
    assert clf.score(frame, y) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ColumnWarning)  # one column decides here
        StumpClassifier(scaling="standard").fit(frame, y)


def test_the_minimum_is_no_worse_than_the_grid() -> None:
    """Without a step the entropy of every feature is at most that of the grid search."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 200)
    X = rng.normal(y[:, None], 1.0, (200, 3))
    grid, exact = (StumpClassifier(split_step=step).fit(X, y).entropy_ for step in (0.1, None))
    assert (exact < grid).all()


def test_parts_make_a_fitted_classifier(mixed: tuple[pd.DataFrame, np.ndarray], fitted: StumpClassifier) -> None:
    """A classifier put together from its parts predicts as the original and knows its column names."""
    parts = (fitted.ensemble_, fitted.noise_, fitted.encoding_, {}, {"scaling": "standard"})
    again = assemble(StumpClassifier, *parts, classes=fitted.classes_)
    np.testing.assert_array_equal(again.decision_function(mixed[0]), fitted.decision_function(mixed[0]))
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(mixed[0].rename(columns={"age": "years"}))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"levels": 0}, "`levels` must be a whole number"),
        ({"levels": 2.5}, "`levels` must be a whole number"),
        ({"split_step": 0.0}, "`split_step` must be positive"),
        ({"split_step": "fine"}, "`split_step` must be a number"),
        ({"max_entropy": np.nan}, "`max_entropy` must be positive"),
        ({"categorical_leaf": 0.6}, "`categorical_leaf` must be above 0 and at most 0.5"),
        ({"scaling": "minmax"}, "`scaling` must be None, 'standard', 'range' or 'robust', got 'minmax'"),
        ({"scaling": "range", "noise": Gaussian(0.25, (1.0, 1.0))}, "give one of the two"),
        ({"noise": Gaussian(0.25, (1.0, 1.0, 1.0))}, "one entry per column of `X`, 2 in all, got 3"),
        ({"noise": "cauchy:1"}, "Unknown noise 'cauchy'"),
        ({"noise": [0.25]}, "`noise` must be a noise"),
        ({"class_weight": "even"}, "`class_weight` must be None, 'balanced' or a dict"),
        ({"class_weight": {"x": 1.0}}, "`class_weight` must name classes among"),
        ({"class_weight": {0: -1.0}}, "`class_weight` must hold positive"),
        ({"n_jobs": 0}, "`n_jobs` must be a positive number"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    """A parameter outside its rule is an error at `fit` that names it."""
    with pytest.raises((ValueError, TypeError), match=message):
        StumpClassifier(**parameters).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        ([1, 1, 1, 1], None, "got only one class, 1"),
        ([0, 1, 1, 1], [0, 1, 1, 1], "rows of positive weight, got only one class, 1"),
        ([0, 1, 0, 1], [1, -1, 1, 1], "`sample_weight` must be finite and not negative"),
        ([0, 1, 0, 1], [0, 0, 0, 0], "`sample_weight` must be positive for some row"),
        ([0, 1, 0, 1], [1, 1], r"one number per row, 4 in all, got shape \(2,\)"),
        (None, None, "requires y to be passed"),
    ],
    ids=str,
)
def test_bad_labels_and_weights_are_refused(y: Any, weight: Any, message: str) -> None:
    """Labels of other than two classes and impossible weights are errors that say so."""
    with pytest.raises(ValueError, match=message):
        StumpClassifier().fit([[0.0], [1.0], [2.0], [3.0]], y, sample_weight=weight)


def test_gaps_are_refused_by_a_model_that_was_trained_without(
    mixed: tuple[pd.DataFrame, np.ndarray], fitted: StumpClassifier
) -> None:
    """NaN in a numerical column is an error with the column's name, the number of rows, and how it would be taken."""
    frame, _ = mixed
    gaps = frame.assign(age=frame["age"].where(frame.index > 2))
    with pytest.raises(ValueError, match=r"column 'age' \(3 rows\): .* trained with missing values takes NaN"):
        fitted.certify(gaps)


def test_the_table_of_a_frame_must_not_be_empty() -> None:
    """A frame without rows is an error."""
    with pytest.raises(ValueError, match="0 sample"):
        StumpClassifier().fit(pd.DataFrame({"a": []}), [])


def test_tables_are_immutable_terms(fitted: StumpClassifier) -> None:
    """The fitted model consists of step functions and category tables, one per feature."""
    kinds = {term.feature: type(term) for term in fitted.ensemble_.terms}
    assert kinds == {0: StepFunction, 1: CategoryTable, 2: StepFunction, 3: CategoryTable}


def test_hundreds_of_categories() -> None:
    """A column may have more categories than a byte can count."""
    names = np.array([f"zip{number}" for number in range(700)], dtype=object)[:, None]
    labels = np.arange(700) % 2
    clf = StumpClassifier().fit(np.repeat(names, 2, axis=0), np.repeat(labels, 2))
    assert clf.predict(names).tolist() == labels.tolist()
