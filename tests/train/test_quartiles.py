"""Quartiles of weighted values."""

from __future__ import annotations

import numpy as np
import pytest

from derand.train._quartiles import measure_quartile_range


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 100, 101])
def test_equal_weights_give_the_quartiles_of_numpy(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    low, high = np.quantile(values, [0.25, 0.75], method="averaged_inverted_cdf")
    for weights in (None, np.ones(size), np.full(size, 0.3)):
        assert measure_quartile_range(values, weights) == pytest.approx(high - low, rel=1e-12)


def test_a_weight_counts_as_so_many_equal_values() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        values, repeats = rng.normal(size=9).round(1), rng.integers(1, 5, size=9)
        expected = measure_quartile_range(np.repeat(values, repeats), None)
        assert measure_quartile_range(values, repeats * 0.7) == expected


def test_a_value_of_next_to_no_weight_leaves_no_trace() -> None:
    values, weights = np.array([1.0, 2.0, 3.0, 4.0, 1e9]), np.array([1.0, 1.0, 1.0, 1.0, 1e-12])
    assert measure_quartile_range(values, weights) == measure_quartile_range(values[:4], None)


def test_equal_values_have_no_range() -> None:
    assert measure_quartile_range(np.full(100, 0.1), np.linspace(0.9, 1.1, 100)) == 0.0
