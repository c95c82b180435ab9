"""What a rule is: how a label is found under noise, and what is proven about it. Must not know any one rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._arrays import FloatArray, IntArray
from derand.certificates._problem import Problem
from derand.kernels import Backend
from derand.noise import Noise
from derand.threat import Threat


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What a rule proves about each row under one threat; arrays of shape (n_rows,).

    Attributes
    ----------
    label : 0 or 1
    log_failure : upper bound of the logarithm of the failure mass; NaN where the rule has none
    radius : lower bound of the radius; 0 where nothing is proven
    path : place in `derand.kernels.PATHS`, or None
    """

    label: IntArray
    log_failure: FloatArray
    radius: FloatArray
    path: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """With what a rule computes: a backend of kernels, and how many threads may call it."""

    kernels: Backend
    n_threads: int


class Rule(ABC):
    """How a label is found under noise, and what is proven about it."""

    @abstractmethod
    def bound(
        self, problem: Problem, rows: NDArray[Any], noise: Noise, threats: Sequence[Threat], engine: Engine
    ) -> list[Bounds]:
        """Label and radius of each row, for each threat.

        Parameters
        ----------
        problem : Problem
            A contrast of the model as arrays.
        rows : array of shape (n_rows, n_features)
            Checked: numbers, finite in numerical columns. Any numeric type; convert block by block.
        noise : Noise
        threats : sequence of Threat
            Alike but for `l0`: several budgets may share their work. Their norm is resolved.
        engine : Engine

        Returns
        -------
        list of Bounds, one per threat
            The label is the same in all of them: that of the unchanged row.
        """
