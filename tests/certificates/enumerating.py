"""Sums of trees by enumeration of all cells: the truth for small models, in fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray, IntArray
from derand.certificates.bounds.trees import FLIPS, HOLDS, TIE, UNDECIDED, TreeRadii, TreeScores, TreeVerdicts
from derand.model import Contrast, Term
from derand.perturbation import Perturbation

_SHRINK, _GROW = 1 - 4 * EPSILON, 1 + 4 * EPSILON
_MOST = 3000


class _State(NamedTuple):
    """What a number or a category may become: certified and attacked distance, and what it costs of the budgets."""

    value: float
    near: float
    far: float
    changes: int
    missing: int


def decide_within(
    contrast: Contrast,
    rows: FloatArray,
    is_one: BoolArray,
    perturbation: Perturbation,
    budget: int,
    n_threads: int,
    radius: FloatArray | None = None,
) -> TreeVerdicts:
    """Whether the sum of each row stays on its side of the threshold within the box, or within an open ball as well."""
    rows = np.asarray(rows, dtype=np.float64)
    found = TreeVerdicts(
        np.full(len(rows), UNDECIDED, np.uint8), np.full(len(rows), -np.inf), rows.copy(), np.zeros(len(rows), np.int64)
    )
    for row in range(len(rows)):
        points = _list_points(contrast, rows, row, perturbation, None if radius is None else float(radius[row]))
        if points is None:
            continue
        every, _, far = points
        inside = np.full(len(every), True) if radius is None else (far < radius[row]) | (far == 0)
        low, high = _bound_oriented(contrast, every, bool(is_one[row]))
        found.bound[row], found.nodes[row] = _round_down(min(low)), len(every)
        holds, flips = _compare(low, high, bool(is_one[row]))
        at = int(np.argmin([float(one) for one in low]))
        if holds.all():
            found.status[row] = HOLDS
        elif (flips & inside).any():
            found.status[row] = FLIPS
            found.witness[row] = every[int(np.flatnonzero(flips & inside)[0])]
        else:
            found.status[row], found.witness[row] = TIE, every[at]
    return found


def measure_radii(
    contrast: Contrast, rows: FloatArray, is_one: BoolArray, perturbation: Perturbation, budget: int, n_threads: int
) -> TreeRadii:
    """How far each row may be moved, in the norm of the perturbation, before its sum leaves its side."""
    rows = np.asarray(rows, dtype=np.float64)
    n = len(rows)
    found = TreeRadii(np.zeros(n), np.full(n, np.inf), rows.copy(), np.zeros(n, dtype=bool), np.zeros(n, np.int64))
    for row in range(n):
        points = _list_points(contrast, rows, row, perturbation, None)
        if points is None:
            continue
        every, near, far = points
        holds, flips = _compare(*_bound_oriented(contrast, every, bool(is_one[row])), bool(is_one[row]))
        least = near[~holds].min(initial=np.inf)
        found.certified[row] = max(least - 1, 0) if perturbation.norm == 0 else least
        if flips.any():
            at = int(np.flatnonzero(flips)[np.argmin(far[flips])])
            found.attacked[row], found.witness[row] = far[at], every[at]
            found.is_exact[row] = near[at] == least
        else:
            found.is_exact[row] = least == np.inf
        found.nodes[row] = len(every)
    return found


def bound_scores(
    contrast: Contrast,
    rows: FloatArray,
    perturbation: Perturbation,
    budget: int,
    n_threads: int,
    radius: FloatArray | None = None,
) -> TreeScores:
    """The least and the largest sum of each row within the box, or within an open ball as well."""
    rows = np.asarray(rows, dtype=np.float64)
    n = len(rows)
    least, most, low, high = (np.full(n, sign * np.inf) for sign in (-1, 1, 1, -1))
    found = TreeScores(least, most, low, high, rows.copy(), rows.copy(), np.zeros(n, np.int64))
    for row in range(n):
        points = _list_points(contrast, rows, row, perturbation, None if radius is None else float(radius[row]))
        if points is None:
            continue
        every, _, far = points
        inside = np.full(len(every), True) if radius is None else (far < radius[row]) | (far == 0)
        found.nodes[row] = len(every)
        scores = np.array([float(one) for one in _add_scores(contrast, every)])
        for is_one, proven, attained, witness in ((True, least, low, found[4]), (False, most, high, found[5])):
            bound = _round_down(min(_bound_oriented(contrast, every, is_one)[0]))
            sign = 1 if is_one else -1
            proven[row] = contrast.threshold + bound if is_one else contrast.threshold - bound
            best = int(np.flatnonzero(inside)[np.argmin(sign * scores[inside])])
            attained[row], witness[row] = scores[best], every[best]
    return found


def _round_down(value: Fraction) -> float:
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else float(np.nextafter(rounded, -np.inf))


def _add_scores(contrast: Contrast, points: FloatArray) -> IntArray:
    total = np.zeros(len(points), dtype=np.int64)
    for term in contrast.terms:
        total += term.score_rows(points).reshape(len(points))
    return total


def _bound_oriented(contrast: Contrast, points: FloatArray, is_one: bool) -> tuple[list[Fraction], list[Fraction]]:
    """Score less threshold, its sign by the label: at least, and at most, for the model that is meant."""
    scores = _add_scores(contrast, points)
    errors = np.zeros(len(points))
    for term in contrast.terms:
        rounding = getattr(term, "bound_rounding", None)
        if rounding is not None:
            errors += rounding(points)[:, 0]
    sign = 1 if is_one else -1
    middle = [sign * (Fraction(one) - contrast.threshold) for one in scores.tolist()]
    wide = [Fraction(one) + Fraction(contrast.score_error) for one in errors.tolist()]
    return [m - w for m, w in zip(middle, wide, strict=True)], [m + w for m, w in zip(middle, wide, strict=True)]


def _compare(low: list[Fraction], high: list[Fraction], is_one: bool) -> tuple[BoolArray, BoolArray]:
    """At which points the label surely holds, and at which it surely does not."""
    if is_one:
        return np.array([one > 0 for one in low]), np.array([one <= 0 for one in high])
    return np.array([one >= 0 for one in low]), np.array([one < 0 for one in high])


def _list_points(
    contrast: Contrast, rows: FloatArray, row: int, perturbation: Perturbation, radius: float | None
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """One point of each cell that the row can reach, with its certified and its attacked distance."""
    low, high = perturbation.box(rows[[row]])
    own = rows[row]
    columns, options = [], []
    for term in contrast.terms:
        codes = term.category_codes
        for column in term.features:
            columns.append(column)
            if column in codes:
                options.append(_list_codes(float(own[column]), column, codes[column], perturbation))
            else:
                options.append(_list_values(float(own[column]), column, term, perturbation, low[0], high[0]))
    if math.prod(map(len, options)) > _MOST:
        return None
    points, near, far = [], [], []
    for chosen in itertools.product(*options):
        if sum(one.changes for one in chosen) > perturbation.l0:
            continue
        if sum(one.missing for one in chosen) > perturbation.missing_budget:
            continue
        sizes = [_combine([getattr(one, end) for one in chosen], perturbation.norm) for end in ("near", "far")]
        if radius is not None and sizes[1] > 0 and sizes[0] >= radius:
            continue
        point = own.copy()
        point[columns] = [one.value for one in chosen]
        points.append(point)
        near.append(sizes[0] * (_SHRINK if perturbation.norm in (1, 2) else 1))
        far.append(sizes[1] * (_GROW if perturbation.norm in (1, 2) else 1))
    return np.array(points), np.array(near), np.array(far)


def _combine(sizes: list[float], norm: float | None) -> float:
    if norm is None:
        return 0.0
    if norm == 0:
        return float(sum(size > 0 for size in sizes))
    return float(np.linalg.norm(sizes, ord=norm))


def _list_codes(own: float, column: int, codes: FloatArray, perturbation: Perturbation) -> list[_State]:
    found = [_State(own, 0.0, 0.0, 0, 0)]
    if column in perturbation.frozen or not perturbation.l0:
        return found
    if column in perturbation.codes:
        others = perturbation.codes[column].tolist()
    else:
        outside = [math.nan, min(float(codes.min(initial=0.0)), 0.0) - 1.0]
        others = codes.tolist() + (outside if perturbation.unseen or not codes.size else [])
    changed = [one for one in others if one != own and not (math.isnan(one) and math.isnan(own))]
    return found + [_State(one, 0.0, 0.0, 1, 0) for one in changed]


def _list_values(
    own: float, column: int, term: Term, perturbation: Perturbation, low: FloatArray, high: FloatArray
) -> list[_State]:
    found = [_State(own, 0.0, 0.0, 0, 0)]
    (edges,) = [axis.edges for axis in term.axes if axis.feature == column]
    may_miss = perturbation.missing_budget > 0 and column in term.missing_features and column not in perturbation.frozen
    if math.isnan(own):
        if may_miss:
            found += [_State(float(one), 0.0, 0.0, 0, 1) for one in [np.nextafter(edges[0], -np.inf), *edges]]
        return found
    if may_miss:
        found.append(_State(math.nan, 0.0, 0.0, 0, 1))
    if not perturbation.free[column]:
        return found
    unit, step = float(perturbation.units[column]), float(perturbation.steps[column])
    for at, edge in enumerate(edges.tolist()):
        begins, ends = (
            (-np.inf if at == 0 else float(edges[at - 1])),
            (np.inf if at + 1 == edges.size else edges[at + 1]),
        )
        if edge > own:
            value = edge if not step else _step(own, step, edge)
            inside = value < ends and value <= high[column]
            near = (value if step else edge) - own
        else:
            value = float(np.nextafter(edge, -np.inf)) if not step else _step(own, -step, edge)
            inside = value >= begins and value >= low[column] and value < edge
            near = own - (value if step else edge)
        if inside:
            found.append(_State(value, near / unit * _SHRINK, abs(value - own) / unit * _GROW, 0, 0))
    if perturbation.norm == 0:
        found = [one._replace(near=1.0, far=1.0) if one.far else one for one in found]
    return found


def _step(own: float, step: float, edge: float) -> float:
    """The nearest multiple of the step beyond an edge."""
    k = max(math.floor((edge - own) / step) - 1, 1)
    while (own + k * step < edge) if step > 0 else (own + k * step >= edge):
        k += 1
    return own + k * step
