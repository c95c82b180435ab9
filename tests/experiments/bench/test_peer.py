"""The benchmark beside a peer."""

from __future__ import annotations

import pytest

from experiments.bench._peer import bench_peer


def test_the_peer_bench_compares_equal_radii() -> None:
    """No row is left unexplained, and both have a time."""
    pytest.importorskip("veritas", reason="the dependency group `peers` is not installed")
    pytest.importorskip("xgboost", reason="the dependency group `peers` is not installed")
    results = bench_peer(datasets=("sklearn_wine",), rows=10)
    assert results["sklearn_wine_rows"] == 10
    assert results["sklearn_wine_rows_unexplained"] == 0
    assert results["sklearn_wine_derand_seconds_per_row"] > 0
    assert results["sklearn_wine_veritas_seconds_per_row"] > 0
