"""Masses in whole numbers: never below the true one, and as near as their bits allow."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from derand.auditing._balls import as_ball, ceil_scaled, use_bits
from derand.auditing._masses import bound_mass

Terms = list[tuple[list[int], list[Fraction]]]


def draw_terms(rng: np.random.Generator) -> Terms:
    terms = []
    for _ in range(rng.integers(1, 5)):
        size = int(rng.integers(1, 5))
        shares = rng.integers(0, 50, size) + np.eye(size, dtype=np.int64)[0]
        scores = (rng.integers(-30, 30, size) * rng.choice([1, 5])).tolist()
        terms.append((scores, [Fraction(int(share), int(shares.sum())) for share in shares]))
    return terms


def add_exactly(terms: Terms, cut: int) -> Fraction:
    total = Fraction(0)
    for cells in itertools.product(*(range(len(scores)) for scores, _ in terms)):
        if sum(scores[at] for (scores, _), at in zip(terms, cells, strict=True)) <= cut:
            mass = Fraction(1)
            for (_, masses), at in zip(terms, cells, strict=True):
                mass *= masses[at]
            total += mass
    return total


@pytest.mark.parametrize("tilted", [False, True])
def test_masses_against_enumeration(tilted: bool) -> None:
    """Rational masses, untilted as fractions and tilted as balls, at every kind of threshold."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        terms = draw_terms(rng)
        cut = int(rng.integers(-60, 60))
        true = add_exactly(terms, cut)
        with use_bits(160):
            given = [(scores, [as_ball(mass) for mass in masses]) for scores, masses in terms] if tilted else terms
            found = Fraction(ceil_scaled(bound_mass(given, cut, 96), 200), 1 << 200)
        assert found >= true
        assert found <= true * (1 + Fraction(1, 2**60)) + (0 if true else Fraction(1, 2**60))


def test_far_tails_lose_no_digits() -> None:
    """A mass of 1e-300 has as many digits as one near 1/2: masses are tilted towards the threshold."""
    rare = Fraction(1, 10**30)
    terms = [([0, 7], [rare, 1 - rare])] * 10
    with use_bits(128):
        found = bound_mass([(scores, [as_ball(mass) for mass in masses]) for scores, masses in terms], 3, 64)
        assert found >= as_ball(rare**10)
        assert found <= as_ball(rare**10) * (1 + as_ball(1e-12))


def test_impossible_sums_have_no_mass() -> None:
    """Exactly 0, and exactly 1 where nothing else is possible."""
    coin = ([2, 4], [Fraction(1, 2), Fraction(1, 2)])
    assert bound_mass([coin, coin], 3, 64).is_zero()
    assert bound_mass([coin, coin], 8, 64) == 1
    never = ([0, 4], [Fraction(0), Fraction(1)])
    assert bound_mass([never, coin], 4, 64).is_zero()
