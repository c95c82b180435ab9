"""Small random models whose whole domain can be listed, and rows on their edges."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from derand import AdditiveEnsemble, CategoryTable, GridTerm, StepFunction
from derand._core.arrays import FloatArray
from derand.certificates.statements.domain import Domain, make_domain
from derand.model import Argmax, Term
from tests.certificates.trees import draw_trees


class Case(NamedTuple):
    """A model, its domain, and every row that can matter in it."""

    model: AdditiveEnsemble
    domain: Domain
    values: list[FloatArray]
    """Of each column, all values that can matter."""
    rows: FloatArray


def draw_case(seed: int, *, n_classes: int = 2, error: float = 0.0, grids: bool = True, most: int = 5) -> Case:
    """A model of a few columns with whole edges and scores, so that ties are frequent."""
    rng = np.random.default_rng(seed)
    n_outputs = 1 if n_classes == 2 else n_classes
    terms: list[Term] = []
    n_features, size = 0, int(rng.integers(1, most + 1))
    while n_features < size:
        kind = rng.integers(0, 4)
        if kind == 3 and (not grids or n_features + 2 > size):
            kind = 0
        if kind == 3:
            edges = [draw_edges(rng, 2), draw_edges(rng, 2)]
            missing = (bool(rng.integers(2)), False)
            shape = [one.size + 1 + gap for one, gap in zip(edges, missing, strict=True)]
            scores = rng.integers(-4, 5, size=(*shape, n_outputs))
            terms.append(GridTerm((n_features, n_features + 1), edges, scores, missing))
            n_features += 2
        elif kind == 2:
            codes = np.arange(rng.integers(1, 4))
            scores = rng.integers(-4, 5, size=(codes.size, n_outputs))
            other = tuple(rng.integers(-4, 5, n_outputs).tolist())
            terms.append(CategoryTable(n_features, codes, scores, other if n_outputs > 1 else other[0]))
            n_features += 1
        else:
            edges = draw_edges(rng, 3)
            scores = rng.integers(-4, 5, size=(edges.size + 1, n_outputs))
            gap = tuple(rng.integers(-4, 5, n_outputs).tolist()) if rng.integers(2) else None
            terms.append(StepFunction(n_features, edges, scores, gap if n_outputs > 1 or gap is None else gap[0]))
            n_features += 1
    decision = int(rng.integers(-4, 5)) if n_classes == 2 else Argmax(rng.integers(-2, 3, n_classes).tolist())
    return draw_domain(rng, AdditiveEnsemble(terms, decision, n_features, levels=1, score_error=error))


def draw_tree_case(seed: int, *, n_classes: int = 2, error: float = 0.0) -> Case:
    """A model of a few small trees over three numbers and a category."""
    rng = np.random.default_rng(seed)
    trees = draw_trees(rng, 1 if n_classes == 2 else n_classes, n_trees=int(rng.integers(1, 4)), depth=2)
    decision = int(rng.integers(-4, 5)) if n_classes == 2 else Argmax(rng.integers(-2, 3, n_classes).tolist())
    return draw_domain(rng, AdditiveEnsemble([trees], decision, 4, levels=1, score_error=error))


def draw_domain(rng: np.random.Generator, model: AdditiveEnsemble) -> Case:
    """A domain of a model, and every row that can matter in it."""
    n_features = model.n_features
    unseen, missing = bool(rng.integers(4) == 0), bool(rng.integers(4) == 0)
    numbers = [at for at in range(n_features) if at not in model.categorical_features]
    ranges = {at: tuple(np.sort(rng.integers(-5, 6, 2)).astype(float)) for at in numbers if rng.integers(3) == 0}
    whole = [at for at in numbers if rng.integers(3) == 0]
    domain = make_domain(model, ranges, whole=whole, unseen=unseen, missing=missing)
    values = []
    for at in range(n_features):
        own = list_values(model, at, ranges.get(at, (-9.0, 9.0)), is_whole=at in whole)
        own += [-7.0] * (unseen and at in model.categorical_features)
        may_miss = at in model.categorical_features or at in model.missing_features
        own += [np.nan] * (missing and may_miss)
        values.append(np.array(own))
    rows = np.array(list(itertools.product(*values))).reshape(-1, n_features)
    return Case(model, domain, values, rows)


def draw_edges(rng: np.random.Generator, most: int) -> FloatArray:
    """Whole numbers and halves."""
    return np.unique(rng.integers(-8, 9, rng.integers(1, most + 1)) / 2)


def list_values(model: AdditiveEnsemble, at: int, ends: tuple[float, float], *, is_whole: bool) -> list[float]:
    """Values of a column: its codes; or its edges, what lies just below and between, the ends of its range."""
    term = next((term for term in model.terms if at in term.features), None)
    if term is None:
        return [float(np.ceil(ends[0]))]
    if at in term.category_codes:
        return term.category_codes[at].tolist()
    edges = next(axis.edges for axis in term.axes if axis.feature == at)
    found = {*ends, *edges.tolist(), *(edges - 0.25).tolist(), *np.arange(-9.0, 10.0).tolist()}
    kept = sorted(one for one in found if ends[0] <= one <= ends[1] and (one.is_integer() or not is_whole))
    cells = np.searchsorted(edges, kept, side="right")
    return [kept[int(np.flatnonzero(cells == cell)[-1])] for cell in np.unique(cells)]


def is_sure(case: Case, rows: FloatArray) -> FloatArray:
    """The label of each row that every model within the error has, (n_rows,); -1 where they differ."""
    model, error = case.model, int(np.ceil(case.model.score_error))
    scores = np.asarray(model.score(rows), dtype=np.int64)
    if model.n_classes == 2:
        above = scores - int(model.threshold or 0)
        return np.where(above > error, 1, np.where(above <= -error, 0, -1))
    totals = scores + np.array(model.offsets)
    labels = totals.argmax(axis=1)
    if not error:
        return labels
    error = int(np.ceil(2 * model.score_error))
    for row, label in enumerate(labels.tolist()):
        for other in range(totals.shape[1]):
            lead = totals[row, label] - totals[row, other]
            if (other < label and lead <= error) or (other > label and lead < error):
                labels[row] = -1
    return labels
