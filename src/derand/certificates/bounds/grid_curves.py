"""Terms of several columns under noise, as the kernels of worst cases see them: probabilities at knots of each axis.

Owns where knots are placed and by how much a function may leave its chord between them. Must not know rules, thresholds
or threats, but for the units in which distances count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from derand._core.arrays import EPSILON, TINY, FloatArray
from derand.certificates.bounds.curves import FAR, LARGEST, orient_terms, place_knots
from derand.certificates.bounds.packing import PackedTerms
from derand.kernels.worst_case.grids import Grids
from derand.kernels.worst_case.jump_search import Jumps
from derand.kernels.worst_case.jumps import NO_JUMPS, JumpTable
from derand.noise import Noise

_MOST_KNOTS = {1: 2048, 2: 768}
"""Of an axis, by the number of axes; of more axes `_FEWER`."""
_FEWER = 384
_FIRST_NUMBERS = 2**24  # of all first axes seen from their knots


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A term as a function of some columns that is to stay high: scores from 0 on.

    Attributes
    ----------
    features : tuple of int
    edges : tuple of arrays
    shape : tuple of int
        Cells of each axis; one more than its edges and 1 where it has a cell for missing values.
    scores : array of shape (n_boxes,)
        In C order.
    """

    features: tuple[int, ...]
    edges: tuple[FloatArray, ...]
    shape: tuple[int, ...]
    scores: FloatArray

    @property
    def range(self) -> float:
        return float(self.scores.max())


def orient_blocks(terms: PackedTerms, label: int, cap: float = math.inf) -> list[Block]:
    """All terms of a sum as functions that must stay high for the label to hold, cut off above a cap."""
    blocks = [
        Block((one.feature,), (one.edges,), (one.scores.size,), one.scores) for one in orient_terms(terms, label, cap)
    ]
    for grid in terms.grids:
        told = [k for k, size in enumerate(grid.shape) if size > 1]  # along other axes nothing changes
        scores = grid.scores.astype(np.float64)
        blocks.append(
            Block(
                tuple(grid.features[k] for k in told),
                tuple(grid.edges[k] for k in told),
                tuple(grid.shape[k] for k in told),
                np.minimum(scores if label else scores.max() - scores, cap),
            )
        )
    return blocks


def trace_grids(blocks: list[Block], noise: Noise, units: FloatArray, *, with_all_knots: bool = True) -> Grids:
    """The functions of some terms under noise.

    Without all knots those of axes with one edge that a table serves are left out: enough where numbers may become
    anything, at a multiplier per square, or stay as they are.
    """
    edges, scales, table = _compute_jumps(blocks, noise, units)
    positions = [(block, k) for block in blocks for k in range(len(block.features))]
    needed = [with_all_knots or scale == 0 for scale in scales.tolist()]
    axes = [_trace_axis(block, k, noise, units, need) for (block, k), need in zip(positions, needed, strict=True)]
    axis_starts = _count(len(block.features) for block in blocks)
    firsts = [_look_from_first(block, axes[axis_starts[i]]) for i, block in enumerate(blocks)]
    if sum(one.size for one in firsts) > _FIRST_NUMBERS:
        firsts = [np.empty(0) for _ in firsts]
    return Grids(
        axis_starts,
        np.array([at for block in blocks for at in block.features], dtype=np.int64),
        np.array([size for block in blocks for size in block.shape], dtype=np.int64),
        np.array([axis.has_missing for axis in axes], dtype=np.int64),
        np.array([axis.unit for axis in axes]),
        _count(block.scores.size for block in blocks),
        _join([block.scores for block in blocks]),
        _count(axis.knots.size for axis in axes),
        _join([axis.knots for axis in axes]),
        _join([axis.by_variation for axis in axes]),
        _join([axis.by_range for axis in axes]),
        _count(axis.cells.size for axis in axes)[:-1],
        _join([axis.cells.ravel() for axis in axes]),
        np.array([axis.beyond for axis in axes]).reshape(-1, 2),
        _count(one.size for one in firsts),
        _join(firsts),
        edges,
        scales,
        table,
    )


def line_up_jumps(blocks: list[Block], grids: Grids) -> Jumps | None:
    """The functions as those of single jumps; None where one of them has more than one edge along an axis."""
    if not blocks or not (grids.jump_scales > 0).all():
        return None
    shares = grids.jump_scales / grids.units
    return Jumps(
        grids.axis_starts,
        grids.features,
        grids.jump_edges,
        grids.jump_scales,
        shares**2 * (1 - 16 * EPSILON),
        grids.score_starts,
        grids.scores,
        grids.jumps,
    )


def _compute_jumps(blocks: list[Block], noise: Noise, units: FloatArray) -> tuple[FloatArray, FloatArray, JumpTable]:
    """Edge and scale of every axis that has one edge alone, and the table that holds for them."""
    axes = [(block, k) for block in blocks for k in range(len(block.features))]
    is_jump = np.array([block.edges[k].size == 1 and block.shape[k] == 2 for block, k in axes], dtype=bool)
    features = np.array([block.features[k] for block, k in axes], dtype=np.int64)
    table = noise.jump_table() if is_jump.any() else None
    if table is None:
        return np.zeros(features.size), np.zeros(features.size), NO_JUMPS
    edges = np.array([block.edges[k][0] if one else 0.0 for (block, k), one in zip(axes, is_jump, strict=True)])
    scales = np.asarray(noise.scales(features), dtype=np.float64)
    with np.errstate(over="ignore"):
        shares = scales / units[features]
    is_held = (shares > 1 / LARGEST) & (shares < LARGEST) & (scales < 1 / TINY / FAR)
    return edges, np.where(is_jump & is_held, scales, 0.0), table


def _count(sizes: Any) -> Any:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _join(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class _TracedAxis:
    """An axis of a block; fields as in `Grids`."""

    knots: FloatArray
    by_variation: FloatArray
    by_range: FloatArray
    cells: FloatArray
    beyond: tuple[float, float]
    unit: float
    has_missing: bool


def _trace_axis(block: Block, k: int, noise: Noise, units: FloatArray, is_needed: bool) -> _TracedAxis:
    feature, edges = block.features[k], block.edges[k]
    unit, scale = float(units[feature]), float(noise.scales(np.array([feature]))[0])
    has_missing = block.shape[k] > edges.size + 1
    nothing = np.empty(0)
    is_held = 1 / LARGEST < scale / unit < LARGEST and scale < 1 / TINY / FAR
    if not is_needed or not edges.size or not is_held or np.abs(edges).max() / FAR >= scale:
        return _TracedAxis(nothing, nothing, nothing, np.empty((0, edges.size + 1)), (1.0, 1.0), unit, has_missing)
    limit = _MOST_KNOTS.get(len(block.features), _FEWER)
    knots, _ = place_knots(edges, scale, noise, limit)
    first = float(noise.cell_probabilities(knots[[0]], edges[[0]], feature)[0, 1])
    last = float(noise.cell_probabilities(knots[[-1]], edges[[-1]], feature)[0, 0])
    by_variation, by_range = _bound_sag(noise, knots, edges, scale)
    cells = noise.cell_probabilities(knots, edges, feature)
    return _TracedAxis(knots, by_variation, by_range, cells, (first, last), unit, has_missing)


def _bound_sag(noise: Noise, knots: FloatArray, edges: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """By how much a function may leave its chord right of each knot, as a share of its variation and of its range."""
    widths = np.append(np.diff(knots), 0.0) / scale * (1 + 8 * EPSILON)
    if noise.kinks:  # linear between knots, but for the rounding of those that are kinks
        box = np.abs(edges).max() + 2 * scale
        by_variation = np.full(widths.size, 4 * EPSILON * box / scale)
        return by_variation, np.full(widths.size, math.inf)
    # what varies between two knots is at most the largest mass of the noise between points so far apart
    mass = np.asarray(2 * noise.cdf(widths / 2) - 1) * (1 + 2**-30) + 64 * EPSILON
    with np.errstate(over="ignore"):
        bends = [np.minimum(bend / 8 * widths**2 * (1 + 16 * EPSILON), mass) for bend in noise.bends]
    return bends[0], bends[1]


def _look_from_first(block: Block, axis: _TracedAxis) -> FloatArray:
    """Lower bounds of the first axis at its knots, (n_knots, cells of the others), as the kernel would find them."""
    n_cells = block.edges[0].size + 1
    if not axis.knots.size or axis.knots.size * (block.scores.size // block.shape[0]) > _FIRST_NUMBERS:
        return np.empty(0)
    scores = block.scores.reshape(block.shape[0], -1)[:n_cells]
    most = scores.max(axis=0)
    return np.asarray(most - axis.cells @ (most - scores)).ravel()
