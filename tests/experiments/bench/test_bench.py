"""Running a benchmark by its name: a report of plain facts. Timings are not judged here or in this folder."""

from __future__ import annotations

import json

import pytest

from experiments import bench


def test_a_report_holds_versions_and_no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is JSON with versions and cores, and names no folder of this machine."""
    monkeypatch.setattr(bench, "BENCHES", {"core": lambda: {"ratio": 1.0}})
    report = bench.run_bench("core")
    assert report["results"] == {"ratio": 1.0}
    assert {"derand", "python", "numpy", "numba"} <= set(report["versions"])
    assert report["machine"]["cores"] >= 1
    assert "/" not in json.dumps(report)


def test_an_unknown_bench_is_refused() -> None:
    """The error lists the names."""
    with pytest.raises(ValueError, match=f"`name` must be one of {', '.join(bench.BENCHES)}, got"):
        bench.run_bench("speed")
