"""Random ensembles, threats and rules: nothing that is claimed is unsound, and a planted fault is found."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from derand import Certificates, certify
from tests.fuzz import drawing
from tests.fuzz.checking import Tally, check_case, check_many
from tests.fuzz.drawing import Case
from tests.fuzz.strategies import CASES, share


@share(0.6)
@given(case=CASES)
def test_every_claim_about_a_drawn_case_is_sound(case: Case) -> None:
    """Failing masses, radii, verdicts, witnesses and worst scores against exact arithmetic and attacks."""
    tally = Tally()
    check_case(case, tally, Random(0))
    assert not tally.unsound, tally.unsound[0]


@share(0.1)
@given(case=CASES)
def test_infinite_numbers_are_refused(case: Case) -> None:
    """In every numerical column; as the code of a category infinity is one that nobody knows."""
    for column in range(case.model.n_features):
        rows = case.rows.copy()
        rows[-1, column] = math.inf
        if column in case.model.categorical_features:
            replace(case, rows=rows).certify()
        else:
            with pytest.raises(ValueError, match=r"infinit|finite|inf"):
                replace(case, rows=rows).certify()


@pytest.mark.parametrize("proof", ["paper", "dual", "exact"])
def test_radii_that_are_a_little_too_large_are_found(proof: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a per cent, in the radii of one proof alone: the check can fail, for each of them."""

    def enlarge(*arguments: Any, **options: Any) -> Certificates:
        found = certify(*arguments, **options)
        return replace(found, radius=np.where(found.proof == proof, found.radius * 1.005, found.radius))

    monkeypatch.setattr(drawing, "certify", enlarge)
    tally = Tally()
    for _ in check_many(400, 0, tally, most_faults=1):
        pass
    assert tally.unsound
    assert all(f"({proof})" in fault or "by the paper's proof" in fault for fault in tally.unsound)


def test_masses_that_are_a_little_too_small_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part in a million million."""

    def lower(*arguments: Any, **options: Any) -> Certificates:
        found = certify(*arguments, **options)
        return replace(found, failure=found.failure * (1 - 1e-12))

    monkeypatch.setattr(drawing, "certify", lower)
    tally = Tally()
    for _ in check_many(100, 0, tally, most_faults=1):
        pass
    assert any("failing mass" in fault for fault in tally.unsound)


def test_a_case_is_printed_as_python_that_builds_it() -> None:
    """What a failure prints can be run: it gives the same certificates."""
    from derand import AdditiveEnsemble, CategoryTable, Gaussian, Laplace, StepFunction, Threat, Uniform, WeightedVote

    names: dict[str, Any] = {
        one.__name__: one
        for one in (AdditiveEnsemble, CategoryTable, Gaussian, Laplace, StepFunction, Threat, Uniform, WeightedVote)
    }
    for seed in range(30):
        case = drawing.draw_case(Random(seed))
        again = eval(repr(case), {**names, "certify": certify, "nan": math.nan, "inf": math.inf})
        np.testing.assert_array_equal(again.radius, case.certify().radius)
