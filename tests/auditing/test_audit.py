"""Audits: every true claim is proven, by every rule and against every threat; forged ones are found."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import ndtr

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Certificates,
    Gaussian,
    Laplace,
    Noise,
    StepFunction,
    Threat,
    Uniform,
    WeightedVote,
    attack,
    audit,
    certify,
)
from derand.auditing import _audit, _machine, _row_claims, choose_rows, find_failed
from derand.certificates import PROOFS
from derand.estimators import TRAINERS
from tests.auditing.drawing import Drawn, draw
from tests.strategies import Problem, problems

MODEL = AdditiveEnsemble(
    [StepFunction(0, [0.0, 1.0], [0, 40, 25]), StepFunction(1, [-0.5, 0.25], [-10, 0, 30])], 30, n_features=2
)
ROWS = np.array([[0.7, 0.9], [-1.5, 0.2], [2.0, -2.0], [0.1, 0.3]])


def certify_drawn(drawn: Drawn) -> Certificates | None:
    """None where the threat asks for missing numbers of a model that takes none."""
    if drawn.threat.missing_budget and not drawn.model.missing_features:
        return None
    return certify(drawn.model, drawn.rows, drawn.noise, rule=drawn.rule, threat=drawn.threat)


def check_seeds(first: int, wanted: int) -> None:
    pairs = ((seed, draw(seed)) for seed in count(first))
    certified = ((seed, drawn, found) for seed, drawn in pairs if (found := certify_drawn(drawn)) is not None)
    for seed, drawn, certificates in islice(certified, wanted):
        result = audit(drawn.model, drawn.rows, certificates)
        assert (result.verdict == "proven").all(), (seed, drawn, result.claim, result.claimed, result.proven)


@pytest.mark.parametrize("n_models", [8, pytest.param(80, marks=pytest.mark.long)])
def test_every_claim_about_random_models_is_proven(n_models: int) -> None:
    """Both rules, all noises, norms, limits, steps, frozen columns, categories, gaps and votes of ensembles."""
    check_seeds(0, n_models)


@pytest.mark.long
def test_every_claim_about_many_random_models_is_proven() -> None:
    """The same, some thousand models."""
    check_seeds(10**6, 3000)


def test_no_false_claim_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A radius beyond a flip that an attack found is false, whatever the threat."""
    monkeypatch.setattr(_row_claims, "_HALVINGS", 1)  # which smaller radius is proven is asked by other tests
    n_false = 0
    for seed in range(3 * 10**6, 3 * 10**6 + 15):
        drawn = draw(seed)
        certificates = certify_drawn(drawn)
        if certificates is None:
            continue
        flips = attack(drawn.model, drawn.rows, drawn.noise, rule=drawn.rule, threat=drawn.threat)
        false = np.where(flips.norm is None, np.inf, flips.distance * (1 + 1e-9) + 1e-12)
        at = np.flatnonzero(flips.found)
        proof = np.full(len(flips), PROOFS.index(("paper", "dual")[seed % 2]), dtype=np.uint8)
        forged = replace(certificates, radius=np.where(flips.found, false, certificates.radius), _proof=proof)
        result = audit(drawn.model, drawn.rows[at], forged[at], rows=None)
        assert (result.verdict == "not proven").all(), (seed, drawn, result.claimed, result.claim)
        n_false += at.size
    assert n_false > 15


@given(problems(max_terms=4))
@settings(max_examples=25)
def test_claims_about_models_that_break_careless_arithmetic_are_proven(problem: Problem) -> None:
    """Touching edges, rows an ulp beside them, far tails, huge and tiny scales."""
    for rule in ("vote", "mean"):
        certificates = certify(problem.model, problem.rows, problem.noise, rule=rule)
        result = audit(problem.model, problem.rows, certificates)
        assert (result.verdict == "proven").all(), (rule, result.claim, result.claimed, result.proven)


@pytest.mark.parametrize("noise", [Gaussian(0.5), Uniform(1.0), None])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_radius_that_is_too_large_is_found(noise: Gaussian | None, norm: float) -> None:
    """By a tenth of a percent where the proof is exact; a price per distance may be less than what is true."""
    rule, more = ("mean", 1.001) if noise is None else ("vote", 1.001)
    threat = Threat(norm=norm)
    proof = "best" if noise is None else "paper"
    certificates = certify(MODEL, ROWS, noise, rule=rule, threat=threat, proof=proof)
    own = noise is None or norm == noise.norm
    finite = np.flatnonzero((certificates.radius > 0) & np.isfinite(certificates.radius))
    assert finite.size
    forged = replace(certificates, radius=certificates.radius * (more if own else 3.0))
    result = audit(MODEL, ROWS, forged)
    found = result.verdict[finite] == "not proven"
    assert found.all() if noise is None else found.any()
    assert (result.claim[finite][found] == "radius").all()
    assert (result.proven[finite][found] <= result.claimed[finite][found]).all()
    assert (result.proven[finite][found] >= certificates.radius[finite][found] * 0.99).all()


def test_no_mass_is_no_infinite_radius() -> None:
    """Bounded noise may not reach the other side at all: then the radius is its half-width, and no more."""
    certificates = certify(MODEL, [[0.5, 5.0]], Uniform(0.25), proof="paper")
    assert certificates.failure.tolist() == [0.0]
    assert 0.249 < certificates.radius[0] < 0.25
    assert audit(MODEL, [[0.5, 5.0]], certificates).passed
    for forged in (0.2501, 3.0, math.inf):
        assert not audit(MODEL, [[0.5, 5.0]], replace(certificates, radius=np.array([forged]))).passed


def test_what_one_member_of_a_vote_knows_may_reach_another() -> None:
    """Without unseen values, too, a category of one table may be an unknown one of the next."""
    tables = [CategoryTable(0, [0.0], [7], 14), CategoryTable(0, [1.0, 3.0], [-4, 2], 9)]
    vote = WeightedVote([AdditiveEnsemble([table], 7, 1) for table in tables], [0.1, 0.2])
    certificates = certify(vote, [[3.0]], "gaussian:1", threat=Threat(l0=1, unseen=False))
    assert certificates.radius.tolist() == [0.0]
    assert audit(vote, [[3.0]], certificates).passed
    assert not audit(vote, [[3.0]], replace(certificates, radius=np.array([np.inf]))).passed


def test_other_forgeries_are_found() -> None:
    """A label, a failing mass, an infinite radius, one that is no number, and a witness that flips nothing."""
    certificates = certify(MODEL, ROWS, "gaussian:0.5")
    forgeries = {
        "label": replace(certificates, label=1 - certificates.label),
        "failure": replace(certificates, failure=certificates.failure * (1 - 1e-9)),
        "radius": replace(certificates, radius=np.full(4, np.inf)),
    }
    for claim, forged in forgeries.items():
        result = audit(MODEL, ROWS, forged)
        assert set(result.claim.tolist()) == {claim}
        assert not result.passed
    assert set(audit(MODEL, ROWS, replace(certificates, radius=np.full(4, np.nan))).claim.tolist()) == {"radius"}
    limits = Threat(norm=None, limits={0: 3.0, 1: 3.0})
    flipping = certify(MODEL, ROWS, "gaussian:0.5", threat=limits)
    assert flipping.flips is not None
    assert flipping.flips.any()
    assert audit(MODEL, ROWS, flipping).passed
    still = replace(flipping, witness=ROWS)
    assert (audit(MODEL, ROWS, still).claim[flipping.flips] == "witness").all()
    narrow = certify(MODEL, ROWS, "gaussian:0.5", threat=Threat(norm=None, limits={0: 0.01}))
    nothing = np.full(4, PROOFS.index("none"), dtype=np.uint8)
    beyond = replace(narrow, radius=np.zeros(4), flips=flipping.flips, witness=flipping.witness, _proof=nothing)
    assert (audit(MODEL, ROWS, beyond).claim[flipping.flips] == "witness").all()


@pytest.mark.parametrize("name", sorted(TRAINERS))
def test_models_of_every_trainer(name: str) -> None:
    """What each trainer's own `certify` claims is proven by its `audit`, in the user's own table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.normal(size=120) > 0, "yes", "no")
    classifier = TRAINERS[name]().fit(X, y)
    certificates = classifier.certify(X[:12])
    result = classifier.audit(X[:12], certificates)
    assert result.passed
    assert len(result.to_pandas()) == 12
    assert "12 of 12" in repr(result)


def test_rows_are_drawn_by_seed() -> None:
    """As many as asked for, in order, and always the same."""
    certificates = certify(MODEL, np.tile(ROWS, (5, 1)), "gaussian:0.5")
    X = np.tile(ROWS, (5, 1))
    first, again = (audit(MODEL, X, certificates, rows=6, random_state=3) for _ in range(2))
    assert first.row.tolist() == again.row.tolist() == sorted(first.row.tolist())
    assert len(first) == 6
    assert first.n_rows == 20
    assert choose_rows(20, None, 0).tolist() == list(range(20))


def test_bad_input() -> None:
    """One clear error each."""
    certificates = certify(MODEL, ROWS, "gaussian:0.5")
    with pytest.raises(ValueError, match="must hold the 4 rows"):
        audit(MODEL, ROWS[:2], certificates)
    with pytest.raises(ValueError, match="`rows` must be a number of rows"):
        audit(MODEL, ROWS, certificates, rows=0)
    with pytest.raises(TypeError, match="must be Certificates"):
        audit(MODEL, ROWS, [1.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be an AdditiveEnsemble or a WeightedVote"):
        audit("model", ROWS, certificates)  # type: ignore[arg-type]


def test_a_machine_that_fails_its_tests_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masses that are too small on a machine are named, and nothing passes there."""
    original = Gaussian.cell_probabilities
    monkeypatch.setattr(Gaussian, "cell_probabilities", lambda *given: original(*given) * (1 - 1e-9))
    monkeypatch.setattr(_audit, "check_machine", _machine.check_machine)
    checks = _machine.check_machine()
    assert find_failed(checks) == ["masses of cells under gaussian noise: some lie on the wrong side"]
    certificates = certify(MODEL, ROWS, "uniform:0.5")
    result = audit(MODEL, ROWS, certificates)
    assert not result.passed
    assert "failed its tests" in repr(result)


def _claim(threat: Threat, radius: float, rule: str = "mean", noise: Noise | None = None, **more: Any) -> Certificates:
    """A claim that class 1 holds, by hand."""
    nothing = np.array([np.nan])
    proof = np.array([PROOFS.index("dual" if radius else "none")], dtype=np.uint8)
    about: dict[str, Any] = {"rule": rule, "noise": noise, "_proof": proof, **more}
    return Certificates(np.array([1]), nothing, nothing, np.array([radius]), threat.resolve(noise), **about)


@pytest.mark.parametrize("seed", [2, 3, 10])
def test_a_number_that_goes_missing_is_deducted_in_full(seed: int) -> None:
    # within limits alone; the least value of each function lies inside of its window, and is bounded to some digits
    rng, z = np.random.default_rng(seed), np.linspace(-2, 2, 400_001)
    count, noise = int(rng.integers(2, 5)), Gaussian(0.4)
    terms, lowest = [], []
    for at in range(count):
        edges = np.sort(rng.normal(size=2))
        scores = [int(10**9 * rng.uniform(*ends)) for ends in ((1, 2), (0, 0.5), (1, 2))]
        first, second = (ndtr((z - edge) / 0.4) for edge in edges)
        values = scores[0] + (scores[1] - scores[0]) * first + (scores[2] - scores[1]) * second
        lowest.append(float(values.min()))
        terms.append(StepFunction(at, edges, scores, missing=int(lowest[-1]) - 10**8))
    falls = sorted((value - int(term.missing or 0) for value, term in zip(lowest, terms, strict=True)), reverse=True)
    worst = sum(lowest) - sum(falls[: count - 1])
    threat = Threat(norm=None, limits=dict.fromkeys(range(count), 2.0), missing=count - 1)
    for above, verdict in ((6, "proven"), (-6, "not proven"), (-30, "not proven"), (-100, "not proven")):
        model = AdditiveEnsemble(terms, threshold=math.floor(worst) - above, n_features=count)
        found = audit(model, np.zeros((1, count)), _claim(threat, math.inf, noise=noise))
        assert found.verdict == [verdict]


@pytest.mark.parametrize("norm", [1.5, 2.5, 3.0])
@pytest.mark.parametrize("noise", [None, Gaussian(0.01)])
def test_a_ball_of_another_norm_is_not_one_of_l1_or_l2(norm: float, noise: Noise | None) -> None:
    model = AdditiveEnsemble([StepFunction(f, [0.0], [0, 10]) for f in range(2)], threshold=9, n_features=2)
    radius = 2 ** (1 / norm)  # both numbers must change their sign
    assert audit(model, [[1.0, 1.0]], _claim(Threat(norm=norm), 1.05 * radius, noise=noise)).verdict == ["not proven"]
    assert audit(model, [[1.0, 1.0]], _claim(Threat(norm=norm), 0.9, noise=noise)).verdict == ["proven"]


def test_steps_below_the_last_digit_of_a_number() -> None:
    model = AdditiveEnsemble([StepFunction(0, [1e17 + 160], [0, 10])], threshold=5, n_features=1)
    rows, threat = [[1e17 + 320]], Threat(norm=2, steps={0: 1.0})
    for radius, verdict in ((176.0, "proven"), (177.0, "not proven"), (math.inf, "not proven")):
        assert audit(model, rows, _claim(threat, radius)).verdict == [verdict]


@pytest.mark.parametrize(
    ("threat", "changed", "claim"),
    [
        (Threat(norm=None, limits={0: 3.0}), [-1.0, 0.0], ""),
        (Threat(norm=None, limits={0: 0.5}), [-1.0, 0.0], "witness"),
        (Threat(norm=None, frozen=(0,)), [-1.0, 0.0], "witness"),
        (Threat(norm=None, limits={0: 3.0}, steps={0: 0.75}), [-1.0, 0.0], "witness"),
        (Threat(norm=None, limits={0: 3.0}), [-1.0, 1.0], "witness"),
        (Threat(norm=None, limits={0: 3.0}, l0=1), [-1.0, 1.0], ""),
        (Threat(norm=None, limits={0: 3.0}, l0=1), [-1.0, 5.0], ""),
        (Threat(norm=None, limits={0: 3.0}, l0=1, unseen=False), [-1.0, 5.0], "witness"),
        (Threat(norm=None, limits={0: 3.0}, l0=1, may_become={1: (0.0,)}), [-1.0, 1.0], "witness"),
        (Threat(norm=None, limits={0: 3.0}), [math.nan, 0.0], "witness"),
        (Threat(norm=None, missing=1), [math.nan, 0.0], ""),
        (Threat(norm=None, limits={0: 3.0}), None, "witness"),
    ],
)
def test_a_witness_lies_within_the_threat(threat: Threat, changed: list[float] | None, claim: str) -> None:
    terms = [StepFunction(0, [0.0], [0, 10], missing=0), CategoryTable(1, [0, 1], [0, 0], 0)]
    model = AdditiveEnsemble(terms, threshold=5, n_features=2)
    witness = None if changed is None else np.array([changed])
    claimed = _claim(threat, 0.0, flips=np.array([True]), witness=witness)
    assert audit(model, [[1.0, 0.0]], claimed).claim == [claim]


@pytest.mark.parametrize("scale", [1e-299, 1.6e-162, 1e155, 1e299])
@pytest.mark.parametrize("noise", [Gaussian, Uniform, Laplace])
def test_scales_whose_squares_are_no_doubles(scale: float, noise: type[Noise]) -> None:
    edges = np.array([-0.5, 0.0, 0.7])
    terms = [StepFunction(f, edges * scale, [3, -8, 5, 9]) for f in range(2)]
    model = AdditiveEnsemble(terms, threshold=5, n_features=2)
    rows = np.array([[1.2, 0.9], [0.1, -0.6]]) * scale
    for norm in (1, 2, math.inf):
        certificates = certify(model, rows, noise(0.5, (scale, scale)), rule="mean", threat=Threat(norm=norm))
        assert audit(model, rows, certificates).passed, norm


def test_columns_that_a_coarser_grid_does_not_see_take_nothing_off() -> None:
    terms = [StepFunction(0, [0.0], [0, 20_000_000]), StepFunction(1, [0.0, 1.0], [0, 1, 18])]
    model = AdditiveEnsemble(terms, threshold=9_000_000, n_features=2)
    certificates = certify(model, [[0.3, 0.2]], Uniform(1.0), threat=Threat(norm=math.inf), proof="paper")
    assert certificates.radius[0] > 0.29
    assert audit(model, [[0.3, 0.2]], certificates).passed


def test_rows_that_no_claim_can_be_about_are_refused() -> None:
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 10])], threshold=5, n_features=1)
    with pytest.raises(ValueError, match="finite"):
        audit(model, [[math.inf]], _claim(Threat(norm=2), 1.0))
    with pytest.raises(ValueError, match="missing"):
        audit(model, [[math.nan]], _claim(Threat(norm=2), 1.0))
    with pytest.raises(ValueError, match="domain"):
        audit(model, [[1.0]], _claim(Threat(norm=None, domain={0: (-5, -5)}), math.inf))


def test_a_failing_mass_that_no_rule_claims_is_not_proven() -> None:
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 10])], threshold=5, n_features=1)
    claimed = replace(_claim(Threat(norm=2), 0.5), failure=np.array([0.25]))
    assert audit(model, [[1.0]], claimed).claim == ["failure"]


def test_cells_that_differ_by_hundreds_of_digits() -> None:
    """No tilt suits a sum of such; of few cells all combinations are added up."""
    terms = [
        StepFunction(0, [-1.045282815188699, -0.04528281518869903], [-1123, -185, 131]),
        StepFunction(1, [0.00047961768046778363], [-946, -283]),
        StepFunction(2, [0.0, 5e-324], [-768, -225, -1621]),
    ]
    model = AdditiveEnsemble(terms, threshold=-1171, n_features=3)
    rows = [[-0.716148017287848, -0.0009293976818335495, -1000.0]]
    certificates = certify(model, rows, Laplace(0.001))
    assert 1e-300 < certificates.failure[0] < 1e-290
    assert audit(model, rows, certificates).passed
    assert not audit(model, rows, replace(certificates, failure=certificates.failure * (1 - 1e-9))).passed
