"""The dict of a report on intervals: its keys and types."""

from __future__ import annotations

from typing import TypedDict

from derand.report._audit_types import Checksum, ThreatTable
from derand.report._types import Computed, Guarantee, NoiseFacts, Size, ThreatFacts


class RegressorFacts(TypedDict):
    """What was certified."""

    estimator: str
    parameters: dict[str, str]
    n_terms: int
    n_numerical: int
    n_categorical: int
    feature_names: list[str]
    not_read: list[str]


class NumberData(TypedDict):
    """On which rows."""

    n_rows: int
    n_features: int
    has_targets: bool
    sha256: str


class NumberRule(TypedDict):
    """How an answer is found."""

    name: str
    sentence: str


class Errors(TypedDict):
    """How far answers are from the truth, without any change."""

    rmse: float
    mean_absolute: float
    inside: int
    """How many true numbers lie in the interval of their row."""


class Spread(TypedDict):
    """A number of which half of the rows have that or less, nine in ten, all."""

    half_of_rows: Size
    nine_in_ten: Size
    largest: Size


class WidthCurve(TypedDict):
    """Width over the radius; of a sample where there are many rows."""

    radii: list[float]
    half_of_rows: list[Size]
    nine_in_ten: list[Size]
    n_rows: int


class IntervalRow(TypedDict):
    """A row; it counts from 1."""

    row: int
    value: float
    low: Size
    high: Size
    width: Size
    truth: float | None
    inside: bool | None


class IntervalRows(TypedDict):
    """Rows of the table and of the picture in their order, and the widest of all."""

    table: list[IntervalRow]
    widest: list[IntervalRow]
    sampled: bool
    seed: int


class IntervalSummary(TypedDict):
    """All that a report on intervals says."""

    schema: str
    title: str
    model: RegressorFacts
    data: NumberData
    noise: NoiseFacts
    rule: NumberRule
    threat: ThreatFacts
    threat_table: ThreatTable
    notes: list[str]
    """What else a reader must know of the model."""
    radius: float | None
    """None where limits alone say what may change."""
    guarantee: Guarantee
    moves: Spread
    """By how much answers can move."""
    widths: Spread
    errors: Errors | None
    curve: WidthCurve | None
    rows: IntervalRows
    left_out: list[str]
    checksums: list[Checksum]
    computed: Computed
