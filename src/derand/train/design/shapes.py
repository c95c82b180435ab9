"""From fitted functions to a model on a grid. Must not know how they are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand.kernels.trees.packing import divide_grid
from derand.model import AdditiveEnsemble, GridShape, TreeShape
from derand.train.design.columns import Functions
from derand.train.design.joint import JointShape

_SUPPORT = 2**16  # whole scores between the lowest and the highest sum
_TREE_SUPPORT = 2**30  # of trees, which have none
_LOWEST = float(-np.finfo(np.float64).max)  # the edge of a split that parts missing numbers from all others
_PAIR_SUPPORT = 2**13  # the same of two of several classes: there are many pmfs to add up


def build_model(functions: Functions, intercept: FloatArray, n_features: int) -> AdditiveEnsemble:
    """The model of two classes, or of several, on a grid on which its pmfs can be afforded.

    `intercept` has shape () or (n_classes,); functions of two classes are those of the logarithm of odds.
    """
    shapes, tables, grids, joints = functions
    trees: list[TreeShape] = []
    if intercept.ndim:
        support, ranges = _PAIR_SUPPORT, np.zeros((intercept.size, intercept.size))
        for values in _list_values(functions, intercept.size):
            for label in range(intercept.size):
                ranges[label] += np.ptp(values - values[:, label : label + 1], axis=0)
        total = float(ranges.max())
    else:
        support, total = _SUPPORT, sum(measure_spans(functions))
        if _are_apart(joints):
            grids = [*grids, *map(_write_grid, joints)]
        elif joints:
            support = _TREE_SUPPORT
    levels = max(1, int(support / total)) if total > support / 2**40 else 1000
    if joints and not _are_apart(joints):
        trees, constant = grow_trees(joints, levels)
        intercept = intercept + constant
    own: Any = intercept if intercept.ndim else float(intercept)
    return AdditiveEnsemble.from_shapes(
        shapes, tables, intercept=own, n_features=n_features, levels=levels, grids=grids, trees=trees
    )


def _are_apart(joints: Sequence[JointShape]) -> bool:
    """Whether no two functions share a column, and all are of numbers: each is then a term of its own."""
    axes = [axis for one in joints for axis in one.axes]
    return len({axis.feature for axis in axes}) == len(axes) and not any(axis.n_categories for axis in axes)


def _write_grid(joint: JointShape) -> GridShape:
    axes = joint.axes
    features, cuts = tuple(axis.feature for axis in axes), tuple(axis.cuts for axis in axes)
    return GridShape(features, cuts, joint.values, tuple(axis.has_missing for axis in axes))


def grow_trees(joints: Sequence[JointShape], levels: int) -> tuple[list[TreeShape], float]:
    """Functions of several columns as a sum of trees, if any, and a constant: boxes of equal scores are leaves."""
    parts: list[tuple[Numbers, ...]] = []
    constant, n_splits, n_leaves = 0.0, 0, 0
    refused, sizes, codes = set[int](), dict[int, int](), list[tuple[int, IntArray]]()
    for joint in joints:
        axes = joint.axes
        takes = np.array([axis.has_missing and not axis.n_categories for axis in axes])
        scores = np.rint(joint.values.ravel() * levels).astype(np.int64)
        splits, leaves = divide_grid(np.array(joint.values.shape, dtype=np.int64), takes, scores)
        refused.update(axis.feature for axis in axes if not (axis.has_missing or axis.n_categories))
        sizes.update((axis.feature, axis.n_categories) for axis in axes if axis.n_categories)
        if not len(splits):
            constant += float(leaves[0]) / levels
            continue
        edges, missing_left, children = np.zeros(len(splits)), splits[:, 4] == 1, splits[:, 2:4].copy()
        for at, (place, middle) in enumerate(splits[:, :2].tolist()):
            axis = axes[place]
            if axis.n_categories:
                here = np.arange(min(middle, axis.n_categories))
                unseen = middle > axis.n_categories
                codes.append((n_splits + at, np.concatenate([[-1] * unseen, here]).astype(np.int64)))
                missing_left[at] = unseen if not axis.has_missing else middle > axis.n_categories + 1
            elif middle > axis.cuts.size:  # all numbers lie on the other side than what is missing
                edges[at], missing_left[at], children[at] = _LOWEST, True, children[at, ::-1].copy()
            else:
                edges[at] = axis.cuts[middle - 1]
        children += np.where(children >= 0, n_splits, -n_leaves)
        features = np.array([axis.feature for axis in axes])[splits[:, 0]]
        parts.append((np.array([n_splits]), features, edges, children[:, 0], children[:, 1], leaves, missing_left))
        n_splits, n_leaves = n_splits + len(splits), n_leaves + len(leaves)
    if not parts:
        return [], constant
    roots, features, edges, left, right, leaves, missing_left = (
        np.concatenate(one) for one in zip(*parts, strict=True)
    )
    trees = TreeShape(
        roots,
        features,
        edges,
        left,
        right,
        leaves[:, None] / levels,
        missing_left,
        np.array([at for at, _ in codes], dtype=np.int64),
        tuple(own for _, own in codes),
        tuple(sorted((feature, size) for feature, size in sizes.items() if (features == feature).any())),
        tuple(sorted(refused & set(features.tolist()))),
    )
    return [trees], constant


def measure_spans(functions: Functions) -> list[float]:
    """Of each function of one output the largest value less the smallest."""
    return [float(np.ptp(values)) for values in _list_values(functions, 1)]


def _list_values(functions: Functions, n_outputs: int) -> list[FloatArray]:
    """All values of each function, (n_values, n_outputs): those of missing and unseen ones among them."""
    found: list[list[Any]] = [[one.values, one.missing] for one in functions.shapes]
    found += [[one.values, one.other, one.missing] for one in functions.tables]
    found += [[one.values] for one in functions.grids] + [[one.values] for one in functions.joints]
    return [
        np.concatenate([np.reshape(part, (-1, n_outputs)) for part in parts if part is not None]) for parts in found
    ]
