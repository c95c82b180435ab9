"""Branch and bound: a row whose sum is below a limit, the nearest of them, or the least sum, within a region.

Depth first, the part of the lower bound first. README.md, step 11. Must not know models, labels or units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.trees.agreement import (
    Agreement,
    add_minima,
    intersect_leaves,
    make_agreement,
    takes_present,
    weigh_agreement,
)
from derand.kernels.trees.branching import Branch, choose_conflict, choose_cost, take_part
from derand.kernels.trees.compact import compact
from derand.kernels.trees.forest import (
    CATEGORY,
    LARGEST,
    Asked,
    Forest,
    Goals,
    Region,
    add_leaves,
    locate_point,
    locate_row,
    make_region,
    walk,
)
from derand.kernels.trees.nodes import (
    Nodes,
    Problem,
    copy_node,
    first_bit,
    grow_nodes,
    make_nodes,
    place_root,
    spend_changes,
    spend_distance,
    take_measure,
)
from derand.kernels.worst_case.steps import step_down, step_up

ANY, NEAREST, LEAST = range(3)
"""What is sought: any row below the limit, the nearest one, or the least sum."""
_DEPTH = 32


class Goal(NamedTuple):
    """One of `Goals`, and which kind of row is sought."""

    kind: int
    limit: int
    size: float
    budget: int
    sure_label: int
    sure: int


class Outcome(NamedTuple):
    """What a search found."""

    is_done: bool
    """Whether nothing is left to look at."""
    nodes: int
    bound: int
    """No row of the region has a lower sum; of a search for the nearest row nothing."""
    limit: int
    """Of the least sum that was found."""
    size: float
    """Of the nearest row that was found."""
    is_found: bool
    is_sure: bool
    """Whether the best row is sure."""
    is_any_sure: bool


class Points(NamedTuple):
    """Rows that a search found: the best one, and the best one that is sure."""

    values: FloatArray
    """(2, n_columns)"""
    classes: IntArray


@compile_loop(_nrt=False)
def _write_point(  # noqa: PLR0912 - one branch per way to change a column
    node: int, nodes: Nodes, problem: Problem, found: Agreement, points: Points
) -> None:
    """Write the nearest row on which all least leaves agree: values of numbers and classes of categories."""
    local, region, forest = problem.local, problem.region, problem.forest
    point, classes = points.values[0], points.classes[0]
    for column in range(classes.size):
        point[column], classes[column] = problem.asked.values[problem.row, column], region.own[column]
    for at in range(local.columns.size):
        column, kind = local.columns[at], nodes.kinds[node, at]
        own = int(region.own[column])
        if kind == CATEGORY:
            if (found.classes[at, own >> 6] >> (own & 63)) & 1 == 0:
                for word in range(found.classes.shape[1]):
                    if found.classes[at, word] != 0:
                        classes[column] = 64 * word + first_bit(found.classes[at, word])
                        break
        elif takes_present(at, kind, problem, found):
            low, high = found.low[at], found.high[at]
            x, _, start, _, step, _ = take_measure(problem, at)
            stop = forest.edge_starts[column + 1]
            if own < 0:
                if low > 0:
                    point[column] = forest.edges[start + low - 1]
                else:
                    point[column] = np.nextafter(forest.edges[start + high], -np.inf) if start + high < stop else 0.0
            elif own < low:
                edge = forest.edges[start + low - 1]
                point[column] = step_up(x, step, edge) if step > 0.0 else edge
            elif own > high:
                edge = forest.edges[start + high]
                point[column] = step_down(x, step, edge) if step > 0.0 else np.nextafter(edge, -np.inf)
        else:
            point[column] = np.nan


@compile_loop(_nrt=False)
def _check_point(problem: Problem, goal: Goal, points: Points, spare: Region) -> bool:
    """Whether the row that was found is sure; it is kept where it is."""
    locate_point(points.values[0], points.classes[0], problem.forest, spare)
    if add_leaves(problem.forest, spare, goal.sure_label, -1) > goal.sure:
        return False
    for column in range(points.values.shape[1]):
        points.values[1, column], points.classes[1, column] = points.values[0, column], points.classes[0, column]
    return True


@compile_loop()
def search_region(problem: Problem, goal: Goal, points: Points, spare: Region) -> Outcome:
    """Search the region; rows that are found are written to `points`."""
    limit, size, asked = goal.limit, goal.size, problem.asked
    is_nearest, has_norm = goal.kind == NEAREST, asked.norm == asked.norm
    has_ball = has_norm and (is_nearest or (0.0 < size < np.inf and asked.norm < np.inf))  # else a box
    nodes, found, kept = make_room(problem)
    place_root(problem, nodes)
    top, looked, closed = 0, 0, LARGEST
    is_found, is_sure, is_any_sure = False, False, False
    while top >= 0 and looked < goal.budget:
        looked += 1
        is_left = spend_changes(top, nodes, problem)
        if not is_left or (has_ball and not spend_distance(top, size, found.costs, nodes, problem)):
            top -= 1
            continue
        total = add_minima(top, nodes, problem, found)
        if total >= limit:
            closed = min(closed, total)
            top -= 1
            continue
        nodes.floors[top] = total
        if not intersect_leaves(top, nodes, problem, found):
            branch = choose_conflict(top, nodes, problem, found, float(limit - total), kept)
        else:
            cost = weigh_agreement(top, nodes, problem, found)
            if not (has_ball and cost >= size) and cost < np.inf:
                _write_point(top, nodes, problem, found, points)
                is_found, is_sure = True, _check_point(problem, goal, points, spare)
                is_any_sure = is_any_sure or is_sure
                if goal.kind == ANY:
                    break
                if is_nearest:  # the same node may hold a nearer one
                    size = cost
                else:
                    limit = total
                    top -= 1
                continue
            branch = choose_cost(top, nodes, problem, found, float(limit - total), kept)
        if top + 1 == nodes.floors.size:
            nodes = grow_nodes(nodes)
        top, closed = _divide(top, branch, kept, found.room, limit, closed, nodes, problem)
    for at in range(top + 1):
        closed = min(closed, nodes.floors[at])
    bound = min(closed, limit) if goal.kind == LEAST else closed
    return Outcome(top < 0, looked, bound, limit, size, is_found, is_sure, is_any_sure)


@compile_loop()
def make_room(problem: Problem) -> tuple[Nodes, Agreement, IntArray]:
    """Room for nodes, for what leaves agree on, and for classes of a branch."""
    local, n_words = problem.local, problem.asked.classes.shape[1]
    n_active = local.columns.size
    nodes = make_nodes(_DEPTH, local.start.size, n_active, n_words)
    return (
        nodes,
        make_agreement(local.offsets.size - 1, n_active, n_words, max(n_words, local.below.shape[1])),
        np.empty(n_words, np.int64),
    )


@compile_loop(_nrt=False)
def _divide(
    top: int,
    branch: Branch,
    kept: IntArray,
    room: IntArray,
    limit: int,
    closed: int,
    nodes: Nodes,
    problem: Problem,
) -> tuple[int, int]:
    """Put both parts of a branch in the place of a node, the lower one on top; a part that is closed is left out."""
    is_first = branch.first_rise <= branch.second_rise
    floor = nodes.floors[top] + max(branch.first_rise, branch.second_rise)
    if floor >= limit:
        closed = min(closed, floor)
    else:
        copy_node(nodes, top, nodes, top + 1)
        if take_part(top, branch, not is_first, kept, room, nodes, problem):
            nodes.floors[top] = floor
            top += 1
        else:
            copy_node(nodes, top + 1, nodes, top)
    nodes.floors[top] += min(branch.first_rise, branch.second_rise)
    if not take_part(top, branch, is_first, kept, room, nodes, problem):
        top -= 1
    return top, closed


class Found(NamedTuple):
    """What was found, an entry per question; see `Outcome`."""

    is_done: BoolArray
    nodes: IntArray
    bounds: IntArray
    limits: IntArray
    sizes: FloatArray
    is_found: BoolArray
    is_sure: BoolArray
    is_any_sure: BoolArray
    values: FloatArray
    """(_, 2, n_columns): of the best row, and of the best one that is sure."""
    classes: IntArray


def make_found(count: int, n_columns: int) -> Found:
    """Room for so many questions."""
    flags, numbers = np.zeros((4, count), dtype=bool), np.zeros((3, count), dtype=np.int64)
    values, classes = np.empty((count, 2, n_columns)), np.empty((count, 2, n_columns), dtype=np.int64)
    return Found._make([flags[0], *numbers, np.zeros(count), *flags[1:], values, classes])


@compile_loop()
def search_rows(kind: int, forest: Forest, asked: Asked, goals: Goals, found: Found) -> None:
    """Search the regions of rows whose walk is below the limit."""
    n_columns, n_trees = forest.n_classes.size, forest.roots.size
    region, spare = make_region(n_columns, asked.classes.shape[1]), make_region(n_columns, asked.classes.shape[1])
    stack, counts = np.empty(2 * forest.depth + 2, np.int64), np.empty(n_trees, np.int64)
    least = np.empty(n_trees, np.int64)
    for k in range(goals.rows.size):
        row, label, sign = goals.rows[k], goals.labels[k], goals.signs[k]
        locate_row(row, forest, asked, goals.sizes[k], region)
        total = walk(forest, region, label, sign, stack, counts, least)
        found.bounds[k], found.sizes[k], found.limits[k] = total, goals.sizes[k], goals.limits[k]
        if total >= goals.limits[k]:
            found.is_done[k] = True
            continue
        local = compact(forest, region, label, sign, total, stack, counts, least)
        problem = Problem(forest, asked, region, local, row)
        goal = Goal(kind, goals.limits[k], goals.sizes[k], goals.budgets[k], 1 - goals.homes[k], goals.sures[k])
        points = Points(found.values[k], found.classes[k])
        outcome = search_region(problem, goal, points, spare)
        found.is_done[k], found.nodes[k], found.bounds[k] = outcome.is_done, outcome.nodes, max(total, outcome.bound)
        found.limits[k], found.sizes[k], found.is_found[k] = outcome.limit, outcome.size, outcome.is_found
        found.is_sure[k], found.is_any_sure[k] = outcome.is_sure, outcome.is_any_sure
