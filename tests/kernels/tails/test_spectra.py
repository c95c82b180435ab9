"""Inversion of few terms of many cells: what is left out is bounded, and masses agree with the laws'."""

from __future__ import annotations

import math

import numpy as np
import pytest

from derand.kernels import FEW_TERMS_EXCESS, INVERTED, MANY_CELLS_EXCESS, failure_excess, may_invert
from derand.kernels.tails import failures as methods
from derand.kernels.tails import fourier, spectra
from derand.kernels.tails import frequencies as shared
from derand.kernels.tails.tilted import fill_powers, make_workspace
from tests.kernels.calls import failures
from tests.kernels.tails.test_fourier import draw_problem, draw_thresholds, evaluate_phi

SHAPES = [pytest.param(14, 120, 700, marks=pytest.mark.long), (24, 60, 400), (90, 40, 50)]
BY_POLYNOMIAL = [(40, 12, 300), (56, 8, 1000)]


@pytest.mark.parametrize(("n_terms", "n_cells", "largest"), SHAPES)
def test_dropped_frequencies_are_bounded(n_terms: int, n_cells: int, largest: int) -> None:
    """The bound covers the exact sum of all that is left out, on the exact grid and between its points."""
    rng = np.random.default_rng(largest)
    problem = draw_problem(rng, n_terms, n_cells, largest, 8)
    thresholds = draw_thresholds(rng, problem)
    plan = methods.prepare(*problem[1:])
    table, _ = methods._lay_out(plan, problem[0], thresholds)
    terms, batch, spread = plan.terms, fourier.make_batch(8, plan.terms, 1), spectra._make_spread(8, plan.terms)
    spectra._begin_spectra(table, thresholds, terms, plan.shortest, batch, spread, make_workspace(terms))
    rows = np.flatnonzero(batch.slot >= 0)
    assert rows.size
    for row in rows.tolist():
        points, count = int(spread.n_points[row]), int(spread.n_chosen[row])
        dense = np.empty((count, 2 * points), dtype=np.float32)
        spectra._spread_cells(terms, batch, spread, np.array([row]), dense)
        found = spectra._transform(dense)
        bounds = np.ones(points, dtype=np.float32)
        for at, term in enumerate(np.flatnonzero(spread.chosen[row]).tolist()):
            slack = (math.pi / points) ** 2 * spread.variances[row, term] / 8 + spectra._SPECTRUM_ERROR
            spectra._lower_bounds(found[at], np.empty(points + 1, dtype=np.float32), np.float32(slack), bounds)
        period = shared.period_of(plan.shortest, int(batch.period_number[row]))
        between = (np.arange(points) + rng.random(points)) * math.pi / points
        assert (evaluate_phi(terms, batch, row, between) <= bounds * (1 + 1e-5) + 1e-15).all()
        kept, dropped = spectra._bound_dropped(batch, spread, row, period, bounds)
        frequencies = 2 * math.pi * np.arange(kept, period // 2 + 1) / period
        weights = 1 / np.abs(1 - np.exp(-batch.theta[row] + 1j * frequencies))
        assert 2 / period * (evaluate_phi(terms, batch, row, frequencies) * weights).sum() <= dropped + 1e-15


@pytest.mark.parametrize(("n_terms", "n_cells", "largest"), SHAPES + BY_POLYNOMIAL)
def test_masses_agree_with_laws(n_terms: int, n_cells: int, largest: int) -> None:
    """An inverted mass is never below that of the laws but for their excess, and hardly above."""
    rng = np.random.default_rng(n_cells)
    problem = draw_problem(rng, n_terms, n_cells, largest, 30)
    thresholds = draw_thresholds(rng, problem)
    proven, logs, path = failures("numba", *problem, thresholds)
    expected_proven, expected, _ = failures("numba", *problem, thresholds, invert=False)
    assert proven.tolist() == expected_proven.tolist()
    assert (path == INVERTED).mean() > 0.5
    assert (logs > expected - 1e-11).all()
    assert (logs < expected + (4.5e-9 if n_terms >= 64 else 2.5e-7)).all()
    near = logs > -0.75
    assert (logs[near] < expected[near] + 4 * FEW_TERMS_EXCESS).all()


def test_a_grid_that_is_too_coarse_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows are inverted with a second, finer grid, and their masses still agree with the laws'."""
    rng = np.random.default_rng(3)
    problem = draw_problem(rng, 12, 90, 500, 40)
    thresholds = draw_thresholds(rng, problem)
    refined = failures("numba", *problem, thresholds)
    expected = failures("numba", *problem, thresholds, invert=False)
    monkeypatch.setattr(spectra, "_MOST_TRIES", 0)
    once = failures("numba", *problem, thresholds)
    more = (refined.path == INVERTED) & (once.path != INVERTED)
    assert more.any()
    assert not ((once.path == INVERTED) & (refined.path != INVERTED)).any()
    gained = refined[1][more] - expected[1][more]
    assert (gained > -1e-11).all()
    assert (gained < 2.5e-7).all()


def test_powers_of_many_levels_are_exponentials() -> None:
    """Products of two exponentials are within the roundings that are counted."""
    levels = np.unique(np.random.default_rng(0).integers(0, 5000, 900)).astype(np.float64)
    powers = np.empty(levels.size)
    for tilt in (-1e-4, -0.013, -0.14):
        fill_powers(levels, tilt, powers)
        exact = np.exp(np.longdouble(tilt) * levels)
        assert (np.abs(powers / exact - 1) < (8 - tilt * levels) * 2.0**-53).all()


def test_rows_do_not_disturb_each_other() -> None:
    """A row has bit for bit the same result alone, at another place, and in a batch of another size."""
    rng = np.random.default_rng(8)
    table, *terms = draw_problem(rng, 16, 80, 300, 70)
    thresholds = draw_thresholds(rng, (table, *terms))
    _, logs, _ = failures("numba", table, *terms, thresholds)
    for rows in (slice(0, 1), slice(69, 70), slice(3, 20)):
        _, some, _ = failures("numba", table[rows], *terms, thresholds[rows])
        assert some.tolist() == logs[rows].tolist()


def test_the_excess_near_ties_follows_the_size_of_the_model() -> None:
    """Models that are never inverted keep the band of their laws."""
    assert not may_invert(14, 28)
    assert not may_invert(31, 31 * 8)
    assert may_invert(32, 32 * 8)
    assert not may_invert(7, 7000)
    assert failure_excess(14, 28) < 1e-11
    assert failure_excess(14, 14 * 32) > FEW_TERMS_EXCESS > failure_excess(64, 64 * 32) > MANY_CELLS_EXCESS
    assert failure_excess(64, 64 * 31) < MANY_CELLS_EXCESS
