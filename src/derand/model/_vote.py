"""Weighted votes of ensembles. Must not know noise or training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derand._core.arrays import FloatArray, freeze
from derand.model._additive import AdditiveEnsemble, Model
from derand.model._terms import Description


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class WeightedVote(Model):
    """A weighted majority of ensembles: class 1 iff the members that say so carry more than half of the weight.

    A member of negative weight votes, with the absolute weight, for the reverse of its label.

    Parameters
    ----------
    members : sequence of AdditiveEnsemble
    weights : array-like of shape (n_members,)

    Examples
    --------
    >>> from derand import AdditiveEnsemble, WeightedVote
    >>> members = [AdditiveEnsemble.from_stumps([0], [t], [0.1], [0.9], n_features=1) for t in (0.0, 1.0, 2.0)]
    >>> len(WeightedVote(members, [1.0, 1.0, 0.5]).members)
    3
    """

    members: tuple[AdditiveEnsemble, ...]
    weights: FloatArray

    kind: ClassVar[str] = "weighted_vote"

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        self._check_members()
        self._check_weights()

    def _check_members(self) -> None:
        if not self.members:
            raise ValueError("`members` of WeightedVote must hold at least one ensemble, got none.")
        for member in self.members:
            if not isinstance(member, AdditiveEnsemble) or member.threshold is None:
                raise TypeError(f"`members` of WeightedVote must be ensembles with a threshold, got {member!r}.")
            if member.is_linear:
                raise ValueError("`members` of WeightedVote must not be linear models, which are certified one by one.")
            if member.n_features != self.n_features:
                raise ValueError(
                    "`members` of WeightedVote must read the same columns, got `n_features` "
                    f"{self.n_features} and {member.n_features}."
                )
        numbers = {axis.feature for term in self.member_terms for axis in term.axes}
        both = numbers & set(self.categorical_features)
        if both:
            raise ValueError(
                "`members` of WeightedVote must agree on which features are categorical, got feature "
                f"{min(both)} as a category in one member and as a number in another."
            )

    def _check_weights(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.shape != (len(self.members),) or not np.isfinite(weights).all():
            raise ValueError(
                f"`weights` of WeightedVote must hold {len(self.members)} finite numbers, one per member, "
                f"got {self.weights!r}."
            )
        if (np.abs(weights) > 1e300).any():  # their sum must stay finite
            raise ValueError(f"`weights` of WeightedVote must lie within +-1e300, got {self.weights!r}.")
        object.__setattr__(self, "weights", freeze(weights))

    @property
    def n_features(self) -> int:
        """Columns of the rows that it reads."""
        return self.members[0].n_features

    @property
    def n_classes(self) -> int:
        """Two classes."""
        return 2

    def describe(self) -> Description:
        """The weights."""
        return {"weights": self.weights.tolist()}
