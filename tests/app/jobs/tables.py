"""A table with every sort of column, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd


def make_frame(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """A mixed table with every sort of column, of which x, job and floor say something about the label."""
    rng = np.random.default_rng(seed)
    x, job = rng.normal(size=n_rows), rng.choice(["clerk", "cook", "driver"], size=n_rows)
    floor = rng.integers(1, 4, size=n_rows)
    return pd.DataFrame(
        {
            "x": x,
            "job": job,
            "floor": floor,
            "member": rng.choice([True, False], size=n_rows),
            "same": 3,
            "word": "one",
            "name": [f"person {row}" for row in range(n_rows)],
            "day": pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "gap": "",
            "label": np.where(x + (job == "cook") + 0.3 * floor > 0.8, "yes", "no"),
        }
    )


def make_loans(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """A table of which 12 rows in 100 have the rare outcome, a deviation away from the others in two columns."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 25 < 3
    age, debt = rng.normal(45, 12, n_rows) - 8 * rare, rng.normal(3, 1, n_rows) + 0.7 * rare
    outcome = np.where(rare, "default", "repaid")
    return pd.DataFrame({"age": age.round(1), "debt": debt.round(3), "outcome": outcome})


def make_prices(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """A mixed table whose target, price, is a number that x and job say something about."""
    rng = np.random.default_rng(seed)
    x, job = rng.normal(size=n_rows), rng.choice(["clerk", "cook", "driver"], size=n_rows)
    price = np.round(100 + 20 * x + 10 * (job == "cook") + rng.normal(size=n_rows), 2)
    return pd.DataFrame({"x": x, "job": job, "same": 3, "price": price})


def make_applications(n_rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """A mixed table with 12 per cent of defaults, missing numbers, an identifier and a date."""
    rng = np.random.default_rng(seed)
    age, job = rng.integers(20, 75, n_rows).astype(float), rng.choice(["cook", "clerk", "nurse"], n_rows)
    income = np.exp(rng.normal(8, 0.6, n_rows)).round(2)
    score = 0.05 * age - 2 * np.log(income) + (job == "cook") + 0.3 * rng.normal(size=n_rows)
    frame = pd.DataFrame(
        {
            "id": [f"L{row:05d}" for row in range(n_rows)],
            "opened": pd.date_range("2020-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "age": age,
            "income": income,
            "job": job,
            "outcome": np.where(score > np.quantile(score, 0.88), "default", "paid"),
        }
    )
    frame.loc[rng.random(n_rows) < 0.08, "income"] = np.nan
    return frame


def edit_nothing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def with_cell(column: str, rows: Any, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def edit(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype({column: object})
        frame.loc[rows, column] = value
        return frame

    return edit
