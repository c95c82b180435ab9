"""Differences that chance explains, and those that it does not."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from derand.metrics import (
    adjust_chances,
    compare_paired,
    compare_shares,
    compute_wilson_interval,
    subtract_shares,
)


def test_fishers_test_adds_up_all_tables_that_are_no_likelier() -> None:
    """Against the sum over all tables with the same margins."""
    for count, other in product(range(6), range(8)):
        total, size, drawn = 12, 5, count + other
        weights = [math.comb(size, k) * math.comb(7, drawn - k) for k in range(max(0, drawn - 7), min(size, drawn) + 1)]
        own = math.comb(size, count) * math.comb(7, other)
        expected = sum(weight for weight in weights if weight <= own) / math.comb(total, drawn)
        assert compare_shares(count, size, other, 7) == pytest.approx(expected)


def test_mcnemars_test_is_that_of_a_fair_coin() -> None:
    """Twice the smaller tail, one at most."""
    for first, second in product(range(6), range(6)):
        n = first + second
        tail = sum(math.comb(n, k) for k in range(min(first, second) + 1)) / 2**n
        assert compare_paired(first, second) == pytest.approx(min(1.0, 2 * tail))


def test_holms_method_keeps_its_promise_and_its_order() -> None:
    """Of many true nulls, in 5 of 100 cases or fewer any is below 5 %; orders stay; one alone stays as it is."""
    draws = np.random.default_rng(0).uniform(size=(2000, 8))
    raised = np.array([adjust_chances(row.tolist()) for row in draws])
    assert (raised.min(axis=1) <= 0.05).mean() < 0.06
    assert all((np.diff(one[np.argsort(row)]) >= 0).all() for one, row in zip(raised, draws, strict=True))
    assert (raised >= draws).all()
    assert adjust_chances([0.03]) == [0.03]
    assert adjust_chances([]) == []


def test_the_interval_of_a_difference_covers_it() -> None:
    """In 95 of 100 cases, about, also of small groups with shares near 0; and it turns around with its sign."""
    draw = np.random.default_rng(1)
    pairs = [(draw.binomial(40, 0.05), draw.binomial(25, 0.2)) for _ in range(2000)]
    found = [subtract_shares(compute_wilson_interval(a, 40), compute_wilson_interval(b, 25)) for a, b in pairs]
    assert np.mean([one.low <= -0.15 <= one.high for one in found]) > 0.93
    one, other = compute_wilson_interval(3, 9), compute_wilson_interval(5, 11)
    there, back = subtract_shares(one, other), subtract_shares(other, one)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))
