"""What certificates of an EBM cost: measured on a few rows, and printed."""

from __future__ import annotations

import pytest

from experiments.commands._import_cost import format_cost
from experiments.importing import Cost, measure_cost


def test_costs_are_printed_with_the_slack() -> None:
    cost = Cost(14, 3500, 200, 17.2, 29.4, 7513.0, 7421.0, 0.4211, 0.3903, 0.3903, 0.3906)
    printed = format_cost(cost)
    assert "14 terms, 3500 cells" in printed
    assert "| mean | 17 | 0.4211 |" in printed
    assert "takes 0.077 % off" in printed


@pytest.mark.long
def test_the_slack_is_below_a_thousandth() -> None:
    """The vote's own grid takes less than 0.1 % off the mean radius, against a grid that needs no covering."""
    pytest.importorskip("interpret.glassbox")
    cost = measure_cost(n_rows=40, n_fine=20)
    assert cost.terms == 14
    assert cost.cells == 3500
    assert 0 <= cost.slack < 1e-3
