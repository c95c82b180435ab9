"""Boxes: probabilities of products of cells, from those of their sides.

Owns products and sums of upper bounds over the boxes of a grid. Arrays in, arrays out; a caller widens the result for
its roundings (README.md, step 10). Must not know noises or models.
"""

from __future__ import annotations

import numpy as np

from derand._core.arrays import TINY, FloatArray, IntArray
from derand.kernels.compiling import compile_loop


@compile_loop()
def multiply_sides(sides: FloatArray, shape: IntArray, merged: IntArray, n_merged: int) -> FloatArray:
    """The probabilities of cells into which boxes are merged, (n_rows, n_merged); `merged` says which, in C order.

    `sides`, of shape (n_rows, sum of shape), holds upper bounds of the probabilities of the cells of each axis, one
    after the other.
    """
    table = np.zeros((sides.shape[0], n_merged))
    products, longer = np.empty(merged.size), np.empty(merged.size)
    for row in range(sides.shape[0]):
        products[0] = 1.0
        count, start = 1, 0
        for axis in range(shape.size):
            size = shape[axis]
            for at in range(count):
                before = products[at]
                for cell in range(size):
                    side = sides[row, start + cell]
                    value = before * side
                    if value < TINY and before > 0.0 and side > 0.0:  # only what is impossible is 0
                        value = TINY
                    longer[at * size + cell] = value
            count, start = count * size, start + size
            products, longer = longer, products
        for at in range(count):
            table[row, merged[at]] += products[at]
    return table
