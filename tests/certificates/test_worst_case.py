"""The worst case of a sum against brute force: random models, and a search for rows inside the ball that flip."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, Gaussian, Laplace, StepFunction, Threat, Uniform, WeightedVote, certify
from tests.certificates.searching import (
    Case,
    draw_case,
    expect,
    fail,
    find_cells,
    find_votes,
    find_witnesses,
    fuzz,
    worsen,
)

SMALL = {"max_edges": 4, "n_rows": 2, "own_ball": 0.6}
MEAN_SEEDS = [pytest.param(40, id="few"), pytest.param(10_000, id="many", marks=pytest.mark.long)]
VOTE_SEEDS = [pytest.param(30, id="few"), pytest.param(10_000, id="many", marks=pytest.mark.long)]


def is_safe(case: Case, found: Any, row: int) -> bool:
    """Whether anything is claimed of a row; 0 is nothing, in norm 0, too, where it may stand for no column at all."""
    return bool(found.radius[row] > 0)


def break_mean(seed: int) -> tuple[int, list[str]]:
    """How many rows were tried around a random model's, and those that break a certificate of the rule "mean"."""
    case = draw_case(np.random.default_rng(seed))
    found = certify(case.model, case.rows, case.noise, rule="mean", threat=case.threat, n_jobs=1)
    tried = [
        (at, moved)
        for at in range(len(found))
        if is_safe(case, found, at)
        for moved in find_witnesses(case, case.rows[at], int(found.label[at]), float(found.radius[at]))
    ]
    if not tried:
        return 0, []
    rows = np.array([moved for _, moved in tried])
    labels = certify(case.model, rows, case.noise, rule="mean", n_jobs=1).label
    error, slack = math.ceil(case.model.score_error), fuzz(case)
    broken = []
    for (at, moved), computed, mean in zip(tried, labels, expect(case, rows), strict=True):
        label, threshold = found.label[at], case.model.threshold
        crosses = mean - error < threshold - slack if label else mean + error > threshold + slack
        if computed != label or crosses:
            broken.append(f"seed {seed}, row {at}: {moved.tolist()} has the mean {mean} and the label {computed}")
    return len(tried), broken


@pytest.mark.parametrize("count", MEAN_SEEDS)
def test_no_change_within_the_radius_flips_the_mean(count: int) -> None:
    """Every noise, norm, unit and number of categories: neither the computed label nor the mean itself."""
    outcomes = [break_mean(seed) for seed in range(count)]
    assert [line for _, broken in outcomes for line in broken] == []
    assert sum(tried for tried, _ in outcomes) > 3 * count


def compare_deployed(seed: int) -> tuple[int, list[str]]:
    """Rows of a random model without noise whose radius is said to be exact, and those that brute force contradicts."""
    case = draw_case(np.random.default_rng(seed), deployed=True)
    found = certify(case.model, case.rows, None, rule="mean", threat=case.threat, n_jobs=1)
    broken, exact = [], 0
    for at, (radius, label, proof) in enumerate(zip(found.radius, found.label, found.proof, strict=True)):
        truth = find_cells(case, case.rows[at], int(label))
        exact += proof == "exact"
        truth = 0.0 if truth < 2.0**-500 else truth  # so near to an edge nothing is certified
        close = radius == truth or abs(radius - truth) <= 1e-12 * truth
        must = proof == "exact" or case.threat.norm in (0, math.inf)
        if (label == 1) != (expect(case, case.rows[[at]])[0] > case.model.threshold) or not (
            close if must else radius <= truth * (1 + 1e-12)
        ):
            broken.append(f"seed {seed}, row {at}: {radius} by {proof}, but {truth}")
    return exact, broken


@pytest.mark.parametrize("count", MEAN_SEEDS)
def test_the_model_as_deployed_has_the_radius_of_brute_force(count: int) -> None:
    """All combinations of cells: linf and norm 0 always, l1 and l2 wherever the proof is called exact."""
    outcomes = [compare_deployed(seed) for seed in range(count)]
    assert [line for _, broken in outcomes for line in broken] == []
    assert sum(exact for exact, _ in outcomes) > count


def break_vote(case: Case, seed: int) -> tuple[int, int, list[str]]:
    """Rows tried, rows whose radius the second proof has raised, and what breaks a certificate of the vote."""
    found = certify(case.model, case.rows, case.noise, threat=case.threat, n_jobs=1)
    rng, tried, raised, broken = np.random.default_rng(seed), 0, 0, []
    assert case.noise is not None
    paper = certify(case.model, case.rows, case.noise, proof="paper", n_jobs=1)
    assert (found.label == paper.label).all()
    if case.threat.resolve(case.noise) == replace(paper.threat, l0=case.threat.l0, unseen=case.threat.unseen):
        alike = certify(case.model, case.rows, case.noise, case.threat.l0, case.threat.unseen, proof="paper", n_jobs=1)
        assert (found.radius >= alike.radius).all()
    for at in np.flatnonzero((found.proof == "dual") & (found.radius > 0)):
        raised += 1
        label, radius = int(found.label[at]), float(found.radius[at])
        rows = find_votes(case, case.rows[at], label, min(radius, 1e9), rng)
        if not rows.size:
            continue
        tried += len(rows)
        mass = fail(case, rows[:1], label, math.ceil(case.model.score_error))[0]
        computed = certify(case.model, rows[:3], case.noise, proof="paper", n_jobs=1).label
        if mass > 0.5 + 1e-12 or (computed != label).any():
            broken.append(f"seed {seed}, row {at}: {rows[0].tolist()} fails with {mass}")
    return tried, raised, broken


@pytest.mark.parametrize("count", VOTE_SEEDS)
def test_no_change_within_the_radius_flips_the_vote(count: int) -> None:
    """The exact vote by enumeration, in every norm, unit and with categories, wherever the second proof raises it."""
    outcomes = [break_vote(draw_case(np.random.default_rng(seed), **SMALL), seed) for seed in range(count)]
    assert [line for *_, broken in outcomes for line in broken] == []
    assert sum(raised for _, raised, _ in outcomes) > count // 4


def draw_rare(seed: int) -> Case:
    """Equal stumps of which one is enough, or one alone: mean and median disagree as far as they can."""
    rng = np.random.default_rng(seed)
    n_terms = int(rng.choice([1, 2, 3, 6, 16, 24]))
    noise = (Gaussian, Laplace, Uniform)[rng.integers(3)](0.5)
    steps = [StepFunction(at, [0.0], [0, int(rng.choice([4, 5]))] if n_terms < 4 else [0, 5]) for at in range(n_terms)]
    level = 0 if n_terms > 3 else int(rng.choice([0, 0, 4, 5]))
    rows = rng.normal(0.3, 0.4, (4, n_terms)) if n_terms < 4 else np.tile(rng.normal(0.0, 0.4, (4, 1)), n_terms)
    threat = Threat(norm=float(rng.choice([1.0, 2.0, math.inf])))
    return Case(AdditiveEnsemble(steps, level, n_terms), rows, noise, threat, steps)


@pytest.mark.parametrize("count", [pytest.param(15, id="few"), pytest.param(3000, id="many", marks=pytest.mark.long)])
def test_no_change_within_the_radius_flips_a_skewed_vote(count: int) -> None:
    outcomes = [break_vote(draw_rare(seed), seed) for seed in range(count)]
    assert [line for *_, broken in outcomes for line in broken] == []
    assert sum(raised for _, raised, _ in outcomes) > count


@pytest.mark.parametrize("constant", [0.365, 0.65])
def test_the_search_finds_what_too_small_a_constant_breaks(monkeypatch: pytest.MonkeyPatch, constant: float) -> None:
    """The control: with half the constant, and still with 0.65, where ln 2 is the least that could hold."""
    monkeypatch.setattr("derand.certificates.bounds.deduction.CONSTANT", constant)
    broken = (line for seed in range(30) for line in break_vote(draw_rare(seed), seed)[2])
    assert len(list(islice(broken, 3))) == 3


def test_the_search_finds_what_no_deduction_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for ordinary random models, with half of what is deducted."""
    monkeypatch.setattr(
        "derand.certificates.rules.vote.deduct", lambda ranges, band: 0.365 * float(ranges.max(initial=0.0))
    )
    broken = (
        line for seed in range(150) for line in break_vote(draw_case(np.random.default_rng(seed), **SMALL), seed)[2]
    )
    assert len(list(islice(broken, 3))) == 3


def break_members(seed: int, rule: str) -> tuple[int, list[str]]:
    """A weighted vote of random models of the same columns, one of them perhaps in reverse."""
    rng = np.random.default_rng(seed)
    n_terms, noise = int(rng.integers(1, 4)), (Gaussian, Laplace, Uniform)[rng.integers(3)](0.4)
    cases = []
    for _ in range(3):
        steps = [StepFunction(at, np.sort(rng.normal(size=2)), [0, *rng.integers(-6, 7, 2)]) for at in range(n_terms)]
        threat = Threat(norm=float(rng.choice([1.0, 2.0, math.inf])) if not cases else cases[0].threat.norm)
        rows = rng.normal(0.0, 1.5, (3, n_terms)) if not cases else cases[0].rows
        cases.append(Case(AdditiveEnsemble(steps, int(rng.integers(-4, 4)), n_terms), rows, noise, threat, steps))
    model = WeightedVote([case.model for case in cases], [1.0, 0.8, float(rng.choice([-0.7, 0.7]))])
    found = certify(model, cases[0].rows, noise, rule=rule, threat=cases[0].threat, n_jobs=1)
    tried, broken = 0, []
    for at in np.flatnonzero((found.radius > 0) & (found.radius < math.inf)):
        rows = np.array(
            [
                moved
                for case in cases
                for label in (0, 1)
                for moved in find_witnesses(case, case.rows[at], label, float(found.radius[at]))
            ]
        )
        if rows.size:
            tried += len(rows)
            if (certify(model, rows, noise, rule=rule, n_jobs=1).label != found.label[at]).any():
                broken.append(f"seed {seed}, row {at}")
    return tried, broken


@pytest.mark.parametrize("rule", ["mean", "vote"])
@pytest.mark.parametrize("count", [pytest.param(10, id="few"), pytest.param(3000, id="many", marks=pytest.mark.long)])
def test_no_change_within_the_radius_flips_a_vote_of_ensembles(count: int, rule: str) -> None:
    """The worst rows of each member are tried on the vote of all."""
    outcomes = [break_members(seed, rule) for seed in range(count)]
    assert [line for _, broken in outcomes for line in broken] == []
    assert sum(tried for tried, _ in outcomes) > count


def reaches(case: Case, row: np.ndarray, label: int, radius: float) -> bool:
    """Whether a change within the radius brings the mean to the threshold, but for what single precision blurs."""
    mean = expect(case, worsen(case, row, label, radius)[None])[0]
    slack = math.ceil(case.model.score_error) + 2e-6 * sum(float(np.ptp(step.scores)) for step in case.steps)
    return bool(mean - slack <= case.model.threshold if label else mean + slack >= case.model.threshold)


def test_a_radius_in_linf_is_nearly_the_distance_at_which_the_mean_flips() -> None:
    """At least 99 % of it, in 95 % of all cases: windows have no gap but that of knots."""
    tight = []
    for seed in range(50):
        case = draw_case(np.random.default_rng(seed + 10**6), norms=(math.inf,), own_ball=0.0)
        found = certify(case.model, case.rows, case.noise, rule="mean", threat=case.threat, n_jobs=1)
        for row, label, radius in zip(case.rows, found.label, found.radius, strict=True):
            if 0 < radius < math.inf:
                tight.append(reaches(case, row, int(label), radius / 0.99))
    assert len(tight) > 50
    assert np.mean(tight) >= 0.95


@pytest.mark.parametrize("kind", [Gaussian, Laplace, Uniform])
@pytest.mark.parametrize("n_terms", [10, 24])
def test_a_radius_in_l2_of_many_equal_stumps_is_nearly_exact(kind: Any, n_terms: int) -> None:
    """Many equal stumps at equal places: moving all of them alike is an attack, and the dual is within 5 % of it."""
    steps = [StepFunction(at, [0.0], [0, 2]) for at in range(n_terms)]
    rows = np.repeat(np.linspace(0.1, 1.0, 4)[:, None], n_terms, axis=1)
    found = certify(
        AdditiveEnsemble(steps, n_terms, n_terms), rows, kind(0.5), rule="mean", threat=Threat(norm=2), n_jobs=1
    )
    case = Case(AdditiveEnsemble(steps, n_terms, n_terms), rows, found.noise, found.threat, steps)
    for row, radius in zip(rows, found.radius, strict=True):
        attacks = [row[0] * math.sqrt(n_terms)]
        attacks += [one for one in np.linspace(0.5, 1.0, 9) * attacks[0] if reaches(case, row, 1, one)]
        assert 0.95 * min(attacks) <= radius <= min(attacks) * (1 + 1e-9)


@pytest.mark.parametrize("kind", [Gaussian, Laplace, Uniform])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_the_radius_of_one_stump_is_its_distance_to_the_edge(kind: Any, norm: float) -> None:
    """In linf for every distance; in l1 and l2, where a price leaves a gap, while the curve has a slope."""
    model = AdditiveEnsemble([StepFunction(0, [2000.0], [0, 2])], 1, 1)
    far = np.array([-0.9, -0.3, -0.05, 0.02, 0.4, 0.8] if norm != math.inf else [-900.0, -20.0, -0.3, 0.05, 3.0, 150.0])
    far *= {Gaussian: 1.0, Laplace: 0.5, Uniform: 1.0}[kind] if norm != math.inf else 1.0
    found = certify(model, 2000.0 + 0.1 * far[:, None], kind(0.1), rule="mean", threat=Threat(norm=norm), n_jobs=1)
    assert found.label.tolist() == (far > 0).astype(int).tolist()
    assert (found.radius <= 0.1 * np.abs(far) * (1 + 1e-9)).all()
    share = 0.99 if norm == math.inf else 0.9
    knots = 1e-5 if norm == math.inf else 0.1 / 32  # nearer to an edge than its knots lie apart, little is proven
    assert (found.radius >= share * 0.1 * np.abs(far) - knots).all()


@pytest.mark.parametrize("scale", [8, 200])
@pytest.mark.parametrize("kind", [Gaussian, Laplace, Uniform])
def test_numbers_that_are_coarse_beside_the_noise(kind: Any, scale: int) -> None:
    """Noise of a few units in the last place: every double around the row is tried."""
    rng = np.random.default_rng(scale)
    for base in (2000.0, 1e8):
        ulp = float(np.spacing(base))
        noise, edges = kind(scale * ulp), base + np.array([0.0, round(0.7 * scale), round(3.1 * scale)]) * ulp
        model = AdditiveEnsemble([StepFunction(0, edges, [0, 500, 400, 1000])], int(rng.integers(100, 900)), 1)
        places = base + np.arange(-12 * scale, 12 * scale, max(1, scale // 50)) * ulp
        labels = certify(model, places[:, None], noise, rule="mean", n_jobs=1).label
        for norm in (1, 2, math.inf):
            rows = rng.choice(places, 40)
            found = certify(model, rows[:, None], noise, rule="mean", threat=Threat(norm=norm), n_jobs=1)
            for x, label, radius in zip(rows, found.label, found.radius, strict=True):
                assert (labels[np.abs(places - x) < radius] == label).all()


@pytest.mark.parametrize("rule", ["mean", "vote"])
@pytest.mark.parametrize("norm", [0, 1, 2, math.inf])
def test_units_far_from_the_scale_of_the_noise(rule: str, norm: float) -> None:
    """A unit of any size: no crash, and no radius beyond the distance at which the label is another one."""
    steps = [StepFunction(0, [0.0], [0, 3]), StepFunction(1, [-1.0, 1.0], [0, 5, 2])]
    rows = np.array([[0.5, 0.2], [-2.0, -3.0], [1e308, -1e308], [1e-300, 1.0]])
    units = (2e-300, 1e-160, 1.0, 1e160, 9e299)
    for noise, unit in product((Gaussian(0.25), Laplace(1e-200), Uniform(1e200)), units):
        model = AdditiveEnsemble(steps, 3, 2)
        found = certify(model, rows, noise, rule=rule, threat=Threat(norm=norm, units=(unit, 1.0)), n_jobs=1)
        assert found.label.tolist() == certify(model, rows, noise, rule=rule, n_jobs=1).label.tolist()
        assert (found.radius >= 0).all()
        if norm:
            assert np.isfinite(found.radius).all()


@pytest.mark.parametrize("rule", ["mean", "vote"])
def test_rows_alone_have_the_radius_that_they_have_among_others(rule: str) -> None:
    """Bit for bit, whatever rows stand beside them and however many threads there are."""
    for seed in range(3):
        case = draw_case(np.random.default_rng(seed), n_rows=70, norms=(1, 2, math.inf))

        def fresh(case: Case = case) -> AdditiveEnsemble:
            model = case.model  # tables are kept with a model: each call gets one of its own
            return AdditiveEnsemble(model.terms, model.threshold, model.n_features, score_error=model.score_error)

        many, threaded = (
            certify(fresh(), case.rows, case.noise, rule=rule, threat=case.threat, n_jobs=n_jobs) for n_jobs in (1, 2)
        )
        assert many.radius.tolist() == threaded.radius.tolist()
        alone = [
            certify(fresh(), case.rows[[at]], case.noise, rule=rule, threat=case.threat, n_jobs=1).radius[0]
            for at in range(0, 70, 9)
        ]
        assert alone == many.radius[::9].tolist()
