"""Two models side by side -> a chart, tables of Markdown and of LaTeX. Renders what is there: computes nothing."""

from __future__ import annotations

from markupsafe import Markup

from derand._core.text import format_count, format_exactly, format_short
from derand.report._audit_types import Comparison, DisagreementTable
from derand.report._charts import Frame, mark_radius, name_axis, radius_ticks, trace_steps, wrap_svg
from derand.report._text import percent, plural, shorten
from derand.report._types import ReportSummary

CURVES = ("line-main", "line-family line-1")
"""Classes of the two curves."""
_WIDTH, _HEIGHT = 420, 250
_NAME_LENGTH = 40


def name_models(comparison: Comparison) -> list[str]:
    """Both models as heads of columns."""
    return [shorten(name, _NAME_LENGTH) for name in comparison["names"]]


def draw_comparison(summary: ReportSummary) -> Markup | None:
    """The certified share of both models over the radius, in one chart."""
    comparison = summary["comparison"]
    if comparison is None or len(comparison["radii"]) < 2:
        return None
    radii, end, quoted = comparison["radii"], comparison["end"], summary["scale"]["quoted"]
    shown = [radius for radius in radii if radius <= end]
    frame = Frame(_WIDTH, _HEIGHT, (0.0, end), (0.0, 1.0))
    body = [frame.grid((share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0))]
    body.append(frame.ticks(((r, format_short(r)) for r in radius_ticks(summary, end)), name_axis(summary)))
    for style, values in zip(reversed(CURVES), reversed(comparison["curves"]), strict=True):
        body.append(f'<path class="{style}" d="{trace_steps(frame, shown, values[: len(shown)])}"/>')
    body.append(mark_radius(frame, quoted, "mark"))
    at = radii.index(quoted)
    told = ", ".join(
        f"{name} {percent(values[at])}" for name, values in zip(comparison["names"], comparison["curves"], strict=True)
    )
    title = f"{comparison['measure'].capitalize()} of both models over the radius"
    return wrap_svg(frame, "".join(body), title, f"At radius {format_exactly(quoted)}: {told}")


def list_lines(comparison: Comparison) -> list[list[str]]:
    """The figures of both models, with their intervals."""
    return [
        [
            line["name"],
            *(
                f"{text} ({interval})" if interval else text
                for text, interval in zip(line["texts"], line["intervals"], strict=True)
            ),
        ]
        for line in comparison["lines"]
    ]


def list_curves(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """The shares of both models by radius: head and lines."""
    head = ["radius", *(format_exactly(radius) for radius in comparison["major"])]
    return head, [[name, *texts] for name, texts in zip(name_models(comparison), comparison["table"], strict=True)]


def say_shown(table: DisagreementTable) -> str:
    """How many of the rows are listed, of how many."""
    if not table["n_rows"]:
        return "There are none."
    if len(table["rows"]) == table["n_rows"]:
        return f"All {plural(table['n_rows'], 'row')}." if table["n_rows"] > 1 else "One row."
    return f"{format_count(len(table['rows']))} of {plural(table['n_rows'], 'row')}."


def list_disagreements(
    comparison: Comparison, table: DisagreementTable, has_radius: bool
) -> tuple[list[str], list[list[str]]]:
    """Rows on which the two differ: head and lines."""
    has_truth = any(row["truth"] is not None for row in table["rows"])
    mine, theirs = name_models(comparison)
    what = "radius" if has_radius else "verdict"
    head = ["row", *(["truth"] if has_truth else []), mine, f"{what}, {mine}", theirs, f"{what}, {theirs}"]
    lines = [
        [
            str(row["row"]) if row["name"] is None else shorten(row["name"], _NAME_LENGTH),
            *([shorten(row["truth"], _NAME_LENGTH)] if has_truth and row["truth"] is not None else []),
            shorten(row["labels"][0], _NAME_LENGTH),
            row["texts"][0],
            shorten(row["labels"][1], _NAME_LENGTH),
            row["texts"][1],
        ]
        for row in table["rows"]
    ]
    return head, lines
