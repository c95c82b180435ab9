"""Memory of certifying a file: it does not grow with the file."""

from __future__ import annotations

import pytest

from experiments.bench._memory import bench_memory


@pytest.mark.long
def test_memory_does_not_grow_with_the_file() -> None:
    """Four times the rows, some 130 MB more in the file, take about the same memory (it used to be 100 MB more)."""
    results = bench_memory((300_000, 1_200_000))
    small, large = (results[f"rows_{size}_peak_bytes"] for size in (300_000, 1_200_000))
    if small is None or large is None:
        pytest.skip("this system does not tell the memory of a process")
    assert abs(large - small) < 40e6
