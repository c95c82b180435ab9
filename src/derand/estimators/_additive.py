"""AdditiveClassifier: the face of training for a certified margin, `derand.train.train_additive`.

Owns what additive models of labels and of numbers share: the threat that they are trained against, and the noise that
follows from their radius.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from derand._core.arrays import FloatArray
from derand._core.origin import Frame
from derand._core.threads import count_threads
from derand.certificates import DEDUCTION, measure_margins
from derand.estimators._base import CertifiedEstimator, Columns, Training
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._inputs import (
    ClassWeight,
    check_least,
    check_number,
    check_regularization,
    check_whole,
    name_groups,
    read_groups,
    read_monotone,
    warn_of_gaps,
)
from derand.fitted import Cut, FittedModel, compute_probabilities, make_trained_threat
from derand.model import AdditiveEnsemble
from derand.noise import Gaussian, Noise
from derand.perturbation import check_columns
from derand.tables import TableEncoding
from derand.threat import Column, Threat, as_budget, refuse_linked
from derand.train import AdditiveOptions, AdditiveTraining, TrainingTable, choose_noise, train_additive

_NOISE_SHARES = (0.5, 0.25, 1.0)
"""Of the radius: noises of which the one is taken that loses least on rows left out, the first of equals."""


class AdditiveEstimator(CertifiedEstimator):
    """What additive models of labels and of numbers share."""

    radius: float
    norm: float
    n_cuts: int | str
    regularization: float | str
    l0: int
    frozen: Sequence[Column]
    threat: Threat | None
    random_state: int | np.random.RandomState | None
    _needs_noise = False

    @property
    def _default_noise(self) -> Noise | None:
        return Gaussian(self.radius / 2) if self.radius > 0 else None

    @property
    def default_threat(self) -> Threat:
        """What it was trained against, and what is certified where nothing else is asked for."""
        return make_trained_threat(self.norm, self.l0, self.frozen, self.threat)

    def _check_parameters(self) -> None:
        if self.threat is not None and not isinstance(self.threat, Threat):
            raise TypeError(f"`threat` must be a Threat such as Threat(norm=inf), got {self.threat!r}.")
        super()._check_parameters()
        for name, default in (("norm", 2), ("l0", 0), ("frozen", ())):
            if self.threat is not None and list(np.ravel(getattr(self, name))) != list(np.ravel(default)):
                raise ValueError(f"Give `{name}` or `threat`, got both: write Threat({name}=...) alone.")
        as_budget(self.l0)
        if self.default_threat.norm not in (1, 2, np.inf, None):
            raise ValueError(
                f"`norm` of {type(self).__name__} must be 1, 2 or inf, got {self.default_threat.norm!r}: those can be "
                "trained for. Any trained model can be certified in norm 0 by `threat=Threat(norm=0)`."
            )
        if not isinstance(self.n_cuts, str):
            check_whole("n_cuts", self.n_cuts, 1)
        elif self.n_cuts != "auto":
            raise ValueError(f"`n_cuts` must be 'auto' or a number, got {self.n_cuts!r}.")
        check_regularization(self.regularization)

    def _check_noise(self) -> None:
        check_least("radius", self.radius, 0.0)
        super()._check_noise()

    def _read_threat(self, table: TrainingTable) -> Threat:
        """What to train against, by numbers of columns; refused where the table has none of these."""
        threat = self._name_columns(self.default_threat)
        refuse_linked(threat, "training")
        check_columns(threat, table.n_features, table.n_categories, table.numerical.tolist())
        return threat

    @property
    def _seed(self) -> int:
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))


class AdditiveClassifier(AdditiveEstimator, CertifiedClassifier):
    """An additive logistic model, as accurate as boosting, trained on the margin that it can certify.

    Every numerical column gets a step function, every categorical one a table, a missing value a cell of its own; their
    sum is the logarithm of odds. They are fitted by the log-loss not of the rows as they are, but of each row after the
    worst change that the radius allows, so that what is certified is what was trained for.

    Of 1,000 numerical columns or more, and two classes, those are fitted that stand out from what others leave
    unexplained; all of them where the others say something together.

    Parameters
    ----------
    radius : float
        How large a change to train against, in units of `scaling`. 0 is a plain additive model, which can be certified
        for anything; training for a radius costs accuracy, so that it is asked for.
    norm : {1, 2, inf}
        How changes of numbers are measured.
    rule : {"mean", "vote"}
        How a label is found: "mean" is that of the expected score under noise, "vote" the one that most noisy copies
        get, the paper's rule, certified by both proofs.
    noise : Noise, str or None
        Such as `Gaussian(0.25)` or "uniform:2"; "none" is no smoothing. None follows the radius: Gaussian noise of half
        of it (of two classes by the rule "mean" a quarter, half or all of it, whichever loses least on rows left out);
        none at radius 0, and none for two classes in norm inf by that rule, where it only blurs what is known exactly.
    scaling : None, "standard", "range" or "robust"
        Let noise and radii count in deviations, ranges or interquartile ranges of the training columns.
    n_cuts : int or "auto"
        Where the function of a column may change, at most; "auto" is 32, and 128 for more than 10,000 rows.
    regularization : float or "cv"
        How strongly changes of the functions are penalised; "cv" takes what loses least on rows left out.
    max_iter : int
        Steps of the fit, at most: sweeps over all columns. Where it ends there, a ConvergenceWarning says what is left
        to gain.
    tol : float
        The fit ends where `gap_` is at most this share of what it loses.
    class_weight : None, "balanced" or dict
        Moves the decision. `predict_proba` stays calibrated to the data as they are: the two then differ.
    decision_threshold : float or None
        From which probability of `classes_[1]` on it is the answer, of two classes. It is the threshold of the score
        that is moved, before anything is certified. None is 1/2, or where `class_weight` puts it.
    cost : dict or None
        The same by what mistakes cost, such as {"false_positive": 1, "false_negative": 5}: a false positive is a row of
        `classes_[0]` that gets `classes_[1]`. The threshold is the first over the sum of both.
    l0 : int
        How many categorical features may change at the same time.
    frozen : sequence of columns
        Columns that do not change, by name or number.
    monotone : dict of column to {"increasing", "decreasing"}, or None
        Numerical columns whose function must only rise or only fall; 1 and -1 mean the same.
    groups : None, "auto", "patches:3" or list of lists of columns
        Columns that interact, by name or number: each group gets one function of all its columns, trained for the
        certificate like those of single columns. Of two classes without noise, in norm inf or at radius 0, columns may
        be in several groups of up to nine, categories and missing values among them. Elsewhere groups hold two to four
        numerical columns, none in two groups. "auto" looks for pairs (and, where they may overlap, triples) whose joint
        effect on training rows is real. "patches:3" are all 3 by 3 squares of a square image, "patches:2x3:28x14" all
        2 by 3 rectangles of one of 28 rows and 14 columns; the columns are its pixels, row by row.
    threat : Threat or None
        What may change, instead of `norm`, `l0` and `frozen`: limits, domains, other units. Steps and budgets of
        missing values count when it is certified, not in training.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type.
    min_rows_per_category : int or None
        Categories of fewer training rows get the value of one that training did not see. None: every category has its
        own; those of a column of more than ten are drawn towards that value as strongly as they are alike.
    n_jobs : int or None
        Threads; None or -1 uses all cores. The model does not depend on it.
    verbose : bool
        Say on standard error what is being done.
    random_state : int, RandomState or None
        Of the folds that `regularization="cv"` draws; None is 0, so that a fit can be repeated.

    Attributes
    ----------
    ensemble_ : AdditiveEnsemble
        The frozen model; its score divided by its `levels` is the logarithm of odds.
    noise_ : Noise or None
    classes_ : array of shape (2,)
    encoding_ : TableEncoding
        Column names and categories.
    regularization_ : float
        As given, or as chosen.
    gap_ : float
        How much less the best weights may lose than those that were found: a duality gap of the penalised log-loss of
        certified margins. NaN where it is not known: of more than two classes, many groups, the rule "vote" on many
        columns, and tables in parts.
    n_iter_ : int
        Steps of the final fit, at least 1.
    path_ : dict
        What was tried to choose it, as lists: "regularization", "ramp" (whether functions had a linear part), "loss"
        and "error" (mean log-loss of certified margins on rows left out, and its standard error).
    feature_importances_ : array of shape (n_features,)
        Mean size of what each column adds to the score, as a share of all.
    calibration_ : array of shape (2,)
        Slope and shift from the decision's logarithm of odds to that of `predict_proba`.
    decision_threshold_ : float
        The probability of `classes_[1]` from which on it is the answer, of two classes.
    groups_ : tuple of tuples
        Columns that were trained together, by name or, where the table had no names, by number; empty without groups.
    training_ : TrainingRecord
        Which strategy was chosen for the sizes of the table, why, at which penalty and in how many steps; `verbose`
        prints it. It is not saved with the model.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from derand import AdditiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> clf = AdditiveClassifier(radius=0.25, regularization=0.1).fit(X, y)
    >>> certificates = clf.certify(X)
    >>> bool(((certificates.label == y) & (certificates.radius >= 0.25)).mean() > 0.9)
    True
    """

    ensemble_: AdditiveEnsemble
    score_is_log_odds = True
    _takes_several_classes = True

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
        max_iter: int = 1_000,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        decision_threshold: float | None = None,
        cost: Mapping[str, float] | None = None,
        l0: int = 0,
        frozen: Sequence[Column] = (),
        monotone: Mapping[Column, Any] | None = None,
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
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.decision_threshold = decision_threshold
        self.cost = cost
        self.l0 = l0
        self.frozen = frozen
        self.monotone = monotone
        self.groups = groups
        self.threat = threat
        self.categorical_features = categorical_features
        self.min_rows_per_category = min_rows_per_category
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def _default_noise(self) -> Noise | None:
        """None for two classes in norm inf, too: what each column can do by itself is known exactly."""
        is_exact = self.default_threat.norm == np.inf and self.rule == "mean"
        has_two = getattr(self, "classes_", np.empty(2)).size == 2
        return None if is_exact and has_two else super()._default_noise

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole("max_iter", self.max_iter, 1)
        check_number("tol", self.tol, 0.0, 1.0)

    def _keep_table(self, table: TrainingTable, encoding: TableEncoding) -> Noise | None:
        noise = super()._keep_table(table, encoding)
        if self.noise is not None or noise is None or self.classes_.size != 2 or self.rule != "mean":
            return noise
        options = self._make_options(table, noise)
        if options.groups:
            return noise
        noises = [Gaussian(share * self.radius, noise.units) for share in _NOISE_SHARES]
        self.noise_ = choose_noise(table, noises, self._read_threat(table), options)
        return self.noise_

    @property
    def _moves_apart(self) -> bool:
        """Whether what each column can do does not depend on the others."""
        return self.default_threat.ball_norm in (None, np.inf)

    def _may_overlap(self, noise: Noise | None) -> bool:
        """Whether a search certifies groups that share columns, where each column moves by itself, or none does."""
        return noise is None and self.classes_.size == 2

    def _make_options(self, table: TrainingTable, noise: Noise | None) -> AdditiveOptions:
        monotone = read_monotone(self.monotone, table)
        may_overlap = self._may_overlap(noise) and (float(self.radius) == 0 or self._moves_apart)
        return AdditiveOptions(
            radius=float(self.radius),
            n_cuts=None if isinstance(self.n_cuts, str) else int(self.n_cuts),
            regularization=None if isinstance(self.regularization, str) else float(self.regularization),
            monotone=monotone,
            groups=read_groups(self.groups, table, monotone, may_overlap=may_overlap),
            least_rows=self.min_rows_per_category,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            deduction=DEDUCTION if self.rule == "vote" else 0.0,
            seed=self._seed,
            n_threads=count_threads(self.n_jobs),
        )

    def _train(self, table: TrainingTable, noise: Noise | None) -> AdditiveTraining:
        threat = self._read_threat(table)
        training = train_additive(table, noise, threat, self._make_options(table, noise))
        self.regularization_, self.gap_ = training.regularization, training.record.fit.gap
        self.n_iter_ = max(training.record.n_iterations, 1)
        self.path_ = {
            "regularization": training.path.regularization.tolist(),
            "ramp": training.path.ramp.astype(bool).tolist(),
            "loss": training.path.loss.tolist(),
            "error": training.path.error.tolist(),
        }
        self.feature_importances_ = training.importances
        self.groups_ = name_groups(training.groups, table)
        self.training_ = training.record
        self.calibration_ = np.array(training.calibration)
        return training

    def _warn_of_one_label(self, table: TrainingTable, totals: FloatArray, training: Training) -> tuple[str, ...]:
        """Nothing where training has named the collapse already; and which columns were not looked at for groups."""
        told = () if training.warnings else super()._warn_of_one_label(table, totals, training)
        looks_at_all = self._may_overlap(self.noise_) and self._moves_apart
        return told if looks_at_all else (*told, *warn_of_gaps(self.groups, table))

    def _describe_unfinished(self) -> str | None:
        fit = self.training_.fit
        if fit.has_ended:
            return None
        return (
            f"The fit ended after {self.training_.n_iterations:,} steps: it loses {fit.loss:.4g}, and up to "
            f"{fit.gap:.2g} of that might be gained. Raise `max_iter`."
        )

    def decision_function(self, X: Frame) -> FloatArray:
        """Logarithm of the odds of `classes_[1]` by which the label is decided; by the rule "vote" the signed radius.

        Of several classes it has one column for each: the expected score, a logarithm of odds up to what all have in
        common; by the rule "vote" that of the odds with which a noisy copy wins its worst duel.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of several classes (n_rows, n_classes)
        """
        check_is_fitted(self)
        if self.rule != "mean" or self.classes_.size > 2:
            return super().decision_function(X)
        rows = self._encode_rows(X)
        return measure_margins(self.ensemble_, rows, self.noise_)

    def predict_proba(self, X: Frame) -> FloatArray:
        """Probabilities of the classes: the logistic function of the expected score, calibrated on rows left out.

        With class weights, `decision_threshold` or `cost` they are those of the data as they are, while `predict` cuts
        elsewhere: at `decision_threshold_`. By the rule "vote" they are no probabilities of the classes, but the exact
        shares of noisy copies that get each label.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        if self.rule != "mean":
            return super().predict_proba(X)
        return compute_probabilities(self, self._encode_rows(X))

    def _read_cut(self) -> Cut:
        """Scores are logarithms of odds, calibrated on rows left out."""
        if self.classes_.size > 2:
            raise ValueError(
                f"Thresholds are moved of two classes, got {self.classes_.size}: weigh the classes by `class_weight`."
            )
        return FittedModel._read_cut(self)
