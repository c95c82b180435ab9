"""`derand import`: a model file of another library as a model of ours."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from derand.app import Summary
from derand.app.commands._app import AsJson, add_command, make_console, print_facts, print_result, show_progress
from derand.app.commands._options import argument, output, take_settings
from derand.app.commands._train import name_decision
from derand.app.settings import ImportSettings, find_flag

_SHOWN_CLASSES = 12


@add_command
@take_settings
def import_(
    model: Annotated[
        Path,
        argument(
            help="A model of XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm), a skops file (.skops), or a "
            "pickle (.pkl, .joblib; with --trust-pickle)."
        ),
    ],
    output: Annotated[Path, output("Where to save the model (JSON).")],
    settings: ImportSettings,
    as_json: AsJson = False,
) -> None:
    """Read a fitted model of another library, so that it can be certified, audited and reported as it is.

    Raw scores of both are compared on every edge where the library is installed; what cannot be read exactly is
    refused.
    """
    with show_progress("importing"):
        from derand.app.jobs import import_file

        summary = import_file(model, output, settings, spell=partial(find_flag, ImportSettings))
    print_result(summary, as_json, _print_summary)


def _describe_error(summary: Summary) -> str:
    """What comes beside the score error that is the same for all rows."""
    if summary["is_linear"]:
        return " and a share of each row's numbers"
    return " and a share of the leaves that a row reaches" if summary["trees"] else " at most"


def _print_summary(summary: Summary) -> None:
    from derand._core.text import format_percent, format_short, format_short_up

    classes, joint = summary["classes"], summary["joint_terms"]
    more = f", ... ({len(classes)} in all)" if len(classes) > _SHOWN_CLASSES else ""
    difference = summary["largest_difference"]
    facts = {
        "read": f"{summary['source']} of {summary['file']}",
        "columns": f"{summary['n_columns']:,}" + ("" if summary["columns"] else ", without names: matched by order"),
        "terms": f"{summary['terms']:,}" + (f", of which {joint:,} of several columns" if joint else ""),
        **({"trees that join columns": f"{summary['trees']:,}"} if summary["trees"] else {}),
        "cells": "none, it is linear" if summary["is_linear"] else f"{summary['cells']:,}",
        "answers": "a number" if not classes else ", ".join(map(str, classes[:_SHOWN_CLASSES])) + more,
        "score error": f"{format_short_up(summary['score_error'])}"
        + _describe_error(summary)
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
