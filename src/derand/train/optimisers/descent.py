"""Descent by L-BFGS-B, in stages of ever sharper minima, on variables that make the loss round.

Owns the penalised objective, its change of variables, and the stages. Must not know how losses are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import minimize

from derand._core.arrays import FloatArray
from derand.train.design.columns import Design
from derand.train.losses.base import Loss
from derand.train.losses.margin_loops import solve_blocks
from derand.train.optimisers.base import UNKNOWN, Effort, Fit

_SHARP_COLUMNS = 16
_FIRST_BUDGET_COSTS = (0.1, 0.5, 1.5)  # of the whole budget, in logarithms of odds


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One round of descent: the temperature of soft minima, and how many steps are taken at most."""

    temperature: float
    steps: int
    tolerance: float


_QUICK = (Stage(0.1, 20, 1e-5), Stage(0.03, 30, 1e-5), Stage(0.01, 30, 1e-5))
_LARGE = (Stage(0.01, 40, 1e-6), Stage(0.003, 60, 1e-7), Stage(0.003, 60, 1e-7))
_THOROUGH = (Stage(0.1, 40, 1e-6), Stage(0.03, 40, 1e-6), *_LARGE, Stage(0.001, 60, 1e-7))
_QUICK_PLAIN, _PLAIN, _LARGE_PLAIN = Stage(0.0, 100, 1e-5), Stage(0.0, 400, 1e-8), Stage(0.0, 60, 1e-6)
_ROUGH = 5e-3
"""Tolerance of a gap from which on a fit is a quick one."""


def _choose_stages(effort: Effort, is_plain: bool, is_begun: bool) -> Sequence[Stage]:
    """The stages of a fit, which may be begun from weights that are nearly right."""
    is_quick = effort.tolerance >= _ROUGH
    if is_plain:
        stages: Sequence[Stage] = (_QUICK_PLAIN if is_quick else _LARGE_PLAIN if is_begun else _PLAIN,)
    elif is_quick:
        stages = _QUICK[1:] if is_begun else _QUICK
    else:
        stages = _LARGE if is_begun else _THOROUGH
    return [replace(one, steps=min(one.steps, effort.most_steps)) for one in stages]


@dataclass(slots=True, eq=False)
class Objective:
    """A loss and a penalty of half the squares of the weights.

    Attributes
    ----------
    loss : Loss
    penalties : array of shape (n_weights,)
    change : Precondition or None
        Of variables, for the same design and penalties; None for the weights themselves.
    constant : array of shape (n_weights,)
        Weights of the best constant prediction.
    n_steps : int
        Steps that were taken so far.
    """

    loss: Loss
    penalties: FloatArray
    change: Precondition | None
    constant: FloatArray
    n_steps: int = 0
    result: Fit = UNKNOWN

    def fit(self, start: FloatArray | None, effort: Effort) -> FloatArray:
        """Weights of about least penalised loss, those of the constant prediction where these lose less."""
        stages = _choose_stages(effort, self.loss.design.is_plain, start is not None)
        weights = self.descend_anew(self.constant, stages) if start is None else self.descend(start, stages)
        if self.loss.design.is_plain:
            return weights
        # where no function pays at this radius, the way to none of them is long: the end of it is known
        return self.constant if self.measure(weights) > self.measure(self.constant) else weights

    def measure(self, weights: FloatArray) -> float:
        """Penalised loss, by the multipliers that prove most."""
        return self.loss.measure(weights) + 0.5 * float(self.penalties @ weights**2)

    def descend(self, start: FloatArray, stages: Sequence[Stage]) -> FloatArray:
        """From a start on, stage by stage; multipliers are chosen anew for each."""
        weights = start
        for stage in stages:
            self.loss.choose_multipliers(weights)
            weights = self._descend(weights, stage)
        return weights

    def descend_anew(self, start: FloatArray, stages: Sequence[Stage]) -> FloatArray:
        """The same from weights that say nothing about multipliers: the first stage tries a few, the same for all rows.

        Rows keep near the multiplier that they were fitted with, because the functions adapt to it.
        """
        if self.loss.design.multipliers.size == 1:
            return self.descend(start, stages)
        best, least = start, np.inf
        for budget_cost in _FIRST_BUDGET_COSTS:
            self.loss.set_multiplier(budget_cost)
            weights = self._descend(start, stages[0])
            value = self.measure(weights)
            if value < least:
                best, least = weights, value
        return self.descend(best, stages[1:])

    def _descend(self, weights: FloatArray, stage: Stage) -> FloatArray:
        design, change = self.loss.design, self.change
        assert change is not None
        # a soft minimum is off by as much in every column: with many of them it must be harder
        temperature = stage.temperature * min(1.0, _SHARP_COLUMNS / max(len(design.numbers), 1))

        def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
            at = change.to_weights(point)
            value, slopes = self.loss.evaluate(at, temperature)
            value += 0.5 * float(self.penalties @ at**2)
            return value, change.to_slopes(slopes + self.penalties * at)

        found = minimize(
            evaluate,
            change.to_point(weights),
            jac=True,
            method="L-BFGS-B",
            bounds=design.list_bounds() if any(one.sign for one in design.numbers) else None,
            options={"maxiter": stage.steps, "ftol": stage.tolerance, "gtol": stage.tolerance, "maxcor": 20},
        )
        self.n_steps += int(found.nit)
        return change.to_weights(found.x)


class Precondition:
    """A change of variables that makes the loss round: the weights of a column are solved for together.

    Parameters
    ----------
    design : Design
    penalties : array of shape (n_weights,)
        Of one output.
    shares : list of arrays
        Share of all weight that each code of each categorical column has.
    rate : float
        Share of class 1.
    n_outputs : int
        Each has the same variables, those of output 0 first.
    """

    def __init__(
        self, design: Design, penalties: FloatArray, shares: list[FloatArray], rate: float, n_outputs: int = 1
    ) -> None:
        self._n_outputs = n_outputs
        curvature = rate * (1 - rate)
        blocks: list[tuple[int, FloatArray]] = []
        self._scales = np.ones(penalties.size)
        self._scales[0] = 1 / np.sqrt(curvature)
        for column, start, stop in zip(design.numbers, design.starts[:-1], design.starts[1:], strict=False):
            n_weights = column.basis.shape[2]
            part = slice(int(start), int(start) + n_weights)
            own = column.basis[:, column.own, :].astype(np.float64)
            square = curvature * (own.T * column.bins.shares) @ own + np.diag(penalties[part])
            square += 1e-12 * np.trace(square) * np.eye(n_weights)
            if column.bins.missing > 0:
                self._scales[stop - 1] = 1 / np.sqrt(curvature * column.bins.missing + penalties[stop - 1])
            if column.sign or not n_weights:  # bounds hold for each weight: they must not be mixed
                self._scales[part] = 1 / np.sqrt(np.diag(square))
            else:
                blocks.append((part.start, cholesky(square)))
        sizes = np.array([upper.shape[0] for _, upper in blocks], dtype=np.int64)
        self._parts = [(slice(first, first + upper.shape[0]), upper) for first, upper in blocks]
        self._blocks = (
            np.array([first for first, _ in blocks], dtype=np.int64),
            sizes,
            np.cumsum(sizes**2) - sizes**2,
            np.concatenate([upper.ravel() for _, upper in blocks] or [np.empty(0)]),
        )
        first = len(design.numbers)
        for at, (one, share) in enumerate(zip(design.categories, shares, strict=True), first):
            part = slice(int(design.starts[at]), int(design.starts[at + 1]))
            self._scales[part] = 1 / np.sqrt(curvature * share[: one.n_weights] + penalties[part])

    def to_weights(self, point: FloatArray) -> FloatArray:
        return self._solve(point, transposed=False)

    def to_slopes(self, slopes: FloatArray) -> FloatArray:
        return self._solve(slopes, transposed=True)

    def to_point(self, weights: FloatArray) -> FloatArray:
        point = weights.reshape(self._n_outputs, -1) / self._scales
        for own, given in zip(point, weights.reshape(self._n_outputs, -1), strict=True):
            for part, upper in self._parts:
                own[part] = upper @ given[part]
        return point.ravel()

    def _solve(self, given: FloatArray, *, transposed: bool) -> FloatArray:
        scaled = given.reshape(self._n_outputs, -1) * self._scales
        for own in scaled:
            solve_blocks(*self._blocks, transposed, own)
        return scaled.ravel()


def rate_classes(class_shares: FloatArray) -> float:
    """The share of class 1 in a model of two classes that is as curved as that of several, (n_classes,)."""
    curvature = float(np.mean(class_shares * (1 - class_shares)))
    return max(float(0.5 - np.sqrt(max(0.25 - curvature, 0.0))), 1e-6)
