"""The search for a flip: what it finds flips, and never lies inside the certified ball."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from derand import AdditiveEnsemble, CategoryTable, Gaussian, StepFunction, Threat, WeightedVote, certify
from derand.certificates import find_flip
from derand.certificates._attack import measure_change
from derand.model import Model
from derand.noise import NOISES, Noise

KINDS = sorted(NOISES)


def draw_model(rng: np.random.Generator, n_terms: int) -> AdditiveEnsemble:
    """A few steps per feature, and one categorical column at the end."""
    steps = [
        StepFunction(feature, np.sort(rng.normal(size=3)), rng.integers(-9, 10, size=4)) for feature in range(n_terms)
    ]
    table = CategoryTable(n_terms, [0, 1], [-2, 2], other=1)
    return AdditiveEnsemble([*steps, table], 0, n_terms + 1)


def draw_rows(rng: np.random.Generator, n_terms: int, n_rows: int) -> np.ndarray:
    return np.column_stack([rng.normal(size=(n_rows, n_terms)), rng.choice([0.0, 1.0, 5.0, np.nan], n_rows)])


def check_flips(
    model: Model, rows: np.ndarray, noise: Noise | None, rule: str = "vote", threat: Threat | None = None
) -> int:
    """All flips from the rows are true ones; how many there are."""
    certificates = certify(model, rows, noise, rule=rule, threat=threat)
    units = certificates.threat.units_of(model.n_features)
    free = list(model.numerical_features)
    found = 0
    for row in range(len(rows)):
        flip = find_flip(model, rows, noise, certificates, row=row)
        if flip is None:
            continue
        found += 1
        moved = certify(model, flip.row[None], noise, rule=rule)
        assert moved.label[0] == flip.label != certificates.label[row]
        assert flip.distance >= certificates.radius[row]
        size = np.linalg.norm((flip.row - rows[row])[free] / units[free], ord=certificates.norm)
        assert size <= flip.distance <= size * (1 + 1e-11)
        held = [column for column in range(model.n_features) if column not in free]
        assert np.array_equal(flip.row[held], rows[row, held], equal_nan=True)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [None, (0.5, 3.0, 1.0, 1.0)])
def test_a_flip_has_another_label_and_lies_outside_the_certified_ball(
    kind: str, units: tuple[float, ...] | None
) -> None:
    """Every found change flips the label, moves numbers alone, and has the size that it says, rounded up."""
    rng = np.random.default_rng(3)
    model, rows = draw_model(rng, 3), draw_rows(rng, 3, 25)
    assert check_flips(model, rows, NOISES[kind](0.4, units)) >= 15


@pytest.mark.parametrize("kind", KINDS)
def test_flips_of_votes_are_true_ones(kind: str) -> None:
    """A vote has no slope to follow: single features and other rows lead the way."""
    rng = np.random.default_rng(4)
    members = [draw_model(rng, 2) for _ in range(3)]
    assert check_flips(WeightedVote(members, [1.0, 0.7, -0.3]), draw_rows(rng, 2, 20), NOISES[kind](0.4)) >= 10


@pytest.mark.parametrize("norm", [0, 1, 2, np.inf])
@pytest.mark.parametrize(("rule", "noise"), [("mean", None), ("mean", "gaussian"), ("vote", "laplace")])
def test_flips_in_every_norm_by_both_rules(norm: float, rule: str, noise: str | None) -> None:
    """Whatever the norm, the units and the rule, a flip lies outside what is certified."""
    rng = np.random.default_rng(5)
    model, rows = draw_model(rng, 4), draw_rows(rng, 4, 25)
    threat = Threat(norm=norm, units=(1.0, 2.0, 0.5, 1.0, 1.0))
    found = check_flips(model, rows, None if noise is None else NOISES[noise](0.4), rule, threat)
    assert found >= 15


@pytest.mark.parametrize("norm", [0, 1, 2, np.inf])
@pytest.mark.parametrize("noise", [None, "gaussian"])
def test_flips_stay_within_limits(norm: float, noise: str | None) -> None:
    """Frozen columns, limits and steps hold for every flip that is found."""
    rng = np.random.default_rng(8)
    model, rows = draw_model(rng, 4), draw_rows(rng, 4, 30)
    smoothing = None if noise is None else NOISES[noise](0.4)
    threat = Threat(norm=norm, frozen=[0], limits={1: 0.9, 2: (0.0, 2.0)}, steps={3: 0.5})
    certificates = certify(model, rows, smoothing, rule="mean", threat=threat)
    found = 0
    for row in range(len(rows)):
        flip = find_flip(model, rows, smoothing, certificates, row=row)
        if flip is not None:
            found += 1
            move = (flip.row - rows[row])[:4]
            assert move[0] == 0
            assert abs(move[1]) <= 0.9 + 1e-12
            assert -1e-12 <= move[2] <= 2.0 + 1e-12
            assert abs(2 * move[3] - round(2 * move[3])) < 1e-9
            assert flip.distance >= certificates.radius[row]
            assert certify(model, flip.row[None], smoothing, rule="mean").label[0] != certificates.label[row]
    assert found > 5


def test_flips_come_close_to_the_certificates() -> None:
    """The worst case of the expected score leads to flips hardly farther away than is certified."""
    rng = np.random.default_rng(6)
    model = AdditiveEnsemble(
        [StepFunction(at, rng.normal(size=1), [0, rng.integers(5, 20)]) for at in range(20)], 120, 20
    )
    rows = rng.normal(size=(30, 20))
    for norm in (1, 2, np.inf):
        found = certify(model, rows, "gaussian:0.5", rule="mean", threat=Threat(norm=norm))
        flips = [find_flip(model, rows, "gaussian:0.5", found, row=row) for row in range(30)]
        ratios = [found.radius[row] / flip.distance for row, flip in enumerate(flips) if flip is not None]
        assert len(ratios) > 20
        assert max(ratios) <= 1
        assert np.median(ratios) > 0.95


def test_a_flip_of_one_stump_is_tight() -> None:
    """With one feature the certificate is exact, and the search comes close to it."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    rows = [[0.0], [2.0]]
    certificates = certify(model, rows, Gaussian(0.25))
    for row, distance in ((0, 0.5), (1, 1.5)):
        flip = find_flip(model, rows, Gaussian(0.25), certificates, row=row)
        assert flip is not None
        assert flip.distance == pytest.approx(distance, rel=2e-2)


def test_a_change_is_measured_in_a_norm_and_units() -> None:
    """A change of one feature alone is its size in its unit; two add up by the norm."""
    assert measure_change(np.array([-3.0]), np.ones(1), 2) == pytest.approx(3.0)
    change, units = np.array([3.0, 0.0, 8.0]), np.array([1.0, 1.0, 2.0])
    assert [measure_change(change, units, norm) for norm in (2, 1, np.inf, 0)] == pytest.approx([5.0, 7.0, 4.0, 2.0])


def test_labels_are_the_classes_of_the_certificates() -> None:
    """A flip is told in the names that the certificates have."""
    model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    plain = certify(model, [[0.0]], "gaussian:0.25")
    classes = np.array(["no", "yes"])
    named = replace(plain, label=classes[plain.label], classes=classes)
    flip = find_flip(model, [[0.0]], "gaussian:0.25", named, row=0)
    assert flip is not None
    assert flip.label == "yes"


def test_nothing_is_found_where_nothing_can_flip() -> None:
    """Without numbers, or with one answer everywhere, there is no flip; and the result cannot be written to."""
    model = AdditiveEnsemble([CategoryTable(0, [0, 1], [-2, 2], other=1)], 0, 1)
    assert find_flip(model, [[1.0]], "gaussian:1", certify(model, [[1.0]], "gaussian:1"), row=0) is None
    sure = AdditiveEnsemble([StepFunction(0, [0.0], [1, 2])], 0, 1)
    assert find_flip(sure, [[1.0]], "gaussian:1", certify(sure, [[1.0]], "gaussian:1"), row=0) is None
    step = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    flip = find_flip(step, [[1.0]], "gaussian:1", certify(step, [[1.0]], "gaussian:1"), row=0)
    assert flip is not None
    with pytest.raises(ValueError, match="read-only"):
        flip.row[0] = 0.0


def test_other_rows_than_the_certified_ones_are_refused() -> None:
    """The error names both shapes."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 1])], 0, 1)
    certificates = certify(model, [[1.0]], "gaussian:1")
    with pytest.raises(
        ValueError, match=r"the 1 rows that `certificates` are about, 1 columns each, got shape \(2, 1\)"
    ):
        find_flip(model, [[1.0], [2.0]], "gaussian:1", certificates, row=0)
