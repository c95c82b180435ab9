"""Report: made once, written whole, in every format, for every trainer."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from derand import StumpClassifier, from_model
from derand.estimators import TRAINERS
from derand.report import Report
from derand.storage._estimators import CLASSIFIER, list_estimators
from tests.report.pages import check_page
from tests.report.samples import make_mixed, make_rows, report_on_additive


@pytest.mark.parametrize("name", [kind.__name__ for kind in TRAINERS.values()])
def test_every_trainer_has_a_report(name: str) -> None:
    """A report on each classifier that can be trained is whole, with a twin of the same kind as the baseline."""
    X, y = make_rows(60, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = list_estimators(CLASSIFIER)[name](noise="gaussian:0.5").fit(X, y)
    report = Report(clf, X, y, X_train=X, y_train=y, max_rows=20)
    check_page(report)
    assert name in report.to_dict()["accuracy"]["baselines"][1]["description"]


@pytest.mark.parametrize("noise", ["none", "gaussian:0.5"])
def test_a_report_on_a_model_of_another_library_names_it(noise: str) -> None:
    """Of the model as deployed and smoothed; training rows give the most frequent label, and no twin is trained."""
    X, y = make_rows(60, 2)
    model = from_model(GradientBoostingClassifier(max_depth=1, n_estimators=5).fit(X, y), X, noise=noise)
    report = Report(model, X, y, X_train=X, y_train=y, max_rows=20)
    check_page(report)
    assert "sklearn.GradientBoostingClassifier" in report.to_html()
    assert len(report.to_dict()["accuracy"]["baselines"]) == 1


def test_the_report_is_written_whole_and_opened(numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """write_html leaves one file, open shows one, and a notebook gets a frame."""
    clf, X, y = numbers
    report = Report(clf, X, y, title="Größe")
    report.write_html(tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "<title>Größe</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert report.open().is_file()
    assert opened[0].startswith("file://")
    assert report._repr_html_().startswith("<iframe srcdoc=")
    assert "80 rows" in repr(report)
    report.write(tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == report.to_markdown()
    with pytest.raises(ValueError, match=r"must end with one of \.html"):
        report.write(tmp_path / "report.pdf")
    with pytest.raises(FileNotFoundError):
        report.write_html(tmp_path / "missing" / "report.html")


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("`y_train` is missing", {"X_train": [[0.0, 0.0, 0.0]]}),
        ("`X_train` is missing", {"y_train": ["yes"]}),
        ("`radius` must be", {"radius": 0}),
        ("`max_rows` must be", {"max_rows": 0}),
        ("`n_explained` must be", {"n_explained": True}),
    ],
)
def test_wrong_options_are_refused_with_a_hint(numbers: Any, message: str, options: dict[str, Any]) -> None:
    """Errors name the parameter and what to do."""
    clf, X, y = numbers
    with pytest.raises(ValueError, match=message):
        Report(clf, X, y, **options)


def test_a_fixed_date_makes_reports_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With SOURCE_DATE_EPOCH the date is that one and no times are told: two reports are equal in every format."""
    X, y = make_mixed()
    clf = StumpClassifier(noise="gaussian:0.5").fit(X, y)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    first, second = (Report(clf, X, y, X_train=X, y_train=y, subgroups="job") for _ in range(2))
    assert first.to_html() == second.to_html()
    assert first.to_json() == second.to_json()
    assert first.to_markdown() == second.to_markdown()
    assert "1970-01-02 00:00 UTC" in first.to_markdown()
    assert first.to_dict()["computed"]["certify_seconds"] is None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH must be a whole number of seconds since 1970, got 'soon'"):
        Report(clf, X, y).to_dict()


def test_a_report_goes_by_what_the_model_was_trained_for() -> None:
    """Norm, budget and frozen columns are said in words, the trained radius is in the table, scores are log-odds."""
    told = report_on_additive(norm=np.inf, radius=0.3).to_dict()
    assert (told["threat"]["norm"], told["scale"]["quoted"], told["scale"]["trained"]) == ("inf", 0.25, 0.3)
    assert 0.3 in told["table"]["radii"]
    assert "The model was trained for 0.3." in told["guarantee"]["measure"]
    assert told["model"]["score_unit"] == "log-odds"
    assert "each by less than 0.25" in told["guarantee"]["paragraph"]
    assert {one["key"]: one["label"] for one in told["accuracy"]["baselines"]}["without-noise"] == (
        "not trained for robustness"
    )
    told = report_on_additive(l0=1, frozen=["town"], noise="none").to_dict()
    assert (told["threat"]["l0"], told["threat"]["frozen"]) == (1, ["town"])
    assert "does not change" in " ".join(told["threat_table"]["words"])
    assert "nothing is smoothed" in " ".join(told["guarantee"]["limits"])
    row = told["rows"]["table"][0]
    assert row["pushes"] is not None
    assert abs(row["pushes"]["total"]) < 20
