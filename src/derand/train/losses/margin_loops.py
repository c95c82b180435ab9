"""Compiled loops of training for a certified margin: arrays in, arrays out, serial and without the GIL.

Callers run blocks of rows or of columns in threads; which blocks there are does not depend on how many threads, so that
a trained model does not, either. Must not know what the numbers mean. For training, never for a certificate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import Compiled, compile_loop

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_FAINT = 30.0  # a share of exp(-30) does not count
LOSS_STEPS = 4096.0
"""Losses of rows are rounded so much coarser than slopes where sums are to be the same in any order."""
LARGEST_LOSS = 4000.0
"""What a row of weight 1 loses at most there; no weights that are fitted come near it."""


def _index_edges(edges: FloatArray, starts: IntArray, origins: FloatArray, scales: FloatArray, index: IntArray) -> None:
    """Fill in how many edges of each column lie in cells before each of `index.shape[1] - 1` even cells.

    A value's cell is the whole part of (value - origin) * scale, which never falls where the value rises: so edges in
    cells before a value's own are not above it, rounding or not.
    """
    last = index.shape[1] - 2
    for place in range(starts.size - 1):
        index[place] = 0
        for at in range(starts[place], starts[place + 1]):
            cell = min(max((edges[at] - origins[place]) * scales[place], 0.0), last)
            index[place, int(cell) + 1] += 1
        for cell in range(1, last + 2):
            index[place, cell] += index[place, cell - 1]


def _code_values(
    X: FloatArray,
    columns: IntArray,
    edges: FloatArray,
    starts: IntArray,
    origins: FloatArray,
    scales: FloatArray,
    index: IntArray,
    missing_codes: IntArray,
    codes: NDArray[np.generic],
) -> None:
    """Code of each value: how many edges of its column are not above it; `missing_codes` of the column for NaN."""
    last = index.shape[1] - 2
    for row in range(X.shape[0]):
        for place in range(columns.size):
            value = X[row, columns[place]]
            if value != value:  # noqa: PLR0124 - NaN
                codes[row, place] = missing_codes[place]
                continue
            cell = int(min(max((value - origins[place]) * scales[place], 0.0), last))
            low, high = starts[place] + index[place, cell], starts[place] + index[place, cell + 1]
            while low < high:
                middle = (low + high) // 2
                if edges[middle] <= value:
                    low = middle + 1
                else:
                    high = middle
            codes[row, place] = low - starts[place]


def _hash_rows(codes: NDArray[np.generic], target: NDArray[np.uint8], seed: np.uint64, out: NDArray[np.uint64]) -> None:
    """A number for each row that depends on its codes, its label and a seed alone."""
    for row in range(codes.shape[0]):
        mixed = (seed + np.uint64(target[row])) * _MIX
        for place in range(codes.shape[1]):
            mixed = (mixed ^ np.uint64(codes[row, place]) ^ (mixed >> _SHIFT)) * _MIX
        out[row] = mixed ^ (mixed >> _SHIFT)


def _sum_residuals(
    codes: NDArray[np.generic], n_numerical: int, left: FloatArray, sums: FloatArray, counts: FloatArray
) -> None:
    """Add a number of each row, and 1, to those of its code in each numerical column."""
    for row in range(codes.shape[0]):
        for column in range(n_numerical):
            sums[column, codes[row, column]] += left[row]
            counts[column, codes[row, column]] += 1.0


class Columns(NamedTuple):
    """Numerical columns one after the other.

    Attributes
    ----------
    n_bins, n_places, n_weights : arrays of shape (n_columns,)
        Of each; its weights are those of its basis, and one for what is missing where `has_missing`.
    points, starts, offsets : arrays of shape (n_columns,)
        Where its places begin among all places, its weights among all weights, its codes among all codes.
    has_missing : array of shape (n_columns,)
    basis : array of shape (n_numbers,)
        What each weight adds at each place; from `first` on.
    first : array of shape (n_columns,)
    costs : array of shape (n_points,)
    """

    n_bins: IntArray
    n_places: IntArray
    n_weights: IntArray
    points: IntArray
    starts: IntArray
    offsets: IntArray
    has_missing: NDArray[np.bool_]
    basis: NDArray[np.float32]
    first: IntArray
    costs: FloatArray


def _fill_tables(
    columns: Columns,
    block: tuple[int, int],
    weights: FloatArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    used: NDArray[np.bool_],
    values: FloatArray,
    worth: FloatArray,
) -> None:
    """Values of some columns at all their places, and what each code is worth in each group where it is used."""
    for column in range(block[0], block[1]):
        n_bins, n_places, size = columns.n_bins[column], columns.n_places[column], columns.n_weights[column]
        point, start, offset = columns.points[column], columns.starts[column], columns.offsets[column]
        n_points = n_bins * n_places
        basis = columns.basis[columns.first[column] : columns.first[column] + n_points * size].reshape(n_points, size)
        own = values[point : point + n_points]
        _multiply(basis, weights[start : start + size], own)
        costs = columns.costs[point : point + n_points].reshape(n_bins, n_places)
        part = slice(offset, offset + n_bins)
        _minimise(own.reshape(n_bins, n_places), costs, signs, multipliers, temperature, used[:, part], worth[:, part])
        missing = weights[start + size] if columns.has_missing[column] else 0.0
        for row in range(signs.size):
            worth[row, offset + n_bins] = signs[row] * missing


def _spread_columns(
    columns: Columns,
    block: tuple[int, int],
    values: FloatArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    slopes: FloatArray,
    gradient: FloatArray,
) -> None:
    """Slopes by the weights of some columns, from those by what codes are worth."""
    for column in range(block[0], block[1]):
        n_bins, n_places, size = columns.n_bins[column], columns.n_places[column], columns.n_weights[column]
        point, start, offset = columns.points[column], columns.starts[column], columns.offsets[column]
        n_points = n_bins * n_places
        basis = columns.basis[columns.first[column] : columns.first[column] + n_points * size].reshape(n_points, size)
        own = values[point : point + n_points].reshape(n_bins, n_places)
        costs = columns.costs[point : point + n_points].reshape(n_bins, n_places)
        by_value = np.zeros((n_bins, n_places))
        _spread_slopes(own, costs, signs, multipliers, temperature, slopes[:, offset : offset + n_bins], by_value)
        _multiply_back(basis, by_value.ravel(), gradient[start : start + size])
        if columns.has_missing[column]:
            total = 0.0
            for group in range(signs.size):
                total += signs[group] * slopes[group, offset + n_bins]
            gradient[start + size] = total


def _solve_blocks(
    firsts: IntArray, sizes: IntArray, places: IntArray, upper: FloatArray, transposed: bool, vector: FloatArray
) -> None:
    """Solve triangular systems in place, those of blocks of a vector; each upper triangle is given by rows."""
    for block in range(firsts.size):
        first, size = firsts[block], sizes[block]
        matrix = upper[places[block] : places[block] + size * size].reshape(size, size)
        own = vector[first : first + size]
        if transposed:
            for i in range(size):
                own[i] /= matrix[i, i]
                for j in range(i + 1, size):
                    own[j] -= matrix[i, j] * own[i]
        else:
            for i in range(size - 1, -1, -1):
                total = own[i]
                for j in range(i + 1, size):
                    total -= matrix[i, j] * own[j]
                own[i] = total / matrix[i, i]


@compile_loop()
def _multiply(basis: NDArray[np.float32], weights: FloatArray, out: FloatArray) -> None:
    """`basis @ weights`, in a fixed order."""
    size = weights.size
    whole = size - size % 4
    for point in range(basis.shape[0]):
        a = b = c = d = 0.0
        for j in range(0, whole, 4):
            a += basis[point, j] * weights[j]
            b += basis[point, j + 1] * weights[j + 1]
            c += basis[point, j + 2] * weights[j + 2]
            d += basis[point, j + 3] * weights[j + 3]
        for j in range(whole, size):
            a += basis[point, j] * weights[j]
        out[point] = (a + b) + (c + d)


@compile_loop()
def _multiply_back(basis: NDArray[np.float32], slopes: FloatArray, out: FloatArray) -> None:
    """`slopes @ basis`, in a fixed order."""
    out[:] = 0.0
    for point in range(basis.shape[0]):
        slope = slopes[point]
        if slope != 0.0:
            for j in range(out.size):
                out[j] += slope * basis[point, j]


def _mark_used(
    codes: NDArray[np.generic], offsets: IntArray, n_numerical: int, groups: NDArray[np.int32], used: NDArray[np.bool_]
) -> None:
    """Mark the codes of numerical columns that occur in each group of rows."""
    for row in range(codes.shape[0]):
        for column in range(n_numerical):
            used[groups[row], offsets[column] + codes[row, column]] = True


@compile_loop()
def _minimise(
    values: FloatArray,
    costs: FloatArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    used: NDArray[np.bool_],
    out: FloatArray,
) -> None:
    """Least of sign * value + multiplier * cost over the places that each bin can reach, per group, (n_groups, n_bins).

    At a temperature t the soft minimum, `-t * log(mean(exp(-. / t)))`. Bins that are not used are left out.
    """
    n_places = values.shape[1]
    for group in range(signs.size):
        sign, multiplier = signs[group], multipliers[group]
        for at in range(values.shape[0]):
            if not used[group, at]:
                continue
            least = math.inf
            for place in range(n_places):
                value = sign * values[at, place] + multiplier * costs[at, place]
                if value < least:  # noqa: PLR1730 - compiled, this is a single instruction
                    least = value
            if temperature > 0.0 and n_places > 1:
                total = 0.0
                for place in range(n_places):
                    above = (sign * values[at, place] + multiplier * costs[at, place] - least) / temperature
                    if above < _FAINT:
                        total += math.exp(-above)
                least -= temperature * math.log(total / n_places)
            out[group, at] = least


@compile_loop()
def _spread_slopes(
    values: FloatArray,
    costs: FloatArray,
    signs: FloatArray,
    multipliers: FloatArray,
    temperature: float,
    slopes: FloatArray,
    out: FloatArray,
) -> None:
    """Add the slopes by each bin's least value to those by the values at its places, (n_bins, n_places)."""
    n_places = values.shape[1]
    shares = np.empty(n_places)
    for group in range(signs.size):
        sign, multiplier = signs[group], multipliers[group]
        for at in range(values.shape[0]):
            slope = slopes[group, at] * sign
            if slope == 0.0:
                continue
            least, where = math.inf, 0
            for place in range(n_places):
                value = sign * values[at, place] + multiplier * costs[at, place]
                shares[place] = value
                if value < least:
                    least, where = value, place
            if temperature <= 0.0:
                out[at, where] += slope
                continue
            total = 0.0
            for place in range(n_places):
                above = (shares[place] - least) / temperature
                shares[place] = math.exp(-above) if above < _FAINT else 0.0
                total += shares[place]
            for place in range(n_places):
                out[at, place] += slope * shares[place] / total


def _add_rows(
    codes: NDArray[np.generic],
    offsets: IntArray,
    n_numerical: int,
    signs: FloatArray,
    groups: NDArray[np.int32],
    category_groups: NDArray[np.int32],
    weights: FloatArray,
    tables: FloatArray,
    category_tables: FloatArray,
    budget_costs: FloatArray,
    category_costs: FloatArray,
    intercept: float,
    slopes: FloatArray,
    category_slopes: FloatArray,
    first_group: int,
    margins: FloatArray,
    grid: float,
) -> tuple[float, float]:
    """Add the slopes of the log-loss of some rows to those by all tables; give the loss and its slope by the intercept.

    `tables` holds what each code of a numerical column is worth, per group of rows; `category_tables` the same for
    categorical columns. `slopes` begins at `first_group`. With a grid, a power of two, every row adds whole multiples
    of `1 / grid` to slopes, and of `LOSS_STEPS / grid` to the loss: sums are then the same in any order, while they are
    below 2**53 such multiples.
    """
    loss, by_intercept = 0.0, 0.0
    n_columns = codes.shape[1]
    for row in range(codes.shape[0]):
        group, category_group = groups[row], category_groups[row]
        margin = signs[row] * intercept - budget_costs[group] - category_costs[category_group]
        for column in range(n_numerical):
            margin += tables[group, offsets[column] + codes[row, column]]
        for column in range(n_numerical, n_columns):
            margin += category_tables[category_group, offsets[column] + codes[row, column]]
        margins[row] = margin
        if margin > 0:
            small = math.exp(-margin)
            own = weights[row] * math.log1p(small)
            slope = -weights[row] * small / (1.0 + small)
        else:
            small = math.exp(margin)
            own = weights[row] * (math.log1p(small) - margin)
            slope = -weights[row] / (1.0 + small)
        if grid > 0.0:
            own = min(own, weights[row] * LARGEST_LOSS)
            own = math.floor(own * (grid / LOSS_STEPS) + 0.5) * (LOSS_STEPS / grid)
            slope = math.floor(slope * grid + 0.5) / grid
        loss += own
        by_intercept += slope * signs[row]
        for column in range(n_numerical):
            slopes[group - first_group, offsets[column] + codes[row, column]] += slope
        for column in range(n_numerical, n_columns):
            category_slopes[category_group, offsets[column] + codes[row, column]] += slope
    return loss, by_intercept


def _choose_groups(
    codes: NDArray[np.generic],
    offsets: IntArray,
    columns: tuple[int, int],
    target: NDArray[np.uint8],
    tables: FloatArray,
    budget_costs: FloatArray,
    out: NDArray[np.int32],
) -> None:
    """The group of largest worth for each row among those of its label, by some of the columns.

    The first half of the groups belongs to label 0, the other half to label 1.
    """
    n_multipliers = budget_costs.size // 2
    for row in range(codes.shape[0]):
        first = target[row] * n_multipliers
        best, where = -math.inf, first
        for group in range(first, first + n_multipliers):
            total = -budget_costs[group]
            for column in range(columns[0], columns[1]):
                total += tables[group, offsets[column] + codes[row, column]]
            if total > best:
                best, where = total, group
        out[row] = where


index_edges: Compiled = compile_loop()(_index_edges)
code_values: Compiled = compile_loop()(_code_values)
hash_rows: Compiled = compile_loop()(_hash_rows)
sum_residuals: Compiled = compile_loop()(_sum_residuals)
mark_used: Compiled = compile_loop()(_mark_used)
fill_tables: Compiled = compile_loop()(_fill_tables)
spread_columns: Compiled = compile_loop()(_spread_columns)
solve_blocks: Compiled = compile_loop()(_solve_blocks)
add_rows: Compiled = compile_loop()(_add_rows)
choose_groups: Compiled = compile_loop()(_choose_groups)
