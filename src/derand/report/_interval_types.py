"""The dict of a report on intervals: its keys and types."""

from __future__ import annotations

from typing import TypedDict

from derand.report._audit_types import Checksum, ThreatTable
from derand.report._types import Banner, Computed, Guarantee, NoiseFacts, Size, ThreatFacts
from derand.report._what_if_types import WhatIf


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
    constant: float
    """The mean of the truth: the constant answer that the model is compared with."""
    constant_rmse: float
    constant_absolute: float
    explained: float | None
    """The share of the variance of the truth that answers explain; null where the truth has none."""


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
    name: str | None
    """What the row is called; null for its number."""
    value: float
    low: Size
    high: Size
    width: Size
    truth: float | None
    inside: bool | None
    radius: Size | None
    """Closer than which its answer moves by the tolerance at most; null where that was not asked."""


class ListedNumbers(TypedDict):
    """The rows that the page lists, in their order, in columns; `detailed` are the places of those in the table."""

    row: list[int]
    name: list[str | None] | None
    value: list[float]
    low: list[Size]
    high: list[Size]
    truth: list[float] | None
    tolerance: list[Size | None] | None
    """The radius of a row for the tolerance; null for rows without details."""
    detailed: list[int]


class IntervalRows(TypedDict):
    """Rows that are listed, those of them in the table and the picture, in their order, and the widest of all."""

    listed: ListedNumbers
    table: list[IntervalRow]
    widest: list[IntervalRow]
    sampled: bool
    """Whether fewer rows are listed than there are."""
    n_rows: int
    """Of all rows."""
    seed: int


class ToleranceFacts(TypedDict):
    """How far rows may be moved while their answers move by a tolerance at most; of the rows of the table."""

    tolerance: float
    reason: str
    """Where the tolerance comes from, as part of a sentence."""
    n_rows: int
    half_of_rows: Size
    """The radius that half of them reach, or more."""
    nine_in_ten: Size
    below: int
    """Rows whose radius is below that of the report."""
    smallest: list[IntervalRow]


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
    banner: Banner | None
    curve: WidthCurve | None
    tolerance: ToleranceFacts | None
    """None where there is no radius, or no number may change."""
    rows: IntervalRows
    what_if: WhatIf | None
    left_out: list[str]
    checksums: list[Checksum]
    computed: Computed
