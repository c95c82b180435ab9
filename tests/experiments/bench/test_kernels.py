"""The benchmark of the tail kernels."""

from __future__ import annotations

import pytest

from experiments.bench._kernels import bench_kernels


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_the_kernel_bench_times_every_way() -> None:
    """Each way to the masses has a figure."""
    results = bench_kernels(n_rows=3, plain_rows=1)
    ways = ("table", "tilted_halves", "with_fourier_inversion")
    names = (*ways, "plain_laws", "halves", *(f"fine_{way}" for way in ways))
    assert all(results[name] > 0 for name in names)
    assert 0 <= results["fine_share_inverted"] <= 1
