"""Contributions: scores of single columns, measured so that they add up to the distance from the threshold.

Must not know tables or rows' certificates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import FloatArray
from derand._core.text import format_short, join_words, plural
from derand.explain._names import Names
from derand.explain.bars import Bar
from derand.explain.heights import measure_heights
from derand.model import AdditiveEnsemble, Model, Term
from derand.noise import Noise

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Contribution:
    """What the columns of one term add to the answer.

    Attributes
    ----------
    features : tuple of int
    size : float
        Positive towards the second of the `sides`.
    text : str
        Its columns and their values.
    """

    features: tuple[int, ...]
    size: float
    text: str


def list_contributions(
    terms: Sequence[Term], row: FloatArray, names: Names, measure: Callable[[Term, FloatArray], float]
) -> tuple[Contribution, ...]:
    """What each term adds to a row, (n_features,), from the strongest on; `measure` takes a term and its values."""
    found = []
    for term in terms:
        cells = row[list(term.features)]
        size = measure(term, cells if len(term.features) == 1 else cells[None])
        text = join_words([f"{names.columns[at]} = {names.write(at, float(row[at]))}" for at in term.features])
        found.append(Contribution(term.features, size, text))
    return tuple(sorted(found, key=lambda one: -abs(one.size)))


def list_bars(contributions: Sequence[Contribution], digits: int) -> list[Bar]:
    """The strongest contributions as lines of a table or a picture, all others in one."""
    shown = [(one.text, one.size) for one in contributions[:_LISTED]]
    rest = contributions[_LISTED:]
    if rest:
        shown.append((plural(len(rest), "other column"), math.fsum(one.size for one in rest)))
    return [Bar(text, size, write_signed(size, digits)) for text, size in shown]


def write_signed(size: float, digits: int) -> str:
    """A number with its sign."""
    return f"{'+' if size > 0 else ''}{format_short(size, digits)}"


def as_single_sum(model: Model) -> AdditiveEnsemble | None:
    """The one sum that a model is; None for a vote of several."""
    if model.weights is not None and (len(model.members) > 1 or model.weights[0] <= 0):
        return None
    return model.members[0]


class Contributions:
    """Scores measured from a neutral point: above 0 is for class 1, and all add up to score - threshold.

    The neutral point divides every term's range at the same share, so that all terms at their neutral points sit
    exactly on the threshold. It needs no data. Of a linear model, whose terms have no range, it is the mean over some
    rows, and what these are off the threshold is shared. `points` is how many whole scores count as 1.
    """

    def __init__(self, model: AdditiveEnsemble, points: float = 1.0, rows: FloatArray | None = None) -> None:
        self._points = points
        if model.is_linear:
            self.neutral = _average_linear(model, rows)
            return
        ranges = {term.features: term.score_range() for term in model.terms}
        lowest = sum(low for low, _ in ranges.values())
        span = sum(high - low for low, high in ranges.values())
        room = (model.threshold or 0) - lowest
        share = room / span if span else 0.0
        self.neutral = {features: low + share * (high - low) for features, (low, high) in ranges.items()}

    def of_scores(self, term: Term, scores: ArrayLike) -> FloatArray:
        """Contributions of scores of a term."""
        return (np.asarray(scores, dtype=np.float64) - self.neutral[term.features]) / self._points

    def under_noise(self, term: Term, x: FloatArray, noise: Noise | None) -> FloatArray:
        """Mean contribution of values of the term's column under noise, if there is any; it acts neither on categories
        nor on missing values. Of several columns x has one more axis."""
        return self.of_scores(term, measure_heights(term, x, noise)[:, 0])


def _average_linear(model: AdditiveEnsemble, rows: FloatArray | None) -> dict[tuple[int, ...], float]:
    """Neutral points of a linear model: mean scores of terms, moved alike so that they sit on the threshold."""
    table = np.zeros((1, model.n_features)) if rows is None or not len(rows) else rows
    means = {term.features: float(term.score_rows(table).mean()) for term in model.terms}
    shared = ((model.threshold or 0) - math.fsum(means.values())) / len(means)
    return {features: mean + shared for features, mean in means.items()}
