"""What the first use costs: every figure of a case is there, and compiling costs more than finding it on disk."""

from __future__ import annotations

import pytest

from experiments.bench._first import bench_first


@pytest.mark.long
def test_first_use_is_measured_in_fresh_processes() -> None:
    """CPU seconds of the first process, and both kinds of seconds of a later one."""
    results = bench_first(1, ["certify"])
    names = {
        "certify_first_cpu_s",
        *(f"{name}_later{unit}" for name in ("certify", "import", "help") for unit in ("_s", "_cpu_s")),
    }
    assert set(results) == names
    assert all(seconds > 0 for seconds in results.values())
    assert results["certify_first_cpu_s"] > results["import_later_cpu_s"]
