"""Certificates by the paper's proof against the oracle: sound always, tight for ordinary models, on every backend."""

from __future__ import annotations

import math
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Certificates,
    Gaussian,
    Laplace,
    Noise,
    StepFunction,
    Uniform,
    WeightedVote,
    distribution,
)
from derand.certificates.bounds.packing import MAX_SUPPORT
from derand.noise import NOISES
from tests import oracle
from tests.certificates.by_law import certify
from tests.oracle import MP, Truth, find_truth
from tests.strategies import Problem, problems

BUDGETS = [0, 1, 2, 5]
SMALLEST = 1e-285  # below, cells that no double can hold count as 2e-308 and only soundness is promised


def as_number(value: oracle.Number) -> oracle.Number:
    """A Fraction as a 60-digit number, so that both kinds of truth can be subtracted from floats."""
    return MP.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else MP.mpf(value)


def check_row(noise: Noise, truth: Truth, label: int, failure: float, log_failure: float, radius: float) -> None:
    """One row's certificate is sound whatever happens, and tight where the truth is not a tie."""
    exact = truth.failures[label]
    assert exact <= failure <= 1
    assert (MP.log(as_number(exact)) if exact else -MP.inf) <= log_failure
    if label != truth.label:
        assert abs(as_number(truth.p_one) - 0.5) < 1e-12
        assert radius == 0
        return
    if 2 * truth.p_one == 1:
        assert (label, radius) == (0, 0.0)
    true_radius = truth.radius(noise)
    assert 0 <= radius <= true_radius
    assert (radius == math.inf) == (not truth.crossable[label])
    if math.isfinite(noise.support):
        assert as_number(failure) - as_number(exact) <= max(1e-13, 1e-9 * as_number(exact))
    else:
        assert (failure == 0) == (log_failure == -math.inf) == (exact == 0)
        if exact > SMALLEST:
            assert log_failure - MP.log(exact) <= 1e-9
            assert failure - exact <= 1e-9 * exact
    if exact > SMALLEST and radius < math.inf:
        assert as_number(true_radius) - radius <= 1e-9 * max(radius, noise.magnitude)
    if exact == 0 and failure == 0 and math.isfinite(noise.support) and radius < math.inf:
        assert (1 - 1e-9) * noise.magnitude <= radius < noise.magnitude  # the margin at ties is taken off


def check_problem(problem: Problem, unseen: bool, backend: str) -> None:
    found = certify(problem.model, problem.rows, problem.noise, l0=BUDGETS, unseen=unseen, backend=backend, n_jobs=1)
    alone = certify(problem.model, problem.rows, problem.noise, unseen=unseen, backend=backend, n_jobs=1)
    for at, row in enumerate(problem.rows.tolist()):
        truths = find_truth(problem.model, row, problem.noise, BUDGETS, unseen)
        for budget, truth, c in zip([0, *BUDGETS], [truths[0], *truths], [alone, *found], strict=True):
            assert (c.l0, c.norm) == (budget, problem.noise.norm)
            numbers = (c.failure[at], c.log_failure[at], c.radius[at])
            check_row(problem.noise, truth, int(c.label[at]), *map(float, numbers))


@given(problem=problems(), unseen=st.booleans())
def test_certificates_agree_with_the_oracle(backend: str, problem: Problem, unseen: bool) -> None:
    """Label, failure mass and radius of drawn models are sound and tight, with and without categorical changes."""
    check_problem(problem, unseen, backend)


@pytest.mark.long
@settings(max_examples=3000)
@given(problem=problems(), unseen=st.booleans())
def test_certificates_agree_with_the_oracle_long(backend: str, problem: Problem, unseen: bool) -> None:
    """The same for thousands of fresh models."""
    check_problem(problem, unseen, backend)


@settings(max_examples=25)
@given(problem=problems(max_terms=2, max_tables=6, max_rows=1), unseen=st.booleans())
def test_many_categorical_features_against_every_change(backend: str, problem: Problem, unseen: bool) -> None:
    """With up to six categorical features, with numbers and alone, every change within the budget is enumerated."""
    check_problem(problem, unseen, backend)


@settings(max_examples=8)
@given(problem=problems(max_terms=3, max_tables=0, max_rows=1, reaches=(300_000,)))
def test_huge_scores(backend: str, problem: Problem) -> None:
    """Scores that span up to a million levels with nothing in common are certified like small ones."""
    check_problem(problem, True, backend)


@given(problem=problems(max_terms=3, max_rows=2))
def test_the_oracle_agrees_with_plain_enumeration(problem: Problem) -> None:
    """The oracle's merged law has the mass of all outcomes and its uniform probabilities add up to exactly 1."""
    for row in problem.rows.tolist():
        total = sum(oracle.score_law(problem.model, row, problem.noise).values())
        if problem.noise.name == "uniform":
            assert total == 1
        else:
            assert abs(total - 1) < 1e-50


# --- ties and closed forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(NOISES))
@pytest.mark.parametrize("scores", [[0, 1], [1, 0]])
def test_a_tie_is_class_0_and_certifies_nothing(kind: str, scores: list[int], backend: str) -> None:
    """A row on the edge of one stump has probability exactly 1/2 for either class: label 0, radius 0."""
    model = AdditiveEnsemble([StepFunction(0, [0.3], scores)], 0, 1)
    c = certify(model, [[0.3]], NOISES[kind](0.7), backend=backend)
    assert (c.label.tolist(), c.radius.tolist()) == ([0], [0.0])
    assert c.failure[0] >= 0.5


@pytest.mark.parametrize("kind", sorted(kind for kind, noise in NOISES.items() if noise.is_tight))
@pytest.mark.parametrize("units", [None, (0.01,)])
def test_one_stump_has_the_distance_as_its_radius(kind: str, units: tuple[float, ...] | None, backend: str) -> None:
    """Under a tight noise one stump is certified up to its edge, in units, and not beyond; uniform noise ends earlier.

    The radius function inverts the tail; a bounded noise proves nothing beyond its own reach.
    """
    noise, unit = NOISES[kind](0.25, units), 1.0 if units is None else units[0]
    model = AdditiveEnsemble.from_stumps([0], [2.0], [0.1], [0.9], n_features=1)
    distances = np.array([1e-6, 0.01, 0.2, 0.2499, 1.0, 4.0, 9.0])
    rows = np.concatenate([2.0 - distances * unit, 2.0 + distances * unit])[:, None]
    c = certify(model, rows, noise, backend=backend)
    assert c.label.tolist() == [0] * 7 + [1] * 7
    expected = np.minimum(np.tile(distances, 2), 0.25 * noise.support)
    np.testing.assert_allclose(c.radius, expected, rtol=1e-9, atol=1e-12)
    true = [abs(Fraction(row) - 2) / Fraction(unit) for row in rows[:, 0].tolist()]
    for radius, distance in zip(c.radius.tolist(), true, strict=True):
        assert radius <= (distance if math.isinf(noise.support) else min(distance, Fraction(0.25 * noise.support)))


@pytest.mark.parametrize("count", [1, 5, 30, 101])
def test_equal_stumps_are_binomial(count: int, backend: str) -> None:
    """k equal stumps fail with a binomial tail, exactly (uniform noise: rational numbers)."""
    model = AdditiveEnsemble.from_stumps(
        range(count), [0.5] * count, [0.0] * count, [1.0] * count, n_features=count, levels=1
    )
    for x in (0.0, 0.25, 0.5, 0.9, 1.25, 3.0):
        move = min(max(Fraction(x - 0.5) / 2 + Fraction(1, 2), Fraction(0)), Fraction(1))
        pmf = [math.comb(count, k) * move**k * (1 - move) ** (count - k) for k in range(count + 1)]
        above, below = sum(pmf[count // 2 + 1 :]), sum(pmf[: count // 2 + 1])
        c = certify(model, [[x] * count], Uniform(1.0), backend=backend)
        exact = below if 2 * above > 1 else above
        assert c.label[0] == (2 * above > 1)
        assert exact <= c.failure[0] <= float(exact) * (1 + 1e-11)


def test_radii_keep_growing_where_probabilities_are_one(backend: str) -> None:
    """Failure masses of 1e-16, 1e-100, 1e-250 and far below any double are exact to 1e-9, and so are the radii."""
    count = 25
    model = AdditiveEnsemble.from_stumps(
        range(count), [0.0] * count, [0.0] * count, [1.0] * count, n_features=count, levels=1
    )
    z = np.array([1.2, 2.0, 4.0, 5.0, 7.0, 9.5, 15.0, 30.0])
    c = certify(model, np.tile(z[:, None], (1, count)), Gaussian(1.0), backend=backend)
    for at, value in enumerate(z.tolist()):
        move = oracle.gaussian_tail(MP.mpf(value))
        exact = sum(MP.binomial(count, k) * move**k * (1 - move) ** (count - k) for k in range(13, count + 1))
        assert exact <= c.failure[at]
        assert c.failure[at] <= exact * (1 + 1e-9) or exact < SMALLEST
        assert 0 <= c.log_failure[at] - MP.log(exact) < 1e-9
        true = oracle.true_radius(Gaussian(1.0), exact)
        assert true * (1 - 1e-9) <= c.radius[at] <= true
    assert c.failure[0] > 1e-16 > c.failure[2] > 1e-100 > c.failure[4] > 1e-250 > c.failure[5]
    assert c.log_failure[-1] < -5000
    assert (np.diff(c.radius) > 1).all()


@pytest.mark.parametrize("noise", [Gaussian(1.0), Laplace(1.0)])
def test_masses_too_small_for_doubles_still_certify(noise: Noise, backend: str) -> None:
    """Rows hundreds of scales from the edge get a large finite radius below the true one."""
    model = AdditiveEnsemble.from_stumps([0], [0.0], [0.1], [0.9], n_features=1)
    c = certify(model, [[800.0], [-1e9], [1e300], [-1.7e308]], noise, backend=backend)
    assert c.label.tolist() == [1, 0, 1, 0]
    assert (c.radius > 36).all()
    assert (c.radius <= 800).all()
    assert (c.failure > 0).all()


# --- constants, certain outcomes, sizes ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(NOISES))
def test_infinite_only_where_no_cell_can_cross(kind: str, backend: str) -> None:
    """A model that never crosses its threshold is certified without limit; one that could somewhere is not."""
    noise = NOISES[kind](1.0)
    steps = [StepFunction(0, [0.0], [3, 5]), StepFunction(1, [0.0], [-1, 1])]
    for threshold, label in ((1, 1), (6, 0)):
        c = certify(AdditiveEnsemble(steps, threshold, 2), [[9.0, 9.0], [-2.0, 0.0]], noise, backend=backend)
        assert c.label.tolist() == [label] * 2
        assert (c.radius.tolist(), c.failure.tolist()) == ([math.inf] * 2, [0.0] * 2)
        assert c.log_failure.tolist() == [-math.inf] * 2
    c = certify(AdditiveEnsemble(steps, 2, 2), [[9.0, 9.0]], noise, backend=backend)
    assert c.label.tolist() == [1]
    assert 0 < c.radius[0] < math.inf


def test_uniform_noise_that_cannot_reach_the_edge(backend: str) -> None:
    """With mass exactly 0 the radius is the half-width less the margin at ties, touching included; then it falls."""
    model = AdditiveEnsemble.from_stumps([0], [1.0], [0.1], [0.9], n_features=1)
    c = certify(model, [[0.75], [math.nextafter(0.75, 0)], [math.nextafter(0.75, 1)]], Uniform(0.25), backend=backend)
    assert c.radius[0] == c.radius[1] == pytest.approx(0.25, rel=1e-11)
    assert c.radius[0] < 0.25
    assert c.failure[:2].tolist() == [0.0, 0.0]
    assert c.failure[2] > 0
    assert c.radius[2] <= c.radius[0]


@pytest.mark.parametrize("threshold", [-1, 0])
def test_empty_ensembles(threshold: int, backend: str) -> None:
    """Without terms the score is 0 and the label is certified without limit."""
    model = AdditiveEnsemble([], threshold, 2)
    c = certify(model, [[0.0, 1.0], [2.0, 3.0]], Gaussian(1.0), l0=3, backend=backend)
    assert (c.label.tolist(), c.radius.tolist()) == ([int(threshold < 0)] * 2, [math.inf] * 2)
    d = distribution(model, [[0.0, 1.0]], Gaussian(1.0), backend=backend)
    assert (d.support.tolist(), d.pmf.tolist()) == ([0], [[1.0]])


def test_no_rows(backend: str) -> None:
    """No rows give empty certificates and an empty law."""
    model = AdditiveEnsemble.from_stumps([0], [1.0], [0.1], [0.9], n_features=1)
    assert len(certify(model, np.empty((0, 1)), Gaussian(1.0), backend=backend)) == 0
    assert distribution(model, np.empty((0, 1)), Gaussian(1.0), backend=backend).pmf.shape[0] == 0


def test_a_million_levels(backend: str) -> None:
    """A support of more than a million levels is certified exactly; one beyond the limit on a coarser grid."""
    steps = [StepFunction(0, [0.0], [0, 1]), StepFunction(1, [0.5, 1.0], [0, 999_983, 1_100_000])]
    problem = Problem(AdditiveEnsemble(steps, 999_983, 2), np.array([[0.3, 0.9], [2.0, -1.0]]), Gaussian(0.5))
    check_problem(problem, True, backend)
    wide = AdditiveEnsemble([StepFunction(0, [0.0, 1.0], [0, 1, MAX_SUPPORT])], 5, 1)
    coarse = certify(wide, [[0.0], [1.5]], Gaussian(0.5), backend=backend)
    assert coarse.label.tolist() == [0, 1]
    with pytest.raises(ValueError, match=rf"span {MAX_SUPPORT + 1} levels.*fewer levels"):
        distribution(wide, [[0.0]], Gaussian(0.5), backend=backend)


@pytest.mark.parametrize("kind", sorted(NOISES))
def test_three_hundred_cells(kind: str, backend: str) -> None:
    """Terms of 300 cells of any width, wide and touching, are certified exactly."""
    rng = np.random.default_rng(4)
    wide = np.sort(rng.normal(size=299))
    narrow = 1.0 + np.arange(299) * 2.0**-52
    steps = [StepFunction(0, wide, rng.integers(-9, 9, 300)), StepFunction(1, narrow, rng.integers(-9, 9, 300))]
    rows = np.array([[0.1, 1.0], [-1.0, 1.2], [3.0, narrow[150]]])
    check_problem(Problem(AdditiveEnsemble(steps, 1, 2), rows, NOISES[kind](0.3)), True, backend)


@pytest.mark.parametrize("kind", sorted(NOISES))
def test_terms_with_a_certain_outcome(kind: str, backend: str) -> None:
    """Terms of one cell, of equal scores and far from every edge count with their score alone."""
    steps = [
        StepFunction(0, [], [4]),
        StepFunction(1, [-0.2, 0.1, 0.5], [3, 3, 3, 3]),
        StepFunction(2, [1e6], [-5, 90]),
        StepFunction(3, [0.0], [0, 7]),
    ]
    problem = Problem(AdditiveEnsemble(steps, 5, 4), np.array([[9.0, 0.0, 0.0, 0.4]]), NOISES[kind](1.0))
    check_problem(problem, True, backend)


def test_categories_alone_are_certain(backend: str) -> None:
    """A model of category tables has radius infinity where the label holds for every change, else 0."""
    tables = [CategoryTable(f, [0, 1], [-2, 3], other=-1) for f in range(4)]
    model = AdditiveEnsemble(tables, 0, 4)
    rows = [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, math.nan, 7]]
    certificates = certify(model, rows, Gaussian(1.0), l0=[0, 1, 2, 3, 4, 9], backend=backend)
    assert certificates[0].label.tolist() == [1, 0, 1]
    held = [[radius == math.inf for radius in c.radius.tolist()] for c in certificates]
    # scores 12, -8 and 4: each change lowers by 5 at most (from 3 to -2) or raises by 5
    assert held == [
        [True, True, True],
        [True, True, False],
        [True, False, False],
        [False, False, False],
        [False, False, False],
        [False, False, False],
    ]
    assert all(set(c.radius.tolist()) <= {0.0, math.inf} for c in certificates)


# --- distribution ----------------------------------------------------------------------------------------------


@given(problem=problems(max_terms=4, max_rows=3, reaches=(1, 2, 5, 50)), z=st.floats(0.0, 1.0))
def test_distribution_agrees_with_the_oracle(backend: str, problem: Problem, z: float) -> None:
    """Support, pmf, cdf, quantiles and median are those of the exact law, categories included."""
    d = distribution(problem.model, problem.rows, problem.noise, backend=backend)
    assert d.pmf.shape == (len(problem.rows), d.support.size)
    for at, row in enumerate(problem.rows.tolist()):
        law = oracle.score_law(problem.model, row, problem.noise)
        computed = dict(zip(d.support.tolist(), d.pmf[at].tolist(), strict=True))
        assert set(law) <= set(computed)
        for score, mass in computed.items():
            assert abs(mass - float(as_number(law.get(score, 0)))) <= 1e-11
        total = as_number(0)
        for score in sorted(law):
            total += as_number(law[score])
            assert abs(float(total) - d.cdf(score)[at]) <= 1e-11
        check_quantile(law, z, int(d.quantile(z)[at]))
        check_quantile(law, 0.5, int(d.median[at]))
        assert d.cdf([min(law) - 1, max(law)])[at] == pytest.approx([0.0, 1.0], abs=1e-11)


def check_quantile(law: dict[int, oracle.Number], z: float, found: int) -> None:
    """The quantile's cdf reaches z and the cdf below it does not, up to rounding."""
    below = sum(as_number(mass) for score, mass in law.items() if score < found)
    reached = below + as_number(law.get(found, 0))
    assert reached >= z - 1e-11
    assert below <= z + 1e-11


@pytest.mark.parametrize("kind", sorted(NOISES))
def test_sampled_scores_follow_the_law(kind: str) -> None:
    """The scores of 100,000 noisy copies fall within six deviations of the exact law, labels included."""
    rng = np.random.default_rng(11)
    noise = NOISES[kind](0.6, (1.0, 2.0, 0.5))
    steps = [StepFunction(f, np.sort(rng.normal(size=3)), rng.integers(0, 4, 4)) for f in range(3)]
    model, rows, size = AdditiveEnsemble(steps, 5, 3), np.array([[0.2, -0.1, 0.4], [1.0, 0.0, -0.7]]), 100_000
    copies = noise.sample(rows, size, rng=3)
    d, c = distribution(model, rows, noise), certify(model, rows, noise)
    for at in range(2):
        scores = model.score(copies[:, at])
        counts = np.array([(scores == level).sum() for level in d.support])
        band = 6 * np.sqrt(size * d.pmf[at] * (1 - np.minimum(d.pmf[at], 1))) + 1
        assert (np.abs(counts - size * d.pmf[at]) <= band).all()
        failed = ((scores > 5) != c.label[at]).sum()
        assert abs(failed - size * c.failure[at]) <= 6 * math.sqrt(size * c.failure[at]) + 1


def test_distribution_refuses_a_vote_and_too_many_levels() -> None:
    """A vote has no law, and laws that would fill the memory are refused."""
    model = AdditiveEnsemble.from_stumps([0], [1.0], [0.1], [0.9], n_features=1)
    with pytest.raises(TypeError, match="vote has none"):
        distribution(WeightedVote([model], [1.0]), [[0.0]], Gaussian(1.0))
    wide = AdditiveEnsemble([StepFunction(0, [0.0, 1.0], [0, 1, 10**6])], 5, 1)
    with pytest.raises(ValueError, match="fewer rows"):
        distribution(wide, np.zeros((1000, 1)), Gaussian(1.0))
    with pytest.raises(ValueError, match=r"`z` must lie in \[0, 1\]"):
        distribution(model, [[0.0]], Gaussian(1.0)).quantile(1.5)


# --- weighted votes --------------------------------------------------------------------------------------------


def vote_radius(labels: list[int], radii: list[float], weights: list[float]) -> tuple[int, float]:
    """By brute force: the vote's label, and the largest radius at which no choice of the others can change it."""
    exact = [abs(Fraction(weight)) for weight in weights]
    half = sum(exact, Fraction(0)) / 2
    votes = [label ^ (weight < 0) for label, weight in zip(labels, weights, strict=True)]
    label = int(sum((w for w, vote in zip(exact, votes, strict=True) if vote), Fraction(0)) > half)
    best = 0.0
    for radius in radii:
        sure = [vote if own >= radius else None for vote, own in zip(votes, radii, strict=True)]
        for_one = sum((w for w, vote in zip(exact, sure, strict=True) if vote == 1), Fraction(0))
        free = sum((w for w, vote in zip(exact, sure, strict=True) if vote is None), Fraction(0))
        held = for_one > half if label else for_one + free < half
        best = max(best, radius) if held else best
    return label, best


@given(data=st.data())
def test_vote_is_the_best_that_its_members_allow(backend: str, data: st.DataObject) -> None:
    """A vote's radius is that of brute force over the members' certificates, negative and zero weights included."""
    weight = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]) | st.floats(-3, 3)
    first = data.draw(problems(max_terms=2, max_tables=1, max_rows=2))
    members = [first.model]
    for threshold in data.draw(st.lists(st.integers(-6, 6), max_size=3)):
        members.append(AdditiveEnsemble(first.model.terms, threshold, first.model.n_features))
    weights = [data.draw(weight) for _ in members]
    vote = certify(WeightedVote(members, weights), first.rows, first.noise, l0=[0, 1], backend=backend)
    single = [certify(member, first.rows, first.noise, l0=[0, 1], backend=backend) for member in members]
    for k in (0, 1):
        assert np.isnan(vote[k].failure).all()
        for at in range(len(first.rows)):
            labels = [int(c[k].label[at]) for c in single]
            label, radius = vote_radius(labels, [float(c[k].radius[at]) for c in single], weights)
            margin = abs(sum(w if v else -w for w, v in zip(weights, labels, strict=True)))
            if margin > 1e-9:
                assert vote[k].label[at] == label
            assert vote[k].radius[at] <= radius
            if all(float(w).is_integer() for w in weights):
                assert vote[k].radius[at] == radius


def test_votes_by_hand() -> None:
    """Certified while the sure members outweigh the rest; a reversed member votes against its label; a tie is 0."""
    near = AdditiveEnsemble.from_stumps([0], [0.0], [0.0], [1.0], n_features=1)
    far = AdditiveEnsemble.from_stumps([0], [-2.0], [0.0], [1.0], n_features=1)
    reverse = AdditiveEnsemble.from_stumps([0], [-3.0], [1.0], [0.0], n_features=1)

    def answer(members: list[AdditiveEnsemble], weights: list[float]) -> tuple[int, float]:
        c = certify(WeightedVote(members, weights), [[1.0]], Gaussian(0.5))
        return int(c.label[0]), round(float(c.radius[0]), 6)

    assert answer([near, far], [1.0, 1.5]) == (1, 3.0)
    assert answer([near, far], [1.5, 1.0]) == (1, 1.0)
    assert answer([near, far], [1.0, 1.0]) == (1, 1.0)
    assert answer([near, reverse], [1.0, -2.0]) == (1, 4.0)
    assert answer([near, reverse], [1.0, 1.0]) == (0, 0.0)
    assert answer([near, far], [0.0, 1.0]) == (1, 3.0)
    assert answer([near], [0.0]) == (0, 0.0)
    assert answer([near, far, far], [0.1, 0.1, 0.1]) == (1, 3.0)


# --- threads, processes, memory --------------------------------------------------------------------------------


def large_problem(n_rows: int = 400) -> tuple[AdditiveEnsemble, np.ndarray]:
    rng = np.random.default_rng(1)
    model = AdditiveEnsemble.from_stumps(
        range(20), rng.normal(size=20), rng.random(20), rng.random(20), n_features=20, levels=50
    )
    return model, rng.normal(size=(n_rows, 20))


def same(first: Certificates, second: Certificates) -> bool:
    fields = ("label", "failure", "log_failure", "radius")
    return all((getattr(first, name) == getattr(second, name)).all() for name in fields)


def test_number_of_threads_changes_nothing(backend: str) -> None:
    """One thread, two, all cores, and any cut of the rows give the same bits."""
    model, rows = large_problem()
    alone = certify(model, rows, Gaussian(0.3), backend=backend, n_jobs=1)
    for n_jobs in (2, 3, -1, None):
        assert same(alone, certify(model, rows, Gaussian(0.3), backend=backend, n_jobs=n_jobs))
    assert same(alone[100:200], certify(model, rows[100:200], Gaussian(0.3), backend=backend, n_jobs=2))


def test_calls_from_several_threads(backend: str) -> None:
    """Calls from four threads at once give the numbers of one."""
    model, rows = large_problem()
    alone = certify(model, rows, Gaussian(0.3), backend=backend)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(certify, model, rows, Gaussian(0.3), backend=backend, n_jobs=2) for _ in range(8)]
        assert all(same(alone, job.result()) for job in jobs)


def _certify_in_child(backend: str) -> list[float]:
    model, rows = large_problem()
    return certify(model, rows, Gaussian(0.3), backend=backend, n_jobs=2).radius.tolist()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_works_after_a_fork(backend: str) -> None:
    """A process forked from one that has certified in threads certifies, too, with the same numbers."""
    if backend == "cuda":
        pytest.skip("a GPU belongs to the process that opened it: see test_cuda.py")
    expected = _certify_in_child(backend)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_certify_in_child, (backend,)).get(timeout=600) == expected


MEMORY = """
import resource, sys
import numpy as np
from derand import AdditiveEnsemble, Gaussian, certify
rng = np.random.default_rng(0)
model = AdditiveEnsemble.from_stumps(range(10), rng.normal(size=10), rng.random(10), rng.random(10), n_features=10)
rows = rng.normal(size=(1_000_000, 10))
certify(model, rows[:1000], Gaussian(0.5), l0=[0, 1], backend=sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
c = certify(model, rows[: int(sys.argv[2])], Gaussian(0.5), l0=[0, 1], backend=sys.argv[1])[1]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(c) == int(sys.argv[2]) and np.isfinite(c.radius).all()
print((after - before) / (1 if sys.platform == "darwin" else 1024) / (1024 if sys.platform == "darwin" else 1))
"""


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [
        ("numba", 200_000),
        pytest.param("numba", 1_000_000, marks=pytest.mark.long),
        pytest.param("numpy", 20_000, marks=pytest.mark.long),
    ],
)
def test_memory_stays_bounded(name: str, n_rows: int) -> None:
    """A million rows (fewer; of the slow plain backend 20,000) take less than 500 MB on top of the rows themselves."""
    pytest.importorskip("resource", reason="peak memory is read from the resource module")
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, name, str(n_rows)], check=True, capture_output=True, text=True, timeout=1800
    )
    assert float(out.stdout) < 500


# --- the object and bad input ----------------------------------------------------------------------------------


def test_certificates_slice_and_become_a_frame() -> None:
    """Certificates have a length, take numbers, slices, masks and lists, and turn into a frame."""
    model, rows = large_problem(10)
    c = certify(model, rows, "gaussian:0.3", l0=np.int64(2))
    mask = np.arange(10) % 2 == 0
    assert (len(c), len(c[3]), len(c[2:5]), len(c[mask]), len(c[[1, 2]])) == (10, 1, 3, 5, 2)
    assert c[mask].radius.tolist() == c.radius[mask].tolist()
    assert (c[2:5].l0, c[2:5].norm) == (2, 2)
    assert c.to_pandas().shape == (10, 5)
    assert "10 rows" in repr(c)


def test_rows_may_be_any_numbers() -> None:
    """Lists, integers, booleans and float32 are read as the doubles they stand for."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    expected = certify(model, np.array([[0.0], [1.0]]), Gaussian(0.25))
    for rows in ([[0], [1]], np.array([[False], [True]]), np.array([[0], [1]], dtype=np.float32)):
        assert same(expected, certify(model, rows, Gaussian(0.25)))


def test_one_pass_gives_every_budget() -> None:
    """A list of budgets gives the list of what each gives alone; an empty one an empty list."""
    tables = [CategoryTable(f, [0, 1], [-2, 3], other=0) for f in (1, 2, 3)]
    model = AdditiveEnsemble([StepFunction(0, [0.0], [-4, 4]), *tables], 0, 4)
    rows = np.array([[0.5, 1, 1, 1], [-0.5, 0, 1, 7]])
    together = certify(model, rows, Gaussian(0.3), l0=(3, 0, 1))
    for budget, c in zip((3, 0, 1), together, strict=True):
        alone = certify(model, rows, Gaussian(0.3), l0=budget)
        assert c.label.tolist() == alone.label.tolist()
        np.testing.assert_allclose(c.radius, alone.radius, rtol=1e-11)
    assert certify(model, rows, Gaussian(0.3), l0=[]) == []


MODEL = AdditiveEnsemble.from_stumps([0, 1], [0.5, 0.5], [0.1, 0.2], [0.9, 0.8], n_features=2)
MIXED = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1]), CategoryTable(1, [0], [1], 0)], 0, 2)
ROW = [[0.0, 0.0]]
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((MODEL, [[NAN, 0.0], [NAN, 1.0]], "gaussian:1"), {}, ValueError, ["`X`", "finite", "column 0 (2 rows)"]),
        ((MODEL, [[0.0, INF], [NAN, 1.0]], "gaussian:1"), {}, ValueError, ["0 (1 rows)", "1 (1 rows)", "fill"]),
        ((MODEL, [[0.0, -INF]], "gaussian:1"), {}, ValueError, ["`X`", "column 1 (1 rows)"]),
        ((MIXED, [[NAN, NAN]], "gaussian:1"), {}, ValueError, ["`X`", "column 0 (1 rows)"]),
        ((MODEL, [[0.0]], "gaussian:1"), {}, ValueError, ["`X`", "(n_rows, 2)", "(1, 1)"]),
        ((MODEL, [0.0, 0.0], "gaussian:1"), {}, ValueError, ["`X`", "(n_rows, 2)", "(2,)"]),
        ((MODEL, [["a", "b"]], "gaussian:1"), {}, ValueError, ["`X`", "numbers", "encode"]),
        (("model", ROW, "gaussian:1"), {}, TypeError, ["`model`", "AdditiveEnsemble", "str"]),
        ((MODEL, ROW, "cauchy:1"), {}, ValueError, ["cauchy", "gaussian", "uniform", "laplace"]),
        ((MODEL, ROW, "gaussian:0"), {}, ValueError, ["`sigma`", "positive", "0"]),
        ((MODEL, ROW, [0.25]), {}, TypeError, ["`noise`", "gaussian:0.25", "[0.25]"]),
        ((MODEL, ROW, Gaussian(1.0, (1.0,))), {}, ValueError, ["`units`", "one entry per feature", "2", "got 1"]),
        ((MODEL, ROW, "gaussian:1"), {"l0": -1}, ValueError, ["`l0`", "0 or larger", "-1"]),
        ((MODEL, ROW, "gaussian:1"), {"l0": [0, -2]}, ValueError, ["`l0`", "0 or larger", "-2"]),
        ((MODEL, ROW, "gaussian:1"), {"l0": 1.5}, ValueError, ["`l0`", "1.5"]),
        ((MODEL, ROW, "gaussian:1"), {"l0": True}, ValueError, ["`l0`", "True"]),
        ((MODEL, ROW, "gaussian:1"), {"backend": "cupy"}, ValueError, ["`backend`", "numba", "numpy", "'cupy'"]),
        ((MODEL, ROW, "gaussian:1"), {"n_jobs": 0}, ValueError, ["`n_jobs`", "positive", "0"]),
        ((MODEL, ROW, "gaussian:1"), {"n_jobs": -2}, ValueError, ["`n_jobs`", "-2"]),
        ((MODEL, ROW, "gaussian:1"), {"n_jobs": 1.5}, ValueError, ["`n_jobs`", "1.5"]),
        ((MODEL, ROW, None), {}, ValueError, ["`noise`", "the rule 'vote'", "rule='mean'"]),
        ((MODEL, ROW, "none"), {}, ValueError, ["`noise`", "the rule 'vote'", "rule='mean'"]),
        ((AdditiveEnsemble([], None, 2), ROW, "gaussian:1"), {}, ValueError, ["`model`", "`threshold`"]),
    ],
)
def test_bad_input(
    arguments: tuple[object, ...], options: dict[str, object], error: type[Exception], words: list[str]
) -> None:
    """What cannot be certified is refused in one sentence that names the parameter, the rule and what was given."""
    with pytest.raises(error) as caught:
        certify(*arguments, **options)  # type: ignore[call-overload]
    for word in words:
        assert word in str(caught.value)


def test_a_missing_category_is_a_value() -> None:
    """NaN in a category column is the unseen value, also where the model reads other columns."""
    c = certify(MIXED, [[5.0, NAN], [5.0, INF]], Gaussian(0.1))
    assert c.label.tolist() == [1, 1]


def test_a_label_does_not_depend_on_the_budgets_asked_for() -> None:
    """Rows at and next to a tie have one label, whatever else is asked, and however many terms there are."""
    rng = np.random.default_rng(0)
    checked = 0
    for n_terms in (1, 2, 5, 70):
        for _ in range(30):
            steps = [StepFunction(at, [0.0], [0, int(rng.integers(1, 9))]) for at in range(n_terms)]
            table = CategoryTable(n_terms, [0, 1], [-1, 1], other=0)
            total = sum(int(step.scores.max()) for step in steps)
            model = AdditiveEnsemble([*steps, table], total // 2, n_terms + 1)
            rows = np.append(rng.choice([0.0, 1e-13, -1e-13, 1e-11], (20, n_terms)), np.zeros((20, 1)), axis=1)
            noise = NOISES[sorted(NOISES)[checked % 3]](0.5)
            alone = certify(model, rows, noise)
            for several in (certify(model, rows, noise, l0=[0, 1]), certify(model, rows, noise, l0=[1])):
                assert [one.label.tolist() for one in several] == [alone.label.tolist()] * len(several)
            checked += 1
    assert checked == 120


def test_a_vote_does_not_depend_on_the_order_of_its_members() -> None:
    """Weights whose sums round differently in another order still decide alike."""
    rng = np.random.default_rng(1)
    rows = np.zeros((1, 1))
    sure = {label: AdditiveEnsemble([], -1 if label else 0, 1) for label in (0, 1)}
    for _ in range(60):
        weights = rng.choice([0.1, 0.2, 0.3, 0.7, 1.1], 6)
        labels = rng.integers(0, 2, 6)
        found = set()
        for _ in range(8):
            order = rng.permutation(6)
            vote = WeightedVote([sure[int(labels[at])] for at in order], weights[order])
            found.add(int(certify(vote, rows, Gaussian(1.0)).label[0]))
        assert len(found) == 1
        tenths = sum(round(10 * w) * (1 if label else -1) for w, label in zip(weights.tolist(), labels, strict=True))
        assert found == {int(tenths > 0)}  # 0.1 + 0.2 against 0.3 is a tie, which is class 0
