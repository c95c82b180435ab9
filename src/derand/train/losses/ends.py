"""Squares of both ends: what an additive model loses where a threat has moved its answer as far as it can.

Owns the loss of an interval: the squares of what its ends are off by, each where it lies beyond the target. Ends are
margins (`_margin`): the lowest answer is that of a row which must stay high, the highest that of one which must stay
low, so that every row stands there twice. Must not know how columns were made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derand._core.arrays import FloatArray
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design
from derand.train.losses.margin import MarginLoss, Tables


class EndLoss(MarginLoss):
    """The mean of half the squares by which both ends of a row's answers miss its target, and its slopes.

    For rows that nothing moves it is half the mean square.

    Parameters
    ----------
    design : Design
    rows : BinnedTable
    target : array of shape (n_rows,)
    """

    def __init__(self, design: Design, rows: BinnedTable, target: FloatArray) -> None:
        twice = np.concatenate([np.arange(target.size)] * 2)
        sides = np.repeat(np.array([0, 1], dtype=np.uint8), target.size)
        self._goal = target[twice]
        super().__init__(design, replace(rows.take(twice), target=sides))

    def _pass_rows(
        self, weights: FloatArray, tables: Tables
    ) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
        """Loss, its slope by the intercept, margins in the order of groups, and slopes by all tables."""
        codes, signs, groups, swaps, row_weights = self._sorted
        margins = np.asarray(signs * weights[0] - self._charges[groups] - self._swap_charges[swaps])
        places = [self._offsets[at] + codes[:, at].astype(np.int64) for at in range(len(self.design.columns))]
        for at, place in enumerate(places):
            margins += tables.worth[groups, place] if at < self._n_numbers else tables.swap_worth[swaps, place]
        missed = np.maximum(signs * self._goal[self._order] - margins, 0.0)
        by_margin = -2.0 * row_weights * missed
        slopes, swap_slopes = np.zeros(tables.worth.shape), np.zeros(tables.swap_worth.shape)
        for at, place in enumerate(places):
            own, row = (slopes, groups) if at < self._n_numbers else (swap_slopes, swaps)
            flat = row.astype(np.int64) * self._n_codes[at >= self._n_numbers] + place
            own += np.bincount(flat, weights=by_margin, minlength=own.size).reshape(own.shape)
        return float(row_weights @ missed**2), float(by_margin @ signs), margins, slopes, swap_slopes
