"""`python -m experiments datasets`."""

from __future__ import annotations

from typing import TypedDict

import typer

from derand.app.commands import AsJson, make_console, make_table, print_json
from experiments.datasets import CATALOG, ENVIRONMENT, is_available


class Listed(TypedDict):
    """A dataset as `--json` prints it."""

    name: str
    file: str | None
    available: bool
    summary: str


def datasets(as_json: AsJson = False) -> None:
    """List the datasets that `experiments.datasets.load(name)` can load."""
    entries: list[Listed] = [
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
    typer.echo(f"Files are looked for in the folder ${ENVIRONMENT}, then in the user's cache; load(name) says more.")
