"""`python -m experiments interactions`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import choose, collect, format_table
from experiments.interactions import TASKS, TESTED, Line, compare_groups


def interactions(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(TASKS)}; may be repeated.")] = None,
    rule: Annotated[str, typer.Option(help="vote or mean.")] = "mean",
    rows: Annotated[int, typer.Option(help="Test rows of each image task.")] = TESTED,
    as_json: AsJson = False,
) -> None:
    """Groups of columns that interact: what is certified with and without them, by the same rule."""
    lines = collect(compare_groups(choose("--data", data, TASKS), rule, rows), "training", "lines")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))


def format_lines(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    head = ["data", "functions of", "rule", "radius", "natural", "certified", "fit, s", "certify, s"]
    return format_table(
        head,
        [
            [line.dataset, line.way, line.rule, f"{line.radius:g}"]
            + [f"{share:.1f}" for share in (line.shares.natural, line.shares.certified)]
            + [f"{seconds:.0f}" for seconds in (line.fit_seconds, line.certify_seconds)]
            for line in lines
        ],
    )
