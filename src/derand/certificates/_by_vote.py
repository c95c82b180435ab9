"""The vote, the paper's rule: the label that most noisy copies of a row get.

Owns the failure mass of a row under the worst categorical change, and the radius that follows from it by the noise. The
mass is summed on the failing side alone; `kernels/README.md` shows that a radius is a lower bound. Must not know how
masses are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates._problem import PackedTerms, Problem
from derand.certificates._rule import Bounds, Engine, Rule
from derand.kernels import LAW, Backend, DeviceBackend, Failures, require_gradual_underflow, rounding_bound
from derand.noise import Noise
from derand.threads import run_blocks
from derand.threat import Threat

_BLOCK_NUMBERS = 2**19  # numbers in a block's probability table
_BLOCK_ROWS = 2**13
_FEW_ROWS = 2**7  # not worth the change from one block to the next
_FAINT = 1e-280  # near FLOOR: the logarithm is needed
_NEAR_TIE = 1e-6  # far more than `tails` and `failures` can differ by


class ByVote(Rule):
    """Class 1 iff P(score > threshold) > 1/2 is proven; the radius is what the noise makes of the failing mass."""

    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise, threats: Sequence[Threat], engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each threat."""
        terms, columns = problem.terms, _Columns(problem, threats)
        label = np.empty(rows.shape[0], dtype=np.int64)
        log_failure = np.empty((rows.shape[0], columns.budgets.size))
        radius, path = np.empty_like(log_failure), np.empty(log_failure.shape, dtype=np.uint8)
        slack = noise.tie_margin(terms.tie_band())  # so that the computed label, too, holds throughout the ball

        def bound_block(block: slice) -> None:
            require_gradual_underflow()
            x = np.asarray(rows[block], dtype=np.float64)
            falls, rises = terms.category_shifts(x, columns.budgets, unseen=threats[0].unseen)
            cut = (problem.threshold - terms.base - terms.fixed_scores(x))[:, None]
            low = (cut + falls + columns.widenings) // terms.step
            high = (cut - rises - columns.widenings) // terms.step
            is_one, failing, path[block] = _failing_masses(_Masses(engine.kernels, terms, x, noise), low, high)
            constant = np.where(is_one[:, None], low < 0, high >= terms.largest)
            reduced = noise.radius_of_log(failing) - slack
            label[block] = is_one
            log_failure[block] = failing
            radius[block] = np.where(constant, np.inf, np.maximum(reduced, 0.0))

        run_blocks(bound_block, rows.shape[0], _block_rows(terms, engine, rows.shape[0]), engine.n_threads)
        return [Bounds(label, log_failure[:, at], radius[:, at], path[:, at]) for at in columns.of_threats]


class _Columns:
    """The pairs of thresholds that a row is asked about: that of its label first, then those of the threats.

    Attributes
    ----------
    budgets, widenings : arrays of shape (n_columns,)
        Categorical changes, and whole scores by which the threshold is moved away from either side.
    of_threats : list of int
        The column of each threat. Threats without changes and without widening share the label's.
    """

    def __init__(self, problem: Problem, threats: Sequence[Threat]) -> None:
        asked = [(problem.widening, min(threat.l0, len(problem.terms.fixed))) for threat in threats]
        pairs = sorted({(0, 0), *asked})
        self.widenings, self.budgets = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
        self.of_threats = [pairs.index(pair) for pair in asked]


class _Masses:
    """`failures` and `tails` of the rows of a block, whoever computes their probability table."""

    def __init__(self, kernels: Backend, terms: PackedTerms, rows: FloatArray, noise: Noise) -> None:
        self.terms = terms
        self._kernels, self._plan = kernels, terms.plan(kernels)
        self._device = kernels if isinstance(kernels, DeviceBackend) and noise.name in kernels.NOISES else None
        if self._device is not None:
            self._rows, self._edges = rows, terms.edges_under(noise)
        else:
            self._table = terms.table(rows, noise)

    def failures(self, thresholds: IntArray, at: IntArray | slice = slice(None)) -> Failures:
        if self._device is not None:
            return self._device.failures_from_edges(self._plan, self._rows[at], self._edges, thresholds)
        return self._kernels.failures(self._plan, self._table[at], thresholds)

    def tails(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        if self._device is not None:
            return self._device.tails_from_edges(self._plan, self._rows, self._edges, low, high)
        return self._kernels.tails(self._plan, self._table, low, high)


def _failing_masses(masses: _Masses, low: IntArray, high: IntArray) -> tuple[BoolArray, FloatArray, NDArray[np.uint8]]:
    """Whether label 1 is proven at the first threshold; at each, the failing mass's logarithm and how it was found."""
    if low.shape[1] == 1:
        is_one, log_mass, path = masses.failures(low[:, 0])
        return is_one, log_mass[:, None], path[:, None]
    widening = 1 + rounding_bound(masses.terms.scores.size)
    low_mass, high_mass = (np.minimum(mass * widening, 1.0) for mass in masses.tails(low, high))
    is_one = _decide_labels(masses, low_mass[:, 0], low[:, 0])
    mass, paths = np.where(is_one[:, None], low_mass, high_mass), np.full(low.shape, LAW, dtype=np.uint8)
    with np.errstate(divide="ignore"):
        log_masses = np.log(mass)
    log_masses += 4 * EPSILON * np.abs(np.maximum(log_masses, -1000.0))
    faint = (mass > 0) & (mass < _FAINT)
    for k in np.flatnonzero(faint.any(axis=0)):
        at = np.flatnonzero(faint[:, k])
        cut = np.where(is_one, low[:, k], high[:, k])[at]
        _, log_masses[at, k], paths[at, k] = masses.failures(cut, at)
    return is_one, log_masses, paths


def _decide_labels(masses: _Masses, mass: FloatArray, thresholds: IntArray) -> BoolArray:
    """Whether class 1 is proven: whatever is asked beside, a label is what `failures` says."""
    is_one = mass < 0.5
    near = np.flatnonzero(np.abs(mass - 0.5) < _NEAR_TIE)  # farther from a tie both ways are certain to agree
    if near.size:
        is_one[near] = masses.failures(thresholds[near], near).proven
    return is_one


def _block_rows(terms: PackedTerms, engine: Engine, n_rows: int) -> int:
    """Rows per block: its arrays stay small whatever the model, and of many rows every core gets several blocks."""
    if isinstance(engine.kernels, DeviceBackend):
        return engine.kernels.BLOCK_ROWS
    widest = terms.scores.size
    if engine.kernels.HOLDS_ALL_LAWS:
        widest = max(widest, 4 * terms.largest)
    shared = max(-(-n_rows // (4 * engine.n_threads)), min(_FEW_ROWS, -(-n_rows // engine.n_threads)))
    return max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // max(widest, 1), shared))
