"""Quality: every way to train and to certify on the same splits, and what sampling costs for what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand.certificates import Certificates, certify
from derand.estimators import StumpClassifier
from derand.metrics import average_certified_radius, certified_accuracy
from derand.model import AdditiveEnsemble
from derand.noise import Noise, parse_noise
from experiments.baselines.knapsack import certify_without_noise
from experiments.baselines.monte_carlo import certify_by_sampling
from experiments.baselines.nearest_centroid import NearestCentroid
from experiments.baselines.noise_free_training import train_gradient_boosting, train_on_clean_rows, train_on_noisy_copy
from experiments.bench._measure import Figures, prefix
from experiments.datasets import Division, load


class Task(NamedTuple):
    """A dataset with a noise, and the radius at which certified accuracy is measured."""

    dataset: str
    scaling: Literal["standard", "range"] | None
    noise: str
    radius: float


TASKS = (
    Task("sklearn_breast_cancer", "standard", "uniform:2", 0.5),
    Task("sklearn_breast_cancer", "standard", "gaussian:0.5", 0.5),
    Task("diabetes", "range", "uniform:0.35", 0.05),
    Task("diabetes", "range", "gaussian:0.25", 0.05),
    Task("mnist_1v5", None, "uniform:4", 1.0),
    Task("mnist_1v5", None, "gaussian:0.25", 0.8),
)
_SAMPLED_ROWS = 200


def bench_quality(tasks: tuple[Task, ...] = TASKS, n_samples: int = 100_000) -> Figures:
    """Natural accuracy, certified accuracy, average radius and time of each method, for each task.

    Parameters
    ----------
    tasks : tuple of Task
    n_samples : int
        For sampling, which gets the first 200 test rows; the exact certificates of these rows stand beside it.

    Returns
    -------
    dict
        Flat: `<dataset>_l<norm>_<method>_<what>`; shares in per cent, radii in the norm, times in seconds, training
        included (but not for sampling, which certifies the same model).
    """
    results: Figures = {"samples": n_samples, "sampled_rows": _SAMPLED_ROWS}
    for task in tasks:
        parts, noise = load(task.dataset).divide(scaling=task.scaling), parse_noise(task.noise)
        place = f"{task.dataset}_l{noise.norm}"
        for method, work in METHODS.items():
            start = time.perf_counter()
            certificates = work(parts, noise)
            seconds = time.perf_counter() - start
            found = _describe(parts.y_test, certificates, task.radius, seconds)
            results |= prefix(f"{place}_{method}", found)
        compared = _compare_sampling(parts, noise, task.radius, n_samples)
        results |= prefix(place, compared)
    return results


def _describe(y: NDArray[np.int64], certificates: Certificates, radius: float, seconds: float) -> dict[str, float]:
    natural, certified = 100 * certified_accuracy(y, certificates, [0.0, radius])
    return {
        "natural_percent": float(natural),
        f"certified_percent_at_{radius:g}": float(certified),
        "average_radius": average_certified_radius(y, certificates),
        "seconds": seconds,
    }


def _compare_sampling(parts: Division, noise: Noise, radius: float, n_samples: int) -> dict[str, float]:
    """The same model and rows, certified exactly and by sampling."""
    model = _train_independent(parts, noise)
    rows, y = parts.X_test[:_SAMPLED_ROWS], parts.y_test[:_SAMPLED_ROWS]
    results: dict[str, float] = {}
    certify_by_sampling(model, rows[:1], noise, 1)  # compiles
    certify(model, rows[:8], noise, proof="paper")
    started = time.perf_counter()
    exact = certify(model, rows, noise, proof="paper")
    certified = time.perf_counter()
    sampled = certify_by_sampling(model, rows, noise, n_samples)
    finished = time.perf_counter()
    for name, found, seconds in (
        ("exact_few", exact, certified - started),
        ("sampling", sampled, finished - certified),
    ):
        results |= {f"{name}_{what}": value for what, value in _describe(y, found, radius, seconds).items()}
    results["sampling_time_ratio"] = results["sampling_seconds"] / results["exact_few_seconds"]
    results["sampling_radius_gap"] = results["exact_few_average_radius"] - results["sampling_average_radius"]
    return results


def _train_independent(parts: Division, noise: Noise) -> AdditiveEnsemble:
    return StumpClassifier(noise=noise, class_weight="balanced").fit(parts.X_train, parts.y_train).ensemble_


def _smooth(train: Callable[[Division, Noise], AdditiveEnsemble]) -> Callable[[Division, Noise], Certificates]:
    return lambda parts, noise: certify(train(parts, noise), parts.X_test, noise, proof="paper")


def _boost_without_noise(parts: Division, noise: Noise) -> Certificates:
    return certify_without_noise(train_gradient_boosting(parts.X_train, parts.y_train), parts.X_test, noise.norm)


def _take_centroids(parts: Division, noise: Noise) -> Certificates:
    return NearestCentroid.fit(parts.X_train, parts.y_train).certify(parts.X_test, noise.norm)


METHODS: Mapping[str, Callable[[Division, Noise], Certificates]] = {
    "independent": _smooth(_train_independent),
    "default": _smooth(lambda parts, noise: train_on_clean_rows(parts.X_train, parts.y_train, noise)),
    "sampled": _smooth(lambda parts, noise: train_on_noisy_copy(parts.X_train, parts.y_train, noise)),
    "boosted_without_noise": _boost_without_noise,
    "nearest_centroid": _take_centroids,
}
