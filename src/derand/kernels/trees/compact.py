"""What is left of a forest in the region of a row: sets of leaves as bits, and what sides of splits leave of them.

The leaves of a tree are numbered by value, so that the least one of a set is its lowest bit. Of a split only the leaves
that it excludes are kept: those on its right below its cut, those on its left from its cut on. README.md, step 11. Must
not know budgets or searches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.forest import CATEGORY, EITHER, Forest, Region, turn

NO_SPLIT = -1


class Local(NamedTuple):
    """Trees with more than one leaf in the region of a row; its splits are those of which both sides are reached."""

    base: int
    """The sum of all other trees."""
    offsets: IntArray
    """(n_trees + 1,): the leaves of a tree are those from `offsets[i]` on, by value."""
    values: IntArray
    links: IntArray
    """What a leaf hangs from: twice its split, and 1 on the right."""
    columns: IntArray
    """(n_active,): the columns of the forest that these splits ask; others do not matter."""
    asks: IntArray
    """(n_splits,): which of these a split asks."""
    cuts: IntArray
    parents: IntArray
    """What a split hangs from, as `links`; NO_SPLIT for the first of a tree."""
    missing_left: IntArray
    group_starts: IntArray
    """(n_active + 1,): the groups of a column, each the splits of one tree that ask it."""
    groups: IntArray
    """(n_groups, 4): tree, first split and number of splits in `sorted_cuts`, and where its `specials` begin."""
    sorted_cuts: IntArray
    below: IntArray
    """(n_splits, n_words): leaves that this and all later cuts of the group leave to bins below them."""
    above: IntArray
    """Leaves that this and all earlier cuts leave to bins from them on."""
    specials: IntArray
    """Leaves that a missing number reaches, or each class of a category, (_, n_words)."""
    start: IntArray
    """(n_trees * n_words,): all leaves in the region."""


class _Tree(NamedTuple):
    """Room for one tree."""

    values: IntArray
    links: IntArray
    order: IntArray
    keys: IntArray
    left: IntArray
    right: IntArray


@compile_loop(_nrt=False)
def count_words(counts: IntArray) -> tuple[int, int, int]:
    """Trees of several leaves, the leaves of these, and the words that a set of the largest one takes."""
    n_trees, n_leaves, most = 0, 0, 0
    for count in counts:
        if count > 1:
            n_trees += 1
            n_leaves += count
            most = max(most, count)
    return n_trees, n_leaves, (most + 63) >> 6


@compile_loop(_nrt=False)
def _sort_keys(keys: IntArray, order: IntArray, count: int) -> None:
    """The order of the first keys."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    for i in range(count):
        order[i] = i
    while gap > 0:
        for i in range(gap, count):
            own, at = order[i], i
            while at >= gap and keys[order[at - gap]] > keys[own]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = own
        gap //= 3


@compile_loop()
def _grow(array: IntArray, size: int) -> IntArray:
    """The same with more rows."""
    longer = np.empty((size, array.shape[1]), np.int64)
    for row in range(array.shape[0]):
        for word in range(array.shape[1]):
            longer[row, word] = array[row, word]
    return longer


@compile_loop(_nrt=False)
def _descend(
    root: int,
    forest: Forest,
    region: Region,
    label: int,
    sign: int,
    stack: IntArray,
    active: IntArray,
    local: Local,
    n_splits: int,
    room: _Tree,
) -> tuple[int, int]:
    """List the splits of a tree, each before those below it, and its leaves; how many splits there are then, leaves."""
    node, link, waiting, count = root, NO_SPLIT, 0, 0
    while True:
        while node >= 0:
            both, cut = int(forest.splits[node, 0]), int(forest.splits[node, 1])
            column, missing_left = both >> 1, both & 1
            if region.low[column] < cut:
                sides = 3 if region.high[column] >= cut else 1
            elif region.high[column] >= cut:
                sides = 2
            else:
                sides = turn(column, cut, missing_left, region, forest.sets)
            if sides != 3:
                node = int(forest.splits[node, 1 + sides])
                continue
            local.asks[n_splits], local.cuts[n_splits] = column, cut
            local.parents[n_splits], local.missing_left[n_splits] = link, missing_left
            active[column] = 0
            stack[waiting], stack[waiting + 1] = forest.splits[node, 3], 2 * n_splits + 1
            waiting += 2
            node, link = int(forest.splits[node, 2]), 2 * n_splits
            n_splits += 1
        room.values[count], room.links[count] = sign * forest.leaves[~node, label], link
        count += 1
        if waiting == 0:
            return n_splits, count
        waiting -= 2
        node, link = stack[waiting], stack[waiting + 1]


@compile_loop(_nrt=False)
def _number_leaves(tree: int, first_split: int, n_splits: int, count: int, local: Local, room: _Tree) -> None:
    """Number the leaves of a tree by value, and collect those on either side of its splits."""
    _sort_keys(room.values, room.order, count)
    offset, n_words = local.offsets[tree], local.below.shape[1]
    local.offsets[tree + 1] = offset + count
    for at in range(n_splits - first_split):
        for word in range(n_words):
            room.left[at, word], room.right[at, word] = 0, 0
    for word in range(n_words):
        local.start[tree * n_words + word] = 0
    for rank in range(count):
        leaf = room.order[rank]
        link = room.links[leaf]
        local.values[offset + rank], local.links[offset + rank] = room.values[leaf], link
        bit, word = 1 << (rank & 63), rank >> 6
        local.start[tree * n_words + word] |= bit
        if link & 1:
            room.right[(link >> 1) - first_split, word] |= bit
        else:
            room.left[(link >> 1) - first_split, word] |= bit
    for split in range(n_splits - 1, first_split, -1):
        link, at = local.parents[split], split - first_split
        sides = room.right if link & 1 else room.left
        for word in range(n_words):
            sides[(link >> 1) - first_split, word] |= room.left[at, word] | room.right[at, word]


@compile_loop(_nrt=False)
def _group_splits(tree: int, first: int, last: int, n_groups: int, local: Local, room: _Tree, groups: IntArray) -> int:
    """Sort the splits of a tree by column and cut, and accumulate what they exclude; how many groups there are then."""
    n_words = local.below.shape[1]
    for split in range(first, last):
        room.keys[split - first] = int(local.asks[split]) * (1 << 32) + local.cuts[split] + (1 << 31)
    _sort_keys(room.keys, room.order, last - first)
    at = 0
    while at < last - first:
        column, begin = local.asks[first + room.order[at]], at
        while at < last - first and local.asks[first + room.order[at]] == column:
            split = room.order[at]
            local.sorted_cuts[first + at] = local.cuts[first + split]
            for word in range(n_words):
                before = local.above[first + at - 1, word] if at > begin else -1
                local.above[first + at, word] = before & ~room.left[split, word]
            at += 1
        for k in range(at - 1, begin - 1, -1):
            for word in range(n_words):
                after = local.below[first + k + 1, word] if k < at - 1 else -1
                local.below[first + k, word] = after & ~room.right[room.order[k], word]
        groups[n_groups, 0], groups[n_groups, 1], groups[n_groups, 2] = tree, first + begin, at - begin
        groups[n_groups, 3], groups[n_groups, 4] = -1, column
        n_groups += 1
    return n_groups


@compile_loop(_nrt=False)
def _place_pair(tree: int, split: int, n_groups: int, local: Local, room: _Tree, groups: IntArray) -> None:
    """Number the two leaves of a tree with one split, which is a group of its own: most trees that are left."""
    offset, flip = local.offsets[tree], int(room.values[0] > room.values[1])
    local.offsets[tree + 1] = offset + 2
    for rank in range(2):
        local.values[offset + rank], local.links[offset + rank] = room.values[rank ^ flip], room.links[rank ^ flip]
    for word in range(local.below.shape[1]):
        room.left[0, word] = 1 << flip if word == 0 else 0
        room.right[0, word] = 2 >> flip if word == 0 else 0
        local.start[tree * local.below.shape[1] + word] = room.left[0, word] | room.right[0, word]
        local.above[split, word], local.below[split, word] = ~room.left[0, word], ~room.right[0, word]
    room.order[0], local.sorted_cuts[split] = 0, local.cuts[split]
    groups[n_groups, 0], groups[n_groups, 1], groups[n_groups, 2] = tree, split, 1
    groups[n_groups, 3], groups[n_groups, 4] = -1, local.asks[split]


@compile_loop(_nrt=False)
def _exclude_specials(
    group: int,
    groups: IntArray,
    first: int,
    forest: Forest,
    region: Region,
    local: Local,
    room: _Tree,
    specials: IntArray,
) -> None:
    """What a missing number leaves of the leaves of a tree, or each class of a category."""
    column, begin, place = groups[group, 4], groups[group, 1] - first, groups[group, 3]
    n_masks = max(forest.n_classes[column], 1)
    for mask in range(n_masks):
        for word in range(specials.shape[1]):
            specials[place + mask, word] = -1
        for at in range(begin, begin + groups[group, 2]):
            split = room.order[at]
            if region.kinds[column] == CATEGORY:
                is_left = (forest.sets[~local.cuts[first + split], mask >> 6] >> (mask & 63)) & 1 == 1
            else:
                is_left = local.missing_left[first + split] == 1
            away = room.right if is_left else room.left
            for word in range(away.shape[1]):
                specials[place + mask, word] &= ~away[split, word]


@compile_loop()
def _bucket_groups(
    n_splits: int, n_groups: int, active: IntArray, raw: IntArray, local: Local
) -> tuple[IntArray, IntArray, IntArray]:
    """Columns that are asked, where the groups of each begin, and groups by column; splits are told which they ask."""
    n_active = 0
    for column in range(active.size):
        if active[column] >= 0:
            active[column] = n_active
            n_active += 1
    columns, starts = np.empty(n_active, np.int64), np.zeros(n_active + 1, np.int64)
    for column in range(active.size):
        if active[column] >= 0:
            columns[active[column]] = column
    for group in range(n_groups):
        starts[active[raw[group, 4]] + 1] += 1
    for at in range(n_active):
        starts[at + 1] += starts[at]
    groups, ends = np.empty((n_groups, 4), np.int64), np.empty(n_active, np.int64)
    for at in range(n_active):
        ends[at] = starts[at]
    for group in range(n_groups):
        at = active[raw[group, 4]]
        for field in range(4):
            groups[ends[at], field] = raw[group, field]
        ends[at] += 1
    for split in range(n_splits):
        local.asks[split] = active[local.asks[split]]
    return columns, starts, groups


@compile_loop()
def compact(
    forest: Forest,
    region: Region,
    label: int,
    sign: int,
    total: int,
    stack: IntArray,
    counts: IntArray,
    least: IntArray,
) -> Local:
    """The trees that reach several leaves; `total`, counts and the least by tree are those of the walk."""
    n_trees, n_leaves, n_words = count_words(counts)
    n_splits = n_leaves - n_trees
    widest = 0
    for count in counts:
        widest = max(widest, count)
    room = _Tree(
        np.empty(widest, np.int64),
        np.empty(widest, np.int64),
        np.empty(widest, np.int64),
        np.empty(widest, np.int64),
        np.empty((widest, n_words), np.int64),
        np.empty((widest, n_words), np.int64),
    )
    specials, n_specials = np.empty((0, n_words), np.int64), 0
    local = Local(
        0,
        np.zeros(n_trees + 1, np.int64),
        np.empty(n_leaves, np.int64),
        np.empty(n_leaves, np.int64),
        np.empty(0, np.int64),
        np.empty(n_splits, np.int64),
        np.empty(n_splits, np.int64),
        np.empty(n_splits, np.int64),
        np.empty(n_splits, np.int64),
        np.empty(0, np.int64),
        np.empty((0, 4), np.int64),
        np.empty(n_splits, np.int64),
        np.empty((n_splits, n_words), np.int64),
        np.empty((n_splits, n_words), np.int64),
        specials,
        np.empty(n_trees * n_words, np.int64),
    )
    active, groups = np.empty(forest.n_classes.size, np.int64), np.empty((n_splits, 5), np.int64)
    for at in range(active.size):
        active[at] = -1
    tree, last, n_groups = 0, 0, 0
    for at in range(forest.roots.size):
        if counts[at] < 2:
            continue
        total -= least[at]
        first, first_group = last, n_groups
        last, count = _descend(int(forest.roots[at]), forest, region, label, sign, stack, active, local, first, room)
        if count == 2:
            _place_pair(tree, first, n_groups, local, room, groups)
            n_groups += 1
        else:
            _number_leaves(tree, first, last, count, local, room)
            n_groups = _group_splits(tree, first, last, n_groups, local, room, groups)
        for group in range(first_group, n_groups):
            column = groups[group, 4]
            if region.kinds[column] == EITHER or region.kinds[column] == CATEGORY:
                n_masks = max(forest.n_classes[column], 1)
                if n_specials + n_masks > specials.shape[0]:
                    specials = _grow(specials, 2 * (n_specials + n_masks))
                groups[group, 3] = n_specials
                _exclude_specials(group, groups, first, forest, region, local, room, specials)
                n_specials += n_masks
        tree += 1
    columns, starts, sorted_groups = _bucket_groups(last, n_groups, active, groups, local)
    return Local(
        total,
        local.offsets,
        local.values,
        local.links,
        columns,
        local.asks,
        local.cuts,
        local.parents,
        local.missing_left,
        starts,
        sorted_groups,
        local.sorted_cuts,
        local.below,
        local.above,
        specials,
        local.start,
    )
