"""Benchmarks run, compare equal work, and report plain facts. Their timings are not judged here."""

from __future__ import annotations

import json

import numpy as np
import pytest

from derand import AdditiveEnsemble, bench
from derand.baselines.plain_training import PlainStump
from derand.estimators import StumpClassifier
from tests.shared import shared_folder


def test_the_core_bench_compares_equal_results() -> None:
    """Both ways give the same labels and the same failure masses to nine digits."""
    results = bench.bench_core(n_rows=50, plain_rows=20, n_terms=120)
    assert results["labels_differ"] == 0
    assert results["largest_relative_gap"] < 1e-9
    assert results["ratio"] == pytest.approx(results["plain_seconds_scaled"] / results["derand_seconds"])


def test_the_default_core_bench_is_the_one_that_is_reported() -> None:
    """600 terms of two cells with scores 1 to 60 apart, as the README says."""
    model = bench.draw_stumps(np.random.default_rng(0), 600)
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
    assert bench.agrees_with(model, PlainStump(0, threshold, left, right, 0.1))
    assert not bench.agrees_with(model, PlainStump(0, threshold + 0.01, left, right, 0.1))
    assert not bench.agrees_with(model, PlainStump(0, threshold, left, right - 0.02, 0.1))
    assert not bench.agrees_with(model, PlainStump(0, threshold, left, right, 0.7))


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
    with pytest.raises(ValueError, match="`name` must be one of core, train, got 'speed'"):
        bench.run_bench("speed")
