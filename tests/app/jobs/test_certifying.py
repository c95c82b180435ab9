"""Certifying a file: how new files are matched, what is written, and what bad files are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv as arrow_csv
import pytest

from derand import Threat, certified_accuracy, load, save
from derand.app.jobs import CertifySettings, certify_file, train_file
from derand.estimators import StumpClassifier
from derand.tables import _files
from tests.app.jobs.tables import edit_nothing, make_frame, with_cell


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_certifying_a_file_in_batches_equals_certifying_it_at_once(
    suffix: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, labels, masses, radii and the summary are those of one call, in CSV and Parquet; columns go by name."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 2048)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 64)
    frame = make_frame(1000, seed=1)
    shuffled = frame[["label", "job", "member", "x", "name", "floor"]]
    new, out = tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}"
    if suffix == "csv":
        shuffled.to_csv(new, index=False)
    else:
        shuffled.to_parquet(new)
    batches: list[int] = []
    summary = certify_file(
        model, new, out, CertifySettings(target="label", radii=[0.0, 0.5], l0=1), advance=batches.append
    )
    features = frame[["x", "job", "floor", "member"]].astype({"floor": str, "member": str})
    expected = load(model).certify(features, l0=1)
    written = arrow_csv.read_csv(out).to_pandas() if suffix == "csv" else pd.read_parquet(out)
    assert list(written.columns) == ["row", "label", "failure", "radius", "proof"]
    assert written["row"].tolist() == list(range(1, 1001))
    assert written["label"].tolist() == expected.label.tolist()
    assert written["failure"].tolist() == expected.failure.tolist()
    assert written["radius"].tolist() == expected.radius.tolist()
    assert written["proof"].tolist() == expected.proof.tolist()
    assert len(batches) > 5
    assert sum(batches) == summary["rows"] == 1000
    assert summary["certified_rows"] == (expected.radius > 0).sum() < 1000
    assert summary["rows_of_infinite_radius"] == (expected.radius == float("inf")).sum()
    assert summary["columns_not_used"] == ["name"]
    shares = certified_accuracy(frame["label"].to_numpy(), expected, [0.0, 0.5])
    assert [entry["share"] for entry in summary["certified_accuracy"]] == pytest.approx(shares.tolist())
    assert summary["accuracy"] == pytest.approx((expected.label == frame["label"].to_numpy()).mean())


def test_values_that_training_did_not_see_are_counted(model: Path, tmp_path: Path) -> None:
    """A new category is allowed and reported; an empty cell is a missing category and not counted."""
    frame = make_frame(10)
    frame.loc[:3, "job"] = "pilot"
    frame.loc[4, "job"] = None
    frame.to_csv(tmp_path / "new.csv", index=False)
    summary = certify_file(model, tmp_path / "new.csv", tmp_path / "out.csv")
    assert summary["unseen_categories"] == {"job": 4}
    assert "accuracy" not in summary


def test_labels_that_look_like_formulas_are_disarmed_on_demand(tmp_path: Path) -> None:
    """A spreadsheet would compute them; without the option labels are written as they are."""
    labels = ['=HYPERLINK("x")', "-1 day"]
    frame = pd.DataFrame({"x": [0.0, 1.0, 4.0, 5.0], "y": [labels[0]] * 2 + [labels[1]] * 2})
    frame.to_csv(tmp_path / "data.csv", index=False)
    train_file(tmp_path / "data.csv", "y", tmp_path / "model.json", model="stumps")
    for safe, expected in ((False, labels), (True, ["'" + label for label in labels])):
        certify_file(
            tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", CertifySettings(safe_csv=safe)
        )
        assert pd.read_csv(tmp_path / "out.csv")["label"].tolist() == [expected[0]] * 2 + [expected[1]] * 2
    with pytest.raises(ValueError, match=r"out\.parquet as safe CSV, because it is Parquet"):
        certify_file(
            tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.parquet", CertifySettings(safe_csv=True)
        )


def test_a_model_of_nameless_columns_reads_by_position(tmp_path: Path) -> None:
    """Columns count in their order, the target apart; another number of them is refused."""
    X = [[0.0, 1], [1.0, 0], [4.0, 1], [5.0, 0]]
    save(StumpClassifier(noise="gaussian:0.5").fit(X, [0, 0, 1, 1]), tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("a,y,b\n0.5,0,1\n6,1,0\n")
    summary = certify_file(
        tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv", CertifySettings(target="y")
    )
    assert summary["accuracy"] == 1.0
    with pytest.raises(ValueError, match=r"has 3 columns of features, but the model was trained on 2, without names"):
        certify_file(tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv")


def test_answers_of_another_rule_or_noise_are_a_note(tmp_path: Path) -> None:
    """They may not be those of `predict`; by the model's own rule and noise nothing is said."""
    model, data, out = (tmp_path / name for name in ("model.json", "new.csv", "out.csv"))
    save(StumpClassifier(noise="gaussian:0.5").fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]), model)
    data.write_text("a\n0.5\n6\n")
    assert certify_file(model, data, out)["notes"] == []
    assert certify_file(model, data, out, CertifySettings(noise=0.5, rule="vote"))["notes"] == []
    (note,) = certify_file(model, data, out, CertifySettings(noise="none", rule="mean"))["notes"]
    assert note.startswith("Answers here are by rule mean, no noise: they may differ from those of `predict`, which")
    assert note.endswith("which go by rule vote, noise gaussian:0.5.")
    assert len(certify_file(model, data, out, CertifySettings(noise=0.25))["notes"]) == 1


def test_a_classifier_of_truth_values_and_numbers_as_categories_reads_files(tmp_path: Path) -> None:
    """Categories keep the type they had in training, wherever the model was trained."""
    frame = make_frame()[["x", "floor", "member", "label"]]
    features = frame[["x", "floor", "member"]]
    classifier = StumpClassifier(categorical_features=["floor", "member"]).fit(features, frame["label"] == "yes")
    save(classifier, tmp_path / "model.json")
    frame.assign(label=frame["label"] == "yes").to_csv(tmp_path / "new.csv", index=False)
    summary = certify_file(
        tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv", CertifySettings(target="label")
    )
    assert summary["unseen_categories"] == {}
    assert summary["accuracy"] == pytest.approx(classifier.score(features, frame["label"] == "yes"))


CERTIFYING_ERRORS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], dict[str, Any], str]] = {
    "missing columns": (lambda frame: frame.drop(columns=["x", "job"]), {}, "has no columns 'x', 'job'"),
    "a renamed column": (lambda frame: frame.rename(columns={"job": "jobs"}), {}, r"no column 'job'\. Did you mean"),
    "text among numbers": (with_cell("x", [41], "many"), {}, r"text in the number column 'x': 'many' \(line 43\)"),
    "gaps": (
        with_cell("x", [41, 42], None),
        {},
        r"in 'x' \(2 of 300 cells\) in rows 1 to 300: .* A model that was trained with missing values takes them",
    ),
    "an unknown label": (
        with_cell("label", [41], "maybe"),
        {"target": "label"},
        "label 'maybe' in row 42 .*'no', 'yes'",
    ),
    "a missing label": (with_cell("label", [41], None), {"target": "label"}, r"in 'label' \(1 of 300 cells\)"),
    "a feature as target": (edit_nothing, {"target": "job"}, "'job' is a feature of the model"),
    "no rows": (lambda frame: frame[:0], {}, "has a header line but no rows"),
    "negative l0": (edit_nothing, {"l0": -1}, "`l0` must be"),
    "l0 beside a threat": (edit_nothing, {"l0": 1, "threat": Threat()}, "Give `l0` or `threat`, got both"),
    "an unknown rule": (edit_nothing, {"rule": "dice"}, "`rule` must be one of"),
    "an unknown proof": (edit_nothing, {"proof": "none"}, "`proof` must be"),
    "an unknown noise": (edit_nothing, {"noise": "pink:1"}, "Unknown noise 'pink'"),
    "a vote without noise": (
        edit_nothing,
        {"noise": "none"},
        "`noise` must not be None or 'none' under the rule 'vote'",
    ),
    "another norm": (edit_nothing, {"threat": Threat(norm=3)}, "`norm` of Threat must be one of"),
    "no such column": (edit_nothing, {"threat": Threat(frozen=["jobb"])}, "'jobb', which does not exist; did you mean"),
    "a limit of a category": (
        edit_nothing,
        {"threat": Threat(limits={"job": 1})},
        "got 'job', which is categorical: `l0` says",
    ),
    "a domain without a row's own value": (
        with_cell("x", [250], 9.5),
        {"threat": Threat(domain={"x": (-9, 9)})},
        r"new\.csv has 9\.5 in row 251 of the column 'x', outside of its domain from -9 to 9",
    ),
    "gaps in a column with a domain": (
        with_cell("x", [41], None),
        {"threat": Threat(domain={"x": (-9, 9)})},
        r"in 'x' \(1 of 300 cells\)",
    ),
    "a value of no category": (
        edit_nothing,
        {"threat": Threat(l0=1, may_become={"job": ["clrek"]})},
        "names 'clrek' for 'job', which training did not see; did you mean 'clerk'",
    ),
    "a value of another type": (
        edit_nothing,
        {"threat": Threat(l0=1, may_become={"floor": [3]})},
        "names 3 for 'floor', which training did not see; did you mean '3'",
    ),
    "values of a number": (edit_nothing, {"threat": Threat(may_become={"x": [3]})}, "must name categorical columns"),
    "witnesses in a ball": (edit_nothing, {"witness": "out_flips.csv"}, r"\(norm none\), got norm 2"),
    "no such file of a threat": (edit_nothing, {"threat": "absent.toml"}, "absent.toml does not exist"),
}


@pytest.mark.parametrize(("edit", "options", "message"), CERTIFYING_ERRORS.values(), ids=CERTIFYING_ERRORS.keys())
def test_a_file_that_does_not_fit_the_model_is_refused(
    edit: Callable[[pd.DataFrame], pd.DataFrame],
    options: dict[str, Any],
    message: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One clear error, and nothing half written."""
    edit(make_frame()).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 64)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        certify_file(model, tmp_path / "new.csv", tmp_path / "out.csv", CertifySettings(**options))
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_a_bare_ensemble_is_not_certified_from_files(tmp_path: Path, data: Path) -> None:
    """A model without noise and columns is refused with the way out."""
    save(StumpClassifier().fit([[0.0], [1.0]], [0, 1]).ensemble_, tmp_path / "bare.json")
    with pytest.raises(ValueError, match=r"bare\.json holds a bare model \(AdditiveEnsemble\), which knows no noise"):
        certify_file(tmp_path / "bare.json", data, tmp_path / "out.csv")


def test_a_written_csv_file_is_read_by_others(model: Path, data: Path, tmp_path: Path) -> None:
    """The result is ordinary CSV."""
    certify_file(model, data, tmp_path / "out.csv")
    assert arrow_csv.read_csv(tmp_path / "out.csv").column_names == ["row", "label", "failure", "radius", "proof"]


def make_mixed(n_rows: int, seed: int) -> pd.DataFrame:
    """Numbers, whole numbers, text, and categories that training does not see."""
    frame = make_frame(n_rows, seed)[["x", "job", "member", "label"]]
    size = np.random.default_rng(seed).integers(0, 9, size=n_rows)
    return frame.assign(size=size, label=np.where(frame["x"] + (frame["job"] == "cook") + size / 4 > 1.2, "yes", "no"))


@pytest.mark.parametrize(
    ("suffix", "noise", "more"),
    [
        ("csv", None, {}),
        ("csv", "none", {"frozen": ["job"], "steps": {"size": 1}}),
        ("parquet", "none", {"may_become": {"job": ["cook"]}}),
    ],
)
def test_witnesses_that_are_read_back_get_the_other_label(
    suffix: str, noise: str | None, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line per row that flips, within the limits; what did not change is written as it was."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 2**11)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 64)
    make_mixed(300, 0).to_csv(tmp_path / "data.csv", index=False)
    model, out, flips = tmp_path / "model.json", tmp_path / "out.csv", tmp_path / f"flips.{suffix}"
    train_file(tmp_path / "data.csv", "label", model, model="stumps")
    new = make_mixed(500, 1).astype({"job": object})
    new.loc[::5, "job"] = "pilot"
    new.loc[1::5, "job"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    asked: dict[str, Any] = {"rule": "mean", "noise": noise}
    threat = Threat(norm=None, limits={"x": 0.7, "size": (0, 2)}, l0=1, **more)
    summary = certify_file(model, tmp_path / "new.csv", out, CertifySettings(threat=threat, witness=flips, **asked))
    certified = pd.read_csv(out)
    again = pd.read_csv(flips) if suffix == "csv" else pd.read_parquet(flips)
    assert list(again.columns) == ["row", "label", "new_label", "change", "x", "job", "member", "size"]
    assert sorted(again["row"]) == certified.loc[certified["verdict"] == "flips", "row"].tolist()
    assert 0 < len(again) == summary["verdicts"]["flips"] == summary["flips"]["flips"]
    assert again["change"].str.match(r"It would be '.*' if .*\.").all()
    assert summary["flips"]["unseen"]
    assert (again["label"] != again["new_label"]).all()
    certify_file(model, flips, tmp_path / "again.csv", CertifySettings(**asked))
    assert pd.read_csv(tmp_path / "again.csv")["label"].tolist() == again["new_label"].tolist()
    before = new.iloc[again["row"] - 1].reset_index(drop=True)
    assert ((again["x"] - before["x"]).abs() <= 0.7 + 1e-12).all()
    assert again["size"].sub(before["size"]).between(0, 2).all()
    changed = (again["job"].fillna("") != before["job"].fillna("")).astype(int)
    changed += again["member"].astype(str) != before["member"].astype(str)
    assert changed.max() == 1
    if "frozen" in more:
        assert again["job"].fillna("").tolist() == before["job"].fillna("").tolist()
        assert "pilot" in set(again["job"])
    if "steps" in more:
        assert (again["size"] == again["size"].round()).all()
    if "may_become" in more:
        assert set(again["job"][again["job"].fillna("") != before["job"].fillna("")]) == {"cook"}
    if suffix == "csv":
        cells = [line.split(",") for line in flips.read_text().splitlines()[1:]]
        assert all(cell[-1].isdigit() for cell, step in zip(cells, again["size"], strict=True) if step == int(step))


def test_a_file_without_witnesses_has_a_header(tmp_path: Path) -> None:
    """No row flips where nothing may change; our columns give way to the table's."""
    frame = pd.DataFrame({"row": [0.0, 1, 5, 6], "label": ["a", "a", "b", "b"], "y": [0, 0, 1, 1]})
    frame.to_csv(tmp_path / "data.csv", index=False)
    model, flips = tmp_path / "model.json", tmp_path / "flips.csv"
    train_file(tmp_path / "data.csv", "y", model, model="stumps")
    summary = certify_file(
        model, tmp_path / "data.csv", tmp_path / "out.csv", CertifySettings(threat=Threat(norm=None), witness=flips)
    )
    assert summary["verdicts"] == {"holds": 4, "flips": 0, "undecided": 0}
    assert summary["threat"]["fixed"] == ["row"]
    assert flips.read_text() == '"_row","_label","new_label","change","row","label"\n'
    with pytest.raises(ValueError, match="name another file"):
        certify_file(model, tmp_path / "data.csv", flips, CertifySettings(threat=Threat(norm=None), witness=flips))
    with pytest.raises(ValueError, match="is also an input"):
        certify_file(model, tmp_path / "data.csv", flips, CertifySettings(threat=Threat(norm=None), witness=model))
