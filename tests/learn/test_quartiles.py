"""Quartiles of weighted values: numpy's where weights are equal, and sound where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from derand.learn._quartiles import _find_quantile, measure_quartile_range

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 100, 1001])
@pytest.mark.parametrize("weight", [None, 1.0, 0.3])
def test_equal_weights_give_exactly_the_quartiles_of_numpy(size: int, weight: float | None) -> None:
    """To the last bit, whatever the weight that all have."""
    values = RNG.normal(size=size)
    low, high = np.quantile(values, [0.25, 0.75])
    assert measure_quartile_range(values, None if weight is None else np.full(size, weight)) == high - low


@pytest.mark.parametrize("size", [2, 5, 8, 101])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75])
def test_the_weighted_quantile_of_equal_weights_is_that_of_numpy(size: int, share: float) -> None:
    """The window over cumulated weights is numpy's interpolation, up to rounding."""
    values = np.sort(RNG.normal(size=size))
    assert _find_quantile(values, np.full(size, 0.7), share) == pytest.approx(np.quantile(values, share), abs=1e-12)


def test_only_proportions_of_weights_count() -> None:
    """All weights times ten change nothing."""
    values, weights = RNG.normal(size=50), RNG.uniform(0.1, 3.0, size=50)
    expected = measure_quartile_range(values, weights)
    assert measure_quartile_range(values, 10 * weights) == pytest.approx(expected, rel=1e-12)


def test_a_weight_that_goes_to_zero_leaves_no_trace() -> None:
    """A row of next to no weight is as good as left out, even where it would be the quartile."""
    values, weights = np.arange(20.0), RNG.uniform(0.5, 2.0, size=20)
    for at in range(20):
        small, rest = weights.copy(), np.arange(20) != at
        small[at] = 1e-9
        expected = measure_quartile_range(values[rest], weights[rest])
        assert measure_quartile_range(values, small) == pytest.approx(expected, abs=1e-6)


def test_many_weighted_rows_have_the_quartiles_of_the_rows_they_stand_for() -> None:
    """Rows of whole weights come near to rows that are repeated so often."""
    values, repeats = RNG.normal(size=4000), RNG.integers(1, 4, size=4000)
    repeated = measure_quartile_range(np.repeat(values, repeats), None)
    assert measure_quartile_range(values, repeats.astype(float)) == pytest.approx(repeated, rel=1e-3)


def test_a_column_whose_middle_half_is_one_value_has_the_range_zero() -> None:
    """Exactly, though sums are rounded and windows end beside values that are far away."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = np.concatenate([np.full(80, 0.1 + rng.random()), [-1e9] * 10, [1e9] * 10])
        assert measure_quartile_range(values, rng.uniform(0.9, 1.1, size=100)) == 0.0
