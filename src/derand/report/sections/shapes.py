"""What the model does with each column: its shape, what noise makes of it, and the data beneath."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
from markupsafe import Markup, escape

from derand._core.arrays import FloatArray
from derand._core.text import format_count, format_short
from derand.explain import Contributions
from derand.model import AdditiveEnsemble, Term
from derand.report import _blocks as ui
from derand.report._charts import Frame, choose_ticks, wrap_svg
from derand.report._inputs import Inputs
from derand.report._markup import render
from derand.tables import format_days


class _Shape(TypedDict):
    feature: int
    name: str
    importance: float


class OtherPush(TypedDict):
    """Push of values that no other entry names, and how many rows have one."""

    push: float
    count: int


class NumericalShape(_Shape):
    """Pushes of a number: the steps, their mean under noise (nothing without any), the data beneath, and the push of a
    missing value with how many rows have none (null where such rows are refused). Of a line, without edges, the pushes
    at both ends."""

    kind: Literal["numerical"]
    low: float
    high: float
    days: bool
    edges: list[float]
    pushes: list[float]
    smooth: list[float]
    counts: list[int]
    noise_scale: float | None
    missing: OtherPush | None


class CategoryPush(OtherPush):
    """Push of a category."""

    name: str


class CategoricalShape(_Shape):
    """Pushes of categories, the most frequent ones first."""

    kind: Literal["categorical"]
    categories: list[CategoryPush]
    left_out: int
    other: OtherPush


Shape = NumericalShape | CategoricalShape


SHAPE_POINTS = 97
SHAPE_BINS = 40
MAX_CATEGORIES = 12
_IMPORTANCE_ROWS = 20_000
_SHAPE_WIDTH, _SHAPE_HEIGHT = 300, 176
_OF_LINES = "The model is linear: its shapes are lines, and pushes are measured from the mean of these rows."
_OF_TREES = "Trees join many columns: what each adds depends on the others, so there are no shapes and no pushes."


def rank_terms(inputs: Inputs, model: AdditiveEnsemble) -> list[tuple[float, Term]]:
    """Terms with their importance, how much their score varies over the rows, from most to least."""
    some = inputs.matrix[:: max(1, inputs.n_rows // _IMPORTANCE_ROWS)]
    ranked = []
    for term in model.terms:
        low, high = (0, 0) if term.slope is not None else term.score_range()
        ranked.append((float(term.score_rows(some).std()), high - low, term))
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    return [(spread, term) for spread, _, term in ranked]


def compute(inputs: Inputs, limit: int) -> list[Shape]:
    """The shapes of the most important features; none for votes and trees, and none of several features together."""
    model = inputs.subject.shaped
    if model is None or model.has_trees:
        return []
    measured = Contributions(model, inputs.subject.points, inputs.matrix)
    if model.offset is not None:  # numbers are told from their mean
        measured.neutral = {term.features: float(term.score_rows(inputs.matrix).mean()) for term in model.terms}
    return [
        (_describe_steps if term.axes else _describe_table)(inputs, term, measured, importance)
        for importance, term in [one for one in rank_terms(inputs, model) if len(one[1].features) == 1][:limit]
    ]


def _describe_steps(inputs: Inputs, term: Term, measured: Contributions, importance: float) -> NumericalShape:
    ((feature, edges),) = term.axes
    subject, every = inputs.subject, inputs.matrix[:, feature]
    column = every[~np.isnan(every)]
    noise = subject.noise
    noise_scale = float(inputs.units[feature] if noise is None else noise.scales(np.array([feature]))[0])
    low, high = measure_range(column, edges)
    if edges.size and not (low <= edges[0] and edges[-1] <= high):
        # a split outside the data is shown where it is within reach of the noise
        near = edges[(edges > low - 4 * noise_scale) & (edges < high + 4 * noise_scale)]
        low, high = min([low, *near.tolist()]), max([high, *near.tolist()])
    # also where all values are equal, or so large that a small margin would vanish beside them
    margin = max(0.05 * (high - low) or noise_scale, 1e-9 * max(abs(low), abs(high)))
    low, high = low - margin, high + margin
    x = np.linspace(low, high, SHAPE_POINTS)
    inside = (edges > low) & (edges < high)
    first = int(np.searchsorted(edges, low, side="right"))
    is_line = term.slope is not None
    cells = term.evaluate(x[[0, -1]]) if is_line else term.cell_scores[first : first + int(inside.sum()) + 1]
    bins = np.histogram_bin_edges(column, SHAPE_BINS, range=(low, high))
    return {
        "feature": feature,
        "name": subject.names[feature],
        "importance": importance,
        "kind": "numerical",
        "low": low,
        "high": high,
        "days": feature in subject.dates,
        "edges": edges[inside].tolist(),
        "pushes": measured.of_scores(term, cells).tolist(),
        "smooth": [] if noise is None or is_line else measured.under_noise(term, x, noise).tolist(),
        "counts": np.histogram(column, bins)[0].tolist(),
        "noise_scale": None if noise is None else noise_scale,
        "missing": None
        if term.missing is None
        else {"push": float(measured.of_scores(term, term.missing)), "count": int(every.size - column.size)},
    }


def measure_range(values: FloatArray, edges: FloatArray) -> tuple[float, float]:
    """The least and the largest number of a column without gaps, or of its edges where there is none."""
    there = values if values.size else edges if edges.size else np.zeros(1)
    return float(there.min()), float(there.max())


def _describe_table(inputs: Inputs, term: Term, measured: Contributions, importance: float) -> CategoricalShape:
    (feature,) = term.features
    subject, column = inputs.subject, inputs.matrix[:, feature]
    known: list[CategoryPush] = [
        {
            "name": subject.describe_value(feature, code),
            "push": push,
            "count": int((column == code).sum()),
        }
        for code, push in zip(term.codes.tolist(), measured.of_scores(term, term.cell_scores).tolist(), strict=True)
    ]
    known.sort(key=lambda entry: -entry["count"])
    other = measured.of_scores(term, term.evaluate([float(term.codes.min(initial=0.0)) - 1.0]))  # a code of no category
    return {
        "feature": feature,
        "name": subject.names[feature],
        "importance": importance,
        "kind": "categorical",
        "categories": known[:MAX_CATEGORIES],
        "left_out": max(0, len(known) - MAX_CATEGORIES),
        "other": {"push": float(other[0]), "count": int(column.size - sum(entry["count"] for entry in known))},
    }


def list_left_out(inputs: Inputs, shapes: list[Shape]) -> list[str]:
    """Functions that are not drawn, and why."""
    model = inputs.subject.shaped
    if model is None and inputs.subject.model.weights is None:
        return [
            "The model tells several classes apart, each by a score of its own: there is no single score, so there are "
            "no shapes and no distributions. A failure mass is that of the nearest other class."
        ]
    if model is None:
        return [
            "The model is a weighted vote: it has no single score, so there are no shapes, no failure masses and no "
            "laws."
        ]
    if model.has_trees or model.is_linear:
        return [_OF_TREES if model.has_trees else _OF_LINES]
    joined = [
        ", ".join(f"“{inputs.subject.names[at]}”" for at in one.features)
        for one in model.terms
        if len(one.features) > 1
    ]
    if joined:
        more = " and others" if len(joined) > 5 else ""
        return [
            "Functions of several columns together are not drawn, and their pushes are not listed: "
            f"{'; '.join(joined[:5])}{more}."
        ]
    if len(model.terms) > len(shapes):
        return [f"Shapes are shown for the {len(shapes)} most important of {len(model.terms)} columns."]
    return []


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
            f"{frame.name(y + 14, entry['name'], 17)}"
            f'<rect class="{kind}" x="{start}" y="{y + 3}" width="{round(max(stop - start, 1), 1)}" height="13"/>'
            f'<text class="tick end faint" x="{frame.width - 2}" y="{y + 14}">{format_count(entry["count"])}</text>'
        )
    told = "; ".join(f"{entry['name']} {format_short(entry['push'], 3)}" for entry in entries)
    return wrap_svg(frame, "".join(body), f"Push of the categories of {shape['name']}", told)


def _choose_span(shapes: Sequence[Shape]) -> tuple[float, float]:
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


def blocks(summary: Mapping[str, Any]) -> list[ui.Block]:
    """A chart per column, all on one scale; of the page alone."""
    return [
        ui.on_page(ui.Heading("What the model does with each column", "shapes")),
        ui.Raw(render("shapes", summary, span=_choose_span(summary["shapes"]), draw_shape=draw_shape)),
    ]


SECTION = ui.Section(
    "shapes", lambda s: "Shapes" if s["shapes"] else "", blocks, "the function of each column, the most important first"
)
