"""Many files for `derand certify`: which options ask for them, and what is printed of them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from derand.app.commands._app import InterruptedWorkError, complain, make_console, print_facts

if TYPE_CHECKING:
    from derand.app.jobs import CertifySettings, FilesSummary


_OF_ONE_FILE = ("witness", "radii", "target", "n_jobs")


class ManyFiles(NamedTuple):
    """The options that are for many files."""

    scheduler: str | None
    workers: int | None
    resume: bool

    def are_asked_for(self, data: Path) -> bool:
        """Whether what is to be certified is a folder or a pattern, or one of the options is given."""
        given = self.scheduler is not None or self.workers is not None or self.resume
        return given or data.is_dir() or (glob.has_magic(str(data)) and not data.exists())

    def certify(
        self,
        model: Path,
        data: Path,
        output: Path,
        asked: CertifySettings,
        advance: Callable[[int], None],
    ) -> FilesSummary:
        """Certify the files into a folder; what is for one file, or for another kind of model, is refused."""
        from derand._core.threads import count_threads
        from derand.app.jobs import certify_files
        from derand.app.settings import list_of_other_task
        from derand.storage import read_kind

        for name in ("witness", "radii", "target"):
            if getattr(asked, name) is not None:
                raise ValueError(f"--{name} is for one file, and these are many: leave it out.")
        if read_kind(model) != "regressor":
            for name in list_of_other_task(asked, "classes"):
                raise ValueError(f"--{name} is for models of numbers, and {model} tells classes apart.")
        given = {one.name: getattr(asked, one.name) for one in fields(asked) if one.name not in _OF_ONE_FILE}
        workers = self.workers if self.scheduler is not None else self.workers or count_threads()
        try:
            where: dict[str, Any] = {"scheduler": self.scheduler, "workers": workers, "resume": self.resume}
            return certify_files(model, str(data), output, **where, advance=advance, **given)
        except KeyboardInterrupt:
            raise InterruptedWorkError(
                f"interrupted; files that are done are in {output}: go on with the others by --resume."
            ) from None

    def require_done(self, summary: Mapping[str, Any]) -> None:
        """End with an error where a file failed; its name and what was wrong are told."""
        failed = summary["failed"]
        if failed:
            first = next(iter(failed))
            which = f"{len(failed)} files failed; " if len(failed) > 1 else ""
            raise typer.Exit(complain(f"{failed[first]} ({which}all others are done)"))


def print_many(summary: FilesSummary) -> None:
    """The results of many files in short."""
    before, certified = summary["done_before"], summary["certified_rows"]
    old = f", besides {summary['rows_done_before']:,} that were done before" if before else ""
    facts = {
        "files": f"{summary['files']:,}" + (f", of which {before:,} were done before" if before else ""),
        "rows": f"{summary['rows']:,}" + (f", of which {certified:,} certified" if certified else "") + old,
    }
    for name, why in list(summary["failed"].items())[:5]:
        facts[f"failed: {name}"] = why
    print_facts(make_console(), {**facts, "written": summary["output"], "time": f"{summary['seconds']:.1f} s"})
