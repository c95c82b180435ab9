"""Curves, tables and baselines are what the metrics say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from derand import Gaussian, StumpClassifier, certified_accuracy, certify, summarize_radii
from derand.report import Report
from tests.report.samples import make_rows, report_on_words, series


def test_curves_are_the_metrics(mixed: Any) -> None:
    """Every curve equals certified_accuracy at every radius, for all rows, classes and categorical budgets."""
    clf, X, y = mixed
    summary = Report(clf, X, y).to_dict()
    radii = summary["scale"]["radii"]
    found = clf.certify(X, l0=[0, 1, 2])
    assert series(summary, "all") == certified_accuracy(y, found[0], radii).tolist()
    assert series(summary, "balanced") == certified_accuracy(y, found[0], radii, balanced=True).tolist()
    for l0 in (0, 1, 2):
        assert series(summary, f"l0={l0}") == certified_accuracy(y, found[l0], radii).tolist()
    for label in (0, 1):
        at = np.flatnonzero(y == label)
        assert series(summary, f"class={label}") == certified_accuracy(y[at], found[0][at], radii).tolist()
    assert summary["radii"]["certified"] == summarize_radii(y, found[0]).to_dict()
    assert summary["radii"]["accuracy"] == (clf.predict(X) == y).mean()


def test_the_table_is_cut_from_the_curves(numbers: Any) -> None:
    """The table holds the curves at its radii, as shares and as text that never shows more."""
    clf, X, y = numbers
    summary = Report(clf, X, y).to_dict()
    certificates = clf.certify(X)
    row = next(row for row in summary["table"]["rows"] if row["key"] == "all")
    assert row["values"] == certified_accuracy(y, certificates, summary["table"]["radii"]).tolist()
    for share, text in zip(row["values"], row["text"], strict=True):
        assert 100 * share - 0.1 <= float(text.split("\N{NO-BREAK SPACE}")[0]) <= 100 * share + 1e-9


def test_baselines_are_what_they_say(numbers: Any) -> None:
    """One always gives the most frequent label; the other is trained again with a hundredth of the noise."""
    clf, X, y = numbers
    summary = Report(clf, X[:40], y[:40], X_train=X, y_train=y).to_dict()
    radii = summary["scale"]["radii"]
    frequent = max(np.unique(y).tolist(), key=lambda name: (y == name).sum())
    assert series(summary, "baseline=constant") == [float((y[:40] == frequent).mean())] * len(radii)
    assert series(summary, "baseline=balanced") == [0.5] * len(radii)
    assert "its balanced share above 50.0\N{NO-BREAK SPACE}%" in summary["accuracy"]["baselines"][0]["description"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = StumpClassifier(noise=Gaussian(0.005), scaling="standard").fit(X, y)
    codes = (y[:40] == "yes").astype(int)
    expected = certified_accuracy(codes, certify(twin.ensemble_, X[:40], clf.noise_), radii)
    assert series(summary, "baseline=without-noise") == expected.tolist()
    alone = Report(clf, X[:40], y[:40]).to_dict()
    assert [one["key"] for one in alone["accuracy"]["baselines"]] == ["constant"]


def test_a_bare_model_has_no_twin(numbers: Any) -> None:
    """Training rows are refused where there is no classifier that could be trained on them."""
    clf, X, y = numbers
    bare = Report(clf.ensemble_, X, (y == "yes") * 1, noise=clf.noise_, X_train=X, y_train=y)
    with pytest.raises(ValueError, match="bare model cannot"):
        bare.to_dict()


def test_what_needs_labels_is_left_out_without_them() -> None:
    """Without labels there is no accuracy, no class and no baseline; shares count certified rows."""
    X, y = make_rows()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    summary = Report(clf, X).to_dict()
    assert {one["role"] for one in summary["accuracy"]["series"]} == {"all", "l0"}
    assert "accuracy" not in summary["radii"]
    radius = clf.certify(X).radius
    assert series(summary, "all") == [float(((radius >= r) & (radius > 0)).mean()) for r in summary["scale"]["radii"]]
    assert "right" not in summary["guarantee"]["paragraph"].split("This is proven")[0]


def test_every_row_is_counted_once_in_the_histogram(mixed: Any) -> None:
    """Bins of right and wrong answers, and what lies beside them, add up to all rows."""
    clf, X, y = mixed
    words = report_on_words(subgroups="job")
    for report, n_rows in ((Report(clf, X, y), len(X)), (Report(clf, X), len(X)), (words, 120)):
        histogram = report.to_dict()["histogram"]
        beside = histogram["beyond"] + histogram["nothing_certified"] + histogram["cannot_flip"]
        assert sum(histogram["right"]) + sum(histogram["wrong"]) + beside == n_rows


def test_the_constant_baseline_is_flat_where_the_model_has_no_radius() -> None:
    """A model of categories has the radius 0 alone: the baseline is one number, too."""
    summary = report_on_words(subgroups="job").to_dict()
    assert summary["scale"]["radii"] == [0.0]
    (baseline,) = summary["accuracy"]["baselines"]
    assert series(summary, "baseline=constant") == [baseline["accuracy"]]
