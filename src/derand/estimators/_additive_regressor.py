"""AdditiveRegressor: the face of additive models for numbers, `derand.train.train_additive_regressor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from derand._core.threads import count_threads
from derand.estimators._base import Columns
from derand.estimators._checks import check_number, check_whole
from derand.estimators._grouping import find_groups, name_groups, warn_of_gaps
from derand.estimators._regressor import CertifiedRegressor
from derand.estimators._stump_regressor import check_regularization
from derand.model import AdditiveEnsemble
from derand.noise import Gaussian, Noise, as_noise_or_none
from derand.perturbation import check_columns
from derand.threat import Column, Threat, as_budget
from derand.train import RegressionTable, RegressionTraining, train_additive_regressor


class AdditiveRegressor(CertifiedRegressor):
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
        radius: float = 0.25,
        norm: float = 2,
        rule: str = "mean",
        noise: Noise | str | float = "auto",
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

    @property
    def default_threat(self) -> Threat:
        """What it was trained against, and what is certified where nothing else is asked for."""
        if self.threat is None:
            return Threat(norm=self.norm, l0=self.l0, frozen=tuple(self.frozen))
        return self.threat if self.threat.norm != "auto" else replace(self.threat, norm=self.norm)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.threat is not None:
            if not isinstance(self.threat, Threat):
                raise TypeError(f"`threat` must be a Threat such as Threat(norm=inf), got {self.threat!r}.")
            for name, default in (("norm", 2), ("l0", 0), ("frozen", ())):
                if list(np.ravel(getattr(self, name))) != list(np.ravel(default)):
                    raise ValueError(f"Give `{name}` or `threat`, got both: write Threat({name}=...) alone.")
        as_budget(self.l0)
        if self.default_threat.norm not in (1, 2, np.inf, None):
            raise ValueError(
                f"`norm` of AdditiveRegressor must be 1, 2 or inf, got {self.default_threat.norm!r}: those can be "
                "trained for. Any trained model can be certified in norm 0 by `threat=Threat(norm=0)`."
            )
        if not isinstance(self.n_cuts, str):
            check_whole("n_cuts", self.n_cuts, 1)
        elif self.n_cuts != "auto":
            raise ValueError(f"`n_cuts` must be 'auto' or a number, got {self.n_cuts!r}.")
        check_regularization(self.regularization)
        if self.min_rows_per_category is not None:
            check_whole("min_rows_per_category", self.min_rows_per_category, 1)
        if self._make_noise() is None and self.rule == "vote":
            raise ValueError(
                "`noise` must not be 'none' under the rule 'vote', which counts noisy copies: give a noise such as "
                "'gaussian:0.25', or use rule='mean'. noise='auto' is none where `radius` is 0."
            )

    def _check_noise(self) -> None:
        if self.radius != 0:
            check_number("radius", self.radius, 0.0, np.inf)
        self._make_noise()

    def _make_noise(self) -> Noise | None:
        """The noise that is asked for, without units."""
        if isinstance(self.noise, str) and self.noise == "auto":
            return Gaussian(self.radius / 2) if self.radius > 0 else None
        return as_noise_or_none(self.noise, self.default_threat.norm)

    def _train(self, table: RegressionTable, noise: Noise | None) -> RegressionTraining:
        threat, rows = self._name_columns(self.default_threat), table.rows
        check_columns(threat, rows.n_features, rows.n_categories, rows.numerical.tolist())
        training = train_additive_regressor(
            table,
            noise,
            threat,
            radius=float(self.radius),
            n_cuts=None if isinstance(self.n_cuts, str) else int(self.n_cuts),
            regularization=None if isinstance(self.regularization, str) else float(self.regularization),
            rule=self.rule,
            groups=find_groups(self.groups, rows, monotone=()),
            least_rows=self.min_rows_per_category,
            seed=0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31)),
            n_threads=count_threads(self.n_jobs),
        )
        self.groups_ = name_groups(training.groups, rows)
        return replace(training, warnings=(*training.warnings, *warn_of_gaps(self.groups, rows)))
