"""Memory of certifying Parquet files, from file to file, batch by batch: it must not grow with the file."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from derand.app.jobs import certify_file, train_file
from experiments.bench._measure import Figures, measure_peak_memory, prefix, run_apart

N_NUMBERS, JOBS = 10, ("clerk", "cook", "driver", "nurse")
GROUP_ROWS = 2**20
"""Rows of a row group: what pyarrow writes by default."""


def bench_memory(sizes: tuple[int, ...] = (1_000_000, 10_000_000)) -> Figures:
    """Certify Parquet files of ten numbers and a text per row: peak memory of the process, and rows per second.

    Parameters
    ----------
    sizes : tuple of int
        Rows of each file; each is certified in a process of its own.

    Returns
    -------
    dict
        `rows_<size>_peak_bytes`, all libraries included, and `rows_<size>_rows_per_second`.
    """
    results: Figures = {}
    with TemporaryDirectory() as folder:
        training, model, table = (Path(folder) / name for name in ("train.parquet", "model.json", "table.parquet"))
        write_table(training, 20_000)
        train_file(training, "label", model, model="stumps")
        for size in sizes:
            write_table(table, size)
            seconds, peak = run_apart(certify_apart, model, table)
            results |= prefix(f"rows_{size}", {"peak_bytes": peak, "rows_per_second": size / seconds})
    return results


def write_table(path: Path, n_rows: int) -> None:
    """Write a random table with labels, one row group after the other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    kinds = {f"x{number}": pa.float64() for number in range(N_NUMBERS)} | {"job": pa.string(), "label": pa.int64()}
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        for start in range(0, n_rows, GROUP_ROWS):
            size = min(GROUP_ROWS, n_rows - start)
            numbers, jobs = rng.normal(size=(N_NUMBERS, size)), rng.integers(len(JOBS), size=size)
            labels = (numbers[0] + (jobs == 0) + rng.normal(size=size) > 0).astype(np.int64)
            columns = [*numbers, pa.DictionaryArray.from_arrays(jobs, JOBS).cast(pa.string()), labels]
            writer.write_table(pa.table(columns, names=list(kinds)), row_group_size=GROUP_ROWS)


def certify_apart(model: Path, table: Path) -> tuple[float, int | None]:
    """Seconds to certify a file into another one beside it, and the peak memory of this process."""
    start = time.perf_counter()
    certify_file(model, table, table.with_name("certified.parquet"))
    return time.perf_counter() - start, measure_peak_memory()
