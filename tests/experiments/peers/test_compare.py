"""derand beside Veritas: every row agrees or is explained. Timings are not judged here."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from derand import AdditiveEnsemble
from derand._core.arrays import FloatArray
from experiments.peers import PeerRadii, PlainRadii, compare_with_veritas, convert_stumps, find_linf_radii
from experiments.peers._compare import count_agreement, train_task

REASON = "the dependency group `peers` is not installed"


def test_radii_agree_on_every_row() -> None:
    """On data that needs no file."""
    pytest.importorskip("veritas", reason=REASON)
    pytest.importorskip("xgboost", reason=REASON)
    figures = compare_with_veritas("sklearn_breast_cancer", 30)
    assert figures["rows"] == 30
    assert figures["rows_equal"] + figures["rows_within_score_error"] == 30
    assert figures["rows_unexplained"] == figures["labels_differ"] == figures["rows_veritas_left_unfinished"] == 0
    assert figures["gap_to_plain"] < 1e-12
    assert figures["ratio"] > 0
    assert figures["merged_ratio"] > 0


def move_worst(model: AdditiveEnsemble, rows: FloatArray, reach: FloatArray) -> FloatArray:
    """Each row moved within reach to where its score is as far on the other side as can be."""
    assert model.threshold is not None
    moved = rows.copy()
    signs = np.where(model.score(rows) > model.threshold, -1, 1)
    for term in model.step_functions:
        values = rows[:, term.feature]
        inside = np.concatenate([term.edges, np.nextafter(term.edges, -np.inf)])  # a point of every cell, the nearest
        points = np.concatenate([values[:, None], np.broadcast_to(inside, (len(rows), inside.size))], axis=1)
        gains = (signs[:, None] * term.evaluate(points)).astype(np.float64)
        gains[np.abs(points - values[:, None]) > reach[:, None]] = -np.inf
        moved[:, term.feature] = points[np.arange(len(rows)), gains.argmax(axis=1)]
    return moved


@pytest.mark.parametrize("rounded", [False, True])
def test_xgboost_itself_flips_at_the_radius(rounded: bool) -> None:
    """The worst change just beyond the radius flips what XGBoost predicts, the worst one just below does not."""
    pytest.importorskip("xgboost", reason=REASON)
    task = train_task("sklearn_breast_cancer", 1000)
    rows = task.rounded if rounded else task.rows
    model = convert_stumps(task.classifier, rows.shape[1])
    found = find_linf_radii(model, rows)
    is_exact = found.radius == found.flipped
    assert is_exact.mean() > 0.95
    beyond = move_worst(model, rows, found.radius * (1 + 1e-12) + 1e-15)
    below = move_worst(model, rows, found.radius * (1 - 1e-12) - 1e-15)
    assert (task.classifier.predict(rows) == found.label).all()
    assert (task.classifier.predict(beyond) != found.label)[is_exact].all()
    assert (task.classifier.predict(below) == found.label).all()


@pytest.mark.usefixtures("data")
def test_radii_agree_on_numerical_columns_of_a_mixed_table() -> None:
    """Veritas compares doubles where XGBoost rounds: given rows as they are, it would see another model."""
    pytest.importorskip("veritas", reason=REASON)
    pytest.importorskip("xgboost", reason=REASON)
    figures = compare_with_veritas("adult", 40)
    assert figures["rows_equal"] + figures["rows_within_score_error"] == 40
    assert figures["features"] == 6
    assert figures["unrounded_rows_scored_otherwise"] > 0


def test_agreement_is_one_of_three() -> None:
    """Equal; between the radii that single precision leaves open; or unexplained."""
    radius = np.array([0.3, 0.2, 0.2, np.inf])
    plain = PlainRadii(np.ones(4, dtype=np.int64), radius, np.array([0.3, 0.5, 0.5, np.inf]))
    found = PeerRadii(np.array([0.299, 0.4, 0.6, np.inf]), np.array([0.3, 0.41, 0.61, np.inf]), np.ones(4))
    counted = count_agreement(radius, plain, found, 1e-9)
    assert [counted[f"rows_{kind}"] for kind in ("equal", "within_score_error", "unexplained")] == [2, 1, 1]
    assert counted["rows_of_two_radii"] == 2
    assert counted["largest_gap_of_equal_rows"] == 0
    assert counted["rows_veritas_left_unfinished"] == 3


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ValueError, match="needs xgboost, which is not installed"):
        train_task("sklearn_breast_cancer", 3)
