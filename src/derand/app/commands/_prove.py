"""`derand prove`: what holds for every row that a model can get, seen or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from derand.app import Summary
from derand.app.commands._app import AsJson, add_command, make_console, print_facts, print_result, show_progress
from derand.app.commands._options import argument, take_settings
from derand.app.settings import ProveSettings


@add_command
@take_settings
def prove(
    model: Annotated[Path, argument(help="A model that `derand train` or `derand import` saved.")],
    settings: ProveSettings,
    data: Annotated[Path | None, argument(help="Table whose shares are reported, CSV or Parquet.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove what holds for every row, seen or not: no flip by protected columns, directions, ranges of the score.

    Each is proven, refuted by a pair of rows that the model itself confirms, or undecided. Exit code 1 where a promise
    about protected columns or directions is not proven.
    """
    with show_progress("proving"):
        from derand.app.jobs import prove_file

        summary = prove_file(model, data, settings)
    print_result(summary, as_json, _print_summary)
    if not summary["passed"]:
        raise typer.Exit(1)


def _print_summary(summary: Summary) -> None:
    console = make_console()
    console.print(summary["text"], markup=False, soft_wrap=True)
    for promise in summary["promises"]:
        if promise["kind"] == "protected" and promise["rows"]:
            first, second = promise["rows"]
            moved = set(promise["columns"])
            told = ", ".join(
                f"{name} {value} -> {second[name]}" if name in moved else f"{name} {value}"
                for name, value in first.items()
            )
            print_facts(console, {"such a row": told, "its answers": " -> ".join(promise["answers"])})
    print_facts(console, {"time": f"{summary['seconds']:.1f} s"})
