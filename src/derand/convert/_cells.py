"""Functions of cells: how a column is cut into cells, exact sums over them, and what becomes of these sums.

Owns which columns are joined into one function, and how large it may be; what is larger stays trees. Must not know
trees, pipelines or any library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import TypeVar

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray
from derand.model import MAX_CELLS, CategoryShape, GridShape, Shape, TreeShape
from derand.tables import TableEncoding

MOST_COLUMNS = 4
"""Of one function."""

Part = TypeVar("Part")


class Total:
    """Sums over all cells with what every addition loses kept beside them: exact but for the last rounding."""

    def __init__(self, shape: tuple[int, ...], n_outputs: int) -> None:
        self._sums = np.zeros((*shape, n_outputs))
        self._lost = np.zeros_like(self._sums)
        self._magnitude = 0.0
        self._count = 0
        self._n_outputs = n_outputs

    def add(self, cells: tuple[FloatArray | EllipsisType, ...], leaf: FloatArray) -> None:
        """Add a value, or one per output, to some cells; or values of (..., n_outputs), spread over all cells."""
        value = np.asarray(leaf, dtype=np.float64)
        before = self._sums[cells]
        after = before + value
        part = after - before
        self._lost[cells] += (before - (after - part)) + (value - part)
        self._sums[cells] = after
        self._magnitude += float(np.abs(value).max())
        self._count += 1

    @property
    def values(self) -> FloatArray:
        total = self._sums + self._lost
        return total[..., 0] if self._n_outputs == 1 else total

    @property
    def error(self) -> float:
        """What was lost is summed in doubles itself, and the last addition rounds."""
        largest = float(np.abs(self._sums + self._lost).max(initial=0.0))
        return largest * EPSILON + (self._count * EPSILON) ** 2 * self._magnitude


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
    trees: list[TreeShape] = field(default_factory=list)
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


def connect(parts: Iterable[tuple[Iterable[int], Part]]) -> Iterator[tuple[tuple[int, ...], list[Part]]]:
    """Columns that parts of a sum join, directly or through others, with these parts; increasing by the first column.

    Parameters
    ----------
    parts : iterable of (columns, part)

    Examples
    --------
    >>> list(connect([((0, 2), "a"), ((1,), "b"), ((2, 3), "c"), ((3,), "d")]))
    [((0, 2, 3), ['a', 'c', 'd']), ((1,), ['b'])]
    """
    groups: list[tuple[set[int], list[Part]]] = []
    by_feature: dict[int, tuple[set[int], list[Part]]] = {}
    for columns, part in parts:
        features = set(columns)
        touched = list({id(by_feature[one]): by_feature[one] for one in features if one in by_feature}.values())
        own = max(touched, key=lambda group: len(group[1]), default=(set[int](), list[Part]()))
        for other in touched:
            if other is not own:
                own[0].update(other[0])
                own[1].extend(other[1])
                other[1].clear()
        own[0].update(features)
        own[1].append(part)
        if not touched:
            groups.append(own)
        by_feature.update(dict.fromkeys(own[0], own))
    found = [(tuple(sorted(features)), own) for features, own in groups if own]
    yield from sorted(found, key=lambda group: group[0])


def is_small(sizes: Mapping[int, int], encoding: TableEncoding) -> bool:
    """Whether a function of all joint cells of some columns is kept: of one column, or of few cells of a few numbers.

    `sizes`: cells by column.
    """
    if len(sizes) == 1:
        return True
    if len(sizes) > MOST_COLUMNS or any(feature in encoding.categories for feature in sizes):
        return False
    return math.prod(sizes.values()) <= MAX_CELLS
