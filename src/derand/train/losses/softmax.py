"""Softmax loss of certified margins: what a model of several classes loses on rows that are changed as badly as can be.

Owns the margins of duels, between the class of a row and each rival, and their slopes. The loss of a row is
log(1 + sum over rivals of exp(-margin)). Two losses: `DuelLoss` knows what the threat leaves of every duel, by the
tables of MarginLoss; `SoftmaxLoss` knows the rows as they are and how steep the lead over each rival is there, which
is the first order of the same and enough where many columns move a little each. Weights are flat, those of class 0
first. Must not know how columns were made.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand._core.threads import run_blocks
from derand.noise import Noise
from derand.train.bins import BinnedTable
from derand.train.design.columns import Design, look_at
from derand.train.design.ranges import Deduction
from derand.train.losses.margin import MarginLoss, Precondition, Tables
from derand.train.losses.margin_loops import Columns
from derand.train.losses.softmax_loops import (
    add_leads,
    add_up,
    fill_rivals,
    lose_leads,
    scatter,
    scatter_leads,
    spread_rivals,
)

_FEW_ROWS = 2_000  # not worth threads
_LANES = 8  # numbers that a machine adds at once
_STEP = 0.05  # of the noise's scale, on either side of where steepness is measured
DUAL_POWERS = {1.0: 8.0, 2.0: 2.0, np.inf: 1.1}
"""The power of steepness that is added up, by the norm of a change: smooth stand-ins for the largest and the sum."""
LEAST_SLOPE = 1e-3
"""Steepness from which on it counts: the root of a sum has no slope at 0."""


class Steepness:
    """How steep the functions of numerical columns are, and how steepness counts.

    Parameters
    ----------
    design : Design
    noise : Noise
    norm : {1, 2, inf}
    radius : float
    units : array of shape (n_features,)
        In which the radius counts.
    frozen : collection of int
        Columns that do not change.

    Attributes
    ----------
    basis : list of arrays of shape (n_bins, n_weights)
        What each weight of each numerical column adds to its slope, in units, at the center of each bin.
    """

    def __init__(
        self,
        design: Design,
        noise: Noise,
        norm: float,
        radius: float,
        units: FloatArray,
        frozen: Collection[int | str] = (),
    ) -> None:
        self.radius, self.power = radius, DUAL_POWERS[float(norm)]
        self.basis: list[FloatArray] = []
        for one in design.numbers:
            scale = 0.0 if one.feature in frozen else units[one.feature]
            self.basis.append(measure_steepness(one.bins.centers, one.cuts, one.stairs, noise, one.feature) * scale)


def measure_steepness(
    places: FloatArray, cuts: FloatArray, stairs: FloatArray, noise: Noise, feature: int
) -> FloatArray:
    """How fast a jump at each cut, and the ramp, rise at each place under noise, (n_places, n_weights)."""
    step = _STEP * noise.magnitude * float(noise.units_of(np.array([feature]))[0])
    ends = [look_at(places[:, None] + side * step, cuts, stairs, noise, feature)[:, 0] for side in (-1, 1)]
    return np.asarray((ends[1] - ends[0]) / (2 * step))


class SoftmaxLoss:
    """The mean loss of rows as they are, or of what the steepness of their leads leaves of them, to first order.

    Parameters
    ----------
    design : Design
        Of places that values stay at; what it says of prices does not count.
    rows : BinnedTable
    n_classes : int
    steepness : Steepness or None
        None for rows as they are.
    n_threads : int
    precision : dtype
        Of the tables that rows look up.
    """

    def __init__(
        self,
        design: Design,
        rows: BinnedTable,
        n_classes: int,
        steepness: Steepness | None = None,
        n_threads: int = 1,
        precision: Any = np.float64,
    ) -> None:
        self.design, self._n_classes, self._steepness = design, n_classes, steepness
        self._n_threads, self._precision = n_threads, precision
        self._offsets, self._starts = design.offsets, design.starts
        self._power = steepness.power if steepness else 2.0
        self._width = -(-(2 if steepness else 1) * n_classes // _LANES) * _LANES
        self._bases = [_stack(design, steepness, at) for at in range(len(design.numbers))]
        self._deduction = Deduction(design) if design.deduction else None
        self._all_rows = rows
        self.take(None)

    def take(self, chosen: IntArray | None, share_of_radius: float = 1.0) -> None:
        """Let some of the rows count, or all of them, and a part of the radius."""
        self._radius = self._steepness.radius * share_of_radius if self._steepness else 0.0
        rows = self._all_rows if chosen is None else self._all_rows.take(chosen)
        weights = rows.weights / rows.weights.sum()
        self._places = [np.flatnonzero(rows.target == label) for label in range(self._n_classes)]
        self._codes = [np.ascontiguousarray(rows.codes[places]) for places in self._places]
        self._weights = [weights[places] for places in self._places]

    def set_price(self, charge: float) -> None:
        """There are no prices."""

    def choose_prices(self, weights: FloatArray) -> None:
        """There are no prices."""

    def tabulate(self, by_class: FloatArray) -> FloatArray:
        """What each code of each column adds to the score of each class; weights have shape (n_classes, n_weights)."""
        return self._tabulate(by_class)[0]

    def score(self, weights: FloatArray) -> FloatArray:
        """Score of each row and class, (n_rows, n_classes)."""
        values, _ = self._tabulate(weights.reshape(self._n_classes, -1))
        scores = np.empty((sum(part.size for part in self._places), self._n_classes))
        for codes, places in zip(self._codes, self._places, strict=True):
            out = np.zeros((places.size, self._n_classes)) + weights.reshape(self._n_classes, -1)[:, 0]
            add_leads(codes, self._offsets, values, out)
            scores[places] = out
        return scores

    def find_margins(self, weights: FloatArray) -> FloatArray:
        """The least margin of each row over all rivals."""
        margins = np.empty(sum(part.size for part in self._places))
        tables = self._tabulate(weights.reshape(self._n_classes, -1))
        for places, found in zip(self._places, self._pass_rows(weights, *tables), strict=True):
            margins[places] = found[1].min(axis=1)
        return margins

    def measure(self, weights: FloatArray) -> float:
        """Mean loss."""
        tables = self._tabulate(weights.reshape(self._n_classes, -1))
        return float(sum(found[0] for found in self._pass_rows(weights, *tables)))

    def evaluate(self, weights: FloatArray, blur: float) -> tuple[float, FloatArray]:
        """Mean loss and its slopes; nothing is blurred."""
        by_class = weights.reshape(self._n_classes, -1)
        values, slopes = self._tabulate(by_class)
        found = self._pass_rows(weights, values, slopes, with_slopes=True)
        by_value, by_slope = np.zeros(values.shape), np.zeros(slopes.shape)
        by_start = np.zeros((self._n_classes, self._n_classes))
        for label, (_, _, starts, part) in enumerate(found):
            if part is not None:
                spread_rivals(part, slopes, label, self._power, by_value, by_slope)
            by_start[label] = starts
        gradient = self._pass_back(by_class, by_value, by_slope)
        gradient[:, 0] = by_start.sum(axis=1) - by_start.sum(axis=0)
        self._deduct_slopes(by_class, by_start, gradient)
        return float(sum(one[0] for one in found)), gradient.ravel()

    def _tabulate(self, by_class: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and slopes of all codes, (n_codes, n_classes); no slopes without steepness."""
        n_codes = int(self._offsets[-1])
        values = np.zeros((n_codes, self._n_classes))
        slopes = np.zeros((n_codes if self._steepness else 0, self._n_classes))
        for at, (column, basis) in enumerate(zip(self.design.numbers, self._bases, strict=True)):
            start, first, n_bins = int(self._starts[at]), int(self._offsets[at]), column.bins.centers.size
            both = basis @ by_class[:, start : start + basis.shape[1]].T
            values[first : first + n_bins] = both[:n_bins]
            if self._steepness:
                slopes[first : first + n_bins] = both[n_bins:]
            if column.bins.missing > 0:
                values[first + n_bins] = by_class[:, start + basis.shape[1]]
        for at, one in enumerate(self.design.categories, len(self.design.numbers)):
            start, first = int(self._starts[at]), int(self._offsets[at])
            values[first : first + one.n_weights] = by_class[:, start : start + one.n_weights].T
        return values, slopes

    def _pass_back(self, by_class: FloatArray, by_value: FloatArray, by_slope: FloatArray) -> FloatArray:
        """Slopes by all weights but the intercepts, from those by the tables."""
        gradient = np.zeros(by_class.shape)
        for at, (column, basis) in enumerate(zip(self.design.numbers, self._bases, strict=True)):
            start, first, n_bins = int(self._starts[at]), int(self._offsets[at]), column.bins.centers.size
            part = slice(first, first + n_bins)
            both = np.concatenate([by_value[part], by_slope[part]]) if self._steepness else by_value[part]
            gradient[:, start : start + basis.shape[1]] = both.T @ basis
            if column.bins.missing > 0:
                gradient[:, start + basis.shape[1]] = by_value[first + n_bins]
        for at, one in enumerate(self.design.categories, len(self.design.numbers)):
            start, first = int(self._starts[at]), int(self._offsets[at])
            gradient[:, start : start + one.n_weights] = by_value[first : first + one.n_weights].T
        return gradient

    def _pass_rows(
        self, weights: FloatArray, values: FloatArray, slopes: FloatArray, *, with_slopes: bool = False
    ) -> list[Any]:
        """Of each class: loss, margins, slopes by what duels start with, slopes by its tables of rivals."""
        starts = self._find_starts(weights.reshape(self._n_classes, -1))
        found: list[Any] = [None] * self._n_classes
        least = LEAST_SLOPE**self._power

        def work(block: slice) -> None:
            label = block.start
            codes, n_classes = self._codes[label], self._n_classes
            by_start = np.zeros(n_classes)
            margins = np.empty((codes.shape[0], n_classes))
            if not codes.shape[0]:
                found[label] = (0.0, margins, by_start, None)
                return
            tables = np.zeros((values.shape[0], self._width), dtype=self._precision)
            fill_rivals(values, slopes, label, self._power, tables)
            leads = np.zeros((codes.shape[0], self._width), dtype=self._precision)
            add_leads(codes, self._offsets, tables, leads)
            own = self._weights[label]
            loss = lose_leads(
                leads, label, n_classes, self._radius, self._power, least, own, starts[label], margins, by_start
            )
            if with_slopes:
                tables[:] = 0
                scatter_leads(codes, self._offsets, leads, tables)
            found[label] = (loss, margins, by_start, tables)

        n_rows = sum(part.size for part in self._places)
        run_blocks(work, self._n_classes, 1, self._n_threads if n_rows >= _FEW_ROWS else 1)
        return found

    def _find_starts(self, by_class: FloatArray) -> FloatArray:
        """What the duel of each class with each rival starts with: intercepts, less what a proof deducts."""
        starts = by_class[:, 0][:, None] - by_class[:, 0]
        if self._deduction is not None:
            for low in range(self._n_classes):
                for high in range(low + 1, self._n_classes):
                    deducted = self._deduction.measure(by_class[high] - by_class[low])[0]
                    starts[low, high] -= deducted
                    starts[high, low] -= deducted
        return starts

    def _deduct_slopes(self, by_class: FloatArray, by_start: FloatArray, gradient: FloatArray) -> None:
        if self._deduction is None:
            return
        for low in range(self._n_classes):
            for high in range(low + 1, self._n_classes):
                slopes = self._deduction.measure(by_class[high] - by_class[low])[1]
                slopes = slopes * (by_start[low, high] + by_start[high, low])
                gradient[high] -= slopes
                gradient[low] += slopes


def _stack(design: Design, steepness: Steepness | None, at: int) -> FloatArray:
    """What each weight of a numerical column adds to values, and below them to slopes, at its bins."""
    column = design.numbers[at]
    values = column.basis[:, column.own, :].astype(np.float64)
    return np.concatenate([values, steepness.basis[at]]) if steepness else values


class _Duel(MarginLoss):
    """The margins of the rows of two classes in their duel; what they lose by is decided elsewhere."""

    def find_leads(self, weights: FloatArray, tables: Tables) -> FloatArray:
        """Margin of each row, by the prices that were chosen last."""
        codes, signs, groups, swaps, _ = self._sorted
        charges = self._charges[groups] + self._swap_charges[swaps]
        found = signs * weights[0] - charges - (self._deduction.measure(weights)[0] if self._deduction else 0.0)
        add_up(codes, self._offsets, self._n_numbers, groups, swaps, tables.worth, tables.swap_worth, found)
        margins = np.empty(found.size)
        margins[self._order] = found
        return margins

    def find_slopes(self, weights: FloatArray, blur: float, tables: Tables, row_slopes: FloatArray) -> FloatArray:
        """Slopes by the weights, from those by the margins."""
        codes, signs, groups, swaps, _ = self._sorted
        slopes, swap_slopes = np.zeros(tables.worth.shape), np.zeros(tables.swap_worth.shape)
        own = row_slopes[self._order]
        scatter(codes, self._offsets, self._n_numbers, groups, swaps, own, slopes, swap_slopes)
        gradient = self._pass_back(weights, blur, tables, slopes, swap_slopes)
        gradient[0] += own @ signs
        return gradient

    def tabulate_used(self, weights: FloatArray, blur: float) -> Tables:
        """The tables of the codes that occur."""
        return self.tabulate(weights, blur, self._used)

    @property
    def columns(self) -> Columns:
        """The numerical columns as the compiled loops see them."""
        return self._columns


class DuelLoss:
    """The mean loss of what a threat leaves of the duels of each row, and its slopes.

    Parameters
    ----------
    design : Design
    rows : BinnedTable
    n_classes : int
    n_threads : int
    """

    def __init__(self, design: Design, rows: BinnedTable, n_classes: int, n_threads: int = 1) -> None:
        self.design, self._n_classes = design, n_classes
        self._n_threads = n_threads
        self._target = rows.target
        self._weights = rows.weights / rows.weights.sum()
        occurs = np.bincount(rows.target, minlength=n_classes) > 0  # a fold may lack a rare class
        every = [(low, high) for high in range(n_classes) for low in range(high)]
        self._pairs = [(low, high) for low, high in every if occurs[low] or occurs[high]]
        self._places, self._duels = [], []
        columns = None
        for low, high in self._pairs:
            places = np.flatnonzero((rows.target == low) | (rows.target == high))
            part = rows.take(places)
            duel = _Duel(design, _relabel(part, high), columns=columns)
            columns = duel.columns
            self._places.append(places)
            self._duels.append(duel)
        self._rivals = [self._find_rivals(at) for at in range(len(self._pairs))]

    def set_price(self, charge: float) -> None:
        """One price for all rows and duels, until others are chosen."""
        for duel in self._duels:
            duel.set_price(charge)

    def choose_prices(self, weights: FloatArray) -> None:
        """The prices that prove most for each duel of each row, which hold until this is called again."""
        leads = self._subtract(weights)
        self._run(lambda at: self._duels[at].choose_prices(leads[at]))

    def find_margins(self, weights: FloatArray) -> FloatArray:
        """The least margin of each row over all rivals, by the prices that prove most."""
        self.choose_prices(weights)
        return np.asarray(self._find_all(weights, 0.0)[0].min(axis=1))

    def measure(self, weights: FloatArray) -> float:
        """Mean loss, by the prices that prove most."""
        self.choose_prices(weights)
        return self._lose(self._find_all(weights, 0.0)[0])[0]

    def evaluate(self, weights: FloatArray, blur: float) -> tuple[float, FloatArray]:
        """Mean loss and its slopes, for the prices that were chosen last."""
        leads = self._subtract(weights)
        margins, tables = self._find_all(weights, blur)
        loss, by_margin = self._lose(margins)
        found: list[Any] = [None] * len(self._pairs)

        def work(at: int) -> None:
            by_row = by_margin[self._places[at], self._rivals[at]]
            found[at] = self._duels[at].find_slopes(leads[at], blur, tables[at], by_row)

        self._run(work)
        gradient = np.zeros((self._n_classes, weights.size // self._n_classes))
        for (low, high), part in zip(self._pairs, found, strict=True):
            gradient[high] += part
            gradient[low] -= part
        return loss, gradient.ravel()

    def _subtract(self, weights: FloatArray) -> list[FloatArray]:
        """Weights of the lead of the higher class of each pair."""
        by_class = weights.reshape(self._n_classes, -1)
        return [by_class[high] - by_class[low] for low, high in self._pairs]

    def _run(self, work: Any) -> None:
        run_blocks(lambda block: work(block.start), len(self._pairs), 1, self._n_threads)

    def _find_rivals(self, at: int) -> NDArray[np.int64]:
        """Against whom each row of a pair stands."""
        low, high = self._pairs[at]
        return np.where(self._target[self._places[at]] == high, low, high)

    def _find_all(self, weights: FloatArray, blur: float) -> tuple[FloatArray, list[Any]]:
        """Margins of all rows and rivals, infinite for the class itself, and the tables of all pairs."""
        leads = self._subtract(weights)
        margins = np.full((self._target.size, self._n_classes), np.inf)
        tables: list[Any] = [None] * len(self._pairs)

        def work(at: int) -> None:
            tables[at] = self._duels[at].tabulate_used(leads[at], blur)
            margins[self._places[at], self._rivals[at]] = self._duels[at].find_leads(leads[at], tables[at])

        self._run(work)
        return margins, tables

    def _lose(self, margins: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss and its slopes by the margins."""
        worst = np.minimum(margins.min(axis=1), 0.0)
        shares = np.exp(worst[:, None] - margins)
        total = np.exp(worst) + shares.sum(axis=1)
        loss = float(self._weights @ (np.log(total) - worst))
        return loss, -(self._weights / total)[:, None] * shares


def _relabel(rows: BinnedTable, high: int) -> BinnedTable:
    """The same rows of two classes: 1 for the higher one."""
    return replace(rows, target=(rows.target == high).astype(np.uint8))


class ClassPrecondition:
    """A change of variables for each class, the same for all: that of a model of two classes.

    Parameters
    ----------
    design : Design
    penalties : array of shape (n_weights,)
        Of one class.
    shares : list of arrays
        As for Precondition.
    class_shares : array of shape (n_classes,)
        Share of all weight that each class has.
    """

    def __init__(
        self, design: Design, penalties: FloatArray, shares: list[FloatArray], class_shares: FloatArray
    ) -> None:
        self._n_classes = class_shares.size
        curvature = float(np.mean(class_shares * (1 - class_shares)))
        rate = 0.5 - np.sqrt(max(0.25 - curvature, 0.0))
        self._one = Precondition(design, penalties, shares, max(float(rate), 1e-6))

    def to_weights(self, point: FloatArray) -> FloatArray:
        return self._of_each(self._one.to_weights, point)

    def to_point(self, weights: FloatArray) -> FloatArray:
        return self._of_each(self._one.to_point, weights)

    def to_slopes(self, slopes: FloatArray) -> FloatArray:
        return self._of_each(self._one.to_slopes, slopes)

    def _of_each(self, change: Any, flat: FloatArray) -> FloatArray:
        return np.concatenate([change(part) for part in flat.reshape(self._n_classes, -1)])
