"""Which columns interact: pairs and triples that explain, together, what single columns leave unexplained.

Owns the strength of a group (after the FAST search of explainable boosting machines: a small grid fitted to residuals)
and whether it is real, by rows that the grid was not fitted to. Where rows are changed, a grid counts by its worst cell
within reach of each row, so that only groups are taken that help against changes. Must not know how models are trained.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.bins import BinnedTable
from derand.train.design.windows import Box, choose_safe_cuts, reach_ends

_BINS = 5
"""Of each column."""
_MOST_COLUMNS = 40
"""Between which pairs are looked for: those with most distinct effects first."""
_MOST_PAIRS, _MOST_TRIPLES = 10, 5
_MOST_TRIPLED = 12
"""Columns between which triples are looked for."""
_SURE = 4.5
"""Standard errors by which a gain on rows left out must differ from none: hundreds of pairs are looked at."""
_SHRINK = 4.0
"""Rows' worth of evidence that a cell's effect is zero, of rows as likely of a class as not; of numbers a quarter."""


class _Cells(NamedTuple):
    """A column in few cells: the state of each row, and by state its own cell and the first and last within reach."""

    states: IntArray
    own: IntArray
    low: IntArray
    high: IntArray
    size: int


def select_pairs(
    rows: BinnedTable, residuals: FloatArray, curvature: FloatArray, excluded: Collection[int] = ()
) -> tuple[tuple[int, int], ...]:
    """The strongest pairs of numerical columns, no column in two of them, whose gain on rows left out is real.

    `rows`: of single columns. `residuals`, `curvature` (n_rows, n_classes): label less probability by an additive
    model, and the probability's own variance; of two classes one column. Of numbers one column, too: what the model
    misses, and ones. `excluded`: columns that must stay by themselves.
    """
    codes = {feature: one for feature, one in _choose_columns(rows).items() if feature not in excluded}
    half = _split_rows(rows)
    strengths = []
    for left, right in itertools.combinations(codes, 2):
        gains = _measure_gains([codes[left], codes[right]], half, residuals, curvature, rows.weights)
        gain, sure = _average(gains, rows.weights)
        if sure > _SURE:
            strengths.append((gain, left, right))
    chosen: list[tuple[int, int]] = []
    for _, left, right in sorted(strengths, reverse=True):
        if not {left, right} & {feature for pair in chosen for feature in pair} and len(chosen) < _MOST_PAIRS:
            chosen.append((min(left, right), max(left, right)))
    return tuple(chosen)


def select_groups(
    rows: BinnedTable,
    boxes: Sequence[Box],
    residuals: FloatArray,
    curvature: FloatArray,
    excluded: Collection[int] = (),
) -> tuple[tuple[int, ...], ...]:
    """The strongest pairs and triples, which may share columns, whose gain on rows left out is real under changes.

    `boxes`: how far each numerical column may move. `residuals`, `curvature` (n_rows, 1): of certified margins. A
    triple counts by what it gains beyond the best of its pairs. Categories and missing values are cells of their own.
    """
    cells = {feature: one for feature, one in _choose_cells(rows, boxes).items() if feature not in excluded}
    signs = np.asarray(2.0 * rows.target - 1.0, dtype=np.float64)
    asked = (_split_rows(rows), residuals, curvature, rows.weights)
    by_pair: dict[tuple[int, ...], FloatArray] = {}
    strengths: list[tuple[float, tuple[int, ...]]] = []
    for pair in itertools.combinations(sorted(cells), 2):
        by_pair[pair] = _measure_gains([cells[one] for one in pair], *asked, signs)
        gain, sure = _average(by_pair[pair], rows.weights)
        if sure > _SURE:
            strengths.append((gain, pair))
    chosen = [pair for _, pair in sorted(strengths, reverse=True)[:_MOST_PAIRS]]
    strengths = []
    few = sorted(cells)[:_MOST_TRIPLED] if len(cells) <= _MOST_TRIPLED else sorted({at for one in chosen for at in one})
    for triple in itertools.combinations(few[:_MOST_TRIPLED], 3):
        gains = _measure_gains([cells[one] for one in triple], *asked, signs)
        pairs = [by_pair[pair] for pair in itertools.combinations(triple, 2)]
        best = max(pairs, key=lambda own: _average(own, rows.weights)[0])
        gain, sure = _average(gains - np.where(_average(best, rows.weights)[0] > 0, best, 0.0), rows.weights)
        if sure > _SURE:
            strengths.append((gain, triple))
    triples = [triple for _, triple in sorted(strengths, reverse=True)[:_MOST_TRIPLES]]
    return (*triples, *(pair for pair in chosen if not any(set(pair) <= set(triple) for triple in triples)))


def _choose_cells(rows: BinnedTable, boxes: Sequence[Box]) -> dict[int, _Cells]:
    """Columns in few cells, by feature: if many, those that vary most."""
    found: dict[int, _Cells] = {}
    spread = {}
    for at, (one, box) in enumerate(zip(rows.numbers, boxes, strict=True)):
        cuts = choose_safe_cuts(one, box, _BINS - 1)
        size = cuts.size + 1 + (one.missing > 0)
        low, high = reach_ends(one.centers, box, cuts)
        gap = [size - 1]  # the cell of what is missing, if anything is
        own = np.append(np.searchsorted(cuts, one.centers, side="right"), gap)
        found[one.feature] = _Cells(
            rows.codes[:, at].astype(np.int64), own, np.append(low, gap), np.append(high, gap), size
        )
    for at, (feature, count) in enumerate(rows.categories, len(rows.numbers)):
        codes = rows.codes[:, at].astype(np.int64)
        order = np.argsort(-np.bincount(codes, weights=rows.weights, minlength=count + 1), kind="stable")
        own = np.full(count + 1, _BINS - 1)  # the commonest ones by themselves, all others together
        own[order[: _BINS - 1]] = np.arange(min(_BINS - 1, order.size))
        found[feature] = _Cells(codes, own, own, own, _BINS)
    for feature, column in found.items():
        shares = np.bincount(column.own[column.states], weights=rows.weights) / rows.weights.sum()
        spread[feature] = 1.0 - float((shares**2).sum())
    kept = sorted(found, key=lambda feature: (-spread[feature], feature))[:_MOST_COLUMNS]
    return {feature: found[feature] for feature in sorted(kept) if found[feature].size > 1}


def _choose_columns(rows: BinnedTable) -> dict[int, _Cells]:
    """Columns without missing values in few bins of like weight, by feature: if many, those that vary most."""
    found: dict[int, _Cells] = {}
    spread = {}
    for at, one in enumerate(rows.numbers):
        if one.missing > 0 or not one.edges.size:
            continue
        edges = one.choose_cuts(_BINS - 1)
        places = np.searchsorted(edges, one.centers, side="right")
        shares = np.bincount(places, weights=one.shares)
        spread[one.feature] = 1.0 - float((shares**2).sum())
        found[one.feature] = _Cells(rows.codes[:, at].astype(np.int64), places, places, places, _BINS)
    kept = sorted(found, key=lambda feature: (-spread[feature], feature))[:_MOST_COLUMNS]
    return {feature: found[feature] for feature in sorted(kept)}


def _split_rows(rows: BinnedTable) -> IntArray:
    """Half of each row: equal rows in the same one."""
    _, place = np.unique(rows.keys, return_inverse=True)
    return np.asarray(place % 2)


def _measure_gains(
    columns: Sequence[_Cells],
    half: IntArray,
    residuals: FloatArray,
    curvature: FloatArray,
    weights: FloatArray,
    signs: FloatArray | None = None,
) -> FloatArray:
    """How much a grid of some columns gains on each row of the half that it was not fitted to.

    `signs`: of the labels of two classes, where rows are changed: what counts is then the worst cell within reach.
    """
    shape = [one.size for one in columns]
    cells = np.ravel_multi_index(tuple(one.own[one.states] for one in columns), shape)
    gains = np.zeros(residuals.shape[0])
    for fold in (0, 1):
        inside, outside = half != fold, half == fold
        for label in range(residuals.shape[1]):
            left, bent = residuals[:, label], curvature[:, label]
            slopes, bends = (
                np.bincount(cells[inside], weights=(weights * part)[inside], minlength=int(np.prod(shape)))
                for part in (left, bent)
            )
            raw = np.asarray(slopes / (bends + _SHRINK * 0.25)).reshape(shape)
            steps = _center(raw, np.asarray(bends, dtype=np.float64).reshape(shape))
            if signs is None:
                step = steps.ravel()[cells[outside]]
            else:
                step = np.empty(int(outside.sum()))
                for sign in (-1.0, 1.0):
                    own = signs[outside] == sign
                    worst = _reduce_boxes(sign * steps, columns)
                    step[own] = sign * worst[tuple(one.states[outside][own] for one in columns)]
            gains[outside] += step * left[outside] - 0.5 * step**2 * bent[outside]
    return gains


def _reduce_boxes(values: FloatArray, columns: Sequence[_Cells]) -> FloatArray:
    """The least value within reach of each combination of states, axis by axis."""
    for axis, one in enumerate(columns):
        cells = np.moveaxis(values, axis, 0)
        least = cells[one.own].copy()
        for away in range(int((one.high - one.low).max(initial=0)) + 1):
            least = np.minimum(least, cells[np.minimum(one.low + away, one.high)])
        values = np.moveaxis(least, 0, axis)
    return values


def _average(gains: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """The mean, and in standard errors."""
    error = float(np.std(gains)) / np.sqrt(max(gains.size, 1))
    mean = float(np.average(gains, weights=weights))
    return mean, mean / error if error > 0 else 0.0


def _center(steps: FloatArray, weights: FloatArray) -> FloatArray:
    """What is left of a grid without the parts of single columns: weighted means taken off in turns."""
    left = steps.copy()
    total = weights + 1e-9
    for _ in range(5):
        for axis in range(steps.ndim):
            others = tuple(at for at in range(steps.ndim) if at != axis)
            left -= (left * total).sum(axis=others, keepdims=True) / total.sum(axis=others, keepdims=True)
    return left
