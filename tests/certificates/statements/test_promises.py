"""Promises about every row, against the enumeration of all cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, Gaussian, GridTerm, LinearTerm, StepFunction
from derand._core.arrays import FloatArray
from derand.certificates import find_labels
from derand.certificates.results.statements import Promise
from derand.certificates.statements.changes import bound_change
from derand.certificates.statements.domain import make_domain
from derand.certificates.statements.promises import Statements
from derand.certificates.statements.protected import PairSearch
from derand.certificates.statements.proving import prove
from derand.certificates.statements.sums import DomainSum
from tests.certificates.statements.drawing import Case, draw_case, is_sure

N_MODELS = 150
KINDS = {
    "two classes": {},
    "terms of one column": {"grids": False},
    "several classes": {"n_classes": 3},
    "another model is meant": {"error": 0.6},
}


def choose_protected(case: Case, rng: np.random.Generator) -> list[int]:
    n_features = case.model.n_features
    return sorted(rng.choice(n_features, int(rng.integers(1, min(n_features, 2) + 1)), replace=False).tolist())


def group_rows(case: Case, protected: list[int]) -> FloatArray:
    """Rows that agree but for these columns have the same number, (n_rows,)."""
    others = [at for at in range(case.model.n_features) if at not in protected]
    if not others:
        return np.zeros(len(case.rows), dtype=np.int64)
    keys = np.nan_to_num(case.rows[:, others], nan=1e9)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


def count_labels(labels: FloatArray, groups: FloatArray) -> FloatArray:
    """How many labels occur in each group."""
    pairs = np.unique(np.stack([groups, labels]), axis=1)
    return np.bincount(pairs[0])


def check_protected(case: Case, rng: np.random.Generator) -> str:
    protected = choose_protected(case, rng)
    groups = group_rows(case, protected)
    labels = find_labels(case.model, case.rows, None, rule="mean")
    flips = count_labels(labels, groups) > 1
    table = case.rows[rng.integers(0, len(case.rows), 20)]
    asked = Statements(case.model, None, case.domain)
    found = asked.prove_protected(protected)
    with_table = asked.prove_protected(protected, table)
    if case.model.n_classes == 2:
        check_swing(case, protected, groups, found)
    if found.verdict == "proven":
        assert not flips.any()
        sure = is_sure(case, case.rows)
        read = {at for term in case.model.terms for at in term.features}
        assert not read.intersection(protected) or (count_labels(sure, groups) == 1).all()
    elif found.verdict == "counterexample":
        assert flips.any()
        assert found.rows is not None
        check_pair(case, protected, found.rows)
    else:  # a grid of few levels is exact
        assert case.model.n_classes > 2 or case.model.score_error
    same = (case.rows == table[:, None]) | (np.isnan(case.rows) & np.isnan(table[:, None]))
    at = same.all(axis=2).argmax(axis=1)
    share = float(flips[groups[at]].mean())
    assert with_table.share is not None
    low, high = with_table.share
    assert low - 1e-12 <= share <= high + 1e-12
    if not case.model.score_error:
        assert low == high
    return found.verdict


def check_pair(case: Case, protected: list[int], rows: FloatArray) -> None:
    others = [at for at in range(case.model.n_features) if at not in protected]
    np.testing.assert_array_equal(rows[0, others], rows[1, others])
    labels = find_labels(case.model, rows, None, rule="mean")
    assert labels[0] != labels[1]
    assert all(case.domain.holds(rows, term) for term in case.model.terms)


def check_swing(case: Case, protected: list[int], groups: FloatArray, found: Promise) -> None:
    scores = case.model.score(case.rows)
    widest = max(np.ptp(scores[groups == group]) for group in np.unique(groups))
    assert found.size == widest


@pytest.mark.parametrize("kind", KINDS)
def test_protected_columns(kind: str) -> None:
    seeds = range(N_MODELS)
    verdicts = [check_protected(draw_case(seed, **KINDS[kind]), np.random.default_rng(seed)) for seed in seeds]
    assert {"proven", "counterexample"} <= set(verdicts)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_protected_columns_of_two_thousand_models(kind: str) -> None:
    for seed in range(2000):
        check_protected(draw_case(10_000 + seed, **KINDS[kind]), np.random.default_rng(seed))


def check_monotone(case: Case) -> None:
    asked = Statements(case.model, None, case.domain)
    pairs = [case.model] if case.model.n_classes == 2 else [case.model.duel(*pair) for pair in case.model.pairs]
    for column in case.model.numerical_features:
        for direction, sign in (("increasing", 1), ("decreasing", -1)):
            found = asked.prove_monotone(column, direction)
            groups, worst = group_rows(case, [column]), 0
            for pair in pairs:
                scores = sign * pair.score(case.rows)
                for group in np.unique(groups):
                    at = np.flatnonzero((groups == group) & ~np.isnan(case.rows[:, column]))
                    own = scores[at][np.argsort(case.rows[at, column], kind="stable")]
                    worst = max(worst, int((np.maximum.accumulate(own) - own).max(initial=0)))
            assert found.size == worst
            assert found.verdict == ("counterexample" if worst else "proven")
            if found.rows is not None:
                low, high = found.rows
                assert low[column] < high[column]
                assert max(sign * (pair.score(low[None]) - pair.score(high[None]))[0] for pair in pairs) == worst


@pytest.mark.parametrize("n_classes", [2, 3])
def test_directions(n_classes: int) -> None:
    for seed in range(N_MODELS):
        check_monotone(draw_case(seed, n_classes=n_classes))


@pytest.mark.long
def test_directions_of_two_thousand_models() -> None:
    for seed in range(2000):
        check_monotone(draw_case(10_000 + seed, n_classes=2 + seed % 2))


def check_classes(case: Case, asked: Statements | None = None) -> None:
    labels = set(find_labels(case.model, case.rows, None, rule="mean").tolist())
    for found in (asked or Statements(case.model, None, case.domain)).prove_classes():
        if found.verdict == "counterexample":
            assert find_labels(case.model, found.rows, None, rule="mean")[0] == int(found.asked)
            assert int(found.asked) in labels
        elif found.verdict == "proven":
            assert int(found.asked) not in labels
        else:
            assert case.model.n_classes > 2 or case.model.score_error
            assert int(found.asked) not in labels  # all rows of so small a domain are tried


@pytest.mark.parametrize("kind", KINDS)
def test_classes_and_ends(kind: str) -> None:
    for seed in range(N_MODELS):
        case = draw_case(seed, **KINDS[kind])
        check_classes(case)
        if case.model.n_classes == 2:
            scores = case.model.score(case.rows) - int(case.model.threshold or 0)
            assert Statements(case.model, None, case.domain).compute_ends() == (scores.min(), scores.max())


def list_fine_rows(case: Case) -> FloatArray:
    """Of a model of one column: its numbers at and just below every edge and end, and whole numbers."""
    edges = case.model.terms[0].axes[0].edges
    low, high = float(case.domain.low[0]), float(case.domain.high[0])
    fine = np.concatenate([edges, np.nextafter(edges, -np.inf), np.arange(-60, 61) / 4])
    fine = np.unique(fine[(fine >= low) & (fine <= high)])
    return fine[fine == np.rint(fine)] if case.domain.whole[0] else fine


def test_the_largest_change_within_a_radius_is_exact_in_linf() -> None:
    n_checked = 0
    for seed in range(300):
        case = draw_case(seed, most=1)
        if not case.model.numerical_features:
            continue
        n_checked += 1
        fine = list_fine_rows(case)
        scores = case.model.score(fine[:, None])
        total = DomainSum(case.model, case.domain, None)
        apart = np.abs(fine[:, None] - fine)
        for radius in (0.0, 0.25, 0.5, 1.0, 1.3, 4.0):
            within = apart < radius
            for one, other in zip(*np.nonzero(apart == radius), strict=True):  # a rounded difference
                within[one, other] = abs(Fraction(fine[one]) - Fraction(fine[other])) <= Fraction(radius)
            widest = np.abs(scores[:, None] - scores)[within].max()
            assert bound_change(total, radius, np.inf, np.ones(1)) == widest


def test_the_largest_change_of_many_columns() -> None:
    rng = np.random.default_rng(0)
    for seed in range(60):
        case = draw_case(seed)
        total, units = DomainSum(case.model, case.domain, None), np.ones(case.model.n_features)
        bounds = {norm: bound_change(total, 1.5, norm, units) for norm in (1, 2, np.inf)}
        assert bounds[1] <= bounds[2] * (1 + 1e-9) <= bounds[np.inf] * (1 + 1e-9)
        rows = case.rows[rng.integers(0, len(case.rows), 200)]
        moves = rng.normal(size=rows.shape)
        moves[:, list(case.model.categorical_features)] = 0
        for norm, bound in bounds.items():
            sizes = np.linalg.norm(moves, ord=norm, axis=1, keepdims=True)
            others = rows + moves / np.maximum(sizes, 1e-9) * 1.5
            others = np.where(case.domain.whole, np.trunc(others), others)
            inside = np.array([all(case.domain.holds(row[None], term) for term in case.model.terms) for row in others])
            near = np.linalg.norm(np.nan_to_num(others - rows), ord=norm, axis=1) <= 1.5
            changes = np.abs(case.model.score(rows) - case.model.score(others))[inside & near]
            assert changes.max(initial=0) <= bound * (1 + 1e-12)


def test_shares_of_a_radius_bound_l1_below_linf() -> None:
    terms = [StepFunction(at, [0.0, 5.0], [0, 1, 5]) for at in range(4)]
    total = DomainSum(AdditiveEnsemble(terms, 0, 4, levels=1), make_domain(AdditiveEnsemble(terms, 0, 4)), None)
    assert bound_change(total, 6.0, np.inf, np.ones(4)) == 20
    # each crosses the second edge by a hair; one has the way left to cross the first, too
    assert 17 <= bound_change(total, 6.0, 1, np.ones(4)) <= 17.5


def test_a_window_that_no_sum_hits() -> None:
    terms = [StepFunction(at, [0.0], [0, 10]) for at in range(5)]
    model = AdditiveEnsemble([*terms, CategoryTable(5, [0, 1], [0, 3], other=9)], 25, 6, levels=1)
    asked = Statements(model, None, make_domain(model))
    assert asked.prove_protected([5]).verdict == "proven"  # sums of tens never lie within 22 to 25
    found = Statements(model, None, make_domain(model, unseen=True)).prove_protected([5])
    assert found.verdict == "counterexample"
    assert found.size == 9


def test_too_many_levels_leave_it_undecided_and_never_wrong() -> None:
    rng = np.random.default_rng(0)
    scores = 3 * rng.integers(10**8, 10**9, 40) + 1
    terms = [StepFunction(at, [0.0], [0, int(one)]) for at, one in enumerate(scores)]
    sex = CategoryTable(40, [0, 1], [0, 1], other=0)
    hard = AdditiveEnsemble([*terms, sex], int(scores.sum() // 2), 41)
    assert Statements(hard, None, make_domain(hard)).prove_protected([40]).verdict == "undecided"
    far = AdditiveEnsemble([*terms, sex], int(scores.sum()) + 1, 41)
    assert Statements(far, None, make_domain(far)).prove_protected([40]).verdict == "proven"


def test_a_coarse_grid_is_rounded_outward() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 10**9, (6, 3))
        terms = [StepFunction(at, [0.0, 1.0], own) for at, own in enumerate(scores)]
        size = int(rng.integers(1, 10**6))
        sums = np.array(np.meshgrid(*scores)).reshape(6, -1).sum(axis=0)
        threshold = int(rng.choice(sums)) + int(rng.integers(-size, 3 * size))
        model = AdditiveEnsemble([*terms, CategoryTable(6, [0, 1], [0, size], other=0)], threshold, 7)
        never = not ((sums <= threshold) & (sums + size > threshold)).any()
        search = PairSearch(DomainSum(model, make_domain(model), None), frozenset([6]))
        assert not search.solve()[0] or never
        verdict = Statements(model, None, make_domain(model)).prove_protected([6]).verdict
        assert verdict in ({"proven", "undecided"} if never else {"counterexample", "undecided"})


def test_under_noise() -> None:
    noise = Gaussian(0.5)
    for seed in range(25):
        case = draw_case(seed, grids=seed % 3 == 0)
        rng = np.random.default_rng(seed)
        protected = choose_protected(case, rng)
        asked = Statements(case.model, noise, case.domain)
        found = asked.prove_protected(protected, case.rows[:20])
        rows = case.rows[rng.integers(0, len(case.rows), 100)]
        others = rows.copy()
        others[:, protected] = case.rows[rng.integers(0, len(case.rows), 100)][:, protected]
        first, second = (find_labels(case.model, some, noise, rule="mean") for some in (rows, others))
        if found.verdict == "proven":
            assert (first == second).all()
        if found.rows is not None:
            assert len(set(find_labels(case.model, found.rows, noise, rule="mean").tolist())) == 2
        assert found.share is not None
        assert found.share[0] <= found.share[1]


def test_the_noise_of_a_rising_function_leaves_it_rising() -> None:
    rising = StepFunction(0, [0.0, 1.0], [0, 1, 3])
    dented = StepFunction(1, [0.0, 1.0], [0, 5, 0])
    model = AdditiveEnsemble([rising, dented], 2, 2, levels=1)
    asked = Statements(model, Gaussian(0.5), make_domain(model))
    assert asked.prove_monotone(0, "increasing").verdict == "proven"
    assert asked.prove_monotone(0, "decreasing").verdict == "counterexample"
    found = asked.prove_monotone(1, "increasing")
    assert found.verdict == "counterexample"
    assert 1 < found.size < 5


def test_a_linear_model() -> None:
    model = AdditiveEnsemble([LinearTerm(0, [2.0]), LinearTerm(1, [-1.0])], 0, 2, levels=1)
    found = prove(
        model,
        None,
        make_domain(model, {0: (-1.0, 1.0), 1: (-1.0, 1.0)}),
        protected=[[0]],
        monotone={0: "increasing", 1: "increasing"},
        radius=0.5,
    )
    assert [one.verdict for one in found.promises[:3]] == ["counterexample", "proven", "counterexample"]
    assert found.change is not None
    assert found.change.size == pytest.approx(1.5)
    assert [one.direction for one in found.swings] == ["increasing", "decreasing"]


def test_a_number_as_the_answer() -> None:
    from derand.model import Value

    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 4])], Value(10), 1, levels=2)
    found = prove(model, None, make_domain(model), monotone={0: "increasing"}, radius=1.0)
    assert (found.lowest, found.highest) == (5.0, 7.0)
    assert [one.verdict for one in found.promises] == ["proven"]
    with pytest.raises(ValueError, match=r"`protected` is for classes"):
        prove(model, None, make_domain(model), protected=[[0]])


def test_what_is_refused() -> None:
    terms = [CategoryTable(0, [0, 1], [0, 1], other=0), GridTerm((1, 2), ([0.0], [0.0]), np.eye(2, dtype=int))]
    model = AdditiveEnsemble(terms, 0, 3)
    with pytest.raises(ValueError, match=r"must say 'increasing' or 'decreasing', got 'up'"):
        prove(model, None, make_domain(model), monotone={1: "up"})
    with pytest.raises(ValueError, match=r"got column 0, which holds categories"):
        prove(model, None, make_domain(model), monotone={0: "increasing"})
    with pytest.raises(ValueError, match=r"must hold a whole number for column 1, got \[0.2, 0.8\]"):
        make_domain(model, {1: (0.2, 0.8)}, whole=[1])
