"""Terms of several columns as arrays: boxes, and upper bounds of their probabilities.

Owns packing one such term, its boxes of equal score merged, and its part of the kernels' table: the probability of a
box is the product of those of its sides, because noise is independent per column. A missing number is in its own cell
for sure. Must not know rules. kernels/README.md, step 10, has the rounding argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray, freeze
from derand.kernels import TAIL_ERROR
from derand.kernels.cells.boxes import multiply_sides
from derand.model import Axis
from derand.noise import Noise


@dataclass(frozen=True, slots=True, eq=False)
class PackedGrid:
    """A term of several columns.

    Attributes
    ----------
    features : tuple of int
    edges : tuple of arrays
        Of each column.
    shape : tuple of int
        Cells of each column; one more than there are edges plus 1 where the last one is that of missing values.
    scores : array of shape (n_boxes,)
        Reduced, in C order.
    merged : array of shape (n_boxes,)
        Which of the cells that the kernels see holds each box.
    n_merged : int
    """

    features: tuple[int, ...]
    edges: tuple[FloatArray, ...]
    shape: tuple[int, ...]
    scores: IntArray
    merged: IntArray
    n_merged: int

    @property
    def n_edges(self) -> int:
        """Of all columns."""
        return sum(part.size for part in self.edges)

    @property
    def takes_missing(self) -> tuple[bool, ...]:
        """Whether each column has a cell for missing values."""
        return tuple(size > part.size + 1 for size, part in zip(self.shape, self.edges, strict=True))

    @property
    def widening(self) -> float:
        """By what share bounds of probabilities are widened for their roundings."""
        return EPSILON * (self.merged.size + len(self.features) + 4)

    @property
    def excess(self) -> float:
        """By how much the bounds of all boxes together can exceed 1 (kernels/README.md, step 10)."""
        return 3.01 * TAIL_ERROR * self.n_edges + 2.01 * self.widening

    def divide(self, step: int) -> PackedGrid:
        """The same with scores divided by a common divisor."""
        return replace(self, scores=freeze(self.scores // step))


def pack_grid(axes: Sequence[Axis], shape: tuple[int, ...], scores: IntArray) -> tuple[PackedGrid, IntArray]:
    """A term of several columns, and the scores of the cells that the kernels see, from 0 on.

    `shape` counts the cells of each axis, that of missing values included; `scores` are those of all boxes.
    """
    reduced = scores - scores.min()
    kept, merged = np.unique(reduced, return_inverse=True)
    grid = PackedGrid(
        tuple(axis.feature for axis in axes),
        tuple(axis.edges for axis in axes),
        shape,
        freeze(reduced),
        freeze(merged.reshape(-1).astype(np.int64)),
        kept.size,
    )
    return grid, kept


def bound_boxes(grids: Sequence[PackedGrid], rows: FloatArray, noise: Noise) -> list[FloatArray]:
    """Upper bounds of the probabilities of the merged cells of each term, (n_rows, n_merged) each."""
    edges = [part for grid in grids for part in grid.edges]
    columns = np.array([feature for grid in grids for feature in grid.features], dtype=np.int64)
    counts = [part.size for part in edges]
    features = np.repeat(columns, counts)
    x = np.take(rows, features, axis=1)
    x[np.isnan(x)] = 0.0  # missing values are in a cell of their own
    owners = np.repeat(np.arange(len(edges)), counts)
    probabilities = noise.cell_table(x, np.concatenate(edges), features, owners, len(edges))
    tables, first = [], 0
    for grid in grids:
        own = slice(first, first + grid.n_edges + len(grid.edges))
        sides = np.ascontiguousarray(_add_missing(grid, rows, probabilities[:, own]))
        table = multiply_sides(sides, np.array(grid.shape, dtype=np.int64), grid.merged, grid.n_merged)
        tables.append(table * (1 + grid.widening))
        first = own.stop
    return tables


def _add_missing(grid: PackedGrid, rows: FloatArray, probabilities: FloatArray) -> FloatArray:
    """The sides of a grid with those of missing values: all or nothing."""
    if not any(grid.takes_missing):
        return probabilities
    parts, first = [], 0
    for feature, edges, takes in zip(grid.features, grid.edges, grid.takes_missing, strict=True):
        probability = probabilities[:, first : first + edges.size + 1]
        first += edges.size + 1
        if takes:
            is_missing = np.isnan(rows[:, [feature]])
            probability = np.concatenate(
                [np.where(is_missing, 0.0, probability), is_missing.astype(np.float64)], axis=1
            )
        parts.append(probability)
    return np.concatenate(parts, axis=1)
