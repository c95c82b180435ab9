"""Long and wide tables: every work is measured."""

from __future__ import annotations

import pytest

from experiments.bench._tables import bench_tables


@pytest.mark.long
def test_every_work_is_measured() -> None:
    """Small tables go all the way: CPU time of each work is there, and so is its memory."""
    results = bench_tables(2_000, ((60, 30),), {"tree-boost": 300, "ada-boost": 300})
    works = {name.removesuffix("_cpu_seconds") for name in results if name.endswith("_cpu_seconds")}
    assert works == {
        "start",
        "tree_boost_300",
        "ada_boost_300",
        "train_stumps_60x30",
        "train_additive_60x30",
        "certify_csv",
        "certify_parquet",
        "report_parquet",
    }
    assert all((results[f"{work}_cpu_seconds"] or 0) > 0 for work in works)
