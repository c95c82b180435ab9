"""Datasets that are drawn, not loaded: of any size, without files; and a raw table, with all that is wrong with one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import Cells, FloatArray
from derand.datasets._dataset import Dataset, draw_folds, split_at_random

FIRST_DAY = np.datetime64("2023-01-02")


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


def make_applications(n_rows: int = 4000, seed: int = 0) -> dict[str, Cells]:
    """Credit applications with an identifier, a date, gaps, a protected column and one that is known too late.

    `recovered` is written down after a loan has failed, so that nobody knows it when a decision is due. About one
    loan in seven fails.

    Returns shape (n_rows,): columns in their order; a missing number is NaN, a missing text None. `outcome` is "repaid"
    or "default".

    Examples
    --------
    >>> table = make_applications(n_rows=100)
    >>> list(table)[:5], str(table["outcome"][0])
    (['application', 'opened', 'age', 'sex', 'income'], 'repaid')
    """
    rng = np.random.default_rng(seed)
    age = rng.integers(19, 75, n_rows)
    sex = rng.choice(["f", "m"], n_rows)
    job = rng.choice(["skilled", "unskilled", "self-employed", "no job"], n_rows, p=[0.55, 0.22, 0.15, 0.08])
    years = np.minimum(rng.geometric(0.16, n_rows) - 1, age - 18)
    income = np.exp(rng.normal(7.7, 0.35, n_rows) - 0.45 * (job == "no job") + 0.25 * (sex == "m")).round()
    debt = np.where(rng.random(n_rows) < 0.35, 0, rng.lognormal(7.6, 0.9, n_rows)).round()
    amount = (rng.lognormal(8.3, 0.6, n_rows) / 100).round() * 100
    months = rng.choice([12, 24, 36, 48, 60], n_rows)
    late = rng.poisson(0.5 + 0.3 * (job == "unskilled"), n_rows)
    burden = (amount / months + debt / 36) / income
    risk = 7 * burden + 0.9 * np.minimum(late, 4) - 0.09 * np.minimum(years, 12) - 0.02 * age
    risk += 0.6 * (job == "no job") + 0.3 * (job == "unskilled")
    failed = risk + rng.logistic(scale=0.5, size=n_rows) > 1.5
    return {
        "application": np.array([f"A{row:05d}" for row in range(1, n_rows + 1)]),
        "opened": (FIRST_DAY + rng.integers(0, 700, n_rows)).astype(str),
        "age": age,
        "sex": sex,
        "income": _leave_out(income, rng.random(n_rows) < np.where(job == "self-employed", 0.25, 0.06)),
        "debt": _leave_out(debt, rng.random(n_rows) < 0.05),
        "amount": amount,
        "months": months,
        "years_employed": _leave_out(years, (job == "no job") | (rng.random(n_rows) < 0.03)),
        "late_payments": late,
        "job": np.where(rng.random(n_rows) < 0.02, np.array(None, dtype=object), job.astype(object)),
        "housing": rng.choice(["own", "rent", "free"], n_rows, p=[0.4, 0.5, 0.1]),
        "recovered": _leave_out((amount * rng.uniform(0.1, 0.8, n_rows)).round(), ~failed),
        "outcome": np.where(failed, "default", "repaid"),
    }


def _leave_out(values: Cells, missing: NDArray[np.bool_]) -> FloatArray:
    """The numbers, some of them missing."""
    return np.where(missing, np.nan, values.astype(np.float64))
