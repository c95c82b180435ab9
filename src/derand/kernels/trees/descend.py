"""The leaf of each tree that each row reaches, compiled.

Owns the walk from the root to a leaf. Must not know scores, models or threats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels.compiling import compile_loop


class Splits(NamedTuple):
    """Splits of trees as arrays with one entry each.

    `positions`: the column of the rows that are given; `left`, `right`: children, of which those below 0 are leaves
    (`~child`); `code_rows`: the row of `goes_left` of a split by category, -1 of one by number; `code_counts`: how many
    categories its column has; the last column of `goes_left` is that of all other codes.
    """

    positions: IntArray
    edges: FloatArray
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    code_rows: IntArray
    code_counts: IntArray
    goes_left: BoolArray


def reach_leaves(roots: IntArray, splits: Splits, rows: FloatArray) -> IntArray:
    """The leaf of each tree that each row reaches, (n_rows, n_trees).

    >>> splits = Splits(*map(np.array, ([0], [0.5], [-1], [-2], [True], [-1], [0])), np.zeros((0, 1), dtype=bool))
    >>> reach_leaves(np.array([0]), splits, np.array([[0.0], [0.5], [np.nan]])).tolist()
    [[0], [1], [0]]
    """
    leaves = np.empty((rows.shape[0], roots.size), dtype=np.int64)
    _descend(roots, *splits, np.ascontiguousarray(rows), leaves)
    return leaves


def _descend_together(
    roots: IntArray,
    positions: IntArray,
    edges: FloatArray,
    left: IntArray,
    right: IntArray,
    missing_left: BoolArray,
    code_rows: IntArray,
    code_counts: IntArray,
    goes_left: BoolArray,
    rows: FloatArray,
    leaves: IntArray,
) -> None:
    """All trees and rows level by level."""
    leaves[:] = roots
    while True:
        row, tree = np.nonzero(leaves >= 0)
        if not row.size:
            break
        split = leaves[row, tree]
        own = rows[row, positions[split]]
        is_left = np.where(np.isnan(own), missing_left[split], own < edges[split])
        at = np.flatnonzero((code_rows[split] >= 0) & ~np.isnan(own))
        codes, coded = own[at], split[at]
        known = (codes >= 0) & (codes < code_counts[coded]) & (codes == np.floor(codes))
        is_left[at] = goes_left[code_rows[coded], np.where(known, codes, -1).astype(np.int64)]
        leaves[row, tree] = np.where(is_left, left[split], right[split])
    leaves[:] = ~leaves


@compile_loop(early=_descend_together, numbers=lambda roots, *arrays: 64 * arrays[-1].size)
def _descend(
    roots: IntArray,
    positions: IntArray,
    edges: FloatArray,
    left: IntArray,
    right: IntArray,
    missing_left: BoolArray,
    code_rows: IntArray,
    code_counts: IntArray,
    goes_left: BoolArray,
    rows: FloatArray,
    leaves: IntArray,
) -> None:
    for tree in range(roots.size):
        for row in range(rows.shape[0]):
            node = roots[tree]
            while node >= 0:
                x = rows[row, positions[node]]
                if np.isnan(x):
                    is_left = missing_left[node]
                elif code_rows[node] < 0:
                    is_left = x < edges[node]
                elif 0 <= x < code_counts[node] and x == np.floor(x):
                    is_left = goes_left[code_rows[node], np.int64(x)]
                else:
                    is_left = goes_left[code_rows[node], goes_left.shape[1] - 1]
                node = left[node] if is_left else right[node]
            leaves[row, tree] = ~node
