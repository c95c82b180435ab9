"""Decisions: how a model's scores become an answer.

Owns the levels that scores are compared with, and which scores are compared with one another. Must not know terms or
noise. A new decision is one more class here and its row in DECISIONS; `AdditiveEnsemble` asks it for the sums whose
sign decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derand.model._terms import MAX_SCORE

_NAME = "`level` of Threshold, the `threshold` of AdditiveEnsemble,"


class Decision(ABC):
    """How scores become an answer. Subclasses are frozen dataclasses; `describe` gives their fields back."""

    __slots__ = ()

    kind: ClassVar[str]
    """Its name in files and in DECISIONS."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """How many sums it decides on."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """How many answers there are; 0 where the answer is a number."""

    @abstractmethod
    def cut(self, low: int, high: int) -> int:
        """The threshold between two classes, in grid units: the higher one wins iff its sum is above.

        The sum is the higher class's output less the lower one's; with one output, that output.
        """

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """The constructor's arguments as plain numbers."""


@dataclass(frozen=True, slots=True)
class Threshold(Decision):
    """Two classes: class 1 iff the score is above a level.

    Parameters
    ----------
    level : int
        In grid units.

    Examples
    --------
    >>> Threshold(100)
    Threshold(level=100)
    """

    level: int

    kind: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        if isinstance(self.level, bool) or not isinstance(self.level, int | np.integer):
            raise ValueError(f"{_NAME} must be a whole number in grid units, got {self.level!r}.")
        if abs(int(self.level)) > MAX_SCORE:
            raise ValueError(f"{_NAME} must lie within +-2**53, got {self.level!r}.")
        object.__setattr__(self, "level", int(self.level))

    @property
    def n_outputs(self) -> int:
        """One score."""
        return 1

    @property
    def n_classes(self) -> int:
        """Two classes."""
        return 2

    def cut(self, low: int, high: int) -> int:
        """The level."""
        return self.level

    def describe(self) -> dict[str, object]:
        """The level."""
        return {"level": self.level}


@dataclass(frozen=True, slots=True)
class Argmax(Decision):
    """Several classes: the one of the largest score, of equal scores the lower class.

    Parameters
    ----------
    offsets : sequence of int
        What is added to the score of each class, in grid units; one per class, two or more.

    Examples
    --------
    >>> Argmax([0, 5, -2]).n_classes
    3
    """

    offsets: tuple[int, ...]

    kind: ClassVar[str] = "argmax"

    def __post_init__(self) -> None:
        given = np.asarray(self.offsets).ravel().tolist() if np.ndim(self.offsets) == 1 else []
        if len(given) < 2 or not all(isinstance(one, int) and not isinstance(one, bool) for one in given):
            raise ValueError(
                f"`offsets` of Argmax must hold a whole number for each of two classes or more, got {self.offsets!r}."
            )
        if max(map(abs, given)) > MAX_SCORE // 2:  # differences must fit as well
            raise ValueError("`offsets` of Argmax must lie within +-2**52, got a larger one.")
        object.__setattr__(self, "offsets", tuple(given))

    @property
    def n_outputs(self) -> int:
        """A score per class."""
        return len(self.offsets)

    @property
    def n_classes(self) -> int:
        """As many as scores."""
        return len(self.offsets)

    def cut(self, low: int, high: int) -> int:
        """What the higher class must be ahead by before offsets count."""
        return self.offsets[low] - self.offsets[high]

    def describe(self) -> dict[str, object]:
        """The offsets."""
        return {"offsets": list(self.offsets)}


@dataclass(frozen=True, slots=True)
class Value(Decision):
    """A number as the answer: the score and an offset, divided by the model's levels.

    Parameters
    ----------
    offset : int
        In grid units.

    Examples
    --------
    >>> Value(250)
    Value(offset=250)
    """

    offset: int

    kind: ClassVar[str] = "value"

    def __post_init__(self) -> None:
        if isinstance(self.offset, bool) or not isinstance(self.offset, int | np.integer):
            raise ValueError(f"`offset` of Value must be a whole number in grid units, got {self.offset!r}.")
        if abs(int(self.offset)) > MAX_SCORE:
            raise ValueError(f"`offset` of Value must lie within +-2**53, got {self.offset!r}.")
        object.__setattr__(self, "offset", int(self.offset))

    @property
    def n_outputs(self) -> int:
        """One score."""
        return 1

    @property
    def n_classes(self) -> int:
        """None: the answer is a number."""
        return 0

    def cut(self, low: int, high: int) -> int:
        """No two classes stand against each other."""
        raise ValueError("A number as the answer has no classes that could be compared.")

    def describe(self) -> dict[str, object]:
        """The offset."""
        return {"offset": self.offset}


DECISIONS: dict[str, type[Decision]] = {kind.kind: kind for kind in (Threshold, Argmax, Value)}
