"""Early versions of the loops of `pieces.py`, in NumPy: all curves and multipliers at once, equal to the last bit.

Functions have the names of those whose work they do. Every number takes the same operations in the same order as there:
their argument (README.md, step 9) holds here as it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels.worst_case.curves import Curves, FloatTable

WIDE = 12
"""A search among more pieces than these is first made narrower."""
BLOCK = 8192
"""Searches at a time: so many that their numbers stay in cache."""


class _Pieces(NamedTuple):
    """All curves as linear pieces between knots: `pieces.Pieces` one after the other, numbered by their left knots.

    What follows the last knot of a curve is no piece, and never asked for.
    """

    y: FloatArray
    slack: FloatArray
    """Of the curve, for each knot."""
    packed: FloatArray
    """(n_knots, 7): y at both ends, value at the left one, slope, what is taken off for the slack, sag, slack."""
    beyond: FloatArray
    before: FloatArray


def round_down(values: FloatArray) -> FloatTable:
    """Single-precision numbers that are not larger."""
    single = values.astype(np.float32)
    return np.where(single > values, np.nextafter(single, np.float32(-np.inf)), single)


def fill_linear_tables(
    curves: Curves, multipliers: FloatArray, spans: IntArray, errors: FloatArray, tables: FloatTable
) -> None:
    """`pieces.fill_linear_tables`."""
    multiplier = multipliers * (1.0 - 4.0 * EPSILON)
    for k in np.flatnonzero(spans[:, 0] <= spans[:, 1]):
        first, last = curves.starts[k], curves.starts[k + 1]
        knots, low, sag = curves.knots[first:last], curves.low[first:last], curves.sag[first : last - 1]
        inverse = 1.0 / curves.units[k] * (1.0 - 4.0 * EPSILON)
        increments = multiplier * np.diff(knots)[:, None] * inverse
        own = low - np.maximum(np.append(sag[:1], sag), np.append(sag, sag[-1:]))
        values = np.empty((knots.size, multipliers.size))
        values[0] = np.minimum(curves.ends[k, 0], own[0])
        for j, increment in enumerate(increments, start=1):
            values[j] = np.minimum(values[j - 1] + increment, own[j])
        values[-1] = np.minimum(curves.ends[k, 1], values[-1])
        for j in range(knots.size - 2, -1, -1):
            values[j] = np.minimum(values[j + 1] + increments[j], values[j])
        tables[first:last] = round_down(values - errors[k])


def fill_square_tables(
    curves: Curves, multipliers: FloatArray, spans: IntArray, errors: FloatArray, tables: FloatTable
) -> None:
    """`pieces.fill_square_tables`."""
    sizes = np.diff(curves.starts)
    own, knots = np.repeat(np.arange(sizes.size), sizes), np.arange(curves.knots.size)
    # chords need neighbours
    first, last = np.maximum(spans[:, 0] - 1, curves.starts[:-1]), np.minimum(spans[:, 1] + 1, curves.starts[1:] - 1)
    last = np.where(spans[:, 0] > spans[:, 1], -1, last)
    pieces, multiplier = _split_pieces(curves, own), multipliers * (1.0 - 8.0 * EPSILON)
    values = _minimise(pieces, multiplier, curves.starts, own, first, last)
    y, slack, ends = pieces.y[:, None], pieces.slack[:, None], curves.ends[own]
    right_end = pieces.y[curves.starts[1:] - 1][own][:, None]
    left, right = np.maximum(y - slack, 0.0), np.maximum(right_end - y - slack, 0.0)
    values = np.minimum(values, ends[:, :1] + multiplier * left * left)
    values = np.minimum(values, ends[:, 1:] + multiplier * right * right)
    intervals = np.flatnonzero((knots >= first[own]) & (knots < last[own]))
    chords = _make_chords(curves, pieces, multiplier, values, intervals, own)
    made = np.flatnonzero((knots >= spans[own, 0]) & (knots <= spans[own, 1]))
    tables[made] = round_down(chords[made] - errors[own[made], None])


def _split_pieces(curves: Curves, own: IntArray) -> _Pieces:
    """`pieces._split_pieces`, of all curves."""
    firsts = curves.starts[:-1]
    inverse = 1.0 / curves.units * (1.0 - 4.0 * EPSILON)
    y = (curves.knots - curves.knots[firsts][own]) * inverse[own]
    slack = (8.0 * EPSILON * y[curves.starts[1:] - 1])[own]
    low, following, sag = curves.low, np.append(curves.low[1:], 0.0), curves.sag
    widths = np.append(y[1:], 0.0) - y
    is_flat = ~(np.append(y[1:], 0.0) > y)
    starts = np.where(is_flat, np.minimum(low, following), low)
    slopes = np.where(is_flat, 0.0, (following - low) / widths)
    spare = 2.0 * slack * np.abs(slopes)
    rounding = 64.0 * EPSILON * (np.abs(low) + np.abs(following) + sag)
    least = np.minimum(low, following) - sag - spare - rounding
    beyond, before = least.copy(), least.copy()
    for first, last in zip(firsts, curves.starts[1:] - 1, strict=True):
        before[first:last] = np.minimum.accumulate(least[first:last])
        beyond[first:last] = np.minimum.accumulate(least[first:last][::-1])[::-1]
    packed = np.stack([y, np.append(y[1:], 0.0), starts, slopes, spare, sag, slack], axis=1)
    return _Pieces(y, slack, packed, beyond, before)


def _minimise(
    pieces: _Pieces, multipliers: FloatArray, starts: IntArray, own: IntArray, first: IntArray, last: IntArray
) -> FloatArray:
    """`pieces._minimise`: all knots of a stride at once, of all curves and multipliers."""
    values, best = np.empty((own.size, multipliers.size)), np.zeros((own.size, multipliers.size), dtype=np.int64)
    begin, end = starts[own], starts[own + 1]
    position, block = np.arange(own.size) - begin, max(BLOCK // multipliers.size, 1)
    stride = 1 << int(np.diff(starts).max() - 1).bit_length()
    while stride >= 1:
        skipped = np.maximum((first[own] - begin - 2 * stride + 1) // (2 * stride) + 1, 0)
        is_due = (position % (2 * stride) == stride - 1) & (position >= stride - 1 + 2 * stride * skipped)
        due = np.flatnonzero(is_due & (position + begin < last[own] + stride) & (last[own] >= 0))
        for at in range(0, due.size, block):
            knots = due[at : at + block]
            has_left, has_right = knots - stride >= begin[knots], knots + stride < end[knots]
            left, right = best[np.maximum(knots - stride, 0)], best[np.minimum(knots + stride, own.size - 1)]
            low = np.where(has_left[:, None], left, begin[knots][:, None]).ravel()
            high = np.where(has_right[:, None], right, end[knots][:, None] - 2).ravel()
            asked = _Asked(np.repeat(knots, multipliers.size), np.tile(multipliers, knots.size))
            values[knots], best[knots] = (
                found.reshape(knots.size, multipliers.size) for found in _minimise_pieces(pieces, asked, low, high)
            )
        stride //= 2
    return values


class _Asked(NamedTuple):
    """Knots, and multipliers, one by one."""

    knots: IntArray
    multipliers: FloatArray


def _minimise_pieces(pieces: _Pieces, asked: _Asked, first: IntArray, last: IntArray) -> tuple[FloatArray, IntArray]:
    """The least of the values of pieces from the first to the last, and whose it is: of equal ones the first's."""
    wide = np.flatnonzero(last - first >= WIDE)
    if wide.size:
        some = _Asked(asked.knots[wide], asked.multipliers[wide])
        first[wide], last[wide] = _narrow(pieces, some, first[wide], last[wide])
    counts = last - first + 1
    offsets = np.cumsum(counts) - counts
    which = np.repeat(np.arange(counts.size), counts)
    candidates = np.arange(which.size) + (first - offsets)[which]
    values = _evaluate(pieces, _Asked(asked.knots[which], asked.multipliers[which]), candidates)
    least = np.minimum.reduceat(values, offsets)
    is_least = np.flatnonzero(values == least[which])
    at = first
    at[which[is_least[::-1]]] = candidates[is_least[::-1]]
    return least, at


def _narrow(pieces: _Pieces, asked: _Asked, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Which pieces could be the least for all that is known of those farther away from the knot."""
    middle = np.minimum(np.maximum(asked.knots, first), last)
    least = np.minimum(_evaluate(pieces, asked, first), _evaluate(pieces, asked, last))
    least = np.minimum(least, _evaluate(pieces, asked, middle))
    x, slack, careful = pieces.y[asked.knots], pieces.slack[asked.knots], asked.multipliers * (1.0 - 32.0 * EPSILON)
    low, high = middle, last
    while (low < high).any():
        k = (low + high + 1) // 2
        distance = np.maximum(pieces.y[k] - x - slack, 0.0)
        is_beyond = pieces.beyond[k] + careful * distance * distance > least
        low, high = np.where(is_beyond, low, k), np.where(is_beyond, k - 1, high)
    right, low, high = low, first, middle
    while (low < high).any():
        k = (low + high) // 2
        distance = np.maximum(x - pieces.y[k + 1] - slack, 0.0)
        is_before = pieces.before[k] + careful * distance * distance > least
        low, high = np.where(is_before, k + 1, low), np.where(is_before, high, k)
    return low, right


def _evaluate(pieces: _Pieces, asked: _Asked, k: IntArray) -> FloatArray:
    """`pieces._evaluate_piece`."""
    start, end, base, slope, spare, drop, slack = pieces.packed.take(k, axis=0).T
    x, multiplier = pieces.y.take(asked.knots), asked.multipliers
    z = np.minimum(np.maximum(x - 0.5 * slope / multiplier, start), end)
    distance = np.maximum(np.abs(x - z) - slack, 0.0)
    own = base + slope * (z - start) - spare + multiplier * distance * distance
    return np.asarray(own - drop)


def _make_chords(
    curves: Curves, pieces: _Pieces, multiplier: FloatArray, values: FloatArray, some: IntArray, own: IntArray
) -> FloatArray:
    """`pieces._make_chords`, on the intervals right of some knots."""
    bend = curves.bends[own[some]][:, None]
    curvature = np.where(np.isinf(bend), 2.0 * multiplier, 2.0 * multiplier * bend / (2.0 * multiplier + bend))
    width = (pieces.y[some + 1] - pieces.y[some] + pieces.slack[some])[:, None]
    drop = 0.125 * curvature * width * width * (1.0 + 16.0 * EPSILON)
    low, sag, left, right = curves.low, curves.sag[some], values[some], values[some + 1]
    flat = np.minimum(np.minimum(left, right), np.minimum(low[some] - sag, low[some + 1] - sag)[:, None])
    is_flat = ~(flat <= 0.5 * (left + right) - drop)  # also where the drop is not a number
    chords = values.copy()
    chords[some] = np.minimum(chords[some], np.where(is_flat, flat, left - drop))
    chords[some + 1] = np.minimum(chords[some + 1], np.where(is_flat, flat, right - drop))
    return chords
