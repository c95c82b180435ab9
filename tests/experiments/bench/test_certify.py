"""The benchmark of certifying image tasks."""

from __future__ import annotations

import pytest

from experiments.bench._certify import bench_certify


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_the_certify_bench_compares_equal_results() -> None:
    """Both ways give the same labels and failure masses on an image task, l1 and l2."""
    results = bench_certify(plain_rows=5, tasks=("mnist_2v6",))
    assert results["mnist_2v6_l1_labels_differ"] == results["mnist_2v6_l2_labels_differ"] == 0
    assert results["mnist_2v6_l2_relative_gap"] < 1e-9
    assert results["mnist_2v6_l1_absolute_gap"] < 1e-11
