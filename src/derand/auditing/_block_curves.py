"""A function of several numbers under noise, in balls: a proven lower bound of its least value, axis after axis.

One column is taken away after the other: for each box of the others the least over all that the column may become is
found as for a function of one number (`_curves`), and stands in the place of the scores for the next one
(docs/theory.md, section 13). What is passed on are lower bounds, rounded downward to whole numbers of a fine grid. Owns
this, and guesses of the same in doubles. Must not know models, labels or thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._balls import BallNoise
from derand.auditing._blocks import Block
from derand.auditing._claim import Move
from derand.auditing._curves import Curve, Lowest, Price, list_near, spread_place
from derand.auditing._oriented import Function
from derand.noise import Noise

_DIGITS = 52
"""Scores from 0 on are whole numbers of at most so many binary digits: doubles hold them."""
_MOST_CURVES = 2**16
_MOST_GUESSED = 2**22
_MOST_PLACES = 1000

Widen = Callable[[float, Move], tuple[float, float]]
"""Between which ends a number may move, given where it is and how it may move."""


class BlockCase:
    """A function of several numbers under noise, with how its numbers may move.

    Parameters
    ----------
    block : Block
        Not constant.
    moves : sequence of Move
        Of its columns.
    noise : Noise
    ball_noise : BallNoise
    cap : int or None
        Scores are cut off so far above the least one.
    shared : dict
        What other rows of the same sum have left: curves of first columns, and shares of noise below edges.
    """

    def __init__(
        self,
        block: Block,
        moves: Sequence[Move],
        noise: Noise,
        ball_noise: BallNoise,
        cap: int | None,
        shared: dict[Any, Any],
    ) -> None:
        _refuse_large(block)
        lowest = min(block.scores)
        scores = [score - lowest if cap is None else min(score - lowest, cap) for score in block.scores]
        self.range, self._lowest = max(scores), lowest
        self._shift = _DIGITS - self.range.bit_length()
        self._scores = tuple(score << self._shift if self._shift >= 0 else score >> -self._shift for score in scores)
        self._plain = np.array(scores, dtype=np.float64)
        self._axes, self._moves, self._noise, self._ball_noise = block.axes, moves, noise, ball_noise
        self._shared = shared
        self._places: list[FloatArray] = []
        self._found: list[set[float]] = [set() for _ in self._axes]

    def find_least(self, widen: Widen, price: tuple[float, int] | None, tolerance: float) -> Fraction:
        """A lower bound of the least value, with the price of moving there.

        Parameters
        ----------
        widen : callable
        price : tuple of float and int, or None
            Its rate and power.
        tolerance : float
            By how much the bound may be below what axes after each other give.
        """
        values, share = self._scores, max(math.ldexp(tolerance / len(self._axes), self._shift), 1.0)
        for k, axis in enumerate(self._axes):
            rest = len(values) // (len(axis.edges) + 1)
            columns = [values[at::rest] for at in range(rest)]
            least = {column: self._take(k, column, widen, price, share) for column in set(columns)}
            values = tuple(least[column] for column in columns)
        return self._lowest + Fraction(values[0]) / Fraction(2) ** self._shift

    def _take(
        self, k: int, column: tuple[int, ...], widen: Widen, price: tuple[float, int] | None, tolerance: float
    ) -> int:
        """The least over the moves of one column, for scores of its cells; a whole number that it is not below."""
        if min(column) == max(column):
            return column[0]
        axis, move = self._axes[k], self._moves[k]
        found = self._search(k, column, widen(axis.x, move), price, tolerance)
        if len(self._found[k]) < _MOST_PLACES:
            self._found[k].update(spread_place(axis.x, found.place, move).tolist())
        return max(math.floor(found.bound), min(column))  # no mean is below the least score

    def _search(
        self,
        k: int,
        column: tuple[int, ...],
        window: tuple[float, float],
        price: tuple[float, int] | None,
        tolerance: float,
    ) -> Lowest:
        axis, move = self._axes[k], self._moves[k]
        curve = self._find_curve(k, column)
        scaled = None if price is None else Price(price[0] * 2.0**self._shift, price[1], axis.x, move.unit)
        if move.places is not None:
            return curve.find_lowest_of([z for z in move.places if window[0] <= z <= window[1]], scaled)
        return curve.find_lowest(axis.x, *window, scaled, tolerance)

    def _find_curve(self, k: int, column: tuple[int, ...]) -> Curve:
        """The curve of some scores; those of first columns are the same for all rows, others for none."""
        axis = self._axes[k]
        shares = self._shared.setdefault(("shares", axis.feature, axis.edges), {})
        key = ("first", axis.feature, axis.edges, column)
        if key in self._shared:
            known: Curve = self._shared[key]
            return known
        curve = Curve(Function(axis.feature, axis.x, axis.edges, column, None), self._ball_noise, None, shares)
        if k == 0:
            self._shared[key] = curve
        return curve

    def guess(self, rates: FloatArray, power: int) -> FloatArray:
        """The least value with each of some prices, in doubles, over places that are worth a look."""
        size = max(1, _MOST_GUESSED // (self._plain.size * 256))
        return np.concatenate([self._guess_some(rates[at : at + size], power) for at in range(0, rates.size, size)])

    def _guess_some(self, rates: FloatArray, power: int) -> FloatArray:
        values = self._plain[None]
        for places, axis, move in zip(self._list_places(), self._axes, self._moves, strict=True):
            edges, scale = np.array(axis.edges), float(self._ball_noise.scale_of(axis.feature))
            away = np.clip((places[:, None] - edges) / scale, -1e3, 1e3)
            passed = np.hstack([np.ones((places.size, 1)), self._noise.cdf(away), np.zeros((places.size, 1))])
            prices = rates[:, None] * np.abs((places - axis.x) / float(move.unit)) ** power
            cells = values.reshape(values.shape[0], edges.size + 1, -1)
            values = (-np.diff(passed) @ cells + prices[:, :, None]).min(axis=1)
        return np.asarray(self._lowest + values[:, 0])

    def _list_places(self) -> list[FloatArray]:
        """Where guesses look: around the row and the edges, and wherever a search ended."""
        if not self._places:
            self._places = [
                list_near(axis.x, axis.edges, float(self._ball_noise.scale_of(axis.feature)), move)
                for axis, move in zip(self._axes, self._moves, strict=True)
            ]
        found = (np.array(sorted(one)) for one in self._found)
        return [np.concatenate(pair) for pair in zip(self._places, found, strict=True)]


def _refuse_large(block: Block) -> None:
    """Refuse what would take hours a row."""
    sizes = [len(axis.edges) + 1 for axis in block.axes]
    n_curves = sum(math.prod(sizes[at:]) for at in range(1, len(sizes))) + 1
    if n_curves > _MOST_CURVES:
        columns, cells = (", ".join(map(str, some)) for some in (block.features, sizes))
        raise ValueError(
            f"The worst case of the term of columns {columns} ({cells} cells) takes {n_curves} functions of one "
            f"number: more than {_MOST_CURVES} cannot be audited. Certify with rule='vote' and proof='paper', which is "
            "audited by masses."
        )
