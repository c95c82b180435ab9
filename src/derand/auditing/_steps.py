"""The worst case of a sum without noise: whole scores and exact distances.

A number can enter a cell of a lower score from a distance; the label can fall only if the drops of some cells, one per
function, add up to the margin. Owns the proof that no such choice lies within a radius: cell by cell (linf, norm 0,
limits), by a price per distance, or by the least price of each whole drop. Everything is a fraction or a whole number.
Must not know noise or labels.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from derand.auditing._claim import Move
from derand.auditing._sides import Function, to_double

_UNIT = 2**61
_MOST_STEPS, _MOST_COARSE_STEPS, _MOST_COARSE_DROPS = 2**28, 2**26, 2**19


class Drop(NamedTuple):
    """A cell of a lower score that can be reached."""

    fall: int
    distance: Fraction
    """In units; cells to the left lie a hair farther away."""


def list_drops(function: Function, move: Move) -> list[Drop]:
    """The cells of lower scores that a number may reach, with how far away they are."""
    own = function.scores[bisect.bisect_right(function.edges, function.x)]
    if move.places is not None:
        x = Fraction(function.x)
        scores = [(function.scores[bisect.bisect_right(function.edges, z)], z) for z in move.places]
        return [Drop(own - score, abs(Fraction(z) - x) / move.unit) for score, z in scores if score < own]
    drops, last = [], len(function.edges)
    for cell, score in enumerate(function.scores):
        if score >= own:
            continue
        to_left = cell < last and function.edges[cell] <= function.x
        edge = function.edges[cell] if to_left else function.edges[cell - 1]
        if move.low < edge if to_left else move.high >= edge:
            drops.append(Drop(own - score, abs(Fraction(edge) - Fraction(function.x)) / move.unit))
    return drops


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
    near = [[drop for drop in drops if drop.distance < reach] for drops in by_function]
    if _add_largest(near) < margin:
        return True
    if norm not in (1, 2):
        return False
    power = int(norm)
    priced = [[(drop.fall, drop.distance**power) for drop in drops] for drops in near if drops]
    return _holds_by_price(priced, margin, reach**power) or _holds_by_drops(priced, margin, reach**power)


def _add_largest(by_function: Sequence[Sequence[Drop]]) -> int:
    return sum(max((drop.fall for drop in drops), default=0) for drops in by_function)


_Priced = list[list[tuple[int, Fraction]]]


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
