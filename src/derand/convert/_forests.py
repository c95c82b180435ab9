"""Nodes of many trees in one set of arrays, and the term of trees that they become.

Owns what a term does not hold: infinite edges, splits that split nothing, nodes to which several lead, nodes to which
none does. Must not know any library, nor what trees are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.model import TreeShape
from derand.tables import TableEncoding

LEAF, UNSEEN = -1, -1
LOWEST = float(-np.finfo(np.float64).max)
"""The edge of a split that parts missing numbers from all others: no finite number lies below it."""
MOST_NODES = 2**21
"""Of one term, for trees in which several nodes lead to the same one: each gets a copy of it."""
NO_THRESHOLD = "A threshold of the trees is NaN, so rows have no path through them: train the model again."
NO_LEAF = "A leaf of the trees is NaN or infinite, so their sum decides nothing: train the model again."


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Nodes of trees as arrays with one entry each; `feature` is -1 for a leaf.

    `roots` has one entry per tree; `value` (n_nodes, n_outputs) is read of leaves, the children, `edge` and
    `missing_left` of splits; `left_codes` are those of splits by category; columns in `refused` take no missing value.
    """

    roots: IntArray
    feature: IntArray
    edge: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    missing_left: BoolArray
    left_codes: Mapping[int, frozenset[int]]
    refused: frozenset[int]


def open_shape(shape: TreeShape) -> Forest:
    """The nodes of a sum of trees: splits first, then leaves, whose values are not divided yet."""
    n_splits, n_leaves = shape.columns.size, len(shape.values)

    def number(children: IntArray) -> IntArray:
        return np.concatenate([np.where(children >= 0, children, n_splits + ~children), np.zeros(n_leaves, np.int64)])

    codes = zip(shape.category_splits.tolist(), shape.left_codes, strict=True)
    return Forest(
        shape.roots,
        np.concatenate([shape.columns, np.full(n_leaves, LEAF)]),
        np.concatenate([shape.edges, np.zeros(n_leaves)]),
        number(shape.left),
        number(shape.right),
        np.concatenate([np.zeros((n_splits, shape.values.shape[1])), shape.values]),
        np.concatenate([shape.missing_left, np.zeros(n_leaves, dtype=bool)]),
        {split: frozenset(own.tolist()) for split, own in codes},
        frozenset(shape.refused),
    )


def join_forests(parts: Sequence[Forest]) -> Forest:
    """All nodes in one set of arrays."""
    starts = np.cumsum([0, *(one.feature.size for one in parts)])[:-1].tolist()

    def join(name: str, moved: bool = False) -> np.ndarray:
        arrays = (getattr(one, name) + (start if moved else 0) for one, start in zip(parts, starts, strict=True))
        return np.concatenate([np.asarray(one) for one in arrays])

    return Forest(
        join("roots", moved=True),
        join("feature"),
        join("edge"),
        join("left", moved=True),
        join("right", moved=True),
        np.concatenate([one.value for one in parts]),
        np.concatenate([one.missing_left for one in parts]),
        {node + start: own for one, start in zip(parts, starts, strict=True) for node, own in one.left_codes.items()},
        frozenset().union(*(one.refused for one in parts)),
    )


def shape_forest(
    forest: Forest, encoding: TableEncoding, rounding: float = 0.0, divisor: int = 1
) -> tuple[TreeShape | None, list[FloatArray]]:
    """A sum of trees as a term holds them, and what trees add that split nothing; None where no tree splits."""
    forest = _drop_idle(forest)
    is_lone = forest.feature[forest.roots] == LEAF
    lone = list(forest.value[forest.roots[is_lone]])
    if is_lone.all():
        return None, lone
    forest = replace(forest, roots=forest.roots[~is_lone])
    children = np.concatenate([forest.left[forest.feature != LEAF], forest.right[forest.feature != LEAF]])
    if np.unique(children).size < children.size:
        forest = _Copies(forest).forest
    nodes, tree, left, right = _number_nodes(forest)
    feature = forest.feature[nodes]
    is_leaf = feature == LEAF
    numbers = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    splits, columns = nodes[~is_leaf], feature[~is_leaf]
    _require_sound(forest, splits, nodes[is_leaf], encoding)
    is_first = np.concatenate([[True], np.diff(tree) > 0])
    at = np.flatnonzero(np.isin(columns, list(encoding.categories)))
    return TreeShape(
        numbers[is_first],
        columns,
        np.where(np.isfinite(forest.edge[splits]), forest.edge[splits], 0.0),
        numbers[left[~is_leaf]],
        numbers[right[~is_leaf]],
        forest.value[nodes[is_leaf]],
        forest.missing_left[splits],
        at,
        tuple(np.array(sorted(forest.left_codes[node]), dtype=np.int64) for node in splits[at].tolist()),
        tuple((column, len(encoding.categories[column])) for column in np.unique(columns[at]).tolist()),
        tuple(sorted(forest.refused & set(columns.tolist()))),
        rounding,
        divisor,
    ), lone


def _require_sound(forest: Forest, splits: IntArray, leaves: IntArray, encoding: TableEncoding) -> None:
    """Refuse trees with NaN in thresholds or leaves, and columns that are numbers here and categories there."""
    is_category = np.isin(splits, list(forest.left_codes))
    odd = splits[np.isin(forest.feature[splits], list(encoding.categories)) != is_category]
    if odd.size:
        raise ValueError(
            f"Column {encoding.name(int(forest.feature[odd[0]]))!r} is split both as a number and as a category, which "
            "no table can hold."
        )
    if np.isnan(forest.edge[splits[~is_category]]).any():
        raise ValueError(NO_THRESHOLD)
    if not np.isfinite(forest.value[leaves]).all():
        raise ValueError(NO_LEAF)


def _drop_idle(forest: Forest) -> Forest:
    """The same trees with finite edges; splits that send every value to one side are left out.

    An edge of -infinity sends all numbers to the right, as LOWEST does; one of infinity sends all of them to the left,
    as LOWEST does with both children swapped, and missing values with them.
    """
    is_split = forest.feature != LEAF
    is_category = np.zeros(forest.feature.size, dtype=bool)
    is_category[list(forest.left_codes)] = True
    is_number = is_split & ~is_category
    takes = ~np.isin(forest.feature, list(forest.refused))
    never_left, always_left = (is_number & (forest.edge == end) for end in (-math.inf, math.inf))
    to_right = never_left & ~(takes & forest.missing_left)
    to_left = always_left & ~(takes & ~forest.missing_left)
    to_left |= is_split & (forest.left == forest.right)
    heirs = np.arange(forest.feature.size)
    heirs = np.where(to_left, forest.left, np.where(to_right, forest.right, heirs))
    while (heirs[heirs] != heirs).any():
        heirs = heirs[heirs]
    return replace(
        forest,
        roots=heirs[forest.roots],
        edge=np.where(never_left | always_left, LOWEST, forest.edge),
        left=np.where(is_split, heirs[np.where(always_left, forest.right, forest.left)], 0),
        right=np.where(is_split, heirs[np.where(always_left, forest.left, forest.right)], 0),
        missing_left=forest.missing_left ^ always_left,
    )


_Ways = dict[int, tuple[float, float, bool]]
"""By column the numbers that reach a node, from one on and below another, and whether missing values do."""


class _Copies:
    """Trees in which several nodes lead to the same one, with a copy of it for each, of what rows can reach there."""

    def __init__(self, forest: Forest) -> None:
        self._forest, self._nodes = forest, list[int]()
        self._left, self._right = list[int](), list[int]()
        self._codes: dict[int, frozenset[int]] = {}
        roots = [self._add(int(root), {}) for root in forest.roots]
        nodes = np.array(self._nodes, dtype=np.int64)
        self.forest = replace(
            forest,
            roots=np.array(roots, dtype=np.int64),
            feature=forest.feature[nodes],
            edge=forest.edge[nodes],
            left=np.array(self._left, dtype=np.int64),
            right=np.array(self._right, dtype=np.int64),
            value=forest.value[nodes],
            missing_left=forest.missing_left[nodes],
            left_codes=self._codes,
        )

    def _add(self, node: int, ways: _Ways) -> int:
        """The number of a copy; splits that send all that reach them to one side are left out."""
        forest = self._forest
        while (column := int(forest.feature[node])) != LEAF and node not in forest.left_codes:
            low, high, gap = ways.get(column, (-math.inf, math.inf, column not in forest.refused))
            edge, missing_left = float(forest.edge[node]), bool(forest.missing_left[node])
            sides = [(low, min(high, edge), gap and missing_left), (max(low, edge), high, gap and not missing_left)]
            is_reached = [first < last or own for first, last, own in sides]
            if all(is_reached):
                break
            node = int(forest.left[node] if is_reached[0] else forest.right[node])
        at = len(self._nodes)
        if at > MOST_NODES:
            raise ValueError(
                f"The trees need more than {MOST_NODES} splits, since several nodes lead to the same ones: train fewer "
                "or smaller trees, without zero_as_missing (LightGBM) and without bins in columns of their own."
            )
        self._nodes.append(node)
        self._left.append(0)
        self._right.append(0)
        if column == LEAF:
            return at
        if node in forest.left_codes:
            self._codes[at] = forest.left_codes[node]
            self._left[at], self._right[at] = (self._add(int(one[node]), ways) for one in (forest.left, forest.right))
        else:
            self._left[at] = self._add(int(forest.left[node]), {**ways, column: sides[0]})
            self._right[at] = self._add(int(forest.right[node]), {**ways, column: sides[1]})
        return at


def _number_nodes(forest: Forest) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Nodes tree by tree, each behind its parent: their old numbers, their trees, and where their children stand."""
    roots = forest.roots
    levels, trees = [roots], [np.arange(roots.size)]
    lefts, rights, end = list[IntArray](), list[IntArray](), roots.size
    while levels[-1].size:
        level, tree = levels[-1], trees[-1]
        is_split = forest.feature[level] != LEAF
        count = int(is_split.sum())
        left, right = np.zeros((2, level.size), dtype=np.int64)
        left[is_split], right[is_split] = end + np.arange(count), end + count + np.arange(count)
        lefts.append(left)
        rights.append(right)
        end += 2 * count
        split = level[is_split]
        levels.append(np.concatenate([forest.left[split], forest.right[split]]))
        trees.append(np.concatenate([tree[is_split]] * 2))
    nodes, tree = np.concatenate(levels), np.concatenate(trees)
    order = np.argsort(tree, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    left, right = (places[np.concatenate(one)[order]] for one in (lefts, rights))
    return nodes[order], tree[order], left, right
