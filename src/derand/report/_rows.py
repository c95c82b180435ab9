"""Single rows with their details: what pushes them, and the exact law of their score. Which rows: `_listing`.

All shown laws share one axis, cut into bins that never lie astride the threshold, so that the part of a picture on the
wrong side is the failure mass.
"""

from __future__ import annotations

import math

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.text import format_short, format_short_down, format_short_up
from derand.certificates import Distribution, distribution
from derand.explaining import Pushes
from derand.model import AdditiveEnsemble, coarsen, find_coarse_step
from derand.noise import Noise
from derand.report._attack import summarize_attacks
from derand.report._features import rank_terms
from derand.report._inputs import Inputs
from derand.report._listing import choose_places, list_rows, summarize_listing
from derand.report._types import LAW_HEIGHT, BinnedLaw, Law, LawAxis, Row, RowFacts, RowPushes, Rows, Scale

LAW_BINS = 110
_LISTED_PUSHES = 9
_FAINT = 1e-4  # of the highest bin: less is not visible
_PICTURE_LEVELS, _COARSE_STEP = 2**15, 2**7
"""Laws of models of more than 2**22 levels are drawn on a grid of 2**15, far finer than what can be seen."""
_CHUNK_NUMBERS = 2**22
_LAW_NUMBERS = 2**26
"""How many probabilities are computed for pictures: with very fine models the laws of fewer rows are shown."""


def summarize_rows(inputs: Inputs, scale: Scale, limit: int, n_detailed: int, n_explained: int, seed: int) -> Rows:
    """The rows that are listed, those with details, and the weakest with their explanations."""
    listed, n_weakest = list_rows(inputs, limit, n_explained, seed)
    places, n_weakest_detailed = choose_places(listed.size, max(n_detailed, n_explained), n_explained, seed)
    chosen = listed[places]
    laws, axis = _summarize_laws(inputs, scale, chosen, n_explained)
    pushes = _summarize_pushes(inputs, chosen)
    verdicts = inputs.plain[chosen].verdict
    table: list[Row] = [
        {
            **_describe_row(inputs, row, pushes[at], None if verdicts is None else str(verdicts[at])),
            "pushes": pushes[at],
            "law": laws[at],
        }
        for at, row in enumerate(chosen.tolist())
    ]
    return {
        "n_rows": inputs.n_rows,
        "sampled": listed.size < inputs.n_rows,
        "n_weakest": n_weakest,
        "n_weakest_detailed": n_weakest_detailed,
        "seed": seed,
        "law_axis": axis,
        "listed": summarize_listing(inputs, listed, places),
        "table": table,
        "explained": [
            {"at": at, "attack": found}
            for at, found in enumerate(summarize_attacks(inputs, chosen[:n_explained].tolist()))
        ],
    }


def _describe_row(inputs: Inputs, row: int, pushes: RowPushes | None, verdict: str | None) -> RowFacts:
    plain, model = inputs.plain, inputs.subject.additive
    margin = pushes["total"] if pushes is not None and plain.rule == "mean" else None
    subject = inputs.subject
    score = None
    if margin is not None and model is not None:
        score = round((model.threshold or 0) / subject.points + margin, subject.digits)
    truth = None if inputs.labels is None else inputs.labels[row]
    failure = float(plain.failure[row])
    return {
        "row": row + 1,
        "name": inputs.name_row(row),
        "label": str(plain.label[row]),
        "runner_up": None if plain.classes.size == 2 or plain.runner_up is None else str(plain.runner_up[row]),
        "truth": None if truth is None else str(truth),
        "correct": None if truth is None else bool(truth == plain.label[row]),
        "is_one": bool(plain.label[row] == inputs.subject.classes[1]),
        "radius": [float(certificates.radius[row]) for certificates in inputs.certificates],
        "radius_text": [verdict or format_short_down(float(one.radius[row]), 4) for one in inputs.certificates],
        "failure": None if math.isnan(failure) else failure,
        "failure_text": None if math.isnan(failure) else _say_failure(failure, float(plain.log_failure[row])),
        "score": score,
        "score_text": None if score is None else format_short(score, 6),
        "margin": margin,
        "margin_text": None if margin is None else f"{'+' if margin > 0 else ''}{format_short(margin, 6)}",
        "verdict": verdict,
    }


def _say_failure(failure: float, log_failure: float) -> str:
    """The failure mass, rounded up; far below the smallest double by its logarithm."""
    if failure > 1e-300 or log_failure == -np.inf:
        return format_short_up(failure)
    return f"below 1e{math.ceil(log_failure / math.log(10))}"


def _summarize_pushes(inputs: Inputs, rows: IntArray) -> list[RowPushes] | list[None]:
    """For each row its strongest pushes under noise, and the sum of the others; None for a vote."""
    model = inputs.subject.additive
    if model is None:
        return [None] * rows.size
    pushes = Pushes(model, inputs.subject.points, inputs.matrix)
    terms = [term for _, term in rank_terms(inputs, model)]
    features = [term.features[0] if len(term.features) == 1 else None for term in terms]
    cells = inputs.matrix[rows]
    columns = [cells[:, list(term.features) if at is None else at] for term, at in zip(terms, features, strict=True)]
    found = [pushes.under_noise(*one, inputs.subject.noise) for one in zip(terms, columns, strict=True)]
    strengths = np.stack(found or [np.zeros(rows.size)], axis=1)
    return [_list_pushes(inputs, features, row, strength) for row, strength in zip(cells, strengths, strict=True)]


def _list_pushes(inputs: Inputs, features: list[int | None], row: FloatArray, strengths: FloatArray) -> RowPushes:
    """The strongest pushes of one row, for the push of each feature; None stands for several, not listed."""
    every = np.argsort(-np.abs(strengths), kind="stable") if features else np.empty(0, dtype=np.int64)
    single = [(k, feature) for k in every.tolist() if (feature := features[k]) is not None][:_LISTED_PUSHES]
    order = np.array([k for k, _ in single], dtype=np.int64)
    digits = inputs.subject.digits
    return {
        "listed": [
            {
                "feature": feature,
                "value": inputs.subject.describe_value(feature, float(row[feature])),
                "push": round(float(strengths[k]), digits),
            }
            for k, feature in single
        ],
        "rest": round(float(strengths.sum() - strengths[order].sum()), digits),
        "n_rest": len(features) - len(order),
        "total": round(float(strengths.sum()), digits),
    }


def _summarize_laws(
    inputs: Inputs, scale: Scale, rows: IntArray, at_least: int
) -> tuple[list[Law | None], LawAxis | None]:
    """The law of each row as bin heights on one axis, and that axis; None where the model has no law to show."""
    model, noise = inputs.subject.additive, inputs.subject.noise
    if model is None or model.is_linear or noise is None or not model.numerical_features:
        return [None] * rows.size, None
    step = max(find_coarse_step(model, _PICTURE_LEVELS), 1)
    if step > _COARSE_STEP:  # far finer than any picture, as models of other libraries are
        (model,) = coarsen(model, _PICTURE_LEVELS).members
    else:
        step = 1
    found = _compute_laws(inputs, model, noise, rows, at_least)
    failure_at = noise.failure_at(scale["radii"]).tolist() if inputs.has_percentile else []
    axis = _choose_axis(found, int(model.threshold or 0), failure_at, inputs.subject.points / step)
    shown = inputs.plain.label[rows] == inputs.subject.classes[1]
    by_mean = inputs.plain.rule == "mean"
    laws = [_summarize_law(law, axis, bool(is_one), by_mean) for law, is_one in zip(found, shown, strict=False)]
    return [*laws, *[None] * (rows.size - len(laws))], axis


def _choose_axis(laws: list[Distribution], threshold: int, failure_at: list[float], points: float) -> LawAxis:
    """Bins for all that is visible of the laws, and the threshold between two of them."""
    step = int(np.gcd.reduce([law.support[1] - law.support[0] for law in laws if law.support.size > 1] or [1]))
    visible = [law.support[law.pmf[0] > _FAINT * law.pmf[0].max()] for law in laws]
    low = min([threshold - step, *(int(scores[0]) for scores in visible)])
    high = max([threshold + step, *(int(scores[-1]) for scores in visible)])
    width = step * max(1, math.ceil((high - low + 1) / (LAW_BINS * step)))
    first, last = _bin_of(np.array([low, high]), threshold, width).tolist()
    return {
        "threshold": threshold,
        "width": width,
        "n_bins": last - first + 1,
        "threshold_bin": -first,  # bins from here on are class 1
        "low": threshold + 1 + first * width,
        "failure_at": failure_at,
        "points": points,
    }


def _summarize_law(law: Distribution, axis: LawAxis, is_one: bool, by_mean: bool) -> Law:
    percentile = law.percentile(axis["failure_at"], row=0, label=int(is_one))
    mean = float(law.pmf[0] @ law.support / law.pmf[0].sum()) if by_mean else None
    return {
        **_bin_law(law, axis),
        "percentile": _place(percentile, axis).tolist(),
        "mean": None if mean is None else float(_place(np.array(mean), axis)),
    }


def _place(scores: IntArray | FloatArray, axis: LawAxis) -> FloatArray:
    """Where scores lie, in bins from the left end of the axis, the middle of their cells."""
    return np.round((scores - axis["low"] + 0.5) / axis["width"], 1)


def _compute_laws(
    inputs: Inputs, model: AdditiveEnsemble, noise: Noise, rows: IntArray, at_least: int
) -> list[Distribution]:
    """The laws of as many rows as the budget allows, one by one and without the impossible ends."""
    laws: list[Distribution] = []
    part = 1
    while len(laws) < rows.size:
        found = distribution(model, inputs.matrix[rows[len(laws) : len(laws) + part]], noise)
        for mass in found.pmf:
            possible = np.flatnonzero(mass > 0)
            kept = slice(possible[0], possible[-1] + 1)
            laws.append(Distribution(found.support[kept], mass[None, kept].copy()))  # rows share the support
        n_levels = found.support.size
        part = max(1, min(_CHUNK_NUMBERS // n_levels, 256))
        if len(laws) >= at_least and len(laws) * n_levels >= _LAW_NUMBERS:
            break
    return laws


def _bin_of(scores: IntArray, threshold: int, width: int) -> IntArray:
    """Bin of each score: 0 begins just above the threshold."""
    return (scores - threshold - 1) // width


def _bin_law(law: Distribution, axis: LawAxis) -> BinnedLaw:
    n_bins = axis["n_bins"]
    places = _bin_of(law.support, axis["threshold"], axis["width"]) + axis["threshold_bin"]
    density = np.bincount(np.clip(places, 0, n_bins - 1), weights=law.pmf[0], minlength=n_bins)
    below = np.cumsum(density)
    seen = np.flatnonzero(density > 0.5 / LAW_HEIGHT * density.max())
    start, stop = int(seen[0]), int(seen[-1]) + 1
    return {
        "start": start,
        "density": np.rint(LAW_HEIGHT * density[start:stop] / density.max()).astype(int).tolist(),
        "cdf": np.rint(LAW_HEIGHT * np.minimum(below[start:stop], 1.0)).astype(int).tolist(),
    }
