"""Printed numbers are never better than the truth."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand.text import print_down, print_percent, print_up


@given(value=st.floats(0, 1e6), decimals=st.integers(0, 8))
def test_cutting_never_adds(value: float, decimals: int) -> None:
    """The printed number is at most the value, and less than one last digit below."""
    printed = Fraction(print_down(value, decimals))
    assert printed <= Fraction(value) < printed + Fraction(1, 10**decimals)


@given(value=st.floats(1e-300, 1.0), digits=st.integers(1, 6))
def test_rounding_up_never_subtracts(value: float, digits: int) -> None:
    """The printed number is at least the value, and close to it."""
    printed = Fraction(print_up(value, digits))
    assert Fraction(value) <= printed <= Fraction(value) * (1 + Fraction(1, 10 ** (digits - 1)))


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (print_down(float("inf"), 4), "inf"),
        (print_down(0.0, 2), "0.00"),
        (print_down(1e-12, 4), "0.0000"),
        (print_up(0.0, 2), "0"),
        (print_up(float("nan"), 2), "nan"),
        (print_up(5e-324, 2), "5.0e-324"),
        (print_percent(1.0), "100.0 %"),
        (print_percent(0.99999), "99.9 %"),
    ],
)
def test_ends_of_the_range_are_printed_plainly(printed: str, expected: str) -> None:
    """Zero, one, infinity and the smallest numbers read as expected."""
    assert printed == expected
