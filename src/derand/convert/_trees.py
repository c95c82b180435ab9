"""Decision trees in one common form, and their sums as functions of columns.

A reader of trees gives a `TreeReading`: arrays, before anything is summed. Owns which leaves reach which cells, and
what the library's additions may lose. Must not know any library: a reader says how its library compares by the edge
that it gives a split (`x >= edge` goes right).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.convert._cells import CellAxis, CellFunctions, Total, connect, require_small
from derand.convert._reading import RawScores, Reading
from derand.tables import Labels, TableEncoding

SINGLE = 2.0**-24
DOUBLE = 2.0**-53
LEAF, UNSEEN = -1, -1


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
        """The nodes that the root leads to, itself included; libraries keep some that were pruned."""
        found = {0: None}
        waiting = [0] if self.feature[0] != LEAF else []
        while waiting:
            node = waiting.pop()
            for child in (int(self.left[node]), int(self.right[node])):
                if child not in found:
                    found[child] = None
                    if self.feature[child] != LEAF:
                        waiting.append(child)
        return np.array(list(found))

    @property
    def splits(self) -> IntArray:
        """Those of them that are no leaves."""
        nodes = self.nodes
        return np.asarray(nodes[self.feature[nodes] != LEAF])

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
    cure : str
        What the user can change where too many columns are joined, such as "train with max_depth=1", for the error.
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
    cure: str
    slack: float = 0.0

    def sum_up(self) -> Reading:
        """The sum of all trees as one function per set of columns that share a tree."""
        functions, constant = sum_trees(self.trees, self.encoding, self.base.size, self.cure)
        intercept = constant + self.base
        rounding = float(np.abs(intercept).max()) * EPSILON
        return Reading(
            self.encoding,
            functions.shapes,
            functions.grids,
            functions.tables,
            intercept if intercept.size > 1 else float(intercept[0]),
            self.classes,
            self.bound_additions() + self.slack + functions.error + rounding,
            self.link,
            self.raw_scores,
            self.source,
        )

    def bound_additions(self) -> float:
        """How far any score that the library adds up may lie from the exact sum."""
        largest = np.array([tree.largest_leaves for tree in self.trees]).reshape(-1, self.base.size)
        return max(
            bound_sum_error(self.n_roundings, abs(start) + math.fsum(own), self.unit)
            for own, start in zip(largest.T.tolist(), self.base.tolist(), strict=True)
        )


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
    trees: Sequence[Tree], encoding: TableEncoding, n_outputs: int, cure: str
) -> tuple[CellFunctions, FloatArray]:
    """The sum of trees as one function per set of columns that share a tree, and the sum of trees without a split."""
    functions, constant = CellFunctions(), Total((), n_outputs)
    joined = []
    for tree in trees:
        asked = set(tree.feature[tree.splits].tolist())
        if asked:
            joined.append((asked, tree))
        else:
            constant.add((), tree.value[0])
    for features, own in connect(joined):
        axes = _make_axes(features, own, encoding)
        require_small("Trees", {feature: axis.size for feature, axis in axes.items()}, encoding, cure)
        total = Total(tuple(axis.size for axis in axes.values()), n_outputs)
        for tree in own:
            for masks, leaf in _list_leaves(tree, 0, axes, {}):
                total.add(np.ix_(*(masks.get(feature, axis.all_cells) for feature, axis in axes.items())), leaf)
        functions.take(axes, total)
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
