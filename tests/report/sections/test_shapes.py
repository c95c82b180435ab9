"""Shapes, pushes and single moves are those of the model, and moves stay inside the ball."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, distribution
from derand._core.text import format_short_down
from derand.explain import move_alone, multiply_down
from derand.report import Report
from tests.report.pages import check_page
from tests.report.samples import make_rows, report_on_codes


def test_moves_are_the_median_radius_in_each_column(numbers: Any) -> None:
    """A move is radius times unit, at least half of the rows have it, and it stays inside the open ball."""
    clf, X, y = numbers
    summary = Report(clf, X, y).to_dict()
    radius = clf.certify(X).radius
    assert (radius >= summary["radii"]["median"]).mean() >= 0.5
    assert (radius >= summary["radii"]["tenth"]).mean() >= 0.9
    for move in summary["moves"]:
        unit = clf.noise_.units[move["feature"]]
        assert move["half_of_rows"] == pytest.approx(summary["radii"]["median"] * unit)
        assert move["half_of_rows"] < summary["radii"]["median"] * unit
        assert float(format_short_down(move["half_of_rows"])) <= move["half_of_rows"]


def test_a_single_move_never_flips_a_row(numbers: Any) -> None:
    """Rows with at least the median radius keep their label when one column moves by what the table says."""
    clf, X, y = numbers
    summary = Report(clf, X, y).to_dict()
    certificates = clf.certify(X)
    sure = certificates.radius >= summary["radii"]["median"]
    for move in summary["moves"]:
        for sign in (-1, 1):
            moved = X[sure].copy()
            moved[:, move["feature"]] += sign * float(format_short_down(move["half_of_rows"]))
            assert (clf.predict(moved) == certificates.label[sure]).all()


def test_products_are_rounded_down() -> None:
    """A product of floats is never above the true one, and a move is inside the open ball."""
    rng = np.random.default_rng(3)
    for radius, unit in rng.lognormal(size=(200, 2)).tolist():
        assert Fraction(multiply_down(radius, unit)) <= Fraction(radius) * Fraction(unit)
        assert Fraction(move_alone(radius, unit)) < Fraction(radius) * Fraction(unit)
    assert multiply_down(0.5, 1.0) == 0.5
    assert move_alone(math.inf, 2.0) == math.inf
    assert move_alone(0.0, 2.0) == 0.0


def test_pushes_add_up_to_the_mean_score_under_noise(mixed: Any) -> None:
    """All pushes of a row together are its mean score above the threshold."""
    clf, X, y = mixed
    report = Report(clf, X, y)
    for row in report.to_dict()["rows"]["table"][:10]:
        matrix = clf.encoding_.encode(X.iloc[[row["row"] - 1]])
        law = distribution(clf.ensemble_, matrix, clf.noise_)
        mean = float(law.pmf[0] @ law.support) - clf.ensemble_.threshold
        assert row["pushes"]["total"] == pytest.approx(mean, abs=0.01)


def test_huge_and_constant_columns_have_shapes() -> None:
    """A column of one huge value, and one whose values are far beyond the noise, do not break the charts."""
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    strange = X.copy()
    strange[:, 0] = 1e17
    strange[:, 1] *= 1e200
    report = Report(clf, strange, y)
    check_page(report)
    assert all(math.isfinite(value) for shape in report.to_dict()["shapes"] for value in shape["smooth"])


def test_a_category_pushes_by_its_score_and_any_other_by_that_of_none() -> None:
    """Differences of pushes are differences of scores; codes that the table lacks and gaps share one line."""
    (table,) = [shape for shape in report_on_codes().to_dict()["shapes"] if shape["kind"] == "categorical"]
    pushes = {entry["name"]: entry["push"] for entry in table["categories"]}
    assert [pushes[name] - table["other"]["push"] for name in ("0", "1", "5")] == pytest.approx([-3, 3, 1])
    assert table["other"]["count"] == 32
