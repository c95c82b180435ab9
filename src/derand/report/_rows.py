"""Single rows: which ones are shown, what pushes them, and the exact law of their score.

All shown laws share one axis, cut into bins that never lie astride the threshold, so that the part of a picture on the
wrong side is the failure mass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from derand.certificates import distribution
from derand.ensemble import AdditiveEnsemble
from derand.plot import find_percentile
from derand.report._attack import find_attack
from derand.report._features import Pushes, rank_terms
from derand.report._inputs import FloatArray, Inputs, IntArray
from derand.text import format_short_down, format_short_up

LAW_BINS = 110
LAW_HEIGHT = 1000
_LISTED_PUSHES = 9
_FAINT = 1e-4  # of the highest bin: less is not visible
_CHUNK_NUMBERS = 2**22
_LAW_NUMBERS = 2**26
"""How many probabilities are computed for pictures: with very fine models the laws of fewer rows are shown."""


def choose_rows(inputs: Inputs, limit: int, n_weakest: int, seed: int) -> IntArray:
    """Rows for the table, the weakest first: all of them, or the weakest and a random sample of the others."""
    by_budget = [certificates.radius for certificates in inputs.certificates]
    order = np.lexsort((-np.nan_to_num(inputs.plain.log_failure), *reversed(by_budget)))  # the last key counts first
    if inputs.n_rows <= limit:
        return order
    weakest, others = order[:n_weakest], order[n_weakest:]
    drawn = np.random.default_rng(seed).choice(others.size, size=limit - weakest.size, replace=False)
    return np.concatenate([weakest, others[np.sort(drawn)]])


def summarize_rows(inputs: Inputs, scale: dict[str, Any], limit: int, n_explained: int, seed: int) -> dict[str, Any]:
    """The row table, and the weakest rows with their explanations."""
    n_weakest = max(n_explained, min(limit // 4, 50))
    chosen = choose_rows(inputs, limit, n_weakest, seed)
    laws, axis = _summarize_laws(inputs, scale, chosen, n_explained)
    pushes = _summarize_pushes(inputs, chosen)
    table = [
        {**_describe_row(inputs, row), "pushes": pushes[at], "law": laws[at]} for at, row in enumerate(chosen.tolist())
    ]
    explained = [{"at": at, "attack": find_attack(inputs, row)} for at, row in enumerate(chosen[:n_explained].tolist())]
    return {
        "n_rows": inputs.n_rows,
        "sampled": len(table) < inputs.n_rows,
        "n_weakest": min(n_weakest, len(table)),
        "seed": seed,
        "law_axis": axis,
        "table": table,
        "explained": explained,
    }


def _describe_row(inputs: Inputs, row: int) -> dict[str, Any]:
    plain = inputs.plain
    truth = None if inputs.labels is None else inputs.labels[row]
    failure = float(plain.failure[row])
    return {
        "row": row + 1,
        "label": str(plain.label[row]),
        "truth": None if truth is None else str(truth),
        "correct": None if truth is None else bool(truth == plain.label[row]),
        "is_one": bool(plain.label[row] == inputs.subject.classes[1]),
        "radius": [float(certificates.radius[row]) for certificates in inputs.certificates],
        "radius_text": [format_short_down(float(certificates.radius[row]), 4) for certificates in inputs.certificates],
        "failure": None if math.isnan(failure) else failure,
        "failure_text": None if math.isnan(failure) else _say_failure(failure, float(plain.log_failure[row])),
    }


def _say_failure(failure: float, log_failure: float) -> str:
    """The failure mass, rounded up; far below the smallest double by its logarithm."""
    if failure > 1e-300 or log_failure == -np.inf:
        return format_short_up(failure)
    return f"below 1e{math.ceil(log_failure / math.log(10))}"


def _summarize_pushes(inputs: Inputs, rows: IntArray) -> list[dict[str, Any] | None]:
    """For each row its strongest pushes under noise, and the sum of the others; None for a vote."""
    model = inputs.subject.additive
    if model is None:
        return [None] * rows.size
    pushes = Pushes(model)
    terms = [term for _, term in rank_terms(inputs, model)]
    cells = inputs.matrix[rows]
    strengths = np.stack(
        [pushes.under_noise(term, cells[:, term.feature], inputs.subject) for term in terms] or [np.zeros(rows.size)],
        axis=1,
    )
    found: list[dict[str, Any] | None] = []
    for at in range(rows.size):
        order = np.argsort(-np.abs(strengths[at]), kind="stable")[: _LISTED_PUSHES if terms else 0]
        rest = float(strengths[at].sum() - strengths[at][order].sum())
        found.append(
            {
                "listed": [
                    {
                        "feature": terms[k].feature,
                        "value": inputs.subject.describe_value(terms[k].feature, float(cells[at, terms[k].feature])),
                        "push": round(float(strengths[at, k]), 2),
                    }
                    for k in order.tolist()
                ],
                "rest": round(rest, 2),
                "n_rest": len(terms) - len(order),
                "total": round(float(strengths[at].sum()), 2),
            }
        )
    return found


def _summarize_laws(
    inputs: Inputs, scale: dict[str, Any], rows: IntArray, at_least: int
) -> tuple[list[dict[str, Any] | None], dict[str, Any] | None]:
    """The law of each row as bin heights on one axis, and that axis; None where the model has no law to show."""
    nothing: list[dict[str, Any] | None] = [None] * rows.size
    model = inputs.subject.additive
    if model is None or not inputs.subject.numerical:
        return nothing, None
    raw = _compute_laws(inputs, model, rows, at_least)
    threshold = int(model.threshold or 0)
    step = int(np.gcd.reduce([scores[1] - scores[0] for scores, _ in raw if scores.size > 1] or [1]))
    visible = [scores[mass > _FAINT * mass.max()] for scores, mass in raw]
    low = min([threshold - step, *(int(scores[0]) for scores in visible)])
    high = max([threshold + step, *(int(scores[-1]) for scores in visible)])
    width = step * max(1, math.ceil((high - low + 1) / (LAW_BINS * step)))
    first = _bin_of(np.array([low]), threshold, width)[0]
    last = _bin_of(np.array([high]), threshold, width)[0]
    axis: dict[str, Any] = {
        "threshold": threshold,
        "width": width,
        "n_bins": int(last - first + 1),
        "threshold_bin": int(-first),  # bins from here on are class 1
        "low": int(threshold + 1 + first * width),
        "failure_at": [float(mass) for mass in inputs.subject.noise.failure_at(scale["radii"])],
    }
    laws: list[dict[str, Any] | None] = list(nothing)
    for at, (scores, mass) in enumerate(raw):
        is_one = bool(inputs.plain.label[rows[at]] == inputs.subject.classes[1])
        percentile = find_percentile(scores, mass, axis["failure_at"], is_one)
        laws[at] = {
            **_bin_law(scores, mass, threshold, width, int(first), axis["n_bins"]),
            # in bins from the left end of the axis, the middle of the score's cell
            "percentile": np.round((percentile - axis["low"] + 0.5) / width, 1).tolist(),
        }
    return laws, axis


def _compute_laws(
    inputs: Inputs, model: AdditiveEnsemble, rows: IntArray, at_least: int
) -> list[tuple[IntArray, FloatArray]]:
    """Scores and masses of as many rows as the budget allows, in parts, without the impossible ends."""
    laws: list[tuple[IntArray, FloatArray]] = []
    part = 1
    while len(laws) < rows.size:
        found = distribution(model, inputs.matrix[rows[len(laws) : len(laws) + part]], inputs.subject.noise)
        for mass in found.pmf:
            possible = np.flatnonzero(mass > 0)
            kept = slice(possible[0], possible[-1] + 1)
            laws.append((found.support[kept].copy(), mass[kept].copy()))
        n_levels = found.support.size
        part = max(1, min(_CHUNK_NUMBERS // n_levels, 256))
        if len(laws) >= at_least and len(laws) * n_levels >= _LAW_NUMBERS:
            break
    return laws


def _bin_of(scores: IntArray, threshold: int, width: int) -> IntArray:
    """Bin of each score: 0 begins just above the threshold."""
    return (scores - threshold - 1) // width


def _bin_law(scores: IntArray, mass: FloatArray, threshold: int, width: int, first: int, n_bins: int) -> dict[str, Any]:
    bins = np.clip(_bin_of(scores, threshold, width) - first, 0, n_bins - 1)
    density = np.bincount(bins, weights=mass, minlength=n_bins)
    below = np.cumsum(density)
    seen = np.flatnonzero(density > 0.5 / LAW_HEIGHT * density.max())
    start, stop = int(seen[0]), int(seen[-1]) + 1
    return {
        "start": start,
        "density": np.rint(LAW_HEIGHT * density[start:stop] / density.max()).astype(int).tolist(),
        "cdf": np.rint(LAW_HEIGHT * np.minimum(below[start:stop], 1.0)).astype(int).tolist(),
    }
