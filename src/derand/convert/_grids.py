"""Functions of cells as trees: a balanced tree of splits whose leaves are the cells.

Owns how the cells of columns are parted. Must not know any library, nor what the functions are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from derand._core.arrays import FloatArray
from derand.convert._cells import CellAxis
from derand.convert._forests import LEAF, UNSEEN, Forest

_Part = tuple[int, int]
"""Cells of one column, from the first to before the last one."""


def grow_cells(axes: Sequence[CellAxis], values: FloatArray) -> Forest:
    """One tree with the values of all joint cells of some columns, (cells of each column, n_outputs)."""
    return _Grower(axes, values).grow()


class _Grower:
    """Nodes of a tree as it grows: the column with most cells is halved, until one cell of each is left."""

    def __init__(self, axes: Sequence[CellAxis], values: FloatArray) -> None:
        self._axes, self._values = axes, values
        self._rows: list[tuple[int, float, int, int, bool]] = []
        self._leaves: list[tuple[int, int]] = []
        self._codes: dict[int, frozenset[int]] = {}
        self._sizes = values.shape[:-1]

    def grow(self) -> Forest:
        self._add([(0, size) for size in self._sizes])
        feature, edge, left, right, missing_left = map(np.array, zip(*self._rows, strict=True))
        n_outputs = self._values.shape[-1]
        value = np.zeros((len(self._rows), n_outputs))
        nodes, cells = np.array(self._leaves).T
        value[nodes] = self._values.reshape(-1, n_outputs)[cells]
        refused = frozenset(axis.feature for axis in self._axes if not axis.takes_missing)
        return Forest(
            np.zeros(1, dtype=np.int64), feature, edge, left, right, value, missing_left, self._codes, refused
        )

    def _add(self, parts: list[_Part]) -> int:
        """The number of a new node over some cells of each column."""
        node = len(self._rows)
        sizes = [last - first for first, last in parts]
        at = max(range(len(sizes)), key=sizes.__getitem__)
        if sizes[at] == 1:
            cell = 0
            for (first, _), size in zip(parts, self._sizes, strict=True):
                cell = cell * size + first
            self._rows.append((LEAF, 0.0, 0, 0, False))
            self._leaves.append((node, cell))
            return node
        axis, (first, last) = self._axes[at], parts[at]
        self._rows.append((axis.feature, 0.0, 0, 0, False))
        middle, edge, missing_left = self._choose_split(axis, first, last, node)
        left = self._add([*parts[:at], (first, middle), *parts[at + 1 :]])
        right = self._add([*parts[:at], (middle, last), *parts[at + 1 :]])
        self._rows[node] = (axis.feature, edge, left, right, missing_left)
        return node

    def _choose_split(self, axis: CellAxis, first: int, last: int, node: int) -> tuple[int, float, bool]:
        """The cell with which the right side begins, its edge, and whether a missing value goes left."""
        middle = (first + last) // 2
        if axis.n_codes is None:
            n_numbers = axis.edges.size + 1
            # the cell of missing values is the last one: it goes right, and is parted from all numbers at the end
            return middle, float(axis.edges[middle - 1]) if middle < n_numbers else math.inf, False
        cells = range(first, middle)
        own = {UNSEEN if cell == axis.n_codes else cell for cell in cells if cell <= axis.n_codes}
        self._codes[node] = frozenset(own)
        return middle, 0.0, axis.n_codes + 1 in cells
