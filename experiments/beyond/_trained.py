"""Trained for a radius: what is certified of it there, beside models that were not, on the same test rows.

Owns the table of `python -m experiments trained`. Must not know how anything is trained, certified or printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from derand.certificates import Certificates
from derand.estimators import AdditiveClassifier, StumpClassifier
from derand.noise import Gaussian
from derand.threat import Threat
from experiments.beyond._shares import Shares, fit_quietly, measure_shares
from experiments.datasets import Dataset, load


@dataclass(frozen=True, slots=True)
class Goal:
    """A dataset with what may change, and the least that is to be certified; deviations are the unit of a column."""

    dataset: str
    norm: float
    radius: float
    certified: float
    natural: float = 0.0
    l0: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the trained classifier, where they are not the defaults."""

    @property
    def threat(self) -> Threat:
        """What may change."""
        return Threat(norm=self.norm, l0=self.l0, unseen=not self.l0)

    @property
    def words(self) -> str:
        """What may change, in short."""
        ball = f"l{self.norm:g} {self.radius:g}" if self.radius else ""
        return " and ".join(filter(None, [ball, f"{self.l0} category" if self.l0 else ""]))


GOALS = (
    Goal("adult", 2, 0.1, 84.0),
    Goal("adult", 2, 0.25, 83.5),
    Goal("adult", 2, 0.5, 82.5),
    Goal("adult", np.inf, 0.1, 84.7, 83.5),
    Goal("adult", np.inf, 0.25, 83.7, 83.5),
    Goal("adult", np.inf, 0.5, 82.6, 83.5),
    Goal("sklearn_breast_cancer", np.inf, 0.25, 82.0),
    Goal("sklearn_breast_cancer", np.inf, 0.5, 70.0),
    Goal("sklearn_breast_cancer", 2, 0.25, 91.0),
    Goal("credit", 2, 0.5, 73.0),
    Goal("adult", 2, 0.0, 76.5, 85.0, l0=1),
)


@dataclass(frozen=True, slots=True)
class Trained:
    """One line of the table."""

    dataset: str
    change: str
    way: str
    shares: Shares
    floor: float
    """The least that the first way is to certify."""
    natural_floor: float


def compare_training(goals: Sequence[Goal] = GOALS) -> Iterator[Trained]:
    """The lines of the table, one after the other: up to four ways for each goal."""
    kept: dict[str, dict[str, Any]] = {}
    for goal in goals:
        data = load(goal.dataset)
        rows, truth = data.X[data.split.test], data.y[data.split.test]
        if goal.dataset not in kept:
            kept[goal.dataset] = {name: _fit(make(data), data) for name, make in UNTRAINED.items()}
        for way, certify in WAYS.items():
            if way == SMOOTHED and not goal.radius:
                continue  # no radius, no noise
            models = kept[goal.dataset]
            if way == TRAINED:
                models = {TRAINED: _fit(make_trained(goal, data), data)}
            shares = measure_shares(truth, certify(models, rows, goal), goal.radius)
            yield Trained(goal.dataset, goal.words, way, shares, goal.certified, goal.natural)


def check_goals(lines: Sequence[Trained]) -> Iterator[tuple[str, bool]]:
    """Each floor in words with its figure, and whether it is met."""
    for line in lines:
        if line.way == TRAINED:
            name, shares = f"{line.dataset}, {line.change}", line.shares
            yield f"{name}: {shares.certified:.2f} certified, {line.floor:g} at least", shares.certified >= line.floor
            if line.natural_floor:
                is_met = shares.natural >= line.natural_floor
                yield f"{name}: {shares.natural:.2f} natural, {line.natural_floor:g} at least", is_met


def make_trained(goal: Goal, data: Dataset) -> AdditiveClassifier:
    """The classifier that is trained for a goal."""
    return AdditiveClassifier(
        radius=goal.radius,
        threat=goal.threat,
        scaling="standard",
        categorical_features=list(data.categorical),
        **goal.options,
    )


def _fit(classifier: Any, data: Dataset) -> Any:
    return fit_quietly(classifier, data.X[data.split.train], data.y[data.split.train])


def _make_plain(data: Dataset) -> AdditiveClassifier:
    return AdditiveClassifier(radius=0, scaling="standard", categorical_features=list(data.categorical))


def _make_stumps(data: Dataset) -> StumpClassifier:
    return StumpClassifier(scaling="standard", categorical_features=list(data.categorical))


def _certify_trained(models: Mapping[str, Any], rows: Any, goal: Goal) -> Certificates:
    found: Certificates = models[TRAINED].certify(rows)
    return found


def _certify_smoothed(models: Mapping[str, Any], rows: Any, goal: Goal) -> Certificates:
    found: Certificates = models["plain"].certify(rows, threat=goal.threat, noise=Gaussian(goal.radius / 2))
    return found


def _certify_unsmoothed(models: Mapping[str, Any], rows: Any, goal: Goal) -> Certificates:
    found: Certificates = models["plain"].certify(rows, threat=goal.threat, noise="none")
    return found


def _certify_stumps(models: Mapping[str, Any], rows: Any, goal: Goal) -> Certificates:
    found: Certificates = models["stumps"].certify(rows, threat=goal.threat, rule="mean")
    return found


TRAINED, SMOOTHED = "trained for it", "radius=0, same noise"
UNTRAINED: Mapping[str, Callable[[Dataset], Any]] = {"plain": _make_plain, "stumps": _make_stumps}
WAYS: Mapping[str, Callable[[Mapping[str, Any], Any, Goal], Certificates]] = {
    TRAINED: _certify_trained,
    "radius=0, no noise": _certify_unsmoothed,
    SMOOTHED: _certify_smoothed,
    "StumpClassifier": _certify_stumps,
}
