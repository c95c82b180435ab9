"""Numbers that go missing or appear: by how much that can lower a sum.

Owns what a threat's budget of such changes does to the score of each row, term by term (docs/theory.md, section 10): by
expected scores for the mean, by the scores themselves for the vote, and which sets of columns can be tried one by one.
Must not know rules, thresholds or how worst cases are found. Falls are in grid units, towards the other label: for
label 0, in which a sum must not rise, those of the negated scores. All are upper bounds; whole numbers are exact.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.missing_values import Filled, find_place
from derand.certificates.bounds.packing import Gap, PackedTerms
from derand.noise import Noise
from derand.perturbation import Perturbation

Falls = NDArray[Any]
"""Whole numbers without noise, else doubles that are rounded upward."""
MOST_SETS = 1000
"""Sets of columns that are tried one by one."""


def list_changing(terms: PackedTerms, perturbation: Perturbation) -> tuple[Gap, ...]:
    """The terms whose numbers may go missing or appear; none without a budget."""
    if not perturbation.missing_budget:
        return ()
    for grid in terms.grids:
        for feature, takes in zip(grid.features, grid.takes_missing, strict=True):
            if takes and feature not in perturbation.frozen:
                raise ValueError(
                    f"`missing` of Threat must be 'fixed' for column {feature}, whose missing values a term of several "
                    f"columns ({', '.join(map(str, grid.features))}) reads: what going missing does there is not "
                    f"bounded. Freeze that column, or leave `missing` out."
                )
    return tuple(gap for gap in terms.gaps if gap.feature not in perturbation.frozen)


def add_largest(falls: Falls, budget: int) -> Falls:
    """The sum of the largest falls of each row, as many as the budget allows, (n_rows,)."""
    largest = -np.sort(-falls, axis=1)[:, :budget]
    total = largest.sum(axis=1)
    return np.asarray(total if total.dtype.kind == "i" else total * (1 + EPSILON * (largest.shape[1] + 4)))


def find_falls(gaps: tuple[Gap, ...], filled: Filled, noise: Noise | None, label: int) -> Falls:
    """By how much the expected score falls where the number of one term goes missing or appears, (n_rows, n_gaps).

    From where the row stands; a number that appears may be anything.
    """
    columns = [_expect_upward(gap, filled.rows[:, gap.feature], noise, label) for gap in gaps]
    return _choose_falls(gaps, filled, columns, label)


def find_floor_falls(gaps: tuple[Gap, ...], filled: Filled, terms: PackedTerms, floors: Falls, label: int) -> Falls:
    """The same from the lowest place that each number can be moved to; `floors` is that of each term, reduced."""
    places = {int(feature): at for at, feature in enumerate(terms.features)}
    constant = np.zeros(floors.shape[0], dtype=floors.dtype)
    columns = [
        terms.step * (floors[:, places[gap.feature]] if gap.feature in places else constant)
        + _orient(gap, label)[0].min()
        for gap in gaps
    ]
    return _choose_falls(gaps, filled, columns, label)


def bound_falls(gaps: tuple[Gap, ...], filled: Filled, label: int) -> Falls:
    """By how much the score itself can fall in whatever cells noise has put the numbers, (n_rows, n_gaps)."""
    columns = [np.full(filled.rows.shape[0], _orient(gap, label)[0].max()) for gap in gaps]
    return _choose_falls(gaps, filled, columns, label)


class Variant(NamedTuple):
    """Rows in which the numbers of some columns have changed: what was there is missing, and what was missing appears.

    Attributes
    ----------
    filled : Filled
        No noise acts on those columns: one that appears counts as the worst of its cells.
    falls, rises : arrays of shape (n_rows,)
        What their scores lose for label 1 and gain for label 0; negative where the change helps.
    """

    filled: Filled
    falls: IntArray
    rises: IntArray


def count_sets(n_gaps: int, budget: int) -> int:
    """How many sets of columns can change, the empty one left out."""
    return sum(math.comb(n_gaps, size) for size in range(1, min(budget, n_gaps) + 1))


def list_sets(gaps: tuple[Gap, ...], budget: int) -> list[tuple[Gap, ...]]:
    """All of them."""
    sizes = range(1, min(budget, len(gaps)) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(gaps, size)]


def change_rows(filled: Filled, chosen: tuple[Gap, ...], noise: Noise) -> Variant:
    """The rows after the numbers of some columns have changed."""
    rows = filled.rows.copy()
    gaps = np.zeros(rows.shape, dtype=bool) if filled.gaps is None else filled.gaps.copy()
    moves = np.zeros((2, rows.shape[0]), dtype=np.int64)
    for gap in chosen:
        was_gap = _is_gap(filled, gap)
        last = int(gap.scores[-1])
        for label in (0, 1):
            worst = int(gap.scores.min() if label else gap.scores.max())
            # the place beyond all edges counts as the last cell, a gap in `fixed_scores` as its own
            moves[label] += np.where(was_gap, worst - gap.missing, gap.missing - last)
        rows[:, gap.feature], gaps[:, gap.feature] = find_place(gap, noise), True
    return Variant(Filled(rows, gaps), -moves[1], moves[0])


def _is_gap(filled: Filled, gap: Gap) -> BoolArray:
    if filled.gaps is None:
        return np.zeros(filled.rows.shape[0], dtype=bool)
    return np.asarray(filled.gaps[:, gap.feature])


def _orient(gap: Gap, label: int) -> tuple[IntArray, int]:
    """Scores of cells and of a missing number that must stay high for the label to hold."""
    return (gap.scores, gap.missing) if label else (-gap.scores, -gap.missing)


def _choose_falls(gaps: tuple[Gap, ...], filled: Filled, columns: list[Falls], label: int) -> Falls:
    """From values to the cells of missing ones, or from these to the worst of all values; none below 0."""
    falls = np.zeros((filled.rows.shape[0], len(gaps)), dtype=np.result_type(np.int64, *columns))
    for k, (gap, values) in enumerate(zip(gaps, columns, strict=True)):
        scores, missing = _orient(gap, label)
        falls[:, k] = np.where(_is_gap(filled, gap), missing - scores.min(), values - missing)
        if falls.dtype.kind == "f":
            falls[:, k] += 4 * EPSILON * (abs(missing) + float(np.abs(scores).max()))
    return np.maximum(falls, 0)


def _expect_upward(gap: Gap, x: FloatArray, noise: Noise | None, label: int) -> Falls:
    """Upper bounds of a term's expected score at some values; exact without noise."""
    scores, _ = _orient(gap, label)
    if noise is None:
        return scores[np.searchsorted(gap.edges, x, side="right")]
    lowest = scores.min()
    expected = noise.cell_probabilities(x, gap.edges, gap.feature) @ (scores - lowest).astype(np.float64)
    return np.asarray(lowest + expected * (1 + EPSILON * (scores.size + 8)) + 4 * EPSILON * np.abs(scores).max())
