"""`python -m experiments joint`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.beyond import TABLES, Joint, Summary, compare_cells, summarize_cells
from experiments.commands._tables import choose, collect, format_table

_DATASETS = tuple(TABLES)


def joint(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_DATASETS)}; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """AdditiveClassifier on the paper's joint certificates: numbers in an l2 ball and some categories change."""
    lines = collect(compare_cells(choose("--data", data, _DATASETS)), "training", "cells")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))
    typer.echo(f"\n{describe(summarize_cells(lines))}")


def format_lines(lines: list[Joint]) -> str:
    """One row per number of categories, one column per radius: paper, its own model (natural), one model."""
    radii = sorted({line.radius for line in lines})
    cells = {(line.dataset, line.budget, line.radius): line for line in lines}
    rows = [
        [dataset, str(budget), *(_format_cell(cells.get((dataset, budget, radius))) for radius in radii)]
        for dataset, budget in dict.fromkeys((line.dataset, line.budget) for line in lines)
    ]
    return format_table(["data", "categories", *(f"r = {radius:g}" for radius in radii)], rows)


def describe(found: Summary) -> str:
    """The summary in words."""
    return (
        "A cell holds: paper; ours, trained for the cell (its natural accuracy); one model of ours for all cells.\n"
        f"Trained for each cell: above the paper in {found.above} of {found.cells}, at worst {found.worst:+.1f} points."
        f"\nOne model: above in {found.one_above} of {found.cells}, at worst {found.one_worst:+.1f} points.\n"
        f"The same answer for every row certifies 50.0: more than the paper in {found.below_constant} cells. Ours is "
        f"above the paper and a point above such an answer in {found.above_both}."
    )


def _format_cell(line: Joint | None) -> str:
    return "" if line is None else f"{line.paper:.1f}; {line.ours:.1f} ({line.natural:.1f}); {line.one:.1f}"
