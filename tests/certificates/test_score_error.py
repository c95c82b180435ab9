"""`score_error`: a certificate holds for every model whose score differs by no more than that."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from derand import AdditiveEnsemble, CategoryTable, Gaussian, StepFunction, WeightedVote
from tests import oracle
from tests.certificates.by_law import certify
from tests.strategies import Problem, problems


def coarsen(model: AdditiveEnsemble, factor: int) -> AdditiveEnsemble:
    """The model on a grid that is coarser by a factor, scores multiplied back, and how far its score may be off."""
    terms: list[StepFunction | CategoryTable] = []
    error = 0.0
    for term in model.terms:
        rounded = np.rint(term.cell_scores / factor).astype(np.int64) * factor
        if isinstance(term, CategoryTable):
            other = round(term.other / factor) * factor
            gaps = [*np.abs(rounded - term.cell_scores).tolist(), abs(other - term.other)]
            terms.append(CategoryTable(term.feature, term.categories, rounded, other))
        else:
            gaps = np.abs(rounded - term.cell_scores).tolist()
            terms.append(StepFunction(term.feature, term.edges, rounded))
        error += max(gaps, default=0)
    return AdditiveEnsemble(terms, model.threshold, model.n_features, score_error=error)


@given(problem=problems(reaches=(20, 100)), factor=st.sampled_from([2, 3, 7, 30]), l0=st.integers(0, 2))
def test_a_coarse_model_certifies_the_fine_one(backend: str, problem: Problem, factor: int, l0: int) -> None:
    """A radius of the rounded model is no larger than the true one of the model that was rounded, label and all."""
    sizes = [max(map(abs, term.score_range())) for term in problem.model.terms]
    assume(max(sizes, default=0) < 1000)  # or the rounded grid is too wide
    coarse = coarsen(problem.model, factor)
    found = certify(coarse, problem.rows, problem.noise, l0=[l0], backend=backend)[0]
    plain = certify(
        AdditiveEnsemble(coarse.terms, coarse.threshold, coarse.n_features),
        problem.rows,
        problem.noise,
        backend=backend,
    )
    assert found.label.tolist() == plain.label.tolist()  # the label is the model's
    for row, label, failure, radius in zip(problem.rows, found.label, found.failure, found.radius, strict=True):
        (truth,) = oracle.find_truth(problem.model, row.tolist(), problem.noise, [l0])
        if radius > 0:
            assert truth.label == label
            assert truth.failures[label] <= failure
            assert not truth.crossable[label] or radius <= oracle.true_radius(problem.noise, truth.failures[label])


def test_the_threshold_moves_by_whole_scores_on_both_sides() -> None:
    """An error of 1.2 counts as 2: each side fails as it does with the threshold two higher or lower."""
    terms = [StepFunction(at, [0.0, 1.0], [0, 1 + at, 5]) for at in range(3)]
    noise, rows = Gaussian(0.7), np.random.default_rng(0).normal(0.5, 1.0, (200, 3))
    widened = certify(AdditiveEnsemble(terms, 7, 3, score_error=1.2), rows, noise)
    plain, higher, lower = (certify(AdditiveEnsemble(terms, level, 3), rows, noise) for level in (7, 9, 5))
    assert widened.label.tolist() == plain.label.tolist()
    for label, nearer in ((1, higher), (0, lower)):
        same = (plain.label == label) & (nearer.label == label)
        np.testing.assert_allclose(widened.failure[same], nearer.failure[same], rtol=1e-9)
        np.testing.assert_allclose(widened.radius[same], nearer.radius[same], rtol=1e-9, atol=1e-9)
        undecided = (plain.label == label) & (nearer.label != label)
        assert undecided.any()
        assert (widened.radius[undecided] == 0).all()
        assert (widened.failure[undecided] >= 0.5 - 1e-9).all()


def test_no_error_changes_nothing() -> None:
    """With a score error of 0 the certificates are bit for bit the same."""
    rng = np.random.default_rng(1)
    terms = [StepFunction(at, np.sort(rng.normal(size=2)), rng.integers(0, 9, 3)) for at in range(5)]
    rows = rng.normal(size=(50, 5))
    one, other = (
        certify(AdditiveEnsemble(terms, 20, 5, score_error=error), rows, "laplace:0.3") for error in (0.0, 1e-300)
    )
    assert (other.radius <= one.radius + 1e-9).all()  # a hair counts as a whole score
    again = certify(AdditiveEnsemble(terms, 20, 5), rows, "laplace:0.3")
    assert again.radius.tolist() == one.radius.tolist()


def test_a_change_that_no_error_can_make_keeps_its_infinite_radius() -> None:
    """Where not even the widened threshold can be crossed, no change of numbers flips the label."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 3])], 10, 1, score_error=6.5)
    assert certify(model, [[0.0]], "uniform:1").radius.tolist() == [math.inf]
    near = AdditiveEnsemble([StepFunction(0, [0.0], [0, 3])], 10, 1, score_error=7.5)
    assert certify(near, [[-5.0]], "uniform:1").radius[0] < math.inf


def test_members_of_a_vote_are_widened_each_by_its_own_error() -> None:
    """A vote's radius falls where a member's does."""
    sure = AdditiveEnsemble([StepFunction(0, [0.0], [0, 10])], 5, 1)
    doubtful = AdditiveEnsemble([StepFunction(0, [0.0], [0, 10])], 5, 1, score_error=6.0)
    rows = [[2.0]]
    assert certify(WeightedVote([sure, doubtful], [1.0, 2.0]), rows, "gaussian:1").radius.tolist() == [0.0]
    assert certify(WeightedVote([sure, doubtful], [2.0, 1.0]), rows, "gaussian:1").radius[0] == pytest.approx(2.0)
