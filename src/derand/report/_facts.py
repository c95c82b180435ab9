"""Types of what every section of a report may ask: model, rows, noise, rule, threat and radii.

Must not know how anything is computed or shown.
"""

from __future__ import annotations

from typing import Literal, TypedDict

Size = float | Literal["inf"]
"""A radius or a move that may have no limit: JSON has no number for that, so it is the text "inf" there. `float` reads
both."""


class RegressorFacts(TypedDict):
    """What was certified."""

    estimator: str | None
    parameters: dict[str, str]
    n_terms: int
    n_numerical: int
    n_categorical: int
    feature_names: list[str]
    not_read: list[str]


class ModelFacts(RegressorFacts):
    """What was certified, of a classifier."""

    kind: str
    n_members: int | None
    threshold: int | None
    levels: int | None
    decision_threshold: float | None
    """The probability from which on the score decides for the second class; None where it is none."""
    score_unit: Literal["points", "log-odds"]
    """In what pushes, scores and margins count."""
    classes: list[str]


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


class RegressionData(TypedDict):
    """On which rows."""

    n_rows: int
    n_features: int
    has_targets: bool
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


class RegressionRule(TypedDict):
    """How an answer is found."""

    name: str
    sentence: str


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


class Banner(TypedDict):
    """What a reader must know before anything else: that a model is worth no more than a constant answer."""

    level: Literal["warning", "note"]
    title: str
    text: str


class Facts(TypedDict):
    """What every section of a report on a classifier may ask."""

    model: ModelFacts
    data: DataFacts
    noise: NoiseFacts
    rule: RuleFacts
    threat: ThreatFacts
    scale: Scale


class RegressionFacts(TypedDict):
    """What every section of a report on a regressor may ask."""

    model: RegressorFacts
    data: RegressionData
    noise: NoiseFacts
    rule: RegressionRule
    threat: ThreatFacts
    radius: float | None
    """None where limits alone say what may change."""
