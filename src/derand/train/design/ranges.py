"""The widest of all functions, softly: what the vote's second proof deducts from a margin grows with it.

Owns the ranges of the functions of numerical columns and their slopes by the weights. Must not know rows or losses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from derand._core.arrays import FloatArray
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
        slopes = np.zeros(self._size)
        if not self._jumps.size:
            return self._measure_joint(weights) if self._joint else (0.0, slopes)
        padded = np.append(weights, 0.0)
        ramps = padded[self._ramps]
        after = np.cumsum(padded[self._jumps], axis=1)
        n_columns, n_cuts = after.shape
        before = np.concatenate([np.zeros((n_columns, 1)), after[:, :-1]], axis=1)
        rise = self._shares * ramps[:, None]
        values = np.concatenate([before + rise, after + rise, after[:, -1:] + ramps[:, None]], axis=1)
        highest, lowest = values.argmax(axis=1), values.argmin(axis=1)
        rows = np.arange(n_columns)
        ranges = values[rows, highest] - values[rows, lowest]
        joint = self._measure_groups(weights)
        mean, by_every = _take_mean(np.concatenate([ranges, [one.range for one in joint]]))
        if mean <= 0:
            return 0.0, slopes
        by_range = by_every[: ranges.size]
        padded_slopes = np.zeros(self._size + 1)
        for ends, sign in ((highest, 1.0), (lowest, -1.0)):
            counted = np.where(ends < n_cuts, ends, np.where(ends < 2 * n_cuts, ends - n_cuts + 1, n_cuts))
            inside = np.arange(n_cuts) < counted[:, None]
            np.add.at(padded_slopes, self._jumps, sign * by_range[:, None] * inside)
            shares = np.where(ends < 2 * n_cuts, self._shares[rows, ends % n_cuts], 1.0)
            np.add.at(padded_slopes, self._ramps, sign * by_range * shares)
        for one, by_one in zip(joint, by_every[ranges.size :], strict=True):
            padded_slopes[one.start : one.start + one.slope.size] += by_one * one.slope
        return self._factor * mean, self._factor * padded_slopes[:-1]

    def _measure_groups(self, weights: FloatArray) -> list[_Joint]:
        """The ranges of the functions of groups, and their slopes."""
        found = []
        for start, cells in self._joint:
            values = cells @ weights[start : start + cells.shape[1]]
            high, low = int(values.argmax()), int(values.argmin())
            found.append(_Joint(start, float(values[high] - values[low]), cells[high] - cells[low]))
        return found

    def _measure_joint(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """The same where all columns are in groups."""
        joint, slopes = self._measure_groups(weights), np.zeros(self._size)
        mean, by_range = _take_mean(np.array([one.range for one in joint]))
        for one, by_one in zip(joint, by_range, strict=True):
            slopes[one.start : one.start + one.slope.size] += by_one * one.slope
        return self._factor * mean, self._factor * slopes


class _Joint(NamedTuple):
    """A group: where its weights begin, the range of its function, and the slope of that by the weights."""

    start: int
    range: float
    slope: FloatArray


def _take_mean(ranges: FloatArray) -> tuple[float, FloatArray]:
    """A smooth mean a little above the widest range, and its slopes."""
    widest = float(ranges.max())
    if widest <= 0:
        return 0.0, np.zeros(ranges.size)
    powers = (ranges / widest) ** _POWER
    mean = widest * float(powers.sum()) ** (1 / _POWER)
    return mean, np.where(ranges > 0, powers / powers.sum() * mean / np.maximum(ranges, 1e-300), 0.0)
