"""Counts expected left of splits: every noise against plain sums over rows, and what a noise says about itself."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from derand import Gaussian, Laplace, Noise, Uniform
from derand.kernels.cells.expectation import sum_by_cdf, sum_by_interval

NOISES = [Gaussian(0.3), Gaussian(40.0), Uniform(0.7), Uniform(25.0), Laplace(0.2)]


def draw() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels, counts of three rows of several shapes, candidates far beyond both ends."""
    rng = np.random.default_rng(0)
    levels = np.unique(rng.exponential(2.0, 83))
    return levels, rng.integers(0, 5, (3, 2, levels.size)), np.linspace(-5, levels[-1] + 9, 401)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_expected_counts_are_plain_sums(noise: Noise) -> None:
    """What a noise expects left of a split is the sum of the shares of all rows."""
    levels, counts, candidates = draw()
    shares = noise.cdf((candidates - levels[:, None]) / noise.magnitude)
    np.testing.assert_allclose(noise.expected_left(levels, counts, candidates), counts @ shares, rtol=1e-12, atol=1e-11)
    flat = noise.expected_left(levels, counts[0, 0], candidates)
    np.testing.assert_array_equal(flat, noise.expected_left(levels, counts, candidates)[0, 0])


@pytest.mark.parametrize("noise", [Gaussian(0.3), Gaussian(1.0), Laplace(0.2)], ids=str)
@pytest.mark.parametrize("start", [-1.0, 1.5])
def test_many_levels_cost_no_accuracy(noise: Noise, start: float) -> None:
    """Where levels are many, nodes and running sums give the plain sums; in gaps counts stay whole."""
    rng = np.random.default_rng(1)
    levels = np.unique(np.concatenate([[0.0], rng.exponential(0.5, 1500), 40 + rng.exponential(0.5, 1500)]))
    counts = rng.integers(0, 5, (2, levels.size))
    candidates = start + 0.01 * np.arange(4800)
    found = noise.expected_left(levels, counts, candidates)
    general = sum_by_cdf(levels, counts, candidates, noise.cdf, noise.magnitude, noise.reach)
    assert not np.array_equal(found, general), "the quick way was not taken"
    np.testing.assert_allclose(found, general, rtol=0, atol=1e-14 * counts.sum())
    gap = (candidates > 15) & (candidates < 29)
    np.testing.assert_array_equal(
        found[:, gap], np.broadcast_to(counts[:, levels < 15].sum(1)[:, None], (2, gap.sum()))
    )


def test_uneven_candidates_are_summed_plainly() -> None:
    """Nodes need one step: other candidates give the same sums."""
    rng = np.random.default_rng(2)
    levels, counts = np.unique(rng.normal(size=2000)), np.ones((1, 2000), dtype=np.int64)
    candidates = np.sort(rng.normal(size=300))
    noise = Gaussian(0.3)
    general = sum_by_cdf(levels, counts, candidates, noise.cdf, 0.3, noise.reach)
    np.testing.assert_array_equal(noise.expected_left(levels, counts, candidates), general)


def test_running_sums_equal_the_general_way() -> None:
    """The override for uniform noise gives what the distribution function gives."""
    levels, counts, candidates = draw()
    noise = Uniform(0.7)
    general = sum_by_cdf(levels, counts, candidates, noise.cdf, noise.magnitude, noise.reach)
    np.testing.assert_allclose(sum_by_interval(levels, counts, candidates, 0.7), general, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("reach", [12.0, 1e6, 1e306, math.inf])
def test_a_longer_reach_changes_nothing_but_rounding(reach: float) -> None:
    """However far the noise is said to reach, the sums are the same."""
    levels, counts, candidates = draw()
    noise = Gaussian(0.3)
    found = sum_by_cdf(levels, counts, candidates, noise.cdf, noise.magnitude, reach)
    np.testing.assert_allclose(found, noise.expected_left(levels, counts, candidates), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_beyond_its_reach_a_noise_carries_nothing(noise: Noise) -> None:
    """The share beyond the reach vanishes beside a whole row; bounded noise ends there."""
    assert 1 - 2 * float(noise.cdf(-noise.reach)) == 1.0
    assert 1.0 + float(noise.cdf(-noise.reach)) == 1.0
    if math.isfinite(noise.support):
        assert noise.reach == noise.support
        assert noise.cdf(-noise.support) == 0.0
        assert noise.overhang == noise.support * noise.magnitude
    else:
        assert noise.overhang == 0.0


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_between_kinks_the_distribution_function_is_linear(noise: Noise) -> None:
    """A noise that names kinks has a piecewise linear distribution function."""
    ends = [-3.0, *noise.kinks, 3.0] if noise.kinks else []
    for low, high in pairwise(ends):
        at = np.linspace(low, high, 9)
        np.testing.assert_allclose(np.diff(noise.cdf(at), 2), 0.0, atol=1e-15)
