"""What comes out of attacks on numbers: how far answers were moved. Must not know models or searches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import BoolArray, FloatArray
from derand._core.origin import Origin, take_rows
from derand.certificates.results.attacks import UnsoundError
from derand.certificates.results.base import RowResults
from derand.certificates.results.intervals import Intervals
from derand.noise import Noise
from derand.threat import Threat


@dataclass(frozen=True, slots=True, eq=False)
class IntervalAttacks(RowResults):
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
    low_rows: Any
    high_rows: Any
    radius: float | None
    threat: Threat
    rule: str = "vote"
    noise: Noise | None = None
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("value", "low", "high", "low_rows", "high_rows")

    @property
    def width(self) -> FloatArray:
        """How far apart the answers are that were found."""
        return np.asarray(self.high - self.low)

    def __repr__(self) -> str:
        mean = f", mean width {float(self.width.mean()):.4g}" if len(self) else ""
        ball = self._name_ball("l{}") + ("" if self.norm is None else f", radius {self.radius}")
        return f"<IntervalAttacks: {len(self)} rows{mean}, {ball}, {self._name_request(with_missing=False)}>"

    def list_columns(self) -> dict[str, NDArray[Any]]:
        """What tables hold: value, low, high and width."""
        return {name: getattr(self, name) for name in ("value", "low", "high", "width")}

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
        self._require_same(intervals, "intervals", ("rule", "noise", "threat", "radius"))
        self._require_values(intervals)
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

    def _require_values(self, intervals: Intervals) -> None:
        differ = np.flatnonzero(self.value != intervals.value)
        if differ.size:
            row = int(differ[0])
            raise ValueError(
                f"`intervals` must be about the same rows, got the answer {float(intervals.value[row])!r} for row "
                f"{row}, which is {float(self.value[row])!r} here."
            )
