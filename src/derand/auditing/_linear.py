"""Linear models, proven again in exact fractions: doubles are fractions, and so are all that lines make of them.

The least change that lets a sum fall by its margin is rational but for a square root, of which squares are compared;
only failing masses take balls. Written from docs/theory.md, section 14, and from what a model's file says of its terms.
Owns what can be proven of such models. Must not know tables or files, nor how certificates are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from derand._core.arrays import FloatArray
from derand.auditing._balls import Ball, Told, as_ball, as_ball_noise, use_bits
from derand.auditing._oriented import bound_decrease, read_table
from derand.auditing._predictions import PairwiseProof
from derand.auditing._threat import AllowedChanges
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise

_BITS = 256
_FAR = 80
"""Magnitudes of noise that errors of slopes are multiplied by: of Laplace noise, and where all slopes are 0."""
_ROUNDING = Fraction(1, 2**52)
_VARIANCES = {"uniform": Fraction(1, 3), "laplace": Fraction(2)}


@dataclass(frozen=True, slots=True)
class Mover:
    """A column of a row: by how much its move to the worse side lets a sum fall per unit, and how far it can go.

    Attributes
    ----------
    price : Fraction
    cap : Fraction or None
        In units; None for any distance.
    """

    price: Fraction
    cap: Fraction | None


def clears(margin: Fraction, movers: Sequence[Mover], norm: float | None, radius: float, *, strictly: bool) -> bool:
    """Whether a sum falls by less than its margin within an open ball; or by no more, where not `strictly`.

    Examples
    --------
    >>> movers = [Mover(Fraction(3), None), Mover(Fraction(4), None)]
    >>> clears(Fraction(10), movers, 2, 2.0, strictly=False), clears(Fraction(10), movers, 2, 2.0001, strictly=False)
    (True, False)
    """

    def is_below(fall: Fraction) -> bool:
        return fall < margin if strictly else fall <= margin

    movers = [one for one in movers if one.price > 0 and one.cap != 0]
    if not is_below(Fraction(0)):
        return False
    if all(one.cap is not None for one in movers) and is_below(sum((_fall(one) for one in movers), Fraction(0))):
        return True
    if norm is None or math.isinf(radius):
        return False
    if norm == 2:
        least = _square_least(margin, movers)
        return least > Fraction(radius) ** 2 if strictly else least >= Fraction(radius) ** 2
    measure = _fall_by_count if norm == 0 else _fall_by_sum if norm == 1 else _fall_by_each
    fall = measure(movers, Fraction(radius))
    return fall is not None and is_below(fall)


def _fall_by_count(movers: Sequence[Mover], left: Fraction) -> Fraction | None:
    """The most that so many columns let a sum fall; None where nothing limits one of them."""
    if left > 0 and any(one.cap is None for one in movers):
        return None
    falls = sorted((_fall(one) for one in movers if one.cap is not None), reverse=True)
    return sum(falls[: math.ceil(left)], Fraction(0))


def _fall_by_each(movers: Sequence[Mover], away: Fraction) -> Fraction:
    """The most that a distance in the norm inf lets a sum fall."""
    return sum((one.price * (away if one.cap is None else min(one.cap, away)) for one in movers), Fraction(0))


def _fall(mover: Mover) -> Fraction:
    assert mover.cap is not None
    return mover.price * mover.cap


def _fall_by_sum(movers: Sequence[Mover], left: Fraction) -> Fraction:
    """The most that a distance in the norm 1 lets a sum fall: the highest prices first."""
    total = Fraction(0)
    for one in sorted(movers, key=lambda one: -one.price):
        spent = left if one.cap is None else min(one.cap, left)
        total, left = total + one.price * spent, left - spent
    return total


def _square_least(margin: Fraction, movers: Sequence[Mover]) -> Fraction:
    """The square of the least distance in the norm 2 at which a sum falls by its margin, which some moves do."""
    limited = sorted((one for one in movers if one.cap is not None), key=lambda one: (one.cap or 0) / one.price)
    squares = sum((one.price**2 for one in movers), Fraction(0))
    spent, left = Fraction(0), margin
    for one in limited:
        assert one.cap is not None
        if left * one.price <= one.cap * squares:  # it is not at its cap
            break
        spent, left, squares = spent + one.cap**2, left - _fall(one), squares - one.price**2
    return spent + left**2 / squares


class _LinearSum:
    """One sum of a linear model: two classes, or a number, in the row's own numbers; class 1 is above 0."""

    def __init__(
        self, model: AdditiveEnsemble, plus: int, minus: int | None, row: FloatArray, threat: AllowedChanges
    ) -> None:
        if threat.missing:
            raise ValueError(
                f"`missing` of Threat must be 'fixed' for a linear model to be audited, got {threat.missing}: what a "
                "number that appears adds to a line has no bound."
            )
        self.row, self.threat = row, threat
        self.error = Fraction(model.score_error) * (1 if minus is None else 2)
        self.slopes: list[tuple[int, Fraction, Fraction]] = []
        self.n_terms, self.total, self.size = len(model.terms), Fraction(0), Fraction(0)
        self._options: list[tuple[int, list[int]]] = []
        for term in model.terms:
            told = term.describe()
            if term.kind == "linear_term":
                self._read_line(told, plus, minus)
            elif term.kind == "category_table":
                one = _subtract_table(told, plus, minus)
                own, others = read_table(one, float(row[told["feature"]]), threat)
                self.total, self.size = self.total + own, self.size + max(map(abs, (own, *others)))
                if told["feature"] not in threat.frozen:
                    self._options += [(told["feature"], [own - other for other in others])]
            else:
                raise ValueError(f"A term of kind {term.kind!r} beside lines cannot be audited.")

    def _read_line(self, told: Told, plus: int, minus: int | None) -> None:
        number = float(self.row[told["feature"]])
        if math.isnan(number):  # a constant, which nothing moves
            product, error = _subtract_numbers(told, "missing", "missing_errors", plus, minus)
            self.error += error
        else:
            slope, error = _subtract_numbers(told, "slopes", "errors", plus, minus)
            self.slopes.append((told["feature"], slope, error))
            product = slope * Fraction(number)
        self.total, self.size = self.total + product, self.size + abs(product)

    def bound_deviation(self, rounding: Fraction) -> Fraction:
        """How far the model that is meant, or what is computed of it, may be off in the row itself."""
        shares = ((at, error + rounding * abs(slope)) for at, slope, error in self.slopes)
        return self.error + sum((share * abs(Fraction(float(self.row[at]))) for at, share in shares), Fraction(0))

    def bound_categories(self, side: int) -> int:
        """What changed categories take off at most."""
        options = [falls if side else [-fall for fall in falls] for _, falls in self._options]
        return bound_decrease(options, self.threat.l0)

    def list_movers(self, side: int, rounding: Fraction) -> list[Mover]:
        """The columns, as they can be moved to the worse side of a class."""
        movers = []
        for at, slope, inexact in self.slopes:
            unit = Fraction(1) if self.threat.norm in (0, None) else self.threat.unit(at)
            error, x = inexact + rounding * abs(slope), float(self.row[at])
            reached = self.threat.reach(at, self.row.tolist())
            ends = [None if math.isinf(end) else abs(Fraction(end) - Fraction(x)) for end in reached]
            if abs(slope) > error:
                ends = [ends[0] if (slope > 0) == bool(side) else ends[1]]
            far = None if None in ends else max(end for end in ends if end is not None)
            movers.append(Mover((abs(slope) + error) * unit, None if far is None else far / unit))
        return movers

    def holds(self, side: int, radius: float, level: Fraction, rounding: Fraction, *, strictly: bool) -> bool:
        """Whether the sum is proven to stay on the side of a level within a radius; 0 moves no number."""
        away = self.total - level if side else level - self.total
        margin = away - self.bound_deviation(rounding) - rounding * self.size - self.bound_categories(side)
        movers = self.list_movers(side, rounding) if radius > 0 else []
        return clears(margin, movers, self.threat.norm, radius, strictly=strictly)


def _subtract_numbers(told: Told, name: str, of_errors: str, plus: int, minus: int | None) -> tuple[Fraction, Fraction]:
    """One number of a line, or the difference of two, and how far it may be off."""
    if name not in told:
        raise ValueError(f"A row has no number for the line of column {told['feature']}, which refuses missing ones.")
    values = told[name]
    errors = told.get(of_errors, [0.0] * len(values))
    if minus is None:
        return Fraction(values[plus]), Fraction(errors[plus])
    return Fraction(values[plus]) - Fraction(values[minus]), Fraction(errors[plus]) + Fraction(errors[minus])


def _subtract_table(told: Told, plus: int, minus: int | None) -> Told:
    """A table of one output, the difference of two of its outputs."""
    if minus is None:
        return told

    def take(scores: Any) -> int:
        return int(scores[plus]) - int(scores[minus])

    rest: Told = {name: take(told[name]) for name in ("other", "missing") if name in told}
    return {**told, "scores": [take(scores) for scores in told["scores"]], **rest}


def read_linear_label(model: Model, noise: Noise | None, threat: AllowedChanges, row: FloatArray) -> PairwiseProof:
    """What can be proven about the label of one row; `noise` where the rule is a vote."""
    (member,) = model.members
    offsets, classes = member.offsets, range(member.n_classes)

    def compare(low: int, high: int) -> _LinearProof:
        if not offsets:
            return _LinearProof(_LinearSum(member, 0, None, row, threat), Fraction(member.threshold or 0), noise)
        return _LinearProof(_LinearSum(member, high, low, row, threat), Fraction(offsets[low] - offsets[high]), noise)

    # exact scores are ordered as means are: one of them is the largest
    return PairwiseProof(
        member.n_classes, {(low, high): compare(low, high) for high in classes for low in range(high)}, "mean"
    )


class _LinearProof:
    """What can be proven about a row by one linear sum: its class is 1 above a level."""

    band = 0.0

    def __init__(self, total: _LinearSum, level: Fraction, noise: Noise | None) -> None:
        self._sum, self._level, self._noise = total, level, noise

    def holds(self, label: int, radius: float, proof: str | None) -> bool:
        return self._sum.holds(label, radius, self._level, Fraction(0), strictly=bool(label))

    def is_label(self, label: int) -> bool:
        return (self._sum.total > self._level) == bool(label)

    def stays_beyond(self, label: int, score: float) -> bool:
        return math.isfinite(score) and self._sum.holds(label, math.inf, Fraction(score), Fraction(0), strictly=False)

    def compute_share(self) -> float:
        return float(self.is_label(1))

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        with use_bits(_BITS):
            claimed = as_ball(failure).min(as_ball(log_failure).exp())
            return self._bounds_mass(label, claimed)

    def _bounds_mass(self, label: int, failure: Ball) -> bool:
        assert self._noise is not None  # only votes claim such a mass
        own = self._sum
        away = own.total - self._level if label else self._level - own.total
        margin = away - own.bound_deviation(Fraction(0)) - own.bound_categories(label)
        if margin <= 0:
            return bool(failure >= 1)
        ball = as_ball_noise(self._noise)
        square = sum((slope**2 * ball.scale_of(at) ** 2 for at, slope, _ in own.slopes), Fraction(0))
        reach = sum((abs(slope) * ball.scale_of(at) for at, slope, _ in own.slopes), Fraction(0))
        spare = sum((error * ball.scale_of(at) for at, _, error in own.slopes), Fraction(0))
        if not square and not spare:
            return True
        with use_bits(_BITS):
            spread = as_ball(square).sqrt()
            name = self._noise.name
            far = Fraction(1 if name == "uniform" else _FAR)
            if name == "gaussian" and square:
                far = Fraction(10 + math.floor(float(margin) / float(spread)))
            left = as_ball(margin - far * spare)
            # copies in which some number is farther out, so that errors of slopes are multiplied by more than that
            beyond = 2 * len(own.slopes) * ball.share_below(-as_ball(far)) if spare else as_ball(0.0)
            if not left > 0:
                return bool(failure >= 1)
            if name == "uniform" and left >= as_ball(reach):
                return True
            if not square:  # errors alone move the sum
                return bool(beyond <= failure)
            share = ball.share_below(-left / spread) if name == "gaussian" else _bound_tail(left / spread, name)
            return bool(share + beyond <= failure)


def _bound_tail(distance: Ball, name: str) -> Ball:
    """Gauss's inequality: the share beyond a distance, in lengths of the slopes, of a symmetric law of one mode."""
    z, root = distance / as_ball(_VARIANCES[name]).sqrt(), as_ball(3.0).sqrt()
    return 2 / (9 * z * z) if z >= 2 / root else as_ball(0.5) - z / (2 * root)


class LinearNumberProof:
    """What can be proven about the number that a linear model predicts of one row."""

    n_tried = 0

    def __init__(self, model: Model, threat: AllowedChanges, row: FloatArray) -> None:
        (member,) = model.members
        assert member.offset is not None
        self._sum, self._offset, self._levels = _LinearSum(member, 0, None, row, threat), member.offset, member.levels
        self._rounding = (len(member.terms) + 4) * _ROUNDING

    def is_value(self, value: float) -> bool:
        """Whether the row's own answer is this, but for rounding."""
        off = abs(Fraction(value) * self._levels - self._offset - self._sum.total)
        return off <= self._rounding * (self._sum.size + 2 * abs(self._offset))

    def stays_beyond(self, label: int, end: float, radius: float) -> bool:
        """Whether the answer is proven to stay at the end or above within the radius; for label 0, or below."""
        level = Fraction(end) * self._levels - self._offset
        return self._sum.holds(label, radius, level, self._rounding, strictly=False)

    def stays_within(self, value: float, tolerance: float, radius: float) -> bool:
        """Whether the answer is proven to differ from a value by the tolerance at most within the radius."""
        room = Fraction(tolerance) * self._levels
        zero = Fraction(0)  # what is compared is the score before it is rounded
        return self._sum.holds(1, radius, self._sum.total - room, zero, strictly=False) and self._sum.holds(
            0, radius, self._sum.total + room, zero, strictly=False
        )
