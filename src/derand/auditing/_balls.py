"""Numbers that are proven: balls of python-flint, and the noises in terms of them.

Owns what an audit knows of each noise, written from its definition and not from the kernels: the mass of a cell, the
expected share below an edge, which radius a failing mass proves, and how much a smoothed step can bend. A new noise is
one more class here and its row in BALL_NOISES. Must not know models or rows.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from threading import RLock
from typing import Any, ClassVar

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.later import import_extra
from derand._core.units import require_numbered
from derand.noise import Noise

Told = dict[str, Any]
"""A term as its `describe()` tells it."""
Ball = Any
"""A real number that lies within an interval: `flint.arb`, which has no type stubs."""

_lock = RLock()
_flint: Any = None


def require_flint() -> Any:
    """The library of ball arithmetic, imported once, or one line that says how to get it."""
    global _flint  # noqa: PLW0603
    _flint = _flint or import_extra("flint", "audit", "An audit")
    return _flint


@contextmanager
def use_bits(bits: int) -> Iterator[Any]:
    """Compute with balls of so many bits; they are a setting of the whole program, so that one audit runs at a time."""
    flint = require_flint()
    with _lock:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield flint
        finally:
            flint.ctx.prec = before


def as_ball(value: Fraction | float) -> Ball:
    """A number as a ball; doubles are exact."""
    arb = (_flint or require_flint()).arb
    if isinstance(value, Fraction):
        return arb(value.numerator) / arb(value.denominator)
    return arb(value)


def to_double(number: Fraction) -> float:
    """The nearest double, infinite ones included."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def ceil_scaled(ball: Ball, bits: int) -> int:
    """The least whole number that the upper end of a ball, times 2**bits, does not exceed."""
    mantissa, exponent = (int(part) for part in ball.upper().man_exp())
    shift = exponent + bits
    return mantissa << shift if shift >= 0 else -(-mantissa >> -shift)


def float_below(ball: Ball) -> float:
    """A double that the lower end of a ball is not below."""
    lower = ball.lower()
    value = float(lower)
    while not _flint.arb(value) <= lower:
        value = math.nextafter(value, -math.inf)
    return value


class BallNoise(ABC):
    """A noise as an audit knows it."""

    tail: ClassVar[float]
    """No more than this share of the noise lies farther out than `reach` magnitudes to one side."""
    reach: ClassVar[float]
    most_bend: ClassVar[float]
    """How much a smoothed step function bends at most, in magnitudes, per range of the function."""
    kinks: ClassVar[tuple[float, ...]] = ()
    """Where a smoothed step bends, and nowhere else, in magnitudes from the edge; without any it bends everywhere."""

    def __init__(self, noise: Noise) -> None:
        self.noise, self.magnitude = noise, Fraction(noise.magnitude)
        self.norm = noise.norm
        require_numbered(noise.units, "`units` of the noise")
        self._units = noise.units

    def scale_of(self, feature: int) -> Fraction:
        """Its scale on a column, exactly: never the rounded product."""
        return self.magnitude * (1 if self._units is None else Fraction(self._units[feature]))

    def unit_of(self, feature: int) -> Fraction:
        """The unit of a column."""
        return Fraction(1) if self._units is None else Fraction(self._units[feature])

    @abstractmethod
    def share_below(self, distance: Ball) -> Ball:
        """Share of the noise below a distance in magnitudes."""

    @abstractmethod
    def density_at(self, distance: Ball) -> Ball:
        """Its density at a distance in magnitudes, 0 or larger, per magnitude."""

    @abstractmethod
    def bend_at(self, distances: FloatArray) -> FloatArray:
        """How much a smoothed step of height 1 bends at most from so many magnitudes on, rounded upward."""

    @abstractmethod
    def proves(self, mass: Ball, radius: Ball, band: Ball) -> bool:
        """Whether a failing mass of at most this stays below 1/2 less the band within the radius, in its own norm."""

    def list_cells(self, x: float, edges: Sequence[float], feature: int) -> list[Ball]:
        """Mass of each cell between the edges for a row at x; small differences of small tails."""
        if not len(edges):
            return [as_ball(1.0)]
        scale, own = as_ball(self.scale_of(feature)), as_ball(x)
        distances = [(as_ball(edge) - own) / scale for edge in edges]
        below = [self.share_below(distance) for distance in distances]
        above = [self.share_below(-distance) for distance in distances]
        inner = [
            below[j + 1] - below[j] if distances[j + 1] < 0 else above[j] - above[j + 1] for j in range(len(edges) - 1)
        ]
        return [below[0], *inner, above[-1]]

    def bound_cells(self, x: float, edges: Sequence[float], feature: int) -> list[Ball]:
        """The same, or where a cell is too narrow for a difference an upper bound: width times the highest density."""
        masses = self.list_cells(x, edges, feature)
        for at in range(1, len(masses) - 1):
            if isinstance(masses[at], Fraction) or masses[at].rel_accuracy_bits() > 40:
                continue
            low, high = ((Fraction(edge) - Fraction(x)) / self.scale_of(feature) for edge in edges[at - 1 : at + 1])
            nearest = Fraction(0) if low < 0 < high else min(abs(low), abs(high))
            by_width = as_ball(high - low) * self.density_at(as_ball(nearest))
            masses[at] = by_width.upper().min(masses[at].upper())
        return masses

    def solve_radius(self, mass: Ball, band: Ball) -> float:
        """The largest radius, to 12 digits or so, that a failing mass proves; 0 where none."""
        if not self.proves(mass, as_ball(0.0), band):
            return 0.0
        low, high = 0.0, float(self.magnitude)
        while self.proves(mass, as_ball(high), band) and high < 1e280:
            low, high = high, 2 * high
        while high - low > 1e-13 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.proves(mass, as_ball(middle), band) else (low, middle)
        return low


class BallGaussian(BallNoise):
    """Normal noise: within r a mass q grows to at most Phi(Phi^-1(q) + r / sigma)."""

    _roots: ClassVar[dict[int, Ball]] = {}
    tail = 1e-17  # erfc(8.5 / sqrt 2) / 2 = 9.5e-18
    reach = 8.5
    most_bend = 0.48395  # twice the density at 1

    def share_below(self, distance: Ball) -> Ball:
        """Share below a distance."""
        bits = _flint.ctx.prec
        if bits not in self._roots:
            self._roots[bits] = -as_ball(0.5).sqrt()
        return (distance * self._roots[bits]).erfc() / 2

    def density_at(self, distance: Ball) -> Ball:
        """exp(-z^2 / 2) / sqrt(2 pi)."""
        return (-distance * distance / 2).exp() / (2 * _flint.arb.pi()).sqrt()

    def bend_at(self, distances: FloatArray) -> FloatArray:
        """The slope of the density, which is largest at 1: there it is 1 / sqrt(2 pi e)."""
        far = np.maximum(distances, 1.0)
        return np.asarray(0.39895 * far * np.exp(-0.5 * far * far) + 1e-300)

    def proves(self, mass: Ball, radius: Ball, band: Ball) -> bool:
        """Phi^-1(1/2 - band) is at least -2.51 band for bands up to 0.01."""
        if not band <= 0.01:
            return False
        reached = self.share_below(-(radius / as_ball(self.magnitude) + as_ball(2.51) * band))
        return bool(mass <= reached)


class BallUniform(BallNoise):
    """Uniform noise: all masses are rational, and so is the proof; a mass q grows by at most r / (2 half-widths)."""

    tail = 0.0
    reach = 1.0
    most_bend = 0.0
    kinks = (-1.0, 1.0)

    def share_below(self, distance: Ball) -> Ball:
        """Share below a distance."""
        share = (distance + 1) / 2
        return as_ball(0.0).max(share.min(as_ball(1.0)))

    def list_cells(self, x: float, edges: Sequence[float], feature: int) -> list[Ball]:
        """The same in whole numbers and their quotients, without any rounding."""
        scale, own = self.scale_of(feature), Fraction(x)
        half, one = Fraction(1, 2), Fraction(1)
        shares = [min(max((Fraction(edge) - own) / scale / 2 + half, Fraction(0)), one) for edge in edges]
        return [above - below for below, above in itertools.pairwise([Fraction(0), *shares, one])]

    def density_at(self, distance: Ball) -> Ball:
        """1/2 as far as it goes; its masses are fractions, and do not ask."""
        return as_ball(0.5)

    def bend_at(self, distances: FloatArray) -> FloatArray:
        """Nothing, but for kinks."""
        return np.zeros(distances.shape)

    def proves(self, mass: Ball, radius: Ball, band: Ball) -> bool:
        """q + r / (2 half-widths) <= 1/2 - band."""
        return bool(mass + radius / (2 * as_ball(self.magnitude)) + band <= 0.5)


class BallLaplace(BallNoise):
    """Laplace noise: within r a mass q grows to at most q exp(r / scale)."""

    tail = 1e-17  # exp(-40) / 2 = 2.2e-18
    reach = 40.0
    most_bend = 1.0  # the smoothed function bends by what it differs from the step function

    def share_below(self, distance: Ball) -> Ball:
        """Share below a distance."""
        if distance <= 0:
            return distance.exp() / 2
        if distance >= 0:
            return 1 - (-distance).exp() / 2
        return (distance.min(as_ball(0.0)).exp() / 2).union(1 - (-distance.max(as_ball(0.0))).exp() / 2)

    def density_at(self, distance: Ball) -> Ball:
        """exp(-z) / 2."""
        return (-distance).exp() / 2

    def bend_at(self, distances: FloatArray) -> FloatArray:
        """The slope of the density."""
        return np.asarray(0.5000001 * np.exp(-distances) + 1e-300)

    def proves(self, mass: Ball, radius: Ball, band: Ball) -> bool:
        """q exp(r / scale) <= 1/2 - band."""
        return bool(mass * (radius / as_ball(self.magnitude)).exp() + band <= 0.5)


BALL_NOISES: dict[str, type[BallNoise]] = {"gaussian": BallGaussian, "uniform": BallUniform, "laplace": BallLaplace}


def as_ball_noise(noise: Noise) -> BallNoise:
    """A noise as an audit knows it."""
    if noise.name not in BALL_NOISES:
        raise ValueError(
            f"`noise` {noise} cannot be audited: there are proofs of {', '.join(BALL_NOISES)} alone "
            "(derand/auditing/_balls.py)."
        )
    return BALL_NOISES[noise.name](noise)
