"""AUC: how often a row of one class ranks above a row of the other. Must not know where scores come from.

Its interval is a bootstrap of both classes apart, with a fixed seed. Resampling a million rows a thousand times would
take minutes; counts in some hundred bins of equal size tell the spread as well, and the value itself is exact.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.metrics._shares import LEVEL, Estimate, compute_wilson_interval

_REPLICATES = 1000
_BINS = 200
_SEED = 0


def rank_classes(score: FloatArray, is_one: BoolArray) -> Estimate:
    """Probability that a random row of class 1 has a larger score than one of class 0, ties counting half.

    The interval is that of a bootstrap. Where every replicate gives the same, as where the classes do not overlap, it
    would be empty; it is then Wilson's for as many rows as the smaller class has, which no law of scores exceeds.

    `is_one` (n_rows,): some true, some not; `score` has shape (n_rows,).

    Examples
    --------
    >>> rank_classes(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True])).value
    0.875
    """
    _, place = np.unique(score, return_inverse=True)
    n_places = int(place.max()) + 1
    ones, zeros = (np.bincount(place[chosen], minlength=n_places) for chosen in (is_one, ~is_one))
    value = float(_compare(ones, zeros))
    ones, zeros = _merge(ones, zeros)
    rough = float(_compare(ones, zeros))
    rng = np.random.default_rng(_SEED)
    drawn = [rng.multinomial(counts.sum(), counts / counts.sum(), size=_REPLICATES) for counts in (ones, zeros)]
    ends = np.quantile(_compare(*drawn), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) - rough
    low, high = ends.tolist()
    if low == high:
        n_few = min(int(ones.sum()), int(zeros.sum()))
        return compute_wilson_interval(value * n_few, n_few)
    return Estimate(value, max(0.0, value + min(low, 0.0)), min(1.0, value + max(high, 0.0)))


def _compare(ones: IntArray, zeros: IntArray) -> FloatArray:
    """AUC of counts at places in ascending order, which are the last axis."""
    above, at = ones.astype(np.float64), zeros.astype(np.float64)
    below = np.cumsum(at, axis=-1) - at / 2
    return np.asarray((above * below).sum(axis=-1) / (above.sum(axis=-1) * at.sum(axis=-1)))


def _merge(ones: IntArray, zeros: IntArray) -> tuple[IntArray, IntArray]:
    """Neighbouring places put together, so that some hundred are left with about as many rows of each class."""
    if ones.size <= _BINS:
        return ones, zeros
    shares = np.cumsum(ones) / ones.sum() + np.cumsum(zeros) / zeros.sum()
    bins = np.minimum((shares * (_BINS / 2)).astype(np.int64), _BINS - 1)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    return np.add.reduceat(ones, starts), np.add.reduceat(zeros, starts)
