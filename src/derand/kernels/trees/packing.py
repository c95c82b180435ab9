"""Forests from trees as arrays: splits that cannot be reached both ways are left out, grids become trees.

Owns the order of splits (each tree from its root on) and what counts as one-sided. Must not know terms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.forest import SmallArray

_VISIT, _RESTORE = 0, 1


class Splits(NamedTuple):
    """Trees of one term; a child below 0 is the leaf `~child`."""

    roots: IntArray
    columns: SmallArray
    """Columns of the forest."""
    cuts: SmallArray
    """Bins from there on go right; `~i` where classes of set i go left."""
    left: IntArray
    right: IntArray
    missing_left: BoolArray


class Pruned(NamedTuple):
    """The same without splits that only one side of can be reached."""

    roots: SmallArray
    """`~leaf` for a tree without a split."""
    splits: SmallArray
    leaves: IntArray
    """Which leaf of the term each leaf is."""
    depth: int


def prune_trees(splits: Splits, n_bins: IntArray, takes_missing: BoolArray) -> Pruned:
    """Leave out what no row reaches; splits of which numbers reach one side, and missing ones the other, are kept.

    `n_bins` (n_columns,): bins of each column of numbers.
    """
    n_splits, n_trees = splits.columns.size, splits.roots.size
    found = Pruned(
        np.empty(n_trees, np.int32), np.empty((n_splits, 4), np.int32), np.empty(2 * n_splits + n_trees, np.int64), 0
    )
    low, missing = np.zeros(n_bins.size, np.int64), takes_missing.astype(np.int64)
    n_found, n_leaves, deepest = _prune(splits, n_bins, low, n_bins - 1, missing, found)
    return Pruned(found.roots, found.splits[:n_found].copy(), found.leaves[:n_leaves].copy(), deepest)


@compile_loop()
def _prune(  # noqa: PLR0912, PLR0915 - one pass over each tree
    splits: Splits, n_bins: IntArray, low: IntArray, high: IntArray, missing: IntArray, pruned: Pruned
) -> tuple[int, int, int]:
    """The same into `pruned`; how many splits and leaves there are, and how many splits lie on the longest way."""
    roots, found, leaves, n_splits = pruned.roots, pruned.splits, pruned.leaves, splits.columns.size
    # node or column, slot where its number is to stand, column, low, high, missing, level
    stack, kinds = np.empty((3 * n_splits + 3, 7), np.int64), np.empty(3 * n_splits + 3, np.uint8)
    n_found, n_leaves, deepest = 0, 0, 0
    for tree in range(splits.roots.size):
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 6], kinds[0] = splits.roots[tree], -1 - tree, -1, 0, _VISIT
        top = 1
        while top > 0:
            top -= 1
            node, slot, changed, level = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 6]
            if changed >= 0:
                low[changed], high[changed], missing[changed] = stack[top, 3], stack[top, 4], stack[top, 5]
            if kinds[top] == _RESTORE:
                continue
            while True:
                if node < 0:
                    break
                column, cut = int(splits.columns[node]), int(splits.cuts[node])
                is_left = splits.missing_left[node]
                if cut < 0:
                    break
                number_left, number_right = (
                    low[column] < min(cut, high[column] + 1),
                    high[column] >= max(cut, low[column]),
                )
                left = number_left or (missing[column] == 1 and is_left)
                right = number_right or (missing[column] == 1 and not is_left)
                if left and right:
                    break
                node = splits.left[node] if left else splits.right[node]
            if node < 0:
                leaves[n_leaves] = ~node
                value = ~n_leaves
                n_leaves += 1
            else:
                value = n_found
            if slot < 0:
                roots[-1 - slot] = value
            else:
                found[slot >> 1, 2 + (slot & 1)] = value
            deepest = max(deepest, level)
            if node < 0:
                continue
            column, cut, is_left = (
                int(splits.columns[node]),
                int(splits.cuts[node]),
                splits.missing_left[node],
            )
            before = (low[column], high[column], missing[column])
            left_end, right_end = (before[0], before[1], before[2]), (before[0], before[1], before[2])
            if cut >= 0:
                middle = min(max(cut, before[0]), before[1] + 1)
                if middle == before[0]:
                    cut = 0  # no number goes left
                elif middle > before[1]:
                    cut = n_bins[column]
                left_end = (before[0], middle - 1, before[2] if is_left else 0)
                right_end = (middle, before[1], 0 if is_left else before[2])
            found[n_found, 0], found[n_found, 1] = 2 * column + (1 if is_left else 0), cut
            for at, end in enumerate((before, right_end, left_end)):
                kinds[top] = _RESTORE if at == 0 else _VISIT
                child = splits.right[node] if at == 1 else splits.left[node]
                stack[top, 0], stack[top, 1], stack[top, 2] = child, 2 * n_found + (at == 1), column
                stack[top, 3], stack[top, 4], stack[top, 5], stack[top, 6] = end[0], end[1], end[2], level + 1
                top += 1
            n_found += 1
    return n_found, n_leaves, deepest


@compile_loop()
def _is_constant(scores: IntArray, strides: IntArray, first: IntArray, last: IntArray, index: IntArray) -> bool:
    """Whether all cells of a box have one score."""
    index[:] = first
    start = (first * strides).sum()
    while True:
        if scores[(index * strides).sum()] != scores[start]:
            return False
        axis = index.size - 1
        while axis >= 0:
            index[axis] += 1
            if index[axis] <= last[axis]:
                break
            index[axis] = first[axis]
            axis -= 1
        if axis < 0:
            return True


@compile_loop()
def divide_grid(shape: IntArray, takes_missing: BoolArray, scores: IntArray) -> tuple[IntArray, IntArray]:
    """A grid as a balanced tree: its splits (axis, cut, left, right, whether missing goes left) and its leaves' scores.

    Cells of a missing number are the last ones of their axes.
    """
    n_axes = shape.size
    strides = np.ones(n_axes, np.int64)
    for axis in range(n_axes - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    size = scores.size
    splits, leaves = np.empty((size, 5), np.int64), np.empty(size, np.int64)
    firsts, lasts = np.zeros((size + 1, n_axes), np.int64), np.empty((size + 1, n_axes), np.int64)
    slots, index = np.full(size + 1, -1, np.int64), np.empty(n_axes, np.int64)
    lasts[0] = shape - 1
    top, n_splits, n_leaves = 1, 0, 0
    while top > 0:
        top -= 1
        first, last, slot = firsts[top].copy(), lasts[top].copy(), slots[top]
        is_leaf = _is_constant(scores, strides, first, last, index)
        if slot >= 0:
            splits[slot >> 1, 2 + (slot & 1)] = ~n_leaves if is_leaf else n_splits
        if is_leaf:
            leaves[n_leaves] = scores[(first * strides).sum()]
            n_leaves += 1
            continue
        axis = int(np.argmax(last - first))
        for other in range(n_axes):  # what is missing first
            if takes_missing[other] and last[other] == shape[other] - 1 and first[other] < last[other]:
                axis = other
                break
        is_presence = takes_missing[axis] and last[axis] == shape[axis] - 1
        middle = last[axis] if is_presence else (first[axis] + last[axis] + 1) // 2
        # of presence all numbers go left
        splits[n_splits] = np.array([axis, middle, 0, 0, 0])
        for side in range(2):
            firsts[top], lasts[top], slots[top] = first, last, 2 * n_splits + 1 - side
            if side == 0:
                firsts[top, axis] = middle
            else:
                lasts[top, axis] = middle - 1
            top += 1
        n_splits += 1
    return splits[:n_splits].copy(), leaves[:n_leaves].copy()
