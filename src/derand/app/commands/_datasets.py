"""`derand datasets`: what can be loaded by name, and a raw table to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.app import Summary
from derand.app.commands._app import AsJson, add_command, make_console, make_table, print_json

if TYPE_CHECKING:
    import pyarrow as pa

    from derand._core.arrays import Cells


@add_command
def datasets(
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write 4,000 made-up credit applications, with missing values, to try commands on; .csv or .parquet.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the datasets that `derand.datasets.load(name)` can load, or write a raw table to try commands on."""
    if write is None:
        _list_catalog(as_json)
    else:
        _write_applications(write, as_json)


def _write_applications(path: Path, as_json: bool) -> None:
    from derand.datasets import make_applications
    from derand.tables import write_batches

    columns = make_applications()
    n_rows = len(columns["outcome"])
    with write_batches(path) as write_batch:
        write_batch({name: _with_gaps(values) for name, values in columns.items()})
    if as_json:
        print_json({"output": str(path), "rows": n_rows, "columns": list(columns)})
    else:
        console = make_console()
        console.print(f"{path}: {n_rows:,} made-up credit applications, {len(columns)} columns.", markup=False)


def _with_gaps(values: Cells) -> pa.Array:
    """A column in which NaN is an empty cell."""
    import pyarrow as pa

    return pa.array(values, from_pandas=True)


def _list_catalog(as_json: bool) -> None:
    from derand.datasets import CATALOG

    entries: list[Summary] = [{"name": name, "summary": entry.summary} for name, entry in CATALOG.items()]
    if as_json:
        print_json(entries)
        return
    rows = [[entry["name"], entry["summary"]] for entry in entries]
    make_console().print(make_table("Datasets", ["name", "what it is"], rows))
    typer.echo("The paper's datasets: `python -m experiments datasets`, in a clone of the repository.")
