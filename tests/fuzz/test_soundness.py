"""Random ensembles, threats and rules: nothing that is claimed is unsound, and a planted fault is found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from derand import Certificates, Threat, attack, certify
from derand.certificates.bounds import pairwise as _duels
from derand.model import Argmax, Threshold
from tests.fuzz import drawing
from tests.fuzz.checking import Tally, check_case, check_many, is_coarse
from tests.fuzz.classes import list_labels
from tests.fuzz.drawing import Case
from tests.fuzz.exact import is_allowed
from tests.fuzz.strategies import CASES, share


def draw_several(random: Random) -> Case:
    return drawing.draw_case(random, classes=(3, 4, 5))


def enlarge_radii(proof: str) -> Callable[..., Certificates]:
    """`certify` with radii of one proof half a per cent too large."""

    def enlarge(*arguments: Any, **options: Any) -> Certificates:
        found = certify(*arguments, **options)
        return replace(found, radius=np.where(found.proof == proof, found.radius * 1.005, found.radius))

    return enlarge


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

    monkeypatch.setattr(drawing, "certify", enlarge_radii(proof))
    tally = Tally()
    for _ in check_many(400, 0, tally, most_faults=1):
        pass
    assert tally.unsound
    assert all(f"({proof})" in fault or "by the paper's proof" in fault for fault in tally.unsound)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.long)])
def test_every_claim_about_several_classes_is_sound(count: int) -> None:
    """Models of three to five classes: labels by exact laws of all scores, every duel of theirs attacked."""
    tally = Tally()
    for _ in check_many(count, 3, tally, draw=draw_several):
        pass
    assert not tally.unsound, tally.unsound[0]
    assert tally.several == count
    assert set(tally.claims["classes"]) == {"3", "4", "5"}
    assert set(tally.claims["rule"]) == {"vote", "mean"}


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.long)])
def test_every_claim_about_terms_of_several_columns_is_sound(count: int) -> None:
    """Two classes, functions of two or three columns among the terms: boxes one by one, attacked."""
    tally = Tally()
    for _ in check_many(count, 5, tally, draw=drawing.draw_grid_case):
        pass
    assert not tally.unsound, tally.unsound[0]
    assert set(tally.claims["rule"]) == {"vote", "mean"}
    assert set(tally.claims["proof"]) == {"paper", "dual", "exact"}


def test_masses_of_boxes_that_are_too_small_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a part in 10^12, where terms have several columns."""

    def shrink(*arguments: Any, **options: Any) -> Certificates:
        found = certify(*arguments, **options)
        return replace(found, failure=found.failure * (1 - 1e-12), log_failure=found.log_failure - 1e-12)

    monkeypatch.setattr(drawing, "certify", shrink)
    tally = Tally()
    for _ in check_many(200, 0, tally, most_faults=1, draw=drawing.draw_grid_case):
        pass
    assert "is less than the exact one" in tally.unsound[0]


@pytest.mark.parametrize("count", [15, pytest.param(300, marks=pytest.mark.long)])
def test_attacks_on_several_classes_find_true_flips_and_none_inside(count: int) -> None:
    """Each flip is allowed, gets the label that the attack says by its exact law, and lies outside of the radius."""
    n_found = 0
    for number in range(count):
        case = draw_several(Random(f"attacks:{number}"))
        found = attack(case.model, case.rows, case.noise, rule=case.rule, threat=case.threat)
        found.require_outside(case.certify())
        for at in np.flatnonzero(found.found):
            row, flip = case.rows[at], np.asarray(found.rows[at], dtype=np.float64)
            assert is_allowed(case, row, flip, math.nextafter(found.distance[at], math.inf) * (1 + 1e-12)), case
            if not is_coarse(case):
                assert int(found.flipped[at]) in list_labels(case, flip), case
                n_found += 1
    assert n_found > count / 2


@pytest.mark.parametrize("proof", ["paper", "dual", "exact"])
def test_radii_of_several_classes_that_are_too_large_are_found(proof: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a per cent, as for two classes."""
    monkeypatch.setattr(drawing, "certify", enlarge_radii(proof))
    tally = Tally()
    for _ in check_many(600, 0, tally, most_faults=1, draw=draw_several):
        pass
    assert tally.unsound


def test_a_duel_that_was_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """That with the first class: it may be the one that decides, and the radius is then too large."""
    write = _duels._Ledger.write

    def forget(self: Any, rows: Any, rivals: Any, found: Any) -> None:
        write(self, rows, rivals, found)
        self.radius[:, rows[rivals == 0], 0] = np.inf

    monkeypatch.setattr(_duels._Ledger, "write", forget)
    tally = Tally()
    for _ in check_many(300, 0, tally, most_faults=5, draw=draw_several):
        pass
    assert len(tally.unsound) >= 5
    assert all("against 0" in fault for fault in tally.unsound)


def test_a_label_that_loses_a_duel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class of the second place, with no radius."""

    def swap(*arguments: Any, **options: Any) -> Certificates:
        found = certify(*arguments, **options)
        assert found.runner_up is not None
        return replace(found, label=found.runner_up, runner_up=found.label, radius=np.zeros(len(found)))

    monkeypatch.setattr(drawing, "certify", swap)
    tally = Tally()
    for _ in check_many(100, 0, tally, most_faults=5, draw=draw_several):
        pass
    assert any("is none of" in fault for fault in tally.unsound)


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
    from derand import AdditiveEnsemble, CategoryTable, Gaussian, Laplace, StepFunction, Uniform, WeightedVote

    models = (AdditiveEnsemble, WeightedVote, StepFunction, CategoryTable, Threshold, Argmax)
    names: dict[str, Any] = {one.__name__: one for one in (*models, Gaussian, Laplace, Uniform, Threat)}
    for seed in range(30):
        case = drawing.draw_case(Random(seed))
        again = eval(repr(case), {**names, "certify": certify, "nan": math.nan, "inf": math.inf})
        np.testing.assert_array_equal(again.radius, case.certify().radius)
