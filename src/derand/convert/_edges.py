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


def bracket_single(is_one: Callable[[FloatArray], BoolArray]) -> tuple[float, float]:
    """Where an answer changes over all finite numbers in single precision: the last one before, the first one behind.

    `is_one`: the answers to such numbers, increasing, as doubles. Between both ends answers vary, where rounding makes
    them do so. Both are infinite, of one sign, where the answer never changes.

    Examples
    --------
    >>> bracket_single(lambda x: x > 0.5) == (0.5, float(np.nextafter(np.float32(0.5), np.float32(1))))
    True
    """
    largest = float(np.finfo(np.float32).max)
    low, high = (int(_order_single(np.array([end]))[0]) for end in (-largest, largest))
    first, last = is_one(np.array([-largest, largest])).tolist()
    if first == last:
        return (-np.inf, -np.inf) if last else (np.inf, np.inf)
    while high - low > 1:
        tried = np.unique(np.linspace(low, high, 2**12).astype(np.int64))
        changed = is_one(_unorder_single(tried)) == last
        width, (low, high) = high - low, tried[[changed.argmax() - 1, np.flatnonzero(~changed)[-1] + 1]].tolist()
        if high - low == width or not changed[changed.argmax() :].all():
            break
    return float(_unorder_single(np.array([low]))[0]), float(_unorder_single(np.array([high]))[0])


def after(thresholds: ArrayLike) -> FloatArray:
    """Edges of `x <= t goes left`, in doubles."""
    with np.errstate(over="ignore"):  # the largest double has nothing but infinity above it
        return np.nextafter(np.asarray(thresholds, dtype=np.float64), np.inf)


def after_single(thresholds: ArrayLike) -> FloatArray:
    """Edges of `float32(x) <= t goes left`, for thresholds in doubles or in single precision."""
    at = np.asarray(thresholds, dtype=np.float64).reshape(-1)
    return _keep_nan(bisect_edges(lambda x: _to_single(x) > at, at.size), at)


def from_single(thresholds: ArrayLike) -> FloatArray:
    """Edges of `float32(x) < t goes left`."""
    at = np.asarray(thresholds, dtype=np.float64).reshape(-1)
    return _keep_nan(bisect_edges(lambda x: _to_single(x) >= at, at.size), at)


def _keep_nan(edges: FloatArray, thresholds: FloatArray) -> FloatArray:
    """NaN where a threshold is, which is refused later."""
    return np.where(np.isnan(thresholds), np.nan, edges)


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


def _order_single(x: FloatArray) -> IntArray:
    """The same of numbers in single precision."""
    bits = (x.astype(np.float32) + np.float32(0.0)).view(np.int32).astype(np.int64)
    return np.where(bits < 0, np.int64(-(2**31)) - bits, bits)


def _unorder_single(keys: IntArray) -> FloatArray:
    bits = np.where(keys < 0, np.int64(-(2**31)) - keys, keys).astype(np.int32)
    return bits.view(np.float32).astype(np.float64)
