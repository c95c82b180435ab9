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

from derand._arrays import FloatArray
from derand.auditing._balls import BallNoise, as_ball, use_bits
from derand.auditing._claim import Move
from derand.auditing._curves import BITS, Curve, Lowest, Price
from derand.auditing._sides import Function, to_double
from derand.noise import Noise

_ROUNDS = 6
_TOLERANCES = (1e-4, 1e-6, 1e-9, 1e-12, 1e-15)
_AROUND = np.concatenate([-np.geomspace(1 / 64, 12, 40)[::-1], [0.0], np.geomspace(1 / 64, 12, 40)])
_BESIDE = np.array([-4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0])


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
    """

    functions: Sequence[Function]
    moves: Sequence[Move]
    noise: Noise
    ball_noise: BallNoise
    cap: int | None = None
    shared: dict[Any, Curve] = field(default_factory=dict)
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
            return self._holds_in(level, [(move.low, move.high) for move in self.moves])
        if norm == 0:
            return self._holds_anywhere(level, round(radius))
        if norm not in (1, 2):  # linf, or a norm without prices, whose ball lies within that of linf
            return self._holds_in(level, self._find_windows(radius))
        if self._holds_by_price(level, int(norm), radius):
            return True
        few = len(self.functions) <= 8  # larger balls, which no price knows of
        if norm == 1 and few and self._holds_by_price(level, 2, radius):
            return True
        return few and self._holds_in(level, self._find_windows(radius))

    def find_values(self) -> list[float]:
        """The expected score of each function where the row stands, rounded upward."""
        with use_bits(BITS):
            return [math.nextafter(float(curve.value(one.x).upper()), math.inf) for one, curve in self._pairs()]

    def find_least_values(self) -> list[float]:
        """An upper bound of the least value of each function wherever its number may move: its value at some place.

        Upper, as what is deducted for a number that goes missing must not be less than what it counts for in a sum.
        """
        windows = [(move.low, move.high) for move in self.moves]
        with use_bits(BITS):
            places = [self._find_lowest(at, window, 1e-9).place for at, window in enumerate(windows)]
            values = (curve.value(z).upper() for curve, z in zip(self.curves, places, strict=True))
            return [math.nextafter(float(value), math.inf) for value in values]

    def _pairs(self) -> Iterator[tuple[Function, Curve]]:
        return zip(self.functions, self.curves, strict=True)

    def _find_windows(self, radius: float) -> list[tuple[float, float]]:
        """How far each number may move at most, rounded outward."""
        windows = []
        for one, move in zip(self.functions, self.moves, strict=True):
            size = Fraction(radius) * move.unit
            low, high = Fraction(one.x) - size, Fraction(one.x) + size
            ends = math.nextafter(to_double(low), -math.inf), math.nextafter(to_double(high), math.inf)
            windows.append((max(ends[0], move.low), min(ends[1], move.high)))
        return windows

    def _find_least(self, at: int, window: tuple[float, float], tolerance: float) -> float:
        return self._find_lowest(at, window, tolerance).bound

    def _find_lowest(self, at: int, window: tuple[float, float], tolerance: float) -> Lowest:
        """The least of a function in a window, to a share of its range; over few places one by one."""
        curve, places = self.curves[at], self.moves[at].places
        if places is not None:
            return curve.find_lowest_of([z for z in places if window[0] <= z <= window[1]], None)
        return curve.find_lowest(self.functions[at].x, *window, None, tolerance * curve.range)

    def _holds_in(self, level: Fraction, windows: Sequence[tuple[float, float]]) -> bool:
        """Whether the functions, each at its worst in its window, add up to the level; ever finer."""
        with use_bits(BITS):
            for tolerance in _TOLERANCES:
                least = [self._find_least(at, window, tolerance) for at, window in enumerate(windows)]
                total = _add(least)
                if total >= level:
                    return True
                if total + self._measure_doubt(tolerance) < level:
                    return False
        return False

    def _measure_doubt(self, tolerance: float) -> Fraction:
        """More than what a finer tolerance can add to a sum of least values."""
        return Fraction(2 * tolerance * sum(curve.range for curve in self.curves))

    def _holds_anywhere(self, level: Fraction, count: int) -> bool:
        """Whether so many functions may be at their least wherever their numbers may move."""
        with use_bits(BITS):
            for tolerance in _TOLERANCES:
                own = [math.nextafter(float(curve.value(one.x).lower()), -math.inf) for one, curve in self._pairs()]
                least = [self._find_least(at, (move.low, move.high), tolerance) for at, move in enumerate(self.moves)]
                falls = sorted((Fraction(a) - Fraction(b) for a, b in zip(own, least, strict=True)), reverse=True)
                total = _add(own) - sum(max(fall, Fraction(0)) for fall in falls[:count])
                if total >= level:
                    return True
                if total + self._measure_doubt(tolerance) < level:
                    return False
        return False

    def _holds_by_price(self, level: Fraction, power: int, radius: float) -> bool:
        """Whether some price per distance proves the sum: it is chosen again from every place that turned out worse."""
        if not self.functions:
            return level <= 0
        wanted, size = float(level), math.prod([radius] * power)
        if math.isinf(size):
            return False
        self._look_around()
        tried: list[float] = []
        with use_bits(BITS):
            for _ in range(_ROUNDS):
                rate, spare = self._choose_rate(wanted, size, power)
                if spare < 0 or any(abs(rate - other) <= 1e-9 * rate for other in tried):
                    return False
                tried.append(rate)
                tolerance = max(spare / (3 * len(self.curves)), 1e-12 * sum(curve.range for curve in self.curves))
                least = []
                for at, (curve, move) in enumerate(zip(self.curves, self.moves, strict=True)):
                    x = self.functions[at].x
                    price = Price(rate, power, x, move.unit)
                    if move.places is not None:
                        found = curve.find_lowest_of(move.places, price)
                    else:
                        found = curve.find_lowest(x, move.low, move.high, price, tolerance)
                    least.append(found.bound)
                    self._keep(at, found.place, float(curve.value(found.place)))
                cost = as_ball(rate) * as_ball(radius) ** power
                if as_ball(_add(least)) >= as_ball(level) + cost:
                    return True
        return False

    def _look_around(self) -> None:
        """Values in doubles at many places, from which prices are chosen."""
        if self._places:
            return
        for one, curve, move in zip(self.functions, self.curves, self.moves, strict=True):
            edges = np.array(curve.edges)
            some = edges[:: max(1, edges.size // 48)]
            near = (some[:, None] + curve.scale * _BESIDE).ravel()
            z = np.clip(np.concatenate([one.x + curve.scale * _AROUND, near]), move.low, move.high)
            z = z if move.places is None else np.array(move.places)
            away = np.clip((z[:, None] - edges) / curve.scale, -1e3, 1e3)
            self._places.append(z)
            self._values.append(curve.scores[0] + self.noise.cdf(away) @ np.diff(np.array(curve.scores, dtype=float)))

    def _keep(self, at: int, z: float, value: float) -> None:
        self._places[at] = np.append(self._places[at], z)
        self._values[at] = np.append(self._values[at], value)

    def _choose_rate(self, level: float, size: float, power: int) -> tuple[float, float]:
        """The price that seems to prove most, and how much it seems to leave over."""
        longest = max(map(len, self._places))
        values, distances = (np.full((len(self.curves), longest), fill) for fill in (np.inf, 0.0))
        for at, (one, move) in enumerate(zip(self.functions, self.moves, strict=True)):
            count = len(self._places[at])
            values[at, :count] = self._values[at]
            distances[at, :count] = np.abs((self._places[at] - one.x) / float(move.unit)) ** power

        def measure(rate: float) -> float:
            return float((values + rate * distances).min(axis=1).sum()) - level - rate * size

        total = float(sum(curve.range for curve in self.curves))
        rates = total / max(size, 1e-300) * np.geomspace(1e-6, 1e4, 81)
        best = int(np.argmax([measure(rate) for rate in rates]))
        return _climb(measure, rates[max(best - 1, 0)], rates[min(best + 1, rates.size - 1)])


def _climb(measure: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The largest value of a concave function between two numbers, by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    inner, outer = high - golden * (high - low), low + golden * (high - low)
    at_inner, at_outer = measure(inner), measure(outer)
    for _ in range(40):
        if at_inner > at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - golden * (high - low)
            at_inner = measure(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + golden * (high - low)
            at_outer = measure(outer)
    return (inner, at_inner) if at_inner > at_outer else (outer, at_outer)


def _add(numbers: Sequence[float]) -> Fraction:
    """The sum of doubles, exactly."""
    return sum(map(Fraction, numbers), Fraction(0))
