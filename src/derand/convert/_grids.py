"""Functions of cells as trees: a balanced tree of splits whose leaves are the cells.

Owns how the cells of columns are parted. Must not know any library, nor what the functions are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray, Numbers
from derand.convert._cells import CellAxis
from derand.convert._forests import LEAF, UNSEEN, Forest


def grow_cells(axes: Sequence[CellAxis], values: FloatArray) -> Forest:
    """One tree with the values of all joint cells of some columns, (cells of each column, n_outputs)."""
    kept = list(axes)
    for at, axis in enumerate(axes):
        kept[at], values = _drop_idle_edges(axis, values, at)
    return _Grower(kept, values).grow()


def _drop_idle_edges(axis: CellAxis, values: FloatArray, at: int) -> tuple[CellAxis, FloatArray]:
    """A column of numbers without edges at which no value changes."""
    if axis.is_category:
        return axis, values
    cells = np.moveaxis(values, at, 0)
    n_numbers = axis.edges.size + 1
    numbers = cells[:n_numbers]
    changes = np.flatnonzero((numbers[1:] != numbers[:-1]).any(axis=tuple(range(1, cells.ndim))))
    taken = np.concatenate([[0], changes + 1, np.arange(n_numbers, len(cells))])
    return replace(axis, edges=axis.edges[changes]), np.moveaxis(cells[taken], 0, at)


class _Grower:
    """Nodes of a tree level by level: the column with most cells is halved, until one cell of each is left."""

    def __init__(self, axes: Sequence[CellAxis], values: FloatArray) -> None:
        self._axes, self._values = axes, values
        self._codes: dict[int, frozenset[int]] = {}

    def grow(self) -> Forest:
        """The tree; node k of a level with n splits before it has the children 2 k and 2 k + 1 of the next level."""
        sizes, n_outputs = self._values.shape[:-1], self._values.shape[-1]
        firsts, lasts = np.zeros((1, len(sizes)), dtype=np.int64), np.array([sizes])
        parts: list[tuple[Numbers, ...]] = []
        start = 0
        while len(firsts):
            counts = lasts - firsts
            axis = counts.argmax(axis=1)
            row = np.arange(len(axis))
            is_split = counts[row, axis] > 1
            middle = (firsts[row, axis] + lasts[row, axis]) // 2
            feature, edge, missing_left = self._choose_splits(start, is_split, axis, firsts[row, axis], middle)
            children = start + len(axis) + 2 * (np.cumsum(is_split) - 1)
            value = np.where(is_split[:, None], 0.0, self._values[tuple(firsts.T)])
            parts.append((feature, edge, children, value, missing_left))
            start += len(axis)
            at = np.flatnonzero(is_split)
            below, above = np.repeat(firsts[at], 2, axis=0), np.repeat(lasts[at], 2, axis=0)
            left, right = 2 * np.arange(at.size), 2 * np.arange(at.size) + 1
            above[left, axis[at]] = below[right, axis[at]] = middle[at]
            firsts, lasts = below, above
        feature, edge, children, value, missing_left = (np.concatenate(one) for one in zip(*parts, strict=True))
        is_split = feature != LEAF
        left, right = np.where(is_split, children, 0), np.where(is_split, children + 1, 0)
        refused = frozenset(axis.feature for axis in self._axes if not axis.takes_missing)
        root = np.zeros(1, dtype=np.int64)
        return Forest(
            root, feature, edge, left, right, value.reshape(-1, n_outputs), missing_left, self._codes, refused
        )

    def _choose_splits(
        self, start: int, is_split: BoolArray, axis: IntArray, first: IntArray, middle: IntArray
    ) -> tuple[IntArray, FloatArray, BoolArray]:
        """Column, edge, and whether a missing value goes left, of nodes whose right sides begin with given cells."""
        feature, edge = np.full(axis.size, LEAF), np.zeros(axis.size)
        missing_left = np.zeros(axis.size, dtype=bool)
        for at, own in enumerate(self._axes):
            nodes = np.flatnonzero(is_split & (axis == at))
            feature[nodes] = own.feature
            if own.n_codes is None:
                # the cell of missing values is the last one: it goes right, and is parted from all numbers at the end
                edge[nodes] = np.append(own.edges, math.inf)[middle[nodes] - 1]
                continue
            for node in nodes.tolist():
                cells = range(int(first[node]), int(middle[node]))
                known = {UNSEEN if cell == own.n_codes else cell for cell in cells if cell <= own.n_codes}
                self._codes[start + node] = frozenset(known)
                missing_left[node] = own.n_codes + 1 in cells
        return feature, edge, missing_left
