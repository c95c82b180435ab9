"""The vote, the paper's rule: the label that most noisy copies of a row get.

Owns the thresholds that a row is asked about under the worst categorical change and the worst of missing values, what
the radius of its failing mass (`failure_masses`) says about a threat, and the second proof, by the worst case of the
expected score. Must not know how masses are summed or worst cases found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.deduction import choose_caps, deduct
from derand.certificates.bounds.failure_masses import ScoreDistribution, TailBounds
from derand.certificates.bounds.levels import bound_least_sums, holds_at, search_levels
from derand.certificates.bounds.missing import (
    MOST_SETS,
    Filled,
    Variant,
    add_largest,
    bound_decreases,
    change_rows,
    compute_decreases,
    compute_ends,
    count_sets,
    fill_missing,
    list_changing,
    list_sets,
)
from derand.certificates.bounds.packing import PackedTerms, Problem
from derand.certificates.bounds.worst_case import compute_box, get_case, take_box
from derand.certificates.rules.base import (
    DUAL,
    NO_PROOF,
    PAPER,
    BlockBounds,
    Distances,
    Ends,
    Query,
    Rule,
    SmoothedScore,
    join_ends,
)
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
_LEVELS = 15
"""Levels that one pass over the distribution is asked about."""


class Median(SmoothedScore):
    """The lowest score that noisy copies do not exceed with a probability of 1/2 or more.

    At any level, "the score is above it" is a label, with both proofs of a vote.
    """

    def __init__(self, problem: Problem, query: Query, n_rows: int) -> None:
        assert query.noise is not None  # see `ByVote.check`
        self._problem, self._terms, self._query = problem, problem.distribution, query
        self._noise, self._perturbation = query.noise, query.perturbation
        self.block_rows = block_rows(problem.distribution, query, n_rows)
        idle = query.n_threads if n_rows <= self.block_rows else 1
        self._distribution = ScoreDistribution(
            query.kernels, problem.distribution, query.noise, must_look=query.must_look, n_threads=idle
        )

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self._problem, self._perturbation)

    @cached_property
    def _second(self) -> SecondProof | None:
        if self._query.proof != "best" or not self._terms.n_terms:
            return None
        return SecondProof(self._problem, self._noise, self._perturbation)

    def label(self, rows: FloatArray) -> BoolArray:
        """Whether the median is proven to be above the threshold."""
        filled = fill_missing(self._terms, rows, self._noise)
        return self._distribution.decide(filled, self._problem.threshold - self._terms.fixed_scores(rows))

    def bound(self, rows: FloatArray) -> BlockBounds:
        """Label and radius of each row, for each budget of categorical changes."""
        level = self._problem.threshold - self._terms.fixed_scores(rows)
        is_one, found, radius, proof = self._bound_level(rows, level)
        at = self._columns.of_budgets
        is_preliminary = np.full(rows.shape[0], self._query.preliminary and self._second is not None)
        return BlockBounds(
            is_one, found.log_failure[:, at], radius[:, at], proof[:, at], found.path[:, at], None, is_preliminary
        )

    def _bound_level(
        self, rows: FloatArray, level: IntArray, is_one: BoolArray | None = None
    ) -> tuple[BoolArray, TailBounds, FloatArray, NDArray[np.uint8]]:
        """Whether the median is above a level, and how far rows may be moved while that stays so.

        Labels are given where they are known. Radii and proofs are those of both proofs, (n_rows, n_columns); the
        bounds of the distribution are before the noise's radius is carried over to the perturbation.
        """
        terms, columns, noise = self._terms, self._columns, self._noise
        filled = fill_missing(terms, rows, noise)
        box = compute_box(self._perturbation, filled.rows, filled.is_missing)
        decreases, increases = terms.category_shifts(rows, columns.budgets, self._perturbation)
        highest, lowest = level[:, None] + decreases + columns.widenings, level[:, None] - increases - columns.widenings
        thresholds = columns.shift_thresholds(filled, highest, lowest)
        if is_one is None:
            is_one, found = self._distribution.bound(filled, *thresholds)
        else:
            found = self._distribution.bound_tail(filled, is_one, *thresholds)
        for variant in columns.list_variants(filled, noise):
            moved = (
                columns.take(highest) + variant.decreases[:, None],
                columns.take(lowest) - variant.increases[:, None],
            )
            found = found.lower(columns.missing, self._distribution.bound_tail(variant.filled, is_one, *moved))
        carried = carry_over(found.radius, noise, self._perturbation, terms.moving, filled.rows, box)
        radius = np.where(found.constant, np.inf, carried)
        proof = np.where(radius > 0, PAPER, NO_PROOF).astype(np.uint8)
        if self._second is not None:
            levels = highest, lowest, columns.compute_decreases(filled, noise, is_one)
            self._second.improve(filled.rows, is_one, levels, box, radius, proof, self._query.preliminary)
        return is_one, found, radius, proof

    def compute(self, rows: FloatArray) -> IntArray:
        """Medians of the scores."""
        terms = self._terms
        median = self._search_medians(fill_missing(terms, rows, self._noise))
        return np.asarray(terms.base + terms.step * median + terms.fixed_scores(rows))

    def bound_interval(self, rows: FloatArray, radius: float) -> Ends:
        """Whole scores that the median does not leave within the threat.

        A variant, in which some numbers go missing or appear, has ends of its own: the outermost ones count.
        """
        terms, wider, asked = self._terms, self._problem.widening + self._terms.error, self._perturbation
        filled = fill_missing(terms, rows, self._noise)
        decreases, increases = (column[:, 0] for column in terms.category_shifts(rows, np.array(asked.budgets), asked))
        median = self._search_medians(filled)
        low, high = self._search_ends(filled, radius, median, median)
        missing_cells = list_changing(terms, asked)
        budget = min(asked.missing_budget, len(missing_cells))
        if count_sets(len(missing_cells), budget) > MOST_SETS:
            low = low - add_largest(bound_decreases(missing_cells, filled, 1), budget)
            high = high + add_largest(bound_decreases(missing_cells, filled, 0), budget)
        else:
            for chosen in list_sets(missing_cells, budget):
                variant = change_rows(filled, chosen, self._noise)
                least, most = self._list_ends(variant.filled)
                lower, higher = self._search_ends(variant.filled, radius, most, least)
                low, high = np.minimum(low, lower - variant.decreases), np.maximum(high, higher + variant.increases)
        fixed = terms.fixed_scores(rows)
        score = terms.base + terms.step * median + fixed
        return Ends(score, low + fixed - decreases - wider, high + fixed + increases + wider)

    def bound_radius(self, rows: FloatArray, tolerance: Fraction) -> Distances:
        """How far rows may be moved while the median stays within so many grid units."""
        scores, room, (at,) = self.compute(rows), math.floor(tolerance), self._columns.of_budgets
        level = scores - self._terms.fixed_scores(rows)
        found = []
        for label, end in ((0, level + room), (1, level - room - 1)):
            _, _, radius, proof = self._bound_level(rows, end, np.full(rows.shape[0], bool(label)))
            found.append((radius[:, at], proof[:, at]))
        return join_ends(scores, *found)

    def _search_medians(self, filled: Filled) -> IntArray:
        """Reduced scores, each the first at which class 1 is not proven: what `Law.decide` says of it and of the next.

        The search ends between a level of class 1 and one that is not; labels are computed as everywhere.
        """
        terms = self._terms
        least, most = self._list_ends(filled)

        def is_above(thresholds: IntArray) -> BoolArray:
            return self._distribution.decide_each(filled, terms.base + terms.step * thresholds)

        return search_levels(is_above, least - 1, most, _LEVELS) + 1

    def _list_ends(self, filled: Filled) -> tuple[IntArray, IntArray]:
        """The lowest and the highest reduced score that noise can give each row."""
        ends = compute_ends(self._terms, filled.is_missing)
        least, most = (np.broadcast_to(np.ravel(end), filled.rows.shape[:1]).astype(np.int64) for end in ends)
        return least, most

    def _search_ends(
        self, filled: Filled, radius: float, below: IntArray, above: IntArray
    ) -> tuple[IntArray, IntArray]:
        """The scores that the median does not leave, without those of fixed terms: the better one of both proofs.

        The lower end is not looked for at the reduced score `below` or higher, the higher one not below `above`.
        """
        terms = self._terms
        box = compute_box(self._perturbation, filled.rows, filled.is_missing)
        least, most = self._list_ends(filled)

        def search(label: int, sure: IntArray, doubtful: IntArray) -> IntArray:
            is_one = np.full(filled.rows.shape[0], bool(label))

            def holds(thresholds: IntArray) -> BoolArray:
                levels = terms.base + terms.step * thresholds
                found = self._distribution.bound_tail(filled, is_one, levels, levels)
                if radius == 0:
                    return holds_at(found.radius, radius)
                carried = carry_over(found.radius, self._noise, self._perturbation, terms.moving, filled.rows, box)
                return holds_at(np.where(found.constant, np.inf, carried), radius)

            return search_levels(holds, sure, doubtful, _LEVELS)

        low = terms.base + terms.step * (search(1, least - 1, below) + 1)
        high = terms.base + terms.step * search(0, most, above - 1)
        if radius > 0 and self._query.proof == "best" and self._problem.terms.n_terms and filled.rows.size:
            lower, higher = self._bound_mean_ends(filled, radius, box)
            low, high = np.maximum(low, lower), np.minimum(high, higher)
        return low, high

    def _bound_mean_ends(self, filled: Filled, radius: float, box: Reach | None) -> tuple[IntArray, IntArray]:
        """The same by the worst case of the expected score (docs/theory.md, section 8)."""
        terms, is_coarse = self._problem.terms, bool(self._terms.error)
        norm, units = self._perturbation.norm, self._perturbation.units
        ranges, band = terms.ranges, self._terms.tie_band()
        wider = self._terms.step / terms.step if is_coarse else 0.0
        best = np.full((2, filled.rows.shape[0]), -np.inf)
        for cap in choose_caps(ranges):
            deduction = deduct(np.minimum(ranges, cap) + wider, band)
            for label in (0, 1):
                case = get_case(terms, self._noise, norm, units, label, cap)
                least = bound_least_sums(case, filled.rows, self._perturbation, radius, box, terms.largest, whole=False)
                level = least - deduction - 4 * EPSILON * (least + deduction)
                best[label] = np.maximum(best[label], level)
        above = np.floor(best[1]).astype(np.int64)  # more than half of the copies exceed this reduced score
        reached = terms.largest - 1 - np.floor(best[0]).astype(np.int64)  # and more than half do not exceed this one
        if is_coarse:  # the distribution's own scores lie between those of the fine grid: only whole scores are left
            return terms.base + terms.step * above + 1, terms.base + terms.step * (reached + 1) - 1
        return terms.base + terms.step * (above + 1), terms.base + terms.step * reached


class ByVote(Rule):
    """Class 1 iff P(score > threshold) > 1/2 is proven; the radius is the larger one of two proofs.

    The paper's knows the failing mass alone and asks the noise; the dual one knows the model and asks for the worst
    case of its expected score.
    """

    smooth = Median
    counts_copies = True

    def check(self, noise: Noise | None, proof: str) -> None:
        """Refuse a vote without noise."""
        if noise is None:
            raise ValueError(
                "`noise` must not be None or 'none' under the rule 'vote', which counts noisy copies: give a noise "
                "such as 'gaussian:0.25', or use rule='mean' for the model as deployed."
            )

    def looks_on_device(self, problem: Problem, query: Query) -> bool:
        """Where the device computes all that is asked of the distribution in one go, and sees all columns."""
        device, noise, distribution = as_device(query.kernels), query.noise, problem.distribution
        if device is None or noise is None or noise.name not in device.NOISES or distribution.grids:
            return False
        is_one_question = Columns(problem, query.perturbation).budgets.size == 1
        return is_one_question and device.looks_at_all(
            distribution.plan(device), distribution.edges_under(noise), problem.n_features
        )


def carry_over(
    radius: FloatArray,
    noise: Noise,
    perturbation: Perturbation,
    moving: IntArray,
    rows: FloatArray,
    box: Reach | None,
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
        assert box is not None  # without a ball there is always one
        with np.errstate(over="ignore"):  # a corner that is infinitely far proves nothing
            far = np.maximum(rows[:, free] - box.low[:, free], box.high[:, free] - rows[:, free])
            far = np.where(far > 0, far / own + SMALLEST, 0.0)  # missing values stay missing
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
        ranges, band = problem.terms.ranges, problem.distribution.tie_band()
        # the label is that of the distribution: on a coarser grid ranges may be a step of it larger
        wider = problem.distribution.step / problem.terms.step if problem.distribution.error else 0.0
        self._caps = {cap: deduct(np.minimum(ranges, cap) + wider, band) for cap in choose_caps(ranges)}

    def improve(
        self,
        rows: FloatArray,
        is_one: BoolArray,
        thresholds: tuple[IntArray, IntArray, FloatArray | None],
        box: Reach | None,
        radius: FloatArray,
        proof: NDArray[np.uint8],
        is_preliminary: bool = False,
    ) -> None:
        """Raise the radii of a block of rows, and say so in `proof`, both of shape (n_rows, n_columns).

        Class 1 is to hold where the score is above the first threshold, class 0 where it is not above the second;
        the third is what numbers that go missing or appear take off the expected score.
        """
        terms, (highest, lowest, decreases) = self._terms, thresholds
        for label in (0, 1):
            at = np.flatnonzero((is_one == label) & ~np.isinf(radius).all(axis=1))
            if not at.size:
                continue
            if decreases is None:
                low, high = ((level[at] - terms.base) // terms.step for level in (highest, lowest))
                levels = (low if label else terms.largest - high - 1).astype(np.float64)
            else:  # what a missing number scores lies off the grid of reduced scores: only whole scores are left
                levels = (highest[at] - terms.base if label else terms.base - lowest[at] - 1) / terms.step
                levels += (0 if label else terms.largest) + decreases[at] / terms.step * (1 + 4 * EPSILON)
                levels += 8 * EPSILON * (np.abs(levels) + terms.largest + decreases[at] / terms.step)
            for cap, deduction in self._caps.items():
                case = get_case(terms, self._noise, self._norm, self._units, label, cap)
                part = take_box(box, at)
                sketched = case.sketch_radii(rows[at], levels + deduction, part) if is_preliminary else None
                found = case.bound_radii(rows[at], levels + deduction, part)[0] if sketched is None else sketched
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
        widening = problem.widening + problem.distribution.error
        self._missing = list_changing(problem.distribution, perturbation)
        self._budget = min(perturbation.missing_budget, len(self._missing))
        self._tries = count_sets(len(self._missing), self._budget) <= MOST_SETS
        asked = [(self._budget, widening, min(one, len(problem.terms.fixed))) for one in perturbation.budgets]
        every = sorted({(0, 0, 0), *asked})
        missing, self.widenings, self.budgets = (
            np.array(column, dtype=np.int64) for column in zip(*every, strict=True)
        )
        self.missing = np.flatnonzero(missing)
        self.of_budgets = [every.index(one) for one in asked]

    def take(self, thresholds: IntArray) -> IntArray:
        """Those of the columns in which numbers may go missing or appear."""
        return np.asarray(thresholds[:, self.missing])

    def shift_thresholds(self, filled: Filled, highest: IntArray, lowest: IntArray) -> tuple[IntArray, IntArray]:
        """The thresholds, moved where there are too many sets of numbers to try what becomes of each one."""
        if self._tries or not self._budget:
            return highest, lowest
        moved = highest.copy(), lowest.copy()
        for label, sign, thresholds in ((1, 1, moved[0]), (0, -1, moved[1])):
            decreases = add_largest(bound_decreases(self._missing, filled, label), self._budget)
            thresholds[:, self.missing] += sign * decreases[:, None]
        return moved

    def list_variants(self, filled: Filled, noise: Noise) -> Iterator[Variant]:
        """The rows after every change of numbers that can be tried."""
        if self._tries:
            for chosen in list_sets(self._missing, self._budget):
                yield change_rows(filled, chosen, noise)

    def compute_decreases(self, filled: Filled, noise: Noise, is_one: BoolArray) -> FloatArray | None:
        """What such changes take off the expected score of each row at most, (n_rows, n_columns)."""
        if not self._budget:
            return None
        found = np.zeros((is_one.size, self.budgets.size))
        for label in (0, 1):
            at = np.flatnonzero(is_one == label)
            decreases = add_largest(compute_decreases(self._missing, filled.take(at), noise, label), self._budget)
            found[np.ix_(at, self.missing)] = decreases[:, None]
        return found


def block_rows(terms: PackedTerms, query: Query, n_rows: int) -> int:
    """Rows per block: its arrays stay small whatever the model, and of many rows every core gets several blocks."""
    device = as_device(query.kernels)
    if device is not None and not terms.grids:
        return device.BLOCK_ROWS
    if n_rows * terms.scores.size <= _LIGHT_NUMBERS:
        return max(1, n_rows)
    widest = terms.scores.size
    if query.kernels.HOLDS_ALL_PMFS:
        widest = max(widest, 4 * terms.largest)
    shared = max(-(-n_rows // (4 * query.n_threads)), min(_FEW_ROWS, -(-n_rows // query.n_threads)))
    return max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // max(widest, 1), shared))
