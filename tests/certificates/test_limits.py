"""Limits, domains, steps and frozen columns: never too optimistic, exact without noise, and every witness flips."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special

from derand import AdditiveEnsemble, CategoryTable, Gaussian, StepFunction, Threat, WeightedVote, certify
from derand.noise import NOISES, Noise
from derand.perturbation import Perturbation

CDF = {
    "gaussian": special.ndtr,
    "uniform": lambda z: np.clip(0.5 * z + 0.5, 0, 1),
    "laplace": lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z))),
}


def draw_model(rng: np.random.Generator) -> AdditiveEnsemble:
    """Up to three numbers with edges on quarters, and perhaps a category."""
    n = int(rng.integers(1, 4))
    terms: list[Any] = []
    for at in range(n):
        edges = np.unique(rng.integers(-8, 9, rng.integers(1, 5)) / 4)
        terms.append(StepFunction(at, edges, rng.integers(-6, 7, edges.size + 1)))
    if rng.random() < 0.5:
        terms.append(CategoryTable(n, [0, 1, 2], rng.integers(-4, 5, 3), other=int(rng.integers(-4, 5))))
    return AdditiveEnsemble(terms, int(rng.integers(-4, 5)), n + 1)


def draw_threat(rng: np.random.Generator, n: int, x: np.ndarray, *, norm: float | None) -> Threat:
    """Each number frozen, limited in one of three ways, with a domain, by steps, or left alone."""
    frozen, limits, domain, steps = [], {}, {}, {}
    for at in range(n):
        kind = rng.integers(0, 7)
        if kind == 0:
            frozen.append(at)
        elif kind == 1:
            limits[at] = f"{rng.integers(0, 80)}%"
        elif kind == 2:
            limits[at] = float(rng.integers(0, 9)) / 4
        elif kind == 3:
            limits[at] = (float(rng.integers(0, 5)) / 4, float(rng.integers(0, 9)) / 4)
        elif kind == 4:
            domain[at] = (float(x[at] - rng.integers(0, 5) / 4), float(x[at] + rng.integers(0, 5) / 4))
        if kind in (2, 3, 4) and rng.random() < 0.5:
            steps[at] = float(rng.choice([0.25, 0.5, 1.0, 0.3]))
    more: dict[str, Any] = {"may_become": {n: [0.0, 2.0]}} if rng.random() < 0.2 else {}
    return Threat(
        norm=norm,
        frozen=tuple(frozen),
        limits=limits,
        domain=domain,
        steps=steps,
        l0=int(rng.integers(0, 2)),
        unseen=bool(rng.random() < 0.5),
        **more,
    )


def list_values(threat: Threat, column: int, x: float, edges: np.ndarray) -> np.ndarray:
    """Every value that matters of a number within its limits, the row's own first; no limit is plus or minus nine."""
    if column in threat.frozen or (threat.norm is None and column not in {**threat.limits, **threat.domain}):
        return np.array([x])
    low, high = -9.0, 9.0
    limit = threat.limits.get(column)
    if isinstance(limit, str):
        size = float(limit[:-1]) / 100 * abs(x)
        low, high = x - size, x + size
    elif limit is not None:
        down, up = limit if isinstance(limit, tuple) else (limit, limit)
        low, high = x - down, x + up
    if column in threat.domain:
        low, high = max(low, threat.domain[column][0]), min(high, threat.domain[column][1])
    if column in threat.steps:
        values = x + np.arange(-80, 81) * threat.steps[column]
    else:
        dense = np.linspace(low, high, 25)
        values = np.concatenate([edges, np.nextafter(edges, -np.inf), dense, [low, high]])
    return np.concatenate([[x], np.unique(values[(values >= low) & (values <= high)])])


def expect(term: Any, values: np.ndarray, noise: Noise | None) -> np.ndarray:
    scores = term.scores[:, 0].astype(float)
    if noise is None:
        return scores[np.searchsorted(term.edges, values, side="right")]
    return scores[0] + CDF[noise.name]((values[:, None] - term.edges) / noise.magnitude) @ np.diff(scores)


def list_category_sums(model: AdditiveEnsemble, threat: Threat, x: np.ndarray) -> list[int]:
    sums = [0]
    for table in model.category_tables:
        own = int(table.evaluate([x[table.feature]])[0])
        reached = {own}
        if threat.l0 and table.feature in threat.may_become:
            reached |= set(table.evaluate(list(threat.may_become[table.feature])).tolist())
        elif threat.l0:
            reached |= set(table.scores[:, 0].tolist()) | ({table.other} if threat.unseen else set())
        sums = [one + other for one in sums for other in reached]
    return sums


def find_extremes(
    model: AdditiveEnsemble, threat: Threat, x: np.ndarray, noise: Noise | None, radius: float
) -> tuple[float, float]:
    """Lowest and highest score over all combinations of values within the limits and, with a norm, the radius."""
    levels, sizes = [np.zeros(1)], [np.zeros(1)]
    for term in model.step_functions:
        values = list_values(threat, term.feature, float(x[term.feature]), term.edges)
        levels.append(expect(term, values, noise))
        sizes.append(np.abs(values - x[term.feature]))
    total = sum(np.meshgrid(*levels, indexing="ij")).ravel()
    if threat.norm is not None:
        away = np.stack([grid.ravel() for grid in np.meshgrid(*sizes, indexing="ij")])
        size = np.linalg.norm(away, ord=threat.norm, axis=0)
        total = total[size <= radius if threat.norm == 0 else size < radius]
    shifts = list_category_sums(model, threat, x)
    return float(total.min(initial=np.inf)) + min(shifts), float(total.max(initial=-np.inf)) + max(shifts)


def draw_case(rng: np.random.Generator, norm: float | None) -> tuple[AdditiveEnsemble, np.ndarray, Threat]:
    model = draw_model(rng)
    n = model.n_features - 1
    x = np.concatenate([rng.integers(-10, 11, n) / 4, [rng.choice([0.0, 1.0, 2.0])]])
    return model, x, draw_threat(rng, n, x, norm=norm)


def check_boxes(rng: np.random.Generator, n_models: int) -> dict[str, int]:
    """Limits alone, without noise and with: verdicts against enumeration; how many of each there were."""
    counts: dict[str, int] = {}
    for _ in range(n_models):
        model, x, threat = draw_case(rng, None)
        noise = None if rng.random() < 0.5 else NOISES[str(rng.choice(list(NOISES)))](0.3)
        found = certify(model, x[None], noise, rule="mean", threat=threat)
        assert found.verdict is not None
        assert found.witness is not None
        assert found.worst is not None
        verdict, label = str(found.verdict[0]), int(found.label[0])
        low, high = find_extremes(model, threat, x, noise, np.inf)
        flips = low <= model.threshold if label else high > model.threshold
        if noise is None:
            assert verdict == ("flips" if flips else "holds")
            assert found.worst[0] == (low if label else high)
        else:
            margin = low - model.threshold if label else model.threshold - high
            assert verdict != "holds" or margin > -1e-9
            assert found.worst[0] <= low + 1e-9 if label else found.worst[0] >= high - 1e-9
        if verdict == "flips":
            check_witness(model, x, noise, threat, found)
        kind = f"{verdict}, {'deployed' if noise is None else 'smoothed'}"
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def check_witness(model: AdditiveEnsemble, x: np.ndarray, noise: Noise | None, threat: Threat, found: Any) -> None:
    """It flips under the very same rule, and it is within the limits."""
    witness = found.witness[0]
    assert certify(model, witness[None], noise, rule=found.rule).label[0] != found.label[0]
    low, high = Perturbation.of(threat, x.size, model.numerical_features).box(x[None])
    numbers = list(model.numerical_features)
    assert ((witness >= low[0]) & (witness <= high[0]))[numbers].all()
    for column, step in threat.steps.items():
        assert witness[column] in x[column] + np.arange(-4100, 4101) * step  # type: ignore[index]
    changed = [at for at in model.categorical_features if witness[at] != x[at]]
    assert len(changed) <= threat.l0


def check_balls(rng: np.random.Generator, n_models: int) -> int:
    """A ball beside limits: no combination of values within both flips; how many rows had a radius."""
    proven = 0
    for _ in range(n_models):
        norm = float(rng.choice([0, 1, 2, np.inf]))
        model, x, threat = draw_case(rng, norm)
        noise = None if rng.random() < 0.5 else NOISES[str(rng.choice(list(NOISES)))](0.3)
        found = certify(model, x[None], noise, rule="mean", threat=threat)
        radius, label = float(found.radius[0]), int(found.label[0])
        if radius == 0:
            continue
        proven += 1
        low, high = find_extremes(model, threat, x, noise, radius)
        assert low > model.threshold - 1e-9 if label else high <= model.threshold + 1e-9
    return proven


def test_limits_alone_against_enumeration() -> None:
    """Without noise never wrong either way; with noise never too optimistic; every witness flips."""
    counts = check_boxes(np.random.default_rng(0), 120)
    assert (
        min(counts[kind] for kind in ("holds, deployed", "flips, deployed", "holds, smoothed", "flips, smoothed")) > 8
    )


def test_balls_beside_limits_against_enumeration() -> None:
    """Nothing within the radius and the limits flips."""
    assert check_balls(np.random.default_rng(1), 250) > 100


@pytest.mark.long
def test_five_thousand_threats() -> None:
    """The same searches with a large budget."""
    check_boxes(np.random.default_rng(2), 5000)
    check_balls(np.random.default_rng(3), 5000)


def test_limits_hold_for_votes() -> None:
    """By both proofs; a vote of several members has witnesses, too."""
    rng = np.random.default_rng(4)
    checked = 0
    for _ in range(40):
        model, x, threat = draw_case(rng, None)
        other = next(one for one in iter(lambda: draw_model(rng), None) if one.n_features == model.n_features)
        is_category = {bool(one.categorical_features) for one in (model, other)}
        votes = [WeightedVote([model, other], [1.0, 0.5])] if len(is_category) == 1 else []
        for whole in (model, *votes):
            found = certify(whole, x[None], "gaussian:0.3", threat=threat)
            assert found.verdict is not None
            if found.verdict[0] == "flips":
                moved = certify(whole, found.witness, "gaussian:0.3")
                assert moved.label[0] != found.label[0]
            if found.verdict[0] == "holds":
                checked += 1
                columns = [list_values(threat, at, float(x[at]), np.empty(0))[:9] for at in range(model.n_features - 1)]
                points = np.array([[*point, x[-1]] for point in itertools.product(*columns)])
                assert (certify(whole, points, "gaussian:0.3").label == found.label[0]).all()
    assert checked > 10


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_the_paper_s_proof_is_carried_over_to_other_balls(p: float) -> None:
    """In another norm and other units it says less, but something, and nothing within it flips."""
    rng = np.random.default_rng(5)
    model = AdditiveEnsemble([StepFunction(at, np.sort(rng.normal(size=2)), [0, 3, 7]) for at in range(3)], 10, 3)
    rows, units = rng.normal(size=(40, 3)), np.array([0.5, 1.0, 2.0])
    threat = Threat(norm=p, units=tuple(units), frozen=[1])
    found = certify(model, rows, "gaussian:0.4", threat=threat, proof="paper")
    assert (found.radius > 0).sum() > 30
    for row, label, radius in zip(rows, found.label, found.radius, strict=True):
        moves = rng.normal(size=(200, 3)) * [1, 0, 1]
        moves *= 0.999 * min(radius, 50) / np.linalg.norm(moves, ord=p, axis=1)[:, None] * units
        assert (certify(model, row + moves, "gaussian:0.4", proof="paper").label == label).all()


def test_frozen_columns_and_categories() -> None:
    """What is frozen does not move; a frozen category does not change, whatever the budget."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [-2, 2]), CategoryTable(1, [0, 1], [-5, 1], other=0)], 0, 2)
    free, held = (
        certify(model, [[0.5, 1.0]], Gaussian(0.2), rule="mean", threat=Threat(l0=1, frozen=frozen))
        for frozen in ((), (1,))
    )
    assert free.radius[0] == 0
    assert held.radius[0] > 0
    assert certify(model, [[0.5, 1.0]], None, rule="mean", threat=Threat(frozen=[0])).radius[0] == np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limits": {5: 1.0}}, "`limits` of Threat must name columns from 0 to 1, got 5"),
        ({"limits": {"income": 1.0}}, "`limits` of Threat must name columns by number here"),
        ({"limits": {1: 1.0}}, "`limits` of Threat must name numerical columns, got column 1"),
        ({"steps": {1: 1.0}}, "`steps` of Threat must name numerical columns, got column 1"),
        ({"may_become": {0: [1.0]}}, "`may_become` of Threat must name categorical columns, got column 0"),
        (
            {"domain": {0: (2.0, 3.0)}},
            r"`domain` of Threat must hold the rows' own values, got \[2.0, 3.0\] for column 0",
        ),
    ],
)
def test_threats_that_do_not_fit_the_model_are_refused(arguments: dict[str, Any], message: str) -> None:
    """In one line, before any work."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [-2, 2]), CategoryTable(1, [0, 1], [-5, 1], other=0)], 0, 2)
    with pytest.raises(ValueError, match=message):
        certify(model, [[0.5, 1.0]], None, rule="mean", threat=Threat(norm=None, **arguments))
