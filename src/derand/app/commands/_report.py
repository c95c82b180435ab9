"""`derand report`: what is proven about the rows of a table, in one file for people to read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from derand.app import Summary
from derand.app.commands._answers import print_warnings
from derand.app.commands._app import AsJson, add_command, make_console, print_facts, print_result, show_progress
from derand.app.commands._options import argument, output, take_settings
from derand.app.settings import ReportFileSettings, find_flag


@add_command
@take_settings
def report(
    model: Annotated[Path, argument(help="A model that `derand train` or `derand import` saved.")],
    data: Annotated[Path, argument(help="Table to report on, CSV or Parquet.")],
    output: Annotated[Path, output("Where to write it: .html, .pdf (where chromium is), .md, .tex or .json.")],
    settings: ReportFileSettings,
    as_json: AsJson = False,
) -> None:
    """Write a report on a table that anyone can read: what is proven, with charts, in one file."""
    with show_progress("writing the report"):
        from derand.app.jobs import report_file

        summary = report_file(model, data, output, settings, spell=partial(find_flag, ReportFileSettings))
    print_result(summary, as_json, _print_summary)


def _print_summary(summary: Summary) -> None:
    console = make_console()
    print_warnings(console, summary["warnings"], summary["notes"])
    console.print(summary["guarantee"], markup=False)
    if summary["comparison"] is not None:
        console.print(summary["comparison"], markup=False)
    print_facts(console, {"written": summary["output"], "time": f"{summary['seconds']:.1f} s"})
