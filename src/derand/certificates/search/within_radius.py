"""How far a change within a radius can move an answer that is a number: places, and the best of them for a budget.

Owns the choice of places between the ends of what each number may become, and of how much of the radius each column
gets: by a multiplier per distance in l1 and l2, then greedily what is left. Must not know answers or threats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.packing import PackedTerms
from derand.certificates.search.feasible_set import FeasibleSet
from derand.certificates.search.positions import Landscape, list_wide

_HAIR = 1e-11
"""By how much, relatively, changes stay below the radius: sizes are rounded up by less."""
_PLACES = 97
_FINER = 25
_REACH = 8.0
"""Noise scales beyond the outermost edges, where nothing changes any more."""
_LEAST_PRICE = 1e-12
_LEAST_COST = 1e-10
"""Of the budget: moves that cost less are roundings, whose multiplier says nothing."""
_HALVINGS = 50
_COMPLETIONS = 12


@np.errstate(over="ignore", invalid="ignore")  # what is too far away is not taken
def compute_ends(feasible: FeasibleSet, terms: PackedTerms, radius: float) -> tuple[FloatArray, FloatArray]:
    """Between which ends the numbers in `ground.features` are looked at, both (n_rows, n_columns)."""
    columns = feasible.features
    starts = np.nan_to_num(feasible.starts[:, columns])
    low, high = (
        np.where(feasible.moving[:, columns], end[:, columns], starts) for end in (feasible.low, feasible.high)
    )
    if feasible.norm and math.isfinite(radius):
        span = radius * (1 - _HAIR) * feasible.units[columns]
        low, high = np.maximum(low, starts - span), np.minimum(high, starts + span)
    scales = 1.0 if feasible.noise is None else feasible.noise.scales(columns)
    edges = [terms.list_edges(feature) for feature in columns.tolist()]
    least, most = (np.array([one[at] if one.size else 0.0 for one in edges]) for at in (0, -1))
    low = np.maximum(low, np.minimum(starts, least - _REACH * scales))
    return low, np.minimum(high, np.maximum(starts, most + _REACH * scales))


def list_between(feasible: FeasibleSet, terms: PackedTerms, low: FloatArray, high: FloatArray) -> FloatArray:
    """Places between ends, the row's own first; without noise those beside edges."""
    if feasible.noise is None:
        return list_wide(feasible, [terms])
    starts = np.nan_to_num(feasible.starts[:, feasible.features])
    shares = np.linspace(0.0, 1.0, _PLACES)[:, None]
    return np.concatenate([starts[:, None], low[:, None] * (1 - shares) + high[:, None] * shares], axis=1)


def list_around(feasible: FeasibleSet, points: FloatArray, low: FloatArray, high: FloatArray, turn: int) -> FloatArray:
    """Places around points, as far as others were apart, ever finer from turn to turn; the row's own first."""
    starts, here = (np.nan_to_num(rows[:, feasible.features]) for rows in (feasible.starts, points))
    apart = (high - low) / (_PLACES - 1) * (2 / (_FINER - 1)) ** turn
    steps = np.linspace(-1.0, 1.0, _FINER)[:, None] * apart[:, None]
    around = np.clip(here[:, None] + steps, low[:, None], high[:, None])
    return np.concatenate([starts[:, None], here[:, None], around], axis=1)


def spend(
    feasible: FeasibleSet, landscape: Landscape, member_weights: Sequence[FloatArray], radius: float
) -> FloatArray:
    """The points of a landscape at which worths fall most within a radius, (n_rows, n_features)."""
    decreases, norm = landscape.compute_decreases(member_weights), feasible.norm
    costs = landscape.costs
    if norm and math.isfinite(radius):
        decreases = np.where(costs <= radius * (1 - _HAIR), decreases, -np.inf)
        decreases[:, 0] = 0.0
    if norm in (1, 2) and math.isfinite(radius):
        share, power = math.frexp(radius)  # squares of distances in other units than the radius may overflow
        with np.errstate(over="ignore"):
            paid = np.minimum(np.ldexp(costs, -power) ** float(norm), 1e200)
        best = _choose_by_multipliers(decreases, paid, (share * (1 - _HAIR)) ** norm)
    else:
        best = decreases.argmax(axis=1)
        if norm == 0:
            gains = np.take_along_axis(decreases, best[:, None], axis=1)[:, 0]
            ranks = np.argsort(np.argsort(-gains, axis=1, kind="stable"), axis=1, kind="stable")
            best = np.where(ranks < math.floor(min(radius, ranks.shape[1])), best, 0)
    chosen = np.take_along_axis(landscape.positions, best[:, None], axis=1)[:, 0]
    return landscape.put_points(chosen)


def stretch(feasible: FeasibleSet, points: FloatArray, radius: float) -> FloatArray:
    """The same moves, as far as the radius reaches."""
    everyone = np.arange(len(feasible))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        factor = radius * (1 - _HAIR) / feasible.measure(points, everyone)
        moved = feasible.starts + np.where(np.isfinite(factor), factor, 1.0)[:, None] * (points - feasible.starts)
    return feasible.keep_within(np.where(feasible.moving, moved, feasible.starts), everyone)


def _choose_by_multipliers(decreases: FloatArray, costs: FloatArray, budget: float) -> IntArray:
    """The place of each column: for the lowest multiplier whose places can be paid, and then what is left is spent."""
    with np.errstate(all="ignore"):
        top = np.where((costs > _LEAST_COST * budget) & (decreases > 0), decreases / costs, 0.0).max(
            axis=(1, 2), initial=0.0
        )
    top = np.where(np.isfinite(top), top, 1e200)

    def choose(shares: FloatArray) -> IntArray:
        multiplier = 1.01 * top * _LEAST_PRICE**shares
        return np.asarray((decreases - multiplier[:, None, None] * costs).argmax(axis=1))

    low, high = np.zeros(len(decreases)), np.ones(len(decreases))
    best = np.zeros((decreases.shape[0], decreases.shape[2]), dtype=np.int64)
    for share in (high, *(np.nan for _ in range(_HALVINGS))):
        middle = share if isinstance(share, np.ndarray) else 0.5 * (low + high)
        tried = choose(middle)
        fits = _take(costs, tried).sum(axis=1) <= budget
        best[fits] = tried[fits]
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return _spend_rest(decreases, costs, budget, best)


def _spend_rest(decreases: FloatArray, costs: FloatArray, budget: float, best: IntArray) -> IntArray:
    """One column after the other moved on to where most is gained by what is left."""
    best, every = best.copy(), np.arange(len(decreases))
    for _ in range(_COMPLETIONS):
        left = budget - _take(costs, best).sum(axis=1)
        extra = costs - _take(costs, best)[:, None]
        gains = np.where(extra <= left[:, None, None], decreases - _take(decreases, best)[:, None], -np.inf)
        flat = gains.reshape(len(decreases), -1)
        at = flat.argmax(axis=1) if flat.shape[1] else every * 0
        rows = np.flatnonzero(flat.max(axis=1, initial=-np.inf) > 0)
        if not rows.size:
            break
        position, column = np.divmod(at[rows], decreases.shape[2])
        best[rows, column] = position
    return best


def _take(values: FloatArray, at: IntArray) -> FloatArray:
    return np.asarray(np.take_along_axis(values, at[:, None], axis=1)[:, 0])
