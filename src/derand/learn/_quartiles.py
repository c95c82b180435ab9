"""Quartiles of weighted values. Owns what a quantile is where rows weigh differently; must not know tables or units."""

from __future__ import annotations

import numpy as np

from derand._arrays import FloatArray

_TIE = 1e-9
"""Difference of two shares of the weight that rounding may make."""


def measure_quartile_range(values: FloatArray, weights: FloatArray | None) -> float:
    """How far the upper quartile of some values lies above the lower one.

    A quartile is the value at which a quarter of the weight is reached, the middle of two where that is between them:
    a value of weight 2 counts as the same value twice.

    Parameters
    ----------
    values : array of shape (n_values,)
        Finite.
    weights : array of shape (n_values,) or None
        Positive; only their proportions count.

    Examples
    --------
    >>> measure_quartile_range(np.array([1.0, 2.0, 3.0, 4.0, 90.0]), None)
    2.0
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    running = np.arange(1.0, values.size + 1) if weights is None else np.cumsum(weights[order])
    shares = running / running[-1]
    return _find_quantile(ordered, shares, 0.75) - _find_quantile(ordered, shares, 0.25)


def _find_quantile(ordered: FloatArray, shares: FloatArray, share: float) -> float:
    """The value at which a share of the weight is reached; `shares` holds what is reached at each value."""
    last = ordered.size - 1
    reached, passed = np.minimum(np.searchsorted(shares, [share - _TIE, share + _TIE]), last)
    return float(ordered[reached] + (ordered[passed] - ordered[reached]) / 2)
