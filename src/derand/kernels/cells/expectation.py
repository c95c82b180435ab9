"""Counts expected left of candidate splits when every counted row is moved by noise. Arrays in, arrays out.

Owns the sums over levels: by any distribution function, from nodes where it is smooth (`node_sums`), and by running
sums where the noise is uniform on an interval or falls off by exponentials.
Must not know noises, histograms or models. Rounded to nearest, in a fixed order: a trained model depends neither on the
number of threads nor on a linear algebra library. For training, never for a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray, Numbers
from derand.kernels.cells.node_sums import FEW_SHARES, lay_nodes, sum_by_nodes
from derand.kernels.compiling import compile_loop

_CHUNK_NUMBERS = 2**20  # numbers in one piece of the matrix of probabilities
_LEAST_CHUNK = 16  # candidates of a piece


def sum_by_cdf(
    levels: FloatArray,
    counts: NDArray[np.generic],
    candidates: FloatArray,
    cdf: Callable[[FloatArray], FloatArray],
    magnitude: float,
    support: float,
) -> FloatArray:
    """Counts expected left of the candidates, (..., n_candidates), for noise with a given distribution function.

    Levels and candidates increase; counts have the shape (..., n_levels). `cdf` takes an array of z and returns
    P(noise <= z * magnitude). Levels farther from a candidate than `support` magnitudes, beyond which the noise carries
    a negligible share, are added by running sums.
    """
    rows = counts.reshape(-1, levels.size).astype(np.float64)
    running = np.concatenate([np.zeros((rows.shape[0], 1)), np.cumsum(rows, axis=1)], axis=1)
    distance = support * magnitude
    result = np.empty((rows.shape[0], candidates.size))
    size = _choose_chunk(levels.size, candidates, distance)
    for start in range(0, candidates.size, size):
        chunk = candidates[start : start + size]
        first, stop = np.searchsorted(levels, [chunk[0] - distance, chunk[-1] + distance])
        shares = cdf((chunk - levels[first:stop, None]) / magnitude)
        part = np.repeat(running[:, first, None], chunk.size, axis=1)
        _add_products(rows[:, first:stop], shares, part)
        result[:, start : start + size] = part
    return result.reshape(*counts.shape[:-1], candidates.size)


def sum_by_smooth_cdf(
    levels: FloatArray,
    counts: NDArray[np.generic],
    candidates: FloatArray,
    cdf: Callable[[FloatArray], FloatArray],
    magnitude: float,
    support: float,
) -> FloatArray:
    """`sum_by_cdf` for a distribution function that is a polynomial over one magnitude, up to rounding."""
    grid = lay_nodes(levels, counts.size // max(levels.size, 1), candidates, magnitude, support)
    if grid is None:
        return sum_by_cdf(levels, counts, candidates, cdf, magnitude, support)
    rows = counts.reshape(-1, levels.size).astype(np.float64)
    result = sum_by_nodes(levels, rows, candidates.size, grid, cdf, magnitude)
    return result.reshape(*counts.shape[:-1], candidates.size)


def sum_by_exponentials(
    levels: FloatArray, counts: NDArray[np.generic], candidates: FloatArray, scale: float
) -> FloatArray | None:
    """The same for noise of the density exp(-|z| / scale) / (2 * scale), by running sums.

    None where so little is summed up that `sum_by_cdf` will do.
    """
    if levels.size * candidates.size <= FEW_SHARES:
        return None
    rows = counts.reshape(-1, levels.size).astype(np.float64)
    decays = np.exp(-np.diff(levels) / scale)
    below, above = np.zeros((rows.shape[0], levels.size + 2)), np.zeros((rows.shape[0], levels.size + 2))
    _run_down(rows, decays, below[:, 1:-1])
    _run_down(rows[:, ::-1], decays[::-1], above[:, -2:0:-1])
    place = np.searchsorted(levels, candidates, side="right")
    ends = np.concatenate([[-np.inf], levels, [np.inf]])
    fallen = np.exp((ends[place] - candidates) / scale), np.exp((candidates - ends[place + 1]) / scale)
    whole = _run(rows)[:, place]
    result = (whole - 0.5 * below[:, place] * fallen[0]) + 0.5 * above[:, place + 1] * fallen[1]
    return result.reshape(*counts.shape[:-1], candidates.size)


def _choose_chunk(n_levels: int, candidates: FloatArray, distance: float) -> int:
    """Candidates of a piece: as many as the noise reaches over, as far as memory allows."""
    within = candidates.size * distance
    if math.isfinite(within):  # else the noise reaches everywhere
        within /= max(float(candidates[-1] - candidates[0]), distance)
    return max(_LEAST_CHUNK, int(min(within, _CHUNK_NUMBERS // n_levels)))


def sum_by_interval(levels: FloatArray, counts: Numbers, candidates: FloatArray, half_width: float) -> FloatArray:
    """The same for noise uniform on [-half_width, half_width], by running sums of counts and of counts times levels."""
    rows, moments = _run(counts), _run(counts * levels)
    surely = np.searchsorted(levels, candidates - half_width, side="right")
    perhaps = np.searchsorted(levels, candidates + half_width)
    inside = np.take(rows, perhaps, axis=-1) - np.take(rows, surely, axis=-1)
    inside *= candidates + half_width
    inside -= np.take(moments, perhaps, axis=-1)
    inside += np.take(moments, surely, axis=-1)
    inside /= 2 * half_width
    inside += np.take(rows, surely, axis=-1)
    return np.clip(inside, 0.0, rows[..., -1:])


def _run(values: NDArray[np.generic]) -> FloatArray:
    """Running sums along the last axis, beginning with 0."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


@compile_loop()
def _add_products(counts: FloatArray, shares: FloatArray, result: FloatArray) -> None:
    """`result += counts @ shares`, four levels at a time; a product of matrices that is never threaded."""
    n_levels, size = shares.shape
    for row in range(counts.shape[0]):
        total = result[row]
        for level in range(0, n_levels - 3, 4):
            a, b, c, d = counts[row, level], counts[row, level + 1], counts[row, level + 2], counts[row, level + 3]
            if a == 0 and b == 0 and c == 0 and d == 0:
                continue
            for at in range(size):
                total[at] += (a * shares[level, at] + b * shares[level + 1, at]) + (
                    c * shares[level + 2, at] + d * shares[level + 3, at]
                )
        for level in range(n_levels - n_levels % 4, n_levels):
            for at in range(size):
                total[at] += counts[row, level] * shares[level, at]


@compile_loop()
def _run_down(counts: FloatArray, decays: FloatArray, out: FloatArray) -> None:
    """Running sums that fall by `decays` from each number to the next."""
    for row in range(counts.shape[0]):
        total = 0.0
        for level in range(counts.shape[1]):
            total = counts[row, level] + (total * decays[level - 1] if level else 0.0)
            out[row, level] = total
