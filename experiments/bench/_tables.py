"""Long and wide tables, from file to file, and boosters: CPU seconds and peak memory, each in a process of its own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from derand._core.progress import tell
from derand.app.jobs import certify_file, report_file, train_file
from derand.estimators import TRAINERS
from experiments.bench._measure import Figures, measure_peak_memory, prefix, run_apart

if TYPE_CHECKING:
    import pyarrow as pa

LONG_COLUMNS, BOOSTED_COLUMNS = 30, 21
TARGET = "label"
RADIUS = 0.25
"""That the model of the long table is trained for: so there is noise, and the mean is looked up in tables."""


def bench_tables(
    long_rows: int = 1_000_000,
    wide: tuple[tuple[int, int], ...] = ((1_000, 2_000), (400, 5_000)),
    boosted: Mapping[str, int] | None = None,
) -> Figures:
    """Train on wide tables, certify and report a long one, boost: CPU seconds, with start and imports, and peak memory.

    Kernels are compiled before: each work is done on few rows first, in a process of its own.

    Parameters
    ----------
    long_rows : int
        Of the table of thirty columns that is certified and reported.
    wide : tuple of (rows, columns)
        Tables that models are trained on, stumps and additive.
    boosted : mapping of trainer to rows, or None
        Rows of twenty-one columns that boosters are trained on; None is 4,000 of "tree-boost", 60,000 of "ada-boost".

    Returns
    -------
    dict
        For each work `..._cpu_seconds` and `..._peak_bytes`; `start_...` is what start and imports take by themselves.
    """
    results = _note("start", run_apart(_read_costs, 0.0))
    with TemporaryDirectory() as name:
        folder = Path(name)
        results |= _bench_long(folder, long_rows)
        for trainer, n_rows in (boosted or {"tree-boost": 4_000, "ada-boost": 60_000}).items():
            boost_apart(trainer, 200)
            results |= _note(f"{trainer.replace('-', '_')}_{n_rows}", boost_apart(trainer, n_rows))
        for n_rows, n_columns in wide:
            table = write_csv(folder / "wide.csv", n_rows, n_columns)
            for model in ("stumps", "additive"):
                results |= _note(f"train_{model}_{n_rows}x{n_columns}", work_apart(train_wide, table, model))
    return results


def _note(name: str, costs: Figures) -> Figures:
    """Costs under their names; they are told at once, because all works together take minutes."""
    told = ", ".join(f"{what} {value:,.1f}" for what, value in costs.items() if value is not None)
    tell(f"{name}: {told}")
    return prefix(name, costs)


def _bench_long(folder: Path, n_rows: int) -> Figures:
    """The part of `bench_tables` on a table of many rows."""
    training = write_csv(folder / "train.csv", 3_000, LONG_COLUMNS)
    model = folder / "model.json"
    train_file(training, TARGET, model, radius=RADIUS)
    tables = [write_csv(folder / "long.csv", n_rows, LONG_COLUMNS, seed=1), folder / "long.parquet"]
    write_parquet(tables[1], n_rows, LONG_COLUMNS, seed=1)
    results: Figures = {}
    run_apart(certify_long, model, training)
    for table in tables:
        results |= _note(f"certify_{table.suffix[1:]}", work_apart(certify_long, model, table))
    run_apart(report_long, model, training)
    return results | _note("report_parquet", work_apart(report_long, model, tables[1]))


def make_table(n_rows: int, n_columns: int, seed: int = 0) -> pa.Table:
    """Numbers of four digits, of which the first ten say something about the label."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n_rows).round(4) for _ in range(n_columns)]
    score = sum(weight * column for weight, column in zip(np.linspace(1, 0.3, 10), columns, strict=False))
    label = np.where(score + rng.normal(size=n_rows) > 0, "yes", "no")
    return pa.table([*columns, label], names=[*(f"x{number}" for number in range(n_columns)), TARGET])


def write_csv(path: Path, n_rows: int, n_columns: int, seed: int = 0) -> Path:
    """Write such a table."""
    import pyarrow.csv as arrow_csv

    arrow_csv.write_csv(make_table(n_rows, n_columns, seed), path)
    return path


def write_parquet(path: Path, n_rows: int, n_columns: int, seed: int = 0) -> None:
    """Write such a table."""
    import pyarrow.parquet as pq

    pq.write_table(make_table(n_rows, n_columns, seed), path)


def work_apart(work: Callable[[Path, object], None], first: Path, second: object) -> Figures:
    """What some work on files costs in a fresh process, its start and imports included."""
    return run_apart(_measure_work, work, first, second)


def _measure_work(work: Callable[[Path, object], None], first: Path, second: object) -> Figures:
    work(first, second)
    return _read_costs(0.0)


def _read_costs(before: float) -> Figures:
    return {"cpu_seconds": time.process_time() - before, "peak_bytes": measure_peak_memory()}


def train_wide(table: Path, model: object) -> None:
    """Train a model on a file."""
    with warnings.catch_warnings(action="ignore"):
        train_file(table, TARGET, table.with_name("wide.json"), model=str(model))


def certify_long(model: Path, table: object) -> None:
    """Certify a file into another one of the same kind."""
    path = Path(str(table))
    certify_file(model, path, path.with_name(f"certified{path.suffix}"))


def report_long(model: Path, table: object) -> None:
    """Report on a file."""
    path = Path(str(table))
    report_file(model, path, path.with_name("report.html"), target=TARGET)


def boost_apart(trainer: str, n_rows: int) -> Figures:
    """What training a booster costs in a fresh process; rows and imports do not count."""
    return run_apart(_measure_boosting, trainer, n_rows)


def _measure_boosting(trainer: str, n_rows: int) -> Figures:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, BOOSTED_COLUMNS))
    y = (X @ np.linspace(1, 0.1, BOOSTED_COLUMNS) + rng.normal(size=n_rows) > 0).astype(np.int64)
    with warnings.catch_warnings(action="ignore"):
        model = TRAINERS[trainer](n_estimators=1)
        model.fit(X[:60], y[:60])  # loads compiled loops
        before = time.process_time()
        TRAINERS[trainer]().fit(X.round(4), y)
    return _read_costs(before)
