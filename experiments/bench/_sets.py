"""Prediction sets under attack: coverage and width over many splits, beside plain sets and widened ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from derand import AdditiveClassifier, AdditiveEnsemble, AdditiveRegressor, ConformalPredictor, Threat, attack_interval
from derand._core.arrays import BoolArray, FloatArray
from derand.model import Value
from experiments.bench._measure import Figures, prefix
from experiments.datasets import find_file

COVERAGE = 0.9
_MOST_ROWS = 3_000


class Case(NamedTuple):
    """A table, its answers, and within what its rows are attacked."""

    table: pd.DataFrame
    answers: pd.Series
    limits: Mapping[int | str, Any]


def list_cases() -> dict[str, Case]:
    """Two tables of classes and one of numbers; percentages and one-sided limits among them."""
    adult = pd.read_csv(find_file("adult"), skipinitialspace=True)
    credit = pd.read_csv(find_file("credit"), skipinitialspace=True)
    diabetes, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return {
        "adult": Case(adult, adult.pop("income"), {"age": 2, "hours-per-week": (0, 5), "capital-gain": "10%"}),
        "credit": Case(credit, credit.pop("credit"), {"months": (0, 6), "credit_amount": "20%"}),
        "diabetes": Case(diabetes, progress, {"bmi": "5%", "bp": (0, 5), "s5": "5%"}),
    }


def bench_sets(n_splits: int = 200, tables: tuple[str, ...] = ("adult", "credit", "diabetes")) -> Figures:
    """Sets calibrated on worst cases, of rows as they are and as attacked, over random splits; three tables.

    Parameters
    ----------
    n_splits : int
        Into calibration and new rows; the model is trained once, on a third of the table.
    tables : tuple of str

    Returns
    -------
    dict
        For each table: rows, the coverage that is promised and by how much it may be exceeded on average, the mean
        coverage of attacked and of clean rows with its standard error, that of plain sets under attack, and the mean
        number of classes in a set, or width of an interval: robust, plain, and plain ones widened by the largest change
        of any row.
    """
    results: Figures = {}
    for name, case in list_cases().items():
        if name in tables:
            results |= prefix(name, measure(case, n_splits))
    return results


def measure(case: Case, n_splits: int) -> Figures:
    """The figures of one table."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(case.table))[: max(len(case.table) // 3, 1) + _MOST_ROWS]
    trained, pool = order[: len(case.table) // 3], order[len(case.table) // 3 :]
    is_number = case.answers.dtype == float
    trainer = AdditiveRegressor(radius=0, regularization=1.0) if is_number else AdditiveClassifier(radius=0)
    model = trainer.fit(case.table.iloc[trained], case.answers.iloc[trained])
    table, answers = case.table.iloc[pool], case.answers.iloc[pool].to_numpy()
    attacked, largest = attack_rows(model, table, answers, case.limits)
    unmoved: dict[int | str, Any] = dict.fromkeys(case.limits, 0)
    threat, nothing = (Threat(norm=None, limits=one) for one in (case.limits, unmoved))
    found: dict[str, list[float]] = {}
    for _ in range(n_splits):
        parts = np.split(rng.permutation(len(table)), [len(table) // 2])
        robust, plain = (
            ConformalPredictor(model, coverage=COVERAGE, threat=one).calibrate(table.iloc[parts[0]], answers[parts[0]])
            for one in (threat, nothing)
        )
        widened = ConformalPredictor(model, coverage=COVERAGE, threat=nothing)
        widened.quantile_ = plain.quantile_ + largest
        truth = answers[parts[1]]
        for kind, sets in (("robust", robust), ("plain", plain), ("widened", widened)):
            for rows, source in (("attacked", attacked), ("clean", table)):
                inside = sets.predict_set(source.iloc[parts[1]])
                found.setdefault(f"{kind}_{rows}_coverage", []).append(float(cover(model, inside, truth).mean()))
            width = inside[:, 1] - inside[:, 0] if is_number else inside.sum(axis=1)
            found.setdefault(f"{kind}_width", []).append(float(width.mean()))
    means: Figures = {name: float(np.mean(own)) for name, own in found.items()}
    error = float(np.std(found["robust_attacked_coverage"]) / np.sqrt(n_splits))
    calibrated = len(table) // 2
    return {"rows": calibrated, "promised": COVERAGE, "excess": 1 / (calibrated + 1), "standard_error": error, **means}


def cover(model: Any, inside: BoolArray | FloatArray, truth: Any) -> BoolArray:
    """Which rows have their true answer in their set."""
    if isinstance(model, AdditiveRegressor):
        return np.asarray((truth >= inside[:, 0]) & (truth <= inside[:, 1]))
    return np.asarray(inside[np.arange(len(truth)), np.searchsorted(model.classes_, truth)])


def attack_rows(
    model: Any, table: pd.DataFrame, answers: Any, limits: Mapping[int | str, Any]
) -> tuple[pd.DataFrame, float]:
    """Every row changed to where its true answer fits worst, of what a search finds; the largest change of a score."""
    names, encoded = list(table.columns), model._encode_rows(table)
    is_number, score = isinstance(model, AdditiveRegressor), model.ensemble_
    if not is_number:
        score = AdditiveEnsemble(score.terms, Value(0), score.n_features, score.levels)
    threat = Threat(norm=None, limits={names.index(column): limit for column, limit in limits.items()})
    found = attack_interval(score, encoded, None, None, rule="mean", threat=threat)
    if is_number:
        takes_low = np.abs(found.low - answers) > np.abs(found.high - answers)
    else:
        takes_low = np.asarray(answers == model.classes_[1])
    worst = np.where(takes_low[:, None], np.asarray(found.low_rows), np.asarray(found.high_rows))
    return model.decode_rows(worst), float((found.high - found.low).max())
