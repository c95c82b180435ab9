"""Several classes: each row's class is compared with the others, two by two.

A comparison is a model of two classes (`AdditiveEnsemble.duel`), which rules and kernels know already. The label of a
row is the class that wins all of its comparisons; where there is none, the one whose worst comparison is best, and
nothing is proven (docs/theory.md, section 12). Owns which classes are compared, and what the comparisons of a row come
to. Must not know how a comparison is decided or bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers
from derand._core.threads import run_blocks
from derand.certificates.bounds.packing import pose_problem
from derand.certificates.bounds.shared_edges import SharedEdges
from derand.certificates.rules.base import NO_PROOF, Bounds, Query
from derand.model import AdditiveEnsemble, Axis
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.threat import Threat

Compare = Callable[[AdditiveEnsemble, IntArray, IntArray], IntArray]
"""Which class wins a comparison, 0 for the lower and 1 for the higher one, for some rows with the rival of each."""
Weigh = Callable[[AdditiveEnsemble, IntArray], FloatArray]
"""Logarithm of the odds with which a noisy copy of some of the rows is won by the higher class of a comparison."""
LARGEST_ODDS = 1e6
"""What stands for infinite odds, so that all numbers are finite; others are at most some 750 per term."""

_BLOCK_NUMBERS = 2**21
_NEARLY = 1.2
"""Others whose preliminary radius is at most so many times the least one are asked about at the same time."""

_lock = Lock()


class _PairModels(NamedTuple):
    """Those of one model, by their classes from low to high, and what they share."""

    made: dict[tuple[int, int], AdditiveEnsemble]
    common: SharedEdges | None


_pair_models: WeakKeyDictionary[AdditiveEnsemble, _PairModels] = WeakKeyDictionary()


def build_pair(model: AdditiveEnsemble, low: int, high: int) -> AdditiveEnsemble:
    """The comparison of two classes, made when first asked for and kept as long as the model lives."""
    with _lock:
        known = _pair_models.get(model)
        if known is None:
            # of two classes there is nothing to share: they are certified as a model of their difference is
            common = SharedEdges(model.terms) if model.n_classes > 2 else None
            known = _pair_models[model] = _PairModels({}, common)
        comparison = known.made.get((low, high))
    if comparison is None:
        comparison = model.duel(low, high)
        pose_problem(comparison, known.common)
        with _lock:
            comparison = known.made.setdefault((low, high), comparison)
    return comparison


def expect_classes(model: AdditiveEnsemble, rows: Numbers, noise: Noise | None) -> FloatArray:
    """Expected score of each class, offsets included, in grid units: to nearest, nothing is proven by it.

    The model has the decision Argmax. Without noise these are the scores themselves, (n_rows, n_classes).
    """
    total = np.tile(np.array(model.offsets, dtype=np.float64), (rows.shape[0], 1))
    if noise is None:
        return np.asarray(total + model.score(rows))
    size = max(1, _BLOCK_NUMBERS // max(model.n_cells, 1))
    for start in range(0, rows.shape[0], size):
        part = slice(start, start + size)
        _add_terms(model, np.asarray(rows[part], dtype=np.float64), noise, total[part])
    return total


def _add_terms(model: AdditiveEnsemble, rows: FloatArray, noise: Noise, total: FloatArray) -> None:
    axes = [axis for term in model.terms for axis in term.axes]
    probabilities = iter(_compute_probabilities(axes, rows, noise) if axes else ())
    for term in sorted(model.terms, key=lambda one: bool(one.axes)):  # whole numbers first: nothing is rounded
        total += term.expect(rows, [next(probabilities) for _ in term.axes])


def _compute_probabilities(axes: Sequence[Axis], rows: FloatArray, noise: Noise) -> list[FloatArray]:
    """Probabilities of the cells of each axis; any number stands for missing ones."""
    counts = [axis.edges.size for axis in axes]
    features = np.repeat(np.array([axis.feature for axis in axes], dtype=np.int64), counts)
    numbers = np.repeat(np.arange(len(axes), dtype=np.int64), counts)
    edges = np.concatenate([axis.edges for axis in axes])
    table = noise.cell_table(np.where(np.isnan(rows), 0.0, rows)[:, features], edges, features, numbers, len(axes))
    return np.split(table, np.cumsum([count + 1 for count in counts])[:-1], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Tournament:
    """Rows of a model of several classes, and who meets whom.

    Attributes
    ----------
    model : AdditiveEnsemble
    expected : array of shape (n_rows, n_classes)
        Expected scores: who is tried first. Who wins does not depend on it.
    n_threads : int
        So many comparisons at the same time, each by one thread: each has tables of its own to make.
    """

    model: AdditiveEnsemble
    expected: FloatArray
    n_threads: int = 1

    def meet(self, candidates: IntArray, at: IntArray, compare: Compare) -> BoolArray:
        """Which rivals the candidate of each of some rows beats, (n_rows, n_classes); true for the candidate itself."""
        n_classes = self.model.n_classes
        beats = np.ones((at.size, n_classes), dtype=bool)
        meeting = {(min(one, two), max(one, two)) for one in np.unique(candidates).tolist() for two in range(n_classes)}
        pairs = sorted(pair for pair in meeting if pair[0] < pair[1])

        def meet_pair(block: slice) -> None:
            low, high = pairs[block.start]
            part = np.flatnonzero((candidates == low) | (candidates == high))
            if part.size:
                is_high = candidates[part] == high
                rivals = np.asarray(np.where(is_high, low, high), dtype=np.int64)
                beats[part, rivals] = compare(build_pair(self.model, low, high), at[part], rivals) == is_high

        run_blocks(meet_pair, len(pairs), 1, self.n_threads)
        return beats

    def search_winners(self, compare: Compare) -> IntArray:
        """The class of each row that wins all of its comparisons, -1 where there is none.

        A class that lost, and all whom it has beaten, cannot be that class: few are tried.
        """
        n_rows, n_classes = self.expected.shape
        winners, alive = np.full(n_rows, -1, dtype=np.int64), np.ones((n_rows, n_classes), dtype=bool)
        at = np.arange(n_rows)
        while at.size:
            candidates = np.where(alive[at], self.expected[at], -np.inf).argmax(axis=1)
            beats = self.meet(candidates, at, compare)
            won = beats.all(axis=1)
            winners[at[won]] = candidates[won]
            at, candidates, beats = at[~won], candidates[~won], beats[~won]
            alive[at] &= ~beats
            alive[at, candidates] = False
            at = at[alive[at].any(axis=1)]
        return winners

    def compute_worst_odds(self, weigh: Weigh, at: IntArray) -> FloatArray:
        """Logarithm of the odds of each class in its worst comparison, for some rows, (n_rows, n_classes)."""
        worst = np.full((at.size, self.model.n_classes), LARGEST_ODDS)
        for low, high in self.model.pairs:
            odds = weigh(build_pair(self.model, low, high), at)
            worst[:, high] = np.minimum(worst[:, high], odds)
            worst[:, low] = np.minimum(worst[:, low], -odds)
        return worst


def label_classes(model: AdditiveEnsemble, rows: NDArray[np.generic], query: Query) -> IntArray:
    """Label of each row of a model of several classes."""
    tournament = Tournament(model, expect_classes(model, rows, query.noise), query.n_threads)
    alone = replace(query, n_threads=1)

    def compare(comparison: AdditiveEnsemble, at: IntArray, rivals: IntArray) -> IntArray:
        return query.rule.label(pose_problem(comparison), rows[at], alone)

    return _settle(tournament, tournament.search_winners(compare), rows, query)


def weigh_classes(model: AdditiveEnsemble, rows: NDArray[np.generic], query: Query) -> FloatArray:
    """Logarithm of the odds of each class in its worst comparison by a rule that counts copies, (n_rows, n_classes).

    The label has the largest: of a class that wins all of its comparisons they are above 0, of all others below.
    """
    tournament = Tournament(model, np.zeros((rows.shape[0], model.n_classes)))
    return tournament.compute_worst_odds(_weigh_by_distribution(rows, query), np.arange(rows.shape[0]))


def _weigh_by_distribution(rows: NDArray[np.generic], query: Query) -> Weigh:
    def weigh(comparison: AdditiveEnsemble, at: IntArray) -> FloatArray:
        plain = Perturbation.of(Threat().resolve(query.noise), comparison.n_features, comparison.numerical_features)
        by_mass = replace(query, perturbation=plain, proof="paper")
        (bounds,) = query.rule.bound(pose_problem(comparison), rows[at], by_mass)
        with np.errstate(divide="ignore"):
            odds = np.log1p(-np.minimum(np.exp(bounds.log_failure), 0.5)) - bounds.log_failure
        odds = np.clip(odds, 0.0, LARGEST_ODDS)
        return np.where(bounds.label == 1, odds, -odds)

    return weigh


def _settle(tournament: Tournament, winners: IntArray, rows: NDArray[np.generic], query: Query) -> IntArray:
    """The winners, and where there is none the class that is beaten least."""
    at = np.flatnonzero(winners < 0)
    if not at.size:
        return winners
    settled = winners.copy()
    if query.rule.counts_copies:
        settled[at] = tournament.compute_worst_odds(_weigh_by_distribution(rows, query), at).argmax(axis=1)
    else:  # means are ordered: nobody wins only where rounding hides the order
        settled[at] = tournament.expected[at].argmax(axis=1)
    return settled


class _Ledger:
    """What is proven of each row against each rival: arrays of shape (n_budgets, n_rows, n_classes)."""

    def __init__(self, n_budgets: int, n_rows: int, n_classes: int) -> None:
        shape = (n_budgets, n_rows, n_classes)
        self.log_failure, self.radius = np.full(shape, -np.inf), np.full(shape, np.inf)
        self.proof, self.path = np.full(shape, NO_PROOF, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        self.has_path = False
        self.is_preliminary = np.zeros((n_rows, n_classes), dtype=bool)

    def write(self, rows: IntArray, rivals: IntArray, found: Sequence[Bounds]) -> None:
        self.is_preliminary[rows, rivals] = False
        for k, bounds in enumerate(found):
            if bounds.is_preliminary is not None:
                self.is_preliminary[rows, rivals] |= bounds.is_preliminary
            self.log_failure[k, rows, rivals] = bounds.log_failure
            self.radius[k, rows, rivals] = bounds.radius
            self.proof[k, rows, rivals] = bounds.proof
            if bounds.path is not None:
                self.path[k, rows, rivals], self.has_path = bounds.path, True

    def close(self, labels: IntArray) -> None:
        """Mask the class itself."""
        rows = np.arange(labels.size)
        self.radius[:, rows, labels], self.log_failure[:, rows, labels] = np.inf, -np.inf
        self.is_preliminary[rows, labels] = False

    def list_open(self, at: IntArray) -> tuple[IntArray, IntArray]:
        """Comparisons that could decide some rows and have preliminary bounds alone: their rows, and the rival of each.

        One could if its radius may be as small as the smallest that is known, or its failing mass larger than the
        largest: preliminary radii are no larger, and masses no smaller, than what is proven in the end. Those that lie
        nearly as near as the nearest go with it, because their tables are at hand.
        """
        is_preliminary = self.is_preliminary[at]
        radius, mass = self.radius[:, at], np.nan_to_num(self.log_failure[:, at], nan=-np.inf)
        known = (
            np.where(is_preliminary, np.inf, radius).min(axis=2),
            np.where(is_preliminary, -np.inf, mass).max(axis=2),
        )
        near, likely = np.where(is_preliminary, radius, np.inf), np.where(is_preliminary, mass, -np.inf)
        farthest = np.minimum(known[0], _NEARLY * near.min(axis=2))  # (n_budgets, n_rows)
        decides = (near <= farthest[:, :, None]) & np.isfinite(near)
        decides |= (likely == likely.max(axis=2, keepdims=True)) & (likely > known[1][:, :, None])
        rows, rivals = np.nonzero(decides.any(axis=0))
        return at[rows], rivals

    def strike(self, rows: IntArray, beats: BoolArray) -> None:
        """Nothing is proven of rows without a winner, whose labels lose to some rivals."""
        self.radius[:, rows], self.proof[:, rows] = np.where(beats, np.inf, 0.0), NO_PROOF
        known = ~np.isnan(self.log_failure[:, rows])
        self.log_failure[:, rows] = np.where(known, 0.0, np.nan)  # a probability of 1

    def sum_up(self, budget: int, labels: IntArray) -> Bounds:
        """The worst comparison of each row."""
        rows = np.arange(labels.size)
        is_rival = np.arange(self.radius.shape[2]) != labels[:, None]
        smallest = np.where(is_rival, self.radius[budget], np.inf).min(axis=1)
        likeness = np.maximum(np.nan_to_num(self.log_failure[budget], nan=-1e300), -1e300)
        nearest = is_rival & (self.radius[budget] == smallest[:, None])
        runner_up = np.where(nearest, likeness, -np.inf).argmax(axis=1)  # of several the likeliest one
        likely = np.where(is_rival, likeness, -np.inf).argmax(axis=1)
        return Bounds(
            labels,
            self.log_failure[budget, rows, likely],
            self.radius[budget, rows, runner_up],
            self.proof[budget, rows, runner_up],
            self.path[budget, rows, likely] if self.has_path else None,
            runner_up=runner_up,
        )


def bound_classes(model: AdditiveEnsemble, rows: NDArray[np.generic], query: Query) -> list[Bounds]:
    """What a rule proves about rows of a model of several classes: the worst of their comparisons.

    First all comparisons get preliminary bounds, then all proofs are asked of those that could decide: whose bound is
    not above what is known of the others. The result is that of all proofs of all comparisons. Rows that the same class
    leads go together, because its comparisons share tables, for which there is room.
    """
    expected = expect_classes(model, rows, query.noise)
    leaders = expected.argmax(axis=1)
    indices = [np.flatnonzero(leaders == leader) for leader in np.unique(leaders)] or [np.arange(0)]
    parts = [_bound_group(Tournament(model, expected[at], query.n_threads), rows[at], query) for at in indices]
    return [Bounds.merge(indices, part) for part in zip(*parts, strict=True)]


def _bound_group(tournament: Tournament, rows: NDArray[np.generic], query: Query) -> list[Bounds]:
    query, n_budgets = replace(query, n_threads=1), len(query.perturbation.budgets)
    ledger = _Ledger(n_budgets, rows.shape[0], tournament.model.n_classes)

    def compare_by(query: Query) -> Compare:
        def compare(comparison: AdditiveEnsemble, at: IntArray, rivals: IntArray) -> IntArray:
            found = query.rule.bound(pose_problem(comparison), rows[at], query)
            ledger.write(at, rivals, found)
            return found[0].label

        return compare

    preliminary = compare_by(replace(query, preliminary=True))
    winners = tournament.search_winners(preliminary)
    labels = _settle(tournament, winners, rows, query)
    lost = np.flatnonzero(winners < 0)
    beats = tournament.meet(labels[lost], lost, preliminary)
    ledger.close(labels)
    _improve(tournament, winners, ledger, compare_by(query))
    ledger.strike(lost, beats)
    return [ledger.sum_up(k, labels) for k in range(n_budgets)]


def _improve(tournament: Tournament, winners: IntArray, ledger: _Ledger, compare: Compare) -> None:
    """Ask for all proofs of comparisons, the nearest rivals first, as long as one could decide a row."""
    at = np.flatnonzero(winners >= 0)
    while at.size:
        rows, rivals = ledger.list_open(at)
        _compare_pairs(tournament, winners[rows], rivals, rows, compare)
        at = np.unique(rows)


def _compare_pairs(
    tournament: Tournament, candidates: IntArray, rivals: IntArray, at: IntArray, compare: Compare
) -> None:
    """One comparison of each of some rows, those of the same two classes together."""
    low, high = np.minimum(candidates, rivals), np.maximum(candidates, rivals)
    pairs = np.unique(np.stack([low, high], axis=1), axis=0).tolist()

    def compare_pair(block: slice) -> None:
        first, second = pairs[block.start]
        part = np.flatnonzero((low == first) & (high == second))
        compare(build_pair(tournament.model, first, second), at[part], rivals[part])

    run_blocks(compare_pair, len(pairs), 1, tournament.n_threads)
