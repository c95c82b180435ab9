"""Random ensembles against exact arithmetic, by the command, and what it prints."""

from __future__ import annotations

import pytest

from derand.noise import NOISES
from scripts.check_against_oracle import check_against_oracle, describe


@pytest.mark.parametrize("n_ensembles", [150, pytest.param(5000, marks=pytest.mark.long)])
def test_no_claim_about_random_ensembles_is_unsound(n_ensembles: int) -> None:
    """Every rule, noise, norm and proof is among the claims, and none is broken."""
    tally = check_against_oracle(n_ensembles, seed=1)
    assert tally.unsound == []
    assert tally.ensembles >= n_ensembles
    assert set(tally.claims["rule"]) == {"vote", "mean"}
    assert set(tally.claims["noise"]) == {"none", *NOISES}
    assert set(tally.claims["norm"]) == {"0", "1", "2", "inf", "None"}
    assert set(tally.claims["proof"]) == {"paper", "dual", "exact"}
    text = describe(tally)
    assert f"ensembles {tally.ensembles:,}" in text
    assert text.endswith("unsound 0")
