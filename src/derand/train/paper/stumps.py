"""Independent training: one MLE-optimal stump per numerical feature, one table per categorical feature, equal weights.

Owns the paper's independent training (section 4.1 and the appendix on joint certification) and stumps as training
passes them on. Must not know how splits are searched, how certificates are made, or scikit-learn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray, freeze
from derand._core.text import Facts
from derand.model import AdditiveEnsemble, Argmax, CategoryTable, StepFunction
from derand.noise import Noise
from derand.train.counts import CountedRows
from derand.train.histogram import Counts
from derand.train.splits import (
    MAX_CANDIDATES,
    Search,
    SplitGrid,
    Splits,
    search_grid,
    search_minimum,
    split_columns,
)

_TIE = 1e-12  # relative difference of two sums of weights that rounding may make
_ARRAYS = ("features", "thresholds", "left", "right", "missing")
_LARGEST_FIRST_STEP = 0.01  # of the grid that a search for the minimum starts from


class CategoryLeaves(NamedTuple):
    """Leaves of one categorical feature, as `AdditiveEnsemble.from_stumps` takes them."""

    feature: int
    categories: IntArray
    leaves: FloatArray
    other: float | FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Stumps:
    """Stumps in the order in which they were found, and the tables of categorical features; immutable.

    Attributes
    ----------
    features, thresholds, left, right : arrays of shape (n_stumps,)
        Leaves are in [0, 1]; of more than two classes (n_stumps, n_classes).
    missing : array like `left`
        Leaf of a missing value; NaN where the feature has none, which refuses such rows.
    tables : tuple of CategoryLeaves
    n_features, levels : int
        As for `AdditiveEnsemble.from_stumps`.
    majority : int
        The class of the largest weight, which decides where there is neither a stump nor a table.
    """

    features: IntArray
    thresholds: FloatArray
    left: FloatArray
    right: FloatArray
    tables: tuple[CategoryLeaves, ...]
    n_features: int
    levels: int
    majority: int = 0
    missing: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not self.missing.size:
            object.__setattr__(self, "missing", np.full(self.left.shape, np.nan))
        for name in _ARRAYS:
            freeze(getattr(self, name))

    def __len__(self) -> int:
        """How many terms the mean is taken of."""
        return self.features.size + len(self.tables)

    def append(self, feature: int, threshold: float, leaves: tuple[float, float, float]) -> Stumps:
        """One stump more; its leaves are the left, the right, and that of a missing value."""
        more = zip(_ARRAYS, (feature, threshold, *leaves), strict=True)
        grown: Facts = {name: np.append(getattr(self, name), value) for name, value in more}
        return replace(self, **grown)

    def take(self, chosen: slice | BoolArray) -> Stumps:
        """Some of the stumps; all tables."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _ARRAYS})

    def merge(self, feature: int) -> StepFunction:
        """The stumps of one feature as one term."""
        (term,) = replace(self.take(self.features == feature), tables=()).to_ensemble().step_functions
        return term

    def to_ensemble(self) -> AdditiveEnsemble:
        """The mean of all of them, class 1 iff it is above 1/2, or the class of the largest; constant without any."""
        if not len(self) and self.left.ndim == 2:
            offsets = tuple(int(label == self.majority) for label in range(self.left.shape[1]))
            return AdditiveEnsemble((), Argmax(offsets), self.n_features, self.levels)
        if not len(self):
            return AdditiveEnsemble((), -1 if self.majority == 1 else 0, self.n_features, self.levels)
        return AdditiveEnsemble.from_stumps(
            self.features,
            self.thresholds,
            self.left,
            self.right,
            n_features=self.n_features,
            levels=self.levels,
            tables=self.tables,
            missing=self.missing,
        )


def join_tables(stumps: Stumps, tables: Sequence[CategoryTable]) -> AdditiveEnsemble:
    """The mean of stumps and of tables that have their scores already: these are not rounded again.

    `stumps`: without tables of their own; `tables`: scores on the grid of `stumps.levels`. The result: class 1 iff the
    mean is above 1/2; class 0 where there is nothing to take the mean of.

    Examples
    --------
    >>> from derand import CategoryTable
    >>> stumps = Stumps(np.array([0]), np.array([2.5]), np.array([0.1]), np.array([0.9]), (), 2, 200)
    >>> model = join_tables(stumps, [CategoryTable(1, [0, 1], [75, 125], 100)])
    >>> model.score([[3.0, 0.0]]).tolist(), model.threshold
    ([255], 200)
    """
    threshold = (stumps.features.size + len(tables)) * stumps.levels // 2
    terms = (*stumps.to_ensemble().terms, *tables)
    return AdditiveEnsemble(terms, threshold, stumps.n_features, stumps.levels)


@dataclass(frozen=True, slots=True, eq=False)
class StumpTraining:
    """What independent training found; immutable.

    Attributes
    ----------
    stumps : Stumps
    entropy : array of shape (n_features,)
        Entropy of each numerical feature's best split, in nats; NaN for categorical features.
    ignored_features : mapping of name or number to text
        Why a feature has no term.
    warnings : tuple of str
        What whoever trains should be told.
    """

    stumps: Stumps
    entropy: FloatArray
    ignored_features: Mapping[str | int, str]
    warnings: tuple[str, ...]

    @property
    def model(self) -> AdditiveEnsemble:
        return self.stumps.to_ensemble()


def train_stumps(
    table: CountedRows,
    noise: Noise,
    *,
    levels: int = 100,
    split_step: float | None = 0.01,
    max_entropy: float = 0.693147,
    categorical_leaf: float | None = 0.125,
    least_rows: int | None = None,
    n_threads: int = 1,
) -> StumpTraining:
    """Train the independent ensemble.

    `levels`, `split_step`, `max_entropy`, `categorical_leaf`: as for `derand.StumpClassifier`. Of more than two classes
    every one gets a stump of its own against the rest, `max_entropy` is that of such a stump, and `categorical_leaf` is
    what the most frequent class of a category gets beyond an equal share, taken evenly from the others. `least_rows`:
    categories of fewer rows get what one that training did not see gets. `n_threads`: the result does not depend on it.

    Examples
    --------
    >>> from derand import Gaussian
    >>> from derand.train import TrainingTable
    >>> table = TrainingTable(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1], dtype=np.uint8))
    >>> train_stumps(table, Gaussian(0.5)).stumps.thresholds.round(6).tolist()
    [2.5]
    """
    return search_stumps(
        table,
        noise,
        SplitGrid.around(noise, choose_first_step(noise, split_step)),
        search=search_minimum if split_step is None else search_grid,
        levels=levels,
        max_entropy=max_entropy,
        categorical_leaf=categorical_leaf,
        least_rows=least_rows,
        n_threads=n_threads,
    )


def choose_first_step(noise: Noise, split_step: float | None) -> float:
    """Distance of candidates: as asked for, or of the grid that a search for the minimum starts from, which must not
    step over the noise."""
    return min(_LARGEST_FIRST_STEP, noise.magnitude / 4) if split_step is None else float(split_step)


def search_stumps(
    table: CountedRows,
    noise: Noise,
    grid: SplitGrid,
    *,
    search: Search = search_grid,
    levels: int,
    max_entropy: float,
    categorical_leaf: float | None,
    least_rows: int | None = None,
    n_threads: int,
    may_miss: Collection[int] | None = None,
) -> StumpTraining:
    """The same on a given grid, and without a warning where nothing was found.

    `may_miss` are the columns in which values may be missing; None for those in which some of the table are.
    """
    splits, found = _search_columns(table, table.list_known(), noise, grid, search, max_entropy, n_threads)
    even: Any = 0.5 if table.n_classes == 2 else np.full(table.n_classes, 1 / table.n_classes)
    tables = tuple(
        CategoryLeaves(column, np.arange(size), _compute_leaves(table, column, categorical_leaf, least_rows), even)
        for column, size in table.n_categories.items()
        if size > 1
    )
    left, right = (np.rint(leaves * levels) / levels for leaves in (found.left, found.right))
    missing = compute_missing_leaves(
        table, found.columns, table.list_missing() if may_miss is None else may_miss, categorical_leaf
    )
    if found.classes is not None:  # a stump of one class says nothing of others
        missing = np.where(np.isnan(missing), np.nan, missing * np.eye(table.n_classes)[found.classes])
    stumps = Stumps(
        found.columns,
        found.thresholds,
        left,
        right,
        tables,
        n_features=table.n_features,
        levels=levels if not tables and np.isnan(missing).all() else 2 * levels,
        majority=select_majority([table]),
        missing=missing,
    )
    entropy = np.full(table.n_features, np.nan)
    entropy[splits.columns] = splits.entropy
    ignored = _explain_ignored(table, splits, np.isin(splits.columns, found.columns), max_entropy)
    return StumpTraining(stumps, freeze(entropy), ignored, _list_step_warnings(table, splits, grid.step))


class _Found(NamedTuple):
    """Stumps that are kept, with their leaves before rounding."""

    columns: IntArray
    thresholds: FloatArray
    left: FloatArray
    right: FloatArray
    classes: IntArray | None
    """Of more than two classes the one that each tells from the rest; leaves are then (n_stumps, n_classes)."""


def _search_columns(
    table: CountedRows,
    columns: IntArray,
    noise: Noise,
    grid: SplitGrid,
    search: Search,
    max_entropy: float,
    n_threads: int,
) -> tuple[Splits, _Found]:
    """The best split of each column, of several classes that of the class which it tells best, and what is kept."""
    if table.n_classes == 2:
        (splits,) = split_columns(table, columns, noise, grid, search=search, n_threads=n_threads)
        kept = (splits.entropy < max_entropy) & (splits.spans > 0)
        leaves = splits.left[kept], splits.right[kept]
        return splits, _Found(splits.columns[kept], splits.thresholds[kept], *leaves, None)
    totals = table.count_classes() * table.class_weight
    shares = np.stack([totals.sum() - totals, totals], axis=1) / totals.sum()
    rest_weight = 1 / np.sqrt(shares)
    by_class = split_columns(table, columns, noise, grid, rest_weight=rest_weight, search=search, n_threads=n_threads)
    entropy = np.stack([one.entropy for one in by_class])
    weighed = shares * rest_weight
    found = _join_classes(
        by_class, (entropy < max_entropy) & (by_class[0].spans > 0), weighed[:, 1] / weighed.sum(axis=1)
    )
    return replace(by_class[0], entropy=entropy.min(axis=0)), found


def _join_classes(by_class: Sequence[Splits], kept: BoolArray, even: FloatArray) -> _Found:
    """The stumps of all classes, with leaves of each class.

    `even` (n_classes,): the leaf of a class without any split: what it gets where a column tells others, but not this
    one; `kept` has shape (n_classes, n_columns).
    """
    n_classes = len(by_class)
    classes, places = np.nonzero(kept)
    is_first = classes == kept.argmax(axis=0)[places]  # of a column, which also holds what others get there
    rest = np.where(is_first[:, None] & ~kept.T[places], even, 0.0)

    def gather(values: Sequence[FloatArray]) -> FloatArray:
        return np.asarray(np.stack(values)[classes, places])

    own = np.eye(n_classes)[classes]
    left, right = (own * gather([getattr(one, side) for one in by_class])[:, None] + rest for side in ("left", "right"))
    return _Found(by_class[0].columns[places], gather([one.thresholds for one in by_class]), left, right, classes)


def select_majority(tables: Iterable[CountedRows]) -> int:
    """The class of the largest weight in all tables together, the first on a tie."""
    totals = [table.count_classes() * table.class_weight for table in tables]
    weights = np.sum(totals, axis=0)
    return int(np.argmax(weights * (1 + _TIE) >= weights.max()))


def _compute_leaves(
    table: CountedRows, column: int, categorical_leaf: float | None, least_rows: int | None
) -> FloatArray:
    """Leaf of each category of a column; all classes are alike in those of too few rows."""
    leaves = _weigh_counts(table.count_categories(column), table.class_weight, categorical_leaf)
    if least_rows is not None:
        leaves[table.count_category_rows(column) < least_rows] = 1 / table.n_classes
    return leaves


def compute_missing_leaves(
    table: CountedRows, columns: IntArray, may_miss: Collection[int], categorical_leaf: float | None
) -> FloatArray:
    """Leaf of a missing value of each of some numerical columns: as that of a category; NaN where none may be missing.

    Where none is missing in the table all classes are alike.
    """
    n_classes = table.n_classes
    leaves = np.full(columns.size if n_classes == 2 else (columns.size, n_classes), np.nan)
    for at, column in enumerate(columns.tolist()):
        if column in may_miss:
            counts = table.count_missing(column)[:, None]
            is_there = bool(counts.any())
            leaves[at] = _weigh_counts(counts, table.class_weight, categorical_leaf)[0] if is_there else 1 / n_classes
    return leaves


def _weigh_counts(counts: Counts, class_weight: FloatArray, categorical_leaf: float | None) -> FloatArray:
    """Leaf of each code by the weight of all classes among the rows that have it; counts are (n_classes, n_codes)."""
    by_class = counts * class_weight[:, None]
    if class_weight.size > 2:
        return _share_leaves(by_class.T, categorical_leaf)
    zero, one = by_class
    if categorical_leaf is None:
        return np.asarray(one / (zero + one))
    return np.where(one >= zero * (1 - _TIE), 0.5 + categorical_leaf, 0.5 - categorical_leaf)


def _share_leaves(weights: FloatArray, categorical_leaf: float | None) -> FloatArray:
    """Leaves of codes by the weights of all classes, both of shape (n_codes, n_classes).

    Shares of the classes, or equal ones but for the heaviest: classes that weigh the same share what it gets.
    """
    n_classes = weights.shape[1]
    if categorical_leaf is None:
        total = weights.sum(axis=1, keepdims=True)
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / n_classes)
    first = weights >= weights.max(axis=1, keepdims=True) * (1 - _TIE)
    count = first.sum(axis=1, keepdims=True)
    rest = np.maximum(n_classes - count, 1)
    moved = np.where(count < n_classes, categorical_leaf, 0.0)
    return np.asarray(1 / n_classes + np.where(first, moved / count, -moved / rest))


def _explain_ignored(table: CountedRows, splits: Splits, kept: BoolArray, max_entropy: float) -> dict[str | int, str]:
    """Why features have no term, by their names."""
    ignored = {}
    for at in np.flatnonzero(~kept).tolist():
        entropy = f"entropy {splits.entropy[at]:.6f} is not below max_entropy={max_entropy}"
        ignored[table.name(int(splits.columns[at]))] = entropy if splits.spans[at] > 0 else "constant in training"
    for column in sorted(set(table.numerical.tolist()) - set(splits.columns.tolist())):
        ignored[table.name(column)] = "no value in training"
    for column, size in table.n_categories.items():
        if size < 2:
            ignored[table.name(column)] = "fewer than two categories in training"
    return ignored


def _list_step_warnings(table: CountedRows, splits: Splits, step: float) -> tuple[str, ...]:
    """What to say where candidates lie farther apart than was asked for."""
    coarse = np.flatnonzero((splits.steps > step) & (splits.spans > 0)).tolist()
    if not coarse:
        return ()
    listed = ", ".join(f"{table.name(int(splits.columns[at]))!r} (step {splits.steps[at]:.3g})" for at in coarse[:5])
    more = f" and {len(coarse) - 5} more" if len(coarse) > 5 else ""
    return (
        f"A step of {step:g} would make more than {MAX_CANDIDATES:,} candidate splits in {len(coarse)} "
        f"features, so it was made larger there: {listed}{more}. Their range is huge beside the noise: use "
        "scaling='standard', 'range' or 'robust', or more noise.",
    )
