"""Where the least leaves of all trees agree: what they leave together of each column, and where two of them differ.

Where every column keeps a value, and budgets allow it, the sum of the least leaves is attained. Pairs that agree prove
that for ranges of numbers alone, so that each column is intersected over all trees. README.md, step 11. Must not know
how the search goes on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.distances import measure_bin
from derand.kernels.trees.forest import CATEGORY, EITHER, PLAIN
from derand.kernels.trees.nodes import Nodes, Problem, least_leaf, snap_up, take_measure


class Agreement(NamedTuple):
    """What the least leaves leave of each active column."""

    minima: IntArray
    """(n_trees,): their values."""
    low: IntArray
    high: IntArray
    may_miss: BoolArray
    """Whether all of them take a missing number."""
    classes: IntArray
    other: IntArray
    """The classes of the first leaf that shares none with those before it."""
    is_open: BoolArray
    """Whether they disagree on the column."""
    costs: FloatArray
    """How far the nearest value is that they leave, as `distances` measures it."""
    room: IntArray
    """(5, _): for classes and leaves that are being looked at."""


@compile_loop()
def make_agreement(n_trees: int, n_active: int, n_words: int, longest: int) -> Agreement:
    """Room for what leaves agree on."""
    return Agreement(
        np.empty(n_trees, np.int64),
        np.empty(n_active, np.int64),
        np.empty(n_active, np.int64),
        np.empty(n_active, np.bool_),
        np.empty((n_active, n_words), np.int64),
        np.empty((n_active, n_words), np.int64),
        np.empty(n_active, np.bool_),
        np.empty(n_active),
        np.empty((5, longest), np.int64),
    )


@compile_loop(_nrt=False)
def add_minima(node: int, nodes: Nodes, problem: Problem, found: Agreement) -> int:
    """The sum of the least leaves that are left."""
    local = problem.local
    n_words, total = local.below.shape[1], local.base
    for tree in range(found.minima.size):
        value = local.values[local.offsets[tree] + least_leaf(node, nodes.sets, tree, n_words)]
        found.minima[tree] = value
        total += value
    return total


@compile_loop(_nrt=False)
def _meet_classes(
    at: int, cut: int, is_right: bool, problem: Problem, node: int, nodes: Nodes, found: Agreement
) -> None:
    """Take the classes of one side of a split."""
    sets, is_empty = problem.forest.sets, True
    flip = -1 if is_right else 0
    for word in range(sets.shape[1]):
        is_empty = is_empty and (found.classes[at, word] & (sets[~cut, word] ^ flip)) == 0
    for word in range(sets.shape[1]):
        side = sets[~cut, word] ^ flip
        if is_empty:
            found.other[at, word] = nodes.classes[node, at, word] & side
        else:
            found.classes[at, word] &= side
    found.is_open[at] = is_empty


@compile_loop(_nrt=False)
def intersect_leaves(node: int, nodes: Nodes, problem: Problem, found: Agreement) -> bool:
    """Intersect the least leaves column by column; whether they disagree on none."""
    local, n_words = problem.local, problem.local.below.shape[1]
    for at in range(local.columns.size):
        found.low[at], found.high[at] = nodes.low[node, at], nodes.high[node, at]
        found.may_miss[at], found.is_open[at] = nodes.kinds[node, at] != PLAIN, False
        for word in range(nodes.classes.shape[2]):
            found.classes[at, word] = nodes.classes[node, at, word]
    for tree in range(found.minima.size):
        link = local.links[local.offsets[tree] + least_leaf(node, nodes.sets, tree, n_words)]
        while link >= 0:
            split, is_right = link >> 1, (link & 1) == 1
            at, cut = local.asks[split], local.cuts[split]
            if nodes.kinds[node, at] == CATEGORY:
                if not found.is_open[at]:
                    _meet_classes(at, cut, is_right, problem, node, nodes, found)
            else:
                if is_right:
                    found.low[at] = max(found.low[at], cut)
                else:
                    found.high[at] = min(found.high[at], cut - 1)
                found.may_miss[at] = found.may_miss[at] and (local.missing_left[split] == 1) != is_right
            link = local.parents[split]
    agrees = True
    for at in range(local.columns.size):
        kind = nodes.kinds[node, at]
        if kind == PLAIN or (kind == EITHER and not found.may_miss[at]):
            found.is_open[at] = _lacks_value(at, problem, found)
        agrees = agrees and not found.is_open[at]
    return agrees


@compile_loop(_nrt=False)
def _lacks_value(at: int, problem: Problem, found: Agreement) -> bool:
    """Whether no number lies in the range that is left of a column."""
    low, high = found.low[at], found.high[at]
    own = int(problem.region.own[problem.local.columns[at]])
    return low > high or (not low <= own <= high and snap_up(low, problem, at) > high)


@compile_loop(_nrt=False)
def takes_present(at: int, kind: int, problem: Problem, found: Agreement) -> bool:
    """Whether a number is taken where leaves agree, and not a missing one: its own state where that is left."""
    if kind != EITHER:
        return kind == PLAIN
    if not found.may_miss[at]:
        return True
    own = int(problem.region.own[problem.local.columns[at]])
    return own >= 0 and not _lacks_value(at, problem, found)


@compile_loop(_nrt=False)
def weigh_agreement(node: int, nodes: Nodes, problem: Problem, found: Agreement) -> float:
    """How far the nearest row is on which all least leaves agree; infinite where it takes more changes than may be."""
    changed, missed, total = 0, 0, 0.0
    is_sum = problem.asked.norm != np.inf
    for at in range(problem.local.columns.size):
        own, kind = int(problem.region.own[problem.local.columns[at]]), nodes.kinds[node, at]
        found.costs[at] = 0.0
        if kind == CATEGORY:
            changed += (found.classes[at, own >> 6] >> (own & 63)) & 1 == 0
        elif not takes_present(at, kind, problem, found):
            missed += own >= 0
        elif own < 0:
            missed += 1
        else:
            nearest = min(max(own, found.low[at]), found.high[at])
            cost = measure_bin(nearest, take_measure(problem, at), problem.forest.edges)
            found.costs[at] = cost
            total = total + cost if is_sum else max(total, cost)
    is_allowed = changed <= problem.asked.n_changes and missed <= problem.asked.n_missing
    return total if is_allowed else np.inf
