"""Missing numbers: where they stand, and by how much a sum can decrease where numbers go missing or appear.

Owns the position of a missing number: beyond every edge, so far that noise does not bring it back. There the last cell
of its term has all the mass, the kernels see an ordinary row, and what its own cell scores instead is a shift
(`PackedTerms.fixed_scores`). Owns what a budget of such changes does to the score of each row, term by term
(docs/theory.md, section 10): by expected scores for the mean, by the scores themselves for the vote, and which sets of
columns can be tried one by one. Decreases are in grid units, towards the other label: for label 0, in which a sum must
not increase, those of the negated scores. All are upper bounds; whole numbers are exact. Must not know rules,
thresholds or how worst cases are found.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, Entries, FloatArray, IntArray, Numbers
from derand.certificates.bounds.packing import MissingCell, PackedTerms
from derand.noise import Noise
from derand.perturbation import Perturbation

_BEYOND = 1e4
"""Noise scales beyond the last edge: more than any noise carries a share of, and beyond all knots of a curve."""
_APART = 2.0**-20
"""Of the last edge's own size, at least: more than any rounding of positions."""
Decreases = Numbers
"""Whole numbers without noise, else doubles that are rounded upward."""
MOST_SETS = 1000
"""Sets of columns that are tried one by one."""


class Filled(NamedTuple):
    """Rows without missing values.

    Attributes
    ----------
    rows : array of shape (n_rows, n_features)
        A missing number stands beyond the last edge of its term; one of a term of several columns stays NaN.
    is_missing : array of booleans of the same shape, or None
        Which numbers those are; None where there are none.
    """

    rows: FloatArray
    is_missing: BoolArray | None

    def take(self, at: IntArray) -> Filled:
        """Some of the rows."""
        return Filled(self.rows[at], None if self.is_missing is None else self.is_missing[at])


def fill_missing(terms: PackedTerms, rows: FloatArray, noise: Noise | None) -> Filled:
    """The same rows with a position for each missing number that some term has a cell for.

    Rows are returned as they are where nothing is missing.
    """
    of_grids = [at for grid in terms.grids for at, cell in zip(grid.features, grid.takes_missing, strict=True) if cell]
    columns = [cell.feature for cell in terms.missing_cells] + of_grids
    if not columns or not np.isnan(rows[:, columns]).any():
        return Filled(rows, None)
    filled, is_missing = np.array(rows, dtype=np.float64), np.zeros(rows.shape, dtype=bool)
    for cell in terms.missing_cells:
        at = np.isnan(rows[:, cell.feature])
        if at.any():
            filled[at, cell.feature] = compute_position(cell, noise)
            is_missing[:, cell.feature] = at
    is_missing[:, of_grids] = np.isnan(rows[:, of_grids])
    return Filled(filled, is_missing)


def compute_position(cell: MissingCell, noise: Noise | None) -> float:
    """Where a missing number of a term stands: in its last cell, under noise all but surely."""
    if not cell.edges.size:
        return 0.0
    last = float(cell.edges[-1])
    if noise is None:
        return last
    scale = float(noise.scales(np.array([cell.feature]))[0])
    position = min(last + max(2 * _BEYOND * scale, _APART * abs(last)), float(np.finfo(np.float64).max))
    if not (position - last) / scale >= _BEYOND:
        raise ValueError(
            f"A missing value of column {cell.feature} needs room above its last edge, got {last!r} beside noise of "
            f"scale {scale!r}: divide the column by some large number, edges and units as well."
        )
    return position


def compute_ends(terms: PackedTerms, is_missing: BoolArray | None) -> tuple[Entries, Entries]:
    """The lowest and the highest sum of reduced scores that noise can give each row; numbers without missing values.

    Terms of several columns count with all their cells.
    """
    if is_missing is None or not terms.n_terms:
        return 0, terms.largest
    held = is_missing[:, terms.features]
    last = terms.scores[terms.starts[1 : terms.n_plain + 1] - 1]
    above = terms.ranges[: terms.n_plain].astype(np.int64) - last
    return (held @ last)[:, None], (terms.largest - held @ above)[:, None]


def list_changing(terms: PackedTerms, perturbation: Perturbation) -> tuple[MissingCell, ...]:
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
    return tuple(cell for cell in terms.missing_cells if cell.feature not in perturbation.frozen)


def add_largest(decreases: Decreases, budget: int) -> Decreases:
    """The sum of the largest decreases of each row, as many as the budget allows, (n_rows,)."""
    largest = -np.sort(-decreases, axis=1)[:, :budget]
    total = largest.sum(axis=1)
    return np.asarray(total if total.dtype.kind == "i" else total * (1 + EPSILON * (largest.shape[1] + 4)))


def compute_decreases(
    missing_cells: tuple[MissingCell, ...], filled: Filled, noise: Noise | None, label: int
) -> Decreases:
    """Decreases of the expected score where the number of one term goes missing or appears, (n_rows, n_missing).

    From where the row stands; a number that appears may be anything.
    """
    columns = [_expect_upward(cell, filled.rows[:, cell.feature], noise, label) for cell in missing_cells]
    return _choose_decreases(missing_cells, filled, columns, label)


def compute_floor_decreases(
    missing_cells: tuple[MissingCell, ...], filled: Filled, terms: PackedTerms, floors: Decreases, label: int
) -> Decreases:
    """The same from the lowest position that each number can be moved to; `floors` is that of each term, reduced."""
    positions = {int(feature): at for at, feature in enumerate(terms.features)}
    constant = np.zeros(floors.shape[0], dtype=floors.dtype)
    columns = [
        terms.step * (floors[:, positions[cell.feature]] if cell.feature in positions else constant)
        + _orient(cell, label)[0].min()
        for cell in missing_cells
    ]
    return _choose_decreases(missing_cells, filled, columns, label)


def bound_decreases(missing_cells: tuple[MissingCell, ...], filled: Filled, label: int) -> Decreases:
    """By how much the score itself can decrease in whatever cells noise has put the numbers, (n_rows, n_missing)."""
    columns = [np.full(filled.rows.shape[0], _orient(cell, label)[0].max()) for cell in missing_cells]
    return _choose_decreases(missing_cells, filled, columns, label)


class Variant(NamedTuple):
    """Rows in which the numbers of some columns have changed: what was there is missing, and what was missing appears.

    Attributes
    ----------
    filled : Filled
        No noise acts on those columns: one that appears counts as the worst of its cells.
    decreases, increases : arrays of shape (n_rows,)
        What their scores lose for label 1 and gain for label 0; negative where the change helps.
    """

    filled: Filled
    decreases: IntArray
    increases: IntArray


def count_sets(n_missing: int, budget: int) -> int:
    """How many sets of columns can change, the empty one left out."""
    return sum(math.comb(n_missing, size) for size in range(1, min(budget, n_missing) + 1))


def list_sets(missing_cells: tuple[MissingCell, ...], budget: int) -> list[tuple[MissingCell, ...]]:
    """All of them."""
    sizes = range(1, min(budget, len(missing_cells)) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(missing_cells, size)]


def change_rows(filled: Filled, chosen: tuple[MissingCell, ...], noise: Noise) -> Variant:
    """The rows after the numbers of some columns have changed."""
    rows = filled.rows.copy()
    is_missing = np.zeros(rows.shape, dtype=bool) if filled.is_missing is None else filled.is_missing.copy()
    moves = np.zeros((2, rows.shape[0]), dtype=np.int64)
    for cell in chosen:
        was_missing = _is_missing(filled, cell)
        last = int(cell.scores[-1])
        for label in (0, 1):
            worst = int(cell.scores.min() if label else cell.scores.max())
            # the position beyond all edges counts as the last cell, a missing value in `fixed_scores` as its own
            moves[label] += np.where(was_missing, worst - cell.missing, cell.missing - last)
        rows[:, cell.feature], is_missing[:, cell.feature] = compute_position(cell, noise), True
    return Variant(Filled(rows, is_missing), -moves[1], moves[0])


def _is_missing(filled: Filled, cell: MissingCell) -> BoolArray:
    if filled.is_missing is None:
        return np.zeros(filled.rows.shape[0], dtype=bool)
    return np.asarray(filled.is_missing[:, cell.feature])


def _orient(cell: MissingCell, label: int) -> tuple[IntArray, int]:
    """Scores of cells and of a missing number that must stay high for the label to hold."""
    return (cell.scores, cell.missing) if label else (-cell.scores, -cell.missing)


def _choose_decreases(
    missing_cells: tuple[MissingCell, ...], filled: Filled, columns: list[Decreases], label: int
) -> Decreases:
    """From values to the cells of missing ones, or from these to the worst of all values; none below 0."""
    decreases = np.zeros((filled.rows.shape[0], len(missing_cells)), dtype=np.result_type(np.int64, *columns))
    for k, (cell, values) in enumerate(zip(missing_cells, columns, strict=True)):
        scores, missing = _orient(cell, label)
        decreases[:, k] = np.where(_is_missing(filled, cell), missing - scores.min(), values - missing)
        if decreases.dtype.kind == "f":
            decreases[:, k] += 4 * EPSILON * (abs(missing) + float(np.abs(scores).max()))
    return np.maximum(decreases, 0)


def _expect_upward(cell: MissingCell, x: FloatArray, noise: Noise | None, label: int) -> Decreases:
    """Upper bounds of a term's expected score at some values; exact without noise."""
    scores, _ = _orient(cell, label)
    if noise is None:
        return scores[np.searchsorted(cell.edges, x, side="right")]
    lowest = scores.min()
    expected = noise.cell_probabilities(x, cell.edges, cell.feature) @ (scores - lowest).astype(np.float64)
    return np.asarray(lowest + expected * (1 + EPSILON * (scores.size + 8)) + 4 * EPSILON * np.abs(scores).max())
