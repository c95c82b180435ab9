"""Questions about rows: do they stay on their side, how far may they be moved, what is their least and largest sum.

Each row is walked first; what the walk leaves open is searched. README.md, step 11. Must not know models or units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.compact import compact
from derand.kernels.trees.distances import Measure, measure_bin
from derand.kernels.trees.forest import (
    Asked,
    ByteArray,
    Forest,
    EITHER,
    PLAIN,
    Region,
    SmallArray,
    add_leaves,
    locate_point,
    locate_row,
    make_region,
    walk,
)
from derand.kernels.trees.nodes import Problem
from derand.kernels.trees.search import ANY, LEAST, NEAREST, Goal, Outcome, Points, search_region

HOLDS, FLIPS, UNDECIDED, TIE = range(4)
"""What was found of a row: proven, a row that flips for certain, the budget was spent, or too near to tell."""
_START = 4.0
"""Times the distance to the nearest edge: where the search for a radius begins."""
_ENOUGH = 1.0 + 2.0**-7
"""What is left between a certified and an attacked radius is not searched below this ratio."""


class Limits(NamedTuple):
    """By label, 0 where the sum must stay high and 1 where its negative must."""

    hold: IntArray
    """(2,): a sum from there on holds."""
    flip: IntArray
    """(2,): one up to there flips, the error of the model that is meant included."""


class Found(NamedTuple):
    """What was found, an entry per row."""

    status: ByteArray
    bounds: IntArray
    nodes: IntArray
    certified: FloatArray
    is_exact: BoolArray
    values: FloatArray
    """(n_rows, n_columns): of the row that was found, else of the row itself."""
    classes: SmallArray


class _Room(NamedTuple):
    """What a row needs, made once."""

    region: Region
    spare: Region
    stack: SmallArray
    counts: SmallArray
    least: IntArray
    points: Points


@compile_loop()
def _make_room(forest: Forest, n_words: int) -> _Room:
    """Room for the rows of a call."""
    n_columns, n_trees = forest.n_classes.size, forest.roots.size
    points = Points(np.empty((2, n_columns)), np.empty((2, n_columns), np.int32))
    return _Room(
        make_region(n_columns, n_words),
        make_region(n_columns, n_words),
        np.empty(2 * forest.depth + 2, np.int32),
        np.empty(n_trees, np.int32),
        np.empty(n_trees, np.int64),
        points,
    )


@compile_loop()
def _search(
    row: int, forest: Forest, asked: Asked, value: tuple[int, int], goal: Goal, room: _Room
) -> tuple[int, Outcome]:
    """Walk and search one row for sums of `sign * leaves[:, label]` below the limit; the sum of the walk, and more."""
    locate_row(row, forest, asked, goal.size, room.region)
    total = walk(forest, room.region, value[0], value[1], room.stack, room.counts, room.least)
    if total >= goal.limit:
        return total, Outcome(True, 0, total, goal.limit, goal.size, False, False, False)
    local = compact(forest, room.region, value, total, room.stack, room.counts, room.least)
    return total, search_region(Problem(forest, asked, room.region, local, row), goal, room.points, room.spare)


@compile_loop()
def decide_rows(
    forest: Forest,
    asked: Asked,
    limits: Limits,
    labels: ByteArray,
    sizes: FloatArray,
    budget: int,
    found: Found,
) -> None:
    """Whether each row stays on its side within its region."""
    room = _make_room(forest, asked.classes.shape[1])
    for row in range(labels.size):
        label, size = np.int64(labels[row]), sizes[row]
        flip = limits.flip[label]
        goal = Goal(ANY, limits.hold[label], size, budget, 1 - label, flip)
        total, outcome = _search(row, forest, asked, (label, 1), goal, room)
        found.bounds[row], found.nodes[row] = max(total, outcome.bound), outcome.nodes
        if not outcome.is_found:
            found.status[row] = HOLDS if outcome.is_done else UNDECIDED
            continue
        found.status[row] = FLIPS if outcome.is_sure else TIE
        found.values[row], found.classes[row] = room.points.values[0], room.points.classes[0]
        if not outcome.is_sure:
            rest = Goal(ANY, flip + 1, size, max(budget - outcome.nodes, 1), 1 - label, flip)
            _, outcome = _search(row, forest, asked, (1 - label, -1), rest, room)
            found.nodes[row] += outcome.nodes
            if outcome.is_found:
                found.status[row] = FLIPS
                found.values[row], found.classes[row] = room.points.values[0], room.points.classes[0]


@compile_loop()
def bound_rows(forest: Forest, asked: Asked, label: int, sizes: FloatArray, budget: int, found: Found) -> None:
    """The least sum of `leaves[:, label]` of each row within its region: what is proven, and where it is attained."""
    room = _make_room(forest, asked.classes.shape[1])
    for row in range(sizes.size):
        found.values[row], found.classes[row] = asked.values[row], asked.own_classes[row]
        locate_point(asked.values[row], asked.own_classes[row], forest, room.spare)
        own = add_leaves(forest, room.spare, label, 1)
        goal = Goal(LEAST, own, sizes[row], budget, label, np.int64(0))
        total, outcome = _search(row, forest, asked, (label, 1), goal, room)
        found.bounds[row], found.nodes[row] = max(total, outcome.bound), outcome.nodes
        if outcome.is_found:
            found.values[row], found.classes[row] = room.points.values[0], room.points.classes[0]


class _Scale(NamedTuple):
    """Sizes of a region, as `distances` measures them: the least that holds another bin, and that of all bins."""

    least: float
    most: float
    factor: float
    """From one size that is tried to the next."""


@compile_loop()
def _survey(row: int, forest: Forest, asked: Asked, region: Region) -> _Scale:
    """The sizes at which a region changes first and last."""
    least, most, is_sum = np.inf, 0.0, asked.norm != np.inf
    for column in range(forest.n_classes.size):
        kind, own = region.kinds[column], np.int64(region.own[column])
        if own < 0 or (kind != PLAIN and kind != EITHER):
            continue
        measure = Measure(
            asked.values[row, column],
            own,
            forest.edge_starts[column],
            asked.units[column],
            asked.steps[column],
            asked.norm,
        )
        farthest = 0.0
        for bin_ in (own - 1, own + 1, np.int64(region.first[column]), np.int64(region.last[column])):
            if region.first[column] <= bin_ <= region.last[column]:
                size = measure_bin(bin_, measure, forest.edges)
                farthest = max(farthest, size)
                if size > 0.0:
                    least = min(least, size)
        most = most + farthest if is_sum else max(most, farthest)
    return _Scale(least, most, 4.0 if asked.norm == 2.0 else 2.0)


@compile_loop()
def _enlarge(size: float, scale: _Scale, norm: float) -> float:
    """The next larger size to try."""
    return size + 1.0 if norm == 0.0 else size * scale.factor


@compile_loop()
def _walk_outward(
    row: int, forest: Forest, asked: Asked, label: int, limit: int, scale: _Scale, room: _Room
) -> tuple[float, float]:
    """The largest size that a walk proves, and the next one to try."""
    good, size = 0.0, scale.least
    while size <= scale.most:
        locate_row(row, forest, asked, size, room.region)
        if walk(forest, room.region, label, 1, room.stack, room.counts, room.least) < limit:
            break
        good = size
        size = size * _START if asked.norm != 0.0 and size == scale.least else _enlarge(size, scale, asked.norm)
    if good == scale.least and asked.norm != 0.0:
        return good, good * scale.factor
    return good, size if good > 0.0 or asked.norm == 0.0 else size * _START


@compile_loop()
def _halve(good: float, top: float, norm: float) -> float:
    """A size between two others; the larger one where nothing is worth trying in between."""
    middle = 0.5 * (good + top)
    if norm == 0.0:
        middle = np.floor(middle)
    return middle if middle > good * _ENOUGH and top > middle * _ENOUGH else top


@compile_loop()
def _search_nearest(
    row: int,
    forest: Forest,
    asked: Asked,
    value: tuple[int, int],
    goal: Goal,
    good: float,
    scale: _Scale,
    room: _Room,
) -> tuple[float, Outcome]:
    """The largest size within which no sum is below the limit, from one that is known; and what was found beyond it."""
    size, top, left, looked = goal.size, np.inf, goal.budget, 0
    best = Outcome(False, 0, 0, goal.limit, np.inf, False, False, False)
    while left > 0:
        tried = Goal(NEAREST, goal.limit, size, (left + 1) // 2, goal.sure_label, goal.sure)
        _, outcome = _search(row, forest, asked, value, tried, room)
        looked += outcome.nodes
        left -= max(outcome.nodes, 1)
        if outcome.is_found:
            any_sure = best.is_any_sure or outcome.is_any_sure
            best = Outcome(False, 0, 0, goal.limit, outcome.size, True, outcome.is_sure, any_sure)
        if outcome.is_done:
            good = min(outcome.size, size)
            if outcome.is_found or size > scale.most:
                good = good if outcome.is_found else np.inf
                best = Outcome(True, 0, 0, goal.limit, best.size, best.is_found, best.is_sure, best.is_any_sure)
                break
        else:
            top = min(size, outcome.size)
        before = size
        size = _halve(good, top, asked.norm) if top < np.inf else _enlarge(size, scale, asked.norm)
        if size >= top or size == before:
            break
    return good, Outcome(
        best.is_done, looked, 0, goal.limit, best.size, best.is_found, best.is_sure, best.is_any_sure
    )


@compile_loop()
def measure_rows(
    forest: Forest, asked: Asked, limits: Limits, labels: ByteArray, budget: int, found: Found
) -> None:
    """How far each row may be moved, as `distances` measures it (of l2 squares), before it may leave its side."""
    room = _make_room(forest, asked.classes.shape[1])
    for row in range(labels.size):
        label = np.int64(labels[row])
        limit, flip = limits.hold[label], limits.flip[label]
        locate_row(row, forest, asked, np.inf, room.region)
        scale = _survey(row, forest, asked, room.region)
        if walk(forest, room.region, label, 1, room.stack, room.counts, room.least) >= limit:
            found.certified[row], found.is_exact[row] = np.inf, True
            continue
        good, size = 0.0, np.inf
        if scale.least < np.inf:
            good, size = _walk_outward(row, forest, asked, label, limit, scale, room)
        goal = Goal(NEAREST, limit, size, budget, 1 - label, flip)
        good, outcome = _search_nearest(row, forest, asked, (label, 1), goal, good, scale, room)
        found.certified[row], found.nodes[row] = good, outcome.nodes
        found.is_exact[row] = outcome.is_done and (outcome.is_sure or not outcome.is_found)
        is_sure, at = outcome.is_any_sure, 1
        if outcome.is_found and not is_sure:  # farther away it may flip for certain
            found.status[row], at = TIE, 0
            left = max(budget - outcome.nodes, 1)
            start = _enlarge(max(good, scale.least), scale, asked.norm) if scale.least < np.inf else np.inf
            values, classes = room.points.values[0].copy(), room.points.classes[0].copy()
            goal = Goal(NEAREST, flip + 1, start, left, 1 - label, flip)
            _, outcome = _search_nearest(row, forest, asked, (1 - label, -1), goal, good, scale, room)
            found.nodes[row] += outcome.nodes
            is_sure = outcome.is_any_sure
            room.points.values[0], room.points.classes[0] = values, classes
        if is_sure:
            found.status[row], at = FLIPS, 1
        if is_sure or at == 0:
            found.values[row], found.classes[row] = room.points.values[at], room.points.classes[at]
