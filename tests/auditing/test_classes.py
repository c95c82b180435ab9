"""Audits of several classes: every duel of a label is proven, and what is forged about one of them is found."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, islice
from random import Random

import numpy as np
import pytest

from derand import AdditiveEnsemble, Certificates, Gaussian, StepFunction, Threat, Uniform, attack, audit, certify
from derand.auditing import _row_claims
from derand.certificates import PROOFS
from derand.model import Argmax
from tests.auditing.drawing import Drawn, draw_classes
from tests.fuzz.drawing import draw_case

EDGES = np.array([-0.5, 0.3])
MODEL = AdditiveEnsemble(
    [
        StepFunction(0, EDGES, [[9, 2, 0, 1], [2, 8, 1, 0], [0, 1, 9, 3]]),
        StepFunction(1, EDGES, [[5, 1, 2, 8], [0, 5, 3, 1], [2, 1, 6, 0]]),
    ],
    Argmax([0, 1, 0, -1]),
    n_features=2,
)
ROWS = np.array([[-1.3, -1.0], [0.0, 0.1], [1.1, 0.9], [-0.2, -1.4], [0.4, 0.7]])
CIRCLE = AdditiveEnsemble(
    [StepFunction(0, np.array([-0.28, 0.40]), [[2, 1, 0], [0, 2, 1], [1, 0, 2]])], Argmax([0, 0, 0]), 1
)
"""Under uniform noise on [-1, 1] each class beats the next one, and nobody wins all duels at 0."""


def certify_drawn(drawn: Drawn) -> Certificates | None:
    """None where the threat asks for missing numbers of a model that takes none."""
    if drawn.threat.missing_budget and not drawn.model.missing_features:
        return None
    return certify(drawn.model, drawn.rows, drawn.noise, rule=drawn.rule, threat=drawn.threat)


@pytest.mark.parametrize(
    ("first", "wanted"), [(0, 20), pytest.param(10**6, 1500, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_every_claim_about_random_models_is_proven(first: int, wanted: int) -> None:
    """Both rules, all noises, norms, limits, steps, frozen columns, categories and gaps."""
    pairs = ((seed, draw_classes(seed)) for seed in count(first))
    certified = ((seed, drawn, found) for seed, drawn in pairs if (found := certify_drawn(drawn)) is not None)
    n_claims = 0
    for seed, drawn, certificates in islice(certified, wanted):
        result = audit(drawn.model, drawn.rows, certificates)
        assert (result.verdict == "proven").all(), (seed, drawn, result.claim, result.claimed, result.proven)
        n_claims += int((certificates.radius > 0).sum())
    assert n_claims > 0.8 * wanted


@pytest.mark.parametrize("n_models", [60, pytest.param(2000, marks=pytest.mark.long)])
def test_claims_about_models_that_break_careless_arithmetic_are_proven(n_models: int) -> None:
    """Touching edges, rows an ulp beside them, far tails, huge and tiny scales, scores on a coarser grid."""
    for number in range(n_models):
        case = draw_case(Random(f"audit:{number}"), classes=(3, 4, 5))
        result = audit(case.model, case.rows, case.certify(), rows=None)
        assert (result.verdict == "proven").all(), (number, case, result.claim, result.claimed, result.proven)


def test_no_false_claim_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A radius beyond a flip that an attack found is false; nor is any other label proven, with any radius."""
    monkeypatch.setattr(_row_claims, "_HALVINGS", 1)  # which smaller radius is proven is asked by other tests
    n_false = 0
    for seed in range(8):
        drawn = draw_classes(seed)
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
        other = replace(certificates, label=(certificates.label + 1) % drawn.model.n_classes)
        held = np.flatnonzero(certificates.radius > 0)
        assert (audit(drawn.model, drawn.rows, other).verdict[held] == "not proven").all(), (seed, drawn)
    assert n_false > 7


@pytest.mark.parametrize("noise", [Gaussian(0.5), Uniform(1.0), None])
def test_a_radius_that_is_too_large_is_found(noise: Gaussian | None) -> None:
    """By a tenth of a percent where the proof is exact."""
    rule, proof = ("mean", "best") if noise is None else ("vote", "paper")
    certificates = certify(MODEL, ROWS, noise, rule=rule, proof=proof)
    at = np.flatnonzero((certificates.radius > 0) & np.isfinite(certificates.radius))
    assert at.size > 2
    result = audit(MODEL, ROWS, replace(certificates, radius=certificates.radius * 1.001))
    assert set(result.claim[at].tolist()) == {"radius"}
    assert (result.proven[at] >= certificates.radius[at] * 0.99).all()
    assert (result.proven[at] < result.claimed[at]).all()


@pytest.mark.parametrize("rule", ["vote", "mean"])
def test_a_rival_who_was_left_out_is_found(rule: str) -> None:
    """The radius of the second-nearest rival, with him as the runner-up: all that is wrong is that one is missing."""
    noise, n_found = Gaussian(0.5), 0
    certificates = certify(MODEL, ROWS, noise, rule=rule)
    assert certificates.runner_up is not None
    for at, row in enumerate(ROWS):
        label, first = int(certificates.label[at]), int(certificates.runner_up[at])
        others = {}
        for rival in {0, 1, 2, 3} - {label, first}:
            duel = MODEL.duel(min(label, rival), max(label, rival))
            others[rival] = certify(duel, row[None], noise, rule=rule)
        second = min(others, key=lambda rival: float(others[rival].radius[0]))
        if others[second].radius[0] < certificates.radius[at] * 1.05:
            continue
        forged = replace(
            certificates[[at]],
            radius=others[second].radius,
            failure=others[second].failure,
            runner_up=np.array([second]),
            _proof=np.array([PROOFS.index(str(others[second].proof[0]))], dtype=np.uint8),
        )
        assert not audit(MODEL, row[None], forged).passed
        n_found += 1
    assert n_found > 2


def test_other_forgeries_are_found() -> None:
    """A label that loses a duel, one that is no class, a failing mass, radii, and witnesses that flip nothing."""
    certificates = certify(MODEL, ROWS, "gaussian:0.5")
    size = len(certificates)
    assert audit(MODEL, ROWS, certificates).passed
    forgeries = {
        "failure": [replace(certificates, failure=certificates.failure * (1 - 1e-9))],
        "radius": [replace(certificates, radius=np.full(size, radius)) for radius in (np.inf, np.nan)],
        "label": [
            *(replace(certificates, label=(certificates.label + more) % 4) for more in (1, 2, 3)),
            *(
                replace(certificates, label=(certificates.label + more) % 4, radius=np.zeros(size))
                for more in (1, 2, 3)
            ),
            replace(certificates, label=np.full(size, 4)),
        ],
    }
    for claim, forged in forgeries.items():
        for one in forged:
            assert set(audit(MODEL, ROWS, one).claim.tolist()) == {claim}
    flipping = certify(MODEL, ROWS, "gaussian:0.5", threat=Threat(norm=None, limits={0: 3.0, 1: 3.0}))
    assert flipping.flips is not None
    assert flipping.flips.all()
    assert audit(MODEL, ROWS, flipping).passed
    assert set(audit(MODEL, ROWS, replace(flipping, witness=ROWS)).claim.tolist()) == {"witness"}


def test_the_runner_up_is_no_claim_but_says_whose_proof_is_named() -> None:
    """A radius that the other proof gives is not proven by the one that is named; without a runner-up any will do."""
    rng = np.random.default_rng(0)
    terms = [StepFunction(at, [-0.4, 0.3], rng.integers(-9, 10, (3, 3))) for at in range(4)]
    model, rows = AdditiveEnsemble(terms, Argmax([0, 0, 0]), 4), rng.normal(size=(12, 4))
    threat = Threat(norm=math.inf)
    best, paper = (certify(model, rows, "uniform:0.5", threat=threat, proof=proof) for proof in ("best", "paper"))
    at = np.flatnonzero(best.radius > paper.radius * 1.01)
    assert at.size
    misnamed = replace(best, _proof=np.full(len(best), PROOFS.index("paper"), dtype=np.uint8))
    assert set(audit(model, rows, misnamed).claim[at].tolist()) == {"proof"}
    assert audit(model, rows, replace(misnamed, runner_up=None)).passed
    assert audit(model, rows, replace(best, runner_up=best.label)).passed


def test_a_circle_of_classes_has_the_label_that_is_beaten_least() -> None:
    """Nobody wins all duels: the label is the class whose worst duel is best, and nothing more is proven."""
    certificates = certify(CIRCLE, [[0.0]], Uniform(1.0))
    assert (certificates.label.tolist(), certificates.radius.tolist()) == ([0], [0.0])
    assert audit(CIRCLE, [[0.0]], certificates).passed
    for label in (1, 2):
        assert audit(CIRCLE, [[0.0]], replace(certificates, label=np.array([label]))).claim == ["label"]
    for label in (0, 1, 2):
        forged = replace(certificates, label=np.array([label]), radius=np.array([1e-9]))
        assert not audit(CIRCLE, [[0.0]], forged).passed


def test_random_circles_of_classes() -> None:
    """As many classes as cells, each ahead of the next ones in turn: other labels are not proven."""
    n_circles = 0
    for seed in range(15):
        rng, n_classes = np.random.default_rng(seed), 3 + seed % 3
        masses = rng.dirichlet(np.full(n_classes, 40.0))
        scores = [np.roll(np.arange(n_classes)[::-1], turn) for turn in range(n_classes)]
        terms = [StepFunction(0, np.cumsum(masses)[:-1] * 2 - 1, np.array(scores))]
        model = AdditiveEnsemble(terms, Argmax([0] * n_classes), 1)
        certificates = certify(model, [[0.0]], Uniform(1.0))
        assert audit(model, [[0.0]], certificates).passed
        n_circles += int(certificates.failure[0] == 1)
        for label in set(range(n_classes)) - {int(certificates.label[0])}:
            forged = replace(certificates, label=np.array([label]), radius=np.zeros(1), failure=np.ones(1))
            assert audit(model, [[0.0]], forged).claim == ["label"]
    assert n_circles > 2


def test_classes_have_names() -> None:
    """Labels of any kind; a name that the model does not know is not proven."""
    names = np.array(["ash", "birch", "cedar", "elm"])
    certificates = certify(MODEL, ROWS, "gaussian:0.5").with_classes(names)
    assert audit(MODEL, ROWS, certificates).passed
    unknown = replace(certificates, label=np.full(len(ROWS), "oak"))
    assert set(audit(MODEL, ROWS, unknown).claim.tolist()) == {"label"}
