"""Edges by bisection: the smallest double that goes right, whatever the comparison."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from derand.convert._edges import after, after_single, bisect_edges, from_single

numbers = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(allow_nan=False, allow_infinity=False, width=32)


def to_single(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(x))


@given(numbers)
def test_edges_in_doubles(at: float) -> None:
    (edge,) = bisect_edges(lambda x: x > at, 1)
    assert edge == after([at])[0] or (edge == np.inf and at == np.finfo(float).max)
    (edge,) = bisect_edges(lambda x: x >= at, 1)
    assert edge == at or (edge == -np.inf and at == -np.finfo(float).max)


@given(st.one_of(numbers, singles))
def test_edges_in_single_precision(at: float) -> None:
    """The edge goes right and the double before it left, as the library compares them."""
    (edge,) = after_single([at])
    if np.isfinite(edge):
        assert to_single(edge) > at
        assert not to_single(np.nextafter(edge, -np.inf)) > at
    (edge,) = from_single([at])
    if np.isfinite(edge):
        assert to_single(edge) >= at
        assert not to_single(np.nextafter(edge, -np.inf)) >= at


def test_comparisons_that_never_or_always_hold() -> None:
    edges = bisect_edges(lambda x: np.array([True, False, True]) & (x > np.array([-np.inf, 0, 0.5])), 3)
    assert edges.tolist() == [-np.inf, np.inf, np.nextafter(0.5, 1)]
    assert bisect_edges(lambda x: x > 0, 0).size == 0


def test_a_scaler_is_folded_to_the_last_bit() -> None:
    """The formula for such an edge is an ulp off in many cases; the bisected edge in none."""
    rng = np.random.default_rng(0)
    mean, scale, cuts = rng.normal(size=30) * 7, rng.uniform(0.01, 50, size=30), rng.normal(size=30)
    edges = bisect_edges(lambda x: (x - mean) / scale >= cuts, 30)
    assert ((edges - mean) / scale >= cuts).all()
    before = np.nextafter(edges, -np.inf)
    assert ((before - mean) / scale < cuts).all()
    assert (edges != cuts * scale + mean).any()
