"""Training for numbers: additive functions and sums of stumps, by least squares under noise.

Owns the way from a table with numbers as targets to a model: bins, groups, stumps of least squares, the choice of the
penalty, the fit for narrow intervals. Must not know how certificates are made, or scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell
from derand.model import MAX_SCORE, AdditiveEnsemble, CategoryShape, Shape
from derand.noise import Noise
from derand.threat import Threat
from derand.train import strategies
from derand.train.bins import MAX_BINS, BinnedTable, NumberBins, bin_table
from derand.train.design.columns import Design, ModelSpec, NumberColumn, leave_in_place
from derand.train.design.groups import group_columns
from derand.train.design.model import design_model
from derand.train.design.shapes import measure_spans
from derand.train.losses.margin import MarginLoss
from derand.train.losses.rows import EndsInMemory
from derand.train.losses.squares import add_functions, choose_penalty, sum_squares
from derand.train.optimisers.descent import Objective, Precondition, Stage
from derand.train.selection.folds import share_codes, spread_rows
from derand.train.selection.importance import measure_importances
from derand.train.selection.interactions import select_pairs
from derand.train.selection.penalties import SelectionPath
from derand.train.selection.shrinking import shrink_by
from derand.train.strategies import Sizes, TrainingRecord, choose_strategy
from derand.train.table import TrainingTable
from derand.train.trainer import tell_of_fit

_FEW_BINS = 96  # of columns that are moved
_FEW_CUTS = 32
_LEAST_SHARE = 1e-9
_SEARCH_PENALTY = 1.0  # of the additive model whose errors pairs are to explain
_DIGITS = 9  # that descent is given
_SUPPORT = {"mean": 2**16, "vote": 2**13}
"""Whole scores between the lowest and the highest sum: a median needs the pmf of all of them."""
_STAGES = (
    Stage(0.1, 40, 1e-6),
    Stage(0.03, 40, 1e-6),
    Stage(0.01, 60, 1e-7),
    Stage(0.003, 60, 1e-7),
)


@dataclass(frozen=True, slots=True, eq=False)
class RegressionTable:
    """Checked and encoded rows with a number each.

    Parameters
    ----------
    rows : TrainingTable
        Its own target, classes, does not count.
    target : array of shape (n_rows,)
        Finite numbers.

    Examples
    --------
    >>> table = RegressionTable.of(np.array([[0.5], [2.0]]), np.array([10.0, 30.0]))
    >>> table.mean, table.deviation
    (20.0, 10.0)
    """

    rows: TrainingTable
    target: FloatArray

    @classmethod
    def of(
        cls,
        X: FloatArray,
        target: FloatArray,
        sample_weight: FloatArray | None = None,
        n_categories: dict[int, int] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> RegressionTable:
        """The table of rows, numbers and weights."""
        nothing = np.zeros(target.size, dtype=np.uint8)
        rows = TrainingTable(X, nothing, sample_weight=sample_weight, n_categories=n_categories or {}, names=names)
        return cls(rows, target)

    @property
    def mean(self) -> float:
        """Of the numbers, by weight."""
        return float(np.average(self.target, weights=self.rows.sample_weight))

    @property
    def deviation(self) -> float:
        """Of the numbers, by weight; 1 where all are equal."""
        largest = float(np.abs(self.target - self.mean).max(initial=0.0))
        if largest == 0:
            return 1.0
        shares = (self.target - self.mean) / largest  # squares may be too large or too small for doubles
        return largest * float(np.sqrt(np.average(shares**2, weights=self.rows.sample_weight)))

    def standardise(self) -> FloatArray:
        """The numbers less their mean, in deviations."""
        return np.asarray((self.target - self.mean) / self.deviation)


@dataclass(frozen=True, slots=True, eq=False)
class RegressionTraining:
    """A trained model of numbers.

    Attributes
    ----------
    model : AdditiveEnsemble
        Its score and offset, divided by its levels, are the answer.
    regularization : float
    path : SelectionPath
        In deviations of the target.
    importances : array of shape (n_features,)
        Mean size of what each column adds, as a share of all.
    warnings : tuple of str
    groups : tuple of tuples of int
        Columns that were trained together.
    record : TrainingRecord or None
        Which strategy was taken, and why.
    """

    model: AdditiveEnsemble
    regularization: float
    path: SelectionPath
    importances: FloatArray
    warnings: tuple[str, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    record: TrainingRecord | None = None


def train_additive_regressor(
    table: RegressionTable,
    noise: Noise | None,
    threat: Threat,
    *,
    radius: float = 0.0,
    n_cuts: int | None = None,
    regularization: float | None = None,
    rule: str = "mean",
    groups: tuple[tuple[int, ...], ...] | None = (),
    least_rows: int | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> RegressionTraining:
    """Train an additive model of numbers, for narrow intervals where the radius is positive.

    `noise`: under which the functions are looked at; `threat`: resolved, with columns by number, of norm 1, 2, inf or
    None; `radius`: of changes to train against: what is minimised is then the square of both ends of each row's
    interval; `n_cuts`: where the function of a column may change, at most; `regularization`: how strongly changes of
    the functions are penalised; None takes what loses least on rows left out; `rule`: by which the model answers: a
    median needs a coarser grid; `groups`: columns that interact, by number; None to find them; `least_rows`: categories
    of fewer rows get the value of one that training did not see.

    Examples
    --------
    >>> table = RegressionTable.of(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([1.0, 1.0, 3.0, 3.0]))
    >>> model = train_additive_regressor(table, None, Threat(norm=2), regularization=1e-6).model
    >>> ((model.score([[0.5], [4.5]]) + model.offset) / model.levels).round(2).tolist()
    [1.0, 3.0]
    """
    n_bins = _FEW_BINS if radius > 0 else MAX_BINS
    binned = bin_table(table.rows, n_bins=n_bins, seed=seed, n_threads=n_threads)
    cuts = strategies.count_cuts(binned.count_distinct(), len(binned.numbers), strategies.LIMITS.most_squares)
    spec = ModelSpec(noise, threat, table.rows.n_features, n_cuts or cuts, n_cuts or cuts)
    binned = _shrink_numbers(
        leave_in_place(design_model(binned, spec, radius)), binned, table.standardise(), least_rows
    )
    if groups is None:
        groups = _select_groups(leave_in_place(design_model(binned, spec, radius)), binned, table.standardise())
    binned = group_columns(binned, groups, spec.n_cuts)
    found = _fit_design(table, binned, design_model(binned, spec, radius), regularization, rule)
    return replace(found, groups=groups)


def _shrink_numbers(design: Design, binned: BinnedTable, target: FloatArray, least_rows: int | None) -> BinnedTable:
    """The rows with a penalty for each category, by what numbers alone leave unexplained."""
    if not binned.categories:
        return binned
    numbers = replace(design, categories=())
    left = target - add_functions(numbers, binned, _fit_first(numbers, binned, target))
    left -= np.average(left, weights=binned.weights)
    variance = max(float(np.average(left**2, weights=binned.weights)), 1e-12)
    return shrink_by(binned, binned.weights, left[:, None], variance, least_rows)


def _select_groups(design: Design, binned: BinnedTable, target: FloatArray) -> tuple[tuple[int, ...], ...]:
    """Pairs of columns that say more together than each by itself, of what an additive model leaves unexplained."""
    some = spread_rows(binned, strategies.LIMITS.choice_rows)
    rows = binned.take(some)
    left = target[some] - add_functions(design, rows, _fit_first(design, binned, target))
    return select_pairs(rows, left[:, None], np.ones((left.size, 1)))


def _fit_first(design: Design, binned: BinnedTable, target: FloatArray) -> FloatArray:
    """Weights by some of the rows, for a first look at what is left to explain."""
    some = spread_rows(binned, strategies.LIMITS.choice_rows)
    rows = binned.take(some)
    with threadpool_limits(1, user_api="blas"):
        penalties = design.list_penalties(_SEARCH_PENALTY) / rows.count_distinct()
        return sum_squares(design, rows, target[some]).solve(penalties)


def train_stump_regressor(
    table: RegressionTable,
    noise: Noise,
    *,
    n_rounds: int = 3,
    regularization: float | None = None,
    rule: str = "vote",
    least_rows: int | None = None,
    n_threads: int = 1,
) -> RegressionTraining:
    """Train a sum of stumps: in each round, every column gets the stump of least squares under the noise.

    Stumps of a round see what the sum of those before leaves; then the sizes of all are fitted together.

    `n_rounds`: stumps of each column, at most; `regularization`, `rule`, `least_rows`, `n_threads`: as for
    `train_additive_regressor`.

    Examples
    --------
    >>> from derand import Gaussian
    >>> table = RegressionTable.of(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([1.0, 1.0, 3.0, 3.0]))
    >>> model = train_stump_regressor(table, Gaussian(0.1), n_rounds=1, regularization=1e-6).model
    >>> model.terms[0].edges.tolist()
    [2.5]
    """
    binned = bin_table(table.rows, n_threads=n_threads)
    target = table.standardise()
    cuts: list[list[float]] = [[] for _ in binned.numbers]
    binned = _shrink_numbers(_design_plain(binned, noise, _FEW_CUTS), binned, target, least_rows)
    left, design = target - float(np.average(target, weights=binned.weights)), _design_stumps(binned, cuts, noise)
    with threadpool_limits(1, user_api="blas"):
        for _ in range(n_rounds):
            for at, bins in enumerate(binned.numbers):
                cut = _search_stump(bins, binned.codes[:, at], left, binned.weights, noise)
                if cut is not None and cut not in cuts[at]:
                    cuts[at].append(cut)
            design = _design_stumps(binned, cuts, noise)
            penalties = design.list_penalties(regularization or 1.0) / binned.count_distinct()
            left = target - add_functions(design, binned, sum_squares(design, binned, target).solve(penalties))
    return _fit_design(table, binned, design, regularization, rule)


def _search_stump(
    bins: NumberBins, codes: IntArray, left: FloatArray, weights: FloatArray, noise: Noise
) -> float | None:
    """Where a stump on one column explains most of what is left, its leaves being means under noise; None without."""
    if not bins.edges.size:
        return None
    size = bins.centers.size
    mass = np.bincount(codes, weights=weights, minlength=size + 1)[:size]
    moment = np.bincount(codes, weights=weights * left, minlength=size + 1)[:size]
    unit = float(noise.units_of(np.array([bins.feature]))[0])
    counts = np.stack([mass, np.maximum(moment, 0.0), np.maximum(-moment, 0.0)])  # histograms hold no negative counts
    below, gained, lost = noise.expected_left(bins.centers / unit, counts, bins.edges / unit)
    sums = gained - lost
    above, rests = mass.sum() - below, moment.sum() - sums
    least = _LEAST_SHARE * float(mass.sum())  # of less, rounding leaves nothing
    gains = sums**2 / np.maximum(below, least) + rests**2 / np.maximum(above, least)
    gains[(below <= least) | (above <= least)] = 0.0
    return float(bins.edges[int(np.argmax(gains))])


def _design_stumps(binned: BinnedTable, cuts: Sequence[Sequence[float]], noise: Noise) -> Design:
    """A design whose functions are jumps at these cuts."""
    plain = _design_plain(binned, noise, n_cuts=1)
    numbers = tuple(_place_cuts(column, np.unique(own), noise) for column, own in zip(plain.numbers, cuts, strict=True))
    return replace(plain, numbers=numbers)


def _design_plain(binned: BinnedTable, noise: Noise, n_cuts: int) -> Design:
    """A design of jumps alone, where nothing is moved."""
    n_features = 1 + max((one.feature for one in binned.numbers), default=0)
    return design_model(binned, ModelSpec(noise, Threat(norm=2), n_features, n_cuts), 0.0, with_ramp=False)


def _place_cuts(column: NumberColumn, cuts: FloatArray, noise: Noise) -> NumberColumn:
    cuts = np.asarray(cuts, dtype=np.float64)
    scale = float(noise.scales(np.array([column.feature]))[0])
    basis = np.asarray(noise.cdf((column.bins.centers[:, None] - cuts) / scale))[:, None, :]
    shares = column.bins.shares
    means = shares @ basis[:, 0, :] / shares.sum() if shares.size else np.zeros(cuts.size)
    return replace(column, cuts=cuts, stairs=np.empty(0), basis=(basis - means).astype(np.float32), means=means)


def _fit_design(
    table: RegressionTable, binned: BinnedTable, design: Design, regularization: float | None, rule: str
) -> RegressionTraining:
    """Weights of a design's functions, and the model that they make."""
    target, n_columns = table.standardise(), binned.codes.shape[1]
    sizes = Sizes("regression", target.size, n_columns, len(binned.numbers), moves=not design.is_plain)
    strategy, n_steps = choose_strategy(sizes), 0
    with threadpool_limits(1, user_api="blas"):
        some = spread_rows(binned, strategies.LIMITS.choice_rows)
        chosen, path = regularization, SelectionPath.of([])
        if chosen is None:
            chosen, path = choose_penalty(design, binned.take(some), target[some])
        tell_of_fit(target.size, chosen)
        penalties = design.list_penalties(chosen) / binned.count_distinct()
        weights = sum_squares(design, binned, target).solve(penalties)
        if strategy.loss == "interval ends":
            weights, n_steps = _narrow(design, binned.take(some), target[some], penalties, weights)
    model = _build_model(design, weights, table, rule)
    importances = measure_importances(design, weights, binned, table.rows.n_features)
    record = TrainingRecord.of(strategy, sizes, chosen, n_steps)
    tell(f"training: {record}")
    return RegressionTraining(model, chosen, path, importances, record=record)


def _narrow(
    design: Design, rows: BinnedTable, target: FloatArray, penalties: FloatArray, start: FloatArray
) -> tuple[FloatArray, int]:
    """Weights that lose least at both ends of the intervals, those of no function where these lose less; and steps.

    Descent magnifies the last digits of what it is given, which depend on the order of rows and on how their weights
    were written: so rows are put in an order of their own, and numbers are rounded.
    """
    rows, target = _merge_equal(rows, target)
    rows = replace(rows, weights=np.round(rows.weights / rows.weights.mean(), _DIGITS))
    target, start = np.round(target, _DIGITS), np.round(start, _DIGITS)
    design = replace(design, numbers=tuple(_round_shares(one) for one in design.numbers))
    change = Precondition(design, penalties, share_codes(design, rows), 0.5)
    constant = np.zeros(start.size)
    constant[0] = float(np.average(target, weights=rows.weights))
    loss = MarginLoss(design, EndsInMemory(design, rows, target))
    fit = Objective(loss, penalties, change, constant)
    found = min((fit.descend(start, _STAGES), fit.descend_anew(constant, _STAGES)), key=fit.measure)
    return (found if fit.measure(found) < fit.measure(constant) else constant), fit.n_steps


def _round_shares(column: NumberColumn) -> NumberColumn:
    bins = column.bins
    missing = max(round(bins.missing, _DIGITS), 10.0**-_DIGITS) if bins.missing > 0 else 0.0
    return replace(column, bins=replace(bins, shares=np.round(bins.shares, _DIGITS), missing=missing))


def _merge_equal(rows: BinnedTable, target: FloatArray) -> tuple[BinnedTable, FloatArray]:
    """Rows in an order of their own, equal ones of an equal target as one of their weight: however a table came."""
    order = np.lexsort((target, *rows.codes.T, rows.keys))
    codes, numbers = rows.codes[order], target[order]
    starts = np.ones(order.size, dtype=bool)
    starts[1:] = (numbers[1:] != numbers[:-1]) | (codes[1:] != codes[:-1]).any(axis=1)
    merged = rows.take(order[starts])
    return replace(merged, weights=np.add.reduceat(rows.weights[order], np.flatnonzero(starts))), numbers[starts]


def _build_model(design: Design, weights: FloatArray, table: RegressionTable, rule: str) -> AdditiveEnsemble:
    """The model in units of the target, on a grid on which its pmf can be afforded."""
    size = table.deviation
    shapes, tables, grids, _ = functions = design.read(weights * size)
    total = max(sum(measure_spans(functions)), size * 2.0**-20)
    intercept = table.mean + size * float(weights[0])
    levels = max(1, min(int(_SUPPORT[rule] / total), int(MAX_SCORE / 4 / max(abs(intercept), total))))
    coarse = max(1, math.ceil(total / _SUPPORT[rule]))  # large numbers: multiples of a whole number, not of a share
    if coarse > 1:
        shapes = [_round_shape(one, coarse) for one in shapes]
        tables = [_round_shape(one, coarse) for one in tables]
        grids = [one._replace(values=_round_to(one.values, coarse)) for one in grids]
    return AdditiveEnsemble.from_number_shapes(
        shapes, tables, intercept=intercept, n_features=table.rows.n_features, levels=levels, grids=grids
    )


AnyShape = TypeVar("AnyShape", Shape, CategoryShape)


def _round_shape(shape: AnyShape, grid: int) -> AnyShape:
    """The same function with multiples of a whole number as values."""
    missing = None if shape.missing is None else grid * round(float(shape.missing) / grid)
    return shape._replace(values=_round_to(shape.values, grid), missing=missing)


def _round_to(values: object, grid: int) -> FloatArray:
    return np.asarray(grid * np.rint(np.asarray(values) / grid))
