"""Audits of linear models: what is certified is proven in fractions, what is forged by a hair is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from derand import AdditiveEnsemble, LinearTerm, Threat, audit, certify, certify_interval, certify_radius
from tests.certificates.lines import NORMS, draw_model, draw_rows, draw_threat

pytest.importorskip("flint")


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_certificates_are_proven_and_forged_ones_are_not(n_outputs: int, norm: float | None, gaps: bool) -> None:
    """Radii by one part in a thousand million, failure masses by one in a million, and witnesses of other rows."""
    rng = np.random.default_rng([4, n_outputs, NORMS.index(norm)])
    n_forged = 0
    asked = [("gaussian:0.5", "vote"), (None, "mean"), ("laplace:1", "vote"), ("uniform:2", "vote")]
    for turn in (0, 1):
        model = draw_model(rng, n_outputs, error=1e-14 * (turn % 2), gaps=gaps)
        rows = draw_rows(rng, model, 5)
        threat = draw_threat(rng, model, norm, l0=int(rng.integers(0, 2)))
        if norm and turn == 0:  # so that radii are finite
            threat = replace(threat, limits={}, l0=0)
        for noise, rule in asked[:2] if turn == 0 else asked[2:]:
            found = certify(model, rows, noise, rule=rule, threat=threat)
            assert audit(model, rows, found).passed
            if turn % 2:
                continue
            finite = np.isfinite(found.radius) & (found.radius > 0)
            if norm and rule == "mean":
                larger = audit(model, rows, replace(found, radius=found.radius * (1 + 1e-9)))
                assert (larger.claim[finite] == "radius").all()
                n_forged += int(finite.sum())
            if noise == "gaussian:0.5":
                less = audit(model, rows, replace(found, failure=found.failure * (1 - 1e-6)))
                told = (found.failure > 1e-290) & (found.failure < 0.49)
                assert (less.claim[told] == "failure").all()
                by_mass = certify(model, rows, noise, rule=rule, threat=threat, proof="paper")
                assert audit(model, rows, by_mass).passed
            other = (found.label + 1) % model.n_classes
            assert (audit(model, rows, replace(found, label=other)).claim == "label").all()
            if found.flips is not None:
                flipped = replace(found, flips=np.ones(len(rows), dtype=bool), witness=rows)
                assert set(audit(model, rows, flipped).claim.tolist()) == {"witness"}
    assert n_forged or not norm


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_intervals_are_proven_and_narrower_ones_are_not(norm: float | None, gaps: bool) -> None:
    """Ends by a part in ten million of the width, the radius of a tolerance by one in a million."""
    rng = np.random.default_rng([6, NORMS.index(norm)])
    for turn in (0, 1):
        model = draw_model(rng, 1, error=1e-14 * (turn % 2), number=True, gaps=gaps)
        rows = draw_rows(rng, model, 5)
        threat = draw_threat(rng, model, norm, l0=1)
        if norm in (0, None):
            threat = replace(threat, limits=dict.fromkeys(model.numerical_features, 3.0))
        radius = None if norm is None else 1.0 if norm == 0 else float(10.0 ** rng.uniform(-2, 1))
        found = certify_interval(model, rows, None, radius, rule="mean", threat=threat)
        assert audit(model, rows, found).passed
        back = certify_radius(model, rows, None, float(np.median(found.width)), rule="mean", threat=threat)
        assert audit(model, rows, back).passed
        if turn % 2 == 0:
            # an end that is beyond the value itself is told as a wrong value
            assert (audit(model, rows, replace(found, low=found.low + 1e-7 * found.width)).claim != "").all()
            assert (audit(model, rows, replace(found, high=found.high - 1e-7 * found.width)).claim != "").all()
            finite = np.isfinite(back.radius) & (back.radius > 0)
            if norm:
                larger = audit(model, rows, replace(back, radius=back.radius * (1 + 1e-6)))
                assert (larger.claim[finite] == "radius").all()


def test_errors_of_missing_numbers_and_of_slopes_alone_count() -> None:
    """A radius that leaves out how far a gap's score may be off is not proven, nor a mass of 0 under errors alone."""
    lines = [LinearTerm(0, [2.0], None, 9.0, [0.25]), LinearTerm(1, [4.0])]
    model, rows = AdditiveEnsemble(lines, 0, 2), np.array([[np.nan, 1.0]])
    found = certify(model, rows, None, rule="mean", threat=Threat(norm=2))
    assert audit(model, rows, found).passed
    forged = replace(found, radius=np.array([12.9 / 4]))  # 12.75 / 4 holds
    assert audit(model, rows, forged).claim.tolist() == ["radius"]
    flat, row = AdditiveEnsemble([LinearTerm(0, [0.0], [1e-3])], -1, 1), np.array([[5.0]])
    for noise in ("gaussian:2", "laplace:2", "uniform:2"):
        vote = certify(flat, row, noise, rule="vote")
        assert audit(flat, row, vote).passed
        none = audit(flat, row, replace(vote, failure=np.zeros(1)))
        assert none.claim.tolist() == ([""] if noise == "uniform:2" else ["failure"])
    goes = replace(found, threat=replace(found.threat, missing=1))
    with pytest.raises(ValueError, match="`missing` of Threat must be 'fixed'"):
        audit(model, rows, goes)
