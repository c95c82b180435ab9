"""Compiled loops of the block-coordinate descent: one column at a time, rows by their codes. Serial, without the GIL.

Every row is in one state of each column: the group of the row (its label and its multiplier) and its code. Most rows
share the commonest code of a column, so that only the others are listed. Must not know what the numbers mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import Compiled, compile_loop

_FAINT = 30.0  # a share of exp(-30) does not count
_HALVINGS = 20
_ARMIJO = 1e-4
_TINY = 1e-12
_SERIES = tuple(1.0 / math.factorial(at) for at in range(10))  # of exp
_UNUSED = 1e-15  # curvature of rows that a state does not count with


class Blocks(NamedTuple):
    """The columns of a design one after the other, and their rows.

    Attributes
    ----------
    first_weight, n_weights, n_points, first_point : arrays of shape (n_columns,)
        Weights of each column among all; its points, and where their numbers begin in `points`.
    n_bins, n_places, first_place : arrays of shape (n_columns,)
        Codes of each column, and to how many places a row of some code can go: codes of more places come first.
    first_count : array of shape (n_columns,)
        Where each column begins in `counts` and `skips`, n_places long each: how many codes have such a place, and
        where these places begin.
    first_state : array of shape (n_columns + 1,)
        States of each column are (group, code), group after group.
    is_category : array of shape (n_columns,)
        Whether its changes cost as those of categories.
    points : array of float32
        What each weight adds at each point, (n_points, n_weights) for each column.
    places : array of int32
        The point of each place of each column: the first place of all codes, the second one of those that have it, ...
    costs : array of float64
        What going there costs.
    first_entry, rows, codes, common
        Rows whose code is not the commonest one of the column, (n_columns + 1,) and (n_entries,) each.
    """

    first_weight: IntArray
    n_weights: IntArray
    n_points: IntArray
    first_point: IntArray
    n_bins: IntArray
    n_places: IntArray
    first_place: IntArray
    first_count: IntArray
    counts: IntArray
    skips: IntArray
    first_state: IntArray
    is_category: NDArray[np.bool_]
    points: NDArray[np.float32]
    places: NDArray[np.int32]
    costs: FloatArray
    first_entry: IntArray
    rows: NDArray[np.int32]
    codes: NDArray[np.int32]
    common: IntArray


class GroupMap(NamedTuple):
    """Groups of rows, for numbers and for categories: the sign of a label, and a multiplier.

    A row whose best multiplier lies between two has a share of each of these groups.

    Attributes
    ----------
    signs, multipliers : arrays of shape (2, n_groups)
        The second row is that of categories; the shorter one is filled up.
    counts : array of shape (2,)
    of_row : array of shape (2, n_rows)
        The first group of each row; the second one is the next.
    shares : array of shape (2, n_rows)
        Of the first group.
    """

    signs: FloatArray
    multipliers: FloatArray
    counts: IntArray
    of_row: NDArray[np.int32]
    shares: FloatArray


@compile_loop()
def _evaluate_points(points: NDArray[np.float32], weights: FloatArray, values: FloatArray) -> None:
    """What weights add up to at each point; four sums at a time, which wait for one another less than one."""
    size = weights.size
    whole = size - size % 4
    for point in range(values.size):
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for at in range(0, whole, 4):
            first += points[point, at] * weights[at]
            second += points[point, at + 1] * weights[at + 1]
            third += points[point, at + 2] * weights[at + 2]
            fourth += points[point, at + 3] * weights[at + 3]
        for at in range(whole, size):
            first += points[point, at] * weights[at]
        values[point] = (first + second) + (third + fourth)


@compile_loop()
def _gather(values: FloatArray, places: NDArray[np.int32], near: FloatArray) -> None:
    """The value of each place."""
    for at in range(places.size):
        near[at] = values[places[at]]


@compile_loop()
def _read_counts(blocks: Blocks, column: int) -> tuple[IntArray, IntArray]:
    """How many codes of a column have each place, and where these places begin."""
    own = slice(blocks.first_count[column], blocks.first_count[column] + blocks.n_places[column])
    return blocks.counts[own], blocks.skips[own]


@compile_loop()
def _list_places(code: int, counts: IntArray, skips: IntArray, out: IntArray) -> int:
    """Where the places of a code are among those of its column; how many there are."""
    for at in range(counts.size):
        if code >= counts[at]:
            return at
        out[at] = skips[at] + code
    return int(counts.size)


@compile_loop()
def _decay(above: float) -> float:
    """exp(-above) for what is not below 0, to 1e-13 of itself; without branches, so that several are taken at a time.

    By the series of the 256th part; 0 from 30 on.
    """
    x = (above if above < _FAINT else _FAINT) * (-1.0 / 256.0)
    power = _SERIES[9]
    for at in range(8, -1, -1):
        power = power * x + _SERIES[at]
    for _ in range(8):
        power *= power
    return power if above < _FAINT else 0.0


@compile_loop()
def _soften(
    near: FloatArray, costs: FloatArray, sign: float, multiplier: float, temperature: float, shares: FloatArray
) -> float:
    """The soft minimum over the places of a code, and the share of each place in it."""
    for at in range(near.size):
        shares[at] = sign * near[at] + multiplier * costs[at]
    least, where = shares[0], 0
    for at in range(1, near.size):
        if shares[at] < least:
            least, where = shares[at], at
    if temperature <= 0.0 or near.size == 1:
        shares[:] = 0.0
        shares[where] = 1.0
        return float(least)
    rate, total = 1.0 / temperature, 0.0
    for at in range(near.size):
        shares[at] = _decay((shares[at] - least) * rate)
    for at in range(near.size):
        total += shares[at]
    for at in range(near.size):
        shares[at] /= total
    return float(least - temperature * math.log(total / near.size))


@compile_loop()
def _soften_states(
    near: FloatArray,
    costs: FloatArray,
    skips: IntArray,
    codes: IntArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    starts: IntArray,
    room: FloatArray,
    least: FloatArray,
    total: FloatArray,
    worth: FloatArray,
) -> None:
    """The soft minima of several states, by increasing code; in `room`, shares of places, `total` times too large.

    Of each place there are `starts[at + 1] - starts[at]` states in `room`, the first ones.
    """
    n_places, n_states = starts.size - 1, codes.size
    least[:], total[:] = math.inf, 0.0
    for at in range(n_places):
        begin, skip = starts[at], skips[at]
        for state in range(starts[at + 1] - begin):
            where = skip + codes[state]
            room[begin + state] = signs[state] * near[where] + multipliers[state] * costs[where]
        for state in range(starts[at + 1] - begin):
            own = room[begin + state]
            least[state] = own if own < least[state] else least[state]
    if temperature <= 0.0 or n_places == 1:
        for at in range(n_places):
            begin = starts[at]
            for state in range(starts[at + 1] - begin):
                is_least = room[begin + state] == least[state] and total[state] == 0.0
                room[begin + state] = 1.0 if is_least else 0.0
                total[state] += room[begin + state]
        worth[:] = least
        return
    rate = 1.0 / temperature
    worth[:] = 0.0
    for at in range(n_places):
        begin = starts[at]
        for state in range(starts[at + 1] - begin):
            room[begin + state] = _decay((room[begin + state] - least[state]) * rate)
        for state in range(starts[at + 1] - begin):
            total[state] += room[begin + state]
            worth[state] += 1.0
    for state in range(n_states):
        worth[state] = least[state] - temperature * math.log(total[state] / worth[state])


@compile_loop()
def _soften_groups(
    near: FloatArray,
    costs: FloatArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    room: FloatArray,
    worth: FloatArray,
    spent: FloatArray,
) -> None:
    """The soft minimum over the places of one code for several groups, and what is spent on going there.

    Groups lie side by side in `room`, (n_places + 2, n_groups), so that processors take several at a time.
    """
    n_places, n_groups = near.size, signs.size
    least, total = room[n_places], room[n_places + 1]
    least[:] = math.inf
    for at in range(n_places):
        for group in range(n_groups):
            room[at, group] = signs[group] * near[at] + multipliers[group] * costs[at]
        for group in range(n_groups):
            least[group] = room[at, group] if room[at, group] < least[group] else least[group]
    worth[:] = least
    if temperature <= 0.0:
        return
    total[:], spent[:] = 0.0, 0.0
    rate = 1.0 / temperature
    for at in range(n_places):
        for group in range(n_groups):
            room[at, group] = _decay((room[at, group] - least[group]) * rate)
        for group in range(n_groups):
            total[group] += room[at, group]
            spent[group] += room[at, group] * costs[at]
    for group in range(n_groups):
        worth[group] -= temperature * math.log(total[group] / n_places)
        spent[group] /= total[group]


@compile_loop()
def _factorise(matrix: FloatArray) -> bool:
    """Cholesky's factor in the lower triangle, in place; whether there is one."""
    size = matrix.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if total <= 0.0:
                    return False
                matrix[i, i] = math.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    return True


@compile_loop()
def _solve(factor: FloatArray, vector: FloatArray) -> None:
    size = vector.size
    for i in range(size):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * vector[k]
        vector[i] = total / factor[i, i]


@compile_loop()
def _stabilise(matrix: FloatArray, penalties: FloatArray) -> None:
    """Add penalties to the diagonal, and as much as makes it larger than its rounding."""
    trace, size = 0.0, penalties.size
    for j in range(size):
        matrix[j, j] += penalties[j]
        trace += matrix[j, j]
    for j in range(size):
        matrix[j, j] += 1e-10 * trace / size + _TINY


@compile_loop()
def _add_squares(vectors: FloatArray, factors: FloatArray, out: FloatArray) -> None:
    """Add the squares of four vectors, by factors, to the lower triangle."""
    for i in range(out.shape[0]):
        first, second = factors[0] * vectors[0, i], factors[1] * vectors[1, i]
        third, fourth = factors[2] * vectors[2, i], factors[3] * vectors[3, i]
        for j in range(i + 1):
            out[i, j] += (first * vectors[0, j] + second * vectors[1, j]) + (
                third * vectors[2, j] + fourth * vectors[3, j]
            )


@compile_loop()
def _list_shares(
    state: int,
    places: NDArray[np.int32],
    skips: IntArray,
    codes: IntArray,
    starts: IntArray,
    shares: FloatArray,
    own: IntArray,
    weight: FloatArray,
) -> int:
    """The points that a state has a share of, and these shares; how many there are."""
    count = 0
    for at in range(starts.size - 1):
        if state >= starts[at + 1] - starts[at]:
            break
        share = shares[starts[at] + state]
        if share != 0.0:
            own[count], weight[count] = places[skips[at] + codes[state]], share
            count += 1
    return count


@compile_loop()
def _add_curvature(  # noqa: PLR0912 - two ways, by which arrays are small
    points: NDArray[np.float32],
    by_point: FloatArray,
    by_state: FloatArray,
    places: NDArray[np.int32],
    skips: IntArray,
    codes: IntArray,
    starts: IntArray,
    shares: FloatArray,
    out: FloatArray,
) -> None:
    """Second derivatives by the weights of a column, (n_weights, n_weights).

    `by_point`: those by the values of points, one by one; `by_state`: how much each used state adds beside that, along
    its shares of places.
    """
    n_points, size = points.shape
    n_places = starts.size - 1
    own, weight = np.empty(n_places, np.int64), np.empty(n_places)
    out[:] = 0.0
    if n_points <= 2 * size + 4:
        dense = np.zeros((n_points, n_points))
        for point in range(n_points):
            dense[point, point] = by_point[point]
        for state in range(by_state.size):
            used = _list_shares(state, places, skips, codes, starts, shares, own, weight)
            for i in range(used):
                part = by_state[state] * weight[i]
                for j in range(used):
                    dense[own[i], own[j]] += part * weight[j]
        half = np.zeros((n_points, size))
        for i in range(n_points):
            for k in range(n_points):
                if dense[i, k] != 0.0:
                    for j in range(size):
                        half[i, j] += dense[i, k] * points[k, j]
        for k in range(n_points):
            for i in range(size):
                left = points[k, i]
                if left != 0.0:
                    for j in range(i + 1):
                        out[i, j] += left * half[k, j]
        return
    vectors, factors, count = np.zeros((4, size)), np.zeros(4), 0
    for at in range(n_points + by_state.size):
        state = at - n_points
        factor = by_point[at] if state < 0 else by_state[state]
        if factor == 0.0:
            continue
        vectors[count], factors[count] = 0.0, factor
        if state < 0:
            for j in range(size):
                vectors[count, j] = points[at, j]
        else:
            for place in range(_list_shares(state, places, skips, codes, starts, shares, own, weight)):
                for j in range(size):
                    vectors[count, j] += weight[place] * points[own[place], j]
        count += 1
        if count == 4:
            _add_squares(vectors, factors, out)
            factors[:], count = 0.0, 0
    if count:
        _add_squares(vectors, factors, out)


@compile_loop()
def _add_points(points: NDArray[np.float32], by_point: FloatArray, out: FloatArray) -> None:
    """Add to slopes by weights those by values of points."""
    for point in range(by_point.size):
        factor = by_point[point]
        if factor != 0.0:
            for j in range(out.size):
                out[j] += factor * points[point, j]


@compile_loop()
def _visit(  # noqa: PLR0912, PLR0915 - one compiled loop, whose arrays stay where they are
    points: NDArray[np.float32],
    places: NDArray[np.int32],
    costs: FloatArray,
    counts: IntArray,
    skips: IntArray,
    signs: FloatArray,
    multipliers: FloatArray,
    groups: IntArray,
    codes: IntArray,
    slopes: FloatArray,
    curvature: FloatArray,
    penalties: FloatArray,
    bound: int,
    temperature: float,
    weights: FloatArray,
    moved: FloatArray,
    factor: FloatArray,
    is_fresh: bool,
) -> float:
    """A step of Newton's method on the weights of one column; how each used state moves, and what is gained.

    `factor` keeps Cholesky's factor of second derivatives, which is computed where it `is_fresh`.

    Used states are pairs of `groups` and `codes`, by increasing code. Rows lose
    `slope * move + curvature / 2 * move ** 2` by the move of their state. `bound`: -1 or 1 where weights have
    a sign.
    """
    n_places, size, n_states, n_points = counts.size, weights.size, codes.size, points.shape[0]
    values, near = np.empty(n_points), np.empty(places.size)
    own_signs, own_multipliers = signs[groups], multipliers[groups]
    starts = np.zeros(n_places + 1, np.int64)
    for at in range(n_places):
        starts[at + 1] = starts[at] + np.searchsorted(codes, counts[at])
    shares, room = np.empty(starts[n_places]), np.empty(starts[n_places])
    start, trial, least, total = np.empty(n_states), np.empty(n_states), np.empty(n_states), np.empty(n_states)
    moved[:] = 0.0
    _evaluate_points(points, weights, values)
    _gather(values, places, near)
    asked = (near, costs, skips, codes, own_signs, own_multipliers, temperature, starts)
    _soften_states(*asked, shares, least, total, start)
    by_value, by_point, by_state = np.zeros(n_points), np.zeros(n_points), np.empty(n_states)
    for at in range(n_states):
        pull = max(-slopes[at], 0.0) / temperature if temperature > 0.0 and n_places > 1 else 0.0
        if total[at] < 1.0 + 1e-9:  # all of it in one place
            pull = 0.0
        slope = own_signs[at] * slopes[at]
        for place in range(n_places):
            if at >= starts[place + 1] - starts[place]:
                break
            shares[starts[place] + at] /= total[at]
            share = shares[starts[place] + at]
            if share != 0.0:
                point = places[skips[place] + codes[at]]
                by_value[point] += slope * share
                by_point[point] += pull * share
        by_state[at] = curvature[at] - pull
    gradient, step, target = penalties * weights, np.empty(size), np.empty(size)
    _add_points(points, by_value, gradient)
    if is_fresh or bound != 0:
        _add_curvature(points, by_point, by_state, places, skips, codes, starts, shares, factor)
        _stabilise(factor, penalties)
        for j in range(size):
            if bound != 0 and weights[j] * bound <= 0.0 and gradient[j] * bound > 0.0:  # held by its bound
                gradient[j] = 0.0
                for k in range(size):
                    if k != j:
                        factor[max(j, k), min(j, k)] = 0.0
        if not _factorise(factor):
            factor[0, 0] = 0.0
    if factor[0, 0] <= 0.0:
        return 0.0
    step[:] = -gradient
    _solve(factor, step)
    promised = 0.0
    for j in range(size):
        promised += gradient[j] * step[j]
    if promised > -1e-18:
        return 0.0
    length = 1.0
    for _ in range(_HALVINGS):
        change = 0.0
        for j in range(size):
            target[j] = weights[j] + length * step[j]
            if bound != 0 and target[j] * bound < 0.0:
                target[j] = 0.0
            change += 0.5 * penalties[j] * (target[j] * target[j] - weights[j] * weights[j])
        _evaluate_points(points, target, values)
        _gather(values, places, near)
        _soften_states(*asked, room, least, total, trial)
        for at in range(n_states):
            moved[at] = trial[at] - start[at]
            change += slopes[at] * moved[at] + 0.5 * curvature[at] * moved[at] * moved[at]
        if change <= _ARMIJO * length * promised:
            weights[:] = target
            return -change
        length *= 0.5
    return 0.0


@compile_loop()
def _fill_common(blocks: Blocks, column: int, by_group: FloatArray, out: FloatArray) -> None:
    """What rows of the commonest code have: that of all rows of their group, less what others have."""
    n_bins, common = blocks.n_bins[column], blocks.common[column]
    for group in range(out.size // n_bins):
        others = 0.0
        for code in range(n_bins):
            if code != common:
                others += out[group * n_bins + code]
        out[group * n_bins + common] = by_group[group] - others


def _sum_states(blocks: Blocks, groups: GroupMap, by_row: FloatArray, by_group: FloatArray, out: FloatArray) -> None:
    """Sums of a number of each row by all states; `by_group`: its sums by groups, (2, n_groups)."""
    for column in range(blocks.n_bins.size):
        kind = 1 if blocks.is_category[column] else 0
        n_bins = blocks.n_bins[column]
        own = out[blocks.first_state[column] : blocks.first_state[column + 1]]
        own[:] = 0.0
        for entry in range(blocks.first_entry[column], blocks.first_entry[column + 1]):
            row = blocks.rows[entry]
            state = groups.of_row[kind, row] * n_bins + blocks.codes[entry]
            share = groups.shares[kind, row]
            own[state] += share * by_row[row]
            if share < 1.0:
                own[state + n_bins] += (1.0 - share) * by_row[row]
        _fill_common(blocks, column, by_group[kind], own)


def _sum_groups(groups: GroupMap, by_row: FloatArray, out: FloatArray) -> None:
    """Sums of a number of each row by groups, (2, n_groups)."""
    out[:] = 0.0
    for kind in range(2):
        for row in range(by_row.size):
            group, share = groups.of_row[kind, row], groups.shares[kind, row]
            out[kind, group] += share * by_row[row]
            if share < 1.0:
                out[kind, group + 1] += (1.0 - share) * by_row[row]


def _couple_groups(groups: GroupMap, by_row: FloatArray, out: FloatArray) -> None:
    """Sums over rows of a number times their shares of two groups, (2, n_groups, 2, n_groups)."""
    out[:] = 0.0
    for row in range(by_row.size):
        for kind in range(2):
            for first in range(2):
                share = groups.shares[kind, row] if first == 0 else 1.0 - groups.shares[kind, row]
                if share == 0.0:
                    continue
                for other in range(2):
                    for second in range(2):
                        part = groups.shares[other, row] if second == 0 else 1.0 - groups.shares[other, row]
                        if part != 0.0:
                            at = groups.of_row[kind, row] + first, groups.of_row[other, row] + second
                            out[kind, at[0], other, at[1]] += share * part * by_row[row]


def _mark_states(blocks: Blocks, groups: GroupMap, every: bool, out: NDArray[np.bool_]) -> None:
    """Which states rows are in, or might be in with other multipliers if `every`; and the commonest code of them."""
    out[:] = False
    has_rows = np.zeros(groups.signs.shape, dtype=np.bool_)
    for kind in range(2):
        half = groups.counts[kind] // 2
        for row in range(groups.of_row.shape[1]):
            group = groups.of_row[kind, row]
            if every:
                has_rows[kind, group - group % half : group - group % half + half] = True
            else:
                has_rows[kind, group] = True
                if groups.shares[kind, row] < 1.0:
                    has_rows[kind, group + 1] = True
    for column in range(blocks.n_bins.size):
        kind = 1 if blocks.is_category[column] else 0
        n_bins, half = blocks.n_bins[column], groups.counts[kind] // 2
        own = out[blocks.first_state[column] : blocks.first_state[column + 1]]
        for group in range(groups.counts[kind]):
            own[group * n_bins + blocks.common[column]] = has_rows[kind, group]
        for entry in range(blocks.first_entry[column], blocks.first_entry[column + 1]):
            row = blocks.rows[entry]
            group, code = groups.of_row[kind, row], blocks.codes[entry]
            if every:
                for at in range(group - group % half, group - group % half + half):
                    own[at * n_bins + code] = True
            else:
                own[group * n_bins + code] = True
                if groups.shares[kind, row] < 1.0:
                    own[(group + 1) * n_bins + code] = True


def _evaluate(blocks: Blocks, weights: FloatArray, near: FloatArray) -> None:
    """The value of each place of each code of each column."""
    values = np.empty(blocks.n_points.max() if blocks.n_points.size else 0)
    for column in range(blocks.n_bins.size):
        size, n_points = blocks.n_weights[column], blocks.n_points[column]
        begin, start = blocks.first_point[column], blocks.first_weight[column]
        points = blocks.points[begin : begin + n_points * size].reshape(n_points, size)
        _evaluate_points(points, weights[start : start + size], values[:n_points])
        own = slice(blocks.first_place[column], blocks.first_place[column + 1])
        _gather(values, blocks.places[own], near[own])


def _tabulate(
    blocks: Blocks,
    groups: GroupMap,
    every_near: FloatArray,
    temperature: float,
    needed: NDArray[np.bool_],
    worth: FloatArray,
    spent: FloatArray,
) -> None:
    """What each state of each column that is needed is worth, and what its change costs."""
    most, most_places = groups.signs.shape[1], blocks.n_places.max() if blocks.n_places.size else 0
    signs, multipliers, listed = np.empty(most), np.empty(most), np.empty(most, dtype=np.int64)
    own_worth, own_spent, room = np.empty(most), np.empty(most), np.empty((most_places + 2) * most)
    own, near, costs = np.empty(most_places, np.int64), np.empty(most_places), np.empty(most_places)
    for column in range(blocks.n_bins.size):
        kind = 1 if blocks.is_category[column] else 0
        n_bins, low = blocks.n_bins[column], blocks.first_place[column]
        counts, skips = _read_counts(blocks, column)
        for code in range(n_bins):
            count, state = 0, blocks.first_state[column] + code
            for group in range(groups.counts[kind]):
                if needed[state]:
                    signs[count], multipliers[count] = groups.signs[kind, group], groups.multipliers[kind, group]
                    listed[count] = state
                    count += 1
                state += n_bins
            n_places = _list_places(code, counts, skips, own)
            for at in range(n_places):
                near[at], costs[at] = every_near[low + own[at]], blocks.costs[low + own[at]]
            _soften_groups(
                near[:n_places],
                costs[:n_places],
                signs[:count],
                multipliers[:count],
                temperature,
                room[: (n_places + 2) * count].reshape(n_places + 2, count),
                own_worth[:count],
                own_spent[:count],
            )
            for at in range(count):
                worth[listed[at]] = own_worth[at]
                if temperature > 0.0:
                    spent[listed[at]] = own_spent[at]


def _add_margins(blocks: Blocks, groups: GroupMap, worth: FloatArray, start: FloatArray, margins: FloatArray) -> None:
    """Margins of all rows; `start`, (2, n_groups): what rows of each group begin with."""
    begin = start.copy()
    for column in range(blocks.n_bins.size):
        kind = 1 if blocks.is_category[column] else 0
        first, n_bins = blocks.first_state[column], blocks.n_bins[column]
        for group in range(groups.counts[kind]):
            begin[kind, group] += worth[first + group * n_bins + blocks.common[column]]
    for row in range(margins.size):
        margins[row] = 0.0
        for kind in range(2):
            group, share = groups.of_row[kind, row], groups.shares[kind, row]
            margins[row] += share * begin[kind, group]
            if share < 1.0:
                margins[row] += (1.0 - share) * begin[kind, group + 1]
    for column in range(blocks.n_bins.size):
        kind = 1 if blocks.is_category[column] else 0
        first, n_bins, common = blocks.first_state[column], blocks.n_bins[column], blocks.common[column]
        for entry in range(blocks.first_entry[column], blocks.first_entry[column + 1]):
            row = blocks.rows[entry]
            state = first + groups.of_row[kind, row] * n_bins
            code, share = blocks.codes[entry], groups.shares[kind, row]
            margins[row] += share * (worth[state + code] - worth[state + common])
            if share < 1.0:
                state += n_bins
                margins[row] += (1.0 - share) * (worth[state + code] - worth[state + common])


def _add_multipliers(
    blocks: Blocks, kind: int, n_multipliers: int, target: NDArray[np.uint8], worth: FloatArray, totals: FloatArray
) -> None:
    """Add to `totals`, (n_rows, n_multipliers), what columns of a kind are worth at each multiplier of a row."""
    common_totals = np.zeros((2, n_multipliers))
    for column in range(blocks.n_bins.size):
        if (1 if blocks.is_category[column] else 0) != kind:
            continue
        first, n_bins, common = blocks.first_state[column], blocks.n_bins[column], blocks.common[column]
        for label in range(2):
            for at in range(n_multipliers):
                common_totals[label, at] += worth[first + (label * n_multipliers + at) * n_bins + common]
        for entry in range(blocks.first_entry[column], blocks.first_entry[column + 1]):
            row = blocks.rows[entry]
            state = first + target[row] * n_multipliers * n_bins
            code = blocks.codes[entry]
            for at in range(n_multipliers):
                totals[row, at] += worth[state + at * n_bins + code] - worth[state + at * n_bins + common]
    for row in range(totals.shape[0]):
        for at in range(n_multipliers):
            totals[row, at] += common_totals[target[row], at]


def _sweep(  # noqa: PLR0912 - one compiled loop, whose arrays stay where they are
    blocks: Blocks,
    groups: GroupMap,
    columns: IntArray,
    bounds: IntArray,
    penalties: FloatArray,
    temperature: float,
    curvature: FloatArray,
    by_state: FloatArray,
    coupling: FloatArray,
    by_group: FloatArray,
    slopes: FloatArray,
    offsets: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    factors: FloatArray,
    is_fresh: bool,
) -> None:
    """Visit columns one after the other, and the intercept after each; what each visit gains.

    `curvature` of rows stays; `by_state` are its sums by states, `coupling` those by pairs of groups. `slopes` of rows
    follow all moves: those of whole groups by `offsets`, so that a row's slope is `slopes + curvature * offsets`, and
    `by_group` are the sums of that.
    """
    at_factor = 0
    for column in columns:
        kind = 1 if blocks.is_category[column] else 0
        n_bins, common = blocks.n_bins[column], blocks.common[column]
        size, n_points = blocks.n_weights[column], blocks.n_points[column]
        n_groups = groups.counts[kind]
        own_slopes = np.zeros(n_groups * n_bins)
        for entry in range(blocks.first_entry[column], blocks.first_entry[column + 1]):
            row = blocks.rows[entry]
            slope = slopes[row] + curvature[row] * _offset(groups, offsets, row)
            state, share = groups.of_row[kind, row] * n_bins + blocks.codes[entry], groups.shares[kind, row]
            own_slopes[state] += share * slope
            if share < 1.0:
                own_slopes[state + n_bins] += (1.0 - share) * slope
        _fill_common(blocks, column, by_group[kind], own_slopes)
        first = blocks.first_state[column]
        own_curvature = by_state[first : first + n_groups * n_bins]
        order = np.flatnonzero(own_curvature.reshape(n_groups, n_bins).T.copy().ravel() > _UNUSED)  # by code
        used_groups, codes = order % n_groups, order // n_groups
        used = used_groups * n_bins + codes
        begin, start = blocks.first_point[column], blocks.first_weight[column]
        low, high = blocks.first_place[column], blocks.first_place[column + 1]
        counts, skips = _read_counts(blocks, column)
        moved = np.empty(used.size)
        gains[column] = _visit(
            blocks.points[begin : begin + n_points * size].reshape(n_points, size),
            blocks.places[low:high],
            blocks.costs[low:high],
            counts,
            skips,
            groups.signs[kind],
            groups.multipliers[kind],
            used_groups,
            codes,
            own_slopes[used],
            own_curvature[used],
            penalties[start : start + size],
            bounds[column],
            temperature,
            weights[start : start + size],
            moved,
            factors[at_factor : at_factor + size * size].reshape(size, size),
            is_fresh,
        )
        at_factor += size * size
        if gains[column] > 0.0:
            moves = np.zeros(n_groups * n_bins)
            moves[used] = moved
            for entry in range(blocks.first_entry[column], blocks.first_entry[column + 1]):
                row = blocks.rows[entry]
                state, share = groups.of_row[kind, row] * n_bins, groups.shares[kind, row]
                code = blocks.codes[entry]
                change = share * (moves[state + code] - moves[state + common])
                if share < 1.0:
                    change += (1.0 - share) * (moves[state + n_bins + code] - moves[state + n_bins + common])
                if change != 0.0:
                    change *= curvature[row]
                    slopes[row] += change
                    for other in range(2):
                        group, part = groups.of_row[other, row], groups.shares[other, row]
                        by_group[other, group] += part * change
                        if part < 1.0:
                            by_group[other, group + 1] += (1.0 - part) * change
            for group in range(n_groups):
                _shift_group(groups, kind, group, moves[group * n_bins + common], coupling, by_group, offsets)
        left, bend = 0.0, 0.0
        for group in range(groups.counts[0]):
            left += groups.signs[0, group] * by_group[0, group]
            for other in range(groups.counts[0]):
                bend += coupling[0, group, 0, other]
        if bend > 0.0:
            weights[0] -= left / bend
            for group in range(groups.counts[0]):
                _shift_group(groups, 0, group, -groups.signs[0, group] * left / bend, coupling, by_group, offsets)


@compile_loop()
def _offset(groups: GroupMap, offsets: FloatArray, row: int) -> float:
    total = 0.0
    for kind in range(2):
        group, share = groups.of_row[kind, row], groups.shares[kind, row]
        total += share * offsets[kind, group]
        if share < 1.0:
            total += (1.0 - share) * offsets[kind, group + 1]
    return total


@compile_loop()
def _shift_group(
    groups: GroupMap,
    kind: int,
    group: int,
    move: float,
    coupling: FloatArray,
    by_group: FloatArray,
    offsets: FloatArray,
) -> None:
    """Move the margins of all rows of a group."""
    if move == 0.0:
        return
    offsets[kind, group] += move
    for other in range(2):
        for at in range(groups.counts[other]):
            by_group[other, at] += coupling[kind, group, other, at] * move


def _pass_back(
    blocks: Blocks,
    groups: GroupMap,
    every_near: FloatArray,
    temperature: float,
    by_state: FloatArray,
    gradient: FloatArray,
) -> None:
    """Slopes by all weights but the intercept, from those by states."""
    for column in range(blocks.n_bins.size):
        kind = 1 if blocks.is_category[column] else 0
        most, size, n_points = blocks.n_places[column], blocks.n_weights[column], blocks.n_points[column]
        begin, low, start = blocks.first_point[column], blocks.first_place[column], blocks.first_weight[column]
        points = blocks.points[begin : begin + n_points * size].reshape(n_points, size)
        counts, skips = _read_counts(blocks, column)
        near, costs, shares, by_value = np.empty(most), np.empty(most), np.empty(most), np.zeros(n_points)
        own, n_bins = np.empty(most, np.int64), blocks.n_bins[column]
        for code in range(n_bins):
            n_places = _list_places(code, counts, skips, own)
            for at in range(n_places):
                near[at], costs[at] = every_near[low + own[at]], blocks.costs[low + own[at]]
            for group in range(groups.counts[kind]):
                factor = by_state[blocks.first_state[column] + group * n_bins + code]
                if factor != 0.0:
                    sign, multiplier = groups.signs[kind, group], groups.multipliers[kind, group]
                    _soften(near[:n_places], costs[:n_places], sign, multiplier, temperature, shares[:n_places])
                    for at in range(n_places):
                        by_value[blocks.places[low + own[at]]] += sign * factor * shares[at]
        _add_points(points, by_value, gradient[start : start + size])


sum_states: Compiled = compile_loop()(_sum_states)
sum_groups: Compiled = compile_loop()(_sum_groups)
couple_groups: Compiled = compile_loop()(_couple_groups)
mark_states: Compiled = compile_loop()(_mark_states)
evaluate: Compiled = compile_loop()(_evaluate)
tabulate: Compiled = compile_loop()(_tabulate)
add_margins: Compiled = compile_loop()(_add_margins)
add_multipliers: Compiled = compile_loop()(_add_multipliers)
sweep: Compiled = compile_loop()(_sweep)
pass_back: Compiled = compile_loop()(_pass_back)
