"""The cells of columns and functions of them: what sums of trees and folded pipelines share.

Must not know trees, pipelines or any library, nor how sums over cells are made (`_sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand.convert._sums import Total
from derand.model import CategoryShape, GridShape, Shape


@dataclass(frozen=True, slots=True, eq=False)
class CellAxis:
    """The cells of one column: between its edges, or its categories and the unseen; the missing cell is the last."""

    feature: int
    edges: FloatArray
    n_codes: int | None
    takes_missing: bool

    @property
    def is_category(self) -> bool:
        """Whether it is a column of categories."""
        return self.n_codes is not None

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.edges.size + 1 + self.takes_missing if self.n_codes is None else self.n_codes + 2

    @property
    def all_cells(self) -> BoolArray:
        """A mask of all of them."""
        return np.ones(self.size, dtype=bool)


@dataclass(slots=True)
class CellFunctions:
    """Functions of cells as they are read; `error` is how far their values, together, may lie from the exact sums."""

    shapes: list[Shape] = field(default_factory=list)
    grids: list[GridShape] = field(default_factory=list)
    tables: list[CategoryShape] = field(default_factory=list)
    error: float = 0.0

    def take(self, axes: Mapping[int, CellAxis], total: Total) -> None:
        """Keep a sum over all cells of some columns as a function of them."""
        self.error += total.error
        values = total.values
        first = next(iter(axes.values()))
        if len(axes) > 1:
            edges = tuple(axis.edges for axis in axes.values())
            missing = tuple(axis.takes_missing for axis in axes.values())
            self.grids.append(GridShape(tuple(axes), edges, values, missing))
        elif first.is_category:
            codes = np.arange(first.size - 2)
            self.tables.append(CategoryShape(first.feature, codes, values[:-2], values[-2], values[-1]))
        else:
            cells, gap = (values[:-1], values[-1]) if first.takes_missing else (values, None)
            self.shapes.append(Shape(first.feature, first.edges, cells, gap))
