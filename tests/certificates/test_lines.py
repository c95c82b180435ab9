"""Certificates of linear models, beside enumeration in exact fractions, attacks and samples."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    LinearTerm,
    Threat,
    attack,
    attack_interval,
    certify,
    certify_interval,
    certify_radius,
    distribution,
)
from derand.certificates import explain, find_labels
from derand.certificates.bounds.linear_duality import bound_decreases, bound_distances
from derand.model import Argmax, Value
from derand.noise import as_noise
from derand.perturbation import resolve
from experiments.baselines.monte_carlo import count_class_1

from .lines import NORMS, draw_model, draw_rows, draw_threat, find_exact, find_least

SIZES = st.sampled_from([0.0, 1.0, 3.0, 1e-3, 1e6]) | st.floats(1e-6, 1e6)


def as_double(least: Fraction | None, norm: float | None) -> float:
    """A distance of the enumeration as a certificate has it."""
    if least is None:
        return math.inf
    if norm is None:
        return 0.0
    if norm == 0:
        return float(max(least - 1, 0))
    return math.sqrt(least) if norm == 2 else float(least)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(SIZES, SIZES | st.just(math.inf)), min_size=1, max_size=4),
    st.floats(1e-6, 1e7),
    st.sampled_from(NORMS),
)
def test_distances_are_those_of_the_enumeration(
    columns: list[tuple[float, float]], margin: float, norm: float | None
) -> None:
    """Never above the least distance at which a sum can fall by its margin, and nowhere below by more than rounding."""
    prices, caps = (np.array(side) for side in zip(*columns, strict=True))
    found = float(bound_distances(np.array([margin]), prices, caps[None], norm)[0])
    limits = [None if math.isinf(cap) else Fraction(cap) for cap in caps.tolist()]
    least = find_least(Fraction(margin), [Fraction(price) for price in prices.tolist()], limits, norm)
    if norm == 2 and least is not None:
        assert Fraction(found) ** 2 <= least
    elif norm is not None and norm and least is not None:
        assert Fraction(found) <= least
    else:
        assert found <= as_double(least, norm)
    room = Fraction(margin) * (1 - Fraction(1, 10**12))
    near = find_least(room, [Fraction(price) for price in prices.tolist()], limits, norm)
    assert found >= as_double(near, norm) * (1 - 1e-9)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(SIZES, SIZES | st.just(math.inf)), min_size=1, max_size=4),
    st.floats(1e-6, 1e7),
    st.sampled_from((1, 2, np.inf)),
)
def test_falls_are_the_other_side_of_distances(columns: list[tuple[float, float]], radius: float, norm: float) -> None:
    """A sum that falls by more than the bound has moved farther than the radius; one that falls by less need not."""
    prices, caps = (np.array(side) for side in zip(*columns, strict=True))
    fall = float(bound_decreases(radius, prices, caps[None], norm)[0])
    limits = [None if math.isinf(cap) else Fraction(cap) for cap in caps.tolist()]
    exact = [Fraction(price) for price in prices.tolist()]
    power = 2 if norm == 2 else 1
    if not prices.any():
        assert fall == 0
    elif math.isfinite(fall):
        least = find_least(Fraction(fall), exact, limits, norm)
        assert least is None or least >= Fraction(radius) ** power
        near = find_least(Fraction(fall) * (1 - Fraction(1, 10**9)) - Fraction(1, 10**200), exact, limits, norm)
        assert near is not None
        assert near <= Fraction(radius) ** power


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("norm", NORMS)
def test_certificates_are_those_of_exact_fractions(n_outputs: int, norm: float | None, gaps: bool) -> None:
    """Labels are exact; radii never above the truth, and within rounding of it: limits, units, categories, classes,
    missing numbers."""
    rng = np.random.default_rng([7, n_outputs, NORMS.index(norm)])
    n_certified = 0
    for _ in range(12):
        model = draw_model(rng, n_outputs, gaps=gaps)
        rows = draw_rows(rng, model, 6)
        threat = draw_threat(rng, model, norm, l0=int(rng.integers(0, 2)), unseen=bool(rng.integers(0, 2)))
        found = certify(model, rows, None, rule="mean", threat=threat)
        for row, label, radius in zip(rows, found.label, found.radius.tolist(), strict=True):
            exact, least = find_exact(model, row, threat)
            assert label == exact
            truth = as_double(least, norm)
            assert radius <= truth * (1 + 1e-15)
            assert radius >= truth * (1 - 1e-9)
            n_certified += radius > 0
    assert n_certified > 10 or norm == 0


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("n_outputs", [1, 4])
def test_attacks_flip_a_hair_beyond(n_outputs: int, norm: float, gaps: bool) -> None:
    """The worst change is explicit: every finite radius has a flip within a part in a thousand million, none inside.

    What is missing stays missing.
    """
    rng = np.random.default_rng([3, n_outputs])
    for _ in range(10):
        model = draw_model(rng, n_outputs, gaps=gaps)
        rows = draw_rows(rng, model, 10)
        threat = draw_threat(rng, model, norm, l0=int(rng.integers(0, 2)))
        found = certify(model, rows, None, rule="mean", threat=threat)
        attacks = attack(model, rows, None, rule="mean", threat=threat)
        attacks.require_outside(found)
        flips = np.isfinite(found.radius) & (found.radius > 1e-6)
        assert attacks.found[flips].all()
        assert (attacks.distance[flips] <= found.radius[flips] * (1 + 1e-9)).all()
        assert not attacks.found[np.isinf(found.radius)].any()
        numbers = list(model.numerical_features)
        assert (np.isnan(attacks.rows) == np.isnan(rows))[:, numbers].all()
        again = certify(model, attacks.rows, None, rule="mean", threat=Threat(norm=norm))
        assert (again.label == attacks.flipped).all()


def test_limits_alone_have_witnesses() -> None:
    """Without a ball every row holds, or has a change within its limits that flips it."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        model = draw_model(rng, int(rng.choice([1, 3])), gaps=bool(rng.integers(2)))
        rows = draw_rows(rng, model, 10)
        threat = draw_threat(rng, model, None, l0=1)
        found = certify(model, rows, None, rule="mean", threat=threat)
        assert found.flips is not None
        assert found.witness is not None
        assert (found.flips == (found.radius == 0)).all()
        moved = found.witness[found.flips]
        assert (find_labels(model, moved, None, rule="mean") != found.label[found.flips]).all()
        low, high = resolve(threat, model, None).box(rows[found.flips])
        numbers = list(model.numerical_features)
        missing = np.isnan(rows[found.flips])
        assert (((low <= moved) & (moved <= high)) | (missing & np.isnan(moved)))[:, numbers].all()


def test_noise_and_rule_change_neither_label_nor_radius() -> None:
    """Symmetric noise leaves the side of a linear score alone, in most copies and on average."""
    rng = np.random.default_rng(5)
    model = draw_model(rng, 3)
    rows = draw_rows(rng, model, 20)
    threat = Threat(norm=2, l0=1)
    plain = certify(model, rows, None, rule="mean", threat=threat)
    for noise in ("gaussian:0.5", "uniform:3", "laplace:0.1"):
        for rule in ("vote", "mean"):
            found = certify(model, rows, noise, rule=rule, threat=threat)
            assert found.label.tolist() == plain.label.tolist()
            assert found.radius.tolist() == plain.radius.tolist()
            assert np.isnan(found.failure).all() == (rule == "mean")


@pytest.mark.parametrize("noise", ["gaussian:0.5", "uniform:1.5", "laplace:0.4"])
def test_failure_masses_are_upper_bounds_of_shares(noise: str) -> None:
    """Beside 100,000 noisy copies; under normal noise they are the shares, and the paper's proof gives the radius."""
    rng = np.random.default_rng(2)
    model = AdditiveEnsemble([LinearTerm(0, [3.0]), LinearTerm(1, [-4.0]), CategoryTable(2, [0, 1], [-3, 3], 1)], 1, 3)
    rows = np.concatenate([rng.normal(size=(12, 2)), rng.integers(0, 2, size=(12, 1))], axis=1)
    found = certify(model, rows, noise, rule="vote")
    copies = as_noise(noise).sample(rows[:, :2], 100_000, 1)
    scores = copies @ np.array([3.0, -4.0]) + np.where(rows[:, 2] == 1, 3, -3) - 1
    wrong = ((scores > 0) != (found.label == 1)).mean(axis=0)
    assert (wrong <= found.failure + 5 * np.sqrt(found.failure / 1e5) + 1e-4).all()
    by_mass = certify(model, rows, noise, rule="vote", proof="paper")
    assert (by_mass.radius <= found.radius).all()
    if noise.startswith("gaussian"):
        exact = ndtr(-np.abs(model.score(rows) - 1) / 2.5)
        np.testing.assert_allclose(found.failure, exact, rtol=1e-9)
        assert (wrong >= exact - 5 * np.sqrt(exact / 1e5) - 1e-4).all()
        np.testing.assert_allclose(by_mass.radius, found.radius, rtol=1e-6)


def test_models_that_are_meant_are_covered() -> None:
    """Slopes that are off by their errors, and scores by `score_error`, flip nowhere inside."""
    rng = np.random.default_rng(9)
    for _ in range(15):
        n_outputs = int(rng.choice([1, 3]))
        model = draw_model(rng, n_outputs, error=0.01, gaps=bool(rng.integers(2)))
        rows = draw_rows(rng, model, 10)
        threat = draw_threat(rng, model, float(rng.choice([1, 2, np.inf])))
        found = certify(model, rows, None, rule="mean", threat=threat)
        lines = [
            LinearTerm(
                one.feature,
                one.values + one.errors * rng.choice([-1, 1], size=n_outputs),
                None,
                None if one.missing is None else one.missing + one.missing_errors * rng.choice([-1, 1], size=n_outputs),
            )
            for one in model.slopes
        ]
        meant = AdditiveEnsemble([*lines, *model.category_tables], model.decision, model.n_features)
        held = found.radius > 0
        assert (find_labels(meant, rows[held], None, rule="mean") == found.label[held]).all()
        moved = attack(meant, rows[held], None, rule="mean", threat=threat)
        assert (moved.distance >= found.radius[held]).all()


def test_errors_cost_what_they_are_worth() -> None:
    """Margin less errors of the row, over slopes and errors: by hand."""
    model = AdditiveEnsemble([LinearTerm(0, [2.0], [0.5])], 0, 1, score_error=1.0)
    found = certify(model, [[4.0], [0.5]], None, rule="mean", threat=Threat(norm=2))
    np.testing.assert_allclose(found.radius, [(8 - 2 - 1) / 2.5, 0.0])
    gaps = AdditiveEnsemble([LinearTerm(0, [2.0], [0.5], 9.0, [0.25]), LinearTerm(1, [4.0])], 0, 2, score_error=1.0)
    rows = [[np.nan, 1.0], [np.nan, -2.0], [4.0, 1.0]]
    found = certify(gaps, rows, None, rule="mean", threat=Threat(norm=np.inf))
    np.testing.assert_allclose(found.radius, [(9 - 0.25 + 4 - 1) / 4, 0.0, (8 - 2 + 4 - 1) / 6.5])


@pytest.mark.parametrize("noise", ["gaussian:0.5", "uniform:1.5", "laplace:0.4"])
def test_noise_leaves_missing_numbers_alone(noise: str) -> None:
    """A failing mass, and the radius of the paper's proof, are those of a model without the column."""
    lines = [LinearTerm(0, [3.0], [1e-14], 0.0), LinearTerm(1, [-4.0], [2e-14], 2.0), LinearTerm(2, [1.0], None, 0.0)]
    whole, without = AdditiveEnsemble(lines, 1, 3), AdditiveEnsemble(lines[:1], -1, 1)
    x = np.linspace(-1.0, 1.0, 7)
    rows = np.stack([x, np.full(7, np.nan), np.full(7, np.nan)], axis=1)
    for proof in ("best", "paper"):
        found = certify(whole, rows, noise, rule="vote", proof=proof)
        alone = certify(without, x[:, None], noise, rule="vote", proof=proof)
        np.testing.assert_allclose(found.failure, alone.failure, rtol=1e-9)
        np.testing.assert_allclose(found.radius, alone.radius, rtol=1e-9)
    nothing = certify(whole, np.full((1, 3), np.nan), noise, rule="vote")
    assert (nothing.label.tolist(), nothing.failure.tolist(), nothing.radius.tolist()) == ([1], [0.0], [math.inf])


def test_errors_without_a_slope_can_fail_a_vote() -> None:
    """A sum that errors alone can move fails in copies that are far out: not in no copy at all."""
    model = AdditiveEnsemble([LinearTerm(0, [0.0], [1e-3])], -1, 1)
    assert certify(model, [[5.0]], "uniform:2", rule="vote").failure.tolist() == [0.0]
    for noise, far in (("gaussian:2", 500.0), ("laplace:2", 1000.0)):
        found = certify(model, [[5.0]], noise, rule="vote")
        assert 0 < found.failure[0] < 1e-30
        share = math.exp(-far / 2) if noise.startswith("laplace") else 0.0
        assert found.failure[0] >= share  # that of copies in which the error may exceed the margin


def test_labels_are_exact_where_doubles_are_not() -> None:
    """Sums that cancel, ties, and products beyond the largest double."""
    cancel = AdditiveEnsemble([LinearTerm(0, [1e16]), LinearTerm(1, [1.0]), LinearTerm(2, [-1e16])], 0, 3)
    rows = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 0.0, 1.0]])
    assert certify(cancel, rows, None, rule="mean").label.tolist() == [1, 0, 0]  # a tie is class 0
    large = AdditiveEnsemble([LinearTerm(0, [1e140]), LinearTerm(1, [-1e140])], 0, 2)
    found = certify(large, [[1e300, 0.5e300], [0.5e300, 1e300]], None, rule="mean")
    assert found.label.tolist() == [1, 0]
    assert found.radius.tolist() == [0.0, 0.0]
    three = AdditiveEnsemble([LinearTerm(0, [0.1, 0.1, 0.3])], Argmax((0, 0, 0)), 1)
    assert certify(three, [[0.0], [1.0], [-1.0]], None, rule="mean").label.tolist() == [0, 2, 0]


def test_a_line_without_a_slope_holds_everywhere() -> None:
    """Nothing that is moved changes a score."""
    model = AdditiveEnsemble([LinearTerm(0, [0.0]), CategoryTable(1, [0, 1], [-3, 3], 0)], 0, 2)
    for norm in NORMS:
        found = certify(model, [[5.0, 1.0]], None, rule="mean", threat=Threat(norm=norm))
        assert found.radius.tolist() == [math.inf]
    assert certify(model, [[5.0, 1.0]], "laplace:1", rule="vote").failure.tolist() == [0.0]
    assert certify(model, [[5.0, 1.0]], None, rule="mean", threat=Threat(l0=1)).radius.tolist() == [0.0]


def test_steps_are_left_out_of_account_and_kept_by_attacks() -> None:
    """Certificates cover more than whole steps; attacks and witnesses go by them."""
    model = AdditiveEnsemble([LinearTerm(0, [1.0])], 0, 1)
    threat = Threat(norm=2, steps={0: 1.0})
    found = certify(model, [[2.5]], None, rule="mean", threat=threat)
    attacks = attack(model, [[2.5]], None, rule="mean", threat=threat)
    np.testing.assert_allclose(found.radius, [2.5])
    assert attacks.rows.tolist() == [[-0.5]]
    assert 3.0 <= attacks.distance[0] <= 3.0 + 1e-9


def test_explanations_name_the_least_change_of_each_column() -> None:
    """Certified and attacked agree."""
    model = AdditiveEnsemble([LinearTerm(0, [3.0]), LinearTerm(1, [-4.0]), CategoryTable(2, [0, 1], [-3, 3], 1)], 1, 3)
    found = explain(model, [3.0, 1.0, 1.0], None, rule="mean")
    numbers = {one.feature: one for one in found.columns}
    np.testing.assert_allclose([numbers[0].certified, numbers[0].attacked], 7 / 3)
    np.testing.assert_allclose([numbers[1].certified, numbers[1].attacked], 7 / 4)
    np.testing.assert_allclose([found.joint.certified, found.joint.attacked], 7 / 5)
    lines = [LinearTerm(0, [3.0], None, 5.0), LinearTerm(1, [-4.0], None, 5.0)]
    gaps = explain(AdditiveEnsemble(lines, 0, 2), [np.nan, 0.25], None, rule="mean")
    assert [one.feature for one in gaps.columns] == [1]
    for change in (*gaps.columns, gaps.joint):
        np.testing.assert_allclose([change.certified, change.attacked], 1.0)


@pytest.mark.parametrize("norm", NORMS)
def test_intervals_are_reached_and_never_left(norm: float | None) -> None:
    """Attacks reach both ends within rounding; the radius of a tolerance is that of its interval."""
    rng = np.random.default_rng([1, NORMS.index(norm)])
    for turn in range(6):
        model = draw_model(rng, 1, number=True, gaps=turn % 2 == 1)
        rows = draw_rows(rng, model, 5)
        limits: Any = {at: float(10.0 ** rng.uniform(-1, 2)) for at in model.numerical_features}
        threat = Threat(norm=norm, limits=limits if norm in (0, None) or rng.random() < 0.5 else {}, l0=1)
        radius = None if norm is None else 1.0 if norm == 0 else float(10.0 ** rng.uniform(-2, 2))
        for noise, rule in ((None, "mean"), ("laplace:0.5", "vote")):
            found = certify_interval(model, rows, noise, radius, threat=threat, rule=rule)
            reached = attack_interval(model, rows, noise, radius, threat=threat, rule=rule)
            reached.require_inside(found)
            np.testing.assert_allclose(found.width, reached.width, rtol=1e-6, atol=1e-9)
        if norm in (1, 2, np.inf):
            tolerance = float((found.high - found.value)[0])
            back = certify_radius(model, rows, None, tolerance, threat=threat, rule="mean")
            low = float((found.value - found.low)[0])
            wider = certify_interval(model, rows, None, 2 * (radius or 0), threat=threat, rule="mean")
            if low < tolerance * (1 - 1e-6) and wider.high[0] > found.high[0]:  # limits alone give no distance
                assert back.radius[0] >= (radius or 0) * (1 - 1e-6)


def test_what_needs_whole_scores_is_refused() -> None:
    """By name: laws, samples of them, the paper's proof of a median; missing numbers."""
    model = AdditiveEnsemble([LinearTerm(0, [1.0])], 0, 1)
    with pytest.raises(ValueError, match="linear model"):
        distribution(model, [[0.0]], "gaussian:1")
    with pytest.raises(ValueError, match="linear"):
        count_class_1(model, [[0.0]], as_noise("gaussian:1"), 10)
    number = AdditiveEnsemble([LinearTerm(0, [1.0])], Value(0), 1)
    with pytest.raises(ValueError, match="linear model"):
        certify_interval(number, [[0.0]], "gaussian:1", 0.1, proof="paper")
    with pytest.raises(ValueError, match="missing"):
        certify(model, [[np.nan]], None, rule="mean")
    goes = Threat(missing=1)
    with pytest.raises(ValueError, match="`missing` of Threat"):
        certify(model, [[0.0]], None, rule="mean", threat=goes)
    gaps = AdditiveEnsemble([LinearTerm(0, [1.0], None, 2.0)], 0, 1)
    of_gaps = AdditiveEnsemble(gaps.terms, Value(0), 1)
    for ask in (
        lambda: certify(gaps, [[0.0]], None, rule="mean", threat=goes),
        lambda: attack(gaps, [[0.0]], None, rule="mean", threat=goes),
        lambda: certify_interval(of_gaps, [[0.0]], None, 0.1, rule="mean", threat=goes),
        lambda: certify_radius(of_gaps, [[0.0]], None, 0.1, rule="mean", threat=goes),
        lambda: attack_interval(of_gaps, [[0.0]], None, 0.1, rule="mean", threat=goes),
    ):
        with pytest.raises(ValueError, match="must be 'fixed' for a linear model"):
            ask()
