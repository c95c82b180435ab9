"""What all estimators share: fitting tables, the noise's units, predicting and certifying.

Owns scikit-learn's habits. A trainer's face is one more file with a subclass and its `_train`, which hands a
TrainingTable to a function of `derand.learn`. Predicting and certifying run the same code
(`derand.certificates.certify`): the estimator adds the encoding of tables and the names of the classes. Must not know
how anything is trained.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from derand._arrays import TINY, FloatArray
from derand.auditing import Audit, audit
from derand.certificates import (
    Attacks,
    Certificates,
    Explanation,
    certify_checked,
    check_request,
    explain,
    find_labels,
    find_rule,
    place_scores,
)
from derand.estimators._attacking import attack_encoded, name_rows
from derand.estimators._one_label import warn_of_one_label
from derand.estimators._reading import (
    ClassWeight,
    read_labels,
    read_weights,
    refuse_double_names,
    resolve_class_weight,
)
from derand.finite import refuse_masked
from derand.frames import TableEncoding, as_rows, is_frame, take_rows
from derand.learn import SCALINGS, TrainingTable, measure_units
from derand.model import Model
from derand.noise import Gaussian, Noise, as_noise, as_noise_or_none
from derand.threat import Threat, as_threats

Columns = str | Sequence[str | int | bool] | NDArray[Any] | None
"""Which columns are categorical: "from_dtype", None, names, numbers or a mask."""

DEFAULT_NOISE = Gaussian(0.25)

INFINITE_RADIUS = 1e9
"""What `decision_function` gives, in magnitudes of the noise, where no change at all can flip the label: more than
any finite radius (a term adds at most 750), yet finite, as scikit-learn's metrics demand."""


class Training(Protocol):
    """What a training function gives back, at least."""

    @property
    def model(self) -> Model: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


class CertifiedClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A two-class classifier that is smoothed by noise and certified.

    Subclasses take the parameters `noise`, `class_weight`, `scaling`, `categorical_features`, `rule` and `n_jobs`,
    refuse what makes no sense in `_check_parameters`, and train in `_train`.
    """

    noise: Any
    class_weight: ClassWeight
    scaling: str | None
    categorical_features: Columns
    rule: str
    n_jobs: int | None

    score_is_log_odds = False
    """Whether the score of `ensemble_`, divided by its `levels`, is a logarithm of odds."""

    @abstractmethod
    def _train(self, table: TrainingTable, noise: Any) -> Training:
        """Train, and keep what was found besides the model and its warnings; class 1 is `classes_[1]`."""

    @property
    def default_threat(self) -> Threat:
        """What `certify` certifies against where nothing is asked for: changes in the norm of the noise."""
        return Threat()

    @property
    def units(self) -> tuple[float, ...] | None:
        """What counts as a change of 1 of each feature; None for 1 everywhere."""
        return tuple(self.units_.tolist()) if self.noise_ is None else self.noise_.units

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            Numbers, and categories (text, booleans) in categorical columns. Numbers must be finite or missing (NaN,
            null, an empty cell): a missing one is a cell of its own, on which noise does not act. A missing category
            teaches nothing.
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
            for text in self._fit(X, y, sample_weight):
                warnings.warn(text, stacklevel=2)  # the one place that warns: it points at the call of `fit`
        except BaseException:  # an interrupted fit, too, leaves the estimator as it was
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        """Train, and say what there is to warn of."""
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: give {type(self).__name__} labels.")
        self._check_parameters()
        X = self._check_table(X, reset=True)
        classes, target = read_labels(X, y)
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, target.size)
            counted = np.flatnonzero(weights)
            X, target, weights = take_rows(X, counted), target[counted], weights[counted]
        if np.unique(target).size < 2:
            raise ValueError(
                f"`y` must hold two classes among the rows of positive weight, got only one class, "
                f"{classes.tolist()[int(target[0])]!r}: there is nothing to learn."
            )
        encoding = TableEncoding.learn(X, self.categorical_features)
        matrix = encoding.encode_finite(X, may_miss=encoding.numerical)
        encoding.require_some(matrix)
        totals = np.bincount(target, weights=weights, minlength=2).astype(np.float64)
        class_weight = resolve_class_weight(self.class_weight, classes, totals)
        n_categories = {column: len(values) for column, values in encoding.categories.items()}
        table = TrainingTable(matrix, target, class_weight, weights, n_categories, encoding.names)
        noise, units = self._resolve_noise(table)
        self.classes_, self.encoding_, self.noise_ = classes, encoding, noise
        if noise is None:
            self.units_ = np.ones(table.n_features) if units is None else np.array(units)
        training = self._train(table, noise)
        self.ensemble_ = training.model
        return (*self._warn_of_one_label(table, totals, training), *training.warnings)

    def _warn_of_one_label(self, table: TrainingTable, totals: FloatArray, training: Training) -> tuple[str, ...]:
        """What to say where all rows get one label; `totals` holds the weight of each class."""
        return warn_of_one_label(self, table, totals)

    @classmethod
    def from_parts(
        cls,
        ensemble: Model,
        noise: Noise | None,
        classes: NDArray[Any],
        encoding: TableEncoding,
        /,
        training: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """A fitted classifier from its parts, as a file holds them.

        Parameters
        ----------
        ensemble : AdditiveEnsemble or WeightedVote
        noise : Noise or None
            With units, where it has them.
        classes : array of shape (2,)
        encoding : TableEncoding
        training : mapping of attribute to value, or None
            What else `fit` found, such as `entropy_`.
        **parameters
            Of the constructor (`noise` as it was given there, too); those that make no sense are refused, as by `fit`.
        """
        classifier = cls(**parameters)
        classifier._check_parameters()
        classifier.ensemble_, classifier.noise_ = ensemble, noise
        classifier.classes_, classifier.encoding_ = classes, encoding
        classifier.n_features_in_ = encoding.n_features
        if encoding.names is not None:
            classifier.feature_names_in_ = np.array(encoding.names, dtype=object)
        for name, value in (training or {}).items():
            setattr(classifier, name, value)
        return classifier

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of the smoothed classifier, by its `rule`: the one that most noisy copies of a row get, or "mean".

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,), of `classes_`
        """
        rows = self.encode_rows(X)
        return self.classes_[find_labels(self.ensemble_, rows, self.noise_, rule=self.rule, n_jobs=self.n_jobs)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Exact probabilities that a noisy copy of a row gets each label; by the rule "mean" the place of its score.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
            P(score <= threshold), P(score > threshold); rows sum to 1. The smaller one keeps its relative accuracy.
            By the rule "mean", where the expected score stands between the least and the largest possible one, the
            threshold being 1/2: not calibrated.
        """
        rows = self.encode_rows(X)
        if self.rule == "mean":
            share = 0.5 + 0.5 * place_scores(self.ensemble_, rows, self.noise_)
            return np.stack([1 - share, share], axis=1)
        (certificates,) = self._certify_by_law(rows)
        failure = np.minimum(certificates.failure, 0.5)
        is_one = certificates.label == self.classes_[1]
        return np.stack([np.where(is_one, failure, 1 - failure), np.where(is_one, 1 - failure, failure)], axis=1)

    def _certify_by_law(self, rows: FloatArray) -> list[Certificates]:
        """Certificates that follow from probabilities alone: these rank rows as probabilities do."""
        assert self.noise_ is not None  # a vote has one
        return self.certify_encoded(rows, [Threat(norm=self.noise_.norm)], proof="paper")

    def decision_function(self, X: Any) -> FloatArray:
        """Radius by the paper's proof, positive for `classes_[1]` and negative for `classes_[0]`.

        It ranks rows as `predict_proba` does, even those whose probabilities are all 1; `certify` may prove more. A row
        that no change can flip counts with 1e9 magnitudes of the noise, so that all numbers are finite; one of
        `classes_[1]` for which nothing is certified counts with the smallest positive number, so that the sign is that
        of `predict`. By the rule "mean" it is the place of the expected score between its extremes, from -1 to 1.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        rows = self.encode_rows(X)
        if self.rule == "mean":
            return place_scores(self.ensemble_, rows, self.noise_)
        (certificates,) = self._certify_by_law(rows)
        assert self.noise_ is not None  # a vote has one
        radius = np.minimum(certificates.radius, INFINITE_RADIUS * self.noise_.magnitude)
        positive = np.maximum(radius, TINY)
        return np.where(certificates.label == self.classes_[1], positive, -radius)

    @overload
    def certify(
        self,
        X: Any,
        l0: int | None = None,
        unseen: bool | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
    ) -> Certificates: ...

    @overload
    def certify(
        self,
        X: Any,
        l0: Sequence[int],
        unseen: bool | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
    ) -> list[Certificates]: ...

    def certify(
        self,
        X: Any,
        l0: int | Sequence[int] | None = None,
        unseen: bool | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
    ) -> Certificates | list[Certificates]:
        """Label of each row, and the radius within which no change can flip it.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            A category that training did not see, or a missing one, is allowed; a missing number only in columns in
            which some were missing in training, or that the model does not read.
        l0 : int or sequence of int
            How many categorical features may change at the same time; more than there are counts as all of them. None
            is that of `default_threat`: what an AdditiveClassifier was trained against, 0 for all others.
        unseen : bool
            Whether a categorical feature may change to a value that training did not see. None is True, in the same
            way.
        threat : Threat or None
            What may change, instead of `l0` and `unseen`; columns by name, where the table has names. None is
            `default_threat`.
        rule : {"vote", "mean"} or None
            None is the estimator's own, so that labels are those of `predict`.
        proof : {"best", "paper"}
            What may prove the radius of a vote.
        noise : Noise, str or None
            None is the estimator's own. "none" is no smoothing, the model as deployed: it needs the rule "mean", and
            its labels may differ from those of `predict`. Radii count in the estimator's units; so does another noise
            that has no units itself.
        backend, n_jobs
            As for `derand.certify`; `n_jobs` is the estimator's where it is not given.

        Returns
        -------
        Certificates with labels of `classes_`, or a list of them where `l0` is a sequence
        """
        check_is_fitted(self)
        threats = self._ask_threats(l0, unseen, threat)
        check_request(rule or self.rule, proof, self._choose_noise(noise), [self._name_columns(one) for one in threats])
        found = self.certify_encoded(
            self.encode_rows(X), threats, rule=rule, proof=proof, noise=noise, backend=backend, n_jobs=n_jobs
        )
        return found[0] if l0 is None or np.ndim(l0) == 0 else found

    def certify_encoded(
        self,
        rows: FloatArray,
        threats: Sequence[Threat],
        *,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | None = None,
        backend: str | None = None,
        n_jobs: int | None = None,
    ) -> list[Certificates]:
        """`certify` for rows that `encode_rows` returned, for each of several threats that differ in `l0` alone."""
        found = certify_checked(
            self.ensemble_,
            rows,
            self._choose_noise(noise),
            [self._name_columns(one) for one in threats],
            rule=rule or self.rule,
            proof=proof,
            backend=backend,
            n_jobs=self.n_jobs if n_jobs is None else n_jobs,
        )
        return [one.with_classes(self.classes_) for one in found]

    def explain(
        self, X: Any, *, threat: Threat | None = None, rule: str | None = None, noise: Noise | str | None = None
    ) -> Explanation:
        """The least change of each column that flips the answer of one row alone, and the cheapest of all numbers.

        Parameters
        ----------
        X : array or frame of shape (1, n_features)
            One row, such as `X[:1]` or `frame.iloc[[0]]`.
        threat : Threat or None
            Its norm and units measure changes, and within its limits they stay; frozen columns are left out.
        rule, noise
            As for `certify`.

        Returns
        -------
        Explanation
            `columns` from the smallest change to the largest, each with what is certified and what was found; features
            by number (`feature_names_in_` has their names), changed rows as the model reads them (`decode_rows` turns
            them back).
        """
        rows = self.encode_rows(X)
        if len(rows) != 1:
            raise ValueError(f"`X` must hold one row, got {len(rows)}: explain them one by one, such as X[:1].")
        found = explain(
            self.ensemble_,
            rows[0],
            self._choose_noise(noise),
            rule=rule or self.rule,
            threat=self._name_columns(threat or self.default_threat),
        )
        return replace(found, label=self.classes_[found.label])

    def attack(
        self,
        X: Any,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | None = None,
        random_state: int = 0,
    ) -> Attacks:
        """The smallest change of each row that was found to flip its answer: an upper bound beside `certify`'s radius.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        threat, rule, noise
            As for `certify`.
        random_state : int
            As for `derand.attack`.

        Returns
        -------
        Attacks
            With labels of `classes_`, and `rows` that `predict` takes: an array, or a pandas frame where the table that
            the classifier was trained on has names. A category that training did not see stands for all such.
        """
        rows = self.encode_rows(X)
        chosen, asked = self._choose_noise(noise), self._name_columns(threat or self.default_threat)
        return name_rows(self, attack_encoded(self, rows, chosen, rule or self.rule, asked, random_state))

    def audit(self, X: Any, certificates: Certificates, *, rows: int | None = 200, random_state: int = 0) -> Audit:
        """Prove what `certify` claimed about these rows once more, by other code, in ball arithmetic.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows that were certified.
        certificates : Certificates
        rows, random_state
            As for `derand.audit`.

        Returns
        -------
        Audit
        """
        return audit(self.ensemble_, self.encode_rows(X), certificates, rows=rows, random_state=random_state)

    def _name_columns(self, threat: Threat) -> Threat:
        """The threat by numbers of columns and codes of categories, counting in the classifier's units."""
        named = threat.name_columns(self.encoding_.names, self.encoding_.categories)
        norm = self.default_threat.norm if named.norm == "auto" else named.norm
        return replace(named, norm=norm, units=self.units if named.units is None else named.units)

    def _ask_threats(self, l0: int | Sequence[int] | None, unseen: bool | None, threat: Threat | None) -> list[Threat]:
        """The threats that are asked for; what is not said is as in `default_threat`."""
        asked, own = as_threats(l0, unseen, threat), self.default_threat
        if threat is not None:
            return asked
        return [
            replace(
                own,
                l0=own.l0 if l0 is None else one.l0,
                unseen=own.unseen if unseen is None else one.unseen,
            )
            for one in asked
        ]

    def decode_rows(self, rows: FloatArray) -> Any:
        """Rows as the model reads them, such as witnesses, back in the words of the table that it was trained on.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)

        Returns
        -------
        pandas DataFrame, or an array of objects where the table had no names
            A category that training did not see, or a missing one, is None.
        """
        check_is_fitted(self)
        cells = np.array(rows, dtype=object)
        for column, values in self.encoding_.categories.items():
            names = np.array([*values, None], dtype=object)
            codes = np.asarray(rows, dtype=np.float64)[:, column]
            known = (codes >= 0) & (codes < len(values))
            cells[:, column] = names[np.where(known, codes, len(values)).astype(np.int64)]
        if self.encoding_.names is None:
            return cells
        import pandas as pd

        frame = pd.DataFrame(cells, columns=list(self.encoding_.names))
        numbers = [frame.columns[at] for at in range(frame.shape[1]) if at not in self.encoding_.categories]
        return frame.astype(dict.fromkeys(numbers, float))

    def _choose_noise(self, noise: Noise | str | None) -> Noise | None:
        """The noise to certify under: the estimator's own for None, none at all for "none"."""
        if noise is None:
            return self.noise_
        other = as_noise_or_none(noise)
        if other is None or other.units is not None:
            return other
        return other.with_units(self.units)

    def encode_rows(self, X: Any) -> FloatArray:
        """Rows to predict or certify as the model reads them."""
        check_is_fitted(self)
        refuses = set(self.ensemble_.refuses_missing)
        may_miss = [column for column in self.encoding_.numerical if column not in refuses]
        return self.encoding_.encode_finite(self._check_table(X, reset=False), may_miss=may_miss)

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before any data is read."""
        if self.scaling is not None and self.scaling not in SCALINGS:
            known = ", ".join(map(repr, SCALINGS[:-1]))
            raise ValueError(f"`scaling` must be None, {known} or {SCALINGS[-1]!r}, got {self.scaling!r}.")
        find_rule(self.rule)
        self._check_noise()

    def _check_noise(self) -> None:
        if isinstance(self.noise, str) and self.noise == "none":
            raise ValueError(
                f"`noise` of {type(self).__name__} must be a noise, got 'none': it is trained under noise. To certify "
                "the model without smoothing, fit it and use `certify(X, noise='none', rule='mean')`."
            )
        self._make_noise()

    def _make_noise(self) -> Noise | None:
        """The noise that is asked for, without the units of `scaling`."""
        return DEFAULT_NOISE if self.noise is None else as_noise(self.noise)

    def _check_table(self, X: Any, reset: bool) -> Any:
        """X as a frame, or as an array of two dimensions whose cells are not looked at yet."""
        refuse_masked(X)
        if is_frame(X):
            refuse_double_names(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if 0 in X.shape:
                raise ValueError(f"Found array with 0 sample(s) or 0 feature(s) (shape={X.shape}) in `X`.")
            return X
        return validate_data(self, as_rows(X), reset=reset, dtype=None, ensure_all_finite=False)

    def _resolve_noise(self, table: TrainingTable) -> tuple[Noise | None, tuple[float, ...] | None]:
        """The noise with the units that `scaling` asks for, and these units."""
        noise = self._make_noise()
        own = None if noise is None else noise.units
        if self.scaling is None:
            if own is not None and len(own) != table.n_features:
                raise ValueError(
                    f"`units` of the noise must have one entry per column of `X`, {table.n_features} in all, "
                    f"got {len(own)}."
                )
            return noise, own
        if own is not None:
            raise ValueError(
                f"`scaling` is {self.scaling!r} and the noise has `units` of its own: give one of the two."
            )
        units = tuple(measure_units(table, self.scaling).tolist())
        return (None if noise is None else noise.with_units(units)), units

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags
