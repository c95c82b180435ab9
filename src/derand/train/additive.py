"""Additive models of classes, trained for their certificate: a function per column, fitted to what a threat leaves.

Owns the way from a table to a model: bins, groups, the strategy, the fit, the check for collapse, the calibration. Must
not know how margins are computed, how certificates are made, or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from derand._core.arrays import FloatArray
from derand._core.progress import tell
from derand._core.threads import run_blocks
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.threat import Threat
from derand.train import strategies
from derand.train.bins import MAX_BINS, BinnedTable, bin_table
from derand.train.design.columns import leave_in_place
from derand.train.design.model import group_rows, is_changed
from derand.train.formulations import FORMULATIONS, AdditiveOptions, InParts, Problem
from derand.train.selection.folds import draw_folds, spread_rows
from derand.train.selection.importance import measure_importances
from derand.train.selection.penalties import SelectionPath
from derand.train.selection.shrinking import shrink_categories
from derand.train.strategies import Sizes, Strategy, TrainingRecord, choose_strategy
from derand.train.table import TrainingTable
from derand.train.trainer import CHECKED_ROWS, Choice, Trainer, tell_of_fit

_IDLE = 1e-3
"""Share of all importances below which a column does not count."""
_MOST_NAMED_OF, _NAMED = 100, 8
"""Columns of a table whose columns are named one by one, and how many of them."""
_NO_NUMBERS = "no numerical column counts any more: the model uses only its categories."
_LEAST_AUC = 0.005
"""That columns which are given up must cost to be named."""


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
    record : TrainingRecord
        Which strategy was taken, and why.
    """

    model: AdditiveEnsemble
    regularization: float
    path: SelectionPath
    importances: FloatArray
    calibration: tuple[float, ...]
    warnings: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    record: TrainingRecord


def train_additive(
    table: TrainingTable, noise: Noise | None, threat: Threat, options: AdditiveOptions
) -> AdditiveTraining:
    """Train an additive model on the margin that a threat leaves.

    `noise`: under which the model is certified by its mean; None for the model as it is; `threat`: resolved, with
    columns by number, of norm 1, 2, inf or None.

    Examples
    --------
    >>> import numpy as np
    >>> table = TrainingTable(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1], dtype=np.uint8))
    >>> options = AdditiveOptions(radius=0.5, regularization=0.1)
    >>> training = train_additive(table, None, Threat(norm=2), options)
    >>> (training.model.score([[0.5], [4.5]]) > training.model.threshold).tolist()
    [False, True]
    """
    if table.n_classes > 2 and any(options.monotone.values()):
        raise ValueError(
            f"`monotone` must be empty for {table.n_classes} classes, got columns {sorted(options.monotone)}: a "
            "function per class has no one direction. Leave it out, or train two classes against each other."
        )
    is_window = noise is None and threat.ball_norm == np.inf  # bins are merged by what they reach
    n_bins = MAX_BINS
    if not is_window:
        n_bins = strategies.count_bins(table.target.size, table.numerical.size, options.radius, MAX_BINS)
    binned = bin_rows(table, options, n_bins)
    problem = Problem(noise, threat, options, table.n_features, table.n_classes)
    with threadpool_limits(1, user_api="blas"):  # its threads wait busily between calls this small
        groups = options.groups
        if groups is None:
            tell("training: looking for columns that interact")
            plain = Strategy("pairwise" if table.n_classes > 2 else "margins")
            groups = Trainer.of(problem, binned, plain).select_groups()
        problem = replace(problem, groups=groups)
        sizes = measure_sizes(table, binned, problem)
        strategy = choose_strategy(sizes)
        if strategy.loss == "products":
            binned = bin_rows(table, options)
        else:
            binned = group_rows(binned, groups, problem.specify(binned), options.radius, table.n_classes)
        trainer = prepare_trainer(table, binned, problem, strategy)
        chosen = trainer.choose()
        tell_of_fit(table.target.size, chosen.regularization)
        design = trainer.formulation.design(chosen.ramp)
        weights = trainer.fit_all(design, chosen.regularization)
        warnings = trainer.check(design, weights, chosen)
        calibration = trainer.calibrate(design, weights, chosen, table)
    some = trainer.binned.take(spread_rows(trainer.binned, strategies.LIMITS.choice_rows))
    by_output = trainer.formulation.split_outputs(weights)
    importances = measure_importances(design, by_output, some, table.n_features)
    record = TrainingRecord.of(strategy, sizes, chosen.regularization, trainer.n_steps, trainer.result)
    tell(f"training: {record}")
    return AdditiveTraining(
        trainer.formulation.build(design, weights),
        chosen.regularization,
        chosen.path,
        importances,
        calibration,
        warnings or warn_of_idle(trainer, table, importances, chosen),
        groups,
        record,
    )


def choose_noise(table: TrainingTable, noises: Sequence[Noise], threat: Threat, options: AdditiveOptions) -> Noise:
    """The noise under which rows left out lose least against the threat, at one penalty; the first of equals.

    Margins count in logarithms of odds under every noise, so that their losses compare. Of wide tables the first one is
    taken: columns are chosen under one noise.
    """
    if table.numerical.size >= options.wide_columns:
        return noises[0]
    n_bins = strategies.count_bins(table.target.size, table.numerical.size, options.radius, MAX_BINS)
    binned = bin_rows(table, options, n_bins)
    binned = binned.take(spread_rows(binned, strategies.LIMITS.noise_rows))
    folds = draw_folds(binned)
    if folds is None or not binned.numbers:
        return noises[0]
    n_tried = min(2, int(folds.max()) + 1, max(1, strategies.LIMITS.fold_cells // binned.codes.size))
    losses = np.empty((len(noises), n_tried))
    trainers = [
        Trainer.of(Problem(noise, threat, options, table.n_features, 2), binned, Strategy("margins"))
        for noise in noises
    ]

    def fit_fold(block: slice) -> None:
        at, fold = divmod(block.start, n_tried)
        design = trainers[at].formulation.design(True)
        kept, left = (binned.take(np.flatnonzero(one)) for one in (folds != fold, folds == fold))
        weights = trainers[at].fit(design, kept, 1.0, n_threads=1)
        losses[at, fold] = trainers[at].formulation.make_loss(design, left).measure(weights)

    tell(f"training: comparing {len(noises)} noises")
    with threadpool_limits(1, user_api="blas"):
        run_blocks(fit_fold, losses.size, 1, options.n_threads)
    return noises[int(losses.sum(axis=1).argmin())]


def measure_sizes(table: TrainingTable, binned: BinnedTable, problem: Problem) -> Sizes:
    """What the strategy goes by; `binned` holds single columns."""
    options, threat = problem.options, problem.threat
    known = {one.feature for one in binned.numbers}
    joined = [len(known & set(group)) for group in problem.groups]
    norm = threat.ball_norm
    return Sizes(
        "classes",
        n_rows=table.target.size,
        n_columns=binned.codes.shape[1] - sum(size - 1 for size in joined if size > 1),
        n_numbers=len(binned.numbers),
        n_classes=table.n_classes,
        n_grouped=sum(len(group) for group in problem.groups),
        n_distinct=0 if table.whole is None else table.whole.n_distinct,
        moves=is_changed(binned, problem.specify(binned), options.radius),
        is_smooth=strategies.is_smooth(problem.noise, threat, options.radius, bool(table.n_categories)),
        is_additive=norm is not None and norm < float("inf"),
        needs_bounds=any(options.monotone.values()) or (table.n_classes == 2 and options.deduction > 0),
        wide_columns=options.wide_columns,
    )


def prepare_trainer(table: TrainingTable, binned: BinnedTable, problem: Problem, strategy: Strategy) -> Trainer:
    """What trains, of wide tables without columns that say nothing."""
    wide = None
    if strategy.columns == "chosen columns":
        tell(f"training: choosing among {len(binned.numbers):,} columns")
        narrow = Trainer.of(problem, binned, strategy).narrow()
        binned, wide = (binned, None) if narrow is None else (narrow, binned)
    whole = None
    if strategy.rows == "in parts":
        assert table.whole is not None
        whole = InParts(binned, table.whole, table.class_weight)
    trainer = Trainer(FORMULATIONS[strategy.loss](problem, binned), strategy, whole)
    trainer.wide = wide
    return trainer


def warn_of_idle(trainer: Trainer, table: TrainingTable, importances: FloatArray, chosen: Choice) -> tuple[str, ...]:
    """Say which columns robustness gives up, where a model that is not trained for it ranks rows better by them."""
    problem = trainer.formulation.problem
    radius, count = problem.options.radius, importances.size
    is_robust = radius > 0 or problem.threat.l0 > 0
    if not is_robust or not importances.any():
        return ()
    if problem.n_classes > 2 or count > _MOST_NAMED_OF or trainer.strategy.loss == "products":
        numbers = importances[table.numerical]
        is_idle = radius > 0 and numbers.size > 0 and float(numbers.sum()) < _IDLE
        return (f"At radius {radius:g} {_NO_NUMBERS} Train with a smaller radius.",) if is_idle else ()
    rows = trainer.binned.take(spread_rows(trainer.binned, CHECKED_ROWS))
    design = leave_in_place(trainer.formulation.design(chosen.ramp))
    weights = trainer.fit(design, rows, chosen.regularization)
    scores, kept = np.zeros(rows.target.size), np.zeros(rows.target.size)
    given_up: list[int] = []
    for features, part in design.list_parts(weights, rows.codes):
        scores += part
        if importances[list(features)].sum() >= _IDLE:
            kept += part
        else:
            given_up += features
    with_them, without = (measure_auc(one, rows.target, rows.weights) for one in (scores, kept))
    if not given_up or with_them - without < _LEAST_AUC:
        return ()
    names = [str(feature) if table.names is None else table.names[feature] for feature in sorted(given_up)]
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    whose = "the" if rows.target.size == trainer.binned.target.size else f"a sample of {rows.target.size:,}"
    what = f"radius {radius:g}" if radius else f"{problem.threat.l0} changed categories"
    alone = ""
    if set(table.numerical.tolist()) <= set(given_up):
        alone = f" There {_NO_NUMBERS}"
    return (
        f"At {what} the model gives up {'a column' if len(names) == 1 else f'{len(names)} columns'}: {listed}.{alone} "
        f"A model that is not trained for changes has an AUC of {with_them:.3f} on {whose} training rows, and of "
        f"{without:.3f} without what it takes from there. Train with a smaller radius where that matters.",
    )


def measure_auc(scores: FloatArray, target: NDArray[np.uint8], weights: FloatArray) -> float:
    """How often a row of class 1 has a higher score than one of class 0, ties counting half, by weight."""
    _, place = np.unique(scores, return_inverse=True)
    ones, zeros = (np.bincount(place, weights=weights * (target == label)) for label in (1, 0))
    total = float(ones.sum() * zeros.sum())
    return float(ones @ (np.cumsum(zeros) - zeros / 2)) / total if total else 0.5


def bin_rows(table: TrainingTable, options: AdditiveOptions, n_bins: int = MAX_BINS) -> BinnedTable:
    """The rows in bins, with penalties for categories."""
    binned = bin_table(table, n_bins=n_bins, seed=options.seed, n_threads=options.n_threads)
    return shrink_categories(binned, table, options.least_rows)
