"""Numbers as answers: what a rule says of a sum that is itself the answer, and the search for levels that are proven.

Owns what is asked of a rule (`NumberRule`), how the level nearest to an answer is found at which a claim still holds,
and the least sum within a threat. Every level that is taken was proven by itself: the search decides only how near it
comes. Must not know votes or means.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.worst_case_base import WorstCase
from derand.kernels.worst_case.steps import Reach
from derand.perturbation import Perturbation

_FINENESS = 2**20
"""Steps of the range of a sum under noise, between which its least value is not told apart."""


class Ends(NamedTuple):
    """The answer of each row and the levels that it cannot leave, in grid units before the offset, (n_rows,).

    Whole numbers where answers are whole, else doubles.
    """

    score: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]


class Distances(NamedTuple):
    """The answer of each row, how far it may be moved, and what proves that (a place in PROOFS), (n_rows,)."""

    score: NDArray[Any]
    radius: FloatArray
    proof: NDArray[np.uint8]


class NumberRule(ABC):
    """How the answer of a sum is found under noise, and what is proven about it; for rows of one block."""

    @abstractmethod
    def find_scores(self, rows: FloatArray) -> NDArray[Any]:
        """The answer of each row in grid units, before the offset; whole numbers where the rule's answers are whole."""

    @abstractmethod
    def bound(self, rows: FloatArray, radius: float) -> Ends:
        """Levels that the computed answer does not leave, within the threat and closer than the radius.

        Without a ball the radius is infinite and does not count.
        """

    @abstractmethod
    def measure(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the answer stays within so many grid units."""


def holds_at(radii: FloatArray, radius: float) -> BoolArray:
    """Whether a claim of these radii holds throughout a ball; one of radius 0 is the row itself."""
    return np.asarray(radii > 0 if radius == 0 else radii >= radius)


def search_levels(holds: Callable[[IntArray], BoolArray], sure: IntArray, doubtful: IntArray, n_cuts: int) -> IntArray:
    """The levels nearest to the doubtful ones at which a claim is proven, several of them tried at a time.

    Parameters
    ----------
    holds : function of levels (n_rows, n_cuts), whether the claim is proven at each
    sure, doubtful : arrays of shape (n_rows,)
        Where it holds for certain, and where the search ends.
    n_cuts : int

    Returns
    -------
    array of shape (n_rows,)
        Levels that `holds` was true of, or the sure ones.

    Examples
    --------
    >>> search_levels(lambda cuts: cuts <= 37, np.array([-1, 30]), np.array([1000, 31]), 4).tolist()
    [37, 30]
    >>> search_levels(lambda cuts: cuts >= 37, np.array([1000]), np.array([0]), 3).tolist()
    [37]
    """
    sure, doubtful = sure.copy(), doubtful.copy()
    shares, every = np.arange(1, n_cuts + 1), np.arange(sure.size)
    while (np.abs(doubtful - sure) > 1).any():
        cuts = sure[:, None] + (doubtful - sure)[:, None] * shares // (n_cuts + 1)
        proven = holds(cuts)
        n_proven = np.where(proven.any(axis=1), n_cuts - np.argmax(proven[:, ::-1], axis=1), 0)  # up to the last one
        ends = np.column_stack([sure, cuts, doubtful])
        sure, doubtful = ends[every, n_proven], ends[every, n_proven + 1]
    return sure


def find_least_sums(
    case: WorstCase,
    rows: FloatArray,
    perturbation: Perturbation,
    radius: float,
    reach: Reach | None,
    largest: int,
    *,
    whole: bool,
) -> FloatArray:
    """Lower bounds of the least sum within a threat, closer than the radius, (n_rows,).

    Parameters
    ----------
    case : WorstCase
        Of the perturbation's norm and units.
    rows : array of shape (n_rows, n_features)
        Without gaps.
    perturbation : Perturbation
    radius : float
        Positive.
    reach : Reach or None
    largest : int
        The largest sum there is; the least is 0 or more.
    whole : bool
        Whether sums are whole numbers.
    """
    if perturbation.norm is None:
        assert reach is not None  # without a ball there is always one
        lowest = case.find_lowest(rows, reach)
        # what missing numbers take off is counted from floors that may lie as much too low
        return lowest if perturbation.missing_budget else np.maximum(lowest, 0.0)
    if perturbation.norm == math.inf:
        return np.maximum(case.find_lowest(rows, _box_ball(rows, perturbation, radius, reach)), 0.0)
    unit = 1.0 if whole else float(largest / _FINENESS)
    top = largest if whole else _FINENESS
    sure, doubtful = np.full(rows.shape[0], -1, dtype=np.int64), np.full(rows.shape[0], top, dtype=np.int64)

    def holds(cuts: IntArray) -> BoolArray:
        return holds_at(case.find_radii(rows, np.asarray(cuts * unit, dtype=np.float64), reach)[0], radius)

    found = search_levels(holds, sure, doubtful, case.together)
    return np.asarray(np.maximum((found + 1.0) if whole else found * unit, 0.0))


def _box_ball(rows: FloatArray, perturbation: Perturbation, radius: float, reach: Reach | None) -> Reach:
    """All that a ball of linf and the reach allow together, ends rounded outward."""
    with np.errstate(over="ignore"):
        span = radius * perturbation.units * (1 + 4 * EPSILON)
        low, high = np.nextafter(rows - span, -np.inf), np.nextafter(rows + span, np.inf)
    if reach is None:
        return Reach(low, high, np.zeros(rows.shape[1]))
    return Reach(np.maximum(low, reach.low), np.minimum(high, reach.high), reach.steps)
