"""The vote by its failing mass: what the share of noisy copies with another label proves (docs/theory.md, section 1).

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
from derand.auditing._claim import Claim, Move
from derand.auditing._masses import bound_mass, enumerate_mass
from derand.auditing._oriented import Axis, Condition, Function, round_to

_BITS = (64, 128, 256)
_MOST_SETS = 1000
_MOST_COMBINATIONS = 4096


class MassProof:
    """What the failing mass of a row proves."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._known: dict[tuple[int, bool, int], Ball] = {}

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """Whether the failing mass is proven to be at most this, and at most what has this logarithm."""

        def is_at_most(mass: Ball) -> bool:
            return bool(mass <= as_ball(failure)) and bool(mass <= as_ball(log_failure).exp())

        return self._try_bits(lambda bits: self._bound(label, True, bits), is_at_most)

    def bound_failure(self, label: int) -> float:
        """An upper bound of the failing mass, some 1e-16 above it."""
        with use_bits(_BITS[1] + 64):
            return float(self._bound(label, True, _BITS[1]))

    def holds(self, label: int, radius: float) -> bool:
        """Whether it proves the radius, in the threat's norm and units."""
        condition = self._claim.read_condition(label)
        if all(self._can_never_fail(one) for one in self._vary(condition)):
            return True
        return self._try_bits(lambda bits: self._bound(label, True, bits), self._prove_radius(condition, radius))

    def holds_each(self, label: int, radius: float, holds_otherwise: Callable[[Condition], bool]) -> bool:
        """Whether every change of numbers that go missing or appear leaves what is proven, in whichever way."""
        for condition in self._vary(self._claim.read_condition(label)):
            one = replace(condition, missable=())
            if self._can_never_fail(one) or holds_otherwise(one):
                continue
            bound = partial(self._bound_all, [one], self._grid_error)
            if not self._try_bits(bound, self._prove_radius(one, radius)):
                return False
        return True

    def _prove_radius(self, condition: Condition, radius: float) -> Callable[[Ball], bool]:
        """Whether a failing mass proves a radius."""
        noise, band = self._claim.ball_noise, self._claim.facts.band

        def proves(mass: Ball) -> bool:
            distance = self._carry_over(condition, radius)
            return distance is not None and noise.proves(mass, distance, as_ball(band))

        return proves

    def _can_never_fail(self, condition: Condition) -> bool:
        """Whether the sum is above the threshold in whatever cells noise puts the numbers. A mass of 0 does not say so:
        under bounded noise a change can make more cells possible."""
        least = sum(min(self._round(one, condition.is_one)) for one in condition.functions)
        return least > condition.threshold + self._grid_error

    @property
    def _grid_error(self) -> int:
        """How far the grid of the distribution moves a sum at most."""
        return self._claim.facts.coarse_grid[1]

    def _round(self, function: Function, is_one: bool) -> list[int]:
        """Scores as the program rounds them for a distribution on a coarser grid, before it turns them for class 0."""
        grid, _ = self._claim.facts.coarse_grid
        if grid == 1:
            return list(function.scores)
        sign = 1 if is_one else -1
        return [sign * grid * round_to(sign * score, grid) for score in function.scores]

    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell; an exact tie is class 0."""
        mass = self._bound(1, False, _BITS[1])
        with use_bits(_BITS[1]):
            if label:
                return bool(mass.upper() < 0.5)
            return not mass.upper() < 0.5 - 2 * as_ball(self._claim.facts.band)

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
            condition = self._claim.read_condition(label, changes=changes)
            varied = self._vary(condition) if changes else [condition]
            self._known[key] = self._bound_all(varied, self._grid_error if changes else 0, bits)
        return self._known[key]

    def _bound_all(self, conditions: Sequence[Condition], moved: int, bits: int) -> Ball:
        """The largest of upper bounds of the failing masses of some conditions."""
        with use_bits(bits + 64):
            worst = as_ball(0.0)
            for one in conditions:
                worst = worst.max(self._bound_one(one, moved, bits).upper())
        return worst

    def _bound_one(self, condition: Condition, moved: int, bits: int) -> Ball:
        terms = []
        for one in condition.functions:
            sides = [self._claim.ball_noise.bound_cells(axis.x, axis.edges, axis.feature) for axis in one.axes]
            scores = self._round(one, condition.is_one)
            terms.append(_merge_boxes(scores, sides) if one.is_grid else (scores, sides[0]))
        few = math.prod(len(scores) for scores, _ in terms) <= _MOST_COMBINATIONS
        if few and bits == _BITS[-1]:  # no tilt suits cells that differ by hundreds of digits
            return enumerate_mass(terms, condition.threshold + moved)
        return bound_mass(terms, condition.threshold + moved, bits)

    def _vary(self, condition: Condition) -> list[Condition]:
        """The condition after every change of numbers that may go missing or appear, or one that is worse than all."""
        missable = condition.missable
        budget = min(self._claim.threat.missing, len(missable))
        if sum(math.comb(len(missable), size) for size in range(1, budget + 1)) > _MOST_SETS:
            decreases = sorted((_bound_decrease(one) for one in missable), reverse=True)
            return [replace(condition, missable=(), threshold=condition.threshold + sum(decreases[:budget]))]
        sets = itertools.chain.from_iterable(itertools.combinations(missable, size) for size in range(budget + 1))
        return [condition.change_missing(chosen) for chosen in sets]

    def _carry_over(self, condition: Condition, radius: float) -> Ball | None:
        """The distance, in the noise's norm and units, that changes within the threat do not exceed; None for none."""
        noise, norm = self._claim.ball_noise, self._claim.threat.norm
        # what is constant on the grid of the distribution does not move it: its error is in the threshold
        moving = [one for one in condition.functions if len(set(self._round(one, condition.is_one))) > 1]
        axes = [axis for one in moving for axis in one.axes]
        moves = self._claim.list_moves(axes)
        free = [(one, move) for one, move in zip(axes, moves, strict=True) if not move.low == one.x == move.high]
        if not free:
            return as_ball(0.0)
        if norm is None:
            return self._measure_corner(free)
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

    def _measure_corner(self, free: Sequence[tuple[Axis, Move]]) -> Ball | None:
        """How far away the farthest corner of all limits is."""
        noise, total = self._claim.ball_noise, as_ball(0.0)
        for one, move in free:
            if math.isinf(move.low) or math.isinf(move.high):
                return None
            x = Fraction(one.x)
            far = max(x - Fraction(move.low), Fraction(move.high) - x) / noise.unit_of(one.feature)
            total += as_ball(far) ** noise.norm
        return total if noise.norm == 1 else total.sqrt()


def _merge_boxes(scores: Sequence[int], sides: Sequence[Sequence[Ball]]) -> tuple[list[int], list[Ball]]:
    """Boxes of equal score as one cell each; the mass of a box is the product of those of its sides."""
    merged: dict[int, Ball] = {}
    for score, masses in zip(scores, itertools.product(*sides), strict=True):
        mass = masses[0]
        for one in masses[1:]:
            mass = mass * one
        merged[score] = merged[score] + mass if score in merged else mass
    return list(merged), list(merged.values())


def _bound_decrease(one: Function) -> int:
    """What a number that goes missing, or appears, can take off in whatever cell noise has put it."""
    assert one.missing is not None
    return max(one.missing - min(one.scores) if one.is_missing else max(one.scores) - one.missing, 0)
