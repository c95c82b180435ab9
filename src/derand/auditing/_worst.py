"""The worst case of a sum under noise: whether it stays at or above a level within a radius.

Any price per distance that proves the claim will do: prices are looked for in doubles, and what one proves is found in
balls (docs/theory.md, section 8). Owns the search for prices, and the sums of what is proven of each function. Must not
know rules or labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._balls import BallNoise, as_ball, to_double, use_bits
from derand.auditing._block_curves import BlockCase, Widen
from derand.auditing._claim import Move
from derand.auditing._curves import BITS, Curve, Lowest, Price, list_near, spread_place
from derand.auditing._oriented import Function
from derand.noise import Noise

_ROUNDS = 6
_TOLERANCES = (1e-4, 1e-6, 1e-9, 1e-12, 1e-15)
_LARGEST_RATE = 1e280
_FINEST = 1e-14
_SECTIONS = 64  # the best price may be a kink, beside which little is left


@dataclass(slots=True)
class WorstCase:
    """The functions of a row under noise, with how their numbers may move.

    Parameters
    ----------
    functions : sequence of Function
    moves : sequence of Move
    noise : Noise
    ball_noise : BallNoise
    cap : int or None
        Functions are cut off so far above their least score.
    shared : dict
        Curves that other rows of the same sum have asked for.
    blocks : sequence of BlockCase
        Functions of several numbers beside them, cut off alike.
    """

    functions: Sequence[Function]
    moves: Sequence[Move]
    noise: Noise
    ball_noise: BallNoise
    cap: int | None = None
    shared: dict[Any, Any] = field(default_factory=dict)
    blocks: Sequence[BlockCase] = ()
    curves: list[Curve] = field(init=False)
    _places: list[FloatArray] = field(init=False)
    _values: list[FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        with use_bits(BITS):
            for one in self.functions:
                key = (one.feature, one.scores, self.cap)
                if key not in self.shared:
                    self.shared[key] = Curve(one, self.ball_noise, self.cap)
        self.curves = [self.shared[one.feature, one.scores, self.cap] for one in self.functions]
        self._places, self._values = [], []

    def stays_above(self, level: Fraction, norm: float | None, radius: float) -> bool:
        """Whether the sum is proven to be `level` or more within the radius; without a norm wherever numbers move."""
        if norm is None or math.isinf(radius):
            return self._holds_in(level, _open)
        if norm == 0:
            return self._holds_anywhere(level, round(radius))
        if norm not in (1, 2):  # linf, or a norm without prices, whose ball lies within that of linf
            return self._holds_in(level, _widen_by(radius))
        if self._holds_by_price(level, int(norm), radius):
            return True
        few = len(self.functions) + len(self.blocks) <= 8 or bool(self.blocks)  # larger balls, which no price knows of
        if norm == 1 and few and self._holds_by_price(level, 2, radius):
            return True
        return few and self._holds_in(level, _widen_by(radius))

    def find_values(self) -> list[float]:
        """The expected score of each function where the row stands, rounded upward."""
        with use_bits(BITS):
            return [math.nextafter(float(curve.value(one.x).upper()), math.inf) for one, curve in self._pairs()]

    def find_least_values(self) -> list[float]:
        """An upper bound of the least value of each function wherever its number may move: its value at some place.

        Upper, as what is deducted for a number that goes missing must not be less than what it counts for in a sum.
        """
        with use_bits(BITS):
            places = [self._find_lowest(at, _open, 1e-9).place for at in range(len(self.moves))]
            values = (curve.value(z).upper() for curve, z in zip(self.curves, places, strict=True))
            return [math.nextafter(float(value), math.inf) for value in values]

    def _pairs(self) -> Iterator[tuple[Function, Curve]]:
        return zip(self.functions, self.curves, strict=True)

    def _list_least(self, widen: Widen, tolerance: float) -> list[Fraction]:
        """The least of each function in its window, to a share of its range, then those of several numbers."""
        single = [Fraction(self._find_lowest(at, widen, tolerance).bound) for at in range(len(self.curves))]
        return single + [block.find_least(widen, None, tolerance * block.range) for block in self.blocks]

    def _find_lowest(self, at: int, widen: Widen, tolerance: float) -> Lowest:
        """The least of a function in a window; over few places one by one."""
        curve, x, move = self.curves[at], self.functions[at].x, self.moves[at]
        window = widen(x, move)
        if move.places is not None:
            return curve.find_lowest_of([z for z in move.places if window[0] <= z <= window[1]], None)
        return curve.find_lowest(x, *window, None, tolerance * curve.range)

    def _holds_in(self, level: Fraction, widen: Widen) -> bool:
        """Whether the functions, each at its worst in its window, add up to the level; ever finer."""
        with use_bits(BITS):
            for tolerance in _TOLERANCES:
                total = sum(self._list_least(widen, tolerance), Fraction(0))
                if total >= level:
                    return True
                if total + self._measure_doubt(tolerance) < level:
                    return False
        return False

    @property
    def _range(self) -> int:
        return sum(curve.range for curve in self.curves) + sum(block.range for block in self.blocks)

    def _measure_doubt(self, tolerance: float) -> Fraction:
        """More than what a finer tolerance can add to a sum of least values."""
        return Fraction(2 * tolerance * self._range)

    def _holds_anywhere(self, level: Fraction, count: int) -> bool:
        """Whether so many functions may be at their least wherever their numbers may move."""
        with use_bits(BITS):
            for tolerance in _TOLERANCES:
                values = (curve.value(one.x).lower() for one, curve in self._pairs())
                own = [Fraction(math.nextafter(float(value), -math.inf)) for value in values]
                own += [block.find_least(_stay, None, tolerance * block.range) for block in self.blocks]
                least = self._list_least(_open, tolerance)
                falls = sorted((a - b for a, b in zip(own, least, strict=True)), reverse=True)
                total = sum(own, Fraction(0)) - sum(max(fall, Fraction(0)) for fall in falls[:count])
                if total >= level:
                    return True
                if total + self._measure_doubt(tolerance) < level:
                    return False
        return False

    def _holds_by_price(self, level: Fraction, power: int, radius: float) -> bool:
        """Whether some price per distance proves the sum: it is chosen again from every place that turned out worse."""
        if not self.functions and not self.blocks:
            return level <= 0
        wanted, size = float(level), math.prod([radius] * power)
        if math.isinf(size):
            return False
        self._look_around()
        tried: list[float] = []
        with use_bits(BITS):
            for _ in range(_ROUNDS):
                rate, spare = self._choose_rate(wanted, size, power)
                if rate > _LARGEST_RATE or any(abs(rate - other) <= 1e-13 * rate for other in tried):
                    return False
                if spare < -1e-14 * self._range:
                    return False
                tried.append(rate)
                tolerance = max(spare / (3 * (len(self.curves) + len(self.blocks))), _FINEST * self._range)
                least = self._list_priced(rate, power, tolerance)
                cost = as_ball(rate) * as_ball(radius) ** power
                if as_ball(sum(least, Fraction(0))) >= as_ball(level) + cost:
                    return True
        return False

    def _list_priced(self, rate: float, power: int, tolerance: float) -> list[Fraction]:
        """The least of each function with a price per distance; where it is least is kept for the next price."""
        least = []
        for at, (curve, move) in enumerate(zip(self.curves, self.moves, strict=True)):
            x = self.functions[at].x
            price = Price(rate, power, x, move.unit)
            if move.places is not None:
                found = curve.find_lowest_of(move.places, price)
            else:
                found = curve.find_lowest(x, move.low, move.high, price, tolerance)
            least.append(Fraction(found.bound))
            self._keep(at, spread_place(x, found.place, move))
        return least + [block.find_least(_open, (rate, power), tolerance) for block in self.blocks]

    def _look_around(self) -> None:
        """Values in doubles at many places, from which prices are chosen."""
        if self._places:
            return
        self._places, self._values = [np.empty(0) for _ in self.curves], [np.empty(0) for _ in self.curves]
        for at, (one, curve, move) in enumerate(zip(self.functions, self.curves, self.moves, strict=True)):
            self._keep(at, list_near(one.x, curve.edges, curve.scale, move))

    def _keep(self, at: int, places: FloatArray) -> None:
        curve = self.curves[at]
        away = np.clip((places[:, None] - np.array(curve.edges)) / curve.scale, -1e3, 1e3)
        values = curve.scores[0] + self.noise.cdf(away) @ np.diff(np.array(curve.scores, dtype=float))
        self._places[at] = np.append(self._places[at], places)
        self._values[at] = np.append(self._values[at], values)

    def _choose_rate(self, level: float, size: float, power: int) -> tuple[float, float]:
        """The price that seems to prove most, and how much it seems to leave over."""
        longest = max(map(len, self._places), default=0)
        values, distances = (np.full((len(self.curves), longest), fill) for fill in (np.inf, 0.0))
        for at, (one, move) in enumerate(zip(self.functions, self.moves, strict=True)):
            count = len(self._places[at])
            values[at, :count] = self._values[at]
            distances[at, :count] = np.abs((self._places[at] - one.x) / float(move.unit)) ** power

        def measure(rates: FloatArray) -> FloatArray:
            single = [float((values + rate * distances).min(axis=1, initial=np.inf).sum()) for rate in rates.tolist()]
            several = sum((block.guess(rates, power) for block in self.blocks), np.zeros(rates.size))
            return np.asarray(single + several - level - rates * size)

        rates = float(self._range) / max(size, 1e-300) * np.geomspace(1e-6, 1e4, 81)
        best = int(np.argmax(measure(rates)))
        ends = rates[max(best - 1, 0)], rates[min(best + 1, rates.size - 1)]
        rate, spare = _climb(lambda rate: float(measure(np.array([rate]))[0]), *ends)
        around = np.geomspace(*ends, 65)
        enough = spare - min(max(0.5 * spare, 0.0), 1e-12 * self._range)
        alike = np.sort(np.append(around[measure(around) >= enough], rate))
        return float(alike[alike.size // 2]), spare  # far from where other places would be worse


def _climb(measure: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The largest value of a concave function between two numbers, by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    inner, outer = high - golden * (high - low), low + golden * (high - low)
    at_inner, at_outer = measure(inner), measure(outer)
    for _ in range(_SECTIONS):
        if at_inner > at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - golden * (high - low)
            at_inner = measure(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + golden * (high - low)
            at_outer = measure(outer)
    return (inner, at_inner) if at_inner > at_outer else (outer, at_outer)


def _open(x: float, move: Move) -> tuple[float, float]:
    """Wherever a number may move."""
    return move.low, move.high


def _stay(x: float, move: Move) -> tuple[float, float]:
    """Where it is."""
    return x, x


def _widen_by(radius: float) -> Widen:
    """How far a number may move at most within a radius, rounded outward."""

    def widen(x: float, move: Move) -> tuple[float, float]:
        size = Fraction(radius) * move.unit
        low, high = Fraction(x) - size, Fraction(x) + size
        ends = math.nextafter(to_double(low), -math.inf), math.nextafter(to_double(high), math.inf)
        return max(ends[0], move.low), min(ends[1], move.high)

    return widen
