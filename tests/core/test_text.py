"""Printed numbers are never better than the truth."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derand._core.text import (
    as_plain_json,
    format_distance,
    format_down,
    format_exactly,
    format_percent,
    format_short,
    format_short_down,
    format_short_up,
    format_up,
)


@given(value=st.floats(0, allow_infinity=False, allow_nan=False), decimals=st.integers(0, 8))
def test_cutting_never_adds(value: float, decimals: int) -> None:
    """The printed number is at most the value, and less than one last digit below."""
    printed = Fraction(format_down(value, decimals))
    assert printed <= Fraction(value) < printed + Fraction(1, 10**decimals)


@given(value=st.floats(1e-300, 1.0), digits=st.integers(1, 6))
def test_rounding_up_never_subtracts(value: float, digits: int) -> None:
    """The printed number is at least the value, and close to it."""
    printed = Fraction(format_up(value, digits))
    assert Fraction(value) <= printed <= Fraction(value) * (1 + Fraction(1, 10 ** (digits - 1)))


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (format_down(float("inf"), 4), "inf"),
        (format_down(0.0, 2), "0.00"),
        (format_down(1e-12, 4), "0.0000"),
        (format_up(0.0, 2), "0"),
        (format_up(float("nan"), 2), "nan"),
        (format_up(5e-324, 2), "5.0e-324"),
        (format_percent(1.0), "100.0 %"),
        (format_percent(0.99999), "99.9 %"),
        (format_down(1e26, 3), "100000000000000004764729344.000"),
        (format_down(1.7976931348623157e308, 1)[-4:], "68.0"),
        (format_short_down(float("inf")), "no limit"),
        (format_short_down(9999999.9), "9999999"),
        (format_short_down(1e26), "1e26"),
        (format_short_up(5e-324), "4.95e-324"),
        (format_short(-0.0), "0"),
    ],
)
def test_ends_of_the_range_are_printed_plainly(printed: str, expected: str) -> None:
    """Zero, one, infinity and the smallest numbers read as expected."""
    assert printed == expected


@given(value=st.floats(1e-300, 1e300), digits=st.integers(1, 6))
def test_short_numbers_lie_on_the_safe_side(value: float, digits: int) -> None:
    """Cut numbers are at most the value and raised ones at least, both within one last digit."""
    low, high = Fraction(format_short_down(value, digits)), Fraction(format_short_up(value, digits))
    assert low <= Fraction(value) <= high
    assert high - low <= Fraction(value) / 10 ** (digits - 1)


@given(value=st.floats(0, allow_infinity=False, allow_nan=False))
def test_what_the_user_gave_is_printed_exactly(value: float) -> None:
    """The text reads as the same double: a radius that is asked for is never rounded up."""
    assert float(format_exactly(value)) == value


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1.0, "1"), (0.25, "0.25"), (0.1234567, "0.1234567")])
def test_whole_numbers_have_no_decimals(value: float, text: str) -> None:
    """A radius of 1 is printed as 1."""
    assert format_exactly(value) == text


def test_json_gets_no_number_that_it_cannot_hold() -> None:
    """Infinity becomes text and NaN null; types of numpy, tuples and keys that are numbers become plain."""
    value = {1: (np.float64(0.5), np.int64(3)), "a": [np.inf, -np.inf, np.float64("nan")], "b": np.True_, "c": None}
    plain = as_plain_json(value)
    assert plain == {"1": [0.5, 3], "a": ["inf", "-inf", None], "b": True, "c": None}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    with pytest.raises(TypeError, match="got a set"):
        as_plain_json({"x": {1, 2}})


def test_distances_are_rounded_up_but_for_a_hair() -> None:
    """What is measured a hair above a short number is that number; nothing else is shown too small."""
    for text in ("1", "0.1", "0.899", "12", "12345", "1.23e-5", "0"):
        value = float(text)
        for hair in (0.0, 3e-16, 1e-12, 1e-11):
            assert format_distance(value * (1 + hair)) == text
    assert format_distance(1 + 1e-9) == format_short_up(1 + 1e-9) == "1.01"
    assert format_distance(float("inf")) == "no limit"
