"""Attacks on numbers: answers of `predict`, within the threat, near the ends by the mean, never outside an interval."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    AdditiveRegressor,
    CategoryTable,
    Gaussian,
    GridTerm,
    Laplace,
    Noise,
    StepFunction,
    StumpRegressor,
    Threat,
    Uniform,
    UnsoundError,
    attack_interval,
    certify_interval,
)
from derand.auditing._threat import AllowedChanges
from derand.certificates import find_answers
from derand.model import Value
from derand.perturbation import Perturbation
from tests.auditing.test_regression import Numbered, draw_number

STEP = AdditiveEnsemble([StepFunction(0, [0.0], [0, 100])], Value(500), n_features=1, levels=10)


def draw_smooth(rng: np.random.Generator, n_features: int = 6) -> AdditiveEnsemble:
    """A sum of rising and falling ramps of many small steps."""
    edges = np.linspace(-2, 2, 41)
    steps = [StepFunction(at, edges, np.cumsum(rng.integers(-3, 9, 42))) for at in range(n_features)]
    return AdditiveEnsemble(steps, Value(-50), n_features, levels=10)


def is_inside(one: Numbered, threat: Threat, row: np.ndarray, changed: np.ndarray) -> bool:
    """Whether a changed row is one that the threat allows, closer than the radius."""
    columns = [at for at in one.model.numerical_features if not np.isnan(row[at]) and not np.isnan(changed[at])]
    moves = np.abs(changed - row)[columns] / Perturbation.of(threat, row.size, ()).units[columns]
    limits = replace(threat, norm=None, units=None)
    if threat.norm is not None:  # then columns without limits move, too: `allows` must not look at these
        free = [at for at in columns if at not in threat.limits and at not in threat.steps]
        allowed = changed.copy()
        allowed[free] = row[free]
        if any(at in threat.frozen and changed[at] != row[at] for at in free):
            return False
        wide = {at: threat.limits.get(at, 1e9) for at in columns if at not in threat.frozen}
        if not AllowedChanges.read(replace(limits, limits=wide), one.model).allows(one.model, row, allowed):
            return False
    elif not AllowedChanges.read(limits, one.model).allows(one.model, row, changed):
        return False
    if threat.norm is None or not moves.size:
        return True
    size = float(np.linalg.norm(moves, ord=float(threat.norm)))
    return size <= one.radius if not one.radius or threat.norm == 0 else size < one.radius


@pytest.mark.parametrize("count", [pytest.param(12, id="few"), pytest.param(2000, id="many", marks=pytest.mark.long)])
def test_no_answer_leaves_its_interval_and_no_change_the_threat(count: int) -> None:
    """Both rules, all noises and none, norms, limits, steps, frozen columns, categories and gaps."""
    moved = 0
    for seed in range(count):
        one = draw_number(seed)
        found = attack_interval(one.model, one.rows, one.noise, one.radius, rule=one.rule, threat=one.threat)
        found.require_inside(one.certify_interval())
        for answers, changed in ((found.low, found.low_rows), (found.high, found.high_rows)):
            assert find_answers(one.model, changed, one.noise, rule=one.rule).tolist() == answers.tolist()
            for row, other in zip(one.rows, changed, strict=True):
                assert is_inside(one, found.threat, row, other), (seed, row, other)
        moved += int((found.width > 0).sum())
    assert moved > count


@pytest.mark.parametrize("noise", [Gaussian(0.5), Laplace(0.4), Uniform(1.0), None])
@pytest.mark.parametrize("norm", [0, 1, 2, math.inf, None])
def test_attacks_by_the_mean_come_near_the_ends(noise: Noise | None, norm: float | None) -> None:
    """Of smooth sums there is next to nothing between what is certified and what is found.

    In l1 prices leave a gap, and under uniform noise in l1 and l2 intervals are those of linf.
    """
    rng = np.random.default_rng(5)
    model, rows = draw_smooth(rng), rng.normal(size=(12, 6))
    threat = Threat(norm=norm, limits={"*": (0.2, 0.3)} if norm is None else {})
    radius = None if norm is None else 2 if norm == 0 else 0.4
    intervals = certify_interval(model, rows, noise, radius, rule="mean", threat=threat)
    found = attack_interval(model, rows, noise, radius, rule="mean", threat=threat)
    found.require_inside(intervals)
    share = found.width / intervals.width
    if norm in (1, 2) and isinstance(noise, Uniform):
        assert np.median(share) > 0.2
    else:
        assert np.median(share) > (0.95 if norm == 1 else 0.99)
        assert share.min() > (0.75 if norm == 1 else 0.95)


def test_medians_are_moved_far() -> None:
    """Beyond what scores alone lead to, a good part of the interval."""
    rng = np.random.default_rng(6)
    model, rows = draw_smooth(rng), rng.normal(size=(8, 6))
    intervals = certify_interval(model, rows, Gaussian(0.5), 0.4)
    found = attack_interval(model, rows, Gaussian(0.5), 0.4)
    found.require_inside(intervals)
    assert np.median(found.width / intervals.width) > 0.5


def test_every_change_of_few_steps_by_brute_force() -> None:
    """Without noise, in l1 and l2, the best of all combinations of cells is found, nearly always."""
    rng, exact = np.random.default_rng(7), []
    for _ in range(40):
        steps = [StepFunction(at, np.sort(rng.normal(size=4)), rng.integers(0, 50, 5)) for at in range(3)]
        model, row = AdditiveEnsemble(steps, Value(0), 3, levels=1), rng.normal(size=3)
        norm, radius = int(rng.choice([1, 2])), 0.6
        found = attack_interval(model, row[None], None, radius, rule="mean", threat=Threat(norm=norm))
        options = []
        for at, step in enumerate(steps):
            edges = step.edges
            places = np.concatenate([[row[at]], np.where(edges > row[at], edges, np.nextafter(edges, -np.inf))])
            options.append(places)
        every = np.stack(np.meshgrid(*options), axis=-1).reshape(-1, 3)
        every = every[np.linalg.norm(every - row, ord=norm, axis=1) < radius]
        scores = model.score(every)
        exact += [found.low[0] == scores.min(), found.high[0] == scores.max()]
        assert found.low[0] >= scores.min()
        assert found.high[0] <= scores.max()
    assert np.mean(exact) > 0.9


def test_planted_faults_are_found() -> None:
    """Intervals that are a thousandth too narrow by the mean, or one score by the median of a step."""
    rng = np.random.default_rng(8)
    model, rows = draw_smooth(rng), rng.normal(size=(5, 6))
    right = certify_interval(model, rows, Gaussian(0.5), 0.4, rule="mean", threat=Threat(norm=math.inf))
    found = attack_interval(model, rows, Gaussian(0.5), 0.4, rule="mean", threat=Threat(norm=math.inf))
    wrong = replace(right, high=found.high - 0.001 * found.width)
    assert found.find_outside(wrong).all()
    with pytest.raises(UnsoundError, match="5 of 5 rows have answers outside of what is certified"):
        found.require_inside(wrong)
    step = certify_interval(STEP, [[0.5]], Gaussian(0.5), 0.6)
    with pytest.raises(UnsoundError, match=r"60.0 becomes 50.0, certified from 50.1 to 60.0"):
        attack_interval(STEP, [[0.5]], Gaussian(0.5), 0.6).require_inside(replace(step, low=np.array([50.1])))


def test_what_stands_beside_other_intervals_is_refused() -> None:
    """Of other rows, radii, rules or noises."""
    found = attack_interval(STEP, [[0.5], [1.0]], Gaussian(0.5), 0.6)
    for other, message in (
        (certify_interval(STEP, [[0.5]], Gaussian(0.5), 0.6), "must be about the same 2 rows"),
        (certify_interval(STEP, [[0.5], [1.0]], Gaussian(0.5), 0.5), "must have the same radius, 0.6, got 0.5"),
        (certify_interval(STEP, [[0.5], [1.0]], Gaussian(0.4), 0.6), "must have the same noise"),
        (certify_interval(STEP, [[0.5], [1.0]], Gaussian(0.5), 0.6, rule="mean"), "must have the same rule"),
        (certify_interval(STEP, [[0.5], [-1.0]], Gaussian(0.5), 0.6), "got the value 50.0 for row 1"),
    ):
        with pytest.raises(ValueError, match=message):
            found.require_inside(other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": -1.0}, "`radius` must be a number, 0 or larger, got -1.0"),
        ({"radius": None}, "`radius` must be a number, 0 or larger, got None"),
        ({"random_state": -1}, "`random_state` must be a whole number"),
        ({"noise": None}, "`noise` must not be None"),
        ({"model": AdditiveEnsemble(STEP.terms, 50, 1)}, "`model` must have a number as its answer"),
        ({"threat": Threat(missing=1)}, "takes no missing numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each in one sentence that names the parameter."""
    given: dict[str, Any] = {"model": STEP, "X": [[0.5]], "noise": Gaussian(1.0), "radius": 0.1} | arguments
    with pytest.raises(ValueError, match=message):
        attack_interval(**given)


@pytest.mark.long
def test_categories_grids_and_radius_zero() -> None:
    """With radius 0 only categories change; terms of several columns are moved, too; no rows are no error."""
    grid = GridTerm([0, 1], [[0.0], [0.0]], [[0, 3], [5, 40]])
    model = AdditiveEnsemble([grid, CategoryTable(2, [0, 1], [3, 10], 0)], Value(0), 3, levels=1)
    rows = [[0.1, 0.1, 0.0]]
    still = attack_interval(model, rows, None, 0, rule="mean", threat=Threat(l0=1))
    assert (still.low[0], still.value[0], still.high[0]) == (40, 43, 50)
    for rule, noise in (("mean", None), ("mean", Gaussian(0.1)), ("vote", Gaussian(0.1))):
        found = attack_interval(model, rows, noise, 0.5, rule=rule, threat=Threat(l0=1))
        found.require_inside(certify_interval(model, rows, noise, 0.5, rule=rule, threat=Threat(l0=1)))
        assert found.low[0] < 10
    assert len(attack_interval(model, np.empty((0, 3)), None, 0.5, rule="mean")) == 0


def test_results_are_frozen_and_the_same_whatever_the_threads() -> None:
    """They can be cut, copied and made a frame, but not written to."""
    rng = np.random.default_rng(9)
    model, rows = draw_smooth(rng), rng.normal(size=(5, 6))
    found = attack_interval(model, rows, Gaussian(0.5), 0.2, n_jobs=1)
    assert found.low.tolist() == attack_interval(model, rows, Gaussian(0.5), 0.2, n_jobs=2).low.tolist()
    assert len(found[1:3]) == 2
    assert found[1].low_rows.tolist() == [found.low_rows[1].tolist()]
    assert found.to_pandas().columns.tolist() == ["value", "low", "high", "width"]
    assert "5 rows, mean width" in repr(found)
    assert pickle.loads(pickle.dumps(found)).low_rows.flags.writeable is False


@pytest.mark.parametrize("kind", [AdditiveRegressor, StumpRegressor])
def test_regressors_give_rows_of_their_own_table(kind: Any) -> None:
    """Frames that `predict` takes, categories that training did not see included."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(80, 2)), columns=["size", "age"])
    table["town"] = rng.choice(["a", "b", "c"], 80)
    y = 3 * table["size"] + 2 * (table["town"] == "a") + rng.normal(size=80)
    reg = kind(noise="gaussian:0.5", scaling="standard").fit(table, y)
    threat = Threat(l0=1, frozen=["age"])
    found = reg.attack_interval(table[:6], 0.3, threat=threat)
    found.require_inside(reg.certify_interval(table[:6], 0.3, threat=threat))
    assert reg.predict(found.low_rows).tolist() == found.low.tolist()
    assert found.high_rows["age"].tolist() == table["age"][:6].tolist()
    assert (found.width > 0).all()
    assert len(found[:2].low_rows) == 2
