"""Columns without noise: the cells that a change can reach from each value, exactly.

Owns which cells of a step function lie within the box of a bin, the split points that serve a box of a fixed size, and
bins that hold all values from which the same cells are reached. Must not know rows or losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.bins import BinnedTable, NumberBins

_BEYOND = 1 + 1e-6
"""How much farther than its box a value counts as moved: certified radii are rounded down."""

_DIGITS = 9
Box = tuple[FloatArray, FloatArray]
"""How far down and up the center of each bin may move."""


def reach_cells(centers: FloatArray, box: Box, cuts: FloatArray) -> tuple[IntArray, FloatArray]:
    """The cells that each center reaches, its own one first, and how far they are, (n_centers, n_places).

    Places that are left over are those of the cell itself.
    """
    own = np.searchsorted(cuts, centers, side="right")
    low, high = reach_ends(centers, box, cuts)
    others = low[:, None] + np.arange(int((high - low).max(initial=0)) + 1)
    cells = np.concatenate([own[:, None], np.where(others <= high[:, None], others, own[:, None])], axis=1)
    lower, upper = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    values = centers[:, None]
    return cells, np.maximum(np.maximum(lower[cells] - values, values - upper[cells]), 0.0)


def reach_ends(centers: FloatArray, box: Box, cuts: FloatArray) -> tuple[IntArray, IntArray]:
    """The first and the last cell that each center reaches."""
    low = np.searchsorted(cuts, centers - _BEYOND * box[0], side="right")
    return low, np.searchsorted(cuts, centers + _BEYOND * box[1], side="right")


def choose_safe_cuts(bins: NumberBins, box: Box, n_cuts: int) -> FloatArray:
    """At most so many of the edges, from which few rows are within reach and many stay on either side.

    The edges are divided into stretches of about equal use, the product of the shares of rows that stay below and
    above; each stretch gives the edge that fewest rows can cross.
    """
    edges, shares = bins.edges, bins.shares / bins.shares.sum()
    if edges.size <= n_cuts:
        return edges
    lowest, highest = bins.centers - _BEYOND * box[0], bins.centers + _BEYOND * box[1]
    below = np.array([shares[highest < edge].sum() for edge in edges])
    above = np.array([shares[lowest >= edge].sum() for edge in edges])
    safe = np.round(below + above, _DIGITS)  # which of two is larger must not be a matter of the last digit
    use = below * above * np.maximum(np.diff(bins.centers), 0.0)
    if not use.any():
        return bins.choose_cuts(n_cuts)
    part = np.round((np.cumsum(use) - use / 2) / use.sum() * n_cuts, _DIGITS)
    stretch = np.minimum(part, n_cuts - 1).astype(np.int64)
    order = np.lexsort((np.round(-below * above, _DIGITS), -safe, stretch))
    first = order[np.concatenate([[True], np.diff(stretch[order]) > 0])]
    return np.asarray(edges[np.sort(first[use[first] > 0])])


def merge_windows(binned: BinnedTable, boxes: Sequence[Box], n_cuts: int) -> BinnedTable:
    """The same rows, values of each column that reach the same cells in one bin; `boxes`: of the first columns."""
    codes, numbers, cuts = binned.codes.copy(), list(binned.numbers), dict(binned.cuts)
    for at, box in enumerate(boxes):
        own = choose_safe_cuts(numbers[at], box, n_cuts)
        cuts[numbers[at].feature] = own
        numbers[at], group = merge_window(numbers[at], box, own)
        codes[:, at] = group[codes[:, at]]
    return replace(binned, codes=codes, numbers=tuple(numbers), cuts=cuts)


def merge_window(bins: NumberBins, box: Box, cuts: FloatArray) -> tuple[NumberBins, IntArray]:
    """The bins of a column with values that reach the same cells in one, and the new code of each code."""
    low, high = reach_ends(bins.centers, box, cuts)
    seen = np.stack([low, high, np.searchsorted(cuts, bins.centers, side="right")])
    ends = (np.diff(seen, axis=1) != 0).any(axis=0)
    group = np.concatenate([[0], np.cumsum(ends)])
    shares = np.bincount(group, weights=bins.shares).astype(np.float64)
    centers = np.bincount(group, weights=bins.shares * bins.centers) / shares
    # a mean of values may reach other cells than they do by the last digit: the middle one reaches what they do
    middle = bins.centers[np.searchsorted(group, np.arange(shares.size), side="left")]
    same = [
        np.array_equal(a, b)
        for a, b in zip(
            reach_ends(centers, _take(box, group), cuts), reach_ends(middle, _take(box, group), cuts), strict=True
        )
    ]
    merged = replace(bins, edges=bins.edges[ends], centers=centers if all(same) else middle, shares=shares)
    return merged, np.append(group, shares.size)


def _take(box: Box, group: IntArray) -> Box:
    first = np.searchsorted(group, np.arange(int(group[-1]) + 1), side="left")
    return box[0][first], box[1][first]
