"""Sums of decision trees as functions of real values: one per column, or per set of columns that trees join.

Owns which leaves reach which cells. Must not know how they are summed exactly (`_sums`), nor any library: an importer
says how its library compares by the edge that it gives a split (`x >= edge` goes right).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray
from derand.convert._cells import CellAxis, CellFunctions
from derand.convert._sums import Total, connect, require_small
from derand.model import CategoryShape, GridShape, Shape
from derand.tables import TableEncoding


class Split(NamedTuple):
    """A split of a tree in two: by a number at an edge, or by categories.

    Attributes
    ----------
    feature : int
    left, right : Split, float or array of shape (n_outputs,)
        What follows; numbers are leaves.
    edge : float
        Rows with `x >= edge` go right; infinity is allowed. Of categories it is not read.
    left_codes : frozenset of int, or None
        The codes of categories that go left; all others go right. None for a number.
    unseen_left : bool
        Whether a category that training did not see goes left.
    missing_left : bool or None
        Whether a missing value goes left; None where the library refuses one in a column of numbers.
    """

    feature: int
    left: Split | float | FloatArray
    right: Split | float | FloatArray
    edge: float = 0.0
    left_codes: frozenset[int] | None = None
    unseen_left: bool = False
    missing_left: bool | None = None


Node = Split | float | FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class TreeSum:
    """A sum of trees; `error` is how far its numbers, together, may lie from the exact sum."""

    shapes: tuple[Shape, ...]
    grids: tuple[GridShape, ...]
    tables: tuple[CategoryShape, ...]
    constant: float | FloatArray
    error: float


def sum_trees(trees: Sequence[Node], encoding: TableEncoding, *, n_outputs: int = 1, cure: str) -> TreeSum:
    """The sum of trees as one function per set of columns that share a tree.

    `trees`: leaves of one output are numbers, of several arrays of shape (n_outputs,); `cure`: what the user can change
    where too many columns are joined, such as "train with max_depth=1", for the error. The result: with values of shape
    (n_cells,), of several outputs (n_cells, n_outputs).
    """
    functions = CellFunctions()
    constant = Total((), n_outputs)
    for tree in trees:
        if not isinstance(tree, Split):
            constant.add((), tree)
    splits = [(_find_features(tree), tree) for tree in trees if isinstance(tree, Split)]
    for features, own in connect(splits):
        axes = _make_axes(features, own, encoding)
        require_small("Trees", {feature: axis.size for feature, axis in axes.items()}, encoding, cure)
        total = Total(tuple(axis.size for axis in axes.values()), n_outputs)
        for tree in own:
            for masks, leaf in _list_leaves(tree, axes, {}):
                total.add(np.ix_(*(masks.get(feature, axis.all_cells) for feature, axis in axes.items())), leaf)
        functions.take(axes, total)
    flat = constant.values
    return TreeSum(
        tuple(functions.shapes),
        tuple(functions.grids),
        tuple(functions.tables),
        float(flat) if n_outputs == 1 else flat,
        functions.error + constant.error,
    )


def bound_sum_error(n_summands: int, total: float, unit: float) -> float:
    """How far a sum that is rounded after every addition may lie from the exact one, at most.

    `total`: the sum of the largest magnitudes of the summands; `unit`: relative error of one addition: 2**-53 of
    doubles, 2**-24 of single precision.
    """
    return n_summands * unit * total * (1 + 2 * n_summands * unit) * (1 + 4 * EPSILON)


def find_largest_leaf(tree: Node) -> float:
    """The largest magnitude of a leaf of a tree."""
    if isinstance(tree, Split):
        return max(find_largest_leaf(tree.left), find_largest_leaf(tree.right))
    return float(np.abs(tree).max())


def bound_leaves(tree: Node, n_outputs: int) -> FloatArray:
    """The largest magnitude of a leaf of a tree, by output."""
    if isinstance(tree, Split):
        return np.maximum(bound_leaves(tree.left, n_outputs), bound_leaves(tree.right, n_outputs))
    return np.abs(np.reshape(tree, n_outputs))


def _find_features(tree: Node) -> set[int]:
    if not isinstance(tree, Split):
        return set()
    return {tree.feature} | _find_features(tree.left) | _find_features(tree.right)


def _list_splits(tree: Node) -> Iterator[Split]:
    if isinstance(tree, Split):
        yield tree
        yield from _list_splits(tree.left)
        yield from _list_splits(tree.right)


def _make_axes(features: Sequence[int], trees: Sequence[Split], encoding: TableEncoding) -> dict[int, CellAxis]:
    edges: dict[int, set[float]] = {feature: set() for feature in features}
    refuses: set[int] = set()
    for tree in trees:
        for split in _list_splits(tree):
            if (split.left_codes is None) == (split.feature in encoding.categories):
                raise ValueError(
                    f"Column {encoding.name(split.feature)!r} is split both as a number and as a category, which no "
                    "table can hold."
                )
            if split.left_codes is None and math.isfinite(split.edge):
                edges[split.feature].add(float(split.edge))
            if split.missing_left is None:
                refuses.add(split.feature)
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
    tree: Node, axes: Mapping[int, CellAxis], masks: Mapping[int, BoolArray]
) -> Iterator[tuple[Mapping[int, BoolArray], float | FloatArray]]:
    """Every leaf that some cell reaches, with the cells of each column that do."""
    if not isinstance(tree, Split):
        yield masks, tree
        return
    axis = axes[tree.feature]
    left = _find_left(axis, tree)
    before = masks.get(tree.feature, axis.all_cells)
    for side, child in ((left, tree.left), (~left, tree.right)):
        cells = before & side
        if cells.any():
            yield from _list_leaves(child, axes, {**masks, tree.feature: cells})


def _find_left(axis: CellAxis, split: Split) -> BoolArray:
    """The cells whose rows go left."""
    left = np.zeros(axis.size, dtype=bool)
    if axis.n_codes is None:
        n_cells = axis.edges.size + 1
        left[: int(np.searchsorted(axis.edges, split.edge)) + 1] = True  # x < edge
        if split.edge == -math.inf:
            left[:] = False
        left[n_cells:] = bool(split.missing_left)
        return left
    assert split.left_codes is not None  # `_make_axes` has seen to that
    left[[code for code in split.left_codes if code < axis.n_codes]] = True
    left[-2] = split.unseen_left
    left[-1] = split.unseen_left if split.missing_left is None else split.missing_left
    return left
