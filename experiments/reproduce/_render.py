"""Showing reports: Markdown, LaTeX and JSON, one line per cell with the paper's number, ours and the difference.

Must not know how cells are made. Numbers are rounded as the paper rounds them; exact ones are in the JSON file.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.reproduce._cells import Cell
from experiments.reproduce._specification import describe, read_reasons

if TYPE_CHECKING:
    from experiments.reproduce._run import Report

_PLAIN_MARKS = {True: "", False: "outside", None: "not compared"}


def render_markdown(report: Report) -> str:
    """The report as Markdown."""
    header, rows = list_rows(report.cells)
    lines = [f"# {report.item.name}", "", report.item.title, "", summarize(report), ""]
    lines += draw_markdown(header, rows)
    used = [name for name in read_reasons() if any(cell.reason == name for cell in report.cells)]
    for name in used:
        reason = read_reasons()[name]
        lines += ["", f"**{name}**: {reason['title']}. {reason['text'].strip()}"]
    return "\n".join(lines) + "\n"


def render_latex(report: Report) -> str:
    """The report as a LaTeX longtable."""
    header, rows = list_rows(report.cells)
    escape = {"_": r"\_", "%": r"\%", "∞": r"$\infty$", "±": r"$\pm$", "#": r"\#", "&": r"\&"}
    translate = str.maketrans(escape)

    def draw(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(translate) for cell in cells) + r" \\"

    label = report.item.name
    lines = [
        f"% {label}: {report.item.title}",
        r"\begin{longtable}{" + "l" * len(header) + "}",
        rf"\caption{{{report.item.title.translate(translate)}}}\label{{{label}}} \\",
        r"\hline",
        draw(header),
        r"\hline",
        r"\endhead",
        *(draw(row) for row in rows),
        r"\hline",
        r"\end{longtable}",
    ]
    return "\n".join(lines) + "\n"


def render_json(report: Report) -> str:
    """The report as JSON."""
    return json.dumps(report.as_dict(), indent=1, allow_nan=False) + "\n"


def summarize(report: Report) -> str:
    """One line: how many cells agree, how many are explained."""
    part = " (quick: a part of the rows)" if report.quick else ""
    if not report.cells:
        return f"drawn{part}."
    judged = [cell for cell in report.cells if cell.ok is not None]
    outside = [cell for cell in judged if not cell.ok]
    explained = [cell for cell in outside if cell.reason is not None]
    parts = [f"{len(judged) - len(outside)} of {len(judged)} cells within tolerance"]
    if outside:
        parts.append(f"{len(explained)} outside and explained")
    if len(outside) > len(explained):
        parts.append(f"{len(outside) - len(explained)} outside without an explanation")
    if len(judged) < len(report.cells):
        parts.append(f"{len(report.cells) - len(judged)} quoted beside our own baseline")
    return "; ".join(parts) + part + "."


def list_rows(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table with one line per cell, all as text."""
    fields = list({name: None for cell in cells for name in cell.fields})
    follows = any(cell.as_published is not None for cell in cells)
    columns: dict[str, Callable[[Cell], str]] = {name: functools.partial(_show_field_of, name) for name in fields}
    if any(cell.metric != "claim" for cell in cells):
        columns["metric"] = lambda cell: cell.metric
        columns["r"] = lambda cell: "" if cell.radius is None else str(cell.radius)
    columns["paper"] = lambda cell: cell.printed or show_number(cell.paper, cell, cell.paper_deviation)
    columns["ours"] = lambda cell: show_number(cell.ours, cell, cell.deviation)
    columns["difference"] = show_difference
    if follows:
        columns["as published"] = lambda cell: "" if cell.as_published is None else show_number(cell.as_published, cell)
    columns[""] = show_mark
    return list(columns), [[show(cell) for show in columns.values()] for cell in cells]


def list_short_rows(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """The same for a terminal: fields that differ between the cells share a column."""
    values = {name: {_show_field_of(name, cell) for cell in cells} for cell in cells for name in cell.fields}
    differing = [name for name, seen in values.items() if len(seen) > 1]
    header, rows = list_rows(cells)
    first = header.index("paper")
    short = []
    for cell, row in zip(cells, rows, strict=True):
        line = describe({name: cell.fields[name] for name in differing if name in cell.fields})
        place = (
            [] if cell.metric == "claim" else [cell.metric if cell.radius is None else f"{cell.metric} {cell.radius}"]
        )
        short.append([line, *place, *row[first : first + 3], row[-1]])
    place_header = ["cell"] if any(cell.metric != "claim" for cell in cells) else []
    return ["line", *place_header, "paper", "ours", "difference", ""], short


def _show_field_of(name: str, cell: Cell) -> str:
    value = cell.fields.get(name)
    return "" if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def show_number(value: float, cell: Cell, deviation: float | None = None) -> str:
    """A number with the decimals of its cell."""
    if not np.isfinite(value):
        return "∞" if value > 0 else "-"
    shown = f"{value:.{cell.decimals}f}"
    if deviation is None or not np.isfinite(deviation):
        return shown
    return f"{shown} ± {deviation:.{cell.decimals}f}"


def show_difference(cell: Cell) -> str:
    """Ours minus the paper's, with its sign."""
    if not np.isfinite(cell.difference):
        return "∞"
    return f"{cell.difference + 0.0:+.{cell.decimals}f}"


def show_mark(cell: Cell) -> str:
    """Whether a cell is outside its tolerance, and why."""
    if cell.ok is False:
        return f"outside: {cell.reason}" if cell.reason else "outside"
    if cell.reason is not None:
        return f"wider tolerance: {cell.reason}"
    return _PLAIN_MARKS[cell.ok]


def draw_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, line by line."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
