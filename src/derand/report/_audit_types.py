"""Types of the parts of a report that an auditor reads: what may change column by column, checksums, subgroups, and two
models side by side. Must not know how anything is computed or shown."""

from __future__ import annotations

from typing import Literal, TypedDict

from derand.metrics import EstimateSummary


class ThreatColumn(TypedDict):
    """What may become of one column."""

    column: str
    kind: Literal["number", "category"]
    moves: bool
    change: str
    """By how much it may change, or to what."""
    direction: str
    domain: str
    """Between which ends it stays; nothing where there are none."""
    values: str
    """What it may hold, such as whole numbers."""
    missing: str
    """Whether it may go missing; nothing where the model takes no gaps in it."""


class ThreatTable(TypedDict):
    """What may change: in words, and column by column."""

    words: list[str]
    note: str
    """How moves of several columns go together."""
    columns: list[ThreatColumn]
    n_moving: int


class Checksum(TypedDict):
    """What a report was made from, by which anyone can tell whether it is the same."""

    what: str
    file: str | None
    """The name of the file; None where there was none."""
    sha256: str
    of: str
    """Of which bytes."""


ContrastKind = Literal["certified", "wrong", "answer"]


class Contrast(TypedDict):
    """A share of the rows of a group, that of all other rows, and the difference, with 95 % intervals; null where there
    are no such rows."""

    kind: ContrastKind
    title: str
    count: int
    n_rows: int
    share: EstimateSummary | None
    share_text: str
    interval_text: str
    others: EstimateSummary | None
    others_text: str
    difference: EstimateSummary | None
    difference_text: str
    """In percentage points, as its interval."""
    difference_interval_text: str
    chance: float | None
    """The probability of so large a difference by chance, raised for the number of comparisons in the report."""
    mark: Literal["", "more", "less"]
    """Whether the difference is larger than chance explains, and which way."""


class GroupComparison(TypedDict):
    """How the subgroups of a report were compared."""

    n_comparisons: int
    n_marked: int
    level: float
    sentence: str


class ComparedLine(TypedDict):
    """A figure of both models, as text, with its intervals where it has any."""

    name: str
    texts: list[str]
    intervals: list[str]


class ComparedShare(TypedDict):
    """A share of the rows by both models, and on how many rows the one has it and the other has not."""

    name: str
    shares: list[EstimateSummary]
    only: list[int]
    chance: float
    """The probability of so uneven a split of these rows, or a more uneven one, where both are of equal worth."""


class Disagreement(TypedDict):
    """A row on which two models differ."""

    row: int
    name: str | None
    truth: str | None
    labels: list[str]
    radii: list[float | Literal["inf"]]
    texts: list[str]
    """Their radii as text, or verdicts."""


class DisagreementTable(TypedDict):
    """Rows on which two models differ in one way: how many there are, and the first of them."""

    key: Literal["answers", "first", "second"]
    title: str
    n_rows: int
    rows: list[Disagreement]


class Comparison(TypedDict):
    """Two models on the same rows, against the same changes; the first is that of the report."""

    names: list[str]
    measure: str
    sentence: str
    remarks: list[str]
    """Where the two differ in what they were trained for: a reader must not compare unlike things."""
    same_answers: int
    shares: list[ComparedShare]
    lines: list[ComparedLine]
    radii: list[float]
    end: float
    """Where the chart ends."""
    curves: list[list[float]]
    """The share of rows that each has certified (and right, with labels) over these radii."""
    major: list[float]
    table: list[list[str]]
    """The same at some of them, as text."""
    disagreements: list[DisagreementTable]
