"""The benchmark of quality."""

from __future__ import annotations

from experiments.bench._quality import METHODS, Task, bench_quality


def test_the_quality_bench_compares_all_methods_on_the_same_rows() -> None:
    """Every method has its numbers, and sampling never beats the exact certificate of the same model by much."""
    task = Task("sklearn_breast_cancer", "standard", "gaussian:0.5", 0.5)
    results = bench_quality((task,), n_samples=2000)
    prefix = "sklearn_breast_cancer_l2"
    for method in METHODS:
        assert (
            0 <= results[f"{prefix}_{method}_certified_percent_at_0.5"] <= results[f"{prefix}_{method}_natural_percent"]
        )
    assert results[f"{prefix}_sampling_radius_gap"] > 0
    assert results[f"{prefix}_independent_average_radius"] > results[f"{prefix}_boosted_without_noise_average_radius"]
