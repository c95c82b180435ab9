"""Random small models of trees, and what any change can do to them, point by point: no search, no bound."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from derand import AdditiveEnsemble, Threat
from derand.model import Decision, TreeTerm
from tests.certificates.test_limits import list_values

CATEGORY = 3
"""The column of a category, after three of numbers."""
N_CODES = 3


def draw_trees(rng: np.random.Generator, n_outputs: int = 1, n_trees: int = 3, depth: int = 3) -> TreeTerm:
    """Trees over three numbers and a category, with edges on quarters; missing values go either way."""
    columns: list[int] = []
    edges: list[float] = []
    children: dict[str, list[int]] = {"left": [], "right": []}
    scores: list[list[int]] = []
    codes: dict[int, list[int]] = {}

    def grow(level: int) -> int:
        at = len(columns)
        columns.append(int(rng.integers(CATEGORY + 1)) if level else int(rng.integers(CATEGORY)))
        edges.append(float(rng.integers(-8, 9)) / 4)
        if columns[at] == CATEGORY:
            codes[at] = sorted(
                rng.choice(np.arange(-1, N_CODES), int(rng.integers(1, N_CODES)), replace=False).tolist()
            )
        for side in children.values():
            side.append(0)
        for side in children.values():
            if level + 1 < depth and rng.random() < 0.8:
                side[at] = grow(level + 1)
            else:
                scores.append(rng.integers(-9, 10, n_outputs).tolist())
                side[at] = ~(len(scores) - 1)
        return at

    roots = [grow(0) for _ in range(n_trees)]
    return TreeTerm(
        roots,
        columns,
        edges,
        **children,
        scores=scores,
        missing_left=rng.random(len(columns)) < 0.5,
        category_splits=sorted(codes),
        left_codes=[codes[at] for at in sorted(codes)],
        categories=[(CATEGORY, N_CODES)] if codes else [],
    )


def draw_model(rng: np.random.Generator, decision: int | Decision | None = None, **more: Any) -> AdditiveEnsemble:
    """A sum of random trees, with a threshold near zero unless another decision is given."""
    n_outputs = decision.n_outputs if isinstance(decision, Decision) else 1
    own = int(rng.integers(-6, 7)) if decision is None else decision
    return AdditiveEnsemble([draw_trees(rng, n_outputs)], own, CATEGORY + 1, **more)


def draw_rows(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Rows off the edges, some with a missing number, some with a category that nobody knows."""
    rows = rng.integers(-10, 11, (n_rows, CATEGORY + 1)) / 4 + 0.1
    rows[:, CATEGORY] = rng.integers(-1, N_CODES, n_rows)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows


def list_edges(model: AdditiveEnsemble) -> dict[int, np.ndarray]:
    """The edges of each column of numbers."""
    return {axis.feature: axis.edges for term in model.terms for axis in term.axes}


def list_changes(model: AdditiveEnsemble, row: np.ndarray, threat: Threat) -> np.ndarray:
    """Every change of a row that matters within its limits; the row itself first. Missing values stay as they are."""
    edges, options = list_edges(model), []
    for column in range(CATEGORY):
        own = float(row[column])
        fixed = np.isnan(own) or column not in edges
        options.append(np.array([own]) if fixed else list_values(threat, column, own, edges[column]))
    points = np.array(list(itertools.product(*options, [row[CATEGORY]])))
    if not threat.l0 or CATEGORY in threat.frozen or CATEGORY not in model.categorical_features:
        return points
    codes = threat.may_become.get(CATEGORY, (*range(N_CODES), *((-1.0, np.nan) if threat.unseen else ())))
    return np.concatenate([points, *(_with_code(points, code) for code in codes)])


def _with_code(points: np.ndarray, code: float) -> np.ndarray:
    moved = points.copy()
    moved[:, CATEGORY] = code
    return moved


def list_boxes(model: AdditiveEnsemble, row: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each cell that numbers can be moved to: its nearest point, and how far away that is, column by column."""
    edges, options = list_edges(model), []
    for column in range(CATEGORY):
        own = float(row[column])
        if np.isnan(own) or column not in edges:
            options.append([own])
            continue
        there = edges[column]
        options.append([own, *there[there > own], *np.nextafter(there[there <= own], -np.inf)])
    for values in itertools.product(*options):
        point = row.copy()
        point[:CATEGORY] = values
        yield point, np.nan_to_num(np.abs(point - row)[:CATEGORY])
