"""`python -m experiments sharper`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json, show_progress
from experiments.sharper import ATTACKED_ROWS, TASKS, Line, compare_ways


def sharper(
    attacked: Annotated[int, typer.Option(help="Rows of each from which a flip is searched for.")] = ATTACKED_ROWS,
    as_json: AsJson = False,
) -> None:
    """What the second proof and the mean rule certify of the paper's own classifiers, beside the paper's proof."""
    with show_progress("certifying three ways"):
        lines = list(compare_ways(TASKS, attacked))
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_lines(lines))
    if any(line.inside for line in lines):
        raise typer.Exit(1)


def format_lines(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    head = (
        "| data | noise | how | natural | average radius | certified at | attacked | flipped inside "
        "| certified / attacked | first call | again |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *map(_format_line, lines)])


def _format_line(line: Line) -> str:
    shares = ", ".join(f"{radius:g}: {share:.1f}" for radius, share in zip(line.radii, line.certified, strict=True))
    return (
        f"| {line.dataset} | {line.noise} | {line.way} | {line.natural:.1f} | {line.average_radius:.3f} | {shares} "
        f"| {line.attacked} | {line.inside} | {line.ratio:.3f} | {1e3 * line.first_seconds:.0f} ms "
        f"| {1e3 * line.seconds:.1f} ms |"
    )
