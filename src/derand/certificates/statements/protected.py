"""Whether some columns alone can change an answer, of any row of a domain.

A pair of rows that differ in these columns alone is on both sides of a threshold where the sum of the other terms lies
in a window as wide as the swing of these columns. Whether it can lie there is a subset sum with multiple choice. A walk
from the lowest to the highest sum finds a pair wherever its steps are narrower than the window; else a dynamic
programme on a grid, rounded outward, proves that there is none, or says where one may be. Owns both. Must not know what
a label is: candidates are confirmed elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.statements.sums import DomainSum, TermRange

_MOST_LEVELS = 2**18
_MOST_NUMBERS = 2**24
"""Levels of the grid, and levels times terms that are kept to follow a candidate back."""
_WALKS = 8
_CANDIDATES = 32


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """What a term can add to a pair of rows that differ in the protected columns alone.

    Attributes
    ----------
    low, high : arrays of shape (n_choices,)
        To the lower and to the higher row.
    low_points, high_points : arrays of shape (n_choices, n_columns)
        Values of its columns in both rows.
    """

    low: FloatArray
    high: FloatArray
    low_points: FloatArray
    high_points: FloatArray


def list_choices(term: TermRange, protected: frozenset[int]) -> Choices:
    """The choices of a term: one for each setting of its columns that are not protected."""
    others = [at for at, feature in enumerate(term.features) if feature not in protected]
    groups = np.zeros(len(term.points), dtype=np.int64)
    if others:
        keyed = np.nan_to_num(term.points[:, others], nan=np.inf)
        groups = np.unique(keyed, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((term.scores, groups))
    first = np.flatnonzero(np.diff(groups[order], prepend=-1))
    last = np.append(first[1:], order.size) - 1
    lowest, highest = order[first], order[last]
    both = np.unique(np.stack([term.scores[lowest], term.scores[highest]]), axis=1, return_index=True)[1]
    lowest, highest = lowest[both], highest[both]
    return Choices(term.scores[lowest], term.scores[highest], term.points[lowest], term.points[highest])


def bound_choices(term: TermRange, protected: frozenset[int], choices: Choices) -> tuple[FloatArray, FloatArray]:
    """Ends that hold all that a term can add to such a pair; of an exact term those of its choices."""
    if term.is_exact:
        return choices.low, choices.high
    return np.array([term.bound_all(1)]), np.array([-term.bound_all(-1)])


class PairSearch:
    """Pairs of rows that differ in protected columns alone, and whose scores lie on both sides of a threshold."""

    def __init__(self, total: DomainSum, protected: frozenset[int]) -> None:
        self.total, self.protected = total, protected
        self.choices = [list_choices(one, protected) for one in total.ranges]
        self.ends = [bound_choices(*both) for both in self._zip()]
        self.is_read = any(not protected.isdisjoint(one.features) for one in total.ranges)

    def _zip(self) -> Iterator[tuple[TermRange, frozenset[int], Choices]]:
        for term, choices in zip(self.total.ranges, self.choices, strict=True):
            yield term, self.protected, choices

    @property
    def swing(self) -> float:
        """An upper bound of how far the protected columns alone can move the score of any row; exact where sums are."""
        own = zip(self.total.ranges, self.ends, strict=True)
        moved = [(high - low).max() for term, (low, high) in own if not self.protected.isdisjoint(term.features)]
        return float(sum(moved))

    def build_pair(self, chosen: Sequence[int]) -> FloatArray:
        """The pair of rows of a choice for each term, (2, n_features)."""
        pair = np.tile(self.total.domain.choose_row(), (2, 1))
        for term, choices, at in zip(self.total.ranges, self.choices, chosen, strict=True):
            pair[0, list(term.features)] = choices.low_points[at]
            pair[1, list(term.features)] = choices.high_points[at]
        return pair

    def walk(self) -> Iterator[list[int]]:
        """Choices on walks from the lowest to the highest sum, at which a pair lies on both sides."""
        rng = np.random.default_rng(0)
        orders = [np.argsort(one.low + one.high, kind="stable") for one in self.choices]
        threshold = self.total.threshold
        for _ in range(_WALKS):
            chosen = [int(order[0]) for order in orders]
            low = sum(float(one.low[at]) for one, at in zip(self.choices, chosen, strict=True))
            high = sum(float(one.high[at]) for one, at in zip(self.choices, chosen, strict=True))
            for term in rng.permutation(len(orders)).tolist():
                own, order = self.choices[term], orders[term]
                lows = low + (own.low[order] - own.low[order[0]])
                highs = high + (own.high[order] - own.high[order[0]])
                room = np.minimum(highs - threshold, threshold - lows + 0.5)
                best = int(room.argmax())
                if lows[best] <= threshold < highs[best]:
                    yield [int(order[best]) if k == term else at for k, at in enumerate(chosen)]
                    break
                chosen[term], low, high = int(order[-1]), float(lows[-1]), float(highs[-1])

    def solve(self) -> tuple[bool, Iterator[list[int]]]:
        """Whether it is proven that there is no such pair, of no model within the error; and choices to try."""
        wide = self.total.widening + self.total.slack
        lowest, highest = self.total.threshold + wide, self.total.threshold - wide
        if not self.is_read:
            return True, iter(())
        least, most = (sum(float(own.min()) for own, _ in self.ends), sum(float(own.max()) for _, own in self.ends))
        if least > lowest or most <= highest:
            return True, iter(())
        return self._solve_on_grid(lowest, highest)

    def _solve_on_grid(self, lowest: float, highest: float) -> tuple[bool, Iterator[list[int]]]:
        """The largest higher sum for each lower sum, both rounded outward to a grid."""
        alone = [both for both in self.ends if both[0].size == 1]  # terms without a choice stay off the grid
        lowest, highest = (end - sum(float(both[at][0]) for both in alone) for at, end in enumerate((lowest, highest)))
        ends = [both if both[0].size > 1 else (np.zeros(1), np.zeros(1)) for both in self.ends]
        bases = [float(own.min()) for own, _ in ends]
        reach = min(sum(float(own.max()) for own, _ in ends), lowest) - sum(bases)
        unit = self._choose_unit(reach, ends)
        n_levels = int(reach // unit) + 1
        best = np.full(n_levels, -np.inf)
        best[0] = 0.0
        kept = []
        for (low, high), base in zip(ends, bases, strict=True):
            kept.append(best)
            steps, rises = self._round_outward(low, high, base, unit)
            wider = np.full(n_levels, -np.inf)
            for step, rise in np.unique(np.stack([steps, rises], axis=1), axis=0).tolist():
                if step < n_levels:
                    at = int(step)
                    np.maximum(wider[at:], best[: n_levels - at] + rise, out=wider[at:])
            best = wider
        slack = 0.0 if self.total.is_whole else 1e-9 * (abs(highest) + sum(map(abs, bases)))
        meets = np.flatnonzero(best * unit > highest - sum(bases) - slack)
        if not meets.size:
            return True, iter(())
        widest = meets[np.argsort(-(best[meets] - meets), kind="stable")[:_CANDIDATES]]
        return False, self._follow(kept, best, widest, ends, unit)

    def _round_outward(
        self, low: FloatArray, high: FloatArray, base: float, unit: float
    ) -> tuple[IntArray, FloatArray]:
        """Levels of the grid at or below lower sums, and at or above higher ones."""
        if self.total.is_whole:
            down, up = ((own - base).astype(np.int64) for own in (low, high))
            return down // int(unit), (-(-up // int(unit))).astype(np.float64)
        steps = np.floor((low - base) / unit * (1 - 1e-9) - 1e-9)
        return np.maximum(steps, 0).astype(np.int64), np.ceil((high - base) / unit * (1 + 1e-9) + 1e-9)

    def _choose_unit(self, reach: float, ends: Sequence[tuple[FloatArray, FloatArray]]) -> float:
        """The largest unit that divides all scores, or a coarser one where there would be too many levels."""
        most = max(2**10, min(_MOST_LEVELS, _MOST_NUMBERS // max(len(ends), 1)))
        if not self.total.is_whole:
            return max(reach / most, 1e-300)
        whole = [(own - both[0].min()).astype(np.int64) for both in ends for own in both]
        unit = max(int(np.gcd.reduce(np.concatenate(whole))), 1)
        return float(unit * max(1, math.ceil(reach / unit / most)))

    def _follow(
        self,
        kept: Sequence[FloatArray],
        best: FloatArray,
        levels: IntArray,
        ends: Sequence[tuple[FloatArray, FloatArray]],
        unit: float,
    ) -> Iterator[list[int]]:
        """The choices that lead to some levels of the grid."""
        for level in levels.tolist():
            at, rest, chosen = int(level), float(best[level]), []
            for term in range(len(ends) - 1, -1, -1):
                low, high = ends[term]
                steps, rises = self._round_outward(low, high, float(low.min()), unit)
                before = np.where(steps <= at, kept[term][np.maximum(at - steps, 0)], -np.inf)
                own = int(np.argmin(np.abs(before + rises - rest)))
                at, rest = at - int(steps[own]), float(before[own])
                chosen.append(own if self.total.ranges[term].is_exact else 0)
            yield chosen[::-1]
