"""Certified margins: against a plain search over all places, and their slopes against differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from derand._core.arrays import FloatArray
from derand.noise import Gaussian, Laplace, Noise, Uniform
from derand.threat import Threat
from derand.train.bins import BinnedTable, bin_table
from derand.train.design.columns import Design, ModelSpec
from derand.train.design.model import design_model
from derand.train.losses.margin import MarginLoss
from derand.train.losses.rows import RowsInMemory
from derand.train.optimisers.descent import Precondition
from derand.train.table import TrainingTable


def make_rows(n_rows: int = 60, seed: int = 0) -> BinnedTable:
    """Two numbers, one of them missing at times, and a category of three, missing at times."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n_rows), rng.exponential(size=n_rows), rng.integers(0, 3, size=n_rows)])
    X[rng.random(n_rows) < 0.2, 1] = np.nan
    X[rng.random(n_rows) < 0.2, 2] = np.nan
    target = rng.integers(0, 2, size=n_rows).astype(np.uint8)
    return bin_table(TrainingTable(X, target, n_categories={2: 3}), n_bins=12)


def make_design(rows: BinnedTable, norm: float | None, noise: Noise | None, radius: float, **changes: Any) -> Design:
    limits = {"limits": {"*": 0.5}} if norm is None else {}
    threat = Threat(norm=norm, units=(1.0, 2.0, 1.0), **limits, **changes)
    return design_model(rows, ModelSpec(noise, threat, 3, 5), radius)


def make_loss(design: Design, rows: BinnedTable, n_threads: int = 1) -> MarginLoss:
    return MarginLoss(design, RowsInMemory(design, rows, n_threads))


def draw_weights(design: Design, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).normal(size=int(design.starts[-1]))


def search_margins(design: Design, rows: BinnedTable, weights: FloatArray, radius: float, norm: float | None) -> Any:
    """Least sided score of each row over all places of its numbers, within the ball; a plain loop."""
    starts = design.starts
    margins = []
    for codes, label in zip(rows.codes.tolist(), rows.target.tolist(), strict=True):
        sign = 2 * label - 1
        choices = []
        for at, column in enumerate(design.numbers):
            own = weights[starts[at] : starts[at + 1]]
            if codes[at] == column.n_codes - 1:
                choices.append([(sign * own[-1], 0.0)])
            else:
                values = column.basis[codes[at]].astype(float) @ own[: column.basis.shape[2]]
                choices.append(list(zip((sign * values).tolist(), column.costs[codes[at]].tolist(), strict=True)))
        table = np.append(weights[starts[2] : starts[3]], 0.0)
        fixed = sign * (weights[0] + table[codes[2]])
        budget = np.inf if norm is None or norm == np.inf else radius**norm * (1 + 1e-12)
        margins.append(
            fixed + min(sum(v for v, _ in combo) for combo in product(*choices) if sum(c for _, c in combo) <= budget)
        )
    return np.array(margins)


@pytest.mark.parametrize("norm", [1, 2, np.inf, None])
@pytest.mark.parametrize("noise", [None, Gaussian(0.3), Uniform(0.5), Laplace(0.4)])
def test_margins_are_those_of_the_worst_places(norm: float | None, noise: Noise | None) -> None:
    """Exactly so where nothing couples the columns; in a ball multipliers prove a little less, never more."""
    rows = make_rows()
    design = make_design(rows, norm, noise, 0.7)
    weights = draw_weights(design)
    found = make_loss(design, rows).compute_margins(weights)
    expected = search_margins(design, rows, weights, 0.7, norm)
    assert (found <= expected + 1e-9).all()
    if norm in (np.inf, None):
        assert found == pytest.approx(expected, abs=1e-9)
    else:
        assert (expected - found).max() < 0.6
        assert np.median(expected - found) < 0.15


def test_changed_categories_cost_the_best_change() -> None:
    rows = make_rows()
    design = make_design(rows, 2, None, 0.0, l0=1)
    weights = draw_weights(design)
    found = make_loss(design, rows).compute_margins(weights)
    fixed = make_loss(make_design(rows, 2, None, 0.0), rows).compute_margins(weights)
    table = np.append(weights[design.starts[2] : design.starts[3] - 1], 0.0)  # the last one is that of unseen values
    own = np.append(weights[design.starts[2] : design.starts[3]], 0.0)[rows.codes[:, 2]]
    signs = 2.0 * rows.target - 1
    drop = np.maximum(signs * own - np.where(signs > 0, table.min(), -table.max()), 0.0)
    assert (found <= fixed - drop + 1e-9).all()
    assert found == pytest.approx(fixed - drop, abs=0.35)  # multipliers are a grid


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("temperature", [0.3, 0.02, 0.0])
def test_slopes_are_differences(norm: float, temperature: float) -> None:
    rows = make_rows()
    design = make_design(rows, norm, Gaussian(0.3), 0.7, l0=1)
    loss = make_loss(design, rows)
    weights = draw_weights(design)
    loss.choose_multipliers(weights)
    _, slopes = loss.evaluate(weights, temperature)
    step = 1e-6
    for at in range(0, weights.size, 3):
        moved = np.zeros(weights.size)
        moved[at] = step
        difference = (
            loss.evaluate(weights + moved, temperature)[0] - loss.evaluate(weights - moved, temperature)[0]
        ) / (2 * step)
        assert slopes[at] == pytest.approx(difference, abs=2e-6)


def test_slopes_count_what_is_deducted_for_the_widest_function() -> None:
    rows = make_rows()
    design = replace(make_design(rows, 2, Gaussian(0.3), 0.7), deduction=0.73)
    loss = make_loss(design, rows)
    weights = draw_weights(design)
    loss.choose_multipliers(weights)
    plain = make_loss(replace(design, deduction=0.0), rows).compute_margins(weights)
    shapes = [one.read(weights[design.starts[at] : design.starts[at + 1]]) for at, one in enumerate(design.numbers)]
    widest = max(float(np.ptp(shape.values)) for shape in shapes)
    deducted = plain - loss.compute_margins(weights)
    assert deducted == pytest.approx(0.73 * widest, rel=0.05)
    _, slopes = loss.evaluate(weights, 0.02)
    for at in range(0, weights.size, 2):
        moved = np.zeros(weights.size)
        moved[at] = 1e-6
        difference = (loss.evaluate(weights + moved, 0.02)[0] - loss.evaluate(weights - moved, 0.02)[0]) / 2e-6
        assert slopes[at] == pytest.approx(difference, abs=2e-6)


def test_neither_threads_nor_order_change_the_loss() -> None:
    rows = make_rows(n_rows=30_000)
    design = make_design(rows, 2, Gaussian(0.3), 0.7)
    weights = draw_weights(design)
    found = []
    for n_threads in (1, 2, 5):
        loss = make_loss(design, rows, n_threads)
        loss.choose_multipliers(weights)
        value, slopes = loss.evaluate(weights, 0.05)
        found.append((value, slopes.tolist()))
    assert found[0] == found[1] == found[2]


def test_a_change_of_variables_can_be_undone() -> None:
    rows = make_rows()
    design = make_design(rows, 2, Gaussian(0.3), 0.7)
    penalties = design.list_penalties(0.1) / 60
    change = Precondition(design, penalties, [np.full(4, 0.25)], 0.5)
    weights = draw_weights(design)
    assert change.to_weights(change.to_point(weights)) == pytest.approx(weights, abs=1e-9)
    slopes = draw_weights(design, seed=2)
    point = change.to_point(weights)
    assert float(change.to_slopes(slopes) @ point) == pytest.approx(float(slopes @ weights), rel=1e-9)
