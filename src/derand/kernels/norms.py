"""Norms of rows at any scale: no square vanishes or overflows. Arrays in, arrays out; must not know what moves."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import TINY, FloatArray

SMALLEST = 2.0**-1074
"""Smallest positive double: what a result below TINY may be off by, at most."""


def measure_norms(moves: FloatArray, norm: float) -> FloatArray:
    """The norm of each row, (n_rows,), off by less than 2**-52 times the number of columns and 4; upward below TINY.

    Rows are divided by a power of two first, which loses nothing: norms (1, 2 or inf) scale with rows to the last bit.
    Infinite moves have an infinite norm.

    >>> measure_norms(np.array([[3.0, 4.0], [3 * 2.0**-900, 4 * 2.0**-900]]), 2).tolist() == [5.0, 5 * 2.0**-900]
    True
    """
    sizes = np.abs(moves)
    largest = sizes.max(axis=1, initial=0.0)
    powers = np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1]
    with np.errstate(over="ignore", under="ignore"):
        norms = np.ldexp(np.linalg.norm(np.ldexp(sizes, -powers[:, None]), ord=norm, axis=1), powers)
    return np.where((norms < TINY) & (largest > 0), norms + SMALLEST, norms)
