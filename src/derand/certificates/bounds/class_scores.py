"""Expected scores of several classes at once: who leads, and how far. Must not know rules or what is proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand.model import AdditiveEnsemble, Axis
from derand.noise import Noise

_BLOCK_NUMBERS = 2**21


def expect_classes(model: AdditiveEnsemble, rows: NDArray[Any], noise: Noise | None) -> FloatArray:
    """Expected score of each class, offsets included, in grid units: to nearest, nothing is proven by it.

    The model has the decision Argmax. Without noise these are the scores themselves, (n_rows, n_classes).
    """
    total = np.tile(np.array(model.offsets, dtype=np.float64), (rows.shape[0], 1))
    if noise is None:
        return np.asarray(total + model.score(rows))
    size = max(1, _BLOCK_NUMBERS // max(model.n_cells, 1))
    for start in range(0, rows.shape[0], size):
        part = slice(start, start + size)
        _add_terms(model, np.asarray(rows[part], dtype=np.float64), noise, total[part])
    return total


def _add_terms(model: AdditiveEnsemble, rows: FloatArray, noise: Noise, total: FloatArray) -> None:
    axes = [axis for term in model.terms for axis in term.axes]
    probabilities = iter(_compute_probabilities(axes, rows, noise) if axes else ())
    for term in sorted(model.terms, key=lambda one: bool(one.axes)):  # whole numbers first: nothing is rounded
        total += term.expect(rows, [next(probabilities) for _ in term.axes])


def _compute_probabilities(axes: Sequence[Axis], rows: FloatArray, noise: Noise) -> list[FloatArray]:
    """Probabilities of the cells of each axis; any number stands for missing ones."""
    counts = [axis.edges.size for axis in axes]
    features = np.repeat(np.array([axis.feature for axis in axes], dtype=np.int64), counts)
    numbers = np.repeat(np.arange(len(axes), dtype=np.int64), counts)
    edges = np.concatenate([axis.edges for axis in axes])
    table = noise.cell_table(np.where(np.isnan(rows), 0.0, rows)[:, features], edges, features, numbers, len(axes))
    return np.split(table, np.cumsum([count + 1 for count in counts])[:-1], axis=1)
