"""Tables of envelopes: the least of a curve's linear pieces plus a multiple of the distance, at each of its knots.

Owns the search for the piece that is least and what is taken off so that chords between knots are lower bounds, too.
Arrays in, arrays out. Must not know where knots come from or which multipliers are tried. README.md, step 9, has the
argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, Entries, FloatArray, IntArray
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case import pieces_in_numpy
from derand.kernels.worst_case.curves import Curves, FloatTable


def _count_entries(curves: Curves, multipliers: FloatArray, spans: IntArray, *_: object) -> int:
    """Numbers that the early version computes: several per entry."""
    return int(np.maximum(spans[:, 1] - spans[:, 0] + 1, 0).sum()) * multipliers.size * 16


@compile_loop(early=pieces_in_numpy.fill_linear_tables, numbers=_count_entries)
def fill_linear_tables(
    curves: Curves, multipliers: FloatArray, spans: IntArray, errors: FloatArray, tables: FloatTable
) -> None:
    """Entries for multiples of the distance, at the knots of each span (first, last), less the errors."""
    for k in range(curves.starts.size - 1):
        if spans[k, 0] <= spans[k, 1]:
            _fill_linear(curves, k, multipliers, errors[k], tables)


@compile_loop(early=pieces_in_numpy.fill_square_tables, numbers=_count_entries)
def fill_square_tables(
    curves: Curves, multipliers: FloatArray, spans: IntArray, errors: FloatArray, tables: FloatTable
) -> None:
    """The same for multiples of the squared distance."""
    for k in range(curves.starts.size - 1):
        if spans[k, 0] <= spans[k, 1]:
            _fill_square(curves, k, multipliers, spans[k], errors[k], tables)


@compile_loop()
def _fill_linear(curves: Curves, k: int, multipliers: FloatArray, error: float, tables: FloatTable) -> None:
    """Envelopes for multiples of the distance: the least of what lies left of a knot and what lies right of it."""
    first, last, ends = curves.starts[k], curves.starts[k + 1], curves.ends[k]
    knots, low, sag = curves.knots[first:last], curves.low[first:last], curves.sag[first:last]
    inverse, n = 1.0 / curves.units[k] * (1.0 - 4.0 * EPSILON), knots.size
    values = np.empty(n)
    for column in range(multipliers.size):
        multiplier = multipliers[column] * (1.0 - 4.0 * EPSILON)
        from_left = ends[0]
        for j in range(n):
            if j > 0:
                from_left += multiplier * (knots[j] - knots[j - 1]) * inverse
            own = low[j] - max(sag[max(j - 1, 0)], sag[min(j, n - 2)])
            from_left = min(from_left, own)
            values[j] = from_left
        from_right = ends[1]
        for j in range(n - 1, -1, -1):
            if j < n - 1:
                from_right += multiplier * (knots[j + 1] - knots[j]) * inverse
            from_right = min(from_right, values[j])
            tables[first + j, column] = _round_down(from_right - error)


@compile_loop()
def _fill_square(
    curves: Curves, k: int, multipliers: FloatArray, span: IntArray, error: float, tables: FloatTable
) -> None:
    """Envelopes for multiples of the squared distance, less what a chord between knots may lie above them."""
    pieces, ends, table = _split_pieces(curves, k), curves.ends[k], tables[curves.starts[k] : curves.starts[k + 1]]
    y, slack, n = pieces.y, pieces.slack, pieces.y.size
    first, last = span[0] - curves.starts[k], span[1] - curves.starts[k]
    start, stop = max(first - 1, 0), min(last + 1, n - 1)  # chords need neighbours
    values, best, chords, shifts = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n), np.empty(n - 1)
    for column in range(multipliers.size):
        multiplier = multipliers[column] * (1.0 - 8.0 * EPSILON)
        for piece in range(n - 1):
            shifts[piece] = 0.5 * pieces.slopes[piece] / multiplier
        _minimise(pieces, shifts, multiplier, start, stop, values, best)
        for j in range(start, stop + 1):
            left, right = max(y[j] - slack, 0.0), max(y[n - 1] - y[j] - slack, 0.0)
            values[j] = min(values[j], ends[0] + multiplier * left * left, ends[1] + multiplier * right * right)
        _make_chords(pieces, multiplier, start, stop, values, chords)
        for j in range(first, last + 1):
            table[j, column] = _round_down(chords[j] - error)


@compile_loop()
def _round_down(value: float) -> Entries:
    single = np.float32(value)
    return np.nextafter(single, np.float32(-np.inf)) if single > value else single


class Pieces(NamedTuple):
    """A curve as linear pieces between knots."""

    y: FloatArray
    """The knots, as distances from the first one in units, rounded downward."""
    slack: float
    """By how much distances of y are too large at most."""
    bend: float
    """Upper bound of the second derivative of the curve."""
    low: FloatArray
    """Lower bound at each knot."""
    starts: FloatArray
    slopes: FloatArray
    drops: FloatArray
    """The sag of each piece."""
    beyond: FloatArray
    """Lower bound of a piece and of all after it."""
    before: FloatArray
    """Lower bound of a piece and of all in front of it."""


@compile_loop()
def _split_pieces(curves: Curves, curve: int) -> Pieces:
    begin, end = curves.starts[curve], curves.starts[curve + 1]
    knots, low, sag = curves.knots[begin:end], curves.low[begin:end], curves.sag[begin:end]
    y = (knots - knots[0]) * (1.0 / curves.units[curve] * (1.0 - 4.0 * EPSILON))
    slack, n = 8.0 * EPSILON * y[-1], y.size - 1
    starts, slopes, least = low[:-1].copy(), np.zeros(n), np.empty(n)
    for k in range(n):
        if y[k + 1] <= y[k]:  # knots that only their distance to the first one makes equal
            starts[k] = min(low[k], low[k + 1])
        else:
            slopes[k] = (low[k + 1] - low[k]) / (y[k + 1] - y[k])
        rounding = 64.0 * EPSILON * (abs(low[k]) + abs(low[k + 1]) + sag[k])
        least[k] = min(low[k], low[k + 1]) - sag[k] - 2.0 * slack * abs(slopes[k]) - rounding
    beyond, before = least.copy(), least.copy()
    for k in range(1, n):
        before[k] = min(before[k], before[k - 1])
        beyond[n - 1 - k] = min(beyond[n - 1 - k], beyond[n - k])
    return Pieces(y, slack, curves.bends[curve], low, starts, slopes, sag, beyond, before)


@compile_loop()
def _minimise(
    pieces: Pieces, shifts: FloatArray, multiplier: float, start: int, stop: int, values: FloatArray, best: IntArray
) -> None:
    """The least of piece + multiplier * distance^2 at each knot. The best piece moves with the knot: halve and conquer.

    Knots between which none is asked for, from `start` to `stop`, are left out: what is found for the others does not
    depend on them. From the piece beside a knot on the search goes outward, as far as a piece could still be lower for
    all that is known of the rest of them; of equal ones the first counts.
    """
    y, n, slack = pieces.y, pieces.y.size, pieces.slack
    careful = multiplier * (1.0 - 32.0 * EPSILON)
    stride = 1
    while stride < n:
        stride *= 2
    while stride >= 1:
        skipped = max((start - 2 * stride + 1) // (2 * stride) + 1, 0)  # their knots all lie in front of the first
        for j in range(stride - 1 + 2 * stride * skipped, min(stop + stride, n), 2 * stride):
            first = best[j - stride] if j - stride >= 0 else 0
            last = best[j + stride] if j + stride < n else n - 2
            middle, x = min(max(j, first), last), y[j]
            least, at = np.inf, first
            for k in range(middle, last + 1):
                distance = max(y[k] - x - slack, 0.0)
                if pieces.beyond[k] + careful * distance * distance > least:
                    break
                value = _evaluate_piece(x, k, pieces, shifts, multiplier, slack)
                if value < least:
                    least, at = value, k
            for k in range(middle - 1, first - 1, -1):
                distance = max(x - y[k + 1] - slack, 0.0)
                if pieces.before[k] + careful * distance * distance > least:
                    break
                value = _evaluate_piece(x, k, pieces, shifts, multiplier, slack)
                if value <= least:
                    least, at = value, k
            values[j], best[j] = least, at
        stride //= 2


@compile_loop(inline="always")
def _evaluate_piece(x: float, k: int, pieces: Pieces, shifts: FloatArray, multiplier: float, slack: float) -> float:
    """The least of a linear piece + multiplier * distance^2 over the piece: on a whole line, `shifts` below x."""
    start, slope = pieces.y[k], pieces.slopes[k]
    z = min(max(x - shifts[k], start), pieces.y[k + 1])
    distance = max(abs(x - z) - slack, 0.0)
    own = pieces.starts[k] + slope * (z - start) - 2.0 * slack * abs(slope) + multiplier * distance * distance
    return own - pieces.drops[k]


@compile_loop()
def _make_chords(
    pieces: Pieces, multiplier: float, start: int, stop: int, values: FloatArray, column: FloatArray
) -> None:
    """Entries whose chord lies below the envelope on every interval.

    There the envelope lies above the chord of its ends less `curvature width^2 / 8`, and above the least of both ends
    and the curve; whichever is more.
    """
    y, low, sag, slack, bend = pieces.y, pieces.low, pieces.drops, pieces.slack, pieces.bend
    curvature = 2.0 * multiplier if np.isinf(bend) else 2.0 * multiplier * bend / (2.0 * multiplier + bend)
    for j in range(start, stop + 1):
        column[j] = values[j]
    for j in range(start, stop):
        width = y[j + 1] - y[j] + slack
        drop = 0.125 * curvature * width * width * (1.0 + 16.0 * EPSILON)
        flat = min(values[j], values[j + 1], low[j] - sag[j], low[j + 1] - sag[j])
        if not flat <= 0.5 * (values[j] + values[j + 1]) - drop:  # also where the drop is not a number
            column[j], column[j + 1] = min(column[j], flat), min(column[j + 1], flat)
        else:
            column[j] = min(column[j], values[j] - drop)
            column[j + 1] = min(column[j + 1], values[j + 1] - drop)
