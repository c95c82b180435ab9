"""Models of scikit-learn around another model: searches for the best settings, and classifiers that move a threshold.

Owns at which raw score of the model inside such a classifier decides. Must not know estimators.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._core.origin import Fitted
from derand.convert._columns import require_fitted
from derand.convert._reading import Reading
from derand.convert._registry import read_model, select_importer
from derand.convert._trees import DOUBLE, SHARES


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
    compared : object
        The threshold as scikit-learn compares it, in the precision that it has.
    """

    inner: Fitted
    method: str
    threshold: float
    is_first: bool
    compared: Fitted = None


def has_own_threshold(model: object) -> bool:
    """Whether a model decides elsewhere than the one inside it, so that its labels are worth a comparison."""
    names = ("CalibratedClassifierCV", "FixedThresholdClassifier", "TunedThresholdClassifierCV")
    return select_importer(model) in {f"sklearn.{name}" for name in names}


def unwrap_threshold(model: Fitted) -> Wrapped | None:
    """What a fitted classifier that moves another one's threshold consists of; None for all else."""
    name = select_importer(model)
    if name not in ("sklearn.FixedThresholdClassifier", "sklearn.TunedThresholdClassifierCV"):
        return None
    inner: Fitted = getattr(model, "estimator_", None)
    if inner is None and hasattr(model, "threshold"):  # a fixed one may be around a model that was fitted before
        inner = model.estimator
    inner = thaw(inner)
    require_fitted(model, hasattr(inner, "classes_"))
    method = model.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    threshold = model.best_threshold_ if hasattr(model, "best_threshold_") else model.threshold
    if isinstance(threshold, str):
        threshold = 0.5 if method == "predict_proba" else 0.0
    compared, threshold = threshold, float(threshold)
    if not math.isfinite(threshold) or (method == "predict_proba" and not 0 < threshold < 1):
        raise ValueError(
            f"The threshold of {type(model).__name__} must lie between 0 and 1, both left out, got {threshold!r}: at "
            "the end of all probabilities it has one answer alone."
        )
    return Wrapped(inner, method, threshold, _read_positive(model) == inner.classes_[0], compared)


def thaw(model: Fitted) -> object:
    """The model inside FrozenEstimator."""
    while type(model).__name__ == "FrozenEstimator":
        model = model.estimator
    return model


def _read_positive(model: object) -> object:
    """The label of the positive class; None where it is the second one."""
    if hasattr(model, "_curve_scorer"):
        return model._curve_scorer._get_pos_label()
    return getattr(model, "pos_label", None)


def read(model: Fitted) -> Reading:
    """The model inside, with its raw score moved so that it is above 0 where the wrapper answers the second class."""
    wrapped = unwrap_threshold(model)
    if wrapped is None:
        return _read_search(model)
    reading = read_model(wrapped.inner)
    if reading.classes is None or len(reading.classes) != 2:
        raise ValueError(f"{type(model).__name__} is for two classes, got {reading.source} inside.")
    if reading.respond is not None and wrapped.method == "predict_proba":
        kept = wrapped.compared
        if wrapped.is_first:
            return reading.move(*reading.locate_answers(lambda answers: ~(answers[:, 0] >= kept)))
        return reading.move(*reading.locate_answers(lambda answers: answers[:, 1] >= kept))
    return reading.move(*locate_threshold(reading, wrapped.method, wrapped.threshold, is_first=wrapped.is_first))


def _read_search(model: object) -> Reading:
    """The model that was fitted with the best settings of a GridSearchCV or RandomizedSearchCV."""
    if not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"`model` must be fitted, got a {type(model).__name__} that is not, or that did not fit its best settings "
            "anew: call `fit`, with refit=True."
        )
    return read_model(model.best_estimator_)


def locate_threshold(reading: Reading, method: str, number: float, *, is_first: bool) -> tuple[float, float]:
    """The raw score above which the answer is the second class, and how far the library's arithmetic may be off it.

    `method`: what is compared with `number`; from there on the answer is the positive class, the first one (`is_first`)
    or the second one.
    """
    if method == "decision_function":
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
        error = 64 * DOUBLE / (number * (1 - number) if is_odds else 1.0) / slope
    # the answer is the positive class: the second one at the score itself, the first one there
    if not reading.tie:
        return (score if is_first else float(np.nextafter(score, -np.inf))), error
    # shares that additions do not round lie on a lattice, and were moved down by `tie`
    scale = SHARES * max(shape.divisor for shape in reading.trees)
    share = round(number * scale) / SHARES / (scale / SHARES)
    if abs(share - number) > 4 * reading.tie:
        return score - reading.tie, 0.0
    is_positive = share >= number
    score = score + (number - share if is_first else share - number)
    return (score if is_positive == is_first else score - 2 * reading.tie), 0.0
