"""Running pmfs: after any change they equal pmfs made from nothing."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveEnsemble, Gaussian, Laplace, Noise, StepFunction, Uniform, distribution
from derand.train.paper import pmfs as _pmfs
from derand.train.paper.pmfs import ScorePmfs

NOISES = [Gaussian(0.5), Uniform(1.0), Laplace(0.3), Gaussian(0.2, units=(1.0, 2.0, 0.5, 1.0))]


def draw_term(rng: np.random.Generator, feature: int) -> StepFunction:
    edges = np.unique(rng.normal(size=rng.integers(0, 5)))
    return StepFunction(feature, edges, rng.integers(-20, 30, size=edges.size + 1))


def read_pmfs(pmfs: ScorePmfs) -> tuple[np.ndarray, np.ndarray]:
    """Support, and probabilities of all rows."""
    built = [block.build(pmfs._terms) for block in pmfs._blocks]
    lowest = min(int(part.first.min()) for part in built)
    highest = max(int((part.first + part.sizes).max()) for part in built)
    pmf = np.zeros((sum(part.first.size for part in built), highest - lowest))
    rows = [row for part in built for row in zip(part.masses, part.first - lowest, part.sizes, strict=True)]
    for target, (masses, first, size) in zip(pmf, rows, strict=True):
        target[first : first + size] = masses[:size]
    return np.arange(lowest, highest), pmf


def replace_terms(noise: Noise, n_changes: int, n_threads: int = 1) -> tuple[ScorePmfs, AdditiveEnsemble, np.ndarray]:
    """Pmfs of 80 rows after many random changes of the terms of four features, and the model they belong to."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    pmfs, terms = ScorePmfs(X, noise, 0.1, n_threads), {}
    for feature in [0, 1, 2, 3, *rng.integers(0, 4, size=n_changes).tolist()]:
        terms[feature] = draw_term(rng, feature)
        pmfs.replace_term(terms[feature])
        pmfs.certifiable_scores(np.zeros(80, dtype=np.uint8))
    return pmfs, AdditiveEnsemble(tuple(terms.values()), threshold=0, n_features=4), X


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("n_changes", [0, 1, 7, 20])
def test_updated_laws_equal_fresh_ones(noise: Noise, n_changes: int) -> None:
    """However the terms changed, the pmf is that of the terms there are now."""
    pmfs, model, X = replace_terms(noise, n_changes)
    support, pmf = read_pmfs(pmfs)
    fresh = distribution(model, X, noise)
    inside = (fresh.support >= support[0]) & (fresh.support <= support[-1])
    np.testing.assert_allclose(pmf[:, fresh.support[inside] - support[0]], fresh.pmf[:, inside], rtol=0, atol=1e-13)
    assert fresh.pmf[:, ~inside].sum() < 1e-13
    np.testing.assert_allclose(pmf.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("kept", [0, 20_000])
def test_laws_do_not_depend_on_memory_or_threads(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is short pmfs are built again, in threads or not, with the same result to the last bit."""
    expected = read_pmfs(replace_terms(Gaussian(0.5), 20)[0])
    monkeypatch.setattr(_pmfs, "_KEPT_NUMBERS", kept)
    for n_threads in (1, 3):
        pmfs = replace_terms(Gaussian(0.5), 20, n_threads)[0]
        for found, wanted in zip(read_pmfs(pmfs), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        there = [pmf is not None for block in pmfs._blocks for pmf in block.pmfs[1:]]
        assert not all(there)
        assert any(there) == (kept > 0)


@pytest.mark.parametrize("failure", [0.4, 0.05, 1e-9])
def test_certifiable_scores(failure: float) -> None:
    """For label 1 the smallest score whose cdf exceeds the failure mass, for label 0 the mirror image."""
    rng = np.random.default_rng(1)
    X, noise = rng.normal(size=(40, 2)), Gaussian(0.4)
    terms = [draw_term(rng, 0), draw_term(rng, 1)]
    pmfs = ScorePmfs(X, noise, failure)
    for term in terms:
        pmfs.replace_term(term)
    pmf = distribution(AdditiveEnsemble(tuple(terms), threshold=0, n_features=2), X, noise)
    below = np.cumsum(pmf.pmf, axis=1)
    above = np.cumsum(pmf.pmf[:, ::-1], axis=1)[:, ::-1] - pmf.pmf  # P(S > score)
    ones = pmf.support[(below > failure).argmax(axis=1)]
    zeros = pmf.support[(above < failure).argmax(axis=1)]
    np.testing.assert_array_equal(pmfs.certifiable_scores(np.ones(40, dtype=np.uint8)), ones)
    np.testing.assert_array_equal(pmfs.certifiable_scores(np.zeros(40, dtype=np.uint8)), zeros)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_laws_of_rows_with_gaps(noise: Noise) -> None:
    """A missing value has the score of its own cell, whatever the noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 4))
    X[rng.random(X.shape) < 0.4] = np.nan
    drawn = [draw_term(rng, feature) for feature in range(4)]
    terms = [StepFunction(term.feature, term.edges, term.scores, missing=int(rng.integers(-40, 50))) for term in drawn]
    pmfs = ScorePmfs(X, noise, 0.1)
    for term in terms:
        pmfs.replace_term(term)
    pmfs.certifiable_scores(np.zeros(40, dtype=np.uint8))
    support, pmf = read_pmfs(pmfs)
    fresh = distribution(AdditiveEnsemble(terms, 0, 4), X, noise)
    inside = (fresh.support >= support[0]) & (fresh.support <= support[-1])
    np.testing.assert_allclose(pmf[:, fresh.support[inside] - support[0]], fresh.pmf[:, inside], rtol=0, atol=1e-13)
    np.testing.assert_allclose(pmf.sum(axis=1), 1.0, rtol=1e-12)
