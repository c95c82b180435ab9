"""What comes out of attacks: changed rows that flip, and how far predictions were moved. Must not know searches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray, IntArray, Labels
from derand._core.origin import Frame, Origin, take_rows
from derand.certificates.results.base import RowResults
from derand.certificates.results.certificates import Certificates, Ends, Intervals
from derand.noise import Noise
from derand.threat import Threat

_ARRAYS = ("found", "distance", "label", "flipped", "n_categories")


class UnsoundError(RuntimeError):
    """A flip was found inside a set that is certified: certificate, search and `predict` cannot all be right."""


@dataclass(frozen=True, slots=True, eq=False)
class Attacks(RowResults):
    """The nearest change of each row that was found to flip its answer.

    Attributes
    ----------
    found : array of booleans, shape (n_rows,)
        Whether a flip was found. Where none was, nothing is proven by that.
    distance : array of shape (n_rows,)
        Size of the change in the norm and units of the threat, rounded up: an upper bound of the true radius. Infinite
        where nothing was found; for norm 0 the number of numerical columns that change; 0 where limits alone say what
        may change. Categories, and numbers that go missing or appear, have no size.
    rows : array of shape (n_rows, n_features)
        The changed rows, the rows themselves where nothing was found. As the model reads them; from a classifier, in
        the words of its table, so that its `predict` takes them.
    label, flipped : arrays of shape (n_rows,)
        Answer before and after the change; the same where nothing was found.
    n_categories : array of integers, shape (n_rows,)
        How many categories change.
    threat : Threat
        Within which the changes stay.
    classes : array of shape (n_classes,)
    rule : str
        How labels are found: "vote" or "mean".
    noise : Noise or None
        Under which they are found; None for the model as deployed.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    found: BoolArray
    distance: FloatArray
    rows: Frame
    label: Labels
    flipped: Labels
    n_categories: IntArray
    threat: Threat
    classes: Labels = field(default_factory=lambda: np.array([0, 1]))
    rule: str = "vote"
    noise: Noise | None = None
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = (*_ARRAYS, "rows")
    shared: ClassVar[tuple[str, ...]] = ("classes",)

    def __repr__(self) -> str:
        where, how = self._name_ball("in l{}"), self._name_request(with_missing=False)
        return f"<Attacks: {len(self)} rows, {int(self.found.sum())} flipped, {where}, {how}>"

    def with_classes(self, classes: NDArray[np.generic]) -> Attacks:
        """The same with labels of these classes in the place of 0, 1, ..."""
        return replace(self, label=classes[self.label], flipped=classes[self.flipped], classes=classes)

    def list_columns(self) -> dict[str, NDArray[np.generic]]:
        """What tables hold: label, found, distance, flipped and n_categories; the changed rows are `rows`."""
        return {name: getattr(self, name) for name in ("label", "found", "distance", "flipped", "n_categories")}

    def find_inside(self, certificates: Certificates) -> BoolArray:
        """Which flips lie inside what is certified of the same rows: never any, unless something is wrong.

        Parameters
        ----------
        certificates : Certificates
            Of the same rows, by the same rule, noise and threat.

        Returns
        -------
        array of booleans, shape (n_rows,)
        """
        self._require_same(certificates, "certificates", ("rule", "noise", "threat"), "label")
        radius = certificates.radius
        if self.norm is None:
            return np.asarray(self.found & (radius > 0))
        if self.norm == 0:  # so many columns may become anything: the ball is closed
            return np.asarray(self.found & (radius > 0) & (self.distance <= radius))
        return np.asarray(self.found & (self.distance < radius))

    def require_outside(self, certificates: Certificates) -> None:
        """Raise UnsoundError where a flip lies inside what is certified of the same rows.

        Parameters
        ----------
        certificates : Certificates
            Of the same rows, by the same rule, noise and threat.
        """
        inside = np.flatnonzero(self.find_inside(certificates))
        if not inside.size:
            return
        row = int(inside[0])
        changed = np.asarray(take_rows(self.rows, np.array([row])))[0]
        raise UnsoundError(
            f"{inside.size} of {len(self)} rows flip inside what is certified. Row {row}: {self.label[row]!r} becomes "
            f"{self.flipped[row]!r} at distance {float(self.distance[row])!r}, certified "
            f"{float(certificates.radius[row])!r} ({certificates.proof[row]}); rule {self.rule!r}, "
            f"noise {self.noise}, {self.threat}; changed row: {changed.tolist()!r}. Please report this."
        )


@dataclass(frozen=True, slots=True, eq=False)
class IntervalAttacks(Ends):
    """The lowest and the highest answer that changes of each row within a radius were found to have.

    Attributes
    ----------
    value : array of shape (n_rows,)
        The answer before any change.
    low, high : arrays of shape (n_rows,)
        The lowest and the highest answer that was found; the value itself where no change moves it.
    low_rows, high_rows : arrays of shape (n_rows, n_features)
        The changed rows. As the model reads them; from a regressor, in the words of its table, so that its `predict`
        takes them.
    radius : float or None
        Closer than which changes are; None where limits alone say what may change. For norm 0 how many columns change
        at most.
    threat : Threat
    rule : str
    noise : Noise or None
    width : array of shape (n_rows,)
        `high - low`: no interval that holds is narrower.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    low_rows: Frame
    high_rows: Frame
    radius: float | None
    threat: Threat
    rule: str = "vote"
    noise: Noise | None = None
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("value", "low", "high", "low_rows", "high_rows")

    def __repr__(self) -> str:
        mean = f", mean width {float(self.width.mean()):.4g}" if len(self) else ""
        ball = self._name_ball("l{}") + ("" if self.norm is None else f", radius {self.radius}")
        return f"<IntervalAttacks: {len(self)} rows{mean}, {ball}, {self._name_request(with_missing=False)}>"

    def find_outside(self, intervals: Intervals) -> BoolArray:
        """Which rows have an answer outside of what is certified of them: never any, unless something is wrong.

        Parameters
        ----------
        intervals : Intervals
            Of the same rows, by the same rule, noise, threat and radius.

        Returns
        -------
        array of booleans, shape (n_rows,)
        """
        self._require_same(intervals, "intervals", ("rule", "noise", "threat", "radius"), "value")
        return np.asarray(~((intervals.low <= self.low) & (self.high <= intervals.high)))

    def require_inside(self, intervals: Intervals) -> None:
        """Raise UnsoundError where an answer lies outside of what is certified of the same rows.

        Parameters
        ----------
        intervals : Intervals
            Of the same rows, by the same rule, noise, threat and radius.
        """
        outside = np.flatnonzero(self.find_outside(intervals))
        if not outside.size:
            return
        row = int(outside[0])
        is_low = not intervals.low[row] <= self.low[row]
        found, rows = (self.low, self.low_rows) if is_low else (self.high, self.high_rows)
        changed = take_rows(rows, np.array([row]))
        raise UnsoundError(
            f"{outside.size} of {len(self)} rows have answers outside of what is certified. Row {row}: "
            f"{float(self.value[row])!r} becomes {float(found[row])!r}, certified from {float(intervals.low[row])!r} "
            f"to {float(intervals.high[row])!r}; radius {self.radius}, rule {self.rule!r}, noise {self.noise}, "
            f"{self.threat}; changed row: {np.asarray(changed)[0].tolist()!r}. Please report this."
        )
