"""Certificates under attack: every trainer, both rules, many threats; what is certified beside what was found to flip.

Owns the table of `python -m experiments attacks`. Must not know how anything is certified or searched for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derand.certificates import Attacks, Certificates
from derand.estimators import TRAINERS, CertifiedClassifier
from derand.threat import Threat
from experiments.datasets import Dataset, load

ROWS = 10_000
DATASETS = ("sklearn_breast_cancer", "diabetes", "credit")
DELETED = 0.1
"""Share of numbers that is deleted of the first dataset, so that models know missing ones."""
WAYS: dict[str, dict[str, Any]] = {
    "vote": {"rule": "vote"},
    "mean": {"rule": "mean"},
    "unsmoothed": {"rule": "mean", "noise": "none"},
}
THREATS: dict[str, Threat] = {
    "l1": Threat(norm=1),
    "l2": Threat(norm=2),
    "linf": Threat(norm=np.inf),
    "columns": Threat(norm=0),
    "frozen, linf": Threat(norm=np.inf, frozen=(0, 1)),
    "limits, l2": Threat(norm=2, limits={"*": "20%"}),
    "limits alone": Threat(norm=None, limits={"*": "10%"}),
    "steps, l1": Threat(norm=1, steps={0: 0.5}),
    "missing, l2": Threat(norm=2, missing=1),
    "categories, l2": Threat(norm=2, l0=1),
    "limits and categories": Threat(norm=None, limits={"*": "5%"}, l0=1),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "additive": {"noise": "gaussian:0.25", "regularization": 0.01, "n_cuts": 16, "class_weight": "balanced"},
    "stumps": {"noise": "gaussian:0.25", "scaling": "standard", "class_weight": "balanced"},
    "tree-boost": {"noise": "gaussian:0.25", "scaling": "standard", "class_weight": "balanced"},
    "ada-boost": {"noise": "gaussian:0.25", "scaling": "standard", "class_weight": "balanced", "n_estimators": 3},
}
SHARES = {"ada-boost": 0.25}
"""Of the rows that others get: a vote of several members takes a search of its own for each."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, over all datasets."""

    model: str
    way: str
    threat: str
    rows: int
    flips: int
    ratio: float
    """Median of attacked by certified, over rows where both are positive; NaN without any."""
    least: float
    """The least such ratio: 1 or larger, unless something is wrong."""
    inside: int
    """Flips inside what is certified: must be 0."""
    seconds: float
    """Per row, of the search alone."""


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A fitted classifier with rows to attack."""

    dataset: str
    model: str
    classifier: CertifiedClassifier
    rows: Any


def compare_attacks(rows: int = ROWS, datasets: tuple[str, ...] = DATASETS) -> Iterator[Line]:
    """The lines of the table, one after the other.

    Parameters
    ----------
    rows : int
        How many are attacked in all, at least.
    datasets : tuple of str
        The first one loses a share of its numbers.
    """
    cases = [_fit(name, model, name == datasets[0]) for name in datasets for model in TRAINERS]
    settings = [
        (model, way, threat, [case for case in cases if case.model == model and _applies(case, THREATS[threat])])
        for model in TRAINERS
        for way in WAYS
        for threat in THREATS
    ]
    each = rows / sum(len(chosen) * SHARES.get(model, 1.0) for model, *_, chosen in settings)
    for model, way, threat, chosen in settings:
        if chosen:
            yield _measure(model, way, threat, chosen, math.ceil(each * SHARES.get(model, 1.0)))


def _fit(name: str, model: str, with_gaps: bool) -> _Case:
    data: Dataset = load(name)
    train, test = data.split
    codes = [column for column in range(data.X.shape[1]) if column not in data.numerical]
    X = np.array(data.X, dtype=object if codes else np.float64)
    if with_gaps:
        X[np.random.default_rng(0).random(X.shape) < DELETED] = np.nan
    classifier = TRAINERS[model](categorical_features=codes, **SETTINGS[model])
    return _Case(name, model, classifier.fit(X[train], data.y[train]), X[test])


def _applies(case: _Case, threat: Threat) -> bool:
    """Whether the model has what the threat is about."""
    model = case.classifier.ensemble_
    has_codes = bool(model.categorical_features) or not threat.l0
    codes = set(model.categorical_features)
    named = {*threat.frozen, *threat.steps}
    return has_codes and not named & codes and (bool(model.missing_features) or not threat.missing_budget)


def _measure(model: str, way: str, threat: str, cases: list[_Case], each: int) -> Line:
    ratios, seconds = [np.empty(0)], 0.0
    n_rows = flips = inside = 0
    for case in cases:
        rows = case.rows[np.arange(each) % len(case.rows)]
        asked = replace(THREATS[threat], units=case.classifier.units)
        certificates = case.classifier.certify(rows, threat=asked, **WAYS[way])
        start = time.perf_counter()
        found = case.classifier.attack(rows, threat=asked, **WAYS[way])
        seconds += time.perf_counter() - start
        n_rows, flips = n_rows + len(rows), flips + int(found.found.sum())
        inside += int(found.find_inside(certificates).sum())
        ratios.append(compare_sizes(certificates, found))
    every = np.concatenate(ratios)
    return Line(
        model,
        way,
        threat,
        n_rows,
        flips,
        float(np.median(every)) if every.size else float("nan"),
        float(every.min()) if every.size else float("nan"),
        inside,
        seconds / n_rows,
    )


def compare_sizes(certificates: Certificates, attacks: Attacks) -> Any:
    """Attacked by certified, for rows where both are positive and finite."""
    both = attacks.found & (certificates.radius > 0) & np.isfinite(certificates.radius) & (attacks.distance > 0)
    return attacks.distance[both] / certificates.radius[both]
