"""`python -m experiments deployed`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import choose, collect, format_table
from experiments.deployed import DATASETS, LIMITS, Deployed, list_learners, measure_models


def deployed(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(DATASETS)}; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model of the table; may be repeated.")] = None,
    rows: Annotated[int, typer.Option(help="Test rows of each dataset, at most.", min=1)] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Models of other libraries by default settings, as deployed: accuracy, which share flips, and what a row costs."""
    chosen = choose("--model", model, list_learners())
    lines = collect(measure_models(choose("--data", data, DATASETS), chosen, rows), "certifying", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))


def format_lines(lines: list[Deployed]) -> str:
    """The lines as a Markdown table."""
    asked = " / ".join((*LIMITS, "5% + a category"))
    head = ["data", "model", "accuracy", "read, s", f"flips at {asked}", "undecided (ties)", "us a row"]
    return format_table(
        head,
        [
            [
                line.dataset,
                line.model,
                f"{line.accuracy:.1f}",
                f"{line.seconds_to_read:.2f}",
                " / ".join(f"{share:.1f}" for share in line.flips),
                " / ".join(f"{share:.1f} ({tie:.1f})" for share, tie in zip(line.undecided, line.ties, strict=True)),
                " / ".join(f"{cost:.0f}" for cost in line.microseconds),
            ]
            for line in lines
        ],
    )
