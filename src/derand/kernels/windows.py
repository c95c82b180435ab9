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
from numpy.typing import NDArray

from derand._arrays import EPSILON, FloatArray
from derand.kernels import plain
from derand.kernels.compiling import compile_loop, is_early
from derand.kernels.envelopes import Curves, Places, search
from derand.kernels.plain import FARTHEST_PLACE

_STEPS = 100
_USUAL_STEPS = 64
_INTERPRETED = 2**10  # what finding one least value costs without a compiler, as `is_early` counts
_MOST_STEPS = 4096.0  # of a number, tried one by one
_TOLERANCE = 2.0**-22  # of a distance that is found
_FIRST = 2.0**-6
_NEAREST, _FARTHEST = 2.0**-40, 2.0**60  # distances beyond are not told apart


class Box(NamedTuple):
    """Where each term of a row may be moved on its curve at all, both of shape (n_rows, n_terms)."""

    low: FloatArray
    high: FloatArray


Records = NDArray[np.void]

_TRACK = np.dtype(
    [(name, np.int64) for name in ("first", "last", "base")]
    + [(name, np.float64) for name in ("begin", "rate", "count", "left", "right", "unit")]
)
"""Of a curve: its first and last knot; of an even run the first knot, its place, 1 / distance, how many; ends, unit."""
_PIECE = np.dtype([("low", np.float64), ("sag", np.float64)])


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
    return Minima(levels, find_least(curves), list_tracks(curves), curves.knots, _list_pieces(curves))


def list_tracks(curves: Curves) -> Records:
    """What looking up each curve needs to know of it, (n_curves,)."""
    tracks = np.empty(curves.units.size, dtype=_TRACK)
    tracks["first"], tracks["last"] = curves.starts[:-1], curves.starts[1:] - 1
    tracks["begin"], tracks["rate"] = curves.even.T
    tracks["base"], tracks["count"] = curves.even_knots.T
    tracks["left"], tracks["right"] = curves.ends.T
    tracks["unit"] = curves.units
    return tracks


def _list_pieces(curves: Curves) -> Records:
    pieces = np.empty(curves.knots.size, dtype=_PIECE)
    pieces["low"], pieces["sag"] = curves.low, curves.sag
    return pieces


def find_least(curves: Curves) -> FloatArray:
    """The least value of each curve, (n_curves,)."""
    least = np.minimum(curves.low[:-1], curves.low[1:]) - curves.sag[:-1]
    least[curves.starts[1:-1] - 1] = np.inf  # from one curve to the next
    return np.asarray(np.minimum(np.minimum.reduceat(least, curves.starts[:-1]), curves.ends.min(axis=1)))


def place_box(low: FloatArray, high: FloatArray, places: Places) -> Box:
    """What rows may become, both ends of shape (n_rows, n_features), as places on the curves of their terms."""
    ends = []
    with np.errstate(over="ignore", invalid="ignore"):
        for end in (low[:, places.features], high[:, places.features]):
            placed = (end - places.anchors) * places.factors
            ends.append(np.where(np.isinf(end), placed, np.clip(placed, -FARTHEST_PLACE, FARTHEST_PLACE)))
    return Box(np.minimum(*ends), np.maximum(*ends))


def _open_box(n_terms: int) -> Box:
    return Box(np.full((1, n_terms), -np.inf), np.full((1, n_terms), np.inf))


def find_floors(rows: FloatArray, places: Places, minima: Minima, box: Box) -> FloatArray:
    """Lower bounds of each term's curve within its box, (n_rows, n_terms)."""
    floors = np.empty(box.low.shape)
    find = _find_floors.interpret if is_early(rows.shape[0] * places.features.size * _INTERPRETED) else _find_floors
    find(rows, places, minima, *box, floors)
    return floors


def raise_floors(
    floors: FloatArray,
    rows: FloatArray,
    places: Places,
    minima: Minima,
    low: FloatArray,
    high: FloatArray,
    steps: FloatArray,
) -> None:
    """Raise the floors of terms whose numbers change by whole steps alone to the least value at such steps.

    `low` and `high` have the shape (n_rows, n_features), `steps` (n_features,). Where there are too many steps to try,
    the floor of the whole interval stays.
    """
    _raise_floors(rows, places, minima, low, high, steps, floors)


def find_windows(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    thresholds: FloatArray,
    error: float,
    box: Box | None = None,
    known: FloatArray | None = None,
) -> FloatArray:
    """Distances within which the sum of least values is sure to stay above each threshold, (n_rows, n_thresholds).

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
    places, curves, minima
    thresholds : array of shape (n_rows, n_thresholds)
    error : float
        Taken off every sum; by how much a sum may be off at most, either way.
    box : Box or None
        Which no term leaves.
    known : array of the same shape as thresholds, or None
        Distances that something else proves. The larger of both is returned; where the sum is below the threshold
        there by more than it can be off, no window is farther, and none is searched for.
    """
    ends = _open_box(places.features.size) if box is None else box
    radii = np.zeros(thresholds.shape) if known is None else known.copy()
    if is_early(rows.shape[0] * places.features.size * _USUAL_STEPS):
        found = np.empty(thresholds.shape)
        _find_windows_together(rows, places, curves, minima, ends, thresholds, error, found)
        return np.maximum(radii, found)
    _find_windows(rows, places, minima, *ends, thresholds, error, radii)
    return radii


@np.errstate(all="ignore")  # as in compiled code
def _find_windows_together(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    box: Box,
    thresholds: FloatArray,
    error: float,
    radii: FloatArray,
) -> None:
    """`_find_windows` by NumPy, the steps of all rows at a time; the same to the last bit."""
    x, which = plain.find_places(rows, places), places.curves
    low, high = (np.broadcast_to(end, x.shape) for end in box)
    least = plain.find_least(x, np.full(x.shape, np.inf), (low, high), which, curves, minima)
    is_free = (low == -np.inf) & (high == np.inf)
    anywhere = plain.add_in_order(np.where(is_free, minima.lowest[which], least))
    for k in range(thresholds.shape[1]):
        cut = thresholds[:, k] + error
        radii[:, k] = np.where(anywhere > cut, np.inf, 0.0)
        left = np.flatnonzero(~(anywhere > cut))
        reached, beyond, guess = np.zeros(left.size), np.full(left.size, np.inf), np.zeros(left.size)
        above, below = np.full(left.size, np.inf), np.full(left.size, -np.inf)
        for _ in range(_STEPS):
            reach = guess[:, None] * curves.units[which]
            parts = plain.find_least(x[left], reach, (low[left], high[left]), which, curves, minima)
            margin = plain.add_in_order(parts) - cut[left]
            holds = margin > 0.0
            reached, beyond = np.where(holds, guess, reached), np.where(holds, beyond, guess)
            above, below = np.where(holds, margin, 0.5 * above), np.where(holds, 0.5 * below, margin)
            radii[left, k] = reached
            is_near = (beyond < _NEAREST) | (beyond < (1.0 + _TOLERANCE) * reached)
            going = np.flatnonzero(~((reached > _FARTHEST) | is_near))
            if not going.size:
                break
            left = left[going]
            reached, beyond, above, below = reached[going], beyond[going], above[going], below[going]
            guess = _choose_guesses(reached, beyond, above, below)


def _choose_guesses(reached: FloatArray, beyond: FloatArray, above: FloatArray, below: FloatArray) -> FloatArray:
    share = np.clip(above / (above - below), 1e-3, 0.999)
    within = np.where((above > 0.0) & (below < 0.0), reached + share * (beyond - reached), 0.5 * (reached + beyond))
    return np.where(beyond == np.inf, np.maximum(4.0 * reached, _FIRST), within)


def count_terms(
    rows: FloatArray,
    places: Places,
    minima: Minima,
    thresholds: FloatArray,
    error: float,
    box: Box | None = None,
) -> FloatArray:
    """How many terms may be moved anywhere in the box before the sum can fall to a threshold, (n_rows, n_thresholds).

    The terms that can fall most are the worst choice. Infinite where all of them together do not suffice.
    """
    counts = np.empty(thresholds.shape)
    count = _count_terms.interpret if is_early(rows.shape[0] * places.features.size * _INTERPRETED) else _count_terms
    ends = _open_box(places.features.size) if box is None else box
    count(rows, places, minima, *ends, thresholds, error, counts)
    return counts


@compile_loop()
def _place(value: float, term: int, places: Places) -> float:
    """Where a number stands on the curve of a term: never infinitely far, of which no difference could be told."""
    x = (value - places.anchors[term]) * places.factors[term]
    return min(max(x, -FARTHEST_PLACE), FARTHEST_PLACE)


@compile_loop()
def _find_place(row: FloatArray, term: int, places: Places) -> float:
    """Where a row stands on the curve of a term."""
    return _place(row[places.features[term]], term, places)


@compile_loop()
def _find_floors(
    rows: FloatArray,
    places: Places,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    floors: FloatArray,
) -> None:
    tracks, knots, pieces, levels = minima.tracks, minima.knots, minima.pieces, minima.levels
    for row in range(rows.shape[0]):
        for term in range(places.features.size):
            x, track = _find_place(rows[row], term, places), tracks[places.curves[term]]
            least, most = lows[row, term], highs[row, term]
            floors[row, term] = _find_least(x, np.inf, least, most, track, knots, pieces, levels)


@compile_loop()
def _raise_floors(
    rows: FloatArray,
    places: Places,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    steps: FloatArray,
    floors: FloatArray,
) -> None:
    tracks, knots, pieces, levels = minima.tracks, minima.knots, minima.pieces, minima.levels
    for term in range(places.features.size):
        feature, track = places.features[term], tracks[places.curves[term]]
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
                    x = _place(value, term, places)
                    least = _find_least(x, 0.0, -np.inf, np.inf, track, knots, pieces, levels)
                    floor = min(floor, least)
            floors[row, term] = max(floors[row, term], floor)


@compile_loop()
def _count_terms(
    rows: FloatArray,
    places: Places,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    thresholds: FloatArray,
    error: float,
    counts: FloatArray,
) -> None:
    falls = np.empty(places.features.size)
    tracks, knots, pieces, levels = minima.tracks, minima.knots, minima.pieces, minima.levels
    for row in range(rows.shape[0]):
        total = 0.0
        for term in range(places.features.size):
            x, track = _find_place(rows[row], term, places), tracks[places.curves[term]]
            value = _find_least(x, 0.0, -np.inf, np.inf, track, knots, pieces, levels)
            at = min(row, lows.shape[0] - 1)
            floor = _find_least(x, np.inf, lows[at, term], highs[at, term], track, knots, pieces, levels)
            total += value
            falls[term] = max(value - floor, 0.0)
        falls.sort()
        for k in range(thresholds.shape[1]):
            left, count = total - thresholds[row, k] - error, -1
            while left > 0.0 and count < places.features.size:
                count += 1
                left -= falls[places.features.size - 1 - count] if count < places.features.size else 0.0
            counts[row, k] = np.inf if count == places.features.size else max(count, 0)


@compile_loop()
def _find_windows(
    rows: FloatArray,
    places: Places,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    thresholds: FloatArray,
    error: float,
    radii: FloatArray,
) -> None:
    """Raise the radii, which hold what is known, to the windows of each row."""
    tracks, knots, pieces, levels = minima.tracks[places.curves], minima.knots, minima.pieces, minima.levels
    lowest, x = minima.lowest[places.curves], np.empty(places.features.size)
    for row in range(rows.shape[0]):
        at = min(row, lows.shape[0] - 1)
        low, high = lows[at], highs[at]
        anywhere = 0.0
        for term in range(x.size):
            x[term] = _find_place(rows[row], term, places)
            if low[term] == -np.inf and high[term] == np.inf:
                anywhere += lowest[term]
            else:
                anywhere += _find_least(x[term], np.inf, low[term], high[term], tracks[term], knots, pieces, levels)
        for k in range(thresholds.shape[1]):
            cut, known = thresholds[row, k] + error, radii[row, k]
            if anywhere > cut:
                radii[row, k] = np.inf
            elif known == 0.0 or not _add_least(x, known, low, high, tracks, knots, pieces, levels) < cut - 2.0 * error:
                radii[row, k] = max(known, _find_window(x, cut, low, high, tracks, knots, pieces, levels))


@compile_loop()
def _find_window(
    x: FloatArray,
    cut: float,
    low: FloatArray,
    high: FloatArray,
    tracks: Records,
    knots: FloatArray,
    pieces: Records,
    levels: FloatArray,
) -> float:
    """The largest distance within which the sum of least values was seen to stay above the cut."""
    reached, beyond, guess = 0.0, np.inf, 0.0
    above, below = np.inf, -np.inf  # the margin at both, weakened where one of them stays
    for _ in range(_STEPS):
        margin = _add_least(x, guess, low, high, tracks, knots, pieces, levels) - cut
        if margin > 0.0:
            reached, above, below = guess, margin, 0.5 * below
        else:
            beyond, below, above = guess, margin, 0.5 * above
        if reached > _FARTHEST or beyond < _NEAREST or beyond < (1.0 + _TOLERANCE) * reached:
            break
        guess = _choose_guess(reached, beyond, above, below)
    return reached


@compile_loop()
def _add_least(
    x: FloatArray,
    distance: float,
    low: FloatArray,
    high: FloatArray,
    tracks: Records,
    knots: FloatArray,
    pieces: Records,
    levels: FloatArray,
) -> float:
    """The sum of the least values of all terms within a distance."""
    total = 0.0
    for term in range(x.size):
        track = tracks[term]
        total += _find_least(x[term], distance * track["unit"], low[term], high[term], track, knots, pieces, levels)
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
def _find_least(
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


@compile_loop()
def locate(x: float, track: Any, knots: FloatArray) -> tuple[int, float]:
    """The knot left of x, and the share of the way to the next one; x beyond the knots counts as at their end.

    On an even run the share is that of rounded positions: off by less than UNEVEN.
    """
    position = (x - track["begin"]) * track["rate"]
    if 0.0 <= position < track["count"]:
        whole = int(position)
        return track["base"] + whole, position - whole
    return search(x, track["first"], track["last"], knots)
