"""Wide tables: the additive trainer with columns chosen before they are fitted, beside all columns fitted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import FloatArray
from derand._core.progress import tell
from derand.certificates import certify
from derand.noise import Gaussian
from derand.threat import Threat
from derand.train import AdditiveOptions, TrainingTable, measure_units, train_additive
from experiments.bench._measure import Figures, prefix
from experiments.datasets import load

TRAINED_ROWS, TEST_ROWS = 1_000, 2_000


class Rows(NamedTuple):
    """Rows with labels 0 and 1: the first are trained on, the others are for the test; what counts as a change of 1."""

    X: FloatArray
    target: NDArray[np.uint8]
    n_trained: int
    radius: float
    scaling: str | None


def bench_wide(names: tuple[str, ...] | None = None) -> Figures:
    """Train on wide tables with columns chosen first and without: CPU seconds, terms, accuracy, certified accuracy.

    Parameters
    ----------
    names : tuple of str, or None
        Keys of TABLES; None is all of them.

    Returns
    -------
    dict
        For each table and way the figures on rows that training did not see; certified at the radius trained for.
    """
    results: Figures = {}
    for name in names or tuple(TABLES):
        rows = TABLES[name]()
        for way, least in (("chosen", 1), ("all", rows.X.shape[1] + 1)):
            figures = _measure(rows, least)
            tell(f"{name}, {way}: " + ", ".join(f"{what} {value:.4g}" for what, value in figures.items() if value))
            results |= prefix(f"{name}_{way}", figures)
    return results


def _measure(rows: Rows, wide_columns: int) -> Figures:
    trained = slice(rows.n_trained)
    table = TrainingTable(rows.X[trained], rows.target[trained])
    units = None if rows.scaling is None else tuple(measure_units(table, rows.scaling).tolist())
    noise, threat = Gaussian(rows.radius / 2, units), Threat(norm=2, units=units)
    before = time.process_time()
    found = train_additive(table, noise, threat, AdditiveOptions(radius=rows.radius, wide_columns=wide_columns))
    seconds = time.process_time() - before
    tested = slice(rows.n_trained, None)
    certificates = certify(found.model, rows.X[tested], noise, rule="mean", threat=threat)
    right = certificates.label == rows.target[tested]
    return {
        "cpu_seconds": seconds,
        "terms": len(found.model.terms),
        "accuracy": float(right.mean()),
        "certified_accuracy": float((right & (certificates.radius >= rows.radius)).mean()),
    }


def draw_normal(n_columns: int, n_telling: int, seed: int = 0) -> Rows:
    """Independent columns, of which the first tell something about the label, each less than the one before."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(TRAINED_ROWS + TEST_ROWS, n_columns)).round(4)
    weights = np.linspace(1, 0.3, n_telling)
    score = X[:, :n_telling] @ (2 * weights / np.sqrt(weights @ weights)) + rng.normal(size=len(X))
    return Rows(X, (score > 0).astype(np.uint8), TRAINED_ROWS, 0.25, "robust")


def read_images() -> Rows:
    """Images of two digits, of which few are trained on."""
    data = load("mnist_2v6")
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(data.split.train)[:TRAINED_ROWS], data.split.test])
    return Rows(data.X[rows].astype(np.float64), data.y[rows].astype(np.uint8), TRAINED_ROWS, 1.0, None)


def read_cancer(n_more: int = 1_000) -> Rows:
    """The measurements of tumours beside columns that say nothing."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    wide = np.concatenate([X, rng.normal(size=(len(y), n_more))], axis=1)
    return Rows(wide[order], y[order].astype(np.uint8), 380, 0.25, "robust")


TABLES: dict[str, Callable[[], Rows]] = {
    "few_tell": lambda: draw_normal(2_000, 20),
    "many_tell": lambda: draw_normal(600, 300),
    "images": read_images,
    "cancer": read_cancer,
}
"""Tables by name."""
