"""Rows with their intervals: a table of all, and the widest."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import IntArray
from derand._core.text import format_exactly, format_short, format_short_down, format_short_up
from derand.report._facts import NumberFacts, Size
from derand.report._inputs import IntervalInputs
from derand.report._markup import make_pipe_table, name_row, render
from derand.report._packing import pack_listed
from derand.report._settings import ReportSettings
from derand.report.sections import Section
from derand.report.sections.what_if import WhatIf


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


class Parts(NumberFacts):
    """What this section reads."""

    rows: IntervalRows
    tolerance: ToleranceFacts | None
    what_if: WhatIf | None


_WIDEST = 10


def compute(inputs: IntervalInputs, settings: ReportSettings, random: np.random.Generator) -> IntervalRows:
    listed = draw_some(inputs.n_rows, settings.max_rows, random)
    detailed = draw_some(listed.size, settings.n_detailed, random)
    widest = np.argsort(-inputs.intervals.width, kind="stable")[:_WIDEST]
    return {
        "listed": _list_columns(inputs, listed, detailed),
        "table": [_describe_row(inputs, at) for at in listed[detailed].tolist()],
        "widest": [_describe_row(inputs, at) for at in widest.tolist()],
        "sampled": listed.size < inputs.n_rows,
        "n_rows": inputs.n_rows,
        "seed": settings.seed,
    }


def draw_some(n_rows: int, limit: int, random: np.random.Generator) -> IntArray:
    """Places of all rows, or of a random sample, in their order."""
    everything = np.arange(n_rows)
    return everything if n_rows <= limit else np.sort(random.choice(everything, limit, replace=False))


def _list_columns(inputs: IntervalInputs, listed: IntArray, detailed: IntArray) -> ListedNumbers:
    """What the page says of each row that it lists; radii for a tolerance come later."""
    found, targets = inputs.intervals, inputs.truth
    return {
        "row": (listed + 1).tolist(),
        "name": None if inputs.row_names is None else [inputs.row_names[at] for at in listed.tolist()],
        "value": found.value[listed].tolist(),
        "low": found.low[listed].tolist(),
        "high": found.high[listed].tolist(),
        "truth": None if targets is None else targets[listed].tolist(),
        "tolerance": None,
        "detailed": detailed.tolist(),
    }


def _describe_row(inputs: IntervalInputs, at: int) -> IntervalRow:
    found = inputs.intervals
    low, high = float(found.low[at]), float(found.high[at])
    truth = None if inputs.truth is None else float(inputs.truth[at])
    return {
        "row": at + 1,
        "name": inputs.name_row(at),
        "value": float(found.value[at]),
        "low": low,
        "high": high,
        "width": high - low,
        "truth": truth,
        "inside": None if truth is None else low <= truth <= high,
        "radius": None,
    }


def html(summary: Parts) -> Markup:
    """The table with its controls."""
    has_radius = summary["tolerance"] is not None
    table = [_list_row(row, with_radius=has_radius) for row in summary["rows"]["table"]]
    return render("interval_rows", summary, head=_list_head(summary, with_radius=has_radius), table=table)


def html_widest(summary: Parts) -> Markup:
    """The widest intervals."""
    return render("widest", summary, head=_list_head(summary), lines=list(map(_list_row, summary["rows"]["widest"])))


def markdown_widest(summary: Parts) -> list[str]:
    """The same."""
    title = f"## Rows with the widest intervals: {len(summary['rows']['widest'])} of {summary['data']['n_rows']:,}"
    head = [name.lower() for name in _list_head(summary)]
    return [title, make_pipe_table(head, list(map(_list_row, summary["rows"]["widest"])))]


def list_data(summary: Parts) -> dict[str, object]:
    """What the page's scripts need of the rows."""
    radius: Size = "inf" if summary["radius"] is None else summary["radius"]
    found = summary["tolerance"]
    return {
        "classes": [],
        "report_radius": radius,
        "report_radius_text": "within the limits" if summary["radius"] is None else format_exactly(summary["radius"]),
        "tolerance_name": None if found is None else f"Radius for ±{format_exactly(found['tolerance'])}",
        "listed": pack_listed(summary["rows"]["listed"]),
        "n_movable": 0 if summary["what_if"] is None else summary["what_if"]["n_rows"],
    }


def _list_head(summary: Parts, *, with_radius: bool = False) -> list[str]:
    truth = ["Truth"] if summary["data"]["has_targets"] else []
    return ["Row", "Answer", "Lowest", "Highest", "Width", *truth, *(["Radius"] if with_radius else [])]


def _list_row(row: IntervalRow, *, with_radius: bool = False) -> list[str]:
    """The cells of a row: lowest rounded down, highest and width rounded up, a radius cut."""
    cells = [
        name_row(row),
        format_short(row["value"], 6),
        format_short_down(float(row["low"]), 6),
        format_short_up(float(row["high"]), 6),
        format_short_up(float(row["width"])),
        *([] if row["truth"] is None else [format_short(row["truth"], 6)]),
    ]
    return [*cells, format_short_down(float(row["radius"] or 0.0))] if with_radius else cells


SECTION = Section("rows", lambda s: "Rows" if s["rows"]["sampled"] else "All rows", html)
WIDEST = Section("widest", lambda s: "Widest rows", html_widest, markdown_widest)
