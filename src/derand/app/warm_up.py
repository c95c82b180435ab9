"""Warming up: all that is compiled, compiled once, so that an image or a machine has it on disk before it is used.

Owns the small models and rows that reach every compiled function. Must not know the command line or how it is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from derand import certificates, estimators
from derand._core.arrays import FloatArray
from derand.app import Summary
from derand.kernels import compiling
from derand.model import (
    AdditiveEnsemble,
    Argmax,
    CategoryTable,
    Decision,
    GridTerm,
    StepFunction,
    Term,
    Threshold,
    TreeTerm,
    Value,
)
from derand.noise import NOISES
from derand.threat import Threat

_NORMS = (None, 0, 1, 2, np.inf)
_NO_LIMITS: dict[int | str, str | float | tuple[float, float]] = {}
_LIMITS: dict[int | str, str | float | tuple[float, float]] = dict.fromkeys(range(8), 0.5)


def run_warm_up(tell: Callable[[int, int, str], None] | None = None) -> Summary:
    """Train, certify and attack small models of every kind, so that later processes find all functions compiled.

    Parameters
    ----------
    tell : callable or None
        Is told how many steps are done, of how many, and what is next.

    Returns
    -------
    dict
        `folders`: where compiled code lies; empty where none can be kept.

    Examples
    --------
    >>> list(STEPS)[:2]
    ['votes', 'expected scores']
    """
    steps: list[Summary] = []
    compiling.EARLY.end()
    for done, (name, work) in enumerate(STEPS.items()):
        if tell is not None:
            tell(done, len(STEPS), name)
        start, before = time.process_time(), compiling.count_compiled()
        work()
        taken = time.process_time() - start
        steps.append({"name": name, "seconds": taken, "compiled": compiling.count_compiled() - before})
    return {
        "steps": steps,
        "seconds": sum(step["seconds"] for step in steps),
        "compiled": sum(step["compiled"] for step in steps),
        "folders": compiling.list_folders(),
    }


def _draw_rows(n_columns: int, n_rows: int = 20) -> FloatArray:
    return np.random.default_rng(0).normal(size=(n_rows, n_columns))


def _make_model(n_terms: int, n_edges: int, n_tables: int = 0) -> AdditiveEnsemble:
    """So many step functions, and after them tables of three categories."""
    rng = np.random.default_rng(1)
    terms: list[Term] = [
        StepFunction(column, np.sort(rng.normal(size=n_edges)), rng.integers(0, 1000, n_edges + 1))
        for column in range(n_terms)
    ]
    terms += [CategoryTable(n_terms + column, np.array([0.0, 1.0]), np.array([3, 9]), 1) for column in range(n_tables)]
    return AdditiveEnsemble(terms, 500 * n_terms, n_terms + n_tables)


def _make_grids(edges: list[float], n_terms: int = 2) -> AdditiveEnsemble:
    """So many terms of two columns each, all with these edges."""
    size = len(edges) + 1
    scores = np.arange(size**2).reshape(size, size) * 7 % 10
    axes = np.array(edges), np.array(edges)
    terms = [GridTerm((2 * at, 2 * at + 1), axes, scores) for at in range(n_terms)]
    return AdditiveEnsemble(terms, 9 * n_terms // 2, 2 * n_terms)


_MODELS = ((8, 3), (20, 40), (300, 1), (300, 3))
"""Few terms and many, of two cells, of more and of very many: each goes its own way."""


def _certify_votes() -> None:
    for size in _MODELS:
        for noise in NOISES:
            certificates.certify(_make_model(*size), _draw_rows(size[0]), f"{noise}:0.5")
    model, rows = _make_model(8, 3, 2), np.hstack([_draw_rows(8), np.zeros((20, 2))])
    certificates.certify(model, rows, "gaussian:0.5", l0=[0, 1])
    certificates.distribution(model, rows, "gaussian:0.5")


def _certify_means() -> None:
    model, rows = _make_model(8, 3), _draw_rows(8)
    for noise in ("none", *(f"{name}:0.5" for name in NOISES)):
        for norm in _NORMS:
            for limits in (_NO_LIMITS, _LIMITS):
                if norm is not None or limits:
                    certificates.certify(model, rows, noise, rule="mean", threat=Threat(norm=norm, limits=limits))
    threat = Threat(norm=None, limits=dict.fromkeys(range(8), 2.0), steps=dict.fromkeys(range(8), 0.5))
    for noise in ("none", "gaussian:0.5"):
        certificates.certify(model, rows, noise, rule="mean", threat=threat)


def _certify_grids() -> None:
    rows = _draw_rows(4)
    for model in (_make_grids([0.0]), _make_grids([-0.5, 0.0, 0.5])):
        certificates.certify(model, rows, "gaussian:0.5")
        for noise in ("none", *(f"{name}:0.5" for name in NOISES)):
            for norm in (1, 2, np.inf):
                certificates.certify(model, rows, noise, rule="mean", threat=Threat(norm=norm))
    certificates.certify(_make_grids([0.0], 9), _draw_rows(18), "gaussian:0.5", rule="mean")  # by a table of jumps


def _make_trees(decision: Decision, n_trees: int = 8) -> AdditiveEnsemble:
    """Balanced trees of seven splits each over six numbers and a category."""
    rng, n_splits = np.random.default_rng(2), 7 * n_trees
    at, tree = np.arange(n_splits) % 7, np.arange(n_splits) // 7
    children = [np.where(at < 3, 7 * tree + 2 * at + side, ~(8 * tree + 2 * (at - 3) + side - 1)) for side in (1, 2)]
    columns = rng.integers(0, 7, n_splits)
    columns[::7] = tree[::7] % 6  # each column somewhere
    columns[-1] = 6
    coded = np.flatnonzero(columns == 6)
    trees = TreeTerm(
        np.arange(n_trees) * 7,
        columns,
        rng.normal(size=n_splits),
        left=children[0],
        right=children[1],
        scores=rng.integers(-50, 51, (8 * n_trees, decision.n_outputs)),
        missing_left=rng.random(n_splits) < 0.5,
        category_splits=coded,
        left_codes=(np.array([0]),) * coded.size,
        categories=((6, 3),),
    )
    return AdditiveEnsemble([trees], decision, 7)


def _certify_trees() -> None:
    rows = np.hstack([_draw_rows(6), np.ones((20, 1))])
    for norm in _NORMS:
        threat = Threat(norm=norm, limits={"*": 1.0}, l0=1, missing=1)
        for decision in (Threshold(0), Argmax((0, 1, 2))):
            certificates.certify(_make_trees(decision), rows, None, rule="mean", threat=threat)
        number = _make_trees(Value(0))
        certificates.certify_interval(number, rows, None, None if norm is None else 1.0, rule="mean", threat=threat)
    steps = Threat(norm=None, limits={"*": 2.0}, steps=dict.fromkeys(range(6), 0.5))
    certificates.certify(_make_trees(Threshold(0)), rows, None, rule="mean", threat=steps)


def _train() -> None:
    X = np.asfortranarray(_draw_rows(6, 300))  # as columns of a frame lie
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.int64)
    classes = y + (X[:, 3] > 0)
    for trainer in estimators.TRAINERS.values():
        trainer().fit(X, y).certify(X[:20])
    for groups in (None, [[1, 2]]):
        for target in (y, classes):
            estimators.AdditiveClassifier(radius=0.1, groups=groups).fit(X, target).certify(X[:20])
    for name in NOISES:
        estimators.RobTreeBoostClassifier(noise=f"{name}:0.5", n_estimators=2).fit(X, y)


def _train_wide() -> None:
    """Many columns and many classes, each column alone and in pairs: margins by how steep leads are."""
    X = _draw_rows(16, 300)
    pairs = [[at, at + 1] for at in range(0, 16, 2)]
    classes = np.argmax(X[:, :8] + 0.1 * X[:, 8:], axis=1)
    for groups in (None, pairs):
        estimators.AdditiveClassifier(radius=0.1, groups=groups, regularization=1.0).fit(X, classes)
    two = classes > 3
    estimators.AdditiveClassifier(radius=0.1, groups=pairs, regularization=1.0, rule="mean").fit(X, two)


def _train_regressors() -> None:
    X = _draw_rows(4, 300)
    for trainer in estimators.REGRESSORS.values():
        regressor = trainer().fit(X, X[:, 0] + X[:, 1] ** 2)
        regressor.certify_interval(X[:20], 0.1)


STEPS: Mapping[str, Callable[[], None]] = {
    "votes": _certify_votes,
    "expected scores": _certify_means,
    "terms of several columns": _certify_grids,
    "trees that join many columns": _certify_trees,
    "training": _train,
    "training of many classes and groups": _train_wide,
    "training for numbers": _train_regressors,
}
