"""What all results share: arrays with an entry per row, and the facts that they are about. Must not know models."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from derand._core.arrays import Frozen, freeze
from derand._core.origin import Frame, Tabular, take_rows
from derand.noise import Noise
from derand.threat import Threat


class RowResults(Tabular, Frozen):
    """A base of frozen dataclasses with an entry per row, found by a rule under a noise and within a threat."""

    __slots__ = ()

    per_row: ClassVar[tuple[str, ...]]
    """Fields with an entry per row, the first one never None; tables among them stay as they are."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Other fields that are arrays."""

    threat: Threat
    rule: str
    noise: Noise | None

    def __post_init__(self) -> None:
        if self.threat.norm == "auto":
            name = type(self).__name__
            raise ValueError(f"`threat` of {name} must name its norm, got 'auto': use `Threat.resolve(noise)`.")
        for name in (*self.per_row, *self.shared):
            value = getattr(self, name)
            if isinstance(value, np.ndarray | list | tuple | np.generic):
                object.__setattr__(self, name, freeze(np.asarray(value).view()))

    @property
    def norm(self) -> float | None:
        """The norm of the ball; None where limits alone say what may change."""
        return self.threat.ball_norm

    def __len__(self) -> int:
        return len(getattr(self, self.per_row[0]))

    def __getitem__(self, rows: Frame) -> Self:
        at, origin = self.locate(rows)
        values = {name: getattr(self, name) for name in self.per_row}
        taken = {name: None if value is None else take_rows(value, at) for name, value in values.items()}
        return replace(self, **taken, origin=origin)  # type: ignore[type-var]

    def _name_ball(self, ball: str) -> str:
        """What may change, in short; `ball` says how a norm is written."""
        return "within limits" if self.norm is None else "any columns" if self.norm == 0 else ball.format(self.norm)

    def _name_request(self, *, with_missing: bool = True) -> str:
        """How the results were found, in short."""
        count = self.threat.missing_budget if with_missing else 0
        missing = f", missing = {count}" if count else ""
        return f"l0 = {self.threat.l0}{missing}, rule {self.rule}, {self.noise or 'no noise'}"

    def _require_same(self, other: RowResults, what: str, names: tuple[str, ...], prediction: str) -> None:
        """Refuse results of other rows, or of another request.

        `what` is how they are called, `names` are facts and `prediction` is the column in which they must agree.
        """
        if len(other) != len(self):
            raise ValueError(f"`{what}` must be about the same {len(self)} rows, got {what} of {len(other)}.")
        for name in names:
            mine, given = getattr(self, name), getattr(other, name)
            if mine != given:
                raise ValueError(f"`{what}` must have the same {name}, {mine}, got {given}.")
        own, others = getattr(self, prediction), getattr(other, prediction)
        differ = np.flatnonzero(np.asarray(own != others))
        if differ.size:
            row = int(differ[0])
            raise ValueError(
                f"`{what}` must be about the same rows, got the {prediction} {others.tolist()[row]!r} for row {row}, "
                f"which is {own.tolist()[row]!r} here."
            )
