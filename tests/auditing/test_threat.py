"""The audit's own reading of a threat: equal to what certificates mean to the last bit, and shared with nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Certificates,
    LinearTerm,
    StepFunction,
    Threat,
    audit,
    certify,
    certify_interval,
)
from derand.auditing._threat import AllowedChanges
from derand.certificates import PROOFS
from derand.model import Value
from derand.perturbation import Perturbation

N_NUMBERS, CODE = 3, 3
TERMS = [StepFunction(at, [0.0], [0, 10], missing=10) for at in range(N_NUMBERS)]
MODEL = AdditiveEnsemble([*TERMS, CategoryTable(CODE, [0, 1, 2], [0, 0, -20], 0)], 5, n_features=4)
ROW = np.array([[1.0, -100.0, -100.0, 0.0]])
"""Class 1 by the first number alone, which turns where it falls below 0."""


LIMITED = Threat(norm=None, limits={0: 0.5}, domain={0: (-9, 9)}, l0=0)

FAULTS: dict[str, tuple[Threat, Threat]] = {
    "percent": (Threat(norm=None, limits={0: "150%"}), Threat(norm=None, limits={0: "1.5%"})),
    "absolute": (Threat(norm=None, limits={0: 1.5}), Threat(norm=None, limits={0: 0.5})),
    "pair": (Threat(norm=None, limits={0: (1.5, 0.25)}), Threat(norm=None, limits={0: (0.25, 1.5)})),
    "every": (Threat(norm=None, limits={"*": 1.5, 1: 0.1}), Threat(norm=None, limits={1: 0.1})),
    "own limit": (Threat(norm=None, limits={"*": 0.1, 0: 1.5}), Threat(norm=None, limits={"*": 0.1})),
    "domain": (Threat(norm=None, domain={0: (-1, 2)}), Threat(norm=None, domain={0: (0, 2)})),
    "domain beside limits": (
        Threat(norm=None, limits={0: 3}, domain={0: (-1, 2)}),
        Threat(norm=None, limits={0: 3}, domain={0: (0, 2)}),
    ),
    "frozen": (Threat(norm=None, limits={"*": 1.5}, frozen=[1]), Threat(norm=None, limits={"*": 1.5}, frozen=[0, 1])),
    "steps": (Threat(norm=None, limits={0: 1.5}, steps={0: 0.25}), Threat(norm=None, limits={0: 1.5}, steps={0: 1})),
    "l0": (Threat(norm=None, limits={0: 0.5}, l0=1), LIMITED),
    "may_become": (Threat(norm=None, l0=1, may_become={CODE: [2]}), Threat(norm=None, l0=1, may_become={CODE: [1]})),
    "unseen": (Threat(norm=None, l0=1, unseen=True), Threat(norm=None, l0=1, unseen=False)),
    "missing": (Threat(norm=None, limits={0: 0.5}, missing=1), LIMITED),
    "units": (Threat(norm=2, units=(2.0, 1, 1, 1)), Threat(norm=2, units=(1.0, 1, 1, 1))),
    "norm": (Threat(norm=math.inf), Threat(norm=1)),
    "no norm": (Threat(norm=2, limits={1: 0.5}), Threat(norm=None, limits={1: 0.5})),
    "norm 0": (Threat(norm=0), Threat(norm=2)),
}
"""For each field a threat that is claimed, and a smaller one that a fault makes of it."""

SEVERAL = AdditiveEnsemble([StepFunction(at, [0.0], [0, 10]) for at in range(2)], 5, n_features=4)
"""Turns where both numbers fall below 0: half as far in linf as in l1."""
OF_FAULT = {
    "norm": (SEVERAL, np.array([[1.0, 1.0, 0.0, 0.0]])),
    "unseen": (
        AdditiveEnsemble([TERMS[0], CategoryTable(CODE, [0, 1], [0, 0], -20)], 5, n_features=4),
        ROW,
    ),
    "missing": (
        AdditiveEnsemble([StepFunction(0, [0.0], [0, 10], missing=0), *TERMS[1:]], 5, n_features=4),
        ROW,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_certificate_of_a_smaller_threat_is_refused(name: str) -> None:
    """Whatever field was read wrongly: what is claimed is what the threat of the certificate says."""
    claimed, smaller = FAULTS[name]
    model, rows = OF_FAULT.get(name, (MODEL, ROW))
    wrong = certify(model, rows, None, rule="mean", threat=smaller)
    assert wrong.radius[0] > 0
    assert audit(model, rows, wrong).passed
    found = audit(model, rows, replace(wrong, threat=claimed, flips=None, witness=None, worst=None))
    assert found.claim.tolist() == ["radius"]
    honest = certify(model, rows, None, rule="mean", threat=claimed)
    assert audit(model, rows, honest).passed


def shrink_box(self: Perturbation, rows: Any) -> Any:
    own = np.array(rows, dtype=np.float64)
    return own, own.copy()


PLANTED: dict[str, tuple[Threat, Any]] = {
    "units": (Threat(norm=2, units=(2.0, 1, 1, 1)), np.ones(4)),
    "steps": (Threat(norm=None, limits={0: 1.5}, steps={0: 0.25}), np.full(4, 2.0)),
    "free": (Threat(norm=None, limits={0: 1.5}), np.zeros(4, dtype=bool)),
    "down": (Threat(norm=None, limits={0: 1.5}), np.zeros(4)),
    "share": (Threat(norm=None, limits={0: "150%"}), np.zeros(4)),
    "least": (Threat(norm=None, domain={0: (-1, 2)}), np.zeros(4)),
    "missing_budget": (Threat(norm=None, limits={0: 0.5}, missing=1), 0),
    "norm": (Threat(norm=math.inf), 1),
}
"""For each field of a perturbation that certificates rest on a threat, and a wrong value of the field."""


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_in_resolving_a_threat_does_not_pass_the_audit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault is there while the audit runs, too."""
    threat, wrong_value = PLANTED[name]
    model, rows = OF_FAULT.get({"missing_budget": "missing", "norm": "norm"}.get(name, ""), (MODEL, ROW))
    assert audit(model, rows, certify(model, rows, None, rule="mean", threat=threat)).passed
    right = Perturbation.of.__func__  # type: ignore[attr-defined]
    wrong_of = classmethod(lambda cls, *given: replace(right(cls, *given), **{name: wrong_value}))
    monkeypatch.setattr(Perturbation, "of", wrong_of)
    wrong = certify(model, rows, None, rule="mean", threat=threat)
    assert wrong.radius[0] > 0
    assert not audit(model, rows, replace(wrong, flips=None, witness=None)).passed


def test_a_faulty_box_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of steps, lines and intervals."""
    threat = Threat(norm=None, limits={0: 1.5})
    line = AdditiveEnsemble([LinearTerm(0, [1.0])], 0, n_features=1)
    number = AdditiveEnsemble([StepFunction(0, [0.0], [0, 10])], Value(0), n_features=1)
    monkeypatch.setattr(Perturbation, "box", shrink_box)
    wrong = certify(MODEL, ROW, None, rule="mean", threat=threat)
    assert not audit(MODEL, ROW, replace(wrong, flips=None, witness=None)).passed
    wrong = certify(line, [[1.0]], None, rule="mean", threat=threat)
    assert audit(line, [[1.0]], replace(wrong, worst=None, flips=None, witness=None)).claim.tolist() == ["radius"]
    assert audit(line, [[1.0]], replace(wrong, radius=np.zeros(1), _proof=np.zeros(1, np.uint8))).claim == ["worst"]
    narrow = certify_interval(number, [[1.0]], None, radius=None, rule="mean", threat=threat)
    assert audit(number, [[1.0]], narrow).claim.tolist() == ["low"]


def refuse(*given: Any) -> Any:
    raise AssertionError("an audit asked a threat")


def test_no_audit_calls_a_method_of_threat(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for claimed, _ in FAULTS.values():
        found.append(certify(MODEL, ROW, None, rule="mean", threat=claimed))
        if claimed.norm != 0:
            found.append(certify(MODEL, ROW, "gaussian:0.5", threat=claimed))
    known = {one.name for one in fields(Threat)}
    for name in [name for name in vars(Threat) if not name.startswith("__") and name not in known]:
        monkeypatch.setattr(Threat, name, property(refuse))
    assert all(audit(MODEL, ROW, one).passed for one in found)


def draw_limit(rng: np.random.Generator, size: float) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: f"{rng.choice([0, 0.1, 3, 5, 7, 12.5, 33.3, 100, 1e-300, 1e300])}%",
        lambda: f"{rng.uniform(0, 200)}%",
        lambda: float(size * rng.exponential()),
        lambda: (float(size * rng.exponential()), float(size * rng.exponential())),
        lambda: (0.0, math.inf),
    ]
    return kinds[rng.integers(len(kinds))]()


@pytest.mark.parametrize("n_threats", [400, pytest.param(40_000, marks=pytest.mark.long)])
def test_ends_are_those_of_certificates_to_the_last_bit(n_threats: int) -> None:
    """Percentages, limits, domains and steps at every scale of doubles."""
    rng = np.random.default_rng(5)
    model = AdditiveEnsemble([StepFunction(at, [0.0], [0, 1]) for at in range(4)], 0, n_features=4)
    for _ in range(n_threats):
        size = 10.0 ** rng.uniform(-310, 302)
        near = rng.choice([1e-3, 1.0, 1e3])
        row = rng.normal(size=4) * size
        asked: dict[str, Any] = {"norm": [None, 2][rng.integers(2)]}
        named = [at for at in range(4) if rng.random() < 0.6]
        asked["limits"] = {at: draw_limit(rng, near * size) for at in named}
        if rng.random() < 0.3:
            asked["limits"]["*"] = draw_limit(rng, size)
        wide = {at: rng.exponential(size=2) * near * size for at in range(4) if rng.random() < 0.3}
        asked["domain"] = {at: (row[at] - down, row[at] + up) for at, (down, up) in wide.items()}
        step = size * 10.0 ** rng.uniform(-18, 1)
        if 1e-299 < step < 1e299:
            asked["steps"] = {at: step for at in range(4) if rng.random() < 0.4}
        taken = {*asked["limits"], *asked["domain"], *asked.get("steps", {})}
        asked["frozen"] = [at for at in range(4) if at not in taken and rng.random() < 0.3]
        threat = Threat(**asked)
        with np.errstate(over="ignore"):
            low, high = Perturbation.of(threat, 4, range(4)).box(row[None])
        read = AllowedChanges.read(threat, model)
        mine = [read.interval(at, float(row[at])) for at in range(4)]
        assert mine == list(zip(low[0].tolist(), high[0].tolist(), strict=True)), (threat, row.tolist())


@pytest.mark.parametrize(
    ("threat", "message"),
    [
        (Threat(norm=None, limits={"age": 5}), "`limits` .* by number to be audited, got 'age'"),
        (Threat(norm=None, limits={9: 5}), "`limits` .* got 9"),
        (Threat(norm=None, limits={CODE: 5}), "`limits` .* numerical columns"),
        (Threat(norm=None, may_become={0: [1.0]}), "`may_become` .* categorical columns"),
        (Threat(norm=None, frozen=["age"]), "`frozen` .* got 'age'"),
        (Threat(norm=None, whole=True, limits={0: 1}), "must name `whole` as `steps`"),
        (Threat(norm=2, units={"age": 5.0}), "`units` .* one number for each of the 4 columns"),
        (Threat(norm=2, units=[1.0]), "`units` .* one number for each of the 4 columns"),
    ],
)
def test_a_threat_that_is_not_spelt_out_is_refused(threat: Threat, message: str) -> None:
    """What it says of columns that nobody knows would count for nothing."""
    honest = certify(MODEL, ROW, None, rule="mean", threat=Threat(norm=None, limits={0: 0.5}))
    with pytest.raises(ValueError, match=message):
        audit(MODEL, ROW, replace(honest, threat=threat))


def test_an_interval_within_limits_has_no_radius() -> None:
    """A radius of 0 must not hide the limits that the threat names."""
    model = AdditiveEnsemble([StepFunction(0, [0.0], [0, 10])], Value(0), n_features=1)
    threat = Threat(norm=None, limits={0: 1.5})
    wide = certify_interval(model, [[1.0]], None, radius=None, rule="mean", threat=threat)
    narrow = replace(wide, low=wide.value, radius=0.0)
    assert audit(model, [[1.0]], narrow).claim.tolist() == ["low"]


def test_what_certificates_say_is_checked_or_named() -> None:
    """Worst scores, logarithms, proofs and blank masses; the rest is named."""
    box = certify(MODEL, ROW, None, rule="mean", threat=LIMITED)
    noisy = certify(MODEL, ROW, "gaussian:0.5", rule="mean", threat=LIMITED)
    vote = certify(MODEL, ROW, "gaussian:0.5")
    assert box.worst is not None
    assert noisy.worst is not None
    assert vote.path is not None
    forgeries: dict[str, list[Certificates]] = {
        "worst": [
            replace(box, worst=box.worst + 1),
            replace(box, worst=np.full(1, np.nan)),
            replace(noisy, worst=noisy.worst + 0.01),
            replace(vote, worst=np.zeros(1)),
        ],
        "failure": [
            replace(vote, log_failure=vote.log_failure - 1e-6),
            replace(vote, failure=np.full(1, np.nan)),
            replace(vote, log_failure=np.full(1, np.nan)),
            replace(box, log_failure=np.full(1, -3.0)),
        ],
        "proof": [
            replace(box, _proof=np.full(1, PROOFS.index("paper"), dtype=np.uint8)),
            replace(box, _proof=np.full(1, PROOFS.index("none"), dtype=np.uint8)),
            replace(vote, _proof=np.full(1, PROOFS.index("exact"), dtype=np.uint8)),
            replace(vote, radius=np.zeros(1)),
        ],
    }
    for claim, forged in forgeries.items():
        assert [audit(MODEL, ROW, one).claim.tolist() for one in forged] == [[claim]] * len(forged)
    for honest in (box, noisy, vote):
        found = audit(MODEL, ROW, honest)
        assert found.passed
        arrays = [one.name for one in fields(honest) if isinstance(getattr(honest, one.name), np.ndarray)]
        named = {name.lstrip("_") for name in arrays} - {"classes"} | {"proof"}
        assert named <= {*found.checked, *found.not_checked, "flips"}
    assert "path" in audit(MODEL, ROW, vote).not_checked
    assert "worst" in audit(MODEL, ROW, box).checked


def test_what_is_proven_is_not_said_to_be_left_out() -> None:
    """A blank failure mass is not said to be proven, nor a proof that was not looked at; each is named once."""
    mean, vote = (certify(MODEL, ROW, "gaussian:0.5", rule=rule) for rule in ("mean", "vote"))
    assert np.isnan(mean.failure).all()
    found = audit(MODEL, ROW, mean)
    assert found.checked == ("label", "radius")
    assert {"failure", "log_failure", "proof"} <= {*found.not_checked}
    assert audit(MODEL, ROW, vote).checked == ("label", "failure", "log_failure", "radius", "proof")
