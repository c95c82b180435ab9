"""What comes out of certifying numbers: read-only arrays with the facts that they are about. Must not know models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand._core.markup import write_block, write_lines, write_table
from derand._core.origin import Origin
from derand._core.text import format_count, format_readable
from derand.certificates.results.base import RowResults
from derand.certificates.results.certificates import HTML_ROWS, list_quantiles, write_radius
from derand.certificates.rules.base import PROOFS
from derand.noise import Noise
from derand.threat import Threat


@dataclass(frozen=True, slots=True, eq=False)
class Intervals(RowResults):
    """What is proven about the number that answers each row: no change within the threat takes it out of its interval.

    Attributes
    ----------
    value : array of shape (n_rows,)
        The answer, as `predict` gives it.
    low, high : arrays of shape (n_rows,)
        Ends that the computed answer of no changed row lies beyond. They are answers of the model's grid, rounded as
        answers are (rounding keeps the order of numbers); by the rule "mean" under noise they are wider by more than
        all roundings of an answer. Where the model stands for another one (`score_error`), they hold for that one, too.
    radius : float or None
        Closer than which changes are covered; None where limits alone say what may change. For norm 0 how many columns
        may become anything.
    threat : Threat
    rule : str
        How the answer is found: "vote", the median of noisy copies, or "mean", the expected score.
    noise : Noise or None
    width : array of shape (n_rows,)
        `high - low`.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    radius: float | None
    threat: Threat
    rule: str = "vote"
    noise: Noise | None = None
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("value", "low", "high")

    @property
    def width(self) -> FloatArray:
        """How long each interval is."""
        return np.asarray(self.high - self.low)

    def __repr__(self) -> str:
        ball = self._name_ball("l{} ball")
        where = ball if self.radius is None else f"{ball} of radius {self.radius}"
        mean = f", mean width {float(self.width.mean()):.4g}" if len(self) else ""
        return f"<Intervals: {len(self)} rows{mean}, {where}, {self._name_request()}>"

    def _repr_html_(self) -> str:
        """For notebooks: how wide intervals are, and those of the first rows."""
        facts = [("rows", format_count(len(self)))]
        if len(self):
            median = np.sort(self.width)[len(self) // 2]
            facts += [("mean width", _write(float(self.width.mean()))), ("median width", _write(median))]
        shown = [getattr(self, name)[:HTML_ROWS] for name in ("value", "low", "high", "width")]
        lines = [[at, *map(_write, line)] for at, line in enumerate(zip(*shown, strict=True))]
        table = write_table(["row", "value", "low", "high", "width"], lines)
        return write_block("Intervals", write_table([], facts), table, write_lines([repr(self)], muted=True))

    def list_columns(self) -> dict[str, NDArray[Any]]:
        """What tables hold: value, low, high and width."""
        return {name: getattr(self, name) for name in ("value", "low", "high", "width")}


@dataclass(frozen=True, slots=True, eq=False)
class ToleranceRadii(RowResults):
    """What is proven about the number that answers each row: closer than the radius it moves by the tolerance at most.

    Attributes
    ----------
    value : array of shape (n_rows,)
        The answer, as `predict` gives it.
    tolerance : float
    radius : array of shape (n_rows,)
        Lower bound of the radius; the ball is open. 0 where nothing is certified. For norm 0 the number of numerical
        columns that may become anything; without a ball infinite where the answer holds within the limits.
    threat : Threat
    rule : str
    noise : Noise or None
    proof : array of shape (n_rows,)
        What proves each radius, as for `Certificates`.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    value: FloatArray
    tolerance: float
    radius: FloatArray
    threat: Threat
    rule: str = "vote"
    noise: Noise | None = None
    _proof: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8), repr=False)
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("value", "radius", "_proof")

    @property
    def proof(self) -> NDArray[np.str_]:
        """What proves each radius."""
        return np.array(PROOFS)[self._proof]

    def __repr__(self) -> str:
        certified = int((self.radius > 0).sum())
        return (
            f"<ToleranceRadii: {len(self)} rows, {certified} certified within +-{self.tolerance}, "
            f"{self._name_ball('l{} ball')}, {self._name_request()}>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: radii of all rows in short, and those of the first rows."""
        facts = [("rows", format_count(len(self))), ("certified", format_count(int((self.radius > 0).sum())))]
        facts += list_quantiles(self.radius) if len(self) else []
        lines = [
            [at, _write(self.value[at]), write_radius(self.radius[at]), self.proof[at]]
            for at in range(min(len(self), HTML_ROWS))
        ]
        table = write_table(["row", "value", "radius", "proof"], lines)
        return write_block("Tolerance radii", write_table([], facts), table, write_lines([repr(self)], muted=True))

    def list_columns(self) -> dict[str, NDArray[Any]]:
        """What tables hold: value, radius and proof."""
        return {name: getattr(self, name) for name in ("value", "radius", "proof")}


def _write(value: float) -> str:
    return format_readable(float(value), 6)
