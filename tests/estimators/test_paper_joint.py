"""The paper's joint certificates over numerical and categorical features, from raw tables with text in them.

Published counts take `radius > r`, changes within the categories seen in training, and an entropy limit of 0.693.
Credit and bank have an odd number of category leaves, whose published sums were rounded to half a level;
a grid that holds 0.375 and 0.625 exactly differs there by up to 2 and 1 points.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from derand import CategoryTable, Certificates, StumpClassifier, certify
from derand.datasets import Division
from derand.model import AdditiveEnsemble
from tests.paper_data import load_paper_data, read_published

NOISES = {"l1": "uniform:2.0", "l2": "gaussian:0.25"}
BUDGETS = [0, 1, 2, 3]
TOLERANCE = {"adult": 0.3, "mammographic": 0.3, "credit": 2.0, "bank": 1.0}
TIED = 2.5


def count_certified(certificates: Certificates, y: np.ndarray, radius: float | None, metric: str) -> float:
    """Per cent of the rows that are right and certified beyond the radius; "bca" is the mean over both classes."""
    held = (certificates.label == y) & (certificates.radius > (radius or 0.0))
    return float(100 * (held.mean() if metric == "ca" else np.mean([held[y == label].mean() for label in (0, 1)])))


@cache
def certify_split(
    dataset: str, fold: int | None, norm: str, uses_categorical: bool, uses_numerical: bool
) -> tuple[list[Certificates], np.ndarray]:
    """Certificates of the test part for every budget, and its labels; fold None is the split by position."""
    data = load_paper_data(dataset)
    split = data.split if fold is None else data.fold_splits[fold]
    scaling: str | None = "standard"
    if dataset == "mammographic":
        parts, scaling = cut_to_whole_numbers(data.divide(split, "standard"), list(data.numerical)), None
    else:
        parts = data.divide(split)
    chosen = (data.categorical if uses_categorical else ()) + (data.numerical if uses_numerical else ())
    columns = sorted(chosen)
    clf = StumpClassifier(noise=NOISES[norm], class_weight="balanced", scaling=scaling, max_entropy=0.693)
    clf.fit(parts.X_train[:, columns], parts.y_train)
    return clf.certify(parts.X_test[:, columns], l0=BUDGETS, unseen=False), parts.y_test


def cut_to_whole_numbers(parts: Division, columns: list[int]) -> Division:
    """The published runs stored mammographic's standardised numbers as integers."""
    for X in (parts.X_train, parts.X_test):
        X[:, columns] = np.trunc(X[:, columns].astype(np.float64))
    return parts


def measure_cell(row: dict[str, Any], folds: list[int | None]) -> float:
    """Mean over the folds of one cell of a table."""
    shares = []
    for fold in folds:
        several, y = certify_split(row["dataset"], fold, row["norm"], row["uses_categorical"], row["uses_numerical"])
        shares.append(count_certified(several[row["r0"] or 0], y, row["radius"], row["metric"]))
    return float(np.mean(shares))


def allowed(row: dict[str, Any]) -> float:
    """Points by which a cell may differ."""
    if row["norm"] == "l1" and row["dataset"] == "mammographic" and row["radius"] in (0.0, 1.0):
        # Whole numbers, splits on whole numbers and half-width 2: many rows have a failure mass of exactly 1/2 or
        # 1/4, so that "radius > r" holds in the published counts where rounding happened to help.
        return TIED
    return TOLERANCE[row["dataset"]]


def compare(table: str, dataset: str, folds: list[int | None]) -> None:
    rows = [row for row in read_published(table) if row["dataset"] == dataset]
    assert rows
    differences = {
        (row["uses_categorical"], row["uses_numerical"], row["r0"], row["radius"]): (
            row["value"],
            round(measure_cell(row, folds), 2),
        )
        for row in rows
        if abs(measure_cell(row, folds) - row["value"]) > allowed(row)
    }
    assert differences == {}


@pytest.mark.parametrize("dataset", ["adult", "credit"])
def test_joint_balanced(dataset: str) -> None:
    """Every cell of tab:joint-balanced: with and without numerical and categorical features, r0 0 to 3."""
    compare("tab:joint-balanced", dataset, [None])


@pytest.mark.long
@pytest.mark.parametrize("dataset", ["adult", "credit", "mammographic", "bank"])
@pytest.mark.parametrize("table", ["balanced-l2", "imbalanced-l2", "balanced-l1", "imbalanced-l1"])
def test_joint_cross_validation(table: str, dataset: str) -> None:
    """Every mean of the four tables over five folds."""
    compare(f"tab:joint-cv-{table}", dataset, [0, 1, 2, 3, 4])


def test_categorical_only() -> None:
    """The mushroom table, with the constant column that the published model keeps.

    `veil-type` has one value, so both classes have exactly half of its weight, and in each fold the rounding of a sum
    decided the published leaf. We leave such a column out; with that leaf added the numbers are the published ones.
    """
    data = load_paper_data("mushroom")
    constant = data.feature_names.index("veil-type")
    cells: dict[tuple[int, str], list[float]] = {}
    for split in data.fold_splits:
        X_train, y_train, X_test, y_test = data.divide(split)
        clf = StumpClassifier(class_weight="balanced").fit(X_train, y_train)
        assert constant not in {term.feature for term in clf.ensemble_.terms}
        weight = np.where(y_train == 1, (y_train == 0).sum() / (y_train == 1).sum(), 1.0)
        leaf = 125 if (weight * y_train).sum() / weight.sum() >= 0.5 else 75
        model = AdditiveEnsemble(
            (*clf.ensemble_.terms, CategoryTable(constant, [0.0], [leaf], 100)),
            threshold=22 * 100,
            n_features=22,
            levels=200,
        )
        several = certify(model, clf.encoding_.encode(X_test), clf.noise_, l0=BUDGETS, unseen=False)
        for budget, certificates in enumerate(several):
            for metric in ("ca", "bca"):
                cells.setdefault((budget, metric), []).append(count_certified(certificates, y_test, None, metric))
    for row in read_published("tab:categorical"):
        assert abs(np.mean(cells[row["r0"], row["metric"]]) - row["value"]) <= 0.1
