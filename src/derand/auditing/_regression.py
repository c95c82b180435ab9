"""What can be proven about a row's answer where it is a number: a level is a label (docs/regression.md).

Owns the way from an end of an interval, a double, to the claim of two classes that it stands for: the score that an
answer is rounded from, or for expected scores the level with what the program's own arithmetic may be off by. Must not
know how anything is proven of one sum, nor tables or files.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from derand.auditing._by_worst import clears_by_mean
from derand.auditing._claim import Claim
from derand.auditing._proofs import RowProof
from derand.auditing._threat import AllowedChanges
from derand.model import AdditiveEnsemble

_ROUNDINGS = 4 * 2.0**-52
"""Of the few operations between an expected sum and an answer, relative to the largest number on the way."""

_MOST = 2**56
"""Scores and offsets together are smaller."""


class NumberProof:
    """What can be proven about the number that is predicted of one row; `claim` is about the sum that it is."""

    def __init__(self, model: AdditiveEnsemble, claim: Claim) -> None:
        assert model.offset is not None
        self._model, self._claim = model, claim
        self._offset, self._levels = model.offset, model.levels

    @cached_property
    def _is_whole(self) -> bool:
        """Whether answers are those of whole scores: medians, and scores without noise."""
        return self._claim.rule == "vote" or self._claim.noise is None or not self._claim.list_ranges()

    @cached_property
    def _slack(self) -> Fraction:
        """More than all roundings between the expected sum and an answer, in grid units."""
        moving = [term.cell_scores for term in self._model.terms if term.axes]
        least, spans = (sum(int(part) for part in parts) for parts in zip(*map(_measure, moving), strict=True))
        fixed = sum(abs(term.missing_score or 0) for term in self._model.terms if term.axes)
        fixed += sum(max(map(abs, term.score_range())) for term in self._model.terms if not term.axes)
        size = abs(least) + spans + fixed + abs(self._offset) + math.ceil(self._model.score_error)
        return Fraction(_ROUNDINGS) * size

    def is_value(self, value: float) -> bool:
        """Whether the row's own answer is this, or too near a tie for the program to tell."""
        if self._is_whole:
            first, last = self._find_first(value), self._find_last(value)
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
            exact = self._place(end) - self._offset
            return self._holds(label, math.ceil(exact) - 1 if label else math.floor(exact), radius)
        return self._holds(label, self._find_first(end) - 1 if label else self._find_last(end), radius)

    def stays_within(self, value: float, tolerance: float, radius: float) -> bool:
        """Whether the answer is proven to differ from a value by the tolerance at most within the radius.

        Whole scores are compared before they are rounded.
        """
        if not self._is_whole:
            ends = ((1, Fraction(value) - Fraction(tolerance)), (0, Fraction(value) + Fraction(tolerance)))
            return all(self._clears(label, end, radius) for label, end in ends)
        room = math.floor(Fraction(tolerance) * self._levels)
        first, last = self._find_first(value), self._find_last(value)
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

    def _find_first(self, end: float) -> int:
        """The least score whose answer, as the program rounds it, is an end or more."""
        score = math.ceil(self._place(end)) - self._offset
        while abs(score) < _MOST and self._round(score) < end:
            score += 1
        while abs(score) < _MOST and self._round(score - 1) >= end:
            score -= 1
        return score

    def _find_last(self, end: float) -> int:
        """The largest score whose answer is an end or less."""
        score = math.floor(self._place(end)) - self._offset
        while abs(score) < _MOST and self._round(score) > end:
            score -= 1
        while abs(score) < _MOST and self._round(score + 1) <= end:
            score += 1
        return score

    def _place(self, end: float) -> Fraction:
        """An end in grid units, offset included; no nearer to 0 than all answers where it is far beyond them."""
        return max(min(Fraction(end) * self._levels, Fraction(2 * _MOST)), Fraction(-2 * _MOST))

    def _round(self, score: int) -> float:
        return float(score + self._offset) / float(self._levels)


def _measure(scores: Any) -> tuple[int, int]:
    """The least of some scores, and their span."""
    return int(scores.min()), int(scores.max() - scores.min())
