"""Settings chosen by what they certify of training rows that were left out.

Owns the division of training rows, the trial of candidates, and the exact radius of a linear rule. Must not see a test
row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.estimators import AdditiveClassifier
from derand.metrics import certified_accuracy, certified_share
from experiments.beyond._shares import fit_quietly
from experiments.datasets import Split

Settings = Mapping[str, Any]


def divide_sample(y: IntArray, most: int) -> list[Split]:
    """A fifth left out of a sample of the rows, spread over all of them, as many of each class."""
    sample = np.linspace(0, len(y) - 1, min(most, len(y))).astype(np.int64)
    train, test = divide_in_five(y[sample])[0]
    return [Split(sample[train], sample[test])]


def divide_in_five(y: IntArray) -> list[Split]:
    """Each fifth of the rows left out in turn, as many of each class."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return [Split(train, test) for train, test in folds.split(y, y)]


def choose_settings(
    candidates: Sequence[Settings], measure: Callable[[Settings, Split], float], splits: Sequence[Split]
) -> Settings:
    """The candidate of the largest mean, the first of equals.

    Parameters
    ----------
    candidates : sequence of settings
    measure : callable
        Fits a candidate to the first part of a split, and gives a figure of the other one.
    splits : sequence of Split
    """
    return max(candidates, key=lambda one: float(np.mean([measure(one, split) for split in splits])))


def certify_left_out(
    make: Callable[[Settings], AdditiveClassifier], X: NDArray[Any], y: IntArray
) -> Callable[[Settings, Split], float]:
    """What a candidate certifies, by its rule, at the radius that it was trained for."""

    def measure(settings: Settings, split: Split) -> float:
        classifier = fit_quietly(make(settings), X[split.train], y[split.train])
        found = classifier.certify(X[split.test])
        return float(certified_accuracy(y[split.test], found, [classifier.radius])[0])

    return measure


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """A hyperplane: the radius of a row is its distance, by the dual norm of the weights."""

    weights: FloatArray
    shift: float
    norm: float

    @classmethod
    def fit(cls, X: NDArray[Any], y: IntArray, norm: float, settings: Settings) -> LinearRule:
        """By logistic regression."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=1000, **settings).fit(X, y)
        return cls(model.coef_[0], float(model.intercept_[0]), norm)

    def measure(self, X: NDArray[Any], y: IntArray, radius: float) -> tuple[float, float]:
        """Shares of the rows that are right, and right and further than the radius from the hyperplane."""
        scores = X @ self.weights + self.shift
        right = (scores > 0) == (y == 1)
        dual = {1: np.inf, 2: 2}[int(self.norm)]
        distance = np.abs(scores) / np.linalg.norm(self.weights, ord=dual)
        return float(right.mean()), float(certified_share(right, distance, [radius])[0])
