"""Compiled sampling of an additive ensemble's score: every term's cell is drawn by its probability.

Arrays in, arrays out, serial and without the GIL. Random words come from eight interleaved xoshiro256+ generators and
serve as four uniform numbers each; where 16 bits do not decide, 48 more are taken from a hash of the draw's number, so
that a cell's probability is met to 2**-53.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]

LANES = 8
_WORDS = 128
SAMPLES = 4 * _WORDS
"""Samples that are drawn together."""
_LOW_BITS = np.uint64(48)
_LOW_MASK = np.uint64(2**48 - 1)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def count_above(
    bounds: Words, starts: IntArray, jumps: NDArray[np.int32], thresholds: IntArray, n_samples: int, state: Words
) -> IntArray:
    """For each row, how many of n_samples scores exceed its threshold.

    Parameters
    ----------
    bounds : array of shape (n_rows, n_edges)
        P(the term's cell lies left of the edge) as a fraction of 2**64.
    starts : array of shape (n_terms + 1,)
        Where each term's edges begin.
    jumps : array of shape (n_edges,)
        By how much the score rises at each edge; it is 0 in the first cells.
    thresholds : array of shape (n_rows,)
    state : array of shape (4, LANES)
        State of the generators; it is advanced.
    """
    counts = np.zeros(bounds.shape[0], dtype=np.int64)
    words = np.empty(_WORDS, dtype=np.uint64)
    draws = words.view(np.uint16)
    total = np.empty(SAMPLES, dtype=np.int32)
    number = np.uint64(0)
    for row in range(bounds.shape[0]):
        left = n_samples
        while left > 0:
            total[:] = 0
            for term in range(starts.size - 1):
                _fill(words, state)
                number += np.uint64(1)
                for edge in range(starts[term], starts[term + 1]):
                    _add_where_right(total, draws, bounds[row, edge], jumps[edge], number)
            for sample in range(min(left, SAMPLES)):
                counts[row] += total[sample] > thresholds[row]
            left -= SAMPLES
    return counts


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fill(words: Words, state: Words) -> None:
    """Draw words: LANES generators side by side, so that the loop becomes vector instructions."""
    for at in range(0, words.size, LANES):
        for lane in range(LANES):
            s0, s1, s2, s3 = state[0, lane], state[1, lane], state[2, lane], state[3, lane]
            words[at + lane] = s0 + s3
            shifted = s1 << np.uint64(17)
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= shifted
            s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
            state[0, lane], state[1, lane], state[2, lane], state[3, lane] = s0, s1, s2, s3


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _add_where_right(
    total: NDArray[np.int32], draws: NDArray[np.uint16], bound: np.uint64, jump: np.int32, number: np.uint64
) -> None:
    """Add the jump to the samples whose uniform number is not below the bound."""
    high = np.uint16(bound >> _LOW_BITS)
    ties = 0
    for sample in range(SAMPLES):
        total[sample] += jump if draws[sample] > high else np.int32(0)
        ties += draws[sample] == high
    if ties:
        for sample in range(SAMPLES):
            if draws[sample] == high:
                low = _hash(number * np.uint64(SAMPLES) + np.uint64(sample)) & _LOW_MASK
                total[sample] += jump if low >= (bound & _LOW_MASK) else np.int32(0)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _hash(number: np.uint64) -> np.uint64:
    """Spread a number over 64 bits (splitmix64)."""
    mixed = number * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
