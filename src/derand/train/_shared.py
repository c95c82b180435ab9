"""Additive models of tables whose rows lie in parts, perhaps on other machines.

Owns the fit to all rows: what every part adds to the loss and its slopes, in whole multiples of a small step, so that
the sums, and with them the model, are the same to the last bit however the rows are cut into parts. Penalties, cuts and
the first weights come from a sample. Must not know where parts lie and who computes there: `Shards` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.progress import tell
from derand.noise import Noise
from derand.threat import Threat
from derand.train.additive import LARGE, AdditiveOptions, Trainer
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design
from derand.train.losses.margin import MarginLoss, Precondition, Tables, WeightFit
from derand.train.losses.margin_loops import LOSS_STEPS, add_rows, choose_groups
from derand.train.selection.folds import share_codes
from derand.train.table import TrainingTable

_CHUNK = 2**20  # rows whose sums are exact as doubles
_BITS = 62  # of the sums of all rows


class CodedRows(NamedTuple):
    """The rows of one part.

    Attributes
    ----------
    codes : array of shape (n_rows, n_columns)
        As in BinnedTable.
    target : array of shape (n_rows,)
    """

    codes: NDArray[Any]
    target: NDArray[np.uint8]


class Choices(NamedTuple):
    """The prices of the rows of one part: which groups they are in."""

    groups: NDArray[np.int32]
    swaps: NDArray[np.int32]


class Shards(Protocol):
    """Coded rows in parts, each where it can be worked on."""

    def spread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Results of `work(rows, *arguments)` for every part, which stay where they are; a handle to them."""
        ...

    def add(self, work: Callable[..., tuple[IntArray, ...]], *arguments: Any, beside: Any = None) -> list[IntArray]:
        """Sums over all parts of what `work(rows, own, *arguments)` gives; `own` is what `beside` holds of the part."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SharedTable(TrainingTable):
    """A sample of the rows of a table, and the way to all of them.

    Attributes
    ----------
    class_counts : array of shape (n_classes,)
        Rows of each class in the whole table.
    n_distinct : int
        How many different rows the whole table has.
    share : callable
        Codes all rows by the bins of a BinnedTable: the Shards.
    """

    class_counts: IntArray = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    n_distinct: int = 0
    share: Callable[[BinnedTable], Shards] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all different rows are in the sample: it says all then."""
        return self.n_distinct <= min(self.target.size, LARGE)


class SharedTrainer(Trainer):
    """Chooses on the sample, and fits all rows."""

    def __init__(
        self, table: SharedTable, binned: BinnedTable, noise: Noise | None, threat: Threat, options: AdditiveOptions
    ) -> None:
        super().__init__(binned, table.n_features, noise, threat, options)
        self._table = table
        self._shards: Shards | None = None

    def fit_all(self, design: Design, regularization: float) -> FloatArray:
        table = self._table
        if table.is_whole:
            return super().fit_all(design, regularization)
        if self._shards is None:
            assert table.share is not None
            tell("training: coding all rows")
            self._shards = table.share(self._binned)
        start, stages = self.begin_large(design, self._binned, regularization)
        weighted = table.class_counts * table.class_weight
        rate = float(np.clip(weighted[1] / weighted.sum(), 1e-6, 1 - 1e-6))
        penalties = design.list_penalties(regularization) / table.n_distinct
        change = Precondition(design, penalties, share_codes(design, self._binned), rate)
        constant = np.zeros(penalties.size)
        constant[0] = np.log(rate / (1 - rate))
        loss = SharedLoss(design, self._binned, self._shards, table.class_counts, table.class_weight)
        fit = WeightFit(loss, penalties, change)
        tell("training: fitting all rows")
        weights = fit.fit(start, stages)
        rows = self._binned
        return self.compare(fit, design, constant, weights, lambda: self._fit_categories(design, rows, regularization))


@dataclass(frozen=True, slots=True, eq=False)
class RowPass:
    """What a pass over the rows of a part needs to know besides the tables.

    Attributes
    ----------
    offsets : array of shape (n_columns,)
        Where the codes of each column begin.
    n_numbers : int
    charges, swap_charges : arrays of shape (n_groups,), (n_swap_groups,)
    class_weight : array of shape (2,)
    grid : float
        A power of two: every row adds multiples of one over it.
    """

    offsets: IntArray
    n_numbers: int
    charges: FloatArray
    swap_charges: FloatArray
    class_weight: FloatArray
    grid: float


def choose_part(rows: CodedRows, how: RowPass, worth: FloatArray, swap_worth: FloatArray) -> Choices:
    """The groups that prove most for each row of a part."""
    starts = rows.target.astype(np.int32)
    groups, swaps = starts * (how.charges.size // 2), starts * (how.swap_charges.size // 2)
    ends = (how.n_numbers, rows.codes.shape[1])
    data = (rows.codes, how.offsets)
    if how.charges.size > 2:
        choose_groups(*data, (0, how.n_numbers), rows.target, worth, how.charges, groups)
    if how.swap_charges.size > 2:
        choose_groups(*data, ends, rows.target, swap_worth, how.swap_charges, swaps)
    return Choices(groups, swaps)


def place_part(rows: CodedRows, how: RowPass, place: int) -> Choices:
    """The same price for all rows of a part: the one at a place."""
    starts = rows.target.astype(np.int32)
    groups = starts * np.int32(how.charges.size // 2) + np.int32(place)
    return Choices(groups, starts * np.int32(how.swap_charges.size // 2))


def add_part(
    rows: CodedRows,
    choices: Choices,
    how: RowPass,
    intercept: float,
    charges: FloatArray,
    worth: FloatArray,
    swap_worth: FloatArray,
) -> tuple[IntArray, ...]:
    """Loss, slope by the intercept, and slopes by all tables, as whole multiples: what the rows of a part add."""
    totals = [np.zeros(2, dtype=np.int64), np.zeros(worth.shape, dtype=np.int64), np.zeros(swap_worth.shape, np.int64)]
    for start in range(0, rows.target.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        target = rows.target[part]
        slopes, swap_slopes = np.zeros(worth.shape), np.zeros(swap_worth.shape)
        loss, by_intercept = add_rows(
            rows.codes[part],
            how.offsets,
            how.n_numbers,
            2.0 * target - 1.0,
            choices.groups[part],
            choices.swaps[part],
            how.class_weight[target],
            worth,
            swap_worth,
            charges,
            how.swap_charges,
            intercept,
            slopes,
            swap_slopes,
            0,
            np.empty(target.size),
            how.grid,
        )
        sums = np.array([loss * (how.grid / LOSS_STEPS), by_intercept * how.grid])
        for at, more in enumerate((sums, slopes * how.grid, swap_slopes * how.grid)):
            totals[at] += more.astype(np.int64)
    return tuple(totals)


class SharedLoss(MarginLoss):
    """`MarginLoss` of rows that lie in parts.

    Parameters
    ----------
    design : Design
    sample : BinnedTable
        Some of the rows.
    shards : Shards
    class_counts, class_weight : arrays of shape (2,)
        Of all rows.
    """

    def __init__(
        self, design: Design, sample: BinnedTable, shards: Shards, class_counts: IntArray, class_weight: FloatArray
    ) -> None:
        super().__init__(design, sample.take(np.arange(1)))
        self._used = np.ones_like(self._used)
        self._shards = shards
        self._total = float(class_counts @ class_weight)
        largest = float(class_weight.max())
        bits = min(52 - np.ceil(np.log2(_CHUNK * largest)), _BITS - np.ceil(np.log2(self._total)))
        self._how = RowPass(
            self._offsets, self._n_numbers, self._charges, self._swap_charges, class_weight, float(2.0**bits)
        )
        self._choices = shards.spread(place_part, self._how, 0)

    def set_price(self, charge: float) -> None:
        place = int(np.argmin(np.abs(self.design.charges - charge)))
        self._choices = self._shards.spread(place_part, self._how, place)

    def choose_prices(self, weights: FloatArray) -> None:
        if self.design.prices.size == 1 and self.design.swap_prices.size == 1:
            return
        tables = self.tabulate(weights, 0.0, self._used)
        self._choices = self._shards.spread(choose_part, self._how, tables.worth, tables.swap_worth)

    def find_margins(self, weights: FloatArray) -> FloatArray:
        raise NotImplementedError("Margins of rows that lie in parts stay there.")

    def _pass_rows(
        self, weights: FloatArray, tables: Tables
    ) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
        charges = self._charges + (0.0 if self._deduction is None else self._deduction.measure(weights)[0])
        sums, slopes, swap_slopes = self._shards.add(
            add_part,
            self._how,
            float(weights[0]),
            charges,
            tables.worth,
            tables.swap_worth,
            beside=self._choices,
        )
        one = 1.0 / (self._how.grid * self._total)
        return (
            float(sums[0]) * (LOSS_STEPS * one),
            float(sums[1]) * one,
            np.empty(0),
            slopes.astype(np.float64) * one,
            swap_slopes.astype(np.float64) * one,
        )


class PartsInMemory:
    """Shards of this process, one after the other."""

    def __init__(self, parts: list[CodedRows]) -> None:
        self._parts = parts

    def spread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return [work(rows, *arguments) for rows in self._parts]

    def add(self, work: Callable[..., tuple[IntArray, ...]], *arguments: Any, beside: Any = None) -> list[IntArray]:
        found = [work(rows, own, *arguments) for rows, own in zip(self._parts, beside, strict=True)]
        return [np.sum(one, axis=0) for one in zip(*found, strict=True)]
