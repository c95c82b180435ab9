"""The benchmark of boosting."""

from __future__ import annotations

import pytest

from experiments.bench._boost import bench_boost


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_the_boosting_bench_compares_equal_stumps() -> None:
    """The plain search finds the stumps that RobTreeBoost added, and both methods get a ratio."""
    results = bench_boost(plain_stumps=1, plain_features=1, plain_rows=2)
    assert results["tree_stumps_differ"] == 0
    assert results["tree_ratio"] == results["tree_plain_seconds_scaled"] / results["tree_derand_seconds"]
    assert (
        results["ada_ratio"] == results["ada_plain_seconds_per_round_scaled"] / results["ada_derand_seconds_per_round"]
    )
    assert results["ada_rows"] == 11876
