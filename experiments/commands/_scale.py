"""`python -m experiments scale`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from derand.app.commands import show_progress
from experiments.scale import measure_scale


def scale(
    rows: Annotated[int, typer.Option(help="Of the generated table.")] = 20_000_000,
    files: Annotated[int, typer.Option(help="In how many files they lie.")] = 40,
    certified: Annotated[int, typer.Option(help="How many of the files are certified.")] = 40,
    memory: Annotated[str, typer.Option(help="Limit of each worker.")] = "1GiB",
    folder: Annotated[
        Path | None, typer.Option(help="Where the table and its certificates are kept.", show_default="a new one")
    ] = None,
) -> None:
    """Train and certify a table larger than the memory of its workers, by one and by two worker processes."""
    with tempfile.TemporaryDirectory() as place:
        figures = measure_scale(folder or Path(place), rows, files, certified, memory)
        typer.echo("| what | measured |\n|---|---|")
        while True:
            with show_progress("measuring"):
                figure = next(figures, None)
            if figure is None:
                return
            typer.echo(f"| {figure.what} | {figure.value} |")
