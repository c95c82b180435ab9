"""Attacks: a dense search inside the certified ball never finds a row with another label.

The label compared is the one that the program computes, not the ideal one: the certificate promises that, too.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import AdditiveEnsemble, CategoryTable, Noise, StepFunction, WeightedVote, certify
from derand.model import Model
from derand.noise import NOISES
from tests.strategies import Problem, problems

KINDS = sorted(NOISES)
JUST_INSIDE = 1 - 1e-9


def directions(n_columns: int, norm: int, rng: np.random.Generator, count: int) -> np.ndarray:
    """Axes, diagonals and random directions, of length 1 in the norm."""
    if not n_columns:
        return np.zeros((1, 0))
    axes = np.concatenate([np.eye(n_columns), -np.eye(n_columns)])
    if n_columns == 1:
        return axes
    diagonals = np.array(list(itertools.product([-1.0, 1.0], repeat=n_columns)))
    drawn = np.concatenate([axes, diagonals, rng.normal(size=(count, n_columns))])
    return drawn / np.linalg.norm(drawn, norm, axis=1, keepdims=True)


def is_inside(step: list[Fraction], radius: float, norm: int) -> bool:
    """Whether the ball, which is open, holds this step; exactly."""
    return sum((abs(part) ** norm for part in step), Fraction(0)) < Fraction(radius) ** norm


def points_inside(
    row: np.ndarray, columns: list[int], noise: Noise, radius: float, rng: np.random.Generator
) -> np.ndarray:
    """Rows inside the ball around a row: a grid of lengths in many directions, up to its very edge."""
    units = np.ones(row.size) if noise.units is None else np.array(noise.units)
    reach = min(radius, 1e3 * noise.magnitude)
    lengths = np.concatenate([[1.0, 1 - 2**-50, 1 - 1e-13, 1 - 1e-11, JUST_INSIDE], np.linspace(0.05, 0.999, 12)])
    steps = np.concatenate([directions(len(columns), noise.norm, rng, 20) * reach * length for length in lengths])
    found = np.tile(row, (len(steps), 1))
    found[:, columns] += steps * units[columns]
    exact_units = [Fraction(float(units[column])) for column in columns]
    keep = []
    for point in found:
        parts = [Fraction(float(point[c])) - Fraction(float(row[c])) for c in columns]
        step = [part / unit for part, unit in zip(parts, exact_units, strict=True)]
        keep.append(radius == math.inf or is_inside(step, radius, noise.norm))
    return found[keep]


def categorical_changes(
    model: Model, row: np.ndarray, budget: int, unseen: bool, rng: np.random.Generator, count: int
) -> list[dict[int, float]]:
    """Changes of at most `budget` categorical features: all of them where few, else some at random."""
    members = model.members if isinstance(model, WeightedVote) else (model,)
    codes: dict[int, set[float]] = {}
    for member in members:
        for table in member.category_tables:
            codes.setdefault(table.feature, set()).update(table.categories.tolist())
    choices = []
    for feature, known in sorted(codes.items()):
        reachable = sorted(known) + ([99.0, math.nan] if unseen or not known else [])
        choices.append([(feature, code) for code in reachable])
    changes = [
        dict(chosen)
        for size in range(min(budget, len(choices)) + 1)
        for features in itertools.combinations(choices, size)
        for chosen in itertools.product(*features)
    ]
    if len(changes) <= count:
        return changes
    return [changes[at] for at in rng.choice(len(changes), count, replace=False)]


def attack(model: Model, rows: np.ndarray, noise: Noise, backend: str, budgets: list[int], unseen: bool) -> None:
    """Search the certified ball of every row for another label."""
    rng = np.random.default_rng(0)
    columns = [column for column in range(model.n_features) if column not in model.categorical_features]
    certificates = certify(model, rows, noise, l0=budgets, unseen=unseen, backend=backend, n_jobs=1)
    for budget, c in zip(budgets, certificates, strict=True):
        for at in np.flatnonzero(c.radius > 0):
            near = points_inside(rows[at], columns, noise, c.radius[at], rng)
            attacked = []
            for change in categorical_changes(model, rows[at], budget, unseen, rng, 8):
                changed = near.copy()
                changed[:, list(change)] = list(change.values())
                attacked.append(changed)
            candidates = np.concatenate(attacked)
            labels = certify(model, candidates, noise, backend=backend, n_jobs=1).label
            flipped = np.flatnonzero(labels != c.label[at])
            assert not flipped.size, f"{candidates[flipped[0]].tolist()} is within {c.radius[at]} of {rows[at]}"


@settings(max_examples=15)
@given(problem=problems(max_terms=3, max_tables=2, max_rows=2, reaches=(1, 2, 5)), unseen=st.booleans())
def test_drawn_models_withstand_the_search(backend: str, problem: Problem, unseen: bool) -> None:
    """Models of one to three features, every noise, with units and categorical changes."""
    attack(problem.model, problem.rows, problem.noise, backend, [0, 1, 2], unseen)


@pytest.mark.long
@settings(max_examples=600)
@given(problem=problems(max_terms=3, max_tables=2, max_rows=2, reaches=(1, 2, 5)), unseen=st.booleans())
def test_drawn_models_withstand_the_search_long(backend: str, problem: Problem, unseen: bool) -> None:
    """The same for many fresh models."""
    attack(problem.model, problem.rows, problem.noise, backend, [0, 1, 2], unseen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [None, (0.3, 7.0)])
def test_half_lines_withstand_the_search(kind: str, units: tuple[float, ...] | None, backend: str) -> None:
    """One stump is certified up to its very edge: the hardest case, because nothing is left in between."""
    noise = NOISES[kind](0.25, units)
    rows = np.array([[-0.2, 0.0], [0.05, 3.0], [0.099999999, 0.0], [0.10000001, 1.0], [0.13, -1.0], [0.9, 0.0]])
    for scores in ([0, 1], [1, 0]):
        model = AdditiveEnsemble([StepFunction(0, [0.1], scores)], 0, 2)
        attack(model, rows, noise, backend, [0], True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [0.004, 0.3])
def test_half_lines_of_many_cells_withstand_the_search(kind: str, width: float, backend: str) -> None:
    """A half-line cut into 300 cells is as tight as one stump and adds up many rounded probabilities."""
    edges = np.arange(300) * width
    scores = np.concatenate([[0], np.sort(np.random.default_rng(1).integers(1, 300, 299)), [400]])
    # class 1 right of the last edge alone, or right of the first one
    for threshold, middle in ((int(scores[-2]), edges[-1]), (0, edges[0])):
        model = AdditiveEnsemble([StepFunction(0, edges, scores)], threshold, 1)
        rows = middle + np.array([[-0.4], [-0.1], [1e-3], [0.3], [0.4]])
        attack(model, rows, NOISES[kind](0.5), backend, [0], True)


@pytest.mark.parametrize("kind", KINDS)
def test_half_lines_with_a_large_support_withstand_the_search(kind: str) -> None:
    """With a million levels the sums are long: the label still holds up to the very edge of the ball."""
    for scores, threshold in (([0, 1, 10**6], 1), ([0, 999_999, 10**6], 0)):
        model = AdditiveEnsemble([StepFunction(0, [0.0, 0.01], scores)], threshold, 1)
        rows = np.array([[-0.3], [-1e-3], [0.012], [0.4]])
        attack(model, rows, NOISES[kind](0.5), "numba", [0], True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("height", [1, 30])
def test_half_lines_among_many_stumps_withstand_the_search(kind: str, height: int, backend: str) -> None:
    """Seventy stumps of which one decides and the others are far from their edges, some not very far."""
    noise, rng = NOISES[kind](0.5), np.random.default_rng(height)
    steps = [StepFunction(f, [0.0], [0, height]) for f in range(1, 70)]
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 100 * height + 1]), *steps], 85 * height, 70)
    rows = np.concatenate([[[-0.45], [-0.01], [0.2], [1.3]], rng.choice([-4.0, -2.0, 3.0], (4, 69))], axis=1)
    certificates = certify(model, rows, noise, backend=backend)
    assert certificates.label.tolist() == [0, 0, 1, 1]
    for at, c_radius in enumerate(certificates.radius.tolist()):
        lengths = [1 - 1e-13, 1 - 1e-11, JUST_INSIDE]
        near = np.repeat(rows[at : at + 1], len(lengths), axis=0)
        near[:, 0] -= np.sign(rows[at, 0]) * c_radius * np.array(lengths)
        assert (certify(model, near, noise, backend=backend).label == certificates.label[at]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_stumps", [2, 70])
@pytest.mark.parametrize("highest", [False, True])
def test_half_lines_at_the_end_of_the_law_withstand_the_search(
    kind: str, n_stumps: int, highest: bool, backend: str
) -> None:
    """One class holds at the lowest (or highest) score alone, where any tilt of the law is a poor one."""
    noise, sign = NOISES[kind](0.5), -1.0 if highest else 1.0
    steps = [StepFunction(f, [0.0], [0, 1]) for f in range(n_stumps)]
    model = AdditiveEnsemble(steps, n_stumps - 1 if highest else 0, n_stumps)
    rows = np.full((3, n_stumps), -30.0 * sign)
    rows[:, 0] = [-0.4, 0.02, 0.3]
    c = certify(model, rows, noise, backend=backend)
    assert c.label.tolist() == [0, 1, 1]
    near = np.repeat(rows, 3, axis=0)
    near[:, 0] -= np.repeat(np.sign(rows[:, 0]) * c.radius, 3) * np.tile([1 - 1e-14, 1 - 1e-12, JUST_INSIDE], 3)
    assert certify(model, near, noise, backend=backend).label.tolist() == [0] * 3 + [1] * 6


@pytest.mark.parametrize("kind", KINDS)
def test_changed_categories_withstand_the_search(kind: str, backend: str) -> None:
    """A tight half-line whose categories lift or lower the score: every change of at most l0 of them is tried."""
    steps = [StepFunction(0, [0.0, 1.0, 2.0], [-3, -1, 1, 3])]
    tables = [CategoryTable(f, [0, 1, 2], [-1, 0, 1], other=-2) for f in (1, 2)]
    rows = np.array([[x, a, b] for x in (-0.7, 0.4, 1.2, 2.6) for a in (0, 2) for b in (1, 99)])
    model = AdditiveEnsemble([*steps, *tables], 0, 3)
    for unseen in (True, False):
        attack(model, rows, NOISES[kind](0.4, (2.0, 1.0, 1.0)), backend, [0, 1, 2], unseen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [(2.0, -1.0, 1.5), (0.1, 0.0, -0.3), (0.1, 0.2, 0.3)])
def test_votes_withstand_the_search(kind: str, weights: tuple[float, ...], backend: str) -> None:
    """A vote's label holds within its radius, with negative and zero weights and with categories."""
    members = [
        AdditiveEnsemble([StepFunction(0, [edge], [0, 2]), CategoryTable(1, [0, 1], [-1, 1], other=0)], threshold, 2)
        for edge, threshold in ((0.0, 0), (0.8, 1), (-0.5, 1))
    ]
    rows = np.array([[x, code] for x in (-1.0, -0.2, 0.3, 0.9, 2.0) for code in (0, 1, 5)])
    attack(WeightedVote(members, weights), rows, NOISES[kind](0.3), backend, [0, 1], True)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if NOISES[kind].is_tight])
def test_the_search_can_find_a_flip(kind: str) -> None:
    """Just beyond the radius of one stump the label is another one: the certificate is tight and the search works."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    noise = NOISES[kind](1.0)
    c = certify(model, [[0.5], [-0.5]], noise)
    beyond = certify(model, [[0.5 - c.radius[0] * (1 + 1e-9)], [-0.5 + c.radius[1] * (1 + 1e-9)]], noise)
    assert beyond.label.tolist() == [0, 1] != c.label.tolist()
