"""`derand certify`: the label and the certified radius of every row of a table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.cli._app import (
    AsJson,
    add_command,
    make_accuracy_table,
    make_console,
    print_facts,
    print_json,
    show_progress,
)

if TYPE_CHECKING:
    from derand.jobs import CertifyingSummary


@add_command
def certify(
    model: Annotated[Path, typer.Argument(help="A model that `derand train` saved.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="Table to certify, CSV or Parquet.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write row, label, failure, radius.", show_default=False)
    ],
    target: Annotated[
        str | None, typer.Option(help="Column with the true labels, to measure accuracy.", show_default=False)
    ] = None,
    radii: Annotated[str, typer.Option(help="Radii at which certified accuracy is measured.")] = "0,0.25,0.5,1",
    l0: Annotated[int, typer.Option(help="How many categorical columns may change at the same time.")] = 0,
    safe_csv: Annotated[
        bool,
        typer.Option(
            "--safe-csv",
            help="For spreadsheets: put an apostrophe before labels that begin with =, +, -, @, a tab or a return.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Certify every row of a table: its label, and the radius within which no change can flip it.

    Columns are matched by name. The file is read and written in batches, so it may be larger than memory.
    """
    wanted = _parse_radii(radii)
    with show_progress("certifying", unit="rows") as advance:
        from derand.jobs import certify_file

        summary = certify_file(
            model, data, output, target=target, radii=wanted, l0=l0, safe_csv=safe_csv, advance=advance
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _parse_radii(text: str) -> list[float]:
    try:
        radii = [float(part) for part in text.split(",")]
    except ValueError:
        radii = [math.nan]
    if not all(math.isfinite(radius) and radius >= 0 for radius in radii):
        raise ValueError(f"--radii must be numbers, 0 or larger, separated by commas, got {text!r}.")
    return radii


def _print_summary(summary: CertifyingSummary) -> None:
    from derand.text import format_down

    console, l0 = make_console(), summary["l0"]
    if summary["columns_not_used"]:
        print_facts(console, {"columns not used": ", ".join(summary["columns_not_used"])})
    for name, count in summary["unseen_categories"].items():
        print_facts(console, {f"values of {name!r} that training did not see": f"{count:,}"})
    for name in summary["empty_columns"]:
        print_facts(console, {f"values of {name!r}": "none in any row, which counts as one that training did not see"})
    changes = f", and at most {l0} categorical {'change' if l0 == 1 else 'changes'}" if l0 else ""
    facts = {
        "noise": f"{summary['noise']}, l{summary['norm']} balls{changes}",
        "rows": f"{summary['rows']:,}, of which {summary['certified_rows']:,} certified",
    }
    if summary["rows_of_infinite_radius"]:
        facts["rows that no change of numbers can flip"] = f"{summary['rows_of_infinite_radius']:,}"
    if "accuracy" in summary:
        console.print(make_accuracy_table(summary["accuracy"], summary["certified_accuracy"]))
        facts["average certified radius"] = format_down(summary["average_certified_radius"], 4)
    print_facts(console, {**facts, "written": summary["output"], "time": f"{summary['seconds']:.1f} s"})
