"""Joint certificates on adult: all categorical budgets at once against one row and one budget at a time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.certificates import certify
from derand.estimators import StumpClassifier
from derand.noise import Gaussian
from experiments.baselines.plain_certification import certify_jointly_plainly
from experiments.bench._measure import Figures, measure_peak_memory, run_apart, time_best
from experiments.datasets import load

BUDGETS = (0, 1, 2, 3)


def bench_joint(plain_rows: int = 100, large_rows: int = 1_000_000) -> Figures:
    """Certify adult's test rows for 0 to 3 categorical changes, and a million such rows.

    Parameters
    ----------
    plain_rows : int
        Rows for the plain version; its time is scaled up to the test set.
    large_rows : int
        Rows of the large run, adult repeated, in a process of its own.

    Returns
    -------
    dict
        Seconds of both, their ratio, the largest gap between the failure masses; rows per second and peak memory of
        the large run, the table included.
    """
    model, rows = train_on_adult()
    ensemble, table = model.ensemble_, rows_of_adult()
    noise = model.noise_ or Gaussian(0.25)
    certify(ensemble, rows[:8], model.noise_, BUDGETS, proof="paper")  # compiles
    seconds, found = time_best(lambda: certify(ensemble, rows, model.noise_, BUDGETS, proof="paper"), repeats=5)
    whole_seconds, _ = time_best(lambda: model.certify(table, l0=BUDGETS), repeats=3)
    few = rows[:plain_rows]
    plain_seconds, failure = time_best(lambda: certify_jointly_plainly(ensemble, few, noise, BUDGETS), repeats=1)
    ours = np.stack([one.failure[:plain_rows] for one in found], axis=1)
    large_seconds, large_bytes = run_apart(certify_large, large_rows)
    return {
        "rows": len(rows),
        "budgets": len(BUDGETS),
        "derand_seconds": seconds,
        "derand_seconds_from_the_table": whole_seconds,
        "plain_rows": plain_rows,
        "plain_seconds_scaled": plain_seconds * len(rows) / plain_rows,
        "ratio": plain_seconds * len(rows) / plain_rows / seconds,
        "largest_absolute_gap": float(np.abs(ours - failure).max()),
        "large_rows": large_rows,
        "large_rows_per_second": large_rows / large_seconds,
        "large_peak_bytes": large_bytes,
    }


def rows_of_adult() -> NDArray[Any]:
    """The test rows as a table of numbers and text."""
    data = load("adult")
    return data.X[data.split.test]


def train_on_adult() -> tuple[StumpClassifier, NDArray[np.float64]]:
    """The paper's joint model, and the encoded test rows."""
    data = load("adult")
    train = data.split.train
    model = StumpClassifier(
        noise=Gaussian(0.25),
        scaling="standard",
        class_weight="balanced",
        max_entropy=0.693,
        categorical_features=list(data.categorical),
    ).fit(data.X[train], data.y[train])
    return model, model.encoding_.encode(rows_of_adult())


def certify_large(n_rows: int) -> tuple[float, int | None]:
    """Seconds to certify adult's test rows repeated, all budgets, and the peak memory of this process."""
    model, rows = train_on_adult()
    table = rows[np.arange(n_rows) % len(rows)]
    certify(model.ensemble_, rows[:8], model.noise_, BUDGETS, proof="paper")  # compiles
    start = time.perf_counter()
    certify(model.ensemble_, table, model.noise_, BUDGETS, proof="paper")
    return time.perf_counter() - start, measure_peak_memory()
