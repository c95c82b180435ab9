"""Problems: what is prepared for a model is prepared once, kept while the model lives, and shared between threads."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, Gaussian, StepFunction, WeightedVote, certify
from derand.auditing._oriented import SumFacts
from derand.certificates.bounds.packing import choose_support, pack_terms, pose_problem
from derand.kernels import load_backend
from derand.kernels.tails import numba_backend


def make_member(rng: np.random.Generator, n_features: int = 70) -> AdditiveEnsemble:
    terms = [StepFunction(at, rng.normal(size=1), rng.integers(0, 90, 2)) for at in range(n_features)]
    return AdditiveEnsemble(terms, int(sum(term.scores.mean() for term in terms)), n_features)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each plan that the default backend prepares."""
    calls: list[int] = []
    prepare = numba_backend.prepare

    def count(starts: Any, scores: Any, **options: Any) -> Any:
        calls.append(starts.size - 1)
        return prepare(starts, scores, **options)

    monkeypatch.setattr(numba_backend, "prepare", count)
    return calls


def test_a_vote_certified_twice_prepares_each_member_once(prepared: list[int]) -> None:
    """However many members a vote has, each is prepared once, whatever is asked of it."""
    rng = np.random.default_rng(0)
    vote = WeightedVote([make_member(rng) for _ in range(8)], np.ones(8))
    rows = rng.normal(size=(10, 70))
    first = certify(vote, rows, Gaussian(0.5))
    second = certify(vote, rows, Gaussian(0.25), l0=[0, 1])
    assert first.radius.shape == second[0].radius.shape
    assert len(prepared) == 8


def test_threads_share_one_plan(prepared: list[int]) -> None:
    """Many threads that certify with one new model prepare it once and get the same bits."""
    rng = np.random.default_rng(1)
    model, rows = make_member(rng), rng.normal(size=(100, 70))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: certify(model, rows, Gaussian(0.5), n_jobs=2).log_failure.tolist(), range(8)))
    assert all(result == results[0] for result in results)
    assert len(prepared) == 1


def test_what_is_prepared_goes_with_the_model() -> None:
    """Nothing keeps a model alive, and a model that is gone leaves nothing behind."""
    model = make_member(np.random.default_rng(2))
    problem = weakref.ref(pose_problem(model).terms.scores.base or pose_problem(model).terms.scores)
    gone = weakref.ref(model)
    assert problem() is not None
    del model
    gc.collect()
    assert gone() is None
    assert problem() is None


def test_packed_arrays_are_read_only() -> None:
    """Nobody can change what threads share."""
    packed = pack_terms(make_member(np.random.default_rng(3)).terms)
    for name in ("edges", "edge_features", "edge_terms", "starts", "scores"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(packed, name)[0] = 0


def test_equal_models_do_not_share_a_plan_by_accident() -> None:
    """Models are told apart by identity: two of the same numbers have a problem each."""
    one, other = (make_member(np.random.default_rng(4)) for _ in range(2))
    assert pose_problem(one) is pose_problem(one)
    assert pose_problem(one) is not pose_problem(other)


def test_tables_of_periods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan keeps no more cosines and sines than its limit, and forgets the oldest first; results stay the same."""
    from derand.kernels.tails import failures

    monkeypatch.setattr(failures, "_TABLE_NUMBERS", 3 * 2 * 64 * 5)
    tables = failures.PeriodTables(np.arange(5.0))
    first = tables.find(1000)
    for period in (1001, 1002, 1003):
        tables.find(period)
    assert list(tables._known) == [1001, 1002, 1003]
    assert tables.find(1000).tolist() == first.tolist()


def test_each_backend_has_its_own_plan() -> None:
    """A plan of one backend is never handed to another."""
    packed = pack_terms(make_member(np.random.default_rng(5)).terms)
    fast, plain = load_backend("numba"), load_backend("numpy")
    assert packed.plan(fast) is packed.plan(fast)
    assert packed.plan(fast) is not packed.plan(plain)


@pytest.mark.parametrize(
    ("n_terms", "n_cells", "levels"),
    [
        (1, 3, 2**13),  # one term: as many as before
        (14, 250, 14 * 2**13),  # each term adds the same share of the span
        (200, 250, 2**29 // 50_000),  # more than that would take too long
        pytest.param(4, 20_000, 2**13, marks=pytest.mark.long),  # and fewer would tell too little
    ],
)
def test_sums_that_are_too_fine_for_a_law_get_levels_by_their_terms(n_terms: int, n_cells: int, levels: int) -> None:
    """The law has as many as asked for, and what rounding moves the sum is half a step for each term; audits agree."""
    rng = np.random.default_rng(0)
    terms = [
        StepFunction(at, np.sort(rng.normal(size=n_cells - 1)), rng.integers(-(2**40), 2**40, n_cells))
        for at in range(n_terms)
    ]
    assert choose_support(terms) == levels
    problem = pose_problem(AdditiveEnsemble(terms, 0, n_terms))
    assert 0.99 * levels < problem.distribution.largest <= levels + n_terms
    assert 0.3 * n_terms < problem.distribution.error / problem.distribution.step <= 0.5 * n_terms
    (contrast,) = AdditiveEnsemble(terms, 0, n_terms).contrasts()
    assert SumFacts(contrast).coarse_grid[1] == problem.distribution.error
