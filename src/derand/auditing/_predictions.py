"""What can be proven about a row's label, whatever the model is: one sum, a vote of several, or several classes.

Of several classes any two meet in a sum of their own, their duel; the label is the class that wins all of its duels,
and where there is none the one whose worst duel is best (docs/theory.md, section 12). Owns the way from a label to the
sums that decide on it. Must not know how anything is proven of one sum, nor tables or files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from derand._core.arrays import FloatArray
from derand.auditing._claim import Claim
from derand.auditing._proofs import RowProof, prove_vote, share_codes, weigh_labels
from derand.auditing._threat import AllowedChanges
from derand.model import AdditiveEnsemble, Contrast, Model
from derand.noise import Noise


class Answer(ABC):
    """The label of one row, and what can be proven about it. Classes are numbers from 0."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    @abstractmethod
    def holds(self, label: int, radius: float, proof: str, runner_up: int | None) -> bool:
        """Whether the label is proven to hold within the radius.

        `proof` is what the certificate names, "" for any: for a vote of noisy copies that of the runner-up, against
        whom it must be the one that proves it; of other rivals, and where no runner-up is named, any will do.
        """

    @abstractmethod
    def is_label(self, label: int) -> bool:
        """Whether the row's own label is this, or too near a tie for the program to tell."""

    @abstractmethod
    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        """Whether the failing mass is proven to be at most this, and at most what has this logarithm."""

    @abstractmethod
    def stays_beyond(self, label: int, score: float) -> bool:
        """Whether the expected score is proven not to pass this one on its way to the other label, within limits."""

    def is_other(self, label: int) -> bool:
        """Whether the row's own label is another one, or too near a tie for the program to tell."""
        return any(self.is_label(other) for other in range(self.n_classes) if other != label)


class Sums:
    """The sums that decide on the labels of a model, and what proofs of one row leave for those of the next.

    Parameters
    ----------
    model : Model
    noise : Noise or None
    rule : str
    threat : AllowedChanges
    """

    def __init__(self, model: Model, noise: Noise | None, rule: str, threat: AllowedChanges) -> None:
        self._model, self._asked = model, (noise, rule, share_codes(threat, model))
        self._contrasts = {member: member.contrasts() for member in model.members}
        self._shared: dict[AdditiveEnsemble, list[dict[Any, Any]]] = {
            member: [{} for _ in contrasts] for member, contrasts in self._contrasts.items()
        }

    def read(self, row: FloatArray) -> Answer:
        """What can be proven about one row."""
        if self._model.n_classes > 2:
            (member,) = self._model.members
            pairs = zip(member.pairs, self._prove(member, row), strict=True)
            return _ClassAnswer(self._model.n_classes, dict(pairs), self._asked[1])
        return _VoteAnswer(self._model, {member: next(self._prove(member, row)) for member in self._model.members})

    def _prove(self, member: AdditiveEnsemble, row: FloatArray) -> Iterator[RowProof]:
        contrasts: tuple[Contrast, ...] = self._contrasts[member]
        for contrast, shared in zip(contrasts, self._shared[member], strict=True):
            yield RowProof(Claim(contrast, row, *self._asked, shared))


class _VoteAnswer(Answer):
    """Two classes: by one sum, or by a vote of several."""

    def __init__(self, model: Model, proofs: dict[AdditiveEnsemble, RowProof]) -> None:
        super().__init__(2)
        self._model, self._proofs = model, proofs

    def holds(self, label: int, radius: float, proof: str, runner_up: int | None) -> bool:
        named = None if self._model.weights is not None else proof

        def prove(member: AdditiveEnsemble, own: int) -> bool:
            return self._proofs[member].holds(own, radius, named)

        return prove_vote(self._model, prove, label)

    def is_label(self, label: int) -> bool:
        return weigh_labels(self._model, lambda member, own: self._proofs[member].is_label(own), label)

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        if self._model.weights is not None:
            return False  # there is none to be proven
        (proof,) = self._proofs.values()
        return proof.proves_failure(label, failure, log_failure)

    def stays_beyond(self, label: int, score: float) -> bool:
        if self._model.weights is not None:
            return False  # there is no one score
        (proof,) = self._proofs.values()
        return proof.stays_beyond(label, score)


class _ClassAnswer(Answer):
    """Several classes: by the duels of the label with all of its rivals."""

    def __init__(self, n_classes: int, duels: dict[tuple[int, int], RowProof], rule: str) -> None:
        super().__init__(n_classes)
        self._duels, self._rule = duels, rule

    def _list_rivals(self, label: int) -> list[int]:
        return [rival for rival in range(self.n_classes) if rival != label]

    def _find_duel(self, label: int, rival: int) -> tuple[RowProof, int]:
        """The duel of two classes, and the side of the first one: 1 for the higher class."""
        return self._duels[min(label, rival), max(label, rival)], int(label > rival)

    def holds(self, label: int, radius: float, proof: str, runner_up: int | None) -> bool:
        # the runner-up first: where a claim is false it mostly is so against him
        for rival in sorted(self._list_rivals(label), key=lambda one: one != runner_up):
            duel, side = self._find_duel(label, rival)
            if not duel.holds(side, radius, proof if rival == runner_up else None):
                return False
        return True

    def is_label(self, label: int) -> bool:
        if all(self._beats(label, rival) for rival in self._list_rivals(label)):
            return True
        if self._rule == "mean":  # means are ordered: somebody is the largest
            return False
        return not self._has_winner() and self._is_beaten_least(label)

    def _beats(self, label: int, rival: int) -> bool:
        """Whether a class wins a duel, or is too near a tie for the program to tell."""
        duel, side = self._find_duel(label, rival)
        return duel.is_label(side)

    def _has_winner(self) -> bool:
        """Whether some class wins all of its duels for sure."""
        classes = range(self.n_classes)
        return any(not any(self._beats(rival, one) for rival in self._list_rivals(one)) for one in classes)

    def _is_beaten_least(self, label: int) -> bool:
        """Whether no other class has a better worst duel, as far as the program can tell."""
        worst = [self._find_worst_share(one) for one in range(self.n_classes)]
        band = max(duel.band for duel in self._duels.values())
        return worst[label] >= max(worst) - 4 * band

    def _find_worst_share(self, label: int) -> float:
        shares = []
        for rival in self._list_rivals(label):
            duel, side = self._find_duel(label, rival)
            shares.append(duel.find_share() if side else 1 - duel.find_share())
        return min(shares)

    def proves_failure(self, label: int, failure: float, log_failure: float) -> bool:
        found = (self._find_duel(label, rival) for rival in self._list_rivals(label))
        return all(duel.proves_failure(side, failure, log_failure) for duel, side in found)

    def stays_beyond(self, label: int, score: float) -> bool:
        return False  # there is no one score
