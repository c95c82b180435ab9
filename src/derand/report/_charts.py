"""Axes, ticks and frames of SVG pictures. Colours are CSS classes: charts follow the page's theme and its printer.

All text is escaped here. What a section draws on them stands in the section.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from derand._core.text import format_short, format_short_down, shorten
from derand.report._facts import Facts, RegressionFacts, Size

WIDTH, HEIGHT = 420, 250
"""Of most charts."""
SHARES = [(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
"""Ticks of an axis of shares."""
UNITS = {
    "standard": ", in standard deviations",
    "range": ", in ranges",
    "robust": ", in interquartile ranges",
    "given": ", in given units",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The plotting area of a chart, and where data lie in it."""

    width: int
    height: int
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: int = 44
    right: int = 12
    top: int = 12
    bottom: int = 40

    def x(self, value: float) -> float:
        """Place of a value from the left."""
        low, high = self.x_range
        share = (value - low) / (high - low)
        return round(self.left + share * (self.width - self.left - self.right), 1)

    def y(self, value: float) -> float:
        """Place of a value from the top."""
        low, high = self.y_range
        share = (value - low) / (high - low)
        return round(self.height - self.bottom - share * (self.height - self.top - self.bottom), 1)

    @property
    def floor(self) -> int:
        return self.height - self.bottom

    def rule(self, y: float, kind: str) -> str:
        """A horizontal line across the plotting area."""
        return f'<line class="{kind}" x1="{self.left}" x2="{self.width - self.right}" y1="{y}" y2="{y}"/>'

    def grid(self, values: Iterable[tuple[float, str]]) -> str:
        """Horizontal lines with their labels."""
        parts = []
        for value, label in values:
            y = self.y(value)
            parts.append(self.rule(y, "grid"))
            parts.append(f'<text class="tick end" x="{self.left - 7}" y="{y + 4}">{escape(label)}</text>')
        return "".join(parts)

    def name(self, y: float, name: str, length: int) -> str:
        """The name of a line of bars, to the left of the plotting area."""
        short, whole = escape(shorten(name, length)), escape(name)
        return f'<text class="tick end" x="{self.left - 8}" y="{y}">{short}<title>{whole}</title></text>'

    def ticks(self, values: Iterable[tuple[float, str]], title: str) -> str:
        """Labels below the plotting area, and what they count."""
        parts = [self.rule(self.floor, "axis")]
        for value, label in values:
            x = self.x(value)
            parts.append(f'<line class="axis" x1="{x}" x2="{x}" y1="{self.floor}" y2="{self.floor + 4}"/>')
            parts.append(f'<text class="tick mid" x="{x}" y="{self.floor + 17}">{escape(label)}</text>')
        middle = (self.left + self.width - self.right) / 2
        parts.append(f'<text class="tick mid title" x="{middle}" y="{self.height - 4}">{escape(title)}</text>')
        return "".join(parts)


def wrap_svg(frame: Frame, body: str, title: str, description: str, **data: float) -> Markup:
    """A picture with its name and description for those who do not see it."""
    extra = "".join(f' data-{name.replace("_", "-")}="{escape(value)}"' for name, value in data.items())
    return Markup(
        f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(title)}. '
        f'{escape(description)}"{extra}>{body}</svg>'
    )


def choose_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers within a range."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def trace_steps(frame: Frame, xs: Sequence[float], ys: Sequence[float]) -> str:
    """A curve as steps: between two known points a falling one is never above the truth, a rising one never below."""
    path = [f"M{frame.x(xs[0])},{frame.y(ys[0])}"]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        path.append(f"V{frame.y(y)}H{frame.x(x)}")
    return "".join(path)


def draw_shares(
    summary: Facts, radii: Sequence[float], end: float, curves: Sequence[tuple[str, Sequence[float]]]
) -> tuple[Frame, list[str]]:
    """Shares of rows over the radius, the first curve on top, each with its class; the frame and what is in it."""
    frame = Frame(WIDTH, HEIGHT, (0.0, end), (0.0, 1.0))
    body = [frame.grid(SHARES)]
    body.append(frame.ticks(((r, format_short(r)) for r in radius_ticks(summary, end)), name_axis(summary)))
    shown = [radius for radius in radii if radius <= end]
    for style, values in reversed(curves):
        body.append(f'<path class="{style}" d="{trace_steps(frame, shown, values[: len(shown)])}"/>')
    return frame, body


def slide_radius(frame: Frame) -> dict[str, float]:
    return {"left": frame.left, "right": frame.width - frame.right, "end": frame.x_range[1]}


def mark_radius(frame: Frame, radius: float, kind: str = "mark radius-mark") -> str:
    """The line of a radius; the page's slider moves those of the usual kind."""
    x = frame.x(min(radius, frame.x_range[1]))
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>'


def radius_ticks(summary: Facts | RegressionFacts, end: float) -> list[float]:
    """Round radii; whole ones where they count columns."""
    ticks = choose_ticks(0.0, end)
    return [tick for tick in ticks if summary["threat"]["norm"] != 0 or float(tick).is_integer()]


def name_axis(summary: Facts | RegressionFacts) -> str:
    if summary["threat"]["norm"] == 0:
        return "radius (columns that may become anything)"
    unit = UNITS.get(summary["noise"]["unit"], "")
    return f"radius ({summary['threat']['norm_text']}{unit})"


def cut_radius(radius: Size) -> str:
    """A radius of the summary as text."""
    return format_short_down(float(radius))
