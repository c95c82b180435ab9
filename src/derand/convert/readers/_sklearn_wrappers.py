"""Models of scikit-learn around another model: searches for the best settings, and classifiers that move a threshold.

Owns at which raw score of the model inside such a classifier decides. Must not know estimators.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand.convert._columns import require_fitted
from derand.convert._reading import Reading
from derand.convert._registry import read_model, select_importer
from derand.convert._trees import SINGLE


class Wrapped(NamedTuple):
    """A fitted model, and where its wrapper cuts.

    Attributes
    ----------
    inner : object
    method : {"predict_proba", "decision_function"}
        What is compared.
    threshold : float
        From which number on the answer is the positive class.
    is_first : bool
        Whether that is `classes_[0]`.
    """

    inner: Any
    method: str
    threshold: float
    is_first: bool


def unwrap_threshold(model: Any) -> Wrapped | None:
    """What a fitted classifier that moves another one's threshold consists of; None for all else."""
    name = select_importer(model)
    if name not in ("sklearn.FixedThresholdClassifier", "sklearn.TunedThresholdClassifierCV"):
        return None
    inner: Any = getattr(model, "estimator_", None)
    if inner is None and hasattr(model, "threshold"):  # a fixed one may be around a model that was fitted before
        inner = model.estimator
    while type(inner).__name__ == "FrozenEstimator":
        inner = inner.estimator
    require_fitted(model, hasattr(inner, "classes_"))
    method = model.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    threshold = model.best_threshold_ if hasattr(model, "best_threshold_") else model.threshold
    if isinstance(threshold, str):
        threshold = 0.5 if method == "predict_proba" else 0.0
    threshold = float(threshold)
    if not math.isfinite(threshold) or (method == "predict_proba" and not 0 < threshold < 1):
        raise ValueError(
            f"The threshold of {type(model).__name__} must lie between 0 and 1, both left out, got {threshold!r}: at "
            "the end of all probabilities it has one answer alone."
        )
    return Wrapped(inner, method, threshold, _read_positive(model) == inner.classes_[0])


def _read_positive(model: Any) -> Any:
    """The label of the positive class; None where it is the second one."""
    if hasattr(model, "_curve_scorer"):
        return model._curve_scorer._get_pos_label()
    return getattr(model, "pos_label", None)


def read(model: Any) -> Reading:
    """The model inside, with its raw score moved so that it is above 0 where the wrapper answers the second class."""
    wrapped = unwrap_threshold(model)
    if wrapped is None:
        return _read_search(model)
    reading = read_model(wrapped.inner)
    if reading.classes is None or len(reading.classes) != 2:
        raise ValueError(f"{type(model).__name__} is for two classes, got {reading.source} inside.")
    start, error = _locate_threshold(wrapped, reading)
    scores = reading.raw_scores

    def raw_scores(rows: FloatArray) -> FloatArray:
        assert scores is not None
        return np.asarray(scores(rows), dtype=np.float64) - start

    slope, shift = reading.calibration
    intercept = float(reading.intercept) - start
    rounding = 4 * EPSILON * (abs(float(reading.intercept)) + abs(start))
    return replace(
        reading,
        intercept=intercept,
        arithmetic_error=(reading.arithmetic_error + error + rounding) * (1 + 4 * EPSILON),
        raw_scores=None if scores is None else raw_scores,
        calibration=(slope, shift + slope * start),
    )


def _read_search(model: Any) -> Reading:
    """The model that was fitted with the best settings of a GridSearchCV or RandomizedSearchCV."""
    if not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"`model` must be fitted, got a {type(model).__name__} that is not, or that did not fit its best settings "
            "anew: call `fit`, with refit=True."
        )
    return read_model(model.best_estimator_)


def _locate_threshold(wrapped: Wrapped, reading: Reading) -> tuple[float, float]:
    """The raw score above which the answer is the second class, and how far the library's arithmetic may be off it."""
    number, is_first = wrapped.threshold, wrapped.is_first
    if wrapped.method == "decision_function":
        score, error = (-number if is_first else number), 0.0
    else:
        slope, shift = reading.calibration
        if reading.link == "none":
            raise ValueError(
                f"The probabilities of {reading.source} are no known function of its raw scores, so that a threshold "
                "of them cannot be certified: use response_method='decision_function', where it has one."
            )
        is_odds = reading.link == "logit"
        of_positive = math.log(number) - math.log1p(-number) if is_odds else number - 0.5
        score = ((-of_positive if is_first else of_positive) - shift) / slope
        error = 16 * SINGLE / (number * (1 - number) if is_odds else 1.0) / slope
    # from the threshold on the answer is the positive class: the second one at the score itself, the first one there
    return (score if is_first else float(np.nextafter(score, -np.inf))), error
