"""Made-up credit applications as they come out of a bank's system: a raw table, with all that is wrong with one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derand._core.arrays import Cells, FloatArray

FIRST_DAY = np.datetime64("2023-01-02")


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
