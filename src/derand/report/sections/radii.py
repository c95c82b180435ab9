"""How large the radii are: typical ones, and how many rows have which."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import numpy as np
from markupsafe import Markup

from derand._core.text import format_count, format_short
from derand.metrics import RadiusFigures
from derand.metrics import summarize_radii as measure_radii
from derand.report import _blocks as ui
from derand.report._charts import (
    HEIGHT,
    WIDTH,
    Frame,
    choose_ticks,
    cut_radius,
    mark_radius,
    name_axis,
    radius_ticks,
    slide_radius,
    wrap_svg,
)
from derand.report._facts import Facts, Scale, Size
from derand.report._inputs import LabelInputs
from derand.report._markup import percent


class Radii(TypedDict):
    """Typical radii; the last three need labels, and the last of them a ball."""

    median: Size
    tenth: Size
    smallest: Size
    largest: Size
    certified_rows: int
    accuracy: NotRequired[float]
    balanced_accuracy: NotRequired[float]
    certified: NotRequired[RadiusFigures]
    """Rows without a limit, average and median of the others; wrong answers count 0."""


class Histogram(TypedDict):
    """How many rows have which radius, and how many lie beside the bins."""

    edges: list[float]
    right: list[int]
    wrong: list[int]
    beyond: int
    nothing_certified: int
    cannot_flip: int


class Parts(Facts):
    """What this section reads."""

    radii: Radii
    histogram: Histogram


_HISTOGRAM_BINS = 40


def compute(inputs: LabelInputs) -> Radii:
    """Typical radii (at least that share of the rows has that radius or more), and the averages that need labels."""
    radius = inputs.plain.radius
    found: Radii = {
        "median": float(np.quantile(radius, 0.5, method="lower")),
        "tenth": float(np.quantile(radius, 0.1, method="lower")),
        "smallest": float(radius.min()),
        "largest": float(radius.max()),
        "certified_rows": int((radius > 0).sum()),
    }
    if inputs.truth is not None:
        correct = inputs.truth == inputs.plain.label
        by_class = [correct[inputs.truth == name].mean() for name in np.unique(inputs.truth)]
        found["accuracy"] = float(correct.mean())
        found["balanced_accuracy"] = float(np.mean(by_class))
        if inputs.plain.verdict is None:
            found["certified"] = measure_radii(inputs.truth, inputs.plain).to_dict()
    return found


def count_radii(inputs: LabelInputs, scale: Scale) -> Histogram:
    """How many rows have which radius, right and wrong answers apart; 0 and infinity are counted beside the bins."""
    radius, correct = inputs.plain.radius, inputs.correct
    right = np.ones(radius.shape, dtype=bool) if correct is None else correct
    inside = (radius > 0) & np.isfinite(radius)
    end = scale["end"] if inside.any() else 0.0
    edges = np.linspace(0.0, end, _HISTOGRAM_BINS + 1) if end > 0 else np.zeros(1)
    if inputs.threat.norm == 0 and end > 0:  # radii count columns
        edges = np.arange(end + 1) + 0.5
    has_bins = edges.size > 1
    return {
        "edges": edges.tolist(),
        "right": np.histogram(radius[inside & right], edges)[0].tolist() if has_bins else [],
        "wrong": np.histogram(radius[inside & ~right], edges)[0].tolist() if has_bins else [],
        "beyond": int((inside & (radius > edges[-1])).sum()),
        "nothing_certified": int((radius == 0).sum()),
        "cannot_flip": int(np.isinf(radius).sum()),
    }


def draw_histogram(summary: Parts) -> Markup | None:
    """How many rows have which radius."""
    histogram = summary["histogram"]
    edges, right, wrong = histogram["edges"], histogram["right"], histogram["wrong"]
    if len(edges) < 2:
        return None
    highest = max([a + b for a, b in zip(right, wrong, strict=True)] or [1]) or 1
    frame = Frame(WIDTH, HEIGHT, (0.0, edges[-1]), (0.0, highest * 1.05))
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
    return wrap_svg(frame, "".join(body), "Histogram of radii", told, **slide_radius(frame))


def blocks(summary: Parts) -> list[ui.Block]:
    """The histogram, and typical radii; of the page alone."""
    found, counts, labels = summary["radii"], summary["histogram"], summary["data"]["has_labels"]
    facts = [
        (f"Median{' of all rows, right or wrong' if labels else ''}", cut_radius(found["median"])),
        ("Nine rows in ten have at least", cut_radius(found["tenth"])),
        ("Smallest and largest", f"{cut_radius(found['smallest'])} to {cut_radius(found['largest'])}"),
        ("Rows for which nothing is certified", format_count(counts["nothing_certified"])),
    ]
    if "certified" in found and found["certified"]["unbounded_rows"]:
        share = (
            f"{format_count(found['certified']['unbounded_rows'])} ({percent(found['certified']['unbounded_share'])})"
        )
        facts.insert(1, ("Right and without a limit", share))
    if "certified" in found and found["certified"]["average_of_others"] is not None:
        average, median = found["certified"]["average_of_others"], found["certified"]["median_of_others"]
        name = "Average and median of those with a limit, wrong answers as 0"
        facts.insert(2, (name, f"{cut_radius(average)}, {cut_radius(median or 0.0)}"))
    if counts["beyond"]:
        facts.append(("Rows beyond the end of the chart", format_count(counts["beyond"])))
    if counts["cannot_flip"]:
        allowed = "allowed " if summary["threat"]["bounded"] else ""
        facts.append((f"Rows that no {allowed}change of numbers can flip", format_count(counts["cannot_flip"])))
    legend = [("bar-right", "right answers"), ("bar-wrong", "wrong answers")] if labels else []
    return [
        ui.on_page(
            ui.Heading("How large the radii are", "radii"),
            ui.Group("beside", [ui.Figure(draw_histogram(summary), legend=legend), ui.FactList(facts)]),
        )
    ]


def _link(summary: Parts) -> str:
    return "Radii" if summary["histogram"]["right"] or summary["histogram"]["wrong"] else ""


SECTION = ui.Section("radii", _link, blocks, "median, smallest and largest, a histogram")
