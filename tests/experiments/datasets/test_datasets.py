"""The paper's datasets: shapes and counts of the published protocol, checksums, folders and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from derand.datasets import CATALOG as BUNDLED
from experiments import datasets
from experiments.datasets import CATALOG, load
from experiments.datasets._catalog import FILES
from experiments.datasets._files import list_folders
from tests.dataset_checks import Known, check_dataset
from tests.shared import shared_folder

EXPECTED = {
    "breast_cancer": Known(683, 9, 0, 239, 546, 137, "malignant"),
    "breast_cancer_with_id": Known(683, 10, 0, 239, 546, 137, "malignant"),
    "diabetes": Known(768, 8, 0, 268, 614, 154, "diabetic"),
    "spambase": Known(4601, 57, 0, 1813, 3680, 921, "spam"),
    "mnist": Known(70000, 784, 0, 7877, 60000, 10000, "1"),
    "fashion_mnist": Known(70000, 784, 0, 7000, 60000, 10000, "trouser"),
    "mnist_1v5": Known(14190, 784, 0, 7877, 12163, 2027, "1"),
    "mnist_2v6": Known(13866, 784, 0, 6990, 11876, 1990, "2"),
    "fmnist_shoes": Known(14000, 784, 0, 7000, 12000, 2000, "sandal"),
    "adult": Known(32561, 14, 8, 7841, 22792, 9769, ">50K"),
    "credit": Known(1000, 20, 13, 300, 700, 300, "bad"),
    "mammographic": Known(830, 5, 2, 403, 581, 249, "malignant"),
    "bank": Known(4521, 16, 9, 521, 3164, 1357, "yes"),
    "mushroom": Known(8124, 22, 22, 3916, 5686, 2438, "poisonous"),
}


def test_the_catalog_is_what_these_tests_know() -> None:
    """No dataset enters the catalog without its known counts."""
    assert set(CATALOG) == set(EXPECTED) | set(BUNDLED)


def test_the_bundled_datasets_are_loaded_too() -> None:
    """What needs no file comes from the package."""
    assert load("sklearn_iris").X.shape == (100, 4)
    assert datasets.find_file("sklearn_iris") is None
    assert datasets.name_checksum("sklearn_iris") is None


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_dataset_has_the_published_shape_classes_and_split(name: str) -> None:
    """Rows, columns, classes and the split are those of the protocol, and every cell has its type."""
    check_dataset(load(name), EXPECTED[name])


@pytest.mark.usefixtures("data")
def test_categories_keep_their_texts() -> None:
    """Adult's workclass has nine values, one of them the question mark."""
    data = load("adult")
    column = data.feature_names.index("workclass")
    assert column in data.categorical
    values, counts = np.unique(data.X[:, column].astype(str), return_counts=True)
    assert len(values) == 9
    assert counts[values == "?"] == 1836


@pytest.mark.usefixtures("data")
def test_images_are_pixels_from_0_to_1_in_source_order() -> None:
    """Pixels are multiples of 1/255, the collection's training images come first."""
    data = load("mnist_2v6")
    assert data.X.min() == 0
    assert data.X.max() == 1
    assert (np.rint(data.X * 255) / 255 == data.X).all()
    assert data.split.train.tolist() == list(range(11876))


def test_image_folds_are_drawn_over_the_whole_collection(data: Path) -> None:
    """Folds come from all 70,000 images before the two classes are picked."""
    with np.load(data / "mnist.npz", allow_pickle=False) as archive:
        labels = np.concatenate([archive["y_train"], archive["y_test"]])
    _, test = next(iter(KFold(5, shuffle=True, random_state=0).split(labels)))
    picked = np.flatnonzero(np.isin(labels, [2, 6]))
    assert load("mnist_2v6").fold_splits[0].test.tolist() == np.flatnonzero(np.isin(picked, test)).tolist()


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
    file = FILES["diabetes.csv"]
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
