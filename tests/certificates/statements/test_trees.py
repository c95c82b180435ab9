"""Reasons and promises of models with trees, against the enumeration of all rows that can matter."""

from __future__ import annotations

import numpy as np
import pytest

from derand.certificates.results.statements import REASON_PROOFS
from derand.certificates.rules.base import DEFAULT_BUDGET
from derand.certificates.statements.proving import prove
from derand.certificates.statements.reasons import compute_reasons, list_reasons
from derand.certificates.statements.tree_promises import TreeStatements
from tests.certificates.statements.drawing import Case, draw_tree_case
from tests.certificates.statements.test_promises import (
    check_classes,
    check_pair,
    choose_protected,
    count_labels,
    group_rows,
)
from tests.certificates.statements.test_reasons import list_forcing

N_MODELS = 25
"""In the usual run; the long one takes 2,000 of each kind."""
KINDS = {"two classes": {}, "several classes": {"n_classes": 3}, "another model is meant": {"error": 1.0}}


def check_reasons(case: Case, rng: np.random.Generator) -> str:
    row = case.rows[rng.integers(0, len(case.rows))]
    found = compute_reasons(case.model, row[None], None, case.domain)
    forcing = list_forcing(case, row, int(found.label[0]))
    held = tuple(np.flatnonzero(found.fixed[0]).tolist())
    proof = REASON_PROOFS[found.proof[0]]
    if proof == "undecided":
        assert not forcing[tuple(range(row.size))]
        return proof
    assert forcing[held]
    assert found.margin[0] >= 0
    if proof == "irreducible":
        assert not any(forcing[tuple(one for one in held if one != out)] for out in held)
    else:  # a row that only some model within the error answers otherwise, or a code that the domain does not hold
        assert case.model.score_error or -7.0 in row
    first, *others = list_reasons(case.model, row, None, case.domain)[1]
    assert (first.columns, others) == (held, [])
    return proof


@pytest.mark.parametrize("kind", KINDS)
def test_no_column_of_a_reason_can_be_dropped(kind: str) -> None:
    proofs = {
        check_reasons(draw_tree_case(seed, **KINDS[kind]), np.random.default_rng(seed)) for seed in range(N_MODELS)
    }
    assert "irreducible" in proofs


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_reasons_of_two_thousand_models(kind: str) -> None:
    for seed in range(2000):
        check_reasons(draw_tree_case(10_000 + seed, **KINDS[kind]), np.random.default_rng(seed))


def check_promises(case: Case, rng: np.random.Generator) -> str:
    asked = TreeStatements(case.model, case.domain, DEFAULT_BUDGET)
    protected = choose_protected(case, rng)
    groups = group_rows(case, protected)
    flips = count_labels(asked.label(case.rows), groups) > 1
    table = case.rows[rng.integers(0, len(case.rows), 10)]
    found = asked.prove_protected(protected)
    assert found.verdict in (("counterexample",) if flips.any() else ("proven", "undecided"))
    if case.model.n_classes == 2:
        scores = case.model.score(case.rows)
        assert found.size == max(np.ptp(scores[groups == group]) for group in np.unique(groups))
        if not case.model.score_error:
            assert asked.compute_ends() == tuple(np.array([scores.min(), scores.max()]) - (case.model.threshold or 0))
    if not case.model.score_error:
        assert found.verdict != "undecided"
    if found.rows is not None:
        check_pair(case, protected, found.rows)
    same = (case.rows == table[:, None]) | (np.isnan(case.rows) & np.isnan(table[:, None]))
    share = float(flips[groups[same.all(axis=2).argmax(axis=1)]].mean())
    low, high = asked.prove_protected(protected, table).share or (np.nan, np.nan)
    assert low <= share + 1e-12
    assert high >= share - 1e-12
    assert low == high or case.model.score_error
    check_classes(case, asked)
    check_directions(case, asked)
    return found.verdict


def check_directions(case: Case, asked: TreeStatements) -> None:
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
            assert found.verdict == ("counterexample" if worst else "proven")
            assert (found.size > 0) == (worst > 0)
            assert found.size <= worst
            if found.rows is not None:
                low, high = found.rows
                assert low[column] < high[column]
                assert found.size == max(sign * (pair.score(low[None]) - pair.score(high[None]))[0] for pair in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_promises(kind: str) -> None:
    verdicts = {
        check_promises(draw_tree_case(seed, **KINDS[kind]), np.random.default_rng(seed)) for seed in range(N_MODELS)
    }
    assert {"proven", "counterexample"} <= verdicts


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_promises_of_two_thousand_models(kind: str) -> None:
    for seed in range(2000):
        check_promises(draw_tree_case(10_000 + seed, **KINDS[kind]), np.random.default_rng(seed))


def check_change(case: Case, rng: np.random.Generator) -> None:
    """Between rows of which only numbers differ, and which of them are missing does not."""
    radius, norm = float(rng.choice([0.0, 0.25, 0.6, 2.0])), (1, 2, np.inf)[int(rng.integers(3))]
    bound = TreeStatements(case.model, case.domain, 1).compute_change(radius, norm, np.ones(case.model.n_features)).size
    rows = case.rows[rng.integers(0, len(case.rows), 60)]
    moves = rng.normal(size=rows.shape)
    moves[:, list(case.model.categorical_features)] = 0
    sizes = np.linalg.norm(moves, ord=norm, axis=1, keepdims=True)
    others = rows + moves / np.maximum(sizes, 1e-9) * radius
    others = np.where(case.domain.whole, np.trunc(others), others)
    inside = np.array([all(case.domain.holds(row[None], term) for term in case.model.terms) for row in others])
    near = np.linalg.norm(np.nan_to_num(others - rows), ord=norm, axis=1) <= radius
    changes = np.abs(case.model.score(rows) - case.model.score(others))[inside & near]
    assert changes.max(initial=0) <= bound


def test_the_largest_change_within_a_radius() -> None:
    for seed in range(N_MODELS * 4):
        check_change(draw_tree_case(seed), np.random.default_rng(seed))


def test_a_spent_budget_proves_less_and_nothing_wrong() -> None:
    for seed in range(N_MODELS):
        case, rng = draw_tree_case(seed), np.random.default_rng(seed)
        row = case.rows[rng.integers(0, len(case.rows))]
        found = compute_reasons(case.model, row[None], None, case.domain, budget=1)
        if found.proof[0]:
            assert list_forcing(case, row, int(found.label[0]))[tuple(np.flatnonzero(found.fixed[0]).tolist())]
        promises = prove(case.model, None, case.domain, protected=[[0]], budget=1).promises
        exact = prove(case.model, None, case.domain, protected=[[0]]).promises
        for one, other in zip(promises, exact, strict=True):
            assert one.verdict in ("undecided", other.verdict)


def test_noise_is_refused_in_one_line() -> None:
    from derand import Gaussian

    case = draw_tree_case(0)
    with pytest.raises(ValueError, match=r"Noise is not for a model whose trees join many columns"):
        prove(case.model, Gaussian(1.0), case.domain)
