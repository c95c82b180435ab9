"""Small reports of every kind, on random loans: what `scripts/screenshots.py --parts` takes pictures of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from derand import AdditiveClassifier, AdditiveRegressor, Report, StumpClassifier, Threat, dates_to_numbers

N_ROWS, N_TRAINING = 1200, 600


def make_loans(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray[Any, np.dtype[np.float64]]]:
    """Loans with numbers, counts, categories, gaps and one long name, and how risky each one is."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N_ROWS),
            "income": rng.lognormal(8, 0.5, N_ROWS).round(2),
            "purpose": rng.choice(["car", "house", "studies", "other"], N_ROWS, p=[0.4, 0.3, 0.2, 0.1]),
            "debt": rng.normal(5000, 2000, N_ROWS).round(),
            "late payments": rng.poisson(1.0, N_ROWS),
            "months since the last change of employer, as stated": rng.integers(0, 240, N_ROWS),
            "owns a home": rng.integers(0, 2, N_ROWS),
        }
    )
    frame.loc[rng.random(N_ROWS) < 0.1, "debt"] = np.nan
    frame["applied"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, N_ROWS), "D")
    risk = frame["late payments"] + (frame["purpose"] == "car") - frame["age"] / 40 - frame["income"] / 4000
    risk += frame["debt"].fillna(7000) / 4000 + 0.6 * rng.normal(size=N_ROWS)
    return dates_to_numbers(frame), risk.to_numpy()


def report_on_loans(clf: Any, several: bool = False, **options: Any) -> Report:
    """Of a classifier that is trained on some loans, on the others."""
    frame, risk = make_loans()
    y = np.where(risk > 1.2, "default", "repaid")
    if several:
        y = np.where(risk < -0.3, "repaid early", y)
    clf.fit(frame[:N_TRAINING], y[:N_TRAINING])
    clf.encoding_ = clf.encoding_.with_dates(["applied"])
    rows = frame[N_TRAINING:].reset_index(drop=True)
    return Report(clf, rows, y[N_TRAINING:], subgroups=["purpose", "age"], n_explained=3, **options)


def report_on_numbers() -> Report:
    """Of a regressor."""
    frame, risk = make_loans()
    model = AdditiveRegressor(radius=0.2, regularization=1.0).fit(frame[:N_TRAINING], 100 * risk[:N_TRAINING])
    model.encoding_ = model.encoding_.with_dates(["applied"])
    return Report(model, frame[N_TRAINING:].reset_index(drop=True), 100 * risk[N_TRAINING:], radius=0.2)


def beside_another() -> Report:
    """Two models on the same rows."""
    frame, risk = make_loans()
    other = StumpClassifier(noise="gaussian:0.25", scaling="standard", class_weight="balanced")
    other.fit(frame[:N_TRAINING], np.where(risk > 1.2, "default", "repaid")[:N_TRAINING])
    return report_on_loans(
        AdditiveClassifier(radius=0.2, regularization=1.0), compare=other, compare_name="stumps.json"
    )


def within_limits() -> Report:
    """What can be flipped where limits alone say what may change."""
    threat = Threat(norm=None, limits={"income": "10%", "debt": 500.0}, l0=0)
    return report_on_loans(AdditiveClassifier(radius=0.1, regularization=1.0), threat=threat, title="Loans of 2024")


REPORTS: Mapping[str, Callable[[], Any]] = {
    "vote": lambda: report_on_loans(StumpClassifier(noise="gaussian:0.25", scaling="standard")),
    "mean": lambda: report_on_loans(AdditiveClassifier(radius=0.2, regularization=1.0)),
    "limits": within_limits,
    "compare": beside_another,
    "classes": lambda: report_on_loans(
        StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean"), several=True
    ),
    "numbers": report_on_numbers,
}
