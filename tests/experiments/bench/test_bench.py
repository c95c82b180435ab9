"""Benchmarks run, compare equal work, and report plain facts. Their timings are not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from derand import AdditiveEnsemble
from derand.estimators import StumpClassifier
from derand.kernels import has_gpu
from experiments import bench
from experiments.baselines.plain_training import PlainStump
from experiments.bench._core import draw_stumps
from experiments.bench._growth import bench_growth
from experiments.bench._quality import METHODS, Task
from experiments.bench._train import agrees_with
from tests.shared import shared_folder


def test_the_core_bench_compares_equal_results() -> None:
    """Both ways give the same labels and the same failure masses to nine digits."""
    results = bench.bench_core(n_rows=50, plain_rows=20, n_terms=120)
    assert results["labels_differ"] == 0
    assert results["largest_relative_gap"] < 1e-9
    assert results["ratio"] == pytest.approx(results["plain_seconds_scaled"] / results["derand_seconds"])


def test_the_default_core_bench_is_the_one_that_is_reported() -> None:
    """600 terms of two cells with scores 1 to 60 apart, as the README says."""
    model = draw_stumps(np.random.default_rng(0), 600)
    assert isinstance(model, AdditiveEnsemble)
    spans = [int(np.ptp(term.scores)) for term in model.terms]
    assert len(spans) == 600
    assert (min(spans), max(spans)) == (1, 60)
    assert bench.bench_core.__defaults__ == (2000, 100, 600)


def test_the_training_bench_compares_equal_stumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain loop and StumpClassifier find the same stumps; the large fit reports its time and memory."""
    monkeypatch.setenv("DERAND_DATA", str(shared_folder("data")))
    results = bench.bench_train(plain_features=2, large_rows=2000, large_features=3)
    assert results["stumps_compared"] == 2
    assert results["stumps_differ"] == 0
    assert results["rows"] == 11876
    assert results["large_seconds"] > 0
    assert results["large_peak_bytes"] is None or results["large_peak_bytes"] > 2**24


def test_a_stump_that_differs_is_counted() -> None:
    """The comparison of stumps sees another threshold, another leaf, and a stump that should not be there."""
    model = StumpClassifier(noise="gaussian:0.5").fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    (term,) = model.ensemble_.step_functions
    threshold = float(term.edges[0])
    left, right = (term.scores.ravel() / 100).tolist()
    assert agrees_with(model, PlainStump(0, threshold, left, right, 0.1))
    assert not agrees_with(model, PlainStump(0, threshold + 0.01, left, right, 0.1))
    assert not agrees_with(model, PlainStump(0, threshold, left, right - 0.02, 0.1))
    assert not agrees_with(model, PlainStump(0, threshold, left, right, 0.7))


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
    with pytest.raises(
        ValueError, match="`name` must be one of core, train, certify, joint, growth, kernels, boost, quality, gpu, got"
    ):
        bench.run_bench("speed")


def test_the_boosting_bench_compares_equal_stumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain search finds the stumps that RobTreeBoost added, and both methods get a ratio."""
    monkeypatch.setenv("DERAND_DATA", str(shared_folder("data")))
    results = bench.bench_boost(plain_stumps=1, plain_features=1, plain_rows=2)
    assert results["tree_stumps_differ"] == 0
    assert results["tree_ratio"] == results["tree_plain_seconds_scaled"] / results["tree_derand_seconds"]
    assert (
        results["ada_ratio"] == results["ada_plain_seconds_per_round_scaled"] / results["ada_derand_seconds_per_round"]
    )
    assert results["ada_rows"] == 11876


def test_the_certify_bench_compares_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways give the same labels and failure masses on an image task, l1 and l2."""
    monkeypatch.setenv("DERAND_DATA", str(shared_folder("data")))
    results = bench.bench_certify(plain_rows=5, tasks=("mnist_2v6",))
    assert results["mnist_2v6_l1_labels_differ"] == results["mnist_2v6_l2_labels_differ"] == 0
    assert results["mnist_2v6_l2_relative_gap"] < 1e-9
    assert results["mnist_2v6_l1_absolute_gap"] < 1e-11


def test_the_joint_bench_compares_equal_masses(monkeypatch: pytest.MonkeyPatch) -> None:
    """All budgets at once give the masses of one row and one budget at a time."""
    monkeypatch.setenv("DERAND_DATA", str(shared_folder("data")))
    results = bench.bench_joint(plain_rows=3, large_rows=1000)
    assert results["rows"] == 9769
    assert results["largest_absolute_gap"] < 1e-11
    assert results["large_rows_per_second"] > 0


def test_growth_is_measured_and_drawn(tmp_path: Path) -> None:
    """Every size has a figure for both noises, and the report is written as JSON with a plot."""
    results = bench_growth({"rows": (5, 10), "cells": (2, 3)})
    assert set(results) == {
        f"{noise}_{what}" for noise in ("gaussian", "uniform") for what in ("rows_5", "rows_10", "cells_2", "cells_3")
    }
    paths = bench.write_bench({"bench": "growth", "results": results}, tmp_path / "new")
    assert [path.name for path in paths] == ["growth.json", "growth.png"]
    assert json.loads(paths[0].read_text())["results"] == results
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_the_quality_bench_compares_all_methods_on_the_same_rows() -> None:
    """Every method has its numbers, and sampling never beats the exact certificate of the same model by much."""
    task = Task("sklearn_breast_cancer", "standard", "gaussian:0.5", 0.5)
    results = bench.bench_quality((task,), n_samples=2000)
    prefix = "sklearn_breast_cancer_l2"
    for method in METHODS:
        assert (
            0 <= results[f"{prefix}_{method}_certified_percent_at_0.5"] <= results[f"{prefix}_{method}_natural_percent"]
        )
    assert results[f"{prefix}_sampling_radius_gap"] > 0
    assert results[f"{prefix}_independent_average_radius"] > results[f"{prefix}_boosted_without_noise_average_radius"]


def test_the_kernel_bench_times_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way to the masses has a figure."""
    monkeypatch.setenv("DERAND_DATA", str(shared_folder("data")))
    results = bench.BENCHES["kernels"](n_rows=3, plain_rows=1)  # type: ignore[call-arg]
    ways = ("table", "tilted_halves", "with_fourier_inversion")
    names = (*ways, "plain_laws", "halves", *(f"fine_{way}" for way in ways))
    assert all(results[name] > 0 for name in names)
    assert 0 <= results["fine_share_inverted"] <= 1


@pytest.mark.gpu
def test_the_gpu_bench_compares_equal_results_and_splits_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both backends agree, and beside every time stand those of kernels and copies."""
    if not has_gpu():
        pytest.skip("no CUDA device here")
    monkeypatch.setenv("DERAND_DATA", str(shared_folder("data")))
    results = bench.bench_gpu(tasks=("mnist_2v6",), image_rows=3000, table_rows=5000)
    assert results["mnist_2v6_l1_labels_differ"] == results["mnist_2v6_l2_labels_differ"] == 0
    assert results["mnist_2v6_l2_relative_gap"] < 1e-9
    assert results["mnist_2v6_l1_absolute_gap"] < 1e-11
    for measured in ("mnist_2v6_l1", "mnist_2v6_l2", "images_l1", "images_l2", "table"):
        assert results[f"{measured}_kernel_milliseconds"] > 0
        assert results[f"{measured}_transfer_milliseconds"] > 0
    assert results["images_l2_rows_per_second"] > 0
    assert results["table_rows_per_second"] > 0
