"""Report: made once, written whole, in every format, for every trainer."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from derand import StumpClassifier, Threat, from_model
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
        report.write(tmp_path / "report.txt")
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


def test_classes_are_called_as_people_call_them() -> None:
    """In the whole page, also where names sort in another order than labels; figures are the model's."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(50, 10, 120), "job": rng.choice(["cook", "clerk"], 120)})
    y = np.where(X["income"] + rng.normal(0, 4, 120) > 50, 1, 0)
    clf = StumpClassifier(noise="gaussian:0.25", scaling="standard", class_weight={0: 1.0, 1: 1.5}).fit(X, y)
    asked: dict[str, Any] = {"X_train": X, "y_train": y, "compare": clf, "subgroups": "job", "title": "t"}
    names = {0: "repaid", 1: "default"}
    plain, named = Report(clf, X, y, **asked), Report(clf, X, pd.Series(y), class_names=names, **asked)
    assert named.to_dict()["model"]["classes"] == ["repaid", "default"]
    own, theirs = (json.dumps(one.to_dict()["accuracy"]) for one in (plain, named))
    assert theirs.replace("repaid", "0").replace("default", "1") == own
    sums = [{mark["what"]: mark["sha256"] for mark in one.to_dict()["checksums"]} for one in (plain, named)]
    assert [sums[1][what] for what in ("model", "other model")] == [sums[0][what] for what in ("model", "other model")]
    assert "always default" in named.to_html() or "always repaid" in named.to_html()
    assert "“default”" in named.to_html()
    threat = Threat(norm=None, limits={"income": 5.0}, l0=1)
    told = Report(clf, X, y, class_names={"1": "default"}, threat=threat, rule="mean").to_dict()
    assert {one["label"] for one in told["verdicts"]["witnesses"]} == {"0", "default"}
    assert clf.classes_.tolist() == [0, 1]
    for wrong, message in (
        ({2: "x"}, r"must name classes of the model, 0, 1, got '2'"),
        ({0: "1"}, r"a name of its own, got 1, 1"),
    ):
        with pytest.raises(ValueError, match=message):
            Report(clf, X, y, class_names=wrong)
    with pytest.raises(ValueError, match=r"`y` must hold labels among \[0, 1\], got 'Y'"):
        Report(clf, X, np.where(y, "Y", "N"), class_names=names)


def test_names_of_several_classes_need_not_sort_as_labels_do() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    clf = StumpClassifier(noise="gaussian:0.25").fit(X, y)
    own = Report(clf, X, y).to_dict()
    named = Report(clf, X, y, class_names={0: "z", 1: "m", 2: "a"}).to_dict()
    shown = json.dumps(named["confusion"]).replace('"z"', '"0"').replace('"m"', '"1"').replace('"a"', '"2"')
    assert shown == json.dumps(own["confusion"])


def test_flips_are_told_by_column_and_direction() -> None:
    """The figures are those of the certificates; the page and Markdown have them, and say what was assumed."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(50, 10, 200), "job": rng.choice(["cook", "clerk"], 200)})
    y = np.where(X["income"] + rng.normal(0, 4, 200) > 50, "yes", "no")
    clf = StumpClassifier(noise="gaussian:0.25", scaling="standard", rule="mean").fit(X, y)
    threat = Threat(norm=None, limits={"income": "9%"}, l0=1)
    report, own = Report(clf, X, y, threat=threat), clf.certify(X, threat=threat).summary(y)
    told = report.to_dict()["verdicts"]["flips"]
    assert told["sentences"] == own.list_sentences()
    counts = ("column", "direction", "flipped", "n_rows", "n_alone", "n_together")
    lines = [[one[name] for name in counts] for one in told["columns"]]
    assert lines == [[getattr(one, name) for name in counts] for one in own.merge_truth().columns]
    assert told["flips"] == own.n_flips > 0
    assert 'data-test="flip-table"' in report.to_html()
    assert report.to_markdown().count(own.list_sentences()[0]) == 1
    assert "also to values that training did not see" in report.to_markdown()
    check_page(report)
    seen = Report(clf, X, y, threat=Threat(norm=None, limits={"income": "9%"}, l0=1, unseen=False))
    assert "any value that training saw" in seen.to_markdown()
    nothing = Report(clf, X, y, threat=Threat(norm=None, limits={"income": 0.0}))
    assert 'data-test="flip-table"' not in nothing.to_html()
