"""A flipped bit in a model file is refused, or changes nothing."""

from __future__ import annotations

import pytest

from scripts.flip_bits import KINDS, N_FLIPS, flip_bits


@pytest.mark.parametrize("n_flips", [100, pytest.param(N_FLIPS, marks=pytest.mark.long)])
def test_no_flipped_bit_loads_with_other_certificates(n_flips: int) -> None:
    """Over all kinds of models: refused with a ValueError, or the same certificates to the bit."""
    found = flip_bits(n_flips)
    assert set(found) == set(KINDS)
    for tally in found.values():
        assert tally["other_certificates"] == tally["other_errors"] == 0
        assert tally["refused"] + tally["same_certificates"] == tally["flips"] > 0
