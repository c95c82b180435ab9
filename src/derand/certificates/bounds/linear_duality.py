"""How far a linear sum can decrease within a ball and limits, and how far a row must be moved for that: arrays alone.

A column decreases by `multipliers` per unit of its move, which is at most `caps`. Bounds rest on weak duality: every
multiplier gives one, so that it is chosen in doubles, and only the bound itself is rounded away from what it flatters
(docs/theory.md, section 14). Must not know models, threats or labels.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import EPSILON, FloatArray

_SMALLEST = 1e-280
"""Margins below count as none: what underflow does to products is less than all that is rounded off beside them."""
_LEAST_SHARE = 1e-150
"""Multipliers count as at least this share of the highest: their squares do not vanish."""


def bound_distances(margins: FloatArray, multipliers: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """Lower bounds of the distance within which a sum decreases by less than its margin, (n_rows,).

    Multipliers, (n_columns,), are upper bounds of the decrease per unit of a move; caps, (n_rows, n_columns), are upper
    bounds of the moves, infinite where there is no limit. For norm 0 the number of columns that may move as far as
    their caps. Infinite where no move within the caps does it, and 0 where nothing is proven.
    """
    moving = multipliers > 0
    multipliers, caps = multipliers[moving], caps[:, moving]
    slack = (multipliers.size + 8) * EPSILON
    with np.errstate(all="ignore"):  # what is not a number proves nothing
        decreases = _multiply(multipliers, caps)
        room = margins * (1 - slack)
        never = (decreases.sum(axis=1) * (1 + slack) < room) & (margins >= _SMALLEST)
        if norm is None or not multipliers.size:
            return np.where(never, np.inf, 0.0)
        if norm == 0:
            largest = np.cumsum(-np.sort(-decreases, axis=1), axis=1) * (1 + slack)
            found = (largest < room[:, None]).sum(axis=1).astype(np.float64)
        else:
            top = multipliers.max()
            shares = np.maximum(multipliers / top, _LEAST_SHARE) * (1 + EPSILON)
            # by a power of two near 1, which loses nothing, so that squares neither vanish nor overflow
            needed, powers = np.frexp(room / top * (1 - EPSILON))
            within = np.ldexp(caps, -powers[:, None])
            found = np.ldexp(_DISTANCES[norm](needed, shares, within, slack) * (1 - 4 * EPSILON), powers)
        found = np.where((margins >= _SMALLEST) & (found >= _SMALLEST) & np.isfinite(found), found, 0.0)
    return np.where(never, np.inf, found)


def _multiply(multipliers: FloatArray, caps: FloatArray) -> FloatArray:
    return np.where(caps > 0, multipliers * caps, 0.0)


def _before(values: FloatArray) -> FloatArray:
    """Sums of the entries before each, along rows."""
    return np.concatenate([np.zeros((values.shape[0], 1)), np.cumsum(values, axis=1)[:, :-1]], axis=1)


def _from(values: FloatArray) -> FloatArray:
    """Sums of each entry and all that follow, along rows."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1]


def _take_best(candidates: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.isnan(candidates), 0.0, candidates).max(axis=1))


def _bound_sum(room: FloatArray, multipliers: FloatArray, caps: FloatArray, slack: float) -> FloatArray:
    """Norm 1: beyond what columns of a higher multiplier give within their caps, a move costs one multiplier."""
    order = np.argsort(-multipliers, kind="stable")
    multipliers, caps = multipliers[order], caps[:, order]
    gained = _before(_multiply(multipliers, caps)) * (1 + slack) - multipliers * _before(caps) * (1 - slack)
    return _take_best((room[:, None] - np.maximum(gained, 0.0)) / multipliers)


def _bound_largest(room: FloatArray, multipliers: FloatArray, caps: FloatArray, slack: float) -> FloatArray:
    """Norm inf: columns that are at their caps, and all others as far as the distance."""
    order = np.argsort(caps, axis=1, kind="stable")
    caps, own = np.take_along_axis(caps, order, axis=1), multipliers[order]
    at_caps = _before(_multiply(own, caps)) * (1 + slack)
    return _take_best((room[:, None] - at_caps) / (_from(own) * (1 + slack)))


def _bound_squares(room: FloatArray, multipliers: FloatArray, caps: FloatArray, slack: float) -> FloatArray:
    """Norm 2: moves in the ratio of their multipliers, but for those at their caps."""
    pace = _compute_pace(room, multipliers, caps)
    wanted = pace[:, None] * multipliers
    spent = np.where(wanted <= caps, 0.5 * wanted * wanted, caps * (wanted - 0.5 * caps)).sum(axis=1)
    halved = pace * room * (1 - slack) - spent * (1 + slack)
    return np.asarray(np.sqrt(np.maximum(2 * halved, 0.0)))


_DISTANCES = {1: _bound_sum, 2: _bound_squares, np.inf: _bound_largest}


def _compute_pace(decreases: FloatArray, multipliers: FloatArray, caps: FloatArray) -> FloatArray:
    """The multiple of its multiplier that each column moves by, up to its cap, so that sums decrease so far."""
    ratios = caps / multipliers
    order = np.argsort(ratios, axis=1, kind="stable")
    own, near = multipliers[order], np.take_along_axis(caps, order, axis=1)
    paces = (decreases[:, None] - _before(_multiply(own, near))) / _from(own * own)
    fits = paces <= np.take_along_axis(ratios, order, axis=1) * (1 + 1e-12)
    return np.where(fits.any(axis=1), paces[np.arange(len(paces)), fits.argmax(axis=1)], 0.0)


def bound_decreases(radius: float, multipliers: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """Upper bounds of the decrease of a sum within a ball and limits, (n_rows,); infinite where it has none.

    The radius is that of the closed ball; for norm 0 how many columns may move.
    """
    moving = multipliers > 0
    multipliers, caps = multipliers[moving], caps[:, moving]
    slack = (multipliers.size + 8) * EPSILON
    if not multipliers.size or radius == 0:
        return np.zeros(caps.shape[0])
    with np.errstate(all="ignore"):
        decreases = _multiply(multipliers, caps)
        most = decreases.sum(axis=1)
        if norm is None or np.isinf(radius):
            found = most
        elif norm == 0:
            count = int(min(np.ceil(radius), multipliers.size))
            found = -np.sort(-decreases, axis=1)[:, :count].sum(axis=1)
        elif norm == 1:
            order = np.argsort(-multipliers, kind="stable")
            paid, near = multipliers[order], caps[:, order]
            gained = _before(_multiply(paid, near)) * (1 + slack) - paid * _before(near) * (1 - slack)
            each = paid * radius + np.maximum(gained, 0.0)
            found = np.where(np.isnan(each), np.inf, each).min(axis=1)
        elif norm == 2:
            moves = compute_moves(radius, multipliers, caps, 2)
            found = _bound_by_pace(radius, multipliers, caps, _read_pace(moves, multipliers, caps))
        else:
            found = np.minimum(caps, radius) @ multipliers
    found = np.minimum(found, most) * (1 + 4 * slack) + _SMALLEST
    return np.where(np.isnan(found), np.inf, found)


def _bound_by_pace(radius: float, multipliers: FloatArray, caps: FloatArray, pace: FloatArray) -> FloatArray:
    """What a pace proves of the decrease within a distance: any will do."""
    wanted = pace[:, None] * multipliers
    gained = np.where(
        wanted <= caps, 0.5 * wanted * multipliers, multipliers * caps - 0.5 * caps * (caps / pace[:, None])
    )
    found = gained.sum(axis=1) + 0.5 * radius * (radius / pace)
    return np.where(pace > 0, found, np.inf)


def _read_pace(moves: FloatArray, multipliers: FloatArray, caps: FloatArray) -> FloatArray:
    """The pace of moves, from one that is not at its cap."""
    free = moves < caps
    paces = np.where(free, moves / multipliers, 0.0)
    return np.asarray(paces.max(axis=1))


def compute_moves(radius: float, multipliers: FloatArray, caps: FloatArray, norm: float | None) -> FloatArray:
    """The moves within a ball and limits by which a sum decreases most, (n_rows, n_columns), to nearest."""
    with np.errstate(all="ignore"):
        if norm is None or np.isinf(radius):
            return caps.copy()
        if norm == np.inf:
            return np.minimum(caps, radius)
        if norm == 0:
            ranks = np.argsort(np.argsort(-_multiply(multipliers, caps), axis=1, kind="stable"), axis=1)
            return np.where(ranks < np.ceil(radius), caps, 0.0)
        if norm == 1:
            order = np.argsort(-multipliers, kind="stable")
            moves = np.zeros(caps.shape)
            moves[:, order] = np.clip(radius - _before(caps[:, order]), 0.0, caps[:, order])
            return np.where(np.isnan(moves), 0.0, moves)
        ratios = np.where(multipliers > 0, caps / multipliers, np.inf)
        order = np.argsort(ratios, axis=1, kind="stable")
        own, near = multipliers[order], np.take_along_axis(caps, order, axis=1)
        scale = max(float(multipliers.max(initial=0.0)), 1e-300)
        squares = _from((own / scale) ** 2)
        paces = np.sqrt((radius - np.sqrt(_before(near * near))) * (radius + np.sqrt(_before(near * near))) / squares)
        fits = paces / scale <= np.take_along_axis(ratios, order, axis=1)
        pace = np.where(fits.any(axis=1), paces[np.arange(len(paces)), fits.argmax(axis=1)] / scale, np.inf)
        moves = np.minimum(caps, pace[:, None] * multipliers)
        return np.where(np.isnan(moves), 0.0, moves)


def compute_least_moves(
    margins: FloatArray, multipliers: FloatArray, caps: FloatArray, norm: float | None
) -> FloatArray:
    """The least moves, in the norm, by which sums decrease by their margins, (n_rows, n_columns), to nearest.

    Rows in which no moves do are moved as far as possible. Infinite caps stand for twice of what one column needs.
    """
    with np.errstate(all="ignore"):
        needed = np.where(multipliers > 0, 2 * margins[:, None] / multipliers, 0.0)
        caps = np.where(np.isinf(caps), needed, caps)
        moving = multipliers > 0
        multipliers, within = multipliers[moving], caps[:, moving]
        moves = np.zeros(caps.shape)
        if not multipliers.size:
            return moves
        if norm is None:
            moves[:, moving] = within
        elif norm in (0, 1):
            decreases = _multiply(multipliers, within)
            keys = decreases if norm == 0 else np.broadcast_to(multipliers, decreases.shape)
            order = np.argsort(-keys, axis=1, kind="stable")
            sorted_decreases = np.take_along_axis(decreases, order, axis=1)
            taken = np.clip(margins[:, None] - _before(sorted_decreases), 0.0, sorted_decreases)
            by_column = np.zeros(decreases.shape)
            np.put_along_axis(by_column, order, taken, axis=1)
            moves[:, moving] = np.minimum(by_column / multipliers, within)
        elif norm == 2:
            top = multipliers.max()
            pace = _compute_pace(margins / top, multipliers / top, within)
            enough = _multiply(multipliers, within).sum(axis=1) > margins
            moves[:, moving] = np.where(
                enough[:, None], np.minimum(within, pace[:, None] * (multipliers / top)), within
            )
        else:
            order = np.argsort(within, axis=1, kind="stable")
            near, own = np.take_along_axis(within, order, axis=1), multipliers[order]
            radii = (margins[:, None] - _before(_multiply(own, near))) / _from(own)
            fits = radii <= near
            chosen = np.where(fits.any(axis=1), radii[np.arange(len(radii)), fits.argmax(axis=1)], np.inf)
            moves[:, moving] = np.minimum(within, chosen[:, None])
    return np.where(np.isfinite(moves), moves, 0.0)
