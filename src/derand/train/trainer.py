"""The one trainer of models of classes: a formulation, fitted by a strategy.

Owns the choice of the penalty, the fit to all rows, the check for collapse and the calibration. Must not know how
losses are computed or which strategy fits which sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell
from derand._core.threads import run_blocks
from derand.train import strategies
from derand.train.bins import BinnedTable
from derand.train.design.columns import compute_boxes, leave_in_place
from derand.train.design.joint import JointBins
from derand.train.design.model import bin_windows, may_overlap
from derand.train.formulations import FORMULATIONS, AnyDesign, InMemory, InParts, Margins, Problem, RowSource
from derand.train.optimisers.base import Effort, Fit
from derand.train.optimisers.batches import fit_by_batches
from derand.train.optimisers.descent import Objective
from derand.train.selection.folds import FEW_ROWS, draw_folds, draw_third, spread_rows
from derand.train.selection.interactions import select_groups, select_pairs
from derand.train.selection.penalties import Ladder, SelectionPath, Trial, search_penalty
from derand.train.selection.screening import choose_columns, say_nothing
from derand.train.strategies import Strategy
from derand.train.table import TrainingTable

CHECKED_ROWS = 5_000
"""Rows on which the certified accuracy is compared with that of the constant prediction."""
_LADDER = Ladder((10.0, 1.0, 0.1, 0.01, 0.001), extends=True, refines=True, ramps=True)
_ROUGH_TOLERANCE = 1e-2
"""Of the duality gap, as a share of the loss: of the fits among which a penalty is chosen."""
_QUICK, _SCREENING = Effort(_ROUGH_TOLERANCE, 400), Effort(0.1, 30)


class HoldOut(NamedTuple):
    """How a penalty is chosen on a third of some rows, which the fit does not see.

    `from_last`: whether each fit starts from the one before; `calibrates`: whether scores of that third calibrate.
    """

    n_rows: int
    ladder: Ladder
    effort: Effort
    from_last: bool
    calibrates: bool


_HOLD_OUTS = {
    "products": HoldOut(strategies.LIMITS.choice_rows, Ladder((10.0, 1.0, 0.1, 0.01)), _QUICK, False, True),
    "first order": HoldOut(
        strategies.LIMITS.quick_rows, Ladder((1.0, 0.1, 0.01), above=10.0), Effort(_ROUGH_TOLERANCE, 40), True, False
    ),
}
"""By loss, where rows are fitted in batches; all others are chosen by folds."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The penalty that was chosen, with or without a ramp; scores of rows left out, where there were such."""

    regularization: float
    ramp: bool = True
    path: SelectionPath = field(default_factory=lambda: SelectionPath.of([]))
    rows: IntArray | None = None
    scores: FloatArray | None = None


class Trainer:
    """Fits models of one formulation to the rows of a table.

    Parameters
    ----------
    formulation : Margins or another of FORMULATIONS
    strategy : Strategy
    whole : InParts or None
        All rows, where those of the formulation are a sample.
    """

    def __init__(self, formulation: Margins, strategy: Strategy, whole: InParts | None = None) -> None:
        self.formulation, self.strategy = formulation, strategy
        self._options = formulation.problem.options
        self._all_rows: RowSource = InMemory(formulation.binned) if whole is None else whole
        self.wide: BinnedTable | None = None
        """The rows with all columns, where some were chosen: every fold chooses its own."""
        self.n_steps, self.result = 0, Fit()

    @classmethod
    def of(cls, problem: Problem, binned: BinnedTable, strategy: Strategy) -> Trainer:
        """What trains on rows at hand."""
        return cls(FORMULATIONS[strategy.loss](problem, binned), strategy)

    @property
    def binned(self) -> BinnedTable:
        return self.formulation.binned

    def fit_all(self, design: AnyDesign, regularization: float) -> FloatArray:
        """Weights for all rows; where these are many, from those of a sample on."""
        effort, start = Effort(self._options.tol, self._options.max_iter), None
        if self.strategy.rows in ("sample first", "in parts"):
            some = InMemory(self.binned.take(spread_rows(self.binned, strategies.LIMITS.choice_rows)))
            start = self._fit(design, some, regularization, effort, count=True)
        weights = self._fit(design, self._all_rows, regularization, effort, start, count=True)
        if np.isnan(self.result.gap):
            self.result = self.formulation.measure_fit(design, self._all_rows, regularization, weights) or self.result
        return weights

    def fit(
        self,
        design: AnyDesign,
        rows: BinnedTable,
        regularization: float,
        start: FloatArray | None = None,
        effort: Effort = _QUICK,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Weights for some rows."""
        return self._fit(design, InMemory(rows), regularization, effort, start, n_threads)

    def _fit(
        self,
        design: AnyDesign,
        rows: RowSource,
        regularization: float,
        effort: Effort,
        start: FloatArray | None = None,
        n_threads: int | None = None,
        *,
        count: bool = False,
    ) -> FloatArray:
        objective = self.formulation.prepare(design, rows, regularization, n_threads or self._options.n_threads)
        schedule = None
        if self.strategy.rows == "in batches":
            schedule = self.formulation.schedule(rows.sample.target.size, effort.tolerance >= _ROUGH_TOLERANCE)
        if schedule is not None:
            assert isinstance(objective, Objective)
            begin, order = objective.constant if start is None else start, np.argsort(rows.sample.keys, kind="stable")
            weights = fit_by_batches(objective, begin, order, np.random.default_rng(self._options.seed), schedule)
        else:
            weights = objective.fit(start, effort)
        if count:
            self.n_steps, self.result = self.n_steps + objective.n_steps, objective.result
        return weights

    def choose(self) -> Choice:
        """The penalty of least loss on rows left out, and whether a ramp helps; or what the options ask for."""
        if self._options.regularization is not None:
            return Choice(self._options.regularization)
        if self.strategy.rows == "in batches" and self.strategy.loss in _HOLD_OUTS:
            return self._choose_on_third(_HOLD_OUTS[self.strategy.loss])
        limits, n_columns = strategies.LIMITS, self.binned.codes.shape[1]
        has_joints = any(isinstance(one, JointBins) for one in self.binned.numbers)
        fewer = min(limits.choice_rows, max(limits.joint_rows, limits.joint_cells // max(n_columns, 1)))
        index = spread_rows(self.binned, fewer if has_joints else limits.choice_rows)
        is_large = index.size * n_columns >= limits.fold_cells
        folds = draw_folds(self.binned.take(index), few_rows=np.inf if is_large else FEW_ROWS)
        if folds is None:
            return Choice(1.0)
        parts = self.part_folds(index, folds)[: 1 if is_large else None]

        def attempt(regularization: float, ramp: bool, before: Trial | None) -> Trial:
            return self._try(parts, folds, regularization, ramp, before)

        best, path = search_penalty(attempt, replace(_LADDER, ramps=self.formulation.can_ramp))
        left = np.flatnonzero(folds < len(parts))
        assert best.scores is not None
        return Choice(best.regularization, best.ramp, path, index[left], best.scores[left])

    def _choose_on_third(self, how: HoldOut) -> Choice:
        inside, outside = draw_third(self.binned, how.n_rows)
        if not inside.size or not outside.size:
            return Choice(1.0)
        kept, left, design = self.binned.take(inside), self.binned.take(outside), self.formulation.design(True)

        def attempt(regularization: float, ramp: bool, before: Trial | None) -> Trial:
            start = before.fitted if before is not None and how.from_last else None
            weights = self.fit(design, kept, regularization, start, how.effort)
            loss = self.formulation.make_loss(design, left, self._options.n_threads).measure(weights)
            return Trial(regularization, ramp, np.array([loss]), weights)

        best, path = search_penalty(attempt, how.ladder)
        if not how.calibrates:
            return Choice(best.regularization, True, path)
        return Choice(best.regularization, True, path, outside, self.formulation.score(design, left, best.fitted))

    def part_folds(self, index: IntArray, folds: IntArray) -> list[tuple[Trainer, BinnedTable]]:
        """What is fitted without each fold: by whom, and the rows with the columns that it looks at.

        Of wide tables the columns are chosen without the rows of the fold.
        """
        n_folds = int(folds.max()) + 1
        if self.wide is None:
            return [(self, self.binned.take(index))] * n_folds
        rows = self.wide.take(index)
        chosen = [self._choose_columns(rows.take(np.flatnonzero(folds != fold))) for fold in range(n_folds)]
        every = np.unique(np.concatenate(chosen))
        whole = self._make_another(rows.keep(every)).formulation
        return [(self._like(whole.keep(np.searchsorted(every, numbers))), rows.keep(numbers)) for numbers in chosen]

    def _like(self, formulation: Margins) -> Trainer:
        return Trainer(formulation, self.strategy)

    def _make_another(self, binned: BinnedTable) -> Trainer:
        """What trains on other columns, or rows, in the same way."""
        return self._like(type(self.formulation)(self.formulation.problem, binned))

    def narrow(self) -> BinnedTable | None:
        """The rows without the numerical columns that say nothing; None where those say something together."""
        rows = self.binned.take(spread_rows(self.binned, strategies.LIMITS.choice_rows))
        chosen = self._choose_columns(rows)
        others = np.setdiff1d(np.arange(len(rows.numbers)), chosen)
        return self.binned.keep(chosen) if say_nothing(rows, self._leave(rows, chosen), others) else None

    def _choose_columns(self, rows: BinnedTable) -> IntArray:
        """Indices of the numerical columns to fit."""
        return choose_columns(rows, lambda numbers: self._leave(rows, numbers))

    def _leave(self, rows: BinnedTable, numbers: IntArray) -> FloatArray:
        """What a plain model of some numerical columns, and all categorical ones, leaves unexplained of each row."""
        some = rows.keep(numbers)
        other = self._make_another(some)
        design = leave_in_place(other.formulation.design(True, 0.0))
        weights = other.fit(design, some, 1.0, None, _SCREENING, n_threads=1)
        return np.asarray(rows.weights * (rows.target - expit(other.formulation.score(design, some, weights))))

    def select_groups(self) -> tuple[tuple[int, ...], ...]:
        """Columns that say more together than each by itself, of what an additive model leaves unexplained."""
        rows = self.binned.take(spread_rows(self.binned, strategies.LIMITS.choice_rows))
        spec, radius, alone = self.formulation.spec, self._options.radius, self._options.monotone
        if may_overlap(spec, radius, self.formulation.problem.n_classes):
            merged = self._make_another(bin_windows(rows, spec, radius))
            robust = merged.formulation.design(False)
            margins = merged.formulation.make_loss(robust, merged.binned).compute_margins(
                merged.fit(robust, merged.binned, 0.1)
            )
            misses = expit(-margins)
            boxes = compute_boxes(rows.numbers, spec, radius)
            residuals, bent = np.where(rows.target == 1, misses, -misses), misses * (1 - misses)
            return select_groups(rows, boxes, residuals[:, None], bent[:, None], alone)
        design = leave_in_place(self.formulation.design(False, 0.0))
        weights = self.fit(design, rows, 0.1)
        scores = self.formulation.score(design, rows, weights)
        if scores.ndim == 1:
            probability, target = expit(scores)[:, None], rows.target[:, None]
        else:
            probability, target = softmax(scores, axis=1), rows.target[:, None] == np.arange(scores.shape[1])
        return select_pairs(rows, target - probability, probability * (1 - probability), alone)

    def _try(
        self,
        parts: Sequence[tuple[Trainer, BinnedTable]],
        folds: IntArray,
        regularization: float,
        ramp: bool,
        before: Trial | None,
    ) -> Trial:
        """Fit on all folds but one, measure on that one, for each of them; start from what was tried before."""
        n_folds = len(parts)  # of all, or the first one alone
        fitted: list[Any] = [None] * n_folds
        losses, scores = np.empty(n_folds), np.empty((folds.size, *self.formulation.scores_shape))

        def fit_fold(block: slice) -> None:
            fold = block.start
            trainer, rows = parts[fold]
            design = trainer.formulation.design(ramp)
            inside, outside = rows.take(np.flatnonzero(folds != fold)), np.flatnonzero(folds == fold)
            start = None if before is None else before.fitted[fold]
            weights = trainer.fit(design, inside, regularization, start, n_threads=1)
            left = rows.take(outside)
            losses[fold] = trainer.formulation.make_loss(design, left).measure(weights)
            scores[outside] = trainer.formulation.score(design, left, weights)
            fitted[fold] = weights

        # but for blocks of weights, loops of few rows are short: they would hand the interpreter's lock to and fro
        design = self.formulation.design(ramp)
        in_blocks = self.strategy.loss == "margins" and not (design.deduction or design.is_plain)
        run_blocks(fit_fold, n_folds, 1, self._options.n_threads if in_blocks or folds.size > FEW_ROWS else 1)
        return Trial(regularization, ramp, losses, fitted, scores)

    def check(self, design: AnyDesign, weights: FloatArray, chosen: Choice) -> tuple[str, ...]:
        """Say so where certified accuracy does not beat a constant answer, and at which radius it would."""
        l0, radius = self.formulation.problem.threat.l0, self._options.radius
        if radius == 0 and l0 == 0:
            return ()
        some = self.binned.take(spread_rows(self.binned, CHECKED_ROWS))
        by_class = np.bincount(some.target, weights=some.weights, minlength=2)
        share = float(by_class.max() / by_class.sum())
        certified = self._measure_certified(design, weights, some)
        if certified > share:
            return ()
        n_seen = some.target.size
        whose = "the" if n_seen == self.binned.target.size else f"a sample of {n_seen:,}"
        changes = f"{l0} changed {'category' if l0 == 1 else 'categories'}"
        against = (
            f"At radius {radius:g}" + (f" and against {changes}" if l0 else "") if radius else f"Against {changes}"
        )
        return (
            f"{against} the model certifies {100 * certified:.1f} % of {whose} training rows, no "
            f"more than the constant answer, which is right on {100 * share:.1f} %: it has collapsed, training found "
            f"nothing better. {self._advise(chosen, some, share)}",
        )

    def _advise(self, chosen: Choice, some: BinnedTable, share: float) -> str:
        """What to ask for instead: a smaller radius at which the model beats the constant answer, or fewer changes."""
        good, bad = 0.0, self._options.radius
        for _ in range(6 if bad else 0):
            radius = (good + bad) / 2
            smaller = self.formulation.design(chosen.ramp, radius)
            weights = self.fit(smaller, some, chosen.regularization)
            beats = self._measure_certified(smaller, weights, some) > share
            good, bad = (radius, bad) if beats else (good, radius)
        if good:
            return (
                f"Of smaller radii that were tried, {good:.2g} is the largest at which it did better: train with that "
                "radius or less, or compare radii by `derand tune` (`derand.tune`)."
            )
        if self.formulation.problem.threat.l0:
            return "No radius that was tried did better: let fewer categories change (`l0`), or freeze some columns."
        return "No radius that was tried did better: compare smaller ones by `derand tune` (`derand.tune`)."

    def _measure_certified(self, design: AnyDesign, weights: FloatArray, rows: BinnedTable) -> float:
        margins = self.formulation.make_loss(design, rows).compute_margins(weights)
        return float(rows.weights @ (margins > 0) / rows.weights.sum())

    def calibrate(
        self, design: AnyDesign, weights: FloatArray, chosen: Choice, table: TrainingTable
    ) -> tuple[float, ...]:
        """Slope and shifts from scores to logarithms of odds, by rows left out where there are such.

        Where weights were fitted to rows as they are, the scores are. Shifts are 0 but for class weights: without them
        a row is of the label that is more likely.
        """
        limit = strategies.LIMITS.choice_rows
        index = spread_rows(self.binned, limit) if chosen.rows is None else chosen.rows
        weighted = bool((table.class_weight != table.class_weight[0]).any())
        scores = chosen.scores
        if scores is None and (weighted or not design.is_plain or design.steepness is not None):
            scores = self.formulation.score(design, self.binned.take(index), weights)
        sample = np.ones(index.size) if table.sample_weight is None else table.sample_weight[index]
        return self.formulation.calibrate(scores, table.target[index], sample, weighted)


def tell_of_fit(n_rows: int, regularization: float) -> None:
    """Tell that the model itself is being fitted."""
    tell(f"training: fitting {n_rows:,} rows at penalty {regularization:.3g}")
