"""What can be proven about a row's label: by one sum, by one sum for each pair of classes, or by a vote of sums.

Two classes are compared in one sum, each pair of several classes in a sum of its own. The label is the class that wins
all of its comparisons, and where there is none the one whose worst comparison is best (docs/theory.md, section 12).
Owns the way from a label to the sums that decide on it. Must not know how anything is proven of one sum, nor tables or
files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from derand._core.arrays import FloatArray
from derand.auditing._claim import Claim
from derand.auditing._proofs import RowProof, share_codes
from derand.auditing._regression import NumberProof
from derand.auditing._threat import AllowedChanges
from derand.model import AdditiveEnsemble, Model
from derand.noise import Noise


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
        self._shared: dict[AdditiveEnsemble, list[dict[Any, Any]]] = {
            member: [{} for _ in contrasts] for member, contrasts in self._contrasts.items()
        }

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
        pairs = zip(self._contrasts[member], self._shared[member], strict=True)
        return [Claim(contrast, row, *self._asked, shared) for contrast, shared in pairs]


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
