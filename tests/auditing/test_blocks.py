"""Terms of several columns under audit: votes are proven by masses, and nothing else is taken for proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from derand import audit, certify
from derand.certificates import Certificates
from tests.certificates.test_grids import NOISES, draw_model, draw_rows


def enlarge(found: Certificates, factor: float) -> Certificates:
    """The same certificates with larger radii."""
    return replace(found, radius=found.radius * factor)


@pytest.mark.parametrize("noise", NOISES)
def test_votes_are_proven_and_larger_radii_are_not(noise: str) -> None:
    for seed in range(2):
        model, rows = draw_model(seed, gaps=True), draw_rows(seed, 4)
        for at in model.missing_features:
            rows[at % 3, at] = np.nan
        found = certify(model, rows, noise, proof="paper")
        assert (audit(model, rows, found).verdict == "proven").all()
        held = np.flatnonzero((found.radius > 0) & np.isfinite(found.radius))
        assert held.size
        larger = audit(model, rows[held], enlarge(found[held], 1.01))
        assert (larger.verdict == "not proven").all()


def test_what_cannot_be_audited_is_not_proven() -> None:
    model, rows = draw_model(0), draw_rows(0, 4)
    with pytest.raises(ValueError, match=r"rule 'mean' of a model with a term of several columns .* cannot be audited"):
        audit(model, rows, certify(model, rows, "gaussian:0.4", rule="mean"))
    found = certify(model, rows, "gaussian:0.4")
    by_dual = np.flatnonzero(found.proof == "dual")
    verdict = audit(model, rows, found).verdict
    assert (verdict[by_dual] == "not proven").all()
