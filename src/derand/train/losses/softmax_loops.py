"""Compiled loops of training for several classes: arrays in, arrays out, serial and without the GIL.

Callers run classes in threads; every class has tables of its own, so that sums do not depend on how many threads there
are. The axis of classes is the last one everywhere, and contiguous. Must not know what the numbers mean. For training,
never for a certificate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import Compiled, compile_loop


def _fill_rivals(values: FloatArray, slopes: FloatArray, label: int, power: float, out: NDArray[np.generic]) -> None:
    """What each code adds to the lead of a class over every other, and how steep that lead is, to a power.

    `values` and `slopes` have shape (n_codes, n_classes); the second is empty where steepness does not count. `out`
    holds leads first, then what steepness adds, then nothing, up to its width.
    """
    n_classes = values.shape[1]
    for code in range(values.shape[0]):
        for rival in range(n_classes):
            out[code, rival] = values[code, label] - values[code, rival]
    for code in range(slopes.shape[0]):
        for rival in range(n_classes):
            size = abs(slopes[code, label] - slopes[code, rival])
            out[code, n_classes + rival] = size * size if power == 2.0 else size**power


def _spread_rivals(
    values_by: NDArray[np.generic],
    slopes: FloatArray,
    label: int,
    power: float,
    by_value: FloatArray,
    by_slope: FloatArray,
) -> None:
    """Add slopes by what `_fill_rivals` filled in to those by values and slopes of all classes."""
    n_classes = by_value.shape[1]
    for code in range(by_value.shape[0]):
        total = 0.0
        for rival in range(n_classes):
            part = values_by[code, rival]
            total += part
            by_value[code, rival] -= part
        by_value[code, label] += total
    for code in range(slopes.shape[0]):
        total = 0.0
        for rival in range(n_classes):
            difference = slopes[code, label] - slopes[code, rival]
            size = abs(difference)
            rise = 2.0 * size if power == 2.0 else power * size ** (power - 1.0)
            part = values_by[code, n_classes + rival] * math.copysign(rise, difference)
            total += part
            by_slope[code, rival] -= part
        by_slope[code, label] += total


def _add_leads(
    codes: NDArray[np.generic], offsets: IntArray, tables: NDArray[np.generic], out: NDArray[np.generic]
) -> None:
    """Add what all codes of each row have in the tables to `out`, (n_rows, width)."""
    for row in range(codes.shape[0]):
        total = out[row]
        for column in range(codes.shape[1]):
            part = tables[offsets[column] + codes[row, column]]
            for at in range(total.size):
                total[at] += part[at]


def _scatter_leads(
    codes: NDArray[np.generic], offsets: IntArray, slopes: NDArray[np.generic], out: NDArray[np.generic]
) -> None:
    """Add the slopes of each row, (n_rows, width), to those of all its codes."""
    for row in range(codes.shape[0]):
        part = slopes[row]
        for column in range(codes.shape[1]):
            total = out[offsets[column] + codes[row, column]]
            for at in range(part.size):
                total[at] += part[at]


def _lose_leads(
    leads: NDArray[np.generic],
    label: int,
    n_classes: int,
    radius: float,
    power: float,
    least: float,
    weights: FloatArray,
    starts: FloatArray,
    margins: FloatArray,
    by_start: FloatArray,
) -> float:
    """Loss of some rows of a class; leads become the loss's slopes by them.

    The loss of a row is log(1 + sum over rivals of exp(-margin)); the margin is the lead and its start, less radius
    times the root of what its steepness adds up to, which counts from `least` on. Margins have shape
    (n_rows, n_classes), infinite for the class itself.
    """
    loss = 0.0
    width = leads.shape[1]
    floor = least ** (1.0 / power) if radius > 0.0 else 0.0
    for row in range(leads.shape[0]):
        worst = 0.0
        for rival in range(n_classes):
            margin = leads[row, rival] + starts[rival]
            if radius > 0.0:
                total = leads[row, n_classes + rival] + least
                root = math.sqrt(total) if power == 2.0 else total ** (1.0 / power)
                margin -= radius * (root - floor)
                leads[row, n_classes + rival] = root / (power * total)  # slope of the root
            if rival == label:
                margin = math.inf
            margins[row, rival] = margin
            worst = min(worst, margin)
        total = math.exp(worst)
        for rival in range(n_classes):
            total += math.exp(worst - margins[row, rival])
        loss += weights[row] * (math.log(total) - worst)
        for rival in range(n_classes):
            slope = -weights[row] * math.exp(worst - margins[row, rival]) / total
            by_start[rival] += slope
            leads[row, rival] = slope
            if radius > 0.0:
                leads[row, n_classes + rival] *= -radius * slope
        for at in range((2 if radius > 0.0 else 1) * n_classes, width):
            leads[row, at] = 0.0
    return loss


def _add_up(
    codes: NDArray[np.generic],
    offsets: IntArray,
    n_numerical: int,
    groups: NDArray[np.int32],
    category_groups: NDArray[np.int32],
    tables: FloatArray,
    category_tables: FloatArray,
    out: FloatArray,
) -> None:
    """Add what the codes of each row are worth in its groups to `out`, (n_rows,)."""
    n_columns = codes.shape[1]
    for row in range(codes.shape[0]):
        group, category_group = groups[row], category_groups[row]
        total = 0.0
        for column in range(n_numerical):
            total += tables[group, offsets[column] + codes[row, column]]
        for column in range(n_numerical, n_columns):
            total += category_tables[category_group, offsets[column] + codes[row, column]]
        out[row] += total


def _scatter(
    codes: NDArray[np.generic],
    offsets: IntArray,
    n_numerical: int,
    groups: NDArray[np.int32],
    category_groups: NDArray[np.int32],
    row_slopes: FloatArray,
    slopes: FloatArray,
    category_slopes: FloatArray,
) -> None:
    """Add the slope of each row to those of all its codes in its groups."""
    n_columns = codes.shape[1]
    for row in range(codes.shape[0]):
        group, category_group, slope = groups[row], category_groups[row], row_slopes[row]
        for column in range(n_numerical):
            slopes[group, offsets[column] + codes[row, column]] += slope
        for column in range(n_numerical, n_columns):
            category_slopes[category_group, offsets[column] + codes[row, column]] += slope


fill_rivals: Compiled = compile_loop()(_fill_rivals)
spread_rivals: Compiled = compile_loop()(_spread_rivals)
add_leads: Compiled = compile_loop()(_add_leads)
scatter_leads: Compiled = compile_loop()(_scatter_leads)
lose_leads: Compiled = compile_loop()(_lose_leads)
add_up: Compiled = compile_loop()(_add_up)
scatter: Compiled = compile_loop()(_scatter)
