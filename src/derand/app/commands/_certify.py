"""`derand certify`: the label and the certified radius of every row of a table, or its number and an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from derand.app import Summary
from derand.app.commands._answers import describe_answers, describe_radii, print_warnings, tabulate_confusion
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
from derand.app.commands._many import ask_for_many, certify_many, print_many, require_done
from derand.app.commands._options import argument, output, take_settings
from derand.app.settings import CertifySettings, ManyFiles, ThreatFlags, find_flag, list_given

if TYPE_CHECKING:
    from rich.console import Console


@add_command
@take_settings
def certify(
    model: Annotated[Path, argument(help="A model that `derand train` or `derand import` saved.")],
    data: Annotated[
        Path,
        argument(
            help="Table to certify, CSV or Parquet; - is standard input, CSV or Arrow's IPC stream. A folder of "
            "Parquet files, or a pattern such as 'data/*.parquet', goes into a folder."
        ),
    ],
    output: Annotated[
        Path,
        output(
            "Where to write row, label, failure, radius (with --norm none: verdict) and proof; for numbers row, value, "
            "low and high (with --tolerance: radius). - is standard output, in the format of standard input."
        ),
    ],
    settings: CertifySettings,
    flags: ThreatFlags,
    many: ManyFiles,
    as_json: AsJson = False,
) -> None:
    """Certify every row of a table: its label, and the radius within which no change can flip it.

    A model of numbers gives each row its value, and an interval that no change within the radius takes it out of.

    Columns are matched by name. What may change is what the model was trained for, but for the options that are given.
    The file is read and written in batches, so it may be larger than memory.
    """
    if settings.threat is not None and list_given(flags):
        given = ", ".join(find_flag(ThreatFlags, name) for name in list_given(flags))
        raise ValueError(f"--threat says all of what may change: leave {given} out, or put it in {settings.threat}.")
    asked, are_many = replace(settings, changes=flags.parse()), ask_for_many(many, data)
    with show_progress("certifying", unit="rows") as advance:
        from derand.app.jobs import certify_file
        from derand.storage import read_kind
        from derand.tables import names_stream

        if as_json and names_stream(output):
            raise ValueError("--json and --output - would both go to standard output: leave one out.")
        summary: object  # of one file, or of many
        if are_many:
            summary = certify_many(model, data, output, asked, many, advance)
        else:
            if asked.radii is not None and asked.target is None and read_kind(model) != "regressor":
                raise ValueError(
                    "--radii says where certified accuracy is measured, which needs the true labels: name their column "
                    "by --target, or leave --radii out."
                )
            spell = partial(find_flag, CertifySettings)
            summary = certify_file(model, data, output, asked, spell=spell, advance=advance)
    if as_json or not names_stream(output):  # standard output holds the certificates then
        print_result(summary, as_json, print_many if are_many else _print_summary)
    if are_many:
        require_done(summary)


def _print_summary(summary: Summary) -> None:
    (_print_labels if "proofs" in summary else _print_numbers)(summary)


def _print_labels(summary: Summary) -> None:
    from derand._core.text import format_percent

    console = make_console()
    print_warnings(console, summary["warnings"], summary["notes"])
    _print_columns(console, summary)
    facts = {
        **_describe_request(summary, _RULES_IN_WORDS),
        "rows": f"{summary['rows']:,}, of which {summary['certified_rows']:,} certified",
        "proofs": _describe_proofs(summary["proofs"]),
    }
    if "verdicts" in summary:
        verdicts = summary["verdicts"]
        facts["result"] = (
            f"{verdicts['flips']:,} of {summary['rows']:,} decisions can be flipped within these limits, "
            f"{verdicts['undecided']:,} undecided{_describe_ties(summary)}"
        )
    elif summary.get("ties"):
        facts["ties"] = f"{summary['ties']:,} rows lie within the rounding of the model's own arithmetic"
    if summary.get("rows_of_infinite_radius"):
        facts["rows that no change of numbers can flip"] = f"{summary['rows_of_infinite_radius']:,}"
    if "answers" in summary:
        answers = summary["answers"]
        table = tabulate_confusion(answers)
        if table is not None:
            console.print(table)
        facts |= describe_answers(answers)
    if "certified_accuracy" in summary:
        constant = (answers["majority_label"], answers["majority_share"])
        console.print(make_accuracy_table(summary["accuracy"], summary["certified_accuracy"], constant))
        facts |= describe_radii(summary["certified_radii"])
    elif "proven_accuracy" in summary:
        facts["correct and proven to hold within the limits"] = format_percent(summary["proven_accuracy"])
    if summary.get("flips"):
        _print_flips(console, summary["flips_by_true_class"] or summary["flips"], summary["flips"]["columns"])
    facts["written"] = summary["output"]
    if summary["witness"] is not None:
        facts["witnesses written"] = summary["witness"]
    print_facts(console, {**facts, "time": f"{summary['seconds']:.1f} s"})


def _print_flips(console: Console, told: Summary, columns: Sequence[Summary]) -> None:
    """What can become of each answer, and by which columns."""
    for sentence in told["sentences"]:
        console.print(sentence, markup=False)
    lines = []
    for one in columns[:_LISTED_FLIPS]:
        others = [f"{name} {count:,}" for name, count in list(one["others"].items())[:_LISTED_OTHERS]]
        counts = (f"{one['n_alone']:,}", f"{one['n_together']:,}")
        lines.append(
            [str(one["column"]), one["direction"], f"{one['label']} → {one['flipped']}", *counts, *[", ".join(others)]]
        )
    if lines:
        head = ["column", "direction", "answer", "alone", "with others", "which others"]
        title = "Flips, each counted by the change that was found"
        console.print(make_table(title, head, lines, right=("alone", "with others")))
    if len(columns) > len(lines):
        console.print(f"{len(columns) - len(lines)} more kinds of change: --json lists them.", markup=False)


def _print_numbers(summary: Summary) -> None:
    from derand._core.text import format_exactly, format_percent, format_short, format_short_up

    console, n_rows = make_console(), summary["rows"]
    print_warnings(console, (), summary["notes"])
    _print_columns(console, summary)
    facts = {
        **_describe_request(summary, _NUMBERS_IN_WORDS),
        "rows": f"{n_rows:,}",
    }
    if summary["tolerance"] is None:
        where = "" if summary["radius"] is None else f" at radius {format_exactly(summary['radius'])}"
        facts[f"mean width of intervals{where}"] = format_short_up(summary["mean_width"])
        facts["largest width"] = format_short_up(summary["largest_width"])
        inside = "true values inside their interval"
    else:
        tolerance = f"+-{format_exactly(summary['tolerance'])}"
        facts[f"rows with some radius within which the value moves by {tolerance} at most"] = (
            f"{summary['certified_rows']:,}"
        )
        if summary["rows_of_infinite_radius"]:
            facts["rows that no change of numbers moves farther"] = f"{summary['rows_of_infinite_radius']:,}"
        inside = f"true values within {tolerance} of the value"
    if "rmse" in summary:
        facts["root of the mean square error"] = format_short(summary["rmse"])
        facts[inside] = f"{summary['targets_inside']:,} ({format_percent(summary['targets_inside'] / n_rows)})"
    print_facts(console, {**facts, "written": summary["output"], "time": f"{summary['seconds']:.1f} s"})


def _describe_request(summary: Summary, rules: Mapping[str, str]) -> dict[str, str]:
    """Rule, noise and threat."""
    rule, noise = str(summary["rule"]), str(summary["noise"])
    told = "none, the model as deployed" if noise == "none" else noise
    return {"rule": rules.get(rule, rule), "noise": told, **describe_threat(summary["threat"])}


def _print_columns(console: Console, summary: Summary) -> None:
    """Which columns were not used, and values that training did not see."""
    if summary["columns_not_used"]:
        print_facts(console, {"columns not used": ", ".join(summary["columns_not_used"])})
    for name, count in summary["unseen_categories"].items():
        print_facts(console, {f"values of {name!r} that training did not see": f"{count:,}"})
    for name in summary["empty_columns"]:
        print_facts(console, {f"values of {name!r}": "none in any row, which counts as one that training did not see"})


_LISTED_FLIPS, _LISTED_OTHERS = 20, 2
_NUMBERS_IN_WORDS = {
    "vote": "vote, the median of noisy copies of a row",
    "mean": "mean, the expected score",
}
_RULES_IN_WORDS = {
    "vote": "vote, the label that most noisy copies of a row get",
    "mean": "mean, by the expected score",
}
_PROOFS_IN_WORDS = {
    "paper": "by the paper's proof",
    "dual": "by a bound of the expected score (dual)",
    "exact": "by the exact worst case",
    "none": "not certified",
}


def _describe_ties(summary: Summary) -> str:
    """Why rows are undecided, of a model whose trees join columns."""
    undecided, ties = summary["verdicts"]["undecided"], summary.get("ties", 0)
    reasons = []
    if ties:
        reasons.append(f"{ties:,} within the rounding of the model's own arithmetic")
    if undecided > ties and "ties" in summary:
        reasons.append(f"{undecided - ties:,} for lack of budget")
    return f" ({', '.join(reasons)})" if reasons else ""


def _describe_proofs(counts: Mapping[str, int]) -> str:
    """How many rows by which proof, those without any last."""
    order = sorted(counts, key=lambda name: (name == "none", name))
    return ", ".join(f"{counts[name]:,} {_PROOFS_IN_WORDS.get(name, name)}" for name in order)


def describe_threat(threat: Summary) -> dict[str, str]:
    """What may change, one fact per kind of it."""
    norm, l0 = threat["norm"], threat["l0"]
    changes = f", and at most {l0} categorical {'change' if l0 == 1 else 'changes'}" if l0 else ""
    values = "any value, also one that training did not see" if threat["unseen"] else "values that training saw"
    unseen = f", to {values}" if l0 else ""
    ball = "limits alone, no ball" if norm is None else f"l{norm:g} balls"
    if norm is None and not (threat["limits"] or threat["domain"] or l0 or threat["missing"]):
        ball = "NOTHING MAY CHANGE: there is no ball and no limit, so every decision holds; give --limits"
    if norm == 0:
        ball = "any so many numerical columns, to anything (norm 0)"
    facts = {
        "threat": f"{ball}{changes}{unseen}",
        "missing": _describe_missing(threat["missing"]),
        "limits": "; ".join(f"{_name(column)} {_write_limit(limit)}" for column, limit in threat["limits"].items()),
        "domains": "; ".join(
            f"{_name(column)} from {_write(low)} to {_write(high)}" for column, (low, high) in threat["domain"].items()
        ),
        "steps": "; ".join(f"{column} in steps of {_write(step)}" for column, step in threat["steps"].items()),
        "whole numbers": f"{', '.join(threat['whole'])}: counts stay whole numbers" if threat["whole"] else "",
        "may become": "; ".join(
            f"{column} {', '.join(map(str, values))}" for column, values in threat["may_become"].items()
        ),
        "linked": "; ".join(f"{column} = {formula}" for column, formula in threat["linked"].items()),
        "frozen columns": ", ".join(threat["frozen"]),
    }
    if norm is None:
        fixed = [name for name in threat["fixed"] if name not in threat["frozen"]]
        facts["numerical columns that stay fixed, without a limit"] = ", ".join(fixed)
    return {name: text for name, text in facts.items() if text}


def _describe_missing(budget: int) -> str:
    if not budget:
        return ""
    numbers = "any one number" if budget == 1 else f"any {budget} numbers"
    return f"{numbers} may go missing or, where missing, appear"


def _name(column: str) -> str:
    return "all other columns" if column == "*" else column


def _write_limit(limit: str | float | Sequence[float]) -> str:
    """A limit in words."""
    if isinstance(limit, str):
        return f"by up to {limit}"
    if isinstance(limit, int | float):
        return f"by up to {_write(limit)}"
    return f"by up to {_write(limit[0])} down and {_write(limit[1])} up"


def _write(number: float) -> str:
    from derand._core.text import format_exactly

    return format_exactly(number)
