"""Envelopes: the least of a curve plus a multiple of the distance, tabulated once and looked up for every row.

Owns `e(x) = min over z of [g(z) + m |x - z|^p]` for p = 1, 2 at the knots of curves, and sums of such tables over the
terms of a row; arrays in, arrays out. A curve is known by lower bounds of g; every number here is a lower bound, too.
Must not know noises, models or what a multiplier is for. README.md, step 9, has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.kernels.compiling import Compiled, compile_loop
from derand.kernels.worst_case.curves import (
    Curves,
    FloatTable,
    Positions,
    compute_positions,
    list_tracks,
    locate_in_numpy,
    search,
)
from derand.kernels.worst_case.pieces import fill_linear_tables, fill_square_tables
from derand.kernels.worst_case.pieces_in_numpy import round_down

COARSE, FINE = 8, 16
"""Multipliers that lie far apart, and between each two of them."""
TABLE_ERROR = 256 * EPSILON
"""Taken off every entry of a table, relative to the curve's range: more than its rounding (README.md, step 9)."""

GROUP = 8
"""Terms that are added up in single precision, before double precision takes over."""
SUM_ERROR = 2.0**-24 * (GROUP + 6)
"""Error of a sum of looked-up entries, relative to the sum of the curves' ranges (README.md, step 9)."""

_TOGETHER = 2**17
"""Positions that are looked up together, of all terms: the tables of a term stay in cache for many rows."""

MORE_KNOTS = 6
"""So many are tabulated beyond those that rows have looked up, for rows to come."""


class MultiplierTables(NamedTuple):
    """Envelopes of few multipliers that lie far apart, and of many that lie between neighbours of them, where made."""

    coarse_multipliers: FloatArray
    """(COARSE,), increasing."""
    coarse: FloatTable
    """(n_knots, COARSE)."""
    slots: IntArray
    """(COARSE - 1,): the slot of the fine multipliers above each coarse one; -1 where they are not made."""
    fine_multipliers: FloatArray
    """(n_slots, FINE)."""
    fine: FloatTable
    """(n_slots, n_knots, FINE)."""


class LabelTables(NamedTuple):
    """The worst case of one label: its functions, their tables and the error, which is taken off every sum of them."""

    positions: Positions
    curves: Curves
    tables: MultiplierTables
    error: float


class AskedMeans(NamedTuple):
    """What rows are asked about; arrays of shape (n_rows,)."""

    thresholds: FloatArray
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


def select_spans(rows: FloatArray, positions: Positions, curves: Curves) -> IntArray:
    """The first and the last knot of each curve that some rows look up, (n_curves, 2); with a few on either side."""
    spans = np.tile(np.array([curves.knots.size, -1]), (curves.starts.size - 1, 1))
    if rows.shape[0]:
        ends = compute_positions(np.stack([rows.min(axis=0), rows.max(axis=0)]), positions)
        own = positions.curves
        at, _ = locate_in_numpy(ends, list_tracks(curves)[own], curves.knots)
        np.minimum.at(spans[:, 0], own, np.maximum(at.min(axis=0) - MORE_KNOTS, curves.starts[own]))
        np.maximum.at(spans[:, 1], own, np.minimum(at.max(axis=0) + 1 + MORE_KNOTS, curves.starts[own + 1] - 1))
    return spans


def start_tables(curves: Curves, multipliers: FloatArray, power: int, spans: IntArray) -> MultiplierTables:
    """Tables of coarse multipliers, (COARSE,), positive and increasing, alone; `spans` as in `tabulate_envelopes`."""
    return MultiplierTables(
        multipliers,
        tabulate_envelopes(curves, multipliers, power, spans),
        np.full(COARSE - 1, -1, dtype=np.int64),
        np.empty((0, FINE)),
        np.empty((0, curves.knots.size, FINE), dtype=np.float32),
    )


def widen_tables(
    tables: MultiplierTables, curves: Curves, power: int, known: IntArray, spans: IntArray
) -> MultiplierTables:
    """The same with entries for more knots: those of spans that contain the known ones."""
    coarse, fine = tables.coarse.copy(), tables.fine.copy()
    front = np.minimum(known[:, 0] - 1, spans[:, 1])  # of a curve without entries: all
    behind = np.maximum(known[:, 1], front) + 1
    for part in (np.stack([spans[:, 0], front], axis=1), np.stack([behind, spans[:, 1]], axis=1)):
        _fill_tables(curves, tables.coarse_multipliers, power, part, coarse)
        for multipliers, table in zip(tables.fine_multipliers, fine, strict=True):
            _fill_tables(curves, multipliers, power, part, table)
    return tables._replace(coarse=coarse, fine=fine)


def extend_tables(
    tables: MultiplierTables, curves: Curves, power: int, blocks: IntArray, spans: IntArray
) -> MultiplierTables:
    """The same with the fine multipliers above some of the coarse ones."""
    slots, multipliers, fine = tables.slots.copy(), [*tables.fine_multipliers], [*tables.fine]
    for block in blocks:
        if slots[block] < 0:
            slots[block] = len(multipliers)
            low, high = tables.coarse_multipliers[block : block + 2]
            multipliers.append(low * (high / low) ** (np.arange(1, FINE + 1) / (FINE + 1)))
            fine.append(tabulate_envelopes(curves, multipliers[-1], power, spans))
    return tables._replace(slots=slots, fine_multipliers=np.array(multipliers), fine=np.array(fine))


def tabulate_envelopes(
    curves: Curves, multipliers: FloatArray, power: int, spans: IntArray | None = None
) -> FloatTable:
    """Lower bounds of the envelopes such that a chord between knots is one, too, (n_knots, n_multipliers).

    Entries are single precision, rounded downward. They are made from the first to the last knot of each curve's span,
    (n_curves, 2), or for all; the others are NaN, which proves nothing. Each is the same to the last bit whichever
    others are made.
    """
    tables = np.full((curves.knots.size, multipliers.size), np.nan, dtype=np.float32)
    if spans is None:
        spans = np.stack([curves.starts[:-1], curves.starts[1:] - 1], axis=1)
    _fill_tables(curves, multipliers, power, spans, tables)
    return tables


def _fill_tables(curves: Curves, multipliers: FloatArray, power: int, spans: IntArray, tables: FloatTable) -> None:
    """Entries of the knots from the first to the last one of each span."""
    if (spans[:, 1] < spans[:, 0]).all():
        return
    errors = TABLE_ERROR * (np.diff(curves.starts) + 64) / 64 * curves.ranges
    fill = fill_linear_tables if power == 1 else fill_square_tables
    fill(curves, multipliers, spans, errors, tables)


def maximise_powers(
    rows: FloatArray, label: LabelTables, thresholds: FloatArray, floors: FloatArray | None = None
) -> tuple[FloatArray, IntArray]:
    """Maximise margin / multiplier for each row: over coarse multipliers, then over fine ones beside the best.

    Sums of envelopes, less the label's error, must exceed the thresholds, (n_rows, n_thresholds). No term falls below
    its floor, (n_rows, n_terms), whatever it costs: where limits hold it. Returns the powers, of the thresholds' shape,
    rounded downward, 0 where no margin is left; and the block of fine multipliers that should have been asked, but is
    not made, -1 else.
    """
    single = np.empty((0, 0), dtype=np.float32) if floors is None else round_down(floors)
    return _maximise_powers(np.ascontiguousarray(rows), label, thresholds + label.error, single)


def add_curves(rows: FloatArray, positions: Positions, curves: Curves) -> tuple[FloatArray, FloatArray]:
    """Sums of the chords of all curves at a row, and by how much they may be off, each (n_rows,)."""
    return _add_curves(np.ascontiguousarray(rows), positions, curves)  # one layout: it is compiled for each


@compile_loop()
def _list_runs(positions: Positions, curves: Curves) -> Runs:
    even, knots = curves.even[positions.curves], curves.even_knots[positions.curves]
    return Runs(even[:, 0].copy(), even[:, 1].copy(), knots[:, 0].copy(), knots[:, 1].astype(np.float64))


@compile_loop()
def _count_together(positions: Positions, n_rows: int) -> int:
    """How many rows are looked up together, term by term."""
    return min(max(_TOGETHER // max(positions.features.size, 1), 64), max(n_rows, 1))


@compile_loop(error_model="numpy")
def _locate_all(
    rows: FloatArray, positions: Positions, curves: Curves, runs: Runs, at: IntArray, shares: FloatArray | FloatTable
) -> None:
    """The knot left of each term of some rows, and the share of the way to the next one, both (n_terms, n_rows).

    Beyond the knots a row counts as at their end. On an even run the share is that of rounded positions: off by less
    than UNEVEN.
    """
    for term in range(positions.features.size):
        feature, anchor, factor = positions.features[term], positions.anchors[term], positions.factors[term]
        begin, rate, base, count = runs.begins[term], runs.rates[term], runs.bases[term], runs.counts[term]
        first, last = curves.starts[positions.curves[term]], curves.starts[positions.curves[term] + 1] - 1
        own_at, own_shares, knots = at[term], shares[term], curves.knots
        for row in range(rows.shape[0]):
            x = (rows[row, feature] - anchor) * factor
            position = (x - begin) * rate
            if 0.0 <= position < count:
                whole = int(position)
                own_at[row], own_shares[row] = base + whole, position - whole
            else:
                own_at[row], own_shares[row] = search(x, first, last, knots)


def _maximise_powers_in_numpy(
    rows: FloatArray, label: LabelTables, targets: FloatArray, floors: FloatTable
) -> tuple[FloatArray, IntArray]:
    positions, curves, tables, _ = label
    powers, missing = np.zeros(targets.shape), np.full(targets.shape, -1, dtype=np.int64)
    tracks = list_tracks(curves)[positions.curves]
    at, found = locate_in_numpy(compute_positions(rows, positions), tracks, curves.knots)
    shares = found.astype(np.float32)

    def add(table: FloatTable, some: IntArray | slice) -> FloatArray:
        if floors.shape[0]:
            return _add_above_in_numpy(at[some], shares[some], table, floors[some])
        return _add_entries_in_numpy(at[some], shares[some], table)

    coarse = add(tables.coarse, slice(None))
    for k, target in enumerate(targets.T):
        best, middle, rises = _select_best_in_numpy(coarse, tables.coarse_multipliers, target)
        powers[:, k] = best
        for side in (rises, ~rises):
            block = np.where(side, middle, middle - 1)
            slots = np.where((best > 0.0) & (powers[:, k] == best) & (missing[:, k] < 0), tables.slots[block], -2)
            missing[:, k] = np.where(slots == -1, block, missing[:, k])
            for slot in np.unique(slots[slots >= 0]):
                some = np.flatnonzero(slots == slot)
                finer = _select_best_in_numpy(
                    add(tables.fine[slot], some), tables.fine_multipliers[slot], target[some]
                )[0]
                powers[some, k] = np.maximum(best[some], finer)
    return powers, missing


def _add_entries_in_numpy(at: IntArray, shares: FloatTable, table: FloatTable) -> FloatArray:
    sums, part = np.zeros((at.shape[0], table.shape[1])), np.zeros((at.shape[0], table.shape[1]), dtype=np.float32)
    for term in range(at.shape[1]):
        part += _blend(at[:, term], shares[:, term], table)
        if term % GROUP == GROUP - 1 or term == at.shape[1] - 1:
            sums += part
            part[:] = 0.0
    return sums


def _add_above_in_numpy(at: IntArray, shares: FloatTable, table: FloatTable, floors: FloatTable) -> FloatArray:
    sums = np.zeros((at.shape[0], table.shape[1]))
    for term in range(at.shape[1]):
        sums += np.maximum(_blend(at[:, term], shares[:, term], table), floors[:, term, None])
    return sums


def _blend(knots: IntArray, right: FloatTable, table: FloatTable) -> FloatTable:
    left = np.float32(1.0) - right
    return np.asarray(left[:, None] * table[knots] + right[:, None] * table[knots + 1])


def _select_best_in_numpy(
    sums: FloatArray, multipliers: FloatArray, target: FloatArray
) -> tuple[FloatArray, IntArray, BoolArray]:
    """`select_best` for all rows."""
    powers = (sums - target[:, None]) / multipliers * (1.0 - 4.0 * EPSILON)
    powers = np.where(powers > 0.0, powers, 0.0)
    best, rows = powers.max(axis=1), np.arange(sums.shape[0])
    at = np.clip(powers.argmax(axis=1), 1, sums.shape[1] - 2)
    own = sums[rows, at]
    below = (own - sums[rows, at - 1]) / (multipliers[at] - multipliers[at - 1])
    above = (sums[rows, at + 1] - own) / (multipliers[at + 1] - multipliers[at])
    rises = np.maximum(below, 0.0) * np.maximum(above, 0.0) > ((own - target) / multipliers[at]) ** 2
    return best, at, rises


@compile_loop(
    early=_maximise_powers_in_numpy,
    numbers=lambda rows, label, *_: rows.shape[0] * label.positions.features.size * (COARSE + 2 * FINE),
    error_model="numpy",
)
def _maximise_powers(
    rows: FloatArray, label: LabelTables, targets: FloatArray, floors: FloatTable
) -> tuple[FloatArray, IntArray]:
    positions, curves, tables, _ = label
    powers, missing = np.zeros(targets.shape), np.full(targets.shape, -1, dtype=np.int64)
    n_terms, size = positions.features.size, _count_together(positions, rows.shape[0])
    ats, all_shares = np.empty((n_terms, size), dtype=np.int64), np.empty((n_terms, size), dtype=np.float32)
    firsts, seconds, blocks = np.empty((size, COARSE)), np.empty((size, FINE)), np.empty((size, 2), dtype=np.int64)
    coarse, fine, fine_multipliers = tables.coarse.reshape(1, -1, COARSE), tables.fine, tables.fine_multipliers
    runs, nothing = _list_runs(positions, curves), np.zeros(size, dtype=np.int64)
    for start in range(0, rows.shape[0], size):
        n_rows = min(size, rows.shape[0] - start)
        part = slice(start, start + n_rows)
        at, shares, own_floors = ats[:, :n_rows], all_shares[:, :n_rows], floors[part]
        first, second, slots = firsts[:n_rows], seconds[:n_rows], np.empty(n_rows, dtype=np.int64)
        _locate_all(rows[part], positions, curves, runs, at, shares)
        _add_entries(at, shares, coarse, nothing[:n_rows], own_floors, first)
        for k in range(targets.shape[1]):
            target, best, lacking = targets[part, k], powers[part, k], missing[part, k]
            for row in range(n_rows):
                best[row], middle, rises = select_best(first[row], tables.coarse_multipliers, target[row])
                blocks[row, 0], blocks[row, 1] = (middle, middle - 1) if rises else (middle - 1, middle)
                slots[row] = 0 if best[row] > 0.0 else -1
            for side in range(2):  # the other side where the better one is no better than the coarse multiplier itself
                _choose_slots(blocks[:n_rows, side], tables.slots, slots, lacking)
                _add_entries(at, shares, fine, slots, own_floors, second)
                for row in range(n_rows):
                    if slots[row] >= 0:
                        power = select_best(second[row], fine_multipliers[slots[row]], target[row])[0]
                        slots[row] = -1 if power > best[row] else 0
                        best[row] = max(best[row], power)
    return powers, missing


@compile_loop()
def _choose_slots(blocks: IntArray, made: IntArray, slots: IntArray, missing: IntArray) -> None:
    """The slots of the fine multipliers that rows ask for (slot 0 or more); those not made are noted."""
    for row in range(blocks.size):
        if slots[row] >= 0:
            slots[row] = made[blocks[row]]
            if slots[row] < 0:
                missing[row] = blocks[row]


@compile_loop(error_model="numpy")
def select_best(sums: FloatArray, multipliers: FloatArray, target: float) -> tuple[float, int, bool]:
    """The largest margin / multiplier, which multiplier that is (but for the outermost), and whether it rises beyond.

    The margin is concave in the multiplier; its slope at the best one is guessed from those on both sides.
    """
    best, at = 0.0, 0
    for i in range(sums.size):
        power = (sums[i] - target) / multipliers[i] * (1.0 - 4.0 * EPSILON)
        if power > best:
            best, at = power, i
    at = min(max(at, 1), sums.size - 2)
    below = (sums[at] - sums[at - 1]) / (multipliers[at] - multipliers[at - 1])
    above = (sums[at + 1] - sums[at]) / (multipliers[at + 1] - multipliers[at])
    margin = (sums[at] - target) / multipliers[at]
    return best, at, max(below, 0.0) * max(above, 0.0) > margin * margin


@compile_loop()
def _add_entries(
    at: IntArray, shares: FloatTable, tables: FloatTable, slots: IntArray, floors: FloatTable, sums: FloatArray
) -> None:
    """Sums of entries of the table in each row's slot; rows of slot -1 are left out. Floors may be empty."""
    sums[:] = 0.0
    for first in range(0, at.shape[0], GROUP):  # all rows on a few tables at a time, which stay in cache
        last = min(first + GROUP, at.shape[0])
        if floors.shape[0]:
            _add_above(at, shares, tables, slots, floors, sums, first, last)
        elif tables.shape[2] == COARSE:
            _add_coarse(at, shares, tables, slots, sums, first, last)
        else:
            _add_fine(at, shares, tables, slots, sums, first, last)


def _make_adder(width: int) -> Compiled:
    """A loop over tables of one width: only a width that is known when it is compiled becomes vector instructions."""

    @compile_loop()
    def add(
        at: IntArray, shares: FloatTable, tables: FloatTable, slots: IntArray, sums: FloatArray, first: int, last: int
    ) -> None:
        part = np.empty(width, dtype=np.float32)
        for row in range(slots.size):
            slot = slots[row]
            if slot < 0:
                continue
            for column in range(width):
                part[column] = np.float32(0.0)
            for term in range(first, last):
                right, knot = shares[term, row], at[term, row]
                left = np.float32(1.0) - right
                for column in range(width):
                    part[column] += left * tables[slot, knot, column] + right * tables[slot, knot + 1, column]
            for column in range(width):
                sums[row, column] += part[column]

    return add


_add_coarse, _add_fine = _make_adder(COARSE), _make_adder(FINE)


@compile_loop()
def _add_above(
    at: IntArray,
    shares: FloatTable,
    tables: FloatTable,
    slots: IntArray,
    floors: FloatTable,
    sums: FloatArray,
    first: int,
    last: int,
) -> None:
    """The same for terms that cannot fall below their floors."""
    for row in range(slots.size):
        slot = slots[row]
        if slot < 0:
            continue
        for term in range(first, last):
            right, knot, floor = shares[term, row], at[term, row], floors[row, term]
            left = np.float32(1.0) - right
            for column in range(sums.shape[1]):
                entry = left * tables[slot, knot, column] + right * tables[slot, knot + 1, column]
                sums[row, column] += max(entry, floor)


def _add_curves_in_numpy(rows: FloatArray, positions: Positions, curves: Curves) -> tuple[FloatArray, FloatArray]:
    tracks = list_tracks(curves)[positions.curves]
    at, shares = locate_in_numpy(compute_positions(rows, positions), tracks, curves.knots)
    is_beyond = (shares == 1.0) | ((shares == 0.0) & (at == curves.starts[positions.curves]))
    values = (1.0 - shares) * curves.low[at] + shares * curves.low[at + 1]
    sums, errors = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    for term, curve in enumerate(positions.curves):
        sums += values[:, term]
        errors += curves.sag[at[:, term]]
        errors += np.where(is_beyond[:, term], curves.ranges[curve], 0.0)
    return sums, errors


@compile_loop(early=_add_curves_in_numpy, numbers=lambda rows, positions, *_: rows.shape[0] * positions.features.size)
def _add_curves(rows: FloatArray, positions: Positions, curves: Curves) -> tuple[FloatArray, FloatArray]:
    n_terms, size = positions.features.size, _count_together(positions, rows.shape[0])
    ats, all_shares = np.empty((n_terms, size), dtype=np.int64), np.empty((n_terms, size))
    runs, low, sag = _list_runs(positions, curves), curves.low, curves.sag
    sums, errors = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    for start in range(0, rows.shape[0], size):
        part = slice(start, min(start + size, rows.shape[0]))
        total, error = sums[part], errors[part]
        at, shares = ats[:, : total.size], all_shares[:, : total.size]
        _locate_all(rows[part], positions, curves, runs, at, shares)
        for term in range(n_terms):
            first, whole = curves.starts[positions.curves[term]], curves.ranges[positions.curves[term]]
            for row in range(total.size):
                knot, share = at[term, row], shares[term, row]
                total[row] += (1.0 - share) * low[knot] + share * low[knot + 1]
                error[row] += sag[knot]
                if share == 1.0 or (share == 0.0 and knot == first):
                    error[row] += whole  # beyond the knots: somewhere within its range
    return sums, errors
