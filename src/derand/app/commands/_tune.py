"""`derand tune`: what robustness costs on a table, and how to train."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.app import Summary
from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_result,
    show_steps,
)
from derand.app.commands._options import argument, output, take_settings
from derand.app.settings import TuneSettings, find_flag

if TYPE_CHECKING:
    from rich.table import Table


@add_command
@take_settings
def tune(
    data: Annotated[Path, argument(help="Table to learn from, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the labels.", show_default=False)],
    settings: TuneSettings,
    output: Annotated[Path | None, output("Where to put a picture: .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure on a table what robustness costs, and say how to train.

    Several strengths are cross-validated; the one that is recommended is the largest that costs little accuracy.
    """
    with show_steps("tuning", unit="trainings") as step:
        from derand.app.jobs import tune_file

        summary = tune_file(
            data,
            target,
            output,
            settings,
            spell=partial(find_flag, TuneSettings),
            advance=lambda done, total: step(done, total, "tuning"),
        )
    print_result(summary, as_json, _print_summary)


def _print_summary(summary: Summary) -> None:
    from derand._core.text import format_percent

    console = make_console()
    rows = _tabulate(summary, "Certified accuracy", summary["natural"], summary["certified"])
    even = _tabulate(summary, "Balanced (mean of all classes)", summary["natural_balanced"], summary["balanced"])
    for table in (even, rows) if summary["by_balanced"] else (rows, even):
        console.print(table)
    console.print(summary["text"], markup=False)
    larger = format_percent(summary["constant"]) + (", classes weighted equally" if summary["by_balanced"] else "")
    facts = {
        "trained by": summary["trainer"],
        "rows": f"{summary['rows']:,}, {summary['folds']} folds",
        "classes": ", ".join(f"{name} ({count})" for name, count in summary["classes"].items()),
        "always the same label gets": larger,
        "radii": f"l{summary['norm']:g} balls, scaling {summary['scaling'] or 'none'}",
    }
    if summary["command"] is not None:
        facts["to train"] = summary["command"]
    if summary["picture"] is not None:
        facts["picture"] = summary["picture"]
    print_facts(console, {**facts, "time": f"{summary['seconds']:.1f} s"})


def _tabulate(summary: Summary, title: str, natural: Sequence[float], certified: Sequence[Sequence[float]]) -> Table:
    """One line per value: accuracy without any change and at each radius; a star marks the recommended one."""
    from derand._core.text import format_exactly, format_percent

    radii = [format_exactly(radius) if radius else "above 0" for radius in summary["radii"]]
    rows = []
    for value, plain, shares in zip(summary["values"], natural, certified, strict=True):
        name = format_exactly(value) if isinstance(value, float) else str(value)
        if summary["command"] is not None and value == summary["recommended"]:
            name += " *"
        rows.append([name, format_percent(plain), *map(format_percent, shares)])
    columns = ["unchanged", *radii]
    title = f"{title} at radius"
    return make_table(title, [summary["parameter"], *columns], rows, right=columns)
