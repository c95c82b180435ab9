"""Certifying on the GPU: the image tasks, and many rows like theirs and like adult's."""

from __future__ import annotations

import numpy as np

from derand._arrays import FloatArray
from derand.certificates import Certificates, certify
from derand.estimators import StumpClassifier
from derand.kernels import DEFAULT_BACKEND, DeviceTimes, load_backend, measure_device
from derand.model import AdditiveEnsemble, Model, StepFunction
from derand.noise import Gaussian, Noise
from experiments.bench._certify import NOISES, TASKS
from experiments.bench._measure import Figures, prefix, time_best
from experiments.datasets import load


def bench_gpu(tasks: tuple[str, ...] = TASKS, image_rows: int = 100_000, table_rows: int = 1_000_000) -> Figures:
    """Certify on the GPU, from host arrays to host results: the test sets of the image tasks, and many rows.

    Parameters
    ----------
    tasks : tuple of str
    image_rows : int
        Test rows of the last task, repeated.
    table_rows : int
        Random rows for a model of 14 terms.

    Returns
    -------
    dict
        For each task and norm: milliseconds for the whole test set, and the largest gap to the default backend's
        failure masses, relative (l2) or absolute (l1); rows per second for many rows. Beside each, the milliseconds in
        which kernels and in which copies were under way: they come from runs of their own, because watching them takes
        time, and they overlap with each other and with the work of the host.
    """
    load_backend("cuda")  # says what is missing where there is no GPU
    results: Figures = {}
    rng = np.random.default_rng(0)
    for task in tasks:
        data = load(task)
        train, test = data.split
        for norm, noise in NOISES.items():
            model = StumpClassifier(noise=noise, class_weight="balanced").fit(data.X[train], data.y[train]).ensemble_
            results |= prefix(f"{task}_{norm}", compare_with_default(model, data.X[test], noise))
            if task == tasks[-1]:
                many = data.X[test][rng.integers(0, len(data.X[test]), image_rows)]
                results |= prefix(f"images_{norm}", measure_many(model, many, noise))
    table_model, rows = draw_table(rng, table_rows)
    return results | prefix("table", measure_many(table_model, rows, Gaussian(0.25)))


def compare_with_default(model: Model, rows: FloatArray, noise: Noise) -> Figures:
    """Times on the GPU, and the gap to the default backend."""
    seconds, ours, device = measure_times(model, rows, noise, repeats=9)
    other = certify(model, rows, noise, backend=DEFAULT_BACKEND, proof="paper")
    if noise.norm == 2:
        gap = float(np.abs(np.expm1(ours.log_failure - other.log_failure)).max())
    else:
        gap = float(np.abs(ours.failure - other.failure).max())
    return {
        "rows": len(rows),
        "milliseconds": 1000 * seconds,
        **device,
        "relative_gap" if noise.norm == 2 else "absolute_gap": gap,
        "labels_differ": int((ours.label != other.label).sum()),
    }


def measure_many(model: Model, rows: FloatArray, noise: Noise) -> Figures:
    """Rows certified per second on the GPU, and how long its kernels and copies took."""
    seconds, _, device = measure_times(model, rows, noise, repeats=3)
    return {"rows": len(rows), "rows_per_second": len(rows) / seconds, **device}


def measure_times(
    model: Model, rows: FloatArray, noise: Noise, repeats: int
) -> tuple[float, Certificates, dict[str, float]]:
    """Seconds of the best of several runs, the certificates, and the times of the device in the best of three more."""

    def run() -> Certificates:
        return certify(model, rows, noise, backend="cuda", proof="paper")

    def run_watched() -> DeviceTimes:
        with measure_device() as times:
            run()
        return times

    run()  # compiles, and takes the memory
    seconds, certificates = time_best(run, repeats)
    device = min((run_watched() for _ in range(3)), key=lambda times: times.kernel_ms)
    times = {"kernel_milliseconds": device.kernel_ms, "transfer_milliseconds": device.transfer_ms}
    return seconds, certificates, times


def draw_table(rng: np.random.Generator, n_rows: int, n_terms: int = 14) -> tuple[AdditiveEnsemble, FloatArray]:
    """Rows like adult's: few features, one split each."""
    steps = [StepFunction(feature, rng.normal(size=1), rng.integers(0, 101, size=2)) for feature in range(n_terms)]
    threshold = int(sum(step.scores.mean() for step in steps))
    return AdditiveEnsemble(tuple(steps), threshold, n_terms), rng.normal(size=(n_rows, n_terms))
