"""`derand init`: a commented `derand.toml` for a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    print_facts,
    print_json,
    require_choice,
    show_progress,
)

if TYPE_CHECKING:
    from derand.app.jobs import StartSummary


@add_command
def init(
    data: Annotated[Path, typer.Argument(help="Table to learn from, CSV or Parquet.", show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="Column to be predicted; without it, columns are listed.", show_default=False)
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Rows to certify, CSV or Parquet.", show_default="a quarter of the table is held out"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")] = Path("derand.toml"),
    task: Annotated[
        str | None,
        typer.Option(help="What the target holds: classes, or a number to be predicted.", show_default="a guess"),
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; repeat it for more.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeat it for more.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a table and write a commented derand.toml, which `derand run` runs."""
    with show_progress("looking at the table"):
        from derand.app.jobs import TASKS, init_file

        if task is not None:
            require_choice("--task", task, TASKS)
        summary = init_file(
            data,
            target,
            output,
            test=test,
            task=task,
            categorical=categorical or (),
            ignored=ignore or (),
            force=force,
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: StartSummary) -> None:
    classes = summary["classes"]
    found = "a number" if classes is None else ", ".join(f"{name} ({count:,})" for name, count in classes.items())
    facts = {
        "rows": f"{summary['rows']:,}",
        "target": f"{summary['target']}, {found} ({summary['task_reason']})",
        "columns to learn from": f"{len(summary['used'])}",
        **{f"left out: {name}": reason for name, reason in summary["left_out"].items()},
        **{f"doubtful: {name}": " ".join(doubts) for name, doubts in summary["doubts"].items()},
        "written": summary["output"],
        "next": f"read it, then derand run{'' if summary['output'] == 'derand.toml' else ' ' + summary['output']}",
    }
    print_facts(make_console(), facts)
