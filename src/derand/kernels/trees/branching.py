"""Where to branch: candidates where least leaves differ, or cost more than is left, and what each would raise.

A candidate divides one column in two; its score is the product of what both parts raise the sum of the least leaves
by, each capped at what is needed. README.md, step 11. Must not know how the search goes on.
"""

from __future__ import annotations

from typing import NamedTuple

from derand._core.arrays import IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.agreement import Agreement
from derand.kernels.trees.forest import CATEGORY, EITHER
from derand.kernels.trees.nodes import (
    CLASSES,
    CUT,
    PRESENCE,
    Nodes,
    Problem,
    first_bit,
    has_own,
    join_classes,
    keep_classes,
    keep_missing,
    keep_present,
    locate_above,
    locate_below,
    measure_column,
    tighten,
)


class Branch(NamedTuple):
    """How a column is divided, and what both parts raise the sum by."""

    at: int
    kind: int
    cut: int
    first_rise: int
    second_rise: int
    score: float


@compile_loop(_nrt=False)
def _least_value(tree: int, masks: IntArray, place: int, node: int, nodes: Nodes, problem: Problem) -> int:
    """The least leaf of a tree that a mask leaves."""
    local, n_words = problem.local, problem.local.below.shape[1]
    for word in range(n_words):
        bits = nodes.sets[node, tree * n_words + word] & masks[place, word]
        if bits != 0:
            return local.values[local.offsets[tree] + 64 * word + first_bit(bits)]
    return 2**62


@compile_loop(_nrt=False)
def _raise_by_cut(at: int, cut: int, node: int, nodes: Nodes, problem: Problem, minima: IntArray) -> tuple[int, int]:
    """What bins below a cut raise the sum by, and bins from it on."""
    local, first, second = problem.local, 0, 0
    for k in range(local.group_starts[at], local.group_starts[at + 1]):
        tree = local.groups[k, 0]
        below, above = locate_below(k, cut, local), locate_above(k, cut, local)
        if below >= 0:
            first += _least_value(tree, local.below, below, node, nodes, problem) - minima[tree]
        if above >= 0:
            second += _least_value(tree, local.above, above, node, nodes, problem) - minima[tree]
    return first, second


@compile_loop(_nrt=False)
def _raise_by_presence(at: int, node: int, nodes: Nodes, problem: Problem, found: Agreement) -> tuple[int, int]:
    """What numbers raise the sum by, and the missing one."""
    local, first, second = problem.local, 0, 0
    n_words, mask, minima = local.below.shape[1], found.room, found.minima
    for k in range(local.group_starts[at], local.group_starts[at + 1]):
        tree = local.groups[k, 0]
        below, above = locate_below(k, nodes.high[node, at] + 1, local), locate_above(k, nodes.low[node, at], local)
        for word in range(n_words):
            mask[0, word] = local.below[below, word] if below >= 0 else -1
            mask[0, word] &= local.above[above, word] if above >= 0 else -1
        first += _least_value(tree, mask, 0, node, nodes, problem) - minima[tree]
        second += _least_value(tree, local.specials, local.groups[k, 3], node, nodes, problem) - minima[tree]
    return first, second


@compile_loop(_nrt=False)
def _raise_by_classes(at: int, node: int, nodes: Nodes, problem: Problem, found: Agreement) -> tuple[int, int]:
    """What the classes in the room of `found` raise the sum by, and all others that are left."""
    local, first, second = problem.local, 0, 0
    n_words, masks, minima = local.below.shape[1], found.room, found.minima
    classes, rest = masks[2, : nodes.classes.shape[2]], masks[3, : nodes.classes.shape[2]]
    for word in range(classes.size):
        rest[word] = nodes.classes[node, at, word] & ~classes[word]
    for k in range(local.group_starts[at], local.group_starts[at + 1]):
        tree = local.groups[k, 0]
        for word in range(n_words):
            masks[0, word] = join_classes(k, classes, word, local)
            masks[1, word] = join_classes(k, rest, word, local)
        first += _least_value(tree, masks, 0, node, nodes, problem) - minima[tree]
        second += _least_value(tree, masks, 1, node, nodes, problem) - minima[tree]
    return first, second


@compile_loop(_nrt=False)
def _choose(best: Branch, at: int, kind: int, cut: int, rises: tuple[int, int], need: float) -> Branch:
    """The better one of two candidates."""
    first, second = min(float(rises[0]), need), min(float(rises[1]), need)
    least = need * 1e-6
    score = max(first, least) * max(second, least)
    return Branch(at, int(kind), cut, rises[0], rises[1], score) if score > best.score else best


@compile_loop(_nrt=False)
def _try_cuts(
    at: int, node: int, nodes: Nodes, problem: Problem, found: Agreement, need: float, best: Branch
) -> Branch:
    """Cuts between the ranges of two least leaves: those of both, and one between."""
    low, high = nodes.low[node, at], nodes.high[node, at]
    first, last = found.high[at] + 1, found.low[at]
    for k in range(3):
        cut = first if k == 0 else last if k == 1 else (first + last) >> 1
        if (k > 0 and cut == first) or (k > 1 and cut == last) or not low < cut <= high:
            continue
        rises = _raise_by_cut(at, cut, node, nodes, problem, found.minima)
        best = _choose(best, at, CUT, cut, rises, need)
    return best


@compile_loop(_nrt=False)
def _try_classes(
    at: int,
    classes: IntArray,
    node: int,
    nodes: Nodes,
    problem: Problem,
    found: Agreement,
    need: float,
    best: Branch,
    kept: IntArray,
) -> Branch:
    """Some classes of a category, and all others; the classes of the best candidate are kept."""
    some, rest, inside = 0, 0, found.room[2]
    for word in range(kept.size):
        there = nodes.classes[node, at, word]
        inside[word] = classes[word] & there
        some, rest = some | inside[word], rest | (there & ~inside[word])
    if some == 0 or rest == 0:
        return best
    rises = _raise_by_classes(at, node, nodes, problem, found)
    better = _choose(best, at, CLASSES, 0, rises, need)
    if better.score > best.score:
        for word in range(kept.size):
            kept[word] = inside[word]
    return better


@compile_loop(_nrt=False)
def _write_own(at: int, problem: Problem, room: IntArray, n_words: int) -> None:
    """Write the row's own class into the last row of the room."""
    own = int(problem.region.own[problem.local.columns[at]])
    for word in range(n_words):
        room[4, word] = 1 << (own & 63) if word == own >> 6 else 0


@compile_loop(_nrt=False)
def choose_conflict(node: int, nodes: Nodes, problem: Problem, found: Agreement, need: float, kept: IntArray) -> Branch:
    """The best candidate on a column on which least leaves disagree."""
    best = Branch(-1, 0, 0, 0, 0, -1.0)
    for at in range(problem.local.columns.size):
        if not found.is_open[at]:
            continue
        kind = nodes.kinds[node, at]
        if kind == CATEGORY:
            best = _try_classes(at, found.other[at], node, nodes, problem, found, need, best, kept)
            best = _try_classes(at, found.classes[at], node, nodes, problem, found, need, best, kept)
            _write_own(at, problem, found.room, nodes.classes.shape[2])
            best = _try_classes(at, found.room[4], node, nodes, problem, found, need, best, kept)
        elif kind == EITHER:
            rises = _raise_by_presence(at, node, nodes, problem, found)
            best = _choose(best, at, PRESENCE, 0, rises, need)
        else:
            best = _try_cuts(at, node, nodes, problem, found, need, best)
    return best


@compile_loop(_nrt=False)
def choose_cost(node: int, nodes: Nodes, problem: Problem, found: Agreement, need: float, kept: IntArray) -> Branch:
    """The best candidate on a column whose least leaves cost more of a budget than the column has spent."""
    best = Branch(-1, 0, 0, 0, 0, -1.0)
    for at in range(problem.local.columns.size):
        own, kind = int(problem.region.own[problem.local.columns[at]]), nodes.kinds[node, at]
        if kind == CATEGORY:
            if has_own(node, at, nodes, problem) and (found.classes[at, own >> 6] >> (own & 63)) & 1 == 0:
                _write_own(at, problem, found.room, nodes.classes.shape[2])
                best = _try_classes(at, found.room[4], node, nodes, problem, found, need, best, kept)
        elif kind == EITHER:
            rises = _raise_by_presence(at, node, nodes, problem, found)
            best = _choose(best, at, PRESENCE, 0, rises, need)
        elif own >= 0 and found.costs[at] > measure_column(node, at, nodes, problem):
            cut = found.low[at] if found.low[at] > own else found.high[at] + 1
            rises = _raise_by_cut(at, cut, node, nodes, problem, found.minima)
            best = _choose(best, at, CUT, cut, rises, need)
    return best


@compile_loop(_nrt=False)
def take_part(
    node: int, branch: Branch, is_first: bool, kept: IntArray, room: IntArray, nodes: Nodes, problem: Problem
) -> bool:
    """Turn a node into one part of a branch; False where nothing is left of it."""
    at = branch.at
    if branch.kind == CUT:
        low, high = nodes.low[node, at], nodes.high[node, at]
        if is_first:
            return tighten(node, at, low, branch.cut - 1, nodes, problem)
        return tighten(node, at, branch.cut, high, nodes, problem)
    if branch.kind == PRESENCE:
        if is_first:
            keep_present(node, at, nodes, problem)
        else:
            keep_missing(node, at, nodes, problem.local)
    else:
        part = room[2, : kept.size]
        for word in range(kept.size):
            part[word] = kept[word] if is_first else nodes.classes[node, at, word] & ~kept[word]
        keep_classes(node, at, part, nodes, problem.local)
    return True
