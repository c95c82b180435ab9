"""Quartiles of weighted values. Owns what a quantile is where rows weigh differently; must not know tables or units."""

from __future__ import annotations

import numpy as np

from derand._arrays import FloatArray

_SLIVER = 1e-12
"""Parts of a window below this share of it are rounding."""


def measure_quartile_range(values: FloatArray, weights: FloatArray | None) -> float:
    """How far the upper quartile of some values lies above the lower one.

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
    if weights is None or np.ptp(weights) == 0:
        low, high = np.quantile(values, [0.25, 0.75])
        return float(high - low)
    order = np.argsort(values, kind="stable")
    ordered, weighed = values[order], weights[order]
    return _find_quantile(ordered, weighed, 0.75) - _find_quantile(ordered, weighed, 0.25)


def _find_quantile(ordered: FloatArray, weights: FloatArray, share: float) -> float:
    """A quantile of sorted values: their mean over a window of the cumulated weights.

    numpy's own definition for equal weights, where the window is as wide as one of the values. Else it is as wide as
    one of so many equal ones as would tell as much (Kish's number), so that a weight that goes to 0 leaves no trace.
    """
    shares = weights / weights.sum()
    number = 1 / float(shares @ shares)
    start = (number - 1) * share / number
    ends = np.clip(np.append(0.0, np.cumsum(shares)), start, start + 1 / number)
    parts = np.diff(ends)
    parts[parts < _SLIVER / number] = 0.0
    inside = np.flatnonzero(parts)
    first = ordered[inside[0]]  # differences to it: the mean of equal values is exactly that value
    return float(first + parts[inside] @ (ordered[inside] - first) / parts[inside].sum())
