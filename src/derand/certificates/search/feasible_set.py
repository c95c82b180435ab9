"""The ground of a search for flips: where each row stands, what may become of it, how far a point is from it.

Owns what a threat allows the numbers of a block of rows, the size of a change, and moving points as near as they still
flip. Whether a point flips is asked of the function that `predict` calls. Must not know where to search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.labels import find_labels
from derand.kernels.norms import measure_norms
from derand.model import Model
from derand.noise import Noise

_HALVINGS = 14
_HAIR = 1e-12
"""By how much, relatively, sizes are rounded up: more than a sum over all columns can be off by."""


@dataclass(frozen=True, slots=True, eq=False)
class FeasibleSet:
    """A block of rows from which flips are searched for; `at` names, for each point, the row that it belongs to."""

    model: Model
    noise: Noise | None
    rule: str
    norm: float | None
    starts: FloatArray
    """(n_rows, n_features): the rows, after the changes that have no size (categories, numbers that go missing)."""
    home: IntArray
    """(n_rows,): labels of the rows before these changes, 0 or 1."""
    units: FloatArray
    low: FloatArray
    """(n_rows, n_features), as `high`: closed ends of what each number may become."""
    high: FloatArray
    steps: FloatArray
    """(n_features,): numbers that change by multiples of it alone; 0 for any change."""
    moving: BoolArray
    """(n_rows, n_features): which numbers may move."""
    features: IntArray
    """Columns that move in some row."""

    def __len__(self) -> int:
        return int(self.starts.shape[0])

    def take(self, at: IntArray) -> FeasibleSet:
        """Some of the rows."""
        return FeasibleSet(
            self.model,
            self.noise,
            self.rule,
            self.norm,
            self.starts[at],
            self.home[at],
            self.units,
            self.low[at],
            self.high[at],
            self.steps,
            self.moving[at],
            self.features,
        )

    def keep_within(self, points: FloatArray, at: IntArray) -> FloatArray:
        """The nearest points that the threat allows."""
        starts, low, high = self.starts[at], self.low[at], self.high[at]
        kept = np.minimum(np.maximum(points, low), high)
        for column in np.flatnonzero(self.steps).tolist():
            own, step = starts[:, column], self.steps[column]
            whole = np.rint((np.where(self.moving[at, column], kept[:, column], own) - own) / step)
            kept[:, column] = own
            for count in (whole - np.sign(whole), whole):  # rounding may have led one step too far
                stepped = own + count * step
                inside = (stepped >= low[:, column]) & (stepped <= high[:, column])
                kept[:, column] = np.where(inside, stepped, kept[:, column])
        return np.where(self.moving[at], kept, starts)

    def check_flips(self, points: FloatArray, at: IntArray) -> BoolArray:
        """Whether each point has another label than its row."""
        if not at.size:
            return np.zeros(0, dtype=bool)
        return np.asarray(find_labels(self.model, points, self.noise, rule=self.rule, n_jobs=1) != self.home[at])

    def measure(self, points: FloatArray, at: IntArray) -> FloatArray:
        """Size of each change in the norm and units of the threat, rounded up."""
        change = np.where(self.moving[at], points - self.starts[at], 0.0)
        return measure_changes(change, self.units, self.norm)

    def halve(self, near: FloatArray, far: FloatArray, at: IntArray, times: int = _HALVINGS) -> FloatArray:
        """Points that flip, between those that do not and those that do, by halving what lies between."""
        for _ in range(times):
            middle = self.keep_within(0.5 * (near + far), at)
            flips = self.check_flips(middle, at)[:, None]
            near, far = np.where(flips, near, middle), np.where(flips, middle, far)
        return far


def measure_changes(changes: FloatArray, units: FloatArray, norm: float | None) -> FloatArray:
    """Sizes of changes, (n, n_columns), in a norm and units, rounded up by a hair.

    For norm 0 the number of changed entries; 0 without a norm.
    """
    if norm is None:
        return np.zeros(changes.shape[0])
    if norm == 0:
        return np.asarray(np.count_nonzero(changes, axis=1), dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(measure_norms(changes / units, norm) * (1 + _HAIR))
