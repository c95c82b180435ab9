"""Curves: functions of one number, known by lower bounds at knots, and where the numbers of rows stand on them.

Owns the arrays that describe curves, and the search for the knot left of a number. Arrays in, arrays out. Must not know
what is computed from curves. README.md, step 9, has the argument.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import compile_loop

FloatTable = NDArray[np.float32]
Records = NDArray[np.void]

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


class Positions(NamedTuple):
    """Where a row stands on the curves: term i looks up curve `curves[i]` at `(x - anchors[i]) * factors[i]`."""

    features: IntArray
    curves: IntArray
    anchors: FloatArray
    factors: FloatArray
    """1 / unit or -1 / unit for a curve that several terms share, else 1."""


_TRACK = np.dtype(
    [(name, np.int64) for name in ("first", "last", "base")]
    + [(name, np.float64) for name in ("begin", "rate", "count", "left", "right", "unit")]
)
"""Of a curve: its first and last knot; of an even run the first knot, its place, 1 / distance, how many; ends, unit."""


def list_tracks(curves: Curves) -> Records:
    """What looking up each curve needs to know of it, (n_curves,)."""
    tracks = np.empty(curves.units.size, dtype=_TRACK)
    tracks["first"], tracks["last"] = curves.starts[:-1], curves.starts[1:] - 1
    tracks["begin"], tracks["rate"] = curves.even.T
    tracks["base"], tracks["count"] = curves.even_knots.T
    tracks["left"], tracks["right"] = curves.ends.T
    tracks["unit"] = curves.units
    return tracks


FARTHEST_POSITION = float(np.finfo(np.float64).max)
"""On a curve: finite numbers that lie farther away, in units, count as there."""


def compute_positions(rows: FloatArray, positions: Positions) -> FloatArray:
    """Where rows stand on the curves of their terms, (n_rows, n_terms); infinite ends stay infinite."""
    own = rows[:, positions.features]
    with np.errstate(over="ignore", invalid="ignore"):
        found = (own - positions.anchors) * positions.factors
    return np.where(np.isinf(own), found, np.clip(found, -FARTHEST_POSITION, FARTHEST_POSITION))


def locate_in_numpy(x: FloatArray, tracks: Records, knots: FloatArray) -> tuple[IntArray, FloatArray]:
    """`locate` for many numbers: x of shape (n_rows, n_terms), tracks (n_terms,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        position = (x - tracks["begin"]) * tracks["rate"]
    is_even = (position >= 0.0) & (position < tracks["count"])
    whole = np.where(is_even, position, 0.0).astype(np.int64)
    at = np.asarray(tracks["base"] + whole)
    share = np.asarray(np.where(is_even, position, 0.0) - whole, dtype=np.float64)
    rest = np.nonzero(~is_even)
    own = tracks[rest[1]]
    at[rest], share[rest] = _search_in_numpy(x[rest], own["first"], own["last"], knots)
    return at, share


def _search_in_numpy(x: FloatArray, first: IntArray, last: IntArray, knots: FloatArray) -> tuple[IntArray, FloatArray]:
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


@compile_loop()
def bisect_right(x: float, start: int, stop: int, edges: FloatArray) -> int:
    """The first of the increasing edges from `start` to `stop - 1` that is above x; `stop` without one."""
    while start < stop:
        middle = (start + stop) // 2
        if edges[middle] <= x:
            start = middle + 1
        else:
            stop = middle
    return start


@compile_loop(error_model="numpy")
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
def locate(x: float, track: Any, knots: FloatArray) -> tuple[int, float]:
    """The knot left of x, and the share of the way to the next one; x beyond the knots counts as at their end.

    On an even run the share is that of rounded positions: off by less than UNEVEN.
    """
    position = (x - track["begin"]) * track["rate"]
    if 0.0 <= position < track["count"]:
        whole = int(position)
        return track["base"] + whole, position - whole
    return search(x, track["first"], track["last"], knots)
