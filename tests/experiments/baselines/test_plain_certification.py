"""The plain versions that derand is compared with give the same results, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, Gaussian, Laplace, Noise, StepFunction, Uniform, certify
from experiments.baselines.plain_certification import certify_plainly


def draw_model(rng: np.random.Generator) -> AdditiveEnsemble:
    """Terms of one to five cells with scores of either sign."""
    terms = []
    for feature in range(8):
        edges = np.sort(rng.uniform(-1, 1, size=rng.integers(0, 5)))
        terms.append(StepFunction(feature, edges, rng.integers(-20, 20, size=edges.size + 1)))
    return AdditiveEnsemble(tuple(terms), threshold=int(rng.integers(-5, 5)), n_features=9)


@pytest.mark.parametrize("noise", [Gaussian(0.3), Uniform(0.7), Laplace(0.2), Gaussian(1.0, units=range(1, 10))])
@pytest.mark.parametrize("seed", range(2))
def test_plain_certification_agrees_with_the_kernels(noise: Noise, seed: int) -> None:
    """Labels are equal and failure masses agree to many digits, for any number of cells and every noise."""
    rng = np.random.default_rng(seed)
    model, rows = draw_model(rng), rng.uniform(-1, 1, size=(50, 9))
    label, failure = certify_plainly(model, rows, noise)
    certificates = certify(model, rows, noise)
    clear = failure < 0.5 - 1e-9
    assert clear.sum() > 25
    assert (label == certificates.label)[clear].all()
    np.testing.assert_allclose(np.minimum(certificates.failure, 0.5)[clear], failure[clear], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "model",
    [
        AdditiveEnsemble((CategoryTable(0, [0], [1], 0),), threshold=0, n_features=1),
        AdditiveEnsemble((StepFunction(0, [0.0], [0, 1]),), threshold=None, n_features=1),
    ],
)
def test_plain_certification_refuses_what_the_algorithm_does_not_cover(model: AdditiveEnsemble) -> None:
    """Category tables and models without a decision are not in the paper's Algorithm 1."""
    with pytest.raises(ValueError, match="step functions only, and a threshold"):
        certify_plainly(model, [[0.0]], "gaussian:1")
