"""RobTreeBoostClassifier: stumps added along the residual between the labels and what can be certified.

Owns the paper's gradient boosting for certifiable robustness (section 4.2 and its appendix). Must not know how laws
are kept, how splits are searched or how certificates are made.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from derand.certificates import Certificates
from derand.ensemble import AdditiveEnsemble, StepFunction
from derand.estimators._base import SmoothedClassifier, TrainingTable
from derand.estimators._checks import check_number, check_whole
from derand.estimators._independent import StumpClassifier, Stumps
from derand.estimators._laws import ScoreLaws
from derand.estimators._progress import count_rounds
from derand.estimators._residual_splits import Candidate, ResidualSearch
from derand.estimators._splits import SplitGrid
from derand.noise import Noise, Uniform
from derand.threads import count_threads

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DEFAULT_QUANTILE = 0.75
_VALIDATION_FRACTION = 0.1  # with early stopping
_SMOOTHING = 1e-6  # keeps the denominator of a leaf positive where every residual is 0 or 1


class RobTreeBoostClassifier(SmoothedClassifier):
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
    scaling : None, "standard" or "range"
        Let the noise, and so the radius, count in deviations or ranges of the training columns.
    categorical_features : "from_dtype", None, or a list of names or column numbers, or a mask
        "from_dtype" takes columns of text, of booleans, and of a category type. Their tables are those of the
        first ensemble and shift a row's score; stumps are added on numerical features alone.
    categorical_leaf : float or None
        As for StumpClassifier.
    validation_fraction : float or None
        Share of the rows set aside to measure `validation_score_` on. None sets none aside, or a tenth where
        `n_iter_no_change` is given.
    n_iter_no_change : int or None
        Stop where the validation score has not risen for this many added stumps, and go back to the best stage.
    random_state : int, RandomState or None
        Draws the rows set aside; nothing else is random.
    verbose : bool
        Show a progress bar on standard error.
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
        noise: Noise | str | None = None,
        quantile: float | None = None,
        radius: float | None = None,
        n_estimators: int = 40,
        max_stumps_per_feature: int | None = None,
        learning_rate: float = 1.0,
        class_weight: Any = None,
        levels: int = 100,
        split_step: float = 0.01,
        max_entropy: float = 0.693147,
        scaling: str | None = None,
        categorical_features: Any = "from_dtype",
        categorical_leaf: float | None = 0.125,
        validation_fraction: float | None = None,
        n_iter_no_change: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
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
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def staged_certify(
        self, X: Any, l0: int = 0, unseen: bool = True, *, backend: str | None = None, n_jobs: int | None = None
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
        self.encode_rows(X)  # complains now, not when the first stage is asked for
        return (
            stage.certify(X, l0, unseen, backend=backend, n_jobs=n_jobs)
            for stage in (self._at_stage(n_added) for n_added in range(self.n_estimators_ + 1))
        )

    def _at_stage(self, n_added: int) -> RobTreeBoostClassifier:
        """This classifier as it was after some of the added stumps."""
        if n_added == self.n_estimators_:
            return self
        n_stumps = self.stump_features_.size - self.n_estimators_ + n_added
        levels = self.ensemble_.levels
        stage = copy.copy(self)
        stage.ensemble_ = Stumps(
            self.stump_features_[:n_stumps],
            self.stump_thresholds_[:n_stumps],
            self.stump_left_[:n_stumps],
            self.stump_right_[:n_stumps],
            tuple(
                (table.feature, table.categories, table.scores[:, 0] / levels, table.other / levels)
                for table in self.ensemble_.category_tables
            ),
            self.ensemble_.n_features,
            levels,
        ).to_ensemble()
        return stage

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._first_trainer()._check_parameters()
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

    def _first_trainer(self) -> StumpClassifier:
        """What trains the first ensemble."""
        return StumpClassifier(
            levels=self.levels,
            split_step=self.split_step,
            max_entropy=self.max_entropy,
            categorical_leaf=self.categorical_leaf,
            n_jobs=self.n_jobs,
        )

    def _fit_ensemble(self, table: TrainingTable, noise: Noise) -> AdditiveEnsemble:
        failure = self._resolve_failure(noise)
        training, aside = self._set_aside(table)
        grid = _make_grid(noise, float(self.split_step))
        trainer = self._first_trainer()
        first = trainer._fit_stumps(training, noise, grid)
        search = ResidualSearch(training.X, training.numerical, training.row_weight, noise, grid)
        parts = [_Rows(part, first, noise, failure, count_threads(self.n_jobs)) for part in (training, *aside)]
        stumps, scores = self._boost(first, search, noise, parts)
        self.quantile_ = 1 - failure
        self.n_estimators_ = len(stumps) - len(first)
        self.stump_features_, self.stump_thresholds_ = stumps.features, stumps.thresholds
        self.stump_left_, self.stump_right_ = stumps.left, stumps.right
        self.train_score_ = scores[:, 0]
        self.validation_score_ = scores[:, 1] if aside else None
        self.ignored_features_ = trainer.ignored_features_
        for feature in np.unique(stumps.features).tolist():
            self.ignored_features_.pop(table.encoding.name(feature), None)
        return stumps.to_ensemble() if len(stumps) else trainer._make_constant(table)

    def _boost(
        self, stumps: Stumps, search: ResidualSearch, noise: Noise, parts: Sequence[_Rows]
    ) -> tuple[Stumps, FloatArray]:
        """All stumps, and the score of each part of the rows after each stage, (n_stages, n_parts)."""
        splits: dict[int, list[int]] = {column: [] for column in search.columns}
        for feature, threshold in zip(stumps.features.tolist(), stumps.thresholds.tolist(), strict=True):
            splits[feature].append(search.number_of(feature, threshold))
        n_first, most = len(stumps), self.max_stumps_per_feature or np.inf
        scores = [[part.share_certified() for part in parts]]
        best = 0
        for added in count_rounds(self.n_estimators, "boosting", self.verbose):
            full = [column for column, numbers in splits.items() if len(numbers) >= most]
            found = search.find(0.5 + 0.5 * parts[0].residual, splits, full)
            if found is None:
                break
            splits[found.column].append(found.number)
            edge = search.threshold(Candidate(found.column, self._choose_leaf_edge(splits[found.column])))
            leaves = self._fit_leaves(parts[0], found.column, edge, noise)
            stumps = _append(stumps, found.column, search.threshold(found), leaves)
            for part in parts:
                part.update([_merge(stumps, found.column)], len(stumps) * stumps.levels)
            scores.append([part.share_certified() for part in parts])
            best = added + 1 if scores[-1][-1] > scores[best][-1] else best
            if self.n_iter_no_change is not None and added + 1 - best >= self.n_iter_no_change:
                break
        if self.n_iter_no_change is not None:
            n_kept = stumps.features.size - (len(stumps) - n_first) + best
            stumps, scores = _take(stumps, slice(n_kept)), scores[: best + 1]
        return stumps, np.array(scores)

    def _choose_leaf_edge(self, splits: Sequence[int]) -> int:
        """The split of a feature, of those in order of addition, that parts the rows of the new stump's leaves."""
        return splits[-1]

    def _fit_leaves(self, rows: _Rows, column: int, edge: float, noise: Noise) -> tuple[float, float]:
        """Leaves that take a Newton step of the cross-entropy, on the grid."""
        scale = noise.scales(np.array([column]))[0]
        distance = (edge - rows.X[:, column]) / scale
        size = np.abs(rows.residual)
        curvature = _SMOOTHING + size * (1 - size)
        leaves = []
        for share in (noise.cdf(distance), noise.cdf(-distance)):
            weight = rows.weights * share
            step = (
                0.25
                * self.learning_rate
                * (weight @ rows.residual)
                / max(weight @ curvature, np.finfo(np.float64).tiny)
            )
            leaves.append(float(np.rint(np.clip(0.5 + step, 0.0, 1.0) * self.levels) / self.levels))
        return leaves[0], leaves[1]

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

    def _set_aside(self, table: TrainingTable) -> tuple[TrainingTable, list[TrainingTable]]:
        """Rows to train on, and the rows set aside for validation, if any."""
        if self.validation_fraction is None and self.n_iter_no_change is None:
            return table, []
        kept, aside = train_test_split(
            np.arange(table.target.size),
            test_size=_VALIDATION_FRACTION if self.validation_fraction is None else float(self.validation_fraction),
            stratify=table.target,
            random_state=self.random_state,
        )
        return _take_rows(table, np.sort(kept)), [_take_rows(table, np.sort(aside))]


class _Rows:
    """Rows with the laws of their scores; `residual` is the label minus the certifiable prediction of each."""

    def __init__(self, table: TrainingTable, first: Stumps, noise: Noise, failure: float, n_threads: int) -> None:
        model = first.to_ensemble()
        self.X = table.X
        self.weights = table.row_weight
        self.residual = np.empty(0)
        self._target = table.target
        self._laws = ScoreLaws(table.X, noise, failure, n_threads)
        self._shift = np.zeros(table.target.size, dtype=np.int64)  # what categories add to the score
        for categories in model.category_tables:
            self._shift += categories.evaluate(table.X[:, categories.feature])
        # narrow terms first: their laws stay small, and features with wide terms are those that will change
        terms = sorted(model.step_functions, key=lambda term: int(np.ptp(term.scores)))
        self.update(terms, len(first) * first.levels)

    def update(self, terms: Iterable[StepFunction], most: int) -> None:
        """Put new terms in place of the old ones; `most` is the largest score that stumps could have."""
        for term in terms:
            self._laws.replace_term(term)
        if most:
            score = self._laws.certifiable_scores(self._target) + self._shift
            self.residual = np.asarray(self._target - score / most)
        else:  # without a model the prediction is 1/2
            self.residual = np.asarray(self._target - 0.5, dtype=np.float64)

    def share_certified(self) -> float:
        """Weighted share of the rows whose certifiable prediction is on the side of the label."""
        right = np.where(self._target == 1, self.residual < 0.5, self.residual >= -0.5)
        return float(np.average(right, weights=self.weights))


def _make_grid(noise: Noise, step: float) -> SplitGrid:
    """Candidates over the range of the values, and as far beyond as uniform noise reaches."""
    beyond = noise.magnitude if isinstance(noise, Uniform) else 0.0
    return SplitGrid(beyond + 0.5 * step, beyond + step, step)


def _take_rows(table: TrainingTable, rows: IntArray) -> TrainingTable:
    weights = None if table.sample_weight is None else table.sample_weight[rows]
    return replace(table, X=table.X[rows], target=table.target[rows], sample_weight=weights)


def _append(stumps: Stumps, feature: int, threshold: float, leaves: tuple[float, float]) -> Stumps:
    return replace(
        stumps,
        features=np.append(stumps.features, feature),
        thresholds=np.append(stumps.thresholds, threshold),
        left=np.append(stumps.left, leaves[0]),
        right=np.append(stumps.right, leaves[1]),
    )


def _take(stumps: Stumps, chosen: Any) -> Stumps:
    return replace(
        stumps,
        features=stumps.features[chosen],
        thresholds=stumps.thresholds[chosen],
        left=stumps.left[chosen],
        right=stumps.right[chosen],
    )


def _merge(stumps: Stumps, feature: int) -> StepFunction:
    """The term of one feature."""
    (term,) = replace(_take(stumps, stumps.features == feature), tables=()).to_ensemble().step_functions
    return term
