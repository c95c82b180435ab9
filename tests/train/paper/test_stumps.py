"""Independent training as a function: a frozen result, texts instead of warnings, the estimator's model."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

from derand import CategoryTable, Gaussian, StumpClassifier
from derand.train import Stumps, TrainingTable, join_tables, train_stumps
from derand.train.paper.stumps import select_majority


def make_table(n_rows: int = 120) -> TrainingTable:
    """A column that tells, one that does not, a constant one, and categories, some missing."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, n_rows).astype(np.uint8)
    codes = np.where(rng.random(n_rows) < 0.1, np.nan, (target + (rng.random(n_rows) < 0.3)).clip(0, 2))
    X = np.stack([rng.normal(target, 1.0), np.tile([0.0, 1.0], n_rows // 2), np.full(n_rows, 3.0), codes], axis=1)
    return TrainingTable(X, target, n_categories={3: 3}, names=("a", "b", "c", "d"))


def test_the_estimator_is_a_face_of_the_function() -> None:
    """Model, entropy and ignored features of the classifier are those of the function."""
    table = make_table()
    training = train_stumps(table, Gaussian(0.4))
    clf = StumpClassifier(noise=Gaussian(0.4), categorical_features=[3]).fit(table.X, table.target)
    np.testing.assert_array_equal(training.entropy, clf.entropy_)
    for one, other in zip(training.model.terms, clf.ensemble_.terms, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
    assert [table.name(column) for column in clf.ignored_features_] == list(training.ignored_features)  # type: ignore[arg-type]
    assert training.ignored_features["c"] == "constant in training"


def test_training_warns_by_texts_alone() -> None:
    """The function never warns; its result holds what to say."""
    table = TrainingTable(np.array([[0.0], [1e7], [1.0]]), np.array([0, 1, 1], dtype=np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training = train_stumps(table, Gaussian(0.25), max_entropy=1e-9)
    assert [text.split(" ")[:3] for text in training.warnings] == [["A", "step", "of"]]
    assert train_stumps(make_table(), Gaussian(0.4)).warnings == ()


@pytest.mark.parametrize(("weights", "expected"), [([1.0, 1.0, 2.5], 1), ([3.5, 1.0, 2.5], 0), ([0.1, 0.2, 0.3], 0)])
def test_nothing_to_learn_gives_the_heavier_class(weights: list[float], expected: int) -> None:
    """Without any stump the model is the class of the larger weight, 0 on a tie up to rounding."""
    table = TrainingTable(np.zeros((3, 1)), np.array([0, 0, 1], dtype=np.uint8), sample_weight=np.array(weights))
    model = train_stumps(table, Gaussian(0.25)).model
    assert not model.terms
    assert (model.score([[0.0]]) > model.threshold).tolist() == [expected == 1]
    assert select_majority([table]) == expected
    assert select_majority([table, table.take(np.array([2])), table.take(np.array([2]))]) == 1


def test_results_are_frozen_and_travel() -> None:
    """Arrays are read-only, fields cannot be set, and a result survives pickling."""
    training = train_stumps(make_table(), Gaussian(0.4))
    for array in (training.entropy, training.stumps.thresholds, training.stumps.left):
        assert not array.flags.writeable
    with pytest.raises(AttributeError):
        training.entropy = np.zeros(1)  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(training))
    np.testing.assert_array_equal(again.stumps.thresholds, training.stumps.thresholds)


def test_threads_change_nothing() -> None:
    """One thread and three find the same stumps."""
    one, three = (train_stumps(make_table(), Gaussian(0.4), n_threads=n_threads) for n_threads in (1, 3))
    np.testing.assert_array_equal(one.stumps.thresholds, three.stumps.thresholds)


def test_tables_on_the_grid_are_joined_as_they_are() -> None:
    """Stumps and tables that have scores count alike in the mean; scores that no leaf rounds to stay."""
    stumps = Stumps(np.array([0, 0]), np.array([1.0, 2.0]), np.array([0.1, 0.2]), np.array([0.9, 0.6]), (), 2, 7)
    table = CategoryTable(1, [0, 1], [3, 5], 4)
    model = join_tables(stumps, [table])
    assert model.category_tables[0] is table
    assert model.threshold == 3 * 7 // 2
    assert model.step_functions[0].scores.ravel().tolist() == [2, 7, 10]
    nothing = join_tables(stumps.take(slice(0)), [])
    assert (nothing.terms, nothing.threshold) == ((), 0)


def make_gaps() -> TrainingTable:
    """Two columns of numbers with gaps, which say something about the label in the first, and one without."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 3))
    target = (X[:, 0] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=120) > 0).astype(np.uint8)
    X[(rng.random(120) < 0.3) & (target == 1), 0] = np.nan
    X[rng.random(120) < 0.2, 1] = np.nan
    return TrainingTable(X, target, class_weight=np.array([1.0, 1.2]))


def test_rows_that_miss_a_value_are_left_out_of_its_split() -> None:
    """The stump of a column is that of the rows that have it; a column without gaps refuses them."""
    table = make_gaps()
    trained = train_stumps(table, Gaussian(0.3), max_entropy=1.0)
    for column in range(3):
        rows = np.flatnonzero(~np.isnan(table.X[:, column]))
        alone = train_stumps(table.take(rows), Gaussian(0.3), max_entropy=1.0)
        mine, theirs = (
            [(part[one.stumps.features == column]).tolist() for part in (one.stumps.thresholds, one.stumps.left)]
            for one in (trained, alone)
        )
        assert mine == theirs
    model = trained.model
    assert [term.takes_missing for term in model.terms] == [True, True, False]
    assert (model.levels, trained.stumps.levels) == (200, 200)


@pytest.mark.parametrize("leaf", [0.125, 0.3, None])
def test_the_leaf_of_missing_values_is_that_of_a_category(leaf: float | None) -> None:
    """As if "missing" were a category of its own, by the same weights; 1/2 plus or minus, or the share of class 1."""
    table = make_gaps()
    trained = train_stumps(table, Gaussian(0.3), max_entropy=1.0, categorical_leaf=leaf)
    for column in (0, 1):
        codes = np.where(np.isnan(table.X[:, column]), 1.0, 0.0)
        twin = TrainingTable(codes[:, None], table.target, table.class_weight, n_categories={0: 2})
        (expected,) = train_stumps(twin, Gaussian(0.3), categorical_leaf=leaf).stumps.tables
        assert trained.stumps.missing[trained.stumps.features == column].tolist() == [expected.leaves[1]]
    assert np.isnan(trained.stumps.missing[trained.stumps.features == 2]).all()


def test_a_table_without_gaps_trains_a_model_that_refuses_them() -> None:
    """Its grid is as fine as it was, and no term has a cell for them."""
    table = make_gaps()
    whole = table.take(np.flatnonzero(~np.isnan(table.X).any(axis=1)))
    trained = train_stumps(whole, Gaussian(0.3), max_entropy=1.0)
    assert trained.model.levels == 100
    assert not any(term.takes_missing for term in trained.model.terms)


def test_a_column_without_any_value_has_no_term() -> None:
    """It can occur where rows are set aside; the reason is told."""
    table = make_gaps()
    X = table.X.copy()
    X[:, 1] = np.nan
    trained = train_stumps(TrainingTable(X, table.target), Gaussian(0.3), max_entropy=1.0)
    assert trained.ignored_features == {1: "no value in training"}
    assert set(trained.stumps.features.tolist()) == {0, 2}
