"""What can be proven about the prediction of a row: a label or a number, by the sums that decide on it.

Two classes are compared in one sum, each pair of several classes in a sum of its own. The label is the class that wins
all of its comparisons, and where there is none the one whose worst comparison is best (docs/theory.md, section 12).
For regression, a level is a label (docs/theory.md, section 15). Owns the way from a prediction to these sums, and
from an end of an interval, a double, to the claim of two classes that it stands for: the score that the number is
rounded from, or for expected scores the level with what the program's own arithmetic may be off by. Must not know how
anything is proven of one sum, nor tables or files.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._claim import Claim
from derand.auditing._oriented import SumFacts
from derand.auditing._proofs import RowProof, clears_by_mean, share_codes
from derand.auditing._threat import AllowedChanges
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise

_MOST_KEPT = 1000
"""Sums of which what proofs of one row found is kept for the next one."""
_ROUNDINGS = 4 * 2.0**-52
"""Of the few operations between an expected sum and an answer, relative to the largest number on the way."""
_MOST = 2**56
"""Scores and offsets together are smaller."""


class Comparison(Protocol):
    """The sum that decides between two classes: class 1 of it is the higher one."""

    @property
    def band(self) -> float:
        """By how much a mass near 1/2 that the program computes may exceed the true one."""

    def holds(self, label: int, radius: float, proof: str | None) -> bool:
        """Whether the label is proven to hold within the radius, by the named proof, if any."""

    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell."""

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """Whether the failing mass is proven to be at most this, and at most what has this logarithm."""

    def stays_beyond(self, label: int, score: float) -> bool:
        """Whether the expected score is proven not to pass this one on its way to the other label, within limits."""

    def compute_share(self) -> float:
        """With which share of noisy copies class 1 wins."""


class LabelProof(ABC):
    """What can be proven about the label of one row. Classes are numbers from 0."""

    n_tried = 0
    """Regions in which a claim was not decided, where a proof gave up; else 0."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    @abstractmethod
    def holds(self, label: int, radius: float, proof: str, runner_up: int | None) -> bool:
        """Whether the label is proven to hold within the radius.

        `proof` is what the certificate names, "" for any. Of several classes the runner-up's comparison must be proven
        by it; the other comparisons, and all of them where no runner-up is named, may be proven by any.
        """

    @abstractmethod
    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell."""

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """Whether the failing mass is proven to be at most this, and at most what has this logarithm."""
        return False

    def stays_beyond(self, label: int, score: float) -> bool:
        """Whether the expected score is proven not to pass this one on its way to the other label, within limits."""
        return False

    def is_other(self, label: int) -> bool:
        """Whether the row's own label is another one, or too near a tie for the program to tell."""
        return any(self.is_label(other) for other in self._list_others(label))

    def _list_others(self, label: int) -> list[int]:
        return [other for other in range(self.n_classes) if other != label]


class Sums:
    """The sums that decide on the predictions of a model, and what proofs of one row leave for those of the next."""

    def __init__(self, model: Model, noise: Noise | None, rule: str, threat: AllowedChanges) -> None:
        self._model, self._asked = model, (noise, rule, share_codes(threat, model))
        self._contrasts = {
            member: member.contrasts() if model.n_classes else (member.as_sum(),) for member in model.members
        }
        self._facts: dict[tuple[AdditiveEnsemble, int], SumFacts] = {}

    def read_label(self, row: FloatArray) -> LabelProof:
        """What can be proven about the label of one row."""
        proofs = {member: list(map(RowProof, self._read(member, row))) for member in self._model.members}
        if self._model.weights is not None:
            return _VoteProof(self._model, {member: proof for member, (proof,) in proofs.items()})
        ((member, own),) = proofs.items()
        return PairwiseProof(self._model.n_classes, dict(zip(member.pairs, own, strict=True)), self._asked[1])

    def read_number(self, row: FloatArray) -> NumberProof:
        """What can be proven about the number that is predicted of one row."""
        (member,) = self._model.members
        return NumberProof(member, *self._read(member, row))

    def _read(self, member: AdditiveEnsemble, row: FloatArray) -> list[Claim]:
        claims = []
        for at, contrast in enumerate(self._contrasts[member]):
            facts = self._facts.get((member, at)) or SumFacts(contrast)
            if len(self._facts) < _MOST_KEPT:
                self._facts[member, at] = facts
            claims.append(Claim(contrast, row, *self._asked, facts))
        return claims


class PairwiseProof(LabelProof):
    """A label by its comparisons with all other classes; of two classes there is one."""

    def __init__(self, n_classes: int, comparisons: Mapping[tuple[int, int], Comparison], rule: str) -> None:
        super().__init__(n_classes)
        self._comparisons, self._rule = comparisons, rule

    def _compare(self, label: int, other: int) -> tuple[Comparison, int]:
        """The comparison of two classes, and which of its classes the first one is: 1 for the higher class."""
        return self._comparisons[min(label, other), max(label, other)], int(label > other)

    def holds(self, label: int, radius: float, proof: str, runner_up: int | None) -> bool:
        # the runner-up first: where a claim is false it mostly is so against this class
        for other in sorted(self._list_others(label), key=lambda one: one != runner_up):
            comparison, own = self._compare(label, other)
            must_be_named = other == runner_up or self.n_classes == 2
            if not comparison.holds(own, radius, proof if must_be_named else None):
                return False
        return True

    def is_label(self, label: int) -> bool:
        if all(self._wins(label, other) for other in self._list_others(label)):
            return True
        if self._rule == "mean":  # means are ordered: one of them is the largest
            return False
        return not self._has_winner() and self._loses_least(label)

    def _wins(self, label: int, other: int) -> bool:
        """Whether a class wins a comparison, or is too near a tie for the program to tell."""
        comparison, own = self._compare(label, other)
        return comparison.is_label(own)

    def _has_winner(self) -> bool:
        """Whether some class wins all of its comparisons for sure."""
        classes = range(self.n_classes)
        return any(not any(self._wins(other, one) for other in self._list_others(one)) for one in classes)

    def _loses_least(self, label: int) -> bool:
        """Whether no other class has a better worst comparison, as far as the program can tell."""
        worst = [self._compute_worst_share(one) for one in range(self.n_classes)]
        band = max(comparison.band for comparison in self._comparisons.values())
        return worst[label] >= max(worst) - 4 * band

    def _compute_worst_share(self, label: int) -> float:
        shares = []
        for other in self._list_others(label):
            comparison, own = self._compare(label, other)
            shares.append(comparison.compute_share() if own else 1 - comparison.compute_share())
        return min(shares)

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        found = (self._compare(label, other) for other in self._list_others(label))
        return all(comparison.proves_failure(own, failure, log_failure) for comparison, own in found)

    def stays_beyond(self, label: int, score: float) -> bool:
        return self.n_classes == 2 and self._comparisons[0, 1].stays_beyond(label, score)  # else there is no one score


class _VoteProof(LabelProof):
    """A label by a vote of ensembles: there is no one score, and no failing mass."""

    def __init__(self, model: Model, proofs: dict[AdditiveEnsemble, RowProof]) -> None:
        super().__init__(2)
        assert model.weights is not None
        self._votes = [
            (proofs[one], Fraction(float(weight))) for one, weight in zip(model.members, model.weights, strict=True)
        ]
        self._total = sum((abs(weight) for _, weight in self._votes), Fraction(0))
        # by how much sums of weights must differ to be told apart (kernels/README.md)
        self._margin = Fraction(4 * 2.0**-52 * len(self._votes)) * self._total

    def holds(self, label: int, radius: float, proof: str, runner_up: int | None) -> bool:
        """Whether the members that are proven to vote for the label outweigh all others, the heaviest asked first."""
        needed, left, sure = (self._total + self._margin) / 2, self._total, Fraction(0)
        for at in np.argsort([-abs(float(weight)) for _, weight in self._votes], kind="stable").tolist():
            member, weight = self._votes[at]
            if member.holds(label if weight >= 0 else 1 - label, radius):
                sure += abs(weight)
            left -= abs(weight)
            if sure > needed:
                return True
            if sure + left <= needed:
                return False
        return False

    def is_label(self, label: int) -> bool:
        """Whether the members' own labels make up the label: a tie of weights is class 0."""
        held = sum((abs(w) for one, w in self._votes if one.is_label(label if w >= 0 else 1 - label)), Fraction(0))
        return held > (self._total + self._margin) / 2 if label else held >= (self._total - self._margin) / 2


class AnswerGrid:
    """Whole scores and the answers that they are rounded to."""

    def __init__(self, offset: int, levels: int) -> None:
        self.offset, self.levels = offset, levels

    def round_up(self, end: float) -> int:
        """The least score whose answer, as the program rounds it, is an end or more."""
        score = math.ceil(self.to_grid(end)) - self.offset
        while abs(score) < _MOST and self.round(score) < end:
            score += 1
        while abs(score) < _MOST and self.round(score - 1) >= end:
            score -= 1
        return score

    def round_down(self, end: float) -> int:
        """The largest score whose answer is an end or less."""
        score = math.floor(self.to_grid(end)) - self.offset
        while abs(score) < _MOST and self.round(score) > end:
            score -= 1
        while abs(score) < _MOST and self.round(score + 1) <= end:
            score += 1
        return score

    def to_grid(self, end: float) -> Fraction:
        """An end in grid units, offset included; no nearer to 0 than all answers where it is far beyond them."""
        return max(min(Fraction(end) * self.levels, Fraction(2 * _MOST)), Fraction(-2 * _MOST))

    def round(self, score: int) -> float:
        """The answer of a score."""
        return float(score + self.offset) / float(self.levels)


class NumberProof:
    """What can be proven about the number that is predicted of one row; `claim` is about the sum that it is."""

    n_tried = 0

    def __init__(self, model: AdditiveEnsemble, claim: Claim) -> None:
        assert model.offset is not None
        self._model, self._claim = model, claim
        self._offset, self._levels = model.offset, model.levels
        self._answers = AnswerGrid(model.offset, model.levels)

    @cached_property
    def _is_whole(self) -> bool:
        """Whether answers are those of whole scores: medians, and scores without noise."""
        return self._claim.rule == "vote" or self._claim.noise is None or not self._claim.facts.ranges

    @cached_property
    def _slack(self) -> Fraction:
        """More than all roundings between the expected sum and an answer, in grid units."""
        moving = [term.cell_scores for term in self._model.terms if term.axes]
        least, spans = sum(int(one.min()) for one in moving), sum(int(one.max() - one.min()) for one in moving)
        fixed = sum(abs(term.missing_score or 0) for term in self._model.terms if term.axes)
        fixed += sum(max(map(abs, term.score_range())) for term in self._model.terms if not term.axes)
        size = abs(least) + spans + fixed + abs(self._offset) + math.ceil(self._model.score_error)
        return Fraction(_ROUNDINGS) * size

    def is_value(self, value: float) -> bool:
        """Whether the row's own answer is this, or too near a tie for the program to tell."""
        if self._is_whole:
            first, last = self._answers.round_up(value), self._answers.round_down(value)
            return first <= last and self._prove(first - 1).is_label(1) and self._prove(last).is_label(0)
        off = 2 * self._claim.mean_error + self._slack
        own = replace(self._claim, threat=AllowedChanges())
        own = replace(own, contrast=replace(own.contrast, score_error=0.0))
        level = Fraction(value) * self._levels
        return all(clears_by_mean(own, label, math.inf, (level if label else -level) - off) for label in (1, 0))

    def stays_beyond(self, label: int, end: float, radius: float) -> bool:
        """Whether the answer is proven to stay at the end or above within the radius; for label 0, or below.

        Of whole scores the answer after rounding is meant; where the model stands for another one, the exact number.
        """
        if not self._is_whole:
            return self._clears(label, Fraction(end), radius)
        if self._model.score_error:
            exact = self._answers.to_grid(end) - self._offset
            return self._holds(label, math.ceil(exact) - 1 if label else math.floor(exact), radius)
        return self._holds(label, self._answers.round_up(end) - 1 if label else self._answers.round_down(end), radius)

    def stays_within(self, value: float, tolerance: float, radius: float) -> bool:
        """Whether the answer is proven to differ from a value by the tolerance at most within the radius.

        Whole scores are compared before they are rounded.
        """
        if not self._is_whole:
            ends = ((1, Fraction(value) - Fraction(tolerance)), (0, Fraction(value) + Fraction(tolerance)))
            return all(self._clears(label, end, radius) for label, end in ends)
        room = math.floor(Fraction(tolerance) * self._levels)
        first, last = self._answers.round_up(value), self._answers.round_down(value)
        return self._holds(1, last - room - 1, radius) and self._holds(0, first + room, radius)

    def _prove(self, level: int, claim: Claim | None = None) -> RowProof:
        """The two classes at a level: class 1 is an answer above it."""
        claim = claim or self._claim
        return RowProof(replace(claim, contrast=replace(claim.contrast, threshold=level)))

    def _holds(self, label: int, level: int, radius: float) -> bool:
        claim, size = self._ask(radius)
        return self._prove(level, claim).holds_each(label, size)

    def _clears(self, label: int, end: Fraction, radius: float) -> bool:
        """Whether computed answers by expected scores stay beyond an end.

        Where no number changes the program adds up the same numbers: what it is off by is the same, too.
        """
        claim, size = self._ask(radius)
        error = self._claim.mean_error if radius > 0 else -self._claim.mean_error
        level = (end if label else -end) * self._levels
        return clears_by_mean(claim, label, size, level + error + (self._slack if radius > 0 else -self._slack))

    def _ask(self, radius: float) -> tuple[Claim, float]:
        """What is asked within a radius: with 0 no number changes, in norm 0 whole numbers of columns do."""
        threat = self._claim.threat
        if radius > 0:
            return self._claim, math.ceil(radius) if threat.norm == 0 and math.isfinite(radius) else radius
        still = replace(threat, norm=None, limits={}, domain={}, steps={})
        return replace(self._claim, threat=still), math.inf
