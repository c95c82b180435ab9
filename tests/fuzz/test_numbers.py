"""Random sums as answers: no attack leaves an interval, and intervals that are made too narrow are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz import numbers
from tests.fuzz.drawing import draw_grid_case


@pytest.mark.parametrize("count", [pytest.param(60, id="few"), pytest.param(3000, id="many", marks=pytest.mark.long)])
def test_no_attack_leaves_an_interval(count: int) -> None:
    """Every rule, noise, norm and threat that is drawn."""
    assert next(numbers.check_numbers(count, seed=0), None) is None


def test_no_attack_leaves_an_interval_of_terms_of_several_columns() -> None:
    assert next(numbers.check_numbers(30, seed=2, draw=draw_grid_case), None) is None


def test_intervals_that_are_too_narrow_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half as wide on either side of the answer."""
    certify = numbers.NumberCase.certify

    def narrow(self: numbers.NumberCase) -> numbers.Intervals:
        right = certify(self)
        low, high = (0.5 * (end + right.value) for end in (right.low, right.high))
        return replace(right, low=np.minimum(low, right.value), high=np.maximum(high, right.value))

    monkeypatch.setattr(numbers.NumberCase, "certify", narrow)
    assert len(list(numbers.check_numbers(30, seed=1))) > 10
