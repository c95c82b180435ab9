"""Missing numbers: noise and changes leave them alone, and rows without any are certified to the last bit as before."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    StepFunction,
    Threat,
    WeightedVote,
    certify,
    distribution,
)
from derand.certificates import attack, explain, fill_missing, find_labels, pack_terms, place_scores
from derand.certificates.bounds.missing import compute_position
from derand.certificates.bounds.packing import MissingCell
from derand.noise import NOISES
from experiments.baselines.monte_carlo import certify_by_sampling

KINDS = sorted(NOISES)
NORMS = (0, 1, 2, math.inf)


def draw_model(rng: np.random.Generator, n: int = 4) -> AdditiveEnsemble:
    """Step functions with a cell for missing values, one of them constant, and a category."""
    terms: list[Any] = []
    for at in range(n):
        edges = np.unique(rng.integers(-8, 9, rng.integers(1, 5)) / 4)
        missing = int(rng.integers(-9, 10))
        terms.append(StepFunction(at, edges, rng.integers(-6, 7, edges.size + 1), missing=missing))
    terms.append(StepFunction(n, [0.0], [2, 2], missing=int(rng.integers(-4, 5))))
    terms.append(CategoryTable(n + 1, [0, 1], rng.integers(-3, 4, 2), 1, missing=int(rng.integers(-3, 4))))
    return AdditiveEnsemble(terms, int(rng.integers(-4, 5)), n + 3)


def draw_rows(rng: np.random.Generator, n_rows: int, n_features: int, share: float = 0.3) -> np.ndarray:
    """Numbers of which a share is missing, codes, and a column that no term reads."""
    rows = rng.normal(0, 1.5, (n_rows, n_features))
    rows[:, -2] = rng.integers(0, 3, n_rows)
    return np.where(rng.random(rows.shape) < share, np.nan, rows)


def hold_missing(model: AdditiveEnsemble, row: np.ndarray) -> tuple[AdditiveEnsemble, np.ndarray]:
    """The same for this row alone: a missing number's term is the constant that its cell scores."""
    terms = []
    for term in model.terms:
        feature = term.features[0]
        is_gap = bool(term.axes) and np.isnan(row[feature])
        terms.append(StepFunction(feature, [], [term.missing]) if is_gap else term)  # type: ignore[list-item]
    filled = np.where(np.isnan(row) & (np.arange(row.size) != row.size - 2), 0.0, row)  # codes stay missing
    return AdditiveEnsemble(terms, model.threshold, model.n_features), filled[None]


@pytest.mark.parametrize("kind", KINDS)
def test_noise_leaves_a_missing_number_in_its_cell(kind: str) -> None:
    """At its place the last cell has all the mass, whatever the noise's size, the units and the edges."""
    every = itertools.product([1e-299, 1e-3, 0.25, 7.0, 1e299], [1e-200, 1e-9, 1.0, 1e9, 1e200])
    scales = [(magnitude, unit) for magnitude, unit in every if 1e-300 < magnitude * unit < 1e300]
    lasts = [-1e300, -1e20, -1.0, 0.0, 5e-324, 1.0, 1e20, 1e300]
    for (magnitude, unit), last in itertools.product(scales, lasts):
        noise = NOISES[kind](magnitude, (unit,))
        for edges in ([last], [last - 1 - abs(last), last]):
            place = compute_position(MissingCell(0, np.array(edges), np.array([0, 1]), 5), noise)
            table = noise.cell_probabilities([place], edges)
            assert table[0, -1] == 1.0, (magnitude, unit, edges)
            assert (table[0, :-1] <= 2.0**-1022).all(), (magnitude, unit, edges)


def test_an_edge_without_room_beyond_is_refused() -> None:
    """Rather than a wrong probability."""
    model = AdditiveEnsemble([StepFunction(0, [1.7e308], [0, 3], missing=1)], 0, 1)
    assert certify(model, [[np.nan]], "gaussian:1").label.tolist() == [1]
    model = AdditiveEnsemble([StepFunction(0, [np.finfo(float).max], [0, 3], missing=1)], 0, 1)
    with pytest.raises(ValueError, match="column 0 needs room above its last edge"):
        certify(model, [[np.nan]], "gaussian:1")
    assert certify(model, [[np.nan]], None, rule="mean").label.tolist() == [1]


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_a_missing_number_is_a_constant(kind: str, rule: str) -> None:
    """Labels and radii are those of a model in which the term is the constant of its cell."""
    if kind == "none" and rule == "vote":
        return
    rng = np.random.default_rng(3)
    noise = None if kind == "none" else NOISES[kind](0.5)
    for _ in range(2):
        model = draw_model(rng)
        rows = draw_rows(rng, 4, model.n_features)
        for norm in NORMS:
            threat = Threat(norm=norm, l0=int(rng.integers(0, 2)))
            proofs = ("best", "paper") if rule == "vote" else ("best",)
            for proof in proofs:
                found = certify(model, rows, noise, rule=rule, proof=proof, threat=threat)
                for at, row in enumerate(rows):
                    twin = certify(*hold_missing(model, row), noise, rule=rule, proof=proof, threat=threat)
                    assert found.label[at] == twin.label[0]
                    # prices are tried on a grid, which depends on all terms
                    close = 0.03 if found.proof[at] == twin.proof[0] == "dual" else 1e-3
                    same = found.radius[at] == pytest.approx(twin.radius[0], rel=close, abs=1e-6)
                    # a vote deducts for the range of every term, and carries radii over to norms with every column
                    below = rule == "vote" and (proof == "best" or found.radius[at] <= twin.radius[0])
                    assert same or below


@pytest.mark.parametrize("kind", KINDS)
def test_laws_and_places_of_rows_with_gaps(kind: str) -> None:
    """The law of the score, the place of its mean, and its label are those of the constant, too."""
    rng, noise = np.random.default_rng(4), NOISES[kind](0.5)
    for _ in range(3):
        model = draw_model(rng)
        rows = draw_rows(rng, 4, model.n_features)
        law = distribution(model, rows, noise)
        places = place_scores(model, rows, noise)
        for at, row in enumerate(rows):
            twin = distribution(*hold_missing(model, row), noise)
            np.testing.assert_allclose(law.cdf(twin.support)[at], twin.cdf(twin.support)[0], atol=1e-12)
            mean = float(law.support @ law.pmf[at])
            assert np.sign(places[at]) == np.sign(mean - model.threshold) or abs(mean - model.threshold) < 1e-9
        unsmoothed = find_labels(model, rows, None, rule="mean")
        assert unsmoothed.tolist() == (model.score(rows) > model.threshold).astype(int).tolist()


@pytest.mark.parametrize(("rule", "noise"), [("vote", "gaussian:0.5"), ("mean", "laplace:0.3"), ("mean", None)])
def test_rows_without_gaps_are_certified_as_if_alone(rule: str, noise: str | None, backend: str) -> None:
    """To the last bit, in every norm, beside any rows with gaps and with a model that has no cells for them."""
    rng = np.random.default_rng(5)
    for _ in range(2):
        model = draw_model(rng, n=9)
        plain = [StepFunction(term.feature, term.edges, term.scores) for term in model.step_functions]
        bare = AdditiveEnsemble([*plain, *model.category_tables], model.threshold, model.n_features)
        rows = draw_rows(rng, 30, model.n_features, share=0.03)
        whole = np.flatnonzero(~np.isnan(rows[:, :10]).any(axis=1))
        assert 0 < whole.size < 30
        for norm in NORMS:
            threat = Threat(norm=norm, l0=1)
            found, alone, without = (
                certify(one, x, noise, rule=rule, threat=threat, backend=backend)
                for one, x in ((model, rows), (model, rows[whole]), (bare, rows[whole]))
            )
            for name in ("label", "radius", "log_failure", "proof"):
                expected = getattr(without, name).tobytes()
                assert getattr(found, name)[whole].tobytes() == getattr(alone, name).tobytes() == expected


def test_a_row_of_gaps_alone_cannot_be_flipped() -> None:
    """What is missing stays so: nothing can change, whatever the rule."""
    terms = [StepFunction(at, [0.0, 1.0], [0, 3, -1], missing=missing) for at, missing in enumerate((2, 5, -3))]
    model = AdditiveEnsemble(terms, 3, 3)
    for rule, noise in (("vote", "gaussian:1"), ("vote", "uniform:1"), ("mean", "laplace:1"), ("mean", None)):
        c = certify(model, np.full((1, 3), np.nan), noise, rule=rule)
        assert (c.label.tolist(), c.radius.tolist()) == ([1], [math.inf])


def test_limits_leave_missing_numbers_alone() -> None:
    """Percentages, domains and steps of a column hold for rows that have a number there."""
    terms = [StepFunction(0, [10.0], [0, 4], missing=-1), StepFunction(1, [1.0], [0, 2], missing=3)]
    model = AdditiveEnsemble(terms, 2, 2)
    rows = np.array([[9.0, np.nan], [np.nan, 1.5], [10.0, 0.0], [np.nan, np.nan]])
    threat = Threat(norm=None, limits={0: "20%", 1: 1.0}, domain={0: (0.0, 50.0)}, steps={1: 0.5})
    c = certify(model, rows, None, rule="mean", threat=threat)
    assert c.label.tolist() == [1, 0, 1, 0]
    assert c.verdict is not None
    assert c.verdict.tolist() == ["holds", "holds", "flips", "holds"]
    assert c.worst is not None
    assert c.worst.tolist() == [3.0, 1.0, 0.0, 2.0]
    assert c.witness is not None
    assert np.isnan(c.witness[[0, 1, 3], [1, 0, 0]]).all()
    smooth = certify(model, rows, "gaussian:0.1", rule="vote", threat=threat)
    assert smooth.verdict is not None
    assert smooth.verdict.tolist()[1::2] == ["holds", "holds"]


def test_votes_of_ensembles_take_missing_values_where_all_members_do() -> None:
    """A column is refused where one member has no cell for it."""
    members = [AdditiveEnsemble([StepFunction(0, [0.0], [0, 2], missing=missing)], 0, 1) for missing in (2, 2, 0)]
    vote = WeightedVote(members, [1.0, 1.0, 1.0])
    c = certify(vote, [[np.nan], [-1.0]], "gaussian:1")
    assert (c.label.tolist(), c.radius[0]) == ([1, 0], math.inf)
    half = WeightedVote([members[0], AdditiveEnsemble([StepFunction(0, [0.0], [0, 2])], 0, 1)], [1.0, 2.0])
    with pytest.raises(ValueError, match="got NaN or infinity in column 0"):
        certify(half, [[np.nan]], "gaussian:1")


def test_columns_that_no_term_reads_may_be_missing_but_not_infinite() -> None:
    """Nothing is compared there."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 2])], 0, 2)
    assert certify(model, [[1.0, np.nan]], "gaussian:1").label.tolist() == [1]
    with pytest.raises(ValueError, match="got infinity in column 1"):
        certify(model, [[1.0, np.inf]], "gaussian:1")


def test_explanations_and_attacks_leave_missing_numbers_out() -> None:
    """Columns that are missing are not named, and no changed row fills them."""
    rng = np.random.default_rng(7)
    for rule, noise in (("vote", NOISES["gaussian"](0.5)), ("mean", NOISES["laplace"](0.5)), ("mean", None)):
        model = draw_model(rng)
        rows = draw_rows(rng, 8, model.n_features)
        attacks = attack(model, rows, noise, rule=rule)
        attacks.require_outside(certify(model, rows, noise, rule=rule))
        assert (np.isnan(attacks.rows) == np.isnan(rows)).all()
        for row in rows:
            found = explain(model, row, noise, rule=rule)
            assert all(np.isfinite(row[change.feature]) for change in found.columns if change.feature != 5)
            for change in (*found.columns, found.joint):
                if change.row is not None and change.feature != 5:
                    assert (np.isnan(change.row) == np.isnan(row)).all()
                    assert change.attacked >= change.certified


def test_sampling_agrees_on_rows_with_gaps() -> None:
    """Monte-Carlo smoothing draws the same law."""
    rng = np.random.default_rng(8)
    model = draw_model(rng)
    rows = draw_rows(rng, 10, model.n_features, share=0.5)
    sampled = certify_by_sampling(model, rows, "gaussian:0.5", 20_000)
    exact = certify(model, rows, "gaussian:0.5", proof="paper")
    sure = exact.failure < 0.45
    assert (sampled.label == exact.label)[sure].all()
    assert (sampled.failure[sure] >= exact.failure[sure] * 0.99).all()
    assert (sampled.failure[sure] <= exact.failure[sure] + 0.02).all()


def test_gaps_are_filled_only_where_there_are_any() -> None:
    """Rows without gaps are the same object; what is filled is told."""
    packed = pack_terms([StepFunction(0, [0.0], [0, 1], missing=3), StepFunction(1, [0.0], [0, 1])])
    rows = np.array([[0.5, 1.0], [np.nan, 2.0]])
    assert fill_missing(packed, rows[:1], None).rows is not None
    whole = rows[:1]
    assert fill_missing(packed, whole, None) == (whole, None)
    filled, gaps = fill_missing(packed, rows, None)
    assert gaps is not None
    assert gaps.tolist() == [[False, False], [True, False]]
    assert np.isfinite(filled).all()
    assert packed.fixed_scores(rows).tolist() == [0, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_every_backend_certifies_rows_with_gaps_alike(kind: str, backend: str) -> None:
    """Labels, masses and radii, with and without numbers that may go missing; the GPU computes its cells itself."""
    rng, noise = np.random.default_rng(9), NOISES[kind](0.5)
    for _ in range(2):
        model = draw_model(rng)
        rows = draw_rows(rng, 10, model.n_features)
        for threat in (Threat(l0=1), Threat(missing=1)):
            one, other = (certify(model, rows, noise, threat=threat, backend=name) for name in (backend, "numba"))
            assert one.label.tolist() == other.label.tolist()
            np.testing.assert_allclose(one.failure, other.failure, rtol=1e-8, atol=1e-300)
            np.testing.assert_allclose(one.radius, other.radius, rtol=1e-8, atol=1e-9)
