"""`derand run`: all that a `derand.toml` says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from derand._core.text import Facts
from derand.app import Summary
from derand.app.commands._answers import print_warnings
from derand.app.commands._app import AsJson, add_command, make_console, print_facts, print_result, show_steps


@add_command
def run(
    configuration: Annotated[Path, typer.Argument(help="What to do; `derand init` writes one.")] = Path("derand.toml"),
    check: Annotated[
        bool, typer.Option("--check", help="Only look whether the file, the data and results fit; write nothing.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace results that another configuration made.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train, certify, audit and report, as a derand.toml says; results and their record appear together.

    The same file is the record of how a report was made: the report names it with its checksum.
    """
    with show_steps("reading the configuration", unit="steps") as step:
        from derand.app.jobs import check_run, run_file

        result: object = (
            check_run(configuration, force=force) if check else run_file(configuration, force=force, told=step)
        )
    print_result(result, as_json, _print_check if check else partial(_print_run, home=configuration.parent))


def _print_check(found: Summary) -> None:
    target = "" if found["has_target"] else "; these rows have no target: errors are not measured"
    facts = {
        "configuration": f"{found['configuration']}, all is well",
        "answers": "classes" if found["task"] == "classes" else "a number",
        "reads": ", ".join(found["inputs"]) + target,
        "steps": ", ".join(found["steps"]),
        "would write": f"{', '.join(found['files'])} into {found['folder']}",
        **_tell_changed(found["changed"]),
    }
    if found["unchanged_results"]:
        facts["written before"] = f"{found['unchanged_results']} files, with the checksums of run.json"
    console = make_console()
    print_warnings(console, found["warnings"])
    print_facts(console, facts)


def _tell_changed(inputs: list[str]) -> dict[str, str]:
    return {"changed since the last run": ", ".join(inputs)} if inputs else {}


def _print_run(done: Summary, home: Path) -> None:
    """Print what was done; paths of the record count from `home`."""
    console, folder = make_console(), home / done["folder"]
    steps: Facts = {**done["steps"]}
    for told in (steps.get("train", {}), steps.get("certify", {})):
        print_warnings(console, told.get("warnings", []), told.get("notes", []))
    facts = _tell_changed(done["changed"])
    if done["held_out"] is not None:
        held = done["held_out"]
        facts["hold out"] = f"{held['rows']:,} rows, seed {held['seed']} -> {folder / held['file']}"
    tell = {"train": _tell_training, "certify": _tell_certifying, "audit": _tell_audit, "report": _tell_report}
    for step, summary in steps.items():
        facts[step] = ", ".join(tell[step](summary))
        written = summary["model" if step == "train" else "output"]
        if written:
            facts[step] += f" -> {home / written}"
    configuration = done["configuration"]
    facts["record"] = f"{configuration['file']}, sha256 {configuration['sha256'][:12]}... -> {folder / 'run.json'}"
    print_facts(console, {**facts, "time": f"{done['seconds']:.1f} s"})


def _tell_training(summary: Facts) -> Iterator[str]:
    from derand._core.text import format_exactly, format_percent, format_short

    yield f"{summary['trainer']} on {summary['rows']:,} rows"
    if summary["radius"] is not None:
        yield f"radius {format_exactly(summary['radius'])}"
    if summary["task"] == "classes":
        yield f"{format_percent(summary['training_accuracy'])} of these right"
    else:
        yield f"root of the mean square error on these {format_short(summary['training_rmse'])}"


def _tell_certifying(summary: Facts) -> Iterator[str]:
    from derand._core.text import format_exactly, format_percent, format_short, format_short_up

    yield f"{summary['rows']:,} rows"
    if "accuracy" in summary:
        yield f"{format_percent(summary['accuracy'])} right{_compare(summary)}"
    if "proven_accuracy" in summary:
        yield f"{format_percent(summary['proven_accuracy'])} right and proven to hold within the limits"
    for entry in summary.get("certified_accuracy", ()):
        if entry["radius"]:
            yield f"{format_percent(entry['share'])} right and certified at {format_exactly(entry['radius'])}"
    if "rmse" in summary:
        yield f"root of the mean square error {format_short(summary['rmse'])}"
    if "mean_width" in summary:
        yield f"mean width of intervals {format_short_up(summary['mean_width'])}"
    if summary.get("tolerance") is not None:
        yield f"{summary['certified_rows']:,} with some radius of +-{format_exactly(summary['tolerance'])}"


def _compare(summary: Facts) -> str:
    """What a constant answer gets, beside the model's."""
    from derand._core.text import format_percent, format_readable, quote_short

    if "answers" not in summary:
        return ""
    answers = summary["answers"]
    constant = f"always {quote_short(answers['majority_label'])}: {format_percent(answers['majority_share'])}"
    cost = ""
    if answers["cost"] is not None:
        told = answers["cost"]
        always = f"always {quote_short(told['constant_label'])}: {format_readable(told['constant_total'])}"
        cost = f", cost {format_readable(told['total'])} ({always})"
    return f" ({constant}; balanced {format_percent(answers['balanced_accuracy']['value'])}){cost}"


def _tell_audit(summary: Facts) -> Iterator[str]:
    yield f"{summary['proven']:,} of {summary['audited']:,} rows proven again"
    if summary["audited"] < summary["rows"]:
        yield f"drawn from {summary['rows']:,}"


def _tell_report(summary: Facts) -> Iterator[str]:
    yield f"{summary['rows']:,} rows"
