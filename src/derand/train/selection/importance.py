"""How much each column counts: one measure for every trainer. Must not know how weights are fitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from derand._core.arrays import FloatArray, Numbers
from derand.train.bins import BinnedTable


class SumOfParts(Protocol):
    """Functions whose sum is the score: Design or ProductDesign."""

    def list_parts(self, weights: FloatArray, codes: Numbers) -> Iterator[tuple[tuple[int, ...], FloatArray]]: ...


def measure_importances(design: SumOfParts, weights: FloatArray, rows: BinnedTable, n_features: int) -> FloatArray:
    """Mean absolute deviation of what each column adds to the scores of some rows, as a share of all.

    `weights` has shape (n_weights,), or (n_outputs, n_weights) with the mean over all outputs. The columns of a group
    share its importance evenly.
    """
    sizes = np.zeros(n_features)
    for features, added in design.list_parts(weights, rows.codes):
        middle = np.average(added, weights=rows.weights, axis=0)
        size = np.average(np.abs(added - middle), weights=rows.weights, axis=0).mean()
        sizes[list(features)] += size / len(features)  # a column may be in several groups
    total = sizes.sum()
    return sizes / total if total > 0 else sizes
