"""What the model does with each feature: its shape, its push, and how far it may move alone."""

from __future__ import annotations

import math

import numpy as np

from derand._core.arrays import FloatArray
from derand._core.text import format_short_down
from derand.explaining import Pushes, move_alone
from derand.model import AdditiveEnsemble, Term
from derand.report._inputs import Inputs
from derand.report._text import shorten
from derand.report._threat import limit_of
from derand.report._types import CategoricalShape, CategoryPush, Move, NumericalShape, Radii, Shape

SHAPE_POINTS = 97
SHAPE_BINS = 40
MAX_CATEGORIES = 12
_IMPORTANCE_ROWS = 20_000


def rank_terms(inputs: Inputs, model: AdditiveEnsemble) -> list[tuple[float, Term]]:
    """Terms with their importance, how much their score varies over the rows, from most to least."""
    some = inputs.matrix[:: max(1, inputs.n_rows // _IMPORTANCE_ROWS)]
    ranked = []
    for term in model.terms:
        low, high = (0, 0) if term.slope is not None else term.score_range()
        ranked.append((float(term.score_rows(some).std()), high - low, term))
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    return [(spread, term) for spread, _, term in ranked]


def summarize_shapes(inputs: Inputs, limit: int) -> list[Shape]:
    """The shape functions of the most important features; none for a vote, and none of several features together."""
    model = inputs.subject.additive
    if model is None:
        return []
    pushes = Pushes(model, inputs.subject.points, inputs.matrix)
    return [
        (_describe_steps if term.axes else _describe_table)(inputs, term, pushes, importance)
        for importance, term in [one for one in rank_terms(inputs, model) if len(one[1].features) == 1][:limit]
    ]


def _describe_steps(inputs: Inputs, term: Term, pushes: Pushes, importance: float) -> NumericalShape:
    ((feature, edges),) = term.axes
    subject, every = inputs.subject, inputs.matrix[:, feature]
    column = every[~np.isnan(every)]
    noise = subject.noise
    noise_scale = float(inputs.units[feature] if noise is None else noise.scales(np.array([feature]))[0])
    low, high = _find_ends(column, edges)
    if edges.size and not (low <= edges[0] and edges[-1] <= high):
        # a split outside the data is shown where it is within reach of the noise
        near = edges[(edges > low - 4 * noise_scale) & (edges < high + 4 * noise_scale)]
        low, high = min([low, *near.tolist()]), max([high, *near.tolist()])
    # also where all values are equal, or so large that a small margin would vanish beside them
    margin = max(0.05 * (high - low) or noise_scale, 1e-9 * max(abs(low), abs(high)))
    low, high = low - margin, high + margin
    x = np.linspace(low, high, SHAPE_POINTS)
    inside = (edges > low) & (edges < high)
    first = int(np.searchsorted(edges, low, side="right"))
    is_line = term.slope is not None
    cells = term.evaluate(x[[0, -1]]) if is_line else term.cell_scores[first : first + int(inside.sum()) + 1]
    bins = np.histogram_bin_edges(column, SHAPE_BINS, range=(low, high))
    return {
        "feature": feature,
        "name": subject.names[feature],
        "importance": importance,
        "kind": "numerical",
        "low": low,
        "high": high,
        "days": feature in subject.dates,
        "edges": edges[inside].tolist(),
        "pushes": pushes.of_scores(term, cells).tolist(),
        "smooth": [] if noise is None or is_line else pushes.under_noise(term, x, noise).tolist(),
        "counts": np.histogram(column, bins)[0].tolist(),
        "noise_scale": None if noise is None else noise_scale,
        "missing": None
        if term.missing is None
        else {"push": float(pushes.of_scores(term, term.missing)), "count": int(every.size - column.size)},
    }


def _find_ends(values: FloatArray, edges: FloatArray) -> tuple[float, float]:
    """The least and the largest number of a column without gaps, or of its edges where there is none."""
    there = values if values.size else edges if edges.size else np.zeros(1)
    return float(there.min()), float(there.max())


def _describe_table(inputs: Inputs, term: Term, pushes: Pushes, importance: float) -> CategoricalShape:
    (feature,) = term.features
    subject, column = inputs.subject, inputs.matrix[:, feature]
    known: list[CategoryPush] = [
        {
            "name": subject.describe_value(feature, code),
            "push": push,
            "count": int((column == code).sum()),
        }
        for code, push in zip(term.codes.tolist(), pushes.of_scores(term, term.cell_scores).tolist(), strict=True)
    ]
    known.sort(key=lambda entry: -entry["count"])
    other = pushes.of_scores(term, term.evaluate([float(term.codes.min(initial=0.0)) - 1.0]))  # a code of no category
    return {
        "feature": feature,
        "name": subject.names[feature],
        "importance": importance,
        "kind": "categorical",
        "categories": known[:MAX_CATEGORIES],
        "left_out": max(0, len(known) - MAX_CATEGORIES),
        "other": {"push": float(other[0]), "count": int(column.size - sum(entry["count"] for entry in known))},
    }


def summarize_moves(inputs: Inputs, radii: Radii) -> list[Move]:
    """For each number that may change how far it may move if nothing else does, in its own unit; none without a
    ball."""
    subject, norm = inputs.subject, inputs.threat.norm
    moves: list[Move] = []
    for feature in [] if norm is None else inputs.moving:
        unit = float(inputs.units[feature])
        column = inputs.matrix[:, feature]
        low, high = _find_ends(column[~np.isnan(column)], np.empty(0))
        sizes = [float(radius) for radius in (radii["median"], radii["tenth"])]
        if norm == 0:  # one column may become anything, or none
            sizes = [math.inf if size >= 1 else 0.0 for size in sizes]
        half, most = (move_alone(size, unit) for size in sizes)
        ends = inputs.whole.get(feature)
        if ends is not None:
            half, most = (_cut_to_whole(move, ends) for move in (half, most))
        limit = limit_of(inputs, feature)
        moves.append(
            {
                "feature": feature,
                "name": subject.names[feature],
                "unit": unit,
                "half_of_rows": half,
                "nine_in_ten": most,
                "low": low,
                "high": high,
                "days": feature in subject.dates,
                "limit": limit,
                "sentence": _say_move(
                    shorten(subject.names[feature]), half, norm, limit, ends, days=feature in subject.dates
                ),
            }
        )
    return moves


def _cut_to_whole(move: float, ends: tuple[int, int]) -> float:
    """The whole numbers within a move; 1 at most where a column holds 0 and 1 alone.

    Examples
    --------
    >>> _cut_to_whole(2.7, (0, 48)), _cut_to_whole(0.7, (0, 48)), _cut_to_whole(2.7, (0, 1))
    (2.0, 0.0, 1.0)
    """
    if not math.isfinite(move):
        return move
    return float(min(math.floor(move), 1 if ends == (0, 1) else math.inf))


def _say_move(
    name: str,
    move: float,
    norm: float | str | None,
    limit: str,
    ends: tuple[int, int] | None = None,
    *,
    days: bool = False,
) -> str:
    if move == 0:
        step = "move" if ends is None else "change between 0 and 1" if ends == (0, 1) else "move by 1"
        step += " day" if days and ends is not None else ""
        return f"“{name}”: no {step} is certified for half of the rows"
    within = f" ({limit})" if limit else ""
    if not math.isfinite(move):
        return f"“{name}” can move by any amount{within}"
    others = "while every other column moves as far" if norm == math.inf else "if nothing else moves"
    return f"“{name}” can move by up to ±{format_short_down(move)}{' days' if days else ''} {others}{within}"
