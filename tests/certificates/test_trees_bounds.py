"""Sums of trees against enumeration of all cells: verdicts, radii, bounds, and that witnesses are true."""

from __future__ import annotations

import numpy as np
import pytest

from derand import Threat
from derand._core.arrays import FloatArray, IntArray
from derand.certificates.bounds.tree_packing import pack_trees
from derand.certificates.bounds.trees import (
    FLIPS,
    HOLDS,
    TIE,
    UNDECIDED,
    bound_scores,
    decide_within,
    measure_radii,
)
from derand.model import AdditiveEnsemble, TreeTerm
from derand.perturbation import resolve
from tests.certificates import enumerating
from tests.certificates.tree_cases import Case, draw_case

ENOUGH, LITTLE = 10**6, 3
SEEDS = [range(start, start + 40) for start in range(0, 2400, 40)]
SHARES = pytest.mark.parametrize(
    "seeds", [SEEDS[0], SEEDS[1], *(pytest.param(one, marks=pytest.mark.long) for one in SEEDS[2:])], ids=str
)


def check_witnesses(case: Case, witness: FloatArray, at: IntArray) -> None:
    """Witnesses lie within the box, change as much as they may, and flip beyond every error."""
    for row in at.tolist():
        own, changed, asked = case.rows[row], witness[row], case.perturbation
        differs = ~((own == changed) | (np.isnan(own) & np.isnan(changed)))
        categories = np.isin(np.arange(own.size), case.model.categorical_features)
        assert (differs & categories).sum() <= asked.l0
        is_missing = np.isnan(own) != np.isnan(changed)
        assert (is_missing & ~categories).sum() <= asked.missing_budget
        low, high = asked.box(own[None])
        inside = (changed >= low[0]) & (changed <= high[0])
        assert (inside | is_missing | categories | ~differs).all()
        assert not differs[list(asked.frozen)].any()
        ahead = case.model.score(witness[[row]])[0] - (case.model.threshold or 0)
        error = case.model.score_error + sum(
            float(term.bound_rounding(witness[[row]])[0, 0]) for term in case.model.terms if isinstance(term, TreeTerm)
        )
        assert ahead <= -error if case.is_one[row] else ahead > error


@SHARES
def test_verdicts_are_those_of_all_cells(seeds: range) -> None:
    for seed in seeds:
        case = draw_case(np.random.default_rng(seed))
        asked = case.contrast, case.rows, case.is_one, case.perturbation
        want = enumerating.decide_within(*asked, ENOUGH, 1, case.radius)
        known = want.nodes > 0
        for budget in (ENOUGH, LITTLE):
            found = decide_within(*asked, budget, 1, case.radius)
            assert (found.bound[known] <= want.bound[known] + 1e-9).all(), seed
            check_witnesses(case, found.witness, np.flatnonzero(found.status == FLIPS))
            for got, truth in zip(found.status[known].tolist(), want.status[known].tolist(), strict=True):
                if budget == LITTLE:
                    assert got in (truth, UNDECIDED) or (got, truth) == (TIE, FLIPS), seed
                elif case.radius is not None and got == UNDECIDED:
                    assert truth != HOLDS or case.perturbation.norm in (1, 2), seed  # at the rim of the ball
                else:
                    assert got == truth, seed


@SHARES
def test_radii_are_those_of_all_cells(seeds: range) -> None:
    for seed in seeds:
        case = draw_case(np.random.default_rng(seed), (np.inf, 1, 2, 0))
        asked = case.contrast, case.rows, case.is_one, case.perturbation
        want = enumerating.measure_radii(*asked, ENOUGH, 1)
        known = want.nodes > 0
        least, most = want.certified[known], want.attacked[known]
        for budget in (ENOUGH, LITTLE):
            found = measure_radii(*asked, budget, 1)
            assert (found.certified[known] <= least * (1 + 1e-12)).all(), seed
            assert (found.attacked[known] >= most * (1 - 1e-12)).all(), seed
            check_witnesses(case, found.witness, np.flatnonzero(np.isfinite(found.attacked)))
            if budget == ENOUGH:
                np.testing.assert_allclose(found.certified[known], least, rtol=1e-10, err_msg=str(seed))
                # of two rows on either side of an edge, one double apart, either may be found
                np.testing.assert_allclose(found.attacked[known], most, rtol=1e-10, atol=1e-14, err_msg=str(seed))


@SHARES
def test_least_and_largest_scores_are_those_of_all_cells(seeds: range) -> None:
    for seed in seeds:
        case = draw_case(np.random.default_rng(seed))
        asked = case.contrast, case.rows, case.perturbation
        want = enumerating.bound_scores(*asked, ENOUGH, 1, case.radius)
        known = want.nodes > 0
        for budget in (ENOUGH, LITTLE):
            found = bound_scores(*asked, budget, 1, case.radius)
            assert (found.least[known] <= want.least[known] + 1e-9).all(), seed
            assert (found.most[known] >= want.most[known] - 1e-9).all(), seed
            assert (found.attained_least[known] >= want.attained_least[known]).all(), seed
            assert (found.attained_most[known] <= want.attained_most[known]).all(), seed
            if budget == ENOUGH and case.radius is None:  # errors of leaves are rounded up to 1/256
                np.testing.assert_allclose(found.least[known], want.least[known], atol=0.05, err_msg=str(seed))
                np.testing.assert_allclose(found.most[known], want.most[known], atol=0.05, err_msg=str(seed))


def test_a_row_on_an_edge_and_one_double_below() -> None:
    model = AdditiveEnsemble([TreeTerm([0], [0], [1.0], [-1], [-2], [-1, 1], [True])], 0, 1)
    (contrast,) = model.contrasts()
    rows = np.array([[1.0], [np.nextafter(1.0, 0)], [3.0], [0.0]])
    found = measure_radii(contrast, rows, model.score(rows) > 0, resolve(Threat(norm=np.inf), model, None), 10, 1)
    assert found.certified.tolist() == pytest.approx([0.0, 2.0**-53, 2.0, 1.0])
    assert found.is_exact.all()
    assert (found.certified <= found.attacked).all()
    assert found.witness.ravel().tolist() == [np.nextafter(1.0, 0), 1.0, np.nextafter(1.0, 0), 1.0]


def test_agreement_in_pairs_is_no_common_category() -> None:
    """Leaves of {0, 1}, {1, 2} and {0, 2} agree in pairs: no category takes all three."""
    left = [[0, 1], [1, 2], [0, 2]]
    term = TreeTerm([0, 1, 2], [0] * 3, [0.0] * 3, [-1] * 3, [-2] * 3, [-3, 4], [False] * 3, [0, 1, 2], left, [(0, 3)])
    model = AdditiveEnsemble([term], -4, 1)
    (contrast,) = model.contrasts()
    asked = resolve(Threat(norm=None, l0=1, unseen=False), model, None)
    found = decide_within(contrast, np.array([[1.0]]), np.array([True]), asked, 100, 1)
    assert (found.status[0], found.bound[0]) == (HOLDS, 2.0)


def test_threads_and_blocks_change_nothing() -> None:
    case = draw_case(np.random.default_rng(7), (2,))
    rows = np.tile(case.rows, (200, 1))
    is_one = np.tile(case.is_one, 200)
    one, two = (measure_radii(case.contrast, rows, is_one, case.perturbation, 50, jobs) for jobs in (1, 2))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_forest_is_packed_once() -> None:
    case = draw_case(np.random.default_rng(3))
    assert pack_trees(case.contrast.terms) is pack_trees(case.contrast.terms)


def test_no_number_lies_below_the_lowest_one() -> None:
    """An edge there parts what is missing from all numbers: these never get to the other side."""
    lowest = -float(np.finfo(np.float64).max)
    model = AdditiveEnsemble([TreeTerm([0], [0], [lowest], [-1], [-2], [-1, 1], [True])], 0, 1)
    (contrast,) = model.contrasts()
    rows = np.array([[1.0], [np.nan]])
    found = measure_radii(contrast, rows[:1], np.array([True]), resolve(Threat(norm=np.inf), model, None), 10, 1)
    assert (found.certified[0], found.attacked[0]) == (np.inf, np.inf)
    asked = resolve(Threat(norm=None, missing=1), model, None)
    verdicts = decide_within(contrast, rows, np.array([True, False]), asked, 10, 1)
    assert verdicts.status.tolist() == [FLIPS, FLIPS]
    assert np.isnan(verdicts.witness[0, 0])
    assert np.isfinite(verdicts.witness[1, 0])


@pytest.mark.parametrize("norm", [np.inf, 1, 2])
def test_a_witness_beside_an_edge_lies_above_zero(norm: float) -> None:
    """One double below 0 is so near that its square, and its share of a unit, round to 0."""
    model = AdditiveEnsemble([TreeTerm([0], [0], [0.0], [-1], [-2], [-1, 1], [True])], 0, 1)
    (contrast,) = model.contrasts()
    asked = resolve(Threat(norm=norm, units=[4.0]), model, None)
    found = measure_radii(contrast, np.zeros((1, 1)), np.array([True]), asked, 10, 1)
    assert found.certified[0] == 0.0
    assert 0.0 < found.attacked[0] < 1e-300
