"""Softmax loss of several classes, of rows as they are or of what the steepness of their leads leaves of them.

Owns the leads of the class of a row over each other class, how steep they are, and their slopes by the weights. The
loss of a row is log(1 + sum over other classes of exp(-margin)). Steepness is the first order of what `pairwise` knows
exactly, and enough where many columns move a little each. Weights are flat, those of class 0 first. Must not know how
columns were made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design
from derand.train.design.ranges import Deduction
from derand.train.design.steepness import LEAST_SLOPE
from derand.train.losses.base import Loss
from derand.train.losses.softmax_loops import add_leads, fill_rivals, lose_leads, scatter_leads, spread_rivals

_FEW_ROWS = 2_000  # not worth threads
_LANES = 8  # numbers that a machine adds at once


class SoftmaxLoss(Loss):
    """The mean loss of rows as they are, or of what the steepness of their leads leaves of them, to first order.

    Parameters
    ----------
    design : Design
        Of values that stay in place; what it says of multipliers does not count. Its steepness is that of the leads;
        None for rows as they are.
    rows : BinnedTable
    n_classes : int
    n_threads : int
    """

    def __init__(
        self,
        design: Design,
        rows: BinnedTable,
        n_classes: int,
        n_threads: int = 1,
    ) -> None:
        steepness = design.steepness
        self.design, self._n_classes, self._steepness = design, n_classes, steepness
        self._n_threads = n_threads
        self._offsets, self._starts = design.offsets, design.starts
        self._power = steepness.power if steepness else 2.0
        self._width = -(-(2 if steepness else 1) * n_classes // _LANES) * _LANES
        self._bases = [_stack(design, at) for at in range(len(design.numbers))]
        self._deduction = Deduction(design) if design.deduction else None
        self._all_rows = rows
        self.take(None)

    def take(self, chosen: IntArray | None, share_of_radius: float = 1.0) -> None:
        self._precision: Any = (
            np.float64 if chosen is None else np.float32
        )  # of the tables that rows of a batch look up
        self._radius = self._steepness.radius * share_of_radius if self._steepness else 0.0
        rows = self._all_rows if chosen is None else self._all_rows.take(chosen)
        weights = rows.weights / rows.weights.sum()
        self._places = [np.flatnonzero(rows.target == label) for label in range(self._n_classes)]
        self._codes = [np.ascontiguousarray(rows.codes[places]) for places in self._places]
        self._weights = [weights[places] for places in self._places]

    def score(self, weights: FloatArray) -> FloatArray:
        """Score of each row and class, (n_rows, n_classes)."""
        values, _ = self._tabulate(weights.reshape(self._n_classes, -1))
        scores = np.empty((sum(part.size for part in self._places), self._n_classes))
        for codes, places in zip(self._codes, self._places, strict=True):
            out = np.zeros((places.size, self._n_classes)) + weights.reshape(self._n_classes, -1)[:, 0]
            add_leads(codes, self._offsets, values, out)
            scores[places] = out
        return scores

    def compute_margins(self, weights: FloatArray) -> FloatArray:
        margins = np.empty(sum(part.size for part in self._places))
        tables = self._tabulate(weights.reshape(self._n_classes, -1))
        for places, found in zip(self._places, self._pass_rows(weights, *tables), strict=True):
            margins[places] = found[1].min(axis=1)
        return margins

    def measure(self, weights: FloatArray) -> float:
        tables = self._tabulate(weights.reshape(self._n_classes, -1))
        return float(sum(found[0] for found in self._pass_rows(weights, *tables)))

    def evaluate(self, weights: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        by_class = weights.reshape(self._n_classes, -1)
        values, slopes = self._tabulate(by_class)
        found = self._pass_rows(weights, values, slopes, with_slopes=True)
        by_value, by_slope = np.zeros(values.shape), np.zeros(slopes.shape)
        by_start = np.zeros((self._n_classes, self._n_classes))
        for label, (_, _, starts, part) in enumerate(found):
            if part is not None:
                spread_rivals(part, slopes, label, self._power, by_value, by_slope)
            by_start[label] = starts
        gradient = self._pass_back(by_class, by_value, by_slope)
        gradient[:, 0] = by_start.sum(axis=1) - by_start.sum(axis=0)
        self._deduct_slopes(by_class, by_start, gradient)
        return float(sum(one[0] for one in found)), gradient.ravel()

    def _tabulate(self, by_class: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and slopes of all codes, (n_codes, n_classes); no slopes without steepness."""
        n_codes = int(self._offsets[-1])
        values = np.zeros((n_codes, self._n_classes))
        slopes = np.zeros((n_codes if self._steepness else 0, self._n_classes))
        for at, (column, basis) in enumerate(zip(self.design.numbers, self._bases, strict=True)):
            start, first, n_bins = int(self._starts[at]), int(self._offsets[at]), column.bins.centers.size
            both = basis @ by_class[:, start : start + basis.shape[1]].T
            values[first : first + n_bins] = both[:n_bins]
            if self._steepness:
                slopes[first : first + n_bins] = both[n_bins:]
            if column.bins.missing > 0:
                values[first + n_bins] = by_class[:, start + basis.shape[1]]
        for at, one in enumerate(self.design.categories, len(self.design.numbers)):
            start, first = int(self._starts[at]), int(self._offsets[at])
            values[first : first + one.n_weights] = by_class[:, start : start + one.n_weights].T
        return values, slopes

    def _pass_back(self, by_class: FloatArray, by_value: FloatArray, by_slope: FloatArray) -> FloatArray:
        """Slopes by all weights but the intercepts, from those by the tables."""
        gradient = np.zeros(by_class.shape)
        for at, (column, basis) in enumerate(zip(self.design.numbers, self._bases, strict=True)):
            start, first, n_bins = int(self._starts[at]), int(self._offsets[at]), column.bins.centers.size
            part = slice(first, first + n_bins)
            both = np.concatenate([by_value[part], by_slope[part]]) if self._steepness else by_value[part]
            gradient[:, start : start + basis.shape[1]] = both.T @ basis
            if column.bins.missing > 0:
                gradient[:, start + basis.shape[1]] = by_value[first + n_bins]
        for at, one in enumerate(self.design.categories, len(self.design.numbers)):
            start, first = int(self._starts[at]), int(self._offsets[at])
            gradient[:, start : start + one.n_weights] = by_value[first : first + one.n_weights].T
        return gradient

    def _pass_rows(
        self, weights: FloatArray, values: FloatArray, slopes: FloatArray, *, with_slopes: bool = False
    ) -> list[Any]:
        """Of each class: loss, margins, slopes by what pairs start with, slopes by its tables of rivals."""
        starts = self._compute_starts(weights.reshape(self._n_classes, -1))
        found: list[Any] = [None] * self._n_classes
        least = LEAST_SLOPE**self._power

        def work(block: slice) -> None:
            label = block.start
            codes, n_classes = self._codes[label], self._n_classes
            by_start = np.zeros(n_classes)
            margins = np.empty((codes.shape[0], n_classes))
            if not codes.shape[0]:
                found[label] = (0.0, margins, by_start, None)
                return
            tables = np.zeros((values.shape[0], self._width), dtype=self._precision)
            fill_rivals(values, slopes, label, self._power, tables)
            leads = np.zeros((codes.shape[0], self._width), dtype=self._precision)
            add_leads(codes, self._offsets, tables, leads)
            own = self._weights[label]
            loss = lose_leads(
                leads, label, n_classes, self._radius, self._power, least, own, starts[label], margins, by_start
            )
            if with_slopes:
                tables[:] = 0
                scatter_leads(codes, self._offsets, leads, tables)
            found[label] = (loss, margins, by_start, tables)

        n_rows = sum(part.size for part in self._places)
        run_blocks(work, self._n_classes, 1, self._n_threads if n_rows >= _FEW_ROWS else 1)
        return found

    def _compute_starts(self, by_class: FloatArray) -> FloatArray:
        """What the pair of each class with each rival starts with: intercepts, less what a proof deducts."""
        starts = by_class[:, 0][:, None] - by_class[:, 0]
        if self._deduction is not None:
            for low in range(self._n_classes):
                for high in range(low + 1, self._n_classes):
                    deducted = self._deduction.measure(by_class[high] - by_class[low])[0]
                    starts[low, high] -= deducted
                    starts[high, low] -= deducted
        return starts

    def _deduct_slopes(self, by_class: FloatArray, by_start: FloatArray, gradient: FloatArray) -> None:
        if self._deduction is None:
            return
        for low in range(self._n_classes):
            for high in range(low + 1, self._n_classes):
                slopes = self._deduction.measure(by_class[high] - by_class[low])[1]
                slopes = slopes * (by_start[low, high] + by_start[high, low])
                gradient[high] -= slopes
                gradient[low] += slopes


def _stack(design: Design, at: int) -> FloatArray:
    """What each weight of a numerical column adds to values, and below them to slopes, at its bins."""
    column = design.numbers[at]
    values = column.basis[:, column.own, :].astype(np.float64)
    return np.concatenate([values, design.steepness.basis[at]]) if design.steepness else values
