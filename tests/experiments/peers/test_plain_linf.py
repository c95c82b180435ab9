"""The plain linf radius: against every combination of cells, and against the cheapest change by sorting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from derand import AdditiveEnsemble, StepFunction
from derand._core.arrays import FloatArray
from experiments.baselines.knapsack import certify_without_noise
from experiments.peers import find_linf_radii


def draw_model(rng: np.random.Generator, score_error: float = 0.0) -> AdditiveEnsemble:
    """Four terms of up to four cells."""
    terms = []
    for feature in range(4):
        n_edges = int(rng.integers(1, 4))
        edges = np.sort(rng.choice(np.arange(-8, 9), n_edges, replace=False)) / 4
        terms.append(StepFunction(feature, edges, rng.integers(-9, 10, n_edges + 1)))
    return AdditiveEnsemble(terms, int(rng.integers(-5, 6)), 4, score_error=score_error)


def search_all_cells(model: AdditiveEnsemble, row: FloatArray, label: bool, shift: int) -> float:
    """The nearest combination of cells whose score, shifted, has the other label."""
    assert model.threshold is not None
    best = np.inf
    for cells in itertools.product(*(range(term.edges.size + 1) for term in model.step_functions)):
        score, distance = shift, 0.0
        for term, cell in zip(model.step_functions, cells, strict=True):
            score += int(term.cell_scores[cell])
            low = term.edges[cell - 1] if cell else -np.inf
            high = term.edges[cell] if cell < term.edges.size else np.inf
            distance = max(distance, low - row[term.feature], row[term.feature] - high)
        if (score > model.threshold) != label:
            best = min(best, distance)
    return best


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("score_error", [0.0, 1.5])
def test_radii_are_those_of_the_nearest_cells(seed: int, score_error: float) -> None:
    """Of the models within the error, `radius` is the smallest and `flipped` the largest; some rows lie on edges."""
    rng = np.random.default_rng(seed)
    model, rows = draw_model(rng, score_error), rng.integers(-10, 11, (6, 4)) / 4
    found = find_linf_radii(model, rows)
    width = int(np.ceil(score_error))
    for number, row in enumerate(rows):
        label = bool(found.label[number])
        near, far = (-width, width) if label else (width, -width)
        assert found.radius[number] == search_all_cells(model, row, label, near)
        assert found.flipped[number] == search_all_cells(model, row, label, far)


@pytest.mark.parametrize("seed", range(5))
def test_radii_equal_the_cheapest_change(seed: int) -> None:
    """The other baseline for models without noise finds the same labels and radii."""
    rng = np.random.default_rng(seed)
    model, rows = draw_model(rng), rng.normal(size=(50, 4))
    found, other = find_linf_radii(model, rows), certify_without_noise(model, rows, np.inf)
    assert (found.label == other.label).all()
    np.testing.assert_allclose(found.radius, other.radius, rtol=1e-12)
    assert (found.radius == found.flipped).all()


def test_what_cannot_flip_has_no_end() -> None:
    """A row whose label no change flips, and a model without a decision."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [1, 2])], 0, 1)
    assert find_linf_radii(model, [[5.0]]).radius.tolist() == [np.inf]
    with pytest.raises(ValueError, match="has no threshold"):
        find_linf_radii(AdditiveEnsemble(model.terms, None, 1), [[5.0]])
