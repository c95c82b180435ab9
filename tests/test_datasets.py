"""Datasets without files: shapes and counts, folds, scaling and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from derand.datasets import CATALOG, draw_folds, is_available, load, make_applications, make_clusters, make_loans
from derand.estimators import StumpClassifier
from tests.dataset_checks import Known, check_dataset

EXPECTED = {
    "sklearn_breast_cancer": Known(569, 30, 0, 357, 398, 171, "benign"),
    "sklearn_iris": Known(100, 4, 0, 50, 70, 30, "virginica"),
    "sklearn_wine": Known(130, 13, 0, 71, 91, 39, "class_1"),
    "sklearn_digits": Known(357, 64, 0, 174, 249, 108, "8"),
}


def test_the_catalog_is_what_these_tests_know() -> None:
    """No dataset enters the catalog without its known counts."""
    assert set(CATALOG) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_dataset_has_the_known_shape_classes_and_split(name: str) -> None:
    """Rows, columns, classes and the split are those of the protocol, and every cell has its type."""
    check_dataset(load(name), EXPECTED[name])


@pytest.mark.parametrize("n_rows", [5, 683, 1001])
def test_folds_equal_those_of_scikit_learn(n_rows: int) -> None:
    """The drawn folds are KFold(5, shuffle=True, random_state=0)."""
    fold = draw_folds(n_rows)
    for number, (_, test) in enumerate(KFold(5, shuffle=True, random_state=0).split(np.empty(n_rows))):
        assert np.flatnonzero(fold == number).tolist() == test.tolist()


def test_dividing_scales_by_the_training_part_alone() -> None:
    """Training columns are standardised or span [0, 1]; test rows use the same constants; X itself is untouched."""
    data = load("sklearn_breast_cancer")
    before = data.X.copy()
    standard, ranged, raw = data.divide(scaling="standard"), data.divide(scaling="range"), data.divide()
    np.testing.assert_allclose(standard.X_train.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(standard.X_train.std(axis=0), 1)
    assert ranged.X_train.min() == 0
    assert ranged.X_train.max() == 1
    assert ranged.X_test.max() > 1
    train = raw.X_train
    np.testing.assert_allclose(ranged.X_test, (raw.X_test - train.min(axis=0)) / np.ptp(train, axis=0))
    assert (before == data.X).all()
    assert raw.y_test.tolist() == data.y[data.split.test].tolist()


def test_dividing_leaves_categories_and_constant_columns_alone() -> None:
    """Text stays text, and a constant column is shifted, never divided by zero."""
    data = load("sklearn_breast_cancer")
    X = data.X[:, :3].astype(object)
    X[:, 1] = "red"
    X[:, 2] = 7.0
    mixed = replace(data, X=X, feature_names=("a", "b", "c"), categorical=(1,))
    parts = mixed.divide(mixed.fold_splits[2], scaling="standard")
    assert set(parts.X_train[:, 1]) == {"red"}
    assert set(parts.X_test[:, 2]) == {0.0}
    assert len(parts.y_test) == 114


def test_an_unknown_scaling_is_refused() -> None:
    """Only the two known ways of scaling are accepted."""
    with pytest.raises(ValueError, match="`scaling` must be"):
        load("sklearn_breast_cancer").divide(scaling="minmax")  # type: ignore[arg-type]


def test_an_unknown_name_gets_a_suggestion() -> None:
    """A misspelt name is answered with the nearest one."""
    with pytest.raises(ValueError, match=r"got 'sklearn_iriss'\. Did you mean 'sklearn_iris'"):
        load("sklearn_iriss")


@pytest.mark.parametrize("name", ["adult", "breast_cancer", "mnist_1v5"])
def test_a_dataset_of_the_paper_says_where_it_went(name: str) -> None:
    """One error names the new place, and suggests no other dataset."""
    with pytest.raises(ValueError, match=f"got {name!r}, a dataset of the paper.*`experiments.datasets`") as caught:
        load(name)
    assert "Did you mean" not in str(caught.value)


def test_every_dataset_is_available_without_a_file() -> None:
    """Nothing has to be fetched first."""
    assert all(is_available(name) and entry.file is None for name, entry in CATALOG.items())


def test_drawn_datasets_are_learnable_and_fixed_by_the_seed() -> None:
    """Clusters lie apart along all features; loans depend on numbers and categories; the same seed draws the same."""
    clusters, loans = make_clusters(400, 5), make_loans(2000)
    assert clusters.X[clusters.y == 1].mean() - clusters.X[clusters.y == 0].mean() == pytest.approx(3 / 5**0.5, abs=0.2)
    for data in (clusters, loans):
        X_train, y_train, X_test, y_test = data.divide()
        model = StumpClassifier(scaling="standard", class_weight="balanced").fit(X_train, y_train)
        assert model.score(X_test, y_test) > 0.65
    assert (make_loans(50, seed=1).X == make_loans(50, seed=1).X).all()
    assert (make_loans(50, seed=1).X != make_loans(50, seed=2).X).any()


def test_applications_are_raw_and_always_the_same() -> None:
    """Gaps, an identifier, a date, both outcomes, and a column that is known of failed loans alone."""
    table = make_applications(n_rows=500)
    again, other = make_applications(n_rows=500), make_applications(n_rows=500, seed=1)
    assert {len(values) for values in table.values()} == {500}
    assert len(set(table["application"])) == 500
    assert all(np.datetime64(day) >= np.datetime64("2023-01-01") for day in table["opened"])
    assert all(np.isnan(table[name]).any() for name in ("income", "debt", "years_employed"))
    assert None in table["job"]
    assert (np.isfinite(table["recovered"]) == (table["outcome"] == "default")).all()
    assert 0.1 < (table["outcome"] == "default").mean() < 0.3
    for name, values in table.items():
        np.testing.assert_array_equal(values, again[name])
    assert (table["amount"] != other["amount"]).any()
