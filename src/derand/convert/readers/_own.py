"""Fitted models of this package as last steps of pipelines. Must not know estimators: it reads what they keep."""

from __future__ import annotations

import math

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand._core.origin import Fitted
from derand.convert._columns import require_fitted
from derand.convert._reading import Reading
from derand.model import AdditiveEnsemble, read_shapes
from derand.noise import Noise


def read(model: Fitted) -> Reading:
    """A fitted estimator of this package that answers by its score, as it is or as expected under noise."""
    name = type(model).__name__
    require_fitted(model, hasattr(model, "ensemble_"))
    if model.rule != "mean":
        raise ValueError(
            f"{name} answers by votes of noisy copies of what the steps before it make, whose shares are not known to "
            "the last digit: fit it with rule='mean', or without a pipeline, since it needs neither scaler nor imputer."
        )
    if model.ensemble_.weights is not None:
        raise TypeError(f"{name} is a vote of several sums, which is no sum of functions.")
    ensemble: AdditiveEnsemble = model.ensemble_
    functions = read_shapes(ensemble.terms, ensemble.levels)
    noise: Noise | None = model.noise_
    if noise is not None and noise.units is None:
        noise = noise.with_units((1.0,) * ensemble.n_features)
    shift = _read_shift(ensemble, is_whole=noise is None)

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
        noise=noise,
    )


def _read_calibration(model: Fitted, shift: float) -> tuple[float, float]:
    """What turns raw scores into positions of probabilities: they count from `shift`, the model from its threshold."""
    slope, start = np.asarray(getattr(model, "calibration_", (1.0, 0.0))).tolist()
    return slope, start - slope * (shift + model.ensemble_.threshold) / model.ensemble_.levels


def _read_shift(ensemble: AdditiveEnsemble, *, is_whole: bool) -> FloatArray:
    """What is added to scores; a threshold lies between two whole ones, so that no score meets it. Expected scores are
    no whole numbers."""
    if ensemble.offsets:
        return np.array(ensemble.offsets, dtype=np.float64)
    if ensemble.threshold is None:
        return np.array(ensemble.offset, dtype=np.float64)
    return np.array(-ensemble.threshold - (0.0 if ensemble.score_error or not is_whole else 0.5))
