"""The report's dict -> HTML, Markdown, LaTeX: a list of sections that the model's decision and the threat choose.

Renders what is there: computes nothing.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from markupsafe import Markup

from derand.report._blocks import Section, write_latex, write_markdown
from derand.report._markup import embed, escape_latex, mark_text, put_on_one_line, read_static, render
from derand.report.sections import (
    accuracy,
    classes,
    compare,
    computed,
    intervals,
    limits,
    monitor,
    one_page,
    predictions,
    promises,
    radii,
    rows,
    shapes,
    subgroups,
    threat,
    units,
    weakest,
    what_if,
)

Summary = Any
"""A ReportSummary or an IntervalSummary."""

_LABELS = (
    *(subgroups.SECTION, compare.SECTION, promises.SECTION, classes.SECTION, predictions.SECTION, radii.SECTION),
    *(units.SECTION, shapes.SECTION, weakest.SECTION, rows.SECTION, what_if.SECTION, computed.SECTION),
)
SECTIONS: dict[str, tuple[Section, ...]] = {
    "radius": (one_page.SECTION, threat.SECTION, accuracy.SECTION, *_LABELS),
    "limits": (one_page.SECTION, threat.SECTION, limits.SECTION, limits.WITNESSES, *_LABELS),
    "intervals": (
        *(one_page.SECTION, threat.SECTION, intervals.SECTION, subgroups.SECTION, predictions.ERRORS),
        *(intervals.TOLERANCE, shapes.SECTION, intervals.WIDEST, intervals.ROWS, what_if.SECTION, computed.SECTION),
    ),
}
"""From the decision to the details: of a classifier within a radius or within limits alone, and of a regressor."""
_LONGEST_NOTE = 140
_ROOM = 2800
"""Letters that a page to sign holds in its usual size; with more, it is printed smaller."""
_BELOW = ("answers", "compare")
"""Tables of LaTeX that stand below the main one."""


def _is_regression(summary: Summary) -> bool:
    return "errors" in summary


def list_sections(summary: Summary) -> tuple[Section, ...]:
    """The sections that a report of this kind may have."""
    within = "limits" if summary["threat"]["norm"] is None else "radius"
    return SECTIONS["intervals" if _is_regression(summary) else within]


def choose_sections(summary: Summary) -> list[Section]:
    """Those that this report has."""
    return [one for one in list_sections(summary) if one.link(summary)]


def to_html(summary: Summary, *, one_page: bool = False) -> str:
    """One file with its styles, scripts and data inside, and the policy that lets a browser run these and no others.

    `one_page`: its first part alone, without scripts, which prints to a page.
    """
    if _is_regression(summary):
        kind, code, data = "Interval report", ["intervals"], intervals.list_data(summary)
    else:
        kind, code, data = "Certificate report", [], rows.list_data(summary)
    chosen = choose_sections(summary)[: 1 if one_page else None]
    is_dense = one_page and _count_letters(summary, chosen[0]) > _ROOM
    moved = {} if one_page else what_if.list_data(summary)
    styles = ["report", "audit", *code, *(["whatif"] if moved else [])]
    style = Markup("".join(read_static(f"{name}.css") for name in styles))
    scripts = [Markup("\n".join(read_static(f"{name}.js") for name in ("common", "rows", *(code or ["report"]))))]
    scripts += [Markup(read_static("whatif.js"))] if moved else []
    scripts, allowed = ([], "'none'") if one_page else (scripts, " ".join(map(_hash_code, scripts)))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        f"style-src-elem {_hash_code(style)}; style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return render(
        "page",
        summary,
        kind=kind,
        sections=chosen,
        one_page=one_page,
        is_dense=is_dense,
        style=style,
        scripts=scripts,
        policy=Markup(policy),
        data=embed(data),
        moved=embed(moved),
        score=what_if.title_score(summary) if moved else "",
    )


def to_monitor_html(summary: Summary) -> str:
    """A page about batches of rows, of the same blocks and styles, without scripts."""
    style = Markup(read_static("report.css"))
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; style-src-elem {_hash_code(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    sections = [one for one in monitor.SECTIONS if one.link(summary)]
    more = {"one_page": False, "is_dense": False, "sections": sections}
    return render("monitor", summary, **more, style=style, policy=Markup(policy))


def to_monitor_markdown(summary: Summary) -> str:
    """The same as Markdown."""
    parts = [f"# {mark_text(summary['title'])}"]
    for section in monitor.SECTIONS:
        parts += write_markdown(section.blocks(summary)) if section.link(summary) else []
    return "\n\n".join(filter(None, parts)) + "\n"


def _count_letters(summary: Summary, section: Section) -> int:
    """How much a page to sign has to hold."""
    above = [summary["title"], *summary["notes"][:2], *((summary["banner"] or {}).values())]
    return len(section.html(summary).striptags()) + sum(min(len(text), _LONGEST_NOTE) for text in above)


def _hash_code(code: str) -> str:
    """How a content security policy names an inline script or style."""
    digest = hashlib.sha256(code.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def to_markdown(summary: Summary) -> str:
    """The guarantee, the tables and how they were computed."""
    banner = summary["banner"]
    parts = [f"# {mark_text(summary['title'])}"]
    parts += [] if banner is None else [f"> **{mark_text(banner['title'])}.** {mark_text(banner['text'])}"]
    parts += [f"> {mark_text(note)}" for note in summary["notes"]]
    for section in choose_sections(summary):
        parts += write_markdown(section.blocks(summary))
    return "\n\n".join(filter(None, parts)) + "\n"


def to_latex(summary: Summary) -> str:
    """The main table; what a reader must know first stands above it, and figures of the answers below."""
    banner, lines = summary["banner"], []
    if banner is not None and not _is_regression(summary):
        title, text = (escape_latex(put_on_one_line(banner[key])) for key in ("title", "text"))
        lines.append(rf"\noindent\textbf{{{title}.}} {text}\par\medskip")
    lines += [rf"\noindent {escape_latex(put_on_one_line(note))}\par\medskip" for note in summary["notes"]]
    words = [summary["rule"]["sentence"], *summary["threat"]["sentences"]]
    lines += [f"% {put_on_one_line(sentence)}" for sentence in words]
    for section in sorted(choose_sections(summary), key=lambda one: one.anchor in _BELOW):
        lines += write_latex(section.blocks(summary))
    return "\n".join(lines) + "\n"
