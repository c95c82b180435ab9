"""What every model says of itself, whatever it is made of.

Owns the facts that other rooms ask for, and the contrast, the one-output sum that rules and kernels see. Must not know
noise or kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from derand._core.arrays import FloatArray, Frozen
from derand.model._terms import Term

if TYPE_CHECKING:
    from derand.model._additive import AdditiveEnsemble


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """One sum whose side decides: its class is 1 iff the scores of its terms add up to more than the threshold.

    Attributes
    ----------
    terms : tuple of Term
        Of one output each; no feature is in two of them.
    threshold : int
    score_error : float
        By how much, at most, the score of the model that is meant may differ; a certificate covers it.
    n_features : int
        Columns of the rows.
    """

    terms: tuple[Term, ...]
    threshold: int
    score_error: float
    n_features: int


Fact = TypeVar("Fact")


class Once(Generic[Fact]):
    """A property that is found once and kept beside the model, which never changes: asking all terms takes a while."""

    def __init__(self, find: Callable[[Any], Fact]) -> None:
        self._find, self._known = find, WeakKeyDictionary[Any, Fact]()
        self.__doc__ = find.__doc__

    def __get__(self, model: Any, owner: type) -> Fact:
        if model is None:
            return self  # type: ignore[return-value] # asked of the class, as documentation does
        if model not in self._known:
            self._known[model] = self._find(model)
        return self._known[model]


class Model(Frozen, ABC):
    """A model that can be certified: an additive ensemble, or a vote of several. Told apart by identity."""

    __slots__ = ()

    kind: ClassVar[str]
    """Its name in files."""

    if TYPE_CHECKING:  # fields of dataclasses must not find a property of their name in a base class

        @property
        def members(self) -> tuple[AdditiveEnsemble, ...]:
            """The sums that it consists of: an ensemble itself, but of two outputs their difference."""

        @property
        def weights(self) -> FloatArray | None:
            """Weight of each member's vote, (n_members,); None for an ensemble, which does not vote."""

        @property
        def n_features(self) -> int:
            """Columns of the rows that it reads."""

        @property
        def n_classes(self) -> int:
            """How many classes it tells apart; 0 where it does not."""

    @Once
    def member_terms(self) -> tuple[Term, ...]:
        """Terms of all members, one after the other."""
        return tuple(term for member in self.members for term in member.terms)

    @Once
    def categorical_features(self) -> tuple[int, ...]:
        """Columns that hold category codes, increasing."""
        return tuple(sorted({at for term in self.member_terms if not term.axes for at in term.features}))

    @Once
    def numerical_features(self) -> tuple[int, ...]:
        """Columns on which a number is compared with an edge, or multiplied by a slope, increasing."""
        compared = {axis.feature for term in self.member_terms for axis in term.axes if axis.edges.size}
        return tuple(sorted(compared | {at for term in self.member_terms if term.slope for at in term.features}))

    @Once
    def refuses_missing(self) -> tuple[int, ...]:
        """Columns that must not hold NaN, increasing: some term that reads them has no cell for it."""
        refused = (set(term.features) - set(term.missing_features) for term in self.member_terms)
        return tuple(sorted(set().union(*refused)))

    @Once
    def number_columns(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Columns that must not hold infinity, as all but those of codes, and those of them that may hold NaN."""
        numbers = sorted(set(range(self.n_features)) - set(self.categorical_features))
        return tuple(numbers), tuple(sorted(set(numbers) - set(self.refuses_missing)))

    @Once
    def missing_features(self) -> tuple[int, ...]:
        """Numerical columns in which a missing value has a cell, increasing."""
        taken = {at for term in self.member_terms if term.axes for at in term.missing_features}
        return tuple(sorted(taken - set(self.refuses_missing)))

    @Once
    def n_cells(self) -> int:
        """Cells of all terms that noise acts on: the work of a row."""
        return sum(term.n_cells for term in self.member_terms if term.axes)

    @Once
    def score_ranges(self) -> tuple[int, ...]:
        """How far apart the scores of each term lie that noise acts on; of several outputs the farthest."""
        moved = (term for term in self.member_terms if term.axes and term.slope is None)
        return tuple(int(np.ptp(term.scores, axis=0).max()) for term in moved)

    @Once
    def is_linear(self) -> bool:
        """Whether all of its numbers are multiplied by slopes: its score is no whole number, and has no range."""
        return any(term.slope is not None for term in self.member_terms)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Its parts that are plain numbers, as a file holds them; terms, decisions and members describe themselves."""


def is_model(value: Any) -> TypeGuard[Model]:
    """Whether this is a bare model, and not a classifier or something else."""
    return isinstance(value, Model)


def as_model(model: Any) -> Model:
    """The same, or a TypeError that names the parameter."""
    if not isinstance(model, Model):
        raise TypeError(f"`model` must be an AdditiveEnsemble or a WeightedVote, got {type(model).__name__}.")
    return model
