"""Sums over rows: what rows lose by tables of their codes, and the slopes by these tables.

Owns which multiplier each row has, and the passes over the rows: rows in memory, both ends of intervals, rows in parts.
Every row is in a group, of its label and its multiplier, for numbers and for categories; it looks up the tables of its
groups. Rows in parts add whole multiples of a small step, so that sums, and with them the model, are the same to the
last bit however rows are cut into parts. Must not know how tables are filled.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design
from derand.train.losses.margin_loops import LOSS_STEPS, add_rows, choose_groups, mark_used
from derand.train.losses.softmax_loops import add_up, scatter
from derand.train.parts import CodedRows, Shards

_FEW_ROWS = 10_000  # not worth a thread of their own
_BLOCK_ROWS, _MOST_BLOCKS = 2**13, 16
_CHUNK = 2**20  # rows whose sums are exact as doubles
_BITS = 62  # of the sums of all rows


@dataclass(eq=False)
class Tables:
    """What each code of each column is worth to a row, for each label and multiplier; filled for every set of weights.

    Attributes
    ----------
    values : array of shape (n_points,)
        The functions of numerical columns at the positions of all their bins.
    worth : array of shape (2 * n_multipliers, n_number_codes)
        Groups of label 0 first.
    category_worth : array of shape (2 * n_category_multipliers, n_category_codes)
    """

    values: FloatArray
    worth: FloatArray
    category_worth: FloatArray
    category_shares: list[object] = field(default_factory=list)


class Groups(NamedTuple):
    """Groups of label 0, then those of label 1: sign, multiplier, and what the whole budget costs at it."""

    signs: FloatArray
    multipliers: FloatArray
    budget_costs: FloatArray

    @classmethod
    def of(cls, multipliers: FloatArray, budget_costs: FloatArray) -> Groups:
        return cls(np.repeat([-1.0, 1.0], multipliers.size), np.tile(multipliers, 2), np.tile(budget_costs, 2))

    def start(self, target: NDArray[np.uint8], index: int = 0) -> NDArray[np.int32]:
        """The group of each row: that of one multiplier."""
        return np.asarray(target.astype(np.int32) * np.int32(self.signs.size // 2) + np.int32(index))


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where codes stand in the tables, and the groups of rows.

    Attributes
    ----------
    n_numbers : int
    offsets : array of shape (n_columns,)
        Where the codes of each column begin in its table.
    n_codes : tuple of int
        Of numerical and of categorical columns.
    numbers, categories : Groups
    """

    n_numbers: int
    offsets: IntArray
    n_codes: tuple[int, int]
    numbers: Groups
    categories: Groups

    @classmethod
    def of(cls, design: Design) -> Layout:
        sizes, n_numbers = [column.n_codes for column in design.columns], len(design.numbers)
        ends, category_ends = np.cumsum([0, *sizes[:n_numbers]]), np.cumsum([0, *sizes[n_numbers:]])
        return cls(
            n_numbers,
            np.concatenate([ends[:-1], category_ends[:-1]]).astype(np.int64),
            (int(ends[-1]), int(category_ends[-1])),
            Groups.of(design.multipliers, design.budget_costs),
            Groups.of(design.category_multipliers, design.category_costs),
        )

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one multiplier."""
        return self.numbers.signs.size > 2 or self.categories.signs.size > 2

    def choose(self, rows: CodedRows, worth: FloatArray, category_worth: FloatArray, out: Choices) -> None:
        """Fill in the groups that prove most for each row."""
        n_columns = rows.codes.shape[1]
        asked = (
            (self.numbers, (0, self.n_numbers), worth, out.groups),
            (self.categories, (self.n_numbers, n_columns), category_worth, out.category_groups),
        )
        for groups, ends, tables, found in asked:
            if groups.signs.size > 2:
                choose_groups(rows.codes, self.offsets, ends, rows.target, tables, groups.budget_costs, found)


class Choices(NamedTuple):
    """The groups of some rows."""

    groups: NDArray[np.int32]
    category_groups: NDArray[np.int32]


class Totals(NamedTuple):
    """Loss, its slope by the intercept, slopes by both tables; margins in the order of groups, where they are known."""

    loss: float
    by_intercept: float
    slopes: FloatArray
    category_slopes: FloatArray
    margins: FloatArray | None = None


class SumsOverRows(Protocol):
    """Rows, wherever they lie."""

    n_threads: int
    used: BoolArray
    """Codes that occur in each group, (n_groups, n_number_codes)."""
    order: IntArray | None
    """The rows in the order of groups; None where their margins stay elsewhere."""

    def set_multiplier(self, index: int) -> None: ...
    def choose_multipliers(self, tables: Tables) -> None: ...
    def add(self, intercept: float, budget_costs: FloatArray, tables: Tables) -> Totals:
        """The loss and its slopes; `budget_costs` are those of the groups, and what is deducted from every margin."""
        ...


class RowsInMemory:
    """Rows at hand, and the log-loss of their margins; `weights` of rows add up to 1."""

    order: IntArray | None

    def __init__(self, design: Design, rows: BinnedTable, n_threads: int = 1) -> None:
        self._layout, self._rows = Layout.of(design), rows
        self.n_threads = n_threads if rows.target.size >= _FEW_ROWS else 1
        self.set_multiplier(0)

    def set_multiplier(self, index: int) -> None:
        layout, target = self._layout, self._rows.target
        self._choices = Choices(layout.numbers.start(target, index), layout.categories.start(target))
        self._sort()

    def choose_multipliers(self, tables: Tables) -> None:
        rows = self._rows

        def choose(block: slice) -> None:
            some = CodedRows(rows.codes[block], rows.target[block])
            own = Choices(*(one[block] for one in self._choices))
            self._layout.choose(some, tables.worth, tables.category_worth, own)

        run_blocks(choose, rows.target.size, self._block_rows(), self.n_threads)
        self._sort()

    def _sort(self) -> None:
        """Rows of a group side by side: they look up the same tables."""
        rows, layout = self._rows, self._layout
        order = np.argsort(self._choices.groups, kind="stable")
        self.order = np.asarray(order, dtype=np.int64)
        weights = rows.weights[order]
        groups, category_groups = (one[order] for one in self._choices)
        codes, signs = np.ascontiguousarray(rows.codes[order]), 2.0 * rows.target[order] - 1.0
        self._sorted = (codes, signs, groups, category_groups, weights / weights.sum())
        self.used = np.zeros((layout.numbers.signs.size, layout.n_codes[0]), dtype=bool)
        mark_used(codes, layout.offsets, layout.n_numbers, groups, self.used)

    def _block_rows(self) -> int:
        """Rows of a block: a matter of how many rows there are, not of threads, so that sums are always the same."""
        n_rows = self._rows.target.size
        return n_rows if n_rows < _FEW_ROWS else max(_BLOCK_ROWS, -(-n_rows // _MOST_BLOCKS))

    def add(self, intercept: float, budget_costs: FloatArray, tables: Tables) -> Totals:
        codes, signs, groups, category_groups, row_weights = self._sorted
        layout, margins = self._layout, np.empty(signs.size)
        found: dict[int, Any] = {}

        def add_block(block: slice) -> None:
            first = int(groups[block.start])
            slopes = np.zeros((int(groups[block.stop - 1]) - first + 1, layout.n_codes[0]))
            category_slopes = np.zeros((layout.categories.signs.size, layout.n_codes[1]))
            sums = add_rows(
                codes[block],
                layout.offsets,
                layout.n_numbers,
                signs[block],
                groups[block],
                category_groups[block],
                row_weights[block],
                tables.worth,
                tables.category_worth,
                budget_costs,
                layout.categories.budget_costs,
                intercept,
                slopes,
                category_slopes,
                first,
                margins[block],
                0.0,
            )
            found[block.start] = (first, slopes, category_slopes, *sums)

        run_blocks(add_block, signs.size, self._block_rows(), self.n_threads)
        slopes, category_slopes = np.zeros(tables.worth.shape), np.zeros(tables.category_worth.shape)
        loss = by_intercept = 0.0
        for start in sorted(found):
            first, part, category_part, more, by_more = found[start]
            slopes[first : first + part.shape[0]] += part
            category_slopes += category_part
            loss, by_intercept = loss + more, by_intercept + by_more
        return Totals(loss, by_intercept, slopes, category_slopes, margins)

    def compute_margins(self, intercept: float, deducted: float, tables: Tables) -> FloatArray:
        """Margin of each row, by the multipliers that were chosen last, for a loss of several margins."""
        codes, signs, groups, category_groups, _ = self._sorted
        layout = self._layout
        costs = layout.numbers.budget_costs[groups] + layout.categories.budget_costs[category_groups]
        found = signs * intercept - costs - deducted
        own = (groups, category_groups, tables.worth, tables.category_worth, found)
        add_up(codes, layout.offsets, layout.n_numbers, *own)
        margins = np.empty(found.size)
        margins[self.order] = found
        return margins

    def spread(self, row_slopes: FloatArray, tables: Tables) -> Totals:
        """Slopes by the intercept and the tables, from those by the margins of all rows."""
        codes, signs, groups, category_groups, _ = self._sorted
        slopes, category_slopes = np.zeros(tables.worth.shape), np.zeros(tables.category_worth.shape)
        own, layout = row_slopes[self.order], self._layout
        scatter(codes, layout.offsets, layout.n_numbers, groups, category_groups, own, slopes, category_slopes)
        return Totals(0.0, float(own @ signs), slopes, category_slopes)


class EndsInMemory(RowsInMemory):
    """The mean of half the squares by which both ends of a row's predictions miss its target.

    The lowest prediction is the margin of a row which must stay high, the highest that of one which must stay low, so
    that every row stands here twice. For rows that nothing moves it is half the mean square.
    """

    def __init__(self, design: Design, rows: BinnedTable, target: FloatArray) -> None:
        twice = np.concatenate([np.arange(target.size)] * 2)
        self._goal = target[twice]
        labels = np.repeat(np.array([0, 1], dtype=np.uint8), target.size)
        super().__init__(design, replace(rows.take(twice), target=labels))

    def add(self, intercept: float, budget_costs: FloatArray, tables: Tables) -> Totals:
        codes, signs, groups, category_groups, row_weights = self._sorted
        layout = self._layout
        category_costs = layout.categories.budget_costs
        margins = np.asarray(signs * intercept - budget_costs[groups] - category_costs[category_groups])
        slopes, category_slopes = np.zeros(tables.worth.shape), np.zeros(tables.category_worth.shape)
        columns: list[tuple[Any, ...]] = []
        for at, offset in enumerate(layout.offsets.tolist()):
            is_number = at < layout.n_numbers
            own = (
                (groups, tables.worth, slopes)
                if is_number
                else (category_groups, tables.category_worth, category_slopes)
            )
            columns.append((*own, offset + codes[:, at].astype(np.int64)))
        for own_groups, worth, _, code in columns:
            margins += worth[own_groups, code]
        missed = np.maximum(signs * self._goal[self.order] - margins, 0.0)
        by_margin = -2.0 * row_weights * missed
        for own_groups, _, by_table, code in columns:
            flat = own_groups.astype(np.int64) * by_table.shape[1] + code
            by_table.ravel()[:] += np.bincount(flat, weights=by_margin, minlength=by_table.size)
        return Totals(float(row_weights @ missed**2), float(by_margin @ signs), slopes, category_slopes, margins)


class RowsInParts:
    """The log-loss of rows that lie in parts: margins of rows stay there."""

    n_threads = 1
    order: IntArray | None = None

    def __init__(
        self,
        design: Design,
        shards: Shards,
        class_counts: IntArray,
        class_weight: FloatArray,
        largest_weight: int = 1,
    ) -> None:
        self._layout, self._shards, self._class_weight = Layout.of(design), shards, class_weight
        self.used = np.ones((self._layout.numbers.signs.size, self._layout.n_codes[0]), dtype=bool)
        self._total = float(class_counts @ class_weight)
        largest = float(class_weight.max()) * largest_weight
        bits = min(52 - np.ceil(np.log2(_CHUNK * largest)), _BITS - np.ceil(np.log2(self._total)))
        self._grid = float(2.0**bits)
        self.set_multiplier(0)

    def set_multiplier(self, index: int) -> None:
        self._choices = self._shards.spread(_start_part, self._layout, index)

    def choose_multipliers(self, tables: Tables) -> None:
        self._choices = self._shards.spread(_choose_part, self._layout, tables.worth, tables.category_worth)

    def add(self, intercept: float, budget_costs: FloatArray, tables: Tables) -> Totals:
        sums, slopes, category_slopes = self._shards.add(
            _add_part,
            self._layout,
            (self._class_weight, self._grid),
            float(intercept),
            budget_costs,
            (tables.worth, tables.category_worth),
            beside=self._choices,
        )
        one = 1.0 / (self._grid * self._total)
        by_tables = (slopes.astype(np.float64) * one, category_slopes.astype(np.float64) * one)
        return Totals(float(sums[0]) * (LOSS_STEPS * one), float(sums[1]) * one, *by_tables)


def _start_part(rows: CodedRows, layout: Layout, index: int) -> Choices:
    """The same multiplier for all rows of a part."""
    return Choices(layout.numbers.start(rows.target, index), layout.categories.start(rows.target))


def _choose_part(rows: CodedRows, layout: Layout, worth: FloatArray, category_worth: FloatArray) -> Choices:
    """The groups that prove most for each row of a part."""
    choices = _start_part(rows, layout, 0)
    layout.choose(rows, worth, category_worth, choices)
    return choices


def _add_part(
    rows: CodedRows,
    choices: Choices,
    layout: Layout,
    weighing: tuple[FloatArray, float],
    intercept: float,
    budget_costs: FloatArray,
    tables: tuple[FloatArray, FloatArray],
) -> tuple[IntArray, ...]:
    """Loss, slope by the intercept, and slopes by all tables, as whole multiples: what the rows of a part add.

    `weighing`: weights of the classes, and the grid, a power of two: every row adds multiples of one over it.
    """
    class_weight, grid = weighing
    totals = [np.zeros(2, dtype=np.int64), *(np.zeros(one.shape, dtype=np.int64) for one in tables)]
    for start in range(0, rows.target.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        target = rows.target[part]
        weights = class_weight[target]
        weights = weights if rows.weights is None else weights * rows.weights[part]
        slopes, category_slopes = (np.zeros(one.shape) for one in tables)
        loss, by_intercept = add_rows(
            rows.codes[part],
            layout.offsets,
            layout.n_numbers,
            2.0 * target - 1.0,
            choices.groups[part],
            choices.category_groups[part],
            weights,
            *tables,
            budget_costs,
            layout.categories.budget_costs,
            intercept,
            slopes,
            category_slopes,
            0,
            np.empty(target.size),
            grid,
        )
        sums = np.array([loss * (grid / LOSS_STEPS), by_intercept * grid])
        for total, more in zip(totals, (sums, slopes * grid, category_slopes * grid), strict=True):
            np.add(total, more.astype(np.int64), out=total)
    return tuple(totals)
