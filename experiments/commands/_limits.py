"""`python -m experiments limits`."""

from __future__ import annotations

from dataclasses import asdict

import typer

from derand.app.commands import AsJson, print_json, show_progress
from experiments.limits import Line, compare_limits


def limits(as_json: AsJson = False) -> None:
    """Which decisions on adult and credit can flip when every number may change by 5 %, and one category at will."""
    with show_progress("asking within limits"):
        lines = list(compare_limits())
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))
    for line in lines[:1]:
        typer.echo("\n".join(["", f"{line.dataset}, {line.model}, {line.way}: some that flip", *line.witnesses]))


def format_lines(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    head = (
        "| data | model | way | rows | accuracy | holds | flips | undecided | holds and right | seconds "
        "| times an l2 ball |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *map(_format_line, lines)])


def _format_line(line: Line) -> str:
    shares = (line.accuracy, line.holds, line.flips, line.undecided, line.held_and_right)
    return (
        f"| {line.dataset} | {line.model} | {line.way} | {line.rows} | "
        + " | ".join(f"{share:.1f}" for share in shares)
        + f" | {line.seconds:.3f} | {line.seconds / line.ball_seconds:.2f} |"
    )
