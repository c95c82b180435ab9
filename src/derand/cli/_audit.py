"""`derand audit`: certificates proven again, by other code, from the model and the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.cli._app import AsJson, add_command, make_console, make_table, print_facts, print_json, show_progress

if TYPE_CHECKING:
    from derand.jobs import AuditingSummary


@add_command
def audit(
    model: Annotated[Path, typer.Argument(help="The model that was certified.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="The table that was certified, CSV or Parquet.", show_default=False)],
    certified: Annotated[
        Path, typer.Argument(help="What `derand certify` wrote; its record lies beside it.", show_default=False)
    ],
    rows: Annotated[
        int, typer.Option(metavar="N", help="How many rows to look at, at random where there are more; 0: all.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="Which rows, where not all are looked at.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write row, claimed, proven, verdict and claim of each row.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove certificates again, by other code and other arithmetic: balls and whole numbers instead of doubles.

    Exit code 1 where a claim is not proven, a file is not the one that was certified, or this machine fails its tests.
    Needs python-flint: pip install 'derand[audit]'.
    """
    if rows < 0:
        raise ValueError(f"--rows must be 0 or larger, got {rows}.")
    if seed < 0:
        raise ValueError(f"--seed must be 0 or larger, got {seed}.")
    with show_progress("auditing", unit="rows") as advance:
        from derand.jobs import audit_file

        try:
            summary = audit_file(
                model, data, certified, rows=rows or None, random_state=seed, output=output, advance=advance
            )
        except ImportError as error:
            raise ValueError(str(error)) from None
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)
    if not summary["passed"]:
        raise typer.Exit(1)


def _print_summary(summary: AuditingSummary) -> None:
    from derand.text import format_short

    console = make_console()
    for check in summary["machine"]:
        print_facts(console, {("machine" if check["passed"] else "MACHINE"): f"{check['name']}: {check['detail']}"})
    for path in summary["changed"]:
        print_facts(console, {"changed": f"{path} is not the file that was certified: its checksum is another one"})
    if summary["not_proven"]:
        cells = [
            [f"{one['row']:,}", one["claim"], format_short(one["claimed"], 7), format_short(one["proven"], 7)]
            for one in summary["not_proven"]
        ]
        columns = ["row", "claim", "claimed radius", "proven radius"]
        console.print(make_table("Not proven", columns, cells, right=["row", "claimed radius", "proven radius"]))
    audited, total = summary["audited"], summary["rows"]
    facts = {
        "certificates": f"rule {summary['rule']}, noise {summary['noise']}, made by derand {summary['version']}",
        "audited": f"{audited:,} of {total:,} rows" + ("" if audited == total else ", at random"),
        "proven": f"{summary['proven']:,} of {audited:,}",
    }
    if summary["output"] is not None:
        facts["written"] = summary["output"]
    slowest = f"{summary['slowest_row']:.2f} the slowest"
    facts["time"] = f"{summary['seconds']:.1f} s, {summary['seconds_per_row']:.3f} s a row ({slowest})"
    facts["result"] = "every claim was proven again" if summary["passed"] else "NOT PROVEN: see above"
    print_facts(console, facts)
