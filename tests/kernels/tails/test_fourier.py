"""Fourier inversion of the tilted law: what it leaves out is bounded, and masses agree with the laws'."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand.kernels import INVERTED, TILTED
from derand.kernels.tails import failures as methods
from derand.kernels.tails import fourier
from derand.kernels.tails import frequencies as shared
from derand.kernels.tails.tilted import Terms, make_workspace, prepare_terms
from tests.kernels.calls import failures, tails

REFERENCE_ERROR = 1e-11


def draw_problem(
    rng: np.random.Generator, n_terms: int, n_cells: int, largest: int, n_rows: int, steepness: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table (rows add up to 1 or a little more in each term), starts and reduced scores."""
    odds = rng.random((n_rows, n_terms, n_cells)) ** steepness + 1e-12
    table = odds / odds.sum(axis=2, keepdims=True) * (1 + 1e-15)
    scores = rng.integers(0, largest + 1, (n_terms, n_cells))
    scores[:, 0] = 0
    scores[:, 1] = np.maximum(scores[:, 1], 1)
    order = rng.permuted(np.tile(np.arange(n_cells), (n_terms, 1)), axis=1)
    scores = np.take_along_axis(scores, order, axis=1)
    return table.reshape(n_rows, -1), np.arange(0, n_terms * n_cells + 1, n_cells), scores.ravel()


def draw_thresholds(rng: np.random.Generator, problem: tuple[np.ndarray, ...]) -> np.ndarray:
    """Thresholds within some ten deviations of each row's mean."""
    table, starts, scores = problem
    first = np.add.reduceat(table * scores, starts[:-1], axis=1)
    second = np.add.reduceat(table * scores**2, starts[:-1], axis=1)
    deviation = np.sqrt((second - first**2).sum(axis=1))
    cuts = first.sum(axis=1) + rng.uniform(-10, 10, len(table)) * deviation
    most = int(np.maximum.reduceat(scores, starts[:-1]).sum())
    return np.clip(cuts.astype(np.int64), 0, most - 1)


def begin(
    problem: tuple[np.ndarray, ...], thresholds: np.ndarray, points: int | None = None
) -> tuple[Terms, Any, Any, np.ndarray]:
    """Terms, grid, batch and coefficients of all rows that may be inverted."""
    table, starts, scores = problem
    terms = prepare_terms(starts, scores, scores.size)
    grid = shared.choose_grids(terms)[-1]
    if points is not None:
        grid = shared.make_grid(terms, points, grid.shortest)
    batch = fourier.make_batch(len(table), terms, grid.n_points)
    coefficients = np.zeros((len(table), grid.n_points), dtype=np.float32)
    used = methods._begin(table, thresholds, terms, grid, batch, make_workspace(terms), coefficients)
    return terms, grid, batch, coefficients[:used]


def evaluate_phi(terms: Terms, batch: Any, row: int, frequencies: np.ndarray) -> np.ndarray:
    """|phi| of the tilted law, term by term."""
    result = np.ones(frequencies.size, dtype=np.complex128)
    n_terms = terms.shifts.size
    for term in range(n_terms):
        if terms.are_stumps:
            stay, move = batch.weights[row, term], batch.weights[row, n_terms + term]
            result *= stay + move * np.exp(1j * frequencies * terms.shifts[term])
        else:
            cells = slice(terms.starts[term], terms.starts[term + 1])
            scores = terms.scores[batch.side[row], cells]
            result *= np.exp(1j * np.outer(frequencies, scores)) @ batch.weights[row, cells]
    return np.abs(result)


@pytest.mark.parametrize("points", [256, 1024])
def test_harmonics_fold_back_onto_the_grid(points: int) -> None:
    """On the grid of midpoints every cosine is one of the first ones, with a sign, or 0; the constant counts twice."""
    numbers = np.append(np.arange(0, 9 * points, 7), points * np.arange(1, 9))
    slots, factors = shared.fold(numbers, points)
    grid = (np.arange(points) + 0.5) * math.pi / points
    for number, slot, factor in zip(numbers.tolist(), slots.tolist(), factors.tolist(), strict=True):
        assert 0 <= slot < points
        sign = factor if slot else factor / 2
        np.testing.assert_allclose(np.cos(number * grid), sign * np.cos(slot * grid), atol=1e-9)


SHAPES = [
    (140, 2, 40),
    (300, 2, 900),
    (160, 3, 30),
    (80, 5, 60),
    pytest.param(300, 2, 9000, marks=pytest.mark.long),
    pytest.param(130, 3, 30_000, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("n_terms", "n_cells", "largest"), SHAPES)
def test_the_transform_bounds_phi(n_terms: int, n_cells: int, largest: int) -> None:
    """exp(-f / 2) is f of the documentation to a tenth of what is allowed for the transform, and never below |phi|."""
    rng = np.random.default_rng(n_terms)
    check_transform(rng, draw_problem(rng, n_terms, n_cells, largest, 6))


@pytest.mark.parametrize("multiple", [0.5, 1, 2, 4])
def test_the_transform_of_shifts_that_fold_onto_the_constant(multiple: float) -> None:
    """Shifts that are multiples of half the grid alias with frequency 0."""
    rng = np.random.default_rng(1)
    table, starts, scores = draw_problem(rng, 200, 2, 40, 6)
    scores[-6:] = np.where(scores[-6:] > 0, int(multiple * 2048), 0)
    check_transform(rng, (table, starts, scores), points=2048)


def check_transform(rng: np.random.Generator, problem: tuple[np.ndarray, ...], points: int | None = None) -> None:
    """The assertions of the two tests above."""
    terms, grid, batch, coefficients = begin(problem, draw_thresholds(rng, problem), points)
    bounds = fourier.bound_phi(coefficients)
    frequencies = (np.arange(grid.n_points) + 0.5) * math.pi / grid.n_points
    rows = np.flatnonzero(batch.slot >= 0)
    assert rows.size
    for row in rows:
        logs = np.log(bounds[batch.slot[row]].astype(np.float64))
        falls = exact_falls(terms, grid, batch, row, frequencies)
        counts = logs > -59
        error = np.abs(logs + 0.5 * falls)[counts].max()
        assert error <= 0.1 * 0.5 * fourier._TRANSFORM_ERROR * batch.size[row] + 4e-6
        allowed = math.exp(fourier._TRANSFORM_ERROR * batch.size[row])
        assert (evaluate_phi(terms, batch, row, frequencies) <= bounds[batch.slot[row]] * allowed + 1e-13).all()


def exact_falls(terms: Terms, grid: Any, batch: Any, row: int, frequencies: np.ndarray) -> np.ndarray:
    """f on the grid in double precision, from its definition."""
    total = np.zeros(frequencies.size)
    n_terms = terms.shifts.size
    for term in range(n_terms):
        if terms.are_stumps:
            c = 4 * batch.weights[row, term] * batch.weights[row, n_terms + term]
            x = c * np.sin(0.5 * frequencies * terms.shifts[term]) ** 2
            total += sum(x**j / j for j in range(1, 7))
            continue
        total += grid.level
        cells = range(terms.starts[term], terms.starts[term + 1])
        for a in cells:
            for b in range(a + 1, cells.stop):
                c = 4 * grid.slope * batch.weights[row, a] * batch.weights[row, b]
                total += c * np.sin(0.5 * frequencies * (terms.scores[0, a] - terms.scores[0, b])) ** 2
    return total


@pytest.mark.parametrize("common", [1, 7])
@pytest.mark.parametrize(("n_terms", "n_cells", "largest"), [(90, 2, 40), (150, 2, 400), (80, 4, 60)])
def test_dropped_frequencies_are_bounded(n_terms: int, n_cells: int, largest: int, common: int) -> None:
    """The bound covers the exact sum of all that is left out, also where most shifts have a common divisor."""
    rng = np.random.default_rng(largest + common)
    table, starts, scores = draw_problem(rng, n_terms, n_cells, largest, 12)
    scores = np.where(np.arange(scores.size) < 8 * n_cells, scores, common * scores)
    problem = table, starts, scores
    terms, grid, batch, coefficients = begin(problem, draw_thresholds(rng, problem))
    bounds = fourier.bound_phi(coefficients)
    checked = 0
    for row in np.flatnonzero(batch.slot >= 0):
        period = shared.period_of(grid.shortest, batch.period_number[row])
        for allowed in (1e-6, 1e-11):
            kept, dropped = fourier._bound_dropped(grid, batch, row, period, allowed, bounds[batch.slot[row]])
            assert dropped <= allowed
            at = np.arange(kept, period // 2 + 1)
            if at.size:
                frequencies = 2 * math.pi * at / period
                weights = 1 / np.abs(1 - np.exp(-batch.theta[row] + 1j * frequencies))
                left_out = 2 / period * (evaluate_phi(terms, batch, row, frequencies) * weights).sum()
                assert left_out <= dropped + 1e-15
                checked += 1
    assert checked


@pytest.mark.parametrize(("n_terms", "n_cells", "largest"), [*SHAPES, (600, 2, 60), (64, 20, 100)])
def test_inversion_agrees_with_laws(n_terms: int, n_cells: int, largest: int) -> None:
    """Inverted rows have the mass of the laws to 1e-9, and most rows are inverted."""
    rng = np.random.default_rng(n_cells)
    problem = draw_problem(rng, n_terms, n_cells, largest, 40)
    thresholds = draw_thresholds(rng, problem)
    proven, logs, path = failures("numba", *problem, thresholds)
    proven_by_laws, logs_by_laws, path_by_laws = failures("numba", *problem, thresholds, invert=False)
    assert proven.tolist() == proven_by_laws.tolist()
    assert np.abs(logs - logs_by_laws).max() < 1e-9  # both are upper bounds, each less than that above the truth
    assert (path == INVERTED).mean() > 0.5
    assert (path_by_laws == TILTED).all()
    assert (logs == logs_by_laws)[path == TILTED].all()  # the same way, the same bits


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_terms=st.integers(64, 110),
    n_cells=st.integers(2, 4),
    largest=st.sampled_from([1, 2, 10, 64, 300]),
    steepness=st.sampled_from([0.3, 1.0, 4.0, 20.0]),
)
def test_drawn_models_agree_with_plain_laws(
    seed: int, n_terms: int, n_cells: int, largest: int, steepness: float
) -> None:
    """Whatever the terms are like, a failing mass is never below the plain law's, nor 1e-9 above."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, n_terms, n_cells, largest, 8, steepness)
    thresholds = draw_thresholds(rng, problem)
    proven, logs, _ = failures("numba", *problem, thresholds)
    low, high = tails("numpy", *problem, thresholds[:, None], thresholds[:, None])
    for row in range(8):
        reference = math.log(low[row, 0] if proven[row] else high[row, 0])
        if reference > -600:
            assert -REFERENCE_ERROR < logs[row] - reference < 1e-9


def test_a_nearly_even_lattice() -> None:
    """Where all scores but a rare one are even, |phi| is near 1 at frequency pi too: the law must not be smoothed."""
    rng = np.random.default_rng(3)
    table, starts, scores = draw_problem(rng, 200, 2, 50, 10)
    scores *= 2
    scores[:2] = [0, 1]
    for chance in (1e-3, 1e-8, 0.3):
        table[:, :2] = [1 - chance, chance]
        thresholds = draw_thresholds(rng, (table, starts, scores)) // 2 * 2
        _, logs, _ = failures("numba", table, starts, scores, thresholds)
        _, expected, _ = failures("numba", table, starts, scores, thresholds, invert=False)
        assert np.abs(logs - expected).max() < 1e-9


def test_inverted_rows_do_not_disturb_each_other() -> None:
    """A row has bit for bit the same result alone, at another place, and in a batch of another size."""
    rng = np.random.default_rng(8)
    problem = draw_problem(rng, 120, 2, 100, 150)
    thresholds = draw_thresholds(rng, problem)
    _, logs, _ = failures("numba", *problem, thresholds)
    table, *terms = problem
    for rows in (slice(0, 1), slice(149, 150), slice(3, 20), slice(60, 131)):
        _, some, _ = failures("numba", table[rows], *terms, thresholds[rows])
        assert some.tolist() == logs[rows].tolist()


def test_cells_of_equal_score_are_merged() -> None:
    """Cells that repeat a score change nothing but the number of additions."""
    rng = np.random.default_rng(4)
    table, starts, scores = draw_problem(rng, 70, 3, 20, 10)
    split = np.concatenate([table, table], axis=1).reshape(10, 2, 70, 3).transpose(0, 2, 1, 3).reshape(10, -1) / 2
    twice = np.concatenate([scores.reshape(70, 3)] * 2, axis=1).ravel()
    thresholds = draw_thresholds(rng, (table, starts, scores))
    proven, logs, _ = failures("numba", split, 2 * starts, twice, thresholds)
    expected_proven, expected, _ = failures("numba", table, starts, scores, thresholds)
    assert proven.tolist() == expected_proven.tolist()
    np.testing.assert_allclose(logs, expected, rtol=0, atol=1e-12)


def test_work_that_laws_do_faster_is_not_inverted() -> None:
    """The cost model leaves narrow laws to the laws: both ways give the same bits."""
    rng = np.random.default_rng(6)
    problem = draw_problem(rng, 64, 2, 1, 20)
    thresholds = draw_thresholds(rng, problem)
    _, logs, path = failures("numba", *problem, thresholds)
    _, expected, _ = failures("numba", *problem, thresholds, invert=False)
    assert logs.tolist() == expected.tolist()
    assert (path == TILTED).all()
