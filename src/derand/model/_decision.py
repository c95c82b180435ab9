"""Decisions: what a model's score is compared with to give an answer.

Owns the levels that scores are compared with. Must not know terms or noise. A new decision is one more class here and
its row in DECISIONS; `AdditiveEnsemble.contrasts` asks it for the sums whose side decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from derand.model._terms import MAX_SCORE

_NAME = "`level` of Threshold, the `threshold` of AdditiveEnsemble,"


class Decision(ABC):
    """How scores become an answer. Subclasses are frozen dataclasses; `describe` gives their fields back."""

    __slots__ = ()

    kind: ClassVar[str]
    """Its name in files and in DECISIONS."""

    @abstractmethod
    def cuts(self) -> tuple[int, ...]:
        """The threshold of each contrast, in grid units: class 1 of the contrast iff its sum is above."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
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

    def cuts(self) -> tuple[int, ...]:
        """One contrast, the score itself."""
        return (self.level,)

    def describe(self) -> dict[str, Any]:
        """The level."""
        return {"level": self.level}


DECISIONS: dict[str, type[Decision]] = {Threshold.kind: Threshold}
