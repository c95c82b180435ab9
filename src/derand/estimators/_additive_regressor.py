"""AdditiveRegressor: the face of additive models for numbers, `derand.train.train_additive_regressor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derand._core.threads import count_threads
from derand.estimators._additive import AdditiveEstimator
from derand.estimators._base import Columns
from derand.estimators._inputs import name_groups, read_groups, warn_of_gaps
from derand.estimators._regressor import CertifiedRegressor
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.threat import Column, Threat
from derand.train import RegressionTable, RegressionTraining, train_additive_regressor


class AdditiveRegressor(AdditiveEstimator, CertifiedRegressor):
    """An additive model of numbers, trained by least squares or for narrow certified intervals.

    Every numerical column gets a step function, every categorical one a table, a missing value a cell of its own. With
    a positive radius they are fitted not to the rows as they are, but to both ends of what the radius allows each
    answer to become.

    Parameters
    ----------
    radius, norm, noise, scaling, n_cuts, l0, frozen
        As for `AdditiveClassifier`.
    categorical_features, min_rows_per_category, n_jobs, verbose, random_state
        As for `AdditiveClassifier`.
    rule : {"mean", "vote"}
        How a number is found: "mean" is the expected score under noise, "vote" the median of noisy copies.
    regularization : float or "cv"
        How strongly changes of the functions are penalised; "cv" takes what loses least on rows left out, nothing
        moved.
    groups : None, "auto" or list of lists of columns
        Numerical columns that interact, two to four in a group, by name or number, none in two groups: each group gets
        one function of all its columns. "auto" looks for pairs whose joint effect on training rows is real.
    threat : Threat or None
        What may change, instead of `norm`, `l0` and `frozen`.

    Attributes
    ----------
    ensemble_ : AdditiveEnsemble
        The frozen model; its score and offset, divided by its `levels`, are the answer.
    noise_ : Noise or None
    encoding_ : TableEncoding
        Column names and categories.
    regularization_ : float
    path_ : dict
        What was tried to choose it, as lists: "regularization", "loss" and "error" (root of the mean square on rows
        left out, in deviations of the target, and its standard error).
    term_means_ : array of shape (n_terms,)
        What each term of `ensemble_` adds on average over training rows: explanations start there.
    feature_importances_ : array of shape (n_features,)
        Mean size of what each column adds to the answer, as a share of all; columns of a group share alike.
    groups_ : tuple of tuples
        Columns that were trained together, by name or, where the table had no names, by number; empty without groups.
    training_ : TrainingRecord
        As of `AdditiveClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from derand import AdditiveRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = AdditiveRegressor(radius=0.25, scaling="standard").fit(X[:300], y[:300])
    >>> bool(reg.certify_interval(X[300:], radius=0.25).width.mean() < 25)
    True
    """

    ensemble_: AdditiveEnsemble

    def __init__(
        self,
        *,
        radius: float = 0.0,
        norm: float = 2,
        rule: str = "mean",
        noise: Noise | str | float | None = None,
        scaling: str | None = "robust",
        n_cuts: int | str = "auto",
        regularization: float | str = "cv",
        l0: int = 0,
        frozen: Sequence[Column] = (),
        groups: Sequence[Sequence[Column]] | str | None = None,
        threat: Threat | None = None,
        categorical_features: Columns = "from_dtype",
        min_rows_per_category: int | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.radius = radius
        self.norm = norm
        self.rule = rule
        self.noise = noise
        self.scaling = scaling
        self.n_cuts = n_cuts
        self.regularization = regularization
        self.l0 = l0
        self.frozen = frozen
        self.groups = groups
        self.threat = threat
        self.categorical_features = categorical_features
        self.min_rows_per_category = min_rows_per_category
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _train(self, table: RegressionTable, noise: Noise | None) -> RegressionTraining:
        threat, rows = self._read_threat(table.rows), table.rows
        training = train_additive_regressor(
            table,
            noise,
            threat,
            radius=float(self.radius),
            n_cuts=None if isinstance(self.n_cuts, str) else int(self.n_cuts),
            regularization=None if isinstance(self.regularization, str) else float(self.regularization),
            rule=self.rule,
            groups=read_groups(self.groups, rows, monotone=()),
            least_rows=self.min_rows_per_category,
            seed=self._seed,
            n_threads=count_threads(self.n_jobs),
        )
        self.groups_ = name_groups(training.groups, rows)
        return replace(training, warnings=(*training.warnings, *warn_of_gaps(self.groups, rows)))
