"""`derand train`: a classifier from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.cli._app import (
    AsJson,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_json,
    require_choice,
    show_progress,
)

if TYPE_CHECKING:
    from derand.jobs import TrainingSummary

SCALINGS = ("standard", "range", "robust", "none")
"""Those of `derand.learn`, which is slow to load, and none."""


@add_command
def train(
    data: Annotated[Path, typer.Argument(help="Table to learn from, CSV or Parquet.", show_default=False)],
    target: Annotated[str, typer.Option(help="Column with the labels, of two kinds.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model (JSON).", show_default=False)],
    model: Annotated[str, typer.Option(help="How it is trained: one of {TRAINERS}.")] = "stumps",
    noise: Annotated[str, typer.Option(help="Kind and scale; kinds are {NOISES}.")] = "gaussian:0.25",
    scaling: Annotated[
        str,
        typer.Option(
            help="Count noise and radii in deviations (standard), ranges (range) or interquartile ranges (robust) of "
            "each column, or none."
        ),
    ] = "standard",
    class_weight: Annotated[
        str | None, typer.Option(help='"balanced" gives both classes the same weight.', show_default=False)
    ] = None,
    rule: Annotated[
        str, typer.Option(help="How it answers: vote (of noisy copies) or mean (of their scores).")
    ] = "vote",
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; repeat it for more.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeat it for more.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on a table and save it.

    Columns of numbers and of text are found by themselves; the printed table says what became of each.
    """
    require_choice("--scaling", scaling, SCALINGS)
    with show_progress("training"):
        from derand.certificates import RULES
        from derand.estimators import TRAINERS
        from derand.jobs import train_file

        require_choice("--model", model, list(TRAINERS))
        require_choice("--rule", rule, list(RULES))

        summary = train_file(
            data,
            target,
            output,
            model=model,
            noise=noise,
            scaling=None if scaling == "none" else scaling,
            class_weight=class_weight,
            rule=rule,
            categorical=categorical or (),
            ignored=ignore or (),
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: TrainingSummary) -> None:
    from derand.text import format_percent

    console = make_console()
    columns = [[column["name"], column["use"], column["detail"]] for column in summary["columns"]]
    console.print(make_table("Columns", ["column", "use", "detail"], columns))
    for warning in summary["warnings"]:
        console.print(f"Warning: {warning}", style="yellow", markup=False)
    print_facts(
        console,
        {
            "trained by": summary["trainer"],
            "rows": f"{summary['rows']:,}",
            "classes": ", ".join(f"{name} ({count})" for name, count in summary["classes"].items()),
            "rule": summary["rule"],
            "noise": f"{summary['noise']}, l{summary['norm']} balls, scaling {summary['scaling'] or 'none'}",
            "accuracy on these rows": format_percent(summary["training_accuracy"]),
            "model": summary["model"],
            "time": f"{summary['seconds']:.1f} s",
        },
    )
