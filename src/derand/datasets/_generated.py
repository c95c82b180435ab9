"""Datasets that are drawn, not loaded: of any size, without files."""

from __future__ import annotations

import numpy as np

from derand.datasets._dataset import Dataset, draw_folds, split_at_random


def make_clusters(n_rows: int = 1000, n_features: int = 10, distance: float = 3.0, seed: int = 0) -> Dataset:
    """Two normal clusters of deviation 1, equally large.

    `distance`: of the two centres. The best possible rule, a linear one, has the distance to the plane between the
    centres as its l2 radius.

    Examples
    --------
    >>> data = make_clusters(n_rows=6, n_features=2)
    >>> data.X.shape, data.y.tolist()
    ((6, 2), [0, 1, 0, 1, 0, 1])
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, n_features)) + (y[:, None] - 0.5) * distance / np.sqrt(n_features)
    return Dataset(
        X=X,
        y=y,
        target_names=("left", "right"),
        feature_names=tuple(f"x{feature}" for feature in range(n_features)),
        categorical=(),
        split=split_at_random(y),
        fold=draw_folds(n_rows),
        provenance=f"Drawn by make_clusters with seed {seed}.",
    )


def make_loans(n_rows: int = 2000, seed: int = 0) -> Dataset:
    """Loans, three numbers and three categories, of which one says nothing; repaid or not, with some chance.

    Examples
    --------
    >>> data = make_loans(n_rows=100)
    >>> data.feature_names, data.categorical
    (('age', 'amount', 'months', 'job', 'housing', 'purpose'), (3, 4, 5))
    """
    rng = np.random.default_rng(seed)
    age, amount = rng.integers(20, 70, n_rows), rng.lognormal(8, 0.6, n_rows).round()
    months = rng.integers(6, 60, n_rows)
    job = rng.choice(["skilled", "unskilled", "self-employed"], n_rows)
    housing = rng.choice(["own", "rent", "free"], n_rows)
    purpose = rng.choice(["car", "radio", "business"], n_rows)
    risk = 0.04 * (40 - age) + amount / 2500 + months / 24 + (job == "unskilled") + (housing != "own") - 3.2
    y = (risk + rng.normal(size=n_rows) >= 0).astype(np.int64)
    X = np.empty((n_rows, 6), dtype=object)
    for column, values in enumerate((age.astype(float), amount, months.astype(float), job, housing, purpose)):
        X[:, column] = values.tolist()
    return Dataset(
        X=X,
        y=y,
        target_names=("repaid", "default"),
        feature_names=("age", "amount", "months", "job", "housing", "purpose"),
        categorical=(3, 4, 5),
        split=split_at_random(y),
        fold=draw_folds(n_rows),
        provenance=f"Drawn by make_loans with seed {seed}.",
    )
