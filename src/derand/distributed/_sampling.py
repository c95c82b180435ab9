"""A sample of the different rows of a table, the same however the rows are cut into parts.

Every row has a number that its own values alone decide; the sample is the different rows of the smallest numbers, each
with how often it occurs, and for every column with gaps one row that has one. Tables of no more different rows are all
in it. Must not know how parts are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.train import hash_rows

SAMPLE_ROWS = 2**16
_SEEDS = (np.uint64(0x51ED270B), np.uint64(0x2545F491))


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Different rows, in the order of their numbers.

    Attributes
    ----------
    numbers : array of shape (n_rows, 2)
        The second decides where the first ones are equal.
    rows : array of shape (n_rows, n_features)
        As the model reads them.
    target : array of shape (n_rows,)
    counts : array of shape (n_rows,)
        How often each occurs in the table.
    most : int
        How many different rows are kept.
    """

    numbers: NDArray[np.uint64]
    rows: FloatArray
    target: NDArray[np.uint8]
    counts: IntArray
    most: int = SAMPLE_ROWS

    @property
    def is_all(self) -> bool:
        """Whether there are no other rows in the table."""
        return self.target.size < self.most

    def count_distinct(self) -> int:
        """How many different rows the table has: exactly, where all are here; else by how dense numbers lie."""
        if self.is_all:
            return int(self.target.size)
        return int((self.most - 1) / ((float(self.numbers[self.most - 1, 0]) + 1.0) / 2.0**64))


def draw_part(rows: FloatArray, target: NDArray[np.uint8], weights: IntArray | None, most: int) -> Sample:
    """The sample of some rows, each of which counts as often as its weight."""
    plain = np.ascontiguousarray(rows) + 0.0  # a negative zero is a zero
    plain[np.isnan(plain)] = np.nan
    words = plain.view(np.uint64)
    numbers = np.empty((target.size, 2), dtype=np.uint64)
    for at, seed in enumerate(_SEEDS):
        column = np.empty(target.size, dtype=np.uint64)
        hash_rows(words, target, seed, column)
        numbers[:, at] = column
    return _keep(numbers, plain, target, np.ones(target.size, dtype=np.int64) if weights is None else weights, most)


def join_samples(parts: Sequence[Sample]) -> Sample:
    """The sample of several parts together."""
    return _keep(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.counts for part in parts]),
        parts[0].most,
    )


def _keep(
    numbers: NDArray[np.uint64], rows: FloatArray, target: NDArray[np.uint8], counts: IntArray, most: int
) -> Sample:
    """Equal rows together, and the first so many of them, with the first one that has a gap in each column."""
    order = np.lexsort((numbers[:, 1], numbers[:, 0]))
    ordered = numbers[order]
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(is_new)
    totals = np.add.reduceat(counts[order], starts)
    different = order[starts]
    chosen = np.arange(different.size) < most
    if not chosen.all():
        gaps = np.isnan(rows[different])
        chosen[gaps.argmax(axis=0)[gaps.any(axis=0)]] = True
    kept = different[chosen]
    return Sample(numbers[kept], rows[kept], target[kept], totals[chosen], most)
