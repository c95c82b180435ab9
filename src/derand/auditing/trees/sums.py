"""Sums of trees and other terms, as an audit reads them: cells of columns, and the leaves that a region reaches.

The cells of a column are numbered, and a set of cells is a whole number with one bit per cell. Of a number they are the
bins between the edges of all its splits, then that of a missing value; of a category its codes, then those of an unseen
and of a missing one. Owns this reading of the fields of terms. Must not know threats or proofs.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from derand.auditing._balls import Told
from derand.model import AdditiveEnsemble

FINE = 2**64
"""Values are whole multiples of 1 / FINE of a grid unit; errors are rounded upward to them."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its cells."""

    feature: int
    edges: tuple[float, ...]
    """Of a number: cell i is `[edges[i - 1], edges[i])`. Of a category its codes."""
    is_code: bool
    takes_missing: bool

    @property
    def missing(self) -> int:
        """The cell of a missing value."""
        return len(self.edges) + 1

    @property
    def seen(self) -> int:
        """All codes of a category, or all bins of a number that hold a finite one."""
        if self.is_code:
            return (1 << len(self.edges)) - 1
        is_empty = bool(self.edges) and math.isinf(math.nextafter(self.edges[0], -math.inf))
        return (1 << len(self.edges) + 1) - 1 - is_empty

    def locate(self, value: float) -> int:
        """The cell of a value; a missing one that the model has no cell for is refused."""
        if math.isnan(value):
            if not self.takes_missing:
                raise ValueError(f"The value in column {self.feature} is missing, of which the model knows no score.")
            return self.missing
        if not self.is_code:
            return bisect.bisect_right(self.edges, value)
        at = bisect.bisect_left(self.edges, value)
        return at if at < len(self.edges) and self.edges[at] == value else len(self.edges)


Cells = Mapping[int, int]
"""Sets of cells by column."""


class Leaf(NamedTuple):
    """A leaf of a tree, or a cell of another term: what it scores in each output, and what that may be off by (in
    1 / FINE); the cells of columns that lead there, where not all cells of a region do."""

    scores: Sequence[int]
    errors: Sequence[int]
    cells: Cells


class Part(NamedTuple):
    """One tree, or another term: the leaves that a region reaches, and the outputs that they may add to."""

    leaves: list[Leaf]
    outputs: frozenset[int]


class _Trees:
    """A term of trees as lists."""

    def __init__(self, told: Told, columns: Mapping[int, Column]) -> None:
        self._features, self._roots = told["columns"], told["roots"]
        self._left, self._right, self._scores = told["left"], told["right"], told["scores"]
        self._magnitudes = told["magnitudes"] or [list(map(abs, scores)) for scores in self._scores]
        self._rounding = Fraction(told["rounding"])
        self._goes_left = _list_left_cells(told, columns)
        self._outputs = self._list_outputs(len(self._scores[0]))
        self._read_leaf = lru_cache(2**16)(self._make_leaf)

    def list_parts(self, region: Cells) -> Iterable[Part]:
        """The leaves of each tree that a region reaches."""
        for root, outputs in zip(self._roots, self._outputs, strict=True):
            yield Part([Leaf(*self._read_leaf(leaf), cells) for leaf, cells in self._walk(root, region)], outputs)

    def _walk(self, root: int, region: Cells) -> Iterable[tuple[int, Cells]]:
        features, goes_left, left, right = self._features, self._goes_left, self._left, self._right
        waiting: list[tuple[int, dict[int, int]]] = [(root, {})]
        while waiting:
            node, cells = waiting.pop()
            while node >= 0:
                feature = features[node]
                here = cells.get(feature) or region[feature]
                going = here & goes_left[node]
                if going == here:
                    node = left[node]
                elif not going:
                    node = right[node]
                else:
                    waiting.append((right[node], {**cells, feature: here ^ going}))
                    cells, node = {**cells, feature: going}, left[node]
            yield ~node, cells

    def _make_leaf(self, leaf: int) -> tuple[list[int], list[int]]:
        magnitudes = self._magnitudes[leaf] if self._rounding else [0.0] * len(self._scores[leaf])
        return self._scores[leaf], [math.ceil(self._rounding * Fraction(one) * FINE) for one in magnitudes]

    def _list_outputs(self, n_outputs: int) -> list[frozenset[int]]:
        """The outputs that each tree may add to."""
        if n_outputs == 1:
            return [frozenset([0])] * len(self._roots)
        pairs = zip(self._scores, self._magnitudes, strict=True)
        own = [frozenset(at for at in range(n_outputs) if score[at] or size[at]) for score, size in pairs]
        below: list[frozenset[int]] = [frozenset()] * len(self._left)
        for node in range(len(self._left) - 1, -1, -1):  # children have larger numbers
            for child in (self._left[node], self._right[node]):
                below[node] |= below[child] if child >= 0 else own[~child]
        return [below[root] for root in self._roots]


def _list_left_cells(told: Told, columns: Mapping[int, Column]) -> list[int]:
    """The cells that go left at each split."""
    codes = dict(zip(told["category_splits"], told["left_codes"], strict=True))
    known: dict[tuple[int, int, int], int] = {}  # shared, as there may be thousands of bins
    found = []
    asked = zip(told["columns"], told["edges"], told["missing_left"], strict=True)
    for split, (feature, edge, is_left) in enumerate(asked):
        column = columns[feature]
        missing = is_left << column.missing
        if split in codes:
            size = len(column.edges)
            found.append(missing | sum(1 << (size if code < 0 else code) for code in codes[split]))
            continue
        key = feature, bisect.bisect_left(column.edges, edge) + 1, is_left  # how many bins lie below the edge
        if key not in known:
            known[key] = missing | (1 << key[1]) - 1
        found.append(known[key])
    return found


class _Boxes:
    """A function of one column, or of several on a grid: one score per cell, or box of cells, in C order."""

    def __init__(self, columns: Sequence[Column], scores: Sequence[Sequence[int]]) -> None:
        self._columns, self._scores = columns, scores
        self._outputs = frozenset(range(len(scores[0])))
        self._no_errors = [0] * len(scores[0])

    def list_parts(self, region: Cells) -> Iterable[Part]:
        """The boxes that a region reaches; cells of one column that score the same are one leaf."""
        sides = [_list_cells(region[column.feature]) for column in self._columns]
        if len(sides) == 1:
            yield Part(self._join_cells(sides[0]), self._outputs)
            return
        leaves = []
        for box in itertools.product(*sides):
            at, cells = 0, {}
            for column, cell in zip(self._columns, box, strict=True):
                at = at * (len(column.edges) + 1 + column.takes_missing) + cell
                cells[column.feature] = 1 << cell
            leaves.append(Leaf(self._scores[at], self._no_errors, cells))
        yield Part(leaves, self._outputs)

    def _join_cells(self, cells: Sequence[int]) -> list[Leaf]:
        joined: dict[tuple[int, ...], int] = {}
        for cell in cells:
            own = tuple(self._scores[cell])
            joined[own] = joined.get(own, 0) | 1 << cell
        feature = self._columns[0].feature
        return [Leaf(scores, self._no_errors, {feature: found}) for scores, found in joined.items()]


def _list_cells(cells: int) -> list[int]:
    """The numbers of some cells."""
    return [at for at in range(cells.bit_length()) if cells >> at & 1]


class TreeSums:
    """The terms of a model, of one output or several, as an audit reads them."""

    def __init__(self, model: AdditiveEnsemble) -> None:
        self.columns: dict[int, Column] = {}
        self._terms: list[_Trees | _Boxes] = []
        for term in model.terms:
            told = term.describe()
            own = _list_columns(term.kind, told)
            self.columns |= {one.feature: one for one in own}
            is_trees = term.kind == "tree_term"
            self._terms.append(_Trees(told, self.columns) if is_trees else _Boxes(own, _list_scores(term.kind, told)))

    def locate(self, row: Sequence[float]) -> dict[int, int]:
        """The region that a row is."""
        return {feature: 1 << column.locate(row[feature]) for feature, column in self.columns.items()}

    def list_parts(self, region: Cells) -> list[Part]:
        """All trees and other terms, with the leaves that a region reaches."""
        return [part for term in self._terms for part in term.list_parts(region)]


def _list_columns(kind: str, told: Told) -> list[Column]:
    """The columns of a term with their cells."""
    if kind == "step_function":
        return [Column(told["feature"], tuple(told["edges"]), False, "missing" in told)]
    if kind == "category_table":
        return [Column(told["feature"], tuple(told["categories"]), True, True)]
    if kind == "grid_term":
        takes = told.get("missing", [0] * len(told["features"]))
        parts = zip(told["features"], told["edges"], takes, strict=True)
        return [Column(feature, tuple(edges), False, bool(gap)) for feature, edges, gap in parts]
    if kind != "tree_term":
        raise ValueError(f"A term of kind {kind!r} beside trees cannot be audited.")
    edges: dict[int, set[float]] = {feature: set() for feature in told["columns"]}
    for feature, edge in zip(told["columns"], told["edges"], strict=True):
        edges[feature].add(edge)
    codes = {feature: tuple(map(float, range(size))) for feature, size in told["categories"]}
    return [
        Column(feature, codes.get(feature, tuple(sorted(own))), feature in codes, feature not in told["refused"])
        for feature, own in edges.items()
    ]


def _list_scores(kind: str, told: Told) -> list[list[int]]:
    """The scores of all cells of a term, one number per output."""
    scores = [_as_list(score) for score in told["scores"]]
    if kind == "grid_term":
        return scores
    outside = [told["other"]] if kind == "category_table" else []
    missing = told.get("missing", told.get("other"))
    return [*scores, *map(_as_list, [*outside, *([] if missing is None else [missing])])]


def _as_list(score: Any) -> list[int]:
    return [int(one) for one in score] if isinstance(score, Sequence) else [int(score)]
