"""Randomised smoothing by sampling (Cohen et al. 2019): what the exact certificates replace.

A first, small sample picks the class, a second one bounds its probability from below (Clopper-Pearson). The result
holds for each row with probability 1 - alpha over the samples drawn; it is no proof. Must not know training.

The compiled sampler at the end draws every term's cell by its probability; arrays in, arrays out, serial and without
the GIL. Random words come from eight interleaved xoshiro256+ generators and serve as four uniform numbers each; where
16 bits do not decide, 48 more are taken from a hash of the draw's number, so that a cell's probability is met to
2**-53.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._arrays import FloatArray, IntArray
from derand.certificates import Certificates, fill_gaps, pack_terms
from derand.kernels.compiling import compile_loop
from derand.model import AdditiveEnsemble, Axis
from derand.noise import Noise, as_noise
from derand.threads import count_threads, run_blocks
from derand.threat import Threat

Words = NDArray[np.uint64]

_BLOCK_ROWS = 16
_BLOCK_NUMBERS = 2**22
_STREAMS = 8
_WORDS = 128
_SAMPLES = 4 * _WORDS
"""Samples that are drawn together."""
_LOW_BITS = np.uint64(48)
_LOW_MASK = np.uint64(2**48 - 1)


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
    ([0, 1], [0.42, 0.62])
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

    Parameters
    ----------
    first, second : arrays of shape (n_rows,)
    n_first, n_samples : int
    noise : Noise
    alpha : float

    Returns
    -------
    Certificates

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

    Parameters
    ----------
    model : AdditiveEnsemble
    X : array-like of shape (n_rows, n_features)
    noise : Noise
    n_samples, seed : int
    n_jobs : int or None

    Returns
    -------
    array of shape (n_rows,)

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> count_class_1(model, [[0.0], [9.0]], Gaussian(0.25), 1000).tolist()
    [19, 1000]
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
    if max((np.abs(np.diff(scores)).max() for _, scores in split), default=0) * max(len(split), 1) >= 2**30:
        raise ValueError("`model` has scores too large for the sampler: use fewer levels.")
    lowest = sum(int(scores[0]) for _, scores in moved)
    packed = pack_terms(model.terms)
    thresholds = model.threshold - lowest - packed.fixed_scores(rows)
    rows = fill_gaps(packed, rows, noise).rows
    axes = [axis for axis, _ in split]
    starts = np.cumsum([0, *(axis.edges.size for axis in axes)], dtype=np.int64)
    jumps = np.concatenate([np.diff(scores) for _, scores in split] or [np.empty(0)]).astype(np.int32)
    counts = np.empty(rows.shape[0], dtype=np.int64)

    def work(block: slice) -> None:
        left = _measure_left_of_edges(axes, rows[block], noise, starts)
        bounds = (np.minimum(left, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
        words: Any = np.random.SeedSequence([seed, block.start]).generate_state(4 * _STREAMS, np.uint64)
        state = words.reshape(4, _STREAMS)
        counts[block] = _count_above(bounds, starts, jumps, thresholds[block].copy(), n_samples, state)

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


@compile_loop()
def _count_above(
    bounds: Words, starts: IntArray, jumps: NDArray[np.int32], thresholds: IntArray, n_samples: int, state: Words
) -> IntArray:
    """For each row, how many of n_samples scores exceed its threshold.

    Parameters
    ----------
    bounds : array of shape (n_rows, n_edges)
        P(the term's cell lies left of the edge) as a fraction of 2**64.
    starts : array of shape (n_terms + 1,)
        Where each term's edges begin.
    jumps : array of shape (n_edges,)
        By how much the score rises at each edge; it is 0 in the first cells.
    thresholds : array of shape (n_rows,)
    state : array of shape (4, _STREAMS)
        State of the generators; it is advanced.
    """
    counts = np.zeros(bounds.shape[0], dtype=np.int64)
    words = np.empty(_WORDS, dtype=np.uint64)
    draws = words.view(np.uint16)
    total = np.empty(_SAMPLES, dtype=np.int32)
    number = np.uint64(0)
    for row in range(bounds.shape[0]):
        left = n_samples
        while left > 0:
            total[:] = 0
            for term in range(starts.size - 1):
                _fill(words, state)
                number += np.uint64(1)
                for edge in range(starts[term], starts[term + 1]):
                    _add_where_right(total, draws, bounds[row, edge], jumps[edge], number)
            for sample in range(min(left, _SAMPLES)):
                counts[row] += total[sample] > thresholds[row]
            left -= _SAMPLES
    return counts


@compile_loop()
def _fill(words: Words, state: Words) -> None:
    """Draw words: _STREAMS generators side by side, so that the loop becomes vector instructions."""
    for at in range(0, words.size, _STREAMS):
        for stream in range(_STREAMS):
            s0, s1, s2, s3 = state[0, stream], state[1, stream], state[2, stream], state[3, stream]
            words[at + stream] = s0 + s3
            shifted = s1 << np.uint64(17)
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= shifted
            s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
            state[0, stream], state[1, stream], state[2, stream], state[3, stream] = s0, s1, s2, s3


@compile_loop()
def _add_where_right(
    total: NDArray[np.int32], draws: NDArray[np.uint16], bound: np.uint64, jump: np.int32, number: np.uint64
) -> None:
    """Add the jump to the samples whose uniform number is not below the bound."""
    high = np.uint16(bound >> _LOW_BITS)
    ties = 0
    for sample in range(_SAMPLES):
        total[sample] += jump if draws[sample] > high else np.int32(0)
        ties += draws[sample] == high
    if ties:
        for sample in range(_SAMPLES):
            if draws[sample] == high:
                low = _hash(number * np.uint64(_SAMPLES) + np.uint64(sample)) & _LOW_MASK
                total[sample] += jump if low >= (bound & _LOW_MASK) else np.int32(0)


@compile_loop()
def _hash(number: np.uint64) -> np.uint64:
    """Spread a number over 64 bits (splitmix64)."""
    mixed = number * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
