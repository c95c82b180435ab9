"""Types of the report's dict, which `CertificateReport.to_dict` returns and every output renders.

One class per section, named as README.md lists them. Must not know how anything is computed or shown.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from derand.metrics import AnswerSummary, RadiusFigures
from derand.report._audit_types import Checksum, Comparison, Contrast, GroupComparison, ThreatTable
from derand.report._rival_types import Rivals
from derand.report._what_if_types import WhatIf

Size = float | Literal["inf"]
"""A radius or a move that may have no limit: JSON has no number for that, so it is the text "inf" there. `float` reads
both."""


LAW_HEIGHT = 1000
"""What the highest bin of a law counts, and a cdf of 1."""


class Scale(TypedDict):
    """Radii at which curves are known, those of tables, where charts end, and the one that the text speaks of."""

    radii: list[float]
    major: list[float]
    end: float
    quoted: float
    stated: bool
    """Whether the user stated it; otherwise it is the same in every report."""
    trained: float | None
    """What the model was trained for, where it is certified in the same balls."""


class ModelFacts(TypedDict):
    """What was certified."""

    kind: str
    estimator: str | None
    parameters: dict[str, str]
    n_terms: int
    n_members: int | None
    threshold: int | None
    levels: int | None
    decision_threshold: float | None
    """The probability from which on the score decides for the second class; None where it is none."""
    score_unit: Literal["points", "log-odds"]
    """In what pushes, scores and margins count."""
    classes: list[str]
    feature_names: list[str]
    n_numerical: int
    n_categorical: int
    not_read: list[str]


class ClassCount(TypedDict):
    """How many rows have a label."""

    name: str
    n_rows: int


class DataFacts(TypedDict):
    """On which rows."""

    n_rows: int
    n_features: int
    has_labels: bool
    class_counts: list[ClassCount]
    sha256: str


class NoiseFacts(TypedDict):
    """Under which noise, and how the size of a change is measured; "none" is the model as deployed."""

    name: str
    text: str
    parameter: str
    magnitude: float | None
    norm: int | None
    unit: str
    measure: str


class ProofCount(TypedDict):
    """How many radii a proof gave."""

    proof: str
    n_rows: int


class RuleFacts(TypedDict):
    """How the answer is found, and what proves that it stays."""

    name: str
    answer: str
    sentence: str
    proof: str
    proofs: list[ProofCount]
    proof_sentence: str


class LimitFacts(TypedDict):
    """By how much a column may change, or between which ends it stays; "*" is every other number."""

    column: str
    text: str


class ThreatFacts(TypedDict):
    """What may change. The norm is null where limits alone say so; `given` tells a threat from the default, `bounded`
    whether more than a norm bounds a change."""

    given: bool
    bounded: bool
    norm: Size | None
    norm_text: str
    l0: int
    missing: int
    """How many numbers may go missing or appear."""
    unseen: bool
    frozen: list[str]
    limits: list[LimitFacts]
    domain: list[LimitFacts]
    sentences: list[str]


class VerdictCount(TypedDict):
    """What is known of some rows where limits alone say what may change; those of one class by its name."""

    name: str
    n_rows: int
    holds: int
    flips: int
    undecided: int


class Banner(TypedDict):
    """What a reader must know before anything else: that a model is worth no more than a constant answer."""

    level: Literal["warning", "note"]
    title: str
    text: str


class FigureLine(TypedDict):
    """A figure of the answers as text, its 95 % interval, and what a constant answer gets."""

    name: str
    value: str
    interval: str
    constant: str


class CalibrationLine(TypedDict):
    """Rows of like probabilities, as text."""

    rows: str
    predicted: str
    observed: str
    interval: str


class Answers(TypedDict):
    """How good the answers are, whatever is proven of them."""

    figures: AnswerSummary
    sentence: str
    """What the best constant answer gets."""
    lines: list[FigureLine]
    calibration: list[CalibrationLine]


class HeadlineNumber(TypedDict):
    """A number at the top of the page."""

    name: str
    value: str
    note: str


class Guarantee(TypedDict):
    """What is proven, in words."""

    paragraph: str
    measure: str
    limits: list[str]
    numbers: list[HeadlineNumber]


class Radii(TypedDict):
    """Typical radii; the last three need labels, and the last of them a ball."""

    median: Size
    tenth: Size
    smallest: Size
    largest: Size
    certified_rows: int
    accuracy: NotRequired[float]
    balanced_accuracy: NotRequired[float]
    certified: NotRequired[RadiusFigures]
    """Rows without a limit, average and median of the others; wrong answers count 0."""


class Series(TypedDict):
    """A curve over the radii of the scale."""

    key: str
    role: Literal["all", "balanced", "class", "l0", "baseline"]
    label: str
    l0: int
    values: list[float]


class Baseline(TypedDict):
    """What the model is compared with, in words."""

    key: str
    label: str
    description: str
    accuracy: float


class Accuracy(TypedDict):
    """Certified accuracy over the radius; the certified share where there are no labels."""

    measure: str
    series: list[Series]
    baselines: list[Baseline]


class TableLine(TypedDict):
    """A curve at the radii of the table."""

    key: str
    label: str
    values: list[float]
    text: list[str]


class AccuracyTable(TypedDict):
    """The curves at the major radii."""

    radii: list[float]
    rows: list[TableLine]


class Histogram(TypedDict):
    """How many rows have which radius, and how many lie beside the bins."""

    edges: list[float]
    right: list[int]
    wrong: list[int]
    beyond: int
    nothing_certified: int
    cannot_flip: int


class Move(TypedDict):
    """How far a numerical feature may move alone."""

    feature: int
    name: str
    unit: float
    half_of_rows: Size
    nine_in_ten: Size
    low: float
    high: float
    days: bool
    """Whether the column was one of dates, and its numbers are days."""
    limit: str
    sentence: str


class _Shape(TypedDict):
    feature: int
    name: str
    importance: float


class OtherPush(TypedDict):
    """Push of values that no other entry names, and how many rows have one."""

    push: float
    count: int


class NumericalShape(_Shape):
    """Pushes of a number: the steps, their mean under noise (nothing without any), the data beneath, and the push of a
    missing value with how many rows have none (null where such rows are refused). Of a line, without edges, the pushes
    at both ends."""

    kind: Literal["numerical"]
    low: float
    high: float
    days: bool
    edges: list[float]
    pushes: list[float]
    smooth: list[float]
    counts: list[int]
    noise_scale: float | None
    missing: OtherPush | None


class CategoryPush(OtherPush):
    """Push of a category."""

    name: str


class CategoricalShape(_Shape):
    """Pushes of categories, the most frequent ones first."""

    kind: Literal["categorical"]
    categories: list[CategoryPush]
    left_out: int
    other: OtherPush


Shape = NumericalShape | CategoricalShape


class Push(TypedDict):
    """What one feature adds to a row's score."""

    feature: int
    value: str
    push: float


class RowPushes(TypedDict):
    """The strongest pushes of a row, the sum of the others, and that of all."""

    listed: list[Push]
    rest: float
    n_rest: int
    total: float


class BinnedLaw(TypedDict):
    """A law as heights of bins from `start` on, of at most LAW_HEIGHT."""

    start: int
    density: list[int]
    cdf: list[int]


class Law(BinnedLaw):
    """The law of a row's score, and its percentile for each radius of the scale, in bins; no percentiles where the
    failure mass certifies nothing. By the rule "mean" the place of the expected score instead."""

    percentile: list[float]
    mean: float | None


class LawAxis(TypedDict):
    """The bins that all shown laws share."""

    threshold: int
    width: int
    n_bins: int
    threshold_bin: int
    low: int
    failure_at: list[float]
    points: float
    """How many whole scores are one unit of what is shown."""


class RowFacts(TypedDict):
    """What is certified of a row; radii by the number of categorical changes."""

    row: int
    name: str | None
    """What the row is called, such as by an id; None is its number."""
    label: str
    runner_up: str | None
    """Of several classes the rival that decides the radius."""
    truth: str | None
    correct: bool | None
    is_one: bool
    radius: list[Size]
    radius_text: list[str]
    failure: float | None
    failure_text: str | None
    score: float | None
    score_text: str | None
    margin: float | None
    margin_text: str | None
    verdict: str | None


class Row(RowFacts):
    """A line of the row table."""

    pushes: RowPushes | None
    law: Law | None


class Change(TypedDict):
    """How a flip moves one feature."""

    name: str
    before: str
    after: str
    move: str


class NoFlip(TypedDict):
    """No flip was found; nothing was searched where none is possible."""

    found: Literal[False]
    searched: bool


class FoundFlip(TypedDict):
    """The nearest flip that was found; without a distance where limits alone say what may change."""

    found: Literal[True]
    searched: Literal[True]
    distance: float | None
    distance_text: str
    label: str
    whole: str
    """What is said where columns of whole numbers would take fractions; the changes are then those in whole numbers."""
    n_changes: int
    changes: list[Change]


Attack = NoFlip | FoundFlip


class WitnessChange(Change):
    """How a witness changes one column, its numbers in full; no numbers for a category."""

    feature: int
    before_value: float | None
    after_value: float | None


class Witness(TypedDict):
    """A change within the limits that flips a row, from the largest move in units to the smallest."""

    row: int
    name: str | None
    label: str
    other: str
    changes: list[WitnessChange]
    sentence: str


class Verdicts(TypedDict):
    """What is known where limits alone say what may change; the first count is of all rows, others are of classes."""

    sentence: str
    counts: list[VerdictCount]
    held: list[str]
    """The first rows that are proven to hold, and below those that are undecided, by name or number."""
    undecided: list[str]
    witnesses: list[Witness]


class Explained(TypedDict):
    """An explained row: its place in the row table, and a change that flips it."""

    at: int
    attack: Attack


class ListedRows(TypedDict):
    """The rows that the page lists, the weakest first, in columns; classes by their places.

    `radius` has a column per number of categorical changes; `detailed` are the places of those rows whose details are
    in `Rows.table`.
    """

    row: list[int]
    name: list[str | None] | None
    label: list[int]
    runner_up: list[int] | None
    truth: list[int] | None
    radius: list[list[Size]]
    verdict: list[str] | None
    detailed: list[int]


class Rows(TypedDict):
    """The rows that are listed, and in `table` those of them with details: the weakest and a sample, weakest first."""

    n_rows: int
    sampled: bool
    """Whether fewer rows are listed than there are."""
    n_weakest: int
    """How many of the listed rows are the weakest of all; the others are a sample."""
    n_weakest_detailed: int
    seed: int
    law_axis: LawAxis | None
    listed: ListedRows
    table: list[Row]
    explained: list[Explained]


class GroupShare(TypedDict):
    """How many rows of a group are certified at the quoted radius, and right."""

    certified: float
    certified_text: str
    accuracy: NotRequired[float]
    accuracy_text: NotRequired[str]
    flips: NotRequired[int]


class Group(GroupShare):
    """Rows that have something in common."""

    name: str
    n_rows: int
    median_radius: Size
    median_radius_text: str
    contrasts: list[Contrast]
    """Certified rows; with labels also wrong answers and, of two classes, those to the rows of each class."""


class Subgroups(TypedDict):
    """The groups of one column."""

    column: str
    groups: list[Group]


class ClassAnswers(TypedDict):
    """The rows of one true class: how often each class was the answer, and what is certified."""

    name: str
    n_rows: int
    answers: list[int]
    right_text: str
    certified: float | None
    certified_text: str


class Confusion(TypedDict):
    """Of several classes: answers by true class."""

    classes: list[str]
    rows: list[ClassAnswers]


class Computed(TypedDict):
    """When, with what and how fast; without seconds where SOURCE_DATE_EPOCH fixes the time."""

    when: str
    configuration: str | None
    """The file that says how the report was made, with its checksum; None where there is none."""
    versions: dict[str, str]
    certify_seconds: float | None
    report_seconds: float | None


class ReportSummary(TypedDict):
    """All that a report says."""

    schema: str
    title: str
    banner: Banner | None
    notes: list[str]
    """What else a reader must know of the model, such as columns that may tell the target."""
    model: ModelFacts
    data: DataFacts
    noise: NoiseFacts
    rule: RuleFacts
    threat: ThreatFacts
    threat_table: ThreatTable
    guarantee: Guarantee
    answers: Answers | None
    scale: Scale
    radii: Radii
    accuracy: Accuracy
    table: AccuracyTable
    comparison: Comparison | None
    verdicts: Verdicts | None
    confusion: Confusion | None
    rivals: Rivals | None
    histogram: Histogram
    moves: list[Move]
    shapes: list[Shape]
    rows: Rows
    what_if: WhatIf | None
    subgroups: list[Subgroups]
    group_comparison: GroupComparison | None
    left_out: list[str]
    checksums: list[Checksum]
    computed: Computed
