"""`derand report`: what is proven about the rows of a table, in one file for people to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NotRequired, TypedDict

import typer

from derand.app.commands._answers import print_warnings
from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    print_facts,
    print_json,
    refuse_given,
    show_progress,
)


@add_command
def report(
    model: Annotated[
        Path, typer.Argument(help="A model that `derand train` or `derand import` saved.", show_default=False)
    ],
    data: Annotated[Path, typer.Argument(help="Table to report on, CSV or Parquet.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write it: .html, .md, .tex or .json.", show_default=False)
    ],
    target: Annotated[
        str | None, typer.Option(help="Column with the true labels or numbers.", show_default=False)
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="The training table, to compare with a model that is not trained to be robust.")
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="A column of subgroups; repeat it for more.")] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            help="The radius that the text speaks of; for numbers that of their intervals.",
            show_default="0.25, in norm 0 one column; for numbers what the model was trained for",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="OTHER.json",
            help="Another model, to stand beside the first: the same rows, the same changes.",
            show_default=False,
        ),
    ] = None,
    l0: Annotated[
        int | None,
        typer.Option(
            help="Largest number of categorical columns that may change; if not given, what the model was trained for, "
            "else 3, or all where there are fewer."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    rule: Annotated[
        str | None,
        typer.Option(help="How the label is found: vote or mean.", show_default="the model's own"),
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="none: report on the model as deployed, with --rule mean.", show_default=False)
    ] = None,
    threat: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="What may change, in a file, instead of --l0.", show_default="the model's own"
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="Columns that held whole numbers alone in training stay whole, and 0/1 stays 0/1."
        ),
    ] = False,
    no_what_if: Annotated[
        bool, typer.Option("--no-what-if", help="Leave out “What if”, and with it the model's tables.")
    ] = False,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Largest number of rows that the page lists.", show_default="100000")
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column that names the rows.", show_default=False)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Of numbers, by how much answers may move: the report says within which radius they do not move "
            "farther.",
            show_default="near the mean error",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a report on a table that anyone can read: what is proven, with charts, in one file."""
    with show_progress("writing the report"):
        from derand.app.jobs import report_file, report_numbers_file
        from derand.storage import read_kind

        asked: _Asked = {
            "target": target,
            "radius": radius,
            "l0": l0,
            "title": title,
            "rule": rule,
            "noise": noise,
            "threat": threat,
            "whole": whole,
            "what_if": not no_what_if,
            "identity": identity,
        }
        if rows is not None:
            asked["max_rows"] = rows
        if read_kind(model) == "regressor":
            refuse_given(
                {"--train": train, "--group": group or None, "--compare": compare},
                f"classes, and {model} predicts a number",
            )
            summary = report_numbers_file(model, data, output, tolerance=tolerance, **asked)
        else:
            refuse_given({"--tolerance": tolerance}, f"numbers, and {model} tells classes apart")
            summary = report_file(
                model,
                data,
                output,
                train=train,
                groups=group or (),
                compare=compare,
                **asked,
            )
    if as_json:
        print_json(summary)
        return
    console = make_console()
    print_warnings(console, summary["warnings"], summary["notes"])
    console.print(summary["guarantee"], markup=False)
    if summary["comparison"] is not None:
        console.print(summary["comparison"], markup=False)
    print_facts(console, {"written": summary["output"], "time": f"{summary['seconds']:.1f} s"})


class _Asked(TypedDict):
    """What is asked of either kind of model."""

    target: str | None
    radius: float | None
    l0: int | None
    title: str | None
    rule: str | None
    noise: str | None
    threat: Path | None
    whole: bool
    what_if: bool
    max_rows: NotRequired[int]
    identity: str | None
