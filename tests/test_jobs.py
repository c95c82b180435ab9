"""From files to files: which columns are used, how new files are matched, and what bad files are told."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv as arrow_csv
import pytest

from derand import AdditiveEnsemble, CertificateReport, Threat, WeightedVote, certified_accuracy, load, save
from derand.estimators import TRAINERS, StumpClassifier
from derand.frames import ColumnCheck, ColumnKind, ColumnUse, TableEncoding, _files
from derand.jobs import _summarize_columns, certify_file, report_file, train_file


def make_frame(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """A mixed table with every sort of column, of which x, job and floor say something about the label."""
    rng = np.random.default_rng(seed)
    x, job = rng.normal(size=n_rows), rng.choice(["clerk", "cook", "driver"], size=n_rows)
    floor = rng.integers(1, 4, size=n_rows)
    return pd.DataFrame(
        {
            "x": x,
            "job": job,
            "floor": floor,
            "member": rng.choice([True, False], size=n_rows),
            "same": 3,
            "word": "one",
            "name": [f"person {row}" for row in range(n_rows)],
            "day": pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "gap": "",
            "label": np.where(x + (job == "cook") + 0.3 * floor > 0.8, "yes", "no"),
        }
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    make_frame().to_csv(path)  # with pandas' nameless index column
    return path


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    train_file(data, "label", tmp_path / "model.json", categorical=["floor"])
    return tmp_path / "model.json"


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
    assert uses["day"] == ("ignored", "holds neither numbers nor text")
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
    summary = certify_file(model, new, out, target="label", radii=[0.0, 0.5], l0=1, advance=batches.append)
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


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_categorical_columns_without_any_value_are_reported(
    suffix: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty in every batch; one that holds a value anywhere is none of them."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", 2**10)
    monkeypatch.setattr(_files, "_BATCH_ROWS", 20)
    frame = make_frame(200).astype({"job": object})
    frame["job"], frame.loc[:198, "floor"] = None, None
    new = tmp_path / f"new.{suffix}"
    frame.to_csv(new, index=False) if suffix == "csv" else frame.to_parquet(new)
    summary = certify_file(model, new, tmp_path / "out.csv")
    assert summary["empty_columns"] == ["job"]
    assert report_file(model, new, tmp_path / "report.md")["empty_columns"] == ["job"]


def test_labels_that_look_like_formulas_are_disarmed_on_demand(tmp_path: Path) -> None:
    """A spreadsheet would compute them; without the option labels are written as they are."""
    labels = ['=HYPERLINK("x")', "-1 day"]
    frame = pd.DataFrame({"x": [0.0, 1.0, 4.0, 5.0], "y": [labels[0]] * 2 + [labels[1]] * 2})
    frame.to_csv(tmp_path / "data.csv", index=False)
    train_file(tmp_path / "data.csv", "y", tmp_path / "model.json")
    for safe, expected in ((False, labels), (True, ["'" + label for label in labels])):
        certify_file(tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", safe_csv=safe)
        assert pd.read_csv(tmp_path / "out.csv")["label"].tolist() == [expected[0]] * 2 + [expected[1]] * 2
    with pytest.raises(ValueError, match=r"out\.parquet as safe CSV, because it is Parquet"):
        certify_file(tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.parquet", safe_csv=True)


@pytest.mark.parametrize("place", ["x", "label"])
def test_long_cells_are_quoted_in_short(place: str, model: Path, tmp_path: Path) -> None:
    """A cell of a million letters does not make a message of a million letters."""
    frame = make_frame(10).astype({"x": object})
    frame.loc[3, place] = "a" * 1_000_000
    frame.to_csv(tmp_path / "new.csv", index=False)
    for work in (
        lambda: certify_file(model, tmp_path / "new.csv", tmp_path / "out.csv", target="label"),
        lambda: train_file(tmp_path / "new.csv", "label", tmp_path / "new.json"),
    ):
        with pytest.raises(ValueError, match=r"aaa'\.\.\.") as told:
            work()
        assert len(str(told.value)) < 500


def test_a_model_of_nameless_columns_reads_by_position(tmp_path: Path) -> None:
    """Columns count in their order, the target apart; another number of them is refused."""
    X = [[0.0, 1], [1.0, 0], [4.0, 1], [5.0, 0]]
    save(StumpClassifier(noise="gaussian:0.5").fit(X, [0, 0, 1, 1]), tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("a,y,b\n0.5,0,1\n6,1,0\n")
    summary = certify_file(tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv", target="y")
    assert summary["accuracy"] == 1.0
    with pytest.raises(ValueError, match=r"has 3 columns of features, but the model was trained on 2, without names"):
        certify_file(tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv")


@pytest.mark.parametrize("labels", [("0", "1"), ("-1", "1"), ("1.0", "2.0"), ("True", "False"), ("b", "a")])
def test_labels_of_any_kind_go_from_file_to_file(labels: tuple[str, str], tmp_path: Path) -> None:
    """Whole numbers, truth values and text are matched again when the true labels are read for certifying."""
    lines = [f"{x},{labels[int(x > 5)]}" for x in range(11)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]))
    train_file(tmp_path / "data.csv", "y", tmp_path / "model.json")
    summary = certify_file(tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", target="y")
    assert summary["accuracy"] > 0.8


def test_a_classifier_of_truth_values_and_numbers_as_categories_reads_files(tmp_path: Path) -> None:
    """Categories keep the type they had in training, wherever the model was trained."""
    frame = make_frame()[["x", "floor", "member", "label"]]
    features = frame[["x", "floor", "member"]]
    classifier = StumpClassifier(categorical_features=["floor", "member"]).fit(features, frame["label"] == "yes")
    save(classifier, tmp_path / "model.json")
    frame.assign(label=frame["label"] == "yes").to_csv(tmp_path / "new.csv", index=False)
    summary = certify_file(tmp_path / "model.json", tmp_path / "new.csv", tmp_path / "out.csv", target="label")
    assert summary["unseen_categories"] == {}
    assert summary["accuracy"] == pytest.approx(classifier.score(features, frame["label"] == "yes"))


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
    certified = certify_file(tmp_path / "model.json", data, tmp_path / "out.csv", target="label")
    assert certified["accuracy"] == summary["training_accuracy"] > 0.6
    assert report_file(tmp_path / "model.json", data, tmp_path / "report.md", target="label")["rows"] == 300


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
    assert _summarize_columns(checks, classifiers[0]) == [
        {"name": "a", "use": "numerical", "detail": "split at 0.5, 1, 2"},
        {"name": "b", "use": "ignored", "detail": "the model does not split it"},
    ]
    assert _summarize_columns(checks, classifiers[1])[0]["detail"] == "split at 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"


class OpenCounter:
    """Counts how often the operating system opens a file."""

    OPEN, CLOSE = 0x20, 0x10  # closing is watched as well, because equal events in a row are merged into one

    def __init__(self, path: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watch = self._libc.inotify_init1(os.O_NONBLOCK)
        assert self._libc.inotify_add_watch(self._watch, os.fsencode(path), self.OPEN | self.CLOSE) >= 0

    def count(self) -> int:
        """Opens since the counter was made; it is used up."""
        events = os.read(self._watch, 2**16)
        os.close(self._watch)
        masks = [struct.unpack_from("iIII", events, start)[1] for start in range(0, len(events), 16)]
        return sum(bool(mask & self.OPEN) for mask in masks)


@pytest.mark.skipif(sys.platform != "linux", reason="opens are counted by inotify")
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_file_is_opened_once_to_look_and_once_to_read(suffix: str, model: Path, tmp_path: Path) -> None:
    """Training, certifying and reporting open their table twice each, however large it is."""
    new = tmp_path / f"new.{suffix}"
    if suffix == "parquet":
        make_frame(500).to_parquet(new)
    else:
        make_frame(500).to_csv(new, index=False)
    counter = OpenCounter(new)
    certify_file(model, new, tmp_path / "out.csv", target="label")
    assert counter.count() == 2
    counter = OpenCounter(new)
    report_file(model, new, tmp_path / "report.md", target="label", groups=["word"])
    assert counter.count() == 2
    counter = OpenCounter(new)
    train_file(new, "label", tmp_path / "again.json")
    assert counter.count() == 2


def edit_nothing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def with_cell(column: str, rows: Any, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def edit(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype({column: object})
        frame.loc[rows, column] = value
        return frame

    return edit


TRAINING_ERRORS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], dict[str, Any], str]] = {
    "no such target": (edit_nothing, {"target": "labell"}, r"no column 'labell'\. Did you mean 'label'"),
    "no such category": (edit_nothing, {"categorical": ["floors"]}, r"no column 'floors'\. Did you mean 'floor'"),
    "no such column to ignore": (edit_nothing, {"ignored": ["jobs"]}, r"no column 'jobs'\. Did you mean 'job'"),
    "the target ignored": (edit_nothing, {"ignored": ["label"]}, "'label' is the target"),
    "stray text": (with_cell("x", [5, 9], "n/v"), {}, r"text in the number column 'x': 'n/v' in 2 of 300 cells"),
    "infinity": (with_cell("x", [0], "inf"), {}, r"has infinite cells in 'x' \(1 of 300 cells\)"),
    "a missing label": (with_cell("label", [3], None), {}, r"cells in 'label' \(1 of 300 cells\)"),
    "three labels": (with_cell("label", [3], "maybe"), {}, r"3 different labels .*'maybe', 'no', 'yes'.* must be two"),
    "one label": (with_cell("label", slice(None), "no"), {}, r"1 different labels in the column 'label'"),
    "dates as labels": (edit_nothing, {"target": "day"}, "'day' that are neither numbers nor text"),
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
        certify_file(model, tmp_path / "new.csv", tmp_path / "out.csv", **options)
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the paper's proof": {"proof": "paper"},
    "linf": {"threat": Threat(norm=np.inf)},
    "columns": {"threat": Threat(norm=0, l0=1)},
    "limits in a ball": {"threat": Threat(limits={"x": "20%"}, frozen=["job"], l0=1, unseen=False)},
    "values": {
        "threat": Threat(norm=None, steps={"floor": 1}, limits={"floor": 1}, may_become={"job": ["cook"]}, l0=1)
    },
    "limits alone": {"threat": Threat(norm=None, limits={"*": 0.5}, domain={"floor": (0, 9)}, l0=1)},
}


@pytest.mark.parametrize("rule", ["vote", "mean"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_a_file_is_certified_as_its_rows_are(rule: str, options: dict[str, Any], data: Path, tmp_path: Path) -> None:
    """Labels, radii or verdicts, and proofs, by any rule and under any threat; labels are those without a threat."""
    if rule == "mean" and "proof" in options:
        return
    train_file(data, "label", tmp_path / "model.json")
    summary = certify_file(tmp_path / "model.json", data, tmp_path / "out.csv", target="label", rule=rule, **options)
    # as text: an older pandas reads numbers with an error in the last bit
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False, dtype={"radius": str})
    classifier, frame = load(tmp_path / "model.json"), make_frame()
    rows = frame[list(classifier.feature_names_in_)].astype({"floor": float, "member": str})
    expected = classifier.certify(rows, rule=rule, **options)
    assert written["label"].tolist() == expected.label.tolist() == classifier.certify(rows, rule=rule).label.tolist()
    assert written["proof"].tolist() == expected.proof.tolist()
    assert summary["proofs"] == {name: int((expected.proof == name).sum()) for name in sorted(set(expected.proof))}
    assert (summary["rule"], summary["norm"], summary["l0"]) == (rule, expected.norm, expected.l0)
    held = expected.radius > 0
    if expected.verdict is None:
        assert written["radius"].astype(float).tolist() == expected.radius.tolist()
        assert "verdicts" not in summary
        return
    assert list(written.columns) == ["row", "label", "failure", "verdict", "proof"]
    assert written["verdict"].tolist() == expected.verdict.tolist()
    assert summary["verdicts"] == {name: int((expected.verdict == name).sum()) for name in summary["verdicts"]}
    assert sum(summary["verdicts"].values()) == 300
    assert summary["proven_accuracy"] == pytest.approx((held & (expected.label == frame["label"].to_numpy())).mean())
    assert "certified_accuracy" not in summary


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
    train_file(tmp_path / "data.csv", "label", model)
    new = make_mixed(500, 1).astype({"job": object})
    new.loc[::5, "job"] = "pilot"
    new.loc[1::5, "job"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    asked: dict[str, Any] = {"rule": "mean", "noise": noise}
    threat = Threat(norm=None, limits={"x": 0.7, "size": (0, 2)}, l0=1, **more)
    summary = certify_file(model, tmp_path / "new.csv", out, threat=threat, witness=flips, **asked)
    certified = pd.read_csv(out)
    again = pd.read_csv(flips) if suffix == "csv" else pd.read_parquet(flips)
    assert list(again.columns) == ["row", "label", "new_label", "x", "job", "member", "size"]
    assert again["row"].tolist() == certified.loc[certified["verdict"] == "flips", "row"].tolist()
    assert 0 < len(again) == summary["verdicts"]["flips"]
    assert (again["label"] != again["new_label"]).all()
    certify_file(model, flips, tmp_path / "again.csv", **asked)
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
    train_file(tmp_path / "data.csv", "y", model)
    summary = certify_file(model, tmp_path / "data.csv", tmp_path / "out.csv", threat=Threat(norm=None), witness=flips)
    assert summary["verdicts"] == {"holds": 4, "flips": 0, "undecided": 0}
    assert summary["threat"]["fixed"] == ["row"]
    assert flips.read_text() == '"_row","_label","new_label","row","label"\n'
    with pytest.raises(ValueError, match="name another file"):
        certify_file(model, tmp_path / "data.csv", flips, threat=Threat(norm=None), witness=flips)
    with pytest.raises(ValueError, match="is also an input"):
        certify_file(model, tmp_path / "data.csv", flips, threat=Threat(norm=None), witness=model)


def test_a_threat_in_a_file_is_that_of_the_library(model: Path, data: Path, tmp_path: Path) -> None:
    """Also units by name, where columns that are not named keep those of the noise; the file is never an output."""
    path = tmp_path / "threat.toml"
    path.write_text('norm = 1\nl0 = 1\nfrozen = ["job"]\n[units]\nx = 2\n[limits]\nx = [0.5, 1]\n')
    units = list(load(model).noise_.units)
    units[0] = 2.0
    same = Threat(norm=1, l0=1, frozen=("job",), units=tuple(units), limits={"x": (0.5, 1)})
    summaries = [certify_file(model, data, tmp_path / f"out{k}.csv", threat=t) for k, t in enumerate([path, same])]
    assert (tmp_path / "out0.csv").read_bytes() == (tmp_path / "out1.csv").read_bytes()
    assert summaries[0]["threat"] == summaries[1]["threat"]
    assert summaries[0]["threat"]["units"] == {"x": 2.0}
    with pytest.raises(ValueError, match="is also an input"):
        certify_file(model, data, path, threat=path)


def test_columns_of_a_nameless_model_are_named_as_in_the_file(tmp_path: Path) -> None:
    """A threat names what the user sees."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    save(StumpClassifier().fit(X, X[:, 0] > 0), tmp_path / "model.json")
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "data.csv", index=False)
    for threat in (Threat(norm=None, limits={"a": 1}), Threat(norm=None, limits={0: 1})):
        summary = certify_file(tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", threat=threat)
        assert summary["threat"]["limits"] == {"a": 1.0}
        assert summary["threat"]["fixed"] == ["b"]
        assert summary["verdicts"]["flips"] > 0


def test_a_bare_ensemble_is_not_certified_from_files(tmp_path: Path, data: Path) -> None:
    """A model without noise and columns is refused with the way out."""
    save(StumpClassifier().fit([[0.0], [1.0]], [0, 1]).ensemble_, tmp_path / "bare.json")
    with pytest.raises(ValueError, match=r"bare\.json holds a bare model \(AdditiveEnsemble\), which knows no noise"):
        certify_file(tmp_path / "bare.json", data, tmp_path / "out.csv")


def test_a_written_csv_file_is_read_by_others(model: Path, data: Path, tmp_path: Path) -> None:
    """The result is ordinary CSV."""
    certify_file(model, data, tmp_path / "out.csv")
    assert arrow_csv.read_csv(tmp_path / "out.csv").column_names == ["row", "label", "failure", "radius", "proof"]


def test_a_report_on_a_file_equals_a_report_on_its_rows(data: Path, model: Path, tmp_path: Path) -> None:
    """Features, labels, subgroups (of features and of other columns) and the baseline come from the files."""
    path = tmp_path / "report.json"
    summary = report_file(model, data, path, target="label", train=data, groups=["job", "member", "word"], radius=0.1)
    report = json.loads(path.read_text(encoding="utf-8"))
    frame, classifier = make_frame(), load(model)
    rows = frame[list(classifier.feature_names_in_)].astype({"floor": str, "member": str})
    direct = CertificateReport(classifier, rows, frame["label"], radius=0.1).to_dict()
    assert report["data"] == direct["data"]
    assert report["radii"] == direct["radii"]
    assert summary["guarantee"] == report["guarantee"]["paragraph"] == direct["guarantee"]["paragraph"]
    assert [group["column"] for group in report["subgroups"]] == ["job", "member", "word"]
    assert report["subgroups"][2]["groups"][0]["n_rows"] == 300
    assert [one["key"] for one in report["accuracy"]["baselines"]] == ["constant", "without-noise"]


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
        report_file(model, data, tmp_path / "report.html", groups=["nothing"])
    with pytest.raises(OSError, match="Cannot write"):
        report_file(model, data, tmp_path / "missing" / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("lost", ["data", "model"])
def test_an_output_that_is_an_input_is_refused(tmp_path: Path, lost: str) -> None:
    """Neither the table nor the model is replaced by what is made from it."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    data.write_text("x,y\n" + "".join(f"{number},{'no' if number < 5 else 'yes'}\n" for number in range(10)))
    train_file(data, "y", model)
    target = {"data": data, "model": model}[lost]
    before = target.read_bytes()
    with pytest.raises(ValueError, match="is also an input, which would be lost"):
        certify_file(model, data, target)
    with pytest.raises(ValueError, match="is also an input, which would be lost"):
        report_file(model, data, target, target="y")
    with pytest.raises(ValueError, match="is also an input, which would be lost"):
        train_file(data, "y", data)
    assert target.read_bytes() == before


def test_training_says_when_every_row_gets_the_same_label(tmp_path: Path) -> None:
    """Noise that drowns the classes gives one label to all rows, and a warning that says what to try."""
    lines = [f"{0.1 * (row % 2) + 0.01 * (row % 7)},{'yes' if row % 2 or row % 5 == 0 else 'no'}" for row in range(60)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    drowned = train_file(tmp_path / "data.csv", "y", tmp_path / "m.json", noise="gaussian:5")
    (message,) = [text for text in drowned["warnings"] if "Every row gets the label yes" in text]
    assert "--class-weight balanced" in message
    clear = train_file(tmp_path / "data.csv", "y", tmp_path / "m.json", noise="gaussian:0.1")
    assert not [text for text in clear["warnings"] if "Every row" in text]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_with_empty_cells_is_trained_on_and_certified(suffix: str, tmp_path: Path) -> None:
    """Empty cells of number columns are missing values; witnesses have empty cells where a number goes missing."""
    frame = make_frame()
    frame["x"] = frame["x"].where(frame.index % 6 > 0)
    data = tmp_path / f"gaps.{suffix}"
    frame.to_csv(data, index=False) if suffix == "csv" else frame.to_parquet(data)
    trained = train_file(data, "label", tmp_path / "model.json", categorical=["floor"])
    assert {one["name"]: one["use"] for one in trained["columns"]}["x"] == "numerical"
    found = certify_file(tmp_path / "model.json", data, tmp_path / "out.csv", target="label")
    assert found["rows"] == 300
    assert found["threat"]["missing"] == 0
    threat = Threat(norm=None, limits={"x": 0.1}, missing=1)
    out, witness = tmp_path / f"verdicts.{suffix}", tmp_path / f"witness.{suffix}"
    found = certify_file(tmp_path / "model.json", data, out, threat=threat, rule="mean", witness=witness)
    assert found["threat"]["missing"] == 1
    assert found["verdicts"]["flips"] > 0
    flips = pd.read_csv(witness) if suffix == "csv" else pd.read_parquet(witness)
    before = frame["x"].to_numpy()[flips["row"].to_numpy() - 1]
    assert (flips["x"].isna() != np.isnan(before)).any()
    again = certify_file(tmp_path / "model.json", witness, tmp_path / "again.csv", rule="mean")
    assert again["rows"] == found["verdicts"]["flips"]
    labels = pd.read_csv(tmp_path / "again.csv")["label"].tolist()
    assert labels == flips["new_label"].tolist()
    report = report_file(tmp_path / "model.json", data, tmp_path / "report.html", target="label", train=data)
    assert report["rows"] == 300


def test_infinity_beside_empty_cells_is_named_with_its_rows(tmp_path: Path) -> None:
    """A model that takes missing values refuses infinity, by file and rows."""
    frame = make_frame()
    frame["x"] = frame["x"].where(frame.index % 6 > 0)
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    train_file(tmp_path / "gaps.csv", "label", tmp_path / "model.json")
    frame.loc[7, "x"] = np.inf
    frame.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ValueError, match=r"bad\.csv has infinite cells in 'x' \(1 of 300 cells\) in rows 1 to 300"):
        certify_file(tmp_path / "model.json", tmp_path / "bad.csv", tmp_path / "out.csv")
    with pytest.raises(ValueError, match=r"bad\.csv has infinite cells in 'x' \(1 of 300 cells\)"):
        report_file(
            tmp_path / "model.json",
            tmp_path / "gaps.csv",
            tmp_path / "report.md",
            target="label",
            train=tmp_path / "bad.csv",
        )
