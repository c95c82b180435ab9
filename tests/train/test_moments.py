"""Sums and deviations against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from derand.train import Moments, TrainingTable, measure_units

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(values=st.lists(FINITE, min_size=1, max_size=30), at=st.integers(0, 30))
def test_sums_are_exact_and_deviations_rounded_once(values: list[float], at: int) -> None:
    """Of any doubles, subnormal ones and the largest included, and by parts as of all together."""
    moments = Moments.measure(np.array(values))
    exact = [Fraction(value) for value in values]
    assert moments.total == sum(exact) * 2**1200
    assert moments.squares == sum(value**2 for value in exact) * 2**2400
    assert Moments.measure(np.array(values[at:])) + Moments.measure(np.array(values[:at])) == moments
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    found = moments.compute_deviation()
    if found == 0 or variance < Fraction(1e-300) ** 2:
        assert variance < Fraction(1e-300) ** 2
        return
    beside = [float(np.nextafter(found, end)) for end in (0.0, np.inf)]
    low, high = ((Fraction(found) + Fraction(min(one, np.finfo(float).max))) / 2 for one in beside)
    assert low**2 <= variance
    assert variance <= high**2 or found == np.finfo(float).max


def test_units_do_not_depend_on_the_order_of_rows() -> None:
    """200,000 rows of values whose squares are no doubles: as NumPy adds them up, their order shows in the last bit."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 300, 200_000) / 7, rng.integers(0, 500, 200_000) * 0.1], axis=1)
    target = (np.arange(200_000) % 2).astype(np.uint8)
    wanted = measure_units(TrainingTable(X, target), "standard").tolist()
    np.testing.assert_allclose(wanted, [np.ascontiguousarray(column).std() for column in X.T], rtol=1e-14)
    for _ in range(3):
        assert measure_units(TrainingTable(rng.permutation(X), target), "standard").tolist() == wanted
