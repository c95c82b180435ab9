"""`derand train`: a model from a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from derand.app import Summary
from derand.app.commands._answers import print_warnings
from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_result,
    show_progress,
)
from derand.app.commands._options import argument, output, take_settings
from derand.app.settings import TrainSettings, find_flag, list_given


@add_command
@take_settings
def train(
    data: Annotated[Path, argument(help="Table to learn from, CSV or Parquet.")],
    target: Annotated[
        str, typer.Option(help="Column with the labels, or with numbers to be predicted.", show_default=False)
    ],
    output: Annotated[Path, output("Where to save the model (JSON).")],
    settings: TrainSettings,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print all split points of each column.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a table and save it: a classifier, or a regressor where the target is a number.

    Columns of numbers and of text are found by themselves; the printed table says what became of each.
    """
    beside = [f"--{name}" for name in ("norm", "l0", "frozen") if name in list_given(settings)]
    if settings.threat is not None and beside:
        raise ValueError(
            f"--threat says all of what may change: leave {', '.join(beside)} out, or put it in {settings.threat}."
        )
    with show_progress("training"):
        from derand.app.jobs import train_file

        summary = train_file(data, target, output, settings, spell=partial(find_flag, TrainSettings))
    print_result(summary, as_json, partial(_print_summary, verbose=verbose))


def _print_summary(summary: Summary, *, verbose: bool) -> None:
    console = make_console()
    columns = [[column["name"], column["use"], column["shape"] or column["detail"]] for column in summary["columns"]]
    console.print(make_table("Columns", ["column", "use", "detail"], columns))
    for column in summary["columns"] if verbose else ():
        if column["splits"]:
            splits = ", ".join(f"{split:.6g}" for split in column["splits"])
            console.print(f"{column['name']} is split at {splits}", markup=False)
    print_warnings(console, summary["warnings"])
    print_facts(
        console,
        {
            "trained by": summary["trainer"],
            "rows": f"{summary['rows']:,}",
            "target": _describe_target(summary),
            **_describe_classes(summary),
            **_describe_training(summary),
            "rule": summary["rule"],
            "noise": f"{summary['noise']}, {_name_ball(summary)}, scaling {summary['scaling'] or 'none'}",
            **(_describe_labels(summary) if summary["task"] == "classes" else _describe_numbers(summary)),
            "model": summary["model"],
            "time": f"{summary['seconds']:.1f} s",
        },
    )


def _name_ball(summary: Summary) -> str:
    return "limits alone" if summary["norm"] is None else f"l{summary['norm']:g} balls"


def _describe_training(summary: Summary) -> dict[str, str]:
    """What it was trained for, where the trainer has a radius; how smooth its functions are, where it chose that."""
    from derand._core.text import format_exactly, format_short

    facts = {}
    if summary["radius"] is not None:
        unit = "" if summary["scaling"] is None else f", scaling {summary['scaling']}"
        facts["trained for radius"] = f"{format_exactly(summary['radius'])} ({_name_ball(summary)}{unit})"
    if summary["regularization"] is not None:
        facts["regularization"] = format_short(summary["regularization"])
    return facts


def _describe_target(summary: Summary) -> str:
    """What it was taken for and why, and how to say the other where that was a guess."""
    from derand._core.text import format_short

    what = "classes"
    if summary["task"] == "number":
        low, high = summary["target_range"]
        what = f"a number from {format_short(low)} to {format_short(high)}"
    other = "" if summary["other_task"] is None else f"; if that is wrong, --task {summary['other_task']}"
    return f"{summary['target']}, {what} ({summary['task_reason']}{other})"


def _describe_classes(summary: Summary) -> dict[str, str]:
    if summary["task"] != "classes":
        return {}
    facts = {"classes": ", ".join(f"{name} ({count})" for name, count in summary["classes"].items())}
    return facts | name_decision(list(summary["classes"]), summary["decision_threshold"])


def name_decision(classes: Sequence[object], threshold: float | None) -> dict[str, str]:
    """From which probability on the answer is the second class, where that is not one half."""
    from derand._core.text import format_threshold

    if threshold is None or threshold == 0.5:
        return {}
    return {"decision": f"{classes[1]} from a probability of {format_threshold(threshold)} on"}


def _describe_labels(summary: Summary) -> dict[str, str]:
    """How a classifier does on its own rows."""
    from derand._core.text import format_exactly, format_percent, quote_short

    label, count = max(summary["classes"].items(), key=lambda one: one[1])
    constant = f"always {quote_short(label)}: {format_percent(count / sum(summary['classes'].values()))}"
    facts = {"accuracy on these rows": f"{format_percent(summary['training_accuracy'])} ({constant})"}
    held, radius = summary["training_certified_at_radius"], summary["radius"]
    if held is not None and radius:
        name = f"right and certified at {format_exactly(radius)} on these rows"
        facts[name] = f"{format_percent(held)} ({constant})"
    return facts


def _describe_numbers(summary: Summary) -> dict[str, str]:
    """How a regressor does on its own rows."""
    from derand._core.text import format_exactly, format_short, format_short_up

    facts = {"root of the mean square error on these rows": format_short(summary["training_rmse"])}
    width, radius = summary["training_mean_width"], summary["radius"]
    if width is not None:
        where = "within the limits" if summary["norm"] is None or radius is None else f"at {format_exactly(radius)}"
        facts[f"mean width of intervals {where} on these rows"] = format_short_up(width)
    return facts
