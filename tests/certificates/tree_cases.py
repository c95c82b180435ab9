"""Small random sums of trees with all that a search can meet, and threats against them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from derand import Threat
from derand._core.arrays import BoolArray, FloatArray
from derand.model import AdditiveEnsemble, CategoryTable, Contrast, GridTerm, StepFunction, Term, Threshold, TreeTerm
from derand.perturbation import Perturbation, resolve

N_CODES = 4


class Case(NamedTuple):
    """A sum of trees, rows with their labels, and what may change."""

    contrast: Contrast
    rows: FloatArray
    is_one: BoolArray
    perturbation: Perturbation
    radius: FloatArray | None
    model: AdditiveEnsemble


def draw_case(rng: np.random.Generator, norms: tuple[float | None, ...] = (None, np.inf, 1, 2, 0)) -> Case:
    """A case; its rows stand on edges and beside them as often as elsewhere."""
    n_numbers, n_categories = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    kinds = rng.permutation([False] * n_numbers + [True] * n_categories)
    trees = draw_trees(rng, kinds)
    terms: list[Term] = [trees]
    n_features = kinds.size
    for draw in (_draw_step, _draw_table, _draw_grid):
        if rng.random() < 0.2:
            terms.append(draw(rng, n_features))
            n_features = max(terms[-1].features) + 1
    n_features += 1
    model = AdditiveEnsemble(terms, 0, n_features, score_error=float(rng.choice([0.0, 0.0, 0.75])))
    rows = _draw_rows(rng, model)
    scores = model.score(rows)
    model = AdditiveEnsemble(terms, Threshold(int(np.median(scores))), n_features, score_error=model.score_error)
    is_one = scores > (model.threshold or 0)
    norm = norms[int(rng.integers(len(norms)))]
    perturbation = resolve(draw_threat(rng, model, norm), model, None)
    in_ball = norm is not None and rng.random() < 0.5
    radius = rng.choice([0.3, 0.7, 1.1, 1.6], len(rows)) if in_ball else None
    if norm == 0 and in_ball:
        radius = rng.choice([0.0, 1.0, 2.0, 3.0], len(rows))
    (contrast,) = model.contrasts()
    return Case(contrast, rows, is_one, perturbation, radius, model)


def draw_trees(rng: np.random.Generator, kinds: BoolArray) -> TreeTerm:
    """Trees over the first columns; categories are those of `kinds`."""
    columns, edges, left, right, missing, scores, roots = [], [], [], [], [], [], []
    codes: dict[int, list[int]] = {}

    def grow(depth: int, *, is_root: bool = False) -> int:
        if depth == 0 or (not is_root and rng.random() < 0.25):
            scores.append(int(rng.integers(-9, 10)))
            return -len(scores)
        at = len(columns)
        column = int(rng.integers(kinds.size))
        columns.append(column)
        edges.append(float(rng.integers(-3, 4)) / 2)
        missing.append(bool(rng.integers(2)))
        left.append(0)
        right.append(0)
        if kinds[column]:
            codes[at] = np.flatnonzero(rng.random(N_CODES + 1) < 0.5).tolist()
            codes[at] = sorted(one if one < N_CODES else -1 for one in codes[at])
        left[at], right[at] = grow(depth - 1), grow(depth - 1)
        return at

    for _ in range(int(rng.integers(1, 6))):
        roots.append(grow(int(rng.integers(1, 4)), is_root=True))
    asked = set(columns)
    sizes = [(column, N_CODES) for column in np.flatnonzero(kinds).tolist() if column in asked]
    refused = [column for column in sorted(asked) if not kinds[column] and rng.random() < 0.3]
    magnitudes = [] if rng.random() < 0.5 else np.abs(scores) + rng.integers(0, 3, len(scores))
    return TreeTerm(
        roots,
        columns,
        edges,
        left,
        right,
        scores,
        missing,
        sorted(codes),
        [codes[at] for at in sorted(codes)],
        sizes,
        refused,
        float(rng.choice([0.0, 0.0, 2.0**-20, 2.0**-5])),
        magnitudes,
    )


def _draw_step(rng: np.random.Generator, feature: int) -> Term:
    edges = np.unique(rng.integers(-3, 4, 3)) / 2
    return StepFunction(feature, edges, rng.integers(-5, 6, edges.size + 1), int(rng.integers(-5, 6)))


def _draw_table(rng: np.random.Generator, feature: int) -> Term:
    return CategoryTable(feature, [0, 1, 2, 3], rng.integers(-4, 5, 4), int(rng.integers(-4, 5)))


def _draw_grid(rng: np.random.Generator, feature: int) -> Term:
    edges = [np.unique(rng.integers(-3, 4, 2)) / 2 for _ in range(2)]
    takes = [bool(rng.integers(2)), False]
    shape = [part.size + 1 + cell for part, cell in zip(edges, takes, strict=True)]
    return GridTerm((feature, feature + 1), edges, rng.integers(-5, 6, shape), takes)


def _draw_rows(rng: np.random.Generator, model: AdditiveEnsemble, n_rows: int = 4) -> FloatArray:
    rows = rng.integers(-4, 5, (n_rows, model.n_features)) / 2
    beside = rng.integers(0, 4, rows.shape)
    rows = np.where(beside == 1, np.nextafter(rows, -np.inf), np.where(beside == 2, rows + 0.2, rows))
    for column in range(model.n_features):
        if column in model.categorical_features:
            rows[:, column] = rng.choice([0.0, 1.0, 2.0, 3.0, -1.0, 7.0, np.nan], n_rows)
        elif column in model.missing_features:
            rows[rng.random(n_rows) < 0.2, column] = np.nan
    return rows


def draw_threat(rng: np.random.Generator, model: AdditiveEnsemble, norm: float | None) -> Threat:
    """Limits, steps, frozen columns, budgets: some of each."""
    given: dict[str, Any] = {"norm": norm, "l0": int(rng.integers(0, 3)), "unseen": bool(rng.integers(2))}
    columns = list(range(model.n_features))
    frozen = [column for column in columns if rng.random() < 0.1]
    limits: dict[Any, Any] = {}
    if norm is None or rng.random() < 0.4:
        limits["*"] = [0.5, "60%", (0.3, 1.0), 2.0, 1e9][int(rng.integers(5))]
    given["limits"] = limits
    numbers = [one for one in model.numerical_features if one not in frozen]
    given["steps"] = {one: float(rng.choice([0.4, 0.75, 1.0])) for one in numbers if rng.random() < 0.25}
    if model.missing_features and rng.random() < 0.4:
        given["missing"] = int(rng.integers(1, 3))
    choices = {
        one: [[0.0, np.nan], [1.0, -1.0, 3.0], [2.0]][int(rng.integers(3))]
        for one in model.categorical_features
        if one not in frozen and rng.random() < 0.3
    }
    given["may_become"] = choices
    if norm is not None and rng.random() < 0.5:
        given["units"] = rng.choice([0.5, 1.0, 3.0], model.n_features).tolist()
    return Threat(frozen=frozen, **given)
