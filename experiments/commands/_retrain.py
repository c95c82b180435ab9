"""`python -m experiments retrain`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from derand.app.commands import AsJson, print_json
from experiments.commands._tables import collect, format_table
from experiments.deployed import Retrained, compare_retraining


def retrain(
    seeds: Annotated[int, typer.Option(help="Splits of the table.", min=1)] = 5,
    as_json: AsJson = False,
) -> None:
    """XGBoost on adult, as it is, trained on noisy copies, and retrained on the changes that flip it."""
    lines = collect(compare_retraining(seeds=seeds), "training", "models")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    typer.echo(format_lines(lines))


def format_lines(lines: list[Retrained]) -> str:
    """Means over the seeds as a Markdown table."""
    ways: dict[str, list[Retrained]] = defaultdict(list)
    for line in lines:
        ways[line.way].append(line)
    rows = []
    for way, own in ways.items():
        figures = np.array([[line.accuracy, line.certified, line.certified_wider] for line in own])
        rows.append([way, str(len(own)), *(f"{mean:.1f}" for mean in figures.mean(axis=0))])
    return format_table(["trained", "seeds", "accuracy", "certified at 5%", "certified at 10%"], rows)
