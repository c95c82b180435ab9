"""Compiled loops of training functions of many groups: arrays in, arrays out, serial and without the GIL.

A block is a group of columns, or a single one; its functions are all products of one function of each of its columns,
which are looked up by code. The axis of classes is the last one everywhere, contiguous and padded. Callers run parts
of the rows in threads, each with slopes of its own. Must not know what the numbers mean. For training, never for a
certificate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import compile_loop

FloatTable = NDArray[np.float32]


class Blocks(NamedTuple):
    """Functions of all blocks.

    Attributes
    ----------
    axis_starts : array of shape (n_blocks + 1,)
        The axes of block b are those from `axis_starts[b]` to `axis_starts[b + 1] - 1`.
    columns, sizes, offsets : arrays of shape (n_axes,)
        Which column of the codes an axis reads, how many functions it has, and where those of its code 0 begin.
    values, slopes : flat arrays
        Of each function at each code, code after code.
    starts : array of shape (n_blocks + 1,)
        Where the weights of each block begin.
    """

    axis_starts: IntArray
    columns: IntArray
    sizes: IntArray
    offsets: IntArray
    values: FloatTable
    slopes: FloatTable
    starts: IntArray


@compile_loop(error_model="numpy")
def _multiply(
    blocks: Blocks, block: int, codes: NDArray[np.generic], row: int, out: FloatTable, spare: FloatTable
) -> int:
    """The functions of a block at a row, in `out[0]`, and their slopes along each axis after them; how many there are.

    Entry (i, j, ...) is that of function i of the first axis, j of the second, ..., in C order.
    """
    first, last = blocks.axis_starts[block], blocks.axis_starts[block + 1]
    size = 1
    out[0, 0] = np.float32(1.0)
    for axis in range(first, last):
        n_own, own = blocks.sizes[axis], axis - first
        begin = blocks.offsets[axis] + codes[row, blocks.columns[axis]] * n_own
        for line in range(own + 1):
            for at in range(size):
                spare[line, at] = out[line, at]
        for line in range(own + 1):
            for at in range(size):
                for k in range(n_own):
                    out[line, at * n_own + k] = spare[line, at] * blocks.values[begin + k]
        for at in range(size):
            for k in range(n_own):
                out[own + 1, at * n_own + k] = spare[0, at] * blocks.slopes[begin + k]
        size *= n_own
    return size


@compile_loop(error_model="numpy")
def add_products(
    codes: NDArray[np.generic],
    blocks: Blocks,
    weights: FloatTable,
    scores: FloatTable,
    slopes: FloatTable,
    functions: FloatTable,
    spare: FloatTable,
) -> None:
    """Add scores of all classes, (n_rows, width), and fill in their slopes along each axis, (n_rows, n_axes, width)."""
    width = weights.shape[1]
    for block in range(blocks.starts.size - 1):
        first, n_own = blocks.axis_starts[block], blocks.axis_starts[block + 1] - blocks.axis_starts[block]
        start = blocks.starts[block]
        for row in range(codes.shape[0]):
            size = _multiply(blocks, block, codes, row, functions, spare)
            total = scores[row]
            for at in range(size):
                one = functions[0, at]
                part = weights[start + at]
                for k in range(width):
                    total[k] += one * part[k]
            for axis in range(n_own):
                slope = slopes[row, first + axis]
                slope[:] = np.float32(0.0)
                for at in range(size):
                    one = functions[1 + axis, at]
                    part = weights[start + at]
                    for k in range(width):
                        slope[k] += one * part[k]


@compile_loop(error_model="numpy")
def spread_products(
    codes: NDArray[np.generic],
    blocks: Blocks,
    by_score: FloatTable,
    by_slope: FloatTable,
    out: FloatTable,
    functions: FloatTable,
    spare: FloatTable,
) -> None:
    """Add slopes by the weights to `out`, from those by scores and by slopes along each axis."""
    width = out.shape[1]
    for block in range(blocks.starts.size - 1):
        first, n_own = blocks.axis_starts[block], blocks.axis_starts[block + 1] - blocks.axis_starts[block]
        start = blocks.starts[block]
        for row in range(codes.shape[0]):
            size = _multiply(blocks, block, codes, row, functions, spare)
            given = by_score[row]
            for at in range(size):
                total, one = out[start + at], functions[0, at]
                for k in range(width):
                    total[k] += one * given[k]
            for axis in range(n_own):
                slope = by_slope[row, first + axis]
                for at in range(size):
                    total, one = out[start + at], functions[1 + axis, at]
                    for k in range(width):
                        total[k] += one * slope[k]


@compile_loop(error_model="numpy")
def lose_products(
    scores: FloatTable,
    slopes: FloatTable,
    target: NDArray[np.generic],
    weights: FloatArray,
    n_classes: int,
    radius: float,
    power: float,
    least: float,
    margins: FloatArray,
) -> float:
    """Loss of some rows; scores and slopes become the loss's slopes by them, margins those over each rival.

    A margin is the lead over a rival less radius times the root of the sum of powers of how steep the lead is.
    """
    n_axes = slopes.shape[1]
    steep = np.empty(n_classes)
    loss = 0.0
    for row in range(scores.shape[0]):
        label = np.int64(target[row])
        steep[:] = least
        for axis in range(n_axes):
            own = slopes[row, axis, label]
            for rival in range(n_classes):
                size = abs(np.float64(own - slopes[row, axis, rival]))
                steep[rival] += size * size if power == 2.0 else size**power
        lowest = 0.0
        for rival in range(n_classes):
            margins[row, rival] = np.inf
            if rival != label:
                lead = np.float64(scores[row, label]) - np.float64(scores[row, rival])
                margins[row, rival] = lead - radius * steep[rival] ** (1.0 / power)
                lowest = min(lowest, margins[row, rival])
        total = math.exp(lowest)
        for rival in range(n_classes):
            total += math.exp(lowest - margins[row, rival])
        loss += weights[row] * (math.log(total) - lowest)
        by_label = 0.0
        for rival in range(n_classes):
            share = weights[row] * math.exp(lowest - margins[row, rival]) / total
            by_label -= share
            scores[row, rival] = share
            # by the power of steepness, divided by the power
            steep[rival] = share * radius * steep[rival] ** (1.0 / power - 1.0)
        scores[row, label] = by_label
        for axis in range(n_axes):
            own, by_own = slopes[row, axis, label], 0.0
            for rival in range(n_classes):
                difference = np.float64(own - slopes[row, axis, rival])
                rise = difference if power == 2.0 else math.copysign(abs(difference) ** (power - 1.0), difference)
                part = steep[rival] * rise
                by_own += part
                slopes[row, axis, rival] = -part
            slopes[row, axis, label] = by_own
    return loss
