"""How far a sum of lines can fall within a ball and limits, and how far a row must be moved for that: arrays alone.

A column falls by `prices` per unit of its move, which is at most `caps`. Bounds rest on weak duality: every multiplier
gives one, so that it is chosen in doubles, and only the bound itself is rounded away from what it flatters
(docs/theory.md, section 14). Must not know models, threats or labels.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import EPSILON, FloatArray

_SMALLEST = 1e-280
"""Margins below count as none: what underflow does to products is less than all that is rounded off beside them."""
_LEAST_SHARE = 1e-150
"""Prices count as at least this share of the highest: their squares do not vanish."""


def bound_distances(margins: FloatArray, prices: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """Lower bounds of the distance within which a sum falls by less than its margin, (n_rows,).

    Parameters
    ----------
    margins : array of shape (n_rows,)
        Lower bounds.
    prices : array of shape (n_columns,)
        Upper bounds of the fall per unit of a move, 0 or larger.
    caps : array of shape (n_rows, n_columns)
        Upper bounds of the moves, 0 or larger; infinite where there is no limit.
    norm : {0, 1, 2, inf} or None
        Of the moves. For 0 the number of columns that may move as far as their caps; without a norm infinite where
        they all may.

    Returns
    -------
    array of shape (n_rows,)
        Infinite where no move within the caps does it, 0 where nothing is proven.
    """
    moving = prices > 0
    prices, caps = prices[moving], caps[:, moving]
    slack = (prices.size + 8) * EPSILON
    with np.errstate(all="ignore"):  # what is not a number proves nothing
        falls = _multiply(prices, caps)
        room = margins * (1 - slack)
        never = (falls.sum(axis=1) * (1 + slack) < room) & (margins >= _SMALLEST)
        if norm is None or not prices.size:
            return np.where(never, np.inf, 0.0)
        if norm == 0:
            largest = np.cumsum(-np.sort(-falls, axis=1), axis=1) * (1 + slack)
            found = (largest < room[:, None]).sum(axis=1).astype(np.float64)
        else:
            top = prices.max()
            shares = np.maximum(prices / top, _LEAST_SHARE) * (1 + EPSILON)
            # by a power of two near 1, which loses nothing, so that squares neither vanish nor overflow
            needed, powers = np.frexp(room / top * (1 - EPSILON))
            within = np.ldexp(caps, -powers[:, None])
            found = np.ldexp(_DISTANCES[norm](needed, shares, within, slack) * (1 - 4 * EPSILON), powers)
        found = np.where((margins >= _SMALLEST) & (found >= _SMALLEST) & np.isfinite(found), found, 0.0)
    return np.where(never, np.inf, found)


def _multiply(prices: FloatArray, caps: FloatArray) -> FloatArray:
    return np.where(caps > 0, prices * caps, 0.0)


def _before(values: FloatArray) -> FloatArray:
    """Sums of the entries before each, along rows."""
    return np.concatenate([np.zeros((values.shape[0], 1)), np.cumsum(values, axis=1)[:, :-1]], axis=1)


def _from(values: FloatArray) -> FloatArray:
    """Sums of each entry and all that follow, along rows."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


def _take_best(candidates: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.isnan(candidates), 0.0, candidates).max(axis=1))


def _bound_sum(room: FloatArray, prices: FloatArray, caps: FloatArray, slack: float) -> FloatArray:
    """Norm 1: beyond what columns of a higher price give within their caps, a move costs one price."""
    order = np.argsort(-prices, kind="stable")
    prices, caps = prices[order], caps[:, order]
    gained = _before(_multiply(prices, caps)) * (1 + slack) - prices * _before(caps) * (1 - slack)
    return _take_best((room[:, None] - np.maximum(gained, 0.0)) / prices)


def _bound_largest(room: FloatArray, prices: FloatArray, caps: FloatArray, slack: float) -> FloatArray:
    """Norm inf: columns that are at their caps, and all others as far as the distance."""
    order = np.argsort(caps, axis=1, kind="stable")
    caps, own = np.take_along_axis(caps, order, axis=1), prices[order]
    at_caps = _before(_multiply(own, caps)) * (1 + slack)
    return _take_best((room[:, None] - at_caps) / (_from(own) * (1 + slack)))


def _bound_squares(room: FloatArray, prices: FloatArray, caps: FloatArray, slack: float) -> FloatArray:
    """Norm 2: moves in the ratio of their prices, but for those at their caps."""
    pace = _find_pace(room, prices, caps)
    wanted = pace[:, None] * prices
    spent = np.where(wanted <= caps, 0.5 * wanted * wanted, caps * (wanted - 0.5 * caps)).sum(axis=1)
    halved = pace * room * (1 - slack) - spent * (1 + slack)
    return np.asarray(np.sqrt(np.maximum(2 * halved, 0.0)))


_DISTANCES = {1: _bound_sum, 2: _bound_squares, np.inf: _bound_largest}


def _find_pace(falls: FloatArray, prices: FloatArray, caps: FloatArray) -> FloatArray:
    """The multiple of its price that each column moves by, up to its cap, for sums to fall so far; to nearest."""
    ratios = caps / prices
    order = np.argsort(ratios, axis=1, kind="stable")
    own, near = prices[order], np.take_along_axis(caps, order, axis=1)
    paces = (falls[:, None] - _before(_multiply(own, near))) / _from(own * own)
    fits = paces <= np.take_along_axis(ratios, order, axis=1) * (1 + 1e-12)
    return np.where(fits.any(axis=1), paces[np.arange(len(paces)), fits.argmax(axis=1)], 0.0)


def bound_falls(radius: float, prices: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """Upper bounds of the fall of a sum within a ball and limits, (n_rows,); infinite where it has none.

    Parameters
    ----------
    radius : float
        Of the closed ball; for norm 0 how many columns may move.
    prices, caps, norm
        As for `bound_distances`.
    """
    moving = prices > 0
    prices, caps = prices[moving], caps[:, moving]
    slack = (prices.size + 8) * EPSILON
    if not prices.size or radius == 0:
        return np.zeros(caps.shape[0])
    with np.errstate(all="ignore"):
        falls = _multiply(prices, caps)
        most = falls.sum(axis=1)
        if norm is None or np.isinf(radius):
            found = most
        elif norm == 0:
            count = int(min(np.ceil(radius), prices.size))
            found = -np.sort(-falls, axis=1)[:, :count].sum(axis=1)
        elif norm == 1:
            order = np.argsort(-prices, kind="stable")
            paid, near = prices[order], caps[:, order]
            gained = _before(_multiply(paid, near)) * (1 + slack) - paid * _before(near) * (1 - slack)
            each = paid * radius + np.maximum(gained, 0.0)
            found = np.where(np.isnan(each), np.inf, each).min(axis=1)
        elif norm == 2:
            moves = find_moves(radius, prices, caps, 2)
            found = _bound_by_pace(radius, prices, caps, _read_pace(moves, prices, caps))
        else:
            found = np.minimum(caps, radius) @ prices
    found = np.minimum(found, most) * (1 + 4 * slack) + _SMALLEST
    return np.where(np.isnan(found), np.inf, found)


def _bound_by_pace(radius: float, prices: FloatArray, caps: FloatArray, pace: FloatArray) -> FloatArray:
    """What a pace proves of the fall within a distance: any will do."""
    wanted = pace[:, None] * prices
    gained = np.where(wanted <= caps, 0.5 * wanted * prices, prices * caps - 0.5 * caps * (caps / pace[:, None]))
    found = gained.sum(axis=1) + 0.5 * radius * (radius / pace)
    return np.where(pace > 0, found, np.inf)


def _read_pace(moves: FloatArray, prices: FloatArray, caps: FloatArray) -> FloatArray:
    """The pace of moves, from one that is not at its cap."""
    free = moves < caps
    paces = np.where(free, moves / prices, 0.0)
    return np.asarray(paces.max(axis=1))


def find_moves(radius: float, prices: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """The moves within a ball and limits by which a sum falls most, (n_rows, n_columns), to nearest."""
    with np.errstate(all="ignore"):
        if norm is None or np.isinf(radius):
            return caps.copy()
        if norm == np.inf:
            return np.minimum(caps, radius)
        if norm == 0:
            ranks = np.argsort(np.argsort(-_multiply(prices, caps), axis=1, kind="stable"), axis=1)
            return np.where(ranks < np.ceil(radius), caps, 0.0)
        if norm == 1:
            order = np.argsort(-prices, kind="stable")
            moves = np.zeros(caps.shape)
            moves[:, order] = np.clip(radius - _before(caps[:, order]), 0.0, caps[:, order])
            return np.where(np.isnan(moves), 0.0, moves)
        ratios = np.where(prices > 0, caps / prices, np.inf)
        order = np.argsort(ratios, axis=1, kind="stable")
        own, near = prices[order], np.take_along_axis(caps, order, axis=1)
        scale = max(float(prices.max(initial=0.0)), 1e-300)
        squares = _from((own / scale) ** 2)
        paces = np.sqrt((radius - np.sqrt(_before(near * near))) * (radius + np.sqrt(_before(near * near))) / squares)
        fits = paces / scale <= np.take_along_axis(ratios, order, axis=1)
        pace = np.where(fits.any(axis=1), paces[np.arange(len(paces)), fits.argmax(axis=1)] / scale, np.inf)
        moves = np.minimum(caps, pace[:, None] * prices)
        return np.where(np.isnan(moves), 0.0, moves)


def find_least_moves(margins: FloatArray, prices: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """The least moves, in the norm, by which sums fall by their margins, (n_rows, n_columns), to nearest.

    Rows in which no moves do are moved as far as possible. Infinite caps stand for twice of what one column needs.
    """
    with np.errstate(all="ignore"):
        needed = np.where(prices > 0, 2 * margins[:, None] / prices, 0.0)
        caps = np.where(np.isinf(caps), needed, caps)
        moving = prices > 0
        prices, within = prices[moving], caps[:, moving]
        moves = np.zeros(caps.shape)
        if not prices.size:
            return moves
        if norm is None:
            moves[:, moving] = within
        elif norm in (0, 1):
            falls = _multiply(prices, within)
            keys = falls if norm == 0 else np.broadcast_to(prices, falls.shape)
            order = np.argsort(-keys, axis=1, kind="stable")
            sorted_falls = np.take_along_axis(falls, order, axis=1)
            taken = np.clip(margins[:, None] - _before(sorted_falls), 0.0, sorted_falls)
            by_column = np.zeros(falls.shape)
            np.put_along_axis(by_column, order, taken, axis=1)
            moves[:, moving] = np.minimum(by_column / prices, within)
        elif norm == 2:
            top = prices.max()
            pace = _find_pace(margins / top, prices / top, within)
            enough = _multiply(prices, within).sum(axis=1) > margins
            moves[:, moving] = np.where(enough[:, None], np.minimum(within, pace[:, None] * (prices / top)), within)
        else:
            order = np.argsort(within, axis=1, kind="stable")
            near, own = np.take_along_axis(within, order, axis=1), prices[order]
            radii = (margins[:, None] - _before(_multiply(own, near))) / _from(own)
            fits = radii <= near
            chosen = np.where(fits.any(axis=1), radii[np.arange(len(radii)), fits.argmax(axis=1)], np.inf)
            moves[:, moving] = np.minimum(within, chosen[:, None])
    return np.where(np.isfinite(moves), moves, 0.0)
