"""Losses of several classes: margins against a plain search, slopes against differences, two classes against one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand._core.arrays import FloatArray
from derand.noise import Gaussian
from derand.threat import Threat
from derand.train.bins import BinnedTable, bin_table
from derand.train.design.columns import Design, ModelSpec
from derand.train.design.model import design_model
from derand.train.design.steepness import add_steepness
from derand.train.losses.margin import MarginLoss
from derand.train.losses.pairwise import PairwiseLoss
from derand.train.losses.rows import RowsInMemory
from derand.train.losses.softmax import SoftmaxLoss
from derand.train.optimisers.descent import Precondition, rate_classes
from derand.train.table import TrainingTable

CLASSES = 3
NOISE = Gaussian(0.4)


def make_rows(n_rows: int = 60, n_classes: int = CLASSES) -> BinnedTable:
    """Two numbers, one of them missing at times, and a category of three, missing at times."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=n_rows), rng.exponential(size=n_rows), rng.integers(0, 3, size=n_rows)])
    X[rng.random(n_rows) < 0.2, 1] = np.nan
    X[rng.random(n_rows) < 0.2, 2] = np.nan
    target = rng.integers(0, n_classes, size=n_rows).astype(np.uint8)
    weights = rng.integers(1, 4, size=n_rows) / 2.0
    table = TrainingTable(X, target, np.ones(n_classes), sample_weight=weights, n_categories={2: 3})
    return bin_table(table, n_bins=12)


def make_design(rows: BinnedTable, norm: float | None, radius: float, **changes: Any) -> Design:
    threat = Threat(norm=norm, units=(1.0, 2.0, 1.0), limits={"*": 0.5} if norm is None else {}, **changes)
    return design_model(rows, ModelSpec(NOISE, threat, 3, 5), radius)


def make_steep(design: Design, norm: float, radius: float, **changes: Any) -> Design:
    """The same with the steepness of its functions."""
    return add_steepness(design, ModelSpec(NOISE, Threat(norm=norm, units=(1.0, 2.0, 1.0), **changes), 3, 5), radius)


def draw_weights(design: Design, n_classes: int = CLASSES) -> FloatArray:
    return np.random.default_rng(1).normal(size=n_classes * int(design.starts[-1]))


def check_slopes(loss: Any, weights: FloatArray, temperature: float, tolerance: float = 1e-7) -> None:
    value, slopes = loss.evaluate(weights, temperature)
    step = 1e-6
    for at in range(weights.size):
        moved = weights.copy()
        moved[at] += step
        above = loss.evaluate(moved, temperature)[0]
        moved[at] -= 2 * step
        below = loss.evaluate(moved, temperature)[0]
        assert (above - below) / (2 * step) == pytest.approx(slopes[at], abs=tolerance)
    assert np.isfinite(value)


@pytest.mark.parametrize("norm", [1, 2, np.inf, None])
def test_duels_leave_what_the_worst_places_leave(norm: float | None) -> None:
    """The margin of a pair is that of the model of two classes whose weights are the differences."""
    rows = make_rows()
    design = make_design(rows, norm, 0.5, l0=1)
    weights = draw_weights(design)
    found = PairwiseLoss(design, rows, CLASSES).compute_margins(weights)
    by_class = weights.reshape(CLASSES, -1)
    expected = np.full(rows.target.size, np.inf)
    for label in range(CLASSES):
        for rival in range(CLASSES):
            if label == rival:
                continue
            one = replace(rows, target=np.ones_like(rows.target))
            margins = MarginLoss(design, RowsInMemory(design, one)).compute_margins(by_class[label] - by_class[rival])
            own = rows.target == label
            expected[own] = np.minimum(expected[own], margins[own])
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("norm", [1, 2, np.inf, None])
def test_slopes_of_duels_are_those_of_differences(norm: float | None) -> None:
    rows = make_rows()
    design = replace(make_design(rows, norm, 0.5, l0=1), deduction=0.3)
    weights = draw_weights(design)
    loss = PairwiseLoss(design, rows, CLASSES)
    loss.choose_multipliers(weights)
    check_slopes(loss, weights, 0.05)


@pytest.mark.parametrize("norm", [None, 1, 2, np.inf])
@pytest.mark.parametrize("deduction", [0.0, 0.3])
def test_slopes_of_steepness_are_those_of_differences(norm: float | None, deduction: float) -> None:
    rows = make_rows()
    design = replace(make_design(rows, 2, 0.0), deduction=deduction)
    design = design if norm is None else make_steep(design, norm, 0.5)
    check_slopes(SoftmaxLoss(design, rows, CLASSES), draw_weights(design), 0.0, 1e-6)


def test_rows_as_they_are_lose_as_softmax_says() -> None:
    rows = make_rows()
    design = make_design(rows, 2, 0.0)
    weights = draw_weights(design)
    loss = SoftmaxLoss(design, rows, CLASSES)
    scores = loss.score(weights)
    own = scores[np.arange(rows.target.size), rows.target]
    losses = np.log(np.exp(scores).sum(axis=1)) - own
    assert loss.measure(weights) == pytest.approx(np.average(losses, weights=rows.weights))
    assert PairwiseLoss(design, rows, CLASSES).measure(weights) == pytest.approx(loss.measure(weights))
    ahead = np.where(np.eye(CLASSES, dtype=bool)[rows.target], np.inf, own[:, None] - scores).min(axis=1)
    np.testing.assert_allclose(loss.compute_margins(weights), ahead)


def test_two_classes_lose_as_one_score_does() -> None:
    rows = make_rows(n_classes=2)
    design = make_design(rows, 2, 0.5, l0=1)
    weights = draw_weights(design, 2)
    low, high = weights.reshape(2, -1)
    expected = MarginLoss(design, RowsInMemory(design, rows)).measure(high - low)
    assert PairwiseLoss(design, rows, 2).measure(weights) == pytest.approx(expected)


def test_steepness_is_what_small_changes_cost() -> None:
    """To first order a small radius takes as much from a margin as it does from that of pairs, in a fine search."""
    rows = make_rows()
    radius = 0.02
    near, there = make_design(rows, np.inf, radius), make_design(rows, np.inf, 0.0)
    weights = draw_weights(there)
    plain = SoftmaxLoss(there, rows, CLASSES).compute_margins(weights)
    lost = plain - SoftmaxLoss(make_steep(there, np.inf, radius), rows, CLASSES).compute_margins(weights)
    expected = plain - PairwiseLoss(near, rows, CLASSES).compute_margins(weights)
    assert np.corrcoef(lost, expected)[0, 1] > 0.9
    assert np.median(lost / expected) == pytest.approx(1.0, abs=0.2)


def test_frozen_columns_are_not_steep() -> None:
    rows = make_rows()
    design = make_design(rows, 2, 0.0)
    steepness = make_steep(design, 2, 0.5, frozen=(0,)).steepness
    assert steepness is not None
    assert not steepness.basis[0].any()
    assert steepness.basis[1].any()


def test_batches_in_single_precision_and_threads_change_next_to_nothing() -> None:
    rows = make_rows(3000)
    design = make_steep(make_design(rows, 2, 0.0), 2, 0.5)
    weights = draw_weights(design)
    found = [SoftmaxLoss(design, rows, CLASSES, threads).evaluate(weights, 0.0)[1] for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    batch = SoftmaxLoss(design, rows, CLASSES, 2)
    batch.take(np.arange(3000))
    np.testing.assert_allclose(batch.evaluate(weights, 0.0)[1], found[0], atol=1e-5)
    batch.take(None)
    np.testing.assert_array_equal(batch.evaluate(weights, 0.0)[1], found[0])


def test_a_change_of_variables_can_be_undone() -> None:
    rows = make_rows()
    design = make_design(rows, 2, 0.0)
    penalties = design.list_penalties(1.0) / 60
    shares = [np.full(4, 0.25)]
    change = Precondition(design, penalties, shares, rate_classes(np.array([0.2, 0.3, 0.5])), CLASSES)
    weights = draw_weights(design)
    np.testing.assert_allclose(change.to_weights(change.to_point(weights)), weights, atol=1e-9)
