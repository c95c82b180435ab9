"""Packed columns hold the same numbers to the last bit, in few characters."""

from __future__ import annotations

import base64
import math

import numpy as np
import pytest

from derand.report._packing import Packed, count_bytes, pack


def unpack(packed: Packed) -> list[float]:
    """As the page's script reads them."""
    found = np.frombuffer(base64.b64decode(packed["bytes"]), dtype=f"<{packed['type']}")
    if "values" in packed:
        found = np.frombuffer(base64.b64decode(packed["values"]), dtype="<f8")[found]
    return [float(one) for one in found]


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (np.random.default_rng(0).normal(size=400).tolist(), "f8"),
        (list(range(1, 401)), "u4"),
        ([0.1, math.inf, 5e-324] * 100, "u1"),
        ([float(one % 300) / 7 for one in range(2000)], "u2"),
        ([2.0**32, 0.0], "f8"),
        ([], "f8"),
    ],
)
def test_numbers_come_back_to_the_last_bit(numbers: list[float], kind: str) -> None:
    packed = pack(numbers)
    assert packed["type"] == kind
    assert unpack(packed) == numbers
    assert count_bytes(packed) <= 4 * (8 * len(numbers) + 2) / 3


def test_gaps_and_infinity_as_text() -> None:
    """As the dict has them: None is missing, "inf" has no limit."""
    found = unpack(pack([None, "inf", 2.0]))
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, 2.0]
