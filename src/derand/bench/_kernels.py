"""What each step of the tail kernels gains, on one thread, for an image task with Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from derand.bench._measure import time_best
from derand.certificates import pack_terms
from derand.datasets import load
from derand.ensemble import AdditiveEnsemble
from derand.estimators import StumpClassifier
from derand.kernels import load_backend
from derand.kernels._numba_failures import failures_by_laws
from derand.noise import Gaussian


def bench_kernels(task: str = "mnist_2v6", n_rows: int = 400, plain_rows: int = 20) -> dict[str, Any]:
    """Microseconds per row and core: the probability table, plain laws, halves, tilting, Fourier inversion.

    Parameters
    ----------
    task : str
        An image task of the catalog.
    n_rows, plain_rows : int
        Test rows for the compiled kernels, and for the plain ones.

    Returns
    -------
    dict
        Microseconds per row of each step and of each way to the same masses.
    """
    data, noise = load(task), Gaussian(0.25)
    model = StumpClassifier(noise=noise, class_weight="balanced").fit(*data.divide()[:2]).ensemble_
    assert isinstance(model, AdditiveEnsemble)
    assert model.threshold is not None
    packed, rows = pack_terms(model), data.X[data.split.test][:n_rows]
    terms = packed.starts, packed.scores
    cut = np.full(len(rows), (model.threshold - packed.base) // packed.step)
    seconds, table = time_best(lambda: packed.table(rows, noise), repeats=3)
    results = {"terms": packed.n_terms, "levels": packed.largest + 1, "table": 1e6 * seconds / len(rows)}
    fast, plain, few = load_backend("numba"), load_backend("numpy"), slice(plain_rows)
    ways: dict[str, tuple[int, Callable[[], Any]]] = {
        "plain_laws": (plain_rows, lambda: plain.laws(table[few], *terms)),
        "halves": (len(rows), lambda: fast.tails(table, *terms, cut[:, None], cut[:, None])),
        "tilted_halves": (len(rows), lambda: failures_by_laws(table, *terms, cut)),
        "with_fourier_inversion": (len(rows), lambda: fast.failures(table, *terms, cut)),
    }
    for name, (count, way) in ways.items():
        way()  # compiles
        seconds, _ = time_best(way, repeats=2)
        results[name] = 1e6 * seconds / count
    return results
