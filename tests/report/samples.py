"""Rows, models and unusual reports, and how a test finds a curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from derand import (
    AdditiveClassifier,
    AdditiveEnsemble,
    CategoryTable,
    StepFunction,
    StumpClassifier,
    Threat,
    WeightedVote,
)
from derand.report import Report, ReportSummary


def make_rows(n_rows: int = 80, n_columns: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    return X, np.where(X[:, 0] + 0.7 * X[:, 1] > 0, "yes", "no")


def make_mixed(n_rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n_rows).round(1),
            "job": rng.choice(["clerk", "smith", "cook"], n_rows),
            "town": rng.choice(["Málaga", "Łódź", "東京"], n_rows),
        }
    )
    y = (frame["age"] / 12 + 2 * (frame["job"] == "smith") + rng.normal(size=n_rows) > 4).to_numpy().astype(int)
    return frame, y


def make_vote() -> WeightedVote:
    members = [
        AdditiveEnsemble.from_stumps([0], [0.1], [0.1], [0.9], n_features=3),
        AdditiveEnsemble.from_stumps([1], [0.0], [0.3], [0.8], n_features=3),
    ]
    return WeightedVote([members[0], members[1], members[0]], [1.0, 0.7, -0.2])


def series(summary: ReportSummary, key: str) -> list[float]:
    (found,) = [one["values"] for one in summary["accuracy"]["series"] if one["key"] == key]
    return found


def report_on_words(**options: Any) -> Report:
    frame, target = make_mixed()
    words = frame[["job", "town"]]
    labels = {"y": target} if options else {}
    return Report(StumpClassifier().fit(words, target), words, **labels, **options)


def report_on_codes() -> Report:
    X, y = make_rows()
    terms = (CategoryTable(0, [0, 1, 5], [-3, 3, 1], 0), StepFunction(1, [0.0], [-2, 3]))
    rows = np.column_stack([np.tile([0, 1, 5, 7, np.nan], 16), X[:, 1]])
    return Report(AdditiveEnsemble(terms, 0, 2), rows, (y == "yes").astype(int), noise="laplace:1")


def report_on_numbers(case: str) -> Report:
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    some = {"no labels": (X,), "one class": (X[y == "yes"], y[y == "yes"]), "one row": (X[:1], y[:1])}
    if case == "no explanations":
        return Report(clf, X, y, n_explained=0, n_shapes=0, max_rows=1)
    return Report(clf, *some[case], subgroups=0)


def report_on_bare(model: AdditiveEnsemble | WeightedVote, **options: Any) -> Report:
    X, y = make_rows()
    return Report(model, X, (y == "yes").astype(int), noise="gaussian:0.25", **options)


def report_under(*, labels: bool = True, **options: Any) -> Report:
    """A report on numbers and categories under a rule and a threat."""
    frame, target = make_mixed()
    clf = StumpClassifier(noise="gaussian:0.5", scaling="standard", class_weight="balanced").fit(frame, target)
    return Report(clf, frame, target if labels else None, subgroups="job", **options)


def report_on_additive(subgroups: str | None = "job", **parameters: Any) -> Report:
    """A report on a model that was trained for its certificates."""
    frame, target = make_mixed()
    clf = AdditiveClassifier(**{"regularization": 1.0, "radius": 0.25, **parameters}).fit(frame, target)
    return Report(clf, frame, target, X_train=frame, y_train=target, subgroups=subgroups, n_explained=2)


def report_on_nothing() -> Report:
    """A model that was trained for a radius and reads no column, as none says anything."""
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 3 > 0
    return Report(AdditiveClassifier(regularization=1000.0, radius=0.5).fit(X, y), X, y)


LIMITS = Threat(norm=None, limits={"age": "20%"}, frozen=["town"], l0=1)

CASES: dict[str, tuple[Callable[[], Report], str]] = {
    "no labels": (lambda: report_on_numbers("no labels"), "No labels were given"),
    "one class": (lambda: report_on_numbers("one class"), "All rows have the label “yes”"),
    "one row": (lambda: report_on_numbers("one row"), "All rows have the label"),
    "no explanations": (lambda: report_on_numbers("no explanations"), "Shapes are shown for the 0"),
    "categories alone": (lambda: report_on_words(subgroups="job"), "The model reads no numbers"),
    "categories alone, no labels": (report_on_words, "The model reads no numbers"),
    "codes": (report_on_codes, "No column was chosen"),
    "a vote": (lambda: report_on_bare(make_vote()), "weighted vote"),
    "a constant model": (lambda: report_on_bare(AdditiveEnsemble((), 0, 3)), "The model reads no numbers"),
    "a model that learnt nothing": (report_on_nothing, "The model reads no numbers"),
    "the expected score": (lambda: report_under(rule="mean"), "there are no failure masses"),
    "the largest change": (
        lambda: report_under(rule="mean", threat=Threat(norm=np.inf, units=(5.0, 1.0, 1.0))),
        "there are no failure masses",
    ),
    "no noise": (lambda: report_under(rule="mean", noise="none", n_explained=2), "Without noise a score is one number"),
    "any columns": (
        lambda: report_under(labels=False, threat=Threat(norm=0, frozen=["job"], l0=1)),
        "No labels were given",
    ),
    "limits alone": (lambda: report_under(threat=LIMITS), "Limits alone say what may change"),
    "limits alone, no noise": (
        lambda: report_under(labels=False, rule="mean", noise="none", threat=LIMITS),
        "Limits alone say what may change",
    ),
    "limits alone, a vote": (
        lambda: report_on_bare(make_vote(), threat=Threat(norm=None, limits={"*": 0.2})),
        "Limits alone say what may change",
    ),
    "an additive model": (lambda: report_on_additive(norm=np.inf, noise="gaussian:0.1"), "there are no failure masses"),
    "an additive model without noise": (
        lambda: report_on_additive(radius=0),
        "Without noise a score is one number",
    ),
    "an additive model for a threat": (
        lambda: report_on_additive(noise="none", l0=1, frozen=["town"]),
        "Without noise a score is one number",
    ),
    "an additive model for limits": (
        lambda: report_on_additive(threat=Threat(norm=None, limits={"age": 2.0})),
        "Limits alone say what may change",
    ),
    "an additive vote": (lambda: report_on_additive(rule="vote", subgroups=None), "No column was chosen"),
}
"""Reports on unusual input, and what each says that it leaves out."""
