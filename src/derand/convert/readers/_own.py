"""Fitted models of this package as last steps of pipelines. Must not know estimators: it reads what they keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand.convert._columns import require_fitted
from derand.convert._reading import Reading
from derand.model import AdditiveEnsemble, read_shapes


def read(model: Any) -> Reading:
    """A fitted estimator of this package that is not smoothed."""
    name = type(model).__name__
    require_fitted(model, hasattr(model, "ensemble_"))
    if model.noise_ is not None or model.rule != "mean":
        raise ValueError(
            f"{name} is smoothed by noise in the units of its own columns, which the steps before it change: fit it "
            "with noise='none' and rule='mean', or without a pipeline, since it needs neither scaler nor imputer."
        )
    if model.ensemble_.weights is not None:
        raise TypeError(f"{name} is a vote of several sums, which is no sum of functions.")
    ensemble: AdditiveEnsemble = model.ensemble_
    functions = read_shapes(ensemble.terms, ensemble.levels)
    shift = _read_shift(ensemble)

    def raw_scores(rows: FloatArray) -> FloatArray:
        return np.asarray((ensemble.score(rows) + shift) / ensemble.levels)

    is_odds = bool(getattr(model, "score_is_log_odds", False)) and ensemble.n_classes == 2
    intercept = shift / ensemble.levels
    ranges = [term.score_range() for term in ensemble.terms if term.slope is None]
    sizes = [max(abs(low), abs(high)) / ensemble.levels for low, high in ranges]
    return Reading(
        model.encoding_,
        functions.shapes,
        functions.grids,
        functions.tables,
        intercept if intercept.ndim else float(intercept),
        getattr(model, "classes_", None),
        (ensemble.score_error / ensemble.levels + EPSILON * (float(np.abs(intercept).max()) + math.fsum(sizes)))
        * (1 + 8 * EPSILON),
        "logit" if is_odds else getattr(model, "link_", "none"),
        raw_scores,
        f"derand.{name}",
        functions.lines,
        trees=functions.trees,
        calibration=_read_calibration(model, float(shift)) if ensemble.n_classes == 2 else (1.0, 0.0),
    )


def _read_calibration(model: Any, shift: float) -> tuple[float, float]:
    """What turns raw scores into positions of probabilities: they count from `shift`, the model from its threshold."""
    slope, start = np.asarray(getattr(model, "calibration_", (1.0, 0.0))).tolist()
    return slope, start - slope * (shift + model.ensemble_.threshold) / model.ensemble_.levels


def _read_shift(ensemble: AdditiveEnsemble) -> FloatArray:
    """What is added to whole scores; a threshold lies between two of them, so that no score meets it."""
    if ensemble.offsets:
        return np.array(ensemble.offsets, dtype=np.float64)
    if ensemble.threshold is None:
        return np.array(ensemble.offset, dtype=np.float64)
    return np.array(-ensemble.threshold - (0.0 if ensemble.score_error else 0.5))
