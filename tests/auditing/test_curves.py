"""Functions under noise in balls: the least value on an interval is a lower bound, and near the true one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from derand import Gaussian, Laplace, Noise, Uniform
from derand.auditing._balls import as_ball_noise, use_bits
from derand.auditing._curves import BITS, Cost, Curve
from derand.auditing._oriented import Axis


@pytest.mark.parametrize("noise", [Gaussian(0.4), Uniform(0.6), Laplace(0.3)])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_lowest_values_against_a_dense_search(noise: Noise, power: int) -> None:
    """With and without a cost, between finite ends and infinite ones: below all of 20,000 places, hardly below."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        edges = np.unique(np.round(rng.normal(size=rng.integers(1, 7)) * 2, 2))
        scores = rng.integers(-30, 31, edges.size + 1)
        x = float(np.round(rng.normal() * 2, 3))
        low, high = (-math.inf, math.inf) if rng.random() < 0.4 else (x - rng.uniform(0, 3), x + rng.uniform(0, 3))
        cost = Cost(float(rng.uniform(0.5, 40)), power, x, Fraction(2)) if power else None
        places = np.linspace(max(low, -12), min(high, 12), 20_001)
        values = scores[0] + noise.cdf((places[:, None] - edges) / noise.magnitude) @ np.diff(scores)
        if cost is not None:
            values = values + cost.multiplier * np.abs((places - x) / 2) ** power
        with use_bits(BITS):
            curve = Curve(Axis(0, x, tuple(edges.tolist())), tuple(scores.tolist()), as_ball_noise(noise))
            found = curve.bound_lowest(x, low, high, cost, 1e-6)
        assert found.bound <= values.min() + 1e-9
        if scores.max() > scores.min():
            assert found.bound >= values.min() - 0.02  # what the search leaves out between its places


def test_a_cap_cuts_off_above() -> None:
    """Scores above the cap count as the cap."""
    with use_bits(BITS):
        curve = Curve(Axis(0, 0.0, (0.0,)), (-5, 100), as_ball_noise(Gaussian(1.0)), cap=10)
        assert float(curve.value(50.0)) == 5.0
        assert curve.range == 10
