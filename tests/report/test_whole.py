"""Reports speak of whole numbers where training had whole numbers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveEnsemble, AdditiveRegressor, StepFunction, StumpClassifier, Threat, UnsoundError
from derand.model import Argmax
from derand.report import Report
from derand.report._inputs import read_inputs, read_subject
from derand.report._settings import ReportSettings
from derand.report.sections.limits import describe_witness
from derand.report.sections.units import _describe_move
from derand.report.sections.weakest import search_flips


def make_loans() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"months": rng.integers(6, 48, 120), "phone": rng.integers(0, 2, 120)})
    frame["income"] = rng.lognormal(8, 0.5, 120)
    risk = frame.months / 20 + frame.phone - frame.income / 3000 + rng.normal(0, 0.3, 120)
    return frame, np.where(risk > 1, "late", "paid")


@pytest.fixture(scope="module")
def loans() -> tuple[StumpClassifier, pd.DataFrame, np.ndarray]:
    X, y = make_loans()
    return StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean").fit(X, y), X, y


def test_flips_of_counts_are_told_in_whole_numbers(loans: Any) -> None:
    """The nearest flip of all stays the yardstick; the changes that are listed are whole, and flip."""
    clf, X, y = loans
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    told = 0
    for row, attack in zip(range(20), search_flips(inputs, range(20)), strict=True):
        if not attack["found"]:
            continue
        assert attack["distance"] is not None
        assert attack["distance"] >= inputs.plain.radius[row]
        moved = {one["name"]: one["after"] for one in attack["changes"]}
        for name in ("months", "phone"):
            assert float(moved.get(name, 0)).is_integer()
        assert float(moved.get("phone", 0)) in (0, 1)
        told += "nearest flip found is at" in attack["whole"]
    assert told > 2


def test_a_whole_flip_inside_what_is_certified_ends_the_report(loans: Any) -> None:
    """It is a flip like any other."""
    clf, X, y = loans
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    wrong = tuple(replace(one, radius=one.radius * 5 + 1) for one in inputs.certificates)
    with pytest.raises(UnsoundError, match="rows flip inside what is certified"):
        search_flips(replace(inputs, certificates=wrong), range(10))


def test_a_page_says_what_stays_whole(loans: Any) -> None:
    """Moves are cut to whole numbers, the threat is told in words, and witnesses are whole where they can be."""
    clf, X, y = loans
    summary = Report(clf, X, y, threat=Threat(whole=True)).to_dict()
    counts = "Counts stay whole numbers: “months” and “phone” change by whole numbers alone."
    assert counts in summary["threat"]["sentences"]
    moves = {move["name"]: move for move in summary["moves"]}
    assert float(moves["months"]["half_of_rows"]).is_integer()
    assert not float(moves["income"]["half_of_rows"]).is_integer()
    assert "“phone”: no change" in moves["phone"]["sentence"]
    report = Report(clf, X, y, threat=Threat(norm=None, limits={"*": "10%"}))
    witnesses = report.to_dict()["verdicts"]["witnesses"]  # type: ignore[index]
    months = [change["after"] for one in witnesses for change in one["changes"] if change["name"] == "months"]
    assert months
    assert sum("." not in text for text in months) >= 0.8 * len(months)
    fractions = [one["attack"] for one in report.to_dict()["rows"]["explained"] if one["attack"]["found"]]
    assert all(("." in str(one["changes"])) or not one["whole"] for one in fractions)


def test_a_move_below_one_step_is_told() -> None:
    """A count does not move by 0.4."""
    assert "“months”: no move by 1" in _describe_move("months", 0.0, 2, "", (0, 9))


def test_intervals_tell_whole_numbers() -> None:
    """The same words of regressors."""
    X, _ = make_loans()
    reg = AdditiveRegressor(radius=0.1, regularization=1.0).fit(X, X.months * 2.0)
    summary = Report(reg, X[:20], threat=Threat(norm=None, limits={"months": 1.5}, whole=True)).to_dict()
    told = "Counts stay whole numbers: “months” changes by whole numbers alone."
    assert told in summary["threat"]["sentences"]


def test_witnesses_of_several_classes_name_the_answer_that_they_get() -> None:
    """Of three classes the other one is not always the next."""
    scores = [[9, 0, 0], [0, 9, 0], [0, 0, 9]]
    model = AdditiveEnsemble([StepFunction(0, [1.0, 2.0], scores)], Argmax([0, 0, 0]), 1)
    asked = ReportSettings(rule="mean", threat=Threat(norm=None, limits={0: 1}))
    inputs = read_inputs(read_subject(model, "none", None), [[0.5], [2.5]], None, settings=asked)
    told = [(describe_witness(inputs, row)["label"], describe_witness(inputs, row)["other"]) for row in (0, 1)]
    assert told == [("0", "1"), ("2", "1")]
    assert [attack["label"] for attack in search_flips(inputs, (0, 1)) if attack["found"]] == ["1", "1"]
