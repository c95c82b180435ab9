"""Windows: the least of a curve within a distance, looked up for every row and added up over its terms.

Owns the largest distance r such that the sum over all terms of the least value within r stays above a threshold, which
is the whole worst case where every number may move by r at the same time (linf); and the least values of whole curves,
for numbers that may become anything. Arrays in, arrays out, lower bounds throughout. Must not know noises or models.
README.md, step 9, has the argument.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from derand._arrays import EPSILON, FloatArray
from derand.kernels import plain
from derand.kernels.compiling import compile_loop, is_early
from derand.kernels.envelopes import Curves, Places, locate

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


class Minima(NamedTuple):
    """The least values of curves over runs of intervals, for any run by two look-ups."""

    levels: FloatArray
    """(n_levels, n_knots): the least value over 2^level intervals, from that of each knot on."""
    lowest: FloatArray
    """(n_curves,): the least value of each curve."""


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
    return Minima(levels, find_least(curves))


def find_least(curves: Curves) -> FloatArray:
    """The least value of each curve, (n_curves,)."""
    least = np.minimum(curves.low[:-1], curves.low[1:]) - curves.sag[:-1]
    least[curves.starts[1:-1] - 1] = np.inf  # from one curve to the next
    return np.asarray(np.minimum(np.minimum.reduceat(least, curves.starts[:-1]), curves.ends.min(axis=1)))


def place_box(low: FloatArray, high: FloatArray, places: Places) -> Box:
    """What rows may become, both ends of shape (n_rows, n_features), as places on the curves of their terms."""
    with np.errstate(invalid="ignore"):
        ends = [(end[:, places.features] - places.anchors) * places.factors for end in (low, high)]
    return Box(np.minimum(*ends), np.maximum(*ends))


def _open_box(n_terms: int) -> Box:
    return Box(np.full((1, n_terms), -np.inf), np.full((1, n_terms), np.inf))


def find_floors(rows: FloatArray, places: Places, curves: Curves, minima: Minima, box: Box) -> FloatArray:
    """Lower bounds of each term's curve within its box, (n_rows, n_terms)."""
    floors = np.empty(box.low.shape)
    find = _find_floors.interpret if is_early(rows.shape[0] * places.features.size * _INTERPRETED) else _find_floors
    find(
        rows,
        places,
        curves,
        minima,
        *box,
        floors,
    )
    return floors


def raise_floors(
    floors: FloatArray,
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    low: FloatArray,
    high: FloatArray,
    steps: FloatArray,
) -> None:
    """Raise the floors of terms whose numbers change by whole steps alone to the least value at such steps.

    `low` and `high` have the shape (n_rows, n_features), `steps` (n_features,). Where there are too many steps to try,
    the floor of the whole interval stays.
    """
    _raise_floors(
        rows,
        places,
        curves,
        minima,
        low,
        high,
        steps,
        floors,
    )


def find_windows(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    thresholds: FloatArray,
    error: float,
    box: Box | None = None,
) -> FloatArray:
    """Distances within which the sum of least values is sure to stay above each threshold, (n_rows, n_thresholds).

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
    places, curves, minima
    thresholds : array of shape (n_rows, n_thresholds)
    error : float
        Taken off every sum.
    box : Box or None
        Which no term leaves.
    """
    radii, ends = np.empty(thresholds.shape), _open_box(places.features.size) if box is None else box
    if is_early(rows.shape[0] * places.features.size * _USUAL_STEPS):
        _find_windows_together(rows, places, curves, minima, ends, thresholds, error, radii)
    else:
        _find_windows(rows, places, curves, minima, *ends, thresholds, error, radii)
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
    curves: Curves,
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
    count(
        rows,
        places,
        curves,
        minima,
        *(_open_box(places.features.size) if box is None else box),
        thresholds,
        error,
        counts,
    )
    return counts


@compile_loop()
def _find_place(row: FloatArray, term: int, places: Places) -> float:
    """Where a row stands on the curve of a term."""
    return (row[places.features[term]] - places.anchors[term]) * places.factors[term]


@compile_loop()
def _find_floors(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    floors: FloatArray,
) -> None:
    for row in range(rows.shape[0]):
        for term in range(places.features.size):
            x = _find_place(rows[row], term, places)
            least, most = lows[row, term], highs[row, term]
            floors[row, term] = _find_least(x, np.inf, least, most, places.curves[term], curves, minima)


@compile_loop()
def _raise_floors(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    steps: FloatArray,
    floors: FloatArray,
) -> None:
    for term in range(places.features.size):
        feature, curve = places.features[term], places.curves[term]
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
                    x = (value - places.anchors[term]) * places.factors[term]
                    least = _find_least(x, 0.0, -np.inf, np.inf, curve, curves, minima)
                    floor = min(floor, least)
            floors[row, term] = max(floors[row, term], floor)


@compile_loop()
def _count_terms(
    rows: FloatArray,
    places: Places,
    curves: Curves,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    thresholds: FloatArray,
    error: float,
    counts: FloatArray,
) -> None:
    falls = np.empty(places.features.size)
    for row in range(rows.shape[0]):
        total = 0.0
        for term in range(places.features.size):
            x = _find_place(rows[row], term, places)
            curve = places.curves[term]
            value = _find_least(x, 0.0, -np.inf, np.inf, curve, curves, minima)
            at = min(row, lows.shape[0] - 1)
            floor = _find_least(x, np.inf, lows[at, term], highs[at, term], curve, curves, minima)
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
    curves: Curves,
    minima: Minima,
    lows: FloatArray,
    highs: FloatArray,
    thresholds: FloatArray,
    error: float,
    radii: FloatArray,
) -> None:
    x = np.empty(places.features.size)
    for row in range(rows.shape[0]):
        at = min(row, lows.shape[0] - 1)
        anywhere = 0.0
        for term in range(places.features.size):
            x[term] = _find_place(rows[row], term, places)
            curve, least, most = places.curves[term], lows[at, term], highs[at, term]
            if least == -np.inf and most == np.inf:
                anywhere += minima.lowest[curve]
            else:
                anywhere += _find_least(x[term], np.inf, least, most, curve, curves, minima)
        for k in range(thresholds.shape[1]):
            cut = thresholds[row, k] + error
            if anywhere > cut:
                radii[row, k] = np.inf
                continue
            reached, beyond, guess = 0.0, np.inf, 0.0
            above, below = np.inf, -np.inf  # the margin at both, weakened where one of them stays
            for _ in range(_STEPS):
                total = 0.0
                for term in range(places.features.size):
                    curve = places.curves[term]
                    reach = guess * curves.units[curve]
                    least, most = lows[at, term], highs[at, term]
                    total += _find_least(x[term], reach, least, most, curve, curves, minima)
                margin = total - cut
                if margin > 0.0:
                    reached, above, below = guess, margin, 0.5 * below
                else:
                    beyond, below, above = guess, margin, 0.5 * above
                if reached > _FARTHEST or beyond < _NEAREST or beyond < (1.0 + _TOLERANCE) * reached:
                    break
                guess = _choose_guess(reached, beyond, above, below)
            radii[row, k] = reached


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
    curve: int,
    curves: Curves,
    minima: Minima,
) -> float:
    """Lower bound of a curve from x - reach to x + reach, but within two ends; a little farther for rounding."""
    wider = reach + 16.0 * EPSILON * (abs(x) + reach)
    start = max(x - wider, least_x - 16.0 * EPSILON * abs(least_x))
    stop = min(x + wider, most_x + 16.0 * EPSILON * abs(most_x))
    low, sag = curves.low, curves.sag
    i, share = locate(start, curve, curves)
    j, far_share = locate(stop, curve, curves)
    least = (1.0 - share) * low[i] + share * low[i + 1] - sag[i]
    least = min(least, (1.0 - far_share) * low[j] + far_share * low[j + 1] - sag[j])
    if start < curves.knots[curves.starts[curve]]:
        least = min(least, curves.ends[curve, 0])
    if stop > curves.knots[curves.starts[curve + 1] - 1]:
        least = min(least, curves.ends[curve, 1])
    if i < j:  # the rest of the interval of the start, that up to the stop, and all between
        least = min(least, low[i + 1] - sag[i], low[j] - sag[j])
        count = j - i - 1
        if count > 0:
            level = 0
            while (2 << level) <= count:
                level += 1
            least = min(least, minima.levels[level, i + 1], minima.levels[level, j - (1 << level)])
    return least
