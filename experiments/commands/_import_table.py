"""`python -m experiments import-table`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import choose, collect, format_table
from experiments.importing import IMPORT_DATASETS, RADII, Imported, compare_imported, list_models


def import_table(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(IMPORT_DATASETS)}; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model of the table; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Models of other libraries, as they are and trained for smoothing, and our own: accuracy and what is certified."""
    chosen = choose("--model", model, list_models())
    lines = collect(compare_imported(choose("--data", data, IMPORT_DATASETS), chosen), "training", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))


def format_lines(lines: list[Imported]) -> str:
    """The lines as a Markdown table."""
    radii = " / ".join(f"{radius:g}" for radius in RADII)
    head = ["data", "majority", "model", "trained", "plain", "vote", f"certified at {radii}", "mean", "certified"]
    return format_table(
        head,
        [
            [
                line.dataset,
                f"{line.majority:.1f}",
                line.model,
                line.trained,
                f"{line.plain:.1f}",
                f"{line.vote:.1f}",
                " / ".join(f"{share:.1f}" for share in line.certified_by_vote),
                f"{line.mean:.1f}",
                " / ".join(f"{share:.1f}" for share in line.certified_by_mean),
            ]
            for line in lines
        ],
    )
