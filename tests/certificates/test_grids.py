"""Terms of several columns: their certificates against plain sums over all boxes, against step functions, attacked."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from derand import AdditiveEnsemble, StepFunction, attack, certify, distribution
from derand.model import GridTerm, Term
from derand.noise import Noise, as_noise
from derand.threat import Threat

NOISES = ("gaussian:0.4", "laplace:0.3", "uniform:0.9")


def draw_grid(rng: np.random.Generator, features: tuple[int, ...], *, gaps: bool = False) -> GridTerm:
    """A term over some columns, with one to three edges each."""
    edges = tuple(np.unique(rng.normal(size=rng.integers(1, 4)).round(2)) for _ in features)
    missing = tuple(gaps and bool(rng.integers(2)) for _ in features)
    shape = [part.size + 1 + gap for part, gap in zip(edges, missing, strict=True)]
    return GridTerm(features, edges, rng.integers(-6, 7, shape), missing)


def draw_model(seed: int, *, gaps: bool = False) -> AdditiveEnsemble:
    """One term of two columns, one of three, and a step function."""
    rng = np.random.default_rng(seed)
    terms: list[Term] = [
        draw_grid(rng, (0, 3), gaps=gaps),
        draw_grid(rng, (1, 2, 5), gaps=gaps),
        StepFunction(4, [-0.2, 0.6], rng.integers(-6, 7, 3)),
    ]
    return AdditiveEnsemble(terms, int(rng.integers(-3, 4)), 6)


def draw_rows(seed: int, n_rows: int = 8) -> np.ndarray:
    return np.random.default_rng(1000 + seed).normal(size=(n_rows, 6))


def list_masses(noise: Noise, x: float, edges: np.ndarray) -> np.ndarray:
    """Probabilities of the cells of one column, by differences of the distribution function."""
    ends = np.asarray(noise.cdf((edges - x) / noise.magnitude))
    return np.diff(np.concatenate([[0.0], ends, [1.0]]))


def list_outcomes(model: AdditiveEnsemble, row: np.ndarray, noise: Noise) -> list[list[tuple[int, float]]]:
    """For each term the score and the mass of each of its boxes, one by one."""
    outcomes = []
    for term in model.terms:
        sides = []
        for axis in term.axes:
            masses = list_masses(noise, row[axis.feature], axis.edges)
            if axis.feature in term.missing_features:
                gap = math.isnan(row[axis.feature])
                masses = np.append(np.zeros(masses.size) if gap else masses, float(gap))
            sides.append(masses)
        boxes = [math.prod(chosen) for chosen in itertools.product(*sides)]
        outcomes.append(list(zip(term.cell_scores.tolist(), boxes, strict=True)))
    return outcomes


def find_mean(model: AdditiveEnsemble, row: np.ndarray, noise: Noise | None) -> float:
    if noise is None:
        return float(model.score(row[None])[0])
    return sum(score * mass for term in list_outcomes(model, row, noise) for score, mass in term)


def find_mass(model: AdditiveEnsemble, row: np.ndarray, noise: Noise) -> float:
    """P(score <= threshold), over all joint outcomes of all terms."""
    assert model.threshold is not None
    law = {0: 1.0}
    for term in list_outcomes(model, row, noise):
        fresh: dict[int, float] = {}
        for (total, before), (score, mass) in itertools.product(law.items(), term):
            fresh[total + score] = fresh.get(total + score, 0.0) + before * mass
        law = fresh
    return sum(mass for total, mass in law.items() if total <= model.threshold)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seed", range(3))
def test_failing_masses_are_those_of_all_boxes(seed: int, noise: str) -> None:
    model, rows = draw_model(seed, gaps=True), draw_rows(seed)
    for at in model.missing_features:
        rows[at % 3, at] = np.nan
    found = certify(model, rows, noise, proof="paper")
    for row, label, failure in zip(rows, found.label, found.failure, strict=True):
        below = find_mass(model, row, as_noise(noise))
        exact = below if label else 1 - below
        assert label == (below < 0.5)
        assert failure == pytest.approx(exact, abs=1e-11)
        assert failure >= exact - 1e-13
    law = distribution(model, rows, noise)
    assert law.pmf.sum(axis=1) == pytest.approx(1.0, abs=1e-10)


def move_within(rng: np.random.Generator, norm: float, radius: float, n_moves: int) -> np.ndarray:
    """Moves of just less than the radius: along few columns, and along many."""
    moves = rng.normal(size=(n_moves, 6)) * (rng.random((n_moves, 6)) < rng.uniform(0.2, 1, (n_moves, 1)))
    moves[np.abs(moves).sum(axis=1) == 0, 0] = 1.0
    sizes = np.linalg.norm(moves, ord=norm, axis=1) if norm != np.inf else np.abs(moves).max(axis=1)
    if norm == np.inf:
        moves = np.sign(moves) * sizes[:, None]
    return moves / sizes[:, None] * radius * (1 - 1e-9)


@pytest.mark.parametrize("noise", [*NOISES, None])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("seed", range(1))
def test_no_move_within_a_radius_of_the_mean_flips(seed: int, norm: float, noise: str | None) -> None:
    model, rows, rng = draw_model(seed), draw_rows(seed), np.random.default_rng(seed)
    smoothing = None if noise is None else as_noise(noise)
    found = certify(model, rows, noise, rule="mean", threat=Threat(norm=norm))
    assert (found.radius > 0).any()
    assert model.threshold is not None
    for row, label, radius in zip(rows, found.label, found.radius, strict=True):
        assert label == (find_mean(model, row, smoothing) > model.threshold)
        if radius > 0:
            for moved in row + move_within(rng, norm, min(radius, 20.0), 60):
                assert label == (find_mean(model, moved, smoothing) > model.threshold)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_no_move_within_a_radius_of_the_vote_flips(norm: float, noise: str) -> None:
    rng = np.random.default_rng(0)
    for seed in range(2):
        model, rows = draw_model(seed), draw_rows(seed, 4)
        found = certify(model, rows, noise, threat=Threat(norm=norm))
        for row, label, radius in zip(rows, found.label, found.radius, strict=True):
            if radius > 0:
                for moved in row + move_within(rng, norm, min(radius, 20.0), 20):
                    assert label == (find_mass(model, moved, as_noise(noise)) < 0.5)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("seed", range(2))
def test_without_noise_one_term_is_as_far_as_its_nearest_box(seed: int, norm: float) -> None:
    """Exact fractions: the least distance to the closure of a box of the other label."""
    rng = np.random.default_rng(seed)
    term = draw_grid(rng, (0, 1))
    model = AdditiveEnsemble([term], int(term.scores.min()), 2)
    rows = rng.normal(size=(10, 2)).round(3)
    found = certify(model, rows, None, rule="mean", threat=Threat(norm=norm))
    for row, label, radius in zip(rows, found.label, found.radius, strict=True):
        far = []
        for place in np.ndindex(*term.shape):
            if (term.grid[place][0] > term.scores.min()) == label:
                continue
            sides = []
            for x, edges, cell in zip(row, term.edges, place, strict=True):
                low = Fraction(edges[cell - 1]) if cell else Fraction(-(10**6))
                high = Fraction(edges[cell]) if cell < edges.size else Fraction(10**6)
                sides.append(max(low - Fraction(x), Fraction(x) - high, Fraction(0)))
            far.append(max(sides) if norm == math.inf else sum(side ** int(norm) for side in sides))
        least = float(min(far)) if norm != 2 else math.sqrt(min(far))
        assert radius == pytest.approx(least, rel=1e-12)
        assert radius <= least


@pytest.mark.parametrize("noise", [*NOISES, None])
@pytest.mark.parametrize("norm", [0, 1, 2, math.inf, None])
def test_sums_of_single_columns_certify_as_step_functions_do(norm: float | None, noise: str | None) -> None:
    """A grid that is a sum of two step functions, beside the step functions themselves: nearly the same radii."""
    left, right = StepFunction(0, [-0.3, 0.4], [-3, 0, 4]), StepFunction(1, [0.1], [-2, 3])
    other = StepFunction(2, [0.0], [-2, 2])
    grid = GridTerm((0, 1), (left.edges, right.edges), left.cell_scores[:, None] + right.cell_scores)
    rows = np.random.default_rng(0).normal(size=(40, 3))
    limits = {} if norm is not None else dict.fromkeys(range(3), 0.4)
    threat = Threat(norm=norm, limits=limits)
    joint, apart = (
        certify(AdditiveEnsemble(terms, 0, 3), rows, noise, rule="mean", threat=threat)
        for terms in ([grid, other], [left, right, other])
    )
    assert joint.label.tolist() == apart.label.tolist()
    if norm != 0:  # in norm 0 a change of a grid counts as one that takes it all the way
        np.testing.assert_allclose(joint.radius, apart.radius, rtol=0.03, atol=8e-3)


def test_one_column_is_a_step_function_to_the_last_bit() -> None:
    step = StepFunction(0, [-0.5, 0.25, 1.0], [0, 3, -2, 5])
    other, rows = StepFunction(1, [0.0], [-2, 2]), draw_rows(0)[:, :2]
    for rule, noise in (("vote", "gaussian:0.5"), ("mean", "laplace:0.5"), ("mean", None)):
        grid = GridTerm((0,), (step.edges,), step.scores)
        found, twin = (certify(AdditiveEnsemble([one, other], 0, 2), rows, noise, rule=rule) for one in (grid, step))
        assert found.radius.tolist() == twin.radius.tolist()


def test_limits_and_frozen_columns_hold_a_grid() -> None:
    rng = np.random.default_rng(1)
    for seed in range(4):
        model, rows = draw_model(seed), draw_rows(seed)
        for noise in ("gaussian:0.4", None):
            threat = Threat(norm=None, limits={0: 0.5, 1: 0.3, 5: 0.4})
            found = certify(model, rows, noise, rule="mean", threat=threat)
            smoothing = None if noise is None else as_noise(noise)
            assert model.threshold is not None
            for row, label, radius in zip(rows, found.label, found.radius, strict=True):
                if radius > 0:
                    for _ in range(40):
                        moved = row.copy()
                        moved[[0, 1, 5]] += rng.choice([-1, -0.5, 0, 1], 3) * [0.5, 0.3, 0.4]
                        assert label == (find_mean(model, moved, smoothing) > model.threshold)


def test_columns_that_may_become_anything() -> None:
    """Norm 0: so many columns may change at will."""
    rng = np.random.default_rng(2)
    for seed in range(6):
        model, rows = draw_model(seed), draw_rows(seed)
        for noise in ("gaussian:0.4", None):
            smoothing = None if noise is None else as_noise(noise)
            found = certify(model, rows, noise, rule="mean", threat=Threat(norm=0))
            assert model.threshold is not None
            for row, label, count in zip(rows, found.label, found.radius, strict=True):
                for _ in range(20 if 0 < count < np.inf else 0):
                    moved = row.copy()
                    moved[rng.permutation(6)[: int(count)]] += rng.normal(size=int(count)) * 5
                    assert label == (find_mean(model, moved, smoothing) > model.threshold)


def test_what_goes_missing_in_a_grid_is_refused() -> None:
    model = AdditiveEnsemble([GridTerm((0, 1), ([0.0], [0.0]), [[1, 2], [3, 4], [5, 6]], (True, False))], 2, 2)
    for rule in ("vote", "mean"):
        with pytest.raises(ValueError, match=r"`missing` of Threat .* column 0"):
            certify(model, [[0.0, 0.0]], "gaussian:1", rule=rule, threat=Threat(missing=1))
    frozen = certify(model, [[2.0, 1.0]], "gaussian:1", threat=Threat(missing=1, frozen=(0,)))
    assert frozen.radius[0] > 0


@pytest.mark.parametrize(("rule", "noise"), [("vote", "gaussian:0.4"), ("mean", "gaussian:0.4"), ("mean", None)])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_attacks_find_flips_outside_certified_balls_alone(rule: str, noise: str | None, norm: float) -> None:
    for seed in range(2):
        model, rows = draw_model(seed), draw_rows(seed, 5)
        found = certify(model, rows, noise, rule=rule, threat=Threat(norm=norm))
        attacks = attack(model, rows, noise, rule=rule, threat=Threat(norm=norm))
        attacks.require_outside(found)
        assert attacks.found.any()


def test_without_noise_certified_and_attacked_meet_on_one_term() -> None:
    rng = np.random.default_rng(5)
    term = draw_grid(rng, (0, 1))
    model = AdditiveEnsemble([term], 0, 2)
    rows = rng.normal(size=(6, 2))
    found, attacks = certify(model, rows, None, rule="mean"), attack(model, rows, None, rule="mean")
    assert (attacks.distance >= found.radius).all()
    assert (attacks.distance[attacks.found] <= 1.5 * found.radius[attacks.found] + 1e-9).mean() > 0.5


def test_a_grid_of_one_column_with_a_cell_for_missing_numbers_has_witnesses() -> None:
    """Limits alone, under noise: its last cell is no place that a number can move to."""
    grid = GridTerm((0,), ([0.0],), [1, 5, 3], missing=(True,))
    model = AdditiveEnsemble([grid], 2, 1)
    for steps in ({}, {0: 0.1}):
        threat = Threat(norm=None, limits={0: 1.0}, steps=steps)
        for rule in ("vote", "mean"):
            found = certify(model, [[0.2]], "gaussian:0.5", rule=rule, threat=threat)
            assert found.verdict.tolist() == ["flips"]  # type: ignore[union-attr]


@pytest.mark.parametrize("steps", [{}, {0: 0.7, 1: 1.5}])
def test_limits_without_noise_find_every_flip_of_a_group(steps: dict[int, float]) -> None:
    """Whatever the order in which columns would have to move, and wherever steps fall beside the edges."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        edges = [np.unique(rng.integers(-6, 7, 4)).astype(np.float64) for _ in range(2)]
        term = GridTerm((0, 1), tuple(edges), rng.integers(-5, 6, tuple(one.size + 1 for one in edges)))
        model = AdditiveEnsemble([term], int(rng.integers(-4, 5)), 2)
        rows = rng.integers(-6, 7, (20, 2)) + rng.choice([0.0, 0.5, 0.1])
        found = certify(
            model, rows, None, rule="mean", threat=Threat(norm=None, limits={0: 3.0, 1: (2.0, 4.0)}, steps=steps)
        )
        sides = [
            one + np.arange(-9, 10) * steps[k] if k in steps else np.append(edges[k], np.nextafter(edges[k], -np.inf))
            for k, one in enumerate((np.zeros(1), np.zeros(1)))
        ]
        for row, label, flips in zip(rows, found.label, found.flips, strict=True):
            places = [side + row[k] * (k in steps) for k, side in enumerate(sides)]
            inside = [(row[0] - 3.0, row[0] + 3.0), (row[1] - 2.0, row[1] + 4.0)]
            kept = [
                np.append(one[(one >= low) & (one <= high)], row[k])
                for k, (one, (low, high)) in enumerate(zip(places, inside, strict=True))
            ]
            points = np.stack(np.meshgrid(*kept, indexing="ij"), axis=-1).reshape(-1, 2)
            assert flips == ((model.score(points) > (model.threshold or 0)) != bool(label)).any()
