"""The inputs of an exported model: names and types of columns, and rows written as a user would give them.

Owns how categories are given: text as text, all else as numbers. Must not know any format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand._core.origin import Cell
from derand.tables import ColumnKind, TableEncoding, make_unseen

MATRIX = "X"
"""Name of the one input of a model of numbers, and of one that knows no categories but codes."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column as an input of its own.

    Attributes
    ----------
    name : str
        Of the input.
    values : tuple or None
        Its categories, text or numbers; None for a number.
    is_text : bool
    """

    name: str
    values: tuple[Cell, ...] | None
    is_text: bool

    def decode(self, codes: FloatArray) -> NDArray[np.generic]:
        """Encoded values as a user gives them, as a matrix of one column."""
        if self.values is None:
            return codes[:, None]
        gap: object = "" if self.is_text else np.nan
        unseen: Cell = make_unseen(self.values) if self.is_text else max(self.values, default=0.0) + 1
        cells = [gap if np.isnan(code) else self.values[int(code)] if code >= 0 else unseen for code in codes.tolist()]
        return np.array(cells, dtype=object if self.is_text else np.float64)[:, None]


def list_columns(encoding: TableEncoding, taken: Collection[str]) -> list[Column]:
    """Inputs of a table with categories, one per column, with names that no output bears.

    `taken`: names of outputs.
    """
    columns: list[Column] = []
    used = set(taken)
    for feature in range(encoding.n_features):
        name = str(encoding.name(feature)) if encoding.names is not None else f"column_{feature}"
        while not name or name in used:
            name += "_"
        used.add(name)
        is_text = feature in encoding.categories and encoding.kind(feature) is ColumnKind.TEXT
        columns.append(Column(name, _as_values(encoding.categories, feature, is_text), is_text))
    return columns


def _as_values(categories: Mapping[int, tuple[Cell, ...]], feature: int, is_text: bool) -> tuple[Cell, ...] | None:
    if feature not in categories:
        return None
    values = categories[feature]
    return values if is_text else tuple(float(value) for value in values)
