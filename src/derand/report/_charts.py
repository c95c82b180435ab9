"""Parts of the summary -> SVG text. Colours are CSS classes, so that charts follow the page's theme and its printer.

Owns axes, lines, bars and their descriptions for screen readers. All text is escaped here. Must not know models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from derand._core.text import format_count, format_exactly, format_short, format_short_down
from derand.frames import format_days
from derand.report._text import percent, shorten
from derand.report._types import (
    LAW_HEIGHT,
    CategoricalShape,
    CategoryPush,
    Law,
    LawAxis,
    NumericalShape,
    ReportSummary,
    RowFacts,
    Series,
    Shape,
    Size,
)

_WIDTH, _HEIGHT = 420, 250
_SHAPE_WIDTH, _SHAPE_HEIGHT = 300, 176
_LAW_PICTURE = 220
UNITS = {
    "standard": ", in standard deviations",
    "range": ", in ranges",
    "robust": ", in interquartile ranges",
    "given": ", in given units",
}
_ROLE_CLASSES = {"all": "line-main", "balanced": "line-second", "baseline": "line-base"}


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


def draw_curves(summary: ReportSummary, roles: Sequence[str]) -> Markup | None:
    """Certified accuracy over the radius for some families of curves, with the mark that the slider moves."""
    radii = summary["scale"]["radii"]
    chosen = [one for one in summary["accuracy"]["series"] if one["role"] in roles]
    if len(radii) < 2 or not chosen:
        return None
    end = summary["scale"]["end"]
    frame = Frame(_WIDTH, _HEIGHT, (0.0, end), (0.0, 1.0))
    body = [frame.grid((share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0))]
    body.append(frame.ticks(((r, format_short(r)) for r in radius_ticks(summary, end)), name_axis(summary)))
    shown = [radius for radius in radii if radius <= end]
    for one in reversed(chosen):
        style = style_of(one, [other for other in chosen if other["role"] == one["role"]])
        body.append(f'<path class="{style}" d="{trace_steps(frame, shown, one["values"][: len(shown)])}"/>')
    body.append(mark_radius(frame, summary["scale"]["quoted"]))
    k = radii.index(summary["scale"]["quoted"])
    told = ", ".join(f"{one['label']} {percent(one['values'][k])}" for one in chosen)
    title = f"{summary['accuracy']['measure'].capitalize()} over the radius"
    return wrap_svg(frame, "".join(body), title, f"At radius {format_exactly(radii[k])}: {told}", **_slider(frame))


def style_of(series: Series, family: Sequence[Series]) -> str:
    """Class of a curve: by its role, and within a family of several by its place."""
    if series["role"] in ("all", "balanced"):
        return _ROLE_CLASSES[series["role"]]
    if series["key"] == "baseline=balanced":
        return "line-base line-balanced"
    place = next(k for k, one in enumerate(family) if one["key"] == series["key"])
    return f"{'line-base' if series['role'] == 'baseline' else 'line-family'} line-{place % 4}"


def _slider(frame: Frame) -> dict[str, float]:
    return {"left": frame.left, "right": frame.width - frame.right, "end": frame.x_range[1]}


def mark_radius(frame: Frame, radius: float, kind: str = "mark radius-mark") -> str:
    """The line of a radius; the page's slider moves those of the usual kind."""
    x = frame.x(min(radius, frame.x_range[1]))
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>'


def radius_ticks(summary: ReportSummary, end: float) -> list[float]:
    """Round radii; whole ones where they count columns."""
    ticks = choose_ticks(0.0, end)
    return [tick for tick in ticks if summary["threat"]["norm"] != 0 or float(tick).is_integer()]


def name_axis(summary: ReportSummary) -> str:
    if summary["threat"]["norm"] == 0:
        return "radius (columns that may become anything)"
    unit = UNITS.get(summary["noise"]["unit"], "")
    return f"radius ({summary['threat']['norm_text']}{unit})"


def draw_budgets(summary: ReportSummary) -> Markup | None:
    """For a model without a radius: certified accuracy by the number of changed categories, as bars."""
    chosen = [one for one in summary["accuracy"]["series"] if one["role"] == "l0"]
    if len(chosen) < 2 or len(summary["scale"]["radii"]) > 1:
        return None
    frame = Frame(_WIDTH, _HEIGHT, (-0.6, len(chosen) - 0.4), (0.0, 1.0))
    body = [frame.grid((share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0))]
    for one in chosen:
        x, y = frame.x(one["l0"] - 0.3), frame.y(one["values"][0])
        width = round(frame.x(one["l0"] + 0.3) - x, 1)
        body.append(f'<rect class="bar-right" x="{x}" y="{y}" width="{width}" height="{round(frame.floor - y, 1)}"/>')
        label = percent(one["values"][0])
        body.append(f'<text class="tick mid strong" x="{round(x + width / 2, 1)}" y="{y - 5}">{label}</text>')
    body.append(frame.ticks(((one["l0"], str(one["l0"])) for one in chosen), "categories that may change"))
    told = ", ".join(f"{one['l0']}: {percent(one['values'][0])}" for one in chosen)
    return wrap_svg(frame, "".join(body), "Certified accuracy by changed categories", told)


def draw_calibration(summary: ReportSummary) -> Markup | None:
    """Predicted probabilities beside what was observed, with intervals; on the diagonal they agree."""
    bins = [] if summary["answers"] is None else summary["answers"]["figures"]["calibration"] or []
    if not bins:
        return None
    ends = [one["mean_predicted"] for one in bins]
    ends += [one["observed"][end] for one in bins for end in ("low", "high")]
    step = next(step for step in (0.02, 0.05, 0.1, 0.25) if max(ends) - min(ends) <= 4 * step or step == 0.25)
    places = range(math.floor(min(ends) / step + 1e-9), math.ceil(max(ends) / step - 1e-9) + 1)
    ticks = [(place * step, f"{place * step:.3g}") for place in places]
    low, high = ticks[0][0], max(ticks[-1][0], ticks[0][0] + step)
    frame = Frame(_WIDTH, _HEIGHT, (low, high), (low, high))
    body = [frame.grid(ticks), frame.ticks(ticks, "predicted probability")]
    body.append(f'<path class="line-base line-0" d="M{frame.x(low)},{frame.y(low)}L{frame.x(high)},{frame.y(high)}"/>')
    for one in bins:
        x, observed = frame.x(one["mean_predicted"]), one["observed"]
        bottom, top = frame.y(observed["low"]), frame.y(observed["high"])
        body.append(f'<line class="whisker" x1="{x}" x2="{x}" y1="{bottom}" y2="{top}"/>')
        body.append(f'<circle class="dot" cx="{x}" cy="{frame.y(observed["value"])}" r="3.5"/>')
    told = "; ".join(f"{percent(one['mean_predicted'])} and {percent(one['observed']['value'])}" for one in bins)
    return wrap_svg(frame, "".join(body), "Predicted and observed shares", told)


def draw_verdicts(summary: ReportSummary) -> Markup | None:
    """Where limits alone say what may change: which share of all rows, and of each class, holds or flips, as bars."""
    if summary["verdicts"] is None:
        return None
    counts = summary["verdicts"]["counts"]
    frame = Frame(_WIDTH, 20 + 34 * len(counts), (0.0, 1.0), (0.0, 1.0), 118, 12, 6, 6)
    body = []
    for k, count in enumerate(counts):
        y, start = frame.top + 34 * k, 0
        body.append(
            f'<text class="tick end" x="{frame.left - 8}" y="{y + 17}">{escape(shorten(count["name"], 17))}'
            f"<title>{escape(count['name'])}</title></text>"
        )
        for kind, size in (("right", count["holds"]), ("faint", count["undecided"]), ("wrong", count["flips"])):
            left, right = (frame.x(rows / count["n_rows"]) for rows in (start, start + size))
            if size:
                body.append(
                    f'<rect class="bar-{kind}" x="{left}" y="{y}" width="{round(right - left, 1)}" height="24"/>'
                )
            start += size
    told = "; ".join(
        f"{count['name']}: {count['holds']} hold, {count['flips']} flip, {count['undecided']} undecided"
        for count in counts
    )
    return wrap_svg(frame, "".join(body), "Answers that hold and flip within the limits", told)


def draw_histogram(summary: ReportSummary) -> Markup | None:
    """How many rows have which radius."""
    histogram = summary["histogram"]
    edges, right, wrong = histogram["edges"], histogram["right"], histogram["wrong"]
    if len(edges) < 2:
        return None
    highest = max([a + b for a, b in zip(right, wrong, strict=True)] or [1]) or 1
    frame = Frame(_WIDTH, _HEIGHT, (0.0, edges[-1]), (0.0, highest * 1.05))
    levels = sorted({round(tick) for tick in choose_ticks(0, highest, 4)})
    body = [frame.grid((level, format_count(level)) for level in levels)]
    for low, high, good, bad in zip(edges[:-1], edges[1:], right, wrong, strict=True):
        for kind, start, stop in (("bar-right", 0, good), ("bar-wrong", good, good + bad)):
            if stop > start:
                y = frame.y(stop)
                body.append(
                    f'<rect class="{kind}" x="{round(frame.x(low) + 0.5, 1)}" y="{y}" '
                    f'width="{round(frame.x(high) - frame.x(low) - 1, 1)}" height="{round(frame.y(start) - y, 1)}"/>'
                )
    body.append(frame.ticks(((r, format_short(r)) for r in radius_ticks(summary, edges[-1])), name_axis(summary)))
    body.append(mark_radius(frame, summary["scale"]["quoted"]))
    told = f"Median {cut_radius(summary['radii']['median'])}, largest {cut_radius(summary['radii']['largest'])}"
    return wrap_svg(frame, "".join(body), "Histogram of radii", told, **_slider(frame))


def cut_radius(radius: Size) -> str:
    """A radius of the summary as text."""
    return format_short_down(float(radius))


def draw_shape(shape: Shape, span: tuple[float, float]) -> Markup:
    """One feature's push: the steps, what noise makes of them, and the data beneath; all charts share their scale."""
    if shape["kind"] == "categorical":
        return _draw_categories(shape, span)
    frame = Frame(_SHAPE_WIDTH, _SHAPE_HEIGHT, (shape["low"], shape["high"]), span, 40, 8, 8, 24)
    body = [_draw_counts(frame, shape["counts"])]
    levels = choose_ticks(*span, 4)
    body.append(frame.grid((level, format_short(level)) for level in levels))
    body.append(frame.rule(frame.y(0), "zero"))
    is_line = not shape["edges"] and len(shape["pushes"]) == 2
    steps = [f"M{frame.x(shape['low'])},{frame.y(shape['pushes'][0])}"]
    for edge, push in () if is_line else zip(shape["edges"], shape["pushes"][1:], strict=True):
        steps.append(f"H{frame.x(edge)}V{frame.y(push)}")
    end = frame.x(shape["high"])
    steps.append(f"L{end},{frame.y(shape['pushes'][1])}" if is_line else f"H{end}")
    body.append(f'<path class="line-step" d="{"".join(steps)}"/>')
    if shape["smooth"]:
        last, width = len(shape["smooth"]) - 1, shape["high"] - shape["low"]
        places = [frame.x(shape["low"] + width * k / last) for k in range(last + 1)]
        points = [f"{x},{frame.y(push)}" for x, push in zip(places, shape["smooth"], strict=True)]
        body.append(f'<polyline class="line-main" points="{" ".join(points)}"/>')
    missing = shape["missing"]
    if missing is not None:
        text = f"missing: {format_short(missing['push'])} ({format_count(missing['count'])})"
        body.append(frame.rule(frame.y(missing["push"]), "missing"))
        body.append(f'<text class="tick over" x="{frame.left + 4}" y="{frame.y(missing["push"]) - 3}">{text}</text>')
    body.append(_short_ticks(frame, shape))
    write = format_days if shape["days"] else format_short
    edges = ", ".join(write(value) for value in shape["edges"][:6])
    pushes = ", ".join(format_short(value) for value in shape["pushes"][:6])
    told = (f"A line; pushes {pushes}" if is_line else f"Steps at {edges}; pushes {pushes}") + (
        "" if missing is None else f"; {text}"
    )
    return wrap_svg(frame, "".join(body), f"Shape of {shape['name']}", told)


def _short_ticks(frame: Frame, shape: NumericalShape) -> str:
    parts = [frame.rule(frame.floor, "axis")]
    write = format_days if shape["days"] else format_short
    low, high = shape["low"], shape["high"]
    ticks = (
        [math.floor(low + share * (high - low)) for share in (0.2, 0.8)]
        if shape["days"]
        else choose_ticks(low, high, 4)
    )
    if not shape["days"] and max(len(format_short(tick)) for tick in ticks) > 5:
        ticks = ticks[::2]
    for tick in ticks:
        text = escape(write(tick))
        parts.append(f'<text class="tick mid" x="{frame.x(tick)}" y="{frame.floor + 15}">{text}</text>')
    return "".join(parts)


def _draw_counts(frame: Frame, counts: Sequence[int]) -> str:
    """The data under a shape, as bars that use a third of the height; rare bins stay visible."""
    highest = max(counts) or 1
    room = (frame.floor - frame.top) / 3
    low, high = frame.left, frame.width - frame.right
    width = (high - low) / len(counts)
    parts = []
    for k, rows in enumerate(counts):
        if rows:
            tall = round(max(1.0, room * rows / highest), 1)
            parts.append(
                f'<rect class="data" x="{round(low + k * width, 1)}" y="{round(frame.floor - tall, 1)}" '
                f'width="{round(width - 0.5, 1)}" height="{tall}"/>'
            )
    return "".join(parts)


def _draw_categories(shape: CategoricalShape, span: tuple[float, float]) -> Markup:
    """A bar per category, its push to the left or right, with the number of rows."""
    entries: list[CategoryPush] = [*shape["categories"], {"name": "new or missing", **shape["other"]}]
    height = 20 * len(entries) + 12
    frame = Frame(_SHAPE_WIDTH, max(height, 80), span, (0.0, 1.0), 118, 44, 6, 6)
    zero = frame.x(0)
    body = [f'<line class="zero" x1="{zero}" x2="{zero}" y1="{frame.top}" y2="{height - 6}"/>']
    for k, entry in enumerate(entries):
        y = frame.top + 20 * k
        start, stop = sorted((zero, frame.x(entry["push"])))
        kind = "bar-right" if k < len(shape["categories"]) else "bar-faint"
        body.append(
            f'<text class="tick end" x="{frame.left - 8}" y="{y + 14}">{escape(shorten(entry["name"], 17))}'
            f"<title>{escape(entry['name'])}</title></text>"
            f'<rect class="{kind}" x="{start}" y="{y + 3}" width="{round(max(stop - start, 1), 1)}" height="13"/>'
            f'<text class="tick end faint" x="{frame.width - 2}" y="{y + 14}">{format_count(entry["count"])}</text>'
        )
    told = "; ".join(f"{entry['name']} {format_short(entry['push'], 3)}" for entry in entries)
    return wrap_svg(frame, "".join(body), f"Push of the categories of {shape['name']}", told)


def shape_span(shapes: Sequence[Shape]) -> tuple[float, float]:
    """One scale for all shapes, with some room."""
    pushes = [0.0]
    for shape in shapes:
        if shape["kind"] == "numerical":
            pushes += [*shape["pushes"], *([] if shape["missing"] is None else [shape["missing"]["push"]])]
        else:
            pushes += [entry["push"] for entry in [*shape["categories"], shape["other"]]]
    low, high = min(pushes), max(pushes)
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def law_paths(law: Law, axis: LawAxis, is_one: bool) -> dict[str, str]:
    """Paths of a law's picture, in places of its frame; the page's script draws other rows by the same rule."""
    frame = _law_frame(axis)

    def height(share: int) -> float:
        return frame.y(share / LAW_HEIGHT)

    held: list[str] = []
    failing: list[str] = []
    for at, share in enumerate(law["density"], start=law["start"]):
        side = held if (at >= axis["threshold_bin"]) == is_one else failing
        side.append(f"M{frame.x(at)},{frame.floor}V{height(share)}H{frame.x(at + 1)}V{frame.floor}Z")
    below = [f"M{frame.left},{frame.floor}H{frame.x(law['start'])}"]
    below += [f"V{height(share)}H{frame.x(at + 1)}" for at, share in enumerate(law["cdf"], start=law["start"])]
    below.append(f"H{frame.width - frame.right}")
    return {"held": "".join(held), "failing": "".join(failing), "cdf": "".join(below)}


def _law_frame(axis: LawAxis) -> Frame:
    return Frame(_WIDTH, _LAW_PICTURE, (0.0, float(axis["n_bins"])), (0.0, 1.0), 12, 46, 22, 40)


def draw_law(row: RowFacts, law: Law, axis: LawAxis, at: int) -> Markup:
    """The law of a row's score: its density, the part on the wrong side, its cdf, the threshold and a mark.

    The mark is the percentile, or the expected score by the rule "mean"; `at` is the place of a radius among those of
    the summary, to which the percentile belongs.
    """
    frame = _law_frame(axis)
    paths = law_paths(law, axis, row["is_one"])
    threshold = frame.x(axis["threshold_bin"])
    mark = law["percentile"][at] if law["percentile"] else law["mean"]
    ends = frame.width - frame.right
    body = [
        f'<path class="law-held" d="{paths["held"]}"/><path class="law-failing" d="{paths["failing"]}"/>',
        f'<path class="law-cdf" d="{paths["cdf"]}"/>',
        f'<line class="law-threshold" x1="{threshold}" x2="{threshold}" y1="{frame.top - 6}" y2="{frame.floor}"/>',
        f'<text class="tick mid" x="{threshold}" y="{frame.top - 10}">threshold</text>',
        *([] if mark is None else [_mark_law(frame, frame.x(min(max(mark, 0), axis["n_bins"])))]),
        *(
            f'<text class="tick" x="{ends + 6}" y="{frame.y(share) + 4}">{share:.0%}</text>'
            for share in (0.0, 0.5, 1.0)
        ),
        frame.ticks(_law_ticks(axis), f"score under noise, {_name_points(axis)} above the threshold"),
    ]
    title = f"Law of the score of row {row['name'] or row['row']}"
    told = "Most of it lies on the answer's side of the threshold, or all of it, where the answer is sure"
    if law["percentile"]:
        told = f"The part on the wrong side of the threshold has probability {row['failure_text']}"
    elif row["score_text"] is not None:
        told = f"Its expected score is {row['score_text']}, {row['margin_text']} from the threshold"
    return wrap_svg(frame, "".join(body), title, told, left=frame.left, right=ends, top=frame.top, floor=frame.floor)


def _mark_law(frame: Frame, x: float) -> str:
    return f'<line class="mark law-percentile" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.floor}"/>'


def _law_ticks(axis: LawAxis) -> list[tuple[float, str]]:
    """Scores, counted from the threshold, in the middle of their places on the axis; whole ones, but for log-odds."""
    low, points = axis["low"] - axis["threshold"], axis["points"]
    scores = choose_ticks(low / points, (low + axis["n_bins"] * axis["width"]) / points, 6)
    places = [
        ((score * points - low + 0.5) / axis["width"], score)
        for score in scores
        if points != 1 or score == round(score)
    ]
    return [(place, f"{score:+g}" if score else "0") for place, score in places if 0 <= place <= axis["n_bins"]]


def _name_points(axis: LawAxis) -> str:
    return "points" if axis["points"] == 1 else "log-odds"
