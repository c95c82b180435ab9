"""The benchmark of the GPU."""

from __future__ import annotations

import pytest

from derand.kernels import has_gpu
from experiments.bench._gpu import bench_gpu


@pytest.mark.gpu
def test_the_gpu_bench_compares_equal_results_and_splits_the_time() -> None:
    """Both backends agree, and beside every time stand those of kernels and copies."""
    if not has_gpu():
        pytest.skip("no CUDA device here")
    results = bench_gpu(tasks=("mnist_2v6",), image_rows=3000, table_rows=5000)
    assert results["mnist_2v6_l1_labels_differ"] == results["mnist_2v6_l2_labels_differ"] == 0
    assert results["mnist_2v6_l2_relative_gap"] < 1e-9
    assert results["mnist_2v6_l1_absolute_gap"] < 1e-11
    assert results["images_mean_l2_labels_differ"] == 0
    for measured in ("mnist_2v6_l1", "mnist_2v6_l2", "images_l1", "images_l2", "images_mean_l2", "table"):
        for part in ("kernel", "transfer", "host"):
            assert results[f"{measured}_{part}_milliseconds"] > 0
    assert results["images_l2_rows_per_second"] > 0
    assert results["table_rows_per_second"] > 0
