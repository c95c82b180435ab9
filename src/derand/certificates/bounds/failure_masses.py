"""Failing masses: what the distribution of a row's score proves about its label.

Owns the label by the vote, the failing side's mass and the radius that follows from it by the noise, for several
thresholds of each row. The mass is summed on the failing tail alone; `kernels/README.md` shows that a radius is a lower
bound. Must not know threats or how masses are summed.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand._core.threads import share_out
from derand.certificates.bounds.missing import Filled, compute_ends
from derand.certificates.bounds.packing import PackedTerms
from derand.kernels import LAW, Backend, Failures, as_device, rounding_bound
from derand.noise import Noise

_FAINT = 1e-280  # near FLOOR: the logarithm is needed
_RADIUS_BYTES = 256  # that can be copied while one radius is computed
_NEAR_TIE = 1e-6  # far more than `tails` and `failures` can differ by


@dataclass(frozen=True, slots=True, eq=False)
class TailBounds:
    """What follows from the distribution of each row for some thresholds, arrays of shape (n_rows, n_columns).

    Attributes
    ----------
    log_failure : upper bound of the logarithm of the failing mass
    path : how that was found, an index of `derand.kernels.PATHS`
    constant : whether no score at all lies on the failing side
    radius : in the noise's own norm and units; infinite where the score cannot fail
    """

    log_failure: FloatArray
    path: NDArray[np.uint8]
    constant: BoolArray
    radius: FloatArray

    def lower(self, columns: IntArray, other: TailBounds) -> TailBounds:
        """The worse one of both in some of the columns, which are all that the other has."""
        log_failure, path = self.log_failure.copy(), self.path.copy()
        constant, radius = self.constant.copy(), self.radius.copy()
        is_worse = other.log_failure > log_failure[:, columns]
        log_failure[:, columns] = np.where(is_worse, other.log_failure, log_failure[:, columns])
        path[:, columns] = np.where(is_worse, other.path, path[:, columns])
        constant[:, columns] &= other.constant
        radius[:, columns] = np.minimum(radius[:, columns], other.radius)
        return TailBounds(log_failure, path, constant, radius)


class ScoreDistribution:
    """The distribution of the scores of rows under noise, asked about thresholds."""

    def __init__(
        self, kernels: Backend, terms: PackedTerms, noise: Noise, *, must_look: bool = False, n_threads: int = 1
    ) -> None:
        self._kernels, self._terms, self._noise, self._must_look = kernels, terms, noise, must_look
        self._n_threads = n_threads  # for radii, where nobody else shares out rows
        self._slack = noise.tie_margin(terms.tie_band())  # so that the computed label, too, holds throughout the ball

    def bound(self, filled: Filled, highest: IntArray, lowest: IntArray) -> tuple[BoolArray, TailBounds]:
        """Whether each row is of class 1, by the first of its thresholds, and what is proven for each of them.

        Class 1 is to hold where the score is above `highest`, class 0 where it is not above `lowest`, both of shape
        (n_rows, n_columns).
        """
        low, high = self._reduce(highest), self._reduce(lowest)
        is_one, log_mass, path = _failing_masses(self._sum(filled), low, high)
        return is_one, self._judge(filled, is_one, low, high, log_mass, path)

    def decide(self, filled: Filled, levels: IntArray) -> BoolArray:
        """Whether each row is of class 1, as `bound` says, for one threshold each: nothing is proven beside."""
        return np.asarray(self._sum(filled).failures(self._reduce(levels)).proven)

    def decide_each(self, filled: Filled, levels: IntArray) -> BoolArray:
        """The same for several thresholds of each row, (n_rows, n_levels): what `decide` says of each of them."""
        masses, low = self._sum(filled), self._reduce(levels)
        below, _ = _compute_tails(masses, low, low)
        return np.stack([_decide_labels(masses, below[:, k], low[:, k]) for k in range(low.shape[1])], axis=1)

    def bound_tail(self, filled: Filled, is_one: BoolArray, highest: IntArray, lowest: IntArray) -> TailBounds:
        """The same for labels that are known."""
        low, high = self._reduce(highest), self._reduce(lowest)
        log_mass, path = _compute_tail_masses(self._sum(filled), is_one, low, high)
        return self._judge(filled, is_one, low, high, log_mass, path)

    def _reduce(self, levels: IntArray) -> IntArray:
        return np.asarray((levels - self._terms.base) // self._terms.step)

    def _sum(self, filled: Filled) -> _Masses:
        return _Masses(self._kernels, self._terms, filled.rows, self._noise, self._must_look)

    def _judge(
        self,
        filled: Filled,
        is_one: BoolArray,
        low: IntArray,
        high: IntArray,
        log_mass: FloatArray,
        path: NDArray[np.uint8],
    ) -> TailBounds:
        least, most = compute_ends(self._terms, filled.is_missing)
        constant = np.where(is_one[:, None], low < least, high >= most)
        radius = np.empty(log_mass.shape)

        def fill(part: slice) -> None:
            own = np.maximum(self._noise.radius_of_log(log_mass[part]) - self._slack, 0.0)
            radius[part] = np.where(constant[part], np.inf, own)

        share_out(fill, log_mass.shape[0], _RADIUS_BYTES * log_mass.size, self._n_threads)
        return TailBounds(log_mass, path, constant, radius)


class _Masses:
    """`failures` and `tails` of the rows of a block, whoever computes their probability table."""

    def __init__(self, kernels: Backend, terms: PackedTerms, rows: FloatArray, noise: Noise, must_look: bool) -> None:
        self.terms, self._must_look = terms, must_look
        self._kernels, self._plan = kernels, terms.plan(kernels)
        device = as_device(kernels)
        self._device = device if device is not None and noise.name in device.NOISES and not terms.grids else None
        if self._device is not None:
            self._rows, self._edges = rows, terms.edges_under(noise)
        else:
            self._table = terms.table(rows, noise)

    def failures(self, thresholds: IntArray, at: IntArray | slice = slice(None)) -> Failures:
        if self._device is not None:
            rows, look = self._rows[at], self._must_look
            return self._device.failures_from_edges(self._plan, rows, self._edges, thresholds, must_look=look)
        return self._kernels.failures(self._plan, self._table[at], thresholds)

    def tails(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        if self._device is not None:
            return self._device.tails_from_edges(self._plan, self._rows, self._edges, low, high)
        return self._kernels.tails(self._plan, self._table, low, high)

    def take(self, at: IntArray) -> _Masses:
        """Those of some of the rows."""
        part = copy(self)
        if self._device is not None:
            part._rows = self._rows[at]
        else:
            part._table = self._table[at]
        return part


_Tails = tuple[FloatArray, FloatArray]


def _failing_masses(masses: _Masses, low: IntArray, high: IntArray) -> tuple[BoolArray, FloatArray, NDArray[np.uint8]]:
    """Whether label 1 is proven at the first threshold; at each, the failing mass's logarithm and how it was found."""
    if low.shape[1] == 1:
        is_one, log_mass, path = masses.failures(low[:, 0])
        return is_one, log_mass[:, None], path[:, None]
    tails = _compute_tails(masses, low, high)
    is_one = _decide_labels(masses, tails[0][:, 0], low[:, 0])
    return is_one, *_select_tails(masses, is_one, low, high, tails)


def _compute_tail_masses(
    masses: _Masses, is_one: BoolArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """The failing side's masses for labels that are known: by the fast way where there is one threshold.

    That way sums the side that has less than half of the mass; where it is not the failing one, tails do.
    """
    if low.shape[1] > 1:
        return _select_tails(masses, is_one, low, high, _compute_tails(masses, low, high))
    proven, log_mass, path = masses.failures(np.where(is_one, low[:, 0], high[:, 0]))
    log_masses, paths = log_mass[:, None].copy(), path[:, None].copy()
    at = np.flatnonzero(proven != is_one)
    if at.size:
        part, ends = masses.take(at), (low[at], high[at])
        log_masses[at], paths[at] = _select_tails(part, is_one[at], *ends, _compute_tails(part, *ends))
    return log_masses, paths


def _compute_tails(masses: _Masses, low: IntArray, high: IntArray) -> _Tails:
    """Upper bounds of the masses at or below `low` and above `high`."""
    widening = 1 + rounding_bound(masses.terms.scores.size)
    below, above = (np.minimum(mass * widening, 1.0) for mass in masses.tails(low, high))
    return below, above


def _select_tails(
    masses: _Masses, is_one: BoolArray, low: IntArray, high: IntArray, tails: _Tails
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """The logarithm of the failing side's mass for each threshold, and how it was found."""
    mass, paths = np.where(is_one[:, None], *tails), np.full(low.shape, LAW, dtype=np.uint8)
    with np.errstate(divide="ignore"):
        log_masses = np.log(mass)
    log_masses += 4 * EPSILON * np.abs(np.maximum(log_masses, -1000.0))
    faint = (mass > 0) & (mass < _FAINT)
    for k in np.flatnonzero(faint.any(axis=0)):
        at = np.flatnonzero(faint[:, k])
        level = np.where(is_one, low[:, k], high[:, k])[at]
        _, log_masses[at, k], paths[at, k] = masses.failures(level, at)
    return log_masses, paths


def _decide_labels(masses: _Masses, mass: FloatArray, thresholds: IntArray) -> BoolArray:
    """Whether class 1 is proven: whatever is asked beside, a label is what `failures` says."""
    is_one = mass < 0.5
    near = np.flatnonzero(np.abs(mass - 0.5) < _NEAR_TIE)  # farther from a tie both ways are certain to agree
    if near.size:
        is_one[near] = masses.failures(thresholds[near], near).proven
    return is_one
