"""Columns that force an answer, against the enumeration of all subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from derand import AdditiveEnsemble, Gaussian, LinearTerm, StepFunction, WeightedVote
from derand._core.arrays import FloatArray
from derand.certificates.results.statements import REASON_PROOFS
from derand.certificates.statements.domain import make_domain
from derand.certificates.statements.reasons import SMALLEST, UNDECIDED, compute_reasons, list_reasons
from tests.certificates.statements.drawing import Case, draw_case, is_sure

N_MODELS = 150
"""In the usual run; the long one takes 2,000 of each kind."""
KINDS = {
    "two classes": {},
    "terms of one column": {"grids": False},
    "several classes": {"n_classes": 3},
    "another model is meant": {"error": 0.6},
    "several classes, another model is meant": {"n_classes": 3, "error": 0.5},
}


def list_forcing(case: Case, row: FloatArray, label: int) -> dict[tuple[int, ...], bool]:
    """For every set of columns whether all rows that agree with a row there have its label."""
    rows = np.concatenate([case.rows, row[None]])
    mixed = np.array(list(itertools.product(*(np.append(own, one) for own, one in zip(case.values, row, strict=True)))))
    rows = np.concatenate([rows, mixed])
    agrees = (rows == row) | (np.isnan(rows) & np.isnan(row))
    labels = is_sure(case, rows)
    every = range(row.size)
    return {
        held: bool((labels[agrees[:, list(held)].all(axis=1)] == label).all())
        for size in range(row.size + 1)
        for held in itertools.combinations(every, size)
    }


def check(case: Case, rng: np.random.Generator) -> None:
    rows = case.rows[rng.integers(0, len(case.rows), 2)]
    found = compute_reasons(case.model, rows, None, case.domain)
    for at, row in enumerate(rows):
        label = int(found.label[at])
        forcing = list_forcing(case, row, label)
        held = tuple(np.flatnonzero(found.fixed[at]).tolist())
        if found.proof[at] == UNDECIDED:
            assert not any(forcing.values())
            continue
        assert forcing[held]
        assert found.margin[at] >= 0
        assert found.proof[at] == SMALLEST
        assert len(held) == min(len(one) for one, forces in forcing.items() if forces)
        first, *others = list_reasons(case.model, row, None, case.domain)[1]
        assert first.columns == held
        assert all(forcing[one.columns] and len(one.columns) == len(held) for one in others)


@pytest.mark.parametrize("kind", KINDS)
def test_sets_are_the_smallest_that_force_the_answer(kind: str) -> None:
    for seed in range(N_MODELS):
        check(draw_case(seed, **KINDS[kind]), np.random.default_rng(seed))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_sets_of_two_thousand_models(kind: str) -> None:
    for seed in range(2000):
        check(draw_case(10_000 + seed, **KINDS[kind]), np.random.default_rng(seed))


def draw_wide(seed: int, n_classes: int, n_columns: int) -> AdditiveEnsemble:
    rng = np.random.default_rng(seed)
    outputs = 1 if n_classes == 2 else n_classes
    terms = [StepFunction(at, [0.0, 1.0], rng.integers(-6, 7, (3, outputs))) for at in range(n_columns)]
    if n_classes == 2:
        return AdditiveEnsemble(terms, 0, n_columns, levels=1)
    from derand.model import Argmax

    return AdditiveEnsemble(terms, Argmax((0,) * n_classes), n_columns, levels=1)


def list_sizes(model: AdditiveEnsemble, row: FloatArray, label: int) -> list[int]:
    """The sizes of all sets of columns that force a label, by the least score of each term."""
    rivals = [other for other in range(model.n_classes) if other != label]
    masks = np.arange(2**row.size)[:, None] >> np.arange(row.size) & 1
    holds = np.ones(len(masks), dtype=bool)
    for rival in rivals:
        pair = model.duel(min(label, rival), max(label, rival))
        sign = 1 if label > rival else -1
        own = np.array([sign * int(term.evaluate(row[[at]])[0]) for at, term in enumerate(pair.terms)])
        worst = np.array([int((sign * term.scores).min()) for term in pair.terms])
        total = (np.where(masks, own, worst)).sum(axis=1) - sign * int(pair.threshold or 0)
        holds &= total > 0 if sign > 0 else total >= 0
    return masks[holds].sum(axis=1).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_twelve_columns(n_classes: int) -> None:
    for seed in range(20):
        model = draw_wide(seed, n_classes, 12)
        rows = np.random.default_rng(seed).integers(-1, 2, (3, 12)).astype(float)
        found = compute_reasons(model, rows, None, make_domain(model))
        for at, row in enumerate(rows):
            assert found.size[at] == min(list_sizes(model, row, int(found.label[at])))


def test_of_many_columns_and_classes_no_column_can_be_dropped() -> None:
    model = draw_wide(0, 4, 15)
    rows = np.random.default_rng(0).integers(-1, 2, (20, 15)).astype(float)
    found = compute_reasons(model, rows, None, make_domain(model))
    assert {REASON_PROOFS[one] for one in found.proof} == {"irreducible"}
    for at, row in enumerate(rows):
        held = found.fixed[at]
        for out in np.flatnonzero(held).tolist():
            fewer = held.copy()
            fewer[out] = False
            assert not _forces(model, row, int(found.label[at]), fewer)
        assert _forces(model, row, int(found.label[at]), held)


def _forces(model: AdditiveEnsemble, row: FloatArray, label: int, held: FloatArray) -> bool:
    for rival in (other for other in range(model.n_classes) if other != label):
        pair, sign = model.duel(min(label, rival), max(label, rival)), 1 if label > rival else -1
        total = -sign * int(pair.threshold or 0)
        for at, term in enumerate(pair.terms):
            total += sign * int(term.evaluate(row[[at]])[0]) if held[at] else int((sign * term.scores).min())
        if not (total > 0 if sign > 0 else total >= 0):
            return False
    return True


def test_costs_are_least() -> None:
    for seed in range(60):
        case = draw_case(seed)
        rng = np.random.default_rng(seed)
        costs = {at: int(rng.integers(1, 6)) for at in range(case.model.n_features)}
        row = case.rows[rng.integers(0, len(case.rows))]
        found = compute_reasons(case.model, row[None], None, case.domain, costs=costs)
        forcing = list_forcing(case, row, int(found.label[0]))
        paid = sum(costs[at] for at in np.flatnonzero(found.fixed[0]).tolist())
        assert paid == min(sum(costs[at] for at in held) for held, forces in forcing.items() if forces)


def test_a_row_outside_the_domain_keeps_its_own_values() -> None:
    model = AdditiveEnsemble([StepFunction(0, [0.0], [-5, 5]), StepFunction(1, [0.0], [-1, 1])], 0, 2, levels=1)
    domain = make_domain(model, {0: (1.0, 2.0)})
    found = compute_reasons(model, np.array([[-1.0, 0.0]]), None, domain)
    assert found.fixed.tolist() == [[True, False]]


def test_under_noise_rows_that_keep_the_columns_keep_the_answer() -> None:
    noise = Gaussian(0.5)
    for seed in range(25):
        case = draw_case(seed, grids=seed % 2 == 0)
        rng = np.random.default_rng(seed)
        rows = case.rows[rng.integers(0, len(case.rows), 4)]
        found = compute_reasons(case.model, rows, noise, case.domain)
        for at, row in enumerate(rows):
            if found.proof[at] == UNDECIDED:
                continue
            others = case.rows[rng.integers(0, len(case.rows), 300)].copy()
            others[:, found.fixed[at]] = row[found.fixed[at]]
            from derand.certificates import find_labels

            assert (find_labels(case.model, others, noise, rule="mean") == found.label[at]).all()


def test_linear_models() -> None:
    model = AdditiveEnsemble([LinearTerm(0, [2.0]), LinearTerm(1, [-1.0]), LinearTerm(2, [0.25])], 0, 3, levels=1)
    domain = make_domain(model, dict.fromkeys(range(3), (-1.0, 1.0)))
    found = compute_reasons(model, np.array([[1.0, 0.0, 0.0], [0.1, 1.0, 0.0]]), None, domain)
    assert found.fixed.tolist() == [[True, False, False], [True, True, False]]
    with pytest.raises(ValueError, match=r"`domain` must give the ends of column 0"):
        compute_reasons(model, np.zeros((1, 3)), None, make_domain(model))


def test_what_is_refused() -> None:
    one = AdditiveEnsemble([StepFunction(0, [0.0], [-1, 1])], 0, 1)
    domain = make_domain(one)
    with pytest.raises(ValueError, match=r"got a WeightedVote"):
        compute_reasons(WeightedVote([one], [1.0]), np.zeros((1, 1)), None, domain)
    with pytest.raises(ValueError, match=r"need the rule 'mean', got 'vote'"):
        compute_reasons(one, np.zeros((1, 1)), Gaussian(1.0), domain, rule="vote")
    with pytest.raises(ValueError, match=r"`costs` must be whole numbers"):
        compute_reasons(one, np.zeros((1, 1)), None, domain, costs={0: 0})
