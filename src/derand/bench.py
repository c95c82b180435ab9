"""Benchmarks: speed, memory and results side by side, in one run on the same inputs; plain dicts out.

Owns what is measured and how. Must not know how it is printed.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any

import numpy as np

from derand.baselines.plain_boosting import BoostedStump, add_stump_plainly, weigh_member_plainly
from derand.baselines.plain_certification import certify_plainly
from derand.baselines.plain_training import PlainStump, train_plainly
from derand.certificates import certify
from derand.datasets import load
from derand.ensemble import AdditiveEnsemble, StepFunction
from derand.estimators import RobAdaBoostClassifier, RobTreeBoostClassifier, StumpClassifier
from derand.noise import Gaussian
from derand.threads import count_threads

_PARTS = ("derand", "numpy", "scipy", "scikit-learn", "numba")


def run_bench(name: str) -> dict[str, Any]:
    """Run one benchmark.

    Parameters
    ----------
    name : str
        A key of BENCHES.

    Returns
    -------
    dict
        `bench`, `results` (flat, names with their unit), `versions` and `machine`.
    """
    if name not in BENCHES:
        raise ValueError(f"`name` must be one of {', '.join(BENCHES)}, got {name!r}.")
    return {
        "bench": name,
        "results": BENCHES[name](),
        "versions": {"python": platform.python_version()} | {part: version(part) for part in _PARTS},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": count_threads()},
    }


def time_best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest of several runs, and what the last one returned."""
    seconds, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def bench_core(n_rows: int = 2000, plain_rows: int = 100, n_terms: int = 600) -> dict[str, Any]:
    """Certify random rows: the default backend against the paper's Algorithm 1 in NumPy, timed on fewer rows.

    Parameters
    ----------
    n_rows, plain_rows : int
        Rows for derand, and how many of them the plain version gets; its time is scaled up.
    n_terms : int
        Terms of two cells each, their scores 1 to 60 apart.

    Returns
    -------
    dict
        Seconds of both, their ratio, and the largest relative gap between the failure masses.
    """
    rng = np.random.default_rng(0)
    model = draw_stumps(rng, n_terms)
    rows, noise = rng.uniform(size=(n_rows, n_terms)), Gaussian(0.25)
    certify(model, rows[:8], noise)  # compiles
    seconds, certificates = time_best(lambda: certify(model, rows, noise), repeats=5)
    few = rows[:plain_rows]
    plain_seconds, (label, failure) = time_best(lambda: certify_plainly(model, few, noise), repeats=2)
    scaled = plain_seconds * n_rows / plain_rows
    gaps = np.abs(certificates.failure[:plain_rows] / failure - 1)[failure > 1e-290]
    return {
        "terms": n_terms,
        "rows": n_rows,
        "derand_seconds": seconds,
        "plain_rows": plain_rows,
        "plain_seconds_scaled": scaled,
        "ratio": scaled / seconds,
        "largest_relative_gap": float(gaps.max(initial=0.0)),
        "smallest_failure": float(failure.min()),
        "labels_differ": int((certificates.label[:plain_rows] != label).sum()),
    }


def bench_train(plain_features: int = 20, large_rows: int = 1_000_000, large_features: int = 50) -> dict[str, Any]:
    """Fit mnist_2v6: StumpClassifier against the paper's loop, timed on fewer features; and fit a large random table.

    Parameters
    ----------
    plain_features : int
        Features for the plain version, evenly spread; its time is scaled up to all of them.
    large_rows, large_features : int
        Shape of the random table of the large fit, which runs in a process of its own.

    Returns
    -------
    dict
        Seconds of both, their ratio, how many of the compared stumps differ; seconds and peak memory of the large fit.
    """
    data = load("mnist_2v6")
    X, y, noise = data.X[data.split.train], data.y[data.split.train], Gaussian(0.25)
    model = StumpClassifier(noise=noise, class_weight="balanced")
    model.fit(X[:200, 300:310], y[:200])  # compiles
    seconds, _ = time_best(lambda: model.fit(X, y), repeats=3)
    features = np.linspace(0, X.shape[1] - 1, plain_features).astype(np.int64)
    plain_seconds, stumps = time_best(lambda: train_plainly(X, y, noise, features.tolist()), repeats=1)
    scaled = plain_seconds * X.shape[1] / plain_features
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        large_seconds, large_bytes = pool.submit(fit_large, large_rows, large_features).result()
    return {
        "rows": len(X),
        "features": X.shape[1],
        "derand_seconds": seconds,
        "plain_features": plain_features,
        "plain_seconds_scaled": scaled,
        "ratio": scaled / seconds,
        "stumps_compared": len(stumps),
        "stumps_differ": sum(not agrees_with(model, stump) for stump in stumps),
        "large_rows": large_rows,
        "large_features": large_features,
        "large_seconds": large_seconds,
        "large_peak_bytes": large_bytes,
    }


def bench_boost(plain_stumps: int = 3, plain_features: int = 8, plain_rows: int = 60) -> dict[str, Any]:
    """Boost: RobTreeBoost on diabetes, a round of RobAdaBoost on mnist_2v6, each against a part of the plain work.

    Parameters
    ----------
    plain_stumps : int
        Added stumps that the plain version of RobTreeBoost finds again, evenly spread; its time is scaled up.
    plain_features, plain_rows : int
        Features that the plain version of RobAdaBoost trains and rows that it certifies; its times are scaled up.

    Returns
    -------
    dict
        Seconds of both ways and their ratio, for each method, and how many of the compared stumps differ.
    """
    return bench_tree_boost(plain_stumps) | bench_ada_boost(plain_features, plain_rows)


def bench_tree_boost(plain_stumps: int, n_estimators: int = 100) -> dict[str, Any]:
    """The first part of `bench_boost`, as in the paper's row for diabetes and l2."""
    X, y, _, _ = load("diabetes").divide(scaling="range")
    noise, quantile = Gaussian(0.15), 0.95
    model = RobTreeBoostClassifier(noise=noise, quantile=quantile, n_estimators=n_estimators)
    model.fit(X[:100], y[:100])  # compiles
    seconds, _ = time_best(lambda: model.fit(X, y), repeats=3)
    columns = (model.stump_features_, model.stump_thresholds_, model.stump_left_, model.stump_right_)
    stumps = [BoostedStump(*stump) for stump in zip(*(column.tolist() for column in columns), strict=True)]
    places = np.linspace(len(stumps) - n_estimators, len(stumps) - 1, plain_stumps).astype(np.int64).tolist()
    plain_seconds, found = time_best(
        lambda: [add_stump_plainly(stumps[:place], X, y, noise, quantile) for place in places], repeats=1
    )
    scaled = plain_seconds * n_estimators / plain_stumps
    return {
        "tree_stumps": n_estimators,
        "tree_derand_seconds": seconds,
        "tree_plain_stumps": plain_stumps,
        "tree_plain_seconds_scaled": scaled,
        "tree_ratio": scaled / seconds,
        "tree_stumps_differ": sum(
            not np.allclose(stumps[place], stump, rtol=0, atol=1e-9) for place, stump in zip(places, found, strict=True)
        ),
    }


def bench_ada_boost(plain_features: int, plain_rows: int) -> dict[str, Any]:
    """The second part of `bench_boost`: one round, training a member and certifying the training rows with it."""
    data = load("mnist_2v6")
    X, y, noise, radius = data.X[data.split.train], data.y[data.split.train], Gaussian(0.25), 0.8
    model = RobAdaBoostClassifier(noise=noise, radius=radius, n_estimators=1, class_weight="balanced")
    model.fit(X[:200], y[:200])  # compiles
    seconds, _ = time_best(lambda: model.fit(X, y), repeats=2)
    features = np.linspace(0, X.shape[1] - 1, plain_features).astype(np.int64).tolist()
    train_seconds, _ = time_best(lambda: train_plainly(X, y, noise, features), repeats=1)
    few, member = slice(plain_rows), model.ensemble_.members[0]
    weigh_seconds, _ = time_best(
        lambda: weigh_member_plainly(member, X[few], y[few], noise, radius, np.ones(plain_rows)), repeats=1
    )
    scaled = train_seconds * X.shape[1] / plain_features + weigh_seconds * len(X) / plain_rows
    return {
        "ada_rows": len(X),
        "ada_derand_seconds_per_round": seconds,
        "ada_plain_features": plain_features,
        "ada_plain_rows": plain_rows,
        "ada_plain_seconds_per_round_scaled": scaled,
        "ada_ratio": scaled / seconds,
    }


def agrees_with(model: Any, stump: PlainStump) -> bool:
    """Whether the model has this stump, on its grid; or has none where the stump's entropy is above the limit."""
    terms = {term.feature: term for term in model.ensemble_.step_functions}
    if stump.entropy >= model.max_entropy:
        return stump.feature not in terms
    leaves = [round(stump.left * model.levels), round(stump.right * model.levels)]
    if leaves[0] == leaves[1]:
        return stump.feature not in terms or not terms[stump.feature].edges.size
    term = terms.get(stump.feature)
    return (
        term is not None
        and term.scores.ravel().tolist() == leaves
        and bool(np.isclose(term.edges, [stump.threshold], rtol=0, atol=1e-9).all())
    )


def fit_large(n_rows: int, n_features: int) -> tuple[float, int | None]:
    """Seconds of a fit on random continuous features, and the peak memory of this process, the table included."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    y = (X[:, 0] + rng.normal(size=n_rows) > 0).astype(np.int64)
    seconds, _ = time_best(lambda: StumpClassifier(noise=Gaussian(0.25)).fit(X, y), repeats=1)
    return seconds, measure_peak_memory()


def measure_peak_memory() -> int | None:
    """Largest memory, in bytes, that this process has had; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def draw_stumps(rng: np.random.Generator, n_terms: int) -> AdditiveEnsemble:
    """Random terms of two cells, the scores 1 to 60 apart in either direction, split anywhere in [0, 1]."""
    shifts = rng.integers(1, 61, size=n_terms)
    edges = rng.uniform(size=n_terms)
    rising = rng.integers(0, 2, size=n_terms) == 1
    terms = [
        StepFunction(feature, edges[[feature]], np.array([0, shift] if up else [shift, 0]))
        for feature, (shift, up) in enumerate(zip(shifts, rising, strict=True))
    ]
    return AdditiveEnsemble(tuple(terms), threshold=int(shifts.sum()) // 2, n_features=n_terms)


BENCHES: Mapping[str, Callable[[], dict[str, Any]]] = {"core": bench_core, "train": bench_train, "boost": bench_boost}
