"""Golden: the published models give their published failure masses, labels and radii, on every backend.

So do those of the project's own set (`tests/golden`), whose values are by exact arithmetic and which is in every clone.
The plain backend runs on the first rows of the image models alone: 600 stumps are slow work for it.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
from typing import Any

import numpy as np
import pytest
from scipy import special

from derand import AdditiveEnsemble, CategoryTable, Certificates, Noise, StepFunction, WeightedVote
from derand.noise import NOISES
from tests.certificates.by_law import certify
from tests.golden import NAMES, list_names, read_golden
from tests.oracle import find_truth
from tests.shared import shared_folder

INDEPENDENT = [
    f"independent_{data}_{norm}"
    for data in ("breast_cancer", "diabetes", "fmnist", "mnist_1_5", "mnist_2_6")
    for norm in ("l1", "l2")
]
BOOSTED = [f"boosted_{data}_{norm}" for data in ("breast_cancer", "diabetes") for norm in ("l1", "l2")]
JOINT = [f"joint_{data}_{norm}" for data in ("adult", "credit") for norm in ("l1", "l2")]
VOTES = ["adaboost_mnist_2_6_l2", "adaboost_fmnist_l1"]
PLAIN_ROWS = {"independent": 12, "adaboost": 2}

IMAGES = {
    "mnist_1_5": ("mnist.npz", 1, 5),
    "mnist_2_6": ("mnist.npz", 2, 6),
    "fmnist_sandal_sneaker": ("fashion_mnist.npz", 5, 7),
}
NUMERICAL = {"breast_cancer": ("class", "4"), "diabetes": ("Outcome", "1")}
MIXED = {
    "adult": ("income", ">50K", [1, 3, 5, 6, 7, 8, 9, 13]),
    "credit": ("credit", "2", [0, 2, 3, 5, 6, 8, 9, 11, 13, 14, 16, 18, 19]),
}


@functools.cache
def read_model(name: str) -> dict[str, Any]:
    if name in NAMES:
        return read_golden(name)[0]
    folder = shared_folder("golden") / "models"
    packed = folder / f"{name}.json.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / f"{name}.json").read_bytes()
    return dict(json.loads(text))


@functools.cache
def read_numbers(name: str) -> dict[str, np.ndarray]:
    with np.load(shared_folder("golden") / "radii" / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def read_columns(name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table; rows with an empty cell are dropped."""
    with (shared_folder("data") / f"{name}.csv").open() as file:
        header, *rows = csv.reader(file)
    return header, [row for row in rows if all(row)]


@functools.cache
def read_test_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Test rows and labels by the published protocol: split by position, scaled by the training part."""
    if name in IMAGES:
        archive, first, second = IMAGES[name]
        with np.load(shared_folder("data") / archive, allow_pickle=False) as arrays:
            images, digits = arrays["x_test"], arrays["y_test"]
        chosen = (digits == first) | (digits == second)
        return images[chosen].reshape(-1, 784) / 255.0, (digits[chosen] == first).astype(np.int64)
    mixed = name in MIXED
    target, positive, categorical = MIXED[name] if mixed else (*NUMERICAL[name], [])
    header, rows = read_columns(name)
    label_column = header.index(target)
    labels = np.array([row[label_column] == positive for row in rows]).astype(np.int64)
    cells = [[cell for at, cell in enumerate(row) if at != label_column] for row in rows]
    X = np.empty((len(rows), len(header) - 1))
    n_train = int((0.7 if mixed else 0.8) * len(rows))
    for column, values in enumerate(zip(*cells, strict=True)):
        if column in categorical:
            codes = {text: code for code, text in enumerate(sorted(set(values)))}
            X[:, column] = [codes[text] for text in values]
            continue
        numbers = np.array(values, dtype=np.float64)
        train = numbers[:n_train]
        low, unit = (train.mean(), train.std()) if mixed else (train.min(), train.max() - train.min())
        X[:, column] = (numbers - low) / unit
    return X[n_train:], labels[n_train:]


def read_problem(name: str, backend: str) -> tuple[dict[str, Any], dict[str, np.ndarray], np.ndarray, Noise]:
    """Model, published numbers, their rows (few for the plain backend) and noise."""
    if name in NAMES:
        model, numbers = read_golden(name)
        return model, numbers, numbers["rows"], NOISES[model["noise"]](model["scale"])
    model, numbers = read_model(name), read_numbers(name)
    X, labels = read_test_rows(model["dataset"])
    index = numbers["index"]
    assert (labels[index] == numbers["label"]).all()
    count = len(index)
    if backend == "numpy" and model["dataset"] in IMAGES:
        count = PLAIN_ROWS[model["kind"]]
    return model, numbers, X[index[:count]], NOISES[model["noise"]](model["scale"])


def build_stumps(stumps: list[list[float]], n_features: int) -> AdditiveEnsemble:
    features, thresholds, left, right = (list(column) for column in zip(*stumps, strict=True))
    return AdditiveEnsemble.from_stumps(
        features, thresholds, np.array(left) / 100, np.array(right) / 100, n_features=n_features, levels=100
    )


def assert_masses(computed: np.ndarray, published: np.ndarray, noise: Noise) -> None:
    """1e-9 relative (uniform noise: or 1e-13 absolute), where the published mass is not lost to underflow."""
    kept = published > 1e-290 if noise.name != "uniform" else np.full(published.shape, True)
    assert kept.any()
    np.testing.assert_allclose(computed[kept], published[kept], rtol=1e-9, atol=1e-13 if noise.name == "uniform" else 0)


def check_masses(c: Certificates, numbers: dict[str, np.ndarray], noise: Noise) -> None:
    count = len(c)
    assert_masses(c.failure, numbers["q_acc"][:count], noise)
    assert c.label.tolist() == numbers["pred"][:count].tolist()
    radius = numbers["radius_acc"][:count]
    finite = numbers["q_acc"][:count] > 1e-290
    np.testing.assert_allclose(c.radius[finite], radius[finite], rtol=1e-9, atol=1e-9 * noise.magnitude)


@pytest.mark.parametrize("name", [*INDEPENDENT, *BOOSTED, *list_names("independent"), *list_names("boosted")])
def test_published_models(name: str, backend: str) -> None:
    """Ten models of one stump per feature and four boosted ones give their masses, labels and radii."""
    model, numbers, rows, noise = read_problem(name, backend)
    ensemble = build_stumps(model["stumps"], rows.shape[1])
    assert ensemble.threshold == 50 * len(model["stumps"])
    check_masses(certify(ensemble, rows, noise, backend=backend), numbers, noise)


@pytest.mark.parametrize("name", [*VOTES, *list_names("adaboost")])
def test_published_votes(name: str, backend: str) -> None:
    """Every member of the two published votes gives its masses, and where the vote is right it has their radius.

    A published radius counts a member that is wrong as 0 even where its weight is negative; ours counts such a member
    reversed, so that our radius may be the larger one, and equals the published one where no weight is negative.
    Published Gaussian radii come from 1 - p: beyond 5.9 deviations they are rounding noise, and the rule is applied
    to the accurate masses instead.
    """
    model, numbers, rows, noise = read_problem(name, backend)
    members = [build_stumps(member["stumps"], rows.shape[1]) for member in model["members"]]
    weights = np.array([member["weight"] for member in model["members"]])
    np.testing.assert_allclose(weights, numbers["weights"])
    masses = numbers["q_acc"][:, : len(rows)]
    for member, published in zip(members, masses, strict=True):
        assert_masses(certify(member, rows, noise, backend=backend).failure, published, noise)
    vote = certify(WeightedVote(members, weights), rows, noise, backend=backend)
    right = vote.label == numbers["label"][: len(rows)]
    assert right.mean() >= 0.9
    published = numbers["radius"][: len(rows)]
    faithful = published < 5.9 * noise.magnitude
    if noise.name == "gaussian":
        held = np.where(numbers["member_radius"][:, : len(rows)] > 0, -noise.magnitude * special.ndtri(masses), 0.0)
        accurate = apply_published_rule(held, weights)
        np.testing.assert_allclose(accurate[faithful], published[faithful], rtol=0, atol=1e-6 * noise.magnitude)
        published = accurate
    tolerance = 1e-9 * np.maximum(published, noise.magnitude)[right]
    assert (vote.radius[right] >= published[right] - tolerance).all()
    if weights.min() >= 0:
        assert (vote.radius[right] <= published[right] + tolerance).all()


def apply_published_rule(radii: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Members by decreasing radius, positive weights added until they exceed half of all; that member's radius."""
    result = np.zeros(radii.shape[1])
    for row in range(radii.shape[1]):
        carried = 0.0
        for member in np.argsort(-radii[:, row], kind="stable"):
            carried += max(weights[member], 0.0)
            if carried > np.abs(weights).sum() / 2:
                result[row] = radii[member, row]
                break
    return result


@pytest.mark.parametrize("name", [*JOINT, *list_names("joint")])
def test_published_joint_models(name: str, backend: str) -> None:
    """Four models with categories give their exact failure masses for 0 to 3 changed categories.

    The files certify the true label, so that rows with another predicted label have other masses.
    """
    model, numbers, rows, noise = read_problem(name, backend)
    ensemble = build_joint(model, rows.shape[1])
    certificates = certify(ensemble, rows, noise, l0=numbers["l0"].tolist(), unseen=False, backend=backend)
    right = certificates[0].label == numbers["label"]
    assert right.mean() > 0.6
    for k, c in enumerate(certificates):
        assert c.l0 == k
        assert_masses(c.failure[right], numbers["fail_exact"][right, k], noise)


def build_joint(model: dict[str, Any], n_features: int) -> AdditiveEnsemble:
    """The mixed model on a grid of 1/200, on which its leaves of 3/8 and 5/8 are exact."""
    terms: list[StepFunction | CategoryTable] = [
        StepFunction(feature, [threshold], [2 * left, 2 * right]) for feature, threshold, left, right in model["stumps"]
    ]
    for column, leaves in model["tables"].items():
        codes = sorted(leaves, key=int)
        scores = [int(200 * leaves[code]) for code in codes]
        assert scores == [200 * leaves[code] for code in codes]
        terms.append(CategoryTable(int(column), [int(code) for code in codes], scores, int(200 * model["unseen"])))
    return AdditiveEnsemble(terms, 100 * len(terms), n_features, levels=200)


@pytest.mark.parametrize("name", [*JOINT, *list_names("joint")])
def test_from_stumps_builds_the_joint_models(name: str) -> None:
    """`from_stumps` with tables gives the terms and the threshold that are written down by hand."""
    model = read_model(name)
    features, thresholds, left, right = (list(column) for column in zip(*model["stumps"], strict=True))
    tables = []
    for column, leaves in model["tables"].items():
        codes = sorted(leaves, key=int)
        tables.append((int(column), [int(code) for code in codes], [leaves[code] for code in codes], model["unseen"]))
    built = AdditiveEnsemble.from_stumps(
        features, thresholds, np.array(left) / 100, np.array(right) / 100, n_features=30, levels=200, tables=tables
    )
    expected = {term.feature: term for term in build_joint(model, 30).terms}
    assert built.threshold == 100 * len(expected)
    assert built.score_error == 0
    for term in built.terms:
        assert term.scores.tolist() == expected[term.feature].scores.tolist()


@pytest.mark.parametrize("name", [name for name in list_names("independent") if "iris" in name])
def test_values_of_the_own_set_are_exact(name: str) -> None:
    """What is stored of the smallest models is what the oracle finds."""
    model, numbers, rows, noise = read_problem(name, "numba")
    ensemble = build_stumps(model["stumps"], rows.shape[1])
    found = [find_truth(ensemble, row, noise, [0])[0] for row in rows.tolist()]
    assert [float(truth.failure) for truth in found] == numbers["q_acc"].tolist()
    assert [float(truth.radius(noise)) for truth in found] == numbers["radius_acc"].tolist()
