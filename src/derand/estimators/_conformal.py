"""Prediction sets whose coverage holds when every row may have been changed within a threat.

Split conformal prediction, calibrated on worst cases: the nonconformity of each calibration row is the largest that a
change of that row within the threat can make it. A changed row that is then seen has no larger one, so that its true
answer is in its set as often as promised. Owns the quantile. Must not know how worst cases are bounded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import BoolArray, FloatArray
from derand._core.origin import Frame
from derand.certificates import bound_distance, bound_nonconformity, find_answers, measure_nonconformity, require_sum
from derand.estimators._base import CertifiedEstimator, Request
from derand.estimators._classifier import CertifiedClassifier
from derand.estimators._inputs import read_targets
from derand.estimators._regressor import CertifiedRegressor
from derand.threat import Threat


class ConformalPredictor:
    """Sets of classes, or intervals of numbers, that hold the true answer as often as promised, under attack, too.

    Parameters
    ----------
    estimator : fitted classifier or regressor of derand
        By the rule "mean", or without noise.
    coverage : float
        The share of rows whose true answer is in their set, at least, on average over calibration and new rows.
    threat : Threat or None
        Within what every new row may have been changed. None is what the estimator was trained against.
    radius : float or None
        Of a threat with a norm; None is what the estimator was trained for. 0 is plain conformal prediction, where no
        category may change.

    Attributes
    ----------
    quantile_ : float
        The largest nonconformity in a set, in units of the score or of the target; infinite where there are too few
        calibration rows for the coverage: sets then hold everything.
    n_calibration_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from derand import AdditiveClassifier, ConformalPredictor
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> clf = AdditiveClassifier(radius=0.1, regularization=0.1).fit(X[:250], y[:250])
    >>> sets = ConformalPredictor(clf, coverage=0.9).calibrate(X[250:400], y[250:400])
    >>> inside = sets.predict_set(X[400:])
    >>> inside.shape, inside.dtype.name
    ((169, 2), 'bool')
    """

    quantile_: float
    n_calibration_: int

    def __init__(
        self,
        estimator: CertifiedClassifier | CertifiedRegressor,
        *,
        coverage: float = 0.9,
        threat: Threat | None = None,
        radius: float | None = None,
    ) -> None:
        if isinstance(coverage, bool) or not isinstance(coverage, int | float | np.floating) or not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie between 0 and 1, such as 0.9, got {coverage!r}.")
        if not isinstance(estimator, CertifiedEstimator) or not hasattr(estimator, "ensemble_"):
            raise TypeError(f"`estimator` must be a fitted estimator of derand, got {type(estimator).__name__}.")
        require_sum(estimator.ensemble_, estimator.noise_, estimator.rule)
        self.estimator, self.coverage, self.threat, self.radius = estimator, float(coverage), threat, radius

    def calibrate(self, X: Frame, y: ArrayLike) -> Self:
        """Measure worst cases of rows that took no part in fitting or tuning.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            True labels or numbers.

        Returns
        -------
        self
        """
        if not len(np.asarray(y)):
            raise ValueError("`X` must hold calibration rows, got none.")
        own = self.estimator
        request = self._ask(X)
        (threat,) = request.threats
        radius = self._choose_radius(threat)
        if isinstance(own, CertifiedClassifier):
            truth = self._read_labels(own, y, len(request.rows))
            worst = bound_nonconformity(own.ensemble_, request.rows, truth, request.noise, threat, radius)
        else:
            targets = read_targets(X, y)
            worst = bound_distance(own.ensemble_, request.rows, targets, request.noise, threat, radius)
        self.n_calibration_ = int(worst.size)
        rank = math.ceil((worst.size + 1) * Fraction(repr(self.coverage)))
        self.quantile_ = float(np.sort(worst)[rank - 1]) if rank <= worst.size else math.inf
        return self

    def predict_set(self, X: Frame) -> BoolArray | FloatArray:
        """The set of each row, as it is seen.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        array of booleans, shape (n_rows, n_classes): which of `classes_` are in the set; of numbers the lowest and the
        highest one, (n_rows, 2)
        """
        if not hasattr(self, "quantile_"):
            raise ValueError("This ConformalPredictor is not calibrated: call `calibrate` with rows and their answers.")
        request, own = self._ask(X), self.estimator
        if isinstance(own, CertifiedClassifier):
            return np.asarray(measure_nonconformity(own.ensemble_, request.rows, request.noise) <= self.quantile_)
        values = find_answers(own.ensemble_, request.rows, request.noise, rule="mean")
        # by one step outward: a true number at the very end is inside
        low = np.nextafter(values - self.quantile_, -np.inf)
        return np.stack([low, np.nextafter(values + self.quantile_, np.inf)], axis=1)

    def _ask(self, X: Frame) -> Request:
        given = self.estimator.default_threat if self.threat is None else self.threat
        return self.estimator._ask(X, [given], "mean", None)

    def _choose_radius(self, threat: Threat) -> float | None:
        if threat.norm is None:
            return None
        own = self.estimator.get_params(deep=False).get("radius")
        radius = own if self.radius is None else self.radius
        if radius is None:
            raise ValueError(
                f"`radius` must be given, such as 0.25: this {type(self.estimator).__name__} was not trained for one."
            )
        return float(radius)

    @staticmethod
    def _read_labels(own: CertifiedClassifier, y: ArrayLike, n_rows: int) -> NDArray[np.int64]:
        labels = np.asarray(y)
        if labels.shape != (n_rows,):
            raise ValueError(f"`y` must hold one label per row, {n_rows} in all, got shape {labels.shape}.")
        known = own.classes_.tolist()
        strange = [label for label in labels.tolist() if label not in known]
        if strange:
            raise ValueError(f"`y` must hold labels among {known}, got {strange[0]!r}.")
        return np.array([known.index(label) for label in labels.tolist()], dtype=np.int64)
