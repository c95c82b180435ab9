"""What all estimators share: reading tables and labels, weights, the noise's units, predicting and certifying.

A trainer is one more file with a subclass and its `_fit_ensemble`, which turns a TrainingTable into a model.
Predicting and certifying run the same code (`derand.certificates.certify`): the estimator adds the encoding of
tables and the names of the classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from derand.certificates import Certificates, certify
from derand.ensemble import Model
from derand.frames import TableEncoding, is_frame
from derand.noise import Gaussian, Noise, as_noise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

INFINITE_RADIUS = 1e9
"""What `decision_function` gives, in magnitudes of the noise, where no change at all can flip the label: more than
any finite radius (a term adds at most 750), yet finite, as scikit-learn's metrics demand."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTable:
    """What a trainer sees: checked, encoded, without rows of weight 0.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Categorical columns hold codes, NaN where the category is missing.
    target : array of shape (n_rows,)
        0 or 1.
    class_weight : array of shape (2,)
    sample_weight : array of shape (n_rows,) or None
        Of mean 1; not yet multiplied by the class weights.
    encoding : TableEncoding
        Names of the columns, and the categories of the categorical ones.
    """

    X: FloatArray
    target: NDArray[np.uint8]
    class_weight: FloatArray
    sample_weight: FloatArray | None
    encoding: TableEncoding

    @property
    def numerical(self) -> IntArray:
        """Numbers of the numerical columns."""
        every = range(self.encoding.n_features)
        return np.array([column for column in every if column not in self.encoding.categories], dtype=np.int64)

    @property
    def row_weight(self) -> FloatArray:
        """Sample weight times class weight of each row."""
        by_class = self.class_weight[self.target]
        return by_class if self.sample_weight is None else by_class * self.sample_weight


class SmoothedClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A two-class classifier that is smoothed by noise and certified.

    Subclasses take the parameters `noise`, `class_weight`, `scaling`, `categorical_features` and `n_jobs`,
    and offer `_fit_ensemble`.
    """

    noise: Noise | str | None
    class_weight: Any
    scaling: str | None
    categorical_features: Any
    n_jobs: int | None

    @abstractmethod
    def _fit_ensemble(self, table: TrainingTable, noise: Noise) -> Model:
        """Train: the model, class 1 being `classes_[1]`."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            Numbers, and categories (text, booleans) in categorical columns. Numerical columns must be finite; a
            missing category teaches nothing.
        y : array-like of shape (n_rows,)
            Labels, of two kinds.
        sample_weight : array-like of shape (n_rows,), optional
            Not negative; scaled to mean 1. Rows of weight 0 are left out.

        Returns
        -------
        self
        """
        before = vars(self).copy()
        try:
            self._fit(X, y, sample_weight)
        except BaseException:  # an interrupted fit, too, leaves the estimator as it was
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: give {type(self).__name__} labels.")
        self._check_parameters()
        X = self._check_table(X, reset=True)
        classes, target = _read_labels(X, y)
        weights = None
        if sample_weight is not None:
            weights = _read_weights(sample_weight, target.size)
            counted = np.flatnonzero(weights)
            X, target, weights = _take_rows(X, counted), target[counted], weights[counted]
        if np.unique(target).size < 2:
            raise ValueError(
                f"`y` must hold two classes among the rows of positive weight, got only one class, "
                f"{classes.tolist()[int(target[0])]!r}: there is nothing to learn."
            )
        encoding = TableEncoding.learn(X, self.categorical_features)
        matrix = encoding.encode(X)
        encoding.check_finite(matrix)
        totals = np.bincount(target, weights=weights, minlength=2).astype(np.float64)
        class_weight = _resolve_class_weight(self.class_weight, classes, totals)
        table = TrainingTable(matrix, target, class_weight, weights, encoding)
        noise = self._resolve_noise(table)
        self.ensemble_ = self._fit_ensemble(table, noise)
        self.classes_, self.encoding_, self.noise_ = classes, encoding, noise

    @classmethod
    def from_parts(
        cls, ensemble: Model, noise: Noise, classes: NDArray[Any], encoding: TableEncoding, **parameters: Any
    ) -> Self:
        """A fitted classifier from its parts, as a file holds them.

        Parameters
        ----------
        ensemble : AdditiveEnsemble or WeightedVote
        noise : Noise
            With units, where it has them.
        classes : array of shape (2,)
        encoding : TableEncoding
        **parameters
            Of the constructor.
        """
        classifier = cls(**parameters)
        classifier.ensemble_, classifier.noise_ = ensemble, noise
        classifier.classes_, classifier.encoding_ = classes, encoding
        classifier.n_features_in_ = encoding.n_features
        if encoding.names is not None:
            classifier.feature_names_in_ = np.array(encoding.names, dtype=object)
        return classifier

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of the smoothed classifier: the one that most noisy copies of a row get.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of `classes_`
        """
        return self.certify(X).label

    def predict_proba(self, X: Any) -> FloatArray:
        """Exact probabilities that a noisy copy of a row gets each label.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
            P(score <= threshold), P(score > threshold); rows sum to 1. The smaller one keeps its relative accuracy.
        """
        certificates = self.certify(X)
        failure = np.minimum(certificates.failure, 0.5)
        is_one = certificates.label == self.classes_[1]
        return np.stack([np.where(is_one, failure, 1 - failure), np.where(is_one, 1 - failure, failure)], axis=1)

    def decision_function(self, X: Any) -> FloatArray:
        """Certified radius, positive for `classes_[1]` and negative for `classes_[0]`.

        It still ranks rows whose probabilities are all 1. A row that no change can flip counts with 1e9 magnitudes
        of the noise, so that all numbers are finite; one of `classes_[1]` for which nothing is certified counts
        with the smallest positive number, so that the sign is that of `predict`.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        certificates = self.certify(X)
        radius = np.minimum(certificates.radius, INFINITE_RADIUS * self.noise_.magnitude)
        positive = np.maximum(radius, np.finfo(np.float64).tiny)
        return np.where(certificates.label == self.classes_[1], positive, -radius)

    @overload
    def certify(
        self, X: Any, l0: int = 0, unseen: bool = True, *, backend: str | None = None, n_jobs: int | None = None
    ) -> Certificates: ...

    @overload
    def certify(
        self, X: Any, l0: Sequence[int], unseen: bool = True, *, backend: str | None = None, n_jobs: int | None = None
    ) -> list[Certificates]: ...

    def certify(
        self,
        X: Any,
        l0: int | Sequence[int] = 0,
        unseen: bool = True,
        *,
        backend: str | None = None,
        n_jobs: int | None = None,
    ) -> Certificates | list[Certificates]:
        """Label of each row, and the radius within which no change can flip it.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            A category that training did not see, or a missing one, is allowed.
        l0 : int or sequence of int
            How many categorical features may change at the same time; more than there are counts as all of them.
        unseen : bool
            Whether a categorical feature may change to a value that training did not see.
        backend, n_jobs
            As for `derand.certify`; `n_jobs` is the estimator's where it is not given.

        Returns
        -------
        Certificates with labels of `classes_`, or a list of them where `l0` is a sequence
        """
        jobs = self.n_jobs if n_jobs is None else n_jobs
        matrix = self._encode_rows(X)
        found: Any = certify(self.ensemble_, matrix, self.noise_, l0, unseen, backend, jobs)
        named = [
            replace(one, label=self.classes_[one.label], classes=self.classes_)
            for one in ([found] if isinstance(found, Certificates) else found)
        ]
        return named[0] if isinstance(found, Certificates) else named

    def _encode_rows(self, X: Any) -> FloatArray:
        """Rows to predict or certify as the model reads them."""
        check_is_fitted(self)
        matrix = self.encoding_.encode(self._check_table(X, reset=False))
        self.encoding_.check_finite(matrix)
        return matrix

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before any data is read."""
        if self.scaling not in (None, "standard", "range"):
            raise ValueError(f"`scaling` must be None, 'standard' or 'range', got {self.scaling!r}.")

    def _check_table(self, X: Any, reset: bool) -> Any:
        """X as a frame, or as an array of two dimensions whose cells are not looked at yet."""
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if 0 in X.shape:
                raise ValueError(f"Found array with 0 sample(s) or 0 feature(s) (shape={X.shape}) in `X`.")
            return X
        if not hasattr(X, "dtype") and np.asarray(X).dtype.kind in "US":
            X = np.array(X, dtype=object)  # lists that mix text and numbers: keep the numbers
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _resolve_noise(self, table: TrainingTable) -> Noise:
        """The noise with the units that `scaling` asks for."""
        noise = Gaussian(0.25) if self.noise is None else as_noise(self.noise)
        if self.scaling is None:
            if noise.units is not None and len(noise.units) != table.X.shape[1]:
                raise ValueError(
                    f"`units` of the noise must have one entry per column of `X`, {table.X.shape[1]} in all, "
                    f"got {len(noise.units)}."
                )
            return noise
        if noise.units is not None:
            raise ValueError(
                f"`scaling` is {self.scaling!r} and the noise has `units` of its own: give one of the two."
            )
        return noise.with_units(measure_units(table, self.scaling).tolist())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def measure_units(table: TrainingTable, scaling: str) -> FloatArray:
    """Population deviation ("standard") or range ("range") of each column, 1 for constant and categorical ones."""
    units = np.ones(table.X.shape[1])
    for column in table.numerical.tolist():
        values = table.X[:, column]
        span = float(values.max() - values.min())
        if span == 0:
            continue
        if scaling == "range":
            units[column] = span
        else:
            mean = np.average(values, weights=table.sample_weight)
            units[column] = np.sqrt(np.average((values - mean) ** 2, weights=table.sample_weight))
    return units


def _read_labels(X: Any, y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """The classes, sorted, and for each row which of the two it has."""
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    if type_of_target(labels) == "multiclass":
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"`y` holds {len(np.unique(labels))} classes; keep two, or train one classifier for each pair."
        )
    classes, target = np.unique(labels, return_inverse=True)
    return classes, target.astype(np.uint8)


def _read_weights(sample_weight: ArrayLike, n_rows: int) -> FloatArray:
    """Weights of the rows, of mean 1 over those that are positive."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"`sample_weight` must hold one number per row, {n_rows} in all, got shape {weights.shape}.")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("`sample_weight` must be finite and not negative, got a negative weight, NaN or infinity.")
    if not weights.any():
        raise ValueError("`sample_weight` must be positive for some row, got zeros alone.")
    return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def _take_rows(X: Any, rows: IntArray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]


def _resolve_class_weight(class_weight: Any, classes: NDArray[Any], totals: FloatArray) -> FloatArray:
    """Weight of each class, for the total weight of the rows of each."""
    if class_weight is None:
        return np.ones(2)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(totals.sum() / (2 * totals))
    if not isinstance(class_weight, dict):
        raise ValueError(f"`class_weight` must be None, 'balanced' or a dict of weights, got {class_weight!r}.")
    names = classes.tolist()
    strange = [name for name in class_weight if name not in names]
    if strange:
        raise ValueError(f"`class_weight` must name classes among {names}, got {strange[0]!r}.")
    weights = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"`class_weight` must hold positive, finite weights, got {class_weight!r}.")
    return weights
