"""Answers that are numbers: their intervals, how wide these are, rows, and radii within which answers stay close."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import FloatArray, IntArray
from derand._core.text import format_count, format_exactly, format_short, format_short_down, format_short_up, plural
from derand.report import _blocks as ui
from derand.report._charts import (
    WIDTH,
    Frame,
    choose_ticks,
    mark_radius,
    name_axis,
    radius_ticks,
    trace_steps,
    wrap_svg,
)
from derand.report._facts import RegressionFacts, Size
from derand.report._inputs import IntervalInputs
from derand.report._markup import name_row, render
from derand.report._packing import pack_listed
from derand.report._settings import ReportSettings
from derand.report.sections.predictions import Errors
from derand.report.sections.rows import FOLDED_ROWS
from derand.report.sections.what_if import WhatIf


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


class ListedIntervals(TypedDict):
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

    listed: ListedIntervals
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


class Parts(RegressionFacts):
    """What these sections read."""

    rows: IntervalRows
    errors: Errors | None
    widths: Spread
    curve: WidthCurve | None
    tolerance: ToleranceFacts | None
    what_if: WhatIf | None


_CURVE_ROWS = 200  # every radius is a search of its own, by far the most of what a report costs
_CURVE_POINTS = 8
_MOST_COLUMNS = 5
_HEIGHT = 300
_LISTED = 10
"""Of the widest intervals, and of the smallest radii."""


def _take_share(values: FloatArray, share: float) -> float:
    """The least of the values that so many rows do not exceed."""
    return float(np.sort(values)[math.ceil(share * values.size) - 1])


def measure_spread(values: FloatArray) -> Spread:
    """What half of the rows, nine in ten and all do not exceed."""
    half, nine, largest = (_take_share(values, share) for share in (0.5, 0.9, 1.0))
    return {"half_of_rows": half, "nine_in_ten": nine, "largest": largest}


def trace_widths(inputs: IntervalInputs, random: np.random.Generator) -> WidthCurve | None:
    """Width over the radius, to twice that of the report; None where there is no ball, or none of a size."""
    radius, norm = inputs.intervals.radius, inputs.threat.norm
    if radius is None or not radius > 0 or not math.isfinite(radius) or not inputs.moving:
        return None
    radii = [float(f"{2 * radius * step / _CURVE_POINTS:.12g}") for step in range(_CURVE_POINTS + 1)]
    if norm == 0:
        radii = [float(count) for count in range(min(len(inputs.moving), max(_MOST_COLUMNS, int(radius))) + 1)]
    some = draw_some(inputs.n_rows, _CURVE_ROWS, random)
    spreads = [measure_spread(inputs.certify_part(inputs.matrix[some], size).width) for size in radii]
    return {
        "radii": radii,
        "half_of_rows": [one["half_of_rows"] for one in spreads],
        "nine_in_ten": [one["nine_in_ten"] for one in spreads],
        "n_rows": int(some.size),
    }


def draw_intervals(summary: Parts) -> Markup:
    """Each row's answer as a dot on its interval: over the truth, or in order of answers where that is not known."""
    rows = sorted(summary["rows"]["table"], key=lambda row: row["value"])
    has_truth = summary["data"]["has_targets"]
    places = [row["truth"] if row["truth"] is not None else at + 1.0 for at, row in enumerate(rows)]
    x_range = _widen(min(places), max(places))
    y_range = _widen(min(float(row["low"]) for row in rows), max(float(row["high"]) for row in rows))
    frame = Frame(WIDTH, _HEIGHT, x_range, y_range, 52)
    body = [frame.grid((level, format_short(level)) for level in choose_ticks(*y_range))]
    title = "truth" if has_truth else "rows in order of their answers"
    ticks = choose_ticks(*x_range)
    body.append(frame.ticks(((tick, format_short(tick)) for tick in ticks), title))
    low, high = max(x_range[0], y_range[0]), min(x_range[1], y_range[1])
    if has_truth and low < high:  # where answers are right
        body.append(f'<path class="line-base" d="M{frame.x(low)},{frame.y(low)}L{frame.x(high)},{frame.y(high)}"/>')
    for place, row in zip(places, rows, strict=True):
        x, y = frame.x(place), frame.y(row["value"])
        top, bottom = frame.y(float(row["high"])), frame.y(float(row["low"]))
        body.append(f'<line class="reach" x1="{x}" x2="{x}" y1="{bottom}" y2="{top}"/>')
        body.append(f'<circle class="dot" cx="{x}" cy="{y}" r="2"/>')
    told = f"{len(rows)} rows; widest interval {format_short_up(float(summary['widths']['largest']))}"
    return wrap_svg(frame, "".join(body), "Answers with their intervals", told)


def _widen(low: float, high: float) -> tuple[float, float]:
    """A range with some room at both ends, also where it is a single number."""
    room = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
    return low - room, high + room


def draw_widths(summary: Parts) -> Markup | None:
    """Width over the radius for half of the rows and nine in ten; between known points drawn above the truth."""
    curve = summary["curve"]
    if curve is None:
        return None
    series = [("line-main", curve["half_of_rows"]), ("line-second", curve["nine_in_ten"])]
    top = max(float(curve["nine_in_ten"][-1]), 1e-300)
    frame = Frame(WIDTH, _HEIGHT, (0.0, curve["radii"][-1]), (0.0, 1.04 * top), 52)
    body = [frame.grid((level, format_short(level)) for level in choose_ticks(0.0, top))]
    ticks = radius_ticks(summary, curve["radii"][-1])
    body.append(frame.ticks(((tick, format_short(tick)) for tick in ticks), name_axis(summary)))
    for style, widths in reversed(series):
        steps = trace_steps(frame, curve["radii"], [float(width) for width in widths])
        body.append(f'<path class="{style}" d="{steps}"/>')
    radius = summary["radius"]
    if radius is not None and radius <= curve["radii"][-1]:
        body.append(mark_radius(frame, radius, "mark"))
    told = f"At radius {format_exactly(radius or 0.0)}: {format_short_up(float(summary['widths']['half_of_rows']))}"
    return wrap_svg(frame, "".join(body), "Width of intervals over the radius", f"{told} or less for half of the rows")


def list_rows(inputs: IntervalInputs, settings: ReportSettings, random: np.random.Generator) -> IntervalRows:
    """The rows that are listed, those of the picture, and the widest."""
    listed = draw_some(inputs.n_rows, settings.max_rows, random)
    detailed = draw_some(listed.size, settings.n_detailed, random)
    widest = np.argsort(-inputs.intervals.width, kind="stable")[:_LISTED]
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


def _list_columns(inputs: IntervalInputs, listed: IntArray, detailed: IntArray) -> ListedIntervals:
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


def measure_tolerance(
    inputs: IntervalInputs, given: float | None, moves: Spread, errors: Errors | None, rows: IntervalRows
) -> ToleranceFacts | None:
    """Radii of the rows of the table, which are written there; None where there is no ball, or nothing moves in it."""
    if inputs.threat.norm is None or not inputs.moving:
        return None
    tolerance, reason = _choose_tolerance(given, moves, errors)
    if tolerance is None:
        return None
    table, listed = rows["table"], rows["listed"]
    places = np.array([row["row"] - 1 for row in table])
    radius = inputs.certify_tolerance(inputs.matrix[places], tolerance).radius
    for row, size in zip(table, radius.tolist(), strict=True):
        row["radius"] = size
    known = dict(zip(listed["detailed"], radius.tolist(), strict=True))
    listed["tolerance"] = [known.get(at) for at in range(len(listed["row"]))]
    half, nine = (float(np.quantile(radius, share, method="lower")) for share in (0.5, 0.1))
    order = np.argsort(radius, kind="stable")[:_LISTED]
    return {
        "tolerance": tolerance,
        "reason": reason,
        "n_rows": len(table),
        "half_of_rows": half,
        "nine_in_ten": nine,
        "below": int((radius < (inputs.intervals.radius or 0.0)).sum()),
        "smallest": [table[at] for at in order.tolist()],
    }


def _choose_tolerance(given: float | None, moves: Spread, errors: Errors | None) -> tuple[float | None, str]:
    """The tolerance that was asked for, or a round number up to the error, or to what half of the rows move by."""
    if given is not None:
        return float(given), "as asked for"
    if errors is not None and errors["mean_absolute"] > 0:
        missed = errors["mean_absolute"]
        return round_one(
            missed
        ), f"a round number up to what answers miss the truth by on average, {format_short(missed, 3)}"
    half = float(moves["half_of_rows"])
    if 0 < half < math.inf:
        what = "what half of the rows can move by, at most, at the report's radius"
        return round_one(half), f"a round number up to {what}, {format_short_up(half)}"
    return None, ""


def round_one(value: float) -> float:
    """A positive number to 1, 2 or 5 times a power of ten, the next one below.

    Examples
    --------
    >>> [round_one(value) for value in (43.0, 0.7, 9.99, 1e-3)]
    [20.0, 0.5, 5.0, 0.001]
    """
    power = math.floor(math.log10(value))
    size = max((one for one in (1, 2, 5) if one * 10.0**power <= value), default=1)
    return float(f"{size}e{power}")


def blocks(summary: Parts) -> list[ui.Block]:
    """Answers over the truth, and widths over the radius."""
    errors, has_truth = summary["errors"], summary["data"]["has_targets"]
    told = "No change that is covered takes an answer out of its interval."
    if errors is not None:
        inside = f"{format_count(errors['inside'])} of {plural(summary['data']['n_rows'], 'true number')}"
        lie = "lies" if errors["inside"] == 1 else "lie"
        told += (
            " How far the dots lie from the dotted line is the error of the model; how long the bars are is what a "
            f"change can do to it. {inside} {lie} in the interval of the row, which nothing promises."
        )
    dots = [("bar-right", "answer"), ("law-held", "its interval"), *([("line-base", "truth")] if has_truth else [])]
    lines = [
        ("line-main", "half of the rows"),
        ("line-second", "nine rows in ten"),
        ("line-mark", "radius of this report"),
    ]
    where = "Over the truth" if has_truth else "In order of the answers"
    rounded = (
        "So wide at most, rounded up. Between the points that were computed the curves are drawn above the truth, "
        "never below."
    )
    return [
        ui.on_page(
            ui.Heading("Answers and their intervals", "intervals"),
            ui.Paragraph(told),
            ui.Group(
                "charts",
                [
                    ui.Figure(draw_intervals(summary), where, dots),
                    ui.Figure(draw_widths(summary), "Width over the radius", lines),
                ],
            ),
        ),
        ui.in_markdown(ui.Heading("Width of intervals, at most")),
        ui.Table(
            ["radius", "half of the rows", "nine rows in ten"],
            _list_widths(summary),
            "Width of intervals",
            test="widths",
            latex_title="width of intervals, at most; needs \\usepackage{booktabs}",
        ),
        ui.on_page(ui.Paragraph(rounded, "fine")),
    ]


def _list_widths(summary: Parts) -> list[list[str]]:
    """Lines of the table of widths: radius, half of the rows, nine in ten; some four points of a long curve."""
    curve, widths, radius = summary["curve"], summary["widths"], summary["radius"]
    if curve is None:
        points = [
            (
                "within the limits" if radius is None else format_exactly(radius),
                widths["half_of_rows"],
                widths["nine_in_ten"],
            )
        ]
    else:
        step = len(curve["radii"]) // 4 if len(curve["radii"]) > 8 else 1
        every = zip(map(format_exactly, curve["radii"]), curve["half_of_rows"], curve["nine_in_ten"], strict=True)
        points = list(every)[step::step]
    return [[size, format_short_up(float(half)), format_short_up(float(nine))] for size, half, nine in points]


def widest_blocks(summary: Parts) -> list[ui.Block]:
    """The widest intervals."""
    widest, n_rows = summary["rows"]["widest"], summary["data"]["n_rows"]
    shown = f"{format_count(len(widest))} of {plural(n_rows, 'row')}"
    return [
        ui.on_page(
            ui.Heading("The widest intervals", "widest"),
            ui.Paragraph(f"Rows whose answers a change can move farthest: {shown}."),
        ),
        ui.in_markdown(ui.Heading(f"Rows with the widest intervals: {len(widest)} of {n_rows:,}")),
        ui.Table(
            [name.lower() for name in _list_head(summary)],
            list(map(_list_row, widest)),
            "The widest intervals",
            test="widest",
        ),
    ]


def tolerance_blocks(summary: Parts) -> list[ui.Block]:
    """What is known of the tolerance, and the rows with the smallest radius."""
    found = summary["tolerance"]
    assert found is not None  # asked by the section
    size = format_exactly(found["tolerance"])
    lines: list[ui.Line] = [
        [name_row(row), format_short(row["value"], 6), format_short_down(float(row["radius"] or 0.0))]
        for row in found["smallest"]
    ]
    other = Markup(
        "The rows with the smallest radius, radii cut: closer than that, the answer is proven to stay within ±{} of "
        "what it is. For another one: <code>derand report --tolerance NUMBER</code>, in Python "
        "<code>Report(..., tolerance=number)</code>."
    )
    return [
        ui.Heading(f"Within which radius answers move by {size} at most", "tolerance"),
        ui.Paragraph(_describe_tolerance(summary, found), test="tolerance"),
        ui.Table(
            ["row", "answer", "radius"], lines, "Rows with the smallest radius for this tolerance", test="smallest"
        ),
        ui.on_page(ui.Paragraph(other.format(size), "fine")),
    ]


def _describe_tolerance(summary: Parts, found: ToleranceFacts) -> str:
    """What is known of the tolerance, in sentences."""
    half, nine = (format_short_down(float(found[key])) for key in ("half_of_rows", "nine_in_ten"))
    rows = plural(found["n_rows"], "row")
    whose = rows if found["n_rows"] == summary["rows"]["n_rows"] else f"{rows} drawn at random"
    below = ""
    if summary["radius"]:
        count = (
            f"{format_count(found['below'])} {'has' if found['below'] == 1 else 'have'}"
            if found["below"]
            else "None has"
        )
        below = f" {count} less than the radius of this report."
    return (
        f"How far a row may change while its answer is proven to move by {format_exactly(found['tolerance'])} at most "
        f"({found['reason']}). Of {whose}, half have a radius of {half} or more, nine in ten of {nine} or more.{below}"
    )


def row_blocks(summary: Parts) -> list[ui.Block]:
    """The table with its controls; of the page alone."""
    has_radius = summary["tolerance"] is not None
    table = [_list_row(row, with_radius=has_radius) for row in summary["rows"]["table"]]
    head = _list_head(summary, with_radius=has_radius)
    title = "A sample of the rows" if summary["rows"]["sampled"] else "All rows"
    return [
        ui.on_page(ui.Heading(title, "rows")),
        ui.Raw(render("interval_rows", summary, head=head, table=table)),
    ]


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


SECTION = ui.Section("intervals", lambda s: "Intervals", blocks)
WIDEST = ui.Section("widest", lambda s: "Widest rows", widest_blocks, "the rows that a change moves farthest")
TOLERANCE = ui.Section(
    "tolerance", lambda s: "Tolerance" if s["tolerance"] else "", tolerance_blocks, "how far rows may change"
)
ROWS = ui.Section("rows", lambda s: "Rows" if s["rows"]["sampled"] else "All rows", row_blocks, FOLDED_ROWS)
