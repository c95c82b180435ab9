"""Worst cases without noise: exactly what is true, by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from derand.auditing._steps import Drop, holds


def is_safe(by_function: list[list[Drop]], margin: int, norm: float, radius: float) -> bool:
    """No choice of at most one drop per function within the radius adds up to the margin."""
    for choice in itertools.product(*([None, *drops] for drops in by_function)):
        drops = [drop for drop in choice if drop is not None]
        if sum(drop.decrease for drop in drops) < margin:
            continue
        if norm == 0:
            inside = len(drops) <= radius
        elif math.isinf(norm):
            inside = max((drop.measure(norm) for drop in drops), default=Fraction(0)) < Fraction(radius)
        else:
            inside = sum(drop.measure(norm) for drop in drops) < Fraction(radius) ** int(norm)
        if inside:
            return False
    return True


def draw_distances(rng: np.random.Generator) -> tuple[Fraction, ...]:
    """Of one column or two."""
    return tuple(Fraction(int(rng.integers(0, 9)), 4) for _ in range(rng.choice([1, 1, 2])))


@pytest.mark.parametrize("norm", [0, 1, 2, math.inf])
def test_against_enumeration(norm: float) -> None:
    """A claim is proven where it is true, and nowhere else; l1 and l2 round prices downward by 2**-61."""
    verdicts = set()
    for seed in range(400):
        rng = np.random.default_rng(seed)
        by_function = [
            [Drop(int(rng.integers(1, 12)), draw_distances(rng)) for _ in range(rng.integers(0, 4))]
            for _ in range(rng.integers(1, 5))
        ]
        margin = int(rng.integers(1, 30))
        radius = float(rng.integers(0, 5)) if norm == 0 else float(rng.choice([0.25, 0.5, 0.75, 1.0, 1.5, 2.25]))
        expected = is_safe(by_function, margin, norm, radius)
        found = holds(by_function, margin, norm, radius)
        assert not found or expected, seed
        if not found and norm in (1, 2):
            expected = is_safe(by_function, margin, norm, radius * (1 + 1e-12))
        assert found is expected, seed
        verdicts.add(expected)
    assert verdicts == {True, False}


def test_without_a_norm_everything_that_can_be_reached_counts() -> None:
    """Distances do not matter there."""
    drops = [[Drop(3, (Fraction(100),))], [Drop(2, (Fraction(0), Fraction(1)))]]
    assert holds(drops, 6, None, math.inf)
    assert not holds(drops, 5, None, math.inf)
    assert not holds(drops, 0, None, math.inf)


@pytest.mark.parametrize("norm", [1, 2])
def test_scores_too_fine_for_a_table_of_all_drops(norm: float) -> None:
    """Falls are rounded upward then: nothing untrue is proven, and of what is true nearly all."""
    proven = true = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        by_function = [
            [Drop(int(rng.integers(1, 2**45)), (Fraction(int(rng.integers(1, 2**20)), 2**19),)) for _ in range(3)]
            for _ in range(3)
        ]
        margin, radius = int(rng.integers(2**44, 2**46)), float(rng.integers(1, 9)) / 4
        found, expected = (judge(by_function, margin, norm, radius) for judge in (holds, is_safe))
        assert expected or not found
        proven, true = proven + found, true + expected
    assert true > 5
    assert proven >= 0.95 * true
