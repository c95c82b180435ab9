"""The vote by its failing mass: what the share of noisy copies on the other side proves (docs/theory.md, section 1).

Owns the masses of a row for all that may go missing, what they prove in the threat's norm and units, and how many bits
that takes. Must not know worst cases.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from derand.auditing._balls import Ball, as_ball, use_bits
from derand.auditing._blocks import Block, merge_boxes, multiply_sides
from derand.auditing._claim import Claim, Move
from derand.auditing._masses import bound_mass, enumerate_mass
from derand.auditing._oriented import Function, Side, round_to

_BITS = (64, 128, 256)
_MOST_SETS = 1000
_MOST_COMBINATIONS = 4096


class MassProof:
    """What the failing mass of a row proves.

    Parameters
    ----------
    claim : Claim
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._known: dict[tuple[int, bool, int], Ball] = {}

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """Whether the failing mass is proven to be at most this, and at most what has this logarithm."""

        def is_at_most(mass: Ball) -> bool:
            return bool(mass <= as_ball(failure)) and bool(mass <= as_ball(log_failure).exp())

        return self._try_bits(lambda bits: self._bound(label, True, bits), is_at_most)

    def find_failure(self, label: int) -> float:
        """An upper bound of the failing mass, some 1e-16 above it."""
        with use_bits(_BITS[1] + 64):
            return float(self._bound(label, True, _BITS[1]))

    def holds(self, label: int, radius: float) -> bool:
        """Whether it proves the radius, in the threat's norm and units."""
        side = self._claim.read_side(label)
        if all(self._can_never_fail(one) for one in self._vary(side)):
            return True
        return self._try_bits(lambda bits: self._bound(label, True, bits), self._prove_radius(side, radius))

    def holds_each(self, label: int, radius: float, holds_otherwise: Callable[[Side], bool]) -> bool:
        """Whether every change of numbers that go missing or appear leaves a side that is proven, in whichever way."""
        for side in self._vary(self._claim.read_side(label)):
            one = replace(side, gaps=())
            if self._can_never_fail(one) or holds_otherwise(one):
                continue
            bound = partial(self._bound_sides, [one], self._claim.grid_error)
            if not self._try_bits(bound, self._prove_radius(one, radius)):
                return False
        return True

    def _prove_radius(self, side: Side, radius: float) -> Callable[[Ball], bool]:
        """Whether a failing mass of the side proves a radius."""
        noise, band = self._claim.ball_noise, self._claim.band

        def proves(mass: Ball) -> bool:
            distance = self._carry_over(side, radius)
            return distance is not None and noise.proves(mass, distance, as_ball(band))

        return proves

    def _can_never_fail(self, side: Side) -> bool:
        """Whether the sum is above the cut in whatever cells noise puts the numbers. A mass of 0 does not say so: under
        bounded noise a change can bring cells into reach."""
        return self._find_least(side) > side.cut + self._claim.grid_error

    def _find_least(self, side: Side) -> int:
        every: list[Function | Block] = [*side.functions, *side.blocks]
        return sum(min(self._round(one, side.is_one)) for one in every)

    def _round(self, function: Function | Block, is_one: bool) -> list[int]:
        """Scores as the program rounds them for a law on a coarser grid, before it turns them for class 0."""
        grid = self._claim.grid
        if grid == 1:
            return list(function.scores)
        turn = 1 if is_one else -1
        return [turn * grid * round_to(turn * score, grid) for score in function.scores]

    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell; an exact tie is class 0."""
        mass = self._bound(1, False, _BITS[1])
        with use_bits(_BITS[1]):
            if label:
                return bool(mass.upper() < 0.5)
            return not mass.upper() < 0.5 - 2 * as_ball(self._claim.band)

    def _try_bits(self, bound: Callable[[int], Ball], proves: Callable[[Ball], bool]) -> bool:
        """Whether a failing mass proves something, with ever more bits while these make a difference."""
        before = None
        for bits in _BITS:
            mass = bound(bits)
            with use_bits(bits + 64):
                if proves(mass):
                    return True
                almost = 1 - as_ball(2.0) ** -20
                if before is not None and before * almost < mass and not proves(mass * almost):
                    return False
                before = mass
        return False

    def _bound(self, label: int, changes: bool, bits: int) -> Ball:
        """An upper bound of the failing mass; with changes the worst of all that may go missing or appear."""
        key = (label, changes, bits)
        if key not in self._known:
            side = self._claim.read_side(label, changes=changes)
            sides = self._vary(side) if changes else [side]
            self._known[key] = self._bound_sides(sides, self._claim.grid_error if changes else 0, bits)
        return self._known[key]

    def _bound_sides(self, sides: Sequence[Side], moved: int, bits: int) -> Ball:
        """The largest of upper bounds of the failing masses of some sides."""
        with use_bits(bits + 64):
            worst = as_ball(0.0)
            for one in sides:
                worst = worst.max(self._bound_side(one, moved, bits).upper())
        return worst

    def _bound_side(self, side: Side, moved: int, bits: int) -> Ball:
        terms = []
        for one in side.functions:
            terms.append(
                (self._round(one, side.is_one), self._claim.ball_noise.bound_cells(one.x, one.edges, one.feature))
            )
        for block in side.blocks:
            axes = zip(block.xs, block.edges, block.features, strict=True)
            masses = multiply_sides([self._claim.ball_noise.bound_cells(*axis) for axis in axes])
            terms.append(merge_boxes(self._round(block, side.is_one), masses))
        few = math.prod(len(scores) for scores, _ in terms) <= _MOST_COMBINATIONS
        if few and bits == _BITS[-1]:  # no tilt suits cells that differ by hundreds of digits
            return enumerate_mass(terms, side.cut + moved)
        return bound_mass(terms, side.cut + moved, bits)

    def _vary(self, side: Side) -> list[Side]:
        """The side after every change of numbers that may go missing or appear, or one that is worse than all."""
        budget = min(self._claim.threat.missing, len(side.gaps))
        n_sets = sum(math.comb(len(side.gaps), size) for size in range(1, budget + 1))
        if n_sets > _MOST_SETS:
            falls = sorted((_find_largest_fall(one) for one in side.gaps), reverse=True)
            return [Side(side.functions, (), side.cut + sum(falls[:budget]), side.is_one, side.blocks)]
        sets = itertools.chain.from_iterable(itertools.combinations(side.gaps, size) for size in range(budget + 1))
        return [side.vary(chosen) for chosen in sets]

    def _carry_over(self, side: Side, radius: float) -> Ball | None:
        """The distance, in the noise's norm and units, that changes within the threat do not exceed; None for none."""
        noise, threat = self._claim.ball_noise, self._claim.threat
        # what is constant on the grid of the law does not move it: its error is in the threshold
        functions = [one for one in side.functions if len(set(self._round(one, side.is_one))) > 1]
        for block in side.blocks:
            if len(set(self._round(block, side.is_one))) > 1:
                functions += [
                    Function(*one, (0, 1), None) for one in zip(block.features, block.xs, block.edges, strict=True)
                ]
        moves = self._claim.list_moves(functions)
        free = [(one, move) for one, move in zip(functions, moves, strict=True) if not move.low == one.x == move.high]
        if not free:
            return as_ball(0.0)
        norm = threat.norm
        if norm is None:
            return self._find_corner(free)
        if norm == 0 or math.isinf(radius):
            return None
        ratios = [as_ball(move.unit / noise.unit_of(one.feature)) for one, move in free]
        power = Fraction(1, noise.norm) - (Fraction(0) if math.isinf(norm) else 1 / Fraction(norm))
        if power <= 0:
            stretch = ratios[0]
            for ratio in ratios[1:]:
                stretch = stretch.max(ratio)
        else:  # Hoelder's inequality for three norms
            total = sum((ratio ** as_ball(1 / power) for ratio in ratios), as_ball(0.0))
            stretch = total ** as_ball(power)
        return as_ball(radius) * stretch

    def _find_corner(self, free: Sequence[tuple[Function, Move]]) -> Ball | None:
        """How far away the farthest corner of all limits is."""
        noise, total = self._claim.ball_noise, as_ball(0.0)
        for one, move in free:
            if math.isinf(move.low) or math.isinf(move.high):
                return None
            x = Fraction(one.x)
            far = max(x - Fraction(move.low), Fraction(move.high) - x) / noise.unit_of(one.feature)
            total += as_ball(far) ** noise.norm
        return total if noise.norm == 1 else total.sqrt()


def _find_largest_fall(one: Function) -> int:
    """What a number that goes missing, or appears, can take off in whatever cell noise has put it."""
    assert one.missing is not None
    return max(one.missing - min(one.scores) if one.is_gap else max(one.scores) - one.missing, 0)
