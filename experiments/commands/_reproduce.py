"""`python -m experiments reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from derand.app.commands import AsJson, make_console, make_table, print_facts, print_json, show_steps
from experiments.reproduce import (
    Report,
    choose_names,
    list_names,
    list_short_rows,
    read_items,
    render_cells,
    render_document,
    summarize,
    write_document,
)
from experiments.reproduce import reproduce as carry_out

_NAMES = f'Of {", ".join(list_names())}. "tab:" and "fig:" may be left out.'


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help=_NAMES, show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them (about ten minutes on two cores).")] = False,
    list_titles: Annotated[bool, typer.Option("--list", help="Print the names and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Use a part of the test rows; tolerances are wider.")] = False,
    results: Annotated[
        Path, typer.Option(help="Folder for tables, figures, and what an interrupted run has done so far.")
    ] = Path("derand-results"),
    document: Annotated[
        Path | None, typer.Option(help="Also write a summary of all that differs, and why (Markdown).")
    ] = None,
    cells: Annotated[Path | None, typer.Option(help="Also write every cell that differs (Markdown).")] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads; all cores if not given.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Carry out tables and figures of the paper and set them beside the published numbers.

    `python -m experiments datasets` says where files are looked for. To go on after an interruption, run it again.
    """
    if list_titles:
        print_titles({name: item.title for name, item in read_items().items()}, as_json=as_json)
        return
    chosen = choose_names(names or [], everything=everything)
    try:
        with show_steps("reproducing", unit="models") as tell:
            reports = carry_out(chosen, results, quick=quick, n_jobs=jobs, on_progress=tell)
    except KeyboardInterrupt:
        sys.stderr.write(f"Interrupted. What is done is kept in {results}: run the same command again to go on.\n")
        raise typer.Exit(130) from None
    if document is not None:
        write_document(document, render_document(reports))
    if cells is not None:
        write_document(cells, render_cells(reports))
    if as_json:
        print_json([report.as_dict() for report in reports])
    else:
        print_reports(reports)


def print_titles(titles: Mapping[str, str], *, as_json: bool) -> None:
    """Names with their titles for people and as JSON; bare names, one per line, for a pipe."""
    if as_json:
        print_json([{"name": name, "title": title} for name, title in titles.items()])
    elif sys.stdout.isatty():
        rows = [list(pair) for pair in titles.items()]
        make_console().print(make_table("Tables and figures", ["name", "what it shows"], rows))
    else:
        typer.echo("\n".join(titles))


def print_reports(reports: Sequence[Report]) -> None:
    """How each one went and where it was written; a single table cell by cell."""
    console = make_console()
    for report in reports:
        if report.cells and len(reports) == 1:
            console.print(make_table(report.item.title, *list_short_rows(report.cells)))
        written = ", ".join(str(path) for path in report.files)
        print_facts(console, {report.item.name: summarize(report), "written": written})
