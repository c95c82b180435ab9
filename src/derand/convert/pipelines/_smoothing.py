"""Noise on the columns that the last step of a pipeline is given, as noise on the columns of the user's table.

Owns where both are the same, and how far expected scores may lie apart for rounding. Must not know scikit-learn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand._core.origin import Cell
from derand.convert._reading import Reading
from derand.convert.pipelines._links import Affine, Column, Fill
from derand.noise import Noise


def fold_noise(
    reading: Reading, columns: Sequence[Column], n_features: int, name: Callable[[int], object]
) -> tuple[Noise, float]:
    """The noise in units of the user's columns, and how far expected scores may lie from those of the pipeline.

    `reading`: of the last step, which is smoothed; `columns`: what it is given; `name`: of a column of the table.
    """
    assert reading.noise is not None  # asked by the caller
    noise, units = reading.noise, np.ones(n_features)
    inner = np.ones(len(columns)) if noise.units is None else np.asarray(noise.units, dtype=np.float64)
    jumps = _list_jumps(reading)
    used = Counter(columns[at].source for at, _, _ in jumps)
    error = 0.0
    for at, edges, size in jumps:
        column = columns[at]
        affine = column.affine
        if affine is None or not affine.slope or any(isinstance(link, Fill) for link in column.links):
            step = next((link.step for link in column.links if link.affine is None or isinstance(link, Fill)), "A step")
            raise ValueError(
                f"{step} changes column {name(column.source)!r} before the noise of {reading.source}, and not only "
                "by a scale and a shift: leave the step out, since missing values and categories need none, or fit it "
                "with noise='none' and rule='mean'."
            )
        if used[column.source] > 1:
            raise ValueError(
                f"Column {name(column.source)!r} is given to {reading.source} more than once, with noise of its own "
                "each time: give it once, or fit it with noise='none' and rule='mean'."
            )
        units[column.source] = inner[at] / abs(affine.slope)
        error += _bound_error(column, affine, edges, size, noise.magnitude * float(inner[at]))
    return noise.with_units(tuple(units.tolist())), error


def _list_jumps(reading: Reading) -> list[tuple[int, FloatArray, float]]:
    """Each column with noise, the edges of its function, and how far two values of that can lie apart."""
    found = [(one.feature, np.asarray(one.edges, dtype=np.float64), _measure(one.values)) for one in reading.shapes]
    for grid in reading.grids:
        size = _measure(grid.values)
        axes = zip(grid.features, grid.edges, strict=True)
        found += [(at, np.asarray(own, dtype=np.float64), size) for at, own in axes]
    return found


def _measure(values: Cell) -> float:
    every = np.asarray(values, dtype=np.float64)
    return float(every.max(initial=0.0) - every.min(initial=0.0))


def _bound_error(column: Column, affine: Affine, edges: FloatArray, size: float, scale: float) -> float:
    """How far the expected value of a function may move because edges, values and scales are rounded.

    A mass below an edge is a distribution function of (x - edge) / scale, whose density is at most 1 and falls faster
    than 1 / |z|: an error of `a + b * |z|` moves it by a + b at most.
    """
    if not edges.size:
        return 0.0
    before = float(np.abs(column.fold_edges(edges)).max(initial=0.0))
    apart = 2 * affine.slope_error * before + 2 * affine.shift_error
    apart += 4 * EPSILON * (abs(affine.slope) * before + float(np.abs(edges).max()))
    per_distance = affine.slope_error / abs(affine.slope) + 16 * EPSILON
    return 2 * size * edges.size * (apart / scale + per_distance)
