"""Exact sums over the cells of columns that belong together. Must not know trees, nor any library.

Owns which columns are joined into one function, and how large such a function may be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand.model import MAX_CELLS
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

    def add(self, cells: tuple[Any, ...], leaf: float | FloatArray) -> None:
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


def require_small(parts: str, sizes: Mapping[int, int], encoding: TableEncoding, cure: str) -> None:
    """Refuse a function of too many columns or cells, or of categories and anything else.

    `parts`: what joins the columns, such as "Trees", for the error; `cure`: what the user can change, for the error.
    """
    if len(sizes) == 1:
        return
    names = [repr(encoding.name(feature)) for feature in sizes]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    n_cells = math.prod(sizes.values())
    if len(sizes) > MOST_COLUMNS or n_cells > MAX_CELLS:
        raise ValueError(
            f"{parts} join {len(sizes)} columns ({shown}) into one function of {_show(n_cells)} joint cells; at most "
            f"{MOST_COLUMNS} columns and {MAX_CELLS} cells can be certified exactly: {cure}."
        )
    category = next((feature for feature in sizes if feature in encoding.categories), None)
    if category is not None:
        raise ValueError(
            f"{parts} join the categories of column {encoding.name(category)!r} with other columns ({shown}), which "
            f"cannot be certified exactly: {cure}."
        )


def _show(count: int) -> str:
    """A whole number of any size, in three digits."""
    return f"{count:.3g}" if count < 10**300 else f"10^{len(str(count)) - 1}"
