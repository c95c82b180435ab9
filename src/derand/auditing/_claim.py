"""What is asked about one row by one sum: the sum, the row, noise and threat, and what each number may become.

Owns how far a number may move within a radius, and where to by steps. Must not know proofs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from derand._core.arrays import FloatArray
from derand.auditing._balls import BallNoise, as_ball_noise, to_double
from derand.auditing._blocks import Axis
from derand.auditing._oriented import Function, Side, coarsen, find_mean_error, find_tie_band, read_side
from derand.auditing._threat import AllowedChanges
from derand.model import Contrast
from derand.noise import Noise

_MOST_PLACES = 20_000


@dataclass(frozen=True, slots=True)
class Move:
    """How a number may move.

    Attributes
    ----------
    low, high : float
        Between which ends.
    unit : Fraction
        What counts as a distance of 1.
    places : tuple of float or None
        All that it may become, the row's own included, where it moves by whole steps; else None.
    """

    low: float
    high: float
    unit: Fraction
    places: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Claim:
    """What a claim about a row is about.

    Parameters
    ----------
    contrast : Contrast
    row : array of shape (n_features,)
    noise : Noise or None
    rule : str
    threat : AllowedChanges
    shared : dict
        What proofs of other rows of the same sum left for this one.
    """

    contrast: Contrast
    row: FloatArray
    noise: Noise | None
    rule: str
    threat: AllowedChanges
    shared: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def ball_noise(self) -> BallNoise:
        """The noise in balls."""
        assert self.noise is not None  # rules that need none do not ask
        return as_ball_noise(self.noise)

    @cached_property
    def grid(self) -> int:
        """On which the program sums the law: 1 where it can afford the scores as they are."""
        return coarsen(self.contrast)[0]

    @cached_property
    def grid_error(self) -> int:
        """How far that grid moves a sum at most."""
        return coarsen(self.contrast)[1]

    @cached_property
    def band(self) -> float:
        """By how much a mass near 1/2 that the program computes may exceed the true one."""
        return find_tie_band(self.contrast, self.grid)

    @cached_property
    def mean_error(self) -> Fraction:
        """By how much an expected score that the program computes may be off."""
        return Fraction(find_mean_error(self.contrast))

    def list_ranges(self) -> list[int]:
        """Of all functions that are not constant, whether their numbers are there or not."""
        scores = [term.cell_scores for term in self.contrast.terms if term.axes]
        return [int(one.max() - one.min()) for one in scores if one.max() > one.min()]

    def read_side(self, label: int, *, changes: bool = True) -> Side:
        """What it takes for a label to hold."""
        return read_side(self.contrast, self.row.tolist(), label, self.threat, changes=changes)

    def list_moves(self, functions: Sequence[Function | Axis], radius: float = math.inf) -> list[Move]:
        """How the numbers of some functions, or columns of blocks, may move, each by the radius at most."""
        moves = []
        for one in functions:
            unit, step, places = self.threat.unit(one.feature), self.threat.step(one.feature), None
            ends = self._cut_to_ball(one.x, unit, *self.threat.interval(one.feature, one.x), radius)
            if step:
                places = _list_places(one.x, step, *ends, one.edges if self.noise is None else None)
            moves.append(Move(*ends, unit, places))
        return moves

    def _cut_to_ball(self, x: float, unit: Fraction, low: float, high: float, radius: float) -> tuple[float, float]:
        """Ends between which a number may move, those of a ball rounded outward; norm 0 has none."""
        if not self.threat.norm or math.isinf(radius):
            return low, high
        away = Fraction(radius) * unit
        least, most = to_double(Fraction(x) - away), to_double(Fraction(x) + away)
        return max(low, math.nextafter(least, -math.inf)), min(high, math.nextafter(most, math.inf))


def _list_places(
    x: float, step: float, low: float, high: float, edges: Sequence[float] | None
) -> tuple[float, ...] | None:
    """What a number becomes by whole steps, its own value included: without noise beside each edge, else everything.

    None where there are too many, or infinitely many: then it may become anything between the ends.
    """
    if edges is None:
        if not (math.isfinite(low) and math.isfinite(high)) or (high - low) / step > _MOST_PLACES:
            return None
        counts = set(range(math.floor((low - x) / step) - 1, math.ceil((high - x) / step) + 2))
    else:
        far = [(edge - x) / step for edge in edges]
        if any(abs(count) > 2**52 for count in far):
            return None
        firsts = [_find_first(x, step, edge) for edge in edges]
        counts = {first + more for first in firsts for more in (-1, 0)}
    places = {x + count * step for count in counts}
    return tuple(sorted({x} | {z for z in places if low <= z <= high}))


def _find_first(x: float, step: float, edge: float) -> int:
    """The least whole count with x + count * step, as computed, not below an edge: steps may be smaller than an ulp."""
    near = round((edge - x) / step)
    wide = 4 + math.ceil(8 * math.ulp(max(abs(x), abs(edge))) / step)
    return near - wide + bisect.bisect_left(range(2 * wide), edge, key=lambda count: x + (near - wide + count) * step)
