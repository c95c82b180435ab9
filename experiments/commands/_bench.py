"""`python -m experiments bench NAME`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from derand._core.files import require_folder
from derand.app.commands import AsJson, make_console, print_facts, print_json, show_progress
from experiments.bench import BENCHES, run_bench, write_bench

_NAMES = f"One of {', '.join(BENCHES)}."


def bench(
    name: Annotated[str, typer.Argument(help=_NAMES, show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the results as JSON (and a plot).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed against the plain version of the paper's algorithms, in one run on the same inputs."""
    with show_progress(f"measuring {name}"):
        if output is not None:
            require_folder(output)
        report = run_bench(name)
    if output is not None:
        write_bench(report, output)
    if as_json:
        print_json(report)
        return
    typer.echo(report["about"])
    print_facts(make_console(), {key.replace("_", " "): show_figure(value) for key, value in report["results"].items()})
    machine = report["machine"]
    typer.echo(f"{machine['system']}, {machine['processor']}, {machine['cores']} cores")


def show_figure(value: float | None) -> str:
    """A measured number: counts in full, others to four digits.

    Examples
    --------
    >>> show_figure(12345), show_figure(12.34567), show_figure(None)
    ('12,345', '12.35', 'None')
    """
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
