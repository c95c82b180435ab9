"""CalibratedClassifierCV of two classes with one calibrator: a monotone map of the raw score, turned into a threshold.

Owns at which raw score the calibrated probability passes one half: the library's own `predict_proba` is asked, by
bisection. Equal probabilities are class 0. Must not know estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from derand._core.arrays import BoolArray, FloatArray, Labels
from derand._core.origin import Cell, Fitted, Frame
from derand.convert._columns import require_fitted
from derand.convert._edges import bisect_edges
from derand.convert._reading import Reading
from derand.convert._registry import read_model
from derand.convert.readers._sklearn_wrappers import locate_threshold, thaw, unwrap_threshold


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose decision function, or probability of the second class, is the one column that it is given."""

    def __init__(self, classes: Fitted) -> None:
        self.classes_ = classes

    def decision_function(self, X: Frame) -> Frame:
        return X[:, 0]

    def predict_proba(self, X: Frame) -> Labels:
        return np.stack([1 - X[:, 0], X[:, 0]], axis=1)


class _Shares(_Scores):
    """One that has probabilities alone."""

    decision_function = property()


def read(model: Fitted) -> Reading:
    """The model inside, with its raw score moved, and turned where the map falls, so that it decides at 0."""
    require_fitted(model, hasattr(model, "calibrated_classifiers_"))
    if len(model.classes_) != 2:
        raise ValueError(
            f"CalibratedClassifierCV calibrates each of {len(model.classes_)} classes by itself, which changes the "
            "order of their scores: only that of two classes can be read; give the model inside it."
        )
    if len(model.calibrated_classifiers_) != 1:
        raise ValueError(
            f"CalibratedClassifierCV averages {len(model.calibrated_classifiers_)} calibrated models, which is no "
            "threshold of one score: fit it with ensemble=False."
        )
    (own,) = model.calibrated_classifiers_
    inner = thaw(own.estimator)
    if unwrap_threshold(inner) is not None or hasattr(inner, "ensemble_"):
        raise ValueError(
            f"CalibratedClassifierCV is around a {type(inner).__name__}, whose own threshold it leaves out: calibrate "
            "the model inside it, or certify it as it is."
        )
    reading = read_model(inner)
    if reading.classes is None or len(reading.classes) != 2:
        raise ValueError(f"CalibratedClassifierCV is for two classes, got {reading.source} inside.")
    is_decision = hasattr(inner, "decision_function")
    found = _move(reading, _make_answers(own, model.classes_, is_decision), is_decision)
    return replace(found, link="none", calibration=(1.0, 0.0), respond=None, classes=np.asarray(model.classes_))


def _make_answers(own: Fitted, classes: Fitted, is_decision: bool) -> Callable[[Cell], BoolArray]:
    """Whether the calibrated classifier, which is asked itself, answers the second class at scores of the inner one."""
    stub = type(own)(
        (_Scores if is_decision else _Shares)(classes), own.calibrators, classes=classes, method=own.method
    )

    def answer(scores: FloatArray) -> BoolArray:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            probabilities = stub.predict_proba(scores.reshape(-1, 1))
        return np.asarray(probabilities.argmax(axis=1) == 1)

    return answer


def _move(reading: Reading, answer: Callable[[object], BoolArray], is_decision: bool) -> Reading:
    """The reading that decides where the answer changes."""
    if reading.respond is not None and not is_decision:
        respond = reading.respond
        ends = answer(respond(np.array([-1e3, 1e3]))[:, 1])
        if ends[0] and not ends[1]:
            return reading.move(*reading.locate_answers(lambda answers: ~answer(answers[:, 1]))).negate()
        return reading.move(*reading.locate_answers(lambda answers: answer(answers[:, 1])))
    ends = np.array([-1e300, 1e300] if is_decision else [0.0, 1.0])
    first, last = answer(ends).tolist()
    if first == last:
        raise ValueError(
            "CalibratedClassifierCV answers the same whatever the score of the model inside is: no change of a row can "
            "move its answer."
        )
    is_falling = bool(first)
    (number,) = bisect_edges(lambda x: answer(np.clip(x, *ends)) ^ is_falling, 1).tolist()
    method = "decision_function" if is_decision else "predict_proba"
    if not is_falling:
        return reading.move(*locate_threshold(reading, method, number, is_first=False))
    # from that number on the answer is the first class: the second one where the opposite score is above its opposite
    start, error = locate_threshold(reading, method, number, is_first=False)
    return reading.move(float(start if reading.tie else np.nextafter(start, np.inf)), error).negate()
