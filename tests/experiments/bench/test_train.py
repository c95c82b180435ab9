"""The benchmark of training."""

from __future__ import annotations

import pytest

from derand.estimators import StumpClassifier
from experiments.baselines.plain_training import PlainStump
from experiments.bench._train import agrees_with, bench_train


@pytest.mark.long
@pytest.mark.usefixtures("data")
def test_the_training_bench_compares_equal_stumps() -> None:
    """The plain loop and StumpClassifier find the same stumps; the large fit reports its time and memory."""
    results = bench_train(plain_features=2, large_rows=2000, large_features=3)
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
