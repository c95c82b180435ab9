"""Both rules by the worst case of a sum: of the expected score under noise, or of the score itself without any.

Owns what the sum must clear: the threshold with the errors of the program's own arithmetic, for a vote what is deducted
from the mean (docs/theory.md, section 7), and what numbers that go missing or appear take off. Must not know how worst
cases are proven.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from derand.auditing._block_curves import BlockCase
from derand.auditing._claim import Claim
from derand.auditing._oriented import Side
from derand.auditing._steps import holds, list_block_drops, list_drops
from derand.auditing._threat import AllowedChanges
from derand.auditing._worst import WorstCase

_CONSTANT, _RESERVE = Fraction(73, 100), Fraction(3, 1000)
_DOMINATES, _MOST_CAPS = 0.8, 3


def holds_by_mean(claim: Claim, label: int, radius: float) -> bool:
    """Whether the label by the rule "mean" is proven to hold within the radius."""
    side = claim.read_side(label)
    if claim.noise is None:
        return _holds_deployed(claim, side, radius)
    case = _find_case(claim, side, radius)
    needed = side.bar + _find_missing_fall(claim, side, case)
    if not side.functions and not side.blocks:
        return side.cut + needed - side.bar < 0
    return case.stays_above(needed + claim.mean_error, claim.threat.norm, radius)


def clears_by_mean(claim: Claim, label: int, radius: float, extra: Fraction) -> bool:
    """Whether the expected score, turned to the label's side, stays above its bar by so much within the radius.

    Where the answer is a number; there must be noise. Nothing is added for the program's own errors.
    """
    side = claim.read_side(label)
    case = _find_case(claim, side, radius)
    needed = side.bar + extra + _find_missing_fall(claim, side, case)
    if needed <= side.least:
        return True
    if needed > side.least + sum(side.ranges):
        return False
    return case.stays_above(needed, claim.threat.norm, radius)


def holds_by_vote(claim: Claim, label: int, radius: float) -> bool:
    """Whether the vote's label is proven to hold within the radius: its expected score clears the cut by enough."""
    return holds_side_by_vote(claim, claim.read_side(label), radius)


def holds_side_by_vote(claim: Claim, side: Side, radius: float) -> bool:
    """The same of a side.

    Functions may be cut off above, which lowers the sum, and with the ranges what must be deducted.
    """
    if not side.functions and not side.blocks:
        return False
    ranges = sorted(side.ranges, reverse=True)
    caps: list[int | None] = [None]
    every = sorted(claim.list_ranges(), reverse=True)[: _MOST_CAPS + 1]
    caps += [least for most, least in itertools.pairwise(every) if least < _DOMINATES * most]
    level = side.cut + claim.grid_error if side.gaps else side.round_down(side.cut + claim.grid_error)
    wider = claim.grid if claim.grid_error else 0
    for cap in caps:
        case = _find_case(claim, side, radius, cap)
        counted = [Fraction(one if cap is None else min(one, cap)) + wider for one in ranges]
        needed = level + deduct(counted, claim.band) + _find_missing_fall(claim, side, case)
        if case.stays_above(needed, claim.threat.norm, radius):
            return True
    return False


def is_mean_label(claim: Claim, label: int) -> bool:
    """Whether the row's own label by the rule "mean" is this, or too near a tie for the program to tell."""
    still = replace(claim, threat=AllowedChanges())
    side = still.read_side(label, changes=False)
    if claim.noise is None or not (side.functions or side.blocks):
        return side.total > side.cut
    return _find_case(still, side, math.inf).stays_above(side.bar - 2 * claim.mean_error, None, math.inf)


def deduct(ranges: Sequence[Fraction], band: float) -> Fraction:
    """By how much a mean must clear a cut, so that most noisy copies do (docs/theory.md, section 7).

    Examples
    --------
    >>> float(deduct([Fraction(10)] * 3, 1e-12))
    7.3
    """
    squares = sum((one * one for one in ranges), Fraction(0))
    root = Fraction(math.isqrt(math.ceil(squares * 2**80)) + 1, 2**40)
    by_spread = (Fraction(1, 2) + 2 * Fraction(band)) * root
    largest = max(ranges)
    if (2 * Fraction(band)) ** 2 * (1 + squares / (4 * largest**2)) >= _RESERVE**2:
        return by_spread
    return min(_CONSTANT * largest, by_spread)


def _find_case(claim: Claim, side: Side, radius: float, cap: int | None = None) -> WorstCase:
    assert claim.noise is not None
    moves = claim.list_moves(side.functions, radius)
    blocks = [
        BlockCase(one, claim.list_moves(one.axes, radius), claim.noise, claim.ball_noise, cap, claim.shared)
        for one in side.blocks
    ]
    return WorstCase(side.functions, moves, claim.noise, claim.ball_noise, cap, claim.shared, blocks)


def _find_missing_fall(claim: Claim, side: Side, case: WorstCase) -> Fraction:
    """What numbers that go missing or appear take off the expected score at most."""
    if not side.gaps:
        return Fraction(0)
    exact = claim.threat.norm is None and claim.rule == "mean"  # each number at its worst place, or missing
    values = case.find_least_values() if exact else case.find_values()
    known = {one.feature: Fraction(value) for one, value in zip(side.functions, values, strict=True)}
    return _add_largest_falls(side, known, claim.threat.missing)


def _add_largest_falls(side: Side, values: Mapping[int, Fraction], budget: int) -> Fraction:
    """The largest falls, as many as the budget allows: from a value to missing, or from missing to the worst value."""
    falls = []
    for one in side.gaps:
        assert one.missing is not None
        here = values.get(one.feature, Fraction(one.scores[0]))  # others are constant
        falls.append(Fraction(one.missing - min(one.scores)) if one.is_gap else here - one.missing)
    return sum((max(fall, Fraction(0)) for fall in sorted(falls, reverse=True)[:budget]), Fraction(0))


def _holds_deployed(claim: Claim, side: Side, radius: float) -> bool:
    """The model as deployed: whole scores."""
    moves = claim.list_moves(side.functions)
    drops = [list_drops(one, move) for one, move in zip(side.functions, moves, strict=True)]
    margin = side.total - side.cut
    if side.gaps:
        exact = claim.threat.norm is None
        lowest = {
            one.feature: Fraction(one.own - (max((drop.fall for drop in found), default=0) if exact else 0))
            for one, found in zip(side.functions, drops, strict=True)
        }
        margin -= int(_add_largest_falls(side, lowest, claim.threat.missing))
    drops += [list_block_drops(one, claim.list_moves(one.axes)) for one in side.blocks]
    return holds(drops, margin, claim.threat.norm, radius)
