"""Losses of certified margins: what an additive model loses on rows that a threat has changed as badly as it can.

Owns the margin of a row under the worst change (docs/theory.md, section 11), and its slopes. A margin is the least,
over all changes, of the score on the side of the row's label; a multiplier per cost makes the columns independent of
each other, so that a table per column holds all that rows look up (`rows`). Must not know how columns were made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.train.design.columns import CategoryColumn, Design
from derand.train.design.ranges import Deduction
from derand.train.losses.base import Loss
from derand.train.losses.margin_loops import Columns, fill_tables, spread_columns
from derand.train.losses.rows import Layout, SumsOverRows, Tables, Totals

_COLUMNS = 8  # of a block


class MarginLoss(Loss):
    """The mean loss of certified margins, and its slopes by the weights of a design.

    Parameters
    ----------
    design : Design
    rows : SumsOverRows
        Of the same design: what their margins lose.
    columns : Columns or None
        Those of the design, where another loss has them already.
    """

    def __init__(self, design: Design, rows: SumsOverRows, columns: Columns | None = None) -> None:
        self.design, self._rows, self._layout = design, rows, Layout.of(design)
        self._starts = design.starts
        self.columns = _line_up(design, self._layout.offsets) if columns is None else columns
        self._deduction = Deduction(design) if design.deduction else None

    def tabulate(self, weights: FloatArray, temperature: float, used: BoolArray | None = None) -> Tables:
        """The tables of some weights, for the codes that are used in each group; None for those that occur."""
        layout = self._layout
        signs, multipliers, _ = layout.numbers
        worth, values = np.empty((signs.size, layout.n_codes[0])), np.empty(self.columns.costs.size)
        used = self._rows.used if used is None else used

        def fill(block: slice) -> None:
            ends = (block.start, block.stop)
            fill_tables(self.columns, ends, weights, signs, multipliers, temperature, used, values, worth)

        run_blocks(fill, layout.n_numbers, _COLUMNS, self._rows.n_threads)
        signs, multipliers, _ = layout.categories
        tables = Tables(values, worth, np.empty((signs.size, layout.n_codes[1])))
        for at, one in enumerate(self.design.categories, layout.n_numbers):
            part = tables.category_worth[:, layout.offsets[at] : layout.offsets[at] + one.n_codes]
            own = weights[self._starts[at] : self._starts[at + 1]]
            tables.category_shares.append(_change_categories(one, own, signs, multipliers, temperature, part))
        return tables

    def set_multiplier(self, budget_cost: float) -> None:
        self._rows.set_multiplier(int(np.argmin(np.abs(self.design.budget_costs - budget_cost))))

    def choose_multipliers(self, weights: FloatArray) -> None:
        if self._layout.has_choice:
            self._rows.choose_multipliers(self.tabulate(weights, 0.0, np.ones_like(self._rows.used)))

    def compute_margins(self, weights: FloatArray) -> FloatArray:
        self.choose_multipliers(weights)
        order = self._rows.order
        if order is None:
            raise NotImplementedError("Margins of rows that lie in parts stay there.")
        margins = np.empty(order.size)
        margins[order] = self._add(weights, self.tabulate(weights, 0.0)).margins
        return margins

    def measure(self, weights: FloatArray) -> float:
        self.choose_multipliers(weights)
        return float(self._add(weights, self.tabulate(weights, 0.0)).loss)

    def evaluate(self, weights: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        tables = self.tabulate(weights, temperature)
        totals = self._add(weights, tables)
        return totals.loss, self.pass_back(weights, temperature, tables, totals)

    def _add(self, weights: FloatArray, tables: Tables) -> Totals:
        return self._rows.add(weights[0], self._layout.numbers.budget_costs + self.deduct(weights), tables)

    def deduct(self, weights: FloatArray) -> float:
        """What is deducted from every margin."""
        return 0.0 if self._deduction is None else self._deduction.measure(weights)[0]

    def pass_back(self, weights: FloatArray, temperature: float, tables: Tables, totals: Totals) -> FloatArray:
        """Slopes by all weights, from those by the intercept and all tables."""
        gradient, layout = np.zeros(weights.size), self._layout
        signs, multipliers, _ = layout.numbers

        def spread(block: slice) -> None:
            ends = (block.start, block.stop)
            given = (tables.values, signs, multipliers, temperature, totals.slopes, gradient)
            spread_columns(self.columns, ends, *given)

        run_blocks(spread, layout.n_numbers, _COLUMNS, self._rows.n_threads)
        for at, one in enumerate(self.design.categories, layout.n_numbers):
            part = totals.category_slopes[:, layout.offsets[at] : layout.offsets[at] + one.n_codes]
            shares = tables.category_shares[at - layout.n_numbers]
            own = _change_back(one, layout.categories.signs, part, shares)
            gradient[self._starts[at] : self._starts[at + 1]] = own
        if self._deduction is not None:
            n_codes = self.design.numbers[0].n_codes
            by_margin = totals.slopes[:, :n_codes].sum()  # every row has one code of the first column
            gradient -= by_margin * self._deduction.measure(weights)[1]
        gradient[0] += totals.by_intercept
        return gradient


def _line_up(design: Design, offsets: IntArray) -> Columns:
    """The numerical columns of a design as the compiled loops see them."""
    numbers = design.numbers
    sizes = np.array([one.basis.shape for one in numbers], dtype=np.int64).reshape(-1, 3)
    points, numbers_in = sizes[:, 0] * sizes[:, 1], sizes.prod(axis=1)
    return Columns(
        sizes[:, 0].copy(),
        sizes[:, 1].copy(),
        sizes[:, 2].copy(),
        np.cumsum(points) - points,
        design.starts[: len(numbers)].copy(),
        offsets[: len(numbers)].copy(),
        np.array([one.bins.missing > 0 for one in numbers], dtype=bool),
        np.concatenate([one.basis.ravel() for one in numbers] or [np.empty(0, dtype=np.float32)]),
        np.cumsum(numbers_in) - numbers_in,
        np.concatenate([one.costs.ravel() for one in numbers] or [np.empty(0)]),
    )


def _change_categories(
    column: CategoryColumn,
    weights: FloatArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    out: FloatArray,
) -> object:
    """Fill in what each category is worth where it may be changed at a cost; shares of what it is changed to."""
    own = np.zeros(column.n_codes)
    own[: weights.size] = weights
    signed = signs[:, None] * own
    if multipliers.size == 2 or column.frozen:  # one multiplier per label: nothing changes
        out[:] = signed
        return None
    targets = np.append(np.where(column.reachable, own[:-1], np.nan), 0.0 if column.unseen else np.nan)
    reached = signs[:, None] * targets
    least = (
        np.nanmin(reached, axis=1, keepdims=True) if not np.isnan(reached).all() else np.full((signs.size, 1), np.inf)
    )
    shares = np.nan_to_num(np.exp(-(reached - least) / max(temperature, 1e-9)))
    count = max(int(np.isfinite(targets).sum()), 1)
    softening = temperature * np.log(shares.sum(axis=1) / count) if temperature else 0.0
    soft = least[:, 0] - softening + multipliers
    shares = shares / shares.sum(axis=1, keepdims=True)
    gain = soft[:, None] - signed
    if temperature:
        stays = 1 / (1 + np.exp(np.clip(-gain / temperature, -500, 500)))
        softening = temperature * (np.log1p(np.exp(-np.abs(gain) / temperature)) - np.log(2.0))
        out[:] = np.where(gain > 0, signed, soft[:, None]) - softening
    else:
        stays = (gain >= 0).astype(np.float64)
        out[:] = np.minimum(signed, soft[:, None])
    return stays, shares


def _change_back(column: CategoryColumn, signs: FloatArray, slopes: FloatArray, shares: Any) -> FloatArray:
    """Slopes by the weights of a categorical column."""
    if shares is None:
        return (signs @ slopes)[: column.n_weights]
    stays, targets = shares
    by_code = signs @ (slopes * stays)
    left = (slopes * (1 - stays)).sum(axis=1)
    by_code[:-1] += ((signs * left)[:, None] * targets)[:, :-1].sum(axis=0)
    return np.asarray(by_code[: column.n_weights])
