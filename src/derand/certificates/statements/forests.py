"""Forests in two copies that differ in some columns: how far these columns alone can move a sum of trees.

The sum of the first copy less that of the second, which has columns of its own in place of some. Trees that do not ask
these columns cancel and are left out. Leaves count as they are, without the errors of the model that is meant. Owns
the arrays of such forests, and how far leaves of a tree lie apart. Must not know promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray, freeze
from derand.certificates.bounds.tree_packing import PackedTrees
from derand.certificates.statements.domain import Domain
from derand.kernels.trees.forest import Forest

_MOST_LEAVES = 1_024
"""Leaves of a tree that are compared two by two; of larger trees all leaves count as near each other."""


class Owners:
    """Which tree asks which columns where."""

    def __init__(self, forest: Forest) -> None:
        trees, nodes = np.arange(forest.roots.size), forest.roots.astype(np.int64)
        every, leaves = [np.empty((2, 0), dtype=np.int64)], [np.empty((2, 0), dtype=np.int64)]
        while nodes.size:
            every.append(np.stack([trees, nodes]))
            children = forest.splits[nodes, 2:].astype(np.int64)
            trees, nodes = np.repeat(trees, 2), children.ravel()
            leaves.append(np.stack([trees[nodes < 0], ~nodes[nodes < 0]]))
            trees, nodes = trees[nodes >= 0], nodes[nodes >= 0]
        self.trees, self.nodes = np.concatenate(every, axis=1)
        self.leaf_trees, self.leaves = np.concatenate(leaves, axis=1)
        self.columns, self.cuts = forest.splits[self.nodes, 0] >> 1, forest.splits[self.nodes, 1]

    def find_trees(self, columns: Sequence[int], first: int | None = None, last: int | None = None) -> IntArray:
        """The trees that ask one of some columns of the forest, of a number by an edge between two bins."""
        asks = np.isin(self.columns, np.asarray(columns))
        if first is not None and last is not None:
            asks &= (self.cuts > first) & (self.cuts <= last)
        return np.unique(self.trees[asks])


def double(packed: PackedTrees, columns: Sequence[int], trees: IntArray, n_features: int) -> PackedTrees:
    """Some trees in two copies; columns of the forest that differ are columns from `n_features` on in the second."""
    forest, n_columns = packed.forest, packed.columns.size
    n_splits, n_leaves = len(forest.splits), len(forest.leaves)
    second = forest.splits.copy()
    at = second[:, 0] >> 1
    for place, column in enumerate(columns):
        second[at == column, 0] = 2 * (n_columns + place) + (second[at == column, 0] & 1)
    second[:, 2:] = np.where(second[:, 2:] >= 0, second[:, 2:] + n_splits, second[:, 2:] - n_leaves)
    scores = (forest.leaves[:, 0] - forest.leaves[:, 1]) // 2  # least less the least of the negative: twice the score
    leaves = np.concatenate([scores, -scores])
    roots = forest.roots[trees]
    edges = [forest.edges[forest.edge_starts[one] : forest.edge_starts[one + 1]] for one in columns]
    made = Forest(
        np.concatenate([roots, roots + n_splits]).astype(np.int32),
        np.ascontiguousarray(np.concatenate([forest.splits, second]), dtype=np.int32),
        np.ascontiguousarray(np.stack([leaves, -leaves], axis=1)),
        np.zeros(2, dtype=np.int64),
        np.concatenate([forest.edges, *edges]),
        np.concatenate([forest.edge_starts, forest.edge_starts[-1] + np.cumsum([len(one) for one in edges])]).astype(
            np.int64
        ),
        np.concatenate([forest.n_classes, forest.n_classes[list(columns)]]),
        forest.sets,
        forest.depth,
    )
    known = {n_columns + place: packed.categories[one] for place, one in enumerate(columns) if one in packed.categories}
    return PackedTrees(
        made,
        np.concatenate([packed.columns, n_features + np.arange(len(columns))]),
        {**packed.categories, **known},
        np.concatenate([packed.takes_missing, packed.takes_missing[list(columns)]]),
        packed.shift,
    )


def widen_domain(domain: Domain, columns: Sequence[int]) -> Domain:
    """The domain with some columns of the model once more at its end."""
    every, n_features = list(columns), domain.low.size
    twice = {n_features + place: domain.codes[one] for place, one in enumerate(every) if one in domain.codes}
    return replace(
        domain,
        low=freeze(np.append(domain.low, domain.low[every])),
        high=freeze(np.append(domain.high, domain.high[every])),
        whole=freeze(np.append(domain.whole, domain.whole[every])),
        codes={**domain.codes, **twice},
        missing=domain.missing | {n_features + place for place, one in enumerate(every) if one in domain.missing},
    )


def bound_tree_changes(packed: PackedTrees, domain: Domain, radius: float, norm: float, units: FloatArray) -> float:
    """An upper bound of how far the sum changes where numbers change by that much: tree by tree.

    Categories, and which numbers are missing, are the same before and after.
    """
    forest, owners, total = packed.forest, Owners(packed.forest), 0.0
    scores = (forest.leaves[:, 0] - forest.leaves[:, 1]) / 2 * 2.0**-packed.shift
    for tree in range(forest.roots.size):
        leaves = owners.leaves[owners.leaf_trees == tree]
        if leaves.size > _MOST_LEAVES:
            total += float(np.ptp(scores[leaves]))
            continue
        boxes = _Boxes(packed, domain, int(forest.roots[tree]))
        own = scores[boxes.leaves]
        near = boxes.lie_near(radius, norm, units[packed.columns])
        total += float(np.where(near, np.abs(own[:, None] - own), 0.0).max(initial=0.0))
    return total * (1 + EPSILON * (forest.roots.size + 8))


class _Boxes:
    """The leaves of a tree that the domain reaches, and what each of them asks of every column."""

    def __init__(self, packed: PackedTrees, domain: Domain, root: int) -> None:
        self.forest, n_columns = packed.forest, packed.columns.size
        starts = packed.forest.edge_starts
        own = np.split(packed.forest.edges, starts[1:-1])
        self._edges = [np.concatenate([[-np.inf], one, [np.inf]]) for one in own]  # missing values are beyond the last
        model_columns = packed.columns
        at = [int(column) for column in model_columns]
        lows, highs = domain.low[at].copy(), domain.high[at].copy()
        allowed = np.zeros((n_columns, int(self.forest.n_classes.max(initial=1))), dtype=bool)
        for column, category in packed.categories.items():
            allowed[column, category.classes[category.locate(domain.codes[at[column]])]] = True
        missing = np.array([one in domain.missing for one in at])
        found: list[tuple[int, FloatArray, FloatArray, BoolArray, BoolArray]] = []
        waiting = [(root, lows, highs, allowed, missing)]
        while waiting:
            node, low, high, classes, misses = waiting.pop()
            if node < 0:
                found.append((~node, low, high, classes, misses))
                continue
            waiting += [one for one in self._divide(node, low, high, classes, misses) if one is not None]
        self.leaves = np.array([one[0] for one in found], dtype=np.int64)
        self.low, self.high, self.classes, self.misses = (np.array([one[k] for one in found]) for k in range(1, 5))
        self.is_number = self.forest.n_classes == 0

    def _divide(
        self, node: int, low: FloatArray, high: FloatArray, classes: BoolArray, misses: BoolArray
    ) -> list[tuple[int, FloatArray, FloatArray, BoolArray, BoolArray] | None]:
        """Both children of a split; None for one that nothing reaches."""
        both, cut, *children = self.forest.splits[node].tolist()
        column, missing_left, parts = both >> 1, bool(both & 1), []
        for side, child in enumerate(children):
            low_, high_, classes_, misses_ = low.copy(), high.copy(), classes.copy(), misses.copy()
            if cut < 0:
                words = self.forest.sets[~cut].view(np.uint64)
                index = np.arange(classes.shape[1])
                goes_left = (words[index >> 6] >> (index & 63).astype(np.uint64)) & np.uint64(1) == 1
                classes_[column] &= goes_left if side == 0 else ~goes_left
                parts.append((child, low_, high_, classes_, misses_) if classes_[column].any() else None)
                continue
            edge = self._edges[column][cut]
            if side == 0:
                high_[column] = min(high[column], np.nextafter(edge, -np.inf))
            else:
                low_[column] = max(low[column], edge)
            misses_[column] &= missing_left == (side == 0)
            is_open = low_[column] <= high_[column] or misses_[column]
            parts.append((child, low_, high_, classes_, misses_) if is_open else None)
        return parts

    def lie_near(self, radius: float, norm: float, units: FloatArray) -> BoolArray:
        """Which two leaves hold rows that lie within a radius of each other, (n_leaves, n_leaves); some more, perhaps.

        Distances are rounded downward.
        """
        count = self.leaves.size
        near, sizes = np.ones((count, count), dtype=bool), np.zeros((count, count))
        for column in range(units.size):
            if not self.is_number[column]:
                near &= (self.classes[:, None, column] & self.classes[None, :, column]).any(axis=-1)
                continue
            low, high, misses = self.low[:, column], self.high[:, column], self.misses[:, column]
            with np.errstate(invalid="ignore"):
                gaps = np.maximum(np.maximum(low[None] - high[:, None], low[:, None] - high[None]), 0.0)
            gaps = np.where(misses[:, None] & misses[None], 0.0, gaps / units[column] * (1 - 4 * EPSILON))
            sizes = np.maximum(sizes, gaps) if norm == np.inf else sizes + gaps**norm
        return near & (sizes <= (radius if norm == np.inf else radius**norm) * (1 + 64 * EPSILON))
