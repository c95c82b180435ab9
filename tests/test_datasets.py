"""Datasets: shapes and counts of the published protocol, checksums, folders and errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from derand.datasets._files import list_folders
from sklearn.model_selection import KFold

from derand import datasets
from derand.datasets import CATALOG, _catalog, load, make_clusters, make_loans
from derand.datasets._dataset import draw_folds
from derand.estimators import StumpClassifier
from tests.shared import shared_folder

# name: rows, features, categorical features, rows of class 1, training rows, test rows, name of class 1
EXPECTED = {
    "breast_cancer": (683, 9, 0, 239, 546, 137, "malignant"),
    "breast_cancer_with_id": (683, 10, 0, 239, 546, 137, "malignant"),
    "diabetes": (768, 8, 0, 268, 614, 154, "diabetic"),
    "spambase": (4601, 57, 0, 1813, 3680, 921, "spam"),
    "mnist_1v5": (14190, 784, 0, 7877, 12163, 2027, "1"),
    "mnist_2v6": (13866, 784, 0, 6990, 11876, 1990, "2"),
    "fmnist_shoes": (14000, 784, 0, 7000, 12000, 2000, "sandal"),
    "adult": (32561, 14, 8, 7841, 22792, 9769, ">50K"),
    "credit": (1000, 20, 13, 300, 700, 300, "bad"),
    "mammographic": (830, 5, 2, 403, 581, 249, "malignant"),
    "bank": (4521, 16, 9, 521, 3164, 1357, "yes"),
    "mushroom": (8124, 22, 22, 3916, 5686, 2438, "poisonous"),
    "sklearn_breast_cancer": (569, 30, 0, 357, 398, 171, "benign"),
    "sklearn_iris": (100, 4, 0, 50, 70, 30, "virginica"),
    "sklearn_wine": (130, 13, 0, 71, 91, 39, "class_1"),
    "sklearn_digits": (357, 64, 0, 174, 249, 108, "8"),
}


@pytest.fixture
def data_folder(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shared_folder("data")
    monkeypatch.setenv("DERAND_DATA", str(folder))
    return folder


def test_the_catalog_is_what_these_tests_know() -> None:
    """No dataset enters the catalog without its known counts."""
    assert set(CATALOG) == set(EXPECTED)


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_dataset_has_the_published_shape_classes_and_split(name: str) -> None:
    """Rows, columns, classes and the split are those of the protocol, and every cell has its type."""
    data = load(name)
    rows, features, categorical, positive, n_train, n_test, label = EXPECTED[name]
    assert data.X.shape == (rows, features) == (len(data.y), len(data.feature_names))
    assert len(data.categorical) == categorical
    assert set(data.y) == {0, 1}
    assert data.y.sum() == positive
    assert data.target_names[1] == label
    assert (len(data.split.train), len(data.split.test)) == (n_train, n_test)
    assert not np.intersect1d(*data.split).size
    assert np.isfinite(data.X[:, list(data.numerical)].astype(float)).all()
    assert {type(value) for value in data.X[:, list(data.categorical)].ravel()} <= {str}
    assert len(data.provenance) > 20


@pytest.mark.usefixtures("data_folder")
def test_categories_keep_their_texts() -> None:
    """Adult's workclass has nine values, one of them the question mark."""
    data = load("adult")
    column = data.feature_names.index("workclass")
    assert column in data.categorical
    values, counts = np.unique(data.X[:, column].astype(str), return_counts=True)
    assert len(values) == 9
    assert counts[values == "?"] == 1836


@pytest.mark.usefixtures("data_folder")
def test_images_are_pixels_from_0_to_1_in_source_order() -> None:
    """Pixels are multiples of 1/255, the collection's training images come first."""
    data = load("mnist_2v6")
    assert data.X.min() == 0
    assert data.X.max() == 1
    assert (np.rint(data.X * 255) / 255 == data.X).all()
    assert data.split.train.tolist() == list(range(11876))


def test_image_folds_are_drawn_over_the_whole_collection(data_folder: Path) -> None:
    """Folds come from all 70,000 images before the two classes are picked."""
    with np.load(data_folder / "mnist.npz", allow_pickle=False) as archive:
        labels = np.concatenate([archive["y_train"], archive["y_test"]])
    _, test = next(iter(KFold(5, shuffle=True, random_state=0).split(labels)))
    picked = np.flatnonzero(np.isin(labels, [2, 6]))
    assert load("mnist_2v6").fold_splits[0].test.tolist() == np.flatnonzero(np.isin(picked, test)).tolist()


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
    with pytest.raises(ValueError, match=r"got 'mnist_1v55'\. Did you mean 'mnist_1v5'"):
        load("mnist_1v55")


def test_a_missing_file_says_what_where_and_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names file, origin, checksum and both folders."""
    monkeypatch.setenv("DERAND_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError) as caught:
        load("diabetes")
    file = _catalog.FILES["diabetes.csv"]
    for part in ("diabetes.csv is missing", file.origin, file.address, file.sha256, str(tmp_path)):
        assert part in str(caught.value)
    assert not datasets.is_available("diabetes")


def test_a_file_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed file is never read as data."""
    monkeypatch.setenv("DERAND_DATA", str(tmp_path))
    (tmp_path / "diabetes.csv").write_text("Outcome\n1\n")
    with pytest.raises(ValueError, match=r"diabetes\.csv is not the diabetes\.csv .* expected bf81d06e0c05"):
        load("diabetes")


def test_the_cache_folder_is_used_where_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without DERAND_DATA the file is found in the user's cache."""
    monkeypatch.delenv("DERAND_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "derand").mkdir()
    (tmp_path / "derand" / "diabetes.csv").write_bytes((shared_folder("data") / "diabetes.csv").read_bytes())
    assert load("diabetes").X.shape == (768, 8)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [("win32", "LOCALAPPDATA", "derand"), ("linux", "XDG_CACHE_HOME", "derand"), ("darwin", "HOME", "Caches/derand")],
)
def test_every_system_has_its_cache_folder(
    platform: str, variable: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache folder follows the habit of the system."""
    monkeypatch.delenv("DERAND_DATA", raising=False)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    (folder,) = list_folders()
    assert str(folder).startswith(str(tmp_path))
    assert str(folder).endswith(expected)


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
