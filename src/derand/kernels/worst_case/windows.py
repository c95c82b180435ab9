"""Windows: the least of a curve within a distance, looked up for every row and added up over its terms.

Owns the largest distance r such that the sum over all terms of the least value within r stays above a threshold, which
is the whole worst case where every number may move by r at the same time (linf); and the least values of whole curves,
for numbers that may become anything. Arrays in, arrays out, lower bounds throughout. Must not know noises or models.
README.md, step 9, has the argument.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, FloatArray
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case.curves import (
    FARTHEST_POSITION,
    Curves,
    Positions,
    Records,
    compute_positions,
    list_tracks,
    locate,
    locate_in_numpy,
)
from derand.kernels.worst_case.steps import Reach

_STEPS = 100
_USUAL_STEPS = 64
_AS_WRITTEN = 2**10  # numbers that finding one least value counts as, without a compiler
_MOST_STEPS = 4096.0  # of a number, tried one by one
_TOLERANCE = 2.0**-22  # of a distance that is found
_FIRST = 2.0**-6
_NEAREST, _FARTHEST = 2.0**-40, 2.0**60  # distances beyond are not told apart


class Box(NamedTuple):
    """Where each term of a row may be moved on its curve at all, both of shape (n_rows, n_terms)."""

    low: FloatArray
    high: FloatArray


_PIECE = np.dtype([("low", np.float64), ("sag", np.float64)])


class Asked(NamedTuple):
    """What sums of least values must exceed."""

    thresholds: FloatArray
    """(n_rows, n_thresholds)."""
    error: float
    """By how much a sum may be off at most, either way; it is taken off every one."""


class _Row(NamedTuple):
    """Where a row stands on the curve of each term, and between which ends it may be moved there."""

    x: FloatArray
    low: FloatArray
    high: FloatArray
    tracks: Records


class Minima(NamedTuple):
    """What rows look up: the least values of curves over runs of intervals, and the curves themselves.

    Loops read curves as records, not as a tuple of arrays: numba counts references to an array whenever one is taken
    out of a tuple, which costs more than looking up a number in it.
    """

    levels: FloatArray
    """(n_levels, n_knots): the least value over 2^level intervals, from that of each knot on."""
    lowest: FloatArray
    """(n_curves,): the least value of each curve."""
    tracks: Records
    """(n_curves,)."""
    knots: FloatArray
    pieces: Records
    """(n_knots,): the lower bound at each knot, and the sag right of it."""


def tabulate_minima(curves: Curves) -> Minima:
    """The least values of all curves over all runs of intervals."""
    longest = int(np.diff(curves.starts).max(initial=2))
    levels = np.full((max(1, math.ceil(math.log2(longest))), curves.knots.size), np.inf)
    for k in range(curves.starts.size - 1):
        part = slice(curves.starts[k], curves.starts[k + 1])
        low = curves.low[part]
        least = np.minimum(low[:-1], low[1:]) - curves.sag[part][:-1]
        levels[0, part][:-1] = least
        for level in range(1, levels.shape[0]):
            half = 1 << (level - 1)
            above, now = levels[level - 1, part], levels[level, part]
            now[:] = above
            now[:-half] = np.minimum(above[:-half], above[half:])
    return Minima(levels, minimise_curves(curves), list_tracks(curves), curves.knots, _list_pieces(curves))


def _list_pieces(curves: Curves) -> Records:
    pieces = np.empty(curves.knots.size, dtype=_PIECE)
    pieces["low"], pieces["sag"] = curves.low, curves.sag
    return pieces


def minimise_curves(curves: Curves) -> FloatArray:
    """The least value of each curve, (n_curves,)."""
    least = np.minimum(curves.low[:-1], curves.low[1:]) - curves.sag[:-1]
    least[curves.starts[1:-1] - 1] = np.inf  # from one curve to the next
    return np.asarray(np.minimum(np.minimum.reduceat(least, curves.starts[:-1]), curves.ends.min(axis=1)))


def locate_box(low: FloatArray, high: FloatArray, positions: Positions) -> Box:
    """What rows may become, both ends of shape (n_rows, n_features), as positions on the curves of their terms."""
    ends = compute_positions(low, positions), compute_positions(high, positions)
    return Box(np.minimum(*ends), np.maximum(*ends))


def _open_box(n_terms: int) -> Box:
    return Box(np.full((1, n_terms), -np.inf), np.full((1, n_terms), np.inf))


def search_windows(
    rows: FloatArray,
    positions: Positions,
    minima: Minima,
    asked: Asked,
    box: Box | None = None,
    known: FloatArray | None = None,
) -> FloatArray:
    """Distances within which the sum of least values is sure to stay above each threshold, (n_rows, n_thresholds).

    No term leaves its box. `known` holds distances that something else proves: the larger of both is returned; where
    the sum is below the threshold there by more than it can be off, no window is farther, and none is searched for.
    """
    ends = _open_box(positions.features.size) if box is None else box
    radii = np.zeros(asked.thresholds.shape) if known is None else known.copy()
    _search_windows(rows, positions, minima, ends, asked, radii)
    return radii


def count_terms(
    rows: FloatArray, positions: Positions, minima: Minima, asked: Asked, box: Box | None = None
) -> FloatArray:
    """How many terms may be moved anywhere in the box before the sum can fall to a threshold, (n_rows, n_thresholds).

    The terms that can fall most are the worst choice. Infinite where all of them together do not suffice.
    """
    return _count_terms(rows, positions, minima, _open_box(positions.features.size) if box is None else box, asked)


@compile_loop()
def _locate_value(value: float, term: int, positions: Positions) -> float:
    """Where a number stands on the curve of a term: never infinitely far, of which no difference could be told."""
    x = (value - positions.anchors[term]) * positions.factors[term]
    return min(max(x, -FARTHEST_POSITION), FARTHEST_POSITION)


@compile_loop(numbers=lambda rows, positions, *_: rows.shape[0] * positions.features.size * _AS_WRITTEN)
def bound_floors(rows: FloatArray, positions: Positions, minima: Minima, box: Box) -> FloatArray:
    """Lower bounds of each term's curve within its box, (n_rows, n_terms)."""
    tracks, knots, pieces, levels = minima.tracks, minima.knots, minima.pieces, minima.levels
    floors = np.empty(box.low.shape)
    for row in range(rows.shape[0]):
        for term in range(positions.features.size):
            x = _locate_value(rows[row, positions.features[term]], term, positions)
            least, most, track = box.low[row, term], box.high[row, term], tracks[positions.curves[term]]
            floors[row, term] = _bound_least(x, np.inf, least, most, track, knots, pieces, levels)
    return floors


@compile_loop()
def raise_floors(floors: FloatArray, rows: FloatArray, positions: Positions, minima: Minima, reach: Reach) -> None:
    """Raise the floors of terms whose numbers change by whole steps alone to the least value at such steps.

    Where there are too many steps to try, the floor of the whole interval stays.
    """
    tracks, knots, pieces, levels = minima.tracks, minima.knots, minima.pieces, minima.levels
    lows, highs, steps = reach
    for term in range(positions.features.size):
        feature, track = positions.features[term], tracks[positions.curves[term]]
        step = steps[feature]
        if step <= 0.0:
            continue
        for row in range(rows.shape[0]):
            own = rows[row, feature]
            down, up = (own - lows[row, feature]) / step, (highs[row, feature] - own) / step
            if not down + up < _MOST_STEPS:
                continue
            floor = np.inf
            for k in range(-int(down) - 1, int(up) + 2):
                value = own + k * step
                if lows[row, feature] <= value <= highs[row, feature]:
                    x = _locate_value(value, term, positions)
                    least = _bound_least(x, 0.0, -np.inf, np.inf, track, knots, pieces, levels)
                    floor = min(floor, least)
            floors[row, term] = max(floors[row, term], floor)


@compile_loop(numbers=lambda rows, positions, *_: rows.shape[0] * positions.features.size * _AS_WRITTEN)
def _count_terms(rows: FloatArray, positions: Positions, minima: Minima, box: Box, asked: Asked) -> FloatArray:
    thresholds, error = asked
    max_decreases, counts = np.empty(positions.features.size), np.empty(thresholds.shape)
    tracks, knots, pieces, levels = minima.tracks, minima.knots, minima.pieces, minima.levels
    for row in range(rows.shape[0]):
        total = 0.0
        for term in range(positions.features.size):
            x = _locate_value(rows[row, positions.features[term]], term, positions)
            track = tracks[positions.curves[term]]
            value = _bound_least(x, 0.0, -np.inf, np.inf, track, knots, pieces, levels)
            at = min(row, box.low.shape[0] - 1)
            floor = _bound_least(x, np.inf, box.low[at, term], box.high[at, term], track, knots, pieces, levels)
            total += value
            max_decreases[term] = max(value - floor, 0.0)
        max_decreases.sort()
        for k in range(thresholds.shape[1]):
            left, count = total - thresholds[row, k] - error, -1
            while left > 0.0 and count < positions.features.size:
                count += 1
                left -= max_decreases[positions.features.size - 1 - count] if count < positions.features.size else 0.0
            counts[row, k] = np.inf if count == positions.features.size else max(count, 0)
    return counts


def _search_windows_in_numpy(
    rows: FloatArray, positions: Positions, minima: Minima, box: Box, asked: Asked, radii: FloatArray
) -> None:
    """The steps of all rows at a time; distances that are known leave none of them out."""
    x, tracks = compute_positions(rows, positions), minima.tracks[positions.curves]
    low, high = np.broadcast_to(box.low, x.shape), np.broadcast_to(box.high, x.shape)
    least = _bound_least_in_numpy(x, np.full(x.shape, np.inf), low, high, tracks, minima)
    is_free = (low == -np.inf) & (high == np.inf)
    anywhere = _add_in_order(np.where(is_free, minima.lowest[positions.curves], least))
    for k in range(radii.shape[1]):
        target = asked.thresholds[:, k] + asked.error
        found = np.where(anywhere > target, np.inf, 0.0)
        left = np.flatnonzero(~(anywhere > target))
        reached, beyond, guess = np.zeros(left.size), np.full(left.size, np.inf), np.zeros(left.size)
        above, below = np.full(left.size, np.inf), np.full(left.size, -np.inf)
        for _ in range(_STEPS):
            reach = guess[:, None] * tracks["unit"]
            parts = _bound_least_in_numpy(x[left], reach, low[left], high[left], tracks, minima)
            margin = _add_in_order(parts) - target[left]
            holds = margin > 0.0
            reached, beyond = np.where(holds, guess, reached), np.where(holds, beyond, guess)
            above, below = np.where(holds, margin, 0.5 * above), np.where(holds, 0.5 * below, margin)
            found[left] = reached
            is_near = (beyond < _NEAREST) | (beyond < (1.0 + _TOLERANCE) * reached)
            going = np.flatnonzero(~((reached > _FARTHEST) | is_near))
            if not going.size:
                break
            left = left[going]
            reached, beyond, above, below = reached[going], beyond[going], above[going], below[going]
            guess = _choose_guess_in_numpy(reached, beyond, above, below)
        radii[:, k] = np.maximum(radii[:, k], found)


def _choose_guess_in_numpy(reached: FloatArray, beyond: FloatArray, above: FloatArray, below: FloatArray) -> FloatArray:
    share = np.clip(above / (above - below), 1e-3, 0.999)
    within = np.where((above > 0.0) & (below < 0.0), reached + share * (beyond - reached), 0.5 * (reached + beyond))
    return np.where(beyond == np.inf, np.maximum(4.0 * reached, _FIRST), within)


def _bound_least_in_numpy(
    x: FloatArray, reach: FloatArray, least_x: FloatArray, most_x: FloatArray, tracks: Records, minima: Minima
) -> FloatArray:
    """`_bound_least` for arrays of shape (n_rows, n_terms); tracks (n_terms,)."""
    low, sag, knots = minima.pieces["low"], minima.pieces["sag"], minima.knots
    wider = reach + 16.0 * EPSILON * (np.abs(x) + reach)
    start = np.maximum(x - wider, least_x - 16.0 * EPSILON * np.abs(least_x))
    stop = np.minimum(x + wider, most_x + 16.0 * EPSILON * np.abs(most_x))
    i, share = locate_in_numpy(start, tracks, knots)
    j, far_share = locate_in_numpy(stop, tracks, knots)
    least = (1.0 - share) * low[i] + share * low[i + 1] - sag[i]
    least = np.minimum(least, (1.0 - far_share) * low[j] + far_share * low[j + 1] - sag[j])
    least = np.minimum(least, np.where(start < knots[tracks["first"]], tracks["left"], np.inf))
    least = np.minimum(least, np.where(stop > knots[tracks["last"]], tracks["right"], np.inf))
    rest = np.minimum(low[i + 1] - sag[i], low[j] - sag[j])
    least = np.where(i < j, np.minimum(least, rest), least)
    count = j - i - 1
    level = np.frexp(np.maximum(count, 1).astype(np.float64))[1].astype(np.int64) - 1
    ends = np.where(count > 0, i + 1, 0), np.where(count > 0, j - (1 << level), 0)
    run = np.minimum(minima.levels[level, ends[0]], minima.levels[level, ends[1]])
    return np.where(count > 0, np.minimum(least, run), least)


def _add_in_order(parts: FloatArray) -> FloatArray:
    """Sums along the last axis from left to right, as a loop adds them up."""
    total = np.zeros(parts.shape[0])
    for part in parts.T:
        total += part
    return total


@compile_loop(
    early=_search_windows_in_numpy,
    numbers=lambda rows, positions, *_: rows.shape[0] * positions.features.size * _USUAL_STEPS,
)
def _search_windows(
    rows: FloatArray, positions: Positions, minima: Minima, box: Box, asked: Asked, radii: FloatArray
) -> None:
    """Raise the radii, which hold what is known, to the windows of each row."""
    thresholds, error = asked
    tracks, knots, pieces, levels = minima.tracks[positions.curves], minima.knots, minima.pieces, minima.levels
    lowest, x = minima.lowest[positions.curves], np.empty(positions.features.size)
    for row in range(rows.shape[0]):
        at = min(row, box.low.shape[0] - 1)
        low, high = box.low[at], box.high[at]
        anywhere = 0.0
        for term in range(x.size):
            x[term] = _locate_value(rows[row, positions.features[term]], term, positions)
            if low[term] == -np.inf and high[term] == np.inf:
                anywhere += lowest[term]
            else:
                anywhere += _bound_least(x[term], np.inf, low[term], high[term], tracks[term], knots, pieces, levels)
        own = _Row(x, low, high, tracks)
        for k in range(thresholds.shape[1]):
            target, known = thresholds[row, k] + error, radii[row, k]
            if anywhere > target:
                radii[row, k] = np.inf
            elif known == 0.0 or not _add_least(own, known, minima) < target - 2.0 * error:
                radii[row, k] = max(known, _search_window(own, target, minima))


@compile_loop()
def _search_window(row: _Row, target: float, minima: Minima) -> float:
    """The largest distance within which the sum of least values was seen to stay above the target."""
    reached, beyond, guess = 0.0, np.inf, 0.0
    above, below = np.inf, -np.inf  # the margin at both, weakened where one of them stays
    for _ in range(_STEPS):
        margin = _add_least(row, guess, minima) - target
        if margin > 0.0:
            reached, above, below = guess, margin, 0.5 * below
        else:
            beyond, below, above = guess, margin, 0.5 * above
        if reached > _FARTHEST or beyond < _NEAREST or beyond < (1.0 + _TOLERANCE) * reached:
            break
        guess = _choose_guess(reached, beyond, above, below)
    return reached


@compile_loop()
def _add_least(row: _Row, distance: float, minima: Minima) -> float:
    """The sum of the least values of all terms within a distance."""
    (x, low, high, tracks), knots, pieces, levels = row, minima.knots, minima.pieces, minima.levels
    total = 0.0
    for term in range(x.size):
        track = tracks[term]
        total += _bound_least(x[term], distance * track["unit"], low[term], high[term], track, knots, pieces, levels)
    return total


@compile_loop()
def _choose_guess(reached: float, beyond: float, above: float, below: float) -> float:
    """Where a straight line between both margins crosses 0, or the middle where that leads nowhere."""
    if beyond == np.inf:
        return max(4.0 * reached, _FIRST)
    if not (above > 0.0 > below):
        return 0.5 * (reached + beyond)
    share = above / (above - below)
    return reached + min(max(share, 1e-3), 0.999) * (beyond - reached)


@compile_loop()
def _bound_least(
    x: float,
    reach: float,
    least_x: float,
    most_x: float,
    track: Any,
    knots: FloatArray,
    pieces: Records,
    levels: FloatArray,
) -> float:
    """Lower bound of a curve from x - reach to x + reach, but within two ends; a little farther for rounding."""
    wider = reach + 16.0 * EPSILON * (abs(x) + reach)
    start = max(x - wider, least_x - 16.0 * EPSILON * abs(least_x))
    stop = min(x + wider, most_x + 16.0 * EPSILON * abs(most_x))
    i, share = locate(start, track, knots)
    j, far_share = locate(stop, track, knots)
    near, far = pieces[i], pieces[j]
    least = (1.0 - share) * near["low"] + share * pieces[i + 1]["low"] - near["sag"]
    least = min(least, (1.0 - far_share) * far["low"] + far_share * pieces[j + 1]["low"] - far["sag"])
    if start < knots[track["first"]]:
        least = min(least, track["left"])
    if stop > knots[track["last"]]:
        least = min(least, track["right"])
    if i < j:  # the rest of the interval of the start, that up to the stop, and all between
        least = min(least, pieces[i + 1]["low"] - near["sag"], far["low"] - far["sag"])
        count = j - i - 1
        if count > 0:
            level = 0
            while (2 << level) <= count:
                level += 1
            least = min(least, levels[level, i + 1], levels[level, j - (1 << level)])
    return least
