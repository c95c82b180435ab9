"""`python -m experiments regression`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import choose, collect, format_table
from experiments.regression import ATTACKED_ROWS, DATASETS, RADII, Line, compare_regressors, plot_widths


def regression(
    data: Annotated[list[str] | None, typer.Option(help="diabetes or friedman1; may be repeated.")] = None,
    attacked: Annotated[int, typer.Option(help="Rows of each that an attack tries to lead out.")] = ATTACKED_ROWS,
    picture: Annotated[Path | None, typer.Option(help="Draw the width over the radius into this PNG file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Error and certified intervals of regressors on diabetes and on generated data, and attacks on the intervals."""
    chosen = choose("--data", data, DATASETS)
    lines = collect(compare_regressors(chosen, attacked), "certifying intervals", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_lines(lines))
    if picture is not None:
        plot_widths(picture, chosen)
    if any(line.left for line in lines):
        raise typer.Exit(1)


def format_lines(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    head = ["data", "model", "RMSE", *(f"width at {radius:g}" for radius in RADII), "attacked", "left", "reached"]
    return format_table(head, map(_format_line, lines))


def _format_line(line: Line) -> list[str]:
    if not line.widths:
        return [line.dataset, line.model, f"{line.rmse:.2f}", *["-"] * (len(RADII) + 3)]
    widths = [f"{width:.2f}" for width in line.widths]
    return [
        line.dataset,
        line.model,
        f"{line.rmse:.2f}",
        *widths,
        str(line.attacked),
        str(line.left),
        f"{line.reached:.2f}",
    ]
