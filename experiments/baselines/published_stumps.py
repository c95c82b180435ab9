"""Independent stumps as the published runs trained them: to show that the printed numbers follow, not to be used.

The one difference to `StumpClassifier`: a side of a split that holds rows of a total weight below 1 counts as pure.
With much noise this draws splits to where next to nothing lies beyond them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble
from derand.noise import Noise, as_noise
from derand.train import Histogram, SplitGrid, measure_left
from experiments.baselines.noise_free_training import train_by_search


def train_stumps_as_published(
    X: ArrayLike,
    y: ArrayLike,
    noise: Noise | str,
    *,
    class_weight: str = "balanced",
    levels: int = 100,
    split_step: float = 0.01,
    max_entropy: float = 0.693147,
    n_threads: int = 1,
) -> AdditiveEnsemble:
    """One stump per feature, of least entropy under noise where light sides count as pure.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), 0 or 1
    noise : Noise or str
    class_weight : "balanced"
        Rows of the larger class weigh 1, those of the smaller one more; the weights' size matters here.
    levels, split_step, max_entropy
        As for `StumpClassifier`.
    n_threads : int

    Returns
    -------
    AdditiveEnsemble

    Examples
    --------
    >>> model = train_stumps_as_published([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], "gaussian:0.5")
    >>> model.terms[0].edges.round(2).tolist()
    [2.5]
    """
    if class_weight != "balanced":
        raise ValueError(f'`class_weight` must be "balanced", as in the published runs, got {class_weight!r}.')
    counts = np.bincount(np.asarray(y), minlength=2).astype(np.float64)
    return train_by_search(
        X,
        y,
        noise,
        SplitGrid.around(as_noise(noise), split_step),
        counts.max() / counts,
        search_ignoring_light_sides,
        max_entropy=max_entropy,
        levels=levels,
        n_threads=n_threads,
    )


def search_ignoring_light_sides(
    histogram: Histogram, class_weight: FloatArray, grid: SplitGrid, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """The first of the grid's candidates with the least entropy, light sides counting as pure, for `search_splits`."""
    candidates = grid.candidates(float(histogram.spans.max()))
    totals = histogram.counts.sum(axis=2) * class_weight
    left = measure_left(histogram, candidates, noise) * class_weight[:, None]
    right = np.maximum(totals[:, :, None] - left, 0.0)
    entropy = (_weigh_impurity(left) + _weigh_impurity(right)) / totals.sum(axis=1)[:, None]
    entropy[candidates >= (histogram.spans + grid.above)[:, None]] = np.inf
    best = entropy.argmin(axis=1)
    return candidates[best], left[np.arange(best.size), :, best]


def _weigh_impurity(side: FloatArray) -> FloatArray:
    """Weight times entropy of one side of each split, (n_columns, n_candidates); 0 where it weighs less than 1."""
    weight = side.sum(axis=1)
    share = side / np.maximum(weight, 1.0)[:, None]
    impurity = -(side * np.log(np.maximum(share, np.finfo(np.float64).tiny))).sum(axis=1)
    return np.where(weight >= 1, impurity, 0.0)
