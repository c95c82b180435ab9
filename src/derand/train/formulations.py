"""What is fitted: the designs and the losses of each kind of model of classes, and the way back from weights.

Owns FORMULATIONS, one class for each loss of the table of strategies. A formulation designs columns, prepares an
objective for rows, scores rows, calibrates scores and builds the model. Must not know which one is chosen, how weights
are fitted, or how penalties are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.threat import Threat
from derand.train import strategies
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design, ModelSpec, keep_numbers, leave_in_place
from derand.train.design.joint import JointBins
from derand.train.design.model import design_model
from derand.train.design.products import ProductDesign, design_products
from derand.train.design.shapes import build_model
from derand.train.design.steepness import design_first_order
from derand.train.losses.base import Loss, Measure
from derand.train.losses.margin import MarginLoss
from derand.train.losses.pairwise import PairwiseLoss
from derand.train.losses.products import ProductLoss
from derand.train.losses.rows import RowsInMemory, RowsInParts, SumsOverRows
from derand.train.losses.softmax import SoftmaxLoss
from derand.train.optimisers.base import Fit, Optimiser
from derand.train.optimisers.batches import Schedule
from derand.train.optimisers.blocks import BlockDescent
from derand.train.optimisers.descent import Objective, Precondition, rate_classes
from derand.train.parts import Shards, WholeTable
from derand.train.selection.folds import share_codes

_LARGEST_SLOPE = 8.0
_LEAST_SHARE = 1e-6
_WINDOW_CUTS = 32  # of a column, of which each stands for all within the radius


AnyDesign = Any
"""The design of a formulation: what each one makes, and alone reads."""


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveOptions:
    """How an additive model is trained; see AdditiveClassifier."""

    radius: float
    n_cuts: int | None = None
    regularization: float | None = None
    monotone: Mapping[int, int] = field(default_factory=dict)
    deduction: float = 0.0
    groups: tuple[tuple[int, ...], ...] | None = ()
    """Columns that interact, by number; None to find them."""
    least_rows: int | None = None
    """Categories of fewer rows get the value of one that training did not see."""
    wide_columns: int = strategies.LIMITS.wide_columns
    """Numerical columns from which on some are chosen before they are fitted."""
    max_iter: int = 1_000
    """Steps of a fit, at most."""
    tol: float = 1e-3
    """Of the duality gap, as a share of the loss: where a fit to all rows ends."""
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is asked for, of any rows of a table."""

    noise: Noise | None
    threat: Threat
    options: AdditiveOptions
    n_features: int
    n_classes: int
    groups: tuple[tuple[int, ...], ...] = ()

    def specify(self, binned: BinnedTable) -> ModelSpec:
        """What a model of some columns is designed for."""
        options, n_numbers = self.options, len(binned.numbers)
        is_window = self.noise is None and self.threat.ball_norm == np.inf and options.radius > 0
        most = strategies.LIMITS.window_weights if is_window else strategies.LIMITS.most_weights
        cuts = strategies.count_cuts(binned.count_distinct(), n_numbers, most)
        cuts = min(cuts, _WINDOW_CUTS) if is_window else cuts
        return ModelSpec(
            self.noise,
            self.threat,
            self.n_features,
            options.n_cuts or cuts,
            options.n_cuts,
            options.monotone,
            options.deduction if n_numbers >= strategies.LIMITS.deducting_columns else 0.0,
        )


class RowSource(Protocol):
    """Rows that a model of two classes is fitted to, wherever they lie."""

    @property
    def sample(self) -> BinnedTable:
        """Those at hand: all of them, or some."""

    @property
    def rate(self) -> float:
        """Share of class 1, by weight."""

    def count_distinct(self) -> int: ...
    def open(self, design: Design, n_threads: int) -> SumsOverRows: ...


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """Rows at hand."""

    sample: BinnedTable

    @property
    def rate(self) -> float:
        return float(self.sample.weights @ self.sample.target / self.sample.weights.sum())

    def count_distinct(self) -> int:
        return self.sample.count_distinct()

    def open(self, design: Design, n_threads: int) -> SumsOverRows:
        return RowsInMemory(design, self.sample, n_threads)


@dataclass(eq=False)
class InParts:
    """All rows of the table that the rows at hand are a sample of; they are coded once."""

    sample: BinnedTable
    whole: WholeTable
    class_weight: FloatArray

    @property
    def rate(self) -> float:
        weighted = self.whole.class_counts * self.class_weight
        return float(weighted[1] / weighted.sum())

    @cached_property
    def shards(self) -> Shards:
        tell("training: coding all rows")
        return self.whole.share(self.sample)

    def count_distinct(self) -> int:
        return self.whole.n_distinct

    def open(self, design: Design, n_threads: int) -> SumsOverRows:
        weights = self.whole.class_counts, self.class_weight, self.whole.largest_weight
        return RowsInParts(design, self.shards, *weights)


class Margins:
    """Two classes: one score, and the margin that the worst change leaves of it."""

    scores_shape: tuple[int, ...] = ()
    """Of the scores of one row."""

    def __init__(self, problem: Problem, binned: BinnedTable) -> None:
        self.problem, self.binned = problem, binned
        self.spec = problem.specify(binned)
        self._designs: dict[tuple[bool, float], AnyDesign] = {}
        self._kept: IntArray | None = None

    @property
    def can_ramp(self) -> bool:
        """Whether functions may have a linear part: not where they are steps whose cells are known."""
        return not self.binned.cuts and not all(isinstance(one, JointBins) for one in self.binned.numbers)

    def keep(self, numbers: IntArray) -> Margins:
        """The same of some of the numerical columns, by index."""
        other = copy(self)
        other._kept = numbers
        return other

    def design(self, with_ramp: bool, radius: float | None = None) -> AnyDesign:
        """The columns of the model, for the radius that is asked for or another one."""
        key = (with_ramp, self.problem.options.radius if radius is None else radius)
        if key not in self._designs:
            self._designs[key] = self._make_design(*key)
        found = self._designs[key]
        return found if self._kept is None else keep_numbers(found, self._kept)

    def _make_design(self, with_ramp: bool, radius: float) -> object:
        return design_model(self.binned, self.spec, radius, with_ramp=with_ramp)

    def make_loss(self, design: AnyDesign, rows: BinnedTable, n_threads: int = 1) -> Measure:
        """What the weights of a design lose on some rows."""
        if design.has_joints:
            nothing = np.zeros(int(design.starts[-1]))
            return BlockDescent(design, rows, nothing, nothing)
        return MarginLoss(design, RowsInMemory(design, rows, n_threads))

    def prepare(self, design: AnyDesign, rows: RowSource, regularization: float, n_threads: int) -> Optimiser:
        """What is minimised on some rows: in blocks of weights where it has kinks and the rows are at hand."""
        if isinstance(rows, InMemory) and not design.deduction and (design.has_joints or not design.is_plain):
            return self._prepare_blocks(design, rows, regularization)
        penalties, constant, rate = self._begin(design, rows, regularization)
        change = Precondition(design, penalties, share_codes(design, rows.sample), rate)
        return Objective(MarginLoss(design, rows.open(design, n_threads)), penalties, change, constant)

    def _prepare_blocks(self, design: AnyDesign, rows: RowSource, regularization: float) -> BlockDescent:
        return BlockDescent(design, rows.sample, *self._begin(design, rows, regularization)[:2])

    @staticmethod
    def _begin(design: AnyDesign, rows: RowSource, regularization: float) -> tuple[FloatArray, FloatArray, float]:
        """Penalties of all weights, those of the constant prediction, and the share of class 1."""
        rate = float(np.clip(rows.rate, 1e-6, 1 - 1e-6))
        penalties = design.list_penalties(regularization) / rows.count_distinct()
        constant = np.zeros(penalties.size)
        constant[0] = np.log(rate / (1 - rate))
        return penalties, constant, rate

    def measure_fit(self, design: AnyDesign, rows: RowSource, regularization: float, weights: FloatArray) -> Fit | None:
        """How good weights are, by a duality gap; None where there is none."""
        if not isinstance(rows, InMemory) or design.deduction:
            return None
        return self._prepare_blocks(design, rows, regularization).measure_fit(weights)

    def schedule(self, n_rows: int, is_quick: bool) -> Schedule | None:
        """How rows are fitted in batches; None where that is not done."""
        return None

    def score(self, design: AnyDesign, rows: BinnedTable, weights: FloatArray) -> FloatArray:
        """Logarithm of odds of each row as it is."""
        margins = self.make_loss(leave_in_place(design), rows).compute_margins(weights)
        return np.asarray((2.0 * rows.target - 1.0) * margins)

    def split_outputs(self, weights: FloatArray) -> FloatArray:
        """The weights by output, as the model reads them."""
        return weights

    def build(self, design: AnyDesign, weights: FloatArray) -> AdditiveEnsemble:
        """The model that weights stand for."""
        return build_model(design.read(weights), weights[0], self.problem.n_features)

    def calibrate(
        self, scores: FloatArray | None, target: NDArray[np.uint8], weights: FloatArray, with_shift: bool
    ) -> tuple[float, ...]:
        """Slope and shift of the most likely logarithms of odds `slope * score + shift`; of no scores none."""
        if scores is None:
            return 1.0, 0.0
        signs = 2.0 * target - 1.0
        total = weights.sum()

        def lose(point: FloatArray) -> tuple[float, FloatArray]:
            margins = signs * (point[0] * scores + point[1])
            slopes = -weights * signs * expit(-margins) / total
            value = float(weights @ np.logaddexp(0, -margins) / total)
            return value, np.array([slopes @ scores, slopes.sum() if with_shift else 0.0])

        return _fit_scaling(lose, 1, with_shift)


class Pairwise(Margins):
    """Several classes: a score per class, and the margins that the worst change leaves of every pair of them.

    Where nothing changes, that is the softmax of the scores. Weights are flat, those of class 0 first.
    """

    @property
    def scores_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.problem.n_classes,)

    def make_loss(self, design: AnyDesign, rows: BinnedTable, n_threads: int = 1) -> Loss:
        if design.steepness is not None or design.is_plain:
            return SoftmaxLoss(design, rows, self.problem.n_classes, n_threads)
        return PairwiseLoss(design, rows, self.problem.n_classes, n_threads)

    def prepare(self, design: AnyDesign, rows: RowSource, regularization: float, n_threads: int) -> Objective:
        some, n_classes = rows.sample, self.problem.n_classes
        shares = np.bincount(some.target, weights=some.weights, minlength=n_classes) / some.weights.sum()
        shares = np.maximum(shares, _LEAST_SHARE)
        penalties = design.list_penalties(regularization) / some.count_distinct()
        constant = np.zeros((n_classes, penalties.size))
        constant[:, 0] = np.log(shares) - np.log(shares).mean()
        change = self._change_variables(design, penalties, some, shares)
        loss = self.make_loss(design, some, n_threads)
        return Objective(loss, np.tile(penalties, n_classes), change, constant.ravel())

    def measure_fit(self, design: object, rows: RowSource, regularization: float, weights: FloatArray) -> Fit | None:
        return None

    def _change_variables(
        self, design: AnyDesign, penalties: FloatArray, rows: BinnedTable, shares: FloatArray
    ) -> Precondition | None:
        return Precondition(design, penalties, share_codes(design, rows), rate_classes(shares), shares.size)

    def schedule(self, n_rows: int, is_quick: bool) -> Schedule | None:
        return None if is_quick else Schedule()

    def score(self, design: AnyDesign, rows: BinnedTable, weights: FloatArray) -> FloatArray:
        """Score of each row and class, without offsets that all classes share."""
        return SoftmaxLoss(leave_in_place(design), rows, self.problem.n_classes).score(weights)

    def split_outputs(self, weights: FloatArray) -> FloatArray:
        by_class = weights.reshape(self.problem.n_classes, -1)
        return np.asarray(by_class - by_class.mean(axis=0))  # what all classes share decides nothing

    def build(self, design: AnyDesign, weights: FloatArray) -> AdditiveEnsemble:
        by_class = self.split_outputs(weights)
        return build_model(design.read(by_class), by_class[:, 0], self.problem.n_features)

    def calibrate(
        self, scores: FloatArray | None, target: NDArray[np.uint8], weights: FloatArray, with_shift: bool
    ) -> tuple[float, ...]:
        """Slope and shifts of the most likely probabilities, the softmax of `slope * scores + shifts`."""
        n_classes = self.problem.n_classes
        if scores is None:
            return (1.0, *[0.0] * n_classes)
        weights = weights / weights.sum()
        own = np.arange(target.size), target.astype(np.int64)

        def lose(point: FloatArray) -> tuple[float, FloatArray]:
            logits = point[0] * scores + point[1:]
            logits -= logsumexp(logits, axis=1, keepdims=True)
            value = -float(weights @ logits[own])
            slopes = np.exp(logits)
            slopes[own] -= 1.0
            slopes *= weights[:, None]
            by_shift = slopes.sum(axis=0) if with_shift else np.zeros(n_classes)
            return value, np.concatenate([[(slopes * scores).sum()], by_shift])

        return _fit_scaling(lose, n_classes, with_shift)


class FirstOrder(Pairwise):
    """Several classes, values in place: how steep leads are stands for changes."""

    def _make_design(self, with_ramp: bool, radius: float) -> Design:
        return design_first_order(self.binned, self.spec, radius, with_ramp=with_ramp)


class Products(Pairwise):
    """Many groups, of two classes or more: their functions are products, and steepness stands for changes.

    Single columns are among these functions, so that groups lose nothing against them. All fits go by batches.
    """

    batch, rate = 500, 0.02
    fewest_steps, most_steps, quick_steps, passes = 500, 1_500, 300, 12

    @property
    def scores_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """A score per class; of two classes their lead."""
        return (self.problem.n_classes,) if self.problem.n_classes > 2 else ()

    def _make_design(self, with_ramp: bool, radius: float) -> ProductDesign:
        return design_products(self.binned, self.problem.groups, self.spec, radius, with_ramp=with_ramp)

    def make_loss(self, design: AnyDesign, rows: BinnedTable, n_threads: int = 1) -> ProductLoss:
        return ProductLoss(design, rows, self.problem.n_classes, n_threads)

    def _change_variables(self, *_: object) -> None:
        return None

    def schedule(self, n_rows: int, is_quick: bool) -> Schedule:
        steps = int(np.clip(self.passes * n_rows // self.batch, self.fewest_steps, self.most_steps))
        return Schedule(self.batch, self.quick_steps if is_quick else steps, self.rate, 0.25)

    def score(self, design: AnyDesign, rows: BinnedTable, weights: FloatArray) -> FloatArray:
        """Score of each row and class; of two classes the logarithm of odds."""
        scores = self.make_loss(design, rows, self.problem.options.n_threads).score(weights)
        return scores if self.problem.n_classes > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def build(self, design: object, weights: FloatArray) -> AdditiveEnsemble:
        if self.problem.n_classes > 2:
            return super().build(design, weights)
        low, high = self.split_outputs(weights)
        return Margins.build(self, design, high - low)

    def calibrate(
        self, scores: FloatArray | None, target: NDArray[np.uint8], weights: FloatArray, with_shift: bool
    ) -> tuple[float, ...]:
        kind = Pairwise if self.problem.n_classes > 2 else Margins
        return kind.calibrate(self, scores, target, weights, with_shift)


def _fit_scaling(lose: object, n_shifts: int, with_shift: bool) -> tuple[float, ...]:
    """Slope and shifts that lose least; the slope is neither tiny nor huge."""
    bounds: list[object] = [(1 / _LARGEST_SLOPE, _LARGEST_SLOPE), *[(None, None) if with_shift else (0, 0)] * n_shifts]
    start = np.zeros(n_shifts + 1)
    start[0] = 1.0
    found = minimize(lose, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12})
    return tuple(found.x.tolist())


FORMULATIONS: dict[str, type[Margins]] = {
    "margins": Margins,
    "pairwise": Pairwise,
    "first order": FirstOrder,
    "products": Products,
}
"""By the names of `strategies.LOSSES`; those of regression are `regression`'s own."""
