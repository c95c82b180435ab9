"""How strongly the weights of categories are drawn to nothing: as strongly as a column's categories are alike.

Owns the penalty of each category. A column of many categories that differ no more than chance lets them gets a large
one, so that small categories of noise do not add up to a column that seems to matter. Must not know models or losses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.bins import BinnedTable
from derand.train.design.columns import RARE_PENALTY
from derand.train.table import TrainingTable

_LEAST_PENALTY, _MOST_PENALTY = 1.0, 100.0
_EXPECTED, _EXPECTING = 0.5, 2.0
"""The spread that is expected of any column, and for how many categories that counts: few of them say little."""
_FEW, _MANY = 10, 20
"""Up to so few categories the penalty is the least, from so many on what was found: few of them have many rows each."""
_REPEATED = 4
"""Rows that are there so often on average are different cases that are described by few values."""
_DIGITS = 6  # of penalties: the last ones depend on the order of rows


def shrink_categories(binned: BinnedTable, table: TrainingTable, least_rows: int | None = None) -> BinnedTable:
    """The rows with a penalty for each category, for models of classes.

    `binned`: of the table; `least_rows`: categories of fewer rows get the value of one that training did not see.

    Examples
    --------
    >>> from derand.train.bins import bin_table
    >>> codes, target = np.arange(400.0) % 20, (np.arange(400) % 20 < 10).astype(np.uint8)
    >>> rows = np.stack([codes, np.roll(np.arange(400.0), 7) // 20, np.arange(400.0)], axis=1)
    >>> table = TrainingTable(rows, target, n_categories={0: 20, 1: 20})
    >>> found = shrink_categories(bin_table(table), table).penalties
    >>> [float(found[column][0]) for column in (0, 1)]
    [1.0, 22.0]
    """
    if not binned.categories:
        return binned
    labels = np.arange(1 if table.n_classes == 2 else 0, table.n_classes)
    hits = (binned.target[:, None] == labels).astype(np.float64)
    # without the weights of classes, which change no logarithm of odds but the intercept
    weights = np.ones(hits.shape[0]) if table.sample_weight is None else table.sample_weight
    rates = np.average(hits, axis=0, weights=weights)
    return shrink_by(binned, weights, (hits - rates) / np.maximum(rates * (1 - rates), 1e-12), 1.0, least_rows)


def shrink_by(
    binned: BinnedTable, weights: FloatArray, left: FloatArray, variance: float, least_rows: int | None
) -> BinnedTable:
    """The rows with a penalty for each category, by what is left to explain.

    `left` (n_rows, n_outputs): less its mean; in units of the weights of categories, whose means they would be;
    `variance`: what the penalty of a spread of 1 is; `weights` has shape (n_rows,).
    """
    n_rows, n_distinct = binned.keys.size, binned.count_distinct()
    counted = n_distinct if n_rows <= _REPEATED * n_distinct else n_rows
    scaled = weights * (counted / weights.sum())
    penalties = {}
    for at, (feature, count) in enumerate(binned.categories, len(binned.numbers)):
        codes = binned.codes[:, at].astype(np.int64)
        found = count * _measure_spread(codes, count, scaled, left) + _EXPECTING * _EXPECTED * variance
        wanted = variance * (count + _EXPECTING) / found * n_distinct / counted
        trust = np.clip((count - _FEW) / (_MANY - _FEW), 0.0, 1.0)
        own = np.full(count, np.round(np.clip(wanted, _LEAST_PENALTY, _MOST_PENALTY) ** trust, _DIGITS))
        if least_rows is not None:
            own[np.bincount(codes, minlength=count + 1)[:count] < least_rows] = RARE_PENALTY
        penalties[feature] = own
    return replace(binned, penalties=penalties)


def _measure_spread(codes: IntArray, count: int, weights: FloatArray, left: FloatArray) -> float:
    """Mean square of the categories' own means, without what chance adds: products of different rows alone count."""
    size = count + 1  # the last code is that of what is missing
    mass = np.bincount(codes, weights=weights, minlength=size)[:count]
    pairs = float(np.maximum(mass - 1, 0.0).sum())
    if not pairs:
        return 0.0
    there, total = mass > 0, 0.0
    for column in left.T:
        sums = np.bincount(codes, weights=weights * column, minlength=size)[:count]
        squares = np.bincount(codes, weights=weights * column**2, minlength=size)[:count]
        total += float(np.sum((sums[there] ** 2 - squares[there]) / mass[there]))
    n_outputs = int(left.shape[1])
    return max(total / (pairs * n_outputs), 0.0)
