"""The worst case of a sum without noise: whole scores and exact distances.

A number can enter a cell of a lower score from a distance; the label can fall only if the drops of some cells, one per
function, add up to the margin. Owns the proof that no such choice lies within a radius: cell by cell (linf, norm 0,
limits), by a price per distance, or by the least price of each whole drop. Everything is a fraction or a whole number.
Must not know noise or labels.
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
from derand.auditing._blocks import Block
from derand.auditing._claim import Move
from derand.auditing._oriented import Function

_UNIT = 2**61
_MOST_STEPS, _MOST_COARSE_STEPS, _MOST_COARSE_DROPS = 2**28, 2**26, 2**19


class Drop(NamedTuple):
    """A cell of a lower score that can be reached, or a box of several columns."""

    fall: int
    distances: tuple[Fraction, ...]
    """Of each column, in units; cells to the left lie a hair farther away."""

    def measure(self, norm: float) -> Fraction:
        """How far away it is, to the power of the norm; in others than 1 and 2 the farthest column."""
        if norm in (1, 2):
            return sum((one ** int(norm) for one in self.distances), Fraction(0))
        return max(self.distances)


def list_drops(function: Function, move: Move) -> list[Drop]:
    """The cells of lower scores that a number may reach, with how far away they are."""
    cells = _measure_cells(function.x, function.edges, move)
    drops = [Drop(function.own - function.scores[cell], (far,)) for cell, far in cells]
    return [drop for drop in drops if drop.fall > 0]


def list_block_drops(block: Block, moves: Sequence[Move]) -> list[Drop]:
    """The boxes of lower scores that the numbers of a block may reach, with how far away they are."""
    sides = [_measure_cells(axis.x, axis.edges, move) for axis, move in zip(block.axes, moves, strict=True)]
    sizes, own, drops = [len(axis.edges) + 1 for axis in block.axes], block.own, []
    for box in itertools.product(*sides):
        at = 0
        for size, (cell, _) in zip(sizes, box, strict=True):
            at = at * size + cell
        if block.scores[at] < own:
            drops.append(Drop(own - block.scores[at], tuple(far for _, far in box)))
    return drops


def _measure_cells(x: float, edges: Sequence[float], move: Move) -> list[tuple[int, Fraction]]:
    """The cells that a number may reach, its own included, each with the least distance to it."""
    if move.places is not None:
        nearest: dict[int, Fraction] = {}
        for z in move.places:
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

    Parameters
    ----------
    by_function : sequence of sequences of Drop
    margin : int
        The label falls where the sum drops by this much or more.
    norm : float or None
        None for everything that can be reached.
    radius : float
        For norm 0 how many functions may drop.
    """
    if margin <= 0:
        return False
    if norm is None or math.isinf(radius):
        return _add_largest(by_function) < margin
    if norm == 0:
        falls = sorted((max((drop.fall for drop in drops), default=0) for drops in by_function), reverse=True)
        return sum(falls[: round(radius)]) < margin
    reach = Fraction(radius)
    size = reach ** int(norm) if norm in (1, 2) else reach
    priced = [_keep_best([(drop.fall, drop.measure(norm)) for drop in drops], size) for drops in by_function]
    if sum(max((fall for fall, _ in drops), default=0) for drops in priced) < margin:
        return True
    if norm not in (1, 2):
        return False
    priced = [drops for drops in priced if drops]
    return _holds_by_price(priced, margin, size) or _holds_by_drops(priced, margin, size)


def _add_largest(by_function: Sequence[Sequence[Drop]]) -> int:
    return sum(max((drop.fall for drop in drops), default=0) for drops in by_function)


_Priced = list[list[tuple[int, Fraction]]]


def _keep_best(drops: list[tuple[int, Fraction]], size: Fraction) -> list[tuple[int, Fraction]]:
    """The drops of a price below the size, but for those that another one beats: no less of a fall for no more."""
    kept: list[tuple[int, Fraction]] = []
    for fall, price in sorted(drops, key=lambda drop: (drop[1], -drop[0])):
        if price < size and (not kept or fall > kept[-1][0]):
            kept.append((fall, price))
    return kept


def _holds_by_price(priced: _Priced, margin: int, size: Fraction) -> bool:
    """Whether some rate r proves it: what drops are worth beyond r times their price adds up to margin - r size."""
    falls = [np.array([fall for fall, _ in drops], dtype=np.float64) for drops in priced]
    prices = [np.array([to_double(price) for _, price in drops]) for drops in priced]

    def measure(rate: float) -> float:
        worth = sum(max(0.0, float((fall - rate * price).max())) for fall, price in zip(falls, prices, strict=True))
        return margin - rate * to_double(size) - worth

    rates = {to_double(fall / price) for drops in priced for fall, price in drops if price}
    some = sorted(rate for rate in rates if math.isfinite(rate))[:: max(1, len(rates) // 512)]
    for rate in sorted(some, key=measure, reverse=True)[:3]:
        exact = Fraction(rate)
        worth = Fraction(0)
        for drops in priced:
            worth += max(Fraction(0), *(fall - exact * price for fall, price in drops))
        if worth <= margin - exact * size:  # falls of the margin or more would cost size or more
            return True
    return False


def _holds_by_drops(priced: _Priced, margin: int, size: Fraction) -> bool:
    """Whether the least price of a drop of the margin, one function after the other, is the size or more.

    Prices are rounded downward to multiples of size / 2**61, so that sums of them are whole numbers. Where scores are
    too fine for a table of all drops, falls are rounded upward and the margin downward to multiples of a coarser step.
    """
    step = math.gcd(*(fall for drops in priced for fall, _ in drops))
    n_drops = sum(map(len, priced))
    if margin * n_drops <= _MOST_STEPS * step:
        margin = -(-margin // step)
    else:
        step = max(-(-margin * n_drops // _MOST_COARSE_STEPS), -(-margin // _MOST_COARSE_DROPS))
        margin //= step
    least = np.full(margin + 1, _UNIT, dtype=np.int64)
    least[0] = 0
    for drops in priced:
        before = least.copy()
        for fall, price in drops:
            shift = min(-(-fall // step), margin)
            cost = min(price * _UNIT // size, _UNIT)
            raised = np.minimum(before + int(cost), _UNIT)
            np.minimum(least[shift:], raised[: margin + 1 - shift], out=least[shift:])
            least[margin] = min(int(least[margin]), int(raised[margin - shift :].min()))
    return bool(least[margin] >= _UNIT)
