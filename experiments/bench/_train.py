"""Training against the paper's loop, and on a large table."""

from __future__ import annotations

import numpy as np

from derand.estimators import StumpClassifier
from derand.noise import Gaussian
from experiments.baselines.plain_training import PlainStump, train_plainly
from experiments.bench._measure import Figures, measure_peak_memory, run_apart, time_best
from experiments.datasets import load


def bench_train(plain_features: int = 20, large_rows: int = 1_000_000, large_features: int = 50) -> Figures:
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
    large_seconds, large_bytes = run_apart(fit_large, large_rows, large_features)
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


def agrees_with(model: StumpClassifier, stump: PlainStump) -> bool:
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
