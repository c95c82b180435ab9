"""Answers with their intervals: by how much they can move, how wide intervals are, and that over the radius."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.arrays import FloatArray
from derand._core.text import format_exactly, format_short, format_short_up
from derand.report._charts import UNITS, WIDTH, Frame, choose_ticks, trace_steps, wrap_svg
from derand.report._facts import NumberFacts, Size
from derand.report._inputs import IntervalInputs
from derand.report._markup import make_pipe_table, make_tabular, render
from derand.report.sections import Section
from derand.report.sections.errors import Errors
from derand.report.sections.interval_rows import IntervalRows, draw_some


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


class Parts(NumberFacts):
    """What this section reads."""

    rows: IntervalRows
    errors: Errors | None
    widths: Spread
    curve: WidthCurve | None


_CURVE_ROWS = 200  # every radius is a search of its own, by far the most of what a report costs
_CURVE_POINTS = 8
_MOST_COLUMNS = 5
_HEIGHT = 300
_HEAD = ["radius", "half of the rows", "nine rows in ten"]


def _take_share(values: FloatArray, share: float) -> float:
    """The least of the values that so many rows do not exceed."""
    return float(np.sort(values)[math.ceil(share * values.size) - 1])


def compute(values: FloatArray) -> Spread:
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
    spreads = [compute(inputs.certify_part(inputs.matrix[some], size).width) for size in radii]
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
    ticks = choose_ticks(0.0, curve["radii"][-1])
    title = f"radius ({summary['threat']['norm_text']}{UNITS.get(summary['noise']['unit'], '')})"
    if summary["threat"]["norm"] == 0:
        ticks = [tick for tick in ticks if float(tick).is_integer()]
        title = "radius (columns that may become anything)"
    body.append(frame.ticks(((tick, format_short(tick)) for tick in ticks), title))
    for style, widths in reversed(series):
        steps = trace_steps(frame, curve["radii"], [float(width) for width in widths])
        body.append(f'<path class="{style}" d="{steps}"/>')
    radius = summary["radius"]
    if radius is not None and radius <= curve["radii"][-1]:
        x = frame.x(radius)
        body.append(f'<line class="mark" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>')
    told = f"At radius {format_exactly(radius or 0.0)}: {format_short_up(float(summary['widths']['half_of_rows']))}"
    return wrap_svg(frame, "".join(body), "Width of intervals over the radius", f"{told} or less for half of the rows")


def html(summary: Parts) -> Markup:
    """Answers over the truth, and widths over the radius."""
    return render(
        "intervals",
        summary,
        chart=draw_intervals(summary),
        curve=draw_widths(summary),
        lines=_list_widths(summary),
    )


def markdown(summary: Parts) -> list[str]:
    """The table of widths."""
    return ["## Width of intervals, at most", make_pipe_table(_HEAD, _list_widths(summary))]


def latex(summary: Parts) -> list[str]:
    """The same."""
    title = "% width of intervals, at most; needs \\usepackage{booktabs}"
    return [title, *make_tabular("lrr", _HEAD, _list_widths(summary))]


def _list_widths(summary: Parts) -> list[list[str]]:
    """Lines of the table of widths: radius, half of the rows, nine in ten; some four points of a long curve."""
    curve = summary["curve"]
    if curve is None:
        widths = summary["widths"]
        shown = [format_short_up(float(widths[key])) for key in ("half_of_rows", "nine_in_ten")]
        return [["within the limits" if summary["radius"] is None else format_exactly(summary["radius"]), *shown]]
    step = len(curve["radii"]) // 4 if len(curve["radii"]) > 8 else 1
    return [_list_point(curve, at) for at in range(step, len(curve["radii"]), step)]


def _list_point(curve: WidthCurve, at: int) -> list[str]:
    widths = [format_short_up(float(curve[key][at])) for key in ("half_of_rows", "nine_in_ten")]
    return [format_exactly(curve["radii"][at]), *widths]


SECTION = Section("intervals", lambda s: "Intervals", html, markdown, latex)
