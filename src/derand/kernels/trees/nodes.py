"""Nodes of a search: what is left of each column and of each tree, and how a part of a column is taken away.

Owns the stack of nodes, and what one change of a column leaves of the leaves of all trees, exactly. Must not know what
is sought or where to branch. README.md, step 11.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.compact import Local
from derand.kernels.trees.distances import Measure, measure_bin, restrict_bins
from derand.kernels.trees.forest import CATEGORY, EITHER, MISSING, PLAIN, Asked, ByteArray, Forest, Region
from derand.kernels.worst_case.curves import bisect_right
from derand.kernels.worst_case.steps import step_down, step_up

CUT, PRESENCE, CLASSES = range(3)
"""How a column is divided: at a cut, by whether its number is missing, by classes of its category."""
_SEQUENCE = 0x03F79D71B4CB0A89
_BITS = np.zeros(64, np.int64)
for _bit in range(64):
    _BITS[((0x03F79D71B4CB0A89 << _bit) % 2**64) >> 58] = _bit


class Nodes(NamedTuple):
    """A stack of nodes; each field has a row per node."""

    sets: IntArray
    """(_, n_trees * n_words): the leaves that are left, as bits."""
    low: IntArray
    """(_, n_active): the first bin that is left, where the number is not missing."""
    high: IntArray
    kinds: ByteArray
    classes: IntArray
    """(_, n_active, n_words of classes)"""
    floors: IntArray
    """(_,): a bound of the sum that was known when the node was put here."""


class Problem(NamedTuple):
    """A row, what is asked, and the trees that are left for it."""

    forest: Forest
    asked: Asked
    region: Region
    local: Local
    row: int


@compile_loop(_nrt=False)
def first_bit(word: int) -> int:
    """The position of the lowest bit of a word that is not 0."""
    return _BITS[(((word & -word) * _SEQUENCE) >> 58) & 63]


@compile_loop()
def make_nodes(depth: int, n_sets: int, n_active: int, n_words: int) -> Nodes:
    """Room for so many nodes."""
    return Nodes(
        np.empty((depth, n_sets), np.int64),
        np.empty((depth, n_active), np.int64),
        np.empty((depth, n_active), np.int64),
        np.empty((depth, n_active), np.uint8),
        np.empty((depth, n_active, n_words), np.int64),
        np.empty(depth, np.int64),
    )


@compile_loop(_nrt=False)
def copy_node(source: Nodes, at: int, target: Nodes, to: int) -> None:
    """Copy one node."""
    target.floors[to] = source.floors[at]
    for word in range(source.sets.shape[1]):
        target.sets[to, word] = source.sets[at, word]
    for column in range(source.low.shape[1]):
        target.low[to, column], target.high[to, column] = source.low[at, column], source.high[at, column]
        target.kinds[to, column] = source.kinds[at, column]
        for word in range(source.classes.shape[2]):
            target.classes[to, column, word] = source.classes[at, column, word]


@compile_loop()
def grow_nodes(nodes: Nodes) -> Nodes:
    """The same nodes with room for twice as many."""
    depth, n_active, n_words = nodes.classes.shape
    more = make_nodes(2 * depth, nodes.sets.shape[1], n_active, n_words)
    for at in range(depth):
        copy_node(nodes, at, more, at)
    return more


@compile_loop(_nrt=False)
def least_leaf(node: int, sets: IntArray, tree: int, n_words: int) -> int:
    """The number, within its tree, of the least leaf that is left."""
    for word in range(n_words):
        bits = sets[node, tree * n_words + word]
        if bits != 0:
            return 64 * word + first_bit(bits)
    return -1


@compile_loop(_nrt=False)
def locate_below(group: int, cut: int, local: Local) -> int:
    """Where the masks of a group stand for bins below a cut; -1 where all leaves are left."""
    first = local.groups[group, 1]
    for at in range(first, first + local.groups[group, 2]):
        if local.sorted_cuts[at] >= cut:
            return at
    return -1


@compile_loop(_nrt=False)
def locate_above(group: int, cut: int, local: Local) -> int:
    """The same for bins from a cut on."""
    first = local.groups[group, 1]
    for at in range(first + local.groups[group, 2] - 1, first - 1, -1):
        if local.sorted_cuts[at] <= cut:
            return at
    return -1


@compile_loop(_nrt=False)
def keep_bins(node: int, at: int, low: int, high: int, nodes: Nodes, local: Local) -> None:
    """Keep the bins from `low` to `high` of a column; its number is not missing."""
    n_words = local.below.shape[1]
    for group in range(local.group_starts[at], local.group_starts[at + 1]):
        below, above = locate_below(group, high + 1, local), locate_above(group, low, local)
        start = local.groups[group, 0] * n_words
        for word in range(n_words):
            if below >= 0:
                nodes.sets[node, start + word] &= local.below[below, word]
            if above >= 0:
                nodes.sets[node, start + word] &= local.above[above, word]
    nodes.low[node, at], nodes.high[node, at] = low, high


@compile_loop(_nrt=False)
def keep_missing(node: int, at: int, nodes: Nodes, local: Local) -> None:
    """Keep the missing number of a column alone."""
    n_words = local.below.shape[1]
    for group in range(local.group_starts[at], local.group_starts[at + 1]):
        for word in range(n_words):
            nodes.sets[node, local.groups[group, 0] * n_words + word] &= local.specials[local.groups[group, 3], word]
    nodes.kinds[node, at] = MISSING


@compile_loop(_nrt=False)
def join_classes(group: int, classes: IntArray, word: int, local: Local) -> int:
    """The leaves that some classes of a category reach together, one word of them."""
    mask, place = 0, local.groups[group, 3]
    for k in range(classes.size):
        left = classes[k]
        while left != 0:
            mask |= local.specials[place + 64 * k + first_bit(left), word]
            left &= left - 1
    return mask


@compile_loop(_nrt=False)
def keep_classes(node: int, at: int, classes: IntArray, nodes: Nodes, local: Local) -> None:
    """Keep some classes of a category."""
    n_words = local.below.shape[1]
    for group in range(local.group_starts[at], local.group_starts[at + 1]):
        for word in range(n_words):
            nodes.sets[node, local.groups[group, 0] * n_words + word] &= join_classes(group, classes, word, local)
    for word in range(classes.size):
        nodes.classes[node, at, word] = classes[word]


@compile_loop(_nrt=False)
def place_root(problem: Problem, nodes: Nodes) -> None:
    """The node of the whole region."""
    region, local = problem.region, problem.local
    nodes.floors[0] = -(2**62)
    for word in range(local.start.size):
        nodes.sets[0, word] = local.start[word]
    n_words = local.below.shape[1]
    for at in range(local.columns.size):
        column = local.columns[at]
        nodes.low[0, at], nodes.high[0, at] = region.first[column], region.last[column]
        nodes.kinds[0, at] = region.kinds[column]
        if region.kinds[column] == CATEGORY:
            keep_classes(0, at, region.classes[column], nodes, local)
        elif region.kinds[column] == EITHER:  # a leaf may ask for a number and for none at the same time
            for group in range(local.group_starts[at], local.group_starts[at + 1]):
                below = locate_below(group, int(region.last[column]) + 1, local)
                above = locate_above(group, int(region.first[column]), local)
                for word in range(n_words):
                    there = local.below[below, word] if below >= 0 else -1
                    there &= local.above[above, word] if above >= 0 else -1
                    there |= local.specials[local.groups[group, 3], word]
                    nodes.sets[0, local.groups[group, 0] * n_words + word] &= there


@compile_loop(_nrt=False)
def take_measure(problem: Problem, at: int) -> Measure:
    """The number of an active column, and how its changes count."""
    column, asked = problem.local.columns[at], problem.asked
    return Measure(
        asked.values[problem.row, column],
        int(problem.region.own[column]),
        problem.forest.edge_starts[column],
        asked.units[column],
        asked.steps[column],
        asked.norm,
    )


@compile_loop(_nrt=False)
def _locate_value(x: float, problem: Problem, at: int) -> int:
    """The bin of a number."""
    column, forest = problem.local.columns[at], problem.forest
    start = forest.edge_starts[column]
    return bisect_right(x, start, forest.edge_starts[column + 1], forest.edges) - start


@compile_loop(_nrt=False)
def snap_up(bin_: int, problem: Problem, at: int) -> int:
    """The first bin from there on that a whole step reaches; a bin beyond the last one where none does."""
    x, own, start, _, step, _ = take_measure(problem, at)
    if step <= 0.0 or own < 0:
        return bin_
    edges = problem.forest.edges
    if bin_ > own:
        return _locate_value(step_up(x, step, edges[start + bin_ - 1]), problem, at)
    while bin_ < own and _locate_value(step_down(x, step, edges[start + bin_]), problem, at) != bin_:
        bin_ += 1
    return bin_


@compile_loop(_nrt=False)
def snap_down(bin_: int, problem: Problem, at: int) -> int:
    """The last bin up to there that a whole step reaches."""
    x, own, start, _, step, _ = take_measure(problem, at)
    if step <= 0.0 or own < 0:
        return bin_
    edges = problem.forest.edges
    if bin_ < own:
        return _locate_value(step_down(x, step, edges[start + bin_]), problem, at)
    while bin_ > own and _locate_value(step_up(x, step, edges[start + bin_ - 1]), problem, at) != bin_:
        bin_ -= 1
    return bin_


@compile_loop(_nrt=False)
def tighten(node: int, at: int, low: int, high: int, nodes: Nodes, problem: Problem) -> bool:
    """Keep the bins between two ends of a column that a step reaches; False where none is left."""
    low, high = max(low, nodes.low[node, at]), min(high, nodes.high[node, at])
    low, high = snap_up(low, problem, at), snap_down(high, problem, at)
    if low > high:
        return False
    if nodes.kinds[node, at] == EITHER:  # the leaves of a missing number stay
        nodes.low[node, at], nodes.high[node, at] = low, high
    else:
        keep_bins(node, at, low, high, nodes, problem.local)
    return True


@compile_loop(_nrt=False)
def keep_present(node: int, at: int, nodes: Nodes, problem: Problem) -> None:
    """Keep the numbers of a column, without the missing one."""
    nodes.kinds[node, at] = PLAIN
    keep_bins(node, at, nodes.low[node, at], nodes.high[node, at], nodes, problem.local)


@compile_loop(_nrt=False)
def has_own(node: int, at: int, nodes: Nodes, problem: Problem) -> bool:
    """Whether the row's own class is left, or whether its number may still be missing, or there, as it is."""
    own, kind = int(problem.region.own[problem.local.columns[at]]), nodes.kinds[node, at]
    if kind == CATEGORY:
        return (nodes.classes[node, at, own >> 6] >> (own & 63)) & 1 == 1
    return kind == EITHER or (kind == MISSING) == (own < 0)


@compile_loop(_nrt=False)
def keep_own(node: int, at: int, own: int, nodes: Nodes, local: Local) -> None:
    """Keep the row's own class of a category."""
    n_words, is_alone = local.below.shape[1], True
    for word in range(nodes.classes.shape[2]):
        bit = 1 << (own & 63) if word == own >> 6 else 0
        is_alone = is_alone and nodes.classes[node, at, word] == bit
        nodes.classes[node, at, word] = bit
    if is_alone:
        return
    for group in range(local.group_starts[at], local.group_starts[at + 1]):
        for word in range(n_words):
            mask = local.specials[local.groups[group, 3] + own, word]
            nodes.sets[node, local.groups[group, 0] * n_words + word] &= mask


@compile_loop(_nrt=False)
def spend_changes(node: int, nodes: Nodes, problem: Problem) -> bool:
    """Hold all columns that can no longer change for want of a budget; False where more have changed than may."""
    changed, missed, n_active = 0, 0, problem.local.columns.size
    for at in range(n_active):
        if not has_own(node, at, nodes, problem):
            if nodes.kinds[node, at] == CATEGORY:
                changed += 1
            else:
                missed += 1
    if changed > problem.asked.n_changes or missed > problem.asked.n_missing:
        return False
    for at in range(n_active):
        kind, own = nodes.kinds[node, at], problem.region.own[problem.local.columns[at]]
        if kind == CATEGORY and changed == problem.asked.n_changes and has_own(node, at, nodes, problem):
            keep_own(node, at, int(own), nodes, problem.local)
        elif kind == EITHER and missed == problem.asked.n_missing:
            if own < 0:
                keep_missing(node, at, nodes, problem.local)
            else:
                keep_present(node, at, nodes, problem)
    return True


@compile_loop(_nrt=False)
def measure_column(node: int, at: int, nodes: Nodes, problem: Problem) -> float:
    """The least distance of the bins that are left of a column."""
    measure = take_measure(problem, at)
    if nodes.kinds[node, at] != PLAIN or measure.own < 0:
        return 0.0
    nearest = min(max(measure.own, nodes.low[node, at]), nodes.high[node, at])
    return measure_bin(nearest, measure, problem.forest.edges)


@compile_loop(_nrt=False)
def spend_distance(node: int, size: float, near: FloatArray, nodes: Nodes, problem: Problem) -> bool:
    """Take away what is too far with what has moved already; False where that is too far by itself.

    `near` is room for a number per active column.
    """
    n_active, is_sum = problem.local.columns.size, problem.asked.norm != np.inf
    total = 0.0
    for at in range(n_active):
        near[at] = 0.0
        if nodes.kinds[node, at] != CATEGORY:
            near[at] = measure_column(node, at, nodes, problem)
            total = total + near[at] if is_sum else max(total, near[at])
    if total >= size:
        return False
    for at in range(n_active):
        measure, kind = take_measure(problem, at), nodes.kinds[node, at]
        if measure.own < 0 or kind in (CATEGORY, MISSING):
            continue
        room = size - (total - near[at]) if is_sum else size
        low, high = nodes.low[node, at], nodes.high[node, at]
        first, last = restrict_bins(low, high, room, measure, problem.forest.edges)
        if (first > low or last < high) and not tighten(node, at, first, last, nodes, problem):
            return False
    return True
