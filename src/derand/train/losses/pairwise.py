"""Softmax loss of certified margins: every class of a row against every other one, under the worst change.

Owns the margins of pairs of classes, and the loss log(1 + sum over other classes of exp(-margin)). What the threat
leaves of a pair is a MarginLoss of the difference of two classes. Weights are flat, those of class 0 first. Must not
know how columns were made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design
from derand.train.losses.base import Loss
from derand.train.losses.margin import MarginLoss
from derand.train.losses.rows import RowsInMemory


class _Pair(NamedTuple):
    """Two classes: which rows are theirs, the other class of each row, these rows, and the loss of their margins."""

    low: int
    high: int
    members: IntArray
    others: NDArray[np.int64]
    rows: RowsInMemory
    loss: MarginLoss

    def subtract(self, by_class: FloatArray) -> FloatArray:
        """Weights of the lead of the higher class."""
        return np.asarray(by_class[self.high] - by_class[self.low])


class PairwiseLoss(Loss):
    """The mean loss of what a threat leaves of the margins of each row, and its slopes."""

    def __init__(self, design: Design, rows: BinnedTable, n_classes: int, n_threads: int = 1) -> None:
        self.design, self._n_classes, self._n_threads = design, n_classes, n_threads
        self._n_rows, self._weights = rows.target.size, rows.weights / rows.weights.sum()
        occurs = np.bincount(rows.target, minlength=n_classes) > 0  # a fold may lack a rare class
        self._pairs: list[_Pair] = []
        for high in range(n_classes):
            for low in range(high):
                if occurs[low] or occurs[high]:
                    self._pairs.append(self._compare(rows, low, high))

    def _compare(self, rows: BinnedTable, low: int, high: int) -> _Pair:
        index = np.flatnonzero((rows.target == low) | (rows.target == high))
        some = rows.take(index)
        own = RowsInMemory(self.design, replace(some, target=(some.target == high).astype(np.uint8)))
        loss = MarginLoss(self.design, own, self._pairs[0].loss.columns if self._pairs else None)
        return _Pair(low, high, index, np.where(some.target == high, low, high), own, loss)

    def set_multiplier(self, budget_cost: float) -> None:
        for pair in self._pairs:
            pair.loss.set_multiplier(budget_cost)

    def choose_multipliers(self, weights: FloatArray) -> None:
        by_class = weights.reshape(self._n_classes, -1)
        self._run(lambda at: self._pairs[at].loss.choose_multipliers(self._pairs[at].subtract(by_class)))

    def compute_margins(self, weights: FloatArray) -> FloatArray:
        self.choose_multipliers(weights)
        return np.asarray(self._compute_all(weights, 0.0)[0].min(axis=1))

    def measure(self, weights: FloatArray) -> float:
        self.choose_multipliers(weights)
        return self._lose(self._compute_all(weights, 0.0)[0])[0]

    def evaluate(self, weights: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        by_class = weights.reshape(self._n_classes, -1)
        margins, tables = self._compute_all(weights, temperature)
        loss, by_margin = self._lose(margins)
        found: list[Any] = [None] * len(self._pairs)

        def work(at: int) -> None:
            pair = self._pairs[at]
            totals = pair.rows.spread(by_margin[pair.members, pair.others], tables[at])
            found[at] = pair.loss.pass_back(pair.subtract(by_class), temperature, tables[at], totals)

        self._run(work)
        gradient = np.zeros(by_class.shape)
        for pair, part in zip(self._pairs, found, strict=True):
            gradient[pair.high] += part
            gradient[pair.low] -= part
        return loss, gradient.ravel()

    def _run(self, work: Any) -> None:
        run_blocks(lambda block: work(block.start), len(self._pairs), 1, self._n_threads)

    def _compute_all(self, weights: FloatArray, temperature: float) -> tuple[FloatArray, list[Any]]:
        """Margins of all rows over all classes, infinite for the class itself, and the tables of all pairs."""
        by_class = weights.reshape(self._n_classes, -1)
        margins = np.full((self._n_rows, self._n_classes), np.inf)
        tables: list[Any] = [None] * len(self._pairs)

        def work(at: int) -> None:
            pair = self._pairs[at]
            lead = pair.subtract(by_class)
            tables[at] = pair.loss.tabulate(lead, temperature)
            found = pair.rows.compute_margins(lead[0], pair.loss.deduct(lead), tables[at])
            margins[pair.members, pair.others] = found

        self._run(work)
        return margins, tables

    def _lose(self, margins: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss and its slopes by the margins."""
        worst = np.minimum(margins.min(axis=1), 0.0)
        shares = np.exp(worst[:, None] - margins)
        total = np.exp(worst) + shares.sum(axis=1)
        loss = float(self._weights @ (np.log(total) - worst))
        return loss, -(self._weights / total)[:, None] * shares
