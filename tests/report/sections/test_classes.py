"""Several classes: every count and radius of the page is the certificates', also for hostile names and under limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, Threat
from derand.report import Report
from derand.report.sections.classes import MAX_CLASSES, place_classes
from tests.report.pages import check_page

NAMES = np.array(["<script>alert(1)</script>", "a & b", "plain", "zeta|*x*"])


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, np.ndarray, np.ndarray]:
    """Four classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = NAMES[np.clip(np.digitize(X[:, 0] + 0.7 * rng.normal(size=160), [-0.8, 0.0, 0.8]), 0, 3)]
    return StumpClassifier(noise="gaussian:0.5").fit(X[:90], y[:90]), X[90:], y[90:]


def test_cells_and_pairs_are_the_certificates(fitted: Any) -> None:
    """Rows, medians and certified counts of each answer and rival, and of each pair in either order."""
    clf, X, y = fitted
    report = Report(clf, X, y)
    check_page(report)
    found, summary = clf.certify(X), report.to_dict()
    rivals, quoted = summary["rivals"], summary["scale"]["quoted"]
    held = (found.radius > 0) & (found.radius >= quoted)
    for a, answer in enumerate(rivals["classes"]):
        rows = found.label == answer
        told = rivals["answers"][a]
        assert (told["n_rows"], told["right"], told["certified"]) == (
            rows.sum(),
            (rows & (y == answer)).sum(),
            held[rows].sum(),
        )
        for b, rival in enumerate(rivals["classes"]):
            cell, at = rivals["cells"][a][b], rows & (found.runner_up == rival)
            assert (cell["n_rows"], cell["certified"]) == (at.sum(), held[at].sum())
            assert cell["median"] == (np.quantile(found.radius[at], 0.5, method="lower") if at.any() else None)
            assert 0 <= cell["weakness"] <= 1
    assert rivals["n_pairs"] == len(rivals["pairs"])
    assert sum(pair["n_rows"] for pair in rivals["pairs"]) == len(X)
    for pair in rivals["pairs"]:
        one, other = pair["names"]
        at = ((found.label == one) & (found.runner_up == other)) | ((found.label == other) & (found.runner_up == one))
        assert (pair["n_rows"], pair["open"]) == (at.sum(), (~held[at]).sum())
        assert (
            pair["confused"]
            == ((y == one) & (found.label == other)).sum() + ((y == other) & (found.label == one)).sum()
        )
    weights = [pair["open"] + pair["confused"] for pair in rivals["pairs"]]
    assert weights == sorted(weights, reverse=True)


def test_hostile_names_stay_text(fitted: Any) -> None:
    """Names of classes reach neither the page's tags nor Markdown's."""
    clf, X, y = fitted
    report = Report(clf, X, y, what_if=False)
    assert "<script>alert" not in report.to_html()
    assert "<script>alert" not in report.to_markdown()
    assert "&lt;script&gt;alert(1)" in report.to_html()


def test_without_labels_and_under_limits(fitted: Any) -> None:
    """Rivals need no labels; where limits alone say what may change, rows are proven or not, and have no radius."""
    clf, X, _ = fitted
    threat = Threat(norm=None, limits={0: 0.2})
    report = Report(clf, X, threat=threat, rule="mean")
    check_page(report)
    summary, found = report.to_dict(), clf.certify(X, threat=threat, rule="mean")
    assert summary["confusion"] is None
    rivals = summary["rivals"]
    assert all(pair["median"] is None and pair["confused"] is None for pair in rivals["pairs"])
    assert sum(one["certified"] for one in rivals["answers"]) == (found.verdict == "holds").sum()
    assert f"of {len(X)}" in rivals["sentences"][0] or "Every answer" in rivals["sentences"][0]
    assert "mistake" not in " ".join(rivals["sentences"])


def test_many_classes_are_put_together() -> None:
    """More classes than the table has room for: the largest ones in their own order, and all others in one line."""
    classes = np.arange(MAX_CLASSES + 4)
    codes = np.concatenate([classes, classes[5:]])
    titles, place = place_classes(codes, classes)
    assert titles == [*(str(at) for at in range(5, MAX_CLASSES + 4)), "(others)"]
    assert place.tolist() == [MAX_CLASSES - 1] * 5 + list(range(MAX_CLASSES - 1))
