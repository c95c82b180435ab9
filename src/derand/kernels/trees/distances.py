"""Distances from a number to bins: rounded downward, squared for l2, 1 for norm 0.

The distance to a bin is that to its edge, or to its first whole step. README.md, step 11. Must not know trees.
"""

from __future__ import annotations

from typing import NamedTuple

from derand._core.arrays import EPSILON, FloatArray
from derand.kernels.compiling import compile_loop
from derand.kernels.worst_case.drops import FARTHEST, NEAREST
from derand.kernels.worst_case.steps import step_down, step_up


class Measure(NamedTuple):
    """A number in its own bin, its edges (from `start` on), and how changes of it count."""

    x: float
    own: int
    start: int
    unit: float
    step: float
    norm: float


@compile_loop(_nrt=False)
def measure_bin(bin_: int, measure: Measure, edges: FloatArray) -> float:
    """A lower bound of the distance to a bin; of its square for l2."""
    x, own, start, unit, step, norm = measure
    if bin_ == own or own < 0 or norm != norm:  # noqa: PLR0124 - NaN
        return 0.0  # what is missing appears anywhere
    if norm == 0.0:
        return 1.0
    if bin_ > own:
        edge = edges[start + bin_ - 1]
        away = (step_up(x, step, edge) if step > 0.0 else edge) - x
    else:
        edge = edges[start + bin_]
        away = x - (step_down(x, step, edge) if step > 0.0 else edge)
    away = min(away / unit * (1.0 - 4.0 * EPSILON), FARTHEST)
    if norm != 2.0:
        return away
    return min(away * away * (1.0 - 2.0 * EPSILON), FARTHEST) if away >= NEAREST else 0.0


@compile_loop(_nrt=False)
def restrict_bins(first: int, last: int, size: float, measure: Measure, edges: FloatArray) -> tuple[int, int]:
    """The bins from `first` to `last` whose distance is below the size; the nearest one is, or the row's own."""
    nearest = min(max(measure.own, first), last)
    inside, outside = nearest, last + 1
    while outside - inside > 1:
        middle = (inside + outside) >> 1
        if measure_bin(middle, measure, edges) < size:
            inside = middle
        else:
            outside = middle
    above = inside
    inside, outside = nearest, first - 1
    while inside - outside > 1:
        middle = (inside + outside) >> 1
        if measure_bin(middle, measure, edges) < size:
            inside = middle
        else:
            outside = middle
    return inside, above
