"""The compiled shares of an interval: differences rounded upward by no more than they must be, places do not matter."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand.kernels.cells.interval import bound_cells, bound_sides, subtract_up

NUMBERS = st.floats(-1e300, 1e300) | st.floats(-4.0, 4.0) | st.sampled_from([0.0, 1.0, -1.0, 2.0**-1074, 2.0**60, 0.1])


@given(NUMBERS, NUMBERS)
def test_differences_are_rounded_upward(a: float, b: float) -> None:
    """A difference is the smallest double that is not below the exact one."""
    exact, bound = Fraction(a) - Fraction(b), subtract_up(a, b)
    assert Fraction(math.nextafter(bound, -math.inf)) < exact <= Fraction(bound)


@given(NUMBERS, NUMBERS, NUMBERS.map(abs).filter(lambda half: half > 1e-300))
def test_sides_are_tight_upper_bounds(x: float, edge: float, half: float) -> None:
    """Both sides are at least the true shares, hardly more, and exactly 0 or 1 where those are."""
    reach = min(max(Fraction(edge) - Fraction(x), -Fraction(half)), Fraction(half))
    truths = (Fraction(half) + reach) / (2 * Fraction(half)), (Fraction(half) - reach) / (2 * Fraction(half))
    bounds = bound_sides(np.array([[x]]), np.array([edge]), np.array([half]))[0, 0].tolist()
    for bound, truth in zip(bounds, truths, strict=True):
        assert truth <= bound <= truth + Fraction(1, 2**49)
        assert bound == truth or 0 < truth < 1


@given(NUMBERS, st.lists(NUMBERS, min_size=1, max_size=6, unique=True), NUMBERS.map(abs).filter(lambda h: h > 1e-300))
def test_cells_are_tight_upper_bounds(x: float, edges: list[float], half: float) -> None:
    """Every cell of a term is at least the true share, hardly more, and exactly 0 or 1 where that is."""
    edges.sort()
    start, stop = Fraction(x) - Fraction(half), Fraction(x) + Fraction(half)
    ends = [start, *(min(max(Fraction(edge), start), stop) for edge in edges), stop]
    n_edges = len(edges)
    bounds = bound_cells(np.full((1, n_edges), x), np.array(edges), np.full(n_edges, half), np.array([0, n_edges]))
    for bound, low, high in zip(bounds[0].tolist(), ends[:-1], ends[1:], strict=True):
        truth = (high - low) / (2 * Fraction(half))
        assert truth <= bound <= truth + Fraction(1, 2**49)
        assert bound == truth or 0 < truth < 1


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 40])
def test_a_number_does_not_depend_on_its_place(size: int) -> None:
    """Vector instructions and the loop over what they leave round alike: shares are the same bit for bit."""
    rng = np.random.default_rng(size)
    x, edges, halves = rng.normal(size=(3, size)), rng.normal(size=size), rng.uniform(0.1, 2, size)
    sides, cells = bound_sides(x, edges, halves), bound_cells(x, edges, halves, np.arange(size + 1))
    assert (cells == sides.reshape(3, 2 * size)).all()
    pairs, ends = np.sort(rng.normal(size=(size, 2))), np.array([0, 2])
    twice, wide = np.repeat(x, 2, axis=1), np.repeat(halves, 2)
    between = bound_cells(twice, pairs.ravel(), wide, 2 * np.arange(size + 1)).reshape(3, size, 3)
    for row in range(3):
        for i in range(size):
            at, value = slice(i, i + 1), x[row : row + 1, i : i + 1]
            assert (sides[row, i] == bound_sides(value, edges[at], halves[at])[0, 0]).all()
            both = slice(2 * i, 2 * i + 2)
            assert (between[row, i] == bound_cells(twice[row : row + 1, both], pairs[i], wide[both], ends)[0]).all()
