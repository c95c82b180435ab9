"""What is told about a flip is true: it flips, and no number is better than the search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from derand import AdditiveEnsemble, StumpClassifier, Threat, UnsoundError
from derand.report._inputs import read_inputs, read_subject
from derand.report._settings import ReportSettings
from derand.report.sections.weakest import search_flips
from tests.report.samples import make_rows, report_on_words


@pytest.mark.parametrize("noise", ["gaussian:0.5", "uniform:1.5", "laplace:0.5"])
def test_an_attack_is_told_with_another_label_and_a_distance_beyond_the_radius(noise: str) -> None:
    """Every told flip has another label and lies outside the certified ball; its distance is shown rounded up."""
    X, y = make_rows(60)
    clf = StumpClassifier(noise=noise, scaling="standard").fit(X, y)
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    found = search_flips(inputs, range(0, 60, 5))
    assert sum(attack["found"] for attack in found) >= 8
    for row, attack in zip(range(0, 60, 5), found, strict=True):
        if attack["found"]:
            assert attack["distance"] >= inputs.plain.radius[row]
            assert float(attack["distance_text"]) >= attack["distance"]
            assert attack["label"] != inputs.plain.label[row]
            assert 1 <= len(attack["changes"]) <= attack["n_changes"] <= 3


def test_the_told_changes_flip_the_row(mixed: Any) -> None:
    """Numbers moved as the table says, a hair further, give the told label."""
    clf, X, y = mixed
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    rows = np.argsort(inputs.plain.radius)[:5].tolist()
    for row, attack in zip(rows, search_flips(inputs, rows), strict=True):
        assert attack["found"]
        (change,) = attack["changes"]  # one column of numbers
        moved = X.iloc[[row]].assign(
            **{change["name"]: X[change["name"]].iloc[row] + 1.01 * float(change["move"].replace(",", ""))}
        )
        assert str(clf.predict(moved)[0]) == attack["label"]


def test_nothing_is_searched_where_no_flip_is_possible() -> None:
    """A model without numbers, and a row that no number can flip, have nothing to search for."""
    words = report_on_words(subgroups="job")._inputs
    assert search_flips(words, [0]) == [{"found": False, "searched": False}]
    sure = AdditiveEnsemble.from_stumps([0], [0.5], [0.6], [0.9], n_features=1)
    inputs = read_inputs(read_subject(sure, "gaussian:0.25", None), [[0.0]], None, None)
    assert search_flips(inputs, [0]) == [{"found": False, "searched": False}]


def test_a_flip_inside_what_is_certified_ends_the_report() -> None:
    """A report never shows a radius beyond a flip."""
    X, y = make_rows(60)
    clf = StumpClassifier(noise="gaussian:0.5", scaling="standard").fit(X, y)
    inputs = read_inputs(read_subject(clf, None, None), X, y, None)
    wrong = tuple(replace(one, radius=one.radius * 5 + 1) for one in inputs.certificates)
    with pytest.raises(UnsoundError, match="rows flip inside what is certified"):
        search_flips(replace(inputs, certificates=wrong), range(10))


def test_a_flip_by_a_category_is_told_in_words(mixed: Any) -> None:
    """With a budget of categories a report shows the one that flips."""
    clf, X, y = mixed
    inputs = read_inputs(read_subject(clf, None, None), X, y, settings=ReportSettings(threat=Threat(l0=1)))
    rows = np.flatnonzero(inputs.plain.radius == 0)[:20].tolist()
    told = [attack for attack in search_flips(inputs, rows) if attack["found"]]
    assert any(change["move"] == "" for attack in told for change in attack["changes"])
