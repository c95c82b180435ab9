"""The widest of all functions, softly: what the vote's second proof deducts from a margin grows with it.

Owns the ranges of the functions of numerical columns and their slopes by the weights. Must not know rows or losses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.train.design.columns import Design
from derand.train.design.groups import GroupColumn

_POWER = 24.0  # of the mean that stands for the maximum


class Deduction:
    """A multiple of the widest range, as a smooth function of the weights.

    Parameters
    ----------
    design : Design
        Its `deduction` is the multiple.
    """

    def __init__(self, design: Design) -> None:
        starts = design.starts
        self._joint = [
            (int(start), one.list_cells())
            for one, start in zip(design.numbers, starts.tolist(), strict=False)
            if isinstance(one, GroupColumn)
        ]
        numbers = [one for one in design.numbers if not isinstance(one, GroupColumn)]  # groups stand after them
        most = max((one.cuts.size for one in numbers), default=0)
        self._factor = design.deduction
        self._jumps = np.full((len(numbers), most), -1, dtype=np.int64)  # place of each jump's weight, -1 for none
        self._ramps = np.full(len(numbers), -1, dtype=np.int64)
        self._shares = np.ones((len(numbers), most))  # of the ramp that lies below each cut
        for at, one in enumerate(numbers):
            self._jumps[at, : one.cuts.size] = starts[at] + np.arange(one.cuts.size)
            if one.stairs.size:
                self._ramps[at] = starts[at] + one.cuts.size
                self._shares[at, : one.cuts.size] = np.searchsorted(one.stairs, one.cuts) / one.stairs.size
        self._size = int(starts[-1])

    def measure(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """What is deducted, and its slopes by the weights."""
        ranges, ends = self._measure_columns(weights)
        joint = self._measure_groups(weights)
        mean, by_every = _take_mean(np.concatenate([ranges, [one.range for one in joint]]))
        padded_slopes = np.zeros(self._size + 1)
        if mean <= 0:
            return 0.0, padded_slopes[:-1]
        by_range, n_cuts = by_every[: ranges.size], self._jumps.shape[1]
        for end, sign in zip(ends, (1.0, -1.0), strict=False):
            counted = np.where(end < n_cuts, end, np.where(end < 2 * n_cuts, end - n_cuts + 1, n_cuts))
            inside = np.arange(n_cuts) < counted[:, None]
            np.add.at(padded_slopes, self._jumps, sign * by_range[:, None] * inside)
            shares = np.where(end < 2 * n_cuts, self._shares[np.arange(end.size), end % n_cuts], 1.0)
            np.add.at(padded_slopes, self._ramps, sign * by_range * shares)
        for one, by_one in zip(joint, by_every[ranges.size :], strict=True):
            padded_slopes[one.start : one.start + one.slope.size] += by_one * one.slope
        return self._factor * mean, self._factor * padded_slopes[:-1]

    def _measure_columns(self, weights: FloatArray) -> tuple[FloatArray, tuple[IntArray, ...]]:
        """The ranges of the functions of single columns, and where each is highest and lowest."""
        if not self._jumps.size:
            return np.empty(0), ()
        padded = np.append(weights, 0.0)
        ramps = padded[self._ramps][:, None]
        after = np.cumsum(padded[self._jumps], axis=1)
        before = np.concatenate([np.zeros((after.shape[0], 1)), after[:, :-1]], axis=1)
        rise = self._shares * ramps
        values = np.concatenate([before + rise, after + rise, after[:, -1:] + ramps], axis=1)
        ends = values.argmax(axis=1), values.argmin(axis=1)
        high, low = (values[np.arange(end.size), end] for end in ends)
        return high - low, ends

    def _measure_groups(self, weights: FloatArray) -> list[_Joint]:
        """The ranges of the functions of groups, and their slopes."""
        found = []
        for start, cells in self._joint:
            values = cells @ weights[start : start + cells.shape[1]]
            high, low = int(values.argmax()), int(values.argmin())
            found.append(_Joint(start, float(values[high] - values[low]), cells[high] - cells[low]))
        return found


class _Joint(NamedTuple):
    """A group: where its weights begin, the range of its function, and the slope of that by the weights."""

    start: int
    range: float
    slope: FloatArray


def _take_mean(ranges: FloatArray) -> tuple[float, FloatArray]:
    """A smooth mean a little above the widest range, and its slopes."""
    widest = float(ranges.max(initial=0.0))
    if widest <= 0:
        return 0.0, np.zeros(ranges.size)
    powers = (ranges / widest) ** _POWER
    mean = widest * float(powers.sum()) ** (1 / _POWER)
    return mean, np.where(ranges > 0, powers / powers.sum() * mean / np.maximum(ranges, 1e-300), 0.0)
