"""Certifying many files into a folder, one task for each, by processes of this machine or workers of a Dask cluster.

Owns which files go where, which of them are done already, and what happens where one fails. Every file is certified as
`derand certify` does it, so that the results are the same bytes: by a job of `derand.app`, which lies above this room
and is looked up by its name when a file is certified. Must not know how rows are certified.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

from derand import __version__
from derand._core.files import PathLike, replace_when_done
from derand._core.later import import_later
from derand._core.processes import LostProcessError, WorkerPool
from derand._core.text import Facts
from derand.distributed._cluster import connect
from derand.distributed._parts import list_files
from derand.storage import find_record, load_record, mark_file, read_json

JOB_FILE = "derand-job.json"
"""What was asked for, in the folder of results."""


class FilesSummary(TypedDict):
    """What `certify_files` did."""

    output: str
    files: int
    done_before: int
    """Of these, how many had been certified by an earlier run."""
    failed: dict[str, str]
    """Why a file could not be certified, by its name."""
    rows: int
    """Of the files that this run has certified."""
    rows_done_before: int
    certified_rows: int
    scores: dict[str, float]
    """With a target, of the files that this run has certified: `accuracy`, `proven_accuracy` or, by radius,
    `certified_accuracy_at_0.25` and the like; of numbers `rmse`. Of intervals `mean_width`."""
    seconds: float


def certify_files(
    model: PathLike,
    data: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    memory: str | None = None,
    resume: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
    **asked: object,
) -> FilesSummary:
    """Certify files, each into a file of the same name in a folder.

    Parameters
    ----------
    model : path-like
        A saved classifier; like data and output it must be where all workers see it.
    data : path-like, or sequence of them
        Files, folders of Parquet files, or patterns such as "data/*.parquet".
    output : path-like
        A folder; made where it is missing, otherwise empty, or with `resume` what an earlier run of the same request
        left.
    scheduler : str or None
        Address of a Dask scheduler.
    workers : int or None
        How many processes to start on this machine where there is no scheduler. They need no Dask, and nobody can
        connect to them.
    memory : str or None
        Limit of each of these, such as "2GB", which Dask sees to: they are workers of a cluster of this machine then.
    resume : bool
        Leave out files whose certificates are there: same bytes of input, model and output, same request.
    advance : callable
        Called with the number of rows of each file that is done.
    **asked
        Fields of `derand.app.jobs.CertifySettings`.

    Returns
    -------
    FilesSummary
        A dict. Files that failed are named in it; all others are done.
    """
    start = time.perf_counter()
    targets = _name_targets(list_files(data), Path(output))
    job = _describe(model, asked)
    _require_folder(Path(output), job, resume=resume)
    done = {source: _count_done(source, target, model) for source, target in targets.items()} if resume else {}
    left = {source: target for source, target in targets.items() if done.get(source) is None}
    summary: FilesSummary = {
        "output": os.fspath(output),
        "files": len(targets),
        "done_before": len(targets) - len(left),
        "failed": {},
        "rows": 0,
        "rows_done_before": sum(rows or 0 for rows in done.values()),
        "certified_rows": 0,
        "scores": {},
        "seconds": 0.0,
    }
    if left:
        _run(_start(model, left, asked, Path(output), job, (scheduler, workers, memory)), summary, advance)
    summary["seconds"] = time.perf_counter() - start
    return summary


_Found = tuple[str, Any, BaseException | None]
"""A file, what was found, and what went wrong."""


def _start(
    model: PathLike,
    left: Mapping[str, Path],
    asked: Mapping[str, object],
    output: Path,
    job: Mapping[str, object],
    where: tuple[str | None, int | None, str | None],
) -> Iterator[_Found]:
    """Certify files where it was asked for; the folder of results is made once that is ready to begin."""
    options = {**asked, "n_jobs": 1}
    tasks = {
        source: (*(os.path.abspath(path) for path in (model, source, target)), options)
        for source, target in left.items()
    }
    scheduler, workers, memory = where
    if scheduler is None and memory is None:
        with WorkerPool(min(1 if workers is None else workers, len(tasks))) as pool:
            _open_folder(output, job)
            yield from pool.run(_certify_one, tasks)
        return
    with connect(scheduler, workers, memory) as client:
        from distributed import as_completed

        _open_folder(output, job)
        futures = {client.submit(_certify_one, *task, pure=False): source for source, task in tasks.items()}
        for future in as_completed(futures):
            error = future.exception()
            yield futures[future], None if error else future.result(), error
            future.release()


def _run(results: Iterator[_Found], summary: FilesSummary, advance: Callable[[int], None]) -> None:
    """Count what is done; what fails is noted, and the others go on."""
    sums: Counter[str] = Counter()
    with closing(results):  # type: ignore[type-var]
        for source, found, error in results:
            if isinstance(error, LostProcessError):
                summary["failed"][source] = (
                    f"{source} was not certified: {error}, twice. Is there enough memory for so many workers?"
                )
            elif error is not None:
                summary["failed"][source] = " ".join(str(error).split()) or type(error).__name__
            else:
                summary["rows"] += found["rows"]
                summary["certified_rows"] += found["certified_rows"]
                sums.update(found["sums"])
                advance(found["rows"])
    means = {name: sums[name] / summary["rows"] for name in sorted(sums)}
    summary["scores"] = {name: math.sqrt(mean) if name == "rmse" else mean for name, mean in means.items()}


def _certify_one(model: str, source: str, target: str, options: dict[str, object]) -> Facts:
    certify_file = import_later("derand", {"certify_file": "app.jobs"})("certify_file")
    found = certify_file(model, source, target, **options)
    certified = found["certified_rows"] if "proofs" in found else 0
    return {"rows": found["rows"], "certified_rows": certified, "sums": _sum_scores(found)}


def _sum_scores(found: Mapping[str, Any]) -> dict[str, float]:
    """What adds up over files: rows that are right and the like, squares of errors, widths."""
    rows = found["rows"]
    shares = {name: found[name] for name in ("accuracy", "proven_accuracy") if name in found}
    shares |= {f"certified_accuracy_at_{one['radius']:g}": one["share"] for one in found.get("certified_accuracy", ())}
    sums: dict[str, float] = {name: round(share * rows) for name, share in shares.items()}
    if "rmse" in found:
        sums["rmse"] = found["rmse"] ** 2 * rows
    if "mean_width" in found:
        sums["mean_width"] = found["mean_width"] * rows
    return sums


def _name_targets(files: Sequence[str], folder: Path) -> dict[str, Path]:
    """Where the certificates of each file go."""
    targets: dict[str, Path] = {}
    names: dict[str, str] = {}
    for file in files:
        name = Path(file).name
        if name in names:
            raise ValueError(
                f"{names[name]} and {file} have the same name, so their results would go to one file: certify "
                "them into two folders."
            )
        names[name], targets[file] = file, folder / name
    return targets


def _describe(model: PathLike, asked: Mapping[str, object]) -> dict[str, object]:
    """A request in short: what must be the same for results to be the same."""
    options = {name: value for name, value in sorted(asked.items()) if value not in (None, [], {}, ())}
    text = json.dumps(options, sort_keys=True, default=_write_option)
    return {
        "derand": __version__,
        "model": mark_file(model).sha256,
        "request": hashlib.sha256(text.encode()).hexdigest(),
        "options": json.loads(text),
    }


def _write_option(value: object) -> object:
    """Paths by what is in them, anything else as it is written."""
    if isinstance(value, os.PathLike):
        return {"file": mark_file(value).sha256}
    return repr(value)


def _require_folder(folder: Path, job: Mapping[str, object], *, resume: bool) -> None:
    """Refuse a folder that holds other results."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"The results go into a folder, but {folder} is a file: name another one.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    note = folder / JOB_FILE
    if not note.exists():
        raise FileExistsError(f"{folder} holds other files: name a new folder for the results.")
    _require_same(_read_note(note), job, folder, resume=resume)


def _read_note(note: Path) -> dict[str, object]:
    """What an earlier run was asked for."""
    try:
        found = read_json(note)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{note} is damaged, or no file of derand: name a new folder for the results.")
    return found


def _open_folder(folder: Path, job: Mapping[str, object]) -> None:
    """Make the folder of results, with a note of what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    with replace_when_done(folder / JOB_FILE) as draft:
        draft.write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")


def _require_same(before: Mapping[str, object], job: Mapping[str, object], folder: Path, *, resume: bool) -> None:
    if not resume:
        raise FileExistsError(f"{folder} holds results already: go on with them by --resume, or name a new folder.")
    for name, what in (("derand", "version of derand"), ("model", "model"), ("request", "request")):
        if before.get(name) != job[name]:
            raise FileExistsError(
                f"{folder} holds results of another {what}, which cannot be gone on with: name a new folder."
            )


def _count_done(source: str, target: Path, model: PathLike) -> int | None:
    """Rows of a file whose certificates are there, whole, and about the same bytes; None where they are not."""
    record = find_record(target)
    if not (target.exists() and record.exists() and os.path.exists(source)):
        return None
    try:
        found = load_record(record)
    except ValueError:
        return None
    pairs = ((found.certified, target), (found.model, model), (found.data, source))
    return found.n_rows if all(mark.matches(path) for mark, path in pairs) else None
