"""Softmax loss of margins to first order where functions read groups of many columns.

The same loss as `SoftmaxLoss` with steepness, by products of looked-up functions (`_products`) instead of tables of
joint bins. Owns the order in which rows are added up, which does not depend on the number of threads. Must not know how
functions were made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.train.bins import BinnedTable
from derand.train.design.products import ProductDesign
from derand.train.design.steepness import LEAST_SLOPE
from derand.train.losses.base import Loss
from derand.train.losses.product_loops import add_products, lose_products, spread_products

_LANES = 8  # numbers that a machine adds at once
_TILE = 32  # rows whose slopes are at hand together
_PART = 128  # rows with slopes by weights of their own


class ProductLoss(Loss):
    """The mean loss of what the steepness of leads leaves of them, to first order, and its slopes.

    Parameters
    ----------
    design : ProductDesign
    rows : BinnedTable
        Of single columns.
    n_classes : int
    n_threads : int
    """

    def __init__(self, design: ProductDesign, rows: BinnedTable, n_classes: int, n_threads: int = 1) -> None:
        self.design, self._n_classes, self._n_threads = design, n_classes, n_threads
        self._width = -(-n_classes // _LANES) * _LANES
        self._least = LEAST_SLOPE**design.power
        blocks = design.blocks
        n_axes = np.diff(blocks.axis_starts)
        self._buffer = (1 + int(n_axes.max(initial=1)), int(np.diff(blocks.starts).max(initial=1)))
        self._all_rows = rows
        self.take(None)

    def take(self, chosen: IntArray | None, share_of_radius: float = 1.0) -> None:
        self._radius = self.design.radius * share_of_radius
        rows = self._all_rows if chosen is None else self._all_rows.take(chosen)
        self._codes, self._target = np.ascontiguousarray(rows.codes), rows.target
        self._weights = rows.weights / rows.weights.sum()

    def score(self, weights: FloatArray) -> FloatArray:
        """Score of each row and class."""
        scores = np.empty((self._target.size, self._n_classes))

        def work(block: slice) -> None:
            own, _ = self._add(self._pad(weights), block)
            scores[block] = own[:, : self._n_classes]

        run_blocks(work, self._target.size, _TILE, self._n_threads)
        return scores

    def compute_margins(self, weights: FloatArray) -> FloatArray:
        return self._measure(weights)[1]

    def measure(self, weights: FloatArray) -> float:
        return self._measure(weights)[0]

    def evaluate(self, weights: FloatArray, temperature: float = 0.0) -> tuple[float, FloatArray]:
        padded, n_rows = self._pad(weights), self._target.size
        n_parts = -(-n_rows // _PART)
        losses = np.zeros(n_parts)
        slopes: list[FloatArray] = [np.empty(0)] * n_parts

        def work(block: slice) -> None:
            part = block.start // _PART
            total = np.zeros(padded[1].shape, dtype=np.float32)
            by_start = np.zeros(self._n_classes)
            for start in range(block.start, block.stop, _TILE):
                tile = slice(start, min(start + _TILE, block.stop))
                scores, steep = self._add(padded, tile)
                losses[part] += self._lose(tile, scores, steep)[0]
                by_start += scores[:, : self._n_classes].sum(axis=0, dtype=np.float64)
                spread_products(self._codes[tile], self.design.blocks, scores, steep, total, *self._make_buffers())
            slopes[part] = np.concatenate([by_start[None], total[:, : self._n_classes]]).T

        run_blocks(work, n_rows, _PART, self._n_threads)
        gradient = np.sum(np.stack(slopes), axis=0)
        gradient[:, self.design.is_fixed] = 0.0
        return float(losses.sum()), gradient.ravel()

    def _measure(self, weights: FloatArray) -> tuple[float, FloatArray]:
        padded, n_rows = self._pad(weights), self._target.size
        losses, margins = np.zeros(-(-n_rows // _TILE)), np.empty(n_rows)

        def work(tile: slice) -> None:
            loss, own = self._lose(tile, *self._add(padded, tile))
            losses[tile.start // _TILE], margins[tile] = loss, own.min(axis=1)

        run_blocks(work, n_rows, _TILE, self._n_threads)
        return float(losses.sum()), margins

    def _pad(self, weights: FloatArray) -> tuple[FloatArray, NDArray[np.float32]]:
        """Intercepts, and other weights with the axis of classes last, as wide as the machine adds."""
        by_class = weights.reshape(self._n_classes, -1)
        padded = np.zeros((by_class.shape[1] - 1, self._width), dtype=np.float32)
        padded[:, : self._n_classes] = by_class[:, 1:].T
        return by_class[:, 0], padded

    def _make_buffers(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.empty(self._buffer, dtype=np.float32), np.empty(self._buffer, dtype=np.float32)

    def _add(
        self, padded: tuple[FloatArray, NDArray[np.float32]], tile: slice
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Scores, and their slopes along each axis."""
        codes, blocks = self._codes[tile], self.design.blocks
        scores = np.zeros((codes.shape[0], self._width), dtype=np.float32)
        steep = np.empty((codes.shape[0], blocks.columns.size, self._width), dtype=np.float32)
        add_products(codes, blocks, padded[1], scores, steep, *self._make_buffers())
        scores[:, : self._n_classes] += padded[0].astype(np.float32)
        return scores, steep

    def _lose(self, tile: slice, scores: NDArray[np.float32], steep: NDArray[np.float32]) -> tuple[float, FloatArray]:
        """Loss and margins; scores and slopes become the loss's slopes by them."""
        margins = np.empty((scores.shape[0], self._n_classes))
        loss = lose_products(
            scores,
            steep,
            self._target[tile],
            self._weights[tile],
            self._n_classes,
            self._radius,
            self.design.power,
            self._least,
            margins,
        )
        return float(loss), margins
