"""Log-loss of certified margins: what an additive model loses on rows that a threat has changed as badly as it can.

Owns the margin of a row under the worst change (docs/theory.md, section 11), its slopes, and fitting weights to it. A
margin is the least, over all changes, of the score on the side of the row's label; a price per cost makes the columns
independent of each other, so that a table per column holds all that rows look up. Must not know how columns were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import minimize

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.train.bins import BinnedTable
from derand.train.design.columns import CategoryColumn, Design
from derand.train.design.ranges import Deduction
from derand.train.losses.margin_loops import (
    Columns,
    add_rows,
    choose_groups,
    fill_tables,
    mark_used,
    solve_blocks,
    spread_columns,
)

_FEW_ROWS = 10_000  # not worth a thread of their own
_BLOCK_ROWS = 2**13
_MOST_BLOCKS = 16
_COLUMNS = 8  # of a block
_BLURRED_COLUMNS = 16
_FIRST_CHARGES = (0.1, 0.5, 1.5)  # of the whole budget, in logarithms of odds


@dataclass(eq=False)
class Tables:
    """What each code of each column is worth to a row, for each label and price; filled anew for every set of weights.

    Attributes
    ----------
    values : array of shape (n_points,)
        The functions of numerical columns at the places of all their bins.
    worth : array of shape (2 * n_prices, n_number_codes)
        Groups of label 0 first.
    swap_worth : array of shape (2 * n_swap_prices, n_category_codes)
    """

    values: FloatArray
    worth: FloatArray
    swap_worth: FloatArray
    swap_shares: list[Any] = field(default_factory=list)


class MarginLoss:
    """The mean log-loss of certified margins of some rows, and its slopes by the weights of a design.

    Parameters
    ----------
    design : Design
    rows : BinnedTable
    n_threads : int
    columns : Columns or None
        Those of the design, where another loss has them already.
    """

    def __init__(self, design: Design, rows: BinnedTable, n_threads: int = 1, columns: Columns | None = None) -> None:
        self.design = design
        self._n_threads = n_threads if rows.target.size >= _FEW_ROWS else 1
        self._rows = rows
        self._n_numbers = len(design.numbers)
        sizes = [column.n_codes for column in design.columns]
        ends = np.cumsum([0, *sizes[: self._n_numbers]])
        swap_ends = np.cumsum([0, *sizes[self._n_numbers :]])
        self._offsets = np.concatenate([ends[:-1], swap_ends[:-1]]).astype(np.int64)
        self._n_codes = (int(ends[-1]), int(swap_ends[-1]))
        self._starts = design.starts
        self._columns = _line_up(design, self._offsets) if columns is None else columns
        self._deduction = Deduction(design) if design.deduction else None
        self._signs, self._prices, self._charges = _pair(design.prices, design.charges)
        self._swap_signs, self._swap_prices, self._swap_charges = _pair(design.swap_prices, design.swap_charges)
        self._groups = rows.target.astype(np.int32) * design.prices.size
        self._swaps = rows.target.astype(np.int32) * design.swap_prices.size
        self._sort()

    def _sort(self) -> None:
        """Rows of a group side by side: they look up the same tables."""
        order = np.argsort(self._groups, kind="stable")
        self._order = order
        weights = self._rows.weights[order]
        self._sorted = (
            np.ascontiguousarray(self._rows.codes[order]),
            2.0 * self._rows.target[order] - 1.0,
            self._groups[order],
            self._swaps[order],
            weights / weights.sum(),
        )
        self._used = np.zeros((self._signs.size, self._n_codes[0]), dtype=bool)
        mark_used(self._sorted[0], self._offsets, self._n_numbers, self._sorted[2], self._used)

    def tabulate(self, weights: FloatArray, blur: float, used: BoolArray) -> Tables:
        """The tables of some weights, for the codes that are used in each group."""
        design, starts = self.design, self._starts
        worth = np.empty((self._signs.size, self._n_codes[0]))
        values = np.empty(self._columns.costs.size)

        def fill(block: slice) -> None:
            ends = (block.start, block.stop)
            fill_tables(self._columns, ends, weights, self._signs, self._prices, blur, used, values, worth)

        run_blocks(fill, self._n_numbers, _COLUMNS, self._n_threads)
        tables = Tables(values, worth, np.empty((self._swap_signs.size, self._n_codes[1])))
        for at, one in enumerate(design.categories, self._n_numbers):
            part = tables.swap_worth[:, self._offsets[at] : self._offsets[at] + one.n_codes]
            own = weights[starts[at] : starts[at + 1]]
            tables.swap_shares.append(_swap(one, own, self._swap_signs, self._swap_prices, blur, part))
        return tables

    def set_price(self, charge: float) -> None:
        """One price for all rows, that at which the whole budget counts for about so much, until others are chosen."""
        place = int(np.argmin(np.abs(self.design.charges - charge)))
        self._groups = (self._rows.target.astype(np.int32) * self.design.prices.size + place).astype(np.int32)
        self._sort()

    def choose_prices(self, weights: FloatArray) -> None:
        """The prices that prove most for each row, which hold until this is called again."""
        design, rows = self.design, self._rows
        if design.prices.size == 1 and design.swap_prices.size == 1:
            return
        tables = self.tabulate(weights, 0.0, np.ones_like(self._used))
        n_columns = len(design.columns)

        def choose(block: slice) -> None:
            codes, target = rows.codes[block], rows.target[block]
            if design.prices.size > 1:
                ends = (0, self._n_numbers)
                choose_groups(codes, self._offsets, ends, target, tables.worth, self._charges, self._groups[block])
            if design.swap_prices.size > 1:
                ends, charges = (self._n_numbers, n_columns), self._swap_charges
                choose_groups(codes, self._offsets, ends, target, tables.swap_worth, charges, self._swaps[block])

        run_blocks(choose, rows.target.size, self._block_rows(), self._n_threads)
        self._sort()

    def find_margins(self, weights: FloatArray) -> FloatArray:
        """Margin of each row, by the prices that prove most."""
        self.choose_prices(weights)
        margins = np.empty(self._rows.target.size)
        margins[self._order] = self._pass_rows(weights, self.tabulate(weights, 0.0, self._used))[2]
        return margins

    def measure(self, weights: FloatArray) -> float:
        """Mean log-loss, by the prices that prove most."""
        self.choose_prices(weights)
        return float(self._pass_rows(weights, self.tabulate(weights, 0.0, self._used))[0])

    def evaluate(self, weights: FloatArray, blur: float) -> tuple[float, FloatArray]:
        """Mean log-loss and its slopes, for the prices that were chosen last."""
        tables = self.tabulate(weights, blur, self._used)
        loss, by_intercept, _, slopes, swap_slopes = self._pass_rows(weights, tables)
        gradient = self._pass_back(weights, blur, tables, slopes, swap_slopes)
        gradient[0] += by_intercept
        return loss, gradient

    def _pass_back(
        self, weights: FloatArray, blur: float, tables: Tables, slopes: FloatArray, swap_slopes: FloatArray
    ) -> FloatArray:
        """Slopes by all weights, from those by all tables; none yet by the intercept."""
        gradient = np.zeros(weights.size)

        def spread(block: slice) -> None:
            ends = (block.start, block.stop)
            spread_columns(self._columns, ends, tables.values, self._signs, self._prices, blur, slopes, gradient)

        run_blocks(spread, self._n_numbers, _COLUMNS, self._n_threads)
        for at, one in enumerate(self.design.categories, self._n_numbers):
            part = swap_slopes[:, self._offsets[at] : self._offsets[at] + one.n_codes]
            shares = tables.swap_shares[at - self._n_numbers]
            gradient[self._starts[at] : self._starts[at + 1]] = _swap_back(one, self._swap_signs, part, shares)
        if self._deduction is not None:
            by_margin = slopes[:, : self.design.numbers[0].n_codes].sum()  # every row has one code of the first column
            gradient -= by_margin * self._deduction.measure(weights)[1]
        return gradient

    def _block_rows(self) -> int:
        """Rows of a block: a matter of how many rows there are, not of threads, so that sums are always the same."""
        n_rows = self._rows.target.size
        return n_rows if n_rows < _FEW_ROWS else max(_BLOCK_ROWS, -(-n_rows // _MOST_BLOCKS))

    def _pass_rows(
        self, weights: FloatArray, tables: Tables
    ) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
        """Loss, its slope by the intercept, margins in the order of groups, and slopes by all tables."""
        codes, signs, groups, swaps, row_weights = self._sorted
        n_rows, size = signs.size, self._block_rows()
        margins = np.empty(n_rows)
        found: dict[int, Any] = {}
        charges = self._charges + (0.0 if self._deduction is None else self._deduction.measure(weights)[0])

        def add(block: slice) -> None:
            first = int(groups[block.start])
            slopes = np.zeros((int(groups[block.stop - 1]) - first + 1, self._n_codes[0]))
            swap_slopes = np.zeros((self._swap_signs.size, self._n_codes[1]))
            sums = add_rows(
                codes[block],
                self._offsets,
                self._n_numbers,
                signs[block],
                groups[block],
                swaps[block],
                row_weights[block],
                tables.worth,
                tables.swap_worth,
                charges,
                self._swap_charges,
                weights[0],
                slopes,
                swap_slopes,
                first,
                margins[block],
                0.0,
            )
            found[block.start] = (first, slopes, swap_slopes, *sums)

        run_blocks(add, n_rows, size, self._n_threads)
        slopes, swap_slopes = np.zeros(tables.worth.shape), np.zeros(tables.swap_worth.shape)
        loss = by_intercept = 0.0
        for start in sorted(found):
            first, part, swap_part, more, by_more = found[start]
            slopes[first : first + part.shape[0]] += part
            swap_slopes += swap_part
            loss, by_intercept = loss + more, by_intercept + by_more
        return loss, by_intercept, margins, slopes, swap_slopes


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


def _pair(prices: FloatArray, charges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sign, price and charge of each group: those of label 0, then those of label 1."""
    signs = np.repeat([-1.0, 1.0], prices.size)
    return signs, np.tile(prices, 2), np.tile(charges, 2)


def _swap(
    column: CategoryColumn, weights: FloatArray, signs: FloatArray, prices: FloatArray, blur: float, out: FloatArray
) -> Any:
    """Fill in what each category is worth where it may be changed for a price; shares of what it is changed to."""
    own = np.zeros(column.n_codes)
    own[: weights.size] = weights
    sided = signs[:, None] * own
    if prices.size == 2 or column.frozen:  # one price per label: nothing changes
        out[:] = sided
        return None
    targets = np.append(np.where(column.reachable, own[:-1], np.nan), 0.0 if column.unseen else np.nan)
    reached = signs[:, None] * targets
    least = (
        np.nanmin(reached, axis=1, keepdims=True) if not np.isnan(reached).all() else np.full((signs.size, 1), np.inf)
    )
    shares = np.nan_to_num(np.exp(-(reached - least) / max(blur, 1e-9)))
    count = max(int(np.isfinite(targets).sum()), 1)
    soft = least[:, 0] - (blur * np.log(shares.sum(axis=1) / count) if blur else 0.0) + prices
    shares = shares / shares.sum(axis=1, keepdims=True)
    gap = soft[:, None] - sided
    if blur:
        stays = 1 / (1 + np.exp(np.clip(-gap / blur, -500, 500)))
        out[:] = np.where(gap > 0, sided, soft[:, None]) - blur * (np.log1p(np.exp(-np.abs(gap) / blur)) - np.log(2.0))
    else:
        stays = (gap >= 0).astype(np.float64)
        out[:] = np.minimum(sided, soft[:, None])
    return stays, shares


def _swap_back(column: CategoryColumn, signs: FloatArray, slopes: FloatArray, shares: Any) -> FloatArray:
    """Slopes by the weights of a categorical column."""
    if shares is None:
        return (signs @ slopes)[: column.n_weights]
    stays, targets = shares
    by_code = signs @ (slopes * stays)
    left = (slopes * (1 - stays)).sum(axis=1)
    by_code[:-1] += ((signs * left)[:, None] * targets)[:, :-1].sum(axis=0)
    return np.asarray(by_code[: column.n_weights])


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One round of fitting: how blurred minima are, and how many steps are taken at most."""

    blur: float
    steps: int
    tolerance: float


class Loss(Protocol):
    """What weights are fitted to: MarginLoss, or one of several classes."""

    design: Design

    def set_price(self, charge: float) -> None: ...
    def choose_prices(self, weights: FloatArray) -> None: ...
    def measure(self, weights: FloatArray) -> float: ...
    def evaluate(self, weights: FloatArray, blur: float) -> tuple[float, FloatArray]: ...


class Change(Protocol):
    """A change of variables: Precondition, or one of several classes."""

    def to_weights(self, point: FloatArray) -> FloatArray: ...
    def to_point(self, weights: FloatArray) -> FloatArray: ...
    def to_slopes(self, slopes: FloatArray) -> FloatArray: ...


class WeightFit:
    """Weights of least penalised loss.

    Parameters
    ----------
    loss : Loss
    penalties : array of shape (n_weights,)
        Of half the squares of the weights, beside the mean loss.
    change : Change
        Of the same design and penalties.
    """

    def __init__(self, loss: Loss, penalties: FloatArray, change: Change) -> None:
        self._loss, self._penalties, self._change = loss, penalties, change
        numbers = loss.design.numbers
        self._bounds = loss.design.list_bounds() if any(one.sign for one in numbers) else None
        # a soft minimum is off by as much in every column: with many of them it must be harder
        self._blur = min(1.0, _BLURRED_COLUMNS / max(len(numbers), 1))

    def fit(self, start: FloatArray, stages: Sequence[Stage]) -> FloatArray:
        """From a start on, stage by stage; prices are chosen anew for each."""
        weights = start
        for stage in stages:
            self._loss.choose_prices(weights)
            weights = self._descend(weights, stage)
        return weights

    def fit_anew(self, start: FloatArray, stages: Sequence[Stage]) -> FloatArray:
        """The same from weights that say nothing about prices: the first stage tries a few, the same for all rows.

        Rows keep near the price that they were fitted with, because the functions adapt to it.
        """
        if self._loss.design.prices.size == 1:
            return self.fit(start, stages)
        best, least = start, np.inf
        for charge in _FIRST_CHARGES:
            self._loss.set_price(charge)
            weights = self._descend(start, stages[0])
            value = self.measure(weights)
            if value < least:
                best, least = weights, value
        return self.fit(best, stages[1:])

    def measure(self, weights: FloatArray) -> float:
        """Penalised loss, by the prices that prove most."""
        return self._loss.measure(weights) + 0.5 * float(self._penalties @ weights**2)

    def _descend(self, weights: FloatArray, stage: Stage) -> FloatArray:
        def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
            at = self._change.to_weights(point)
            value, slopes = self._loss.evaluate(at, stage.blur * self._blur)
            value += 0.5 * float(self._penalties @ at**2)
            return value, self._change.to_slopes(slopes + self._penalties * at)

        found = minimize(
            evaluate,
            self._change.to_point(weights),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": stage.steps, "ftol": stage.tolerance, "gtol": stage.tolerance, "maxcor": 20},
        )
        return self._change.to_weights(found.x)


class Precondition:
    """A change of variables that makes the loss round: the weights of a column are solved for together.

    Parameters
    ----------
    design : Design
    penalties : array of shape (n_weights,)
    shares : list of arrays
        Share of all weight that each code of each categorical column has.
    rate : float
        Share of class 1.
    """

    def __init__(self, design: Design, penalties: FloatArray, shares: list[FloatArray], rate: float) -> None:
        curvature = rate * (1 - rate)
        blocks: list[tuple[int, FloatArray]] = []
        self._scales = np.ones(penalties.size)
        self._scales[0] = 1 / np.sqrt(curvature)
        for column, start, stop in zip(design.numbers, design.starts[:-1], design.starts[1:], strict=False):
            n_weights = column.basis.shape[2]
            part = slice(int(start), int(start) + n_weights)
            own = column.basis[:, column.own, :].astype(np.float64)
            square = curvature * (own.T * column.bins.shares) @ own + np.diag(penalties[part])
            square += 1e-12 * np.trace(square) * np.eye(n_weights)
            if column.bins.missing > 0:
                self._scales[stop - 1] = 1 / np.sqrt(curvature * column.bins.missing + penalties[stop - 1])
            if column.sign or not n_weights:  # bounds hold for each weight: they must not be mixed
                self._scales[part] = 1 / np.sqrt(np.diag(square))
            else:
                blocks.append((part.start, cholesky(square)))
        sizes = np.array([upper.shape[0] for _, upper in blocks], dtype=np.int64)
        self._parts = [(slice(first, first + upper.shape[0]), upper) for first, upper in blocks]
        self._blocks = (
            np.array([first for first, _ in blocks], dtype=np.int64),
            sizes,
            np.cumsum(sizes**2) - sizes**2,
            np.concatenate([upper.ravel() for _, upper in blocks] or [np.empty(0)]),
        )
        first = len(design.numbers)
        for at, (one, share) in enumerate(zip(design.categories, shares, strict=True), first):
            part = slice(int(design.starts[at]), int(design.starts[at + 1]))
            self._scales[part] = 1 / np.sqrt(curvature * share[: one.n_weights] + penalties[part])

    def to_weights(self, point: FloatArray) -> FloatArray:
        weights = point * self._scales
        solve_blocks(*self._blocks, False, weights)
        return weights

    def to_point(self, weights: FloatArray) -> FloatArray:
        point = weights / self._scales
        for part, upper in self._parts:
            point[part] = upper @ weights[part]
        return point

    def to_slopes(self, slopes: FloatArray) -> FloatArray:
        changed = slopes * self._scales
        solve_blocks(*self._blocks, True, changed)
        return changed
