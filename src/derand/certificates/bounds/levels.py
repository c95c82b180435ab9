"""The search for levels that are proven, and the least sum within a threat.

Owns how the level nearest to a score is found at which a claim still holds. Every level that is taken was proven by
itself: the search decides only how near it comes. Must not know votes or means.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.worst_case_base import WorstCase
from derand.kernels.worst_case.steps import Reach
from derand.perturbation import Perturbation

_FINENESS = 2**20
"""Steps of the range of a sum under noise, between which its least value is not told apart."""


def holds_at(radii: FloatArray, radius: float) -> BoolArray:
    """Whether a claim of these radii holds throughout a ball; one of radius 0 is the row itself."""
    return np.asarray(radii > 0 if radius == 0 else radii >= radius)


def search_levels(
    holds: Callable[[IntArray], BoolArray], sure: IntArray, doubtful: IntArray, n_levels: int
) -> IntArray:
    """The levels nearest to the doubtful ones at which a claim is proven, several of them tried at a time.

    The claim holds at `sure` for certain, and the search ends at `doubtful`, both (n_rows,). `holds` is asked about
    levels of shape (n_rows, n_levels). The result holds levels that `holds` was true of, or the sure ones.

    Examples
    --------
    >>> search_levels(lambda levels: levels <= 37, np.array([-1, 30]), np.array([1000, 31]), 4).tolist()
    [37, 30]
    >>> search_levels(lambda levels: levels >= 37, np.array([1000]), np.array([0]), 3).tolist()
    [37]
    """
    sure, doubtful = sure.copy(), doubtful.copy()
    shares, every = np.arange(1, n_levels + 1), np.arange(sure.size)
    while (np.abs(doubtful - sure) > 1).any():
        levels = sure[:, None] + (doubtful - sure)[:, None] * shares // (n_levels + 1)
        proven = holds(levels)
        n_proven = np.where(proven.any(axis=1), n_levels - np.argmax(proven[:, ::-1], axis=1), 0)  # up to the last one
        ends = np.column_stack([sure, levels, doubtful])
        sure, doubtful = ends[every, n_proven], ends[every, n_proven + 1]
    return sure


def bound_least_sums(
    case: WorstCase,
    rows: FloatArray,
    perturbation: Perturbation,
    radius: float,
    box: Reach | None,
    largest: int,
    *,
    whole: bool,
) -> FloatArray:
    """Lower bounds of the least sum within a threat, closer than the radius, (n_rows,).

    The radius is positive, and rows have no missing values. Sums lie between 0 and `largest`; `whole` says that they
    are whole.
    """
    if perturbation.norm is None:
        assert box is not None  # without a ball there is always one
        lowest = case.compute_lowest(rows, box)
        # what missing values take off is counted from floors that may lie as much too low
        return lowest if perturbation.missing_budget else np.maximum(lowest, 0.0)
    if perturbation.norm == math.inf:
        return np.maximum(case.compute_lowest(rows, _box_ball(rows, perturbation, radius, box)), 0.0)
    unit = 1.0 if whole else float(largest / _FINENESS)
    top = largest if whole else _FINENESS
    sure, doubtful = np.full(rows.shape[0], -1, dtype=np.int64), np.full(rows.shape[0], top, dtype=np.int64)

    def holds(levels: IntArray) -> BoolArray:
        return holds_at(case.bound_radii(rows, np.asarray(levels * unit, dtype=np.float64), box)[0], radius)

    found = search_levels(holds, sure, doubtful, case.together)
    return np.asarray(np.maximum((found + 1.0) if whole else found * unit, 0.0))


def _box_ball(rows: FloatArray, perturbation: Perturbation, radius: float, box: Reach | None) -> Reach:
    """All that a ball of linf and the box allow together, ends rounded outward."""
    with np.errstate(over="ignore"):
        span = radius * perturbation.units * (1 + 4 * EPSILON)
        low, high = np.nextafter(rows - span, -np.inf), np.nextafter(rows + span, np.inf)
    if box is None:
        return Reach(low, high, np.zeros(rows.shape[1]))
    return Reach(np.maximum(low, box.low), np.minimum(high, box.high), box.steps)
