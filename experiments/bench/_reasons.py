"""Reasons and promises of adult and credit: how long they take, how many columns are enough, whom sex alone flips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from derand.estimators import AdditiveClassifier, from_model
from experiments.bench._measure import Figures, prefix, time_best
from experiments.datasets import find_file

PROTECTED = {"adult": ("income", "sex"), "credit": ("credit", "personal_status")}
_VERDICTS = ("proven", "counterexample", "undecided")


def bench_reasons(datasets: tuple[str, ...] = tuple(PROTECTED)) -> Figures:
    """Reasons of all rows and promises over the whole domain: our own model, plain and smoothed, and an EBM.

    Returns
    -------
    dict
        For each table and model: microseconds per row of reasons, the median of how many columns are enough, seconds of
        `prove` with the table, whether the protected column alone flips an answer (0 never, 1 a pair of rows does, 2
        undecided), and between which shares of the rows of the table, in per cent.
    """
    results: Figures = {}
    for name in datasets:
        target, protected = PROTECTED[name]
        table = pd.read_csv(find_file(name), skipinitialspace=True)
        answers = table.pop(target)
        for kind, model in train_models(table, answers).items():
            results |= prefix(f"{name}_{kind}", measure(model, table, protected))
    return results


def train_models(table: pd.DataFrame, answers: pd.Series) -> dict[str, Any]:
    """The models that are asked; the EBM where interpret is installed."""
    models: dict[str, Any] = {
        "plain": AdditiveClassifier(radius=0).fit(table, answers),
        "smoothed": AdditiveClassifier(radius=0.25).fit(table, answers),
    }
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        return models
    ebm = ExplainableBoostingClassifier(interactions=0, random_state=0).fit(table, answers)
    return models | {"ebm": from_model(ebm, table)}


def measure(model: Any, table: pd.DataFrame, protected: str) -> Figures:
    """The figures of one model."""
    rows = model._encode_rows(table)
    model.reasons(table[:8])  # compiles
    seconds, found = time_best(lambda: model.reasons(table), repeats=3)
    reading, _ = time_best(lambda: model._encode_rows(table), repeats=3)
    proving, promises = time_best(lambda: model.prove(table, protected=protected), repeats=1)
    first = promises.promises[0]
    return {
        "rows": len(rows),
        "microseconds_per_row": 1e6 * (seconds - reading) / len(rows),
        "median_columns": float(np.median(found.size[found.size >= 0])),
        "undecided_rows": int((found.size < 0).sum()),
        "seconds_to_prove": proving,
        "protected_verdict": _VERDICTS.index(first.verdict),
        "lowest_share": 100 * first.share[0],
        "highest_share": 100 * first.share[1],
    }
