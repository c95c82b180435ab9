"""Trees of a pipeline's last step as trees of the columns that the pipeline is given.

Owns where a split behind the steps lies before them: a split of a column of numbers is one or several splits of the
user's number, a split behind an encoder is one by categories. Must not know scikit-learn, readings or pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.origin import Cell
from derand.convert._forests import LEAF, UNSEEN, Forest
from derand.convert.pipelines._links import REFUSED, Column, is_nan
from derand.convert.pipelines._links import UNSEEN as UNSEEN_CELL
from derand.tables import TableEncoding


def fold_forest(
    forest: Forest,
    columns: Sequence[Column],
    inner: TableEncoding,
    encoding: TableEncoding,
    refused: frozenset[int],
) -> Forest:
    """The same trees in the user's columns.

    `columns`: what the last step is given, of which `inner` knows the categories; `encoding`: of the user's table;
    `refused`: the user's columns that take no missing value.
    """
    nodes = _Nodes.of(forest)
    splits = np.flatnonzero(forest.feature != LEAF)
    for at in np.unique(forest.feature[splits]).tolist():
        own = splits[forest.feature[splits] == at]
        column = columns[at]
        if column.source in encoding.categories:
            _fold_categories(nodes, own, column, inner.categories.get(at), encoding.categories[column.source])
        else:
            _fold_numbers(nodes, own, column)
    return nodes.close(refused)


@dataclass(slots=True)
class _Nodes:
    """The nodes of trees as they are folded, and those that are added."""

    forest: Forest
    feature: IntArray
    edge: FloatArray
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    left_codes: dict[int, frozenset[int]] = field(default_factory=dict)
    added: list[tuple[int, float, int, int, bool]] = field(default_factory=list)

    @staticmethod
    def of(forest: Forest) -> _Nodes:
        feature, left, right = (part.copy() for part in (forest.feature, forest.left, forest.right))
        return _Nodes(forest, feature, forest.edge.copy(), left, right, forest.missing_left.copy())

    def add(self, feature: int, edge: float, left: int, right: int, missing_left: bool) -> int:
        """One more split, and its number."""
        self.added.append((feature, edge, left, right, missing_left))
        return self.feature.size + len(self.added) - 1

    def close(self, refused: frozenset[int]) -> Forest:
        """All of them."""
        n_outputs, count = self.forest.value.shape[1], len(self.added)
        more = np.array(self.added, dtype=np.float64).reshape(count, 5).T
        whole = [one.astype(np.int64) for one in (more[0], more[2], more[3])]
        return replace(
            self.forest,
            feature=np.concatenate([self.feature, whole[0]]),
            edge=np.concatenate([self.edge, more[1]]),
            left=np.concatenate([self.left, whole[1]]),
            right=np.concatenate([self.right, whole[2]]),
            value=np.concatenate([self.forest.value, np.zeros((count, n_outputs))]),
            missing_left=np.concatenate([self.missing_left, more[4].astype(bool)]),
            left_codes=self.left_codes,
            refused=refused,
        )


def _fold_categories(
    nodes: _Nodes, splits: IntArray, column: Column, inner: Sequence[Cell] | None, known: Sequence[Cell]
) -> None:
    """Splits of a column that rests on categories of the user: the codes that go left, the unseen one and missing ones.

    A cell that a step refuses goes where the first category goes, which stands for it.
    """
    cells = [column.apply_cell(cell) for cell in (*known, UNSEEN_CELL, math.nan)]
    cells = [cells[0] if cell is REFUSED else cell for cell in cells]
    codes = {value: code for code, value in enumerate(inner or ())}
    for node in splits.tolist():
        if inner is None:
            edge, missing = float(nodes.edge[node]), bool(nodes.missing_left[node])
            left = [missing if is_nan(cell) else _is_number(cell) and float(cell) < edge for cell in cells]
        else:
            own, missing = nodes.forest.left_codes[node], bool(nodes.missing_left[node])
            left = [missing if is_nan(cell) else codes.get(cell, UNSEEN) in own for cell in cells]
        nodes.feature[node] = column.source
        nodes.left_codes[node] = frozenset(
            UNSEEN if code == len(known) else code for code in range(len(known) + 1) if left[code]
        )
        nodes.missing_left[node] = left[-1]


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float | np.integer | np.floating)


def _fold_numbers(nodes: _Nodes, splits: IntArray, column: Column) -> None:
    """Splits of a column that rests on a number of the user."""
    edges = np.unique(nodes.edge[splits])
    before = column.fold_edges(edges[np.isfinite(edges)])
    first = [float(np.nextafter(before[0], -np.inf))] if before.size else [0.0]
    values = column.apply(np.array([*first, *before.tolist()]))
    missing = column.apply_cell(math.nan)
    steps, edge = np.diff(values), nodes.edge[splits]
    if missing is not REFUSED and not is_nan(missing):
        nodes.missing_left[splits] = float(missing) < edge
    nodes.feature[splits] = column.source
    if (steps >= 0).all():
        ends = np.array([-np.inf, *before, np.inf])
        nodes.edge[splits] = ends[np.searchsorted(values, edge, side="left")]
    elif (steps <= 0).all():  # what is small behind the steps is large before them: both sides change places
        ends = np.array([np.inf, *before[::-1], -np.inf])
        nodes.edge[splits] = ends[np.searchsorted(values[::-1], edge, side="left")]
        nodes.left[splits], nodes.right[splits] = nodes.right[splits], nodes.left[splits]
        nodes.missing_left[splits] ^= True
    else:
        for node in splits.tolist():
            _chain_edges(nodes, node, before, values < nodes.edge[node], column.source)


def _chain_edges(nodes: _Nodes, node: int, before: FloatArray, is_left: BoolArray, source: int) -> None:
    """A split that sends several intervals of the user's number to the left: one split for each end of them."""
    ends = np.flatnonzero(np.diff(is_left))
    children = (int(nodes.right[node]), int(nodes.left[node]))
    goes_left = bool(nodes.missing_left[node])
    follower = children[int(is_left[-1])]
    for place in range(ends.size - 1, -1, -1):
        end = int(ends[place])
        # a missing value leaves the chain where it first can: on its first or its second split
        leaves = bool(is_left[end]) == goes_left
        own = (source, float(before[end]), children[int(is_left[end])], follower, leaves)
        if place:
            follower = nodes.add(*own)
        else:
            _, nodes.edge[node], nodes.left[node], nodes.right[node], nodes.missing_left[node] = own
