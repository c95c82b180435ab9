"""Tables larger than the memory of a worker: trained and certified by one and by two worker processes, one of them
killed on the way, beside the same on one machine.

Owns the table that is made, and what is measured. Knows `derand.distributed` as a user does.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derand import AdditiveClassifier, StumpClassifier, save
from derand.app.jobs import certify_file
from derand.distributed import certify_files, connect, fit
from derand.storage import write_bytes
from experiments.bench import measure_peak_memory

_JOBS = ("clerk", "cook", "driver", "nurse", "teacher", "none")
_REGIONS = ("north", "east", "south", "west")


@dataclass(frozen=True)
class Figure:
    """One thing that was measured."""

    what: str
    value: str


def make_rows(n_rows: int, seed: int) -> Any:
    """Mixed rows with gaps, like those of loans: six numbers, two categories and a label."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    income, debt = rng.lognormal(10, 0.6, n_rows).round(0), rng.lognormal(8, 1.0, n_rows).round(0)
    age, months = rng.integers(18, 90, n_rows), rng.integers(1, 120, n_rows)
    share, score = rng.beta(2, 5, n_rows).round(4), rng.normal(600, 80, n_rows).round(0)
    job, region = rng.integers(0, len(_JOBS), n_rows), rng.integers(0, len(_REGIONS), n_rows)
    odds = -1.0 - 0.8 * np.log(income / 22_000) + 0.6 * np.log(debt / 3_000) + 3 * share - (score - 600) / 60
    bad = rng.random(n_rows) < 1 / (1 + np.exp(-odds - (job == len(_JOBS) - 1)))
    gone = rng.random(n_rows) < 0.05
    return pa.table(
        {
            "income": pa.array(income, mask=gone),
            "debt": debt,
            "age": age.astype(np.float64),
            "months": months.astype(np.float64),
            "share_used": share,
            "score": score,
            "job": pa.DictionaryArray.from_arrays(pa.array(job, pa.int8()), list(_JOBS)).cast(pa.string()),
            "region": pa.DictionaryArray.from_arrays(pa.array(region, pa.int8()), list(_REGIONS)).cast(pa.string()),
            "bad": bad.astype(np.int64),
        }
    )


def write_rows(folder: Path, n_rows: int, n_files: int) -> int:
    """Write the table in files of like size; how many bytes they take."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for at in range(n_files):
        rows = n_rows // n_files + (at < n_rows % n_files)
        pq.write_table(make_rows(rows, at), folder / f"part-{at:04d}.parquet", row_group_size=2**18)
    return sum(file.stat().st_size for file in folder.iterdir())


def measure_scale(folder: Path, n_rows: int, n_files: int, n_certified: int, memory: str) -> Iterator[Figure]:
    """Train and certify a generated table; every claim of docs/scale.md that has a number.

    Parameters
    ----------
    folder : path
        An empty one; the table and its certificates stay there.
    n_rows, n_files : int
    n_certified : int
        How many of the files are certified.
    memory : str
        Limit of each worker.
    """
    data, model = folder / "data", folder / "model.json"
    size = write_rows(data, n_rows, n_files)
    numbers = n_rows * 8 * 8 / 2**20
    yield Figure("table", f"{n_rows:,} rows in {n_files} files, {size / 2**20:,.0f} MiB, {numbers:,.0f} MiB as doubles")
    yield Figure("limit of a worker", memory)
    yield from _train(data, model, n_rows, memory)
    yield from _compare_models(folder)
    files = sorted(data.iterdir())[:n_certified]
    for workers in (1, 2):
        yield from _certify(folder, model, workers, files, memory)
    yield from _kill(folder, model, files, memory)
    file = files[0]
    certify_file(model, file, folder / "alone.parquet")
    same = (folder / "alone.parquet").read_bytes() == (folder / "out-2" / file.name).read_bytes()
    yield Figure("certificates of a file, alone and by workers", _tell(same))


def _train(data: Path, model: Path, n_rows: int, memory: str) -> Iterator[Figure]:
    def make_stumps() -> Any:
        return StumpClassifier(noise="gaussian:0.25", scaling="robust")

    def make_additive() -> Any:
        return AdditiveClassifier(radius=0.25)

    runs: list[tuple[Callable[[], Any], int]] = [(make_stumps, 1), (make_stumps, 2), (make_additive, 2)]
    for make, workers in runs:
        name = type(make()).__name__
        with connect(workers=workers, memory=memory) as client:
            start = time.perf_counter()
            clf = fit(make(), data, "bad")
            seconds = time.perf_counter() - start
            peak = _measure_peak(client)
        before = model.with_suffix(f".{name}")
        same = not before.exists() or before.read_bytes() == write_bytes(clf)
        before.write_bytes(write_bytes(clf))
        more = f"; {_tell(same)} as by one" if workers == 2 and make is make_stumps else ""
        yield Figure(
            f"training {name}, {workers} {'worker' if workers == 1 else 'workers'}",
            f"{seconds:.0f} s, {n_rows / seconds:,.0f} rows/s, at most {peak} MiB in a worker{more}",
        )
        if name == "AdditiveClassifier":
            save(clf, model)


def _compare_models(folder: Path) -> Iterator[Figure]:
    """A part of the table, trained by its row groups and as one table in memory."""
    import pyarrow.parquet as pq

    files = sorted((folder / "data").iterdir())[:1]
    table = pq.read_table(files[0])
    by_files = fit(StumpClassifier(noise="gaussian:0.25"), files, "bad")
    alone = StumpClassifier(noise="gaussian:0.25").fit(table.drop_columns(["bad"]), np.asarray(table.column("bad")))
    same = write_bytes(by_files) == write_bytes(alone)
    yield Figure("StumpClassifier of a file, by parts and by its own fit", _tell(same))
    with connect(workers=2):
        by_workers = fit(AdditiveClassifier(radius=0.25), files, "bad")
    additive = [by_workers, fit(AdditiveClassifier(radius=0.25), table, "bad")]
    same = write_bytes(additive[0]) == write_bytes(additive[1])
    yield Figure("AdditiveClassifier of a file, by workers and as one table", _tell(same))


def _certify(folder: Path, model: Path, workers: int, files: list[Path], memory: str) -> Iterator[Figure]:
    with connect(workers=workers, memory=memory) as client:
        start, before = time.perf_counter(), _measure_cpu(client)
        done = certify_files(model, files, folder / f"out-{workers}", scheduler=client.scheduler.address)
        seconds, cpu = time.perf_counter() - start, _measure_cpu(client) - before
        peak = _measure_peak(client)
    yield Figure(
        f"certifying {done['rows']:,} rows, {workers} {'worker' if workers == 1 else 'workers'}",
        f"{seconds:.0f} s, {done['rows'] / seconds:,.0f} rows/s, {done['rows'] / cpu:,.0f} per second of CPU, "
        f"at most {peak} MiB in a worker",
    )


def _kill(folder: Path, model: Path, files: list[Path], memory: str) -> Iterator[Figure]:
    with connect(workers=2, memory=memory) as client:
        pids = list(client.run(os.getpid).values())

        def kill_once(rows: int) -> None:
            if pids:
                os.kill(pids[0], signal.SIGKILL)
                pids.clear()

        certify_files(model, files, folder / "out-killed", scheduler=client.scheduler.address, advance=kill_once)
    same = _hash(folder / "out-killed") == _hash(folder / "out-2")
    yield Figure("certifying with a worker killed on the way", _tell(same))


def _hash(folder: Path) -> dict[str, str]:
    files = folder.glob("*.parquet")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _measure_peak(client: Any) -> int:
    """The most memory that a worker has had, in MiB."""
    return int(max(peak or 0 for peak in client.run(measure_peak_memory).values())) // 2**20


def _measure_cpu(client: Any) -> float:
    """Seconds of CPU of all workers so far."""
    return float(sum(client.run(time.process_time).values()))


def _tell(same: bool) -> str:
    return "the same bytes" if same else "DIFFERENT BYTES"
