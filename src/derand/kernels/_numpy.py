"""The plain backend: the paper's dynamic programme, for all rows of a block at once. Read this one first.

Cost per row: terms x cells x support. Contract and rounding argument: README.md.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from derand.kernels import FLOOR

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def laws(table: FloatArray, starts: IntArray, scores: IntArray) -> FloatArray:
    """P(S = s) for each row and s = 0, 1, ..., largest score."""
    largest = sum(int(scores[first:stop].max()) for first, stop in pairwise(starts))
    law = np.zeros((table.shape[0], largest + 1))
    law[:, 0] = 1.0
    size = 1  # scores reached so far: 0 .. size - 1
    for first, stop in pairwise(starts):
        grown = np.zeros_like(law)
        for cell in range(first, stop):
            score = int(scores[cell])
            grown[:, score : score + size] += law[:, :size] * table[:, cell, None]
        law = grown
        size += int(scores[first:stop].max())
    return law


def tails(
    table: FloatArray, starts: IntArray, scores: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """P(S <= low) and P(S > high) for each row and each of its thresholds; exactly 0 where that is impossible."""
    law = laws(table, starts, scores)
    support = np.arange(law.shape[1])
    low_mass, high_mass = np.empty(low.shape), np.empty(high.shape)
    least, most = _reached_scores(table, starts, scores)
    for k in range(low.shape[1]):
        below = np.where(support <= low[:, k, None], law, 0.0).sum(axis=1)
        above = np.where(support > high[:, k, None], law, 0.0).sum(axis=1)
        low_mass[:, k] = np.where(low[:, k] >= least, below + FLOOR, 0.0)
        high_mass[:, k] = np.where(high[:, k] < most, above + FLOOR, 0.0)
    return low_mass, high_mass


def _reached_scores(table: FloatArray, starts: IntArray, scores: IntArray) -> tuple[IntArray, IntArray]:
    """Lowest and highest score of positive probability, for each row."""
    least = np.zeros(table.shape[0], dtype=np.int64)
    most = np.zeros(table.shape[0], dtype=np.int64)
    for first, stop in pairwise(starts):
        possible = table[:, first:stop] > 0
        cell_scores = scores[first:stop]
        least += np.where(possible, cell_scores, np.iinfo(np.int64).max).min(axis=1)
        most += np.where(possible, cell_scores, -1).max(axis=1)
    return least, most
