"""Rules: whatever the registry holds keeps what a rule promises."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand import certify
from derand.certificates import RULES
from tests.strategies import Problem, problems


@pytest.mark.parametrize("rule", sorted(RULES))
@given(problem=problems(), l0=st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_a_rule_bounds_every_row_under_every_budget(rule: str, problem: Problem, l0: list[int]) -> None:
    """One label for all budgets, radii from 0 on that do not grow with the budget, nothing missing."""
    found = certify(problem.model, problem.rows, problem.noise, l0=sorted(l0), rule=rule)
    labels = [certificates.label.tolist() for certificates in found]
    assert all(label == labels[0] for label in labels)
    assert set(np.ravel(labels)) <= {0, 1}
    for certificates in found:
        assert certificates.rule == rule
        assert (certificates.radius >= 0).all()
    for fewer, more in pairwise(found):
        assert (more.radius <= fewer.radius + 1e-9 * np.maximum(problem.noise.magnitude, 1)).all()


@pytest.mark.parametrize("rule", sorted(RULES))
@given(problem=problems(max_tables=0))
def test_the_label_holds_within_the_radius(rule: str, problem: Problem) -> None:
    """A step of 99 % of the radius along each column keeps the label."""
    found = certify(problem.model, problem.rows, problem.noise, rule=rule)
    units = np.ones(problem.model.n_features) if problem.noise.units is None else np.array(problem.noise.units)
    for row, label, radius in zip(problem.rows, found.label, found.radius, strict=True):
        if 0 < radius < np.inf:
            moves = 0.99 * radius * np.concatenate([np.diag(units), -np.diag(units)])
            moved = certify(problem.model, row + moves, problem.noise, rule=rule)
            assert (moved.label == label).all()
