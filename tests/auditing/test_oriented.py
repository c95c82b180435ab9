"""What a claim comes down to: the error bands are the program's own, and changes are at their worst."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from derand import AdditiveEnsemble, StepFunction
from derand.auditing._oriented import SumFacts, bound_decrease
from derand.certificates.bounds.packing import pose_problem
from derand.certificates.rules.mean import mean_error
from tests.auditing.drawing import draw_ensemble


def list_models() -> list[AdditiveEnsemble]:
    rng = np.random.default_rng(0)
    small = [draw_ensemble(rng, int(rng.integers(1, 6)), {0} if k % 3 else set(), k % 2 == 0) for k in range(20)]
    many = [StepFunction(at, [0.0, 1.0], [0, at + 1, 3]) for at in range(80)]
    fine = [StepFunction(at, [0.0, 0.5, 2.0], [0, 10**9 + at, 5 * 10**8, 7]) for at in range(3)]
    return [*small, AdditiveEnsemble(many, 100, n_features=80), AdditiveEnsemble(fine, 10**9, n_features=3)]


@pytest.mark.parametrize("at", range(22))
def test_bands_and_grids_are_those_of_the_program(at: int) -> None:
    """Written down again from the kernels' contract: the slack of computed labels must not be smaller than theirs."""
    model = list_models()[at]
    (contrast,) = model.contrasts()
    problem = pose_problem(model)
    facts = SumFacts(contrast)
    assert facts.coarse_grid[1] == problem.distribution.error
    assert facts.band == pytest.approx(problem.distribution.tie_band(), rel=1e-12)
    assert facts.mean_error == pytest.approx(mean_error(problem.terms) * problem.terms.step, rel=1e-6)


def test_the_worst_change_of_categories_by_enumeration() -> None:
    """Few columns are tried out; many go by the largest falls: both are the same."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        options = [rng.integers(-9, 10, rng.integers(0, 4)).tolist() for _ in range(rng.integers(0, 6))]
        budget = int(rng.integers(0, 4))
        every = itertools.product(*([0, *falls] for falls in options))
        expected = max(sum(choice) for choice in every if sum(fall != 0 for fall in choice) <= budget)
        assert bound_decrease(options, budget) == expected
        padded = [*options, *([[0]] * 20)]  # too many to be tried out
        assert bound_decrease(padded, budget) == expected
