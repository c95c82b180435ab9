"""A twin on a coarser grid: the same answers far from ties, the same object where the grid is coarse already."""

from __future__ import annotations

import numpy as np

from derand import AdditiveEnsemble, CategoryTable, StepFunction, WeightedVote
from derand.model import coarsen


def draw_model(rng: np.random.Generator) -> AdditiveEnsemble:
    steps = [
        StepFunction(at, np.sort(rng.normal(size=3)), rng.integers(-(10**6), 10**6, size=4), missing=12345)
        for at in range(5)
    ]
    return AdditiveEnsemble([*steps, CategoryTable(5, [0, 1], [-(10**5), 10**5], other=7)], 1000, 6)


def test_a_twin_answers_alike_but_near_the_threshold() -> None:
    """Scores of the twin are those of the model by the grid, up to half a step per term."""
    rng = np.random.default_rng(0)
    model = draw_model(rng)
    twin = coarsen(model, 500)
    rows = np.column_stack([rng.normal(size=(400, 5)), rng.choice([0.0, 1.0, np.nan], 400)])
    rows[::7, 2] = np.nan
    span = sum(int(np.ptp(term.cell_scores)) for term in model.terms if term.axes)
    grid = -(-span // 500)
    assert np.abs(twin.score(rows) - model.score(rows) / grid).max() <= 3
    clear = np.abs(model.score(rows) - 1000) > 5 * grid
    assert ((twin.score(rows) > twin.threshold) == (model.score(rows) > 1000))[clear].all()


def test_a_coarse_model_is_its_own_twin() -> None:
    """Votes, too; else all of their members become coarser."""
    rng = np.random.default_rng(1)
    small = AdditiveEnsemble([StepFunction(0, [0.0], [0, 5])], 2, 6)
    assert coarsen(small, 100) is small
    vote = WeightedVote([small, small], [1.0, 0.5])
    assert coarsen(vote, 100) is vote
    mixed = coarsen(WeightedVote([small, draw_model(rng)], [1.0, 0.5]), 100)
    assert mixed.members[0] is small
    assert sum(int(np.ptp(term.cell_scores)) for term in mixed.members[1].terms if term.axes) <= 110
    assert mixed.weights.tolist() == [1.0, 0.5]
