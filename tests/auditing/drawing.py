"""Random models, noises and threats of every kind, small enough to prove every claim about them in milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    Laplace,
    Noise,
    StepFunction,
    Threat,
    Uniform,
    WeightedVote,
)
from derand.model import Argmax


@dataclass(frozen=True)
class Drawn:
    """What `certify` takes."""

    model: AdditiveEnsemble | WeightedVote
    rows: np.ndarray
    noise: Noise | None
    rule: str
    threat: Threat


def draw_ensemble(rng: np.random.Generator, n_features: int, categorical: set[int], has_gaps: bool) -> AdditiveEnsemble:
    terms: list[StepFunction | CategoryTable] = []
    for feature in range(n_features):
        if feature in categorical:
            count = int(rng.integers(1, 4))
            missing = int(rng.integers(-9, 9)) if rng.random() < 0.3 else None
            scores, other = rng.integers(-9, 10, count), int(rng.integers(-9, 10))
            terms.append(CategoryTable(feature, np.arange(count), scores, other, missing=missing))
            continue
        edges = np.unique(np.round(rng.normal(size=rng.integers(1, 5)), rng.integers(1, 3)))
        scores = rng.integers(-20, 21, edges.size + 1) * int(rng.choice([1, 3, 1000]))
        terms.append(StepFunction(feature, edges, scores, missing=int(rng.integers(-20, 20)) if has_gaps else None))
    middle = sum(float(term.cell_scores.mean()) for term in terms)
    return AdditiveEnsemble(
        terms,
        threshold=int(middle + rng.integers(-5, 6)),
        n_features=n_features,
        levels=100,
        score_error=float(rng.choice([0, 0, 0.5, 2.0])),
    )


def draw(seed: int) -> Drawn:
    """Something to certify; the threat may not fit the model, which `certify` then refuses."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, 6))
    n_categorical = int(rng.integers(0, n_features)) if rng.random() < 0.5 else 0
    categorical = set(rng.choice(n_features, size=n_categorical, replace=False).tolist())
    has_gaps = bool(rng.random() < 0.3)
    units = tuple(rng.uniform(0.3, 3, n_features).tolist())
    noise = [None, Gaussian(0.4), Uniform(0.7), Laplace(0.3), Gaussian(0.3, units)][rng.integers(5)]
    model: AdditiveEnsemble | WeightedVote = draw_ensemble(rng, n_features, categorical, has_gaps)
    if rng.random() < 0.2:
        members = [draw_ensemble(rng, n_features, categorical, has_gaps) for _ in range(rng.integers(1, 4))]
        model = WeightedVote(members, rng.choice([1, 0.5, -0.7, 2], size=len(members)))
    rows = np.round(rng.normal(size=(3, n_features)), int(rng.integers(1, 4)))
    rows[:, sorted(categorical)] = rng.integers(-1, 4, (3, len(categorical)))
    if has_gaps:
        rows = np.where(rng.random(rows.shape) < 0.2, np.nan, rows)
    rule = "mean" if noise is None or rng.random() < 0.5 else "vote"
    return Drawn(model, rows, noise, rule, draw_threat(rng, n_features, categorical, has_gaps))


def draw_classes(seed: int) -> Drawn:
    """The same with a model of three to five classes, which reads the same columns."""
    drawn, rng = draw(seed), np.random.default_rng((seed, 1))
    n_classes = int(rng.integers(3, 6))
    base, terms = drawn.model.members[0], []

    def draw_scores(*shape: int) -> np.ndarray:
        return rng.integers(-9, 10, (*shape, n_classes)) * int(rng.choice([1, 1, 3, 1000]))

    for one in base.terms:
        missing = None if one.missing is None else tuple(draw_scores().tolist())
        if one.axes:
            edges = one.axes[0].edges
            terms.append(StepFunction(one.features[0], edges, draw_scores(edges.size + 1), missing))
        else:
            other = tuple(draw_scores().tolist())
            terms.append(CategoryTable(one.features[0], one.codes, draw_scores(one.codes.size), other, missing))
    offsets = Argmax(rng.integers(-4, 5, n_classes).tolist())
    model = AdditiveEnsemble(terms, offsets, base.n_features, score_error=float(rng.choice([0, 0, 0.5])))
    return replace(drawn, model=model)


def draw_threat(rng: np.random.Generator, n_features: int, categorical: set[int], has_gaps: bool) -> Threat:
    norm = [0, 1, 2, math.inf, None][rng.integers(5)]
    numbers = [feature for feature in range(n_features) if feature not in categorical]
    asked: dict[str, Any] = {"l0": int(rng.integers(0, 3)), "unseen": bool(rng.random() < 0.5)}
    if norm is None or rng.random() < 0.4:
        asked["limits"] = {
            at: (float(rng.uniform(0, 0.5)), float(rng.uniform(0, 0.8))) for at in numbers if rng.random() < 0.7
        }
    if rng.random() < 0.3:
        asked["steps"] = {at: float(rng.choice([0.1, 0.5, 1, 0.03])) for at in numbers if rng.random() < 0.5}
    if rng.random() < 0.3:
        named = {*asked.get("limits", {}), *asked.get("steps", {})}
        asked["frozen"] = tuple(at for at in range(n_features) if rng.random() < 0.3 and at not in named)
    if rng.random() < 0.3:
        asked["units"] = tuple(rng.uniform(0.3, 3, n_features).tolist())
    if has_gaps and rng.random() < 0.5:
        asked["missing"] = int(rng.integers(1, 3))
    return Threat(norm=norm, **asked)
