"""A function under noise, in balls: its value anywhere, and a proven lower bound of its least value on an interval.

The least value is found by subdivision: an interval is cut in two until what the function can bend between its ends is
less than what is asked for. Owns this search. Must not know models, labels or thresholds.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._balls import Ball, BallNoise, as_ball, float_below, to_double
from derand.auditing._claim import Move
from derand.auditing._oriented import Axis

BITS = 80
"""Of the balls: more than the doubles have to which bounds are rounded in the end."""
_MOST_CUTS = 20_000
_WIDER = 1 + 1e-12
_LEAST = 5e-324
_AROUND = np.concatenate([-np.geomspace(1 / 64, 12, 40)[::-1], [0.0], np.geomspace(1 / 64, 12, 40)])
_NEARER = 1 + np.concatenate([one * 2.0 ** -np.arange(2, 13) for one in (-1, 1)])
_BESIDE = np.array([-4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0])


class Lowest(NamedTuple):
    """The least value of a function on an interval."""

    bound: float
    """Proven: nowhere on the interval is it smaller."""
    place: float
    """Where it is least, of all places that were looked at."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a move costs: `multiplier * |distance / unit| ** power`."""

    multiplier: float
    power: int
    x: float
    unit: Fraction

    def at(self, z: float) -> Ball:
        """The cost of moving to z."""
        distance = (as_ball(z) - as_ball(self.x)) / as_ball(self.unit)
        return as_ball(self.multiplier) * (abs(distance) if self.power == 1 else distance * distance)

    def bend_over(self, width: float) -> float:
        """How much it bends times the square of a width, rounded upward; for the power 1 it has a kink at x alone."""
        share = width / float(self.unit)
        return 2 * self.multiplier * share * share * _WIDER if self.power == 2 else 0.0


class Curve:
    """The expected score of a function of one number under noise, as the number moves.

    What it is anywhere is kept: all rows of a table ask for it, and intervals are cut at the same places. Scores are
    cut off `cap` above the least one. `shares` are those of the noise below edges, by place and edge, that other curves
    with these edges have asked for.
    """

    def __init__(
        self,
        axis: Axis,
        scores: tuple[int, ...],
        noise: BallNoise,
        cap: int | None = None,
        shares: dict[tuple[float, int], Ball] | None = None,
    ) -> None:
        lowest = min(scores)
        self.edges, self._noise = axis.edges, noise
        self.scores = scores if cap is None else tuple(min(score, lowest + cap) for score in scores)
        self._jumps = [after - before for before, after in itertools.pairwise(self.scores)]
        self.variation = float(sum(map(abs, self._jumps)))
        self.range = max(self.scores) - lowest
        self._exact = noise.scale_of(axis.feature)
        self._inverse, self.scale = as_ball(1 / self._exact), float(self._exact)
        self._places = [as_ball(edge) for edge in self.edges]
        self._cuts, self._heights = np.array(self.edges), np.abs(np.array(self._jumps, dtype=np.float64))
        beyond = as_ball(noise.tail * self.variation)
        self._beyond = beyond.union(-beyond)
        self._known: dict[float, Ball] = {}
        self._shares = shares

    def value(self, z: float) -> Ball:
        """The expected score at z. Edges that the noise hardly reaches count as passed, or not, up to its tail."""
        if z not in self._known:
            # no double lies between a number and what it is rounded to: edges are told apart as by exact ends
            far = self._noise.reach * self.scale * 1.01
            first, last = bisect.bisect_left(self.edges, z - far), bisect.bisect_right(self.edges, z + far)
            own, total = as_ball(z), as_ball(float(self.scores[first]))
            for at in range(first, last):
                if self._jumps[at]:
                    total += self._jumps[at] * self._compute_share(z, own, at)
            self._known[z] = total + self._beyond
        return self._known[z]

    def _compute_share(self, z: float, own: Ball, at: int) -> Ball:
        """The share of noise around z that is above an edge."""
        if self._shares is not None and (z, at) in self._shares:
            return self._shares[z, at]
        share = self._noise.share_below((own - self._places[at]) * self._inverse)
        if self._shares is not None:
            self._shares[z, at] = share
        return share

    def bend_between(self, low: float, high: float) -> float:
        """How much it bends between two places at most, per squared scale, rounded upward.

        Edges count the less the farther they are. No square of a scale is formed, which may be no double.
        """
        if not self._noise.most_bend:
            return 0.0
        away = np.maximum(np.maximum(low - self._cuts, self._cuts - high), 0.0) / self.scale * 0.999999
        total = float(self._heights @ self._noise.bend_at(away))
        return min(total, self._noise.most_bend * self.range) * _WIDER

    def list_kinks(self) -> list[float]:
        """Doubles on both sides of each kink."""
        exact = [Fraction(edge) + Fraction(kink) * self._exact for kink in self._noise.kinks for edge in self.edges]
        return [end for z in map(to_double, exact) for end in (z - 4 * math.ulp(z), z + 4 * math.ulp(z))]

    def search(
        self, x: float, move: Move, window: tuple[float, float], cost: tuple[float, int] | None, tolerance: float
    ) -> Lowest:
        """The least value in a window of what a number at x may become, with a cost of some multiplier and power."""
        own = None if cost is None else Cost(*cost, x, move.unit)
        if move.positions is None:
            return self.bound_lowest(x, *window, own, tolerance)
        inside = (z for z in move.positions if window[0] <= z <= window[1])
        return Lowest(*min((self._bound(z, own), z) for z in inside))

    def bound_lowest(self, x: float, low: float, high: float, cost: Cost | None, tolerance: float) -> Lowest:
        """The least value, with the cost of moving there, between two places around x, infinite ones included.

        The bound may be below by the tolerance.
        """
        first, last = self._bound_core(x, low, high, cost)
        places = self._list_places(first, last, x)
        values = [self._bound(z, cost) for z in places]
        best, at = min(zip(values, places, strict=True))
        floor = best
        heap: list[tuple[float, float, float, float, float]] = []
        for pair in zip(places, places[1:], values, values[1:], strict=False):
            if first <= pair[0] and pair[1] <= last:
                heapq.heappush(heap, (self._bound_between(*pair, cost), *pair))
        for _ in range(_MOST_CUTS):
            if not heap or heap[0][0] >= best - tolerance:
                break
            _, left, right, below, above = heapq.heappop(heap)
            z = _cut(left, right)
            if not left < z < right:
                floor = min(floor, self._bound_between(left, right, below, above, cost))
                continue
            value = self._bound(z, cost)
            if value < best:
                best, at = value, z
            for pair in ((left, z, below, value), (z, right, value, above)):
                heapq.heappush(heap, (self._bound_between(*pair, cost), *pair))
        floor = min(floor, best, *(entry[0] for entry in heap[:1]))
        floor -= 4 * self._noise.tail * self.variation
        return Lowest(max(floor, float(min(self.scores))), at)  # no mean is below the least score

    def _bound(self, z: float, cost: Cost | None) -> float:
        return float_below(self.value(z) if cost is None else self.value(z) + cost.at(z))

    def _bound_core(self, x: float, low: float, high: float, cost: Cost | None) -> tuple[float, float]:
        """Outside of these ends nothing is less than at them or at the row's own place, up to the noise's tail.

        Beyond all edges, where the noise hardly reaches any, the function is constant, and a cost only grows with the
        distance; and where the cost alone exceeds what moving can save, nothing is least.
        """
        far = self._noise.reach * self.scale * 1.01
        ends = [self.edges[0] - far, self.edges[-1] + far]
        if cost is not None:
            saved = (float(self.range) / cost.multiplier) ** (1 / cost.power) * float(cost.unit) * 1.001
            ends = [max(ends[0], x - saved), min(ends[1], x + saved)]
        return max(low, min(ends[0], high)), min(high, max(ends[1], low))

    def _list_places(self, first: float, last: float, own: float) -> list[float]:
        """Where to begin: the ends, the row's own place, and kinks."""
        places = {first, last, own} | {z for z in self.list_kinks() if first < z < last}
        if not self._noise.kinks:  # pieces as wide as the noise, so that few edges count for how much each one bends
            width = 2.0 ** math.ceil(
                math.log2(max(2 * self.scale, last / 64 - first / 64, math.ulp(last), math.ulp(first)))
            )
            count = math.ceil(last / width - first / width)
            places |= {z for k in range(count + 1) if first < (z := (math.floor(first / width) + k) * width) < last}
        return sorted(places)

    def _bound_between(self, left: float, right: float, below: float, above: float, cost: Cost | None) -> float:
        """A lower bound between two places from lower bounds there: no parabola that bends so much lies lower."""
        width = (right - left) * _WIDER
        least = min(below, above)
        if self._noise.kinks and width <= 32 * max(math.ulp(left), math.ulp(right)):
            # may hold a kink: the slope is bounded, and a cost rises or falls throughout, as x is always a place
            return least - self.variation / self.scale * width
        bend, share = self.bend_between(left, right), width / self.scale
        if not bend and (cost is None or cost.power == 1):
            return least
        sag = bend * share * share + (0.0 if cost is None else cost.bend_over(width)) + _LEAST
        share = max(0.0, 0.5 - abs(above - below) / sag) * _WIDER
        return least - 0.5 * sag * share * share * _WIDER - 1e-15 * (abs(below) + abs(above))


def list_near(x: float, edges: Sequence[float], scale: float, move: Move) -> FloatArray:
    """Places that are worth a look in doubles: around a row's own, and beside some edges."""
    if move.positions is not None:
        return np.array(move.positions)
    some = np.array(edges)[:: max(1, len(edges) // 48)]
    near = (some[:, None] + scale * _BESIDE).ravel()
    return np.asarray(np.clip(np.concatenate([x + scale * _AROUND, near]), move.low, move.high))


def spread_place(x: float, z: float, move: Move) -> FloatArray:
    """A place where something is least with a cost, and where it may be with another: a little nearer or farther.

    With a cost per squared distance the least place of a chord moves as one over the cost.
    """
    if move.positions is not None:
        return np.array([z])
    return np.asarray(np.clip(np.append(x + (z - x) * _NEARER, z), move.low, move.high))


def _cut(left: float, right: float) -> float:
    """A place near the middle of an interval, a round number in binary digits, so that others cut there, too."""
    if math.isinf(right - left):
        return 0.5 * left + 0.5 * right
    width = 2.0 ** (math.frexp(right - left)[1] - 3) if right > left else 0.0
    middle = left + 0.5 * (right - left)
    rounded = math.floor(middle / width + 0.5) * width if width else middle
    return rounded if left < rounded < right else middle
