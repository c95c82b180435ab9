"""Checks of estimators' parameters: what is not a number of the right kind is refused. Must not know any estimator."""

from __future__ import annotations

import numpy as np

from derand._core.threads import count_threads


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number, `least` or larger."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"`{name}` must be a whole number, {least} or larger, got {value!r}.")


def check_number(name: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a number in (low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
    if not low < value <= high or not np.isfinite(value):
        limit = "positive and finite" if high == np.inf else f"above {low:g} and at most {high:g}"
        raise ValueError(f"`{name}` must be {limit}, got {value!r}.")


def check_stump_parameters(
    *,
    levels: object,
    split_step: object,
    max_entropy: object,
    categorical_leaf: object,
    min_rows_per_category: object,
    n_jobs: int | None,
) -> None:
    """Refuse parameters with which no independent ensemble can be trained."""
    check_whole("levels", levels, 1)
    if split_step is not None:
        check_number("split_step", split_step, 0.0, np.inf)
    check_number("max_entropy", max_entropy, 0.0, np.inf)
    if categorical_leaf is not None:
        check_number("categorical_leaf", categorical_leaf, 0.0, 0.5)
    if min_rows_per_category is not None:
        check_whole("min_rows_per_category", min_rows_per_category, 1)
    count_threads(n_jobs)
