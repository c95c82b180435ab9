"""Radii in short: rows without a limit are counted, and no average is infinite."""

from __future__ import annotations

import math

import numpy as np
import pytest

from derand import Certificates, Threat, average_certified_radius, summarize_radii
from tests.metrics.test_certified import CERTIFICATES, make_certificates


def test_rows_without_a_limit_stand_apart() -> None:
    """The share of them, and average and median of the others; wrong rows count 0, whatever their radius."""
    found = summarize_radii([0, 0, 1, 1, 1], CERTIFICATES)
    assert (found.n_unbounded, found.unbounded_share) == (1, 0.2)
    assert (found.average, found.median) == ((0.0 + 1.0 + 0.5 + 2.0) / 4, 0.5)
    wrong = summarize_radii([0, 0, 1, 1, 0], CERTIFICATES)
    assert (wrong.n_unbounded, wrong.average) == (0, average_certified_radius([0, 0, 1, 1, 0], CERTIFICATES))
    assert wrong.to_dict()["median_of_others"] == 0.5
    without = summarize_radii(None, CERTIFICATES)
    assert without.average == found.average


def test_where_no_row_has_a_limit_there_is_no_average() -> None:
    """None, which JSON can hold, and not infinity."""
    found = summarize_radii([0, 1], make_certificates([0, 1], [math.inf, math.inf]))
    assert found.to_dict() == {
        "rows": 2,
        "unbounded_rows": 2,
        "unbounded_share": 1.0,
        "average_of_others": None,
        "median_of_others": None,
    }


def test_what_has_no_radii_is_refused() -> None:
    """No rows, and verdicts."""
    with pytest.raises(ValueError, match="at least one"):
        summarize_radii(None, make_certificates([], []))
    held = np.array([1.0])
    limits = Certificates(
        np.array([0]), held, held, held, Threat(norm=None), flips=np.array([False]), witness=np.zeros((1, 1))
    )
    with pytest.raises(ValueError, match="got verdicts within limits"):
        summarize_radii([0], limits)
