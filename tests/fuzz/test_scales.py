"""Every entry point at scales from 1e-300 to 1e300: no claim is contradicted, nothing crashes, results scale."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    Certificates,
    Gaussian,
    LinearTerm,
    StepFunction,
    Threat,
    Uniform,
    certify,
    certify_interval,
    certify_radius,
)
from derand.certificates.bounds.linear_duality import bound_distances
from derand.kernels.norms import measure_norms
from derand.model import Argmax, GridTerm, Value
from tests.fuzz import drawing, scaling

TINY_LIMITS = Threat(norm=None, limits={0: 3e-200})


@pytest.mark.parametrize(
    ("count", "seed"), [pytest.param(60, 0, id="few"), pytest.param(20_000, 1, id="many", marks=pytest.mark.long)]
)
def test_no_claim_is_contradicted_at_any_scale(count: int, seed: int) -> None:
    """Votes and means, every noise and norm, limits alone, classes, votes, grids, lines, numbers, attacks."""
    found = scaling.Count()
    scaling.check_many(count, seed, found)
    assert not found.faults, found.faults[0]
    assert found.tries == count
    assert set(found.kinds) == {"together", "apart", "numbers", "lines", "line numbers"}
    assert found.claims > count / 2
    assert found.refused.total() < count / 2


def test_radii_that_are_too_large_are_found_at_any_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: half a per cent, at all scales."""

    def enlarge(*arguments: Any, **options: Any) -> Certificates:
        found = certify(*arguments, **options)
        return replace(found, radius=found.radius * 1.005)

    monkeypatch.setattr(drawing, "certify", enlarge)
    found = scaling.Count()
    scaling.check_many(90, 0, found, most_faults=1000)
    assert sum(" flips at " in fault for fault in found.faults) > 2


def test_no_box_holds_for_being_tiny() -> None:
    """The squares of its corner underflow: it lies beyond the radius all the same."""
    terms = [StepFunction(0, [0.0], [0, 2])]
    model = AdditiveEnsemble(terms, 1, n_features=1)
    found = certify(model, [[1e-200]], Gaussian(1e-200), threat=TINY_LIMITS)
    assert found.radius.tolist() == [0.0]
    assert found.flips is not None
    assert found.flips.tolist() == [True]
    nearer = replace(TINY_LIMITS, limits={0: 0.9e-200})
    assert certify(model, [[1e-200]], Gaussian(1e-200), threat=nearer).radius.tolist() == [math.inf]


def test_no_interval_is_narrow_for_being_tiny() -> None:
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 200])], Value(0), n_features=1)
    found = certify_interval(model, [[1e-200]], Gaussian(1e-200), None, threat=TINY_LIMITS)
    assert (found.low.tolist(), found.high.tolist()) == ([0.0], [2.0])
    kept = certify_radius(model, [[1e-200]], Gaussian(1e-200), 1.0, threat=TINY_LIMITS)
    assert kept.radius.tolist() == [0.0]


def test_no_box_of_several_classes_holds_for_being_tiny() -> None:
    terms = [StepFunction(0, [0.0], [[2, 0, 1], [0, 2, 1]])]
    model = AdditiveEnsemble(terms, Argmax((0, 0, 0)), n_features=1)
    assert certify(model, [[1e-200]], Gaussian(1e-200), threat=TINY_LIMITS).radius.tolist() == [0.0]


def test_radii_beyond_doubles_are_not_infinite() -> None:
    """In tiny units a flip may lie farther away than any double says; it is there."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 2])], 1, n_features=1)
    threat = Threat(units=(1e-200,))
    found = certify(model, [[1e200]], Gaussian(1e199), threat=threat, proof="paper")
    assert found.radius.tolist() == [np.finfo(np.float64).max]


@pytest.mark.parametrize("noise", ["uniform:1", "laplace:1", "gaussian:1"])
@pytest.mark.parametrize("number", [10.0, 1e160])
def test_a_line_whose_noise_never_fails_does_not_hold_everywhere(noise: str, number: float) -> None:
    """A failing mass of 0, or too small for a double, says how far a row may be moved, not that it may go anywhere."""
    model = AdditiveEnsemble([LinearTerm(0, [1.0])], 0, n_features=1)
    found = certify(model, [[number]], noise, proof="paper")
    assert 0 < found.radius[0] <= number
    if noise == "uniform:1":
        assert found.radius[0] == 1.0
    constant = AdditiveEnsemble([LinearTerm(0, [0.0])], -1, n_features=1)
    assert certify(constant, [[number]], noise, proof="paper").radius.tolist() == [math.inf]


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("power", [-540, -530, -520, 500, 600])
def test_distances_of_lines_scale(norm: float, power: int) -> None:
    """Their squares underflow or overflow: divided by a power of two they do not."""
    margins, prices, caps = np.array([3.7, 0.2]), np.array([1.0, 0.3, 7.0]), np.array([[math.inf, 1.5, 0.1]])
    plain = bound_distances(margins, prices, np.repeat(caps, 2, axis=0), norm)
    assert (plain > 0).all()
    scaled = bound_distances(np.ldexp(margins, power), prices, np.ldexp(np.repeat(caps, 2, axis=0), power), norm)
    np.testing.assert_array_equal(scaled, np.ldexp(plain, power))


def test_slopes_that_vanish_in_units_move_rows_all_the_same() -> None:
    """A price below all doubles is rounded up, not to nothing."""
    model = AdditiveEnsemble([LinearTerm(0, [1e-150])], 0, n_features=1)
    found = certify(model, [[1e151]], None, rule="mean", threat=Threat(units=(1e-200,)))
    assert found.radius[0] < math.inf
    limits = Threat(norm=math.inf, units=(1e200,), limits={0: 3e-200})
    steep = AdditiveEnsemble([LinearTerm(0, [1e100])], 0, n_features=1)
    assert certify(steep, [[1e-200]], None, rule="mean", threat=limits).radius[0] < math.inf


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("norm", [None, math.inf])
def test_intervals_infinitely_many_units_away_are_numbers(rule: str, norm: float | None) -> None:
    """How far a row is from an edge, in units, is no double; what it answers is known all the same."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 200])], Value(0), 1)
    threat = Threat(norm=norm, limits={0: 1e290}, steps={0: 1e289})
    noise, size = Gaussian(1.0, (1e-12,)), None if norm is None else 1.0
    found = certify_interval(model, [[1e298], [-1e298]], noise, size, rule=rule, threat=threat)
    for end in (found.low, found.high):
        np.testing.assert_allclose(end, [2.0, 0.0], atol=1e-8)
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_units_that_vanish_beside_the_noise_do_not_crash() -> None:
    model = AdditiveEnsemble([GridTerm([0, 1], [[0.0], [0.0]], [0, 1, 2, 3])], 1, 2)
    noise, threat = Gaussian(1e200, (1e90, 1e90)), Threat(norm=math.inf, units=(1e-100, 1e-100))
    assert certify(model, [[1.0, 1.0]], noise, rule="mean", threat=threat).radius[0] < math.inf


def test_norms_scale_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    moves = rng.normal(size=(50, 4))
    for norm in (1, 2, math.inf):
        plain = np.linalg.norm(moves, ord=norm, axis=1)
        for power in (-900, -540, 0, 540, 900):
            np.testing.assert_array_equal(measure_norms(np.ldexp(moves, power), norm), np.ldexp(plain, power))
    tiny = np.full((1, 3), 5e-324)
    assert measure_norms(tiny, 2)[0] >= math.sqrt(3) * 5e-324
    assert measure_norms(tiny[:, :2], 2)[0] > 5e-324  # to nearest, the root of 2 would be 1
    assert measure_norms(np.array([[math.inf, 1.0], [0.0, 0.0]]), 2).tolist() == [math.inf, 0.0]
    assert measure_norms(np.empty((2, 0)), 2).tolist() == [0.0, 0.0]


def test_uniform_noise_keeps_its_radius_at_any_scale() -> None:
    """One edge: the radius is how far the row is from it, up to the noise's reach."""
    for power in (-990, -540, 0, 540, 990):
        scale = 2.0**power
        model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 2])], 1, n_features=1)
        found = certify(model, [[0.5 * scale]], Uniform(scale), proof="paper")
        assert found.radius[0] == pytest.approx(0.5 * scale, rel=1e-11)
