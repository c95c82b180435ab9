"""Terms of several columns under audit: votes by masses, worst cases axis after axis, and boxes without noise."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, Threat, ToleranceRadii, attack, audit, certify, certify_interval, certify_radius
from derand.auditing import _audit, _row_claims
from derand.auditing._balls import as_ball_noise, use_bits
from derand.auditing._claim import Move
from derand.auditing._curves import BITS
from derand.auditing._oriented import Axis, Function
from derand.auditing._worst import GridCase
from derand.certificates import Certificates, Intervals
from derand.model import GridTerm, Value
from derand.noise import as_noise
from tests.certificates.test_grids import NOISES, draw_model, draw_rows

NORMS = (0, 1, 2, math.inf, None)


@pytest.fixture(autouse=True)
def _tested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is tested by other tests, and which smaller radius is proven: here rows are many, audits short."""
    monkeypatch.setattr(_audit, "check_machine", lambda: [])
    monkeypatch.setattr(_row_claims, "_HALVINGS", 1)


def enlarge(found: Any, factor: float) -> Any:
    """The same certificates with larger radii."""
    return replace(found, radius=found.radius * factor)


def draw_case(seed: int) -> tuple[AdditiveEnsemble, np.ndarray]:
    """A model and rows in which numbers are missing."""
    model, rows = draw_model(seed, gaps=True), draw_rows(seed, 3)
    for at in model.missing_features:
        rows[at % 3, at] = np.nan
    return model, rows


def draw_threat(rng: np.random.Generator, norm: float | None) -> Threat:
    """A norm, and maybe limits, steps and frozen columns."""
    asked: dict[str, Any] = {}
    if norm is None or rng.random() < 0.3:
        asked["limits"] = {at: float(rng.uniform(0, 0.6)) for at in range(6) if rng.random() < 0.7}
    if rng.random() < 0.3:
        asked["steps"] = dict.fromkeys(asked.get("limits", {}), 0.25)
    if rng.random() < 0.2:
        asked["frozen"] = tuple(at for at in range(3) if at not in asked.get("limits", {}))
    return Threat(norm=norm, **asked)


@pytest.mark.parametrize("noise", NOISES)
def test_votes_are_proven_by_masses_and_larger_radii_are_not(noise: str) -> None:
    for seed in range(2):
        model, rows = draw_case(seed)
        found = certify(model, rows, noise, proof="paper")
        assert (audit(model, rows, found).verdict == "proven").all()
        held = np.flatnonzero((found.radius > 0) & np.isfinite(found.radius))
        assert held.size
        larger = audit(model, rows[held], enlarge(found[held], 1.01))
        assert (larger.verdict == "not proven").all()


def check_seeds(first: int, count: int, every: int = 1) -> None:
    """Every claim of random models by all rules, noises and norms is proven; by a share of them, if so asked."""
    n_claims = 0
    for seed in range(first, first + count):
        (model, rows), rng = draw_case(seed), np.random.default_rng(seed)
        asked = itertools.product((*NOISES, None), NORMS, ("vote", "mean"))
        for noise, norm, rule in itertools.islice(asked, seed % every, None, every):
            if noise is None and rule == "vote":
                continue
            found = certify(model, rows, noise, rule=rule, threat=draw_threat(rng, norm))
            result = audit(model, rows, found)
            assert (result.verdict == "proven").all(), (seed, noise, norm, rule, found, result)
            n_claims += int((found.radius > 0).sum())
    assert n_claims > 60 * count / every


def test_every_claim_about_random_models_is_proven() -> None:
    check_seeds(0, 3, every=9)


@pytest.mark.long
def test_every_claim_about_many_random_models_is_proven() -> None:
    check_seeds(10**6, 150)


@pytest.mark.parametrize("noise", [*NOISES, None])
def test_radii_that_an_attack_refutes_are_not_proven(noise: str | None) -> None:
    """Whatever the norm: a radius that reaches a change that flips the label."""
    n_false = 0
    for seed, norm in itertools.product(range(1), (1, 2, math.inf)):
        model, rows = draw_case(seed)
        threat = Threat(norm=norm)
        found = certify(model, rows, noise, rule="mean", threat=threat)
        radii = attack(model, rows, noise, rule="mean", threat=threat).distance
        at = np.flatnonzero(np.isfinite(radii))
        forged = replace(found[at], radius=radii[at] * 1.0001 + 1e-9)
        assert (audit(model, rows[at], forged).verdict == "not proven").all()
        n_false += at.size
    assert n_false > 3


def test_without_noise_nothing_is_lost() -> None:
    """Exact radii are proven, and no larger one: by a part in 10^9."""
    n_exact = 0
    for seed, norm in itertools.product(range(3), (1, 2, math.inf)):
        model, rows = draw_case(seed)
        found = certify(model, rows, None, rule="mean", threat=Threat(norm=norm))
        assert audit(model, rows, found).passed
        exact = np.flatnonzero((found.proof == "exact") & (found.radius > 0) & np.isfinite(found.radius))
        assert (audit(model, rows[exact], enlarge(found[exact], 1 + 1e-9)).claim == "radius").all()
        n_exact += exact.size
    assert n_exact > 10


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("noise", NOISES)
def test_intervals_are_proven_and_narrower_ones_are_not(noise: str, rule: str) -> None:
    """Ends and tolerance radii; narrower by far more than axes after each other lose."""
    found: Intervals | ToleranceRadii
    model, rows = draw_case(0)
    number = AdditiveEnsemble(model.terms, Value(3), 6, levels=10)
    found = certify_interval(number, rows, noise, 0.2, rule=rule)
    assert audit(number, rows, found).passed
    result = audit(number, rows, replace(found, low=found.low + 0.4 * found.width))
    assert (result.verdict[found.width > 0] == "not proven").all()
    found = certify_radius(number, rows, noise, 0.3, rule=rule)
    assert audit(number, rows, found).passed
    held = np.flatnonzero((found.radius > 0) & np.isfinite(found.radius))
    assert (audit(number, rows[held], enlarge(found[held], 2.0)).claim == "radius").all()


def make_case(rng: np.random.Generator, noise: str, n_axes: int) -> tuple[Function, GridCase, np.ndarray]:
    """A random function, its case within +-0.7, and places that its numbers may move to, on a fine grid."""
    edges = tuple(tuple(np.unique(rng.normal(size=rng.integers(1, 4)).round(2)).tolist()) for _ in range(n_axes))
    shape = [len(one) + 1 for one in edges]
    scores = tuple(rng.integers(-9, 10, math.prod(shape)).tolist())
    xs = tuple(rng.normal(size=n_axes).round(2).tolist())
    moves = [Move(x - 0.7, x + 0.7, as_ball_noise(as_noise(noise)).unit_of(0)) for x in xs]
    function = Function(tuple(map(Axis, range(n_axes), xs, edges)), scores, is_grid=True)
    case = GridCase(function, moves, as_ball_noise(as_noise(noise)), None, {})
    return function, case, np.linspace(-0.7, 0.7, 57)


def take_axes(
    function: Function, noise: str, steps: np.ndarray, multiplier: float, power: int, *, joint: bool
) -> float:
    """The least in plain doubles over a grid of places: axis after axis, or of all columns at the same time."""
    made, values, costs = as_noise(noise), np.array(function.scores, dtype=float), np.zeros(1)
    for axis in function.axes:
        away = np.asarray(made.cdf((np.array(axis.edges) - axis.x - steps[:, None]) / made.magnitude))
        masses = np.diff(np.hstack([np.zeros((steps.size, 1)), away, np.ones((steps.size, 1))]))
        cells = values.reshape(-1, masses.shape[1], values.shape[-1] // masses.shape[1]) if joint else None
        cost = multiplier * np.abs(steps) ** power
        if cells is None:
            values = (masses @ values.reshape(masses.shape[1], -1) + cost[:, None]).min(axis=0)
        else:
            values = np.einsum("zc,mcr->mzr", masses, cells).reshape(-1, cells.shape[2])
            costs = (costs[:, None] + cost).ravel()
    return float((values[:, 0] + costs).min()) if joint else float(values[0])


@pytest.mark.parametrize("noise", NOISES)
def test_bounds_are_below_every_move_and_as_good_as_axes_after_each_other(noise: str) -> None:
    """Against plain sums over boxes at moves of a fine grid, with costs and without."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        function, case, steps = make_case(rng, noise, int(rng.integers(2, 4)))
        for multiplier, power in ((0.0, 1), (2.0, 1), (5.0, 2)):
            with use_bits(BITS):
                cost = (multiplier, power) if multiplier else None
                bound = float(case.bound_least(lambda x, move: (move.low, move.high), cost, 1e-6))
            assert bound <= take_axes(function, noise, steps, multiplier, power, joint=True) + 1e-9
            fine = np.linspace(-0.7, 0.7, 1401)
            assert bound >= take_axes(function, noise, fine, multiplier, power, joint=False) - 0.02
            assert bound <= take_axes(function, noise, fine, multiplier, power, joint=False) + 1e-9


def test_what_is_too_large_is_refused_by_name() -> None:
    """Columns and sizes are told, and what can be audited."""
    shape = (2, 300, 300)
    edges = tuple(np.arange(size - 1) / size for size in shape)
    grid = GridTerm((0, 1, 2), edges, np.random.default_rng(0).integers(0, 9, shape))
    model, rows = AdditiveEnsemble([grid], 4, 3), np.array([[0.1, 0.2, 0.3]])
    claimed = Certificates(
        np.array([1]), np.array([np.nan]), np.array([np.nan]), np.array([0.1]), Threat(norm=2), rule="mean",
        noise=as_noise("gaussian:0.4"), classes=np.arange(2),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"columns 0, 1, 2 \(2, 300, 300 cells\) takes 90301 functions of one number"):
        audit(model, rows, claimed)
