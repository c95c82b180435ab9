"""Decision trees in one common form, and their sums as functions of columns.

A reader of trees gives a `TreeReading`: arrays, before anything is summed. What joins few columns becomes a function of
their cells, all else stays trees. Owns which leaves reach which cells, and what the library's additions may lose. Must
not know any library: a reader says how its library compares by the edge that it gives a split (`x >= edge` goes right).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.convert._cells import CellAxis, CellFunctions, Total, connect, is_small
from derand.convert._forests import LEAF, NO_LEAF, NO_THRESHOLD, UNSEEN, Forest, join_forests, shape_forest
from derand.convert._reading import RawScores, Reading
from derand.tables import Labels, TableEncoding

SINGLE = 2.0**-24
DOUBLE = 2.0**-53
SHARES, _MOST_SHARES = 2.0**12, 2**20
"""Shares of leaves that are multiples of 1 / 4096, of up to a million trees, add up exactly in doubles."""
_TIE = 2.0**-40
"""Far more than the rounding of a mean of shares, and far less than what two of them can differ by."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A decision tree as arrays with one entry per node; node 0 is the root.

    Attributes
    ----------
    feature : array of int, shape (n_nodes,)
        The column that a node splits by; -1 for a leaf.
    edge : array of shape (n_nodes,)
        Rows with `x >= edge` go right; infinity is allowed. Of categories and leaves it is not read.
    left, right : arrays of int, shape (n_nodes,)
        The nodes that follow; two nodes may lead to the same one.
    value : array of shape (n_nodes, n_outputs)
        What a leaf adds to each score. Of other nodes it is not read.
    missing_left : array of bool, shape (n_nodes,)
        Whether a missing value goes left.
    takes_missing : bool
        Whether the library takes missing values at all.
    left_codes : mapping of node to set of int
        For each split by categories the codes that go left, all others go right; -1 stands for a category that
        training did not see.
    """

    feature: IntArray
    edge: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    missing_left: BoolArray
    takes_missing: bool = True
    left_codes: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @property
    def nodes(self) -> IntArray:
        """The nodes that the root leads to, itself included, increasing; libraries keep some that were pruned."""
        is_found = np.zeros(self.feature.size, dtype=bool)
        level = np.zeros(1, dtype=np.int64)
        while level.size:
            is_found[level] = True
            splits = level[self.feature[level] != LEAF]
            level = np.unique(np.concatenate([self.left[splits], self.right[splits]]))
        return np.flatnonzero(is_found)

    @property
    def splits(self) -> IntArray:
        """Those of them that are no leaves."""
        nodes = self.nodes
        return np.asarray(nodes[self.feature[nodes] != LEAF])

    @property
    def forest(self) -> Forest:
        """Its nodes, those that it does not lead to included."""
        is_split = self.feature != LEAF
        return Forest(
            np.zeros(1, dtype=np.int64),
            np.asarray(self.feature, dtype=np.int64),
            np.asarray(self.edge, dtype=np.float64),
            np.where(is_split, self.left, 0),
            np.where(is_split, self.right, 0),
            np.asarray(self.value, dtype=np.float64),
            np.asarray(self.missing_left, dtype=bool),
            self.left_codes,
            frozenset() if self.takes_missing else frozenset(np.unique(self.feature[is_split]).tolist()),
        )

    @property
    def largest_leaves(self) -> FloatArray:
        """The largest magnitude that a leaf adds to each score."""
        nodes = self.nodes
        return np.asarray(np.abs(self.value[nodes[self.feature[nodes] == LEAF]]).max(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class TreeReading:
    """A fitted model whose raw scores are a base plus one leaf of each tree, added up one by one.

    Attributes
    ----------
    trees : sequence of Tree
    base : array of shape (n_outputs,)
    encoding, classes, link, raw_scores, source
        As of Reading.
    n_roundings : int
        How often the library rounds while it adds up one score, at most.
    unit : float
        Relative error of one addition: `SINGLE` or `DOUBLE`.
    slack : float
        What else may lie between the exact sum and the library's decision.
    weighing : float
        What the library loses beside additions, relative to each leaf.
    divisor : int
        The library divides its sum by that number, as in a mean; leaves are given as they are before.
    refused
        As of Reading.
    respond
        As of Reading: the raw score of class 1 is where it answers more than 1/2.
    """

    trees: Sequence[Tree]
    base: FloatArray
    encoding: TableEncoding
    classes: Labels | None
    link: str
    raw_scores: RawScores | None
    source: str
    n_roundings: int
    unit: float
    slack: float = 0.0
    weighing: float = 0.0
    divisor: int = 1
    respond: RawScores | None = None
    refused: Sequence[tuple[int, bool]] = ()

    def sum_up(self) -> Reading:
        """The sum of all trees: a function per set of columns that share a tree, or the trees themselves."""
        if not self.trees:
            raise ValueError(f"{self.source} has no trees, so it gives every row the same answer: train it.")
        parts = part_trees(self.trees, self.encoding)
        tie = self._measure_tie(parts)
        losses = bound_sum_error(self.n_roundings, 1.0, self.unit) + self.weighing
        functions, constant = sum_trees(parts, self.encoding, self.base.size, losses, self.divisor, tie)
        intercept = constant + self.base
        rounding = float(np.abs(intercept).max()) * EPSILON
        few = [tree for _, own in parts.few for tree in own]
        fixed = 8 * self.unit if tie else self.bound_additions(few) + self.bound_weighing(few)
        reading = Reading(
            self.encoding,
            functions.shapes,
            functions.grids,
            functions.tables,
            intercept if intercept.size > 1 else float(intercept[0]),
            self.classes,
            fixed + self.slack + functions.error + rounding,
            self.link,
            self.raw_scores,
            self.source,
            refused=self.refused,
            trees=functions.trees,
            respond=self.respond,
        )
        if self.respond is not None:
            start, error = reading.locate_answers(lambda answers: answers[:, 1] > 0.5)
            return replace(reading, arithmetic_error=reading.arithmetic_error + error).part_ties(start)
        return reading.part_ties(tie) if tie else reading

    def bound_additions(self, trees: Sequence[Tree]) -> float:
        """How far any score that the library adds up may lie from the exact sum, by the base and some of its trees."""
        largest = np.array([tree.largest_leaves for tree in trees]).reshape(-1, self.base.size) / self.divisor
        return max(
            bound_sum_error(self.n_roundings, abs(start) + math.fsum(own), self.unit)
            for own, start in zip(largest.T.tolist(), self.base.tolist(), strict=True)
        )

    def bound_weighing(self, trees: Sequence[Tree]) -> float:
        """What weighing the leaves of some trees may lose."""
        return self.weighing * math.fsum(float(tree.largest_leaves.max()) for tree in trees) / self.divisor

    def _measure_tie(self, parts: Parts) -> float:
        """By how much scores of classes are moved apart where shares of trees can be equal; 0 where they are not moved.

        Shares of pure leaves are 0 or 1: their sums are whole numbers, in any order of additions, and often equal.
        """
        rest = [*parts.lone, *(tree for _, own in parts.few for tree in own)]
        is_known = self.link == "share" and len(self.trees) <= _MOST_SHARES
        return _TIE if parts.many and is_known and all(is_whole(tree.value).all() for tree in rest) else 0.0


def is_whole(shares: FloatArray) -> BoolArray:
    """Whether additions of such shares lose nothing, (n, 1) of (n, n_outputs)."""
    return np.asarray((np.rint(shares * SHARES) == shares * SHARES).all(axis=1, keepdims=True))


class Parts(NamedTuple):
    """Trees by what becomes of them: those without splits, and those that join few columns, or many, by columns."""

    lone: list[Tree]
    few: list[tuple[dict[int, CellAxis], list[Tree]]]
    many: list[list[Tree]]


def part_trees(trees: Sequence[Tree], encoding: TableEncoding) -> Parts:
    """Trees in groups that share no column."""
    found = Parts([], [], [])
    joined = []
    for tree in trees:
        nodes = tree.nodes
        is_leaf = tree.feature[nodes] == LEAF
        if not np.isfinite(tree.value[nodes[is_leaf]]).all():
            raise ValueError(NO_LEAF)
        asked = set(tree.feature[nodes[~is_leaf]].tolist())
        if asked:
            joined.append((asked, tree))
        else:
            found.lone.append(tree)
    for features, own in connect(joined):
        if not is_small(dict.fromkeys(features, 1), encoding):
            found.many.append(own)
            continue
        axes = _make_axes(features, own, encoding)
        if is_small({feature: axis.size for feature, axis in axes.items()}, encoding):
            found.few.append((axes, own))
        else:
            found.many.append(own)
    return found


def bound_sum_error(n_summands: int, total: float, unit: float) -> float:
    """How far a sum that is rounded after every addition may lie from the exact one, at most.

    `total`: the sum of the largest magnitudes of the summands; `unit`: relative error of one addition.
    """
    return n_summands * unit * total * (1 + 2 * n_summands * unit) * (1 + 4 * EPSILON)


def place_values(values: ArrayLike, output: int, n_outputs: int) -> FloatArray:
    """The values of a tree's nodes, where the tree adds to one of several scores."""
    found = np.zeros((np.size(values), n_outputs))
    found[:, output] = values
    return found


def sum_trees(
    parts: Parts, encoding: TableEncoding, n_outputs: int, losses: float = 0.0, divisor: int = 1, tie: float = 0.0
) -> tuple[CellFunctions, FloatArray]:
    """The sum of trees as functions of few columns and terms of trees, and the sum of trees without a split.

    `losses`: what the library may lose by additions, relative to the leaves that a row reaches. `tie`: 0, or by how
    much the scores of shares are moved apart: rows with a share that rounds have that much more of an error.
    """
    functions, constant = CellFunctions(), Total((), n_outputs)
    for tree in parts.lone:
        constant.add((), tree.value[0] / divisor)
    for axes, own in parts.few:
        total = Total(tuple(axis.size for axis in axes.values()), n_outputs)
        for tree in own:
            for masks, leaf in _list_leaves(tree, 0, axes, {}):
                cells: Any = np.ix_(*(masks.get(feature, axis.all_cells) for feature, axis in axes.items()))
                total.add(cells, leaf / divisor)
        functions.take(axes, total)
    for own in parts.many:
        shape, lone = shape_forest(join_forests([tree.forest for tree in own]), encoding, losses, divisor)
        if shape is not None and tie:
            largest = divisor * (1 + (n_outputs + 8) * tie / losses)
            shape = shape._replace(magnitudes=np.where(is_whole(shape.values), 0.0, largest).repeat(n_outputs, axis=1))
        functions.trees += [shape] if shape is not None else []
        for leaf in lone:
            constant.add((), leaf / divisor)
    functions.error += constant.error
    return functions, constant.values.reshape(n_outputs)


def _make_axes(features: Sequence[int], trees: Sequence[Tree], encoding: TableEncoding) -> dict[int, CellAxis]:
    edges: dict[int, set[float]] = {feature: set() for feature in features}
    refuses: set[int] = set()
    for tree in trees:
        for node in tree.splits.tolist():
            feature, edge = int(tree.feature[node]), float(tree.edge[node])
            is_number = node not in tree.left_codes
            if is_number == (feature in encoding.categories):
                raise ValueError(
                    f"Column {encoding.name(feature)!r} is split both as a number and as a category, which no table "
                    "can hold."
                )
            if is_number and math.isnan(edge):
                raise ValueError(NO_THRESHOLD)
            if is_number and math.isfinite(edge):
                edges[feature].add(edge)
            if not tree.takes_missing:
                refuses.add(feature)
    return {
        feature: CellAxis(
            feature,
            np.array(sorted(edges[feature]), dtype=np.float64),
            len(encoding.categories[feature]) if feature in encoding.categories else None,
            feature not in refuses,
        )
        for feature in features
    }


def _list_leaves(
    tree: Tree, node: int, axes: Mapping[int, CellAxis], masks: Mapping[int, BoolArray]
) -> Iterator[tuple[Mapping[int, BoolArray], FloatArray]]:
    """Every leaf that some cell reaches, with the cells of each column that do."""
    feature = int(tree.feature[node])
    if feature == LEAF:
        yield masks, tree.value[node]
        return
    axis = axes[feature]
    left = _select_left(axis, tree, node)
    before = masks.get(feature, axis.all_cells)
    for half, child in ((left, tree.left[node]), (~left, tree.right[node])):
        cells = before & half
        if cells.any():
            yield from _list_leaves(tree, int(child), axes, {**masks, feature: cells})


def _select_left(axis: CellAxis, tree: Tree, node: int) -> BoolArray:
    """The cells whose rows go left."""
    left = np.zeros(axis.size, dtype=bool)
    if axis.n_codes is None:
        edge = float(tree.edge[node])
        left[: int(np.searchsorted(axis.edges, edge)) + 1] = edge > -math.inf  # x < edge
        left[axis.edges.size + 1 :] = tree.missing_left[node]
    else:
        codes = tree.left_codes[node]
        left[[code for code in codes if 0 <= code < axis.n_codes]] = True
        left[-2:] = UNSEEN in codes, tree.missing_left[node]
    return left
