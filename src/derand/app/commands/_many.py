"""Many files for `derand certify`: which options ask for them, and what is printed of them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from derand._core.text import Facts
from derand.app.commands._app import InterruptedWorkError, complain, make_console, print_facts
from derand.app.settings import CLASSES, CertifySettings, ManyFiles, list_given, list_of_other_task

if TYPE_CHECKING:
    from derand.distributed import FilesSummary


def ask_for_many(many: ManyFiles, data: Path) -> bool:
    """Whether what is to be certified is a folder or a pattern, or one of the options is given."""
    return bool(list_given(many)) or data.is_dir() or (glob.has_magic(str(data)) and not data.exists())


def certify_many(
    model: Path, data: Path, output: Path, asked: CertifySettings, many: ManyFiles, advance: Callable[[int], None]
) -> FilesSummary:
    """Certify the files into a folder; what is for one file, or for another kind of model, is refused."""
    from derand._core.threads import count_threads
    from derand.distributed import certify_files
    from derand.storage import read_kind

    for name in ("witness",) if asked.target else ("witness", "radii"):
        if getattr(asked, name) is not None:
            raise ValueError(f"--{name} is for one file, and these are many: leave it out.")
    if read_kind(model) != "regressor":
        for name in list_of_other_task(asked, CLASSES):
            raise ValueError(f"--{name} is for regression models, and {model} is a classifier.")
    workers = many.workers if many.scheduler is not None else many.workers or count_threads()
    where: Facts = {"scheduler": many.scheduler, "workers": workers, "resume": many.resume}
    given = {name: getattr(asked, name) for name in (*list_given(asked), "changes")}
    try:
        return certify_files(model, str(data), output, **where, advance=advance, **given)
    except KeyboardInterrupt:
        raise InterruptedWorkError(
            f"interrupted; files that are done are in {output}: go on with the others by --resume."
        ) from None


def require_done(summary: Mapping[str, Any]) -> None:
    """End with an error where a file failed; its name and what was wrong are told."""
    failed = summary["failed"]
    if failed:
        which = f"{len(failed)} files failed; " if len(failed) > 1 else ""
        raise typer.Exit(complain(f"{next(iter(failed.values()))} ({which}all others are done)"))


def _tell_scores(scores: Mapping[str, float]) -> Iterator[str]:
    """How good the answers of all files are, and what is proven of them."""
    from derand._core.text import format_percent, format_short, format_short_up

    for name, score in scores.items():
        what, _, radius = name.partition("_at_")
        if what in ("accuracy", "proven_accuracy"):
            yield f"{format_percent(score)} right" + (" and proven to hold" if what == "proven_accuracy" else "")
        elif what == "certified_accuracy" and radius != "0":
            yield f"{format_percent(score)} right and certified at {radius}"
        elif what == "rmse":
            yield f"root of the mean square error {format_short(score)}"
        elif what == "mean_width":
            yield f"mean width of intervals {format_short_up(score)}"


def print_many(summary: FilesSummary) -> None:
    """The results of many files in short."""
    before, certified = summary["done_before"], summary["certified_rows"]
    old = f", besides {summary['rows_done_before']:,} that were done before" if before else ""
    facts = {
        "files": f"{summary['files']:,}" + (f", of which {before:,} were done before" if before else ""),
        "rows": f"{summary['rows']:,}" + (f", of which {certified:,} certified" if certified else "") + old,
    }
    if summary["scores"]:
        facts["of these"] = ", ".join(_tell_scores(summary["scores"]))
    for name, why in list(summary["failed"].items())[:5]:
        facts[f"failed: {name}"] = why
    print_facts(make_console(), {**facts, "written": summary["output"], "time": f"{summary['seconds']:.1f} s"})
