"""Edges that compare as another library does: the smallest double that goes right, found by bisection over all doubles.

Must not know any library. A formula for such an edge is an ulp off in many cases; the comparison itself is not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import BoolArray, FloatArray, IntArray

_LARGEST = np.finfo(np.float64).max


def bisect_edges(goes_right: Callable[[FloatArray], BoolArray], count: int) -> FloatArray:
    """For each of several comparisons the smallest double that goes right.

    `goes_right`: entry k is judged by comparison k, which holds from some double on. Returns shape (count,): -inf where
    every finite number goes right, inf where none does.

    Examples
    --------
    >>> bisect_edges(lambda x: x > 0.5, 1).tolist() == [float(np.nextafter(0.5, 1))]
    True
    """
    low = np.full(count, _order(np.array(-_LARGEST)))
    high = np.full(count, _order(np.array(_LARGEST)))
    always, never = goes_right(_unorder(low)), ~goes_right(_unorder(high))
    while True:
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # no overflow
        apart = high - middle > 0
        apart &= middle > low
        if not apart.any():
            break
        right = goes_right(_unorder(middle))
        high = np.where(apart & right, middle, high)
        low = np.where(apart & ~right, middle, low)
    return np.where(always, -np.inf, np.where(never, np.inf, _unorder(high)))


def after(thresholds: ArrayLike) -> FloatArray:
    """Edges of `x <= t goes left`, in doubles."""
    with np.errstate(over="ignore"):  # the largest double has nothing but infinity above it
        return np.nextafter(np.asarray(thresholds, dtype=np.float64), np.inf)


def after_single(thresholds: ArrayLike) -> FloatArray:
    """Edges of `float32(x) <= t goes left`, for thresholds in doubles or in single precision."""
    at = np.asarray(thresholds, dtype=np.float64).reshape(-1)
    return bisect_edges(lambda x: _to_single(x) > at, at.size)


def from_single(thresholds: ArrayLike) -> FloatArray:
    """Edges of `float32(x) < t goes left`."""
    at = np.asarray(thresholds, dtype=np.float64).reshape(-1)
    return bisect_edges(lambda x: _to_single(x) >= at, at.size)


def _to_single(x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(np.float64)


def _order(x: FloatArray) -> IntArray:
    """Whole numbers in the order of doubles; both zeros are one."""
    bits = np.asarray(x + 0.0, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _unorder(keys: IntArray) -> FloatArray:
    keys = np.asarray(keys, dtype=np.int64)
    return np.where(keys < 0, np.int64(-(2**63)) - keys, keys).view(np.float64)
