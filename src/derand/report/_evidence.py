"""Evidence for a file: the facts of a report and of the run that made it, in the order in which reviewers ask.

Facts alone: no claim about any law. Parts that were not asked for are named, with the key that asks for them. Must not
know how anything was computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from derand._core.text import quote_short
from derand.report import _blocks as ui
from derand.report._markup import mark_text
from derand.report._page import Summary, choose_sections, list_sections

_PARTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Accuracy", ("answers", "errors"), "Not measured: the rows have no true answers."),
    (
        "Robustness",
        ("guarantee", "threat", "accuracy", "intervals", "tolerance", "radii", "witnesses"),
        "Not measured.",
    ),
    ("Groups", ("subgroups",), "Not measured: no groups were named, by `subgroups` of [report]."),
    (
        "Every row, seen or not",
        ("promises",),
        "Not asked: no protected columns were named, by `protected` of [report].",
    ),
    ("Another model beside it", ("compare",), "Not compared: no other model was named, by `compare` of [report]."),
    ("Records", ("computed",), ""),
)
"""Titles, the sections of the report below each, and what is said where there is none of them."""


def to_evidence(summary: Summary, run: Mapping[str, Any]) -> str:
    """A report's dict and the record of its run as one Markdown document.

    `run` has the keys `configuration`, `inputs`, `held_out` and `steps` of `run.json`.
    """
    sections = {one.anchor: one for one in choose_sections(summary)}
    known = {one.anchor for one in list_sections(summary)}
    parts = [f"# Evidence: {mark_text(summary['title'])}", *ui.write_markdown(_describe_run(summary, run))]
    for title, anchors, missing in _PARTS:
        if known.isdisjoint(anchors):
            continue
        parts.append(f"## {title}")
        found = [part for at in anchors if at in sections for part in ui.write_markdown(sections[at].blocks(summary))]
        parts += [re.sub(r"\A##+", r"\g<0>#", part) for part in found] or [missing]
        if title == "Robustness":
            parts += ui.write_markdown(_describe_audit(run["steps"].get("audit")))
    return "\n\n".join(filter(None, parts)) + "\n"


def _describe_run(summary: Summary, run: Mapping[str, Any]) -> list[ui.Block]:
    """Data and model: which files, which rows, and what must be known first."""
    steps, held, banner = run["steps"], run["held_out"], summary["banner"]
    facts = [(f"File {one['file']}", f"sha256 {one['sha256']}") for one in run["inputs"]]
    configuration = run["configuration"]
    facts.append((f"Configuration {configuration['file']}", f"sha256 {configuration['sha256']}"))
    if "train" in steps:
        facts += _describe_training(steps["train"])
    if held is not None:
        drawn = (
            f"{held['rows']:,} ({held['share']:g} of the table, seed {held['seed']}), not trained on: {held['file']}"
        )
        facts.append(("Rows held out", drawn))
    rows = summary["data"]["n_rows"]
    facts.append(("Rows that all figures below are about", f"{rows:,}"))
    first = [*([] if banner is None else [f"{banner['title']}. {banner['text']}"]), *summary["notes"]]
    return [
        ui.Paragraph(
            "Facts of one run, filled in by derand. They say nothing about whether a rule or a law is met: that is for "
            "people to judge. Purpose, oversight and operation of the system are not known here."
        ),
        ui.Heading("Data and model", "data"),
        ui.FactList(facts),
        *([ui.Bullets(first)] if first else []),
    ]


def _describe_training(trained: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of the model that the run trained."""
    unused = [quote_short(one["name"]) for one in trained["columns"] if one["use"] == "ignored"]
    facts = [
        ("Trained", f"{trained['trainer']} on {trained['rows']:,} rows, target {quote_short(trained['target'])}"),
        ("Columns not used", ", ".join(unused) or "none"),
    ]
    return facts + [("Found before training", one) for one in trained["warnings"]]


def _describe_audit(audit: Mapping[str, Any] | None) -> Sequence[ui.Block]:
    """What was proven once more, by other code."""
    if audit is None:
        return [ui.Paragraph("The claims were not audited by independent code: no [audit] was asked for.")]
    looked = ", ".join(audit["not_checked"]) or "nothing"
    return [
        ui.Paragraph(
            f"Audit by independent code in exact arithmetic: the claims of {audit['proven']:,} of {audit['audited']:,} "
            f"rows were proven again, drawn from {audit['rows']:,}. Not looked at: {looked}."
        )
    ]
