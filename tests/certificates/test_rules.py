"""Rules: whatever the registry holds keeps what a rule promises."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import AdditiveEnsemble, CategoryTable, Noise, StepFunction, WeightedVote, certify
from derand.certificates import RULES, find_labels
from derand.model import Model
from tests.certificates.searching import draw_case
from tests.strategies import Problem, problems

NAMES = sorted(RULES)


def move_inside(row: np.ndarray, radius: float, noise: Noise) -> np.ndarray:
    """The row moved along each numerical column by 99 % of the radius, both ways."""
    units = np.ones(row.size) if noise.units is None else np.array(noise.units)
    steps = 0.99 * min(radius, 1e3 * noise.magnitude) * np.concatenate([np.diag(units), -np.diag(units)])
    return np.asarray(row + steps)


@pytest.mark.parametrize("rule", NAMES)
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


@pytest.mark.parametrize("rule", NAMES)
@settings(max_examples=40)
@given(problem=problems(max_tables=0))
def test_the_label_holds_within_the_radius(rule: str, problem: Problem) -> None:
    """A step of 99 % of the radius along each column keeps the label."""
    check_moves(rule, problem.model, problem.rows, problem.noise)


def check_moves(rule: str, model: Model, rows: np.ndarray, noise: Noise) -> None:
    found = certify(model, rows, noise, rule=rule)
    for row, label, radius in zip(rows, found.label, found.radius, strict=True):
        if 0 < radius < np.inf:
            assert (certify(model, move_inside(row, radius, noise), noise, rule=rule).label == label).all()


@pytest.mark.parametrize("rule", NAMES)
@pytest.mark.parametrize("l0", [1, 2])
def test_the_label_holds_under_changes_of_categories(rule: str, l0: int) -> None:
    """Every change of at most l0 categories, together with a move inside the radius, keeps the label."""
    tables = [CategoryTable(at, [0, 1, 2], [-2, 0, 2], other=-3) for at in (1, 2, 3)]
    model = AdditiveEnsemble([StepFunction(0, [-1.0, 0.0, 1.0], [-6, -2, 3, 7]), *tables], 0, 4)
    rows = np.array([[x, a, b, 1.0] for x in (-2.5, -0.5, 0.7, 3.0) for a in (0.0, 2.0) for b in (1.0, 2.0)])
    found = certify(model, rows, "gaussian:0.4", l0=l0, rule=rule)
    checked = 0
    for row, label, radius in zip(rows, found.label, found.radius, strict=True):
        if radius > 0:
            step = 0.99 * min(radius, 20.0)
            for columns in combinations((1, 2, 3), l0):
                for code in (0.0, 1.0, 2.0, np.nan):
                    changed = np.tile(row, (2, 1))
                    changed[:, list(columns)] = code
                    changed[:, 0] += [-step, step]
                    assert (certify(model, changed, "gaussian:0.4", rule=rule).label == label).all()
                    checked += 1
    assert checked > 30


@pytest.mark.parametrize("rule", NAMES)
def test_the_label_holds_for_every_model_within_the_score_error(rule: str) -> None:
    """Models whose scores lie up to the error higher or lower have the same label inside the radius."""
    rng = np.random.default_rng(2)
    steps = [StepFunction(at, np.sort(rng.normal(size=2)), rng.integers(-9, 10, 3)) for at in range(3)]
    rows = rng.normal(0.0, 1.5, (40, 3))
    found = certify(AdditiveEnsemble(steps, 1, 3, score_error=2.0), rows, "laplace:0.4", rule=rule)
    assert (found.radius > 0).any()
    for shift in (-2, 0, 2):  # a score two higher everywhere is a threshold two lower
        check = AdditiveEnsemble(steps, 1 - shift, 3)
        for row, label, radius in zip(rows, found.label, found.radius, strict=True):
            if radius > 0:
                moved = move_inside(row, radius, found.noise)  # type: ignore[arg-type]
                assert (certify(check, moved, "laplace:0.4", rule=rule).label == label).all()


@pytest.mark.parametrize("rule", NAMES)
def test_votes_hold_within_their_radius(rule: str) -> None:
    """A vote of members bounded by the rule, one of them counted in reverse."""
    rng = np.random.default_rng(3)
    members = [
        AdditiveEnsemble([StepFunction(at, rng.normal(size=1), rng.integers(-5, 6, 2)) for at in range(2)], 0, 2)
        for _ in range(4)
    ]
    vote = WeightedVote(members, [1.0, 0.8, -0.5, 0.3])
    rows = rng.normal(0.0, 2.0, (30, 2))
    for noise in ("gaussian:0.5", "uniform:1"):
        found = certify(vote, rows, noise, rule=rule)
        assert found.rule == rule
        check_moves(rule, vote, rows, found.noise)  # type: ignore[arg-type]


def test_labels_alone_are_those_of_certificates() -> None:
    """What `predict` answers is what is certified, by both rules, on rows that lie near ties, with budgets beside."""
    rng = np.random.default_rng(12)
    for _ in range(15):
        case = draw_case(rng)
        for rule in ("vote", "mean"):
            for threat in (None, case.threat):
                found = certify(case.model, case.rows, case.noise, rule=rule, threat=threat)
                assert np.array_equal(find_labels(case.model, case.rows, case.noise, rule=rule), found.label)
