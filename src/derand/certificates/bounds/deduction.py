"""From the mean to the vote: by how much an expected score must clear the threshold for most noisy copies to do so.

Owns the theorem's constant (docs/theory.md, section 7; `scripts/prove_deduction.py` proves it) and what is deducted for
it. Must not know noises or how worst cases are found.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from derand._core.arrays import EPSILON, FloatArray

CONSTANT = 0.73
"""If a sum's mean is this many largest ranges above a threshold, the sum is above it with probability over 1/2."""
RESERVE = 0.003
"""By how much over 1/2, divided by sqrt(1 + variance / largest range^2)."""
_DOMINATES = 0.8
_MOST_CAPS = 3


def deduct(ranges: FloatArray, band: float) -> float:
    """What a mean must be above a threshold, so that the computed mass below it is less than 1/2.

    `ranges` hold the largest less the least value of each independent term of the sum; `band` is by how much a computed
    mass near 1/2 can exceed the true one. Rounded upward.

    Examples
    --------
    >>> round(deduct(np.array([10.0, 10.0, 10.0, 2.0]), 1e-12), 9)
    7.3
    >>> round(deduct(np.array([10.0, 1.0]), 1e-12), 3)  # by Cantelli's inequality
    5.025
    """
    squares = float((ranges**2).sum()) * (1 + EPSILON * (ranges.size + 4))
    by_spread = (0.5 + 2 * band) * math.sqrt(squares) * (1 + 8 * EPSILON)
    largest = float(ranges.max(initial=0.0))
    if largest == 0 or RESERVE / math.sqrt(1 + squares / (4 * largest**2)) <= 2 * band:
        return by_spread
    return min(CONSTANT * largest * (1 + 8 * EPSILON), by_spread)


def choose_caps(ranges: FloatArray) -> list[float]:
    """Where to cut off terms: nowhere, and at the largest ranges that the ones above them dominate.

    A term that is cut off above proves no more about the sum, but it counts with the smaller range: worth trying where
    few terms are far larger than all others.

    Examples
    --------
    >>> choose_caps(np.array([4.0, 100.0, 4.0, 4.0]))
    [inf, 4.0]
    """
    caps = [math.inf]
    ordered = np.sort(ranges)[::-1]
    for larger, smaller in itertools.pairwise(ordered[: _MOST_CAPS + 1]):
        if smaller < _DOMINATES * larger:
            caps.append(float(smaller))
    return caps
