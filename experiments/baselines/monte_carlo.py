"""Randomised smoothing by sampling (Cohen et al. 2019): what the exact certificates replace.

A first, small sample picks the class, a second one bounds its probability from below (Clopper-Pearson). The result
holds for each row with probability 1 - alpha over the samples drawn; it is no proof. Must not know training.

The sampler draws every term's cell by its probability, from numbers of NumPy's generator, uniform to 2**-53.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import count_threads, run_blocks
from derand.certificates import Certificates, fill_missing, pack_terms
from derand.model import AdditiveEnsemble, Axis
from derand.noise import Noise, as_noise
from derand.threat import Threat

_BLOCK_ROWS = 16
_BLOCK_NUMBERS = 2**22
_SAMPLES = 2**13
"""Samples that are drawn together."""


def certify_by_sampling(
    model: AdditiveEnsemble,
    X: ArrayLike,
    noise: Noise | str | float,
    n_samples: int,
    *,
    n_first: int = 100,
    alpha: float = 0.001,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Certificates:
    """Label and radius of each row, estimated from samples of the score.

    The cell of each term is drawn by its probability, which has the same law as drawing rows and is far cheaper.

    Parameters
    ----------
    model : AdditiveEnsemble
        With a threshold.
    X : array-like of shape (n_rows, n_features)
    noise : Noise or str
    n_samples : int
        Samples that bound the probability of the class.
    n_first : int
        Samples that pick the class.
    alpha : float
        Probability, for each row, that the radius is too large.
    seed : int
        The result depends on it, and not on the number of threads.
    n_jobs : int or None
        Threads; None is all cores.

    Returns
    -------
    Certificates
        Radius 0 where the estimate abstains.

    Examples
    --------
    >>> from derand import AdditiveEnsemble
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> certificates = certify_by_sampling(model, [[0.0], [2.0]], "gaussian:0.25", 1000)
    >>> certificates.label.tolist(), certificates.radius.round(2).tolist()
    ([0, 1], [0.44, 0.62])
    """
    scale = as_noise(noise)
    first = count_class_1(model, X, scale, n_first, seed=seed, n_jobs=n_jobs)
    second = count_class_1(model, X, scale, n_samples, seed=seed + 1, n_jobs=n_jobs)
    return judge_counts(first, n_first, second, n_samples, scale, alpha)


def certify_any_by_sampling(
    predict: Callable[[FloatArray], NDArray[Any]],
    X: ArrayLike,
    noise: Noise | str | float,
    n_samples: int,
    *,
    n_first: int = 100,
    alpha: float = 0.001,
    seed: int = 0,
) -> Certificates:
    """The same for any classifier: noisy copies of the rows are drawn and classified.

    Parameters
    ----------
    predict : callable
        Takes an array of shape (n, n_features), returns n classes, 0 or 1.
    X, noise, n_samples, n_first, alpha, seed
        As for `certify_by_sampling`.

    Returns
    -------
    Certificates

    Examples
    --------
    >>> certificates = certify_any_by_sampling(lambda X: X[:, 0] > 0.5, [[0.0], [2.0]], "gaussian:0.25", 1000)
    >>> certificates.label.tolist()
    [0, 1]
    """
    rows, scale, rng = np.asarray(X, dtype=np.float64), as_noise(noise), np.random.default_rng(seed)
    counts = np.zeros((2, rows.shape[0]), dtype=np.int64)
    size = max(1, _BLOCK_NUMBERS // max(rows.shape[1], 1))
    for row in range(rows.shape[0]):
        for at, wanted in enumerate((n_first, n_samples)):
            for start in range(0, wanted, size):
                copies = scale.sample(rows[row : row + 1], min(size, wanted - start), rng)[:, 0]
                counts[at, row] += int(np.count_nonzero(predict(copies)))
    return judge_counts(counts[0], n_first, counts[1], n_samples, scale, alpha)


def judge_counts(
    first: IntArray, n_first: int, second: IntArray, n_samples: int, noise: Noise, alpha: float
) -> Certificates:
    """Certificates from how often class 1 came up in the two samples.

    Examples
    --------
    >>> from derand import Gaussian
    >>> first, second = np.array([100]), np.array([950])
    >>> judge_counts(first, 100, second, 1000, Gaussian(1.0), alpha=0.001).failure.round(3).tolist()
    [0.075]
    """
    from scipy.special import betaincinv

    label = (2 * first > n_first).astype(np.int64)
    failed = np.where(label == 1, n_samples - second, second)
    # upper end of the Clopper-Pearson interval of the failure mass
    bound = np.where(failed < n_samples, betaincinv(failed + 1.0, np.maximum(n_samples - failed, 1), 1 - alpha), 1.0)
    with np.errstate(divide="ignore"):
        return Certificates(label, bound, np.log(bound), noise.radius(bound), Threat().resolve(noise), noise=noise)


def count_class_1(
    model: AdditiveEnsemble, X: ArrayLike, noise: Noise, n_samples: int, *, seed: int = 0, n_jobs: int | None = None
) -> IntArray:
    """For each row, how many of n_samples noisy copies get class 1.

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> count_class_1(model, [[0.0], [9.0]], Gaussian(0.25), 1000).tolist()
    [25, 1000]
    """
    rows = np.asarray(X, dtype=np.float64)
    if any(len(term.axes) > 1 for term in model.terms):
        raise ValueError("`model` must have terms of one column each for the sampler, got one of several columns.")
    if model.is_linear:
        raise ValueError("`model` must have whole scores for the sampler, got a linear one: its law is known exactly.")
    (model,) = model.members
    if model.threshold is None:
        raise ValueError("`model` must have a threshold, which decides between two classes, got one without.")
    moved = [(axis, term.cell_scores) for term in model.terms for axis in term.axes]
    split = [(axis, scores) for axis, scores in moved if axis.edges.size]
    lowest = sum(int(scores[0]) for _, scores in moved)
    packed = pack_terms(model.terms)
    thresholds = model.threshold - lowest - packed.fixed_scores(rows)
    rows = fill_missing(packed, rows, noise).rows
    axes = [axis for axis, _ in split]
    starts = np.cumsum([0, *(axis.edges.size for axis in axes)], dtype=np.int64)
    jumps = np.concatenate([np.diff(scores) for _, scores in split] or [np.empty(0, dtype=np.int64)])
    counts = np.empty(rows.shape[0], dtype=np.int64)

    def work(block: slice) -> None:
        left = _measure_left_of_edges(axes, rows[block], noise, starts)
        rng = np.random.default_rng([seed, block.start])
        counts[block] = _count_above(left, starts, jumps, thresholds[block], n_samples, rng)

    run_blocks(work, rows.shape[0], _BLOCK_ROWS, count_threads(n_jobs))
    return counts


def _measure_left_of_edges(axes: Sequence[Axis], rows: FloatArray, noise: Noise, starts: IntArray) -> FloatArray:
    """Probability that a noisy row lies left of each edge, (n_rows, n_edges), the edges axis after axis."""
    if not axes:
        return np.empty((rows.shape[0], 0))
    sizes = np.diff(starts)
    owners = np.repeat(np.arange(len(axes)), sizes)
    features = np.array([axis.feature for axis in axes])[owners]
    edges = np.concatenate([axis.edges for axis in axes])
    table = noise.cell_table(np.take(rows, features, axis=1), edges, features, owners, len(axes))
    left = np.empty((rows.shape[0], edges.size))
    reached = np.zeros((rows.shape[0], len(axes)))
    for place in range(int(sizes.max())):
        has = np.flatnonzero(sizes > place)
        reached[:, has] += table[:, starts[has] + has + place]  # a term has one cell more than edges
        left[:, starts[has] + place] = reached[:, has]
    return left


def _count_above(
    left: FloatArray, starts: IntArray, jumps: IntArray, thresholds: IntArray, n_samples: int, rng: np.random.Generator
) -> IntArray:
    """For each row, how many of n_samples scores exceed its threshold.

    `left` is P(the term's cell lies left of the edge), of shape (n_rows, n_edges); term `k` owns the edges from
    `starts[k]` on; `jumps` is by how much the score rises at each edge, and it is 0 in the first cells.
    """
    counts = np.zeros(left.shape[0], dtype=np.int64)
    draws = np.empty(min(_SAMPLES, n_samples))
    for row in range(left.shape[0]):
        for done in range(0, n_samples, _SAMPLES):
            drawn = draws[: n_samples - done]
            total = np.zeros(drawn.size, dtype=np.int64)
            for first, last in itertools.pairwise(starts):
                rng.random(out=drawn)
                for edge in range(first, last):
                    total += jumps[edge] * (drawn >= left[row, edge])
            counts[row] += np.count_nonzero(total > thresholds[row])
    return counts
