"""`derand datasets`: what can be loaded by name."""

from __future__ import annotations

from typing import TypedDict

import typer

from derand.cli._app import AsJson, add_command, make_console, make_table, print_json


class DatasetSummary(TypedDict):
    """A dataset of the catalog."""

    name: str
    summary: str


@add_command
def datasets(as_json: AsJson = False) -> None:
    """List the datasets that `derand.datasets.load(name)` can load."""
    from derand.datasets import CATALOG

    entries: list[DatasetSummary] = [{"name": name, "summary": entry.summary} for name, entry in CATALOG.items()]
    if as_json:
        print_json(entries)
        return
    rows = [[entry["name"], entry["summary"]] for entry in entries]
    make_console().print(make_table("Datasets", ["name", "what it is"], rows))
    typer.echo("The paper's datasets: `python -m experiments datasets`, in a clone of the repository.")
