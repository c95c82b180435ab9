"""`python -m experiments deployed-check`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import choose, collect, format_table
from experiments.deployed import DATASETS, Check, check_model, list_learners


def deployed_check(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(DATASETS)}; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model of the table; may be repeated.")] = None,
    limit: Annotated[str, typer.Option(help="By how much each number may change.")] = "5%",
    l0: Annotated[int, typer.Option(help="How many categories may change.", min=0)] = 0,
    points: Annotated[int, typer.Option(help="Points that the library predicts, for each model.", min=1)] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Ask the libraries themselves: points of sets that hold, half of them on edges, and witnesses. A flip is wrong."""
    pairs = [
        (dataset, learner)
        for dataset in choose("--data", data, DATASETS)
        for learner in choose("--model", model, list_learners())
    ]
    lines = collect((check_model(*pair, limit, l0, points) for pair in pairs), "predicting", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        typer.echo(format_lines(lines))
    if any(line.flips_inside or line.false_witnesses for line in lines):
        raise typer.Exit(1)


def format_lines(lines: list[Check]) -> str:
    """The lines as a Markdown table."""
    head = ["data", "model", "threat", "points", "flips inside", "witnesses", "false witnesses"]
    return format_table(head, [[str(value) for value in asdict(line).values()] for line in lines])
