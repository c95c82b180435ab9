"""Which rows a choice is made on: samples and folds that depend on the rows alone, not on their order.

Must not know models or losses.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design

FEW_ROWS = 5_000
"""Up to so many there are more folds."""
_FOLDS, _FEWER_FOLDS = 5, 3


def spread_rows(rows: BinnedTable, most: int) -> IntArray:
    """At most so many of the rows, the same ones whatever their order: those of the smallest keys."""
    if rows.target.size <= most:
        return np.arange(rows.target.size)
    return np.sort(np.argsort(rows.keys, kind="stable")[:most])


def draw_folds(rows: BinnedTable, *, few_rows: float = FEW_ROWS) -> IntArray | None:
    """The fold of each row, equal rows in the same one; None where a class has too few different rows.

    Of more than two classes those of one row alone do not count. `few_rows`: up to so many there are more folds.
    """
    folds = np.empty(rows.target.size, dtype=np.int64)
    count = _FOLDS if rows.target.size <= few_rows else _FEWER_FOLDS
    labels = np.unique(rows.target)
    most = 0
    for label in labels:
        at = np.flatnonzero(rows.target == label)
        keys, place = np.unique(rows.keys[at], return_inverse=True)
        folds[at] = place
        most = max(most, keys.size)
        if keys.size > 1 or labels.size == 2:
            count = min(count, keys.size)
    return None if count < 2 or most < 2 else folds % count


def draw_third(rows: BinnedTable, most: int) -> tuple[IntArray, IntArray]:
    """Two thirds and one third of at most so many rows, by their keys: rows to fit, and rows to measure on."""
    some = spread_rows(rows, most)
    is_left = rows.keys[some] % np.uint64(3) == 0
    return some[~is_left], some[is_left]


def share_codes(design: Design, rows: BinnedTable) -> list[FloatArray]:
    """Share of all weight that each code of each categorical column has."""
    first, total = len(design.numbers), rows.weights.sum()
    return [
        np.bincount(rows.codes[:, first + at], weights=rows.weights, minlength=one.n_codes) / total
        for at, one in enumerate(design.categories)
    ]
