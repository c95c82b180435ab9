"""The paper's own classifiers once more: what the second proof and the mean rule certify of the same stumps.

Owns the table of `python -m experiments sharper`. Must not know how anything is certified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand.certificates import Certificates, attack, certify
from derand.estimators import StumpClassifier
from derand.model import AdditiveEnsemble
from derand.noise import Gaussian, Noise, Uniform
from experiments.bench import time_best
from experiments.datasets import load

TASKS = ("mnist_2v6", "mnist_1v5", "fmnist_shoes")
NOISES: dict[Noise, dict[str, tuple[float, ...]]] = {
    Gaussian(0.25): {
        "mnist_2v6": (0.8, 1.6, 2.4, 3.2),
        "mnist_1v5": (0.8, 1.6, 2.4, 3.2),
        "fmnist_shoes": (0.4, 0.8, 1.2, 1.6),
    },
    Uniform(2.0): {
        "mnist_2v6": (1.0, 2.0, 4.0, 8.0),
        "mnist_1v5": (1.0, 2.0, 4.0, 8.0),
        "fmnist_shoes": (0.5, 1.0, 2.0, 4.0),
    },
}
WAYS: dict[str, dict[str, str]] = {
    "vote, paper's proof": {"rule": "vote", "proof": "paper"},
    "vote, both proofs": {"rule": "vote", "proof": "best"},
    "mean": {"rule": "mean"},
}
ATTACKED_ROWS = 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; shares in per cent of all test rows."""

    dataset: str
    noise: str
    way: str
    natural: float
    average_radius: float
    """Over all rows; 0 for those that are wrong."""
    radii: tuple[float, ...]
    certified: tuple[float, ...]
    attacked: int
    """Rows from which a flip was searched for."""
    inside: int
    """Of those, how many were flipped within their radius: must be 0."""
    ratio: float
    """Median of certified radius by distance of the flip, over rows where one was found."""
    first_seconds: float
    """Of the first call, which builds what is kept."""
    seconds: float


def compare_ways(tasks: tuple[str, ...] = TASKS, attacked: int = ATTACKED_ROWS) -> Iterator[Line]:
    """The lines of the table, one after the other.

    Parameters
    ----------
    tasks : tuple of str
        Of TASKS.
    attacked : int
        From how many rows of each a flip is searched for.
    """
    for noise, radii_of in NOISES.items():
        for task in tasks:
            data = load(task)
            train, test = data.split
            classifier = StumpClassifier(noise=noise, class_weight="balanced").fit(data.X[train], data.y[train])
            rows, truth = data.X[test], data.y[test]
            certify(classifier.ensemble_, rows[:8], noise, proof="paper")  # compiles
            for way, options in WAYS.items():
                yield _measure(classifier.ensemble_, rows, truth, noise, (task, way), options, radii_of[task], attacked)


def _measure(
    model: AdditiveEnsemble,
    rows: FloatArray,
    truth: NDArray[Any],
    noise: Noise,
    names: tuple[str, str],
    options: dict[str, Any],
    radii: tuple[float, ...],
    attacked: int,
) -> Line:
    first_seconds, _ = time_best(lambda: certify(model, rows, noise, **options), repeats=1)
    seconds, found = time_best(lambda: certify(model, rows, noise, **options), repeats=5)
    right = found.label == truth
    chosen = np.linspace(0, len(rows) - 1, attacked).astype(int)
    inside, ratio = attack_rows(model, rows[chosen], noise, found[chosen])
    return Line(
        dataset=names[0],
        noise=str(noise),
        way=names[1],
        natural=100 * float(right.mean()),
        average_radius=float(np.where(right, found.radius, 0.0).mean()),
        radii=radii,
        certified=tuple(100 * float((right & (found.radius >= radius)).mean()) for radius in radii),
        attacked=attacked,
        inside=inside,
        ratio=ratio,
        first_seconds=first_seconds,
        seconds=seconds,
    )


def attack_rows(
    model: AdditiveEnsemble, rows: FloatArray, noise: Noise | None, certificates: Certificates
) -> tuple[int, float]:
    """How many rows were flipped within their radius, and the median of radius by distance of the flip."""
    found = attack(model, rows, noise, rule=certificates.rule, threat=certificates.threat)
    inside = int(found.find_inside(certificates).sum())
    at = np.flatnonzero(found.found & (found.distance > 0))
    ratios = certificates.radius[at] / found.distance[at]
    return inside, float(np.median(ratios)) if at.size else float("nan")
