"""The worst case of a sum under noise: whether it stays at or above a level within a radius.

Any multiplier of the distance that proves the claim will do: multipliers are looked for in doubles, and what one proves
is found in balls (docs/theory.md, section 8). A function of several numbers is bounded axis after axis (section 13).
Owns the search for multipliers, and the sums of what is proven of each function. Must not know rules or labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._balls import BallNoise, as_ball, use_bits
from derand.auditing._claim import Claim, Move, cut_to_ball
from derand.auditing._curves import BITS, Curve, Lowest, list_near, spread_place
from derand.auditing._oriented import Function

_ROUNDS = 6
_TOLERANCES = (1e-4, 1e-6, 1e-9, 1e-12, 1e-15)
_LARGEST_MULTIPLIER = 1e280
_FINEST = 1e-14
_SECTIONS = 64  # the best multiplier may be a kink, beside which little is left
_DIGITS = 52
"""Scores of grids, from 0 on, are whole numbers of at most so many binary digits: doubles hold them."""
_MOST_CURVES = 2**16
_MOST_GUESSED = 2**22
_MOST_PLACES = 1000

Window = Callable[[float, Move], tuple[float, float]]
"""Between which ends a number may move, given where it is and how it may move."""
Cost = tuple[float, int] | None
"""The multiplier of a distance and its power."""


class SingleCase:
    """A function of one number under noise, with how its number may move."""

    def __init__(
        self, function: Function, moves: Sequence[Move], noise: BallNoise, cap: int | None, curves: dict[object, Any]
    ) -> None:
        (self.axis,), (self.move,), self._noise = function.axes, moves, noise
        key = (self.axis.feature, function.scores, cap)
        if key not in curves:
            curves[key] = Curve(self.axis, function.scores, noise, cap)
        self.curve: Curve = curves[key]
        self.range = self.curve.range
        self.places, self.values = np.empty(0), np.empty(0)

    def search(self, window: Window, cost: Cost, tolerance: float) -> Lowest:
        """The least value in a window, with the cost of moving there."""
        x, move = self.axis.x, self.move
        return self.curve.search(x, move, window(x, move), cost, tolerance)

    def bound_least(self, window: Window, cost: Cost, tolerance: float) -> Fraction:
        """A lower bound of the least value; with a cost, where it is least is kept for the next one."""
        found = self.search(window, cost, tolerance)
        if cost is not None:
            self.look_at(spread_place(self.axis.x, found.place, self.move))
        return Fraction(found.bound)

    def bound_own(self, tolerance: float) -> Fraction:
        """A lower bound of the value where the row stands."""
        return Fraction(math.nextafter(float(self.curve.value(self.axis.x).lower()), -math.inf))

    def bound_above(self, z: float) -> Fraction:
        """An upper bound of the value at a place."""
        return Fraction(math.nextafter(float(self.curve.value(z).upper()), math.inf))

    def look_around(self) -> None:
        """Values in doubles at many places, from which multipliers are chosen."""
        if not self.places.size:
            self.look_at(list_near(self.axis.x, self.curve.edges, self.curve.scale, self.move))

    def look_at(self, places: FloatArray) -> None:
        """Values in doubles at some more places."""
        curve = self.curve
        away = np.clip((places[:, None] - np.array(curve.edges)) / curve.scale, -1e3, 1e3)
        values = curve.scores[0] + self._noise.noise.cdf(away) @ np.diff(np.array(curve.scores, dtype=float))
        self.places, self.values = np.append(self.places, places), np.append(self.values, values)


class GridCase:
    """A function of several numbers under noise, with how its numbers may move.

    One column is taken away after the other: for each box of the others the least over all that the column may become
    is found as for a function of one number, and stands in the place of the scores for the next one. What is passed on
    are lower bounds, rounded downward to whole numbers of a fine grid.
    """

    def __init__(
        self, function: Function, moves: Sequence[Move], noise: BallNoise, cap: int | None, curves: dict[object, Any]
    ) -> None:
        _refuse_large(function)
        lowest = min(function.scores)
        scores = [score - lowest if cap is None else min(score - lowest, cap) for score in function.scores]
        self.range, self._lowest = max(scores), lowest
        self._shift = _DIGITS - self.range.bit_length()
        self._scores = tuple(score << self._shift if self._shift >= 0 else score >> -self._shift for score in scores)
        self._plain = np.array(scores, dtype=np.float64)
        self._axes, self._moves, self._noise, self._curves = function.axes, moves, noise, curves
        self._places: list[FloatArray] = []
        self._found: list[set[float]] = [set() for _ in self._axes]

    def bound_least(self, window: Window, cost: Cost, tolerance: float) -> Fraction:
        """A lower bound of the least value, with the cost of moving there.

        It may be below what axes after each other give by the tolerance.
        """
        values, share = self._scores, max(math.ldexp(tolerance / len(self._axes), self._shift), 1.0)
        scaled = None if cost is None else (cost[0] * 2.0**self._shift, cost[1])
        for k, axis in enumerate(self._axes):
            rest = len(values) // (len(axis.edges) + 1)
            columns = [values[at::rest] for at in range(rest)]
            least = {column: self._take(k, column, window, scaled, share) for column in set(columns)}
            values = tuple(least[column] for column in columns)
        return self._lowest + Fraction(values[0]) / Fraction(2) ** self._shift

    def bound_own(self, tolerance: float) -> Fraction:
        """A lower bound of the value where the row stands."""
        return self.bound_least(lambda x, move: (x, x), None, tolerance)

    def _take(self, k: int, column: tuple[int, ...], window: Window, cost: Cost, tolerance: float) -> int:
        """The least over the moves of one column, for scores of its cells; a whole number that it is not below."""
        if min(column) == max(column):
            return column[0]
        x, move = self._axes[k].x, self._moves[k]
        found = self._make_curve(k, column).search(x, move, window(x, move), cost, tolerance)
        if len(self._found[k]) < _MOST_PLACES:
            self._found[k].update(spread_place(x, found.place, move).tolist())
        return max(math.floor(found.bound), min(column))  # no mean is below the least score

    def _make_curve(self, k: int, column: tuple[int, ...]) -> Curve:
        """The curve of some scores; those of first columns are the same for all rows, others for none."""
        axis = self._axes[k]
        shares = self._curves.setdefault(("shares", axis.feature, axis.edges), {})
        key = ("first", axis.feature, axis.edges, column)
        if key in self._curves:
            known: Curve = self._curves[key]
            return known
        curve = Curve(axis, column, self._noise, None, shares)
        if k == 0:
            self._curves[key] = curve
        return curve

    def guess(self, multipliers: FloatArray, power: int) -> FloatArray:
        """The least value with each of some multipliers, in doubles, over places that are worth a look."""
        size = max(1, _MOST_GUESSED // (self._plain.size * 256))
        blocks = [multipliers[at : at + size] for at in range(0, multipliers.size, size)]
        return np.concatenate([self._guess_some(block, power) for block in blocks])

    def _guess_some(self, multipliers: FloatArray, power: int) -> FloatArray:
        values = self._plain[None]
        for places, axis, move in zip(self._list_places(), self._axes, self._moves, strict=True):
            edges, scale = np.array(axis.edges), float(self._noise.scale_of(axis.feature))
            away = np.clip((places[:, None] - edges) / scale, -1e3, 1e3)
            passed = np.hstack([np.ones((places.size, 1)), self._noise.noise.cdf(away), np.zeros((places.size, 1))])
            costs = multipliers[:, None] * np.abs((places - axis.x) / float(move.unit)) ** power
            cells = values.reshape(values.shape[0], edges.size + 1, -1)
            values = (-np.diff(passed) @ cells + costs[:, :, None]).min(axis=1)
        return np.asarray(self._lowest + values[:, 0])

    def _list_places(self) -> list[FloatArray]:
        """Where guesses look: around the row and the edges, and wherever a search ended."""
        if not self._places:
            self._places = [
                list_near(axis.x, axis.edges, float(self._noise.scale_of(axis.feature)), move)
                for axis, move in zip(self._axes, self._moves, strict=True)
            ]
        found = (np.array(sorted(one)) for one in self._found)
        return [np.concatenate(pair) for pair in zip(self._places, found, strict=True)]


def _refuse_large(function: Function) -> None:
    """Refuse what would take hours a row."""
    sizes = [len(axis.edges) + 1 for axis in function.axes]
    n_curves = sum(math.prod(sizes[at:]) for at in range(1, len(sizes))) + 1
    if n_curves > _MOST_CURVES:
        columns = ", ".join(str(axis.feature) for axis in function.axes)
        raise ValueError(
            f"The worst case of the term of columns {columns} ({', '.join(map(str, sizes))} cells) takes {n_curves} "
            f"functions of one number: more than {_MOST_CURVES} cannot be audited. Certify with rule='vote' and "
            "proof='paper', which is audited by masses."
        )


class WorstCase:
    """Functions of a row under noise, with how their numbers may move; cut off `cap` above their least score."""

    def __init__(self, claim: Claim, functions: Sequence[Function], radius: float, cap: int | None = None) -> None:
        self._single: list[SingleCase] = []
        self._grids: list[GridCase] = []
        with use_bits(BITS):
            for one in functions:
                given = (one, claim.list_moves(one.axes, radius), claim.ball_noise, cap, claim.facts.curves)
                if one.is_grid:
                    self._grids.append(GridCase(*given))
                else:
                    self._single.append(SingleCase(*given))
        self._cases: list[SingleCase | GridCase] = [*self._single, *self._grids]
        self._range = sum(case.range for case in self._cases)

    def stays_above(self, level: Fraction, norm: float | None, radius: float) -> bool:
        """Whether the sum is proven to be `level` or more within the radius; without a norm wherever numbers move."""
        if norm is None or math.isinf(radius):
            return self._holds_in(level, _open)
        if norm == 0:
            return self._holds_anywhere(level, round(radius))

        def in_ball(x: float, move: Move) -> tuple[float, float]:
            return cut_to_ball(x, move, radius)

        if norm not in (1, 2):  # linf, or a norm without multipliers, whose ball lies within that of linf
            return self._holds_in(level, in_ball)
        if self._holds_by_multiplier(level, int(norm), radius):
            return True
        few = len(self._cases) <= 8 or bool(self._grids)  # larger balls, which no multiplier knows of
        if norm == 1 and few and self._holds_by_multiplier(level, 2, radius):
            return True
        return few and self._holds_in(level, in_ball)

    def bound_values(self, *, at_least: bool) -> dict[int, Fraction]:
        """Upper bounds of the expected score of each function of one number, by column: where the row stands, or
        wherever its number may move and the function is least.

        Upper, as what is deducted for a number that goes missing must not be less than what it counts for in a sum.
        """
        with use_bits(BITS):
            return {
                case.axis.feature: case.bound_above(
                    case.search(_open, None, 1e-9 * case.range).place if at_least else case.axis.x
                )
                for case in self._single
            }

    def _list_least(self, window: Window, tolerance: float) -> list[Fraction]:
        """The least of each function in its window, to a share of its range."""
        return [case.bound_least(window, None, tolerance * case.range) for case in self._cases]

    def _refine(self, level: Fraction, bound: Callable[[float], Fraction]) -> bool:
        """Whether a lower bound of the sum, ever finer, is the level or more."""
        with use_bits(BITS):
            for tolerance in _TOLERANCES:
                total = bound(tolerance)
                if total >= level:
                    return True
                if total + Fraction(2 * tolerance * self._range) < level:  # more than what a finer one can add
                    return False
        return False

    def _holds_in(self, level: Fraction, window: Window) -> bool:
        """Whether the functions, each at its worst in its window, add up to the level."""
        return self._refine(level, lambda tolerance: sum(self._list_least(window, tolerance), Fraction(0)))

    def _holds_anywhere(self, level: Fraction, count: int) -> bool:
        """Whether so many functions may be at their least wherever their numbers may move."""

        def bound(tolerance: float) -> Fraction:
            own = [case.bound_own(tolerance * case.range) for case in self._cases]
            least = self._list_least(_open, tolerance)
            decreases = sorted((a - b for a, b in zip(own, least, strict=True)), reverse=True)
            return sum(own, Fraction(0)) - sum(max(one, Fraction(0)) for one in decreases[:count])

        return self._refine(level, bound)

    def _holds_by_multiplier(self, level: Fraction, power: int, radius: float) -> bool:
        """Whether some multiplier proves the sum: it is chosen again from every place that turned out worse."""
        if not self._cases:
            return level <= 0
        wanted, size = float(level), math.prod([radius] * power)
        if math.isinf(size):
            return False
        for case in self._single:
            case.look_around()
        tried: list[float] = []
        with use_bits(BITS):
            for _ in range(_ROUNDS):
                multiplier, spare = self._choose_multiplier(wanted, size, power)
                is_known = any(abs(multiplier - other) <= 1e-13 * multiplier for other in tried)
                if multiplier > _LARGEST_MULTIPLIER or is_known or spare < -1e-14 * self._range:
                    return False
                tried.append(multiplier)
                tolerance = max(spare / (3 * len(self._cases)), _FINEST * self._range)
                least = [case.bound_least(_open, (multiplier, power), tolerance) for case in self._cases]
                cost = as_ball(multiplier) * as_ball(radius) ** power
                if as_ball(sum(least, Fraction(0))) >= as_ball(level) + cost:
                    return True
        return False

    def _choose_multiplier(self, level: float, size: float, power: int) -> tuple[float, float]:
        """The multiplier that seems to prove most, and how much it seems to leave over."""
        longest = max((case.places.size for case in self._single), default=0)
        values, distances = (np.full((len(self._single), longest), fill) for fill in (np.inf, 0.0))
        for at, case in enumerate(self._single):
            values[at, : case.places.size] = case.values
            away = (case.places - case.axis.x) / float(case.move.unit)
            distances[at, : case.places.size] = np.abs(away) ** power

        def measure(multipliers: FloatArray) -> FloatArray:
            single = [
                float((values + one * distances).min(axis=1, initial=np.inf).sum()) for one in multipliers.tolist()
            ]
            several = sum((grid.guess(multipliers, power) for grid in self._grids), np.zeros(multipliers.size))
            return np.asarray(single + several - level - multipliers * size)

        tried = float(self._range) / max(size, 1e-300) * np.geomspace(1e-6, 1e4, 81)
        best = int(np.argmax(measure(tried)))
        ends = tried[max(best - 1, 0)], tried[min(best + 1, tried.size - 1)]
        multiplier, spare = _climb(lambda one: float(measure(np.array([one]))[0]), *ends)
        around = np.geomspace(*ends, 65)
        enough = spare - min(max(0.5 * spare, 0.0), 1e-12 * self._range)
        alike = np.sort(np.append(around[measure(around) >= enough], multiplier))
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
