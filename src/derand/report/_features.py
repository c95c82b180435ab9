"""What the model does with each feature: its shape, its push, and how far it may move alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import FloatArray
from derand.model import AdditiveEnsemble, Term
from derand.noise import Noise
from derand.report._inputs import Inputs
from derand.report._text import shorten
from derand.report._threat import limit_of
from derand.report._types import CategoricalShape, CategoryPush, Move, NumericalShape, Radii, Shape
from derand.text import format_short_down

SHAPE_POINTS = 97
SHAPE_BINS = 40
MAX_CATEGORIES = 12
_IMPORTANCE_ROWS = 20_000


class Pushes:
    """Scores measured from a neutral point: above 0 pushes towards class 1, and all pushes add up to score - threshold.

    The neutral point divides every term's range at the same share, so that all terms at their neutral points sit
    exactly on the threshold. It needs no data. Of a linear model, whose terms have no range, it is the mean over some
    rows, and what these are off the threshold is shared. `points` is how many whole scores count as 1.
    """

    def __init__(self, model: AdditiveEnsemble, points: float = 1.0, rows: FloatArray | None = None) -> None:
        self._points = points
        if model.is_linear:
            self.neutral = _find_neutral(model, rows)
            return
        ranges = {term.features: term.score_range() for term in model.terms}
        lowest = sum(low for low, _ in ranges.values())
        span = sum(high - low for low, high in ranges.values())
        room = (model.threshold or 0) - lowest
        share = room / span if span else 0.0
        self.neutral = {features: low + share * (high - low) for features, (low, high) in ranges.items()}

    def of_scores(self, term: Term, scores: ArrayLike) -> FloatArray:
        """Pushes of scores of a term."""
        return (np.asarray(scores, dtype=np.float64) - self.neutral[term.features]) / self._points

    def under_noise(self, term: Term, x: FloatArray, noise: Noise | None) -> FloatArray:
        """Mean push of values of the term's column under noise, if there is any; it acts neither on categories nor on
        missing values. Of several columns x has one more axis."""
        if not term.axes or noise is None or term.slope is not None:  # symmetric noise moves no mean of a line
            return self.of_scores(term, term.evaluate(x))
        if len(term.axes) > 1:
            return self.of_scores(term, _multiply_cells(term, x, noise) @ term.cell_scores)
        (axis,) = term.axes
        gaps = np.isnan(x)
        cells = noise.cell_probabilities(np.where(gaps, 0.0, x), axis.edges, axis.feature)
        return self.of_scores(term, np.where(gaps, float(term.missing_score or 0), cells @ term.cell_scores))


def _find_neutral(model: AdditiveEnsemble, rows: FloatArray | None) -> dict[tuple[int, ...], float]:
    """Neutral points of a linear model: mean scores of terms, moved alike so that they sit on the threshold."""
    table = np.zeros((1, model.n_features)) if rows is None or not len(rows) else rows
    means = {term.features: float(term.score_rows(table).mean()) for term in model.terms}
    shared = ((model.threshold or 0) - math.fsum(means.values())) / len(means)
    return {features: mean + shared for features, mean in means.items()}


def _multiply_cells(term: Term, x: FloatArray, noise: Noise) -> FloatArray:
    """Probabilities of the boxes of a term of several columns, (n_rows, n_cells): products of those of their sides."""
    boxes = np.ones((x.shape[0], 1))
    for k, axis in enumerate(term.axes):
        gaps = np.isnan(x[:, [k]])
        side = noise.cell_probabilities(np.where(gaps, 0.0, x[:, [k]])[:, 0], axis.edges, axis.feature)
        if axis.feature in term.missing_features:
            side = np.concatenate([np.where(gaps, 0.0, side), gaps.astype(np.float64)], axis=1)
        boxes = (boxes[:, :, None] * side[:, None]).reshape(x.shape[0], -1)
    return boxes


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
                "limit": limit,
                "sentence": _say_move(shorten(subject.names[feature]), half, norm, limit, ends),
            }
        )
    return moves


def multiply_down(radius: float, unit: float) -> float:
    """The product, never above the true one."""
    product = radius * unit
    if not math.isfinite(product) or Fraction(product) <= Fraction(radius) * Fraction(unit):
        return product
    return math.nextafter(product, 0.0)


def move_alone(radius: float, unit: float) -> float:
    """How far one feature may move: a hair less than the product, because the ball is open."""
    return math.nextafter(multiply_down(radius, unit), 0.0) if math.isfinite(radius) else radius


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


def _say_move(name: str, move: float, norm: float | str | None, limit: str, ends: tuple[int, int] | None = None) -> str:
    if move == 0:
        step = "move" if ends is None else "change between 0 and 1" if ends == (0, 1) else "move by 1"
        return f"“{name}”: no {step} is certified for half of the rows"
    within = f" ({limit})" if limit else ""
    if not math.isfinite(move):
        return f"“{name}” can move by any amount{within}"
    others = "while every other column moves as far" if norm == math.inf else "if nothing else moves"
    return f"“{name}” can move by up to ±{format_short_down(move)} {others}{within}"
