"""Certificates without noise: compared with trying every combination of cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, StepFunction
from experiments.baselines.knapsack import certify_without_noise

NORMS = (0.0, 1.0, 1.5, 2.0, 3.0, np.inf)


def draw_problem(rng: np.random.Generator) -> tuple[AdditiveEnsemble, np.ndarray]:
    """A model of one to four terms, and rows on, beside and between its edges."""
    n_terms = int(rng.integers(1, 5))
    terms = []
    for feature in range(n_terms):
        edges = np.sort(rng.choice(np.arange(-8, 8), size=rng.integers(0, 4), replace=False)) / 4
        terms.append(StepFunction(feature, edges, rng.integers(-9, 10, edges.size + 1)))
    model = AdditiveEnsemble(tuple(terms), int(rng.integers(-8, 9)), n_terms)
    return model, rng.integers(-10, 10, (4, n_terms)) / 4 + rng.choice([0.0, 0.1], (4, n_terms))


def try_all_cells(model: AdditiveEnsemble, row: np.ndarray, p: float) -> float:
    """Least size of a change that flips the label, over all combinations of cells."""
    terms = model.step_functions
    label = model.score(row[None])[0] > model.threshold
    own = [int(np.searchsorted(term.edges, row[term.feature], side="right")) for term in terms]
    best = np.inf
    for cells in itertools.product(*(range(term.edges.size + 1) for term in terms)):
        score = sum(int(term.scores[cell, 0]) for term, cell in zip(terms, cells, strict=True))
        if (score > model.threshold) == label:
            continue
        ends = [np.concatenate([[-np.inf], term.edges, [np.inf]]) for term in terms]
        moves = np.array(
            [
                max(end[cell] - row[term.feature], row[term.feature] - end[cell + 1], 0.0)
                for term, cell, end in zip(terms, cells, ends, strict=True)
            ]
        )
        changed = sum(cell != mine for cell, mine in zip(cells, own, strict=True))
        best = min(best, float(changed) if p == 0 else float(np.linalg.norm(moves, p)))
    return best


@pytest.mark.parametrize("p", NORMS)
def test_the_radius_is_the_least_change(p: float) -> None:
    """Never above the least change that flips the label, and below it by rounding alone, for every norm."""
    rng = np.random.default_rng(int(10 * min(p, 9)))
    for _ in range(60):
        model, rows = draw_problem(rng)
        radius = certify_without_noise(model, rows, p).radius
        truth = np.array([try_all_cells(model, row, p) for row in rows])
        assert (radius <= truth).all()
        np.testing.assert_allclose(radius, truth, rtol=1e-12, atol=1e-15)


def test_labels_are_those_of_the_model() -> None:
    """A row's label is its class without noise; category tables count as they are."""
    terms = (StepFunction(0, np.array([0.0]), np.array([0, 2])), CategoryTable(1, np.array([0.0]), np.array([5]), 0))
    model = AdditiveEnsemble(terms, threshold=5, n_features=2)
    certificates = certify_without_noise(model, [[1.0, 0.0], [1.0, 3.0], [-1.0, 0.0]], p=1)
    assert certificates.label.tolist() == [1, 0, 0]
    assert certificates.radius.round(9).tolist() == [1.0, np.inf, 1.0]


@pytest.mark.parametrize("p", NORMS)
def test_a_constant_model_has_an_infinite_radius(p: float) -> None:
    """Nothing flips a model without edges."""
    assert certify_without_noise(AdditiveEnsemble((), 0, 2), [[1.0, 2.0]], p).radius.tolist() == [np.inf]


@pytest.mark.parametrize("p", [-1.0, 0.5, float("nan")])
def test_other_norms_are_refused(p: float) -> None:
    """Only 0 and numbers from 1 on are norms here."""
    with pytest.raises(ValueError, match="`p` must be"):
        certify_without_noise(AdditiveEnsemble((), 0, 1), [[0.0]], p)


def test_radii_do_not_depend_on_threads() -> None:
    """The blocks of rows are independent."""
    rng = np.random.default_rng(1)
    model = AdditiveEnsemble.from_stumps(
        np.arange(9), rng.uniform(size=9), rng.uniform(size=9), rng.uniform(size=9), n_features=9
    )
    rows = rng.uniform(size=(200, 9))
    one, two = (certify_without_noise(model, rows, 2, n_jobs=jobs).radius for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
