"""What all regressors share: numbers as targets, predicting, and certifying intervals.

Owns the errors that bad targets get. Predicting and certifying run the same code (`derand.certify_interval`). Must not
know how tables are read (`_base`) or how anything is trained.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from derand._arrays import FloatArray
from derand.auditing import Audit, audit
from derand.certificates import (
    IntervalAttacks,
    Intervals,
    ToleranceRadii,
    attack_interval,
    certify_interval_checked,
    certify_radius_checked,
    check_request,
    find_answers,
)
from derand.estimators._attacking import name_changed
from derand.estimators._base import CertifiedEstimator
from derand.estimators._reading import read_weights
from derand.frames import TableEncoding, take_rows
from derand.learn import RegressionTable, RegressionTraining
from derand.model import Model
from derand.noise import Noise
from derand.threat import Threat

_LARGEST = 1e15
"""Of targets: whole scores beside them must fit into doubles."""


class CertifiedRegressor(RegressorMixin, CertifiedEstimator):
    """A regressor that is smoothed by noise and certified.

    Subclasses take the parameters `noise`, `scaling`, `categorical_features`, `rule` and `n_jobs`, refuse what makes no
    sense in `_check_parameters`, and train in `_train`.
    """

    @abstractmethod
    def _train(self, table: RegressionTable, noise: Any) -> RegressionTraining:
        """Train on a table."""

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        """Train, and say what there is to warn of."""
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: give {type(self).__name__} numbers.")
        self._check_parameters()
        X = self._check_table(X, reset=True)
        target = read_targets(X, y)
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, target.size)
            counted = np.flatnonzero(weights)
            X, target, weights = take_rows(X, counted), target[counted], weights[counted]
        encoding, matrix = self._learn_encoding(X)
        n_categories = {column: len(values) for column, values in encoding.categories.items()}
        table = RegressionTable.of(matrix, target, weights, n_categories, encoding.names)
        training = self._train(table, self._keep_table(table.rows, encoding))
        self.ensemble_ = training.model
        self.regularization_ = training.regularization
        self.path_ = {
            "regularization": training.path.regularization.tolist(),
            "loss": training.path.loss.tolist(),
            "error": training.path.error.tolist(),
        }
        self.feature_importances_ = training.importances
        return training.warnings

    @classmethod
    def from_parts(
        cls,
        ensemble: Model,
        noise: Noise | None,
        encoding: TableEncoding,
        /,
        training: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """A fitted regressor from its parts, as a file holds them.

        Parameters
        ----------
        ensemble : AdditiveEnsemble
        noise : Noise or None
            With units, where it has them.
        encoding : TableEncoding
        training : mapping of attribute to value, or None
            What else `fit` found, such as `path_`.
        **parameters
            Of the constructor (`noise` as it was given there, too); those that make no sense are refused, as by `fit`.
        """
        return cls._assemble(ensemble, noise, encoding, training, parameters)

    def predict(self, X: Any) -> FloatArray:
        """The number that answers each row, by the `rule`: the median of noisy copies, or the expected score.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        rows = self.encode_rows(X)
        return find_answers(self.ensemble_, rows, self.noise_, rule=self.rule, n_jobs=self.n_jobs)

    def certify_interval(
        self,
        X: Any,
        radius: float | None,
        *,
        l0: int | None = None,
        unseen: bool | None = None,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | None = None,
        n_jobs: int | None = None,
    ) -> Intervals:
        """The number that answers each row, and an interval that no change within the radius can take it out of.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        radius : float or None
            In the estimator's units; None where limits alone say what may change (`Threat(norm=None)`).
        l0 : int
            How many categorical features may change at the same time; None is that of `default_threat`.
        unseen : bool
            Whether a categorical feature may change to a value that training did not see; None is True, in the same
            way.
        threat : Threat or None
            What may change, instead of `l0` and `unseen`; columns by name, where the table has names.
        rule, noise
            None is the estimator's own, so that values are those of `predict`. The noise "none" is the model as
            deployed, by the rule "mean".
        proof, n_jobs
            As for `derand.certify_interval`.

        Returns
        -------
        Intervals
        """
        rows, chosen, asked = self._ask(X, l0, unseen, threat, rule, proof, noise)
        return certify_interval_checked(
            self.ensemble_,
            rows,
            chosen,
            asked,
            radius=radius,
            rule=rule or self.rule,
            proof=proof,
            n_jobs=self.n_jobs if n_jobs is None else n_jobs,
        )

    def certify_radius(
        self,
        X: Any,
        tolerance: float,
        *,
        l0: int | None = None,
        unseen: bool | None = None,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | None = None,
        n_jobs: int | None = None,
    ) -> ToleranceRadii:
        """The number that answers each row, and the radius within which it moves by the tolerance at most.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        tolerance : float
            In units of the target.
        l0, unseen, threat, rule, proof, noise, n_jobs
            As for `certify_interval`.

        Returns
        -------
        ToleranceRadii
        """
        rows, chosen, asked = self._ask(X, l0, unseen, threat, rule, proof, noise)
        return certify_radius_checked(
            self.ensemble_,
            rows,
            chosen,
            asked,
            tolerance=tolerance,
            rule=rule or self.rule,
            proof=proof,
            n_jobs=self.n_jobs if n_jobs is None else n_jobs,
        )

    def attack_interval(
        self,
        X: Any,
        radius: float | None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | None = None,
        random_state: int = 0,
    ) -> IntervalAttacks:
        """The lowest and the highest answer that a change of each row within the radius was found to have.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        radius, threat, rule, noise
            As for `certify_interval`.
        random_state : int
            As for `derand.attack_interval`.

        Returns
        -------
        IntervalAttacks
            With changed rows that `predict` takes: arrays, or pandas frames where the table that the regressor was
            trained on has names. A category that training did not see stands for all such.
        """
        rows, chosen, asked = self._ask(X, None, None, threat, rule, "best", noise)
        found = attack_interval(
            self.ensemble_,
            rows,
            chosen,
            radius,
            rule=rule or self.rule,
            threat=asked,
            random_state=random_state,
            n_jobs=self.n_jobs,
        )
        low, high = (name_changed(self, np.asarray(one)) for one in (found.low_rows, found.high_rows))
        return replace(found, low_rows=low, high_rows=high)

    def audit(
        self, X: Any, certificates: Intervals | ToleranceRadii, *, rows: int | None = 200, random_state: int = 0
    ) -> Audit:
        """Prove once more what `certify_interval` or `certify_radius` claimed, by other code, in ball arithmetic.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows that were certified.
        certificates : Intervals or ToleranceRadii
        rows, random_state
            As for `derand.audit`.

        Returns
        -------
        Audit
        """
        return audit(self.ensemble_, self.encode_rows(X), certificates, rows=rows, random_state=random_state)

    def _ask(
        self,
        X: Any,
        l0: int | None,
        unseen: bool | None,
        threat: Threat | None,
        rule: str | None,
        proof: str,
        noise: Noise | str | None,
    ) -> tuple[FloatArray, Noise | None, Threat]:
        """Rows as the model reads them, the noise and the threat that are asked for; refused before rows are read."""
        check_is_fitted(self)
        if np.ndim(l0) != 0:  # type: ignore[arg-type]
            raise ValueError(f"`l0` must be one number of categorical features here, got {l0!r}.")
        (asked,) = self._ask_threats(l0, unseen, threat)
        chosen, named = self._choose_noise(noise), self._name_columns(asked)
        check_request(rule or self.rule, proof, chosen, [named])
        return self.encode_rows(X), chosen, named


def read_targets(X: Any, y: ArrayLike) -> FloatArray:
    """The number of each row, all of them finite and of a size that can be computed with."""
    if np.asarray(y).dtype.kind == "c":
        raise ValueError("Complex data not supported: `y` must hold numbers, got complex ones.")
    given: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(X, given)
    if given.dtype.kind not in "biufO":
        raise ValueError(f"`y` must hold numbers, got the type {given.dtype}: a classifier takes labels.")
    try:
        target = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("Unknown label type: `y` must hold numbers, got text or something else among them.") from None
    assert_all_finite(target, input_name="y")
    largest = float(np.abs(target).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(f"`y` must lie within +-{_LARGEST:g}, got {largest:g}: divide it by some large number.")
    return target
