"""From a claim about one row to the proofs of its rule.

Owns which proof a rule has. Must not know how any of them works, nor tables or files.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from derand.auditing._by_mass import MassProof
from derand.auditing._by_worst import clears_by_mean, holds_by_mean, holds_by_vote, holds_side_by_vote, is_mean_label
from derand.auditing._claim import Claim
from derand.auditing._threat import AllowedChanges
from derand.model import Model


class RowProof:
    """What can be proven about a row by one sum."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._mass = MassProof(claim)

    def holds(self, label: int, radius: float, proof: str | None = None) -> bool:
        """Whether the label, 0 or 1, is proven to hold within the radius; for a vote by the claimed proof, if any."""
        if self._claim.rule == "mean":
            return holds_by_mean(self._claim, label, radius)
        if proof != "dual" and self._mass.holds(label, radius):
            return True
        return proof != "paper" and holds_by_vote(self._claim, label, radius)

    def holds_each(self, label: int, radius: float) -> bool:
        """The same where every change of numbers that go missing or appear may have a proof of its own.

        The ends of a median are found in this way (docs/regression.md).
        """
        if self.holds(label, radius):
            return True
        if self._claim.rule == "mean" or not self._claim.threat.missing:
            return False
        return self._mass.holds_each(label, radius, lambda side: holds_side_by_vote(self._claim, side, radius))

    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell."""
        return is_mean_label(self._claim, label) if self._claim.rule == "mean" else self._mass.is_label(label)

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
            return holds_by_mean(replace(self._claim, contrast=replace(contrast, threshold=level)), label, math.inf)
        above = Fraction(score) - contrast.threshold
        return clears_by_mean(replace(self._claim, contrast=contrast), label, math.inf, above if label else -above)

    @property
    def band(self) -> float:
        """By how much a mass near 1/2 that the program computes may exceed the true one."""
        return self._claim.band

    def compute_share(self) -> float:
        """With which share of noisy copies class 1 wins, as the program counts: 1/2 where that is not sure.

        What the model may differ from the one that is meant counts against the winner.
        """
        still = MassProof(replace(self._claim, threat=AllowedChanges()))
        if self.is_label(1):
            return 1 - min(still.find_failure(1), 0.5)
        return min(still.find_failure(0), 0.5)


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
