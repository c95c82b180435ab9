"""What all regressors share: numbers as targets, predicting, and certifying intervals.

Owns the errors that bad targets get. Predicting and certifying run the same code (`derand.certify_interval`). Must not
know how tables are read (`_base`) or how anything is trained.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from derand._core.arrays import FloatArray
from derand._core.origin import refuse_other_rows
from derand._core.progress import counting
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
from derand.estimators._reading import refuse_gaps
from derand.estimators._showing import as_table, name_all, name_unit
from derand.explain import Explanations, Extreme, NumberExplanation, Reach, tell_number
from derand.model import Model
from derand.noise import Noise
from derand.threat import EVERY, Threat
from derand.train import RegressionTable, RegressionTraining

_LARGEST = 1e15
"""Of targets: whole scores beside them must fit into doubles."""
_INSTEAD = {
    "certify": "`certify_interval(X, radius)` says where an answer stays, `certify_radius(X, tolerance)` how much "
    "change keeps it within a tolerance",
    "attack": "`attack_interval(X, radius)` looks for the lowest and the highest answer",
}
"""What a classifier has, and what a regressor has in its place."""


class CertifiedRegressor(RegressorMixin, CertifiedEstimator):
    """A regressor that is smoothed by noise and certified.

    Subclasses take the parameters `noise`, `scaling`, `categorical_features`, `rule` and `n_jobs`, refuse what makes no
    sense in `_check_parameters`, and train in `_train`.
    """

    def __getattr__(self, name: str) -> Any:
        """Where a classifier's method is asked for, say which one there is."""
        instead = f": its answers are numbers. {_INSTEAD[name]}." if name in _INSTEAD else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{instead}", name=name, obj=self)

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
        X, target, weights = self._keep_weighted(X, target, sample_weight)
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
        if training.record is not None:
            self.training_ = training.record
        return training.warnings

    def predict(self, X: Any) -> FloatArray:
        """The number that answers each row, by the `rule`: the median of noisy copies, or the expected score.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        rows = self._encode_rows(X)
        return find_answers(self.ensemble_, rows, self.noise_, rule=self.rule, n_jobs=self.n_jobs)

    def certify_interval(
        self,
        X: Any,
        radius: float | None = None,
        *,
        l0: int | None = None,
        unseen: bool | None = None,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | float | None = None,
        n_jobs: int | None = None,
    ) -> Intervals:
        """The number that answers each row, and an interval that no change within the radius can take it out of.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        radius : float or None
            In the estimator's units; None is what the regressor was trained for, and nothing where limits alone say
            what may change (`Threat(norm=None)`).
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
        size, how = choose_radius(self, asked, radius), self._choose_way(rule, proof, n_jobs)
        with self._listen(), counting("certifying", len(rows)):
            found = certify_interval_checked(self.ensemble_, rows, chosen, asked, radius=size, **how)
        return found.with_origin(X)

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
        noise: Noise | str | float | None = None,
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
        how = self._choose_way(rule, proof, n_jobs)
        with self._listen(), counting("certifying", len(rows)):
            found = certify_radius_checked(self.ensemble_, rows, chosen, asked, tolerance=tolerance, **how)
        return found.with_origin(X)

    def _choose_way(self, rule: str | None, proof: str, n_jobs: int | None) -> dict[str, Any]:
        """How is certified; what is not said is the estimator's own."""
        return {"rule": rule or self.rule, "proof": proof, "n_jobs": self.n_jobs if n_jobs is None else n_jobs}

    def attack_interval(
        self,
        X: Any,
        radius: float | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
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
            With changed rows that `predict` takes: arrays, or frames of the library and with the index of `X` where the
            table that the regressor was trained on has names. A category that training did not see stands for all such.
        """
        rows, chosen, asked = self._ask(X, None, None, threat, rule, "best", noise)
        found = attack_interval(
            self.ensemble_,
            rows,
            chosen,
            choose_radius(self, asked, radius),
            rule=rule or self.rule,
            threat=asked,
            random_state=random_state,
            n_jobs=self.n_jobs,
        )
        found = found.with_origin(X)
        low, high = (name_changed(self, np.asarray(one), found.origin) for one in (found.low_rows, found.high_rows))
        return replace(found, low_rows=low, high_rows=high)

    def explain(
        self,
        X: Any,
        radius: float | None = None,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
    ) -> Any:
        """What adds up to the answer of a row, where it stays within the radius, and what each column alone can do.

        `print` tells it in words, its `plot` draws it, and notebooks show it.

        Parameters
        ----------
        X : one row, or array or frame of shape (n_rows, n_features)
            One row is `X[0]`, `frame.iloc[0]`, a mapping of columns to values, or a table of one row. Each row takes as
            long as certifying it once for every column.
        radius, threat, rule, noise
            As for `certify_interval`.

        Returns
        -------
        NumberExplanation, of several rows a tuple of them
            What is said of one column alone holds while nothing else changes; a category may become anything there,
            whatever `l0` of the threat is, and a missing number stays so. The lowest and the highest answers that were
            found leave whole numbers whole.
        """
        check_is_fitted(self)
        table, _ = as_table(X, self.encoding_)
        rows, chosen, asked = self._ask(table, None, None, threat, rule, "best", noise)
        size = choose_radius(self, asked, radius)
        found = [self._explain_row(row, chosen, asked, size, rule or self.rule) for row in rows]
        return found[0] if len(found) == 1 else Explanations(found)

    def _explain_row(
        self, row: FloatArray, noise: Noise | None, threat: Threat, radius: float | None, rule: str
    ) -> NumberExplanation:
        model = self.ensemble_

        def bound(one: Threat) -> Intervals:
            return certify_interval_checked(model, row[None], noise, one, radius=radius, rule=rule)

        joint = bound(threat)
        reaches = []
        for at in _find_free(model, threat, row):
            ends = bound(_leave_alone(model, threat, at))
            reaches.append(Reach(at, float(ends.low[0]), float(ends.high[0])))
        steps = threat.with_whole(self.encoding_.find_whole(row[None]))
        attacked = attack_interval(model, row[None], noise, radius, rule=rule, threat=steps, n_jobs=self.n_jobs)
        return tell_number(
            float(joint.value[0]),
            model,
            row,
            noise,
            threat=threat.resolve(noise),
            radius=radius,
            joint=Reach(None, float(joint.low[0]), float(joint.high[0])),
            columns=reaches,
            extremes=(
                Extreme(float(attacked.low[0]), np.asarray(attacked.low_rows)[0]),
                Extreme(float(attacked.high[0]), np.asarray(attacked.high_rows)[0]),
            ),
            names=name_all(self),
            points=self._points,
            unit=name_unit(self, threat),
        )

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
        refuse_other_rows(X, certificates, "X")
        with self._listen():
            return audit(self.ensemble_, self._encode_rows(X), certificates, rows=rows, random_state=random_state)

    @property
    def _points(self) -> float:
        """How many whole scores are 1 of the target."""
        return float(self.ensemble_.members[0].levels)

    @property
    def _height(self) -> str:
        return "added to the answer"

    def _ask(
        self,
        X: Any,
        l0: int | None,
        unseen: bool | None,
        threat: Threat | None,
        rule: str | None,
        proof: str,
        noise: Noise | str | float | None,
    ) -> tuple[FloatArray, Noise | None, Threat]:
        """Rows as the model reads them, the noise and the threat that are asked for; refused before rows are read."""
        check_is_fitted(self)
        if np.ndim(l0) != 0:  # type: ignore[arg-type]
            raise ValueError(f"`l0` must be one number of categorical features here, got {l0!r}.")
        (asked,) = self._ask_threats(l0, unseen, threat)
        named = self._name_columns(asked)
        chosen = self._choose_noise(noise, named)
        check_request(rule or self.rule, proof, chosen, [named])
        return self._encode_rows(X), chosen, named


def _leave_alone(model: Model, threat: Threat, column: int) -> Threat:
    """The threat in which one column alone may change."""
    own: dict[str, Any] = {
        name: {at: value for at, value in getattr(threat, name).items() if at in (column, EVERY)}
        for name in ("limits", "domain", "steps", "may_become")
    }
    others = tuple(at for at in range(model.n_features) if at != column)
    return replace(threat, frozen=others, l0=int(column in model.categorical_features), missing="fixed", **own)


def _find_free(model: Model, threat: Threat, row: FloatArray) -> list[int]:
    """Columns of a model that may change, each by itself: numbers that the threat lets change, and categories."""
    numbers = [at for at in model.numerical_features if not np.isnan(row[at])]
    free = [at for at in numbers if threat.may_move(at)]
    return [*free, *(int(at) for at in model.categorical_features if at not in threat.frozen)]


_LABELS = "labels are learnt by a classifier, such as AdditiveClassifier"


def read_targets(X: Any, y: ArrayLike) -> FloatArray:
    """The number of each row, all of them finite and of a size that can be computed with."""
    if np.asarray(y).dtype.kind == "c":
        raise ValueError("Complex data not supported: `y` must hold numbers, got complex ones.")
    given: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(X, given)
    refuse_gaps(given, "a number")
    if given.dtype.kind not in "biufO":
        found = "text" if given.dtype.kind in "US" else f"the type {given.dtype}"
        raise ValueError(f"`y` must hold numbers, got {found}: {_LABELS}.")
    try:
        target = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Unknown label type: `y` must hold numbers, got text or something else among them: {_LABELS}."
        ) from None
    assert_all_finite(target, input_name="y")
    largest = float(np.abs(target).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(f"`y` must lie within +-{_LARGEST:g}, got {largest:g}: divide it by some large number.")
    return target


def choose_radius(regressor: CertifiedRegressor, threat: Threat, radius: float | None) -> float | None:
    """The radius of intervals: as asked, or what the regressor was trained for; None where there is no ball."""
    if radius is not None or threat.norm is None:
        return radius
    if threat.norm == 0:
        raise ValueError("`radius` must be given in norm 0: how many numerical columns may become anything, such as 1.")
    trained = regressor.get_params(deep=False).get("radius")
    if not trained:
        raise ValueError(
            f"`radius` must be given, such as 0.25: this {type(regressor).__name__} was not trained for one."
        )
    return float(trained)
