"""What docs/theory.md says, held on small cases where everything can be enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    Laplace,
    Noise,
    StepFunction,
    Uniform,
    distribution,
)
from experiments.baselines.plain_training import train_plainly
from tests.certificates.by_law import certify
from tests.strategies import Problem, problems

NOISES = [Gaussian(0.5), Uniform(1.0), Laplace(0.4)]


@given(problems(max_tables=0, reaches=(1, 2, 5)), st.floats(0.01, 0.99))
def test_both_forms_of_the_certificate_agree(problem: Problem, share: float) -> None:
    """`p_y >= rho^-1(r)` holds iff the score at the percentile of r lies on the label's side of the threshold."""
    noise, model = problem.noise, problem.model
    certificates = certify(model, problem.rows, noise)
    law = distribution(model, problem.rows, noise)
    for row in range(len(problem.rows)):
        known = certificates.radius[row]
        assume(np.isfinite(known) and known > 1e-6 * noise.magnitude)
        for radius in (share * known, known / share):
            failing = float(noise.failure_at(radius))
            sums = np.cumsum(law.pmf[row])
            assume(1e-9 < failing < 0.5 - 1e-9)
            assume(np.abs(sums - failing).min() > 1e-9 * failing)
            assume(np.abs(sums - (1 - failing)).min() > 1e-9)
            if certificates.label[row] == 1:
                at_percentile = law.support[np.argmax(sums > failing)]
                holds = at_percentile > model.threshold
            else:
                at_percentile = law.support[np.argmax(sums >= 1 - failing)]
                holds = at_percentile <= model.threshold
            assert holds == (certificates.failure[row] <= failing) == (known >= radius)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_dynamic_programme_gives_the_law_of_the_score(noise: Noise) -> None:
    """Theorem 3.1: the law equals the sum over all combinations of cells."""
    terms = [
        StepFunction(0, np.array([-0.5, 0.2]), np.array([0, 3, 1])),
        StepFunction(1, np.array([0.0]), np.array([2, -1])),
        StepFunction(2, np.array([0.1, 0.4, 0.9]), np.array([5, 0, 5, 2])),
    ]
    row = np.array([[0.1, -0.2, 0.5]])
    law = distribution(AdditiveEnsemble(tuple(terms), 4, 3), row, noise)
    masses = [noise.cell_probabilities(row[:, term.feature], term.edges)[0] for term in terms]
    expected = dict.fromkeys(law.support.tolist(), 0.0)
    for cells in itertools.product(*(range(mass.size) for mass in masses)):
        score = sum(int(term.scores[cell, 0]) for term, cell in zip(terms, cells, strict=True))
        expected[score] += float(np.prod([mass[cell] for mass, cell in zip(masses, cells, strict=True)]))
    np.testing.assert_allclose(law.pmf[0], list(expected.values()), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("budget", [0, 1, 2, 3])
@pytest.mark.parametrize("threshold", [4, 9])
def test_the_largest_falls_are_the_worst_categorical_change(budget: int, threshold: int) -> None:
    """The certificate for k changes equals the worst one over every change of at most k categories."""
    tables = [
        CategoryTable(at + 1, np.arange(3.0), np.array(scores), 2)
        for at, scores in enumerate([[0, 4, 1], [3, 3, 2], [5, 0, 2]])
    ]
    step = StepFunction(0, np.array([-0.3, 0.6]), np.array([0, 2, 6]))
    model, noise = AdditiveEnsemble((step, *tables), threshold, 4), Gaussian(0.5)
    row = np.array([0.4, 1.0, 0.0, 0.0])
    worst, label = 0.0, int(certify(model, row[None], noise).label[0])
    for codes in itertools.product(range(4), repeat=3):  # 3 stands for a value that the table does not have
        changed = row.copy()
        changed[1:] = codes
        if (changed != row).sum() <= budget:
            law = distribution(model, changed[None], noise)
            below = float(law.pmf[0][law.support <= threshold].sum())
            worst = max(worst, below if label == 1 else 1 - below)
    found = certify(model, row[None], noise, l0=budget)
    assert found.failure[0] == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_stumps_are_jointly_optimal(noise: Noise) -> None:
    """No split of the grid with any leaves has a larger expected likelihood than the trained stump."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    y = (x + rng.normal(size=30) > 0).astype(int)
    stump = train_plainly(x[:, None], y, noise, split_step=0.1)[0]
    weight = np.where(y == 1, (y == 0).sum() / (y == 1).sum(), 1.0)

    def measure_likelihood(split: float, left: float, right: float) -> float:
        side = np.asarray(noise.cdf((split - x) / noise.magnitude))
        return float(
            sum(
                (weight * share * np.where(y == 1, np.log(leaf), np.log(1 - leaf))).sum()
                for share, leaf in ((side, left), (1 - side, right))
            )
        )

    best = measure_likelihood(stump.threshold, stump.left, stump.right)
    leaves = np.linspace(0.02, 0.98, 25)
    candidates = np.arange(x.min() - 2 * noise.magnitude, x.max() + 2 * noise.magnitude + 0.1, 0.1)
    others = (measure_likelihood(*choice) for choice in itertools.product(candidates, leaves, leaves))
    assert max(others) <= best + 1e-9
