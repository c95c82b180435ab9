"""Attacks: what is found flips, obeys the threat, and never lies inside what is certified; a planted fault is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derand import (
    AdditiveEnsemble,
    Attacks,
    CategoryTable,
    Certificates,
    Gaussian,
    StepFunction,
    Threat,
    UnsoundError,
    WeightedVote,
    attack,
    certify,
)
from derand.certificates import find_labels
from derand.certificates.bounds.packing import pose_problem
from derand.certificates.search.cell_weights import weigh_cells
from derand.certificates.search.feasible_set import measure_changes
from derand.model import Model
from derand.noise import NOISES, Noise
from derand.perturbation import Perturbation
from tests.certificates.searching import draw_case

KINDS = sorted(NOISES)
RULES = [("vote", "gaussian"), ("vote", "uniform"), ("mean", "laplace"), ("mean", None)]


def draw_model(rng: np.random.Generator, n_terms: int, missing: bool = False) -> AdditiveEnsemble:
    """A few steps per feature, and two categorical columns at the end."""
    steps = [
        StepFunction(
            feature,
            np.sort(rng.normal(size=3)),
            rng.integers(-9, 10, size=4),
            missing=int(rng.integers(-9, 10)) if missing else None,
        )
        for feature in range(n_terms)
    ]
    tables = [
        CategoryTable(n_terms, [0, 1], [-2, 2], other=1),
        CategoryTable(n_terms + 1, [0, 1, 2], [-4, 0, 3], other=-1, missing=5),
    ]
    return AdditiveEnsemble([*steps, *tables], 0, n_terms + 2)


def draw_rows(rng: np.random.Generator, n_terms: int, n_rows: int, gaps: float = 0.0) -> np.ndarray:
    numbers = np.where(rng.random((n_rows, n_terms)) < gaps, np.nan, rng.normal(size=(n_rows, n_terms)))
    return np.column_stack([numbers, rng.choice([0.0, 1.0, 5.0, np.nan], (n_rows, 2))])


def make_noise(kind: str | None) -> Noise | None:
    return None if kind is None else NOISES[kind](0.4)


def check_attacks(
    model: Model, rows: np.ndarray, noise: Noise | None, rule: str = "vote", threat: Threat | None = None
) -> Attacks:
    """Everything that must hold for attacks on some rows, beside their certificates."""
    found = attack(model, rows, noise, rule=rule, threat=threat, n_jobs=1)
    certificates = certify(model, rows, noise, rule=rule, threat=threat)
    labels = find_labels(model, found.rows, noise, rule=rule)
    assert np.array_equal(labels, found.flipped)
    assert np.array_equal(found.label != found.flipped, found.found)
    assert np.array_equal(np.isfinite(found.distance), found.found)
    assert not found.find_inside(certificates).any()
    found.require_outside(certificates)
    for row in range(len(rows)):
        if found.found[row]:
            check_change(model, rows[row], found.rows[row], found.threat, float(found.distance[row]))
        else:
            assert np.array_equal(found.rows[row], rows[row], equal_nan=True)
            assert found.n_categories[row] == 0
    return found


def check_change(model: Model, before: np.ndarray, after: np.ndarray, threat: Threat, distance: float) -> None:
    """The changed row obeys the threat, and its size is what it says, rounded up."""
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    assert same[list(threat.frozen)].all()
    codes = list(model.categorical_features)
    assert (~same[codes]).sum() <= threat.l0
    for column in codes:
        if not same[column] and column in threat.may_become:
            assert after[column] in threat.may_become[column]
    appeared = np.isnan(before) != np.isnan(after)
    numbers = np.array(model.numerical_features)
    assert appeared[numbers].sum() <= threat.missing_budget
    read = set(numbers.tolist()) | set(codes)
    assert all(same[column] for column in range(before.size) if column not in read)
    moved = [column for column in numbers.tolist() if not (same[column] or appeared[column])]
    low, high = (end[0] for end in Perturbation.of(threat, before.size, numbers.tolist()).box(before[None]))
    for column in moved:
        assert low[column] <= after[column] <= high[column]
        if column in threat.steps:
            step = threat.steps[column]
            count = np.rint((after[column] - before[column]) / step)
            assert after[column] == before[column] + count * step
    if threat.norm is None:
        assert distance == 0
        return
    size = np.linalg.norm(
        (after - before)[moved] / Perturbation.of(threat, before.size, ()).units[moved], ord=threat.norm
    )
    assert size * (1 - 1e-11) <= distance <= size * (1 + 1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [None, (0.5, 3.0, 1.0, 1.0, 1.0)])
def test_an_attack_flips_outside_of_the_certified_ball(kind: str, units: tuple[float, ...] | None) -> None:
    """Every change flips the label, moves numbers alone, and has the size that it says, rounded up."""
    rng = np.random.default_rng(3)
    model, rows = draw_model(rng, 3), draw_rows(rng, 3, 20)
    found = check_attacks(model, rows, NOISES[kind](0.4, units))
    assert found.found.sum() >= 12
    assert not found.n_categories.any()


@pytest.mark.parametrize("norm", [0, 1, 2, np.inf, None])
@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_attacks_obey_every_threat(norm: float | None, rule: str, kind: str | None) -> None:
    """Limits, a domain, steps, frozen columns, categories that may become few others, numbers that go missing."""
    rng = np.random.default_rng(5)
    model = draw_model(rng, 5, missing=True)
    rows = draw_rows(rng, 5, 6, gaps=0.15)
    rows[:, 2] = np.clip(np.nan_to_num(rows[:, 2]), -1.5, 1.5)
    boxes: dict[str, Any] = {"limits": {0: 0.9, 4: (0.0, 2.0)}, "domain": {2: (-1.5, 1.5)}, "steps": {4: 0.3}}
    threats = [
        Threat(norm=norm, units=(1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0), limits={"*": 3.0}),
        Threat(norm=norm, frozen=[1, 5], **boxes),
        Threat(norm=norm, l0=1, may_become={6: (0.0, 2.0)}, **boxes),
        Threat(norm=norm, l0=2, unseen=False, missing=2, frozen=[3], limits={"*": 1.0}),
    ]
    found = [check_attacks(model, rows, make_noise(kind), rule, threat).found.sum() for threat in threats]
    assert all(found)


@pytest.mark.parametrize(("rule", "kind"), RULES)
@pytest.mark.parametrize("norm", [2, *(pytest.param(norm, marks=pytest.mark.long) for norm in (0, 1, np.inf))])
def test_attacks_on_votes_are_true_ones(rule: str, kind: str | None, norm: float) -> None:
    """Members of either sign, with categories that change."""
    rng = np.random.default_rng(4)
    model = WeightedVote([draw_model(rng, 2) for _ in range(3)], [1.0, 0.7, -0.3])
    found = check_attacks(model, draw_rows(rng, 2, 10), make_noise(kind), rule, Threat(norm=norm, l0=1))
    assert found.found.sum() >= 5


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), deployed=st.booleans(), by_vote=st.booleans())
def test_no_attack_lies_inside_whatever_the_model(seed: int, deployed: bool, by_vote: bool) -> None:
    """Edges that touch or lie far apart, huge and tiny scores, units of every size, categories."""
    case = draw_case(np.random.default_rng(seed), deployed=deployed)
    check_attacks(case.model, case.rows, case.noise, "vote" if by_vote and not deployed else "mean", case.threat)


def test_attacks_come_close_to_the_certificates() -> None:
    """The worst case of the expected score leads to flips hardly farther away than is certified."""
    rng = np.random.default_rng(6)
    model = AdditiveEnsemble(
        [StepFunction(at, rng.normal(size=1), [0, rng.integers(5, 20)]) for at in range(20)], 120, 20
    )
    rows = rng.normal(size=(30, 20))
    for noise in ("gaussian:0.5", None):
        for norm in (1, 2, np.inf):
            certificates = certify(model, rows, noise, rule="mean", threat=Threat(norm=norm))
            found = attack(model, rows, noise, rule="mean", threat=Threat(norm=norm))
            at = np.flatnonzero(found.found & (certificates.radius > 0))
            ratios = found.distance[at] / certificates.radius[at]
            assert at.size > 20
            assert ratios.min() >= 1
            assert np.median(ratios) < (1.001 if noise is None or norm == np.inf else 1.03)


def test_an_attack_on_one_stump_is_tight() -> None:
    """With one feature the certificate is exact, and the search comes close to it."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    found = attack(model, [[0.0], [2.0]], Gaussian(0.25))
    assert found.distance == pytest.approx([0.5, 1.5], rel=1e-3)


def test_the_best_categories_change_with_the_numbers() -> None:
    """With one change of a category less of the numbers must move; with enough of them, nothing."""
    steps = [StepFunction(at, [0.0], [-3, 3]) for at in range(3)]
    tables = [CategoryTable(3, [0, 1], [-2, 2], other=0), CategoryTable(4, [0, 1], [-9, 9], other=0)]
    model = AdditiveEnsemble([*steps, *tables], 0, 5)
    rows = np.array([[1.0, 1.0, 1.0, 1.0, 1.0]])
    for rule, noise in (("vote", "gaussian:0.3"), ("mean", None)):
        distances = [
            float(attack(model, rows, noise, rule=rule, threat=Threat(norm=1, l0=l0)).distance[0]) for l0 in (0, 1, 2)
        ]
        assert distances[0] > 3 * distances[1] > 0 or np.isinf(distances[0])
        assert distances[2] == 0
        found = attack(model, rows, noise, rule=rule, threat=Threat(norm=1, l0=1))
        assert found.n_categories[0] == 1
        assert found.rows[0, 4] == 0


def test_numbers_go_missing_and_appear() -> None:
    """A number that goes missing, or one that appears, flips at distance 0, and only within the budget."""
    steps = [StepFunction(0, [0.0], [-3, 3], missing=-5), StepFunction(1, [0.0], [-4, 2], missing=3)]
    model = AdditiveEnsemble(steps, 0, 2)
    rows = np.array([[1.0, 2.0], [1.0, np.nan]])
    for rule, noise in (("vote", "gaussian:0.3"), ("mean", "gaussian:0.3"), ("mean", None)):
        found = attack(model, rows, noise, rule=rule, threat=Threat(missing=1))
        assert found.distance.tolist() == [0.0, 0.0]
        assert np.isnan(found.rows[0, 0])
        held = attack(model, rows, noise, rule=rule)
        assert (held.distance > 0).all()
        assert np.isnan(held.rows[1, 1])


@pytest.mark.parametrize(("rule", "kind"), RULES)
@pytest.mark.parametrize("norm", [0, 2, np.inf, None])
def test_a_planted_fault_is_found(rule: str, kind: str | None, norm: float | None) -> None:
    """Radii that are too large, or answers that are said to hold and do not, end with an error that names the row."""
    rng = np.random.default_rng(11)
    model = AdditiveEnsemble([StepFunction(at, [0.0], [0, 5]) for at in range(12)], 30, 12)
    rows, noise = rng.normal(size=(12, 12)), make_noise(kind)
    threat = Threat(norm=norm, limits={"*": 1.5} if norm is None else {})
    right = certify(model, rows, noise, rule=rule, threat=threat)
    found = attack(model, rows, noise, rule=rule, threat=threat)
    found.require_outside(right)
    factor = 3.0 if rule == "vote" else 1.2  # the vote's certificate leaves more room
    wrong = np.full(len(rows), np.inf) if norm is None else right.radius * factor + (norm == 0)
    faulty = replace(right, radius=wrong)
    assert found.find_inside(faulty).sum() >= 4
    with pytest.raises(UnsoundError, match=r"rows flip inside what is certified. Row \d+: "):
        found.require_outside(faulty)


def test_the_worth_of_cells_is_the_slope_of_the_mass() -> None:
    """What the law without a term says of its cells is by how much the mass changes with their probabilities."""
    rng = np.random.default_rng(2)
    model = AdditiveEnsemble(
        [StepFunction(at, np.sort(rng.normal(size=2)), rng.integers(-5, 6, size=3)) for at in range(6)], 0, 6
    )
    problem, noise = pose_problem(model), Gaussian(0.5)
    points = rng.normal(size=(4, 6))
    worth, lead = weigh_cells(problem, points, noise, np.ones(4))
    above = np.where((c := certify(model, points, noise, proof="paper")).label == 1, 1 - c.failure, c.failure)
    assert lead + 0.5 == pytest.approx(above, abs=0.03)  # frequencies are cut off
    terms, hair = problem.terms, 1e-3
    for term, feature in enumerate(terms.features.tolist()):
        ends = []
        for side in (-hair, hair):
            moved = points.copy()
            moved[:, feature] += side
            found = certify(model, moved, noise, proof="paper")
            ends.append(
                (
                    np.where(found.label == 1, 1 - found.failure, found.failure),
                    (worth * terms.table(moved, noise))[:, terms.starts[term] : terms.starts[term + 1]].sum(axis=1),
                )
            )
        true, told = (np.array(ends[1][k]) - np.array(ends[0][k]) for k in (0, 1))
        assert told / hair == pytest.approx(true / hair, abs=0.08)


def test_the_same_seed_gives_the_same_attack_whatever_the_threads() -> None:
    """To the last bit; and the rows of another label may come from elsewhere."""
    rng = np.random.default_rng(9)
    model, rows = draw_model(rng, 3), draw_rows(rng, 3, 140)  # more than one block
    first, again, other = (
        attack(model, rows, "gaussian:0.4", random_state=seed, n_jobs=jobs) for seed, jobs in ((3, 1), (3, 4), (4, 1))
    )
    assert np.array_equal(first.rows, again.rows, equal_nan=True)
    assert np.array_equal(first.distance, again.distance)
    assert np.array_equal(first.found, other.found)
    alone = attack(model, rows[:1], "gaussian:0.4", others=rows)
    assert alone.found[0] == first.found[0]


def test_nothing_is_found_where_nothing_can_flip() -> None:
    """Without numbers, with one answer everywhere, without rows; and the result cannot be written to."""
    words = AdditiveEnsemble([CategoryTable(0, [0, 1], [-2, 2], other=1)], 0, 1)
    assert not attack(words, [[1.0]], "gaussian:1").found[0]
    assert attack(words, [[1.0]], "gaussian:1", threat=Threat(l0=1)).distance[0] == 0
    sure = AdditiveEnsemble([StepFunction(0, [0.0], [1, 2])], 0, 1)
    assert not attack(sure, [[1.0]], "gaussian:1").found[0]
    assert len(attack(sure, np.empty((0, 1)), "gaussian:1")) == 0
    step = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    found = attack(step, [[1.0]], "gaussian:1")
    for name in ("rows", "distance", "found", "label", "flipped", "n_categories"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 0


def test_results_are_sliced_named_and_shown() -> None:
    """As certificates are."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    found = attack(model, [[0.0], [2.0], [3.0]], "gaussian:0.25")
    assert len(found[1:]) == 2
    assert found[0].rows.shape == (1, 1)
    named = found.with_classes(np.array(["no", "yes"]))
    assert named.flipped.tolist() == ["yes", "no", "no"]
    frame = named.to_pandas()
    assert list(frame.columns) == ["label", "found", "distance", "flipped", "n_categories"]
    assert all(part in repr(found) for part in ("3 rows", "3 flipped", "l2", "vote", "gaussian:0.25"))


def test_a_change_is_measured_in_a_norm_and_units() -> None:
    """A change of one feature alone is its size in its unit; two add up by the norm; squares do not vanish."""
    assert measure_changes(np.array([[-3.0]]), np.ones(1), 2) == pytest.approx(3.0)
    change, units = np.array([[3.0, 0.0, 8.0]]), np.array([1.0, 1.0, 2.0])
    sizes = [measure_changes(change, units, norm)[0] for norm in (2, 1, np.inf, 0, None)]
    assert sizes == pytest.approx([5.0, 7.0, 4.0, 2.0, 0.0])
    assert measure_changes(np.array([[3e-200, 4e-200]]), np.ones(2), 2)[0] >= 5e-200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[1.0, 2.0]]}, r"`X` must have shape \(n_rows, 1\)"),
        ({"X": [[np.nan]]}, "column 0"),
        ({"rule": "majority"}, "`rule` must be"),
        ({"noise": None}, "`noise` must not be None"),
        ({"threat": Threat(frozen=[4])}, "`frozen` of Threat must name columns from 0 to 0, got 4"),
        ({"threat": Threat(missing=1)}, "`missing` of Threat must be 'fixed'"),
        ({"threat": Threat(norm=3)}, "`norm` of Threat must be one of"),
        ({"threat": Threat(domain={0: (2.0, 3.0)})}, "`domain` of Threat must hold the rows' own values"),
        ({"random_state": -1}, "`random_state` must be a whole number, 0 or larger, got -1"),
        ({"others": [[1.0, 2.0]]}, r"`others` must have shape \(n, 1\)"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """One clear error each."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    request: dict[str, Any] = {"X": [[1.0]], "noise": "gaussian:1"} | arguments
    with pytest.raises(ValueError, match=message):
        attack(model, request.pop("X"), request.pop("noise"), **request)
    with pytest.raises(TypeError, match="`model` must be an AdditiveEnsemble or a WeightedVote"):
        attack("model", [[1.0]], "gaussian:1")  # type: ignore[arg-type]


def test_certificates_of_something_else_are_refused() -> None:
    """Other rows, another rule, noise or threat cannot be set beside attacks."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    found = attack(model, [[1.0]], "gaussian:1")
    others: list[tuple[Certificates, str]] = [
        (certify(model, [[1.0], [2.0]], "gaussian:1"), "must be about the same 1 rows, got certificates of 2"),
        (certify(model, [[-1.0]], "gaussian:1"), "must be about the same rows, got the label"),
        (certify(model, [[1.0]], "gaussian:1", rule="mean"), "must have the same rule"),
        (certify(model, [[1.0]], "gaussian:2"), "must have the same noise"),
        (certify(model, [[1.0]], "gaussian:1", threat=Threat(norm=1)), "must have the same threat"),
    ]
    for certificates, message in others:
        with pytest.raises(ValueError, match=message):
            found.find_inside(certificates)
