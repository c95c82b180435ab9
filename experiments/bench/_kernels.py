"""What each step of the tail kernels gains, on one thread, for an image task with Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from derand.certificates import pack_terms
from derand.estimators import StumpClassifier
from derand.kernels import INVERTED, load_backend
from derand.noise import Gaussian
from experiments.bench._measure import Figures, prefix, time_best
from experiments.datasets import load

FINE_LEVELS = 10_000


def bench_kernels(task: str = "mnist_2v6", n_rows: int = 400, plain_rows: int = 20) -> Figures:
    """Microseconds per row and core: the probability table, plain laws, halves, tilting, Fourier inversion.

    Parameters
    ----------
    task : str
        An image task of the catalog.
    n_rows, plain_rows : int
        Test rows for the fast kernels, and for the slow ones.

    Returns
    -------
    dict
        Microseconds per row of each step and of each way to the same masses, on 100 levels; of the last two also on
        10,000 levels (`fine_...`); and the share of rows that Fourier inversion certifies.
    """
    results = measure_ways(task, 100, n_rows, plain_rows, with_slow_ways=True)
    fine = measure_ways(task, FINE_LEVELS, n_rows, plain_rows, with_slow_ways=False)
    return results | prefix("fine", fine)


def measure_ways(task: str, levels: int, n_rows: int, few_rows: int, *, with_slow_ways: bool) -> Figures:
    """`bench_kernels` for one number of levels."""
    data, noise = load(task), Gaussian(0.25)
    fitted = StumpClassifier(noise=noise, class_weight="balanced", levels=levels).fit(*data.divide()[:2])
    (contrast,) = (contrast for member in fitted.ensemble_.members for contrast in member.contrasts())
    packed, rows = pack_terms(contrast.terms), data.X[data.split.test][:n_rows]
    cut = np.full(len(rows), (contrast.threshold - packed.base) // packed.step)
    seconds, table = time_best(lambda: packed.table(rows, noise), repeats=3)
    fast, plain, few = load_backend("numba"), load_backend("numpy"), slice(few_rows)
    plan, plain_plan = packed.plan(fast), packed.plan(plain)
    without_inversion = fast.prepare(packed.starts, packed.scores, invert=False)
    by_laws = slice(None) if with_slow_ways else few
    ways: dict[str, tuple[int, Callable[[], Any]]] = {
        "tilted_halves": (len(cut[by_laws]), lambda: fast.failures(without_inversion, table[by_laws], cut[by_laws])),
        "with_fourier_inversion": (len(rows), lambda: fast.failures(plan, table, cut)),
    }
    if with_slow_ways:
        ways = {
            "plain_laws": (few_rows, lambda: plain.pmfs(plain_plan, table[few])),
            "halves": (len(rows), lambda: fast.tails(plan, table, cut[:, None], cut[:, None])),
        } | ways
    results: Figures = {
        "terms": packed.n_terms,
        "support": packed.largest + 1,
        "table": 1e6 * seconds / len(rows),
    }
    for name, (count, way) in ways.items():
        way()  # compiles
        seconds, _ = time_best(way, repeats=2)
        results[name] = 1e6 * seconds / count
    path = fast.failures(plan, table, cut).path
    return results | {"share_inverted": float((path == INVERTED).mean())}
