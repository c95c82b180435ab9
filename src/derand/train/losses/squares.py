"""Least squares on the functions of a design: weights of the sum that predicts numbers best, for rows as they are.

Owns the table of squares and products, its penalised solution, and the choice of the penalty on rows left out. Must not
know threats, or how columns were made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from derand._core.arrays import FloatArray
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design
from derand.train.selection.folds import draw_folds
from derand.train.selection.penalties import Ladder, SelectionPath, Trial, search_penalty

_LADDER = Ladder((1000.0, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001), stops=False, refines=True)
_BLOCK_ROWS = 2**12


@dataclass(frozen=True, slots=True, eq=False)
class Squares:
    """Products of all functions with one another and with the target, over some rows, each by its weight.

    Attributes
    ----------
    products : array of shape (n_weights, n_weights)
    moments : array of shape (n_weights,)
    square : float
        Of the target.
    total : float
        Weight of the rows.
    """

    products: FloatArray
    moments: FloatArray
    square: float
    total: float

    def less(self, other: Squares) -> Squares:
        """Those of the other rows, where `other` holds some of these."""
        return Squares(
            self.products - other.products,
            self.moments - other.moments,
            self.square - other.square,
            self.total - other.total,
        )

    def solve(self, penalties: FloatArray) -> FloatArray:
        """Weights of the least half mean square and penalty of half their squares."""
        matrix = self.products / self.total + np.diag(penalties)
        matrix += np.diag(np.full(penalties.size, 1e-12 * max(float(np.trace(matrix)) / penalties.size, 1e-300)))
        try:
            return np.asarray(cho_solve(cho_factor(matrix), self.moments / self.total))
        except LinAlgError:  # functions that rounding cannot tell apart
            return np.asarray(np.linalg.lstsq(matrix, self.moments / self.total, rcond=None)[0])

    def measure(self, weights: FloatArray) -> float:
        """Mean square of what is left of the target."""
        left = self.square - 2 * float(self.moments @ weights) + float(weights @ self.products @ weights)
        return max(left, 0.0) / self.total


def add_functions(design: Design, rows: BinnedTable, weights: FloatArray) -> FloatArray:
    """The sum of all functions, the intercept included, at each row."""
    total = np.full(rows.codes.shape[0], weights[0])
    for _, added in design.list_parts(weights, rows.codes):
        total += added
    return total


def sum_squares(design: Design, rows: BinnedTable, target: FloatArray) -> Squares:
    """The products of a design's functions over some rows."""
    tables, size = [column.tabulate() for column in design.columns], int(design.starts[-1])
    products, moments = np.zeros((size, size)), np.zeros(size)
    for start in range(0, target.size, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        parts = [table[rows.codes[block, at]] for at, table in enumerate(tables)]
        functions = np.concatenate([np.ones((target[block].size, 1)), *parts], axis=1)
        weighed = functions * rows.weights[block, None]
        products += functions.T @ weighed
        moments += weighed.T @ target[block]
    return Squares(products, moments, float(rows.weights @ target**2), float(rows.weights.sum()))


def choose_penalty(design: Design, rows: BinnedTable, target: FloatArray) -> tuple[float, SelectionPath]:
    """The penalty of least squares on rows left out, equal rows always together; 1 where there are too few rows."""
    folds = draw_folds(rows, few_rows=np.inf)
    if folds is None:
        return 1.0, SelectionPath.of([])
    parts = [
        sum_squares(design, rows.take(at), target[at])
        for at in (np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1))
    ]
    whole = sum_squares(design, rows, target)
    distinct = rows.count_distinct()

    def attempt(regularization: float, ramp: bool, before: Trial | None) -> Trial:
        penalties = design.list_penalties(regularization) / distinct
        losses = [part.measure(whole.less(part).solve(penalties)) for part in parts]
        return Trial(regularization, ramp, np.sqrt(losses))

    best, path = search_penalty(attempt, _LADDER)
    return best.regularization, path
