"""Sampling: its law is that of noisy rows, its bounds are those of Clopper and Pearson."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from derand import AdditiveEnsemble, CategoryTable, Gaussian, Laplace, Noise, StepFunction, Uniform, certify
from experiments.baselines.monte_carlo import certify_any_by_sampling, certify_by_sampling, count_class_1, judge_counts


def make_model() -> AdditiveEnsemble:
    terms = [
        StepFunction(0, np.array([-0.2, 0.1, 0.7]), np.array([4, 0, 9, 3])),
        StepFunction(1, np.array([0.5]), np.array([7, 1])),
        StepFunction(2, np.empty(0), np.array([2])),
        StepFunction(3, np.array([0.0, 0.0001]), np.array([0, 30, 2])),
        CategoryTable(4, np.array([0.0, 1.0]), np.array([1, 5]), 0),
    ]
    return AdditiveEnsemble(tuple(terms), threshold=13, n_features=5)


ROWS = np.array([[0.0, 0.4, 1.0, -0.1, 0.0], [0.5, 0.6, 0.0, 0.3, 1.0], [-1.0, 0.0, 0.0, 0.0, 7.0]])


@pytest.mark.parametrize(
    "noise", [Gaussian(0.4), Uniform(0.8), Laplace(0.3), Gaussian(0.2, units=(1, 2, 3, 4, 5))], ids=str
)
def test_counts_follow_the_exact_probability(noise: Noise) -> None:
    """How often class 1 comes up agrees with the exact probability, within five standard errors."""
    model, n_samples = make_model(), 40_000
    exact = certify(model, ROWS, noise)
    share = np.where(exact.label == 1, 1 - exact.failure, exact.failure)
    counts = count_class_1(model, ROWS, noise, n_samples, seed=3)
    error = np.sqrt(n_samples * share * (1 - share)) + 1
    assert (np.abs(counts - n_samples * share) < 5 * error).all()


def test_cells_of_tiny_probability_are_drawn_as_often_as_they_should() -> None:
    """A probability of 2**-17 is met."""
    model = AdditiveEnsemble((StepFunction(0, np.array([0.0]), np.array([0, 1])),), threshold=0, n_features=1)
    share, n_samples = 2.0**-17, 2_000_000
    row = [[float(Gaussian(1.0).radius(share)) * -1]]
    count = int(count_class_1(model, row, Gaussian(1.0), n_samples)[0])
    assert 0 < count < 2 * n_samples * share + 15


def test_the_result_depends_on_the_seed_and_not_on_threads() -> None:
    """Equal seeds give equal counts with any number of threads; other seeds give others."""
    model, rows = make_model(), np.repeat(ROWS, 20, axis=0)
    counts = [
        count_class_1(model, rows, Gaussian(0.4), 3000, seed=seed, n_jobs=jobs)
        for seed, jobs in ((1, 1), (1, 3), (2, 1))
    ]
    np.testing.assert_array_equal(counts[0], counts[1])
    assert (counts[0] != counts[2]).any()
    assert len(np.unique(counts[0])) > 3, "rows that are equal get draws of their own"


def test_drawing_cells_and_drawing_rows_agree() -> None:
    """Both samplers give bounds of the same size: they differ by sampling error alone."""
    model = AdditiveEnsemble(make_model().step_functions, threshold=12, n_features=5)
    cells = certify_by_sampling(model, ROWS, "gaussian:0.4", 20_000, n_first=20_000)
    rows = certify_any_by_sampling(lambda X: model.score(X) > 12, ROWS, "gaussian:0.4", 20_000, n_first=20_000)
    np.testing.assert_array_equal(cells.label, rows.label)
    np.testing.assert_allclose(cells.failure, rows.failure, atol=0.02)


@pytest.mark.parametrize("failed", [0, 1, 500, 999, 1000])
def test_the_bound_is_that_of_clopper_and_pearson(failed: int) -> None:
    """The failure mass is bounded as by scipy's exact binomial interval."""
    certificates = judge_counts(np.array([100]), 100, np.array([1000 - failed]), 1000, Gaussian(1.0), 0.001)
    interval = stats.binomtest(failed, 1000).proportion_ci(confidence_level=0.998, method="exact")
    assert certificates.failure[0] == pytest.approx(interval.high, rel=1e-9)
    assert (certificates.radius[0] > 0) == (interval.high < 0.5)


def test_sampled_radii_stay_below_the_exact_ones() -> None:
    """Among many rows, hardly a sampled radius exceeds the exact one: the bound fails with probability alpha."""
    rng = np.random.default_rng(0)
    model = AdditiveEnsemble.from_stumps(
        np.arange(20), rng.uniform(size=20), rng.uniform(0, 0.5, 20), rng.uniform(0.5, 1, 20), n_features=20
    )
    rows = rng.uniform(size=(300, 20))
    exact, sampled = certify(model, rows, "gaussian:0.5"), certify_by_sampling(model, rows, "gaussian:0.5", 2000)
    right = exact.label == sampled.label
    assert (sampled.radius[right] > exact.radius[right]).sum() <= 3
    assert sampled.radius.mean() < exact.radius.mean()


def test_a_model_without_a_threshold_is_refused() -> None:
    """There is no decision to certify."""
    with pytest.raises(ValueError, match="threshold"):
        certify_by_sampling(AdditiveEnsemble((), None, 1), [[0.0]], "gaussian:1", 10)
