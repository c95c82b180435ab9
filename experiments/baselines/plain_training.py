"""The paper's training as written: a loop over features, and over every candidate split with all rows (section 4.1).

Kept to compare speed and results with; it must not use the histograms of `derand.train`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.noise import Noise, as_noise


class PlainStump(NamedTuple):
    """Best stump of one feature: leaves are shares of class 1, the entropy is in nats."""

    feature: int
    threshold: float
    left: float
    right: float
    entropy: float


def train_plainly(
    X: ArrayLike, y: ArrayLike, noise: Noise | str, features: Iterable[int] | None = None, split_step: float = 0.01
) -> list[PlainStump]:
    """The MLE-optimal stump of each feature by line search, with balanced classes.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), 0 or 1
    noise : Noise or str
    features : iterable of int or None
        Which features to train; None is all of them.
    split_step : float
        Distance of the candidates, from two noise scales below the smallest value to two above the largest.

    Returns
    -------
    list of PlainStump

    Examples
    --------
    >>> stump = train_plainly([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], "gaussian:0.5")[0]
    >>> round(stump.threshold, 2), round(stump.left, 3), round(stump.right, 3)
    (2.5, 0.001, 0.999)
    """
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    chosen = as_noise(noise)
    weight = np.where(labels == 1, np.sum(labels == 0) / np.sum(labels == 1), 1.0)
    one, zero = weight * (labels == 1), weight * (labels == 0)
    columns = range(rows.shape[1]) if features is None else features
    return [_train_feature(column, rows[:, column], zero, one, chosen, split_step) for column in columns]


def _train_feature(
    feature: int, x: FloatArray, zero: FloatArray, one: FloatArray, noise: Noise, step: float
) -> PlainStump:
    scale = float(noise.scales(np.array([feature]))[0])
    best = PlainStump(feature, float(x.min()), 0.5, 0.5, np.inf)
    for threshold in np.arange(x.min() - 2 * scale, x.max() + 2 * scale + step, step):
        goes_right = noise.cdf((x - threshold) / scale)
        goes_left = 1.0 - goes_right
        left = (np.sum(zero * goes_left), np.sum(one * goes_left))
        right = (np.sum(zero * goes_right), np.sum(one * goes_right))
        entropy = (_impurity(*left) + _impurity(*right)) / (sum(left) + sum(right))
        if entropy < best.entropy:
            best = PlainStump(feature, float(threshold), _leaf(*left), _leaf(*right), float(entropy))
    return best


def _leaf(zero: float, one: float) -> float:
    """Share of class 1, 1/2 where no row can arrive."""
    return float(one / (zero + one)) if zero + one > 0 else 0.5


def _impurity(zero: float, one: float) -> float:
    """Entropy of a leaf, times its weight."""
    return float(-sum(rows * np.log(rows / (zero + one)) for rows in (zero, one) if rows > 0))
