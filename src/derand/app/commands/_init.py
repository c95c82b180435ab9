"""`derand init`: a commented `derand.toml` for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from derand.app import Summary
from derand.app.commands._app import AsJson, add_command, make_console, print_facts, print_result, show_progress
from derand.app.commands._options import argument, take_settings
from derand.app.settings import InitSettings


@add_command
@take_settings
def init(
    data: Annotated[Path, argument(help="Table to learn from, CSV or Parquet.")],
    settings: InitSettings,
    target: Annotated[
        str | None, typer.Option(help="Column to be predicted; without it, columns are listed.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")] = Path("derand.toml"),
    as_json: AsJson = False,
) -> None:
    """Look at a table and write a commented derand.toml, which `derand run` runs."""
    with show_progress("looking at the table"):
        from derand.app.jobs import init_file

        summary = init_file(data, target, output, settings)
    print_result(summary, as_json, _print_summary)


def _print_summary(summary: Summary) -> None:
    classes = summary["classes"]
    found = "a number" if classes is None else ", ".join(f"{name} ({count:,})" for name, count in classes.items())
    facts = {
        "rows": f"{summary['rows']:,}",
        "target": f"{summary['target']}, {found} ({summary['task_reason']})",
        "columns to learn from": f"{len(summary['used'])}",
        **{f"left out: {name}": reason for name, reason in summary["left_out"].items()},
        **{f"doubtful: {name}": " ".join(doubts) for name, doubts in summary["doubts"].items()},
        "radius to train for": f"{summary['radius']:g}, {summary['radius_reason']}",
        "written": summary["output"],
        "next": f"read it, then derand run{'' if summary['output'] == 'derand.toml' else ' ' + summary['output']}",
    }
    print_facts(make_console(), facts)
