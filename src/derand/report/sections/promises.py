"""Promises about every row, seen or not: that protected columns alone never flip an answer, and what the score can do.

Only where a report is asked for it (`protected`).
"""

from __future__ import annotations

from typing import TypedDict

from derand._core.text import format_short_up
from derand.explain import ModelPromises
from derand.report import _blocks as ui
from derand.report._facts import Facts
from derand.report._inputs import LabelInputs
from derand.report._settings import ReportSettings

_DIGITS = 3


class Swing(TypedDict):
    """How far the columns of one term can move the score."""

    columns: list[str]
    size: float
    direction: str


class ProvenPromises(TypedDict):
    """What holds for every row of the domain."""

    domain: str
    sentences: list[str]
    verdicts: list[str]
    """Of the protected columns and directions that were asked for, in this order."""
    unit: str
    swings: list[Swing]


class Parts(Facts):
    """What this section reads."""

    promises: ProvenPromises | None


def compute(inputs: LabelInputs, settings: ReportSettings) -> ProvenPromises | None:
    """The promises of the model over its default domain, and shares of the report's rows."""
    if settings.protected is None:
        return None
    if inputs.subject.estimator is None:
        raise ValueError("`protected` needs a fitted classifier, which knows its columns, got a bare model.")
    from derand.estimators import prove_encoded

    norm = inputs.threat.norm
    found: ModelPromises = prove_encoded(
        inputs.subject.estimator,
        inputs.matrix,
        noise=inputs.subject.noise,
        rule=inputs.rule,
        protected=settings.protected,
        radius=settings.radius if norm in (1, 2, float("inf")) else None,
        norm=float("inf") if norm not in (1, 2) else float(norm),
    )
    return {
        "domain": found.domain_text,
        "sentences": list(found.sentences),
        "verdicts": [one.verdict for one in found.promises if one.kind != "class"],
        "unit": found.unit,
        "swings": [
            {
                "columns": [found.names.columns[at] for at in one.columns],
                "size": one.size,
                "direction": one.direction,
            }
            for one in found.swings
        ],
    }


def blocks(summary: Parts) -> list[ui.Block]:
    """The promises as sentences, and how far each column can move the score."""
    found = summary["promises"]
    assert found is not None  # else there is no section
    lines = [
        [", ".join(one["columns"]), format_short_up(one["size"], _DIGITS), one["direction"]] for one in found["swings"]
    ]
    return [
        ui.Heading("Promises about every row", "promises"),
        ui.Paragraph(f"They hold for every row of the domain, seen or not: {found['domain']}."),
        ui.Bullets(found["sentences"]),
        ui.Table(
            ["column", f"moves the score by at most ({found['unit']})", "direction"], lines, "Swings of the score"
        ),
    ]


SECTION = ui.Section("promises", lambda s: "Promises" if s["promises"] else "", blocks)
