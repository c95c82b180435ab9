"""The largest change of a score within a radius of any row, term by term.

In linf the terms' largest changes add up: exact without noise. In l1 and l2 the radius is shared out among terms, and a
multiplier of it gives an upper bound. Noise only averages: the bound without it holds. Owns these bounds. Must not know
labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.certificates.statements.domain import Domain
from derand.certificates.statements.sums import CellRange, DomainSum, TermRange

_SHARES = 64
_MULTIPLIERS = np.geomspace(1e-6, 1e6, 241)


def bound_change(total: DomainSum, radius: float, norm: float, units: FloatArray) -> float:
    """An upper bound of how far two scores of rows of the domain lie apart whose numbers differ by that much at most.

    Categories, and which numbers are missing, are the same in both.
    """
    if norm == np.inf or radius == 0:
        return float(sum(_bound_term(term, total.domain, radius, units) for term in total.ranges))
    shares = radius * np.linspace(0.0, 1.0, _SHARES + 1)[1:]
    tables = np.array([[_bound_term(term, total.domain, own, units) for own in shares] for term in total.ranges])
    if not tables.size:
        return 0.0
    paid = np.concatenate([[0.0], shares[:-1]]) ** norm  # a change of more than that takes the next entry
    largest = float(tables[:, -1].sum())
    scale = largest / radius**norm
    best = largest
    for multiplier in (_MULTIPLIERS * scale).tolist() if scale else ():
        gains = np.maximum((tables - multiplier * paid).max(axis=1), 0.0)
        best = min(best, float(gains.sum() + multiplier * radius**norm) * (1 + 64 * EPSILON * (len(tables) + 4)))
    return best


def _bound_term(term: TermRange, domain: Domain, radius: float, units: FloatArray) -> float:
    """The largest change of one term where each of its numbers changes by that many units at most."""
    if not term.term.axes:
        return 0.0
    if term.term.slope is not None:
        slope, (feature,) = term.term.slope, term.features
        width = min(radius * float(units[feature]), float(domain.high[feature] - domain.low[feature]))
        return width * float(np.abs(slope.values[0]) + slope.errors[0]) * (1 + 8 * EPSILON)
    # noise moves rows beyond the domain, and off whole numbers
    at_home = domain if isinstance(term, CellRange) else _open(domain)
    widths = [_multiply_up(radius, float(units[feature])) for feature in term.features]
    axes = [_list_cells(*axis, at_home, width) for axis, width in zip(term.term.axes, widths, strict=True)]
    inside = [edges.size + 1 for _, edges in term.term.axes]
    shape = [
        size + (feature in term.term.missing_features)
        for size, (feature, _) in zip(inside, term.term.axes, strict=True)
    ]
    flat = np.asarray(term.term.cell_scores)
    whole = flat.size == int(np.prod(shape))
    grid = flat.reshape(shape) if whole else flat.reshape(inside)
    highest = lowest = grid.astype(np.float64)
    for axis, (cells, last) in enumerate(axes):
        may_miss = term.features[axis] in domain.missing and grid.shape[axis] > inside[axis]
        missing = [grid.shape[axis] - 1] if may_miss else []
        highest, lowest = (
            _slide(own * sign, cells, last, axis, missing) * sign for own, sign in ((highest, 1), (lowest, -1))
        )
    return float((highest - lowest).max(initial=0.0))


def _multiply_up(radius: float, unit: float) -> float:
    return radius if unit == 1 else float(np.nextafter(radius * unit, np.inf))


def _open(domain: Domain) -> Domain:
    """Any number at all."""
    ends = np.full(domain.low.size, np.inf)
    return Domain(-ends, ends, np.zeros(ends.size, dtype=bool), domain.codes, domain.missing)


def _list_cells(feature: int, edges: FloatArray, domain: Domain, width: float) -> tuple[IntArray, IntArray]:
    """The cells of a column that the domain reaches, and the last of them that a number of each reaches upward."""
    low, high = float(domain.low[feature]), float(domain.high[feature])
    starts, stops = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    first = np.maximum(starts, low)
    if domain.whole[feature]:
        first, ends = np.ceil(first), np.minimum(np.ceil(stops) - 1, np.floor(high))
        cells = np.flatnonzero(first <= ends)
        apart, is_open = ends[cells], False
    else:
        cells = np.flatnonzero((first < stops) & (first <= high))
        apart, is_open = np.minimum(stops, high)[cells], True
    begins = first[cells]
    with np.errstate(invalid="ignore", over="ignore"):
        reach = apart + width
        back = reach - apart  # what the sum is rounded by, exactly (Knuth's TwoSum)
        lost = (apart - (reach - back)) + (width - back)
    # the upper end of a cell is not its own: what begins exactly that far away is out of reach, unless that is rounded
    within = np.searchsorted(begins, reach, side="right") - 1
    short = np.searchsorted(begins, reach, side="left") - 1
    last = np.where(np.isinf(reach) | (lost > 0) | (not is_open), within, short)
    return cells, np.maximum(last, np.arange(cells.size))


def _slide(grid: FloatArray, cells: IntArray, last: IntArray, axis: int, missing: Sequence[int]) -> FloatArray:
    """The largest entry of each window of cells along an axis; a missing value stays what it is."""
    moved = np.moveaxis(grid, axis, 0)
    own = moved[cells]
    found = own.copy()
    levels, power = own.copy(), 1
    width = last - np.arange(cells.size) + 1
    answers = own.copy()
    done = width == 1
    while not done.all():  # levels[i] is the largest of `power` entries from i on
        shifted = levels.copy()
        if power < len(levels):
            shifted[:-power] = np.maximum(levels[:-power], levels[power:])
        levels, power = shifted, power * 2
        ready = ~done & (width < 2 * power)
        for at in np.flatnonzero(ready).tolist():
            answers[at] = np.maximum(levels[at], levels[last[at] - power + 1])
        done |= ready
    found = answers
    return np.moveaxis(np.concatenate([found, moved[list(missing)]]), 0, axis)
