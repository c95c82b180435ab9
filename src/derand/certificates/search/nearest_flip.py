"""The search for near flips from a block of rows: which ways are walked, and how what they find is brought nearer.

Owns the order of the search: the worst case by scores first, then by what the failing mass at the flip makes of them
(`cell_weights`), over wide positions and positions around the flip; single columns; the ways to rows of another label;
at last single columns are put back. Must not know threats or how a rule proves what it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.packing import PackedTerms
from derand.certificates.rules.mean import expect_scores
from derand.certificates.search.cell_weights import Member, compute_margins, list_members, orient_scores, weigh_cells
from derand.certificates.search.feasible_set import FeasibleSet
from derand.certificates.search.positions import (
    Landscape,
    Turn,
    list_beside,
    list_local,
    list_wide,
    locate_turn,
    pick,
)
from derand.kernels.norms import measure_norms

_ROUNDS = 4
"""Of following the weights of cells at the flip that was found."""
_ROUNDS_OF_VOTES = 6
_WIDTHS = (0.5, 0.1, 0.02)
"""How near to a tie a member of a vote must be to count fully, round after round."""
_FAINT = 0.03
"""What all other members count."""
_ENOUGH = 1e-3
"""Rows whose flip came nearer by less than this share are left alone."""
_SINGLE_COLUMNS = 4
_SINGLE_COLUMNS_OF_VOTES = 8
_RESTARTS_OF_VOTES = 2
_SCANNED = 8
"""Points that are looked at on a straight way, for votes: these may flip and flip back."""
_PUT_BACK = 12
_STRETCHES = (0.98, 0.995, 0.999, 1.0, 1.001, 1.005, 1.02, 1.1, 1.5)
"""Of what a coarser surrogate found: among these the model itself flips, nearly always."""
_ALONE = (3, 16)
"""Members of a vote that are pushed alone; in norm 0, where that costs little, more of them."""
_HALVINGS = 6
_HALVED = 2
"""Of all completions of a row, so many are brought nearer."""
_MUCH = 1.5
"""Points that are farther than the best one by this factor are not worth halving."""


class _Pairs(NamedTuple):
    """Points that do not flip, and points that do, of the rows `at`."""

    at: IntArray
    near: FloatArray
    far: FloatArray


def _join(pairs: Sequence[_Pairs]) -> _Pairs:
    return _Pairs(*(np.concatenate([getattr(one, name) for one in pairs]) for name in _Pairs._fields))


class Search:
    """The nearest flips that were found so far from a block of rows.

    Attributes
    ----------
    points : array of shape (n_rows, n_features)
        The rows themselves where nothing was found.
    distances : array of shape (n_rows,)
        Infinite where nothing was found.
    """

    def __init__(self, feasible: FeasibleSet) -> None:
        self.feasible = feasible
        self.points = feasible.starts.copy()
        self.distances: FloatArray = np.full(len(feasible), np.inf)
        self._members = [one for one in list_members(feasible.target.model) if one.problem.terms.n_terms]
        self._is_vote = len(self._members) > 1
        self._is_mass = feasible.target.rule == "vote" and feasible.noise is not None
        self._wide: Landscape | None = None

    def run(self, others: FloatArray, rngs: Sequence[np.random.Generator]) -> None:
        """Search in all ways.

        `others` are rows to walk towards, (n_rows, n_others, n_features).
        """
        everyone = np.arange(len(self.feasible))
        self.offer(self.feasible.starts, everyone)
        if not self.feasible.features.size or not self._members:
            return
        self._wide = self._survey(self.feasible, list_wide(self.feasible, self._terms))
        for member_weights in self._list_first_weights():
            self._follow(self._wide, member_weights, everyone)
        self._move_single_columns()
        for k in range(others.shape[1]):
            self._walk_to(others[:, k])
        self._follow_rounds()
        self._restart(rngs)
        self._put_back_columns()

    def offer(self, points: FloatArray, at: IntArray) -> None:
        """Keep those of some points that flip and are nearer than what was found before."""
        distances = self.feasible.measure(points, at)
        nearer = np.flatnonzero(distances < self.distances[at])
        chosen = nearer[self.feasible.check_flips(points[nearer], at[nearer])]
        for k in chosen.tolist():  # several points may belong to one row
            if distances[k] < self.distances[at[k]]:
                self.points[at[k]], self.distances[at[k]] = points[k], distances[k]

    @property
    def _terms(self) -> list[PackedTerms]:
        return [member.problem.terms for member in self._members]

    def _survey(self, feasible: FeasibleSet, positions: FloatArray) -> Landscape:
        return Landscape(feasible, self._terms, positions)

    def _signs(self, member: Member, at: IntArray) -> FloatArray:
        """1 where a member's sum must stay high for the row's answer to hold, -1 where it must stay low."""
        return np.where(self.feasible.home[at] == 1, 1.0, -1.0) * (1.0 if member.weight >= 0 else -1.0)

    def _list_first_weights(self) -> list[list[FloatArray]]:
        """Weights of cells by their scores: of the heaviest members alone, and of all together by their weights."""
        everyone = np.arange(len(self.feasible))
        own = [orient_scores(one.problem.terms, self._signs(one, everyone)) for one in self._members]
        if len(own) == 1:
            return [own]
        most = _ALONE[1] if self.feasible.norm == 0 else _ALONE[0]
        heaviest = np.argsort([-abs(one.weight) for one in self._members], kind="stable")[:most]
        alone = [[weights if k == at else 0 * weights for k, weights in enumerate(own)] for at in heaviest.tolist()]
        return [*alone, [abs(one.weight) * weights for one, weights in zip(self._members, own, strict=True)]]

    def _weigh(self, at: IntArray, width: float) -> list[FloatArray]:
        """Weights of cells at the flips that were found.

        In a vote of several members those count most that are near a tie there, within some width.
        """
        noise, found = self.feasible.noise, []
        for one in self._members:
            signs, points = self._signs(one, at), self.points[at]
            if self._is_mass and noise is not None:
                weights, margin = weigh_cells(one.problem, points, noise, signs)
            else:
                weights = orient_scores(one.problem.terms, signs)
                margin = compute_margins(one.problem, points, noise, signs) if self._is_vote else np.zeros(at.size)
            if self._is_vote:
                weights *= abs(one.weight) * (_FAINT + np.exp(-((margin / width) ** 2)))[:, None]
            found.append(weights)
        return found

    def _follow(self, landscape: Landscape, member_weights: list[FloatArray], at: IntArray) -> None:
        """Walk through the worst cases of a landscape of the rows `at`, and bring what flips nearer."""
        part = self.feasible if at.size == len(self.feasible) else self.feasible.take(at)
        decreases = landscape.compute_decreases(member_weights)
        turn = locate_turn(part, landscape.walk(decreases))
        rows = at[turn.at]
        self.offer(turn.far, rows)
        if self.feasible.norm in (None, 0) or not rows.size:
            return
        starts = self.feasible.starts[rows]
        pairs = [_Pairs(rows, turn.near, turn.far), _Pairs(rows, starts, turn.far)]
        pairs += [_Pairs(rows, *self._split(turn.near, turn.far, rows, largest)) for largest in (False, True)]
        self._bring_nearer(_join(pairs))
        if self.feasible.norm in (1, 2):
            self._complete(landscape, decreases, member_weights, at, turn)

    def _bring_nearer(self, pairs: _Pairs) -> None:
        """Halve between points that do not flip and points that do; without noise nothing lies between edges."""
        rows, near, far = pairs
        self.offer(far, rows)
        if self.feasible.noise is not None and rows.size:
            self.offer(self.feasible.halve(near, far, rows), rows)

    def _complete(
        self, landscape: Landscape, decreases: FloatArray, member_weights: list[FloatArray], at: IntArray, turn: Turn
    ) -> None:
        """From several points before the turn, move the one column that is the cheapest to flip."""
        shares, pairs = np.zeros(at.size), list[_Pairs]()
        shares[turn.at] = turn.shares
        for points in landscape.complete(decreases, self._compute_needed(member_weights, at), shares):
            near, far = (self.feasible.keep_within(one, at) for one in points)
            chosen = np.flatnonzero(self.feasible.measure(far, at) < _MUCH * self.distances[at])
            chosen = chosen[self.feasible.check_flips(far[chosen], at[chosen])]
            pairs.append(_Pairs(at[chosen], near[chosen], far[chosen]))
        every = _join(pairs)
        best = _choose_nearest(every.at, self.feasible.measure(every.far, every.at), _HALVED)
        self._bring_nearer(_Pairs(every.at[best], every.near[best], every.far[best]))

    def _compute_needed(self, member_weights: list[FloatArray], at: IntArray) -> FloatArray:
        """Required decrease: by scores what separates them from the threshold, else as much as at the flip."""
        feasible = self.feasible.take(at)
        if self.feasible.target.rule == "mean" and len(self._members) == 1:
            (member,) = self._members
            terms, threshold = member.problem.terms, member.problem.threshold
            score = expect_scores(terms, feasible.starts, feasible.noise) + terms.fixed_scores(feasible.starts)
            short = np.where(feasible.home == 1, score - threshold, threshold - score + (feasible.noise is None))
            return np.asarray(short / (max(terms.largest, 1) * terms.step)) * (1 - 1e-12)
        beside = self._survey(feasible, list_beside(feasible, self.points[at])).compute_decreases(member_weights)
        return np.asarray(beside[:, 1].sum(axis=1)) * (1 + 1e-9)

    @np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
    def _follow_slopes(self, member_weights: list[FloatArray], at: IntArray) -> None:
        """Walk straight along the gradient at the flips: towards the nearest point where they are flat."""
        feasible, norm = self.feasible.take(at), self.feasible.norm
        if norm not in (2, np.inf) or feasible.noise is None:
            return
        beside = self._survey(feasible, list_beside(feasible, self.points[at])).compute_decreases(member_weights)
        slopes: FloatArray = np.zeros(feasible.starts.shape)
        slopes[:, feasible.features] = beside[:, 3] - beside[:, 2]
        slopes /= feasible.noise.scales(np.arange(slopes.shape[1])) / feasible.units
        moves = slopes if norm == 2 else np.sign(slopes)
        sizes = measure_norms(moves, norm)
        chosen = np.flatnonzero(sizes > 0)
        rows = at[chosen]
        moves = moves[chosen] / sizes[chosen, None] * self.distances[rows][:, None] * self.feasible.units
        ends = self.feasible.keep_within(self.feasible.starts[rows] + (1 - _ENOUGH / 10) * moves, rows)
        flips = np.flatnonzero(self.feasible.check_flips(ends, rows))
        self._bring_nearer(_Pairs(rows[flips], self.feasible.starts[rows[flips]], ends[flips]))

    @np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
    def _split(
        self, near: FloatArray, far: FloatArray, at: IntArray, largest_first: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Points before and after the one column whose move flips, where columns move one by one from near to far."""
        sizes = np.abs(np.nan_to_num(far - near)) / self.feasible.units
        order = np.argsort(-sizes if largest_first else np.where(sizes > 0, sizes, np.inf), axis=1, kind="stable")
        ranks = np.argsort(order, axis=1, kind="stable")
        low, high = np.zeros(at.size), (sizes > 0).sum(axis=1).astype(np.float64)
        before, after = near.copy(), far.copy()
        for _ in range(int(np.ceil(np.log2(max(float(high.max(initial=1.0)), 2.0)))) + 1):
            middle = np.floor(0.5 * (low + high))
            open_ = (middle > low)[:, None]
            points = np.where(ranks < middle[:, None], far, near)
            flips = self.feasible.check_flips(points, at)[:, None]
            after, before = np.where(open_ & flips, points, after), np.where(open_ & ~flips, points, before)
            low = np.where(open_[:, 0] & ~flips[:, 0], middle, low)
            high = np.where(open_[:, 0] & flips[:, 0], middle, high)
        return before, after

    def _move_single_columns(self) -> None:
        """Move each of the few columns that can do most, alone."""
        if self.feasible.norm in (None, 0):
            return
        assert self._wide is not None
        wide, decreases = self._wide, self._wide.compute_decreases(self._list_first_weights()[-1])
        count = _SINGLE_COLUMNS_OF_VOTES if self._is_vote else _SINGLE_COLUMNS
        deepest = np.argsort(-decreases.max(axis=1), axis=1, kind="stable")[:, :count]
        ends = [pick(wide.positions, decreases.argmax(axis=1))]
        if self._is_vote:  # members want different things
            ends = [wide.positions.min(axis=1), wide.positions.max(axis=1)]
        for k in range(deepest.shape[1]):
            chosen = np.arange(decreases.shape[2]) == deepest[:, k, None]
            for end in ends:
                self._walk_to(wide.put_points(np.where(chosen, end, wide.positions[:, 0])))

    def _walk_to(self, ends: FloatArray) -> None:
        """Walk straight from each row to a point, up to the first flip that is seen."""
        everyone, starts = np.arange(len(self.feasible)), self.feasible.starts
        ways = np.where(np.isnan(ends) | np.isnan(starts), 0.0, ends - starts)
        near, far = starts.copy(), starts.copy()
        flips = np.zeros(len(self.feasible), dtype=bool)
        count = _SCANNED if self._is_vote else 1
        for k in range(count):
            points = self.feasible.keep_within(starts + (k + 1) / count * ways, everyone)
            now = ~flips & self.feasible.check_flips(points, everyone)
            far[now], flips = points[now], flips | now
            near[~flips] = points[~flips]
        at = np.flatnonzero(flips)
        self._bring_nearer(_Pairs(at, near[at], far[at]))

    def _follow_rounds(self) -> None:
        """Follow the weights of cells at the flips, over wide positions and then over those around the flips.

        By the mean weights stay the same, and only positions become finer.
        """
        is_fixed = not self._is_mass and not self._is_vote  # the weights of cells
        if is_fixed and (self.feasible.noise is None or self.feasible.norm in (None, 0)):
            return
        at = np.flatnonzero((self.distances > 0) & (np.isfinite(self.distances) | (self.feasible.norm is None)))
        for turn in range(_ROUNDS_OF_VOTES if self._is_vote else _ROUNDS):
            if not at.size:
                return
            before = self.distances[at]
            part = self.feasible if at.size == len(self.feasible) else self.feasible.take(at)
            is_wide = not is_fixed and (turn % 2 == 0 or self.feasible.norm in (None, 0))
            positions = list_wide(part, self._terms) if is_wide else list_local(part, self.points[at])
            member_weights = self._weigh(at, _WIDTHS[turn // 2 % len(_WIDTHS)])
            self._follow_slopes(member_weights, at)
            self._follow(self._survey(part, positions), member_weights, at)
            if turn and not self._is_vote:
                with np.errstate(invalid="ignore"):
                    at = at[self.distances[at] < (1 - _ENOUGH) * before]

    def _restart(self, rngs: Sequence[np.random.Generator]) -> None:
        """Once more with weights that are off by chance, which leads around what the first way ran into."""
        if self.feasible.noise is not None and self.feasible.target.rule == "mean" and len(self._members) == 1:
            return  # the worst case of the mean is known
        assert self._wide is not None
        everyone = np.arange(len(self.feasible))
        for _ in range(_RESTARTS_OF_VOTES if self._is_vote else 1):
            changed = []
            for weights, terms in zip(self._list_first_weights()[-1], self._terms, strict=True):
                drawn = np.stack([rng.standard_normal(terms.n_terms) + rng.standard_normal() for rng in rngs])
                changed.append(weights * np.repeat(np.exp(0.5 * drawn), np.diff(terms.starts), axis=1))
            self._follow(self._wide, changed, everyone)

    def _put_back_columns(self) -> None:
        """Put single columns back, the farthest first, as far as the flip stays; then as many small moves as may."""
        at = np.flatnonzero(np.isfinite(self.distances) & (self.distances > 0))
        if not at.size or self.feasible.norm is None:
            return
        starts = self.feasible.starts[at]
        sizes = np.abs(np.nan_to_num(self.points[at] - starts)) / self.feasible.units
        order = np.argsort(-sizes, axis=1, kind="stable")
        rows = np.arange(at.size)
        for k in range(min(_PUT_BACK, order.shape[1])):
            points = self.points[at]
            points[rows, order[:, k]] = starts[rows, order[:, k]]
            self.offer(points, at)
            if self._is_vote and self.feasible.noise is not None and self.feasible.norm:
                self.offer(self.feasible.halve(points, self.points[at], at, _HALVINGS), at)
        _, kept = self._split(starts, self.points[at], at, largest_first=True)
        self.offer(kept, at)


def _choose_nearest(rows: IntArray, distances: FloatArray, count: int) -> IntArray:
    """The indices of the nearest points of each row, so many at most."""
    order = np.lexsort((distances, rows))
    ranks = np.arange(order.size) - np.searchsorted(rows[order], rows[order])
    return np.asarray(order[ranks < count])


def confirm(search: Search, points: FloatArray) -> None:
    """Offer a search what was found by a model that is nearly its own, moved as far as its own flips there.

    Where a point does not flip it is moved on along its way, little by little; then back as near as may be.
    """
    feasible, everyone = search.feasible, np.arange(len(search.feasible))
    if feasible.norm in (None, 0):
        search.offer(points, everyone)
        return
    search.offer(feasible.starts, everyone)
    moves = np.where(feasible.moving, np.nan_to_num(points - feasible.starts), 0.0)
    open_, near = np.flatnonzero((moves != 0).any(axis=1) & (search.distances > 0)), feasible.starts.copy()
    for factor in _STRETCHES:
        ends = feasible.keep_within(feasible.starts[open_] + factor * moves[open_], open_)
        flips = feasible.check_flips(ends, open_)
        at = open_[flips]
        search.offer(ends[flips], at)
        if factor > _STRETCHES[0] and feasible.noise is not None:
            search.offer(feasible.halve(near[at], ends[flips], at, _HALVINGS), at)
        near[open_[~flips]], open_ = ends[~flips], open_[~flips]
