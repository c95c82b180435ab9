"""The benchmark beside a peer."""

from __future__ import annotations

import pytest

from experiments.bench._peer import bench_peer


def test_the_peer_bench_compares_equal_radii() -> None:
    """No row is left unexplained, and both have a time."""
    pytest.importorskip("veritas", reason="the dependency group `peers` is not installed")
    pytest.importorskip("xgboost", reason="the dependency group `peers` is not installed")
    results = bench_peer(datasets=("sklearn_wine",), rows=10, trees=(("sklearn_breast_cancer", "default", 0.05),))
    assert results["sklearn_wine_rows"] == 10
    assert results["sklearn_wine_rows_unexplained"] == 0
    assert results["sklearn_wine_derand_seconds_per_row"] > 0
    assert results["sklearn_wine_veritas_seconds_per_row"] > 0
    trees = {name.split("_5_")[1]: value for name, value in results.items() if "_5_" in name}
    assert trees["rows_differ"] == trees["rows_undecided"] == trees["rows_veritas_forms_differ"] == 0
    assert trees["rows_hold"] + trees["rows_flip"] == trees["rows"] == 10
