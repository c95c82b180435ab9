"""StumpClassifier: one MLE-optimal stump per numerical feature, one table per categorical feature, equal weights.

Owns the paper's independent training (section 4.1 and the appendix on joint certification). Must not know how
splits are searched or how certificates are made.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.ensemble import AdditiveEnsemble
from derand.estimators._base import SmoothedClassifier, TrainingTable
from derand.estimators._checks import check_number, check_whole
from derand.learn.splits import MAX_CANDIDATES, SplitGrid, Splits, find_splits, search_grid, search_minimum
from derand.noise import Noise
from derand.threads import count_threads

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TIE = 1e-12  # relative difference of two sums of weights that rounding may make


@dataclass(frozen=True, slots=True, eq=False)
class Stumps:
    """Stumps in the order in which they were found, and the tables of categorical features.

    Attributes
    ----------
    features, thresholds, left, right : arrays of shape (n_stumps,)
    tables : tuple of (feature, categories, leaves, other)
    n_features, levels : int
        As for `AdditiveEnsemble.from_stumps`.
    """

    features: IntArray
    thresholds: FloatArray
    left: FloatArray
    right: FloatArray
    tables: tuple[tuple[int, NDArray[Any], FloatArray, float], ...]
    n_features: int
    levels: int

    def __len__(self) -> int:
        """How many terms the mean is taken of."""
        return self.features.size + len(self.tables)

    def to_ensemble(self) -> AdditiveEnsemble:
        """The mean of all of them."""
        return AdditiveEnsemble.from_stumps(
            self.features,
            self.thresholds,
            self.left,
            self.right,
            n_features=self.n_features,
            levels=self.levels,
            tables=self.tables,
        )


class StumpClassifier(SmoothedClassifier):
    """Ensemble of independently trained stumps, smoothed by noise and certified.

    Every numerical feature gets the stump whose split has the least entropy under the noise, with the leaves that
    are then most likely; stumps whose entropy is not below a limit are left out. Every categorical feature gets a
    table. All count alike; class 1 iff the mean leaf is above 1/2.

    Parameters
    ----------
    noise : Noise, str or None
        Such as `Gaussian(0.25)` or "uniform:2"; None is `Gaussian(0.25)`.
    class_weight : None, "balanced" or dict
        "balanced" gives both classes the same total weight.
    levels : int
        Leaves of stumps are rounded to multiples of `1 / levels`. With categorical features the model's grid is
        twice as fine, so that the leaves of tables fit as well.
    split_step : float or None
        Distance of the candidate splits, in units of the noise (the paper's line search); None finds the minimum of
        the entropy itself.
    max_entropy : float
        A stump is kept where its entropy, in nats, is below.
    scaling : None, "standard" or "range"
        Let the noise, and so the radius, count in deviations or ranges of the training columns.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type.
    categorical_leaf : float or None
        A category's leaf is 1/2 plus this where class 1 has at least half of the weight of its rows, else 1/2
        minus this. None: the share of class 1. Unseen and missing categories have 1/2.
    n_jobs : int or None
        Threads; None or -1 uses all cores. The model does not depend on it.

    Attributes
    ----------
    ensemble_ : AdditiveEnsemble
        The frozen model.
    noise_ : Noise
        The noise, with units where `scaling` asks for them.
    classes_ : array of shape (2,)
    encoding_ : TableEncoding
        Column names and categories.
    entropy_ : array of shape (n_features,)
        Entropy of each numerical feature's best split; NaN for categorical features.
    ignored_features_ : dict
        Why a feature has no term in the model, by its name (its number, where the table had no names).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Where no stump is kept and there is no categorical feature, the model is constant, the class of the larger
    weight (`classes_[0]` on a tie), and a warning says so.
    A numerical feature has at most 20,000 candidates; beyond that the step grows, and a warning says so.
    The search is exact for features of at most 32,768 distinct values; those of any other are put into bins first,
    eight of them per step and per scale of the noise (fewer where 65,536 bins do not suffice).

    Examples
    --------
    >>> from derand import StumpClassifier
    >>> clf = StumpClassifier(noise="gaussian:0.5").fit([[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"])
    >>> c = clf.certify([[0.5], [6.0]])
    >>> c.label.tolist(), c.radius.round(2).tolist()
    (['no', 'yes'], [2.0, 3.5])
    """

    def __init__(
        self,
        *,
        noise: Noise | str | None = None,
        class_weight: Any = None,
        levels: int = 100,
        split_step: float | None = 0.01,
        max_entropy: float = 0.693147,
        scaling: str | None = None,
        categorical_features: Any = "from_dtype",
        categorical_leaf: float | None = 0.125,
        n_jobs: int | None = None,
    ) -> None:
        self.noise = noise
        self.class_weight = class_weight
        self.levels = levels
        self.split_step = split_step
        self.max_entropy = max_entropy
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.categorical_leaf = categorical_leaf
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole("levels", self.levels, 1)
        if self.split_step is not None:
            check_number("split_step", self.split_step, 0.0, np.inf)
        check_number("max_entropy", self.max_entropy, 0.0, np.inf)
        if self.categorical_leaf is not None:
            check_number("categorical_leaf", self.categorical_leaf, 0.0, 0.5)
        count_threads(self.n_jobs)

    def _fit_ensemble(self, table: TrainingTable, noise: Noise) -> AdditiveEnsemble:
        # the grid that a search for the minimum starts from must not step over the noise
        step = min(0.01, noise.magnitude / 4) if self.split_step is None else float(self.split_step)
        stumps = self._fit_stumps(table, noise, SplitGrid.around(noise, step))
        return stumps.to_ensemble() if len(stumps) else self._make_constant(table)

    def _fit_stumps(self, table: TrainingTable, noise: Noise, grid: SplitGrid) -> Stumps:
        splits = find_splits(
            table.X,
            table.numerical,
            table.target,
            noise,
            grid,
            class_weight=table.class_weight,
            sample_weight=table.sample_weight,
            search=search_minimum if self.split_step is None else search_grid,
            n_threads=count_threads(self.n_jobs),
        )
        self._warn_of_coarse_steps(table, splits, grid.step)
        kept = (splits.entropy < self.max_entropy) & (splits.spans > 0)
        tables = [
            (column, np.arange(len(categories)), self._find_leaves(table, column, len(categories)), 0.5)
            for column, categories in table.encoding.categories.items()
            if len(categories) > 1
        ]
        self._report_features(table, splits, kept)
        left, right = (np.rint(leaves[kept] * self.levels) / self.levels for leaves in (splits.left, splits.right))
        return Stumps(
            splits.columns[kept],
            splits.thresholds[kept],
            left,
            right,
            tuple(tables),
            n_features=table.X.shape[1],
            levels=2 * self.levels if tables else self.levels,
        )

    def _find_leaves(self, table: TrainingTable, column: int, n_categories: int) -> FloatArray:
        """Leaf of each category of a column."""
        codes = table.X[:, column]
        known = ~np.isnan(codes)
        places = codes[known].astype(np.int64) + n_categories * table.target[known].astype(np.int64)
        weights = None if table.sample_weight is None else table.sample_weight[known]
        rows = np.bincount(places, weights=weights, minlength=2 * n_categories).reshape(2, n_categories)
        zero, one = rows * table.class_weight[:, None]
        if self.categorical_leaf is None:
            return np.asarray(one / (zero + one))
        return np.where(one >= zero * (1 - _TIE), 0.5 + self.categorical_leaf, 0.5 - self.categorical_leaf)

    def _make_constant(self, table: TrainingTable) -> AdditiveEnsemble:
        zero, one = np.bincount(table.target, weights=table.row_weight, minlength=2)
        warnings.warn(
            f"No stump has an entropy below max_entropy={self.max_entropy}, so the model is constant: use less noise, "
            "another scaling, or a larger max_entropy.",
            stacklevel=5,
        )
        return AdditiveEnsemble((), -1 if one > zero * (1 + _TIE) else 0, table.X.shape[1], self.levels)

    def _report_features(self, table: TrainingTable, splits: Splits, kept: NDArray[np.bool_]) -> None:
        self.entropy_ = np.full(table.X.shape[1], np.nan)
        self.entropy_[splits.columns] = splits.entropy
        self.ignored_features_: dict[str | int, str] = {}
        for at in np.flatnonzero(~kept).tolist():
            name = table.encoding.name(int(splits.columns[at]))
            entropy = f"entropy {splits.entropy[at]:.6f} is not below max_entropy={self.max_entropy}"
            self.ignored_features_[name] = entropy if splits.spans[at] > 0 else "constant in training"
        for column, categories in table.encoding.categories.items():
            if len(categories) < 2:
                self.ignored_features_[table.encoding.name(column)] = "fewer than two categories in training"

    @staticmethod
    def _warn_of_coarse_steps(table: TrainingTable, splits: Splits, step: float) -> None:
        coarse = np.flatnonzero((splits.steps > step) & (splits.spans > 0)).tolist()
        if coarse:
            listed = ", ".join(
                f"{table.encoding.name(int(splits.columns[at]))!r} (step {splits.steps[at]:.3g})" for at in coarse[:5]
            )
            more = f" and {len(coarse) - 5} more" if len(coarse) > 5 else ""
            warnings.warn(
                f"A step of {step:g} would make more than {MAX_CANDIDATES:,} candidate splits in {len(coarse)} "
                f"features, so it was made larger there: {listed}{more}. Their range is huge beside the noise: use "
                "scaling='standard' or 'range', or more noise.",
                stacklevel=6,
            )
