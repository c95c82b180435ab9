"""RobTreeBoostClassifier: the face of the paper's gradient boosting for certificates, `derand.train.boost_stumps`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial

import numpy as np

from derand._core.progress import count_rounds
from derand._core.threads import count_threads
from derand.certificates import Certificates
from derand.estimators._base import Columns
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._inputs import ClassWeight, check_number, check_stump_parameters, check_whole
from derand.model import AdditiveEnsemble
from derand.noise import Noise
from derand.train import Stumps, TrainingTable, TreeBoosting, boost_stumps, join_tables

DEFAULT_QUANTILE = 0.75
_VALIDATION_FRACTION = 0.1  # with early stopping


class RobTreeBoostClassifier(CertifiedClassifier):
    """Stumps boosted for the certificate: gradient boosting on the certifiable prediction.

    Training starts from the independent ensemble (`StumpClassifier`) and adds one stump at a time. The
    certifiable prediction of a row is the quantile of the exact law of its score under noise that decides whether
    its label is certified. The pseudo-label is the label minus that; the next stump has the split of least squared
    error to it under noise, over all cells of its feature, and leaves that take a Newton step of the cross-entropy. All
    stumps count alike; class 1 iff the mean leaf is above 1/2.

    Parameters
    ----------
    noise : Noise, str or None
        Such as `Gaussian(0.25)` or "uniform:2"; None is `Gaussian(0.25)`.
    quantile : float or None
        The certifiable prediction is read where this share of noisy copies does better: at least 1/2, below 1.
    radius : float or None
        Instead of `quantile`: the radius to be certified, from which the quantile follows. Where both are None,
        the quantile is 0.75. In practice a quantile above or below that of the radius of interest may do better.
    n_estimators : int
        Stumps to add; fewer are added where no candidate is left.
    max_stumps_per_feature : int or None
        Most stumps on one feature, that of the first ensemble included; None sets no limit.
    learning_rate : float
        Shrinks the leaves of added stumps towards 1/2.
    class_weight : None, "balanced" or dict
        "balanced" gives both classes the same total weight.
    levels : int
        Leaves are rounded to multiples of `1 / levels`. With categorical features the model's grid is twice as fine.
    split_step : float
        Distance of the candidate splits, in units of the noise.
    max_entropy : float
        A stump of the first ensemble is kept where its entropy, in nats, is below. Any numerical feature may get
        stumps later.
    scaling : None, "standard", "range" or "robust"
        Let the noise, and so the radius, count in deviations, ranges or interquartile ranges of the training columns.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type. Their tables are those of the
        first ensemble and shift a row's score; stumps are added on numerical features alone.
    categorical_leaf : float or None
        As for StumpClassifier.
    min_rows_per_category : int or None
        As for StumpClassifier.
    validation_fraction : float or None
        Share of the rows set aside to measure `validation_score_` on. None sets none aside, or a tenth where
        `n_iter_no_change` is given.
    n_iter_no_change : int or None
        Stop where the validation score has not risen for this many added stumps, and go back to the best stage.
    random_state : int, RandomState or None
        Draws the rows set aside; nothing else is random.
    verbose : bool
        Say on standard error what is being done.
    rule : {"vote", "mean"}
        How a label is found: "vote" is the one that most noisy copies get, "mean" that of the expected score.
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
    quantile_ : float
        The quantile that was used.
    n_estimators_ : int
        Stumps that were added.
    stump_features_, stump_thresholds_, stump_left_, stump_right_ : arrays of shape (n_stumps,)
        All stumps in the order in which they were found, the added ones last.
    stump_missing_ : array of shape (n_stumps,) or None
        Leaf of a missing value of each stump, NaN where its feature was nowhere missing; None where none was.
    train_score_, validation_score_ : arrays of shape (n_estimators_ + 1,)
        After each stage, beginning with the first ensemble: the weighted share of rows whose certifiable
        prediction is right. `validation_score_` is None where no rows were set aside.
    ignored_features_ : dict
        Why a feature has no term in the model, by its name (its number, where the table had no names).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Candidates reach from half a step below the smallest value of a feature to a step above the largest, with
    uniform noise by its half-width farther. Where nothing can be learnt (all features are constant), the model is
    constant, the class of the larger weight, and a warning says so.

    A missing number is a cell of its own, on which noise does not act: every stump of a feature with gaps has a third
    leaf, in the first ensemble that of a category, later a Newton step of the rows that miss it, which count as one
    more cell in the search for the split. A feature without gaps in training refuses them later.

    `predict_proba` is the share of noisy copies that get each label (by the rule "mean" the place of the score): a fact
    about the noise, no calibrated probability. Its threshold cannot be moved: use `class_weight`, or AdditiveClassifier
    with `decision_threshold` or `cost`.

    Examples
    --------
    >>> from derand import RobTreeBoostClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"]
    >>> clf = RobTreeBoostClassifier(noise="gaussian:0.5", radius=1.0, n_estimators=3).fit(X, y)
    >>> clf.predict([[0.5], [6.0]]).tolist(), clf.n_estimators_
    (['no', 'yes'], 3)
    >>> [float(c.radius[0].round(2)) for c in clf.staged_certify([[0.5]])]
    [1.99, 1.99, 1.99, 1.99]
    """

    ensemble_: AdditiveEnsemble

    def __init__(
        self,
        *,
        noise: Noise | str | float | None = None,
        quantile: float | None = None,
        radius: float | None = None,
        n_estimators: int = 40,
        max_stumps_per_feature: int | None = None,
        learning_rate: float = 1.0,
        class_weight: ClassWeight = None,
        levels: int = 100,
        split_step: float = 0.01,
        max_entropy: float = 0.693147,
        scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        categorical_leaf: float | None = 0.125,
        min_rows_per_category: int | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        rule: str = "vote",
        n_jobs: int | None = None,
    ) -> None:
        self.noise = noise
        self.quantile = quantile
        self.radius = radius
        self.n_estimators = n_estimators
        self.max_stumps_per_feature = max_stumps_per_feature
        self.learning_rate = learning_rate
        self.class_weight = class_weight
        self.levels = levels
        self.split_step = split_step
        self.max_entropy = max_entropy
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.categorical_leaf = categorical_leaf
        self.min_rows_per_category = min_rows_per_category
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.rule = rule
        self.n_jobs = n_jobs

    def staged_certify(
        self, X: object, l0: int = 0, unseen: bool = True, *, backend: str | None = None, n_jobs: int | None = None
    ) -> Iterator[Certificates]:
        """Certificates after each stage: those of the first ensemble, then those after each added stump.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        l0, unseen, backend, n_jobs
            As for `certify`.

        Yields
        ------
        Certificates
            `n_estimators_ + 1` of them; the last ones are those that `certify` gives.
        """
        self._encode_rows(X)  # complains now, not when the first stage is asked for
        return (
            stage.certify(X, l0, unseen, backend=backend, n_jobs=n_jobs)
            for stage in (self._at_stage(n_added) for n_added in range(self.n_estimators_ + 1))
        )

    def _at_stage(self, n_added: int) -> RobTreeBoostClassifier:
        """This classifier as it was after some of the added stumps."""
        if n_added == self.n_estimators_:
            return self
        n_stumps = self.stump_features_.size - self.n_estimators_ + n_added
        missing = self.stump_missing_
        stumps = Stumps(
            self.stump_features_[:n_stumps],
            self.stump_thresholds_[:n_stumps],
            self.stump_left_[:n_stumps],
            self.stump_right_[:n_stumps],
            (),
            self.ensemble_.n_features,
            self.ensemble_.levels,
            missing=np.empty(0) if missing is None else missing[:n_stumps],
        )
        stage = copy.copy(self)
        stage.ensemble_ = join_tables(stumps, self.ensemble_.category_tables)
        return stage

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_stump_parameters(self)
        check_number("split_step", self.split_step, 0.0, np.inf)
        check_whole("n_estimators", self.n_estimators, 1)
        check_number("learning_rate", self.learning_rate, 0.0, np.inf)
        for name in ("max_stumps_per_feature", "n_iter_no_change"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        if self.quantile is not None and self.radius is not None:
            raise ValueError(
                f"Give one of `quantile` and `radius`, got both, {self.quantile!r} and {self.radius!r}: "
                "the radius stands for a quantile of its own."
            )
        if self.quantile is not None:
            check_number("quantile", self.quantile, 0.0, 1.0)
            if not 0.5 <= self.quantile < 1:
                raise ValueError(f"`quantile` must be at least 1/2 and below 1, got {self.quantile!r}.")
        if self.radius is not None:
            check_number("radius", self.radius, 0.0, np.inf)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, 0.0, 0.999)

    def _train(self, table: TrainingTable, noise: Noise) -> TreeBoosting:
        failure = self._resolve_failure(noise)
        rows, aside = self._set_aside(table)
        boosting = boost_stumps(
            rows,
            noise,
            failure=failure,
            aside=aside,
            n_estimators=self.n_estimators,
            max_stumps_per_feature=self.max_stumps_per_feature,
            learning_rate=self.learning_rate,
            levels=self.levels,
            split_step=self.split_step,
            max_entropy=self.max_entropy,
            categorical_leaf=self.categorical_leaf,
            least_rows=self.min_rows_per_category,
            n_iter_no_change=self.n_iter_no_change,
            progress=partial(count_rounds, what="boosting"),
            n_threads=count_threads(self.n_jobs),
        )
        stumps = boosting.stumps
        self.quantile_ = 1 - failure
        self.n_estimators_ = boosting.n_added
        self.stump_features_, self.stump_thresholds_ = stumps.features, stumps.thresholds
        self.stump_left_, self.stump_right_ = stumps.left, stumps.right
        self.stump_missing_ = None if np.isnan(stumps.missing).all() else stumps.missing
        self.train_score_, self.validation_score_ = boosting.train_score, boosting.validation_score
        self.ignored_features_ = dict(boosting.ignored_features)
        return boosting

    def _resolve_failure(self, noise: Noise) -> float:
        """The mass that may fail where the certifiable prediction is read."""
        if self.radius is None:
            return 1 - float(DEFAULT_QUANTILE if self.quantile is None else self.quantile)
        failure = float(noise.failure_at(self.radius))
        if not failure > 0:
            raise ValueError(
                f"`radius` must be one that {noise} can certify with some failure mass, got {self.radius!r}: "
                "use a smaller radius or more noise."
            )
        return failure

    def _set_aside(self, table: TrainingTable) -> tuple[TrainingTable, TrainingTable | None]:
        """Rows to train on, and the rows set aside for validation, if any."""
        if self.validation_fraction is None and self.n_iter_no_change is None:
            return table, None
        from sklearn.model_selection import train_test_split  # slow to import, and few need it

        kept, aside = train_test_split(
            np.arange(table.target.size),
            test_size=_VALIDATION_FRACTION if self.validation_fraction is None else float(self.validation_fraction),
            stratify=table.target,
            random_state=self.random_state,
        )
        return table.take(np.sort(kept)), table.take(np.sort(aside))
