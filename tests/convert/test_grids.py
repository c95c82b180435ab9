"""Functions of cells as trees: the value of every cell, of several columns, of categories and missing values."""

from __future__ import annotations

import numpy as np
import pytest

from derand.convert._cells import CellAxis
from derand.convert._forests import shape_forest
from derand.convert._grids import grow_cells
from derand.convert._reading import Reading
from derand.tables import TableEncoding


@pytest.mark.parametrize("takes_missing", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_every_cell_has_its_value(seed: int, takes_missing: bool) -> None:
    rng = np.random.default_rng(seed)
    encoding = TableEncoding(3, None, {1: tuple("abcde"[: rng.integers(1, 6)])})
    n_codes = len(encoding.categories[1])
    edges = [np.unique(rng.normal(size=rng.integers(1, 6))) for _ in range(2)]
    axes = [
        CellAxis(0, edges[0], None, takes_missing),
        CellAxis(1, np.empty(0), n_codes, True),
        CellAxis(2, edges[1], None, True),
    ]
    values = rng.integers(-4, 5, size=(*(axis.size for axis in axes), 2)).astype(float)
    if seed % 2:
        values[1:] = values[:1]  # edges at which nothing changes
        axes[2], values = CellAxis(2, np.empty(0), None, True), values[:, :, -2:]  # numbers are one cell
    shape, lone = shape_forest(grow_cells(axes, values), encoding)
    assert shape is not None
    assert not lone
    assert len(shape.values) <= values[..., 0].size
    model = Reading(encoding, classes=np.arange(2), intercept=np.zeros(2), trees=[shape]).build()
    rows, expected = [], []
    for cell in np.ndindex(*values.shape[:3]):
        row = []
        for axis, at in zip(axes, cell, strict=True):
            if axis.n_codes is not None:
                row.append([*range(axis.n_codes), -1.0, np.nan][at])
            elif at > axis.edges.size:
                row.append(np.nan)
            else:
                row.append(axis.edges[at - 1] if at else np.nextafter(axis.edges[0], -np.inf))
        rows.append(row)
        expected.append(values[cell])
    np.testing.assert_array_equal(model.score(np.array(rows)) / model.levels, expected)
