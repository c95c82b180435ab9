"""Pictures of several classes, as SVG text: shares by true class, and radii by answer. Must not know models."""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from derand._core.text import format_short
from derand.report._charts import UNITS, Frame, choose_ticks, cut_radius, wrap_svg
from derand.report._text import percent, shorten
from derand.report._types import ReportSummary

_WIDTH, _LINE, _LEFT = 420, 22, 118


def draw_shares(summary: ReportSummary) -> Markup | None:
    """For each true class which share is right and certified, right alone, or wrong; None without labels."""
    if summary["confusion"] is None:
        return None
    lines = [one for one in summary["confusion"]["rows"] if one["certified"] is not None]
    frame = _open_frame(len(lines), (0.0, 1.0))
    body, told = [], []
    for k, one in enumerate(lines):
        n_right = one["answers"][summary["confusion"]["classes"].index(one["name"])]
        right, certified = n_right / one["n_rows"], float(one["certified"] or 0.0)
        body.append(_name_line(frame, k, one["name"]))
        for kind, start, stop in (("right", 0.0, certified), ("tint", certified, right), ("wrong", right, 1.0)):
            if stop > start:
                body.append(_draw_bar(frame, k, f"bar-{kind}", start, stop))
        told.append(f"{one['name']}: {percent(right)} right, {one['certified_text']} right and certified")
    body.append(frame.ticks(((share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)), "rows of the class"))
    return wrap_svg(frame, "".join(body), "Right and certified answers by true class", "; ".join(told))


def draw_spreads(summary: ReportSummary) -> Markup | None:
    """For each answer the radii of its rows: the middle half as a bar, nine in ten to one in ten as a line."""
    rivals = summary["rivals"]
    lines = [] if rivals is None else [one for one in rivals["answers"] if one["spread"]]
    ends = [float(size) for one in lines for size in one["spread"] if math.isfinite(float(size))]
    end = max([summary["scale"]["quoted"], *ends], default=0.0) * 1.05
    if not lines or not ends or not end > 0:
        return None
    frame = _open_frame(len(lines), (0.0, end))
    body, told = [], []
    for k, one in enumerate(lines):
        least, low, middle, high, most = (min(float(size), end) for size in one["spread"])
        y = frame.top + _LINE * k + _LINE / 2
        body.append(_name_line(frame, k, one["name"]))
        body.append(f'<line class="whisker" x1="{frame.x(least)}" x2="{frame.x(most)}" y1="{y}" y2="{y}"/>')
        body.append(_draw_bar(frame, k, "bar-tint", low, high))
        body.append(f'<circle class="dot" cx="{frame.x(middle)}" cy="{y}" r="4"/>')
        told.append(f"{one['name']}: median {cut_radius(one['spread'][2])}")
    x = frame.x(summary["scale"]["quoted"])
    body.append(f'<line class="mark" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>')
    title = f"radius ({summary['threat']['norm_text']}{UNITS.get(summary['noise']['unit'], '')})"
    body.append(frame.ticks(((tick, format_short(tick)) for tick in choose_ticks(0.0, end)), title))
    return wrap_svg(frame, "".join(body), "Radii by answer", "; ".join(told))


def _open_frame(n_lines: int, x_range: tuple[float, float]) -> Frame:
    return Frame(_WIDTH, 50 + _LINE * n_lines, x_range, (0.0, 1.0), _LEFT, 12, 6, 40)


def _name_line(frame: Frame, at: int, name: str) -> str:
    y = frame.top + _LINE * at + 15
    told, whole = escape(shorten(name, 15)), escape(name)
    return f'<text class="tick end" x="{frame.left - 8}" y="{y}">{told}<title>{whole}</title></text>'


def _draw_bar(frame: Frame, at: int, kind: str, start: float, stop: float) -> str:
    left, right = frame.x(start), frame.x(stop)
    width = round(max(right - left, 1.0), 1)
    return f'<rect class="{kind}" x="{left}" y="{frame.top + _LINE * at + 4}" width="{width}" height="{_LINE - 8}"/>'
