"""Many files for `derand certify`: which options ask for them, and what is printed of them."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from derand.cli._app import InterruptedWorkError, complain, make_console, print_facts

if TYPE_CHECKING:
    from derand.distributed import FilesSummary


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
        asked: dict[str, Any],
        alone: Mapping[str, object],
        numbers: Mapping[str, float | None],
    ) -> FilesSummary:
        """Certify the files into a folder.

        `asked`: what is asked of any model; `alone`: options that are for one file alone; None where they were not
        given; `numbers`: what is asked of models of numbers.
        """
        from derand._core.threads import count_threads
        from derand.distributed import certify_files
        from derand.storage import read_kind

        for option, value in alone.items():
            if value is not None:
                raise ValueError(f"{option} is for one file, and these are many: leave it out.")
        del asked["target"]
        given = {f"--{name}": value for name, value in numbers.items() if value is not None}
        if read_kind(model) == "regressor":
            asked |= numbers
        elif given:
            raise ValueError(f"{next(iter(given))} is for models of numbers, and {model} tells classes apart.")
        workers = self.workers if self.scheduler is not None else self.workers or count_threads()
        try:
            return certify_files(
                model, str(data), output, scheduler=self.scheduler, workers=workers, resume=self.resume, **asked
            )
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
