"""Norms of rows at any scale: no square vanishes or overflows. Arrays in, arrays out; must not know what moves."""

from __future__ import annotations

import numpy as np

from derand._arrays import TINY, FloatArray

SMALLEST = 2.0**-1074
"""Smallest positive double: what a result below TINY may be off by, at most."""


def measure_norms(moves: FloatArray, norm: float) -> FloatArray:
    """The norm of each row, (n_rows,), off by less than 2**-52 times the number of columns and 4; upward below TINY.

    Rows are divided by a power of two first, which loses nothing: norms scale with rows to the last bit.

    Parameters
    ----------
    moves : array of shape (n_rows, n_columns)
        Infinite ones have an infinite norm.
    norm : {1, 2, inf}

    Examples
    --------
    >>> measure_norms(np.array([[3e-200, 4e-200], [0.0, 4e200]]), 2).tolist()
    [5e-200, 4e+200]
    """
    sizes = np.abs(moves)
    largest = sizes.max(axis=1, initial=0.0)
    powers = np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1]
    with np.errstate(over="ignore", under="ignore"):
        norms = np.ldexp(np.linalg.norm(np.ldexp(sizes, -powers[:, None]), ord=norm, axis=1), powers)
    return np.where((norms < TINY) & (largest > 0), norms + SMALLEST, norms)
