"""Additive models trained for their certificate: a function per column, fitted to the margin that a threat leaves.

Owns the way from a table to a model: bins, the choice of the penalty by cross-validation, the fit, the check for
collapse, the calibration. Must not know how margins are computed, how certificates are made, or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell
from derand._core.threads import run_blocks
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.threat import Threat
from derand.train.bins import MAX_BINS, BinnedTable, NumberBins, bin_table
from derand.train.design.columns import Design, NumberColumn, design_model, leave_in_place
from derand.train.design.groups import GroupBins, design_group, group_columns
from derand.train.design.shapes import build_model
from derand.train.losses.margin import MarginLoss, Precondition, Stage, WeightFit
from derand.train.selection.folds import FEW_ROWS, draw_folds, share_codes, spread_rows
from derand.train.selection.importance import measure_importances
from derand.train.selection.interactions import find_pairs
from derand.train.selection.penalties import Ladder, SelectionPath, Trial, search_penalty
from derand.train.selection.screening import WIDE_COLUMNS
from derand.train.selection.shrinking import shrink_categories
from derand.train.table import TrainingTable

LADDER = Ladder((10.0, 1.0, 0.1, 0.01, 0.001), refines=True, ramps=True)
_FEW_BINS = 96  # of columns that are moved, in tables of few rows
_FEWEST_BINS, _MOST_BINS = 32, 25_000  # of each such column, and of all together
_FEW_CUTS, _MANY_CUTS, _MANY_ROWS = 32, 128, 10_000
_MOST_WEIGHTS = 12_000  # of all columns together, where the number of cuts is free
_DEDUCTING_COLUMNS = 50  # numerical ones from which on a vote's second proof counts; with few of them the first does
_CHOICE_ROWS = 20_000  # rows on which the penalty is chosen
LARGE = 60_000
"""Rows of which a sample is fitted first."""
_IDLE = 1e-3
"""Share of all importances below which numbers do not count."""
_CHECKED_ROWS = 5_000
_LARGEST_SLOPE = 8.0

_QUICK = (Stage(0.1, 20, 1e-5), Stage(0.03, 30, 1e-5), Stage(0.01, 30, 1e-5))
_THOROUGH = (
    Stage(0.1, 40, 1e-6),
    Stage(0.03, 40, 1e-6),
    Stage(0.01, 40, 1e-6),
    Stage(0.003, 60, 1e-7),
    Stage(0.003, 60, 1e-7),
    Stage(0.001, 60, 1e-7),
)
_SHARP = _THOROUGH[3:]
_QUICK_PLAIN = (Stage(0.0, 100, 1e-5),)
_PLAIN = (Stage(0.0, 400, 1e-8),)
_LARGE_PLAIN = (Stage(0.0, 60, 1e-6),)


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
    wide_columns: int = WIDE_COLUMNS
    """Numerical columns from which on some are chosen before they are fitted."""
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveTraining:
    """A trained additive model.

    Attributes
    ----------
    model : AdditiveEnsemble
        Its score divided by its levels is the logarithm of odds; of more than two classes each has such a score.
    regularization : float
    path : SelectionPath
    importances : array of shape (n_features,)
        Mean size of what each column adds, as a share of all.
    calibration : tuple of float
        (slope, shift): what turns the distance of the score from its threshold into the logarithm of odds. Of more than
        two classes (slope, shift of class 0, shift of class 1, ...): slope times the score of each class, offset
        included, over the levels, and its shift, are the logarithms of probabilities, up to what all of them share.
    warnings : tuple of str
    groups : tuple of tuples of int
        Columns that were trained together.
    """

    model: AdditiveEnsemble
    regularization: float
    path: SelectionPath
    importances: FloatArray
    calibration: tuple[float, ...]
    warnings: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...] = ()


def train_additive(
    table: TrainingTable, noise: Noise | None, threat: Threat, options: AdditiveOptions
) -> AdditiveTraining:
    """Train an additive model on the margin that a threat leaves.

    `noise`: under which the model is certified by its mean; None for the model as it is; `threat`: resolved, with
    columns by number, of norm 1, 2, inf or None.

    Examples
    --------
    >>> table = TrainingTable(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1], dtype=np.uint8))
    >>> options = AdditiveOptions(radius=0.5, regularization=0.1)
    >>> training = train_additive(table, None, Threat(norm=2), options)
    >>> (training.model.score([[0.5], [4.5]]) > training.model.threshold).tolist()
    [False, True]
    """
    if table.n_classes > 2:
        from derand.train._class_trainer import train_classes

        return train_classes(table, noise, threat, options)
    binned = bin_rows(table, options, choose_bins(table, options))
    groups = options.groups
    if groups is None:
        tell("training: looking for columns that interact")
        groups = find_groups(Trainer(binned, table.n_features, noise, threat, options), binned)
    from derand.train._product_trainer import prefers_products, train_products

    if noise is not None and prefers_products(table, noise, threat, options, groups):
        return train_products(table, noise, threat, options, groups)
    binned = group_columns(binned, groups, options.n_cuts)
    with threadpool_limits(1, user_api="blas"):  # its threads wait busily between calls this small
        trainer, binned = prepare_trainer(table, binned, noise, threat, options, groups)
        chosen = trainer.choose()
        tell_of_fit(table, chosen)
        design = trainer.design(chosen.ramp)
        weights = trainer.fit_all(design, chosen.regularization)
        if trainer.has_collapsed(design, weights):
            tell("training: nothing was better than the constant answer; once more, from what no change can move")
            trainer.is_patient = True
            chosen = trainer.choose()
            design = trainer.design(chosen.ramp)
            weights = trainer.fit_all(design, chosen.regularization)
        warnings = trainer.check(design, weights, chosen)
    model = build_model(design, weights, table.n_features)
    some = binned.take(spread_rows(binned, _CHOICE_ROWS))
    importances = measure_importances(design, weights, some, table.n_features)
    return AdditiveTraining(
        model,
        chosen.regularization,
        chosen.path,
        importances,
        trainer.calibrate(design, weights, chosen, table),
        warnings or warn_of_idle_numbers(table, importances, options.radius),
        groups,
    )


def prepare_trainer(
    table: TrainingTable,
    binned: BinnedTable,
    noise: Noise | None,
    threat: Threat,
    options: AdditiveOptions,
    groups: tuple[tuple[int, ...], ...],
) -> tuple[Trainer, BinnedTable]:
    """What trains, and the rows that it trains on: of wide tables without columns that say nothing."""
    some = None
    if not groups and len(binned.numbers) >= options.wide_columns:
        from derand.train._wide import narrow_table

        tell(f"training: choosing among {len(binned.numbers):,} columns")
        some = narrow_table(binned, lambda rows: Trainer(rows, table.n_features, noise, threat, options))
    if some is None:
        return make_trainer(table, binned, noise, threat, options), binned
    trainer = make_trainer(table, some, noise, threat, options)
    trainer.wide = binned
    return trainer, some


def make_trainer(
    table: TrainingTable, binned: BinnedTable, noise: Noise | None, threat: Threat, options: AdditiveOptions
) -> Trainer:
    """What trains on the rows of a table; where they are a sample of rows elsewhere, all of those are fitted."""
    from derand.train._shared import SharedTable, SharedTrainer

    if isinstance(table, SharedTable):
        return SharedTrainer(table, binned, noise, threat, options)
    return Trainer(binned, table.n_features, noise, threat, options)


def tell_of_fit(table: TrainingTable, chosen: Choice) -> None:
    """Tell that the model itself is being fitted."""
    tell(f"training: fitting {table.target.size:,} rows at penalty {chosen.regularization:.3g}")


def find_groups(trainer: Trainer, binned: BinnedTable) -> tuple[tuple[int, ...], ...]:
    """Pairs of columns that say more together than each by itself, of what an additive model leaves unexplained."""
    rows = binned.take(spread_rows(binned, _CHOICE_ROWS))
    design = leave_in_place(trainer.design(False, 0.0))
    with threadpool_limits(1, user_api="blas"):
        weights = trainer.fit(design, rows, 0.1, None, _QUICK_PLAIN)
    scores = trainer.score(design, rows, weights)
    if scores.ndim == 1:
        probability, target = expit(scores)[:, None], rows.target[:, None]
    else:
        probability, target = softmax(scores, axis=1), rows.target[:, None] == np.arange(scores.shape[1])
    return find_pairs(rows, target - probability, probability * (1 - probability))


def warn_of_idle_numbers(table: TrainingTable, importances: FloatArray, radius: float) -> tuple[str, ...]:
    """Say so where the radius leaves nothing of the numbers, and the model goes by its categories alone."""
    if not radius or not table.numerical.size or float(importances[table.numerical].sum()) >= _IDLE:
        return ()
    if not importances.any():
        return ()
    return (
        f"At radius {radius:g} no numerical column counts any more: the model goes by its categories alone, so that "
        "radii are infinite and say little. Train with a smaller radius for a model that reads its numbers.",
    )


def bin_rows(table: TrainingTable, options: AdditiveOptions, n_bins: int = MAX_BINS) -> BinnedTable:
    """The rows in bins, with penalties for categories."""
    binned = bin_table(table, n_bins=n_bins, seed=options.seed, n_threads=options.n_threads)
    return shrink_categories(binned, table, options.least_rows)


def choose_bins(table: TrainingTable, options: AdditiveOptions) -> int:
    """Bins of a column: fewer where values are moved from each to many places, and where there are many columns."""
    if options.radius == 0:
        return MAX_BINS
    most = _FEW_BINS if table.target.size <= _MANY_ROWS else MAX_BINS
    return max(_FEWEST_BINS, min(most, _MOST_BINS // max(table.numerical.size, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The penalty that was chosen, with or without a ramp; scores of rows left out, where there were folds."""

    regularization: float
    ramp: bool
    path: SelectionPath
    rows: IntArray | None = None
    scores: FloatArray | None = None

    @classmethod
    def without_search(cls, asked: float | None) -> Choice:
        """The penalty that the options ask for; 1 where they ask for none, and rows are too few to search."""
        return cls(1.0 if asked is None else asked, True, SelectionPath.of([]))


class Trainer:
    """Fits models of one kind to binned rows: what noise, threat and options ask for."""

    def __init__(
        self, binned: BinnedTable, n_features: int, noise: Noise | None, threat: Threat, options: AdditiveOptions
    ) -> None:
        self._binned, self._n_features = binned, n_features
        self._noise, self._threat, self._options = noise, threat, options
        self._n_distinct = binned.count_distinct()
        self._n_cuts = options.n_cuts or self._find_cuts()
        self._designs: dict[tuple[bool, float], Design] = {}
        self.is_patient = False
        """Whether every fit is begun from a second place as well, and the better one is taken."""
        self.wide: BinnedTable | None = None
        """The rows with all columns, where some were chosen: every fold chooses its own."""

    def _find_cuts(self) -> int:
        wanted = _MANY_CUTS if self._n_distinct > _MANY_ROWS else _FEW_CUTS
        return max(4, min(wanted, _MOST_WEIGHTS // max(len(self._binned.numbers), 1)))

    def design(self, with_ramp: bool, radius: float | None = None) -> Design:
        """The columns of the model, for the radius that is asked for or another one."""
        key = (with_ramp, self._options.radius if radius is None else radius)
        if key not in self._designs:
            self._designs[key] = design_model(
                self._binned,
                self._noise,
                self._threat,
                key[1],
                n_cuts=self._n_cuts,
                with_ramp=with_ramp,
                monotone=self._options.monotone,
                n_features=self._n_features,
                deduction=self.deduction,
                join=lambda bins: self._join(bins, key[1]),
            )
        return self._designs[key]

    @property
    def deduction(self) -> float:
        """What is deducted from margins, as a multiple of the widest range; nothing where columns are few."""
        return self._options.deduction if len(self._binned.numbers) >= _DEDUCTING_COLUMNS else 0.0

    def _join(self, bins: NumberBins, radius: float) -> NumberColumn | None:
        """The joint column of a group."""
        if not isinstance(bins, GroupBins):
            return None
        return design_group(bins, self._threat, radius, self._noise, self._options.n_cuts, self._n_features)

    def fit_all(self, design: Design, regularization: float) -> FloatArray:
        """Weights for all rows."""
        return self.fit(design, self._binned, regularization)

    def fit(
        self,
        design: Design,
        rows: BinnedTable,
        regularization: float,
        start: FloatArray | None = None,
        stages: tuple[Stage, ...] | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Weights for some rows; large tables begin with those of a sample."""
        n_rows = rows.target.size
        if stages is None and n_rows > LARGE:
            start, stages = self.begin_large(design, rows, regularization, start)
        fit, constant = self.prepare_fit(design, rows, regularization, n_threads or self._options.n_threads)
        stages = stages or (_PLAIN if design.is_plain else _THOROUGH)
        weights = fit.fit_anew(constant, stages) if start is None else fit.fit(start, stages)
        return self.compare(fit, design, constant, weights, lambda: self._fit_categories(design, rows, regularization))

    def begin_large(
        self, design: Design, rows: BinnedTable, regularization: float, start: FloatArray | None = None
    ) -> tuple[FloatArray, tuple[Stage, ...]]:
        """Weights of a sample, from which on large tables are fitted, and in which stages."""
        some = rows.take(spread_rows(rows, _CHOICE_ROWS))
        stages = _LARGE_PLAIN if design.is_plain else _THOROUGH[2:5]
        return self.fit(design, some, regularization, start), stages

    def compare(
        self,
        fit: WeightFit,
        design: Design,
        constant: FloatArray,
        weights: FloatArray,
        find_still: Callable[[], FloatArray],
    ) -> FloatArray:
        """What is best of the weights that were fitted, the constant answer and, if patient, another start."""
        # where no function pays at this radius, the way to none of them is long: the end of it is known
        is_worse = not design.is_plain and fit.measure(weights) > fit.measure(constant)
        if self.is_patient and not design.is_plain:
            still = find_still()
            return min(constant, weights, still, fit.fit(still, _SHARP), key=fit.measure)
        return constant if is_worse else weights

    def _fit_categories(self, design: Design, rows: BinnedTable, regularization: float) -> FloatArray:
        """Weights of categories as they are without changes, and none of numbers: a start from which numbers may join.

        From the constant answer on, blurred minima can lead to worse than it; from here on sharp ones do not.
        """
        plain, constant = self.prepare_fit(leave_in_place(design), rows, regularization, 1)
        weights = plain.fit(constant, _QUICK_PLAIN)
        weights[1 : int(design.starts[len(design.numbers)])] = 0.0
        return weights

    def has_collapsed(self, design: Design, weights: FloatArray) -> bool:
        """Whether a model that is trained against changes is a constant."""
        return not design.is_plain and not weights[1:].any()

    def prepare_fit(
        self, design: Design, rows: BinnedTable, regularization: float, n_threads: int
    ) -> tuple[WeightFit, FloatArray]:
        """What fits weights to some rows, and the weights of the best constant answer."""
        rate = float(np.clip(rows.weights @ rows.target / rows.weights.sum(), 1e-6, 1 - 1e-6))
        penalties = design.list_penalties(regularization) / rows.count_distinct()
        change = Precondition(design, penalties, share_codes(design, rows), rate)
        constant = np.zeros(penalties.size)
        constant[0] = np.log(rate / (1 - rate))
        return WeightFit(self.make_loss(design, rows, n_threads), penalties, change), constant

    def make_loss(self, design: Design, rows: BinnedTable, n_threads: int = 1) -> Any:
        """What the weights of a design lose on some rows."""
        return MarginLoss(design, rows, n_threads)

    def score(self, design: Design, rows: BinnedTable, weights: FloatArray) -> FloatArray:
        """Logarithm of odds of each row as it is."""
        margins = MarginLoss(leave_in_place(design), rows).find_margins(weights)
        return np.asarray((2.0 * rows.target - 1.0) * margins)

    def choose(self) -> Choice:
        """The penalty of least loss on rows left out, and whether a ramp helps; or what the options ask for."""
        asked = self._options.regularization
        rows = spread_rows(self._binned, _CHOICE_ROWS)
        folds = draw_folds(self._binned.take(rows))
        if asked is not None or folds is None:
            return Choice.without_search(asked)
        parts = self.part_folds(rows, folds)

        def attempt(regularization: float, ramp: bool, before: Trial | None) -> Trial:
            return self._try(parts, folds, regularization, ramp, before)

        best, path = search_penalty(attempt, LADDER)
        return Choice(best.regularization, best.ramp, path, rows, best.scores)

    def part_folds(self, rows: IntArray, folds: IntArray) -> list[tuple[Trainer, BinnedTable]]:
        """What is fitted without each fold: by whom, and the rows with the columns that it looks at."""
        if self.wide is None:
            return [(self, self._binned.take(rows))] * (int(folds.max()) + 1)
        from derand.train._wide import narrow_folds

        return narrow_folds(self.wide.take(rows), folds, self._make_another)

    def _make_another(self, binned: BinnedTable) -> Trainer:
        """What trains on other columns, or rows, in the same way."""
        other = Trainer(binned, self._n_features, self._noise, self._threat, self._options)
        other.is_patient = self.is_patient
        return other

    def _try(
        self,
        parts: Sequence[tuple[Trainer, BinnedTable]],
        folds: IntArray,
        regularization: float,
        ramp: bool,
        before: Trial | None,
    ) -> Trial:
        """Fit on all folds but one, measure on that one, for each of them; start from what was tried before."""
        n_folds = len(parts)
        fitted: list[Any] = [None] * n_folds
        losses, scores = np.empty(n_folds), np.empty((folds.size, *self.scores_shape))

        def fit_fold(block: slice) -> None:
            fold = block.start
            trainer, rows = parts[fold]
            design = trainer.design(ramp)
            stages = _QUICK_PLAIN if design.is_plain else _QUICK if before is None else _QUICK[1:]
            inside, outside = rows.take(np.flatnonzero(folds != fold)), np.flatnonzero(folds == fold)
            start = None if before is None else before.fitted[fold]
            weights = trainer.fit(design, inside, regularization, start, stages, n_threads=1)
            left = rows.take(outside)
            losses[fold] = trainer.make_loss(design, left).measure(weights)
            scores[outside] = trainer.score(design, left, weights)
            fitted[fold] = weights

        # short loops would hand the interpreter's lock to and fro
        run_blocks(fit_fold, n_folds, 1, self._options.n_threads if folds.size > FEW_ROWS else 1)
        return Trial(regularization, ramp, losses, fitted, scores)

    def check(self, design: Design, weights: FloatArray, chosen: Choice) -> tuple[str, ...]:
        """Say so where certified accuracy does not beat a constant answer, and at which radius it would."""
        if self._options.radius == 0 and self._threat.l0 == 0:
            return ()
        some = self._binned.take(spread_rows(self._binned, _CHECKED_ROWS))
        share = self._measure_majority(some)
        certified = self._measure_certified(design, weights, some)
        if certified > share:
            return ()
        n_seen = some.target.size
        whose = "the" if n_seen == self._binned.target.size else f"a sample of {n_seen:,}"
        return (
            f"{self._name_threat()} the model certifies {100 * certified:.1f} % of {whose} training rows, no "
            f"more than the constant answer, which is right on {100 * share:.1f} %: it has collapsed, training found "
            f"nothing better. {self._advise(chosen, some, share)}",
        )

    def _name_threat(self) -> str:
        changes = f"{self._threat.l0} changed {'category' if self._threat.l0 == 1 else 'categories'}"
        if self._options.radius == 0:
            return f"Against {changes}"
        return f"At radius {self._options.radius:g}" + (f" and against {changes}" if self._threat.l0 else "")

    def _advise(self, chosen: Choice, some: BinnedTable, share: float) -> str:
        """What to ask for instead: a smaller radius at which the model beats the constant answer, or fewer changes."""
        good, bad = 0.0, self._options.radius
        for _ in range(6 if bad else 0):
            radius = (good + bad) / 2
            smaller = self.design(chosen.ramp, radius)
            weights = self.fit(smaller, some, chosen.regularization, None, _QUICK)
            beats = self._measure_certified(smaller, weights, some) > share
            good, bad = (radius, bad) if beats else (good, radius)
        if good:
            return (
                f"Of smaller radii that were tried, {good:.2g} is the largest at which it did better: train with that "
                "radius or less, or compare radii by `derand tune` (`derand.tune`)."
            )
        if self._threat.l0:
            return "No radius that was tried did better: let fewer categories change (`l0`), or freeze some columns."
        return "No radius that was tried did better: compare smaller ones by `derand tune` (`derand.tune`)."

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """Of the scores of one row."""
        return ()

    @staticmethod
    def _measure_majority(rows: BinnedTable) -> float:
        shares = np.bincount(rows.target, weights=rows.weights, minlength=2)
        return float(shares.max() / shares.sum())

    def _measure_certified(self, design: Design, weights: FloatArray, rows: BinnedTable) -> float:
        margins = self.make_loss(design, rows).find_margins(weights)
        return float(rows.weights @ (margins > 0) / rows.weights.sum())

    def calibrate(self, design: Design, weights: FloatArray, chosen: Choice, table: TrainingTable) -> tuple[float, ...]:
        """Slope and shift of the logarithm of odds, by rows left out where there are such; as it is, where it fits.

        The shift is 0 but for class weights: without them a row is of the label that is more likely.
        """
        rows = spread_rows(self._binned, _CHOICE_ROWS) if chosen.rows is None else chosen.rows
        weighted = bool((table.class_weight != table.class_weight[0]).any())
        if chosen.scores is None and design.is_plain and not weighted:
            return 1.0, 0.0
        scores = self.score(design, self._binned.take(rows), weights) if chosen.scores is None else chosen.scores
        sample = np.ones(rows.size) if table.sample_weight is None else table.sample_weight[rows]
        return _fit_logistic(scores, table.target[rows], sample, weighted)


def _fit_logistic(
    scores: FloatArray, target: NDArray[np.uint8], weights: FloatArray, with_shift: bool
) -> tuple[float, float]:
    """Slope and shift of the most likely logarithms of odds `slope * score + shift`."""
    sides = 2.0 * target - 1.0
    total = weights.sum()

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        margins = sides * (point[0] * scores + point[1])
        slopes = -weights * sides * expit(-margins) / total
        value = float(weights @ np.logaddexp(0, -margins) / total)
        return value, np.array([slopes @ scores, slopes.sum() if with_shift else 0.0])

    bounds = [(1 / _LARGEST_SLOPE, _LARGEST_SLOPE), (None, None) if with_shift else (0, 0)]
    found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12})
    return float(found.x[0]), float(found.x[1])
