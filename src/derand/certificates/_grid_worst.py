"""The worst case of a sum with terms of several columns: how far a row can be moved before it can fall to a threshold.

The same questions as in `_worst`, for sums in which a term may read several numbers (docs/theory.md, section 13). Owns
the search for distances and prices. Must not know rules or labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates._grid_curves import Block, trace_grids
from derand.certificates._worst_base import DUAL, EXACT, WorstCase
from derand.kernels.grid_steps import GridStairs, add_grid_scores, find_grid_distances, find_grid_floors
from derand.kernels.grids import bound_grids
from derand.kernels.steps import WHOLE, Reach
from derand.noise import Noise

_RATIO = {1: 4.0, 2: 8.0}
"""Of neighbouring prices that are tried first, by power."""
_COARSE = 9
_GOLDEN = (math.sqrt(5.0) - 1) / 2
_REFINEMENTS = 8
_HALVINGS = 30
_FIRST = 2.0**-6
_FARTHEST, _NEAREST = 2.0**60, 2.0**-40
_HUGE = 1e140
"""Of distances in units: squares of larger ones may overflow."""
_FEW_TERMS = 8
"""Up to so many terms the box around a ball is asked, too."""


class SmoothedGridCase(WorstCase):
    """The worst case of functions of several numbers under noise."""

    def __init__(self, blocks: list[Block], noise: Noise, norm: float | None, units: FloatArray) -> None:
        self._norm, self._units = norm, units
        self._grids = trace_grids(blocks, noise, units)
        ranges = np.array([block.range for block in blocks])
        self._lowest = float(sum(float(block.scores.min()) for block in blocks))
        self._error = EPSILON * (len(blocks) + 16) * float(ranges.sum())
        widest = np.array([max(units[at] / noise.scales(np.array([at]))[0] for at in one.features) for one in blocks])
        self._slopes = np.maximum(ranges * widest, 1e-300)  # in units; densities are at most 1 per scale
        self._widest = float(widest.max())

    def find_radii(
        self, rows: FloatArray, thresholds: FloatArray, reach: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found."""
        how = np.full(thresholds.shape, DUAL, dtype=np.uint8)
        if self._norm is None:
            assert reach is not None  # without a ball there is always one
            return np.where(self.find_lowest(rows, reach)[:, None] > thresholds, np.inf, 0.0), how
        box = _open_reach(rows) if reach is None else reach
        columns = [self._find_column(rows, thresholds[:, k], box) for k in range(thresholds.shape[1])]
        return np.stack(columns, axis=1) if columns else np.zeros(thresholds.shape), how

    def _find_column(self, rows: FloatArray, thresholds: FloatArray, box: Reach) -> FloatArray:
        """One threshold per row."""
        floors = self.find_floors(rows, box)
        free = floors.sum(axis=1) - self._error > thresholds
        if self._norm == 0:
            own = self.find_floors(rows, Reach(rows, rows, box.steps))
            return np.where(free, np.inf, _count_terms(own, floors, thresholds + self._error))
        radii = np.full(rows.shape[0], np.inf)
        at = np.flatnonzero(~free)
        if not at.size:
            return radii
        part = Reach(box.low[at], box.high[at], box.steps)
        if self._norm == np.inf:
            radii[at] = self._find_box(rows[at], thresholds[at], part)
            return radii
        found = self._price(rows[at], thresholds[at], part, int(self._norm or 2))
        few = self._slopes.size <= _FEW_TERMS
        again = np.arange(at.size) if few else np.flatnonzero(found == 0)
        if again.size:
            smaller = Reach(part.low[again], part.high[again], part.steps)
            boxes = self._find_box(rows[at[again]], thresholds[at[again]], smaller)
            found[again] = np.maximum(found[again], boxes)
        if few and self._norm == 1:  # an l1 ball lies in the l2 ball of its radius
            found = np.maximum(found, self._price(rows[at], thresholds[at], part, 2))
        radii[at] = found
        return radii

    def find_lowest(self, rows: FloatArray, reach: Reach) -> FloatArray:
        """Lower bounds of the least sum within the reach."""
        return np.asarray(self.find_floors(rows, reach).sum(axis=1) - self._error)

    def find_floors(self, rows: FloatArray, reach: Reach) -> FloatArray:
        """Lower bounds of the least value of each function within the reach; steps count as any change."""
        return bound_grids(rows, self._grids, reach.low, reach.high, np.zeros(rows.shape[0]), 1)

    def _find_box(self, rows: FloatArray, thresholds: FloatArray, box: Reach) -> FloatArray:
        """The largest distance seen such that no move of all numbers by so much each takes the sum to the threshold."""

        def holds(radii: FloatArray) -> BoolArray:
            with np.errstate(invalid="ignore", over="ignore"):
                away = radii[:, None] * self._units * (1 + 8 * EPSILON) + 8 * EPSILON * np.abs(rows)
                low, high = np.maximum(box.low, rows - away), np.minimum(box.high, rows + away)
            return np.asarray(self.find_lowest(rows, Reach(low, high, box.steps)) > thresholds)

        return _search_distances(holds, rows.shape[0], _FIRST / self._widest)

    def _price(self, rows: FloatArray, thresholds: FloatArray, box: Reach, power: int) -> FloatArray:
        """The best of many prices for each row: coarse ones first, then between the neighbours of the best."""
        steepest = float(self._slopes.max())
        top = steepest if power == 1 else steepest * math.sqrt(float(((self._slopes / steepest) ** 2).sum()))
        top *= 1.0 if power == 1 else 16 * self._widest
        coarse = top * _RATIO[power] ** -np.arange(_COARSE - 1, -1, -1.0)
        if not (coarse[0] > 1 / _HUGE and coarse[-1] < _HUGE and 1 / _HUGE < self._widest < _HUGE):
            return np.zeros(rows.shape[0])

        def prove(prices: FloatArray, at: IntArray) -> FloatArray:
            bounds = bound_grids(rows[at], self._grids, box.low[at], box.high[at], prices, power)
            margin = bounds.sum(axis=1) - self._error - thresholds[at]
            return np.asarray(np.maximum(margin, 0.0) / prices * (1 - 4 * EPSILON))

        best, place = np.zeros(rows.shape[0]), np.zeros(rows.shape[0], dtype=np.int64)
        own = Reach(rows, rows, box.steps)
        at = np.flatnonzero(self.find_lowest(rows, own) > thresholds)  # else no price proves anything
        for k in range(_COARSE - 1, -1, -1):  # what a price proves rises and falls but once; high ones are quick
            powers = prove(np.full(at.size, coarse[k]), at)
            better = powers > best[at]
            best[at], place[at] = np.where(better, powers, best[at]), np.where(better, k, place[at])
            at = at[better | (best[at] == 0)]
            if not at.size:
                break
        at = np.flatnonzero(best > 0)
        if at.size:
            logs = np.log(coarse)
            low, high = logs[np.maximum(place[at] - 1, 0)], logs[np.minimum(place[at] + 1, _COARSE - 1)]
            best[at] = np.maximum(best[at], _refine(lambda one: prove(np.exp(one), at), low, high))
        return np.asarray(best if power == 1 else np.sqrt(best) * (1 - 2 * EPSILON))


def _refine(prove: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """The largest value seen between two ends by golden sections."""
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = prove(inner), prove(outer)
    best = np.maximum(at_inner, at_outer)
    for _ in range(_REFINEMENTS - 2):
        left = at_inner >= at_outer
        low, high = np.where(left, low, inner), np.where(left, outer, high)
        fresh = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = prove(fresh)
        inner, outer = np.where(left, fresh, outer), np.where(left, inner, fresh)
        at_inner, at_outer = np.where(left, value, at_outer), np.where(left, at_inner, value)
        best = np.maximum(best, value)
    return best


def _search_distances(holds: Callable[[FloatArray], BoolArray], n_rows: int, first: float) -> FloatArray:
    """The largest distance of each row that was seen to hold: growing while it does, then by halving."""
    good, bad = np.zeros(n_rows), np.full(n_rows, np.inf)
    trial = np.full(n_rows, min(max(first, _NEAREST), _FARTHEST))
    for _ in range(_HALVINGS):
        held = holds(trial)
        good, bad = np.where(held, np.maximum(good, trial), good), np.where(held, bad, np.minimum(bad, trial))
        grown = np.where(np.isinf(bad), np.minimum(good * 4, _FARTHEST), bad / 4)
        trial = np.where(np.isinf(bad) | (good == 0), grown, 0.5 * (good + np.where(np.isinf(bad), good, bad)))
        if (trial < _NEAREST * first).all():
            break
    return good


def _count_terms(own: FloatArray, floors: FloatArray, thresholds: FloatArray) -> FloatArray:
    """How many columns may become anything: each change is one of another term at worst, which then falls all the way.

    A bound: several columns of one term count as often as terms, and fall but once.
    """
    falls = -np.sort(-np.maximum(own - floors, 0.0), axis=1)
    left = own.sum(axis=1)[:, None] - np.cumsum(falls, axis=1) * (1 + EPSILON * (falls.shape[1] + 8))
    starts = own.sum(axis=1) > thresholds
    return np.where(starts, (left > thresholds[:, None]).sum(axis=1), 0.0).astype(np.float64)


def _open_reach(rows: FloatArray) -> Reach:
    wide = np.full(rows.shape, np.inf)
    return Reach(-wide, wide, np.zeros(rows.shape[1]))


class DeployedGridCase(WorstCase):
    """The worst case of the functions themselves, without noise; thresholds are whole numbers."""

    def __init__(self, blocks: list[Block], norm: float | None, units: FloatArray) -> None:
        self._norm = norm
        self._stairs = _build_stairs(blocks, units)

    def add_scores(self, rows: FloatArray) -> IntArray:
        """The sum of all functions at each row."""
        return add_grid_scores(rows, self._stairs)

    def find_radii(
        self, rows: FloatArray, thresholds: FloatArray, reach: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found; steps count as any change."""
        stepped = reach is not None and bool(reach.steps.any())
        if self._norm is None:
            assert reach is not None  # without a ball there is always one
            holds = self.find_lowest(rows, reach)[:, None] > thresholds
            return np.where(holds, np.inf, 0.0), np.full(thresholds.shape, DUAL if stepped else EXACT, dtype=np.uint8)
        box = _open_reach(rows) if reach is None else reach
        radii, how = find_grid_distances(rows, self._stairs, thresholds.astype(np.int64), self._norm, box)
        exact = (how == WHOLE) & (self._norm != 0) & (not stepped)
        return radii, np.where(exact, EXACT, DUAL).astype(np.uint8)

    def find_lowest(self, rows: FloatArray, reach: Reach) -> FloatArray:
        """The least sum within the reach, exactly but for steps."""
        return np.asarray(self.find_floors(rows, reach).sum(axis=1), dtype=np.float64)

    def find_floors(self, rows: FloatArray, reach: Reach) -> IntArray:
        """The least value of each function within the reach, exactly but for steps."""
        return find_grid_floors(rows, self._stairs, reach)


def _build_stairs(blocks: list[Block], units: FloatArray) -> GridStairs:
    def count(sizes: Any) -> IntArray:
        return np.cumsum([0, *sizes], dtype=np.int64)

    edges = [part for block in blocks for part in block.edges]
    features = np.array([at for block in blocks for at in block.features], dtype=np.int64)
    return GridStairs(
        count(len(block.features) for block in blocks),
        features,
        np.array([size for block in blocks for size in block.shape], dtype=np.int64),
        units[features],
        count(part.size for part in edges),
        np.concatenate(edges),
        count(block.scores.size for block in blocks),
        np.concatenate([block.scores for block in blocks]).astype(np.int64),
    )
