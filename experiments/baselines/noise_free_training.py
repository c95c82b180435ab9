"""Training that does not know the noise: on clean rows, on one noisy copy of them, and scikit-learn's boosted stumps.

The first two are the paper's ablation ("Default" and "Sampling"): the same criterion and the same candidate splits as
`StumpClassifier`, but each row lies on one side of a split for certain. Must not know certificates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble, StepFunction
from derand.noise import Gaussian, Noise, as_noise
from derand.train import Histogram, SplitGrid, measure_entropy, search_splits


def train_on_clean_rows(
    X: ArrayLike,
    y: ArrayLike,
    noise: Noise | str,
    *,
    class_weight: str | None = "balanced",
    levels: int = 100,
    split_step: float = 0.01,
    max_entropy: float = 0.693147,
) -> AdditiveEnsemble:
    """One stump per feature, of least entropy on the rows as they are.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), 0 or 1
    noise : Noise or str
        Only its magnitude is used: candidates reach two magnitudes beyond the rows, as in training under noise.
    class_weight : "balanced" or None
    levels, split_step, max_entropy
        As for `StumpClassifier`.

    Returns
    -------
    AdditiveEnsemble

    Examples
    --------
    >>> model = train_on_clean_rows([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], "gaussian:0.5")
    >>> model.terms[0].edges.round(6).tolist(), model.terms[0].scores.ravel().tolist()
    ([1.0], [0, 100])
    """
    counts = np.bincount(np.asarray(y), minlength=2).astype(np.float64)
    weights = counts.sum() / (2 * counts) if class_weight == "balanced" else np.ones(2)
    grid = SplitGrid.around(as_noise(noise), split_step)
    return train_by_search(X, y, noise, grid, weights, search_on_clean_rows, max_entropy=max_entropy, levels=levels)


def train_by_search(
    X: ArrayLike,
    y: ArrayLike,
    noise: Noise | str,
    grid: SplitGrid,
    class_weight: FloatArray,
    search: Any,
    *,
    max_entropy: float,
    levels: int,
    n_threads: int = 1,
) -> AdditiveEnsemble:
    """One stump per feature, found by a search for `search_splits`, kept where its entropy is below the limit."""
    rows, target = np.asarray(X, dtype=np.float64), np.asarray(y).astype(np.uint8)
    splits = search_splits(
        rows,
        np.arange(rows.shape[1]),
        target,
        as_noise(noise),
        grid,
        class_weight=class_weight,
        search=search,
        n_threads=n_threads,
    )
    kept = (splits.entropy < max_entropy) & (splits.spans > 0)
    columns = splits.columns[kept], splits.thresholds[kept], splits.left[kept], splits.right[kept]
    return AdditiveEnsemble.from_stumps(*columns, n_features=rows.shape[1], levels=levels)


def train_on_noisy_copy(
    X: ArrayLike, y: ArrayLike, noise: Noise | str, *, seed: int = 0, **parameters: Any
) -> AdditiveEnsemble:
    """`train_on_clean_rows` on one noisy copy of each row.

    The noise comes from numpy's legacy generator, whose stream is fixed for good, as in the published runs.

    Parameters
    ----------
    X, y, noise
        As for `train_on_clean_rows`; Gaussian or uniform noise without units.
    seed : int
    **parameters
        As for `train_on_clean_rows`.

    Returns
    -------
    AdditiveEnsemble

    Examples
    --------
    >>> model = train_on_noisy_copy([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], "gaussian:0.1")
    >>> model.terms[0].scores.ravel().tolist()
    [0, 100]
    """
    rows, scale = np.asarray(X, dtype=np.float64), as_noise(noise)
    generator = np.random.RandomState(seed)
    if isinstance(scale, Gaussian):
        noisy = rows + generator.normal(0.0, scale.magnitude, rows.shape)
    else:
        noisy = rows + generator.uniform(-scale.magnitude, scale.magnitude, rows.shape)
    return train_on_clean_rows(noisy, y, scale, **parameters)


def search_on_clean_rows(
    histogram: Histogram, class_weight: FloatArray, grid: SplitGrid, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """The first of the grid's candidates of least entropy where rows do not move: a search for `search_splits`."""
    # added up, as the published runs did: their rounding errors decide on which side a value on a candidate falls
    steps = np.full(grid.candidates(float(histogram.spans.max())).size, grid.step)
    candidates = np.cumsum(np.append(-grid.below, steps[1:]))
    sums = np.zeros((*histogram.counts.shape[:2], histogram.levels.size + 1))
    np.cumsum(histogram.counts, axis=2, out=sums[:, :, 1:])
    left = np.take(sums, np.searchsorted(histogram.levels, candidates), axis=2) * class_weight[:, None]
    entropy = measure_entropy(left, histogram.counts.sum(axis=2) * class_weight)
    entropy[candidates >= (histogram.spans + grid.above)[:, None]] = np.inf
    best = entropy.argmin(axis=1)
    return candidates[best], left[np.arange(best.size), :, best]


def train_gradient_boosting(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_stumps: int = 100,
    learning_rate: float = 0.3,
    levels: int = 1000,
    seed: int = 0,
) -> AdditiveEnsemble:
    """scikit-learn's gradient boosting with trees of depth 1, as an additive ensemble.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), 0 or 1
    n_stumps, learning_rate
        As for `sklearn.ensemble.GradientBoostingClassifier`.
    levels : int
        Scores are rounded to multiples of 1 / levels, in log-odds.
    seed : int

    Returns
    -------
    AdditiveEnsemble

    Examples
    --------
    >>> model = train_gradient_boosting([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], n_stumps=5)
    >>> (model.score([[0.0], [5.0]]) > model.threshold).tolist()
    [False, True]
    """
    from sklearn.ensemble import GradientBoostingClassifier

    rows = np.asarray(X, dtype=np.float64)
    # the trees compare single precision numbers, so that they are trained, and later asked, on such numbers
    booster = GradientBoostingClassifier(
        n_estimators=n_stumps, learning_rate=learning_rate, max_depth=1, random_state=seed
    ).fit(rows.astype(np.float32), y)
    share = float(np.mean(np.asarray(y) == 1))
    start = np.log(share / (1 - share))
    jumps: dict[int, dict[float, int]] = {}
    base = 0
    for (tree,) in booster.estimators_:
        parts = tree.tree_
        values = np.rint(parts.value[:, 0, 0] * learning_rate * levels).astype(np.int64)
        if parts.node_count == 1:
            base += int(values[0])
            continue
        edge = float(np.nextafter(parts.threshold[0], np.inf))  # scikit-learn sends x <= threshold to the left
        base += int(values[parts.children_left[0]])
        steps = jumps.setdefault(int(parts.feature[0]), {})
        rise = int(values[parts.children_right[0]] - values[parts.children_left[0]])
        steps[edge] = steps.get(edge, 0) + rise
    terms = [
        StepFunction(feature, np.array(sorted(steps)), np.cumsum([0, *(steps[edge] for edge in sorted(steps))]))
        for feature, steps in sorted(jumps.items())
    ]
    return AdditiveEnsemble(tuple(terms), int(np.floor(-start * levels)) - base, rows.shape[1], levels)
