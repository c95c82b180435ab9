"""The vote, the paper's rule: the label that most noisy copies of a row get.

Owns the failure mass of a row under the worst categorical change, the radius that follows from it by the noise, and the
second proof, by the worst case of the expected score. The mass is summed on the failing side alone;
`kernels/README.md` shows that a radius is a lower bound. Must not know how masses are summed or worst cases found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates._deduction import choose_caps, deduct
from derand.certificates._gaps import fill_gaps, find_ends
from derand.certificates._problem import PackedTerms, Problem
from derand.certificates._rule import DUAL, NO_PROOF, PAPER, Bounds, Engine, Rule, require_norm
from derand.certificates._worst import NORMS, find_reach, find_smoothed_case, take_reach
from derand.kernels import LAW, Backend, DeviceBackend, Failures, require_gradual_underflow, rounding_bound
from derand.kernels.steps import Reach
from derand.noise import Noise
from derand.threads import run_blocks
from derand.threat import Threat

_BLOCK_NUMBERS = 2**19  # numbers in a block's probability table
_BLOCK_ROWS = 2**13
_FEW_ROWS = 2**7  # not worth the change from one block to the next
_FAINT = 1e-280  # near FLOOR: the logarithm is needed
_NEAR_TIE = 1e-6  # far more than `tails` and `failures` can differ by


class ByVote(Rule):
    """Class 1 iff P(score > threshold) > 1/2 is proven; the radius is the larger one of two proofs.

    The paper's knows the failing mass alone and asks the noise; the dual one knows the model and asks for the worst
    case of its expected score.
    """

    def check(self, noise: Noise | None, threat: Threat, proof: str) -> None:
        """Refuse a vote without noise, and norms without a worst case."""
        if noise is None:
            raise ValueError(
                "`noise` must not be None or 'none' under the rule 'vote', which counts noisy copies: give a noise "
                "such as 'gaussian:0.25', or use rule='mean' for the model as deployed."
            )
        require_norm(threat, NORMS, "the rule 'vote'")

    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise | None, threats: Sequence[Threat], engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each threat."""
        assert noise is not None  # see `check`
        terms, columns = problem.law, _Columns(problem, threats)
        second = _SecondProof(problem, noise, threats[0]) if engine.proof == "best" and terms.n_terms else None
        threat, moving = threats[0], np.unique(terms.edge_features)
        label = np.empty(rows.shape[0], dtype=np.int64)
        log_failure = np.empty((rows.shape[0], columns.budgets.size))
        radius = np.empty_like(log_failure)
        path, proof = (np.empty(log_failure.shape, dtype=np.uint8) for _ in range(2))
        slack = noise.tie_margin(terms.tie_band())  # so that the computed label, too, holds throughout the ball

        def bound_block(block: slice) -> None:
            require_gradual_underflow()
            x = np.asarray(rows[block], dtype=np.float64)
            filled = fill_gaps(terms, x, noise)
            reach = find_reach(threat, filled.rows, problem.numerical_features, filled.gaps)
            falls, rises = terms.category_shifts(x, columns.budgets, threat)
            cut = (problem.threshold - terms.fixed_scores(x))[:, None]
            highest, lowest = cut + falls + columns.widenings, cut - rises - columns.widenings
            low, high = (highest - terms.base) // terms.step, (lowest - terms.base) // terms.step
            is_one, failing, path[block] = _failing_masses(
                _Masses(engine.kernels, terms, filled.rows, noise), low, high
            )
            least, most = find_ends(terms, filled.gaps)
            constant = np.where(is_one[:, None], low < least, high >= most)
            own = np.maximum(noise.radius_of_log(failing) - slack, 0.0)
            reduced = _carry_over(own, noise, threat, moving, filled.rows, reach)
            label[block] = is_one
            log_failure[block] = failing
            radius[block] = np.where(constant, np.inf, reduced)
            proof[block] = np.where(constant | (reduced > 0), PAPER, NO_PROOF)
            if second is not None:
                second.improve(filled.rows, is_one, highest, lowest, reach, radius[block], proof[block])

        run_blocks(bound_block, rows.shape[0], _block_rows(terms, engine, rows.shape[0]), engine.n_threads)
        return [
            Bounds(label, log_failure[:, at], radius[:, at], proof[:, at], path[:, at]) for at in columns.of_threats
        ]


def _carry_over(
    radius: FloatArray, noise: Noise, threat: Threat, moving: IntArray, rows: FloatArray, reach: Reach | None
) -> FloatArray:
    """What a radius in the noise's norm and units says about the threat (docs/theory.md, section 9).

    Limits only make the set of changes smaller. Without a ball a row holds throughout its box, infinitely far, where
    the farthest corner lies within the radius.
    """
    free = moving[threat.find_free(moving.tolist())]
    if not free.size:
        return np.where(radius > 0, np.inf, 0.0)
    own = noise.units_of(free)
    if threat.norm is None:
        assert reach is not None  # without a ball there is always one
        with np.errstate(over="ignore"):  # a corner that is infinitely far proves nothing
            far = np.maximum(rows[:, free] - reach.low[:, free], reach.high[:, free] - rows[:, free]) / own
            corner = np.linalg.norm(far, ord=noise.norm, axis=1)[:, None] * (1 + EPSILON * (free.size + 8))
        return np.where(corner < radius, np.inf, 0.0)
    if threat.norm == 0:
        return np.zeros(radius.shape)
    if threat.norm == noise.norm and threat.units == noise.units:
        return radius
    with np.errstate(over="ignore"):
        ratios = threat.units_of(rows.shape[1])[free] / own
    stretch, power = float(ratios.max()), 1 / noise.norm - 1 / float(threat.norm or 1)
    if not 0 < stretch < np.inf:
        return np.zeros(radius.shape)
    if power > 0:  # Hoelder's inequality for three norms
        stretch *= float(np.linalg.norm(ratios / stretch, ord=1 / power))
    return np.asarray(radius / (stretch * (1 + EPSILON * (2 * free.size + 16))))


class _SecondProof:
    """The vote by the worst case of its expected score: most noisy copies are right wherever that clears a threshold.

    What it must clear it by is deducted (docs/theory.md, section 7). Terms may be cut off at several caps: the best
    counts.
    """

    def __init__(self, problem: Problem, noise: Noise, threat: Threat) -> None:
        self._terms, self._noise = problem.terms, noise
        self._norm, self._units = threat.ball_norm, threat.units_of(problem.n_features)
        ranges, band = problem.terms.ranges, problem.law.tie_band()
        # the label is that of the law: on a coarser grid ranges may be a step of it larger
        wider = problem.law.step / problem.terms.step if problem.law.error else 0.0
        self._caps = {cap: deduct(np.minimum(ranges, cap) + wider, band) for cap in choose_caps(ranges)}

    def improve(
        self,
        rows: FloatArray,
        is_one: BoolArray,
        highest: IntArray,
        lowest: IntArray,
        reach: Reach | None,
        radius: FloatArray,
        proof: NDArray[np.uint8],
    ) -> None:
        """Raise the radii of a block of rows, and say so in `proof`, both of shape (n_rows, n_columns).

        Class 1 is to hold where the score is above `highest`, class 0 where it is not above `lowest`.
        """
        terms = self._terms
        for label in (0, 1):
            at = np.flatnonzero((is_one == label) & ~np.isinf(radius).all(axis=1))
            if not at.size:
                continue
            low, high = ((level[at] - terms.base) // terms.step for level in (highest, lowest))
            levels = (low if label else terms.largest - high - 1).astype(np.float64)
            for cap, deduction in self._caps.items():
                case = find_smoothed_case(terms, self._noise, self._norm, self._units, label, cap)
                found, _ = case.find_radii(rows[at], levels + deduction, take_reach(reach, at))
                better = found > radius[at]
                radius[at] = np.where(better, found, radius[at])
                proof[at] = np.where(better, DUAL, proof[at])


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
        widening = problem.widening + problem.law.error
        asked = [(widening, min(threat.l0, len(problem.terms.fixed))) for threat in threats]
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
