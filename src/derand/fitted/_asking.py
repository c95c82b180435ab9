"""Rows of a fitted model: read, certified, graded. Must not know files, nor how anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from derand._core.arrays import FloatArray
from derand.certificates import (
    Certificates,
    Intervals,
    ToleranceRadii,
    TreeSearch,
    certify_checked,
    certify_interval_checked,
    certify_radius_checked,
    rank_rows,
    read_budget,
)
from derand.fitted._cut import compute_probabilities
from derand.fitted._model import FittedModel
from derand.metrics import RowGrades
from derand.noise import Noise
from derand.threat import Threat

_NO_CHANCES = {
    "vote": "`predict_proba` of a vote is a share of votes (of noisy copies, or of members), not how likely a label is",
    "mean": "`predict_proba` of this model is the position of its score between its extremes, not a probability",
}
_OTHER_RULE = "probabilities are those of the model's own rule and noise, and others were asked for"
"""Why there is no log-loss."""


def answers_numbers(model: FittedModel) -> bool:
    """Whether the answers of a model are numbers, and not classes."""
    return not hasattr(model, "classes_")


def encode_rows(model: FittedModel, X: object) -> FloatArray:
    """Rows to predict or certify as the model reads them."""
    return model._encode_rows(X)


def certify_encoded(
    model: FittedModel,
    rows: FloatArray,
    threats: Sequence[Threat],
    *,
    rule: str | None = None,
    proof: str = "best",
    noise: Noise | str | float | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
    budget: int | None = None,
) -> list[Certificates]:
    """`certify` for rows that `encode_rows` returned, for each of several threats that differ in `l0` alone."""
    asked = [model._name_columns(one) for one in threats]
    chosen = model._choose_noise(noise, *asked[:1])
    how = _list_how(model, rule, proof, n_jobs, budget)
    found = certify_checked(model.ensemble_, rows, chosen, asked, backend=backend, **how)
    return [one.with_classes(model.classes_, model.encoding_.names) for one in found]


def certify_interval_encoded(
    model: FittedModel,
    rows: FloatArray,
    radius: float | None,
    threat: Threat,
    *,
    noise: Noise | str | float | None = None,
    **how: Any,
) -> Intervals:
    """`certify_interval` for rows that `encode_rows` returned; `how` as for `certify_encoded`."""
    asked = model._name_columns(threat)
    chosen = model._choose_noise(noise, asked)
    return certify_interval_checked(model.ensemble_, rows, chosen, asked, radius=radius, **_list_how(model, **how))


def certify_radius_encoded(
    model: FittedModel,
    rows: FloatArray,
    tolerance: float,
    threat: Threat,
    *,
    noise: Noise | str | float | None = None,
    **how: Any,
) -> ToleranceRadii:
    """`certify_radius` for rows that `encode_rows` returned; `how` as for `certify_encoded`."""
    asked = model._name_columns(threat)
    chosen = model._choose_noise(noise, asked)
    return certify_radius_checked(model.ensemble_, rows, chosen, asked, tolerance=tolerance, **_list_how(model, **how))


def _list_how(
    model: FittedModel,
    rule: str | None = None,
    proof: str = "best",
    n_jobs: int | None = None,
    budget: int | None = None,
) -> dict[str, Any]:
    """By which rule, proof and threads, and how trees are searched; what is None is the model's own."""
    return {
        "rule": rule or model.rule,
        "proof": proof,
        "n_jobs": model.n_jobs if n_jobs is None else n_jobs,
        "search": TreeSearch(read_budget(budget), model._library),
    }


def choose_radius(model: FittedModel, threat: Threat, radius: float | None) -> float | None:
    """The radius of intervals: as asked, or what the regressor was trained for; None where there is no ball."""
    if radius is not None or threat.norm is None:
        return radius
    if threat.norm == 0:
        raise ValueError("`radius` must be given in norm 0: how many numerical columns may become anything, such as 1.")
    trained = getattr(model, "radius", None)
    if not trained:
        raise ValueError(f"`radius` must be given, such as 0.25: this {model._kind} was not trained for one.")
    return float(trained)


def grade_rows(
    model: FittedModel, X: object, certificates: Certificates, *, encoded: FloatArray | None = None
) -> RowGrades:
    """What a classifier says of certified rows besides their labels, for `measure_answers`.

    A score to rank rows by, and probabilities, or the reason why there are none. `encoded` is what `encode_rows`
    returned, lest rows are encoded again.
    """
    rows = encode_rows(model, X) if encoded is None else encoded
    is_own = certificates.rule == model.rule and certificates.noise == model.noise_
    if model._gives_probabilities and is_own:
        return RowGrades(None, compute_probabilities(model, rows), costs=model._costs)
    score = rank_rows(model.ensemble_, rows, certificates, n_jobs=model.n_jobs)
    why = _NO_CHANCES[certificates.rule] if is_own or not model._gives_probabilities else _OTHER_RULE
    return RowGrades(score, None, f"Log-loss and calibration need probabilities: {why}.", model._costs)


def read_odds(model: FittedModel) -> tuple[float, float] | None:
    """Slope and shift that make calibrated log-odds of `classes_[1]` of how far a score is ahead of the threshold.

    None where scores are no logarithms of odds, or `predict_proba` gives no probabilities.
    """
    if model.classes_.size > 2 or model._link != "logit" or not model._gives_probabilities:
        return None
    cut = model._read_cut()
    return cut.slope, cut.shift
