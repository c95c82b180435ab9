"""The benchmark of the rule mean measures every norm, smoothed and deployed."""

from __future__ import annotations

from experiments.bench._mean import bench_mean


def test_every_norm_is_measured() -> None:
    """All figures are there, and none is zero."""
    results = bench_mean(n_terms=3, n_cells=20, n_rows=50)
    for norm in ("l2", "l1", "linf", "l0"):
        for kind in ("smoothed", "deployed"):
            assert results[f"{norm}_{kind}_microseconds_per_row"] > 0  # type: ignore[operator]
    assert results["vote_microseconds_per_row"] > 0  # type: ignore[operator]
