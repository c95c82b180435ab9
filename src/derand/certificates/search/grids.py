"""Terms of several columns in searches: shares of cells to nearest, and worst positions of their numbers, one by one.

Owns what leads a search through such a term. Nothing here is proven: what is found is checked by the model itself. Must
not know rules or thresholds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.grid_packing import PackedGrid
from derand.model import Term
from derand.noise import Noise

_POSITIONS = 33
_PASSES = 3
_MOST_POINTS = 4096
"""Of a row, all of which are tried without noise."""
_CHUNK = 2**19
_REACH = 4.0
"""Noise scales beyond the outer edges that are looked at."""


def share_cells(
    values: FloatArray, edges: FloatArray, feature: int, has_missing: bool, noise: Noise | None
) -> FloatArray:
    """The share of noise in each cell of a column around some values, one more axis at the end; 1 for a missing one."""
    if noise is None:
        beyond = (values[..., None] >= edges).astype(np.float64)
    else:
        scale = float(noise.scales(np.array([feature]))[0])
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.asarray(noise.cdf(np.clip((values[..., None] - edges) / scale, -1e3, 1e3)))
    ends = np.ones((*values.shape, 1))
    shares = np.concatenate([ends, beyond], axis=-1) - np.concatenate([beyond, 0 * ends], axis=-1)
    is_missing = np.isnan(values)[..., None]
    if has_missing:
        return np.concatenate([np.where(is_missing, 0.0, shares), is_missing.astype(np.float64)], axis=-1)
    return np.where(is_missing, 0.0, shares)


def compute_grid_values(
    grid: PackedGrid, weights: FloatArray, starts: FloatArray, axis: int, values: FloatArray, noise: Noise | None
) -> FloatArray:
    """What a grid is worth where one of its numbers is moved and the others stay, (n_rows, n_positions).

    `weights` are those of its merged cells, (n_rows, n_merged).
    """
    boxes = weights[:, grid.merged].reshape(weights.shape[0], *grid.shape)
    for k in reversed(range(len(grid.features))):
        if k != axis:
            shares = share_cells(
                starts[:, grid.features[k]], grid.edges[k], grid.features[k], grid.takes_missing[k], noise
            )
            boxes = (np.moveaxis(boxes, k + 1, -1) * _stretch(shares, boxes.ndim)).sum(axis=-1)
    probabilities = share_cells(values, grid.edges[axis], grid.features[axis], grid.takes_missing[axis], noise)
    return np.asarray((probabilities * boxes[:, None, :]).sum(axis=2))


def _stretch(shares: FloatArray, n_axes: int) -> FloatArray:
    return shares.reshape(shares.shape[0], *([1] * (n_axes - 2)), shares.shape[1])


def expect_grid(term: Term, points: FloatArray, noise: Noise | None) -> FloatArray:
    """Expected score of a term of several columns at some points, (..., n_axes), to nearest."""
    if noise is None:
        return np.asarray(term.evaluate(points), dtype=np.float64)
    boxes: NDArray[np.float64] = np.ones((*points.shape[:-1], 1))
    for k, axis in enumerate(term.axes):
        takes = axis.feature in term.missing_features
        shares = share_cells(points[..., k], axis.edges, axis.feature, takes, noise)
        boxes = (boxes[..., None] * shares[..., None, :]).reshape(*points.shape[:-1], -1)
    return np.asarray(boxes @ term.cell_scores.astype(np.float64))


def move_grid(
    moved: FloatArray,
    term: Term,
    noise: Noise | None,
    steps: FloatArray,
    low: FloatArray,
    high: FloatArray,
    signs: FloatArray,
) -> None:
    """Move the numbers of a term of several columns to positions where it is worst, one after the other, in turns.

    From the rows as they stand, and from each of their corners; the worst end is taken. Without noise all cells are
    tried where they are few enough.
    """
    columns = list(term.features)
    own = moved[:, columns].copy()
    best, least = own.copy(), signs * expect_grid(term, own, noise)
    listed = [
        _list_positions(axis.feature, axis.edges, own[:, k], noise, steps, low, high)
        for k, axis in enumerate(term.axes)
    ]
    if noise is None and math.prod(one.shape[1] for one in listed) <= _MOST_POINTS:
        moved[:, columns] = _search_worst_points(term, own, listed, signs, least)
        return
    for start in (None, 0, -1):
        point = own.copy()
        if start is not None:
            point = np.stack(
                [np.where(np.isnan(own[:, k]), np.nan, one[:, start]) for k, one in enumerate(listed)], axis=1
            )
        for _ in range(_PASSES):
            for k, positions in enumerate(listed):
                trials = np.repeat(point[:, None], positions.shape[1], axis=1)
                trials[:, :, k] = np.where(np.isnan(own[:, k, None]), np.nan, positions)
                values = signs[:, None] * expect_grid(term, trials, noise)
                point = trials[np.arange(own.shape[0]), values.argmin(axis=1)]
        value = signs * expect_grid(term, point, noise)
        best, least = np.where((value < least)[:, None], point, best), np.minimum(value, least)
    moved[:, columns] = best


def _search_worst_points(
    term: Term, own: FloatArray, listed: list[FloatArray], signs: FloatArray, least: FloatArray
) -> FloatArray:
    """The worst of all points made of positions of the numbers, without noise; where none is worse, the row's own."""
    found = own.copy()
    at = np.indices([one.shape[1] for one in listed]).reshape(len(listed), -1)
    size = max(1, _CHUNK // at.size)
    for begin in range(0, own.shape[0], size):
        part = slice(begin, begin + size)
        points = np.stack([one[part][:, chosen] for one, chosen in zip(listed, at, strict=True)], axis=2)
        points = np.where(np.isnan(own[part, None]), np.nan, points)
        values = signs[part, None] * expect_grid(term, points, None)
        worst = points[np.arange(values.shape[0]), values.argmin(axis=1)]
        found[part] = np.where((values.min(axis=1) < least[part])[:, None], worst, own[part])
    return found


def _list_positions(
    feature: int,
    edges: FloatArray,
    own: FloatArray,
    noise: Noise | None,
    steps: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Positions of one number of each row, (n_rows, n_positions), within its ends, by whole steps where it has some."""
    there = np.nan_to_num(own)
    if noise is None:
        wide = np.repeat(np.concatenate([edges, np.nextafter(edges, -np.inf)])[None], own.size, axis=0)
    else:
        box = _REACH * float(noise.scales(np.array([feature]))[0])
        ends = (edges[0] - box, edges[-1] + box) if edges.size else (0.0, 0.0)
        first = np.minimum(np.maximum(low[:, feature], ends[0]), there)
        last = np.maximum(np.minimum(high[:, feature], ends[1]), there)
        shares: IntArray | FloatArray = np.linspace(0.0, 1.0, _POSITIONS)
        wide = first[:, None] * (1 - shares) + last[:, None] * shares
    if steps[feature]:
        counts = (wide - there[:, None]) / steps[feature]
        if noise is None:  # the last step before an edge and the first one beyond it, however quotients are rounded
            counts = np.concatenate([np.floor(counts) + more for more in (-1, 0, 1)], axis=1)
        counts = np.rint(counts)
        wide = there[:, None] + counts * steps[feature]
        inside = (wide >= low[:, [feature]]) & (wide <= high[:, [feature]])
        wide = np.where(inside, wide, there[:, None])
    positions = np.concatenate([np.clip(wide, low[:, [feature]], high[:, [feature]]), there[:, None]], axis=1)
    return np.asarray(np.sort(np.nan_to_num(positions), axis=1))
