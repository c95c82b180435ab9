"""`python -m experiments attacks`."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json, show_progress
from experiments.attacks import ROWS, Line, compare_attacks


def attacks(
    rows: Annotated[int, typer.Option(help="How many rows are attacked in all.", min=1)] = ROWS,
    as_json: AsJson = False,
) -> None:
    """Attack what is certified: every trainer, both rules, many threats. A flip inside is an error."""
    with show_progress("attacking"):
        lines = list(compare_attacks(rows))
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_lines(lines))
    if any(line.inside for line in lines):
        raise typer.Exit(1)


def format_lines(lines: list[Line]) -> str:
    """The lines as a Markdown table, and what they add up to."""
    head = (
        "| model | way | threat | rows | flips | attacked / certified, median | least | flips inside | ms a row |"
        "\n|---|---|---|---|---|---|---|---|---|"
    )
    total, flips, inside = (sum(getattr(line, name) for line in lines) for name in ("rows", "flips", "inside"))
    return "\n".join([head, *map(_format_line, lines), "", f"{total} rows, {flips} flips, {inside} of them inside."])


def _format_line(line: Line) -> str:
    ratio, least = ("" if math.isnan(one) else f"{one:.4f}" for one in (line.ratio, line.least))
    return (
        f"| {line.model} | {line.way} | {line.threat} | {line.rows} | {line.flips} | {ratio} | {least} "
        f"| {line.inside} | {1e3 * line.seconds:.1f} |"
    )
