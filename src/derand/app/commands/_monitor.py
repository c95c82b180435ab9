"""`derand monitor`: whether what was proven of a model still holds on later batches of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from derand.app import Summary
from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_result,
    show_progress,
)
from derand.app.commands._options import argument, output, take_settings
from derand.app.settings import MonitorSettings, ThreatFlags, find_flag, list_given


@add_command
@take_settings
def monitor(
    model: Annotated[Path, argument(help="A model that `derand train` or `derand import` saved.")],
    data: Annotated[
        list[Path],
        argument(help="Tables, CSV or Parquet, one batch each: the first is what the others are compared with."),
    ],
    output: Annotated[Path, output("Where to write the page: .html, .md or .json.")],
    settings: MonitorSettings,
    flags: ThreatFlags,
    as_json: AsJson = False,
) -> None:
    """Tell whether the guarantee still holds: the share of answers that hold, batch by batch.

    Exit code 1 where a batch differs from the first one by more than chance.
    """
    if settings.threat is not None and list_given(flags):
        given = ", ".join(find_flag(ThreatFlags, name) for name in list_given(flags))
        raise ValueError(f"--threat says all of what may change: leave {given} out, or put it in {settings.threat}.")
    with show_progress("watching"):
        from derand.app.jobs import monitor_file

        summary = monitor_file(model, data, output, replace(settings, changes=flags.parse()))
    print_result(summary, as_json, _print_summary)
    if summary["alarms"]:
        raise typer.Exit(1)


def _print_summary(summary: Summary) -> None:
    console = make_console()
    console.print(summary["sentence"], markup=False)
    cells = [
        [one["name"], f"{one['rows']:,}", one["held_text"], "alarm" if one["alarm"] else "-"]
        for one in summary["batches"]
    ]
    console.print(make_table("Answers that hold", ["batch", "rows", "hold", "beyond chance"], cells, right=["rows"]))
    print_facts(console, {"written": summary["output"], "time": f"{summary['seconds']:.1f} s"})
