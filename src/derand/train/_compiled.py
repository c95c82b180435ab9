"""Compiled loops of training: arrays in, arrays out, serial and without the GIL.

Callers run blocks of columns in threads. Must not know what the numbers mean. Sums are taken in the order of the rows,
so that a trained model does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, IntArray
from derand.kernels.compiling import Compiled, compile_loop

_TILE = 64  # rows that are read while their cache lines are at hand
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio spreads neighbouring keys
_SLOT_BITS = 16
_SHIFT = np.uint64(64 - _SLOT_BITS)

N_SLOTS = 2**_SLOT_BITS
"""Size of the hash table that `encode` works with."""


def _gather(X: FloatArray, columns: IntArray, block: FloatArray, lows: FloatArray, highs: FloatArray) -> None:
    """Copy columns of X into the rows of `block`; `lows` and `highs` become each one's smallest and largest value."""
    for start in range(0, X.shape[0], _TILE):
        stop = min(start + _TILE, X.shape[0])
        for place in range(columns.size):
            column, low, high = columns[place], lows[place], highs[place]
            for row in range(start, stop):
                value = X[row, column] + 0.0  # a negative zero is the same value as a positive one
                block[place, row] = value
                if value < low:  # noqa: PLR1730 - compiled, this is a single instruction
                    low = value
                if value > high:  # noqa: PLR1730
                    high = value
            lows[place], highs[place] = low, high


def _encode(
    bits: NDArray[np.uint64],
    codes: NDArray[np.uint16],
    keys: NDArray[np.uint64],
    slots: NDArray[np.int32],
    taken: NDArray[np.int32],
    known: int,
    limit: int,
) -> int:
    """Number the keys of `bits` in the order of first appearance, after those known; returns how many are known now.

    `slots` is an open hash table of places in `keys` (-1: free), `taken` holds the slot of each key.
    Returns -1, and leaves the table as it was, where more than `limit` keys would be known.
    """
    before = known
    for row in range(bits.size):
        key = bits[row]
        slot = np.int64((key * _MIX) >> _SHIFT)
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) % N_SLOTS
        code = slots[slot]
        if code < 0:
            if known >= limit:
                for newest in range(before, known):  # no older key was placed behind these: they can simply go
                    slots[taken[newest]] = -1
                return -1
            code = np.int32(known)
            slots[slot] = code
            taken[known] = slot
            keys[known] = key
            known += 1
        codes[row] = code
    return known


def _accumulate(
    codes: NDArray[np.uint16], target: NDArray[np.uint8], weights: NDArray[np.generic], counts: NDArray[np.generic]
) -> None:
    """Add each row's weight to `counts[target, code]`."""
    for row in range(codes.size):
        counts[target[row], codes[row]] += weights[row]


gather: Compiled = compile_loop()(_gather)
encode: Compiled = compile_loop()(_encode)
accumulate: Compiled = compile_loop()(_accumulate)
