"""Checks of estimators' parameters: what is not a number of the right kind is refused. Must not know any estimator."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number, `least` or larger."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"`{name}` must be a whole number, {least} or larger, got {value!r}.")


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not a number in (low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
    if not low < value <= high or not np.isfinite(value):
        limit = "positive and finite" if high == np.inf else f"above {low:g} and at most {high:g}"
        raise ValueError(f"`{name}` must be {limit}, got {value!r}.")
