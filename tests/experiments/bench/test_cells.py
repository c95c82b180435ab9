"""Terms of many cells: both ways are measured."""

from __future__ import annotations

from experiments.bench._cells import bench_cells


def test_both_ways_are_measured() -> None:
    """Every shape has its figures; rows of many cells are inverted."""
    results = bench_cells({"small": (6, 20, 100)}, n_rows=2, repeats=1)
    assert set(results) == {f"small_{what}" for what in ("table", "laws", "with_inversion", "ratio", "share_inverted")}
    assert 0 <= (results["small_share_inverted"] or 0.0) <= 1
