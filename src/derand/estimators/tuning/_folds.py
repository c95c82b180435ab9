"""Cross-validation: natural and certified accuracy of several classifiers on the same folds.

Owns folds and what is counted on them. Must not know why these classifiers are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from derand._core.arrays import FloatArray, IntArray
from derand.certificates import Certificates
from derand.estimators import CertifiedClassifier
from derand.metrics import certified_accuracy
from derand.tables import take_rows
from derand.threat import Threat

Fold = tuple[IntArray, IntArray]
"""Rows to train on, and rows to measure."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What was counted, of all rows (at 0 of the first axis) and as the mean of all classes (at 1)."""

    natural: FloatArray
    """Right without any change, (2, n_classifiers, n_folds)."""
    certified: FloatArray
    """Right and certified, (2, n_classifiers, n_folds, n_radii)."""
    norm: float
    """Of the ball."""


def cut_folds(labels: NDArray[Any], cv: Any, random_state: Any) -> list[Fold]:
    """Folds with the classes in equal shares, shuffled; what cannot be cut is refused."""
    if isinstance(cv, bool) or not isinstance(cv, int | np.integer) or cv < 2:
        raise ValueError(f"`cv` must be a whole number of folds, 2 or larger, got {cv!r}.")
    if labels.ndim != 1:
        raise ValueError(f"`y` must hold one label per row, got shape {labels.shape}.")
    classes, counts = np.unique(labels, return_counts=True)
    if classes.size < 2:
        raise ValueError(f"`y` must hold two classes at least, got {classes.size}: there is nothing to tell apart.")
    if counts.min() < cv:
        raise ValueError(
            f"`cv`, the number of folds, must be at most {counts.min()}, the number of rows of the class "
            f"{classes[counts.argmin()].item()!r}, got {cv}: every fold needs one. Use fewer folds or more rows."
        )
    splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros((labels.size, 1)), labels))


def count_larger_class(labels: NDArray[Any], folds: Sequence[Fold]) -> float:
    """What a model gets that always names the larger class: counted on the folds, as those that it is compared with."""
    classes, counts = np.unique(labels, return_counts=True)
    return float(np.mean([(labels[test] == classes[counts.argmax()]).mean() for _, test in folds]))


def cross_validate(
    classifiers: Sequence[CertifiedClassifier],
    X: Any,
    labels: NDArray[Any],
    folds: Sequence[Fold],
    *,
    threat: Threat,
    radii: FloatArray,
    n_jobs: int | None,
    advance: Callable[[int, int], None],
) -> Scores:
    """Train every classifier on every fold, and certify the rows that were left out.

    `classifiers`: cloned, never changed; `n_jobs`: None is each classifier's own; `advance`: told how many trainings of
    how many are done; `labels` has shape (n_rows,), `radii` (n_radii,).
    """
    natural = np.empty((2, len(classifiers), len(folds)))
    certified = np.empty((*natural.shape, len(radii)))
    for at, classifier in enumerate(classifiers):
        for number, (train, test) in enumerate(folds):
            advance(at * len(folds) + number, len(classifiers) * len(folds))
            fresh = clone(classifier) if n_jobs is None else clone(classifier).set_params(n_jobs=n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a model says the same of all rows, figures tell
                fresh.fit(take_rows(X, train), labels[train])
                found = fresh.certify(take_rows(X, test), threat=threat)
            for counting, balanced in enumerate((False, True)):
                natural[counting, at, number] = _count_right(labels[test], found, balanced)
                certified[counting, at, number] = certified_accuracy(labels[test], found, radii, balanced=balanced)
    assert found.norm is not None  # a threat that is tuned for has a ball
    return Scores(natural, certified, found.norm)


def _count_right(labels: NDArray[Any], certificates: Certificates, balanced: bool) -> float:
    right = labels == certificates.label
    if not balanced:
        return float(right.mean())
    return float(np.mean([right[labels == name].mean() for name in np.unique(labels)]))
