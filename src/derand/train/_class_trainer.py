"""Additive models of several classes, trained for their certificate: a function per column and class.

Owns which loss is fitted (what the threat leaves of every duel, or its first order where columns or duels are many),
how large tables are fitted, and the way from weights to a model. Must not know how losses are computed, how
certificates are made, or scikit-learn.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from derand._core.arrays import FloatArray, IntArray
from derand.noise import Noise
from derand.perturbation import Perturbation
from derand.threat import Threat
from derand.train.additive import (
    AdditiveOptions,
    AdditiveTraining,
    Choice,
    Trainer,
    bin_rows,
    choose_bins,
    find_groups,
    tell_of_fit,
    warn_of_idle_numbers,
)
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design, design_model, leave_in_place
from derand.train.design.groups import group_columns
from derand.train.design.shapes import build_class_model, read_functions
from derand.train.losses.margin import Stage, WeightFit
from derand.train.losses.softmax import ClassPrecondition, DuelLoss, SoftmaxLoss, Steepness
from derand.train.optimisers.batches import fit_by_batches
from derand.train.selection.folds import draw_third, share_codes, spread_rows
from derand.train.selection.importance import measure_importances
from derand.train.selection.penalties import Ladder, Trial, search_penalty
from derand.train.table import TrainingTable

_MANY_COLUMNS = 16  # numerical ones: moving each a little is then what costs a margin most
_MANY_DUELS = 400  # pairs of classes times such columns, from which on duels take too long
_MANY_WINDOWS = 10_000  # the same where columns move independently of each other, which is quicker
_MUCH = 30_000_000  # rows times columns times classes from which on a fit goes by batches
_LADDER = Ladder((1.0, 0.1, 0.01), above=10.0)
_QUICK_ROWS = 6_000  # of large tables, on which the penalty is chosen
_QUICK_STEPS = Stage(0.0, 40, 1e-4)
_IMPORTANCE_ROWS = 20_000
_LARGEST_SLOPE = 8.0
_LEAST_SHARE = 1e-6


def train_classes(
    table: TrainingTable, noise: Noise | None, threat: Threat, options: AdditiveOptions
) -> AdditiveTraining:
    """Train an additive model of more than two classes; parameters are those of `train_additive`."""
    if any(options.monotone.values()):
        raise ValueError(
            f"`monotone` must be empty for {table.n_classes} classes, got columns {sorted(options.monotone)}: a "
            "function per class has no one direction. Leave it out, or train two classes against each other."
        )
    binned = bin_rows(table, options, choose_bins(table, options))
    groups = options.groups
    if groups is None:
        groups = find_groups(ClassTrainer(binned, table.n_features, noise, threat, options, table.n_classes), binned)
    if groups:
        from derand.train._product_trainer import prefers_products, train_products

        single = ClassTrainer(binned, table.n_features, noise, threat, options, table.n_classes)
        if noise is not None and (single.goes_by_steepness or prefers_products(table, noise, threat, options, groups)):
            return train_products(table, noise, threat, options, groups)
        binned = group_columns(binned, groups, options.n_cuts)
    trainer = ClassTrainer(binned, table.n_features, noise, threat, options, table.n_classes)
    with threadpool_limits(1, user_api="blas"):  # its threads wait busily between calls this small
        chosen = trainer.choose()
        tell_of_fit(table, chosen)
        design = trainer.design(chosen.ramp)
        weights = trainer.fit(design, binned, chosen.regularization)
        warnings = trainer.check(design, weights, chosen)
        calibration = trainer.calibrate(design, weights, chosen, table)
    by_class = weights.reshape(table.n_classes, -1)
    by_class = by_class - by_class.mean(axis=0)  # what all classes share decides nothing
    some = binned.take(spread_rows(binned, _IMPORTANCE_ROWS))
    importances = measure_importances(design, by_class, some, table.n_features)
    return AdditiveTraining(
        build_class_model(read_functions(design, by_class), by_class[:, 0], table.n_features),
        chosen.regularization,
        chosen.path,
        importances,
        calibration,
        warnings or warn_of_idle_numbers(table, importances, options.radius),
        groups,
    )


class ClassTrainer(Trainer):
    """Fits models of several classes to binned rows; weights are flat, those of class 0 first."""

    def __init__(
        self,
        binned: BinnedTable,
        n_features: int,
        noise: Noise | None,
        threat: Threat,
        options: AdditiveOptions,
        n_classes: int,
    ) -> None:
        super().__init__(binned, n_features, noise, threat, options)
        self._n_classes = n_classes
        self._by_steepness = self._prefer_steepness()
        self._steepness: dict[int, Steepness] = {}
        self._is_large = binned.codes.size * n_classes > _MUCH

    def _prefer_steepness(self) -> bool:
        """Whether margins are known well enough by how steep leads are, and duels would take too long."""
        threat, n_numbers = self._threat, len(self._binned.numbers)
        boxed = threat.norm is None or bool(threat.limits or threat.domain)
        swapped = threat.l0 > 0 and bool(self._binned.categories)
        if self._noise is None or self._options.radius == 0 or boxed or swapped:
            return False
        work = self._n_classes * (self._n_classes - 1) // 2 * n_numbers
        norm = threat.ball_norm
        most = _MANY_DUELS if norm is not None and np.isfinite(norm) else _MANY_WINDOWS
        return n_numbers >= _MANY_COLUMNS and work >= most

    @property
    def goes_by_steepness(self) -> bool:
        """Whether leads are trained to first order."""
        return self._by_steepness

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """A score per class."""
        return (self._n_classes,)

    def design(self, with_ramp: bool, radius: float | None = None) -> Design:
        """The columns of the model; where steepness stands for a change, values stay in place."""
        if not self._by_steepness:
            return super().design(with_ramp, radius)
        asked = self._options.radius if radius is None else radius
        if (with_ramp, asked) not in self._designs:
            self._designs[with_ramp, asked] = design_model(
                self._binned,
                self._noise,
                self._threat,
                0.0,
                n_cuts=self._n_cuts,
                with_ramp=with_ramp,
                monotone={},
                n_features=self._n_features,
                deduction=self.deduction,
            )
        found = self._designs[with_ramp, asked]
        if id(found) not in self._steepness:
            own = Perturbation.of(self._threat, self._n_features, ())
            norm, noise = cast(float, own.norm), cast(Noise, self._noise)
            self._steepness[id(found)] = Steepness(found, noise, norm, asked, own.units, self._threat.frozen)
        return found

    def make_loss(self, design: Design, rows: BinnedTable, n_threads: int = 1) -> Any:
        """What weights lose on some rows: by steepness, by duels, or as the rows are."""
        steepness = self._steepness.get(id(design))
        if steepness is not None or design.is_plain:
            return SoftmaxLoss(design, rows, self._n_classes, steepness, n_threads)
        return DuelLoss(design, rows, self._n_classes, n_threads)

    def score(self, design: Design, rows: BinnedTable, weights: FloatArray) -> FloatArray:
        """Score of each row and class, without offsets that all classes share."""
        return SoftmaxLoss(leave_in_place(design), rows, self._n_classes).score(weights)

    def prepare_fit(
        self, design: Design, rows: BinnedTable, regularization: float, n_threads: int
    ) -> tuple[WeightFit, FloatArray]:
        """What fits weights to some rows, and the weights of the best constant answer."""
        shares, penalties, change = self._prepare(design, rows, regularization)
        constant = np.zeros((self._n_classes, penalties.size))
        constant[:, 0] = np.log(shares) - np.log(shares).mean()
        loss = self.make_loss(design, rows, n_threads)
        return WeightFit(loss, np.tile(penalties, self._n_classes), change), constant.ravel()

    def _prepare(
        self, design: Design, rows: BinnedTable, regularization: float
    ) -> tuple[FloatArray, FloatArray, ClassPrecondition]:
        """Shares of the classes, penalties of one class, and the change of variables."""
        shares = np.bincount(rows.target, weights=rows.weights, minlength=self._n_classes) / rows.weights.sum()
        shares = np.maximum(shares, _LEAST_SHARE)
        penalties = design.list_penalties(regularization) / rows.count_distinct()
        return shares, penalties, ClassPrecondition(design, penalties, share_codes(design, rows), shares)

    def fit(
        self,
        design: Design,
        rows: BinnedTable,
        regularization: float,
        start: FloatArray | None = None,
        stages: tuple[Stage, ...] | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Weights for some rows; those of large tables go by batches of rows."""
        steepness = self._steepness.get(id(design))
        large = rows.codes.size * self._n_classes > _MUCH
        if stages is not None or not large or not (steepness is not None or design.is_plain):
            return super().fit(design, rows, regularization, start, stages, n_threads)
        shares, penalties, change = self._prepare(design, rows, regularization)
        constant = np.zeros((self._n_classes, penalties.size))
        constant[:, 0] = np.log(shares) - np.log(shares).mean()
        loss = SoftmaxLoss(
            design, rows, self._n_classes, steepness, n_threads or self._options.n_threads, precision=np.float32
        )
        order = np.argsort(rows.keys, kind="stable")
        begin = constant.ravel() if start is None else start
        return fit_by_batches(
            loss, np.tile(penalties, self._n_classes), change, begin, order, np.random.default_rng(self._options.seed)
        )

    def choose(self) -> Choice:
        """The penalty of least loss on rows left out; of large tables on a third of a sample, and with a ramp."""
        if self._options.regularization is not None or not (self._is_large and self._by_steepness):
            return super().choose()
        chosen, _ = self.choose_on_third(_QUICK_ROWS, _LADDER, (_QUICK_STEPS,))
        return chosen

    def choose_on_third(
        self, n_rows: int, ladder: Ladder, stages: tuple[Stage, ...], *, from_last: bool = True
    ) -> tuple[Choice, FloatArray]:
        """The penalty of least loss on a third of some rows, which the fit does not see, and the weights of that fit.

        `from_last`: whether each fit starts from the one before.
        """
        inside, outside = draw_third(self._binned, n_rows)
        if not inside.size or not outside.size:
            return Choice.without_search(None), np.empty(0)
        kept, left, design = self._binned.take(inside), self._binned.take(outside), self.design(True)

        def attempt(regularization: float, ramp: bool, before: Trial | None) -> Trial:
            start = before.fitted if before is not None and from_last else None
            weights = self.fit(design, kept, regularization, start, stages)
            loss = self.make_loss(design, left, self._options.n_threads).measure(weights)
            return Trial(regularization, ramp, np.array([loss]), weights)

        best, path = search_penalty(attempt, ladder)
        return Choice(best.regularization, True, path), best.fitted

    def calibrate(self, design: Design, weights: FloatArray, chosen: Choice, table: TrainingTable) -> tuple[float, ...]:
        """Slope and a shift per class, by rows left out where there are such; shifts are 0 but for class weights."""
        rows = spread_rows(self._binned, _IMPORTANCE_ROWS) if chosen.rows is None else chosen.rows
        weighted = bool((table.class_weight != table.class_weight[0]).any())
        is_plain = design.is_plain and id(design) not in self._steepness
        if chosen.scores is None and is_plain and not weighted:
            return (1.0, *[0.0] * self._n_classes)
        scores = self.score(design, self._binned.take(rows), weights) if chosen.scores is None else chosen.scores
        sample = np.ones(rows.size) if table.sample_weight is None else table.sample_weight[rows]
        return _fit_softmax(scores, table.target[rows].astype(np.int64), sample / sample.sum(), weighted)


def _fit_softmax(scores: FloatArray, target: IntArray, weights: FloatArray, with_shifts: bool) -> tuple[float, ...]:
    """Slope and shifts of the most likely probabilities, the softmax of `slope * scores + shifts`."""
    n_rows, n_classes = scores.shape
    every = np.arange(n_rows)

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        logits = point[0] * scores + point[1:]
        logits -= logsumexp(logits, axis=1, keepdims=True)
        value = -float(weights @ logits[every, target])
        slopes = np.exp(logits)
        slopes[every, target] -= 1.0
        slopes *= weights[:, None]
        by_shift = slopes.sum(axis=0) if with_shifts else np.zeros(n_classes)
        return value, np.concatenate([[(slopes * scores).sum()], by_shift])

    bounds = [(1 / _LARGEST_SLOPE, _LARGEST_SLOPE), *[(None, None) if with_shifts else (0.0, 0.0)] * n_classes]
    start = np.zeros(n_classes + 1)
    start[0] = 1.0
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12})
    return tuple(found.x.tolist())
