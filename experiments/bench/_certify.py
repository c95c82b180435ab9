"""Certifying the three image tasks against the paper's algorithm, l1 and l2."""

from __future__ import annotations

import numpy as np

from derand._core.arrays import FloatArray
from derand.certificates import certify
from derand.estimators import StumpClassifier
from derand.model import AdditiveEnsemble
from derand.noise import Gaussian, Noise, Uniform
from experiments.baselines.plain_certification import certify_plainly
from experiments.bench._measure import Figures, measure_peak_memory, prefix, time_best
from experiments.datasets import load

TASKS = ("mnist_1v5", "mnist_2v6", "fmnist_shoes")
NOISES: dict[str, Noise] = {"l1": Uniform(4.0), "l2": Gaussian(0.25)}


def bench_certify(plain_rows: int = 200, tasks: tuple[str, ...] = TASKS) -> Figures:
    """Certify the test sets of the paper's image tasks: the default backend against Algorithm 1 in NumPy.

    Parameters
    ----------
    plain_rows : int
        Rows for the plain version, all at once; its time is scaled up to the test set.
    tasks : tuple of str

    Returns
    -------
    dict
        For each task and norm: seconds of both for the whole test set, microseconds per row, the ratio, and the largest
        gap between the failure masses, relative (l2) or absolute (l1); and the peak memory of this process.
    """
    results: Figures = {}
    for task in tasks:
        data = load(task)
        train, test = data.split
        for norm, noise in NOISES.items():
            model = StumpClassifier(noise=noise, class_weight="balanced").fit(data.X[train], data.y[train])
            measured = compare_with_plain(model.ensemble_, data.X[test], noise, plain_rows)
            results |= prefix(f"{task}_{norm}", measured)
    return results | {"peak_bytes": measure_peak_memory()}


def compare_with_plain(model: AdditiveEnsemble, rows: FloatArray, noise: Noise, plain_rows: int) -> Figures:
    """One line of `bench_certify`."""
    certify(model, rows[:8], noise, proof="paper")  # compiles
    seconds, certificates = time_best(lambda: certify(model, rows, noise, proof="paper"), repeats=5)
    plain_seconds, (label, failure) = time_best(lambda: certify_plainly(model, rows[:plain_rows], noise), repeats=1)
    scaled = plain_seconds * len(rows) / plain_rows
    found = certificates.failure[:plain_rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(found / failure - 1)[failure > 1e-290]
    gaps = relative if noise.norm == 2 else np.abs(found - failure)
    return {
        "rows": len(rows),
        "seconds": seconds,
        "microseconds_per_row": 1e6 * seconds / len(rows),
        "plain_seconds_scaled": scaled,
        "ratio": scaled / seconds,
        "relative_gap" if noise.norm == 2 else "absolute_gap": float(gaps.max()),
        "labels_differ": int((certificates.label[:plain_rows] != label).sum()),
    }
