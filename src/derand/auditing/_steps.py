"""The worst case of a sum without noise: whole scores and exact distances.

A number can enter a cell of a lower score from a distance; the label can fall only if the drops of some cells, one per
function, add up to the margin. Owns the proof that no such choice lies within a radius: cell by cell (linf, norm 0,
limits), by a multiplier of the distance, or by the least cost of each whole decrease. Everything is a fraction or a
whole number. Must not know noise or labels.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from derand.auditing._balls import to_double
from derand.auditing._claim import Move
from derand.auditing._oriented import Axis, Function

_UNIT = 2**61
_MOST_STEPS, _MOST_COARSE_STEPS, _MOST_COARSE_DROPS = 2**28, 2**26, 2**19


class Drop(NamedTuple):
    """A cell of a lower score that can be reached."""

    decrease: int
    distances: tuple[Fraction, ...]
    """Of each column, in units; cells to the left lie a hair farther away."""

    def measure(self, norm: float) -> Fraction:
        """How far away it is, to the power of the norm; in others than 1 and 2 the farthest column."""
        if norm in (1, 2):
            return sum((one ** int(norm) for one in self.distances), Fraction(0))
        return max(self.distances)


def list_drops(function: Function, moves: Sequence[Move]) -> list[Drop]:
    """The cells of lower scores that the numbers of a function may reach, with how far away they are."""
    sides = [_measure_cells(axis, move) for axis, move in zip(function.axes, moves, strict=True)]
    sizes, own, drops = [len(axis.edges) + 1 for axis in function.axes], function.own, []
    for box in itertools.product(*sides):
        at = 0
        for size, (cell, _) in zip(sizes, box, strict=True):
            at = at * size + cell
        if function.scores[at] < own:
            drops.append(Drop(own - function.scores[at], tuple(far for _, far in box)))
    return drops


def _measure_cells(axis: Axis, move: Move) -> list[tuple[int, Fraction]]:
    """The cells that a number may reach, its own included, each with the least distance to it."""
    x, edges = axis.x, axis.edges
    if move.positions is not None:
        nearest: dict[int, Fraction] = {}
        for z in move.positions:
            cell, far = bisect.bisect_right(edges, z), abs(Fraction(z) - Fraction(x)) / move.unit
            nearest[cell] = min(far, nearest.get(cell, far))
        return sorted(nearest.items())
    own, cells = bisect.bisect_right(edges, x), []
    for cell in range(len(edges) + 1):
        edge = x if cell == own else edges[cell] if cell < own else edges[cell - 1]
        if cell == own or (move.low < edge if cell < own else move.high >= edge):
            cells.append((cell, abs(Fraction(edge) - Fraction(x)) / move.unit))
    return cells


def holds(by_function: Sequence[Sequence[Drop]], margin: int, norm: float | None, radius: float) -> bool:
    """Whether all drops within a radius, one per function, are proven to add up to less than the margin.

    Without a norm everything counts that can be reached; for norm 0 the radius says how many functions may drop.
    """
    if margin <= 0:
        return False
    if norm is None or norm == 0 or math.isinf(radius):
        largest = [max((drop.decrease for drop in drops), default=0) for drops in by_function]
        count = round(radius) if norm == 0 and not math.isinf(radius) else len(largest)
        return sum(sorted(largest, reverse=True)[:count]) < margin
    size = Fraction(radius) ** int(norm) if norm in (1, 2) else Fraction(radius)
    costly = [_keep_best([(drop.decrease, drop.measure(norm)) for drop in drops], size) for drops in by_function]
    if sum(max((decrease for decrease, _ in drops), default=0) for drops in costly) < margin:
        return True
    if norm not in (1, 2):
        return False
    costly = [drops for drops in costly if drops]
    return _holds_by_multiplier(costly, margin, size) or _holds_by_costs(costly, margin, size)


_Costly = list[list[tuple[int, Fraction]]]
"""Of each function, decreases with what they cost: distances to the power of the norm."""


def _keep_best(drops: list[tuple[int, Fraction]], size: Fraction) -> list[tuple[int, Fraction]]:
    """The drops of a cost below the size, but for those that another one beats: no smaller for no more."""
    kept: list[tuple[int, Fraction]] = []
    for decrease, cost in sorted(drops, key=lambda drop: (drop[1], -drop[0])):
        if cost < size and (not kept or decrease > kept[-1][0]):
            kept.append((decrease, cost))
    return kept


def _holds_by_multiplier(costly: _Costly, margin: int, size: Fraction) -> bool:
    """Whether some multiplier m proves it: what decreases exceed m times their cost adds up to margin - m size."""
    decreases = np.array([decrease for drops in costly for decrease, _ in drops], dtype=np.float64)
    costs = np.array([to_double(cost) for drops in costly for _, cost in drops])
    starts = np.cumsum([0, *map(len, costly[:-1])])

    def measure(multiplier: float) -> float:
        beyond = np.maximum.reduceat(decreases - multiplier * costs, starts)
        return margin - multiplier * to_double(size) - float(np.maximum(beyond, 0.0).sum())

    known = {to_double(decrease / cost) for drops in costly for decrease, cost in drops if cost}
    some = sorted(one for one in known if math.isfinite(one))[:: max(1, len(known) // 512)]
    for multiplier in map(Fraction, sorted(some, key=measure, reverse=True)[:3]):
        beyond = Fraction(0)
        for drops in costly:
            beyond += max(Fraction(0), *(decrease - multiplier * cost for decrease, cost in drops))
        if beyond <= margin - multiplier * size:  # decreases of the margin or more would cost size or more
            return True
    return False


def _holds_by_costs(costly: _Costly, margin: int, size: Fraction) -> bool:
    """Whether the least cost of a decrease by the margin, one function after the other, is the size or more.

    Costs are rounded downward to multiples of size / 2**61, so that sums of them are whole numbers. Where scores are
    too fine for a table of all decreases, these are rounded upward and the margin downward to multiples of a coarser
    step.
    """
    step = math.gcd(*(decrease for drops in costly for decrease, _ in drops))
    n_drops = sum(map(len, costly))
    if margin * n_drops <= _MOST_STEPS * step:
        margin = -(-margin // step)
    else:
        step = max(-(-margin * n_drops // _MOST_COARSE_STEPS), -(-margin // _MOST_COARSE_DROPS))
        margin //= step
    least = np.full(margin + 1, _UNIT, dtype=np.int64)
    least[0] = 0
    for drops in costly:
        before = least.copy()
        for decrease, cost in drops:
            shift = min(-(-decrease // step), margin)
            raised = np.minimum(before + int(min(cost * _UNIT // size, _UNIT)), _UNIT)
            np.minimum(least[shift:], raised[: margin + 1 - shift], out=least[shift:])
            least[margin] = min(int(least[margin]), int(raised[margin - shift :].min()))
    return bool(least[margin] >= _UNIT)
