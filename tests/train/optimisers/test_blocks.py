"""Descent in blocks of columns: against programs that scipy solves, and its gap against what any weights lose."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from derand.noise import Gaussian
from derand.threat import Threat
from derand.train.additive import AdditiveOptions, bin_rows
from derand.train.design.columns import Design
from derand.train.design.model import bin_windows
from derand.train.formulations import InMemory, Margins, Problem
from derand.train.optimisers.base import Effort
from derand.train.optimisers.blocks import BlockDescent
from derand.train.table import TrainingTable

FINE, ROUGH = Effort(1e-6, 2_000), Effort(1e-2, 2_000)


def draw(n_rows: int = 60, n_columns: int = 2, seed: int = 0) -> TrainingTable:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_columns)), 1)
    y = (X.sum(axis=1) + 0.7 * rng.normal(size=n_rows) > 0).astype(np.uint8)
    return TrainingTable(X, y)


def prepare(
    table: TrainingTable, threat: Threat, radius: float, noise: Gaussian | None = None, n_cuts: int = 4
) -> tuple[BlockDescent, Design]:
    options = AdditiveOptions(radius, n_cuts=n_cuts)
    problem = Problem(noise, threat, options, table.n_features, 2)
    binned = bin_rows(table, options)
    rows = Margins(problem, bin_windows(binned, problem.specify(binned), radius))
    design = rows.design(False)
    found = rows.prepare(design, InMemory(rows.binned), 0.3, 1)
    assert isinstance(found, BlockDescent)
    return found, design


def solve_program(blocks: BlockDescent, design: Design, rows: tuple[np.ndarray, np.ndarray]) -> float:
    """The least loss in norm inf by SLSQP: margins are variables below every sum that a change can reach."""
    codes, target = rows
    states = sorted({(int(y), *map(int, row)) for row, y in zip(codes, target, strict=True)})
    counts = np.array([sum((target == y) & (codes == own).all(axis=1)) for y, *own in states]) / target.size
    size, starts = design.starts[-1], design.starts
    lines = []
    for at, (y, *own) in enumerate(states):
        sign = 2.0 * y - 1.0
        places = [np.unique(one.basis[code], axis=0) for one, code in zip(design.numbers, own, strict=True)]
        for chosen in itertools.product(*places):
            line = np.zeros(size + len(states))
            line[0] = sign
            for start, part in zip(starts.tolist(), chosen, strict=False):
                line[start : start + part.size] = sign * part
            line[size + at] = -1.0
            lines.append(line)
    matrix = np.array(lines)

    def lose(point: np.ndarray) -> tuple[float, np.ndarray]:
        weights, margins = point[:size], point[size:]
        slopes = np.concatenate([blocks.penalties * weights, -counts / (1 + np.exp(margins))])
        value = float(counts @ np.logaddexp(0, -margins) + 0.5 * blocks.penalties @ weights**2)
        return value, slopes

    start = np.concatenate([np.zeros(size), np.full(len(states), -1.0)])
    found = minimize(
        lose,
        start,
        jac=True,
        method="SLSQP",
        constraints=LinearConstraint(matrix, 0.0, np.inf),
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert (matrix @ found.x > -1e-7).all()
    return float(found.fun)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_a_convex_program(seed: int) -> None:
    table = draw(40, 2, seed)
    blocks, design = prepare(table, Threat(norm=math.inf), 0.3, n_cuts=3)
    blocks.fit(None, FINE)
    found, gap = blocks.result.loss, blocks.result.gap
    codes = np.stack(
        [np.searchsorted(one.bins.edges, table.X[:, one.feature], side="right") for one in design.numbers], axis=1
    )
    best = solve_program(blocks, design, (codes, table.target))
    assert gap <= 1e-5
    assert found == pytest.approx(best, abs=2e-5)


@pytest.mark.parametrize(
    ("norm", "noise"), [(math.inf, None), (1.0, None), (2.0, Gaussian(0.2)), (math.inf, Gaussian(0.2))]
)
def test_no_weights_lose_less_than_the_gap_allows(norm: float, noise: Gaussian | None) -> None:
    """Weights near the best ones, near nothing, and of a rougher fit; also by the true loss of two other fits."""
    blocks, _ = prepare(draw(200, 3), Threat(norm=norm), 0.3, noise)
    weights = blocks.fit(None, Effort(1e-3, 500))
    least = blocks.result.loss - blocks.result.gap
    assert blocks.result.gap >= 0
    rng = np.random.default_rng(0)
    others = [weights + size * rng.normal(size=weights.size) for size in (1e-3, 1e-2, 0.1) for _ in range(20)]
    others += [share * weights for share in (0.5, 0.9, 0.99, 1.01, 1.1)] + [blocks.fit(None, ROUGH), blocks.constant]
    assert min(blocks.measure(one) for one in others) >= least - 1e-9


def test_a_fit_begun_elsewhere_ends_at_the_same_loss() -> None:
    blocks, _ = prepare(draw(200, 3), Threat(norm=math.inf), 0.3)
    first = blocks.fit(None, Effort(1e-5, 1_000))
    loss = blocks.result.loss
    blocks.fit(first + np.random.default_rng(0).normal(size=first.size), Effort(1e-5, 1_000))
    assert blocks.result.loss == pytest.approx(loss, rel=1e-4)


def test_a_budget_of_categories_is_kept() -> None:
    """Twenty columns of categories of which one may change: the loss of the fit lies within its gap of any other's."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(300, 20)).astype(np.float64)
    target = (codes.sum(axis=1) + 0.5 * rng.normal(size=300) > 20).astype(np.uint8)
    table = TrainingTable(codes, target, n_categories=dict.fromkeys(range(20), 3))
    blocks, _ = prepare(table, Threat(norm=2, l0=1), 0.0)
    weights = blocks.fit(None, Effort(1e-3, 500))
    assert blocks.result.gap < 0.05 * blocks.result.loss  # that of the grid of multipliers
    assert blocks.result.loss < blocks.measure(blocks.constant) - 0.01
    assert blocks.measure(0.8 * weights) >= blocks.result.loss - blocks.result.gap


def test_a_bound_on_steps_is_told() -> None:
    blocks, _ = prepare(draw(200, 3), Threat(norm=math.inf), 0.3)
    blocks.fit(None, Effort(1e-9, 4))
    assert not blocks.result.has_ended
    assert blocks.result.gap > 0


def test_rows_of_a_weight_count_as_so_many() -> None:
    table = draw(100, 2)
    repeats = np.random.default_rng(0).integers(1, 4, 100)
    weighted = replace(table, sample_weight=repeats / repeats.mean())
    losses = []
    for one in (weighted, table.take(np.repeat(np.arange(100), repeats))):
        blocks, _ = prepare(one, Threat(norm=math.inf), 0.3)
        blocks.fit(None, FINE)
        losses.append(blocks.result.loss)
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
