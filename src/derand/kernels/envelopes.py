"""Envelopes: the least of a curve plus a price per distance, tabulated once and looked up for every row.

Owns `e(x) = min over z of [g(z) + m |x - z|^p]` for p = 1, 2 at the knots of curves, and sums of such tables over the
terms of a row; arrays in, arrays out. A curve is known by lower bounds of g; every number here is a lower bound, too.
Must not know noises, models or what a price is for. README.md, step 9, has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._arrays import EPSILON, FloatArray, IntArray
from derand.kernels import plain
from derand.kernels.compiling import compile_loop, is_early
from derand.kernels.pieces import FloatTable, fill_linear, fill_square

COARSE, FINE = 8, 16
"""Prices that lie far apart, and between each two of them."""
TABLE_ERROR = 256 * EPSILON
"""Taken off every entry of a table, relative to the curve's range: more than its rounding (README.md, step 9)."""

GROUP = 8
"""Terms that are added up in single precision, before double precision takes over."""
SUM_ERROR = 2.0**-24 * (GROUP + 6)
"""Error of a sum of looked-up entries, relative to the sum of the curves' ranges (README.md, step 9)."""

MORE_KNOTS = 6
"""So many are tabulated beyond those that rows have looked up, for rows to come."""

UNEVEN = 2.0**-30
"""By how much of their distance the knots of an even run may be off: they are rounded, too."""


class Curves(NamedTuple):
    """Functions of one number, each from 0 up to its range, known by lower bounds at knots.

    All curves stand one after the other: the knots of curve k are those from `starts[k]` to `starts[k + 1] - 1`.
    """

    starts: IntArray
    knots: FloatArray
    """Where, increasing within a curve."""
    low: FloatArray
    """Lower bound at each knot."""
    sag: FloatArray
    """By how much the curve may leave its own chord right of each knot, either way."""
    too_low: FloatArray
    """(n_curves,): by how much `low` may be too low."""
    ends: FloatArray
    """(n_curves, 2): lower bounds left of the first knot and right of the last one."""
    ranges: FloatArray
    units: FloatArray
    """What counts as distance 1, per curve."""
    bends: FloatArray
    """Upper bound of the second derivative, per curve, distances counted in units; infinite where there is none."""
    even: FloatArray
    """(n_curves, 2): where a run of evenly spaced knots begins, and 1 / their distance."""
    even_knots: IntArray
    """(n_curves, 2): its first knot, counted from the first of all, and how many intervals follow; 0 without a run."""


class Places(NamedTuple):
    """Where a row stands on the curves: term i looks up curve `curves[i]` at `(x - anchors[i]) * factors[i]`."""

    features: IntArray
    curves: IntArray
    anchors: FloatArray
    factors: FloatArray
    """1 / unit or -1 / unit for a curve that several terms share, else 1."""


class PriceTables(NamedTuple):
    """Envelopes of few prices that lie far apart, and of many that lie between neighbours of them, where made."""

    coarse_prices: FloatArray
    """(COARSE,), increasing."""
    coarse: FloatTable
    """(n_knots, COARSE)."""
    slots: IntArray
    """(COARSE - 1,): where the prices above each coarse one stand among the fine ones; -1 where they are not made."""
    fine_prices: FloatArray
    """(n_slots, FINE)."""
    fine: FloatTable
    """(n_slots, n_knots, FINE)."""


class PricedSide(NamedTuple):
    """The worst case of one label: its functions, their tables and what is taken off every sum of them."""

    places: Places
    curves: Curves
    tables: PriceTables
    error: float


class AskedMeans(NamedTuple):
    """What rows are asked about; arrays of shape (n_rows,)."""

    cuts: FloatArray
    """Of the expected score: above it a row is of class 1."""
    slack: float
    """By how much the sum of curves may be off besides what their knots say."""
    levels: tuple[FloatArray, FloatArray]
    """For either label, what the sum of its functions must exceed."""


class Runs(NamedTuple):
    """The evenly spaced knots of each term's curve, term by term."""

    begins: FloatArray
    rates: FloatArray
    bases: IntArray
    counts: FloatArray


def measure_pieces(curves: Curves) -> tuple[FloatArray, FloatArray]:
    """How steep each curve is between knots at most, and its least distance of knots; per unit, in units."""
    inside = np.ones(curves.knots.size - 1, dtype=bool)
    inside[curves.starts[1:-1] - 1] = False  # from the last knot of a curve to the first one of the next
    firsts = curves.starts[:-1] - np.arange(curves.units.size)
    widths = np.diff(curves.knots)[inside] / np.repeat(curves.units, np.diff(curves.starts) - 1)
    slopes = np.abs(np.diff(curves.low)[inside] / widths)
    return np.maximum.reduceat(slopes, firsts), np.minimum.reduceat(widths, firsts)


def find_spans(rows: FloatArray, places: Places, curves: Curves) -> IntArray:
    """The first and the last knot of each curve that some rows look up, (n_curves, 2); with a few on either side."""
    spans = np.tile(np.array([curves.knots.size, -1]), (curves.starts.size - 1, 1))
    if rows.shape[0]:
        ends = np.stack([rows.min(axis=0), rows.max(axis=0)])[:, places.features]
        with np.errstate(over="ignore"):  # infinity lies beyond the last knot
            moved = (ends - places.anchors) * places.factors
        at, own = plain.locate(moved, places.curves, curves)[0], places.curves
        np.minimum.at(spans[:, 0], own, np.maximum(at.min(axis=0) - MORE_KNOTS, curves.starts[own]))
        np.maximum.at(spans[:, 1], own, np.minimum(at.max(axis=0) + 1 + MORE_KNOTS, curves.starts[own + 1] - 1))
    return spans


def start_tables(curves: Curves, prices: FloatArray, power: int, spans: IntArray) -> PriceTables:
    """Tables of coarse prices alone.

    Parameters
    ----------
    curves : Curves
    prices : array of shape (COARSE,)
        Positive, increasing.
    power : {1, 2}
    spans : array of shape (n_curves, 2)
        The first and the last knot of each curve for which entries are made; the others are NaN, which proves nothing.
    """
    return PriceTables(
        prices,
        tabulate_envelopes(curves, prices, power, spans),
        np.full(COARSE - 1, -1, dtype=np.int64),
        np.empty((0, FINE)),
        np.empty((0, curves.knots.size, FINE), dtype=np.float32),
    )


def widen_tables(tables: PriceTables, curves: Curves, power: int, known: IntArray, spans: IntArray) -> PriceTables:
    """The same with entries for more knots: those of spans that contain the known ones."""
    coarse, fine = tables.coarse.copy(), tables.fine.copy()
    fill = _fill_linear_tables if power == 1 else _fill_square_tables
    front = np.minimum(known[:, 0] - 1, spans[:, 1])  # of a curve without entries: all
    behind = np.maximum(known[:, 1], front) + 1
    for part in (np.stack([spans[:, 0], front], axis=1), np.stack([behind, spans[:, 1]], axis=1)):
        fill(curves, tables.coarse_prices, part, coarse)
        for prices, table in zip(tables.fine_prices, fine, strict=True):
            fill(curves, prices, part, table)
    return tables._replace(coarse=coarse, fine=fine)


def extend_tables(tables: PriceTables, curves: Curves, power: int, blocks: IntArray, spans: IntArray) -> PriceTables:
    """The same with the fine prices above some of the coarse ones."""
    slots, prices, fine = tables.slots.copy(), [*tables.fine_prices], [*tables.fine]
    for block in blocks:
        if slots[block] < 0:
            slots[block] = len(prices)
            low, high = tables.coarse_prices[block : block + 2]
            prices.append(low * (high / low) ** (np.arange(1, FINE + 1) / (FINE + 1)))
            fine.append(tabulate_envelopes(curves, prices[-1], power, spans))
    return tables._replace(slots=slots, fine_prices=np.array(prices), fine=np.array(fine))


def tabulate_envelopes(curves: Curves, prices: FloatArray, power: int, spans: IntArray | None = None) -> FloatTable:
    """Lower bounds of the envelopes such that a chord between knots is one, too.

    Parameters
    ----------
    curves : Curves
    prices : array of shape (n_prices,)
        Positive.
    power : {1, 2}
    spans : array of shape (n_curves, 2) or None
        The first and the last knot of each curve for which entries are made; None for all. Each is the same to the last
        bit whichever others are made.

    Returns
    -------
    array of shape (n_knots, n_prices), single precision, rounded downward
    """
    tables = np.full((curves.knots.size, prices.size), np.nan, dtype=np.float32)
    if spans is None:
        spans = np.stack([curves.starts[:-1], curves.starts[1:] - 1], axis=1)
    fill = _fill_linear_tables if power == 1 else _fill_square_tables
    fill(curves, prices, spans, tables)
    return tables


def round_down(values: FloatArray) -> FloatTable:
    """Single-precision numbers that are not larger."""
    single = values.astype(np.float32)
    return np.where(single > values, np.nextafter(single, np.float32(-np.inf)), single)


def find_powers(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    tables: PriceTables,
    thresholds: FloatArray,
    error: float,
    floors: FloatArray | None = None,
) -> tuple[FloatArray, IntArray]:
    """The best margin per price of each row: of the coarse prices, then of the fine ones on the better side of it.

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
    places, curves, tables
    thresholds : array of shape (n_rows, n_thresholds)
        What sums of envelopes must exceed.
    error : float
        Taken off every sum.
    floors : array of shape (n_rows, n_terms) or None
        Below which no term can fall, whatever it costs: where limits hold it.

    Returns
    -------
    powers : array of shape (n_rows, n_thresholds)
        Rounded downward; 0 where no margin is left.
    missing : array of the same shape
        The block of fine prices that should have been asked, but is not made; -1 else.
    """
    single = np.empty((0, 0), dtype=np.float32) if floors is None else round_down(floors)
    if is_early(rows.shape[0] * places.features.size * (COARSE + 2 * FINE)):
        return plain.find_powers(rows, places, curves, tables, single, thresholds, error, GROUP)
    powers, missing = np.zeros(thresholds.shape), np.full(thresholds.shape, -1, dtype=np.int64)
    _find_powers(rows, places, curves, tables, single, thresholds, error, powers, missing)
    return powers, missing


def add_curves(rows: FloatArray, places: Places, curves: Curves) -> tuple[FloatArray, FloatArray]:
    """Sums of the chords of all curves at a row, and by how much they may be off, each (n_rows,)."""
    if is_early(rows.shape[0] * places.features.size):
        return plain.add_curves(rows, places, curves)
    sums, errors = np.empty(rows.shape[0]), np.empty(rows.shape[0])
    _add_curves(rows, places, curves, sums, errors)
    return sums, errors


@compile_loop()
def _list_runs(places: Places, curves: Curves) -> Runs:
    even, knots = curves.even[places.curves], curves.even_knots[places.curves]
    return Runs(even[:, 0].copy(), even[:, 1].copy(), knots[:, 0].copy(), knots[:, 1].astype(np.float64))


@compile_loop()
def _locate_all(
    values: FloatArray,
    places: Places,
    curves: Curves,
    runs: Runs,
    at: IntArray,
    shares: FloatArray | FloatTable,
) -> None:
    """The knot left of each term of a row, and the share of the way to the next one; beyond the knots at their end.

    On an even run the share is that of rounded positions: off by less than UNEVEN.
    """
    features, anchors, factors = places.features, places.anchors, places.factors
    begins, rates, bases, counts = runs.begins, runs.rates, runs.bases, runs.counts
    for term in range(features.size):
        x = (values[features[term]] - anchors[term]) * factors[term]
        position = (x - begins[term]) * rates[term]
        if 0.0 <= position < counts[term]:
            whole = int(position)
            at[term], shares[term] = bases[term] + whole, position - whole
        else:
            curve = places.curves[term]
            at[term], shares[term] = search(x, curves.starts[curve], curves.starts[curve + 1] - 1, curves.knots)


@compile_loop()
def search(x: float, first: int, last: int, knots: FloatArray) -> tuple[int, float]:
    """The knot left of x between two of them, and the share of the way to the next one."""
    if x <= knots[first]:
        return first, 0.0
    if x >= knots[last]:
        return last - 1, 1.0
    while last - first > 1:
        middle = (first + last) // 2
        if knots[middle] <= x:
            first = middle
        else:
            last = middle
    return first, min((x - knots[first]) / (knots[last] - knots[first]), 1.0)


@compile_loop()
def _find_powers(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    tables: PriceTables,
    floors: FloatTable,
    thresholds: FloatArray,
    error: float,
    powers: FloatArray,
    missing: IntArray,
) -> None:
    at, shares = np.empty(places.features.size, dtype=np.int64), np.empty(places.features.size, dtype=np.float32)
    first, second = np.empty(COARSE), np.empty(FINE)
    runs = _list_runs(places, curves)
    for row in range(rows.shape[0]):
        _locate_all(rows[row], places, curves, runs, at, shares)
        if floors.shape[0]:
            _add_above(at, shares, tables.coarse, floors[row], first)
        else:
            _add_coarse(at, shares, tables.coarse, first)
        for k in range(thresholds.shape[1]):
            cut = thresholds[row, k] + error
            best, middle, rises = _find_best(first, tables.coarse_prices, cut)
            powers[row, k] = best
            for side in (rises, not rises):
                block = middle if side else middle - 1
                if best > 0.0 and powers[row, k] == best and missing[row, k] < 0:  # else it was the right side
                    if tables.slots[block] < 0:
                        missing[row, k] = block
                    else:
                        if floors.shape[0]:
                            _add_above(at, shares, tables.fine[tables.slots[block]], floors[row], second)
                        else:
                            _add_fine(at, shares, tables.fine[tables.slots[block]], second)
                        powers[row, k] = max(best, _find_best(second, tables.fine_prices[tables.slots[block]], cut)[0])


@compile_loop()
def _find_best(sums: FloatArray, prices: FloatArray, cut: float) -> tuple[float, int, bool]:
    """The best margin per price, which price that is (but for the outermost), and whether it rises beyond.

    The margin is concave in the price; its slope at the best one is guessed from those on both sides.
    """
    best, at = 0.0, 0
    for i in range(sums.size):
        power = (sums[i] - cut) / prices[i] * (1.0 - 4.0 * EPSILON)
        if power > best:
            best, at = power, i
    at = min(max(at, 1), sums.size - 2)
    below = (sums[at] - sums[at - 1]) / (prices[at] - prices[at - 1])
    above = (sums[at + 1] - sums[at]) / (prices[at + 1] - prices[at])
    rises = max(below, 0.0) * max(above, 0.0) > ((sums[at] - cut) / prices[at]) ** 2
    return best, at, rises


@compile_loop()
def _add_coarse(at: IntArray, shares: FloatTable, table: FloatTable, sums: FloatArray) -> None:
    part = np.zeros(COARSE, dtype=np.float32)
    sums[:] = 0.0
    for term in range(at.size):
        right, knot = shares[term], at[term]
        left = np.float32(1.0) - right
        for column in range(COARSE):
            part[column] += left * table[knot, column] + right * table[knot + 1, column]
        if term % GROUP == GROUP - 1 or term == at.size - 1:
            for column in range(COARSE):
                sums[column] += part[column]
                part[column] = np.float32(0.0)


@compile_loop()
def _add_fine(at: IntArray, shares: FloatTable, table: FloatTable, sums: FloatArray) -> None:
    # as above: only a width that is known when it is compiled becomes vector instructions
    part = np.zeros(FINE, dtype=np.float32)
    sums[:] = 0.0
    for term in range(at.size):
        right, knot = shares[term], at[term]
        left = np.float32(1.0) - right
        for column in range(FINE):
            part[column] += left * table[knot, column] + right * table[knot + 1, column]
        if term % GROUP == GROUP - 1 or term == at.size - 1:
            for column in range(FINE):
                sums[column] += part[column]
                part[column] = np.float32(0.0)


@compile_loop()
def _add_above(at: IntArray, shares: FloatTable, table: FloatTable, floors: FloatTable, sums: FloatArray) -> None:
    """The same for terms that cannot fall below their floors."""
    sums[:] = 0.0
    for term in range(at.size):
        right, knot, floor = shares[term], at[term], floors[term]
        left = np.float32(1.0) - right
        for column in range(sums.size):
            sums[column] += max(left * table[knot, column] + right * table[knot + 1, column], floor)


@compile_loop()
def _add_curves(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    sums: FloatArray,
    errors: FloatArray,
) -> None:
    at, shares = np.empty(places.features.size, dtype=np.int64), np.empty(places.features.size)
    runs = _list_runs(places, curves)
    firsts = curves.starts[places.curves]
    for row in range(rows.shape[0]):
        _locate_all(rows[row], places, curves, runs, at, shares)
        total, error = 0.0, 0.0
        for term in range(places.features.size):
            knot, share = at[term], shares[term]
            total += (1.0 - share) * curves.low[knot] + share * curves.low[knot + 1]
            error += curves.sag[knot]
            if share == 1.0 or (share == 0.0 and knot == firsts[term]):
                error += curves.ranges[places.curves[term]]  # beyond the knots: somewhere within its range
        sums[row], errors[row] = total, error


@compile_loop()
def _fill_linear_tables(curves: Curves, prices: FloatArray, spans: IntArray, tables: FloatTable) -> None:
    for k in range(curves.starts.size - 1):
        if spans[k, 0] > spans[k, 1]:
            continue
        first, last = curves.starts[k], curves.starts[k + 1]
        knots, low, sag = curves.knots[first:last], curves.low[first:last], curves.sag[first:last]
        inverse = 1.0 / curves.units[k] * (1.0 - 4.0 * EPSILON)
        error = TABLE_ERROR * (knots.size + 64) / 64 * curves.ranges[k]
        fill_linear(knots, low, sag, curves.ends[k], inverse, prices, error, tables[first:last])


@compile_loop()
def _fill_square_tables(curves: Curves, prices: FloatArray, spans: IntArray, tables: FloatTable) -> None:
    for k in range(curves.starts.size - 1):
        if spans[k, 0] > spans[k, 1]:
            continue
        span = spans[k, 0] - curves.starts[k], spans[k, 1] - curves.starts[k]
        first, last = curves.starts[k], curves.starts[k + 1]
        knots, low, sag = curves.knots[first:last], curves.low[first:last], curves.sag[first:last]
        inverse = 1.0 / curves.units[k] * (1.0 - 4.0 * EPSILON)
        error = TABLE_ERROR * (knots.size + 64) / 64 * curves.ranges[k]
        bend, table = curves.bends[k], tables[first:last]
        fill_square(knots, low, sag, curves.ends[k], inverse, bend, prices, error, span, table)
