"""What can be proven about one row by one sum: by the rule's failing mass, or by the worst case of the sum.

Owns which proof a rule has, and what the sum must clear: the threshold with the errors of the program's own arithmetic,
for a vote what is deducted from the mean (docs/theory.md, section 7), and what numbers that go missing or appear take
off. Must not know how masses and worst cases are proven, nor tables or files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from derand.auditing._by_mass import MassProof
from derand.auditing._claim import Claim
from derand.auditing._oriented import Condition
from derand.auditing._steps import holds, list_drops
from derand.auditing._threat import AllowedChanges
from derand.auditing._worst import WorstCase
from derand.model import Model

_CONSTANT, _RESERVE = Fraction(73, 100), Fraction(3, 1000)
_DOMINATES, _MOST_CAPS = 0.8, 3


class RowProof:
    """What can be proven about a row by one sum."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._mass = MassProof(claim)

    def holds(self, label: int, radius: float, proof: str | None = None) -> bool:
        """Whether the label, 0 or 1, is proven to hold within the radius; for a vote by the claimed proof, if any."""
        if self._claim.rule == "mean":
            return _holds_by_mean(self._claim, label, radius)
        if proof != "dual" and self._mass.holds(label, radius):
            return True
        return proof != "paper" and _holds_by_vote(self._claim, self._claim.read_condition(label), radius)

    def holds_each(self, label: int, radius: float) -> bool:
        """The same where every change of numbers that go missing or appear may have a proof of its own.

        The ends of a median are found in this way (docs/theory.md, section 15).
        """
        if self.holds(label, radius):
            return True
        if self._claim.rule == "mean" or not self._claim.threat.missing:
            return False
        return self._mass.holds_each(label, radius, lambda one: _holds_by_vote(self._claim, one, radius))

    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell."""
        return _is_mean_label(self._claim, label) if self._claim.rule == "mean" else self._mass.is_label(label)

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """Whether the failing mass of a vote is proven to be at most this, and at most what has this logarithm."""
        return self._mass.proves_failure(label, failure, log_failure)

    def stays_beyond(self, label: int, score: float) -> bool:
        """Whether the expected score is proven not to pass this one on its way to the other label, within limits.

        It is that of the model as it stands, without what it may differ from the one that is meant.
        """
        if self._claim.rule != "mean" or not math.isfinite(score):
            return False
        contrast = replace(self._claim.contrast, score_error=0.0)
        if self._claim.noise is None:
            level = math.ceil(score) - 1 if label else math.floor(score)
            return _holds_by_mean(replace(self._claim, contrast=replace(contrast, threshold=level)), label, math.inf)
        above = Fraction(score) - contrast.threshold
        return clears_by_mean(replace(self._claim, contrast=contrast), label, math.inf, above if label else -above)

    @property
    def band(self) -> float:
        """By how much a mass near 1/2 that the program computes may exceed the true one."""
        return self._claim.facts.band

    def compute_share(self) -> float:
        """With which share of noisy copies class 1 wins, as the program counts: 1/2 where that is not sure.

        What the model may differ from the one that is meant counts against the winner.
        """
        still = MassProof(replace(self._claim, threat=AllowedChanges()))
        if self.is_label(1):
            return 1 - min(still.bound_failure(1), 0.5)
        return min(still.bound_failure(0), 0.5)


def share_codes(threat: AllowedChanges, model: Model) -> AllowedChanges:
    """The same for members of a vote by themselves: a category that one table knows may reach another that does not."""
    if threat.unseen or model.weights is None:
        return threat
    known: dict[int, set[float]] = {}
    for member in model.members:
        for told in (term.describe() for term in member.terms if term.kind == "category_table"):
            if told["categories"] and told["feature"] not in threat.frozen:
                known.setdefault(told["feature"], set()).update(told["categories"])
    return replace(threat, may_become={**{at: tuple(codes) for at, codes in known.items()}, **threat.may_become})


def _holds_by_mean(claim: Claim, label: int, radius: float) -> bool:
    """Whether the label by the rule "mean" is proven to hold within the radius."""
    condition = claim.read_condition(label)
    if claim.noise is None:
        return _holds_deployed(claim, condition, radius)
    case = WorstCase(claim, condition.functions, radius)
    decrease = _bound_missing(claim, condition, case)
    if not condition.functions:
        return condition.threshold + decrease < 0
    return case.stays_above(condition.level + decrease + claim.mean_error, claim.threat.norm, radius)


def clears_by_mean(claim: Claim, label: int, radius: float, extra: Fraction) -> bool:
    """Whether the expected score, turned so that the label's is high, stays above its level by so much.

    Where the answer is a number; there must be noise. Nothing is added for the program's own errors.
    """
    condition = claim.read_condition(label)
    case = WorstCase(claim, condition.functions, radius)
    needed = condition.level + extra + _bound_missing(claim, condition, case)
    if needed <= condition.least:
        return True
    if needed > condition.least + sum(condition.ranges):
        return False
    return case.stays_above(needed, claim.threat.norm, radius)


def _holds_by_vote(claim: Claim, condition: Condition, radius: float) -> bool:
    """Whether the vote's label is proven to hold within the radius: its expected score clears the threshold by enough.

    Functions may be cut off above, which lowers the sum, and with the ranges what must be deducted.
    """
    if not condition.functions:
        return False
    grid, grid_error = claim.facts.coarse_grid
    every = sorted(claim.facts.ranges, reverse=True)[: _MOST_CAPS + 1]
    caps = [None, *(least for most, least in itertools.pairwise(every) if least < _DOMINATES * most)]
    level = condition.threshold + grid_error
    level = level if condition.missable else condition.round_down(level)
    ranges, wider = sorted(condition.ranges, reverse=True), grid if grid_error else 0
    for cap in caps:
        case = WorstCase(claim, condition.functions, radius, cap)
        counted = [Fraction(one if cap is None else min(one, cap)) + wider for one in ranges]
        needed = level + _deduct(counted, claim.facts.band) + _bound_missing(claim, condition, case)
        if case.stays_above(needed, claim.threat.norm, radius):
            return True
    return False


def _is_mean_label(claim: Claim, label: int) -> bool:
    """Whether the row's own label by the rule "mean" is this, or too near a tie for the program to tell."""
    still = replace(claim, threat=AllowedChanges())
    condition = still.read_condition(label, changes=False)
    if claim.noise is None or not condition.functions:
        return condition.total > condition.threshold
    case = WorstCase(still, condition.functions, math.inf)
    return case.stays_above(condition.level - 2 * claim.mean_error, None, math.inf)


def _deduct(ranges: Sequence[Fraction], band: float) -> Fraction:
    """By how much a mean must clear a threshold, so that most noisy copies do (docs/theory.md, section 7).

    Examples
    --------
    >>> float(_deduct([Fraction(10)] * 3, 1e-12))
    7.3
    """
    squares = sum((one * one for one in ranges), Fraction(0))
    root = Fraction(math.isqrt(math.ceil(squares * 2**80)) + 1, 2**40)
    by_spread = (Fraction(1, 2) + 2 * Fraction(band)) * root
    largest = max(ranges)
    if (2 * Fraction(band)) ** 2 * (1 + squares / (4 * largest**2)) >= _RESERVE**2:
        return by_spread
    return min(_CONSTANT * largest, by_spread)


def _bound_missing(claim: Claim, condition: Condition, case: WorstCase) -> Fraction:
    """What numbers that go missing or appear take off the expected score at most."""
    if not condition.missable:
        return Fraction(0)
    exact = claim.threat.norm is None and claim.rule == "mean"  # each number at its worst place, or missing
    return _add_largest(condition, case.bound_values(at_least=exact), claim.threat.missing)


def _add_largest(condition: Condition, values: Mapping[int, Fraction], budget: int) -> Fraction:
    """The largest decreases, as many as the budget allows: from a value to missing, or from missing to the worst."""
    decreases = []
    for one in condition.missable:
        assert one.missing is not None
        here = values.get(one.feature, Fraction(one.scores[0]))  # others are constant
        decreases.append(Fraction(one.missing - min(one.scores)) if one.is_missing else here - one.missing)
    return sum((max(one, Fraction(0)) for one in sorted(decreases, reverse=True)[:budget]), Fraction(0))


def _holds_deployed(claim: Claim, condition: Condition, radius: float) -> bool:
    """The model as deployed: whole scores."""
    drops = [list_drops(one, claim.list_moves(one.axes)) for one in condition.functions]
    margin = condition.total - condition.threshold
    if condition.missable:
        exact = claim.threat.norm is None
        lowest = {
            one.feature: Fraction(one.own - (max((drop.decrease for drop in found), default=0) if exact else 0))
            for one, found in zip(condition.functions, drops, strict=True)
            if not one.is_grid
        }
        margin -= int(_add_largest(condition, lowest, claim.threat.missing))
    return holds(drops, margin, claim.threat.norm, radius)
