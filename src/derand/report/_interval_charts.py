"""Pictures of a report on intervals, as SVG text: answers with their intervals over the truth, widths over the radius.

All text is escaped by `_charts`. Must not know models.
"""

from __future__ import annotations

from markupsafe import Markup

from derand._core.text import format_exactly, format_short, format_short_up
from derand.report._charts import UNITS, Frame, choose_ticks, trace_steps, wrap_svg
from derand.report._interval_types import IntervalSummary

_WIDTH, _HEIGHT = 420, 300


def draw_intervals(summary: IntervalSummary) -> Markup:
    """Each row's answer as a dot on its interval: over the truth, or in order of answers where that is not known."""
    rows = sorted(summary["rows"]["table"], key=lambda row: row["value"])
    has_truth = summary["data"]["has_targets"]
    places = [row["truth"] if row["truth"] is not None else at + 1.0 for at, row in enumerate(rows)]
    x_range = _widen(min(places), max(places))
    y_range = _widen(min(float(row["low"]) for row in rows), max(float(row["high"]) for row in rows))
    frame = Frame(_WIDTH, _HEIGHT, x_range, y_range, 52)
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


def draw_widths(summary: IntervalSummary) -> Markup | None:
    """Width over the radius for half of the rows and nine in ten; between known points drawn above the truth."""
    curve = summary["curve"]
    if curve is None:
        return None
    series = [("line-main", curve["half_of_rows"]), ("line-second", curve["nine_in_ten"])]
    top = max(float(curve["nine_in_ten"][-1]), 1e-300)
    frame = Frame(_WIDTH, _HEIGHT, (0.0, curve["radii"][-1]), (0.0, 1.04 * top), 52)
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
