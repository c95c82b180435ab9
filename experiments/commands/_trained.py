"""`python -m experiments trained`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from derand.app.commands import AsJson, print_json
from experiments.beyond import GOALS, Trained, check_goals, compare_training
from experiments.commands._tables import choose, collect, format_table, print_floors

_DATASETS = tuple(dict.fromkeys(goal.dataset for goal in GOALS))


def trained(
    data: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_DATASETS)}; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """What is certified of AdditiveClassifier at the radius it was trained for, beside models that were not."""
    chosen = choose("--data", data, _DATASETS)
    goals = [goal for goal in GOALS if goal.dataset in chosen]
    lines = collect(compare_training(goals), "training", "lines")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))
    print_floors(check_goals(lines))


def format_lines(lines: list[Trained]) -> str:
    """The lines as a Markdown table."""
    head = ["data", "may change", "model", "natural", "certified", "balanced certified"]
    return format_table(
        head,
        [
            [line.dataset, line.change, line.way]
            + [f"{share:.1f}" for share in (line.shares.natural, line.shares.certified, line.shares.balanced)]
            for line in lines
        ],
    )
