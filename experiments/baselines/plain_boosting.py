"""One round of the paper's two boosting methods as written: laws from nothing, loops over candidates with all rows.

Kept to compare speed and results with; it must not use the histograms or the running laws of `derand.train`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble
from derand.noise import Noise, as_noise
from experiments.baselines.plain_certification import certify_plainly, compute_pmf


class BoostedStump(NamedTuple):
    """A stump with leaves in [0, 1]."""

    feature: int
    threshold: float
    left: float
    right: float


def add_stump_plainly(
    stumps: Sequence[BoostedStump],
    X: ArrayLike,
    y: ArrayLike,
    noise: Noise | str,
    quantile: float,
    *,
    weights: ArrayLike | None = None,
    levels: int = 100,
    split_step: float = 0.01,
) -> BoostedStump:
    """The next stump of RobTreeBoost.

    Parameters
    ----------
    stumps : sequence of BoostedStump
        The stumps so far, at least one.
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), 0 or 1
    noise : Noise or str
    quantile : float
        Where the certifiable prediction is read.
    weights : array-like of shape (n_rows,) or None
    levels : int
        Leaves are rounded to multiples of 1 / levels.
    split_step : float
        Distance of the candidates.

    Returns
    -------
    BoostedStump
        The first of those with the least squared error over all cells of its feature.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]
    >>> add_stump_plainly([BoostedStump(0, 2.5, 0.0, 1.0)], X, y, "gaussian:1", 0.9, split_step=0.5).feature
    0
    """
    rows, labels, chosen = np.asarray(X, dtype=np.float64), np.asarray(y), as_noise(noise)
    weight = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    residual = labels - predict_certifiably(stumps, rows, labels, chosen, quantile, levels)
    pseudo = 0.5 + 0.5 * residual
    best, best_error = None, np.inf
    for feature in range(rows.shape[1]):
        splits = [stump.threshold for stump in stumps if stump.feature == feature]
        for threshold in _list_candidates(rows[:, feature], feature, chosen, split_step):
            error = _squared_error(rows[:, feature], feature, [*splits, threshold], weight, pseudo, chosen)
            if error < best_error - 1e-12 * weight.sum():
                best, best_error = (feature, threshold), error
    if best is None:
        raise ValueError("No candidate leaves weight in each cell.")
    feature, threshold = best
    below = chosen.cdf((threshold - rows[:, feature]) / chosen.scales(np.array([feature]))[0])
    left, right = (_fit_leaf(weight * share, residual, levels) for share in (below, 1 - below))
    return BoostedStump(feature, threshold, left, right)


def predict_certifiably(
    stumps: Sequence[BoostedStump],
    rows: FloatArray,
    labels: NDArray[np.int64],
    noise: Noise,
    quantile: float,
    levels: int,
) -> FloatArray:
    """Smallest mean leaf whose cdf exceeds the quantile (label 0) or one minus the quantile (label 1)."""
    features, thresholds, left, right = (np.array(column) for column in zip(*stumps, strict=True))
    model = AdditiveEnsemble.from_stumps(features, thresholds, left, right, n_features=rows.shape[1], levels=levels)
    terms = model.step_functions
    cdf = np.cumsum(compute_pmf(terms, rows, noise), axis=1)
    wanted = np.where(labels == 1, 1 - quantile, quantile)
    score = sum(int(term.scores.min()) for term in terms) + (cdf > wanted[:, None]).argmax(axis=1)
    return np.asarray(score / (len(stumps) * levels))


def _list_candidates(x: FloatArray, feature: int, noise: Noise, step: float) -> Iterator[float]:
    unit = float(noise.scales(np.array([feature]))[0]) / noise.magnitude
    low, high = float(x.min()), float(x.max())
    if low < high:
        yield from (
            low + unit * np.arange(-noise.overhang - step / 2, (high - low) / unit + noise.overhang + step, step)
        ).tolist()


def _squared_error(
    x: FloatArray, feature: int, splits: Sequence[float], weight: FloatArray, pseudo: FloatArray, noise: Noise
) -> float:
    """Expected squared distance of the pseudo-labels from their mean in each cell; infinite where a cell is empty."""
    edges = np.sort(splits)
    scale = float(noise.scales(np.array([feature]))[0])
    below = [np.zeros_like(x), *(noise.cdf((edge - x) / scale) for edge in edges), np.ones_like(x)]
    error = 0.0
    for lower, upper in pairwise(below):
        share = weight * (upper - lower)
        total = share.sum()
        if total <= 1e-12 * weight.sum():
            return np.inf
        error += float(share @ (pseudo - (share @ pseudo) / total) ** 2)
    return error


def _fit_leaf(share: FloatArray, residual: FloatArray, levels: int) -> float:
    size = np.abs(residual)
    step = 0.25 * (share @ residual) / (share @ (1e-6 + size * (1 - size)))
    return float(np.rint(np.clip(0.5 + step, 0.0, 1.0) * levels) / levels)


def weigh_member_plainly(
    member: AdditiveEnsemble, X: ArrayLike, y: ArrayLike, noise: Noise | str, radius: float, weights: ArrayLike
) -> tuple[float, FloatArray]:
    """Certifiable error of a member of RobAdaBoost, and the weights of the rows for the next one.

    Parameters
    ----------
    member : AdditiveEnsemble
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), 0 or 1
    noise : Noise or str
    radius : float
        Target radius.
    weights : array-like of shape (n_rows,)

    Returns
    -------
    error : float
    weights : array of shape (n_rows,)
        Their sum is 1.

    Examples
    --------
    >>> member = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> X, y = [[0.0], [1.0], [2.0], [0.4]], [0, 1, 1, 0]
    >>> error, weights = weigh_member_plainly(member, X, y, "uniform:1", 0.4, [1, 1, 1, 1])
    >>> error, weights.round(3).tolist()
    (0.25, [0.167, 0.167, 0.167, 0.5])
    """
    chosen, current = as_noise(noise), np.asarray(weights, dtype=np.float64)
    label, failure = certify_plainly(member, X, chosen)
    failed = (label != np.asarray(y)) | (chosen.radius(failure) < radius)
    error = float(current[failed].sum() / current.sum())
    grown = np.where(failed, current * (1 - error) / error, current) if 0 < error < 1 else current
    return error, grown / grown.sum()
