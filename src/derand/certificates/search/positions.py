"""Positions to which single numbers may be moved, and the worst point for a multiplier per distance, column by column.

Owns the choice of positions and the way from small changes to large ones that the separable worst case knows
(docs/theory.md, section 8), for any weights of cells. Must not know how cells are weighted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.packing import PackedTerms
from derand.certificates.search.feasible_set import FeasibleSet
from derand.certificates.search.grids import compute_grid_values

_NEAR = np.geomspace(1 / 1024, 2.0, 32)
"""In noise scales from the row; from there on evenly to beyond the last edge."""
_BEYOND = 4.0
_FAR = (12, 64)
"""How many positions there are on either side, at least and at most."""
_LOCAL = np.array([0.0, 0.4, 0.7, 0.85, 0.93, 0.97, 1.0, 1.03, 1.07, 1.15, 1.3, 1.6])
"""Shares of a move that was found, at which a better one is looked for."""
_HAIR = 1 / 64
"""In noise scales: over so much slopes are measured."""
_LEAST_MULTIPLIER = 1e-12
_HALVINGS = 18
_COMPLETIONS = 8
_PUT_BACK = 6


class Landscape:
    """Some positions of each number of a block of rows, the row's own first, and what a move there costs.

    Attributes
    ----------
    positions, costs : arrays of shape (n_rows, n_positions, n_columns)
        Of the columns `feasible.features`; costs in units.
    """

    def __init__(self, feasible: FeasibleSet, sums: Sequence[PackedTerms], positions: FloatArray) -> None:
        self._feasible, self._columns = feasible, feasible.features
        moving = feasible.moving[:, self._columns]
        starts = feasible.starts[:, self._columns]
        self.positions = _keep_positions(feasible, positions)
        with np.errstate(over="ignore"):
            self.costs = np.where(moving[:, None], np.abs(self.positions - starts[:, None]), 0.0)
            self.costs /= feasible.units[self._columns]
        self._parts = [self._share_out(terms) for terms in sums]
        self._sums = sums

    def _share_out(self, terms: PackedTerms) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
        """The share of noise that lies right of each edge, per position; edges, where terms begin, their columns."""
        where = np.full(self._feasible.starts.shape[1], -1)
        where[self._columns] = np.arange(self._columns.size)
        edges = np.flatnonzero(where[terms.edge_features] >= 0)
        columns = where[terms.edge_features[edges]]
        first = np.flatnonzero(np.diff(terms.edge_terms[edges], prepend=-1))
        standing = np.where(self._feasible.moving[:, None, self._columns], self.positions, 0.0)
        away = standing[:, :, columns] - terms.edges[edges]
        noise = self._feasible.noise
        if noise is None:
            shares = (away >= 0).astype(np.float64)
        else:
            with np.errstate(over="ignore"):
                scaled = away / noise.scales(terms.edge_features[edges])
            shares = noise.cdf(np.clip(scaled, -1e3, 1e3))  # to nearest is enough here
        return shares, edges + terms.edge_terms[edges], first, columns[first]

    def compute_decreases(self, member_weights: Sequence[FloatArray]) -> FloatArray:
        """By how much a move to each position lowers the sum of weights, (n_rows, n_positions, n_columns)."""
        decreases = np.zeros(self.positions.shape)
        for weights, (shares, left, first, columns) in zip(member_weights, self._parts, strict=True):
            if left.size:
                increases = (weights[:, left + 1] - weights[:, left])[:, None]
                decreases[:, :, columns] -= np.add.reduceat(shares * increases, first, axis=2)
        for weights, terms in zip(member_weights, self._sums, strict=True):
            self._lower_grids(decreases, weights, terms)
        decreases -= decreases[:, :1]
        return np.where(self._feasible.moving[:, None, self._columns], decreases, 0.0)

    def _lower_grids(self, decreases: FloatArray, weights: FloatArray, terms: PackedTerms) -> None:
        """The same for terms of several columns, one number being moved at a time."""
        for at, grid in enumerate(terms.grids, terms.n_plain):
            own = weights[:, terms.starts[at] : terms.starts[at + 1]]
            for axis, feature in enumerate(grid.features):
                for column in np.flatnonzero(self._columns == feature).tolist():
                    values = np.where(self._feasible.moving[:, [feature]], self.positions[:, :, column], 0.0)
                    decreases[:, :, column] -= compute_grid_values(
                        grid, own, self._feasible.starts, axis, values, self._feasible.noise
                    )

    def put_points(self, columns: FloatArray) -> FloatArray:
        """The rows with these values, (n_rows, n_columns), in the columns that move."""
        points = self._feasible.starts.copy()
        points[:, self._columns] = columns
        return np.where(self._feasible.moving, points, self._feasible.starts)

    def walk(self, decreases: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """The way from the rows, at 0, to where all columns are at their worst, at 1; a share for each row."""
        norm = self._feasible.norm
        if norm is None:
            worst = self.put_points(pick(self.positions, decreases.argmax(axis=1)))
            return lambda shares: np.where(shares[:, None] > 0, worst, self._feasible.starts)
        if norm == 0:
            return self._walk_by_columns(decreases)
        return self._walk_by_windows(decreases) if math.isinf(norm) else self._walk_by_multipliers(decreases, norm)

    def _walk_by_multipliers(self, decreases: FloatArray, norm: float) -> Callable[[FloatArray], FloatArray]:
        """For ever lower multipliers per distance to the power of the norm."""
        _, choose = self._choose_by_multipliers(decreases, norm)
        return lambda shares: self.put_points(pick(self.positions, choose(shares)))

    def _choose_by_multipliers(
        self, decreases: FloatArray, norm: float
    ) -> tuple[FloatArray, Callable[[FloatArray], IntArray]]:
        """Scaled distances to the power of the norm, and the best position per column for a multiplier."""
        largest = np.where(np.isfinite(self.costs), self.costs, 0.0).max(axis=(1, 2), initial=0.0)
        with np.errstate(all="ignore"):  # shares of the largest distance: squares of others may vanish or overflow
            costs = np.minimum(np.ldexp(self.costs, -np.frexp(largest)[1][:, None, None]) ** norm, 1e200)
            top = np.where((costs > 0) & (decreases > 0), decreases / costs, 0.0).max(axis=(1, 2), initial=0.0)
        top = np.where(np.isfinite(top), top, 1e200)

        def choose(shares: FloatArray) -> IntArray:
            multiplier = 1.01 * top * _LEAST_MULTIPLIER**shares
            with np.errstate(over="ignore"):
                return np.asarray((decreases - multiplier[:, None, None] * costs).argmax(axis=1))

        return costs, choose

    def complete(
        self, decreases: FloatArray, needed: FloatArray, shares: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Pairs of points before a turn, the second with one more column moved, so that the sum decreases enough.

        That column, and its position, are the cheapest of all; where no column does, the points are the same. The first
        points lie on the way, or at its turn with one of the farthest columns put back.

        `needed` is how much the sum must decrease, `shares` where on the way the turn is, both (n_rows,).
        """
        costs, choose = self._choose_by_multipliers(decreases, float(self._feasible.norm or 1))
        for part in np.linspace(0.0, 1.0, _COMPLETIONS):
            yield self._complete_one(decreases, costs, needed, choose(part * shares))
        turn = choose(shares)
        farthest = np.argsort(-pick(costs, turn), axis=1, kind="stable")
        for k in range(min(_PUT_BACK, farthest.shape[1])):
            best = turn.copy()
            np.put_along_axis(best, farthest[:, k, None], 0, axis=1)
            yield self._complete_one(decreases, costs, needed, best)

    def _complete_one(
        self, decreases: FloatArray, costs: FloatArray, needed: FloatArray, best: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        fallen = pick(decreases, best)
        missing = needed - fallen.sum(axis=1)
        enough = decreases - fallen[:, None] >= missing[:, None, None]
        extra = np.where(enough, costs - pick(costs, best)[:, None], np.inf).reshape(len(decreases), -1)
        position, column = np.divmod(extra.argmin(axis=1), decreases.shape[2])
        rows = np.flatnonzero(np.isfinite(extra.min(axis=1)))
        near = pick(self.positions, best)
        far = near.copy()
        far[rows, column[rows]] = self.positions[rows, position[rows], column[rows]]
        return self.put_points(near), self.put_points(far)

    def _walk_by_windows(self, decreases: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """For ever larger distances of single columns; where the end of a window is best, to that end itself."""
        most = self.costs.max(axis=(1, 2), initial=0.0)
        starts, units = self._feasible.starts[:, self._columns], self._feasible.units[self._columns]
        signs = np.sign(np.nan_to_num(self.positions - starts[:, None]))

        def point(shares: FloatArray) -> FloatArray:
            window = (shares * most)[:, None, None]
            inside = self.costs <= window
            best = np.where(inside, decreases, -np.inf).argmax(axis=1)
            sign, cost = pick(signs, best), pick(self.costs, best)
            same_sign = signs == sign[:, None]
            farther = (inside & same_sign & (self.costs > cost[:, None])).any(axis=1)
            beyond = (~inside & same_sign).any(axis=1) & (self._feasible.noise is not None)
            with np.errstate(over="ignore", invalid="ignore"):
                ends = starts + sign * window[:, 0] * units
            return self.put_points(np.where(beyond & ~farther & (sign != 0), ends, pick(self.positions, best)))

        return point

    def _walk_by_columns(self, decreases: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Columns at their worst, one after the other, those that do most first."""
        deepest = decreases.max(axis=1)
        ranks = np.argsort(np.argsort(-deepest, axis=1, kind="stable"), axis=1, kind="stable")
        useful = (deepest > 0).sum(axis=1)
        worst, own = pick(self.positions, decreases.argmax(axis=1)), self.positions[:, 0]

        def point(shares: FloatArray) -> FloatArray:
            count = np.ceil(shares * useful)
            return self.put_points(np.where(ranks < count[:, None], worst, own))

        return point


def pick(values: FloatArray, at: IntArray) -> FloatArray:
    """The entries of shape (n_rows, n_columns) of one position per column."""
    return np.asarray(np.take_along_axis(values, at[:, None], axis=1)[:, 0])


def _keep_positions(feasible: FeasibleSet, positions: FloatArray) -> FloatArray:
    """The nearest positions that the threat allows."""
    n_rows, n_positions, _ = positions.shape
    points = np.repeat(feasible.starts, n_positions, axis=0)
    points[:, feasible.features] = positions.reshape(n_rows * n_positions, -1)
    kept = feasible.keep_within(points, np.repeat(np.arange(n_rows), n_positions))
    return kept[:, feasible.features].reshape(positions.shape)


class Turn(NamedTuple):
    """Where the answers of some rows flip on a way.

    Attributes
    ----------
    at : array of integers, shape (n,)
        The rows that flip at the end of the way.
    shares : array of shape (n,)
        How far on the way.
    near, far : arrays of shape (n, n_features)
        The last point before, and the first one that flips.
    """

    at: IntArray
    shares: FloatArray
    near: FloatArray
    far: FloatArray


def locate_turn(feasible: FeasibleSet, point: Callable[[FloatArray], FloatArray]) -> Turn:
    """Where a way turns, by halving: it may flip and flip back, so that there may be earlier turns."""
    everyone = np.arange(len(feasible))
    far = feasible.keep_within(point(np.ones(len(feasible))), everyone)
    flips = feasible.check_flips(far, everyone)
    near, low, high = feasible.starts.copy(), np.zeros(len(feasible)), np.ones(len(feasible))
    if not flips.any():
        return Turn(np.empty(0, dtype=np.int64), high[:0], near[:0], far[:0])
    at = np.flatnonzero(flips)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        points = feasible.keep_within(point(middle), everyone)[at]
        moved = np.zeros(len(feasible), dtype=bool)
        moved[at] = feasible.check_flips(points, at)
        far[at] = np.where(moved[at, None], points, far[at])
        near[at] = np.where(moved[at, None], near[at], points)
        low, high = np.where(moved, low, middle), np.where(moved, middle, high)
    return Turn(at, high[at], near[at], far[at])


def list_wide(feasible: FeasibleSet, sums: Sequence[PackedTerms]) -> FloatArray:
    """Positions from the row to beyond all edges: under noise ever denser near the row, else beside each edge."""
    starts = np.nan_to_num(feasible.starts[:, feasible.features])
    edges = [_list_edges(sums, feature) for feature in feasible.features.tolist()]
    if feasible.noise is None:
        return _list_beside_edges(feasible, starts, edges)
    scales = feasible.noise.scales(feasible.features)
    least, most = (np.array([ends[at] for ends in edges]) for at in (0, -1))
    with np.errstate(over="ignore", invalid="ignore"):
        widest = float(np.nan_to_num((most - least) / scales).max(initial=0.0))
        count = int(np.clip(widest, *_FAR))
        parts = [starts[:, None]]
        for sign, ends in ((1.0, most), (-1.0, least)):
            far = np.maximum(sign * (ends - starts), 0.0) + _BEYOND * scales
            wide = np.linspace(0.0, 1.0, count + 1)[1:, None] * np.maximum(far, 2.5 * scales)[:, None]
            parts += [starts[:, None] + sign * scales * _NEAR[:, None], starts[:, None] + sign * wide]
        return np.nan_to_num(np.concatenate(parts, axis=1))


def _list_edges(sums: Sequence[PackedTerms], feature: int) -> FloatArray:
    """The edges of all sums in one column, increasing; 0 where there are none."""
    found = np.unique(np.concatenate([terms.list_edges(feature) for terms in sums]))
    return found if found.size else np.zeros(1)


def _list_beside_edges(feasible: FeasibleSet, starts: FloatArray, edges: list[FloatArray]) -> FloatArray:
    """The nearest number beyond each edge, by whole steps where there are some."""
    most = max((one.size for one in edges), default=0)
    positions = np.repeat(starts[:, None], most + 1, axis=1)
    for column, (one, step) in enumerate(
        zip(edges, feasible.target.perturbation.steps[feasible.features].tolist(), strict=True)
    ):
        own = starts[:, column, None]
        above = one > own
        beside = np.where(above, one, np.nextafter(one, -np.inf))
        if step:
            count = np.where(above, np.ceil((one - own) / step), np.floor((beside - own) / step))
            falls_short = np.where(above, own + count * step < one, own + count * step >= one)
            count += np.where(falls_short, np.where(above, 1.0, -1.0), 0.0)
            beside = own + count * step
        positions[:, 1 : one.size + 1, column] = beside
    return positions


def list_local(feasible: FeasibleSet, points: FloatArray) -> FloatArray:
    """Positions around points that were found, on the way from the rows."""
    starts, ends = feasible.starts[:, feasible.features], points[:, feasible.features]
    moves = np.nan_to_num(ends - starts)
    return np.nan_to_num(starts)[:, None] + _LOCAL[:, None] * moves[:, None]


def list_beside(feasible: FeasibleSet, points: FloatArray) -> FloatArray:
    """The row's own position, that of a point, and those a hair below and above it."""
    starts, here = (np.nan_to_num(rows[:, feasible.features]) for rows in (feasible.starts, points))
    hair = (
        np.zeros(feasible.features.size) if feasible.noise is None else _HAIR * feasible.noise.scales(feasible.features)
    )
    return np.stack([starts, here, here - hair, here + hair], axis=1)
