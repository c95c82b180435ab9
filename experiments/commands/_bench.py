"""`python -m experiments bench NAME`, `bench all` and `bench compare OLD NEW`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from derand._core.files import require_folder
from derand.app.commands import AsJson, make_console, print_facts, print_json, show_progress
from experiments.bench import BENCHES, AllFigures, compare_figures, run_all, run_bench, write_bench

_NAMES = f"One of {', '.join(BENCHES)}; `all` for every one of them; `compare` for two files of `all --json`."


def bench(
    name: Annotated[str, typer.Argument(help=_NAMES, show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the results as JSON (and a plot).")
    ] = None,
    files: Annotated[list[Path] | None, typer.Argument(help="Of `compare`: the older file and the newer one.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Of `all`: how often each is run, so that noise shows.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Measure speed against the plain version of the paper's algorithms, in one run on the same inputs."""
    if name == "compare":
        print_changes(files or [], as_json)
        return
    if files:
        raise ValueError(f"Only `bench compare` takes files, got {files[0]}.")
    if name == "all":
        with show_progress("measuring"):
            figures = run_all(BENCHES, repeats)
        print_all(figures, as_json)
        return
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


def print_all(measured: AllFigures, as_json: bool) -> None:
    """The range of each figure, and what was left out."""
    if as_json:
        print_json(measured)
        return
    for name, figures in measured["figures"].items():
        ranges = {what: f"{show_figure(min(seen))} to {show_figure(max(seen))}" for what, seen in figures.items()}
        typer.echo(name)
        print_facts(make_console(), {what.replace("_", " "): shown for what, shown in ranges.items()})
    for name, reason in measured["left_out"].items():
        typer.echo(f"{name} was left out: {reason}")


def print_changes(files: list[Path], as_json: bool) -> None:
    """Figures that changed beyond noise, the largest changes first."""
    if len(files) != 2:
        raise ValueError(f"`bench compare` takes two files of `bench all --json`, got {len(files)}.")
    changes = compare_figures(*files)
    if as_json:
        print_json([change._asdict() for change in changes])
        return
    for change in changes:
        before, after = show_figure(change.before), show_figure(change.after)
        typer.echo(f"{change.bench}: {change.figure.replace('_', ' ')} {before} -> {after} ({change.ratio:.2f} times)")
    if not changes:
        typer.echo("No figure changed beyond noise.")


def show_figure(value: float | None) -> str:
    """A measured number: counts in full, others to four digits.

    Examples
    --------
    >>> show_figure(12345), show_figure(12.34567), show_figure(None)
    ('12,345', '12.35', 'None')
    """
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
