"""A forest over bins, the region of it that a row can reach, and the walk through that region.

Numbers are bins (`bin` edges are not above them), categories are classes of codes that all trees treat alike. Owns the
arrays of both and the sum of the least reachable leaves. README.md, step 11. Must not know budgets or searches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.distances import Measure, restrict_bins
from derand.kernels.worst_case.curves import bisect_right

SmallArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

PLAIN, MISSING, EITHER, CATEGORY = range(4)
"""What a column of a row is: a number in a range, missing, either of both, or a category."""
NEVER_LOW, NEVER_HIGH = np.int32(2**31 - 1), np.int32(-(2**31))
"""Ends of an empty range: neither side of any split is taken."""
LARGEST = 2**62
_LOWEST = -np.finfo(np.float64).max
"""An edge that parts what is missing from all numbers."""


class Forest(NamedTuple):
    """Trees, one after the other; those without a split are in `base`."""

    roots: SmallArray
    splits: SmallArray
    """(n_splits, 4): twice the column and 1 where a missing number goes left; the cut (bins from there on go right), or
    `~i` where classes of `sets[i]` go left; the left and the right child, `~leaf` for a leaf."""
    leaves: IntArray
    """(n_leaves, 2): the least that each may score for the model that is meant, and the least of its negative."""
    base: IntArray
    """(2,): the same of all trees without a split."""
    edges: FloatArray
    edge_starts: IntArray
    """(n_columns + 1,): the edges of a column are those from `edge_starts[i]` to `edge_starts[i + 1] - 1`."""
    n_classes: IntArray
    """(n_columns,): classes of a category, 0 for numbers."""
    sets: IntArray
    """(n_sets, n_words): classes as bits."""
    depth: int
    """Splits on the longest way to a leaf."""


class Asked(NamedTuple):
    """Rows, by the columns of the forest, and what may become of them."""

    values: FloatArray
    """(n_rows, n_columns), as `low`, `high` and `own_classes`."""
    low: FloatArray
    high: FloatArray
    own_classes: IntArray
    """Classes of categories."""
    classes: IntArray
    """(n_columns, n_words): the classes that a category may change to."""
    may_miss: BoolArray
    """(n_columns,): numbers that may go missing or appear."""
    units: FloatArray
    steps: FloatArray
    n_changes: int
    """How many categories may change."""
    n_missing: int
    """How many numbers may go missing or appear."""
    norm: float
    """0, 1, 2 or inf; NaN without a ball."""


class Goals(NamedTuple):
    """What is sought, an entry per question: a change of a row below `sizes` whose sum of `signs * leaves[:, labels]`
    is below `limits`; it is sure where its sum of `-leaves[:, 1 - home]` is at most `sures`."""

    rows: IntArray
    labels: IntArray
    signs: IntArray
    limits: IntArray
    sizes: FloatArray
    budgets: IntArray
    """Nodes that may be looked at."""
    homes: IntArray
    """The column of leaves that a row holds by."""
    sures: IntArray


class Region(NamedTuple):
    """What a row can reach, by the columns of the forest."""

    low: SmallArray
    """The range of bins; empty where a column is not plain."""
    high: SmallArray
    own: IntArray
    """The row's own bin or class; -1 where it is missing."""
    first: IntArray
    """The range of bins where it is not missing."""
    last: IntArray
    kinds: ByteArray
    classes: IntArray


@compile_loop()
def make_region(n_columns: int, n_words: int) -> Region:
    """Room for the region of a row."""
    return Region(
        np.empty(n_columns, np.int32),
        np.empty(n_columns, np.int32),
        np.empty(n_columns, np.int64),
        np.empty(n_columns, np.int64),
        np.empty(n_columns, np.int64),
        np.empty(n_columns, np.uint8),
        np.zeros((n_columns, n_words), np.int64),
    )


@compile_loop(_nrt=False)
def locate_row(row: int, forest: Forest, asked: Asked, size: float, region: Region) -> None:
    """Fill in what a row can reach by changes of each column that are smaller than `size` (see `distances`)."""
    for column in range(forest.n_classes.size):
        region.low[column], region.high[column] = NEVER_LOW, NEVER_HIGH
        if forest.n_classes[column] > 0:
            own = int(asked.own_classes[row, column])
            region.kinds[column], region.own[column] = CATEGORY, own
            for word in range(asked.classes.shape[1]):
                region.classes[column, word] = asked.classes[column, word]
            region.classes[column, own >> 6] |= 1 << (own & 63)
            continue
        start, stop = forest.edge_starts[column], forest.edge_starts[column + 1]
        x, may_miss = asked.values[row, column], asked.may_miss[column] and asked.n_missing > 0
        lowest = 1 if start < stop and forest.edges[start] <= _LOWEST else 0  # no number lies in the bin below
        if x != x:  # noqa: PLR0124 - NaN
            region.own[column], region.kinds[column] = -1, EITHER if may_miss else MISSING
            region.first[column], region.last[column] = lowest, stop - start
            continue
        own = bisect_right(x, start, stop, forest.edges) - start
        low, high = asked.low[row, column], asked.high[row, column]
        first = own if low >= x else max(bisect_right(low, start, stop, forest.edges) - start, lowest)
        last = own if high <= x else bisect_right(high, start, stop, forest.edges) - start
        if first < last and size < np.inf:
            measure = Measure(x, own, start, asked.units[column], asked.steps[column], asked.norm)
            first, last = restrict_bins(first, last, size, measure, forest.edges)
        region.own[column], region.first[column], region.last[column] = own, first, last
        if may_miss:
            region.kinds[column] = EITHER
        else:
            region.kinds[column], region.low[column], region.high[column] = PLAIN, first, last


@compile_loop(_nrt=False)
def locate_point(values: FloatArray, classes: IntArray, forest: Forest, region: Region) -> None:
    """Fill in a single row: its values of numbers, and its classes of categories."""
    for column in range(forest.n_classes.size):
        region.low[column], region.high[column] = NEVER_LOW, NEVER_HIGH
        x = values[column]
        if forest.n_classes[column] > 0:
            region.kinds[column] = CATEGORY
            for word in range(region.classes.shape[1]):
                region.classes[column, word] = 0
            region.classes[column, classes[column] >> 6] = 1 << (classes[column] & 63)
        elif x != x:  # noqa: PLR0124 - NaN
            region.kinds[column] = MISSING
        else:
            start = forest.edge_starts[column]
            own = bisect_right(x, start, forest.edge_starts[column + 1], forest.edges) - start
            region.kinds[column], region.low[column], region.high[column] = PLAIN, own, own


@compile_loop(_nrt=False)
def turn(column: int, cut: int, missing_left: int, region: Region, sets: IntArray) -> int:
    """Which sides of a split a column reaches that is not plain: 1 left, 2 right, 3 both."""
    kind = region.kinds[column]
    if kind == CATEGORY:
        left, right = False, False
        for word in range(sets.shape[1]):
            there = region.classes[column, word]
            left = left or (there & sets[~cut, word]) != 0
            right = right or (there & ~sets[~cut, word]) != 0
        return left + 2 * right
    if kind == MISSING:
        return 1 if missing_left else 2
    left = missing_left == 1 or region.first[column] < cut
    right = missing_left == 0 or region.last[column] >= cut
    return left + 2 * right


@compile_loop(_nrt=False)
def walk(
    forest: Forest, region: Region, label: int, sign: int, stack: IntArray, counts: IntArray, least: IntArray
) -> int:
    """The sum of the least `sign * leaves[:, label]` that each tree can reach; how many leaves, and the least, by tree.

    The region's columns are looked at one by one, so that a leaf counts as reached that repeated categories exclude.
    """
    splits, leaves, low, high = forest.splits, forest.leaves, region.low, region.high
    total = sign * forest.base[label]
    for tree in range(forest.roots.size):
        node, waiting, best, count = int(forest.roots[tree]), 0, LARGEST, 0
        while True:
            while node >= 0:
                both, cut = int(splits[node, 0]), int(splits[node, 1])
                column = both >> 1
                left, right = low[column] < cut, high[column] >= cut
                if left != right:
                    node = int(splits[node, 2 + right])
                    continue
                if not left:
                    sides = turn(column, cut, both & 1, region, forest.sets)
                    if sides != 3:
                        node = int(splits[node, 1 + sides])
                        continue
                stack[waiting] = splits[node, 3]
                waiting += 1
                node = int(splits[node, 2])
            best = min(best, sign * leaves[~node, label])
            count += 1
            if waiting == 0:
                break
            waiting -= 1
            node = stack[waiting]
        counts[tree], least[tree] = count, best
        total += best
    return total


@compile_loop()
def walk_rows(forest: Forest, asked: Asked, goals: Goals, totals: IntArray) -> None:
    """The sum of the least leaves of each row within its region: a bound of what it can reach."""
    region = make_region(forest.n_classes.size, asked.classes.shape[1])
    stack, counts = np.empty(2 * forest.depth + 2, np.int64), np.empty(forest.roots.size, np.int64)
    least = np.empty(forest.roots.size, np.int64)
    for k in range(totals.size):
        locate_row(goals.rows[k], forest, asked, goals.sizes[k], region)
        totals[k] = walk(forest, region, goals.labels[k], goals.signs[k], stack, counts, least)


@compile_loop(_nrt=False)
def add_leaves(forest: Forest, region: Region, label: int, sign: int) -> int:
    """The same where every tree reaches one leaf."""
    splits, total = forest.splits, sign * forest.base[label]
    for tree in range(forest.roots.size):
        node = int(forest.roots[tree])
        while node >= 0:
            both, cut = int(splits[node, 0]), int(splits[node, 1])
            column = both >> 1
            right = region.high[column] >= cut
            if not right and region.low[column] >= cut:
                right = turn(column, cut, both & 1, region, forest.sets) == 2
            node = int(splits[node, 2 + right])
        total += sign * forest.leaves[~node, label]
    return total
