"""Drops: how little terms must change before their sum falls by so much, in any norm, from their frontiers.

What follows from a frontier: the largest distance of a term (linf), how many terms (l0), the sum of distances or of
squares (l1, l2) by its linear relaxation or by a programme over whole drops. Arrays in, arrays out; distances are
rounded downward. Must not know where frontiers come from (`steps`). README.md, step 9, has the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import EPSILON, FloatArray, IntArray
from derand.kernels.compiling import compile_loop

FARTHEST = 1e300
"""Differences and squares beyond it may overflow."""
NEAREST = 2.0**-500
"""Below it squares leave the normal numbers, and with them what is taken off for rounding."""
RELAXED, WHOLE = range(2)
"""How a radius was found: by the linear relaxation, or exactly."""


class Frontier(NamedTuple):
    """The ways down of all terms, those of a term from near to far, each deeper than the one before."""

    options: IntArray
    """(n_terms + 1,): those of term i stand from `options[i]` to `options[i + 1] - 1`."""
    far: FloatArray
    """Their distances."""
    deep: IntArray
    """Their drops."""


class Measure(NamedTuple):
    """How distances of terms count together."""

    norm: float
    affordable: int
    """Steps that the programme over whole drops may take for a row."""


@compile_loop()
def measure_drops(
    frontier: Frontier, drops: IntArray, measure: Measure, distances: FloatArray, how: NDArray[np.uint8]
) -> int:
    """Fill in the least distances at which the sum of a row can fall by so much, and how found; the deepest fall.

    A distance is 0 where nothing need fall, infinite where it cannot; for norm 0 it is the number of terms that may be
    changed at will.
    """
    options, far, deep = frontier
    norm, deepest = measure.norm, 0
    for i in range(options.size - 1):
        if options[i + 1] > options[i]:
            deepest += deep[options[i + 1] - 1]
    for k in range(drops.size):
        drop = drops[k]
        if drop <= 0:
            distances[k], how[k] = 0.0, WHOLE
        elif deepest < drop:
            distances[k], how[k] = np.inf, WHOLE
        elif norm == 0.0:
            distances[k], how[k] = _count_terms(options, deep, drop), WHOLE
        elif np.isinf(norm):
            distances[k], how[k] = _bound_largest(options, far, deep, drop), WHOLE
        else:
            distances[k], how[k] = _bound_sum(options, far, deep, drop, int(norm), measure.affordable)
    return deepest


@compile_loop()
def _count_terms(options: IntArray, deep: IntArray, drop: int) -> float:
    """How many terms may be changed at will: the deepest ones are the worst choice."""
    most = np.zeros(options.size - 1, dtype=np.int64)
    for i in range(options.size - 1):
        if options[i + 1] > options[i]:
            most[i] = deep[options[i + 1] - 1]
    most.sort()
    total, count = 0, 0
    while total + most[most.size - 1 - count] < drop:
        total += most[most.size - 1 - count]
        count += 1
    return float(count)


@compile_loop()
def _bound_largest(options: IntArray, far: FloatArray, deep: IntArray, drop: int) -> float:
    """The least distance at which all terms together can fall by the drop, when each may move that far."""
    n = options[options.size - 1]
    gains = np.empty(n, dtype=np.int64)
    for i in range(options.size - 1):
        before = 0
        for o in range(options[i], options[i + 1]):
            gains[o] = deep[o] - before
            before = deep[o]
    order = np.argsort(far[:n])
    total = 0
    for o in order:
        total += gains[o]
        if total >= drop:
            return float(far[o])
    return np.inf


@compile_loop()
def _bound_sum(
    options: IntArray, far: FloatArray, deep: IntArray, drop: int, power: int, affordable: int
) -> tuple[float, int]:
    """The least sum of distances, or root of the sum of squares: exactly where that is affordable, else relaxed."""
    n = options[options.size - 1]
    costs = np.empty(n)
    for o in range(n):
        costs[o] = far[o] if power == 1 else min(far[o] * far[o] * (1.0 - 2.0 * EPSILON), FARTHEST)
    bound, how = _relax(options, costs, deep, drop), RELAXED
    if n * (drop + 1) <= affordable:
        exact = _solve(options, costs, deep, drop)
        if exact >= bound:
            bound, how = exact, WHOLE
    return (bound if power == 1 else np.sqrt(bound) * (1.0 - 2.0 * EPSILON)), how


@compile_loop()
def _relax(options: IntArray, costs: FloatArray, deep: IntArray, drop: int) -> float:
    """The linear relaxation: shares of the steepest ways down first. Any multiplier is sound; this is the best."""
    n = options[options.size - 1]
    gains, steps, hull = np.zeros(n), np.zeros(n), np.empty(n + 1, dtype=np.int64)
    count = 0
    for i in range(options.size - 1):
        size = 0  # the concave hull of drop over cost, from (0, 0)
        for o in range(options[i], options[i + 1]):
            while size > 0:
                here = hull[size - 1]
                cost0 = costs[hull[size - 2]] if size > 1 else 0.0
                drop0 = deep[hull[size - 2]] if size > 1 else 0
                if (deep[here] - drop0) * (costs[o] - cost0) > (deep[o] - drop0) * (costs[here] - cost0):
                    break
                size -= 1
            hull[size] = o
            size += 1
        cost0, drop0 = 0.0, 0
        for s in range(size):
            o = hull[s]
            gains[count], steps[count] = deep[o] - drop0, costs[o] - cost0
            cost0, drop0 = costs[o], deep[o]
            count += 1
    order = np.argsort(steps[:count] / gains[:count])
    total, ratio = 0.0, 0.0
    for s in order:
        total += gains[s]
        ratio = steps[s] / gains[s]
        if total >= drop:
            break
    return _prove(options, costs, deep, drop, ratio)


@compile_loop()
def _prove(options: IntArray, costs: FloatArray, deep: IntArray, drop: int, ratio: float) -> float:
    """What a multiplier of a drop proves: drop * ratio less what terms gain by it."""
    gained, weight = 0.0, 0.0
    for i in range(options.size - 1):
        best = 0.0
        for o in range(options[i], options[i + 1]):
            best = max(best, deep[o] * ratio - costs[o])
        if options[i + 1] > options[i]:
            weight += deep[options[i + 1] - 1] * ratio
        gained += best
    error = 4.0 * EPSILON * (weight + drop * ratio) + 2.0 * EPSILON * options.size * gained
    return max(drop * ratio - gained - error, 0.0)


@compile_loop()
def _solve(options: IntArray, costs: FloatArray, deep: IntArray, drop: int) -> float:
    """The least cost of a drop or more, by the least cost of each whole drop, one term after the other."""
    least, now = np.full(drop + 1, np.inf), np.full(drop + 1, np.inf)
    least[0] = 0.0
    for i in range(options.size - 1):
        if options[i + 1] == options[i]:
            continue
        now[:] = least
        for o in range(options[i], options[i + 1]):
            size, cost = min(deep[o], drop), costs[o]
            for j in range(drop - size + 1):
                now[j + size] = min(now[j + size], least[j] + cost)
            for j in range(drop - size + 1, drop):
                now[drop] = min(now[drop], least[j] + cost)
        least, now = now, least
    return least[drop] * (1.0 - 2.0 * EPSILON * options.size)
