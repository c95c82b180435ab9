"""The table of strategies: which sizes lead to which way, and that every way is one that can be gone."""

from __future__ import annotations

from typing import Any

import pytest

from derand.train.formulations import FORMULATIONS
from derand.train.strategies import LIMITS, LOSSES, Sizes, choose_strategy


def choose(**sizes: Any) -> str:
    """The strategy of a small table of two classes, but for what is given."""
    usual: dict[str, Any] = {"task": "classes", "n_rows": 500, "n_columns": 20, "n_numbers": 20, "n_classes": 2}
    return choose_strategy(Sizes(**(usual | sizes))).name


SMOOTH = {"moves": True, "is_smooth": True}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({}, "margins, all rows, all columns"),
        ({"n_rows": LIMITS.large_rows}, "margins, all rows, all columns"),
        ({"n_rows": LIMITS.large_rows + 1}, "margins, sample first, all columns"),
        ({"n_distinct": 501}, "margins, in parts, all columns"),
        ({"n_distinct": 500}, "margins, all rows, all columns"),
        ({"n_numbers": LIMITS.wide_columns}, "margins, all rows, chosen columns"),
        ({"n_numbers": LIMITS.wide_columns, "n_classes": 3}, "pairwise, all rows, all columns"),
        ({"n_numbers": 100, "wide_columns": 100}, "margins, all rows, chosen columns"),
        ({"n_classes": 3, **SMOOTH}, "pairwise, all rows, all columns"),
        ({"n_classes": 7, **SMOOTH}, "first order, all rows, all columns"),
        ({"n_classes": 7, **SMOOTH, "is_additive": False}, "pairwise, all rows, all columns"),
        ({"n_classes": 7, "moves": True}, "pairwise, all rows, all columns"),
        ({"n_classes": 7, **SMOOTH, "n_rows": 10**6}, "first order, in batches, all columns"),
        ({"n_classes": 3, "n_rows": 10**6}, "pairwise, in batches, all columns"),
        ({"n_classes": 3, "n_rows": 10**6, "moves": True}, "pairwise, sample first, all columns"),
        ({"n_grouped": 15, **SMOOTH}, "margins, all rows, all columns"),
        ({"n_grouped": 16, **SMOOTH}, "products, in batches, all columns"),
        ({"n_grouped": 16, **SMOOTH, "needs_bounds": True}, "margins, all rows, all columns"),
        ({"n_grouped": 4, **SMOOTH, "n_classes": 7}, "products, in batches, all columns"),
        ({"task": "regression", "n_classes": 0}, "least squares, all rows, all columns"),
        ({"task": "regression", "n_classes": 0, "moves": True}, "interval ends, all rows, all columns"),
    ],
)
def test_sizes_choose_the_way(sizes: dict[str, Any], expected: str) -> None:
    assert choose(**sizes) == expected


def test_every_loss_has_a_formulation_and_a_reason() -> None:
    """Those of classes; regression has a module of its own."""
    names = {way.name for way in LOSSES}
    assert names - set(FORMULATIONS) == {"interval ends", "least squares"}
    assert all(way.reason for way in LOSSES)
