"""What every optimiser can be asked: weights that lose least, and how much less there might be to lose."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from derand._core.arrays import FloatArray


class Effort(NamedTuple):
    """How good a fit is to be.

    Attributes
    ----------
    tolerance : float
        Of the duality gap, as a share of the loss.
    most_steps : int
    """

    tolerance: float
    most_steps: int


class Fit(NamedTuple):
    """How good a fit is.

    Attributes
    ----------
    loss : float
        With the penalty.
    gap : float
        No weights lose less than `loss - gap`; NaN where that is not known.
    has_ended : bool
        Whether it ended by itself, rather than by the number of its steps.
    """

    loss: float = np.nan
    gap: float = np.nan
    has_ended: bool = True


UNKNOWN = Fit()


class Optimiser(Protocol):
    """A penalised loss of some rows, and the way to its minimum."""

    constant: FloatArray
    """Weights of the best constant prediction."""
    n_steps: int
    """Steps that were taken so far."""
    result: Fit
    """How good the last fit is."""

    def measure(self, weights: FloatArray) -> float:
        """Penalised loss, by the multipliers that prove most."""

    def fit(self, start: FloatArray | None, effort: Effort) -> FloatArray:
        """Weights, from a start on; from the constant prediction without."""
