"""What a report on intervals is made of: the regressor with its names, the rows, their targets and intervals.

Must not know what the report says or how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from derand._core.arrays import FloatArray
from derand.certificates import Intervals, ToleranceRadii
from derand.perturbation import Perturbation
from derand.report._inputs import Subject, find_moving
from derand.threat import Threat


@dataclass(frozen=True, slots=True, eq=False)
class NumberInputs:
    """Everything that the summary is computed from."""

    subject: Subject
    matrix: FloatArray
    """The rows, categories as codes."""
    targets: FloatArray | None
    intervals: Intervals
    certify_part: Callable[[FloatArray, float], Intervals]
    """Intervals of some of the rows, by number, at another radius."""
    certify_tolerance: Callable[[FloatArray, float], ToleranceRadii]
    """Radii of some of the rows, within which answers move by a tolerance at most."""
    certify_seconds: float
    whole: Mapping[int, tuple[int, int]]
    """Columns of whole numbers, in training and in these rows."""
    row_names: tuple[str | None, ...] | None = None
    has_threat: bool = True

    def name_row(self, row: int) -> str | None:
        """What a row is called where that is not its number."""
        return None if self.row_names is None else self.row_names[row]

    @property
    def units(self) -> FloatArray:
        """What one unit of radius is worth in each column's own unit."""
        return Perturbation.of(self.threat, self.subject.model.n_features, ()).units

    @property
    def rule(self) -> str:
        """How the answer is found."""
        return self.intervals.rule

    @property
    def budgets(self) -> list[int]:
        """How many categories may change."""
        return [self.threat.l0]

    @property
    def threat(self) -> Threat:
        """What may change, its columns by number, its norm and units resolved."""
        return self.intervals.threat

    @property
    def moving(self) -> list[int]:
        """Numerical features of the model that may change."""
        return find_moving(self.subject.model, self.threat)

    @property
    def n_rows(self) -> int:
        return len(self.intervals)


@dataclass(frozen=True, slots=True)
class NumberOptions:
    """What the user asked for; `IntervalReport` says what each one means."""

    title: str | None
    max_rows: int
    n_detailed: int
    seed: int
    configuration: str | None
    tolerance: float | None
    what_if: bool
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
