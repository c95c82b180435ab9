"""Quartiles of weighted values. Owns what a quantile is where rows weigh differently; must not know tables or units."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray

_TIE = 1e-9
"""Difference of two shares of the weight that rounding may make."""


def measure_quartile_range(values: FloatArray, weights: FloatArray | None) -> float:
    """How far the upper quartile of some values lies above the lower one.

    A quartile is the value at which a quarter of the weight is reached, the middle of two where that is between them:
    a value of weight 2 counts as the same value twice.

    `values` (n_values,): finite; `weights` (n_values,): positive; only their proportions count.

    Examples
    --------
    >>> measure_quartile_range(np.array([1.0, 2.0, 3.0, 4.0, 90.0]), None)
    2.0
    """
    if weights is None:
        places = [(-(-values.size * part // 4) - 1, min(values.size * part // 4, values.size - 1)) for part in (1, 3)]
        ordered = np.partition(values, sorted({place for pair in places for place in pair}))
    else:
        order = np.argsort(values, kind="stable")
        ordered, running = values[order], np.cumsum(weights[order])
        shares = running / running[-1]
        places = [_locate_share(shares, part / 4) for part in (1, 3)]
    low, high = (ordered[first] + (ordered[last] - ordered[first]) / 2 for first, last in places)
    return float(high - low)


def _locate_share(shares: FloatArray, share: float) -> tuple[int, int]:
    """Where a share of the weight is reached, and where it is passed; `shares` holds what is reached at each value."""
    reached, passed = np.minimum(np.searchsorted(shares, [share - _TIE, share + _TIE]), shares.size - 1)
    return int(reached), int(passed)
