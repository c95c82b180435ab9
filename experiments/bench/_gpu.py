"""Certifying on the GPU: the image tasks, and many rows like theirs and like adult's."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray, IntArray
from derand.certificates import Certificates, certify
from derand.estimators import StumpClassifier
from derand.kernels import DEFAULT_BACKEND, load_backend
from derand.kernels.cuda.device import DeviceTimes, watch_device
from derand.model import AdditiveEnsemble, Model, StepFunction
from derand.noise import Gaussian, Noise
from experiments.bench._certify import NOISES, TASKS
from experiments.bench._measure import Figures, prefix, time_best
from experiments.datasets import is_available, load


def bench_gpu(tasks: tuple[str, ...] = TASKS, image_rows: int = 100_000, table_rows: int = 1_000_000) -> Figures:
    """Certify on the GPU, from host arrays to host results: the test sets of the image tasks, and many rows.

    Parameters
    ----------
    tasks : tuple of str
        Images are drawn in place of those whose files are not there.
    image_rows : int
        Test rows of the last task, repeated.
    table_rows : int
        Random rows for a model of 14 terms.

    Returns
    -------
    dict
        For each task and norm: milliseconds for the whole test set, and the largest gap to the default backend's
        failure masses, relative (l2) or absolute (l1); rows per second for many rows, of images also by the mean rule,
        where the gap is that of radii. Beside each, the milliseconds in which kernels and in which copies were under
        way, and in which neither was, so that the host alone worked: they come from runs of their own, because
        watching takes time; kernels and copies overlap.
    """
    load_backend("cuda")  # says what is missing where there is no GPU
    results: Figures = {}
    rng = np.random.default_rng(0)
    for task in tasks:
        for norm, noise in NOISES.items():
            model, test = prepare_task(task, noise, rng)
            results |= prefix(f"{task}_{norm}", compare_with_default(model, test, noise))
            if task == tasks[-1]:
                many = test[rng.integers(0, len(test), image_rows)]
                results |= prefix(f"images_{norm}", measure_many(model, many, noise))
                results |= prefix(f"images_mean_{norm}", compare_means(model, test, noise))
                results |= prefix(f"images_mean_{norm}", measure_many(model, many, noise, rule="mean"))
    table_model, rows = draw_table(rng, table_rows)
    return results | prefix("table", measure_many(table_model, rows, Gaussian(0.25)))


def prepare_task(task: str, noise: Noise, rng: np.random.Generator) -> tuple[Model, FloatArray]:
    """A model of stumps and test rows: the paper's, or drawn ones of the same size where its files are not there."""
    if is_available(task):
        data = load(task)
        (train, test), X, y = data.split, data.X, data.y
    else:
        X, y = draw_images(rng, 4000)
        train, test = np.arange(2000), np.arange(2000, 4000)
    model = StumpClassifier(noise=noise, class_weight="balanced").fit(X[train], y[train]).ensemble_
    return model, np.ascontiguousarray(X[test])


def draw_images(rng: np.random.Generator, n_rows: int) -> tuple[FloatArray, IntArray]:
    """Grey images of two classes, 28 x 28: a bar of its own brightness, upright or lying, and specks."""
    y = rng.integers(0, 2, n_rows)
    down, across = np.meshgrid(np.arange(28), np.arange(28), indexing="ij")
    centre, width = rng.normal(14, 3, (n_rows, 1, 1)), rng.uniform(1, 4, (n_rows, 1, 1))
    place = np.where(y[:, None, None] == 1, down, across)
    bar = np.exp(-(((place - centre) / width) ** 2)) * rng.uniform(0.4, 1.0, (n_rows, 1, 1))
    grey = np.clip(bar + rng.normal(0, 0.1, bar.shape), 0, 1)
    return np.rint(255 * grey).reshape(n_rows, -1) / 255, y


def compare_with_default(model: Model, rows: FloatArray, noise: Noise) -> Figures:
    """Times on the GPU by the vote, and the gap to the default backend."""
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


def compare_means(model: Model, rows: FloatArray, noise: Noise) -> Figures:
    """By the mean rule, the gap to the default backend, and its labels."""
    # the first call leaves the rows to the host, which makes the tables; the second one finds them on the device
    _, ours, other = (
        certify(model, rows, noise, backend=name, rule="mean") for name in ("cuda", "cuda", DEFAULT_BACKEND)
    )
    gap = float(np.abs(ours.radius - other.radius).max())
    return {"radius_gap": gap, "labels_differ": int((ours.label != other.label).sum())}


def measure_many(model: Model, rows: FloatArray, noise: Noise, rule: str = "vote") -> Figures:
    """Rows certified per second on the GPU, and how long its kernels and copies took."""
    seconds, _, device = measure_times(model, rows, noise, repeats=3, rule=rule)
    return {"rows": len(rows), "rows_per_second": len(rows) / seconds, "milliseconds": 1000 * seconds, **device}


def measure_times(
    model: Model, rows: FloatArray, noise: Noise, repeats: int, rule: str = "vote"
) -> tuple[float, Certificates, dict[str, float]]:
    """Seconds of the best of several runs, the certificates, and the times of the device in the best of three more."""
    proof = "paper" if rule == "vote" else "best"

    def run() -> Certificates:
        return certify(model, rows, noise, backend="cuda", rule=rule, proof=proof)

    def run_watched() -> tuple[DeviceTimes, float]:
        with watch_device() as times:
            seconds, _ = time_best(run, 1)
        return times, 1000 * seconds

    run()  # compiles, and takes the memory
    seconds, certificates = time_best(run, repeats)
    device, whole = min((run_watched() for _ in range(3)), key=lambda watched: watched[1])
    times = {
        "kernel_milliseconds": device.kernel_ms,
        "transfer_milliseconds": device.transfer_ms,
        "host_milliseconds": whole - device.busy_ms,
    }
    return seconds, certificates, times


def draw_table(rng: np.random.Generator, n_rows: int, n_terms: int = 14) -> tuple[AdditiveEnsemble, FloatArray]:
    """Rows like adult's: few features, one split each."""
    steps = [StepFunction(feature, rng.normal(size=1), rng.integers(0, 101, size=2)) for feature in range(n_terms)]
    threshold = int(sum(step.scores.mean() for step in steps))
    return AdditiveEnsemble(tuple(steps), threshold, n_terms), rng.normal(size=(n_rows, n_terms))
