"""One search for the penalty: by loss on rows left out, from strong penalties to weak ones.

Owns which penalties are tried, in which order, and what was seen. Must not know how weights are fitted: whoever
searches gives `attempt`, which fits one penalty and measures it on rows left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell

_BETWEEN = 10**0.5
_MOST_BEYOND = 3
"""Penalties beyond an end of a ladder."""
_LEAST_GAIN = 1e-3
"""Share of the loss that a penalty beyond the ladder must gain for the search to go on."""


@dataclass(frozen=True, slots=True, eq=False)
class SelectionPath:
    """What cross-validation saw: one entry per penalty that was tried.

    Attributes
    ----------
    regularization : array of shape (n_tried,)
    ramp : array of shape (n_tried,)
        Whether the model had a linear part.
    loss, error : arrays of shape (n_tried,)
        Mean over folds of the loss on rows left out, and its standard error; NaN where there was one fold. Of classes
        it is the log-loss of certified margins, of numbers the root of the mean square.
    """

    regularization: FloatArray
    ramp: IntArray
    loss: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, tried: list[Trial]) -> SelectionPath:
        """The path of all trials, in their order; without any where nothing was searched."""
        counts = [one.losses.size for one in tried]
        errors = [one.losses.std() / np.sqrt(n) if n > 1 else np.nan for one, n in zip(tried, counts, strict=True)]
        return cls(
            np.array([one.regularization for one in tried]),
            np.array([one.ramp for one in tried], dtype=np.int64),
            np.array([one.mean for one in tried]),
            np.array(errors),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One penalty: its losses on rows left out, (n_folds,), and what was fitted, from which the next one may start."""

    regularization: float
    ramp: bool
    losses: FloatArray
    fitted: Any = None
    scores: FloatArray | None = None

    @property
    def mean(self) -> float:
        return float(self.losses.mean())


@dataclass(frozen=True, slots=True)
class Ladder:
    """The penalties of a search.

    Attributes
    ----------
    penalties : tuple of float
        Tried one after the other.
    stops : bool
        Whether the search ends at the first penalty that is worse than the one before.
    above : float or None
        Tried where the second penalty is worse than the first.
    extends : bool
        Whether the search goes on beyond the first or the last penalty while that is best.
    refines : bool
        Whether penalties on both sides of the best one are tried.
    ramps : bool
        Whether the best one is tried without a ramp.
    """

    penalties: tuple[float, ...]
    stops: bool = True
    above: float | None = None
    extends: bool = False
    refines: bool = False
    ramps: bool = False


Attempt = Callable[[float, bool, Trial | None], Trial]
"""Fits a penalty, with or without a ramp, from what an earlier trial fitted, and measures it on rows left out."""


def search_penalty(attempt: Attempt, ladder: Ladder) -> tuple[Trial, SelectionPath]:
    """The trial of least mean loss, the first one on a tie, and all that was seen."""
    tried: list[Trial] = []
    most = f"{len(ladder.penalties)}{' at most' if ladder.stops else ''}"
    for number, regularization in enumerate(ladder.penalties, start=1):
        tell(f"training: penalty {number} of {most}")
        tried.append(attempt(regularization, True, tried[-1] if tried else None))
        if ladder.stops and number > 1 and tried[-1].mean > tried[-2].mean:
            if number == 2 and ladder.above is not None:
                tried.append(attempt(ladder.above, True, tried[-1]))
            break
    tried += _extend(attempt, tried, ladder) if ladder.extends else []
    best = _select_best(tried)
    if ladder.refines:
        tell("training: penalties beside the best")
        tried += [attempt(best.regularization * factor, True, best) for factor in (_BETWEEN, 1 / _BETWEEN)]
        best = _select_best(tried)
    if ladder.ramps:
        tried.append(attempt(best.regularization, False, None))
        best = _select_best(tried)
    return best, SelectionPath.of(tried)


def _extend(attempt: Attempt, tried: list[Trial], ladder: Ladder) -> list[Trial]:
    """Penalties beyond an end of the ladder, while the best one is the outermost."""
    more: list[Trial] = []
    best = _select_best(tried)
    factor = 10.0 if best is tried[0] else 0.1 if best.regularization == ladder.penalties[-1] else 0.0
    while factor and len(more) < _MOST_BEYOND:
        more.append(attempt(best.regularization * factor, True, best))
        if more[-1].mean > (1 - _LEAST_GAIN) * best.mean:
            break
        best = more[-1]
    return more


def _select_best(tried: list[Trial]) -> Trial:
    return min(tried, key=lambda one: one.mean)
