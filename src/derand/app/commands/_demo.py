"""`derand demo`: train, certify, plot and report on bundled data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.app import Summary
from derand.app.commands._app import (
    AsJson,
    add_command,
    make_accuracy_table,
    make_console,
    make_table,
    print_facts,
    print_result,
    show_progress,
)

if TYPE_CHECKING:
    from rich.table import Table


_RIGHT = ("row", "probability", "radius")


@add_command
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the plot and the report.")] = Path("demo"),
    as_json: AsJson = False,
) -> None:
    """Train and certify on scikit-learn's breast-cancer data; leave a plot and a report behind."""
    with show_progress("training and certifying"):
        from derand.app.demo import run_demo

        result = run_demo(output)
    print_result(result, as_json, _print_result)


def _print_result(result: Summary) -> None:
    from derand._core.text import format_down

    console, seconds = make_console(), result["seconds"]
    console.print(make_accuracy_table(result["accuracy"], result["certified_accuracy"]))
    console.print(_tabulate_rows("Most certain test rows", result["most_certain"]))
    console.print(_tabulate_rows("Least certain test rows", result["least_certain"]))
    print_facts(
        console,
        {
            "trained on": f"{result['training_rows']} rows, for radius {result['radius']:g} in interquartile ranges",
            "certified": f"{result['test_rows']} test rows, l{result['norm']:g} balls, noise {result['noise']}",
            "average certified radius": format_down(result["average_certified_radius"], 4),
            "time": f"training {seconds['train']:.2f} s, certifying {seconds['certify']:.2f} s "
            f"(after {seconds['compile']:.1f} s of loading or compiling; compiling happens once)",
            "plot": result["plot"],
            "report": f"{result['report']} (open it in a browser)",
        },
    )


def _tabulate_rows(title: str, entries: Sequence[Summary]) -> Table:
    from derand._core.text import format_down, format_percent

    rows = [
        [
            str(entry["row"]),
            entry["label"],
            "yes" if entry["correct"] else "no",
            format_percent(entry["probability"]),
            format_down(entry["radius"], 4),
        ]
        for entry in entries
    ]
    return make_table(title, ["row", "label", "correct", "probability", "radius"], rows, right=_RIGHT)
