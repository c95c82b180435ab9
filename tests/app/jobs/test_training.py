"""Training on a file: which columns are used, and what bad files are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveEnsemble, WeightedVote, load
from derand.app.jobs import CertifySettings, certify_file, report_file, train_file
from derand.app.jobs._training import summarize_columns
from derand.estimators import TRAINERS, StumpClassifier
from derand.tables import ColumnCheck, ColumnKind, ColumnUse, TableEncoding
from tests.app.jobs.tables import edit_nothing, make_frame, with_cell


def test_every_column_is_accounted_for(data: Path, tmp_path: Path) -> None:
    """Numbers and text are used; what is constant, empty, a date, a name or nameless is left out, with the reason."""
    summary = train_file(data, "label", tmp_path / "model.json", categorical=["floor"], ignored=["member"])
    uses = {column["name"]: (column["use"], column["detail"]) for column in summary["columns"]}
    assert list(uses) == ["", *make_frame().columns[:-1]]
    assert uses[""] == ("ignored", "has no name")
    assert uses["x"][0] == "numerical"
    assert uses["x"][1].startswith("split at ")
    assert uses["job"] == ("categorical", "3 categories")
    assert uses["floor"] == ("categorical", "3 categories")
    assert uses["member"] == ("ignored", "as asked")
    assert uses["same"] == ("ignored", "constant")
    assert uses["word"] == ("ignored", "constant")
    assert uses["name"] == ("ignored", "text with 300 different values in 300 rows")
    assert uses["day"][0] == "ignored"
    assert uses["day"][1].startswith("holds dates: turn it into days (--dates")
    assert uses["gap"] == ("ignored", "holds nothing")
    assert summary["classes"] == make_frame()["label"].value_counts().sort_index().to_dict()


def test_the_saved_model_is_the_classifier_of_these_columns(data: Path, model: Path) -> None:
    """Training from a file and from a frame of the same columns gives the same model."""
    frame = make_frame()
    features = frame[["x", "job", "floor", "member"]].assign(
        floor=frame["floor"].astype(str), member=frame["member"].astype(str)
    )
    direct = StumpClassifier(noise="gaussian:0.25", scaling="standard").fit(features, frame["label"])
    loaded = load(model)
    assert loaded.encoding_.names == ("x", "job", "floor", "member")
    assert loaded.noise_ == direct.noise_
    assert loaded.certify(features).radius.tolist() == direct.certify(features).radius.tolist()


@pytest.mark.parametrize("model", TRAINERS)
def test_every_trainer_learns_from_a_file(model: str, data: Path, tmp_path: Path) -> None:
    """The saved classifier is the trainer's, says what became of every column, and certifies and reports on files."""
    summary = train_file(data, "label", tmp_path / "model.json", model=model, categorical=["floor"], noise="uniform:2")
    assert isinstance(load(tmp_path / "model.json"), TRAINERS[model])
    uses = {column["name"]: (column["use"], column["detail"]) for column in summary["columns"]}
    assert uses["x"][0] == "numerical"
    assert uses["x"][1].startswith("split at ")
    assert uses["floor"][0] in ("categorical", "ignored")  # a trainer need not learn from categories
    assert uses["same"] == ("ignored", "constant")
    certified = certify_file(tmp_path / "model.json", data, tmp_path / "out.csv", CertifySettings(target="label"))
    assert certified["accuracy"] == summary["training_accuracy"] > 0.6
    assert report_file(tmp_path / "model.json", data, tmp_path / "report.md", target="label")["rows"] == 300


def test_many_categories_of_chance_are_told_in_the_table_of_columns(tmp_path: Path) -> None:
    """Training draws them together; categories that matter are not said to be of little use."""
    rng = np.random.default_rng(0)
    x, chance, town = rng.normal(size=600), rng.integers(0, 40, 600), rng.integers(0, 20, 600)
    y = np.where(x + 0.2 * (town - 10) + 0.3 * rng.normal(size=600) > 0, "yes", "no")
    frame = pd.DataFrame({"x": x, "chance": chance, "town": town, "y": y})
    frame.assign(chance="c" + frame["chance"].astype(str), town="t" + frame["town"].astype(str)).to_csv(
        tmp_path / "data.csv", index=False
    )
    summary = train_file(tmp_path / "data.csv", "y", tmp_path / "model.json", radius=0.0, regularization=1.0)
    details = {column["name"]: column["detail"] for column in summary["columns"]}
    assert details["town"] == "20 categories"
    assert details["chance"].startswith("40 categories, which hardly differ to the model (")


def test_a_vote_is_described_by_the_edges_of_all_its_members() -> None:
    """Each edge once, of many the first eight; a column that no member reads is ignored."""

    def make_member(edges: list[float]) -> AdditiveEnsemble:
        leaves = np.full(len(edges), 0.4)
        return AdditiveEnsemble.from_stumps([0] * len(edges), edges, leaves, 1 - leaves, n_features=2)

    few = WeightedVote([make_member([1.0, 2.0]), make_member([2.0, 0.5])], [1.0, 2.0])
    many = WeightedVote([make_member([float(edge) for edge in range(20)])], [1.0])
    encoding = TableEncoding(2, ("a", "b"), {})
    classifiers: list[Any] = [SimpleNamespace(encoding_=encoding, ensemble_=vote) for vote in (few, many)]
    checks = [ColumnCheck(name, ColumnKind.NUMBER, ColumnUse.NUMERICAL) for name in ("a", "b")]
    assert summarize_columns(checks, classifiers[0]) == [
        {
            "name": "a",
            "use": "numerical",
            "detail": "split at 0.5, 1, 2",
            "shape": "3 splits from 0.5 to 2, rises, strongest jump at 2",
            "splits": [0.5, 1.0, 2.0],
        },
        {"name": "b", "use": "ignored", "detail": "the model does not split it", "shape": "", "splits": []},
    ]
    assert re.search(r"0, 1, 2, .* 12 more", str(summarize_columns(checks, classifiers[1])[0]["detail"]))


TRAINING_ERRORS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], dict[str, Any], str]] = {
    "no such target": (edit_nothing, {"target": "labell"}, r"no column 'labell'\. Did you mean 'label'"),
    "no such category": (edit_nothing, {"categorical": ["floors"]}, r"no column 'floors'\. Did you mean 'floor'"),
    "no such column to ignore": (edit_nothing, {"ignored": ["jobs"]}, r"no column 'jobs'\. Did you mean 'job'"),
    "the target ignored": (edit_nothing, {"ignored": ["label"]}, "'label' is the target"),
    "stray text": (with_cell("x", [5, 9], "n/v"), {}, r"text in the number column 'x': 'n/v' in 2 of 300 cells"),
    "infinity": (with_cell("x", [0], "inf"), {}, r"has infinite cells in 'x' \(1 of 300 cells\)"),
    "a missing label": (with_cell("label", [3], None), {}, r"cells in 'label' \(1 of 300 cells\)"),
    "an identifier": (
        lambda frame: frame.assign(label=[f"L{row}" for row in range(len(frame))]),
        {},
        r"column 'label', must hold classes of several rows each, got 300 different labels in 300 rows",
    ),
    "one label": (with_cell("label", slice(None), "no"), {}, r"1 different label in the column 'label'"),
    "dates as labels": (edit_nothing, {"target": "day"}, "'day' that are dates: use numbers or text"),
    "nothing to learn from": (
        lambda frame: frame[["same", "name", "label"]],
        {},
        "no column to learn from: 'same' c",
    ),
    "unknown noise": (edit_nothing, {"noise": "cauchy:1"}, "cauchy"),
    "unknown model": (edit_nothing, {"model": "forest"}, f"`model` must be one of {', '.join(TRAINERS)}, got"),
    "unknown weights": (edit_nothing, {"class_weight": "equal"}, "`class_weight` must be"),
}


@pytest.mark.parametrize(("edit", "options", "message"), TRAINING_ERRORS.values(), ids=TRAINING_ERRORS.keys())
def test_a_file_that_cannot_be_learnt_from_is_refused(
    edit: Callable[[pd.DataFrame], pd.DataFrame], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """One clear error, and no model is written."""
    edit(make_frame()).to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match=message):
        train_file(**{"data": tmp_path / "data.csv", "target": "label", "output": tmp_path / "model.json", **options})
    assert not (tmp_path / "model.json").exists()


def test_training_says_when_every_row_gets_the_same_label(tmp_path: Path) -> None:
    """Noise that drowns the classes gives one label to all rows, and a warning that says what to try."""
    lines = [f"{0.1 * (row % 2) + 0.01 * (row % 7)},{'yes' if row % 2 or row % 5 == 0 else 'no'}" for row in range(60)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    drowned = train_file(tmp_path / "data.csv", "y", tmp_path / "m.json", model="stumps", noise="gaussian:5")
    (message,) = [text for text in drowned["warnings"] if "Every training row gets the label 'yes'" in text]
    assert "--class-weight balanced" in message
    clear = train_file(tmp_path / "data.csv", "y", tmp_path / "m.json", model="stumps", noise="gaussian:0.1")
    assert not [text for text in clear["warnings"] if "Every training row" in text]


def test_an_identifier_as_the_number_to_be_predicted_is_told(tmp_path: Path) -> None:
    frame = make_frame()[["x", "job"]].assign(
        customer_id=np.random.default_rng(0).permutation(10**6)[: len(make_frame())]
    )
    frame.to_csv(tmp_path / "customers.csv", index=False)
    told = train_file(tmp_path / "customers.csv", "customer_id", tmp_path / "m.json", task="number", regularization=1.0)
    assert told["warnings"][0].startswith("The target 'customer_id' has another whole number in every row")
