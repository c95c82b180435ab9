"""Counts expected left of evenly spaced candidates under smooth noise, from a few nodes instead of all levels.

A distribution function that is smooth beside its own scale is, over a cell no wider than that scale, a polynomial up to
rounding. So the levels of a cell can be replaced by a fixed number of nodes, with weights that may be negative, and as
cells are whole numbers of steps wide, one table of the nodes' shares serves all cells of all columns. The cost hardly
depends on the number of levels. Must not know noises, histograms or models. Rounded to nearest, in a fixed order. For
training, never for a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, freeze
from derand.kernels.compiling import compile_loop

N_NODES = 16
"""Of a cell one scale wide: the polynomial is off by 1e-17 of a normal distribution function."""
FEW_SHARES = 2**16
"""Of levels at candidates: so many are computed one by one."""
_KEPT_SHARES = 2**17  # of a table of nodes' shares that is kept for the next column
_SHARE_COST, _LEVEL_COST = 16.0, 32.0  # of one share; of one level taken to nodes; in products

Cdf = Callable[[FloatArray], FloatArray]


class NodeGrid(NamedTuple):
    """Evenly spaced candidates with cells of levels."""

    first: float
    """The first candidate."""
    step: float
    """The distance of two of them."""
    width: int
    """Steps of a cell."""
    before: int
    """How many steps before a cell its levels are left of no candidate; as many behind it they are left of all."""


def lay_nodes(
    levels: FloatArray, n_rows: int, candidates: FloatArray, magnitude: float, support: float
) -> NodeGrid | None:
    """The cells, or None where candidates are not evenly spaced, or where sums over all levels are as quick.

    Levels are shared by `n_rows` rows of counts; beyond `support` magnitudes noise carries a negligible share.
    """
    if candidates.size < 2 or not math.isfinite(support):
        return None
    first, step = float(candidates[0]), float((candidates[-1] - candidates[0]) / (candidates.size - 1))
    width = int(magnitude // step)
    if width < 1:
        return None
    before = math.ceil(support * magnitude / step) + 1
    window = min(candidates.size, 2 * before)
    shares = levels.size * window
    n_cells = 1 + int((levels[-1] - levels[0]) // (width * step))
    by_nodes = n_rows * (levels.size * _LEVEL_COST + n_cells * N_NODES * min(candidates.size, 2 * before + width))
    if shares <= FEW_SHARES or shares * (_SHARE_COST + n_rows) <= 4 * by_nodes:
        return None
    even = first + step * np.arange(candidates.size)
    if np.abs(candidates - even).max() > 8 * EPSILON * np.abs(candidates[[0, -1]]).max():
        return None
    return NodeGrid(first, step, width, before)


def sum_by_nodes(
    levels: FloatArray, rows: FloatArray, n_candidates: int, grid: NodeGrid, cdf: Cdf, magnitude: float
) -> FloatArray:
    """Counts expected left of all candidates, (n_rows, n_candidates), from rows of counts, (n_rows, n_levels).

    `cdf` is smooth; it takes an array of z and returns P(noise <= z * magnitude).
    """
    key = (cdf, grid.step, grid.width, grid.before, magnitude)
    few = N_NODES * (grid.width + 2 * grid.before) <= _KEPT_SHARES
    shares = _keep_shares(*key) if few else _compute_shares(*key)
    return _sum_levels(levels, rows, grid, _lay_cell(), shares, n_candidates)


@cache
def _lay_cell() -> tuple[FloatArray, FloatArray]:
    """The nodes of a cell of width 1, and what Lagrange's polynomials are divided by."""
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(N_NODES) + 0.5) / N_NODES)
    gaps = nodes[:, None] - nodes
    np.fill_diagonal(gaps, 1.0)
    return freeze(nodes), freeze(1 / gaps.prod(axis=1))


def _compute_shares(cdf: Cdf, step: float, width: int, before: int, magnitude: float) -> FloatArray:
    """The share of each node of a cell that is left of the candidates around it."""
    steps = np.arange(-before, width + before)
    return freeze(cdf((steps * step - width * step * _lay_cell()[0][:, None]) / magnitude))


_keep_shares = lru_cache(maxsize=64)(_compute_shares)
"""Columns of like ranges ask for the same."""


@compile_loop()
def _sum_levels(
    levels: FloatArray,
    rows: FloatArray,
    grid: NodeGrid,
    cell_nodes: tuple[FloatArray, FloatArray],
    shares: FloatArray,
    n_candidates: int,
) -> FloatArray:
    """What each row of counts has left of all candidates."""
    (first, step, width, before), (nodes, scales) = grid, cell_nodes
    size, result = width * step, np.zeros((rows.shape[0], n_candidates))
    places, within = np.empty(levels.size, dtype=np.int64), np.empty(levels.size)
    for level in range(levels.size):
        place = (levels[level] - first) / size
        cell = np.floor(place)
        places[level], within[level] = int(cell), place - cell  # in [0, 1], up to rounding
    lowest = places[0]
    for level in range(levels.size):
        places[level] -= lowest
    n_cells = places[-1] + 1
    factors = np.empty((levels.size, nodes.size))
    _fill_factors(within, nodes, scales, factors)
    weights = np.empty((n_cells, nodes.size))
    for row in range(rows.shape[0]):
        weights[:] = 0.0
        _gather_nodes(places, factors, rows[row], weights)
        _spread_nodes(weights, shares, lowest * width - before, width, result[row])
        totals, done = np.zeros(n_cells), np.zeros(n_candidates)
        for level in range(levels.size):
            totals[places[level]] += rows[row, level]
        for cell in range(n_cells):
            behind = (lowest + 1 + cell) * width + before  # from there on all of a cell is left
            if behind < n_candidates:
                done[max(behind, 0)] += totals[cell]
        running = 0.0
        for at in range(n_candidates):
            running += done[at]
            result[row, at] += running
    return result


@compile_loop()
def _fill_factors(within: FloatArray, nodes: FloatArray, scales: FloatArray, factors: FloatArray) -> None:
    """Products of distances from all other nodes, from both ends, without any division."""
    n_nodes = nodes.size
    for level in range(within.size):
        product = 1.0
        for node in range(n_nodes):
            factors[level, node] = product * scales[node]
            product *= within[level] - nodes[node]
        product = 1.0
        for node in range(n_nodes - 1, -1, -1):
            factors[level, node] *= product
            product *= within[level] - nodes[node]


@compile_loop()
def _gather_nodes(places: Any, factors: FloatArray, counts: FloatArray, weights: FloatArray) -> None:
    """Add what the levels of each cell weigh to its nodes."""
    for level in range(places.size):
        count = counts[level]
        if count != 0.0:
            own = weights[places[level]]
            for node in range(factors.shape[1]):
                own[node] += count * factors[level, node]


@compile_loop()
def _spread_nodes(weights: FloatArray, shares: FloatArray, first: int, width: int, out: FloatArray) -> None:
    """Add the nodes of each cell, times their shares, to the candidates that these are for."""
    n_nodes, size = shares.shape
    for cell in range(weights.shape[0]):
        place = first + cell * width
        start, stop = max(0, -place), min(size, out.size - place)
        if start >= stop:
            continue
        total = out[place + start : place + stop]
        for node in range(0, n_nodes, 4):
            a, b, c, d = weights[cell, node], weights[cell, node + 1], weights[cell, node + 2], weights[cell, node + 3]
            if a == 0.0 and b == 0.0 and c == 0.0 and d == 0.0:
                continue
            one, two = shares[node, start:stop], shares[node + 1, start:stop]
            three, four = shares[node + 2, start:stop], shares[node + 3, start:stop]
            for at in range(total.size):
                total[at] += (a * one[at] + b * two[at]) + (c * three[at] + d * four[at])
