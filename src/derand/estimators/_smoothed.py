"""Models of other libraries, trained on noisy copies of rows and then smoothed: SmoothedClassifier, SmoothedRegressor.

Owns the noisy copies and the comparison with the model without noise. Must not know any library, nor how a model is
read (`_imported`).
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags

from derand._core.arrays import FloatArray, IntArray, Targets
from derand._core.origin import Fitted, Frame
from derand._core.text import Facts, quote_short
from derand.convert import Reading, read_model
from derand.estimators._base import DEFAULT_NOISE, Columns
from derand.estimators._imported import ImportedClassifier, ImportedEstimator, ImportedRegressor, from_reading
from derand.estimators._inside import assemble
from derand.metrics import judge_answers, measure_answers
from derand.noise import Noise
from derand.tables import stack_copies, take_rows
from derand.train import TrainingTable

_COMPARED_ROWS = 2_000
_TWO_POINTS = 0.02
_MOST_COPIES = 1_000


class SmoothedEstimator(MetaEstimatorMixin, ImportedEstimator):
    """What both share: noisy copies, training, reading what was trained."""

    _needs_noise = True
    _measure = ""
    """What `score` is, in words."""

    def __init__(
        self,
        estimator: object,
        *,
        noise: Noise | str | float | None = None,
        augment: int = 10,
        rule: str = "vote",
        scaling: str | None = "standard",
        categorical_features: Columns = "from_dtype",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.augment = augment
        self.rule = rule
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _default_noise(self) -> Noise | None:
        return DEFAULT_NOISE

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole = isinstance(self.augment, numbers.Integral) and not isinstance(self.augment, bool)
        if not whole or not 0 <= self.augment <= _MOST_COPIES:
            raise ValueError(
                f"`augment` must be a whole number from 0 to {_MOST_COPIES}, the noisy copies of each row to train on, "
                f"got {self.augment!r}."
            )
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                f"`estimator` must be a model to be trained, such as LGBMClassifier(max_depth=1), got "
                f"{self.estimator!r}."
            )

    def _train_inner(self, X: object, target: Targets, weights: FloatArray | None) -> tuple[str, ...]:
        """Train on noisy copies, read what was trained, and say where smoothing costs much."""
        encoding, matrix = self._learn_encoding(X)
        codes = {column: len(values) for column, values in encoding.categories.items()}
        table = TrainingTable(matrix, np.zeros(len(matrix), dtype=np.uint8), np.ones(2), None, codes, encoding.names)
        noise, _ = self._scale_noise(table)
        assert noise is not None  # `_check_noise`
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        rows, copies = X, 1
        if self.augment:
            copies = int(self.augment)
            rows = stack_copies(X, encoding.numerical, noise.sample(matrix, copies, rng))
        self.estimator_ = clone(self.estimator)
        given = {} if weights is None else {_name_weights(self.estimator_): np.tile(weights, copies)}
        self.estimator_ = self._fit_inner(self.estimator_, rows, np.tile(target, copies), given)
        reading = self._name_classes(read_model(self.estimator_), target)
        if reading.noise is not None:
            raise ValueError(
                f"{reading.source} is smoothed already: give it noise='none' to smooth it by {type(self).__name__}, or "
                "certify it by `from_model`."
            )
        self._require_numbers(reading.encoding.categories, encoding.numerical)
        reading = replace(reading, precise=())  # what was read is the model itself, in any precision
        asked = {name: getattr(self, name, None) for name in ("decision_threshold", "cost")}
        read = from_reading(reading, X, noise=noise, rule=self.rule, scaling=None, n_jobs=self.n_jobs, **asked)
        for name, value in vars(read).items():
            if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_"):
                setattr(self, name, value)
        return self._compare(X, target, weights, rng)

    def _require_numbers(self, categories: Any, numerical: tuple[int, ...]) -> None:
        """Refuse noise on columns that the inner model reads as categories."""
        wrong = sorted(set(categories) & set(numerical)) if self.augment else []
        if wrong:
            names = [str(getattr(self, "feature_names_in_", range(wrong[-1] + 1))[column]) for column in wrong[:5]]
            raise ValueError(
                f"`estimator` reads columns as categories to which noise was added: {', '.join(names)}. Name them in "
                "`categorical_features`, too."
            )

    def _compare(
        self, X: Frame, target: Targets, weights: FloatArray | None, rng: np.random.Generator
    ) -> tuple[str, ...]:
        """What to say where the smoothed model is worse than a plain one, on training rows, or answers one label."""
        n_rows = len(target)
        at: IntArray = np.sort(rng.choice(n_rows, min(n_rows, _COMPARED_ROWS), replace=False))
        rows = take_rows(X, at)
        answers = self.predict(rows)
        told = self._warn_of_one_answer(answers, target[at])
        smoothed = self._rate(answers, target[at])
        given = np.ravel(self._train_plainly(X, target, weights).predict(rows))
        plain = self._rate(self._name_answers(given, target), target[at])
        if not math.isfinite(smoothed) or plain - smoothed <= _TWO_POINTS:
            return told
        copies = f"{self.augment} noisy copies of each row" if self.augment else "rows without noise"
        cure = "raise `augment`" if self.augment else "set `augment`, to 10 for instance"
        return (
            *told,
            f"Smoothing costs {100 * (plain - smoothed):.1f} points of {self._measure} on training rows: "
            f"{100 * smoothed:.1f} % under {self._make_noise()!r}, {100 * plain:.1f} % by a model that was trained "
            f"without noise. This one was trained on {copies}: {cure}, or take less noise.",
        )

    def _train_plainly(self, X: object, target: Targets, weights: FloatArray | None) -> Any:
        """The inner model, trained on the rows as they are."""
        if not self.augment:
            return self.estimator_
        plain = clone(self.estimator)
        return self._fit_inner(plain, X, target, {} if weights is None else {_name_weights(plain): weights})

    def _fit_inner(self, model: Fitted, rows: object, target: Targets, weights: Facts) -> object:
        """The inner model, trained."""
        return model.fit(rows, target, **weights)

    def _name_classes(self, reading: Reading, target: Targets) -> Reading:
        """What was read of the inner model, with the classes of the target."""
        return reading

    def _name_answers(self, answers: Targets, target: Targets) -> Targets:
        """Answers of the inner model as the target has them."""
        return answers

    def _warn_of_one_answer(self, answers: Targets, target: Targets) -> tuple[str, ...]:
        """What to say where every row gets the same answer."""
        if (answers != answers[0]).any() or (target == target[0]).all():
            return ()
        return (
            f"Every one of {answers.size:,} training rows gets the same answer, {quote_short(answers.tolist()[0])}, "
            f"under {self._make_noise()!r}: certificates of such a model say nothing. Take less noise, or give rare "
            "classes more weight.",
        )

    @abstractmethod
    def _rate(self, answers: Targets, target: Targets) -> float:
        """How good answers are; 1 is best."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator) if hasattr(self.estimator, "__sklearn_tags__") else None
        tags.input_tags.allow_nan = inner is None or inner.input_tags.allow_nan
        return tags


def _name_weights(model: object) -> str:
    """How the weights of rows are called in `fit`; of a pipeline, those of its last step."""
    steps = getattr(model, "steps", None)
    return f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"


class SmoothedClassifier(SmoothedEstimator, ImportedClassifier):
    """A classifier of another library, trained for smoothing: on noisy copies of each row, and then read.

    Parameters
    ----------
    estimator : classifier that `from_model` can read
        Such as LGBMClassifier(max_depth=1); it is cloned, not changed.
    noise : Noise, str or None
        The noise that smooths the model, and that is added to the numbers of training rows; None is `Gaussian(0.25)`.
    augment : int
        Noisy copies of each row to train on, instead of the row itself; 0 trains on the rows as they are. Categories,
        booleans and missing values are the same in all copies.
    rule : {"vote", "mean"}
        How `predict` answers: the label of most noisy copies, or that of the expected score.
    scaling : {"standard", "range", "robust"} or None
        What counts as a change of 1 of each column; None for 1 in its own units.
    categorical_features : "from_dtype", None, or a list of names or of column numbers, or a mask
        Columns to which no noise is added. "from_dtype" takes those of text, of booleans and of a category type.
    random_state : int, RandomState or None
        Of the noise. That of the model is its own.
    n_jobs : int or None
        Threads to predict and certify with.
    verbose : bool
        Say on standard error what is being done.
    decision_threshold, cost
        As of ImportedClassifier: the threshold of the inner model's score is moved. By the rule "vote" each noisy copy
        votes by it.

    Attributes
    ----------
    estimator_ : the fitted inner model
    ensemble_ : AdditiveEnsemble
        The same as a sum of functions.
    classes_ : array of shape (n_classes,)
    noise_ : Noise
        With the units of `scaling`.
    link_, source_ : str
        As of ImportedClassifier.

    Notes
    -----
    `fit` warns where the smoothed model gets more than two points of accuracy less than the inner model trained without
    noise, on at most 2,000 training rows, and where all of them get one label. `predict_proba` is the share of noisy
    copies that get each label; by the rule "mean" what the library makes of the expected raw score. It is saved as the
    ImportedClassifier that it is; `load` gives that.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from derand import SmoothedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> inner = GradientBoostingClassifier(max_depth=1, n_estimators=30, random_state=0)
    >>> clf = SmoothedClassifier(inner, scaling="standard", augment=3, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9), bool(clf.certify(X[:20]).radius.mean() > 0.1)
    (True, True)
    """

    _measure = "accuracy"

    def __init__(
        self,
        estimator: object,
        *,
        noise: Noise | str | float | None = None,
        augment: int = 10,
        rule: str = "vote",
        scaling: str | None = "standard",
        categorical_features: Columns = "from_dtype",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        decision_threshold: float | None = None,
        cost: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(
            estimator,
            noise=noise,
            augment=augment,
            rule=rule,
            scaling=scaling,
            categorical_features=categorical_features,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.decision_threshold = decision_threshold
        self.cost = cost

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        X, classes, target, weights = self._read_labels(X, y, sample_weight)
        return self._train_inner(X, classes[target], weights)

    def _fit_inner(self, model: Fitted, rows: object, target: Targets, weights: Facts) -> object:
        """Trained on the labels or, where it refuses these (XGBoost takes 0, 1, ... alone), on their numbers."""
        try:
            return model.fit(rows, target, **weights)
        except ValueError:
            classes, codes = np.unique(target, return_inverse=True)
            if np.array_equal(classes, np.arange(classes.size)):
                raise
            try:
                return clone(model).fit(rows, codes, **weights)
            except ValueError:
                pass
            raise

    def _name_classes(self, reading: Reading, target: Targets) -> Reading:
        return replace(reading, classes=self._name_answers(np.asarray(reading.classes), target))

    def _name_answers(self, answers: Targets, target: Targets) -> Targets:
        classes = np.unique(target)
        is_coded = np.array_equal(getattr(self.estimator_, "classes_", ()), np.arange(classes.size))
        return classes[answers.astype(np.int64)] if is_coded else answers

    def _warn_of_one_answer(self, answers: Targets, target: Targets) -> tuple[str, ...]:
        """The same, and what to say where no more answers are right than of a constant one."""
        told = super()._warn_of_one_answer(answers, target)
        cost = None if self._costs is None else self._costs._asdict()
        remark = judge_answers(measure_answers(target, answers, classes=self.classes_, cost=cost))
        if told or remark is None or remark.level != "warning":
            return told
        return (f"On {answers.size:,} training rows: {remark.text}",)

    def _rate(self, answers: Targets, target: Targets) -> float:
        return float((answers == target).mean())


class SmoothedRegressor(SmoothedEstimator, ImportedRegressor):
    """A regressor of another library, trained for smoothing: on noisy copies of each row, and then read.

    Parameters and attributes are those of SmoothedClassifier, without classes. `fit` warns where R^2 falls by more than
    0.02 on training rows.
    """

    _measure = "R^2"

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        return self._train_inner(*self._read_numbers(X, y, sample_weight))

    def _rate(self, answers: Targets, target: Targets) -> float:
        spread = float(((target - target.mean()) ** 2).sum())
        return 1 - float(((answers - target) ** 2).sum()) / spread if spread else math.nan


def as_stored(model: object) -> object:
    """What a file holds of a model: of a smoothed one what was trained, as an imported one with its noise and rule."""
    if not isinstance(model, SmoothedEstimator):
        return model
    if not hasattr(model, "ensemble_"):
        raise ValueError(f"`model` must be fitted, got a {type(model).__name__} that is not: call `fit` first.")
    kind: Any = ImportedClassifier if hasattr(model, "classes_") else ImportedRegressor
    found = {"link_": model.link_, "source_": model.source_, "units_": model.units_}
    parameters: Facts = {"noise": model.noise_, "rule": model.rule, "n_jobs": model.n_jobs}
    if isinstance(model, ImportedClassifier):
        parameters |= {"decision_threshold": model.decision_threshold, "cost": model.cost}
    if hasattr(model, "calibration_"):
        found["calibration_"] = model.calibration_
    classes = getattr(model, "classes_", None)
    return assemble(kind, model.ensemble_, model.noise_, model.encoding_, found, parameters, classes=classes)
