"""Witnesses: changes that flip a row, found where it is worst, and made smaller.

Owns the worst change within a box, term by term; what is put back of a change (columns that the flip does not need,
numbers nearer to their own values and with fewer digits); and the checks: whatever comes out flips by the labels of
`predict` and stays within the perturbation. Must not know how a rule proves what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.bounds.pairwise import build_pair
from derand.certificates.bounds.tree_labels import differs_surely
from derand.certificates.kinds import Linear, Pairwise, kind_of, stands_for_another
from derand.certificates.search.feasible_set import Target, are_same
from derand.certificates.search.linear import attack_linear
from derand.certificates.search.worst_positions import change_missing, expect_term, move_to_worst
from derand.model import AdditiveEnsemble
from derand.noise import Noise

Flips = Callable[[FloatArray], BoolArray]
"""Which of some changed rows, (n, n_features), get another label and are allowed."""
_FEW = 8
"""Columns that are put back one by one; of more, as many as possible are put back together first."""
_MOST = 32
"""Columns left over that are still tried one by one."""
_BLOCK = 2**12
_PARTS = 16
_PASSES = 3
_DIGITS_OF_A_MOVE = (2, 3, 5, 8)


def search_witnesses(target: Target, rows: FloatArray, labels: IntArray) -> tuple[BoolArray, FloatArray]:
    """Which rows have a change within the limits that flips their label, and the changed rows.

    The ball of the perturbation is not looked at. Rows that do not flip are as they were.
    """
    model, perturbation = target.model, target.perturbation
    kind = kind_of(model)
    if isinstance(kind, Linear):
        changed, distance = attack_linear(kind.ensemble, rows, labels, perturbation)
        return np.isfinite(distance), changed
    if isinstance(kind, Pairwise):
        return _search_pairs(kind.ensemble, target, rows, labels)
    signs = np.where(labels == 1, 1.0, -1.0)  # what is worst is lowest, after this
    may_miss = set(model.missing_features) - perturbation.frozen
    flips, witnesses = np.zeros(rows.shape[0], dtype=bool), np.array(rows, dtype=np.float64)
    for member in model.members:
        moved = move_to_worst(member, rows, target.noise, perturbation, signs)
        change_missing(moved, target.noise, member.terms, may_miss, perturbation, signs)
        found = ~flips & (target.label(moved) != labels)
        witnesses[found], flips = moved[found], flips | found
    return flips, witnesses


def search_seen_first(target: Target, rows: FloatArray, labels: IntArray) -> tuple[BoolArray, FloatArray]:
    """`search_witnesses`, by categories that training saw wherever that is found to flip, else by any."""
    perturbation = target.perturbation
    if not (perturbation.unseen and perturbation.l0 and target.model.categorical_features):
        return search_witnesses(target, rows, labels)
    seen = replace(target, perturbation=replace(perturbation, unseen=False))
    flips, witnesses = search_witnesses(seen, rows, labels)
    left = np.flatnonzero(~flips)
    if left.size:
        flips[left], witnesses[left] = search_witnesses(target, rows[left], labels[left])
    return flips, witnesses


def _search_pairs(
    ensemble: AdditiveEnsemble, target: Target, rows: FloatArray, labels: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Of several classes: what flips a comparison, where it flips the label as well."""
    flips, witnesses = np.zeros(rows.shape[0], dtype=bool), np.array(rows, dtype=np.float64)
    for low, high in ensemble.pairs:
        at = np.flatnonzero(~flips & ((labels == low) | (labels == high)))
        if not at.size:
            continue
        pair = replace(target, model=build_pair(ensemble, low, high))
        moved, changed = search_witnesses(pair, rows[at], (labels[at] == high).astype(np.int64))
        at, changed = at[moved], changed[moved]
        found = target.label(changed) != labels[at] if at.size else np.empty(0, dtype=bool)
        flips[at[found]], witnesses[at[found]] = True, changed[found]
    return flips, witnesses


@dataclass(frozen=True, slots=True, eq=False)
class Verifier(Target):
    """Rows with their labels, and what decides whether a changed row flips: the library alone, where it is given."""

    rows: FloatArray
    labels: IntArray
    with_error: bool = False
    """Whether a model that stands for another one must flip by more than its `score_error`."""

    def flips(self, points: FloatArray, at: IntArray) -> BoolArray:
        """Whether each point has another label than the row that it belongs to, linked numbers as they follow."""
        if not at.size:
            return np.zeros(0, dtype=bool)
        if self.perturbation.links:
            points = self.perturbation.follow(self.rows[at], points)
            overflows = np.any(np.isinf(points), axis=1)[:, None]
            points = np.where(overflows, self.rows[at], points)  # these do not flip
        if self.library is not None:
            after = self.library(points)
            return np.asarray((after >= 0) & (after != self.labels[at]))
        if self.with_error and self.model.has_trees:
            return differs_surely(self.model.members[0], points, self.labels[at])
        other = self.label(points, 1) != self.labels[at]
        return np.asarray(other & self._is_sure(points, at))

    def allows(self, points: FloatArray, at: IntArray) -> BoolArray:
        """Whether the numbers of each point lie in the box of its row, by whole steps where there are some."""
        parents = {one for link in self.perturbation.links for one in (link.left, link.right)}
        own, numbers = self.rows[at], sorted(parents.union(self.model.numerical_features))
        low, high = self.perturbation.box(own)
        inside = (points >= low) & (points <= high) | (points == own) | np.isnan(points) | np.isnan(own)
        for column in np.flatnonzero(self.perturbation.steps).tolist():
            step = self.perturbation.steps[column]
            counts = np.rint((points[:, column] - own[:, column]) / step)
            inside[:, column] &= (own[:, column] + counts * step == points[:, column]) | np.isnan(counts)
        return np.asarray(inside[:, numbers].all(axis=1))

    def _is_sure(self, points: FloatArray, at: IntArray) -> BoolArray | bool:
        """Whether a model that stands for another one is ahead by enough for both to flip."""
        if not self.with_error or not any(map(stands_for_another, self.model.members)):
            return True
        (member, *others) = [_subtract_outputs(one) for one in self.model.members]
        if others or kind_of(member).effective_noise(self.noise) is not None:
            return False
        scores, errors = member.score(points), member.bound_errors(points)
        home = self.labels[at]
        if member.threshold is not None:
            ahead = scores - member.threshold
            return np.asarray(np.where(home == 0, ahead > errors, -ahead >= errors))
        scores, every = scores + np.array(member.offsets), np.arange(at.size)
        highest, lowest = (scores + errors)[every, home][:, None], scores - errors
        is_lower = np.arange(lowest.shape[1]) < home[:, None]  # which wins where both are equal
        return np.asarray(((lowest > highest) | ((lowest >= highest) & is_lower)).any(axis=1))


def shrink_witnesses(verifier: Verifier, changed: FloatArray) -> FloatArray:
    """Changed rows that flip, without columns that the flip does not need.

    Columns are put back from the least contribution on, so that of a sum of single columns by the mean or without noise
    the fewest columns are left.
    """
    kept = changed.copy()
    for start in range(0, len(changed), _BLOCK):
        at = np.arange(start, min(start + _BLOCK, len(changed)))
        part = replace(verifier, rows=verifier.rows[at], labels=verifier.labels[at])
        kept[at] = put_back(part, changed[at], _weigh_columns(part, changed[at]))
    return kept


def put_back(
    verifier: Verifier, changed: FloatArray, weights: FloatArray, columns: BoolArray | None = None
) -> FloatArray:
    """Changed rows with columns put back as long as they flip, those of the least weight first.

    `columns` says which ones may be put back, (n_rows, n_features); None for all.
    """
    may = np.ones(changed.shape, dtype=bool) if columns is None else columns.copy()
    may[:, [link.column for link in verifier.perturbation.links]] = False
    kept, active = changed.copy(), np.arange(len(changed))
    if (may & ~are_same(verifier.rows, kept)).sum(axis=1).max(initial=0) > _FEW:
        kept = _put_back_together(verifier, kept, weights, may)
    while active.size:
        differ = may[active] & ~are_same(verifier.rows[active], kept[active])
        order = np.argsort(np.where(differ, weights[active], np.inf), axis=1, kind="stable")
        counts, dropped = differ.sum(axis=1), np.zeros(active.size, dtype=bool)
        for k in range(min(int(counts.max(initial=0)), _MOST)):
            part = np.flatnonzero(counts > k)
            at, column = active[part], order[part, k]
            points = kept[at]
            points[np.arange(at.size), column] = verifier.rows[at, column]
            flips = verifier.flips(points, at)
            kept[at[flips]] = points[flips]
            dropped[part[flips]] = True
        active = active[dropped]
    return verifier.perturbation.follow(verifier.rows, kept)


def _put_back_together(verifier: Verifier, changed: FloatArray, weights: FloatArray, may: BoolArray) -> FloatArray:
    """The most columns of the least weight that can be put back at the same time, by bisection."""
    rows, everyone = verifier.rows, np.arange(len(changed))
    differ = may & ~are_same(rows, changed)
    ranks = np.argsort(np.argsort(np.where(differ, weights, np.inf), axis=1, kind="stable"), axis=1)
    low, high = np.zeros(len(changed), dtype=np.int64), differ.sum(axis=1) + 1
    while (high - low > 1).any():
        middle = (low + high) // 2
        flips = verifier.flips(np.where(differ & (ranks < middle[:, None]), rows, changed), everyone)
        low, high = np.where(flips, middle, low), np.where(flips, high, np.maximum(middle, low + 1))
    return np.where(differ & (ranks < low[:, None]), rows, changed)


def _weigh_columns(verifier: Verifier, changed: FloatArray) -> FloatArray:
    """How much the change of each column contributes to the flip of each row, (n_rows, n_features), to nearest."""
    model, rows, labels = verifier.model, verifier.rows, verifier.labels
    weights = np.zeros(rows.shape)
    if model.n_classes == 2:
        votes = np.ones(len(model.members)) if model.weights is None else model.weights
        for member, vote in zip(model.members, votes.tolist(), strict=True):
            signs = np.where(labels == 1, vote, -vote)
            weights += signs[:, None] * _subtract_terms(_subtract_outputs(member), rows, changed, verifier.noise)
        return weights
    (ensemble,) = model.members
    after = verifier.label(changed, 1)
    for low, high in ensemble.pairs:
        at = np.flatnonzero((np.minimum(labels, after) == low) & (np.maximum(labels, after) == high))
        if at.size:
            signs = np.where(labels[at] == high, 1.0, -1.0)
            difference = ensemble.duel(low, high)
            weights[at] = signs[:, None] * _subtract_terms(difference, rows[at], changed[at], verifier.noise)
    return weights


def _subtract_outputs(member: AdditiveEnsemble) -> AdditiveEnsemble:
    """The same as one sum, where it has an output for each of two classes."""
    return member.duel(0, 1) if member.n_outputs == 2 else member


def _subtract_terms(member: AdditiveEnsemble, rows: FloatArray, changed: FloatArray, noise: Noise | None) -> FloatArray:
    """What a change takes off the expected score, by column; a term of several columns counts in each of them."""
    lost = np.zeros(rows.shape)
    for term in member.terms:  # columns of one tree term count alike
        size = expect_term(term, rows, noise) - expect_term(term, changed, noise)
        lost[:, list(term.features)] += size[:, None]
    return np.nan_to_num(lost)


def refine_changes(
    verifier: Verifier,
    changed: FloatArray,
    whole: Collection[int] = (),
    dates: Collection[int] = (),
    decimals: Mapping[int, int] = MappingProxyType({}),
) -> FloatArray:
    """Changed rows with each number as near to its own value as was found to flip, and with few digits.

    `whole` are columns whose whole numbers stay whole, `dates` those in days; `decimals` says with how many decimals a
    column is written.
    """
    at = np.flatnonzero(verifier.flips(changed, np.arange(len(changed))))
    # of others the model stands for another one, and is too near to its threshold
    moves = np.nan_to_num(np.abs(changed - verifier.rows) / verifier.perturbation.units)
    moves[:, list(verifier.model.categorical_features)] = 0.0
    moves[:, [link.column for link in verifier.perturbation.links]] = 0.0
    order, counts = np.argsort(-moves, axis=1, kind="stable"), np.count_nonzero(moves, axis=1)
    kept = changed.copy()
    for k in range(int(counts[at].max(initial=0))):
        part = at[counts[at] > k]
        for feature in np.unique(order[part, k]).tolist():
            here = part[order[part, k] == feature]
            step = float(verifier.perturbation.steps[feature])
            own, is_stepped = verifier.rows[here, feature], np.full(here.size, bool(step))
            if not step and feature in whole:
                step, is_stepped = 1.0, (np.rint(own) == own) & (np.rint(kept[here, feature]) == kept[here, feature])
            short = _Rounding((1, 86_400) if feature in dates else (), decimals.get(feature))
            for some, size in ((here[is_stepped], step), (here[~is_stepped], 0.0)):
                if some.size:
                    kept[some, feature] = _pull_back(verifier, kept[some], some, feature, size, short)
    for feature, places in decimals.items():  # numbers that appear have nothing to be near to
        here = at[np.isnan(verifier.rows[at, feature]) & ~np.isnan(kept[at, feature])]
        for way in (np.floor, np.ceil):
            tried = kept[here].copy()
            tried[:, feature] = way(tried[:, feature] * 10.0**places) / 10.0**places
            good = verifier.allows(tried, here) & verifier.flips(tried, here)
            kept[here[good]] = tried[good]
    return verifier.perturbation.follow(verifier.rows, kept)


class _Rounding(NamedTuple):
    """How values of a column are short: multiples of 1 / fraction, or decimals as the column is written with."""

    fractions: Sequence[int] = ()
    decimals: int | None = None

    def list_short(self, before: float, after: float) -> list[float]:
        """Values of few digits at or beyond `after`, seen from `before`, and one short of it as the column is written;
        the shortest first."""
        move = abs(after - before)
        if not math.isfinite(move) or move == 0:
            return []
        if self.fractions:
            level = math.floor if after < before else math.ceil
            return [level(after * fraction) / fraction for fraction in self.fractions]
        outward, inward = (ROUND_FLOOR, ROUND_CEILING) if after < before else (ROUND_CEILING, ROUND_FLOOR)
        first, exact = math.floor(math.log10(move)), Decimal(after)
        steps = [Decimal(1).scaleb(first - digits) for digits in _DIGITS_OF_A_MOVE]
        if self.decimals is None:
            return [_round_to(exact, step, outward) for step in steps]
        own = Decimal(1).scaleb(-self.decimals)
        coarse = [_round_to(exact, step, outward) for step in (*(step for step in steps if step > own), own)]
        return [
            *coarse,
            _round_to(exact, own, inward),
            *(_round_to(exact, step, outward) for step in steps if step < own),
        ]


def _round_to(value: Decimal, step: Decimal, rounding: str) -> float:
    return float((value / step).to_integral_value(rounding) * step)


def _pull_back(
    verifier: Verifier, changed: FloatArray, at: IntArray, feature: int, step: float, short: _Rounding
) -> FloatArray:
    """One number of each row as near to its own value as was found to flip, and with few digits."""

    def flips(values: FloatArray, tried: BoolArray) -> BoolArray:
        rows, columns = np.nonzero(tried)
        points = changed[rows]
        points[:, feature] = values[rows, columns]
        good = np.zeros(tried.shape, dtype=bool)
        good[rows, columns] = verifier.allows(points, at[rows]) & verifier.flips(points, at[rows])
        return good

    before, after, every = verifier.rows[at, feature], changed[:, feature].copy(), np.arange(at.size)
    near = before.copy()
    for _ in range(_PASSES):
        positions = _list_between(before, near, after, step)
        is_new = (positions != near[:, None]) & (positions != after[:, None])
        good = flips(positions, is_new)
        found, first = good.any(axis=1), good.argmax(axis=1)
        before_it = np.where(is_new[every, first - 1] & (first > 0), positions[every, first - 1], near)
        last = positions[every, is_new.shape[1] - 1 - is_new[:, ::-1].argmax(axis=1)]
        near = np.where(found, before_it, np.where(is_new.any(axis=1), last, near))
        after = np.where(found, positions[every, first], after)
    if step:
        return after
    listed = [short.list_short(*ends) for ends in zip(before.tolist(), after.tolist(), strict=True)]
    values = np.full((at.size, max(map(len, listed), default=0) + 1), np.nan)
    for row, tried in enumerate(listed):
        values[row, : len(tried)] = tried
    good = flips(values, ~np.isnan(values) & (values != before[:, None]))
    values[:, -1], good[:, -1] = after, True
    return np.asarray(values[every, good.argmax(axis=1)])


def _list_between(before: FloatArray, near: FloatArray, after: FloatArray, step: float) -> FloatArray:
    """Values between one that was tried and one that flips, from the nearest on: multiples of a step, or any."""
    shares = np.arange(1, _PARTS) / _PARTS
    if not step:
        return np.asarray(near[:, None] + (after - near)[:, None] * shares)
    first, last = (np.rint(np.abs(end - before) / step)[:, None] for end in (near, after))
    counts = np.rint(first + (last - first) * shares) * step
    return np.where((after < before)[:, None], before[:, None] - counts, before[:, None] + counts)


def round_flip(start: FloatArray, feature: int, after: float, flips: Flips, *, fractions: Sequence[int] = ()) -> float:
    """A value of few digits, at or beyond the one that flips, that flips as well; the value itself where none does.

    `start` is the row before the change. With `fractions`, multiples of 1 / fraction are short, such as whole days and
    seconds of a date in days; without, decimals are.

    Examples
    --------
    >>> round_flip(np.array([2400.0]), 0, 1870.91, lambda rows: rows[:, 0] < 1871)
    1870.0
    """
    tried = _Rounding(fractions).list_short(float(start[feature]), after)
    if not tried:
        return after
    rows = np.tile(start, (len(tried), 1))
    rows[:, feature] = tried
    good = np.flatnonzero(flips(rows))
    return tried[int(good[0])] if good.size else after
