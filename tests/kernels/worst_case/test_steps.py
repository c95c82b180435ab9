"""Steps: distances against all combinations of cells."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from derand.kernels.worst_case import steps
from derand.kernels.worst_case.drops import WHOLE
from derand.kernels.worst_case.steps import Stairs, add_scores, measure_distances, prepare_stairs

NORMS = [0.0, 1.0, 2.0, math.inf]


def draw_stairs(rng: np.random.Generator, n_terms: int) -> Stairs:
    counts = rng.integers(1, 6, n_terms)
    edges = [np.unique(rng.choice([rng.normal(0.0, 2.0, n), rng.integers(-3, 4, n).astype(float)])) for n in counts]
    scores = [rng.integers(0, rng.choice([3, 12, 400]), one.size + 1) for one in edges]
    starts = np.cumsum([0, *(one.size for one in edges)], dtype=np.int64)
    features = rng.permutation(n_terms).astype(np.int64)
    units = rng.choice([1.0, 0.1, 30.0], n_terms)
    return prepare_stairs(features, starts, np.concatenate(edges), np.concatenate(scores).astype(np.int64), units)


def enumerate_cells(stairs: Stairs, row: np.ndarray, threshold: int, norm: float) -> float:
    """The least cost of all combinations of cells whose sum is at the threshold or below."""
    options = []
    for i, feature in enumerate(stairs.features):
        edges = stairs.edges[stairs.starts[i] : stairs.starts[i + 1]]
        scores = stairs.scores[stairs.starts[i] + i : stairs.starts[i + 1] + i + 1]
        x = row[feature]
        far = np.maximum(np.maximum(np.append(-np.inf, edges) - x, x - np.append(edges, np.inf)), 0.0) / stairs.units[i]
        if norm == 0:
            far = (np.arange(far.size) != np.searchsorted(edges, x, side="right")).astype(float)
        options.append(list(zip(scores.tolist(), far.tolist(), strict=True)))
    best = math.inf
    for chosen in itertools.product(*options):
        if sum(score for score, _ in chosen) <= threshold:
            far = np.array([one for _, one in chosen])
            best = min(best, float(far.sum() if norm == 0 else np.linalg.norm(far, ord=norm)))
    return max(best - 1, 0.0) if norm == 0 else best


@pytest.mark.parametrize("norm", NORMS)
def test_distances_against_all_combinations(norm: float) -> None:
    rng = np.random.default_rng(int(min(norm, 9)))
    for _ in range(25):
        stairs = draw_stairs(rng, int(rng.integers(1, 5)))
        rows = rng.choice([rng.normal(0.0, 2.0, (4, 4)), rng.integers(-3, 4, (4, 4)).astype(float)])
        sums = add_scores(rows, stairs)
        thresholds = (sums[:, None] * np.array([0.2, 0.6, 0.95])).astype(np.int64)
        found, how = measure_distances(rows, stairs, thresholds, norm)
        for at, threshold in np.ndenumerate(thresholds):
            true = enumerate_cells(stairs, rows[at[0]], int(threshold), norm)
            assert found[at] <= true
            if how[at] == WHOLE:
                assert found[at] == true or found[at] >= true * (1 - 1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_relaxation_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch, norm: float) -> None:
    monkeypatch.setattr(steps, "AFFORDABLE", 0)
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(25):
        stairs = draw_stairs(rng, 4)
        rows = rng.normal(0.0, 2.0, (3, 4))
        thresholds = (add_scores(rows, stairs)[:, None] * np.array([0.3, 0.7])).astype(np.int64)
        found, how = measure_distances(rows, stairs, thresholds, norm)
        for at, threshold in np.ndenumerate(thresholds):
            true = enumerate_cells(stairs, rows[at[0]], int(threshold), norm)
            assert found[at] <= true
            if 0 < true < math.inf:
                assert how[at] != WHOLE
                shares.append(found[at] / true)
    assert np.mean(shares) > 0.5


@pytest.mark.parametrize("norm", NORMS)
def test_numbers_of_any_size(norm: float) -> None:
    """Never above the true distance, never not a number."""
    features, starts = np.array([0, 1]), np.array([0, 1, 3])
    edges, scores = np.array([0.0, -1e308, 1e308]), np.array([0, 4, 5, 0, 2])
    for units in ([1.0, 1.0], [1e-299, 1e299], [1e299, 1e-299]):
        stairs = prepare_stairs(features, starts, edges, scores, np.array(units))
        rows = np.array([[1e308, -1.7e308], [5e-324, 1.7e308], [1.0, -1e308], [-1e308, 0.0]])
        thresholds = add_scores(rows, stairs)[:, None] - np.array([1, 2, 4])
        found, _ = measure_distances(rows, stairs, thresholds, norm)
        assert not np.isnan(found).any()
        with np.errstate(over="ignore"):
            for at, threshold in np.ndenumerate(thresholds):
                assert found[at] <= enumerate_cells(stairs, rows[at[0]], int(threshold), norm)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_distances_among_subnormal_numbers_prove_nothing(norm: float, unit: float) -> None:
    """Squares of 1.6e-162, and 2 * 5e-324 / 0.001, are rounded up by more than is ever taken off."""
    one = np.zeros(1, dtype=np.int64), np.array([0, 1]), np.array([0.0]), np.array([1, 0]), np.array([unit])
    rows = -np.array([[5e-324], [1e-323], [1.6e-162], [3e-155], [1e-140], [1.0]])
    found, _ = measure_distances(rows, prepare_stairs(*one), np.zeros((6, 1), dtype=np.int64), norm)
    exact = [Fraction(-float(x)) / Fraction(unit) for x in rows.ravel()]
    assert all(Fraction(radius) <= distance for radius, distance in zip(found.ravel().tolist(), exact, strict=True))
    assert found[-2:].ravel() == pytest.approx([1e-140 / unit, 1 / unit], rel=1e-12)


def test_whole_steps_far_below_an_ulp_end() -> None:
    """The same value as by counting one by one, and at once where counting would take years."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = float(rng.choice([2.0**60, 1e17, -3e16, 5.5, 0.1])) * (1 + rng.integers(0, 50) * 2.0**-52)
        step = float(rng.choice([1.0, 3.0, 0.7]) * rng.choice([1.0, abs(x) * 2.0**-52 * rng.uniform(0.05, 3)]))
        edge = x + float(rng.integers(1, 6)) * max(step, math.ulp(x))
        up = next(z for k in itertools.count(1) if (z := x + k * step) >= edge)
        down = next(z for k in itertools.count(1) if (z := x - k * step) < 2 * x - edge)
        assert steps.step_up(x, step, edge) == up
        assert steps.step_down(x, step, 2 * x - edge) == down
    assert steps.step_down(1e30, 1.0, 1e30) == math.nextafter(1e30, 0)
    assert steps.step_up(1e30, 1.0, math.nextafter(1e30, math.inf)) == math.nextafter(1e30, math.inf)
