"""`derand audit`: certificates proven again, by other code, from the model and the data."""

from __future__ import annotations

import secrets
from dataclasses import replace
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
    show_progress,
)
from derand.app.commands._certify import describe_threat
from derand.app.commands._options import argument, take_settings
from derand.app.settings import AuditSettings

if TYPE_CHECKING:
    from rich.table import Table


@add_command
@take_settings
def audit(
    model: Annotated[Path, argument(help="The model that was certified.")],
    data: Annotated[Path, argument(help="The table that was certified, CSV or Parquet.")],
    certified: Annotated[Path, argument(help="What `derand certify` wrote; its record lies beside it.")],
    settings: AuditSettings,
    as_json: AsJson = False,
) -> None:
    """Prove certificates again, by other code and other arithmetic: balls and whole numbers instead of doubles.

    Exit code 1 where a claim is not proven, a file is not the one that was certified, or this machine fails its tests.
    Needs python-flint, the extra "audit".
    """
    if settings.seed is None:
        settings = replace(settings, seed=secrets.randbelow(2**31))
    with show_progress("auditing", unit="rows") as advance:
        from derand.app.jobs import audit_file

        summary = audit_file(model, data, certified, settings, advance=advance)
    print_result(summary, as_json, _print_summary)
    if not summary["passed"]:
        raise typer.Exit(1)


def _print_summary(summary: Summary) -> None:
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


def _describe_claim(summary: Summary) -> str:
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


def _conclude(summary: Summary) -> str:
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


def _tabulate(summary: Summary) -> Table:
    from derand._core.text import format_down

    cells = [
        [
            f"{one['row']:,}",
            one["claim"] + one["verdict"].removeprefix("not proven"),
            one["label"],
            format_down(one["claimed"], 6),
            format_down(one["proven"], 6),
        ]
        for one in summary["not_proven"]
    ]
    columns = ["row", "claim", "label or value", "claimed radius", "proven radius"]
    return make_table("Not proven", columns, cells, right=["row", "claimed radius", "proven radius"])
