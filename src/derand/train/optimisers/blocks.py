"""Block-coordinate descent to the optimum of the log-loss of certified margins, and the duality gap that proves it.

Owns the steps: rows as quadratic functions of their margins, columns solved one after the other by Newton's method,
soft minima that become sharp as the gap closes, multipliers chosen anew between sweeps. A loss that is convex, with
kinks that are separate in every column, has no other points where this rests than its optimum. Must not know how
columns were made or which penalty is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand.train.bins import BinnedTable
from derand.train.design.columns import CategoryColumn, Column, Design, NumberColumn
from derand.train.design.joint import JointColumn, Places
from derand.train.losses.rows import Layout
from derand.train.optimisers.base import Effort, Fit
from derand.train.optimisers.block_loops import (
    Blocks,
    GroupMap,
    add_margins,
    add_multipliers,
    couple_groups,
    evaluate,
    mark_states,
    pass_back,
    sum_groups,
    sum_states,
    sweep,
    tabulate,
)

_HOTTEST, _COLDEST = 0.1, 1e-7  # temperatures of soft minima
_WARM = 0.1  # of the hottest: where weights are begun with
_CLOSING, _PATIENCE = 0.9, 3  # so many times in a row the gap has not become so much smaller: it will not
_COOLING = 0.3
_SHARP_COLUMNS = 16
_SWEEPS = 4  # of all columns on one quadratic model of the rows
_LEAST_CURVATURE = 1e-3  # of a row, as a share of its slope
_SOLVED = 0.5  # of the gap: less is left to descent, and minima become sharper
_HALVINGS = 12
_ENOUGH = 0.05  # of what the first sweep gains: less ends the sweeps on one model


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """What was seen of the rows at some weights, at a temperature."""

    margins: FloatArray
    value: float


class BlockDescent:
    """A penalised loss of certified margins of rows at hand.

    Parameters
    ----------
    design : Design
    rows : BinnedTable
    penalties : array of shape (n_weights,)
        Of half the square of each weight.
    constant : array of shape (n_weights,)
        Weights of the best constant prediction.
    """

    def __init__(self, design: Design, rows: BinnedTable, penalties: FloatArray, constant: FloatArray) -> None:
        self._design, self._layout = design, Layout.of(design)
        self._target = np.ascontiguousarray(rows.target)
        self._weights = rows.weights / rows.weights.sum()
        self.penalties, self.constant, self.n_steps, self.result = penalties, constant, 0, Fit()
        self._bounds = np.array([one.sign for one in design.columns], dtype=np.int64)
        self._blocks = _line_up(design, rows, self._layout)
        self._groups, self._start = self._set_groups(*(np.zeros(rows.target.size, dtype=np.int64) for _ in range(2)))
        self._needed = self._mark(every=True)
        self._near_of, self._near = np.full(design.starts[-1], np.nan), np.empty(self._blocks.costs.size)

    def fit(self, start: FloatArray | None, effort: Effort) -> FloatArray:
        """Weights whose duality gap is at most a share of what they lose; or the best ones after so many sweeps.

        Minima become sharper where little of the gap is left to descent. A gap that no longer closes is that of the
        grid of multipliers.
        """
        weights, n_steps = self.constant if start is None else start, 0
        temperature = _HOTTEST * min(1.0, _SHARP_COLUMNS / max(len(self._design.numbers), 1))
        temperature *= 1.0 if start is None else _WARM
        best, least, bound, stalled, before = weights, np.inf, -np.inf, 0, np.inf
        while True:
            value = self.measure(weights)
            if value < least:
                best, least = weights, value
            seen = self._look(weights, temperature)
            lower, unsolved = self._bound(weights, temperature, seen)
            bound = max(bound, lower)
            gap = least - bound
            if gap <= effort.tolerance * least or n_steps >= effort.most_steps or stalled >= _PATIENCE:
                break
            if unsolved < _SOLVED * (value - lower):
                temperature = max(temperature * _COOLING, _COLDEST)
                seen = self._look(weights, temperature)
                stalled = stalled + 1 if gap > _CLOSING * before else 0
                before = gap
            weights, swept = self._step(weights, temperature, seen)
            n_steps += swept
        self.n_steps += n_steps
        self.result = Fit(least, gap, n_steps < effort.most_steps)
        return best

    def measure_fit(self, weights: FloatArray) -> Fit:
        """How good weights are that were fitted elsewhere."""
        value = self.measure(weights)
        return Fit(value, value - self._bound(weights, _COLDEST, self._look(weights, _COLDEST))[0])

    def _set_groups(self, *index: NDArray[np.generic]) -> tuple[GroupMap, FloatArray]:
        """Groups of rows, from the indices of their multipliers of numbers and of categories, which need not be whole;
        and what rows of each begin with, but for the intercept."""
        layout, target = self._layout, self._target.astype(np.int64)
        kinds = layout.numbers, layout.categories
        counts = np.array([one.signs.size for one in kinds], dtype=np.int64)
        padded = np.zeros((3, 2, int(counts.max())))
        of_row, shares = np.empty((2, target.size), dtype=np.int32), np.empty((2, target.size))
        for kind, (one, own) in enumerate(zip(kinds, index, strict=True)):
            padded[:, kind, : counts[kind]] = one.signs, one.multipliers, -one.budget_costs
            whole = np.floor(own).astype(np.int64)
            of_row[kind] = target * (counts[kind] // 2) + whole
            shares[kind] = 1.0 - (own - whole)
        return GroupMap(padded[0], padded[1], counts, of_row, shares), padded[2]

    def _choose_multipliers(self, worth: FloatArray, spent: FloatArray | None) -> None:
        """Multipliers of each row: where its changes cost its whole budget, or the best one of the grid."""
        layout = self._layout
        if not layout.has_choice:
            return
        chosen: list[NDArray[np.generic]] = []
        for kind, one in enumerate((layout.numbers, layout.categories)):
            count = one.signs.size // 2
            if count == 1:
                chosen.append(np.zeros(self._target.size))
                continue
            if spent is None:
                totals = np.tile(-one.budget_costs[:count], (self._target.size, 1))
                add_multipliers(self._blocks, kind, count, self._target, worth, totals)
                chosen.append(totals.argmax(axis=1))
                continue
            totals = np.zeros((self._target.size, count))
            add_multipliers(self._blocks, kind, count, self._target, spent, totals)
            chosen.append(_balance(totals, self._budgets[kind]))
        self._groups, self._start = self._set_groups(*chosen)

    @property
    def _budgets(self) -> tuple[float, float]:
        """What changes of numbers, and of categories, may cost."""

        def read(one: Any) -> float:
            return float(one.budget_costs[-1] / one.multipliers[-1]) if one.multipliers[-1] > 0 else np.inf

        return read(self._layout.numbers), read(self._layout.categories)

    def measure(self, weights: FloatArray) -> float:
        """Penalised loss, by the multipliers that prove most."""
        return self._prove(weights).value

    def compute_margins(self, weights: FloatArray) -> FloatArray:
        """Margin of each row, by the multipliers that prove most."""
        return self._prove(weights).margins

    def _prove(self, weights: FloatArray) -> _Point:
        worth, _ = self._tabulate(weights, 0.0, self._needed)
        self._choose_multipliers(worth, None)
        return self._compute(weights, worth)

    def _mark(self, *, every: bool) -> NDArray[np.bool_]:
        """Which states rows are in; or might be in with other multipliers."""
        needed = np.empty(int(self._blocks.first_state[-1]), dtype=np.bool_)
        mark_states(self._blocks, self._groups, every, needed)
        return needed

    def _evaluate(self, weights: FloatArray) -> FloatArray:
        """The values of all places; those of the weights that were seen last are kept."""
        if not np.array_equal(weights, self._near_of):
            evaluate(self._blocks, weights, self._near)
            self._near_of = weights.copy()
        return self._near

    def _tabulate(
        self, weights: FloatArray, temperature: float, needed: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """What needed states are worth, and what their changes cost if there is a temperature."""
        worth, spent = np.zeros(needed.size), np.zeros(needed.size)
        tabulate(self._blocks, self._groups, self._evaluate(weights), temperature, needed, worth, spent)
        return worth, spent

    def _look(self, weights: FloatArray, temperature: float) -> _Point:
        worth, spent = self._tabulate(weights, temperature, self._needed)
        self._choose_multipliers(worth, spent)
        return self._compute(weights, worth)

    def _compute(self, weights: FloatArray, worth: FloatArray) -> _Point:
        """Margins by the multipliers that were chosen last."""
        margins, start = np.empty(self._target.size), self._start.copy()
        start[0] += self._groups.signs[0] * weights[0]
        add_margins(self._blocks, self._groups, worth, start, margins)
        loss = float(self._weights @ np.logaddexp(0.0, -margins))
        return _Point(margins, loss + 0.5 * float(self.penalties @ weights**2))

    def _bound(self, weights: FloatArray, temperature: float, seen: _Point) -> tuple[float, float]:
        """What no weights lose less than, by the dual point of logistic slopes and soft minima; and how much
        of the gap is left to descent, rather than to softness.

        The slopes of both labels are made to add up to the same, so that the intercept gains nothing.
        """
        slopes = expit(-seen.margins)
        totals = np.bincount(self._target, weights=self._weights * slopes, minlength=2)
        if totals.min() <= 0:
            return -np.inf, 0.0
        slopes *= (totals.min() / totals)[self._target]
        weighted = self._weights * slopes
        by_state = self._sum_states(weighted)[0]
        np.maximum(by_state, 0.0, out=by_state)  # sums of no rows, less rounding
        pull = np.zeros(weights.size)
        pass_back(self._blocks, self._groups, self._evaluate(weights), temperature, by_state, pull)
        free = self.penalties > 0
        entropy = -float(self._weights @ (xlogy(slopes, slopes) + xlogy(1 - slopes, 1 - slopes)))
        lower = entropy - 0.5 * float(np.sum(pull[free] ** 2 / self.penalties[free]))
        left = pull[free] - self.penalties[free] * weights[free]
        return lower, 0.5 * float(np.sum(left**2 / self.penalties[free]))

    def _sum_states(self, by_row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of a number of each row by states, and by groups."""
        by_group, by_state = np.empty(self._start.shape), np.empty(int(self._blocks.first_state[-1]))
        sum_groups(self._groups, by_row, by_group)
        sum_states(self._blocks, self._groups, by_row, by_group, by_state)
        return by_state, by_group

    def _step(self, weights: FloatArray, temperature: float, seen: _Point) -> tuple[FloatArray, int]:
        """Some sweeps on a quadratic model of the rows, and as much of that way as lowers the loss."""
        misses = expit(-seen.margins)
        slopes = -self._weights * misses
        curvature = self._weights * np.maximum(misses * (1 - misses), _LEAST_CURVATURE * misses)
        by_state, _ = self._sum_states(curvature)
        by_group, offsets = np.empty(self._start.shape), np.zeros(self._start.shape)
        sum_groups(self._groups, slopes, by_group)
        coupling = np.empty((*self._start.shape, *self._start.shape))
        couple_groups(self._groups, curvature, coupling)
        columns = np.arange(self._blocks.n_bins.size)
        target, gains, first, swept = weights.copy(), np.zeros(columns.size), 0.0, 0
        own = (columns, self._bounds, self.penalties, temperature, curvature, by_state, coupling)
        factors = np.empty(int((self._blocks.n_weights**2).sum()))
        for turn in range(_SWEEPS):
            sweep(self._blocks, self._groups, *own, by_group, slopes, offsets, target, gains, factors, turn == 0)
            swept += 1
            first = first or float(gains.sum())
            if gains.sum() < _ENOUGH * first:
                break
        length, needed = 1.0, self._mark(every=False)
        for _ in range(_HALVINGS):
            trial = weights + length * (target - weights)
            if self._compute(trial, self._tabulate(trial, temperature, needed)[0]).value <= seen.value:
                return trial, swept
            length *= 0.5
        return weights, swept


def _balance(costs: FloatArray, budget: float) -> FloatArray:
    """Where falling costs, (n_rows, n_multipliers), cross a budget: an index between two multipliers."""
    rows, last = np.arange(costs.shape[0]), costs.shape[1] - 1
    above = np.minimum((costs > budget).sum(axis=1), last + 1)
    low, high = np.clip(above - 1, 0, last), np.clip(above, 0, last)
    span = costs[rows, low] - costs[rows, high]
    part = np.where(span > 0, (costs[rows, low] - budget) / np.where(span > 0, span, 1.0), 0.0)
    return np.asarray(low + np.clip(part, 0.0, 1.0) * (high - low))


def _line_up(design: Design, rows: BinnedTable, layout: Layout) -> Blocks:
    """The columns of a design and their rows as the compiled loops see them."""
    may_change = layout.categories.signs.size > 2
    parts = [_describe(one, may_change) for one in design.columns]
    sizes = np.array([one.points.shape for one in parts], dtype=np.int64).reshape(-1, 2)
    n_bins = np.array([one.counts[0] for one in parts], dtype=np.int64)
    n_places = np.array([one.counts.size for one in parts], dtype=np.int64)
    is_category = np.array([one.is_category for one in parts], dtype=np.bool_)
    counts = np.where(is_category, layout.categories.signs.size, layout.numbers.signs.size)
    entries, codes, common = [], [], np.empty(len(parts), dtype=np.int64)
    kind = np.uint16 if int(n_bins.max(initial=0)) < 2**16 else np.uint32
    for at in range(len(parts)):
        own = rows.codes[:, at]
        common[at] = np.bincount(own, weights=rows.weights).argmax()
        others = np.flatnonzero(own != common[at])
        entries.append(others.astype(np.int32))
        codes.append(own[others].astype(kind))
    return Blocks(
        design.starts[:-1].copy(),
        sizes[:, 1].copy(),
        sizes[:, 0].copy(),
        _begin(sizes.prod(axis=1))[:-1],
        n_bins,
        n_places,
        _begin([one.ends.size for one in parts]),
        _begin(n_places)[:-1],
        np.concatenate([*(one.counts for one in parts), np.empty(0, dtype=np.int64)]),
        np.concatenate([*(_begin(one.counts)[:-1] for one in parts), np.empty(0, dtype=np.int64)]),
        _begin(counts * n_bins),
        is_category,
        np.concatenate([*(one.points.ravel() for one in parts), np.empty(0, dtype=np.float32)]),
        np.concatenate([one.ends for one in parts] or [np.empty(0)]).astype(np.int32),
        np.concatenate([one.costs for one in parts] or [np.empty(0)]).astype(np.float64),
        _begin([one.size for one in entries]),
        np.concatenate([*entries, np.empty(0, dtype=np.int32)]),
        np.concatenate([*codes, np.empty(0, dtype=kind)]),
        common,
    )


def _begin(sizes: Any) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _describe(column: Column, may_change: bool) -> Places:
    if isinstance(column, JointColumn):
        return column.places
    if isinstance(column, CategoryColumn):
        return _describe_category(column, may_change)
    return _describe_number(column)


def _describe_number(column: NumberColumn) -> Places:
    n_bins, n_places, size = column.basis.shape
    flat = np.ascontiguousarray(column.basis.reshape(n_bins * n_places, size))
    odd = np.random.default_rng(0).integers(1, 2**62, size).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    keys = (flat.view(np.uint32).astype(np.uint64) * odd).sum(axis=1) if size else np.zeros(len(flat), dtype=np.uint64)
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    places = np.empty((n_bins + 1, n_places), dtype=np.int32)
    places[:-1] = index.reshape(n_bins, n_places)
    places[-1] = first.size
    points = np.zeros((first.size + 1, column.n_weights), dtype=np.float32)
    points[:-1, :size] = flat[first]
    points[-1, size:] = 1.0
    costs = np.zeros(places.shape)
    costs[:-1] = column.costs
    return _lie_even(points, places, costs)


def _lie_even(points: Numbers, index: Numbers, costs: FloatArray, *, is_category: bool = False) -> Places:
    """Places of a column whose codes have equally many, (n_codes, n_places)."""
    counts = np.full(index.shape[1], index.shape[0], dtype=np.int64)
    return Places(points.astype(np.float32), index.T.ravel(), counts, costs.T.ravel(), is_category)


def _describe_category(column: CategoryColumn, may_change: bool) -> Places:
    """A point for each weight, and one for what weighs nothing."""
    size = column.n_weights
    points = np.eye(size + 1, size, dtype=np.float32)
    own = np.minimum(np.arange(column.n_codes), size)
    targets = np.flatnonzero(column.reachable)
    if column.unseen:
        targets = np.append(targets, size)
    if column.frozen or not may_change:
        targets = np.empty(0, dtype=np.int64)
    places = np.empty((column.n_codes, 1 + targets.size), dtype=np.int32)
    places[:, 0], places[:, 1:] = own, targets
    costs = np.zeros(places.shape)
    costs[:, 1:] = 1.0
    return _lie_even(points, places, costs, is_category=True)
