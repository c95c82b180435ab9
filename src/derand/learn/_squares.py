"""Least squares on the functions of a design: weights of the sum that predicts numbers best, for rows as they are.

Owns the table of squares and products, its penalised solution, and the choice of the penalty on rows left out. Must not
know threats, or how columns were made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell
from derand.learn._design import CategoryColumn, Design
from derand.learn.bins import BinnedTable

REGULARIZATIONS = (1000.0, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001)
"""What cross-validation tries first; then what lies between the best and its neighbours."""
_BETWEEN = 10**0.5
_FOLDS = 5
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


def tabulate_functions(design: Design) -> list[FloatArray]:
    """What each weight of each column adds at each of its codes, (n_codes, n_weights): rows as they are."""
    tables = []
    for column in design.columns:
        table = np.zeros((column.n_codes, column.n_weights))
        if isinstance(column, CategoryColumn):
            table[: column.n_weights] = np.eye(column.n_weights)
        else:
            n_weights = column.basis.shape[2]
            table[:-1, :n_weights] = column.basis[:, column.own, :]
            table[-1, n_weights:] = 1.0
        tables.append(table)
    return tables


def add_functions(design: Design, rows: BinnedTable, weights: FloatArray) -> FloatArray:
    """The sum of all functions, the intercept included, at each row."""
    total = np.full(rows.codes.shape[0], weights[0])
    starts = design.starts
    for at, table in enumerate(tabulate_functions(design)):
        total += (table @ weights[starts[at] : starts[at + 1]])[rows.codes[:, at]]
    return total


def sum_squares(design: Design, rows: BinnedTable, target: FloatArray) -> Squares:
    """The products of a design's functions over some rows."""
    tables, size = tabulate_functions(design), int(design.starts[-1])
    products, moments = np.zeros((size, size)), np.zeros(size)
    for start in range(0, target.size, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        parts = [table[rows.codes[block, at]] for at, table in enumerate(tables)]
        functions = np.concatenate([np.ones((target[block].size, 1)), *parts], axis=1)
        weighed = functions * rows.weights[block, None]
        products += functions.T @ weighed
        moments += weighed.T @ target[block]
    return Squares(products, moments, float(rows.weights @ target**2), float(rows.weights.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class PenaltyPath:
    """What cross-validation saw: one entry per penalty that was tried.

    Attributes
    ----------
    regularization : array of shape (n_tried,)
    loss, error : arrays of shape (n_tried,)
        Root of the mean square on rows left out, mean over folds, and its standard error.
    """

    regularization: FloatArray
    loss: FloatArray
    error: FloatArray


def choose_penalty(design: Design, rows: BinnedTable, target: FloatArray) -> tuple[float, PenaltyPath]:
    """The penalty of least squares on rows left out, equal rows always together; 1 where there are too few rows."""
    folds = draw_folds(rows)
    nothing = PenaltyPath(np.empty(0), np.empty(0), np.empty(0))
    if folds is None:
        return 1.0, nothing
    parts = [
        sum_squares(design, rows.take(at), target[at])
        for at in (np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1))
    ]
    whole = sum_squares(design, rows, target)
    distinct = rows.count_distinct()
    tried: dict[float, FloatArray] = {}

    def attempt(regularization: float) -> None:
        penalties = design.list_penalties(regularization) / distinct
        losses = [part.measure(whole.less(part).solve(penalties)) for part in parts]
        tried[regularization] = np.sqrt(losses)

    for place, regularization in enumerate(REGULARIZATIONS, start=1):
        tell(f"training: penalty {place} of {len(REGULARIZATIONS)}")
        attempt(regularization)
    best = min(tried, key=lambda one: float(tried[one].mean()))
    for factor in (_BETWEEN, 1 / _BETWEEN):
        attempt(best * factor)
    best = min(tried, key=lambda one: float(tried[one].mean()))
    path = PenaltyPath(
        np.array(list(tried)),
        np.array([float(one.mean()) for one in tried.values()]),
        np.array([float(one.std() / np.sqrt(one.size)) for one in tried.values()]),
    )
    return best, path


def draw_folds(rows: BinnedTable) -> IntArray | None:
    """The fold of each row, equal rows in the same one; None where there are too few different rows."""
    keys, place = np.unique(rows.keys, return_inverse=True)
    count = min(_FOLDS, keys.size)
    return None if count < 2 else np.asarray(place % count, dtype=np.int64)
