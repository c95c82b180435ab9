"""`derand import`: a model file of another library as a model of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from derand.app.commands._app import (
    AsJson,
    Cost,
    add_command,
    make_console,
    print_facts,
    print_json,
    require_choice,
    show_progress,
)
from derand.app.commands._train import SCALINGS, name_decision, read_cost

if TYPE_CHECKING:
    from derand.app.jobs import ImportingSummary

_SHOWN_CLASSES = 12


@add_command
def import_(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model of XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm), a skops file (.skops), or a "
            "pickle (.pkl, .joblib; with --trust-pickle).",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model (JSON).", show_default=False)],
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="NO,YES",
            help="Labels in the order of the classes, where the file has none.",
            show_default="0,1,...",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Rows such as those it was trained on, CSV or Parquet: they name columns where the file does not, and "
            "scores are compared on them.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Column of these rows with the labels or numbers: it is no feature.", show_default=False),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(
            help="Count noise and radii in deviations (standard), ranges (range) or interquartile ranges (robust) of "
            "each column of these rows, or none.",
            show_default="none",
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Smooth it: kind and scale, such as gaussian:0.25; kinds are {NOISES}. none: the model as deployed.",
            show_default="none",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="How it answers: vote (of noisy copies) or mean (of their scores; without noise its own answer).",
            show_default="mean",
        ),
    ] = None,
    decision_threshold: Annotated[
        float | None,
        typer.Option(
            help="From which probability of the second class on it is the answer; the score's threshold is moved.",
            show_default="where the model cuts",
        ),
    ] = None,
    cost: Cost = None,
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="Open a pickle, which runs whatever code it holds: only if you trust it."),
    ] = False,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE", help="A type that a skops file may hold besides known ones. Repeatable.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a fitted model of another library, so that it can be certified, audited and reported as it is.

    Raw scores of both are compared on every edge where the library is installed; what cannot be read exactly is
    refused.
    """
    if scaling is not None:
        require_choice("--scaling", scaling, SCALINGS)
    with show_progress("importing"):
        from derand.app.jobs import import_file
        from derand.certificates import RULES

        if rule is not None:
            require_choice("--rule", rule, list(RULES))
        summary = import_file(
            model,
            output,
            trust_pickle=trust_pickle,
            trusted=trust or (),
            classes=[] if classes is None else [label.strip() for label in classes.split(",")],
            data=data,
            target=target,
            scaling=None if scaling == "none" else scaling,
            noise=noise,
            rule=rule,
            decision_threshold=decision_threshold,
            cost=None if cost is None else read_cost(cost),
            spell=lambda parameter: f"--{parameter.replace('_', '-')}",
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: ImportingSummary) -> None:
    from derand._core.text import format_percent, format_short, format_short_up

    classes, joint = summary["classes"], summary["joint_terms"]
    more = f", ... ({len(classes)} in all)" if len(classes) > _SHOWN_CLASSES else ""
    difference = summary["largest_difference"]
    facts = {
        "read": f"{summary['source']} of {summary['file']}",
        "columns": f"{summary['n_columns']:,}" + ("" if summary["columns"] else ", without names: matched by order"),
        "terms": f"{summary['terms']:,}" + (f", of which {joint:,} of several columns" if joint else ""),
        "cells": "none, it is linear" if summary["is_linear"] else f"{summary['cells']:,}",
        "answers": "a number" if not classes else ", ".join(map(str, classes[:_SHOWN_CLASSES])) + more,
        "score error": f"{format_short_up(summary['score_error'])}"
        + (" and a share of each row's numbers" if summary["is_linear"] else " at most")
        + ", which certificates cover",
        "largest difference seen": "its library is not installed, nothing was compared"
        if difference is None
        else f"{format_short_up(difference)} between raw scores of both, on every edge and beside it"
        + (f", and on rows of {summary['rows']:,}" if summary["rows"] else ""),
        "rule": summary["rule"],
        "noise": f"{summary['noise']}, scaling {summary['scaling'] or 'none'}",
    }
    facts |= name_decision(classes, summary["decision_threshold"])
    if "accuracy" in summary:
        lower = summary["accuracy"] < summary["majority"]
        doubt = ": less than one answer for all rows would get. Are the classes in the right order?" if lower else ""
        facts["accuracy on these rows"] = f"{format_percent(summary['accuracy'])}{doubt}"
    if "rmse" in summary:
        facts["root of the mean square error on these rows"] = format_short(summary["rmse"])
    facts |= {"model": summary["model"], "time": f"{summary['seconds']:.1f} s", "next": summary["next_command"]}
    print_facts(make_console(), facts)
