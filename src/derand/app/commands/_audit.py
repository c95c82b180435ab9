"""`derand audit`: certificates proven again, by other code, from the model and the data."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_json,
    show_progress,
)
from derand.app.commands._certify import describe_threat

if TYPE_CHECKING:
    from rich.table import Table

    from derand.app.jobs import AuditingSummary


@add_command
def audit(
    model: Annotated[Path, typer.Argument(help="The model that was certified.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="The table that was certified, CSV or Parquet.", show_default=False)],
    certified: Annotated[
        Path, typer.Argument(help="What `derand certify` wrote; its record lies beside it.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option(help="Column of the table that is no feature, as for `derand certify`.", show_default=False),
    ] = None,
    rows: Annotated[
        int, typer.Option(metavar="N", help="How many rows to look at, at random where there are more; 0: all.")
    ] = 200,
    seed: Annotated[
        int | None,
        typer.Option(help="Which rows, where not all are looked at.", show_default="drawn anew each time"),
    ] = None,
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
    Needs python-flint, the extra "audit".
    """
    if rows < 0:
        raise ValueError(f"--rows must be 0 or larger, got {rows}.")
    if seed is not None and seed < 0:
        raise ValueError(f"--seed must be 0 or larger, got {seed}.")
    drawn = secrets.randbelow(2**31) if seed is None else seed
    with show_progress("auditing", unit="rows") as advance:
        from derand.app.jobs import audit_file

        summary = audit_file(
            model,
            data,
            certified,
            target=target,
            rows=rows or None,
            random_state=drawn,
            output=output,
            advance=advance,
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)
    if not summary["passed"]:
        raise typer.Exit(1)


def _print_summary(summary: AuditingSummary) -> None:
    console = make_console()
    failed = [check for check in summary["machine"] if not check["passed"]]
    for check in failed:
        print_facts(console, {"MACHINE": f"{check['name']}: {check['detail']}"})
    if not failed:
        print_facts(console, {"machine": f"{len(summary['machine'])} tests of its arithmetic passed"})
    for path in summary["changed"]:
        print_facts(console, {"changed": f"{path} is not the file that was certified: its checksum is another one"})
    if summary["not_proven"]:
        console.print(_tabulate(summary))
    audited, total = summary["audited"], summary["rows"]
    drawn = "" if audited == total else f", drawn at random (--seed {summary['seed']} repeats it)"
    facts = {
        "certificates": f"rule {summary['rule']}, noise {summary['noise']}, made by derand {summary['version']}",
        **describe_threat(summary["threat"]),
        "claimed": _describe_claim(summary),
        "units": "" if summary["own_units"] else "not those of the model: see the record",
        "audited": f"{audited:,} of {total:,} rows{drawn}",
        "proven": f"{summary['proven']:,} of {audited:,}",
        "no more than a label or number claimed": f"{summary['labels_alone']:,} rows"
        if summary["labels_alone"]
        else "",
        "not looked at": _describe_unchecked(summary["not_checked"]),
        "written": summary["output"] or "",
        "time": f"{summary['seconds']:.1f} s, {summary['seconds_per_row']:.3f} s a row, the slowest "
        f"{summary['slowest_row']:.2f} s",
        "result": _conclude(summary),
    }
    print_facts(console, {name: text for name, text in facts.items() if text})


def _describe_claim(summary: AuditingSummary) -> str:
    """What is claimed of numbers."""
    from derand._core.text import format_exactly

    if summary["tolerance"] is not None:
        return f"radii within which values move by +-{format_exactly(summary['tolerance'])} at most"
    return "" if summary["radius"] is None else f"intervals at radius {format_exactly(summary['radius'])}"


def _describe_unchecked(reasons: dict[str, str]) -> str:
    """What was not looked at, and why."""
    from derand._core.text import join_words

    alike = {why: [name for name, other in reasons.items() if other == why] for why in reasons.values()}
    return "; ".join(f"{join_words(names)} ({why})" for why, names in alike.items())


def _conclude(summary: AuditingSummary) -> str:
    from derand._core.text import join_words

    audited, total = summary["audited"], summary["rows"]
    if summary["proven"] < audited:
        return f"NOT PROVEN: {audited - summary['proven']:,} of {audited:,} rows, see above"
    of_rows = f"all {total:,} rows" if audited == total else f"these {audited:,} rows"
    checked = [f"{name} (in part)" if name in summary["not_checked"] else name for name in summary["checked"]]
    proven = f"what {join_words(checked)} say about {of_rows} was proven again"
    if summary["changed"]:
        return f"{proven}, BUT not all files are those that were certified, see above"
    return proven if summary["passed"] else f"{proven}, BUT this machine failed its tests"


def _tabulate(summary: AuditingSummary) -> Table:
    from derand._core.text import format_down

    cells = [
        [f"{one['row']:,}", one["claim"], one["label"], format_down(one["claimed"], 6), format_down(one["proven"], 6)]
        for one in summary["not_proven"]
    ]
    columns = ["row", "claim", "label or value", "claimed radius", "proven radius"]
    return make_table("Not proven", columns, cells, right=["row", "claimed radius", "proven radius"])
