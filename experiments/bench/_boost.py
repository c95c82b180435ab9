"""Boosting against a part of the plain work."""

from __future__ import annotations

import numpy as np

from derand.estimators import RobAdaBoostClassifier, RobTreeBoostClassifier
from derand.noise import Gaussian
from experiments.baselines.plain_boosting import BoostedStump, add_stump_plainly, weigh_member_plainly
from experiments.baselines.plain_training import train_plainly
from experiments.bench._measure import Figures, time_best
from experiments.datasets import load


def bench_boost(plain_stumps: int = 3, plain_features: int = 8, plain_rows: int = 60) -> Figures:
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


def bench_tree_boost(plain_stumps: int, n_estimators: int = 100) -> Figures:
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


def bench_ada_boost(plain_features: int, plain_rows: int) -> Figures:
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
