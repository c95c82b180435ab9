"""The one door where real numbers become integers.

Owns rounding to the grid. Must not know decisions or training. A model that comes through here is *defined* on its
grid: certificates speak of the rounded model, which predicts and is certified by the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from derand._arrays import FloatArray, IntArray
from derand.model._terms import CategoryTable, StepFunction, Term

CategoryLeaves = tuple[int, ArrayLike, ArrayLike, float]
"""(feature, categories, leaves, other) of a categorical feature."""


def round_stumps(
    features: ArrayLike,
    thresholds: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    tables: Sequence[CategoryLeaves],
    levels: int,
) -> tuple[tuple[Term, ...], int]:
    """Terms of the sum of all leaves on the grid, stumps of a feature merged; half of the largest sum, rounded down.

    Parameters are those of `AdditiveEnsemble.from_stumps`.
    """
    columns = _as_columns(features)
    splits = np.asarray(thresholds, dtype=np.float64)
    leaves = np.stack([_as_leaves(left, "left"), _as_leaves(right, "right")])
    if not splits.shape == (columns.size,) == leaves.shape[1:]:
        raise ValueError(
            "`features`, `thresholds`, `left` and `right` must have one entry per stump, got "
            f"{columns.size}, {splits.size}, {np.size(left)} and {np.size(right)}."
        )
    if not np.isfinite(splits).all():
        raise ValueError("`thresholds` must be finite, got nan or infinity.")
    grid = np.rint(leaves * levels).astype(np.int64)
    order = np.argsort(columns, kind="stable")
    starts = np.flatnonzero(np.diff(columns[order], prepend=-1))
    terms: list[Term] = [
        _merge_stumps(int(columns[group[0]]), splits[group], grid[:, group])
        for group in np.split(order, starts[1:])
        if group.size
    ]
    for feature, categories, values, other in tables:
        known, unknown = _as_leaves(values, "leaves"), _as_leaves([other], "other")
        scores = np.rint(np.append(known, unknown) * levels)
        terms.append(CategoryTable(feature, categories, scores[:-1], int(scores[-1])))  # type: ignore[arg-type]
    return tuple(terms), (columns.size + len(tables)) * levels // 2


def _as_columns(values: ArrayLike) -> IntArray:
    columns = np.asarray(values).reshape(-1)
    whole = columns.astype(np.int64)
    if not (whole == columns).all():
        raise ValueError(f"`features` must hold column numbers, got {columns[whole != columns][0]}.")
    return whole


def _as_leaves(values: ArrayLike, what: str) -> FloatArray:
    leaves = np.asarray(values, dtype=np.float64).reshape(-1)
    if not ((leaves >= 0) & (leaves <= 1)).all():
        bad = leaves[~((leaves >= 0) & (leaves <= 1))][0]
        raise ValueError(f"`{what}` must hold leaves in [0, 1], got {bad}.")
    return leaves


def _merge_stumps(feature: int, splits: FloatArray, grid: IntArray) -> StepFunction:
    """One step function from stumps on one feature; splits where nothing changes are left out."""
    if splits.size == 1 and grid[0, 0] != grid[1, 0]:
        return StepFunction(feature, splits, grid[:, 0])
    edges, inverse = np.unique(splits, return_inverse=True)
    jumps = np.zeros(edges.size, dtype=np.int64)
    np.add.at(jumps, inverse, grid[1] - grid[0])
    scores = grid[0].sum() + np.concatenate([[0], np.cumsum(jumps[jumps != 0])])
    return StepFunction(feature, edges[jumps != 0], scores)
