"""Features that interact: a table on which single columns say nothing, and patches of the paper's images.

Owns the table of `python -m experiments interactions`: the same classifier with and without groups, by the same rule.
Must not know how anything is trained or certified.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.estimators import AdditiveClassifier
from experiments.beyond import Shares, fit_quietly, list_rows, measure_shares, prepare_rows

CROSSED = "crossed"
"""Generated: class 1 where exactly one of two columns is positive, beside columns that say nothing."""
IMAGES = ("fmnist_shoes", "mnist_1v5", "mnist_2v6")
TASKS = (CROSSED, *IMAGES)
WAYS: dict[str, dict[str, Any]] = {
    "single columns": {"groups": None, "regularization": 0.3},
    "1 x 2 patches": {"groups": (1, 2), "regularization": 1.0},
    "2 x 2 patches": {"groups": (2, 2), "regularization": 10.0},
}
"""Of images, with the penalty of each: set on shoes, with 3,000 training rows, before the others were looked at."""
TRAINED, TESTED = 3_000, 300
"""Rows of images: certificates of patches are slow."""
SETTINGS: dict[str, Any] = {"noise": "gaussian:0.25", "n_cuts": 9, "scaling": None, "categorical_features": None}
_SIDE = 28


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    dataset: str
    way: str
    rule: str
    radius: float
    shares: Shares
    fit_seconds: float
    certify_seconds: float


def compare_groups(tasks: Sequence[str] = TASKS, rule: str = "mean", tested: int = TESTED) -> Iterator[Line]:
    """The lines of the table, one after the other.

    Parameters
    ----------
    tasks : sequence of str
        Of TASKS.
    rule : {"mean", "vote"}
    tested : int
        Test rows of each image task.
    """
    for task in tasks:
        yield from _compare_crossed(rule) if task == CROSSED else _compare_image(task, rule, tested)


def cut_patches(height: int, width: int) -> list[list[int]]:
    """The pixels of an image in patches, row by row.

    Examples
    --------
    >>> cut_patches(2, 2)[:2]
    [[0, 1, 28, 29], [2, 3, 30, 31]]
    """
    corners = [(top, left) for top in range(0, _SIDE, height) for left in range(0, _SIDE, width)]
    return [
        [_SIDE * (top + down) + left + right for down in range(height) for right in range(width)]
        for top, left in corners
    ]


def draw_crossed(n_rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of five columns, two of which say everything together and nothing by themselves."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 5))
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(np.int64)


def _compare_crossed(rule: str) -> Iterator[Line]:
    train, test = draw_crossed(2_000, 0), draw_crossed(1_000, 1)
    for way, groups in (
        ("single columns", None),
        ("groups that were found", "auto"),
        ("groups that are given", [[0, 1]]),
    ):
        yield _measure(CROSSED, way, AdditiveClassifier(radius=0.05, rule=rule, groups=groups), train, test)


def _compare_image(task: str, rule: str, tested: int) -> Iterator[Line]:
    row = list_rows()[f"l2:{task}"]
    ((_, parts),) = prepare_rows(row.recipe)
    rng = np.random.default_rng(0)
    some, others = rng.permutation(len(parts.X_train))[:TRAINED], rng.permutation(len(parts.X_test))[:tested]
    train = parts.X_train[some], parts.y_train[some]
    test = parts.X_test[others], parts.y_test[others]
    for way, settings in WAYS.items():
        groups = None if settings["groups"] is None else cut_patches(*settings["groups"])
        asked = SETTINGS | {"regularization": settings["regularization"], "groups": groups}
        yield _measure(task, way, AdditiveClassifier(radius=row.radius, rule=rule, **asked), train, test)


def _measure(task: str, way: str, classifier: AdditiveClassifier, train: Any, test: Any) -> Line:
    begun = time.perf_counter()
    fit_quietly(classifier, *train)
    fitted = time.perf_counter()
    found = classifier.certify(test[0])
    done = time.perf_counter()
    shares = measure_shares(test[1], found, classifier.radius)
    return Line(task, way, classifier.rule, classifier.radius, shares, fitted - begun, done - fitted)
