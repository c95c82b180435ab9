"""One jump under Gaussian noise: the table lies below the truth, and close to it; so do radii that rest on it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from derand import AdditiveEnsemble, Gaussian, GridTerm, attack, certify
from derand.certificates.bounds import grid_curves as _grid_curves
from derand.kernels.worst_case.jumps import NO_JUMPS, JumpTable, bound_jumps, tabulate_jumps
from derand.threat import Threat


def find_least(u: float, size: float) -> float:
    """E(u, size) on a grid that is much finer than the table: slightly above the truth."""
    w = np.linspace(u - min(np.sqrt(size), 20.0), u, 20_001)
    return float((size * ndtr(w) + (w - u) ** 2).min())


def look_up_least(u: float, size: float, table: JumpTable) -> float:
    """E(u, size) by the table: a jump from 0 up to the size, at a cost of 1."""
    found = np.empty(1)
    bound_jumps(u, 1.0, 1, np.array([0.0, size]), table, found)
    return float(found[0])


def test_the_table_lies_below_the_truth_and_close_to_it() -> None:
    rng, table = np.random.default_rng(0), tabulate_jumps()
    for _ in range(400):
        u, size = rng.uniform(-7, 7), 10 ** rng.uniform(-6, 3.5)
        found, truth = look_up_least(u, size, table), find_least(u, size)
        assert 0 <= found <= truth
        if size < 256 and abs(u) < 5.9:
            assert found > truth - 0.005 * size
        if 0.1 < size < 10 and abs(u) < 2:  # most of what is lost by moving is known
            assert truth - found < 0.05 * (size * ndtr(u) - truth) + 1e-4 * size


@pytest.mark.parametrize("size", [1e-9, 2.0**-13, 1.0, 1.125, 256.0, 1e9])
def test_sizes_at_and_beyond_the_ends_of_the_table_are_bounded(size: float) -> None:
    table = tabulate_jumps()
    for u in (-np.inf, -6.0, 0.0, 6.0, np.inf):
        truth = (0.0 if u < 0 else size) if np.isinf(u) else find_least(u, size)
        assert 0 <= look_up_least(u, size, table) <= max(truth, 0.0)


def draw_model(seed: int, n_terms: int) -> AdditiveEnsemble:
    rng, terms, first = np.random.default_rng(seed), [], 0
    for _ in range(n_terms):
        n_axes = int(rng.integers(2, 5))
        scores = rng.integers(-20, 20, size=[2] * n_axes)
        for axis in range(n_axes):
            shape = [1] * n_axes
            shape[axis] = 2
            scores = scores + rng.integers(-60, 60, size=2).reshape(shape)
        edges = tuple(rng.uniform(-0.3, 0.3, size=1) for _ in range(n_axes))
        terms.append(GridTerm(tuple(range(first, first + n_axes)), edges, scores))
        first += n_axes
    return AdditiveEnsemble(tuple(terms), 0, first)


def test_radii_are_those_of_walking_along_axes_and_never_beyond_an_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    model, noise = draw_model(3, 10), Gaussian(0.4)
    rows = np.random.default_rng(1).uniform(-1, 1, size=(15, model.n_features))
    found = certify(model, rows, noise, rule="mean").radius
    attacked = attack(model, rows[:8], noise, rule="mean").distance
    assert (found[:8] <= attacked).all()
    monkeypatch.setattr(
        _grid_curves, "_compute_jumps", lambda blocks, noise, units: (*[np.zeros(model.n_features)] * 2, NO_JUMPS)
    )
    walked = certify(draw_model(3, 10), rows, noise, rule="mean").radius
    assert (found > 0.99 * walked).all()


def test_frozen_columns_and_limits_keep_their_meaning() -> None:
    model, noise = draw_model(4, 12), Gaussian(0.4)
    rows = np.random.default_rng(2).uniform(-1, 1, size=(8, model.n_features))
    free = certify(model, rows, noise, rule="mean").radius
    frozen = certify(model, rows, noise, rule="mean", threat=Threat(frozen=(0, 1, 2, 3))).radius
    assert (frozen >= 0.99 * free).all()
    assert (frozen > free * 1.001).any()
