"""What a search for flips may do: what is attacked, where rows start, what may become of them, how far a point is.

Owns what a threat allows the numbers of a block of rows, the changes without a size (categories, numbers that go
missing or appear) that a search starts from, the size of a change, and moving points as near as they still flip.
Whether a point flips is asked of the function that `predict` calls. Must not know where to search.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from derand._core.arrays import BoolArray, FloatArray, IntArray
from derand.certificates.labels import find_labels
from derand.certificates.rules.base import LibraryLabels
from derand.certificates.search.worst_positions import change_categories, change_missing
from derand.kernels.norms import measure_norms
from derand.model import Model
from derand.noise import Noise
from derand.perturbation import Perturbation

_HALVINGS = 14
_HAIR = 1e-12
"""By how much, relatively, sizes are rounded up: more than a sum over all columns can be off by."""
_STARTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What is attacked: a model by a rule under a noise, within a perturbation.

    `library` gives the answers of the library that the model was read from, where it is at hand.
    """

    model: Model
    noise: Noise | None
    rule: str
    perturbation: Perturbation
    library: LibraryLabels | None = field(default=None, kw_only=True)

    def label(self, rows: FloatArray, n_jobs: int | None = None) -> IntArray:
        """Labels by the function that `predict` calls."""
        return find_labels(self.model, rows, self.noise, rule=self.rule, n_jobs=n_jobs)

    def list_starts(self, rows: FloatArray, labels: IntArray) -> list[FloatArray]:
        """The rows after changes that have no size, each way that is worth trying, from the worst one to none."""
        perturbation, starts = self.perturbation, []
        may_miss = set(self.model.missing_features) - perturbation.frozen
        weights = np.ones(len(self.model.members)) if self.model.weights is None else self.model.weights
        for member, weight in zip(self.model.members, weights.tolist(), strict=True):
            signs = np.where(labels == 1, 1.0, -1.0) * (1.0 if weight >= 0 else -1.0)
            moved = rows.copy()
            change_categories(moved, rows, member.terms, perturbation, signs)
            missed = moved.copy()
            change_missing(missed, self.noise, member.terms, may_miss, perturbation, signs)
            starts += [missed, moved]
        starts.append(rows)
        every = [one for k, one in enumerate(starts) if not any(are_same(one, other).all() for other in starts[:k])]
        return every[:_STARTS]

    def surround(self, rows: FloatArray, starts: FloatArray, labels: IntArray) -> FeasibleSet:
        """The feasible set of rows that were changed already: columns that went missing or appeared stay."""
        asked = self.perturbation
        low, high = asked.box(rows)
        moving = asked.free & (rows == starts) & (low < high)
        low, high = np.where(moving, low, starts), np.where(moving, high, starts)
        features = np.flatnonzero(moving.any(axis=0))
        return FeasibleSet(self, starts, labels, low, high, moving, features)


@dataclass(frozen=True, slots=True, eq=False)
class FeasibleSet:
    """A block of rows from which flips are searched for; `at` names, for each point, the row that it belongs to."""

    target: Target
    starts: FloatArray
    """(n_rows, n_features): the rows, after the changes that have no size (categories, numbers that go missing)."""
    home: IntArray
    """(n_rows,): labels of the rows before these changes, 0 or 1."""
    low: FloatArray
    """(n_rows, n_features), as `high`: closed ends of what each number may become."""
    high: FloatArray
    moving: BoolArray
    """(n_rows, n_features): which numbers may move."""
    features: IntArray
    """Columns that move in some row."""

    def __len__(self) -> int:
        return int(self.starts.shape[0])

    @property
    def noise(self) -> Noise | None:
        """Under which labels are found."""
        return self.target.noise

    @property
    def norm(self) -> float | None:
        """In which changes are measured."""
        return self.target.perturbation.norm

    @property
    def units(self) -> FloatArray:
        """What counts as a change of 1, (n_features,)."""
        return self.target.perturbation.units

    def take(self, at: IntArray) -> FeasibleSet:
        """Some of the rows."""
        per_row = ("starts", "home", "low", "high", "moving")
        return replace(self, **{name: getattr(self, name)[at] for name in per_row})

    def keep_within(self, points: FloatArray, at: IntArray) -> FloatArray:
        """The nearest points that the threat allows."""
        starts, low, high = self.starts[at], self.low[at], self.high[at]
        kept = np.minimum(np.maximum(points, low), high)
        steps = self.target.perturbation.steps
        for column in np.flatnonzero(steps).tolist():
            own, step = starts[:, column], steps[column]
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
        return np.asarray(self.target.label(points, 1) != self.home[at])

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


def are_same(first: FloatArray, second: FloatArray) -> BoolArray:
    """Where two arrays hold the same numbers, or none in both."""
    return np.asarray((first == second) | (np.isnan(first) & np.isnan(second)))
