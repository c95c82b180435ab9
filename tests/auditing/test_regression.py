"""Audits of numbers: every true interval and tolerance radius is proven, forged ones are found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    Intervals,
    Laplace,
    Noise,
    StepFunction,
    StumpRegressor,
    Threat,
    ToleranceRadii,
    Uniform,
    audit,
    certify,
    certify_interval,
    certify_radius,
)
from derand.auditing import _row_claims
from derand.certificates import find_answers
from derand.model import Value
from derand.perturbation import Perturbation
from tests.auditing.drawing import draw

MODEL = AdditiveEnsemble(
    [StepFunction(0, [0.0, 1.0], [0, 40, 25]), StepFunction(1, [-0.5, 0.25], [-10, 0, 30])], Value(7), 2, levels=10
)
ROWS = np.array([[0.7, 0.9], [-1.5, 0.2], [2.0, -2.0], [0.1, 0.3]])


@dataclass(frozen=True)
class Numbered:
    """What `certify_interval` takes."""

    model: AdditiveEnsemble
    rows: np.ndarray
    noise: Noise | None
    rule: str
    threat: Threat
    radius: float | None
    tolerance: float

    def certify_interval(self) -> Intervals:
        return certify_interval(self.model, self.rows, self.noise, self.radius, rule=self.rule, threat=self.threat)

    def certify_radius(self) -> ToleranceRadii:
        return certify_radius(self.model, self.rows, self.noise, self.tolerance, rule=self.rule, threat=self.threat)


def draw_number(seed: int) -> Numbered:
    """The first member of a random model with a number as its answer."""
    drawn, rng = draw(seed), np.random.default_rng((seed, 2))
    base, threat = drawn.model.members[0], drawn.threat
    if threat.missing_budget and not base.missing_features:
        threat = replace(threat, missing="fixed")
    offset, levels = int(rng.integers(-(10**6), 10**6)), int(rng.choice([1, 10, 977]))
    model = AdditiveEnsemble(base.terms, Value(offset), base.n_features, levels, base.score_error)
    size = 1.0 if drawn.noise is None else drawn.noise.magnitude
    radius = float(rng.choice([0.0, 0.1, 0.5, 1.0, 3.0])) * size
    if threat.norm in (0, None):
        radius = None if threat.norm is None else float(rng.choice([0, 1, 1.5, 2]))
    tolerance = float(rng.choice([0.0, 0.5, 3.0, 20.0])) * float(rng.choice([1, 10])) / levels
    return Numbered(model, drawn.rows, drawn.noise, drawn.rule, threat, radius, tolerance)


def check_seeds(first: int, count: int) -> None:
    for seed in range(first, first + count):
        one = draw_number(seed)
        for found in (one.certify_interval(), one.certify_radius()):
            result = audit(one.model, one.rows, found)
            assert (result.verdict == "proven").all(), (seed, one, found.to_pandas(), result.to_pandas())


def test_every_interval_of_random_models_is_proven() -> None:
    """Both rules, all noises and none, norms, limits, steps, frozen columns, categories, gaps, score errors."""
    check_seeds(0, 20)


@pytest.mark.long
def test_every_interval_of_many_random_models_is_proven() -> None:
    """The same, some thousand models."""
    check_seeds(10**6, 3000)


def forge(found: Intervals, **ends: Any) -> Intervals:
    return replace(found, **ends)


def search_ball(row: np.ndarray, noise: Noise, norm: float, radius: float) -> tuple[float, float]:
    """The lowest and the highest expected answer of many changed rows."""
    angles = np.linspace(0, 2 * math.pi, 1441)
    ways = np.column_stack([np.cos(angles), np.sin(angles)])
    ways *= (1 - 1e-9) * radius / np.linalg.norm(ways, ord=norm, axis=1)[:, None]
    moved = np.concatenate([row + share * ways for share in np.linspace(0, 1, 41)])
    answers = find_answers(MODEL, moved, noise, rule="mean")
    return float(answers.min()), float(answers.max())


@pytest.mark.parametrize(("noise", "norm"), [(Gaussian(0.5), 2), (Laplace(0.4), 1), (Uniform(1.5), math.inf)])
def test_an_end_of_a_mean_moved_inward_is_found(noise: Noise, norm: float) -> None:
    """By a thousandth of the width from what changed rows do reach; an answer that is off by a billionth is, too."""
    found = certify_interval(MODEL, ROWS, noise, 0.3, rule="mean", threat=Threat(norm=norm))
    assert audit(MODEL, ROWS, found).passed
    low, high = np.array([search_ball(row, noise, norm, 0.3) for row in ROWS]).T
    move = 0.001 * (high - low)
    assert audit(MODEL, ROWS, forge(found, low=low + move)).claim.tolist() == ["low"] * 4
    assert audit(MODEL, ROWS, forge(found, high=high - move)).claim.tolist() == ["high"] * 4
    assert audit(MODEL, ROWS, forge(found, value=found.value + 1e-9)).claim.tolist() == ["value"] * 4
    assert audit(MODEL, ROWS, forge(found, value=found.high + move)).claim.tolist() == ["value"] * 4
    smaller = audit(MODEL, ROWS, forge(found, low=low + 10 * move))
    assert (smaller.proven < 0.3).all()
    assert (smaller.proven > 0.2).all()


@pytest.mark.parametrize("noise", [None, Gaussian(0.5)])
def test_whole_answers_that_are_one_score_off_are_found(noise: Noise | None) -> None:
    """Without noise ends are exact; medians of few terms are proven by masses, of which nothing is lost either."""
    rule, radius = ("mean", 1.3) if noise is None else ("vote", 0.4)
    model = MODEL if noise is None else AdditiveEnsemble(MODEL.terms[:1], Value(7), 2, levels=10)
    found = certify_interval(model, ROWS, noise, radius, rule=rule)
    assert audit(model, ROWS, found).passed
    wide = found.width > 0
    assert wide.any()
    for name, move in (("low", 0.1), ("high", -0.1)):
        result = audit(model, ROWS, forge(found, **{name: np.where(wide, getattr(found, name) + move, found.value)}))
        named = np.where(wide, np.where(getattr(found, name) == found.value, "value", name), "")
        assert result.claim.tolist() == named.tolist()
    nudged = forge(found, value=np.nextafter(found.value, np.inf))
    assert (audit(model, ROWS, nudged).claim == "value").all()


def test_no_false_interval_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that an answer of a changed row lies outside of, by however little."""
    monkeypatch.setattr(_row_claims, "_HALVINGS", 1)  # which smaller radius is proven is asked by other tests
    n_false = 0
    for seed in range(25):
        one = draw_number(seed)
        if one.threat.norm in (0, None) or not one.radius:
            continue
        rng, found = np.random.default_rng(seed), one.certify_interval()
        columns = [at for at in one.model.numerical_features if at not in (*one.threat.frozen, *one.threat.limits)]
        columns = [at for at in columns if at not in one.threat.steps]
        if not columns:
            continue
        for at, row in enumerate(one.rows):
            moved = np.repeat(row[None], 30, axis=0)
            ways = rng.normal(size=(30, len(columns)))
            ways *= 0.999 * one.radius / np.linalg.norm(ways, ord=float(one.threat.norm), axis=1)[:, None]
            moved[:, columns] += ways * Perturbation.of(found.threat, row.size, ()).units[columns]
            answers = find_answers(one.model, moved, one.noise, rule=one.rule)
            for name, end, label in (("low", answers.min(), 1), ("high", answers.max(), 0)):
                if (end < found.value[at]) if label else (end > found.value[at]):
                    inward = math.nextafter(end, math.inf if label else -math.inf)
                    result = audit(one.model, row[None], replace(found[at], **{name: np.array([inward])}))
                    assert result.claim.tolist() == [name]
                    n_false += 1
    assert n_false > 20


def test_tolerance_radii_that_are_too_large_are_found() -> None:
    """By 0.1 %, and a value that is not the answer."""
    for rule in ("vote", "mean"):
        found = certify_radius(MODEL, ROWS, Gaussian(0.5), 1.2, rule=rule)
        assert (found.radius > 0).any()
        assert audit(MODEL, ROWS, found).passed
        result = audit(MODEL, ROWS, replace(found, radius=found.radius * 1.01))
        assert (result.claim[found.radius > 0] == "radius").mean() > 0.7
        assert (audit(MODEL, ROWS, replace(found, value=found.value + 0.1)).claim == "value").all()
        assert (audit(MODEL, ROWS, replace(found, tolerance=0.9)).claim == "radius").any()


def test_laws_on_a_coarser_grid_are_proven() -> None:
    """Scores too fine for a law, and answers beyond the whole numbers of doubles."""
    rng = np.random.default_rng(0)
    steps = [StepFunction(at, np.sort(rng.normal(size=3)), rng.integers(0, 2**24, 4)) for at in range(3)]
    rows = rng.normal(size=(4, 3))
    for offset in (0, 2**53 - 1):
        model = AdditiveEnsemble(steps, Value(offset), 3, levels=2**20)
        assert audit(model, rows, certify_interval(model, rows, Gaussian(0.5), 0.1)).passed
        assert audit(model, rows, certify_interval(model, rows, Gaussian(0.5), 0.1, rule="mean")).passed


def test_missing_numbers_have_proofs_of_their_own() -> None:
    """Of a median each set of columns that goes missing is proven in whichever way, and what is forged is found."""
    rng = np.random.default_rng(1)
    steps = [StepFunction(at, np.sort(rng.normal(size=3)), rng.integers(-20, 20, 4), 5) for at in range(5)]
    model = AdditiveEnsemble(steps, Value(0), 5, levels=1)
    rows = rng.normal(size=(4, 5))
    rows[0, 2] = rows[3, 1] = np.nan
    for radius in (0.0, 0.2):
        found = certify_interval(model, rows, Gaussian(0.5), radius, threat=Threat(missing=2))
        assert audit(model, rows, found).passed
        result = audit(model, rows, forge(found, high=found.high - 0.2 * found.width))
        assert (result.verdict == "not proven").all()


def test_ends_without_limit_claim_nothing() -> None:
    """An infinite end is true; on the wrong side, or no number, it is not."""
    found = certify_interval(MODEL, ROWS[:1], Gaussian(0.5), 0.3)
    far = np.array([math.inf])
    assert audit(MODEL, ROWS[:1], forge(found, low=-far, high=far)).passed
    assert audit(MODEL, ROWS[:1], forge(found, low=np.array([-1e308]), high=np.array([1e308]))).passed
    assert audit(MODEL, ROWS[:1], forge(found, low=far)).claim.tolist() == ["value"]
    assert audit(MODEL, ROWS[:1], forge(found, value=far, high=far)).claim.tolist() == ["value"]
    assert audit(MODEL, ROWS[:1], forge(found, high=far * math.nan)).claim.tolist() == ["value"]


def test_labels_and_numbers_are_not_mixed_up() -> None:
    """Each is audited with the model that it is about."""
    labels = AdditiveEnsemble(MODEL.terms, 30, 2)
    with pytest.raises(ValueError, match="whose answer is a label, got those of numbers"):
        audit(labels, ROWS, certify_interval(MODEL, ROWS, Gaussian(0.5), 0.3))
    with pytest.raises(ValueError, match="whose answer is a number, got those of labels"):
        audit(MODEL, ROWS, certify(labels, ROWS, Gaussian(0.5)))
    with pytest.raises(TypeError, match="`certificates` must be Certificates, Intervals or ToleranceRadii"):
        audit(MODEL, ROWS, [1.0])  # type: ignore[arg-type]


def test_regressors_audit_their_own_tables() -> None:
    """Columns by name, scaled, with a category."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(80, 2)), columns=["size", "age"])
    table["town"] = rng.choice(["a", "b", "c"], 80)
    y = 3 * table["size"] + (table["town"] == "a") + rng.normal(size=80)
    reg = StumpRegressor(noise="gaussian:0.5", scaling="standard").fit(table, y)
    found = reg.certify_interval(table[:8], 0.2, l0=1)
    assert reg.audit(table[:8], found).passed
    assert reg.audit(table[:8], reg.certify_radius(table[:8], 2.0)).passed
    forged = reg.audit(table[:8], forge(found, low=found.low + 0.2 * found.width), rows=3)
    assert len(forged) == 3
    assert not forged.passed


def test_categories_are_at_their_worst() -> None:
    """One score less than what a changed category does is found."""
    model = AdditiveEnsemble([*MODEL.terms, CategoryTable(2, [0, 1], [3, 10], 0)], Value(0), 3, levels=1)
    rows = np.column_stack([ROWS, [0, 1, 0, 1]])
    found = certify_interval(model, rows, None, 0.0, rule="mean", threat=Threat(l0=1))
    assert audit(model, rows, found).passed
    assert audit(model, rows, forge(found, low=found.low + 1)).claim.tolist() == ["low"] * 4
