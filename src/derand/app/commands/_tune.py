"""`derand tune`: what robustness costs on a table, and how to train."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    require_choice,
    show_steps,
)
from derand.app.commands._train import SCALINGS, SHOWN_SCALING, read_scaling

if TYPE_CHECKING:
    from rich.table import Table

    from derand.app.jobs import FileTuningSummary

NORMS = ("0", "1", "2", "inf")


@add_command
def tune(
    data: Annotated[Path, typer.Argument(help="Table to learn from, CSV or Parquet.", show_default=False)],
    target: Annotated[str, typer.Option(help="Column with the labels.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to put a picture: .png, .svg or .pdf.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="How it is trained: one of {TRAINERS}; {DEFAULT_MODEL} if not given.", show_default=False),
    ] = None,
    norm: Annotated[
        str | None, typer.Option(help="Norm of the ball: 0, 1, 2 or inf.", show_default="the model's own")
    ] = None,
    radius: Annotated[
        list[float] | None,
        typer.Option(
            help="Where certified accuracy is measured, and trained for where the model is; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Magnitudes are tried around this one; kinds are {NOISES}.", show_default="the model's own"),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(
            help="Count radii in standard, range or robust units of each column, or none.", show_default=SHOWN_SCALING
        ),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help='"balanced" gives all classes the same weight.', show_default=False)
    ] = None,
    rule: Annotated[
        str | None, typer.Option(help="How the model answers: vote or mean.", show_default="the model's own")
    ] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Recommend by the mean of all classes.")] = False,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="How much natural accuracy it may cost; 0.01 is one point.")
    ] = 0.01,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; repeat it for more.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeat it for more.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure on a table what robustness costs, and say how to train.

    Several strengths are cross-validated; the one that is recommended is the largest that costs little accuracy.
    """
    if scaling is not None:
        require_choice("--scaling", scaling, SCALINGS)
    if norm is not None:
        require_choice("--norm", norm, NORMS)
    for size in radius or ():
        if not (math.isfinite(size) and size > 0):
            raise ValueError(f"--radius must be a number above 0, got {size}.")
    with show_steps("tuning", unit="trainings") as step:
        from derand.app.jobs import tune_file
        from derand.certificates import RULES
        from derand.estimators import TRAINERS

        if model is not None:
            require_choice("--model", model, list(TRAINERS))
        if rule is not None:
            require_choice("--rule", rule, list(RULES))
        summary = tune_file(
            data,
            target,
            output,
            model=model,
            norm=norm,
            radii=radius or (),
            noise=noise,
            scaling=read_scaling(scaling),
            class_weight=class_weight,
            rule=rule,
            balanced=balanced,
            tolerance=tolerance,
            folds=folds,
            categorical=categorical or (),
            ignored=ignore or (),
            advance=lambda done, total: step(done, total, "tuning"),
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: FileTuningSummary) -> None:
    from derand._core.text import format_percent

    console = make_console()
    rows = _tabulate(summary, "Certified accuracy", summary["natural"], summary["certified"])
    even = _tabulate(summary, "Balanced (mean of all classes)", summary["natural_balanced"], summary["balanced"])
    for table in (even, rows) if summary["by_balanced"] else (rows, even):
        console.print(table)
    console.print(summary["text"], markup=False)
    larger = format_percent(summary["constant"]) + (", all classes alike" if summary["by_balanced"] else "")
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


def _tabulate(
    summary: FileTuningSummary, title: str, natural: Sequence[float], certified: Sequence[Sequence[float]]
) -> Table:
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
