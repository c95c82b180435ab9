"""`derand datasets`: what can be loaded by name."""

from __future__ import annotations

from typing import TypedDict

import typer

from derand.cli._app import AsJson, add_command, make_console, make_table, print_json


class DatasetSummary(TypedDict):
    """A dataset of the catalog, and whether it can be loaded here."""

    name: str
    file: str | None
    available: bool
    summary: str


@add_command
def datasets(as_json: AsJson = False) -> None:
    """List the datasets that `derand.datasets.load(name)` can load."""
    from derand.datasets import CATALOG, is_available

    entries: list[DatasetSummary] = [
        {"name": name, "file": entry.file, "available": is_available(name), "summary": entry.summary}
        for name, entry in CATALOG.items()
    ]
    if as_json:
        print_json(entries)
        return
    rows = [
        [entry["name"], entry["file"] or "-", "yes" if entry["available"] else "no", entry["summary"]]
        for entry in entries
    ]
    make_console().print(make_table("Datasets", ["name", "file", "here", "what it is"], rows))
    typer.echo("Files are looked for in the folder $DERAND_DATA, then in the user's cache; load(name) says more.")
