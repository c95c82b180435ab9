"""The core benchmark: random stumps, the default backend against Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveEnsemble
from experiments.bench._core import bench_core, draw_stumps


def test_the_core_bench_compares_equal_results() -> None:
    """Both ways give the same labels and the same failure masses to nine digits."""
    results = bench_core(n_rows=50, plain_rows=20, n_terms=120)
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
    assert bench_core.__defaults__ == (2000, 100, 600)
