"""Linear models of scikit-learn: slopes times numbers, added up in doubles or in single precision.

Owns what these models mean, and how far their sum may be off. That is no constant: it grows with the numbers of a row,
so that every line carries its share of it (docs/theory.md, section 14). Must not know how lines are certified.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand._core.origin import Fitted
from derand.convert._columns import decode_rows, read_encoding, require_fitted
from derand.convert._reading import Reading
from derand.convert._trees import DOUBLE, SINGLE
from derand.model import Line
from derand.tables import Labels

_SOFTMAX = ("LinearDiscriminantAnalysis",)
"""Classifiers whose probabilities are always those of a logistic function, or of a softmax of raw scores."""


def read(model: Fitted) -> Reading:
    """A fitted model whose raw score is `X @ coef_.T + intercept_`."""
    encoding = read_encoding(model)
    name = type(model).__name__
    require_fitted(model, hasattr(model, "coef_"))
    classes = getattr(model, "classes_", None)
    slopes, unit = _read_slopes(model, classes, encoding.n_features)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).reshape(-1), slopes.shape[:1])
    if not (np.isfinite(slopes).all() and np.isfinite(intercept).all()):
        raise ValueError(f"`coef_` and `intercept_` of {name} must be finite, got nan or infinity.")
    rounding = bound_dot_error(encoding.n_features + 1, unit)
    lines = [
        Line(at, slopes[:, at] if len(slopes) > 1 else float(slopes[0, at]), rounding * np.abs(slopes[:, at]))
        for at in range(encoding.n_features)
    ]
    smallest = 2.0**-1074 if unit < SINGLE else 2.0**-149  # a product below it may be lost
    error = rounding * float(np.abs(intercept).max()) + encoding.n_features * smallest

    def raw_scores(rows: FloatArray) -> FloatArray:
        table = decode_rows(encoding, rows)
        return np.asarray(model.predict(table) if classes is None else model.decision_function(table))

    return Reading(
        encoding,
        lines=lines,
        intercept=intercept if len(slopes) > 1 else float(intercept[0]),
        classes=classes,
        arithmetic_error=error,
        link="none" if classes is None else _name_link(model, name, len(classes)),
        raw_scores=raw_scores,
        source=f"sklearn.{name}",
    )


def bound_dot_error(n_summands: int, unit: float) -> float:
    """How far, relative to the sum of magnitudes, a computed sum of products may lie from the exact one.

    `unit`: relative error of one operation: 2**-53 of doubles, 2**-24 of single precision. The result: at least `n u /
    (1 - n u)`, whatever the order of the additions, fused with products or not.
    """
    share = (n_summands + 2) * unit
    return share / (1 - share) * (1 + 4 * EPSILON)


def _read_slopes(model: Fitted, classes: Labels | None, n_features: int) -> tuple[FloatArray, float]:
    """Slopes of shape (n_outputs, n_features), and the relative error of one operation."""
    given = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_)
    unit = SINGLE if given.dtype == np.float32 else DOUBLE
    slopes = np.atleast_2d(given.astype(np.float64))
    n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    if isinstance(classes, list) or slopes.shape != (n_outputs, n_features):
        raise ValueError(
            f"`coef_` of {type(model).__name__} must have one row per score, {n_outputs} of {n_features} columns, got "
            f"shape {slopes.shape}: models of several targets or labels at once cannot be certified, train one each."
        )
    binarizer = getattr(model, "_label_binarizer", None)
    if binarizer is not None and str(getattr(binarizer, "y_type_", "")).startswith("multilabel"):
        raise ValueError(f"{type(model).__name__} of several labels at once cannot be certified: train one for each.")
    return slopes, unit


def _name_link(model: Fitted, name: str, n_classes: int) -> str:
    """Where probabilities are a logistic function, or a softmax, of raw scores; one-vs-rest normalises others."""
    if name in _SOFTMAX:
        return "logit"
    if name == "SGDClassifier":
        return "logit" if model.loss == "log_loss" and n_classes == 2 else "none"
    if not name.startswith("LogisticRegression"):
        return "none"
    kind = getattr(model, "multi_class", "auto")
    if n_classes == 2:  # one that is called multinomial doubles the raw score
        return "none" if kind == "multinomial" else "logit"
    return "none" if kind == "ovr" or model.solver == "liblinear" else "logit"
