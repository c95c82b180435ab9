"""What all regressors share: numbers as targets, predicting, and certifying intervals.

Predicting and certifying run the same code (`derand.certify_interval`). Must not know how tables are read (`_base`) or
how anything is trained.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from derand._core.arrays import FloatArray
from derand._core.origin import Frame
from derand._core.progress import counting
from derand._core.text import Facts
from derand.certificates import (
    IntervalAttacks,
    Intervals,
    ToleranceRadii,
    attack_interval,
    certify_interval_checked,
    certify_radius_checked,
    find_answers,
)
from derand.estimators._base import CertifiedEstimator
from derand.estimators._inputs import read_targets
from derand.estimators._proving import DomainOption, prove_encoded
from derand.estimators._showing import as_table, name_all, name_unit
from derand.explain import Explanations, Extreme, ModelPromises, NumberExplanation, Reach, explain_regression
from derand.explain.heights import measure_heights
from derand.fitted import choose_radius
from derand.model import Model
from derand.noise import Noise
from derand.tables import check_target
from derand.threat import EVERY, Threat, refuse_linked
from derand.train import RegressionTable, RegressionTraining

_AVERAGED_ROWS = 20_000
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

    def _fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[str, ...]:
        """Train, and say what there is to warn of."""
        X, target, weights = self._read_numbers(X, y, sample_weight)
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
        self.term_means_ = self._average_terms(matrix)
        return training.warnings

    def _average_terms(self, matrix: FloatArray) -> FloatArray:
        """What each term adds on average over training rows, evenly chosen where they are many."""
        rows = matrix[:: max(1, -(-len(matrix) // _AVERAGED_ROWS))]
        means = []
        for term in self.ensemble_.members[0].terms:
            cells = rows[:, list(term.features)]
            heights = measure_heights(term, cells[:, 0] if len(term.features) == 1 else cells, self.noise_)
            means.append(float(heights.mean()))
        return np.array(means) / self._points

    def _read_numbers(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[object, FloatArray, FloatArray | None]:
        """The rows of positive weight, their targets and weights."""
        X = self._begin_fit(X, y, "numbers")
        return self._keep_weighted(X, read_targets(X, y), sample_weight)

    def _doubt_columns(self, X: object, y: ArrayLike) -> str | None:
        name = getattr(y, "name", None)
        target = None if name is None else check_target(name, np.asarray(y, dtype=np.float64))
        return " ".join(filter(None, [super()._doubt_columns(X, y), target])) or None

    def predict(self, X: object) -> FloatArray:
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
        X: object,
        radius: float | None = None,
        *,
        l0: int | None = None,
        unseen: bool | None = None,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | float | None = None,
        n_jobs: int | None = None,
        budget: int | None = None,
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
        proof, n_jobs, budget
            As for `derand.certify_interval`.

        Returns
        -------
        Intervals
        """
        request = self._ask(X, self._ask_threats(l0, unseen, threat), rule, noise, proof, n_jobs, budget)
        rows, chosen, (asked,) = request.rows, request.noise, request.threats
        size = choose_radius(self, asked, radius)
        with self._listen(), counting("certifying", len(rows)):
            found = certify_interval_checked(self.ensemble_, rows, chosen, asked, radius=size, **request.how)
        return found.with_origin(X)

    def certify_radius(
        self,
        X: object,
        tolerance: float,
        *,
        l0: int | None = None,
        unseen: bool | None = None,
        threat: Threat | None = None,
        rule: str | None = None,
        proof: str = "best",
        noise: Noise | str | float | None = None,
        n_jobs: int | None = None,
        budget: int | None = None,
    ) -> ToleranceRadii:
        """The number that answers each row, and the radius within which it moves by the tolerance at most.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        tolerance : float
            In units of the target.
        l0, unseen, threat, rule, proof, noise, n_jobs, budget
            As for `certify_interval`.

        Returns
        -------
        ToleranceRadii
        """
        request = self._ask(X, self._ask_threats(l0, unseen, threat), rule, noise, proof, n_jobs, budget)
        rows, chosen, (asked,) = request.rows, request.noise, request.threats
        with self._listen(), counting("certifying", len(rows)):
            found = certify_radius_checked(self.ensemble_, rows, chosen, asked, tolerance=tolerance, **request.how)
        return found.with_origin(X)

    def attack_interval(
        self,
        X: object,
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
        request = self._ask(X, self._ask_threats(None, None, threat), rule, noise)
        (asked,) = request.threats
        found = attack_interval(
            self.ensemble_,
            request.rows,
            request.noise,
            choose_radius(self, asked, radius),
            rule=request.rule,
            threat=asked,
            random_state=random_state,
            n_jobs=request.n_jobs,
        )
        found = found.with_origin(X)
        low, high = (self._name_changed(np.asarray(one), found.origin) for one in (found.low_rows, found.high_rows))
        return replace(found, low_rows=low, high_rows=high)

    def prove(
        self,
        X: Frame = None,
        *,
        monotone: Mapping[str | int, Any] | None = None,
        domain: DomainOption = None,
        unseen: bool = False,
        missing: bool = False,
        radius: float | None = None,
        norm: float = np.inf,
        rule: str | None = None,
        noise: Noise | str | float | None = None,
        budget: int | None = None,
    ) -> ModelPromises:
        """What holds for every row, seen or not: ends of the answer, its directions, and how far it can change.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features), or None
            Numbers of linear models stay within its ranges.
        monotone : dict of column to {"increasing", "decreasing"}, or None
            None asks for none.
        domain, unseen, missing, radius, norm, rule, noise, budget
            As for classifiers.

        Returns
        -------
        ModelPromises
        """
        check_is_fitted(self)
        return prove_encoded(
            self,
            None if X is None else self._encode_rows(X),
            self._choose_noise(noise),
            self.rule if rule is None else rule,
            monotone=monotone,
            domain=domain,
            unseen=unseen,
            missing=missing,
            radius=radius,
            norm=norm,
            budget=budget,
        )

    def explain(
        self,
        X: object,
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
        request = self._ask(as_table(X, self.encoding_), self._ask_threats(None, None, threat), rule, noise)
        (asked,) = request.threats
        refuse_linked(asked, "`explain`")
        size = choose_radius(self, asked, radius)
        found = [self._explain_row(row, request.noise, asked, size, request.rule) for row in request.rows]
        return found[0] if len(found) == 1 else Explanations(found)

    def _explain_row(
        self, row: FloatArray, noise: Noise | None, threat: Threat, radius: float | None, rule: str
    ) -> NumberExplanation:
        model = self.ensemble_

        def bound(one: Threat) -> Intervals:
            return certify_interval_checked(model, row[None], noise, one, radius=radius, rule=rule)

        joint = bound(threat)
        reaches = []
        for at in _list_free(model, threat, row):
            ends = bound(_leave_alone(model, threat, at))
            reaches.append(Reach(at, float(ends.low[0]), float(ends.high[0])))
        steps = threat.with_whole(self.encoding_.find_whole(row[None]))
        attacked = attack_interval(model, row[None], noise, radius, rule=rule, threat=steps, n_jobs=self.n_jobs)
        return explain_regression(
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
            means=getattr(self, "term_means_", None),
        )

    @property
    def _points(self) -> float:
        """How many whole scores are 1 of the target."""
        return float(self.ensemble_.members[0].levels)

    @property
    def _height(self) -> str:
        return "added to the answer"

    def _ask_threats(self, l0: int | Sequence[int] | None, unseen: bool | None, threat: Threat | None) -> list[Threat]:
        if np.ndim(l0) != 0:  # type: ignore[arg-type]
            raise ValueError(f"`l0` must be one number of categorical features here, got {l0!r}.")
        return super()._ask_threats(l0, unseen, threat)


def _leave_alone(model: Model, threat: Threat, column: int) -> Threat:
    """The threat in which one column alone may change."""
    own: Facts = {
        name: {at: value for at, value in getattr(threat, name).items() if at in (column, EVERY)}
        for name in ("limits", "domain", "steps", "may_become")
    }
    others = tuple(at for at in range(model.n_features) if at != column)
    return replace(threat, frozen=others, l0=int(column in model.categorical_features), missing="fixed", **own)


def _list_free(model: Model, threat: Threat, row: FloatArray) -> list[int]:
    """Columns of a model that may change, each by itself: numbers that the threat lets change, and categories."""
    numbers = [at for at in model.numerical_features if not np.isnan(row[at])]
    free = [at for at in numbers if threat.may_move(at)]
    return [*free, *(int(at) for at in model.categorical_features if at not in threat.frozen)]
