"""How good answers are, as the commands print it. No command of its own; must not know where figures come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from derand.app.commands._app import make_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from derand.metrics import AnswerSummary, RadiusFigures

_MOST_CLASSES = 10


def print_warnings(console: Console, warnings: Sequence[str], notes: Sequence[str] = ()) -> None:
    """What a reader must know first."""
    for warning in warnings:
        console.print(f"Warning: {warning}", style="yellow", markup=False)
    for note in notes:
        console.print(f"Note: {note}", markup=False)


def describe_answers(answers: AnswerSummary) -> dict[str, str]:
    """Accuracy, balanced accuracy, AUC and log-loss, each with its 95 % interval and what a constant answer gets."""
    from derand._core.text import (
        format_down,
        format_interval,
        format_percent,
        format_percent_interval,
        format_readable,
        quote_short,
    )
    from derand.metrics import describe_costs

    majority = f"always {quote_short(answers['majority_label'])} gets {format_percent(answers['majority_share'])}"
    balanced, guess = answers["balanced_accuracy"], format_percent(answers["constant_balanced_accuracy"])
    facts = {
        "accuracy": f"{format_percent_interval(**answers['accuracy'])}; {majority}",
        "balanced accuracy": f"{format_percent_interval(**balanced)}; a constant answer gets {guess}",
    }
    if answers["auc"] is not None:
        facts["AUC"] = f"{format_interval(**answers['auc'])}; a constant answer gets 0.5"
    if answers["log_loss"] is not None:
        shares = format_down(answers["constant_log_loss"], 3)
        facts["log-loss"] = f"{format_interval(**answers['log_loss'], up=True)}; the shares of the classes get {shares}"
    if answers["cost"] is not None:
        cost = answers["cost"]
        total, mean = format_readable(cost["total"]), format_readable(cost["mean"])
        constant = f"always {quote_short(cost['constant_label'])} costs {format_readable(cost['constant_total'])}"
        facts["cost"] = f"{total}, {mean} a row; {constant} ({describe_costs(cost)})"
    if answers["left_out"]:
        facts["not measured"] = " ".join(answers["left_out"])
    return facts


def describe_radii(radii: RadiusFigures) -> dict[str, str]:
    """The average and the median radius, rows without a limit apart."""
    from derand._core.text import format_down, format_percent

    n_others = radii["rows"] - radii["unbounded_rows"]
    facts = {}
    if radii["unbounded_rows"]:
        share = format_percent(radii["unbounded_share"])
        facts["right rows that no change of numbers can flip"] = f"{radii['unbounded_rows']:,} ({share})"
    average, median = radii["average_of_others"], radii["median_of_others"]
    if average is not None and median is not None:
        whose = f" of the other {n_others:,} rows" if radii["unbounded_rows"] else ""
        told = f"{format_down(average, 4)}, median {format_down(median, 4)}; in both, rows with a wrong answer count 0"
        facts[f"average certified radius{whose}"] = told
    return facts


def tabulate_confusion(answers: AnswerSummary) -> Table | None:
    """Rows by true class and answer; nothing where there are too many classes for a terminal."""
    classes = answers["classes"]
    if len(classes) > _MOST_CLASSES:
        return None
    columns = ["true class", *(f"answer {name}" for name in classes)]
    rows = [
        [name, *(f"{number:,}" for number in counts)]
        for name, counts in zip(classes, answers["confusion"], strict=True)
    ]
    return make_table("Rows by true class and answer", columns, rows, right=columns[1:])
