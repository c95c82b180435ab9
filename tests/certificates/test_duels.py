"""Several classes: duels against enumerated laws, Monte Carlo, attacks, and two classes as they always were."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from derand import AdditiveEnsemble, CategoryTable, Gaussian, Laplace, StepFunction, Threat, Uniform, attack, certify
from derand.certificates import find_labels, find_rule
from derand.certificates.bounds.pairwise import (
    Tournament,
    bound_classes,
    build_pair,
    expect_classes,
    label_classes,
    weigh_classes,
)
from derand.certificates.rules.base import Query
from derand.kernels import load_backend
from derand.model import Argmax
from derand.noise import Noise
from derand.perturbation import resolve

NOISES: list[Noise] = [Gaussian(0.4), Uniform(0.9), Laplace(0.5)]


def ask(noise: Noise, rule: str, perturbation: Any = None) -> Query:
    return Query(noise, find_rule(rule), perturbation, load_backend("numba"))


def draw_model(rng: np.random.Generator, n_classes: int, n_numbers: int = 3, *, with_gaps: bool = False) -> Any:
    """A model of several classes: step functions of some numbers, and one category."""
    terms: list[Any] = []
    for feature in range(n_numbers):
        edges = np.unique(rng.normal(size=rng.integers(1, 4)).round(2))
        missing = tuple(rng.integers(-9, 10, n_classes).tolist()) if with_gaps else None
        terms.append(StepFunction(feature, edges, rng.integers(-9, 10, (edges.size + 1, n_classes)), missing))
    other = tuple(rng.integers(-5, 6, n_classes).tolist())
    terms.append(CategoryTable(n_numbers, [0, 1, 2], rng.integers(-5, 6, (3, n_classes)), other))
    return AdditiveEnsemble(terms, Argmax(rng.integers(-4, 5, n_classes).tolist()), n_numbers + 1)


def draw_rows(rng: np.random.Generator, n_rows: int, n_numbers: int = 3) -> np.ndarray:
    return np.column_stack([rng.normal(size=(n_rows, n_numbers)), rng.integers(0, 4, n_rows)])


def enumerate_duels(model: AdditiveEnsemble, row: np.ndarray, noise: Noise) -> np.ndarray:
    """P(a beats b) for all pairs, by adding up all combinations of cells; ties go to the lower class."""
    total = np.array(model.decision.offsets, dtype=np.int64)  # type: ignore[union-attr]
    cells = []
    for term in model.terms:
        if not term.axes:
            total = total + term.score_rows(row[None])[0]
            continue
        (axis,) = term.axes
        scale = noise.scales(np.array([axis.feature]))[0]
        below = np.concatenate([[0.0], noise.cdf((axis.edges - row[axis.feature]) / scale), [1.0]])
        cells.append([(float(np.diff(below)[k]), term.scores[k]) for k in range(axis.edges.size + 1)])
    shares = np.zeros((model.n_classes, model.n_classes))
    lower = np.arange(model.n_classes)[:, None] < np.arange(model.n_classes)
    for chosen in itertools.product(*cells):
        score = total + sum(scores for _, scores in chosen)
        ahead = score[:, None] - score
        shares += math.prod(mass for mass, _ in chosen) * ((ahead > 0) | ((ahead == 0) & lower))
    return shares


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("n_classes", [3, 5])
def test_labels_and_masses_are_those_of_enumerated_duels(noise: Noise, n_classes: int) -> None:
    """The label is the class of the best worst duel; the failing mass is that of this duel."""
    rng = np.random.default_rng(n_classes)
    for _ in range(6):
        model, rows = draw_model(rng, n_classes), draw_rows(rng, 5)
        found = certify(model, rows, noise)
        shares = expit(weigh_classes(model, rows, ask(noise, "vote")))
        for row, label, failure, radius, rival, share in zip(
            rows, found.label, found.failure, found.radius, found.runner_up, shares, strict=True
        ):
            duels = enumerate_duels(model, row, noise)
            np.fill_diagonal(duels, 1.0)
            worst = duels.min(axis=1)
            np.testing.assert_allclose(share, worst, atol=1e-9)
            assert worst[label] >= worst.max() - 1e-9
            if worst[label] > 0.5 + 1e-9:
                assert abs((1 - worst[label]) - failure) < 1e-9
                assert rival != label
            else:
                assert radius == 0 or worst[label] > 0.5 - 1e-9


def test_duel_shares_agree_with_sampling() -> None:
    """Of 20,000 noisy copies as many win each duel as the law says."""
    rng, noise = np.random.default_rng(5), Gaussian(0.4)
    model, row = draw_model(rng, 4), draw_rows(rng, 1)
    copies = np.repeat(row, 20_000, axis=0)
    copies[:, :3] += 0.4 * rng.standard_normal((20_000, 3))
    scores = model.score(copies) + np.array(model.decision.offsets)
    ahead = scores[:, :, None] - scores[:, None, :]
    lower = np.arange(4)[:, None] < np.arange(4)
    sampled = ((ahead > 0) | ((ahead == 0) & lower)).mean(axis=0)
    np.testing.assert_allclose(sampled, enumerate_duels(model, row[0], noise), atol=0.015)


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("with_gaps", [False, True])
def test_two_classes_are_as_they_always_were(rule: str, with_gaps: bool) -> None:
    """Through duels, through Argmax or by a threshold: the same to the last bit."""
    rng = np.random.default_rng(7)
    for noise in NOISES:
        model, rows = draw_model(rng, 2, with_gaps=with_gaps), draw_rows(rng, 40)
        if with_gaps:
            rows[rng.random(rows.shape) < 0.1] = np.nan
        plain = AdditiveEnsemble([term.subtract(1, 0) for term in model.terms], model.decision.cut(0, 1), 4)
        threats = [Threat(l0=k).resolve(noise) for k in (0, 1)]
        for threat in threats:
            expected = certify(plain, rows, noise, rule=rule, threat=threat)
            found = certify(model, rows, noise, rule=rule, threat=threat)
            (bounds,) = bound_classes(model, rows, ask(noise, rule, resolve(threat, model, noise)))
            for name in ("label", "radius", "log_failure"):
                assert np.array_equal(getattr(expected, name), getattr(found, name), equal_nan=True), name
                assert np.array_equal(getattr(expected, name), getattr(bounds, name), equal_nan=True), name
            assert (found.runner_up == 1 - found.label).all()
            assert np.array_equal(bounds.runner_up, found.runner_up)
        labels = label_classes(model, rows, ask(noise, rule))
        assert np.array_equal(labels, find_labels(plain, rows, noise, rule=rule))


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_radius_is_the_smallest_of_all_duels(rule: str) -> None:
    """No duel is left out by the order in which proofs are asked for."""
    rng, noise = np.random.default_rng(11), Gaussian(0.4)
    for norm in (1, 2, math.inf, 0):
        model, rows = draw_model(rng, 5), draw_rows(rng, 10)
        found = certify(model, rows, noise, rule=rule, threat=Threat(norm=norm, l0=1))
        for row in range(len(rows)):
            label = int(found.label[row])
            radii = {}
            for rival in set(range(5)) - {label}:
                duel = build_pair(model, min(label, rival), max(label, rival))
                one = certify(duel, rows[row : row + 1], noise, rule=rule, threat=Threat(norm=norm, l0=1))
                radii[rival] = one.radius[0] if one.label[0] == (label > rival) else 0.0
            assert found.radius[row] == min(radii.values())
            assert radii[int(found.runner_up[row])] == found.radius[row]


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize(
    "threat",
    [
        Threat(),
        Threat(norm=1, l0=1),
        Threat(norm=math.inf, l0=1),
        Threat(norm=0),
        Threat(norm=None, limits={0: 0.3, 1: 0.2}, l0=1),
        Threat(missing=1),
    ],
    ids=str,
)
def test_no_attack_flips_inside(rule: str, threat: Threat) -> None:
    """A search for flips finds none inside, and every flip is one by `predict`'s own function."""
    rng = np.random.default_rng(3)
    n_found = 0
    for noise in NOISES if threat == Threat() else NOISES[:1]:
        model, rows = draw_model(rng, 3, with_gaps=True), draw_rows(rng, 8)
        found = certify(model, rows, noise, rule=rule, threat=threat)
        attacks = attack(model, rows, noise, rule=rule, threat=threat)
        attacks.require_outside(found)
        n_found += int(attacks.found.sum())
        at = np.flatnonzero(attacks.found)
        after = find_labels(model, attacks.rows[at], noise, rule=rule)
        assert (after == attacks.flipped[at]).all()
        assert (after != found.label[at]).all()
        if threat.norm is None:
            assert found.witness is not None
            flipping = np.flatnonzero(found.flips)
            assert (find_labels(model, found.witness[flipping], noise, rule=rule) != found.label[flipping]).all()
    assert n_found


def test_a_circle_of_classes_has_a_label_and_no_radius() -> None:
    """Rock, paper, scissors: each class beats the next two times of three, so that nobody wins all duels."""
    third = np.array([0.36, 0.70]) * 2 - 1  # uniform noise on [-1, 1]: cells of mass 0.36, 0.34 and 0.30
    scores = [[2, 1, 0], [0, 2, 1], [1, 0, 2]]
    model = AdditiveEnsemble([StepFunction(0, third, scores)], Argmax([0, 0, 0]), 1)
    found = certify(model, [[0.0]], Uniform(1.0))
    assert (found.label.tolist(), found.runner_up.tolist()) == ([0], [2])  # type: ignore[union-attr]
    assert found.radius.tolist() == [0.0]
    assert found.proof.tolist() == ["none"]
    assert found.failure.tolist() == [1.0]
    tournament = Tournament(model, expect_classes(model, np.zeros((1, 1)), Uniform(1.0)))

    def fight(duel: AdditiveEnsemble, at: np.ndarray, rivals: np.ndarray) -> np.ndarray:
        return find_labels(duel, np.zeros((at.size, 1)), Uniform(1.0))

    assert tournament.search_winners(fight).tolist() == [-1]


def test_ties_go_to_the_lower_class() -> None:
    """Equal scores everywhere: the first class wins, as far as one likes."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [[1, 1, 1], [2, 2, 2]])], Argmax([0, 0, 0]), 1)
    for rule in ("vote", "mean"):
        found = certify(model, [[0.3]], Gaussian(1.0), rule=rule)
        assert found.label.tolist() == [0]
        assert found.radius.tolist() == [math.inf]


def test_means_are_the_argmax_of_expected_scores() -> None:
    """With and without noise, rows with gaps included."""
    rng = np.random.default_rng(2)
    model, rows = draw_model(rng, 4, with_gaps=True), draw_rows(rng, 60)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    for noise in (Gaussian(0.4), None):
        expected = expect_classes(model, rows, noise)
        found = certify(model, rows, noise, rule="mean")
        best = expected.max(axis=1)
        assert (expected[np.arange(60), found.label] >= best - 1e-9).all()
    exact = certify(model, rows, None, rule="mean").label
    assert (exact == (model.score(rows) + np.array(model.decision.offsets)).argmax(axis=1)).all()
