"""Rows as the paper's training sees them: counts, from whoever has the rows.

Owns what must be known of a table to train stumps on it: a TrainingTable counts its own rows, a CountedTable knows
the counts of a table of which no machine holds all rows. Must not know how rows were read or what is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.histogram import Counts, Histogram, cut_into_blocks, merge_histograms, tabulate
from derand.train.table import TrainingTable


class CountedRows(Protocol):
    """What training stumps asks of a table; see TrainingTable for what each of them is."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def class_weight(self) -> FloatArray: ...
    @property
    def n_categories(self) -> Mapping[int, int]: ...
    @property
    def numerical(self) -> IntArray: ...
    def name(self, column: int) -> str | int: ...
    def list_known(self) -> IntArray: ...
    def list_missing(self) -> tuple[int, ...]: ...
    def count_classes(self) -> Counts: ...
    def count_categories(self, column: int) -> Counts: ...
    def count_category_rows(self, column: int) -> IntArray: ...
    def count_missing(self, column: int) -> Counts: ...
    def tabulate(self, columns: IntArray, units: FloatArray, resolution: float) -> list[Histogram]: ...


@dataclass(frozen=True, slots=True, eq=False)
class PartCounts:
    """What was counted in some rows of a table; parts of a table add up.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    missing : array of shape (n_features, n_classes)
        Rows of each class in which a column is missing.
    categories : mapping of column to array of shape (n_classes, n_categories)
    blocks : tuple of tuples of Histogram
        Of blocks of numerical columns.
    """

    classes: IntArray
    missing: IntArray
    categories: Mapping[int, IntArray]
    blocks: tuple[tuple[Histogram, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class CountingPlan:
    """What is counted in every part of a table, the same for all of them.

    Attributes
    ----------
    n_rows : int
        Of the whole table.
    columns : array of shape (n_columns,)
        The numerical columns in which some value is there.
    lows, highs : arrays of shape (n_columns,)
        Their ends in the whole table.
    units : array of shape (n_columns,)
    resolution : float
    """

    n_rows: int
    columns: IntArray
    lows: FloatArray
    highs: FloatArray
    units: FloatArray
    resolution: float

    def cut(self) -> list[IntArray]:
        """Places of the columns that are tabulated together, as those of the whole table would be."""
        return cut_into_blocks(np.arange(self.columns.size), self.n_rows)


def count_part(table: TrainingTable, plan: CountingPlan) -> PartCounts:
    """What is to be counted in a part of a table.

    `table`: the part; weights of its rows are whole numbers.
    """

    def count_block(places: IntArray) -> tuple[Histogram, ...]:
        columns, units = plan.columns[places], plan.units[places]
        ends = (plan.lows[places], plan.highs[places])
        data = (table.X, columns, table.target, table.sample_weight, units, plan.resolution)
        return tuple(tabulate(*data, limits=ends, n_classes=table.n_classes))

    return PartCounts(
        table.count_classes(),
        np.stack([table.count_missing(column) for column in range(table.n_features)]),
        {column: table.count_categories(column) for column in table.n_categories},
        tuple(count_block(places) for places in plan.cut()),
    )


def add_counts(parts: Sequence[PartCounts], resolution: float) -> PartCounts:
    """The counts of parts together: integers, and so the same in any order."""
    first = parts[0]
    return PartCounts(
        np.sum([part.classes for part in parts], axis=0),
        np.sum([part.missing for part in parts], axis=0),
        {column: np.sum([part.categories[column] for part in parts], axis=0) for column in first.categories},
        tuple(
            tuple(merge_histograms([part.blocks[at] for part in parts], resolution)) for at in range(len(first.blocks))
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class CountedTable:
    """A table that is known by its counts: a CountedRows without rows.

    Attributes
    ----------
    counts : PartCounts
        Of all rows.
    plan : CountingPlan
        By which they were counted.
    n_features : int
    class_weight : array of shape (n_classes,)
    n_categories : mapping of column to int
    names : tuple of str, or None
    """

    counts: PartCounts
    plan: CountingPlan
    n_features: int
    class_weight: FloatArray
    n_categories: Mapping[int, int]
    names: tuple[str, ...] | None = None

    @property
    def n_rows(self) -> int:
        return self.plan.n_rows

    @property
    def n_classes(self) -> int:
        return int(self.class_weight.size)

    @property
    def numerical(self) -> IntArray:
        every = range(self.n_features)
        return np.array([column for column in every if column not in self.n_categories], dtype=np.int64)

    def name(self, column: int) -> str | int:
        return self.names[column] if self.names is not None else column

    def list_known(self) -> IntArray:
        return self.plan.columns

    def list_missing(self) -> tuple[int, ...]:
        return tuple(column for column in self.numerical.tolist() if self.counts.missing[column].any())

    def count_classes(self) -> Counts:
        return self.counts.classes

    def count_categories(self, column: int) -> Counts:
        return self.counts.categories[column]

    def count_category_rows(self, column: int) -> IntArray:
        return np.asarray(self.counts.categories[column].sum(axis=0))

    def count_missing(self, column: int) -> Counts:
        return np.asarray(self.counts.missing[column])

    def tabulate(self, columns: IntArray, units: FloatArray, resolution: float) -> list[Histogram]:
        """The histograms of a block of columns, as they were counted; others are refused."""
        for places, histograms in zip(self.plan.cut(), self.counts.blocks, strict=True):
            same = np.array_equal(self.plan.columns[places], columns) and np.array_equal(self.plan.units[places], units)
            if same and self.plan.resolution == resolution:
                return list(histograms)
        raise ValueError("This table was counted for other columns, units or bins: count it again.")
