"""The vote, the paper's rule: the label that most noisy copies of a row get.

Owns the thresholds that a row is asked about under the worst categorical change and the worst of missing numbers, what
the radius of its failing mass (`failure_masses`) says about a threat, and the second proof, by the worst case of the
expected score. Must not know how masses are summed or worst cases found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.deduction import choose_caps, deduct
from derand.certificates.bounds.failure_masses import Law
from derand.certificates.bounds.missing_changes import (
    MOST_SETS,
    Variant,
    add_largest,
    bound_falls,
    change_rows,
    count_sets,
    find_falls,
    list_changing,
    list_sets,
)
from derand.certificates.bounds.missing_values import Filled, fill_gaps
from derand.certificates.bounds.packing import PackedTerms, Problem
from derand.certificates.bounds.worst_case import NORMS, find_reach, find_smoothed_case, take_reach
from derand.certificates.rules.base import DUAL, NO_PROOF, PAPER, Bounds, Engine, Rule, require_norm
from derand.kernels import as_device
from derand.kernels.norms import SMALLEST, measure_norms
from derand.kernels.worst_case.steps import Reach
from derand.noise import Noise
from derand.perturbation import Perturbation

_BLOCK_NUMBERS = 2**19  # numbers in a block's probability table
_BLOCK_ROWS = 2**13
_LIGHT_NUMBERS = 2**12  # numbers that are not worth a thread
_FEW_ROWS = 2**7  # not worth the change from one block to the next
_LARGEST = np.finfo(np.float64).max


class ByVote(Rule):
    """Class 1 iff P(score > threshold) > 1/2 is proven; the radius is the larger one of two proofs.

    The paper's knows the failing mass alone and asks the noise; the dual one knows the model and asks for the worst
    case of its expected score.
    """

    counts_copies = True

    def check(self, noise: Noise | None, norm: float | None, proof: str) -> None:
        """Refuse a vote without noise, and norms without a worst case."""
        if noise is None:
            raise ValueError(
                "`noise` must not be None or 'none' under the rule 'vote', which counts noisy copies: give a noise "
                "such as 'gaussian:0.25', or use rule='mean' for the model as deployed."
            )
        require_norm(norm, NORMS, "the rule 'vote'")

    def looks_on_device(
        self, problem: Problem, noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> bool:
        """Where the device computes all that is asked of the law in one go, and sees all columns."""
        device = as_device(engine.kernels)
        if device is None or noise is None or noise.name not in device.NOISES or problem.law.grids:
            return False
        law = problem.law
        is_one_question = Columns(problem, perturbation).budgets.size == 1
        return is_one_question and device.looks_at_all(law.plan(device), law.edges_under(noise), problem.n_features)

    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise | None, perturbation: Perturbation, engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each budget of categorical changes."""
        assert noise is not None  # see `check`
        terms, columns, moving = problem.law, Columns(problem, perturbation), problem.law.moving
        second = SecondProof(problem, noise, perturbation) if engine.proof == "best" and terms.n_terms else None
        size = block_rows(terms, engine, rows.shape[0])
        idle = engine.n_threads if rows.shape[0] <= size else 1
        law = Law(engine.kernels, terms, noise, must_look=engine.must_look, n_threads=idle)
        label = np.empty(rows.shape[0], dtype=np.int64)
        log_failure = np.empty((rows.shape[0], columns.budgets.size))
        radius = np.empty_like(log_failure)
        path, proof = (np.empty(log_failure.shape, dtype=np.uint8) for _ in range(2))
        is_draft = np.full(rows.shape[0], engine.draft and second is not None)

        def bound_block(block: slice) -> None:
            x = np.ascontiguousarray(rows[block], dtype=np.float64)
            filled = fill_gaps(terms, x, noise)
            reach = find_reach(perturbation, filled.rows, filled.gaps)
            falls, rises = terms.category_shifts(x, columns.budgets, perturbation)
            cut = (problem.threshold - terms.fixed_scores(x))[:, None]
            highest, lowest = cut + falls + columns.widenings, cut - rises - columns.widenings
            is_one, found = law.bound(filled, *columns.shift_cuts(filled, highest, lowest))
            for variant in columns.list_variants(filled, noise):
                cuts = columns.take(highest) + variant.falls[:, None], columns.take(lowest) - variant.rises[:, None]
                found = found.lower(columns.missing, law.bound_side(variant.filled, is_one, *cuts))
            label[block] = is_one
            reduced = carry_over(found.radius, noise, perturbation, moving, filled.rows, reach)
            log_failure[block], path[block] = found.log_failure, found.path
            radius[block] = np.where(found.constant, np.inf, reduced)
            proof[block] = np.where(found.constant | (reduced > 0), PAPER, NO_PROOF)
            if second is not None:
                gone = columns.find_falls(filled, noise, is_one)
                levels = highest, lowest, gone
                second.improve(filled.rows, is_one, levels, reach, radius[block], proof[block], engine.draft)

        engine.run(bound_block, rows.shape[0], size)
        return [
            Bounds(label, log_failure[:, at], radius[:, at], proof[:, at], path[:, at], is_draft=is_draft)
            for at in columns.of_budgets
        ]

    def find_labels(self, problem: Problem, rows: NDArray[Any], noise: Noise | None, engine: Engine) -> IntArray:
        """The labels alone."""
        assert noise is not None  # see `check`
        terms, law = problem.law, Law(engine.kernels, problem.law, noise)
        label = np.empty(rows.shape[0], dtype=np.int64)

        def label_block(block: slice) -> None:
            x = np.ascontiguousarray(rows[block], dtype=np.float64)
            label[block] = law.decide(fill_gaps(terms, x, noise), problem.threshold - terms.fixed_scores(x))

        engine.run(label_block, rows.shape[0], block_rows(terms, engine, rows.shape[0]))
        return label


def carry_over(
    radius: FloatArray,
    noise: Noise,
    perturbation: Perturbation,
    moving: IntArray,
    rows: FloatArray,
    reach: Reach | None,
) -> FloatArray:
    """What a radius in the noise's norm and units says about a perturbation (docs/theory.md, section 9).

    Limits only make the set of changes smaller. Without a ball a row holds throughout its box, infinitely far, where
    the farthest corner lies within the radius.
    """
    free, norm = moving[perturbation.free[moving]], perturbation.norm
    if not free.size:
        return np.where(radius > 0, np.inf, 0.0)
    own = noise.units_of(free)
    if norm is None:
        assert reach is not None  # without a ball there is always one
        with np.errstate(over="ignore"):  # a corner that is infinitely far proves nothing
            far = np.maximum(rows[:, free] - reach.low[:, free], reach.high[:, free] - rows[:, free])
            far = np.where(far > 0, far / own + SMALLEST, 0.0)  # missing numbers stay missing
            corner = measure_norms(far, noise.norm)[:, None] * (1 + EPSILON * (free.size + 8))
        return np.where(corner < radius, np.inf, 0.0)
    if norm == 0:
        return np.zeros(radius.shape)
    if norm == noise.norm and np.array_equal(perturbation.units, noise.units_of(np.arange(rows.shape[1]))):
        return radius
    with np.errstate(over="ignore"):
        ratios = perturbation.units[free] / own
    stretch, power = float(ratios.max()), 1 / noise.norm - 1 / norm
    if not TINY <= stretch < np.inf:
        return np.zeros(radius.shape)
    if power > 0:  # Hoelder's inequality for three norms
        stretch *= float(measure_norms(ratios[None] / stretch, 1 / power)[0])
    with np.errstate(over="ignore"):
        carried = radius / (stretch * (1 + EPSILON * (2 * free.size + 16)))
    carried = np.where(np.isinf(radius), radius, np.minimum(carried, _LARGEST))  # a flip may lie beyond all doubles
    return np.where(carried < TINY, 0.0, carried)  # subnormal numbers are rounded by more than that


class SecondProof:
    """The vote by the worst case of its expected score: most noisy copies are right wherever that clears a threshold.

    What it must clear it by is deducted (docs/theory.md, section 7). Terms may be cut off at several caps: the best
    counts.
    """

    def __init__(self, problem: Problem, noise: Noise, perturbation: Perturbation) -> None:
        self._terms, self._noise = problem.terms, noise
        self._norm, self._units = perturbation.norm, perturbation.units
        ranges, band = problem.terms.ranges, problem.law.tie_band()
        # the label is that of the law: on a coarser grid ranges may be a step of it larger
        wider = problem.law.step / problem.terms.step if problem.law.error else 0.0
        self._caps = {cap: deduct(np.minimum(ranges, cap) + wider, band) for cap in choose_caps(ranges)}

    def improve(
        self,
        rows: FloatArray,
        is_one: BoolArray,
        cuts: tuple[IntArray, IntArray, FloatArray | None],
        reach: Reach | None,
        radius: FloatArray,
        proof: NDArray[np.uint8],
        is_draft: bool = False,
    ) -> None:
        """Raise the radii of a block of rows, and say so in `proof`, both of shape (n_rows, n_columns).

        Class 1 is to hold where the score is above the first one of the cuts, class 0 where it is not above the second;
        the third is what numbers that go missing or appear take off the expected score.
        """
        terms, (highest, lowest, falls) = self._terms, cuts
        for label in (0, 1):
            at = np.flatnonzero((is_one == label) & ~np.isinf(radius).all(axis=1))
            if not at.size:
                continue
            if falls is None:
                low, high = ((level[at] - terms.base) // terms.step for level in (highest, lowest))
                levels = (low if label else terms.largest - high - 1).astype(np.float64)
            else:  # what a missing number scores lies off the grid of reduced scores: only whole scores are left
                levels = (highest[at] - terms.base if label else terms.base - lowest[at] - 1) / terms.step
                levels += (0 if label else terms.largest) + falls[at] / terms.step * (1 + 4 * EPSILON)
                levels += 8 * EPSILON * (np.abs(levels) + terms.largest + falls[at] / terms.step)
            for cap, deduction in self._caps.items():
                case = find_smoothed_case(terms, self._noise, self._norm, self._units, label, cap)
                part = take_reach(reach, at)
                sketched = case.sketch_radii(rows[at], levels + deduction, part) if is_draft else None
                found = case.find_radii(rows[at], levels + deduction, part)[0] if sketched is None else sketched
                better = found > radius[at]
                radius[at] = np.where(better, found, radius[at])
                proof[at] = np.where(better, DUAL, proof[at])


class Columns:
    """The pairs of thresholds that a row is asked about: that of its label first, then those of the budgets.

    Attributes
    ----------
    budgets, widenings : arrays of shape (n_columns,)
        Categorical changes, and whole scores by which the threshold is moved away from either side.
    missing : array of integers
        The columns in which numbers may go missing or appear: all of them but the label's, or none.
    of_budgets : list of int
        The column of each budget. Budgets without changes and without widening share the label's.
    """

    def __init__(self, problem: Problem, perturbation: Perturbation) -> None:
        widening = problem.widening + problem.law.error
        self._gaps = list_changing(problem.law, perturbation)
        self._budget = min(perturbation.missing_budget, len(self._gaps))
        self._tries = count_sets(len(self._gaps), self._budget) <= MOST_SETS
        asked = [(self._budget, widening, min(one, len(problem.terms.fixed))) for one in perturbation.budgets]
        every = sorted({(0, 0, 0), *asked})
        missing, self.widenings, self.budgets = (np.array(side, dtype=np.int64) for side in zip(*every, strict=True))
        self.missing = np.flatnonzero(missing)
        self.of_budgets = [every.index(one) for one in asked]

    def take(self, cuts: IntArray) -> IntArray:
        """Those of the columns in which numbers may go missing or appear."""
        return np.asarray(cuts[:, self.missing])

    def shift_cuts(self, filled: Filled, highest: IntArray, lowest: IntArray) -> tuple[IntArray, IntArray]:
        """The thresholds, moved where there are too many sets of numbers to try what becomes of each one."""
        if self._tries or not self._budget:
            return highest, lowest
        moved = highest.copy(), lowest.copy()
        for label, sign, cuts in ((1, 1, moved[0]), (0, -1, moved[1])):
            falls = add_largest(bound_falls(self._gaps, filled, label), self._budget)
            cuts[:, self.missing] += sign * falls[:, None]
        return moved

    def list_variants(self, filled: Filled, noise: Noise) -> Iterator[Variant]:
        """The rows after every change of numbers that can be tried."""
        if self._tries:
            for chosen in list_sets(self._gaps, self._budget):
                yield change_rows(filled, chosen, noise)

    def find_falls(self, filled: Filled, noise: Noise, is_one: BoolArray) -> FloatArray | None:
        """What such changes take off the expected score of each row at most, (n_rows, n_columns)."""
        if not self._budget:
            return None
        found = np.zeros((is_one.size, self.budgets.size))
        for label in (0, 1):
            at = np.flatnonzero(is_one == label)
            falls = add_largest(find_falls(self._gaps, filled.take(at), noise, label), self._budget)
            found[np.ix_(at, self.missing)] = falls[:, None]
        return found


def block_rows(terms: PackedTerms, engine: Engine, n_rows: int) -> int:
    """Rows per block: its arrays stay small whatever the model, and of many rows every core gets several blocks."""
    device = as_device(engine.kernels)
    if device is not None and not terms.grids:
        return device.BLOCK_ROWS
    if n_rows * terms.scores.size <= _LIGHT_NUMBERS:
        return max(1, n_rows)
    widest = terms.scores.size
    if engine.kernels.HOLDS_ALL_PMFS:
        widest = max(widest, 4 * terms.largest)
    shared = max(-(-n_rows // (4 * engine.n_threads)), min(_FEW_ROWS, -(-n_rows // engine.n_threads)))
    return max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // max(widest, 1), shared))
