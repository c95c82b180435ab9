"""Damaged tables end in success or in one line, never in a traceback."""

from __future__ import annotations

import pytest

from scripts.damage_tables import N_TABLES, damage_tables


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_tables", [19, pytest.param(N_TABLES, marks=pytest.mark.long)])
def test_damaged_tables_give_one_line_or_success(n_tables: int) -> None:
    """Every kind of damage, in both formats, for every command that reads a table."""
    found = damage_tables(n_tables)
    assert not found["faults"]
    assert found["commands"] == 3 * n_tables
    assert found["succeeded"] > 0
    assert found["refused_in_one_line"] > 0
