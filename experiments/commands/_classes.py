"""`python -m experiments classes`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.classes import TABLES, WAYS, Line, check_floors, measure_classes
from experiments.commands._tables import choose, collect, format_table, print_floors

_NAMES = tuple(table.name for table in TABLES)


def classes(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_NAMES)}; may be repeated.")] = None,
    way: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(WAYS)}; may be repeated.")] = None,
    rows: Annotated[int | None, typer.Option(help="Test rows of each split to certify.", show_default="all")] = None,
    as_json: AsJson = False,
) -> None:
    """Natural and certified accuracy of tables with three and ten classes, l2."""
    chosen, ways = choose("--data", data, _NAMES), choose("--way", way, tuple(WAYS))
    lines = collect(measure_classes(chosen, ways, rows), "several classes", "lines")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))
    print_floors(check_floors(lines))


def format_lines(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    head = ["data", "model", "test rows", "natural", "at radius", "certified", "fit, s", "certify, s"]
    return format_table(
        head,
        [
            [
                line.table,
                line.way,
                f"{line.rows:,}",
                f"{line.natural:.1f}",
                " / ".join(f"{radius:g}" for radius in line.radii),
                " / ".join(f"{share:.1f}" for share in line.certified),
                f"{line.fit_seconds:.1f}",
                f"{line.certify_seconds:.1f}",
            ]
            for line in lines
        ],
    )
