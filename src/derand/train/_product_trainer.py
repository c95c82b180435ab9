"""Models with many groups, of two classes or more, trained for their certificate to first order.

Where a change moves many columns a little each, what it takes of a lead is known by how steep the lead is: that is what
is fitted here, by batches of rows, with functions of whole groups (`_products`). Single columns are among these
functions, so that groups lose nothing against them. Owns when this is done, the choice of the penalty and the steps.
Must not know how losses are computed or certificates made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.threat import Threat
from derand.train._class_trainer import ClassTrainer
from derand.train.additive import (
    AdditiveOptions,
    AdditiveTraining,
    Choice,
    Trainer,
    bin_rows,
    tell_of_fit,
    warn_of_idle_numbers,
)
from derand.train.bins import BinnedTable
from derand.train.design.products import ProductDesign, design_products
from derand.train.design.shapes import build_class_model, build_lead_model
from derand.train.losses.products import ProductLoss
from derand.train.optimisers.batches import Schedule, fit_by_batches
from derand.train.selection.folds import draw_third, spread_rows
from derand.train.selection.importance import measure_importances
from derand.train.selection.penalties import Ladder
from derand.train.table import TrainingTable

_MANY_COLUMNS = 16  # in groups: moving each a little is then what costs a margin most
_LADDER = Ladder((10.0, 1.0, 0.1, 0.01))
_CHOICE_ROWS = 20_000
_BATCH, _RATE = 500, 0.02
_FEWEST_STEPS, _MOST_STEPS, _QUICK_STEPS, _PASSES = 500, 1_500, 300, 12


def prefers_products(
    table: TrainingTable,
    noise: Noise | None,
    threat: Threat,
    options: AdditiveOptions,
    groups: Sequence[Sequence[int]],
) -> bool:
    """Whether groups are so many that margins are known well enough by how steep leads are."""
    boxed = threat.norm is None or bool(threat.limits or threat.domain)
    swapped = threat.l0 > 0 and bool(table.n_categories)
    if noise is None or options.radius == 0 or boxed or swapped or any(options.monotone.values()):
        return False
    two_proofs = (
        table.n_classes == 2 and options.deduction > 0
    )  # what the second one of a vote costs is trained elsewhere
    return sum(len(group) for group in groups) >= _MANY_COLUMNS and not two_proofs


def train_products(
    table: TrainingTable,
    noise: Noise,
    threat: Threat,
    options: AdditiveOptions,
    groups: Sequence[Sequence[int]],
) -> AdditiveTraining:
    """Train a model with many groups; parameters are those of `train_additive`, and the groups by column numbers."""
    binned = bin_rows(table, options)
    trainer = ProductTrainer(binned, table.n_features, noise, threat, options, table.n_classes, groups)
    with threadpool_limits(1, user_api="blas"):
        chosen = trainer.choose()
        tell_of_fit(table, chosen)
        design = trainer.design(chosen.ramp)
        weights = trainer.fit(design, binned, chosen.regularization)
        warnings = trainer.check(design, weights, chosen)
        calibration = trainer.calibrate(design, weights, chosen, table)
    by_class = weights.reshape(table.n_classes, -1)
    by_class = by_class - by_class.mean(axis=0)  # what all classes share decides nothing
    importances = measure_importances(design, by_class, trainer.sample(), table.n_features)
    return AdditiveTraining(
        _build_model(design, by_class, table.n_features),
        chosen.regularization,
        chosen.path,
        importances,
        calibration,
        warnings or warn_of_idle_numbers(table, importances, options.radius),
        tuple(tuple(group) for group in groups),
    )


class ProductTrainer(ClassTrainer):
    """Fits models with many groups to binned rows; weights are flat, those of class 0 first."""

    def __init__(
        self,
        binned: BinnedTable,
        n_features: int,
        noise: Noise,
        threat: Threat,
        options: AdditiveOptions,
        n_classes: int,
        groups: Sequence[Sequence[int]],
    ) -> None:
        super().__init__(binned, n_features, noise, threat, options, n_classes)
        self._groups, self._smooth = groups, noise
        self._products: dict[tuple[bool, float], ProductDesign] = {}

    def design(self, with_ramp: bool, radius: float | None = None) -> Any:
        """The functions of the model, for the radius that is asked for or another one."""
        key = (with_ramp, self._options.radius if radius is None else radius)
        if key not in self._products:
            self._products[key] = design_products(
                self._binned,
                self._groups,
                self._smooth,
                self._threat,
                key[1],
                n_cuts=self._options.n_cuts,
                n_single_cuts=self._n_cuts,
                with_ramp=with_ramp,
                n_features=self._n_features,
            )
        return self._products[key]

    def make_loss(self, design: Any, rows: BinnedTable, n_threads: int = 1) -> ProductLoss:
        """What weights lose on some rows."""
        return ProductLoss(design, rows, self._n_classes, n_threads)

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """A score per class; of two classes their lead."""
        return (self._n_classes,) if self._n_classes > 2 else ()

    def score(self, design: Any, rows: BinnedTable, weights: FloatArray) -> FloatArray:
        """Score of each row and class; of two classes the logarithm of odds."""
        scores = self.make_loss(design, rows, self._options.n_threads).score(weights)
        return scores if self._n_classes > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def sample(self) -> BinnedTable:
        """Some of the rows, those of a small table all."""
        return self._binned.take(spread_rows(self._binned, _CHOICE_ROWS))

    def fit(
        self,
        design: Any,
        rows: BinnedTable,
        regularization: float,
        start: FloatArray | None = None,
        stages: Any = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Weights for some rows; few steps where stages are given, which stand for a quick fit."""
        shares = np.bincount(rows.target, weights=rows.weights, minlength=self._n_classes) / rows.weights.sum()
        logs = np.log(np.maximum(shares, 1e-6))
        constant = np.zeros((self._n_classes, design.n_weights))
        constant[:, 0] = logs - logs.mean()
        n_rows = rows.target.size
        n_steps = (
            int(np.clip(_PASSES * n_rows // _BATCH, _FEWEST_STEPS, _MOST_STEPS)) if stages is None else _QUICK_STEPS
        )
        penalties = np.tile(design.list_penalties(regularization) / rows.count_distinct(), self._n_classes)
        loss = self.make_loss(design, rows, n_threads or self._options.n_threads)
        weights = fit_by_batches(
            loss,
            penalties,
            None,
            constant.ravel() if start is None else start,
            np.argsort(rows.keys, kind="stable"),
            np.random.default_rng(self._options.seed),
            Schedule(_BATCH, n_steps, _RATE, 0.25),
        )
        loss.take(None)

        def measure(point: FloatArray) -> float:
            return loss.measure(point) + 0.5 * float(penalties @ point**2)

        return constant.ravel() if measure(weights) > measure(constant.ravel()) else weights

    def choose(self) -> Choice:
        """The penalty of least loss on a third of the rows, which the fit does not see; or what the options ask for."""
        if self._options.regularization is not None:
            return Choice.without_search(self._options.regularization)
        chosen, weights = self.choose_on_third(_CHOICE_ROWS, _LADDER, (), from_last=False)
        if not weights.size:
            return chosen
        outside = draw_third(self._binned, _CHOICE_ROWS)[1]
        scores = self.score(self.design(True), self._binned.take(outside), weights)
        return replace(chosen, rows=outside, scores=scores)

    def calibrate(self, design: Any, weights: FloatArray, chosen: Choice, table: TrainingTable) -> tuple[float, ...]:
        """As for models without groups, by rows left out where there are such."""
        if self._n_classes == 2:
            return Trainer.calibrate(self, design, weights, chosen, table)
        return super().calibrate(design, weights, chosen, table)


def _build_model(design: ProductDesign, by_class: FloatArray, n_features: int) -> AdditiveEnsemble:
    if by_class.shape[0] > 2:
        return build_class_model(design.list_functions(by_class), by_class[:, 0], n_features)
    lead = by_class[1] - by_class[0]
    return build_lead_model(design.read_lead(lead), float(lead[0]), n_features)
