"""What a page holds to answer for moved rows: tables, rows and threats as the library has them, within a size."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveClassifier, AdditiveEnsemble, CategoryTable, GridTerm, StepFunction, StumpClassifier, Threat
from derand.report import Report
from derand.report._packing import count_bytes, pack
from derand.report.sections import what_if
from tests.report.samples import make_rows, make_vote


def test_tables_are_those_of_the_terms() -> None:
    """Cells in the order of the terms, that of missing values last; categories by their options."""
    terms = [
        StepFunction(0, [0.5], [1, -2], missing=7),
        CategoryTable(1, [0, 2], [3, -3], other=1, missing=-1),
        GridTerm((2, 3), ([0.0], [0.0]), [[1, 2], [3, 4], [5, 6]], missing=(True, False)),
    ]
    X = np.array([[0.0, 2.0, 1.0, -1.0], [np.nan, np.nan, np.nan, 2.0], [1.0, 9.0, 0.5, 0.0]])
    found = Report(AdditiveEnsemble(terms, 0, 4), X, noise="none", rule="mean").to_dict()["what_if"]
    assert found is not None
    columns = found["columns"]
    by_features = {tuple(columns[at]["feature"] for at in one["at"]): one for one in found["members"][0]["terms"]}
    assert by_features[0,] == {"at": by_features[0,]["at"], "edges": [[0.5]], "gaps": [True], "scores": [1, -2, 7]}
    assert by_features[1,]["scores"] == [3, 1, -3, 1, -1]  # codes 0, 1 and 2, a new one, a missing one
    assert by_features[2, 3]["gaps"] == [True, False]
    assert by_features[2, 3]["scores"] == [1, 2, 3, 4, 5, 6]
    place = next(at for at, column in enumerate(found["columns"]) if column["feature"] == 1)
    assert sorted(found["cells"][place]) == [2, 3, 4]


def test_what_a_category_may_become_is_told() -> None:
    """By the threat: named values, those of training, or anything."""
    model = AdditiveEnsemble([CategoryTable(0, [0, 1], [-3, 3], other=0), StepFunction(1, [0.0], [0, 1])], 0, 2)
    X = np.array([[0.0, 1.0], [1.0, -1.0]])

    def allowed(threat: Threat) -> list[bool]:
        report = Report(model, X, noise="none", rule="mean", threat=threat)
        (column,) = [one for one in report.to_dict()["what_if"]["columns"] if one["kind"] == "category"]
        return [option["allowed"] for option in column["options"]]

    assert allowed(Threat(l0=1)) == [True, True, True, True]
    assert allowed(Threat(l0=1, unseen=False)) == [True, True, False, False]
    assert allowed(Threat(l0=1, may_become={0: [1.0]})) == [False, True, False, False]


@pytest.mark.parametrize(
    ("ends", "whole", "step", "grain"),
    [
        ((0, 1), False, 0.0, 0.005),
        ((18, 79), True, 0.0, 1.0),
        ((0, 70_000), True, 0.0, 500.0),
        ((0, 10), False, 0.25, 0.25),
    ],
)
def test_sliders_move_by_round_numbers(ends: tuple[float, float], whole: bool, step: float, grain: float) -> None:
    assert what_if._choose_grain(*ends, whole, step) == pytest.approx(grain)


def test_what_is_too_large_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables first, then rows; the report says why."""
    X, _ = make_rows()
    monkeypatch.setattr(what_if, "MOST_ROW_BYTES", 1_000)
    some = Report(make_vote(), X, noise="gaussian:0.25", n_explained=0).to_dict()
    assert 0 < some["what_if"]["n_rows"] < 80
    assert sum(count_bytes(pack(column)) for column in some["what_if"]["cells"]) <= 1_000
    assert any("offers the first" in note for note in some["left_out"])
    monkeypatch.setattr(what_if, "MOST_BYTES", 500)
    none = Report(make_vote(), X, noise="gaussian:0.25", n_explained=0)
    assert none.to_dict()["what_if"] is None
    assert any("would take" in note for note in none.to_dict()["left_out"])
    assert 'id="whatif"' not in none.to_html()


def test_it_can_be_left_out_on_request() -> None:
    X, _ = make_rows()
    report = Report(make_vote(), X, noise="gaussian:0.25", what_if=False, n_explained=0)
    assert report.to_dict()["what_if"] is None
    assert "whatif" not in report.to_html().replace(".whatif", "")
    constant = Report(AdditiveEnsemble((), 0, 3), X, noise="gaussian:0.25", n_explained=0).to_dict()
    assert any("reads no column" in note for note in constant["left_out"])


def test_whole_numbers_stay_whole_and_odds_are_calibrated() -> None:
    """Counts move by whole steps and 0/1 between 0 and 1; the page's probabilities are those of `predict_proba`."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=200), random.integers(0, 2, 200), random.integers(0, 9, 200)]) * 1.0
    y = X[:, 0] + X[:, 1] + 0.1 * X[:, 2] + random.normal(size=200) > 1
    clf = AdditiveClassifier(radius=0.05, regularization=1.0).fit(X, y)
    report = Report(clf, np.where(X[:40] == 8, 7, X[:40]), n_explained=0, max_rows=40)
    told = report.to_dict()["what_if"]
    columns = {one["feature"]: one for one in told["columns"]}
    assert [columns[at]["whole"] for at in range(3)] == [False, True, True]
    assert [columns[at]["ends"] for at in range(3)] == [None, [0, 1], None]
    assert (columns[1]["low"], columns[1]["high"], columns[1]["grain"]) == (0, 1, 1)
    slope, shift = told["odds"]
    lead = clf.decision_function(X[:40])
    assert clf.predict_proba(X[:40])[:, 1] == pytest.approx(1 / (1 + np.exp(-(slope * lead + shift))))
    assert "Expected score (in its own units)" in report.to_html() or "Score (in its own units)" in report.to_html()
    other = Report(StumpClassifier(noise="gaussian:0.25").fit(X, y), X[:5], n_explained=0).to_dict()
    assert other["what_if"]["odds"] is None
