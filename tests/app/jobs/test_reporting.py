"""Reporting on a file: as on its rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from derand import Report, load, save
from derand.app.jobs import report_file, train_file
from derand.estimators import AdditiveRegressor, StumpClassifier
from derand.storage import mark_file
from tests.app.jobs.tables import make_frame, make_prices


def test_a_report_on_a_file_equals_a_report_on_its_rows(data: Path, model: Path, tmp_path: Path) -> None:
    """Features, labels, subgroups (of features and of other columns) and the baseline come from the files."""
    path = tmp_path / "report.json"
    summary = report_file(
        model, data, path, target="label", train=data, subgroups=["job", "member", "word"], radius=0.1, identity="word"
    )
    report = json.loads(path.read_text(encoding="utf-8"))
    frame, classifier = make_frame(), load(model)
    rows = frame[list(classifier.feature_names_in_)].astype({"floor": str, "member": str})
    direct = Report(classifier, rows, frame["label"], radius=0.1).to_dict()
    assert report["data"] == direct["data"]
    assert all(row["name"] == frame["word"][row["row"] - 1] for row in report["rows"]["table"])
    assert report["radii"] == direct["radii"]
    assert summary["guarantee"] == report["guarantee"]["paragraph"] == direct["guarantee"]["paragraph"]
    assert [group["column"] for group in report["subgroups"]] == ["job", "member", "word"]
    assert report["subgroups"][2]["groups"][0]["n_rows"] == 300
    assert [one["key"] for one in report["accuracy"]["baselines"]] == ["constant", "without-noise"]


def test_another_model_of_a_file_stands_beside_the_first(data: Path, model: Path, tmp_path: Path) -> None:
    """On the columns that it knows; the report has the checksums of all files that it was made from."""
    other, path = tmp_path / "other.json", tmp_path / "report.json"
    train_file(data, "label", other, model="stumps", noise="gaussian:0.4", ignored=["word"], categorical=["floor"])
    report_file(model, data, path, target="label", train=data, compare=other, what_if=False)
    report = json.loads(path.read_text(encoding="utf-8"))
    frame, second = make_frame(), load(other)
    rows = frame[list(second.feature_names_in_)].astype({"floor": str, "member": str})
    same = (load(model).predict(frame[list(load(model).feature_names_in_)].astype({"floor": str, "member": str}))) == (
        second.predict(rows)
    )
    assert report["comparison"]["names"] == ["this model", "other.json"]
    assert report["comparison"]["same_answers"] == same.sum()
    sums = {one["what"]: (one["file"], one["sha256"]) for one in report["checksums"]}
    files = {"model": model, "other model": other, "data": data, "training data": data}
    for what, file in files.items():
        assert sums[what] == (file.name, mark_file(file).sha256)
    with pytest.raises(ValueError, match="answers are numbers"):
        report_file(model, data, path, compare=_save_regressor(tmp_path))


def _save_regressor(folder: Path) -> Path:
    frame = make_prices()
    save(AdditiveRegressor(regularization=1.0).fit(frame[["x"]], frame["price"]), folder / "numbers.json")
    return folder / "numbers.json"


def test_a_report_of_a_model_without_names_shows_those_of_the_file(tmp_path: Path) -> None:
    """Columns are read by position and named as in the file."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    save(StumpClassifier().fit(X, X[:, 0] > 0), tmp_path / "model.json")
    pd.DataFrame(X, columns=["länge", "breite"]).to_csv(tmp_path / "data.csv", index=False)
    report_file(tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["model"]["feature_names"] == ["länge", "breite"]
    assert not report["data"]["has_labels"]


def test_a_report_refuses_what_it_cannot_use(data: Path, model: Path, tmp_path: Path) -> None:
    """A training table without a target, an unknown column, a folder that is missing."""
    with pytest.raises(ValueError, match="needs the target"):
        report_file(model, data, tmp_path / "report.html", train=data)
    with pytest.raises(ValueError, match="'nothing'"):
        report_file(model, data, tmp_path / "report.html", subgroups=["nothing"])
    with pytest.raises(OSError, match="Cannot write"):
        report_file(model, data, tmp_path / "missing" / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_report_on_numbers_equals_a_report_on_its_rows(regressor: Path, prices: Path, tmp_path: Path) -> None:
    """At the training radius; what is for models of the other kind is refused."""
    path = tmp_path / "report.json"
    report_file(regressor, prices, path, target="price", identity="job", tolerance=2.0, what_if=False)
    named = json.loads(path.read_text(encoding="utf-8"))
    assert [row["name"] for row in named["rows"]["table"]] == make_prices()["job"].tolist()
    assert named["tolerance"]["tolerance"] == 2.0
    assert named["what_if"] is None
    summary = report_file(regressor, prices, path, target="price")
    report = json.loads(path.read_text(encoding="utf-8"))
    frame = make_prices()
    direct = Report(load(regressor), frame[["x", "job"]], frame["price"], radius=0.1).to_dict()
    for key in ("data", "moves", "widths", "errors", "curve", "rows"):
        assert report[key] == direct[key]  # type: ignore[literal-required]
    assert report["title"] == "Interval report: prices.csv"
    assert summary["guarantee"] == direct["guarantee"]["paragraph"]
    assert summary["rows"] == 200
