"""Sums over curves by NumPy, for a process's first few rows: the same numbers to the last bit as the compiled loops.

Owns what `envelopes.py` and `windows.py` compute for rows, without a compiler. Every number takes the same operations
in the same order as there, for all rows at once: their argument (README.md, step 9) holds here as it stands. Must not
know when that is worth it (`compiling.is_early`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from derand._arrays import EPSILON, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from derand.kernels.envelopes import Curves, Places, PriceTables
    from derand.kernels.windows import Minima

FloatTable = NDArray[np.float32]

FARTHEST_PLACE = float(np.finfo(np.float64).max)
"""On a curve: what lies farther away, in units, counts as there."""


def find_places(rows: FloatArray, places: Places) -> FloatArray:
    """Where rows stand on the curves of their terms, (n_rows, n_terms)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip((rows[:, places.features] - places.anchors) * places.factors, -FARTHEST_PLACE, FARTHEST_PLACE)


def locate(x: FloatArray, which: IntArray, curves: Curves) -> tuple[IntArray, FloatArray]:
    """`windows.locate` for many places: x of shape (n_rows, n_terms), the curve of each term."""
    even, knots = curves.even[which], curves.even_knots[which]
    with np.errstate(over="ignore", invalid="ignore"):
        position = (x - even[:, 0]) * even[:, 1]
    is_even = (position >= 0.0) & (position < knots[:, 1])
    whole = np.where(is_even, position, 0.0).astype(np.int64)
    at = np.asarray(knots[:, 0] + whole, dtype=np.int64)
    share = np.asarray(np.where(is_even, position, 0.0) - whole, dtype=np.float64)
    rest = np.nonzero(~is_even)
    own = which[rest[1]]
    at[rest], share[rest] = _search(x[rest], curves.starts[own], curves.starts[own + 1] - 1, curves.knots)
    return at, share


def _search(x: FloatArray, first: IntArray, last: IntArray, knots: FloatArray) -> tuple[IntArray, FloatArray]:
    is_low, is_high = x <= knots[first], x >= knots[last]
    left, right = first, last
    while (is_open := right - left > 1).any():
        middle = (left + right) // 2
        is_left = knots[middle] <= x
        left, right = np.where(is_open & is_left, middle, left), np.where(is_open & ~is_left, middle, right)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        share = np.minimum((x - knots[left]) / (knots[right] - knots[left]), 1.0)
    at = np.where(is_low, first, np.where(is_high, last - 1, left))
    return at, np.where(is_low, 0.0, np.where(is_high, 1.0, share))


@np.errstate(all="ignore")  # as in compiled code
def find_powers(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    tables: PriceTables,
    floors: FloatTable,
    thresholds: FloatArray,
    error: float,
    group: int,
) -> tuple[FloatArray, IntArray]:
    """`envelopes.find_powers`; `floors` is empty where there are none."""
    powers, missing = np.zeros(thresholds.shape), np.full(thresholds.shape, -1, dtype=np.int64)
    at, found = locate(find_places(rows, places), places.curves, curves)
    shares = found.astype(np.float32)

    def add(table: FloatTable, some: IntArray | slice) -> FloatArray:
        if floors.shape[0]:
            return _add_above(at[some], shares[some], table, floors[some])
        return _add_entries(at[some], shares[some], table, group)

    coarse = add(tables.coarse, slice(None))
    for k in range(thresholds.shape[1]):
        cut = thresholds[:, k] + error
        best, middle, rises = _find_best(coarse, tables.coarse_prices, cut)
        powers[:, k] = best
        for side in (rises, ~rises):
            block = np.where(side, middle, middle - 1)
            slots = np.where((best > 0.0) & (powers[:, k] == best) & (missing[:, k] < 0), tables.slots[block], -2)
            missing[:, k] = np.where(slots == -1, block, missing[:, k])
            for slot in np.unique(slots[slots >= 0]):
                some = np.flatnonzero(slots == slot)
                finer = _find_best(add(tables.fine[slot], some), tables.fine_prices[slot], cut[some])[0]
                powers[some, k] = np.maximum(best[some], finer)
    return powers, missing


def _add_entries(at: IntArray, shares: FloatTable, table: FloatTable, group: int) -> FloatArray:
    sums, part = np.zeros((at.shape[0], table.shape[1])), np.zeros((at.shape[0], table.shape[1]), dtype=np.float32)
    for term in range(at.shape[1]):
        part += _blend(at[:, term], shares[:, term], table)
        if term % group == group - 1 or term == at.shape[1] - 1:
            sums += part
            part[:] = 0.0
    return sums


def _add_above(at: IntArray, shares: FloatTable, table: FloatTable, floors: FloatTable) -> FloatArray:
    sums = np.zeros((at.shape[0], table.shape[1]))
    for term in range(at.shape[1]):
        sums += np.maximum(_blend(at[:, term], shares[:, term], table), floors[:, term, None])
    return sums


def _blend(knots: IntArray, right: FloatTable, table: FloatTable) -> FloatTable:
    left = np.float32(1.0) - right
    return np.asarray(left[:, None] * table[knots] + right[:, None] * table[knots + 1])


def _find_best(sums: FloatArray, prices: FloatArray, cut: FloatArray) -> tuple[FloatArray, IntArray, BoolArray]:
    """The best margin per price of each row, which price that is (but for the outermost), and whether it rises."""
    powers = (sums - cut[:, None]) / prices * (1.0 - 4.0 * EPSILON)
    powers = np.where(powers > 0.0, powers, 0.0)
    best, rows = powers.max(axis=1), np.arange(sums.shape[0])
    at = np.clip(powers.argmax(axis=1), 1, sums.shape[1] - 2)
    own = sums[rows, at]
    below = (own - sums[rows, at - 1]) / (prices[at] - prices[at - 1])
    above = (sums[rows, at + 1] - own) / (prices[at + 1] - prices[at])
    rises = np.maximum(below, 0.0) * np.maximum(above, 0.0) > ((own - cut) / prices[at]) ** 2
    return best, at, rises


@np.errstate(all="ignore")  # as in compiled code
def add_curves(rows: FloatArray, places: Places, curves: Curves) -> tuple[FloatArray, FloatArray]:
    """`envelopes.add_curves`."""
    at, shares = locate(find_places(rows, places), places.curves, curves)
    is_beyond = (shares == 1.0) | ((shares == 0.0) & (at == curves.starts[places.curves]))
    values = (1.0 - shares) * curves.low[at] + shares * curves.low[at + 1]
    sums, errors = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    for term, curve in enumerate(places.curves):
        sums += values[:, term]
        errors += curves.sag[at[:, term]]
        errors += np.where(is_beyond[:, term], curves.ranges[curve], 0.0)
    return sums, errors


@np.errstate(all="ignore")  # as in compiled code
def find_least(
    x: FloatArray,
    reach: FloatArray,
    box: tuple[FloatArray, FloatArray],
    which: IntArray,
    curves: Curves,
    minima: Minima,
) -> FloatArray:
    """Lower bounds of curves from x - reach to x + reach, but within two ends, all of shape (n_rows, n_terms)."""
    low, sag, knots = curves.low, curves.sag, curves.knots
    wider = reach + 16.0 * EPSILON * (np.abs(x) + reach)
    start = np.maximum(x - wider, box[0] - 16.0 * EPSILON * np.abs(box[0]))
    stop = np.minimum(x + wider, box[1] + 16.0 * EPSILON * np.abs(box[1]))
    (i, share), (j, far_share) = locate(start, which, curves), locate(stop, which, curves)
    least = (1.0 - share) * low[i] + share * low[i + 1] - sag[i]
    least = np.minimum(least, (1.0 - far_share) * low[j] + far_share * low[j + 1] - sag[j])
    least = np.minimum(least, np.where(start < knots[curves.starts[which]], curves.ends[which, 0], np.inf))
    least = np.minimum(least, np.where(stop > knots[curves.starts[which + 1] - 1], curves.ends[which, 1], np.inf))
    rest = np.minimum(low[i + 1] - sag[i], low[j] - sag[j])
    least = np.where(i < j, np.minimum(least, rest), least)
    count = j - i - 1
    level = np.frexp(np.maximum(count, 1).astype(np.float64))[1].astype(np.int64) - 1
    ends = np.where(count > 0, i + 1, 0), np.where(count > 0, j - (1 << level), 0)
    run = np.minimum(minima.levels[level, ends[0]], minima.levels[level, ends[1]])
    return np.where(count > 0, np.minimum(least, run), least)


def add_in_order(parts: FloatArray) -> FloatArray:
    """Sums along the last axis from left to right, as a loop adds them up."""
    total = np.zeros(parts.shape[0])
    for part in parts.T:
        total += part
    return total
