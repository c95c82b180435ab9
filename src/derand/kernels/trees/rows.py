"""Questions about rows: do they stay on their side, how far may they be moved, what is the least sum of each.

All rows are walked first; what the walk leaves open is searched, several rounds of it for radii. Which size is tried
next decides only how soon a search ends. README.md, step 11. Must not know models or units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.distances import Measure, measure_bin
from derand.kernels.trees.forest import (
    EITHER,
    LARGEST,
    PLAIN,
    Asked,
    Forest,
    Goals,
    locate_row,
    make_region,
    walk_rows,
)
from derand.kernels.trees.search import ANY, LEAST, NEAREST, Found, make_found, search_rows

HOLDS, FLIPS, UNDECIDED, TIE = range(4)
"""What was found of a row: proven, a row that flips for certain, the budget was spent, or too near to tell."""
_RANKS = np.argsort([HOLDS, UNDECIDED, TIE, FLIPS])
"""By status: which of several parts of a region speaks for the whole."""
_START = 4.0
"""Times the distance to the nearest edge: where the search begins of a radius of which no walk proves anything."""
_LEAPS = (4, 2, 1)
"""How often regions are enlarged at once, as long as a walk proves them."""
_ENOUGH = 1.0 + 2.0**-7
"""What is left between a certified and an attacked size is not searched below this ratio."""


class Limits(NamedTuple):
    """By label, 0 where the sum must stay high and 1 where its negative must."""

    hold: IntArray
    """(2,): a sum from there on holds."""
    flip: IntArray
    """(2,): one up to there flips, the error of the model that is meant included."""


class Answers(NamedTuple):
    """What was found, an entry per row."""

    status: NDArray[np.uint8]
    bounds: IntArray
    nodes: IntArray
    certified: FloatArray
    is_exact: BoolArray
    values: FloatArray
    """(n_rows, n_columns): of the row that was found, else of the row itself."""
    classes: IntArray

    def keep(self, at: IntArray, found: Found, chosen: IntArray, which: int) -> None:
        """Keep the rows that some of the questions found; `which` is 0 for the best one, 1 for one that is sure."""
        self.values[at[chosen]] = found.values[chosen, which]
        self.classes[at[chosen]] = found.classes[chosen, which]


def make_answers(asked: Asked) -> Answers:
    """Nothing found yet."""
    count = len(asked.values)
    bounds, nodes = np.zeros((2, count), dtype=np.int64)
    status, is_exact = np.full(count, UNDECIDED, dtype=np.uint8), np.zeros(count, dtype=bool)
    return Answers(status, bounds, nodes, np.zeros(count), is_exact, asked.values.copy(), asked.own_classes.copy())


class _Asking(NamedTuple):
    """A forest, what is asked of it, and the labels of rows."""

    forest: Forest
    asked: Asked
    labels: IntArray
    limits: Limits

    def aim(self, at: IntArray, sizes: FloatArray, budgets: IntArray, *, is_sure: bool = False) -> Goals:
        """Goals for some rows: sums that do not hold, or, with `is_sure`, such as flip for certain."""
        homes = self.labels[at]
        flips = self.limits.flip[homes]
        limits = flips + 1 if is_sure else self.limits.hold[homes]
        labels, signs = (1 - homes, np.full(at.size, -1)) if is_sure else (homes, np.ones(at.size, dtype=np.int64))
        return Goals(at, labels, signs, limits, sizes, np.maximum(budgets, 1), homes, flips)

    def walk(self, goals: Goals) -> IntArray:
        """The bound of each row."""
        totals = np.empty(goals.rows.size, dtype=np.int64)
        walk_rows(self.forest, self.asked, goals, totals)
        return totals

    def search(self, kind: int, goals: Goals) -> Found:
        """What a search finds."""
        found = make_found(goals.rows.size, self.forest.n_classes.size)
        search_rows(kind, self.forest, self.asked, goals, found)
        return found


def decide_rows(
    forest: Forest, asked: Asked, limits: Limits, labels: IntArray, sizes: FloatArray, budget: int
) -> Answers:
    """Whether each row stays on its side within its region."""
    asking, answers = _Asking(forest, asked, labels, limits), make_answers(asked)
    every, budgets = np.arange(labels.size), np.full(labels.size, budget)
    free = np.flatnonzero(asked.classes.any(axis=1))
    if asked.n_changes != 1 or free.size < 2:
        _decide_open(asking, every, sizes, budgets, answers)
        return answers
    goals = asking.aim(every, sizes, budgets)
    answers.bounds[:] = asking.walk(goals)
    is_open = answers.bounds < goals.limits
    answers.status[~is_open] = HOLDS
    _decide_by_column(asking, np.flatnonzero(is_open), free, sizes, budgets, answers)
    return answers


def _decide_by_column(
    asking: _Asking, at: IntArray, free: IntArray, sizes: FloatArray, left: IntArray, answers: Answers
) -> None:
    """Let one category after the other be the one that may change: all that a single change reaches."""
    parts = []
    for column in free:
        classes = np.zeros_like(asking.asked.classes)
        classes[column] = asking.asked.classes[column]
        parts.append(asking._replace(asked=asking.asked._replace(classes=classes)))
    bounds = np.stack([part.walk(part.aim(at, sizes[at], left[at])) for part in parts])
    is_open = bounds < asking.limits.hold[asking.labels[at]]
    answers.status[at] = HOLDS
    left = left.copy()
    for k in np.argsort(bounds.sum(axis=1), kind="stable"):
        asked = np.flatnonzero(is_open[k] & (answers.status[at] != FLIPS))
        rows = at[asked]
        is_spent = left[rows] <= 0
        spent, rows, asked = rows[is_spent], rows[~is_spent], asked[~is_spent]
        answers.status[spent] = np.where(answers.status[spent] == TIE, TIE, UNDECIDED)
        own = make_answers(asking.asked)
        _decide_open(parts[k], rows, sizes, left, own)
        left[rows] -= np.maximum(own.nodes[rows], 1)
        answers.nodes[rows] += own.nodes[rows]
        bounds[k, asked] = own.bounds[rows]
        better = rows[_RANKS[own.status[rows]] > _RANKS[answers.status[rows]]]
        answers.status[better] = own.status[better]
        answers.values[better], answers.classes[better] = own.values[better], own.classes[better]
    answers.bounds[at] = np.maximum(answers.bounds[at], bounds.min(axis=0, initial=LARGEST))


def _decide_open(asking: _Asking, at: IntArray, sizes: FloatArray, budgets: IntArray, answers: Answers) -> None:
    """Search the regions of some rows."""
    found = asking.search(ANY, asking.aim(at, sizes[at], budgets[at]))
    answers.bounds[at], answers.nodes[at] = found.bounds, found.nodes
    status = np.where(found.is_found, np.where(found.is_sure, FLIPS, TIE), np.where(found.is_done, HOLDS, UNDECIDED))
    answers.status[at] = status
    answers.keep(at, found, np.flatnonzero(found.is_found), 0)
    doubtful = at[status == TIE]
    if doubtful.size:  # elsewhere it may flip for certain
        found = asking.search(
            ANY, asking.aim(doubtful, sizes[doubtful], budgets[doubtful] - answers.nodes[doubtful], is_sure=True)
        )
        answers.nodes[doubtful] += found.nodes
        answers.status[doubtful[found.is_found]] = FLIPS
        answers.keep(doubtful, found, np.flatnonzero(found.is_found), 0)


def bound_rows(forest: Forest, asked: Asked, label: int, sizes: FloatArray, budget: int) -> Answers:
    """The least sum of `leaves[:, label]` of each row within its region: what is proven, and where it is attained."""
    every = np.arange(sizes.size)
    own = np.empty(every.size, dtype=np.int64)
    nothing = Limits(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    alone = asked._replace(
        classes=np.zeros_like(asked.classes),
        may_miss=np.zeros_like(asked.may_miss),
        low=asked.values,
        high=asked.values,
    )
    labels = np.full(every.size, label)
    walk_rows(forest, alone, _Asking(forest, asked, labels, nothing).aim(every, sizes, every), own)
    asking, answers = _Asking(forest, asked, labels, nothing), make_answers(asked)
    goals = asking.aim(every, sizes, np.full(every.size, budget))._replace(limits=own)
    found = asking.search(LEAST, goals)
    answers.bounds[:], answers.nodes[:] = found.bounds, found.nodes
    answers.keep(every, found, np.flatnonzero(found.is_found), 0)
    return answers


@compile_loop()
def survey_rows(forest: Forest, asked: Asked, least: FloatArray, most: FloatArray) -> None:
    """The sizes at which the region of each row changes first and last."""
    is_sum, region = asked.norm != np.inf, make_region(forest.n_classes.size, asked.classes.shape[1])
    for row in range(least.size):
        locate_row(row, forest, asked, np.inf, region)
        least[row], most[row] = np.inf, 0.0
        for column in range(forest.n_classes.size):
            kind, own = region.kinds[column], int(region.own[column])
            if own < 0 or kind not in (PLAIN, EITHER):
                continue
            start, unit, step = forest.edge_starts[column], asked.units[column], asked.steps[column]
            measure, farthest = Measure(asked.values[row, column], own, start, unit, step, asked.norm), 0.0
            first, last = int(region.first[column]), int(region.last[column])
            for bin_ in (own - 1, own + 1, first, last):
                if first <= bin_ <= last:
                    size = measure_bin(bin_, measure, forest.edges)
                    farthest = max(farthest, size)
                    if size > 0.0:
                        least[row] = min(least[row], size)
            most[row] = most[row] + farthest if is_sum else max(most[row], farthest)


class _Radii:
    """Sizes of regions of some rows: `good` is proven, `top` is not, or holds a row that was found."""

    def __init__(self, asking: _Asking, least: FloatArray, most: FloatArray) -> None:
        self.asking, self.norm = asking, asking.asked.norm
        self.least, self.most = least, most
        count = least.size
        self.good, self.top, self.nodes = np.zeros(count), np.full(count, np.inf), np.zeros(count, dtype=np.int64)
        self.is_done, self.is_sure, self.is_any_sure = (np.zeros(count, dtype=bool) for _ in range(3))
        self.is_found = np.zeros(count, dtype=bool)

    def enlarge(self, sizes: FloatArray, times: int = 1) -> FloatArray:
        """The next larger sizes to try, or those so many times from here."""
        return sizes + 1.0 if self.norm == 0 else sizes * (4.0 if self.norm == 2 else 2.0) ** times

    def walk_outward(self, every: IntArray, budgets: IntArray) -> FloatArray:
        """Walk regions of growing size as long as they hold, in ever smaller leaps; the next size to try."""
        every, bad = every[np.isfinite(self.least[every])], np.full(self.least.size, np.inf)
        for times in (1,) if self.norm == 0 else _LEAPS:
            at = every
            while at.size:
                sizes = np.where(self.good[at] == 0, self.least[at], self.enlarge(self.good[at], times))
                is_worth = (sizes < bad[at]) & (sizes <= self.most[at])
                at, sizes = at[is_worth], sizes[is_worth]
                goals = self.asking.aim(at, sizes, budgets[at])
                holds = self.asking.walk(goals) >= goals.limits
                self.good[at[holds]], bad[at[~holds]] = sizes[holds], sizes[~holds]
                at = at[holds]
        if self.norm == 0:
            return np.where(self.good == 0, self.least, self.good + 1.0)
        return np.where(self.good == 0, self.least * _START, self.enlarge(self.good))

    def search(self, at: IntArray, sizes: FloatArray, budgets: IntArray, answers: Answers, *, is_sure: bool) -> None:
        """Search regions until the nearest row is found, none is left, or the budget is spent."""
        sizes, left = sizes.copy(), budgets.copy()
        while at.size:
            found = self.asking.search(NEAREST, self.asking.aim(at, sizes[at], (left[at] + 1) // 2, is_sure=is_sure))
            self.nodes[at] += found.nodes
            left[at] -= np.maximum(found.nodes, 1)
            self._keep(at, found, answers, is_sure=is_sure)
            done, some = found.is_done, found.is_found
            self.good[at] = np.where(done, np.minimum(found.sizes, sizes[at]), self.good[at])
            is_free = done & ~some & (sizes[at] > self.most[at])
            self.good[at[is_free]] = np.inf
            self.is_done[at] = done & (some | is_free)
            self.top[at] = np.where(done, self.top[at], np.minimum(found.sizes, sizes[at]))
            before = sizes[at]
            sizes[at] = np.where(np.isfinite(self.top[at]), self._halve(at), self.enlarge(before))
            at = at[~self.is_done[at] & (left[at] > 0) & (sizes[at] < self.top[at]) & (sizes[at] != before)]

    def _halve(self, at: IntArray) -> FloatArray:
        """A size between what is proven and what is not; the latter where nothing in between is worth trying."""
        middle = 0.5 * (self.good[at] + self.top[at])
        if self.norm == 0:
            middle = np.floor(middle)
        is_worth = (middle > self.good[at] * _ENOUGH) & (self.top[at] > middle * _ENOUGH)
        return np.where(is_worth, middle, self.top[at])

    def _keep(self, at: IntArray, found: Found, answers: Answers, *, is_sure: bool) -> None:
        """Keep rows that were found: such as flip for certain, and before one is known others as well."""
        some = np.flatnonzero(found.is_found)
        if not is_sure:
            unknown = some[~self.is_any_sure[at[some]]]
            answers.keep(at, found, unknown, 0)
            self.is_sure[at[some]], self.is_found[at[some]] = found.is_sure[some], True
        sure = np.flatnonzero(found.is_any_sure)
        answers.keep(at, found, sure, 1)
        self.is_any_sure[at[sure]] = True


def measure_rows(forest: Forest, asked: Asked, limits: Limits, labels: IntArray, budget: int) -> Answers:
    """How far each row may be moved, as `distances` measures it (of l2 squares), before it may leave its side."""
    asking, answers = _Asking(forest, asked, labels, limits), make_answers(asked)
    every, budgets = np.arange(labels.size), np.full(labels.size, budget)
    goals = asking.aim(every, np.full(every.size, np.inf), budgets)
    at = np.flatnonzero(asking.walk(goals) < goals.limits)
    answers.certified[:], answers.is_exact[:] = np.inf, True
    radii = _Radii(asking, np.empty(every.size), np.empty(every.size))
    survey_rows(forest, asked, radii.least, radii.most)
    sizes = radii.walk_outward(at, budgets)
    radii.search(at, sizes, budgets, answers, is_sure=False)
    answers.certified[at] = radii.good[at]
    answers.is_exact[at] = (radii.is_done & (radii.is_sure | ~radii.is_found))[at]
    answers.status[at] = np.where(radii.is_any_sure[at], FLIPS, np.where(radii.is_found[at], TIE, UNDECIDED))
    at = at[(radii.is_found & ~radii.is_sure)[at]]
    if at.size:  # the nearest one that flips for certain may be another one, or farther away
        beyond, before = _Radii(asking, radii.least, radii.most), Answers._make(array.copy() for array in answers)
        beyond.good, left = radii.good.copy(), budgets - radii.nodes
        sizes = np.where(np.isfinite(radii.least), beyond.enlarge(np.maximum(radii.good, radii.least)), np.inf)
        beyond.search(at, sizes, left, answers, is_sure=True)
        answers.status[at[beyond.is_any_sure[at]]] = FLIPS
        answers.is_exact[at] = radii.is_done[at] & beyond.is_done[at] & (beyond.good[at] == radii.good[at])
        kept = at[~beyond.is_done[at] & radii.is_any_sure[at]]
        answers.values[kept], answers.classes[kept] = before.values[kept], before.classes[kept]
        radii.nodes[at] += beyond.nodes[at]
    answers.nodes[:] = radii.nodes
    return answers
