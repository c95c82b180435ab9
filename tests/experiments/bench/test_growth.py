"""How the cost grows: measured, and drawn."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.bench import write_bench
from experiments.bench._growth import bench_growth, list_series


def test_growth_is_measured_and_drawn(tmp_path: Path) -> None:
    """Every size has a figure for every series, and the report is written as JSON with a plot."""
    results = bench_growth({"rows": (5,), "classes": (3,), "members": (2,)})
    sizes = ("rows_5", "classes_3", "members_2")
    assert set(results) == {f"{series.name}_{size}" for series in list_series() for size in sizes}
    paths = write_bench({"bench": "growth", "results": results}, tmp_path / "new")
    assert [path.name for path in paths] == ["growth.json", "growth.png"]
    assert json.loads(paths[0].read_text())["results"] == results
    assert paths[1].read_bytes().startswith(b"\x89PNG")
