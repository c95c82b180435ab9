"""What is asked about one row by one sum: the sum, the row, noise and threat, and what each number may become.

Owns how far a number may move within a radius, and where to by steps. Must not know proofs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from derand._core.arrays import FloatArray
from derand.auditing._balls import BallNoise, as_ball_noise, to_double
from derand.auditing._oriented import Axis, Condition, SumFacts, read_condition
from derand.auditing._threat import AllowedChanges
from derand.model import Contrast
from derand.noise import Noise

_MOST_POSITIONS = 20_000


class Move(NamedTuple):
    """How a number may move."""

    low: float
    high: float
    unit: Fraction
    """What counts as a distance of 1."""
    positions: tuple[float, ...] | None = None
    """All that it may become, the row's own included, where it moves by whole steps; else None."""


@dataclass(frozen=True)
class Claim:
    """What a claim about a row is about; `facts` are those that all rows of the sum share."""

    contrast: Contrast
    row: FloatArray
    noise: Noise | None
    rule: str
    threat: AllowedChanges
    facts: SumFacts

    @cached_property
    def ball_noise(self) -> BallNoise:
        """The noise in balls."""
        assert self.noise is not None  # rules that need none do not ask
        return as_ball_noise(self.noise)

    @property
    def mean_error(self) -> Fraction:
        """By how much an expected score that the program computes may be off."""
        return Fraction(self.facts.mean_error)

    def read_condition(self, label: int, *, changes: bool = True) -> Condition:
        """What it takes for a label to hold."""
        return read_condition(self.facts, self.contrast, self.row.tolist(), label, self.threat, changes=changes)

    def list_moves(self, axes: Sequence[Axis], radius: float = math.inf) -> list[Move]:
        """How some numbers may move, each by the radius at most."""
        moves = []
        for one in axes:
            move = Move(*self.threat.reach(one.feature, self.row.tolist()), self.threat.unit(one.feature))
            if self.threat.norm and not math.isinf(radius):  # norm 0 has no such ball
                move = Move(*cut_to_ball(one.x, move, radius), move.unit)
            step = self.threat.step(one.feature)
            edges = one.edges if self.noise is None else None
            moves.append(move._replace(positions=list_positions(one.x, step, move, edges)) if step else move)
        return moves


def cut_to_ball(x: float, move: Move, radius: float) -> tuple[float, float]:
    """The ends between which a number may move within a radius, rounded outward."""
    away = Fraction(radius) * move.unit
    least, most = to_double(Fraction(x) - away), to_double(Fraction(x) + away)
    return max(move.low, math.nextafter(least, -math.inf)), min(move.high, math.nextafter(most, math.inf))


def list_positions(x: float, step: float, move: Move, edges: Sequence[float] | None) -> tuple[float, ...] | None:
    """What a number becomes by whole steps, its own value included: without noise beside each edge, else everything.

    None where there are too many, or infinitely many: then it may become anything between the ends.
    """
    low, high = move.low, move.high
    if edges is None:
        if not (math.isfinite(low) and math.isfinite(high)) or (high - low) / step > _MOST_POSITIONS:
            return None
        counts = set(range(math.floor((low - x) / step) - 1, math.ceil((high - x) / step) + 2))
    else:
        if any(abs((edge - x) / step) > 2**52 for edge in edges):
            return None
        firsts = [_count_steps(x, step, edge) for edge in edges]
        counts = {first + more for first in firsts for more in (-1, 0)}
    positions = {x + count * step for count in counts}
    return tuple(sorted({x} | {z for z in positions if low <= z <= high}))


def _count_steps(x: float, step: float, edge: float) -> int:
    """The least whole count with x + count * step, as computed, not below an edge: steps may be smaller than an ulp."""
    near = round((edge - x) / step)
    wide = 4 + math.ceil(8 * math.ulp(max(abs(x), abs(edge))) / step)
    return near - wide + bisect.bisect_left(range(2 * wide), edge, key=lambda count: x + (near - wide + count) * step)
