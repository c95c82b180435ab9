"""Shares with their 95 % intervals. Must not know what is counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

LEVEL = 0.95
"""How sure an interval is."""
Z = 1.959963984540054
"""The normal quantile that belongs to it."""


class EstimateSummary(TypedDict):
    """A figure and its 95 % interval, as results for others hold it."""

    value: float
    low: float
    high: float


class Estimate(NamedTuple):
    """A figure measured on some rows, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def to_dict(self) -> EstimateSummary:
        """The same as a plain dict."""
        return {"value": self.value, "low": self.low, "high": self.high}


def compute_wilson_interval(count: float, total: float) -> Estimate:
    """A share and its 95 % interval by Wilson's method, which is never empty, not even where all or none count.

    `count`: how many rows count, of `total`; `total`: positive.

    Examples
    --------
    >>> [round(end, 4) for end in compute_wilson_interval(8, 10)]
    [0.8, 0.4902, 0.9433]
    """
    if not (total > 0 and 0 <= count <= total):
        raise ValueError(f"`count` must lie between 0 and `total`, which is positive, got {count} of {total}.")
    share, spread = count / total, Z * Z / total
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / total + spread / total / 4) / (1 + spread)
    low = 0.0 if count == 0 else max(0.0, middle - half)
    high = 1.0 if count == total else min(1.0, middle + half)
    return Estimate(share, low, high)


def weigh_shares(shares: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """A weighted mean of shares that were measured on different rows, and its interval.

    Distances from each share to the ends of its own interval are weighted, squared and added up (Newcombe's method):
    with a normal law that is exact, and near 0 and 1 the interval stays as lopsided as those it is made of.

    `weights`: they add up to 1.

    Examples
    --------
    >>> one = compute_wilson_interval(8, 10)
    >>> weigh_shares([one], [1.0]) == one
    True
    """
    value = math.fsum(weight * one.value for one, weight in zip(shares, weights, strict=True))
    down = math.hypot(*(weight * (one.value - one.low) for one, weight in zip(shares, weights, strict=True)))
    up = math.hypot(*(weight * (one.high - one.value) for one, weight in zip(shares, weights, strict=True)))
    return Estimate(value, max(0.0, value - down), min(1.0, value + up))


def subtract_shares(first: Estimate, second: Estimate) -> Estimate:
    """The first share minus the second, which was measured on other rows, and the interval of the difference.

    Newcombe's method: each end lies as far away as the ends of both intervals together, added up as squares.

    The result: between -1 and 1.

    Examples
    --------
    >>> found = subtract_shares(compute_wilson_interval(56, 70), compute_wilson_interval(48, 80))
    >>> [round(end, 4) for end in found]
    [0.2, 0.0524, 0.3339]
    """
    value = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, max(-1.0, value - down), min(1.0, value + up))
