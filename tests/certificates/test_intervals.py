"""Intervals of numbers against exact laws, binary certificates at every level, and searches inside the ball."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Gaussian,
    GridTerm,
    Laplace,
    StepFunction,
    Threat,
    Uniform,
    certify,
    certify_interval,
    certify_radius,
)
from derand.certificates import RULES, find_answers
from derand.model import Value
from tests import oracle
from tests.certificates.searching import Case, draw_case, expect, find_votes, find_witnesses, fuzz

SEEDS = [pytest.param(20, id="few"), pytest.param(3000, id="many", marks=pytest.mark.long)]
STEP = AdditiveEnsemble([StepFunction(0, [0.0], [0, 100])], Value(500), n_features=1, levels=10)


def make_number(model: AdditiveEnsemble, offset: int = 0, levels: int = 1) -> AdditiveEnsemble:
    """The same sum with a number as the answer."""
    return AdditiveEnsemble(model.terms, Value(offset), model.n_features, levels, model.score_error)


def draw_radius(rng: np.random.Generator, case: Case) -> float:
    if case.threat.norm == 0:
        return float(rng.integers(0, 4))
    size = 1.0 if case.noise is None else case.noise.magnitude
    return float(rng.choice([0.0, 0.1, 0.5, 1.0, 3.0])) * size


def list_masses(case: Case, row: np.ndarray) -> list[tuple[int, Any]]:
    """Each score of the exact law with the mass up to it."""
    assert case.noise is not None
    law = oracle.score_law(case.model, row.tolist(), case.noise)
    return list(zip(sorted(law), itertools.accumulate(law[score] for score in sorted(law)), strict=True))


def find_median(case: Case, row: np.ndarray) -> int:
    """The lower median of the exact law."""
    return next(score for score, mass in list_masses(case, row) if 2 * mass >= 1)


def is_median(case: Case, row: np.ndarray, score: float) -> bool:
    """Whether less than half of the mass lies below a score, and half of it, but for a rounded tie, up to it."""
    masses = list_masses(case, row)
    below = [mass for one, mass in masses if one < score]
    up_to = [mass for one, mass in masses if one <= score]
    return (not below or 2 * below[-1] < 1) and bool(up_to) and up_to[-1] > 0.5 - 1e-9


@pytest.mark.parametrize("noise", [Gaussian(0.5), Laplace(0.5), Uniform(2.0)])
def test_one_stump_in_closed_form(noise: Any) -> None:
    """The median of one stump changes at its edge, so that an interval is one number up to the distance from it."""
    for x, radius in itertools.product([-1.0, -0.3, 0.4, 1.2], [0.0, 0.2, 0.35, 1.0, 1.3]):
        found = certify_interval(STEP, [[x]], noise, radius)
        assert found.value[0] == (50 if x < 0 else 60)
        ends = [50.0, 60.0] if abs(x) <= radius else [found.value[0]] * 2
        assert [found.low[0], found.high[0]] == ends


def test_the_mean_of_one_stump_in_closed_form() -> None:
    """Under Gaussian noise it is a normal distribution function, lowest and highest at the ends of the ball."""
    rows = np.linspace(-2, 2, 9)[:, None]
    found = certify_interval(STEP, rows, Gaussian(0.5), 0.3, rule="mean")
    low, value, high = (50 + 10 * norm.cdf((rows[:, 0] + move) / 0.5) for move in (-0.3, 0, 0.3))
    np.testing.assert_allclose(found.value, value, atol=1e-9)
    np.testing.assert_allclose(found.low, low, atol=2e-3)
    np.testing.assert_allclose(found.high, high, atol=2e-3)
    assert (found.low <= low).all()
    assert (found.high >= high).all()


def test_quantiles_of_the_law_by_the_paper() -> None:
    """Under Gaussian noise the ends of the paper's proof are quantiles of the law at Phi(-+ radius / sigma)."""
    rng = np.random.default_rng(0)
    steps = [StepFunction(at, np.sort(rng.normal(size=6)), rng.integers(-50, 50, 7)) for at in range(4)]
    model = AdditiveEnsemble(steps, Value(0), 4, levels=1)
    rows = rng.normal(size=(5, 4))
    found = certify_interval(model, rows, Gaussian(0.7), 0.4, proof="paper")
    for row, low, high in zip(rows, found.low, found.high, strict=True):
        law = oracle.score_law(model, row.tolist(), Gaussian(0.7))
        scores = sorted(law)
        running = np.cumsum([float(law[score]) for score in scores])
        shares = norm.cdf([-0.4 / 0.7, 0.4 / 0.7])
        assert low == scores[int(np.searchsorted(running, shares[0]))]
        assert high == scores[int(np.searchsorted(running, shares[1]))]


@pytest.mark.parametrize("count", SEEDS)
def test_medians_and_their_intervals_by_exact_laws(count: int) -> None:
    """Answers are exact medians, and no median of a row inside the ball leaves the interval."""
    broken, tried = [], 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        case = draw_case(rng, max_terms=3, max_edges=4, n_rows=2, own_ball=0.6)
        model, radius = make_number(case.model), draw_radius(rng, case)
        found = certify_interval(model, case.rows, case.noise, radius, threat=case.threat, n_jobs=1)
        for at, row in enumerate(case.rows):
            if not is_median(case, row, found.value[at]):
                broken.append(f"seed {seed}, row {at}: {found.value[at]} is not the median")
            for label, end in ((1, found.low[at]), (0, found.high[at])):
                cut = math.floor(end) - 1 if label else math.ceil(end)
                aimed = Case(AdditiveEnsemble(model.terms, cut, model.n_features), case.rows, *_rest(case))
                moved = find_votes(aimed, row, label, radius, rng)[:2] if radius else row[None, :]
                answers = find_answers(model, moved, case.noise, n_jobs=1)
                exact = [find_median(case, one) for one in moved]
                tried += len(moved)
                if not ((found.low[at] <= answers) & (answers <= found.high[at])).all() or any(
                    not found.low[at] <= one + shift * model.score_error <= found.high[at]
                    for one in exact
                    for shift in (-1, 1)
                ):
                    broken.append(f"seed {seed}, row {at}: {answers} leaves {found.low[at]}, {found.high[at]}")
    assert broken == []
    assert tried > 2 * count


def _rest(case: Case) -> tuple[Any, ...]:
    return case.noise, case.threat, case.steps


@pytest.mark.parametrize("count", SEEDS)
@pytest.mark.parametrize("deployed", [False, True])
def test_no_change_takes_a_mean_out_of_its_interval(count: int, deployed: bool) -> None:
    """Every noise and none, every norm, categories: searches reach the ends, and never leave the interval."""
    broken, near = [], []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        case = draw_case(rng, deployed=deployed)
        levels, offset = int(rng.choice([1, 10, 977])), int(rng.integers(-(10**6), 10**6))
        model, radius = make_number(case.model, offset, levels), draw_radius(rng, case)
        found = certify_interval(model, case.rows, case.noise, radius, rule="mean", threat=case.threat, n_jobs=1)
        truth = (expect(case, case.rows) + offset) / levels
        slack = fuzz(case) / levels + 1e-13 * abs(offset) / levels
        np.testing.assert_allclose(found.value, truth, rtol=0, atol=4 * slack + 1e-9 * np.ptp(truth))
        for at, row in enumerate(case.rows):
            for label in (0, 1):
                moved = list(find_witnesses(case, row, label, radius)) if radius else [row]
                if not moved:
                    continue
                answers = find_answers(model, np.array(moved), case.noise, rule="mean", n_jobs=1)
                means = (expect(case, np.array(moved)) + offset) / levels
                reach = model.score_error / levels
                low, high = found.low[at], found.high[at]
                if not (low <= answers.min() and answers.max() <= high):
                    broken.append(f"seed {seed}, row {at}: {answers} leaves [{low}, {high}]")
                if not (low <= means.min() - reach + slack and means.max() + reach - slack <= high):
                    broken.append(f"seed {seed}, row {at}: {means} leaves [{low}, {high}]")
                if not reach and found.width[at] > 0 and case.threat.norm != 0:
                    gap = answers.min() - low if label else high - answers.max()
                    near.append(gap / found.width[at])
    assert broken == []
    assert np.median(near) < 3e-3  # how close ends come, not whether they hold


@pytest.mark.parametrize("count", SEEDS)
@pytest.mark.parametrize("rule", sorted(RULES))
def test_ends_are_those_of_binary_certificates(count: int, rule: str) -> None:
    """At the level below the lower end class 1 is certified for the radius, at that end it is not; so above."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        case = draw_case(rng, deployed=rule == "mean", max_edges=4)
        model, radius, threat = make_number(case.model), draw_radius(rng, case), case.threat
        if not radius:
            continue
        found = certify_interval(model, case.rows, case.noise, radius, rule=rule, threat=threat, n_jobs=1)
        for at, row in enumerate(case.rows):
            low, high = round(found.low[at]), round(found.high[at])
            assert low <= high
            for level, label, is_claimed in (
                (low - 1, 1, True),
                (low, 1, False),
                (high, 0, True),
                (high - 1, 0, False),
            ):
                binary = AdditiveEnsemble(model.terms, level, model.n_features, score_error=model.score_error)
                one = certify(binary, row[None, :], case.noise, rule=rule, threat=threat, n_jobs=1)
                holds = one.label[0] == label and one.radius[0] >= radius * (1 - 1e-9)
                about = (seed, at, level, label, one.label, one.radius, radius)
                assert holds or not is_claimed, about
                assert is_claimed or not holds or one.radius[0] < radius * 1.001, about


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("seed", range(8))
def test_tolerance_and_interval_agree(rule: str, seed: int) -> None:
    """At a smaller radius than that of a tolerance the interval lies within it, and at a larger one not."""
    rng = np.random.default_rng(seed)
    case = draw_case(rng, norms=(1, 2, math.inf))
    model = make_number(case.model, 7, 10)
    tolerance = float(rng.choice([0.0, 0.1, 0.35, 1.0, 20.0]))
    found = certify_radius(model, case.rows, case.noise, tolerance, rule=rule, threat=case.threat)
    assert (found.radius >= 0).all()
    for at in range(len(found)):
        radius = float(found.radius[at])
        if not math.isfinite(radius):
            radius = 1e6
        for factor, inside in ((0.99, True), (1.05, False)):
            if factor * radius == 0:
                continue
            (low,), (high,) = (
                getattr(
                    certify_interval(
                        model, case.rows[[at]], case.noise, factor * radius, rule=rule, threat=case.threat
                    ),
                    end,
                )
                for end in ("low", "high")
            )
            value, room = found.value[at], tolerance + 1e-3 * (inside and rule == "mean")
            is_inside = low >= value - room - 1e-12 and high <= value + room + 1e-12
            assert is_inside if inside else not is_inside or math.isinf(found.radius[at])


def test_categories_move_the_ends() -> None:
    """One end falls by the largest falls, the other rises by the largest rises; frozen tables do not move."""
    tables = [CategoryTable(1, [0, 1], [3, 10], 0), CategoryTable(2, [0, 1], [5, 6], 5)]
    model = AdditiveEnsemble([*STEP.terms, *tables], Value(0), n_features=3, levels=1)
    row = [[-1.0, 0.0, 1.0]]
    for rule in ("vote", "mean"):
        noise = Gaussian(0.01)

        def ask(rule: str = rule, **threat: Any) -> list[float]:
            found = certify_interval(model, row, Gaussian(0.01), 0.1, rule=rule, threat=Threat(**threat))
            return [round(float(found.low[0]), 3), round(float(found.high[0]), 3)]

        assert certify_interval(model, row, noise, 0.1, rule=rule).value.round(6).tolist() == [9.0]
        assert ask() == [9, 9]
        assert ask(l0=1) == [6, 16]
        assert ask(l0=2) == [5, 16]
        assert ask(l0=2, unseen=False) == [8, 16]
        assert ask(l0=2, frozen=[1]) == [8, 9]
        assert ask(l0=2, may_become={1: (0.0,)}) == [8, 9]
    found = certify_interval(model, row, "gaussian:0.01", 0, l0=2)
    assert (found.low[0], found.high[0]) == (5, 16)


def test_limits_without_a_ball() -> None:
    """Limits alone: the ends of the mean are exact without noise, and `radius` is None."""
    steps = [StepFunction(0, [0.0, 1.0], [0, 10, 4]), StepFunction(1, [0.0], [1, 2])]
    model = AdditiveEnsemble(steps, Value(0), n_features=2, levels=2)
    threat = Threat(norm=None, limits={0: (0.5, 1.0)})
    found = certify_interval(model, [[0.25, 0.5]], None, None, rule="mean", threat=threat)
    assert (found.low[0], found.value[0], found.high[0]) == (1.0, 6.0, 6.0)
    assert found.radius is None
    vote = certify_interval(model, [[0.25, 0.5]], Gaussian(0.001), None, threat=threat)
    assert (vote.low[0], vote.value[0], vote.high[0]) == (1.0, 6.0, 6.0)
    radii = certify_radius(model, [[0.25, 0.5]], None, 4.9, rule="mean", threat=threat)
    assert radii.radius.tolist() == [0.0]
    assert certify_radius(model, [[0.25, 0.5]], None, 5, rule="mean", threat=threat).radius.tolist() == [math.inf]
    with pytest.raises(ValueError, match="`radius` must be None where limits alone"):
        certify_interval(model, [[0.25, 0.5]], None, 0.5, rule="mean", threat=threat)


def draw_gapped(rng: np.random.Generator) -> tuple[AdditiveEnsemble, np.ndarray]:
    steps = [
        StepFunction(at, np.sort(rng.normal(size=3)), rng.integers(-20, 20, 4), int(rng.integers(-20, 20)))
        for at in range(3)
    ]
    rows = rng.normal(size=(3, 3))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    return AdditiveEnsemble(steps, Value(3), 3, levels=1), rows


@pytest.mark.parametrize("seed", range(8))
def test_numbers_that_go_missing_or_appear(seed: int) -> None:
    """With a budget of such changes, no changed row leaves its interval, whatever its other numbers do in the ball."""
    rng = np.random.default_rng(seed)
    model, rows = draw_gapped(rng)
    noise = [None, Gaussian(0.5), Laplace(0.4), Uniform(1.0)][seed % 4]
    rules = ["mean"] if noise is None else ["mean", "vote"]
    budget, radius = int(rng.integers(0, 3)), float(rng.choice([0.0, 0.3, 1.0]))
    for rule, size in itertools.product(rules, [2, math.inf, 0]):
        threat = Threat(norm=size, missing=budget)
        asked = float(round(radius)) if size == 0 else radius
        found = certify_interval(model, rows, noise, asked, rule=rule, threat=threat)
        for at, row in enumerate(rows):
            changed = []
            for _ in range(60):
                moved, chosen = row.copy(), rng.permutation(3)[:budget]
                way = rng.normal(size=3)
                if size == 0:
                    many = np.where(np.isin(np.arange(3), rng.permutation(3)[: int(asked)]), 5 * way, 0.0)
                    moved += many
                else:
                    moved += way / np.linalg.norm(way, ord=size) * asked * 0.999
                moved[chosen] = np.where(np.isnan(row[chosen]), rng.normal(size=budget) * 3, np.nan)
                changed.append(moved)
            answers = find_answers(model, np.array(changed), noise, rule=rule)
            assert (found.low[at] <= answers).all()
            assert (answers <= found.high[at]).all()


def test_radius_zero_is_the_answer_itself() -> None:
    """Nothing changes: the ends are the answer, but for what the model may be off by."""
    rng = np.random.default_rng(3)
    case = draw_case(rng, most_tables=0)
    for error in (0.0, 2.0):
        model = AdditiveEnsemble(case.model.terms, Value(5), case.model.n_features, 10, error)
        for rule, size in itertools.product(("vote", "mean"), (0, 1, 2, math.inf)):
            found = certify_interval(model, case.rows, case.noise, 0, rule=rule, threat=Threat(norm=size))
            np.testing.assert_allclose(found.low, found.value - error / 10, atol=1e-9)
            np.testing.assert_allclose(found.high, found.value + error / 10, atol=1e-9)


def test_laws_on_a_coarser_grid() -> None:
    """Scores too fine for a law: the answer is a median of coarser ones, and the interval covers the fine one, too."""
    rng = np.random.default_rng(0)
    steps = [StepFunction(at, np.sort(rng.normal(size=3)), rng.integers(0, 2**24, 4)) for at in range(3)]
    model = AdditiveEnsemble(steps, Value(0), 3, levels=2**20)
    rows = rng.normal(size=(4, 3))
    found = certify_interval(model, rows, Gaussian(0.5), 0.1)
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    case = Case(model, rows, Gaussian(0.5), Threat(norm=2), steps)
    for row, low, high in zip(rows, found.low, found.high, strict=True):
        assert low <= find_median(case, row) / 2**20 <= high
        way = rng.normal(size=(20, 3))
        moved = row + 0.0999 * way / np.linalg.norm(way, axis=1)[:, None]
        answers = find_answers(model, moved, Gaussian(0.5))
        assert (low <= answers).all()
        assert (answers <= high).all()


def test_results_are_frozen_arrays_with_their_facts() -> None:
    """They can be cut, copied and made a frame, but not written to."""
    found = certify_interval(STEP, [[-1.0], [0.5], [2.0]], "gaussian:0.5", 0.6)
    assert len(found) == 3
    assert len(found[1:]) == 2
    assert found[0].value.tolist() == [50.0]
    assert found.to_pandas().columns.tolist() == ["value", "low", "high", "width"]
    assert "3 rows, mean width 3.333, l2 ball of radius 0.6" in repr(found)
    assert pickle.loads(pickle.dumps(found)).low.flags.writeable is False
    with pytest.raises(ValueError, match="read-only"):
        found.low[0] = 1
    radii = certify_radius(STEP, [[-1.0], [0.5]], "gaussian:0.5", 1)
    assert len(radii[0]) == 1
    assert radii.to_pandas().columns.tolist() == ["value", "radius", "proof"]
    assert "2 certified within +-1.0" in repr(radii)
    assert pickle.loads(pickle.dumps(radii)).proof.tolist() == radii.proof.tolist()
    nothing = certify_interval(STEP, np.empty((0, 1)), "gaussian:0.5", 0.6)
    assert len(nothing) == 0
    assert "0 rows" in repr(nothing)


def test_a_constant_model_has_one_answer() -> None:
    """Without any term the interval is that number, whatever may change."""
    model = AdditiveEnsemble([], Value(25), n_features=2, levels=10)
    for rule, noise in (("vote", Gaussian(1.0)), ("mean", Gaussian(1.0)), ("mean", None)):
        found = certify_interval(model, [[1.0, 2.0]], noise, 5.0, rule=rule)
        assert (found.low[0], found.value[0], found.high[0]) == (2.5, 2.5, 2.5)
        assert certify_radius(model, [[1.0, 2.0]], noise, 0.0, rule=rule).radius.tolist() == [math.inf]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": -1.0}, "`radius` must be a number, 0 or larger, got -1.0"),
        ({"radius": math.nan}, "`radius` must be a number, 0 or larger, got nan"),
        ({"radius": None}, "`radius` must be a number, 0 or larger, got None"),
        ({"radius": "1"}, "`radius` must be a number"),
        ({"noise": None}, "`noise` must not be None"),
        ({"rule": "median"}, "`rule`"),
        ({"rule": "mean", "proof": "paper"}, "`proof` must be 'best' under the rule 'mean'"),
        ({"l0": [0, 1]}, "`l0` must be one number"),
        ({"l0": 1, "threat": Threat()}, "Give `l0` or `threat`, got both"),
        ({"threat": Threat(norm=3)}, "`norm` of Threat must be one of"),
        ({"threat": Threat(missing=1)}, "takes no missing numbers"),
        ({"threat": Threat(frozen=[4])}, "`frozen` of Threat must name columns from 0 to 0"),
        ({"X": [[np.nan]]}, "NaN"),
        ({"X": [[1.0, 2.0]]}, "must have shape"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each in one sentence that names the parameter."""
    given: dict[str, Any] = {"model": STEP, "X": [[0.5]], "noise": Gaussian(1.0), "radius": 0.1} | arguments
    with pytest.raises(ValueError, match=message):
        certify_interval(**given)


def test_labels_and_numbers_have_their_own_certificates() -> None:
    """A model that tells classes apart has no interval, one of numbers no label, and tolerances are numbers."""
    with pytest.raises(ValueError, match="`model` must have a number as its answer"):
        certify_interval(AdditiveEnsemble(STEP.terms, 50, 1), [[0.5]], Gaussian(1.0), 0.1)
    with pytest.raises(ValueError, match="use `certify_interval`"):
        certify(STEP, [[0.5]], Gaussian(1.0))
    for tolerance in (-1.0, math.inf, math.nan, "2", True):
        with pytest.raises(ValueError, match="`tolerance` must be a finite number"):
            certify_radius(STEP, [[0.5]], Gaussian(1.0), tolerance)  # type: ignore[arg-type]
    assert Fraction(certify_radius(STEP, [[0.5]], Gaussian(1.0), 2).tolerance) == 2


@pytest.mark.parametrize("noise", [Gaussian(0.1), Laplace(0.1), Uniform(0.3)])
def test_medians_of_terms_of_several_columns_move_with_all_of_them(noise: Any) -> None:
    """Columns that only such terms read count in the radius as well."""
    grid = GridTerm([0, 1], [[0.0], [0.0]], [[0, 3], [5, 40]])
    model = AdditiveEnsemble([grid], Value(0), 2, levels=1)
    for threat in (Threat(), Threat(norm=math.inf), Threat(norm=None, limits={0: 0.4, 1: 0.4})):
        radius = None if threat.norm is None else 0.5
        found = certify_interval(model, [[0.1, 0.1]], noise, radius, threat=threat)
        moved = find_answers(model, np.array([[-0.14, -0.14]]), noise)
        assert found.low[0] <= moved[0] < found.value[0]
        assert certify_radius(model, [[0.1, 0.1]], noise, 1.0, threat=threat).radius[0] < 0.3
