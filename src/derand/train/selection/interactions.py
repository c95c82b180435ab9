"""Which columns interact: pairs that explain, together, what single columns leave unexplained.

Owns the strength of a pair (after the FAST search of explainable boosting machines: a small grid fitted to residuals)
and whether it is real, by rows that the grid was not fitted to. Must not know how models are trained.
"""

from __future__ import annotations

import itertools

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.bins import BinnedTable

_BINS = 5
"""Of each column."""
_MOST_COLUMNS = 40
"""Between which pairs are looked for: those with most distinct effects first."""
_MOST_PAIRS = 10
_SURE = 4.5
"""Standard errors by which a gain on rows left out must differ from none: hundreds of pairs are looked at."""
_SHRINK = 4.0
"""Rows' worth of evidence that a cell's effect is zero, of rows as likely of a class as not; of numbers a quarter."""


def select_pairs(rows: BinnedTable, residuals: FloatArray, curvature: FloatArray) -> tuple[tuple[int, int], ...]:
    """The strongest pairs of numerical columns, no column in two of them, whose gain on rows left out is real.

    `rows`: of single columns. `residuals`, `curvature` (n_rows, n_classes): label less probability by an additive
    model, and the probability's own variance; of two classes one column. Of numbers one column, too: what the model
    misses, and ones.
    """
    codes = _choose_columns(rows)
    half = _split_rows(rows)
    strengths = []
    for (left, one), (right, other) in itertools.combinations(codes.items(), 2):
        gain, sure = _measure_gain(one, other, half, residuals, curvature, rows.weights)
        if sure > _SURE:
            strengths.append((gain, left, right))
    chosen: list[tuple[int, int]] = []
    for _, left, right in sorted(strengths, reverse=True):
        if not {left, right} & {feature for pair in chosen for feature in pair} and len(chosen) < _MOST_PAIRS:
            chosen.append((min(left, right), max(left, right)))
    return tuple(chosen)


def _choose_columns(rows: BinnedTable) -> dict[int, IntArray]:
    """Columns without missing values in few bins of like weight, by feature: if many, those that vary most."""
    found: dict[int, IntArray] = {}
    spread = {}
    for at, one in enumerate(rows.numbers):
        if one.missing > 0 or not one.edges.size:
            continue
        edges = one.choose_cuts(_BINS - 1)
        places = np.searchsorted(edges, one.centers, side="right")
        shares = np.bincount(places, weights=one.shares)
        spread[one.feature] = 1.0 - float((shares**2).sum())
        found[one.feature] = places[rows.codes[:, at]]
    kept = sorted(found, key=lambda feature: (-spread[feature], feature))[:_MOST_COLUMNS]
    return {feature: found[feature] for feature in sorted(kept)}


def _split_rows(rows: BinnedTable) -> IntArray:
    """Half of each row: equal rows in the same one."""
    _, place = np.unique(rows.keys, return_inverse=True)
    return np.asarray(place % 2)


def _measure_gain(
    one: IntArray,
    other: IntArray,
    half: IntArray,
    residuals: FloatArray,
    curvature: FloatArray,
    weights: FloatArray,
) -> tuple[float, float]:
    """How much a grid of both columns gains on the half that it was not fitted to, and in standard errors."""
    cells = one * _BINS + other
    gains = np.zeros(residuals.shape[0])
    for fold in (0, 1):
        inside, outside = half != fold, half == fold
        for label in range(residuals.shape[1]):
            left, bent = residuals[:, label], curvature[:, label]
            slopes, bends = (
                np.bincount(cells[inside], weights=(weights * part)[inside], minlength=_BINS**2)
                for part in (left, bent)
            )
            raw = np.asarray(slopes / (bends + _SHRINK * 0.25)).reshape(_BINS, _BINS)
            steps = _center(raw, np.asarray(bends, dtype=np.float64).reshape(_BINS, _BINS))
            step = steps.ravel()[cells[outside]]
            gains[outside] += step * left[outside] - 0.5 * step**2 * bent[outside]
    error = float(np.std(gains)) / np.sqrt(max(gains.size, 1))
    mean = float(np.average(gains, weights=weights))
    return mean, mean / error if error > 0 else 0.0


def _center(steps: FloatArray, weights: FloatArray) -> FloatArray:
    """What is left of a grid without the parts of single columns: weighted means taken off in turns."""
    left = steps.copy()
    total = weights + 1e-9
    for _ in range(5):
        left -= (left * total).sum(axis=1, keepdims=True) / total.sum(axis=1, keepdims=True)
        left -= (left * total).sum(axis=0, keepdims=True) / total.sum(axis=0, keepdims=True)
    return left
