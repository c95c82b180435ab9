"""The worst case of a sum with terms of several columns: how far a row can be moved before it can fall to a threshold.

The same questions as in `worst_case`, for sums in which a term may read several numbers (docs/theory.md, section 13).
Owns the search for distances and multipliers. Must not know rules or labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, TINY, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.grid_curves import Block, line_up_jumps, trace_grids
from derand.certificates.bounds.worst_case_base import DUAL, EXACT, WorstCase
from derand.kernels.worst_case.drops import WHOLE
from derand.kernels.worst_case.grids import Grids, bound_grids
from derand.kernels.worst_case.jump_search import JUMP_ERROR, search_jump_squares
from derand.kernels.worst_case.steps import GridStairs, Reach, add_grid_scores, compute_grid_floors, measure_distances
from derand.noise import Noise

_RATIO = {1: 4.0, 2: 8.0}
"""Of neighbouring multipliers that are tried first, by power."""
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
        # where numbers may become anything and squares are paid for, many axes need no knots, which take long
        self._quick = trace_grids(blocks, noise, units, with_all_knots=norm != 2)
        self._full: Grids | None = None if norm == 2 else self._quick
        self._jumps = line_up_jumps(blocks, self._quick) if norm == 2 and len(blocks) > _FEW_TERMS else None
        self._jump_error = JUMP_ERROR * float(sum(block.range * len(block.features) for block in blocks))
        self._trace: Callable[[], Grids] = lambda: trace_grids(blocks, noise, units)
        ranges = np.array([block.range for block in blocks])
        self._lowest = float(sum(float(block.scores.min()) for block in blocks))
        self._error = EPSILON * (len(blocks) + 16) * float(ranges.sum())
        with np.errstate(over="ignore"):
            widest = np.array(
                [max(units[at] / noise.scales(np.array([at]))[0] for at in one.features) for one in blocks]
            )
            self._slopes = np.maximum(ranges * widest, 1e-300)  # in units; densities are at most 1 per scale
        self._widest = max(float(widest.max()), TINY)

    def bound_radii(
        self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found."""
        how = np.full(thresholds.shape, DUAL, dtype=np.uint8)
        if self._norm is None:
            assert box is not None  # without a ball there is always one
            return np.where(self.compute_lowest(rows, box)[:, None] > thresholds, np.inf, 0.0), how
        box = _open_box(rows) if box is None else box
        columns = [self._bound_column(rows, thresholds[:, k], box) for k in range(thresholds.shape[1])]
        return np.stack(columns, axis=1) if columns else np.zeros(thresholds.shape), how

    def _bound_column(self, rows: FloatArray, thresholds: FloatArray, box: Reach) -> FloatArray:
        """One threshold per row."""
        if self._jumps is not None and not (np.isfinite(box.low) | np.isfinite(box.high)).any():
            squares = search_jump_squares(rows, thresholds, self._jumps, self._error + self._jump_error)
            return np.where(-self._error > thresholds, np.inf, np.sqrt(squares) * (1 - 2 * EPSILON))
        floors = self.compute_floors(rows, box)
        free = floors.sum(axis=1) - self._error > thresholds
        if self._norm == 0:
            own = self.compute_floors(rows, Reach(rows, rows, box.steps))
            return np.where(free, np.inf, _count_terms(own, floors, thresholds + self._error))
        radii = np.full(rows.shape[0], np.inf)
        at = np.flatnonzero(~free)
        if not at.size:
            return radii
        part = Reach(box.low[at], box.high[at], box.steps)
        if self._norm == np.inf:
            radii[at] = self._search_box(rows[at], thresholds[at], part)
            return radii
        found = self._maximise_dual(rows[at], thresholds[at], part, int(self._norm or 2))
        few = self._slopes.size <= _FEW_TERMS
        if few:
            found = np.maximum(found, self._search_box(rows[at], thresholds[at], part))
        if few and self._norm == 1:  # an l1 ball lies in the l2 ball of its radius
            found = np.maximum(found, self._maximise_dual(rows[at], thresholds[at], part, 2))
        radii[at] = found
        return radii

    def compute_lowest(self, rows: FloatArray, box: Reach) -> FloatArray:
        """Lower bounds of the least sum within the box."""
        return np.asarray(self.compute_floors(rows, box).sum(axis=1) - self._error)

    def compute_floors(self, rows: FloatArray, box: Reach) -> FloatArray:
        """Lower bounds of the least value of each function within the box; steps count as any change."""
        return self._bound(rows, box.low, box.high, np.zeros(rows.shape[0]), 1)

    def _bound(
        self, rows: FloatArray, low: FloatArray, high: FloatArray, multipliers: FloatArray, power: int
    ) -> FloatArray:
        """As `bound_grids`, with knots where there are windows that are neither open nor a point."""
        if self._full is None:
            bounded = (np.isfinite(low) | np.isfinite(high)) & ((low != rows) | (high != rows)) & ~np.isnan(rows)
            if not bounded.any() and (power == 2 or not multipliers.any()):
                return bound_grids(rows, self._quick, low, high, multipliers, power)
            self._full = self._trace()
        return bound_grids(rows, self._full, low, high, multipliers, power)

    def _search_box(self, rows: FloatArray, thresholds: FloatArray, box: Reach) -> FloatArray:
        """The largest distance seen such that no move of all numbers by so much each takes the sum to the threshold."""

        def holds(radii: FloatArray) -> BoolArray:
            with np.errstate(invalid="ignore", over="ignore"):
                away = radii[:, None] * self._units * (1 + 8 * EPSILON) + 8 * EPSILON * np.abs(rows)
                low, high = np.maximum(box.low, rows - away), np.minimum(box.high, rows + away)
            return np.asarray(self.compute_lowest(rows, Reach(low, high, box.steps)) > thresholds)

        return _search_distances(holds, rows.shape[0], _FIRST / self._widest)

    def _maximise_dual(self, rows: FloatArray, thresholds: FloatArray, box: Reach, power: int) -> FloatArray:
        """The best of many multipliers for each row."""
        best = np.zeros(rows.shape[0])
        if not 1 / _HUGE < self._widest < _HUGE:
            return best

        def prove(multipliers: FloatArray, at: IntArray) -> FloatArray:
            bounds = self._bound(rows[at], box.low[at], box.high[at], multipliers, power)
            margin = bounds.sum(axis=1) - self._error - thresholds[at]
            return np.asarray(np.maximum(margin, 0.0) / multipliers * (1 - 4 * EPSILON))

        at = np.flatnonzero(
            self.compute_lowest(rows, Reach(rows, rows, box.steps)) > thresholds
        )  # else none proves a thing
        if at.size:
            best[at] = self._search_multipliers(prove, at, power)
        return np.asarray(best if power == 1 else np.sqrt(best) * (1 - 2 * EPSILON))

    def _search_multipliers(
        self, prove: Callable[[FloatArray, IntArray], FloatArray], at: IntArray, power: int
    ) -> FloatArray:
        """Powers of distances that the best multiplier proves: coarse ones first, then between neighbours."""
        steepest = float(self._slopes.max())
        top = steepest if power == 1 else steepest * math.sqrt(float(((self._slopes / steepest) ** 2).sum()))
        top *= 1.0 if power == 1 else 16 * self._widest
        coarse = top * _RATIO[power] ** -np.arange(_COARSE - 1, -1, -1.0)
        best, position = np.zeros(at.size), np.zeros(at.size, dtype=np.int64)
        if not (coarse[0] > 1 / _HUGE and coarse[-1] < _HUGE):
            return best
        left = np.arange(at.size)
        for k in range(_COARSE - 1, -1, -1):  # what a multiplier proves rises and falls but once; high ones are quick
            powers = prove(np.full(left.size, coarse[k]), at[left])
            better = powers > best[left]
            best[left], position[left] = np.where(better, powers, best[left]), np.where(better, k, position[left])
            left = left[better | (best[left] == 0)]
            if not left.size:
                break
        left = np.flatnonzero(best > 0)
        if left.size:
            logs = np.log(coarse)
            low, high = logs[np.maximum(position[left] - 1, 0)], logs[np.minimum(position[left] + 1, _COARSE - 1)]
            found = _refine(lambda one: prove(np.exp(one), at[left]), low, high)
            best[left] = np.maximum(best[left], found)
        return best


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
    """How many columns may become anything: at worst each change is of another term, which decreases all the way.

    A bound: several columns of one term count as often as terms, and decrease but once.
    """
    decreases = -np.sort(-np.maximum(own - floors, 0.0), axis=1)
    left = own.sum(axis=1)[:, None] - np.cumsum(decreases, axis=1) * (1 + EPSILON * (decreases.shape[1] + 8))
    starts = own.sum(axis=1) > thresholds
    return np.where(starts, (left > thresholds[:, None]).sum(axis=1), 0.0).astype(np.float64)


def _open_box(rows: FloatArray) -> Reach:
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

    def bound_radii(
        self, rows: FloatArray, thresholds: FloatArray, box: Reach | None = None
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Lower bounds of the distance, and how each was found; steps count as any change."""
        stepped = box is not None and bool(box.steps.any())
        if self._norm is None:
            assert box is not None  # without a ball there is always one
            holds = self.compute_lowest(rows, box)[:, None] > thresholds
            return np.where(holds, np.inf, 0.0), np.full(thresholds.shape, DUAL if stepped else EXACT, dtype=np.uint8)
        box = _open_box(rows) if box is None else box
        radii, how = measure_distances(rows, self._stairs, thresholds.astype(np.int64), self._norm, box)
        exact = (how == WHOLE) & (self._norm != 0) & (not stepped)
        return radii, np.where(exact, EXACT, DUAL).astype(np.uint8)

    def compute_lowest(self, rows: FloatArray, box: Reach) -> FloatArray:
        """The least sum within the box, exactly but for steps."""
        return np.asarray(self.compute_floors(rows, box).sum(axis=1), dtype=np.float64)

    def compute_floors(self, rows: FloatArray, box: Reach) -> IntArray:
        """The least value of each function within the box, exactly but for steps."""
        return compute_grid_floors(rows, self._stairs, box)


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
