"""The benchmark of joint certificates."""

from __future__ import annotations

import pytest

from experiments.bench._joint import bench_joint


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_the_joint_bench_compares_equal_masses() -> None:
    """All budgets at once give the masses of one row and one budget at a time."""
    results = bench_joint(plain_rows=3, large_rows=1000)
    assert results["rows"] == 9769
    assert results["largest_absolute_gap"] < 1e-11
    assert results["large_rows_per_second"] > 0
