"""What every loss can be asked: the one protocol between formulations, optimisers and the trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from derand._core.arrays import FloatArray, IntArray


class Measure(Protocol):
    """What rows lose by weights."""

    def measure(self, weights: FloatArray) -> float:
        """Mean loss, by the multipliers that prove most."""

    def compute_margins(self, weights: FloatArray) -> FloatArray:
        """Margin of each row, by the multipliers that prove most; of several classes the least one."""


class Loss(ABC):
    """The mean loss of some rows and its slopes, by the weights of a design."""

    design: Any

    @abstractmethod
    def measure(self, weights: FloatArray) -> float:
        """Mean loss, by the multipliers that prove most."""

    @abstractmethod
    def evaluate(self, weights: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Mean loss and its slopes, for the multipliers that were chosen last, minima softened by a temperature."""

    @abstractmethod
    def compute_margins(self, weights: FloatArray) -> FloatArray:
        """Margin of each row, by the multipliers that prove most; of several classes the least one."""

    def set_multiplier(self, budget_cost: float) -> None:  # noqa: B027
        """One multiplier for all rows, that at which the whole budget costs about so much; there may be none."""

    def choose_multipliers(self, weights: FloatArray) -> None:  # noqa: B027
        """The multipliers that prove most for each row, which hold until this is called again; there may be none."""

    def take(self, chosen: IntArray | None, share_of_radius: float = 1.0) -> None:
        """Let some of the rows count, or all of them, and a part of the radius."""
        raise NotImplementedError("This loss is not fitted in batches.")
