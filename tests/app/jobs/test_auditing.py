"""Auditing a file of certificates: what is written beside them, what is found, and what bad files are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveEnsemble, StepFunction, load
from derand.app import Summary
from derand.app.jobs import (
    CertifySettings,
    _auditing,
    _certifying,
    audit_file,
    certify_file,
    train_file,
)
from derand.estimators import assemble
from derand.model import Argmax
from derand.storage import find_record, load_record, mark_file
from tests.app.jobs.tables import make_frame


@pytest.fixture
def certified(model: Path, data: Path, tmp_path: Path) -> Path:
    certify_file(model, data, tmp_path / "certified.csv", CertifySettings(l0=1))
    return tmp_path / "certified.csv"


def test_certifying_writes_what_the_certificates_are_about(model: Path, data: Path, certified: Path) -> None:
    """Checksums of all three files, and everything that was asked for."""
    record = load_record(find_record(certified))
    assert [mark.file for mark in (record.model, record.data, record.certified)] == [
        model.name,
        data.name,
        certified.name,
    ]
    assert all(mark.matches(path) for mark, path in ((record.model, model), (record.certified, certified)))
    assert record.n_rows == len(pd.read_csv(certified))
    assert record.rule == "vote"
    assert record.threat.l0 == 1
    assert record.noise is not None
    text = json.loads(find_record(certified).read_text())
    assert text["schema"] == "derand/certified/1"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("norm", [None, 2])
def test_what_was_certified_is_proven(suffix: str, norm: float | None, model: Path, data: Path, tmp_path: Path) -> None:
    """Radii and verdicts, from CSV and Parquet; each row of the output says what was claimed and proven."""
    out, result = tmp_path / f"out.{suffix}", tmp_path / f"audit.{suffix}"
    changes = {"norm": norm, "limits": {"x": 0.2}} if norm is None else {}
    certify_file(model, data, out, CertifySettings(changes=changes))
    seen: list[int] = []
    summary = audit_file(model, data, out, rows=15, output=result, advance=seen.append)
    assert summary["passed"]
    assert summary["proven"] == summary["audited"] == sum(seen) == 15
    assert summary["not_proven"] == summary["changed"] == []
    assert all(check["passed"] for check in summary["machine"])
    written = pd.read_csv(result) if suffix == "csv" else pd.read_parquet(result)
    assert list(written.columns) == ["row", "claimed", "proven", "verdict", "claim"]
    assert (written["verdict"] == "proven").all()
    assert written["row"].is_monotonic_increasing


def edit(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    change(pd.read_csv(path, dtype=str, keep_default_na=False)).to_csv(path, index=False)


def enlarge(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(radius=[repr(float(text) * 1.001) for text in frame["radius"]])


def audit_all(model: Path, data: Path, certified: Path) -> Summary:
    return audit_file(model, data, certified, rows=25)


def test_a_radius_that_is_a_tenth_of_a_percent_too_large_is_found(model: Path, data: Path, certified: Path) -> None:
    """Every row of which the failing mass is the proof, and the file by its checksum."""
    edit(certified, enlarge)
    summary = audit_all(model, data, certified)
    assert not summary["passed"]
    assert summary["changed"] == [str(certified)]
    written = pd.read_csv(certified, dtype=str)["radius"]  # as text: older releases of pandas round
    assert summary["not_proven"]
    for told in summary["not_proven"]:
        assert told["claim"] == "radius"
        assert told["proven"] < told["claimed"] == float(written[told["row"] - 1])


def test_another_model_is_found(model: Path, data: Path, certified: Path, tmp_path: Path) -> None:
    """By its checksum, and by claims that it does not keep."""
    frame = make_frame(seed=7)
    frame["label"] = np.roll(frame["label"].to_numpy(), 50)
    frame.to_csv(tmp_path / "other.csv")
    train_file(tmp_path / "other.csv", "label", tmp_path / "other.json", model="stumps", categorical=["floor"])
    summary = audit_all(tmp_path / "other.json", data, certified)
    assert summary["changed"] == [str(tmp_path / "other.json")]
    assert not summary["passed"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(label="neither"), "must be a class of the model"),
        (lambda frame: frame.assign(row=frame["row"].to_numpy()[::-1]), "must count the rows from 1"),
        (lambda frame: frame.assign(radius="wide"), "`radius` of .* must hold numbers"),
        (lambda frame: frame[:5], "its record"),
        (lambda frame: frame.drop(columns="failure"), "failure"),
    ],
)
def test_files_that_are_no_certificates(
    change: Callable[[pd.DataFrame], pd.DataFrame], message: str, model: Path, data: Path, certified: Path
) -> None:
    """One line that says what is wrong."""
    edit(certified, change)
    with pytest.raises(ValueError, match=message):
        audit_all(model, data, certified)


def test_records_that_are_none(model: Path, data: Path, certified: Path, tmp_path: Path) -> None:
    """A missing record, one that is no record, and a table of other rows."""
    record = find_record(certified)
    content = record.read_text()
    record.write_text(content.replace('"rule": "vote"', '"rule": "dice"'))
    with pytest.raises(ValueError, match="`rule` must be one of vote, mean"):
        audit_all(model, data, certified)
    record.write_text("[]")
    with pytest.raises(ValueError, match="is not a record of certificates"):
        audit_all(model, data, certified)
    record.unlink()
    with pytest.raises(FileNotFoundError, match="`derand certify` writes it"):
        audit_all(model, data, certified)
    record.write_text(content)
    make_frame(30).to_csv(tmp_path / "short.csv")
    with pytest.raises(ValueError, match="30 rows, but"):
        audit_all(model, tmp_path / "short.csv", certified)
    with pytest.raises(ValueError, match="is also an input"):
        audit_file(model, data, certified, output=data)


@pytest.mark.parametrize("labels", [("0", "1"), ("1.0", "2.0"), ("True", "False"), ("=b", "a")])
def test_labels_of_any_kind(labels: tuple[str, str], tmp_path: Path) -> None:
    """As `certify` writes them, for spreadsheets, too."""
    lines = [f"{x},{labels[int(x > 5)]}" for x in range(11)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]))
    train_file(tmp_path / "data.csv", "y", tmp_path / "model.json", model="stumps")
    for safe in (False, True):
        certify_file(
            tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv", CertifySettings(safe_csv=safe)
        )
        assert audit_file(tmp_path / "model.json", tmp_path / "data.csv", tmp_path / "out.csv")["passed"]


def test_witnesses_do_not_take_the_place_of_the_record(model: Path, data: Path, tmp_path: Path) -> None:
    """Both would be written beside the certificates."""
    out = tmp_path / "out.csv"
    with pytest.raises(ValueError, match=r"cannot go to .*out\.csv\.json"):
        certify_file(
            model, data, out, CertifySettings(changes={"norm": None, "limits": {"x": 0.2}}, witness=find_record(out))
        )
    assert not out.exists()


@pytest.mark.parametrize("labels", [["high", "low", "middle"], [10, 20, 30], [0.5, 1.0, 2.5]], ids=str)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_several_classes(
    labels: list[Any], suffix: str, model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels are texts or numbers of more than two classes; one that loses a duel is found, and so is a radius."""
    two = load(model)
    (at,) = two.ensemble_.numerical_features
    terms = [StepFunction(at, [-0.6, 0.5], [[0, 9, 4], [2, 2, 7], [8, 0, 4]])]
    three = AdditiveEnsemble(terms, Argmax([0, 0, 0]), two.ensemble_.n_features)
    parts = (three, two.noise_, two.encoding_, {}, two.get_params())
    classifier = assemble(type(two), *parts, classes=np.array(labels))
    monkeypatch.setattr(_certifying, "load_fitted", lambda path: classifier)
    monkeypatch.setattr(_auditing, "load_fitted", lambda path: classifier)
    out = tmp_path / f"out.{suffix}"
    certify_file(model, data, out)
    summary = audit_file(model, data, out, rows=25)
    assert summary["passed"], summary["not_proven"]
    # every digit: older versions of pandas round numbers that they read
    table = pd.read_csv(out, float_precision="round_trip") if suffix == "csv" else pd.read_parquet(out)
    assert set(table["label"]) == set(labels)
    names = table["label"].tolist()
    runner_up = [labels[(labels.index(name) + 1) % 3] for name in names]  # optional, and of any proof
    forgeries = {
        "label": table.assign(label=runner_up),
        "radius": table.assign(radius=table["radius"] * 1.01, runner_up=runner_up),
    }
    for claim, forged in forgeries.items():
        forged.to_csv(out, index=False) if suffix == "csv" else forged.to_parquet(out)
        found = audit_file(model, data, out, rows=25)
        assert {told["claim"] for told in found["not_proven"]} == {claim}
    forgeries = {"failure": table.assign(failure=np.nan), "proof": table.assign(proof="exact")}
    for claim, forged in forgeries.items():
        forged.to_csv(out, index=False) if suffix == "csv" else forged.to_parquet(out)
        found = audit_file(model, data, out, rows=25)
        assert {told["claim"] for told in found["not_proven"]} == {claim}
        assert list(found["not_checked"]) == ["runner_up"]
    assert {*table.columns} == {"row", *found["checked"], *found["not_checked"]}
    table.assign(runner_up="nobody").to_csv(tmp_path / "out.csv", index=False)
    if suffix == "csv":
        with pytest.raises(ValueError, match=r"`runner_up` of .* must be a class of the model"):
            audit_file(model, data, out)


NUMBERS: dict[str, dict[str, Any]] = {
    "intervals": {},
    "by the mean": {"rule": "mean", "radius": 0.2},
    "limits": {"changes": {"norm": None, "limits": {"x": 0.1}}},
    "everything": {"radius": np.inf},
    "tolerance": {"tolerance": 5.0},
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("options", NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_proven_and_forged_ones_are_found(
    options: dict[str, Any], suffix: str, regressor: Path, prices: Path, tmp_path: Path
) -> None:
    """Intervals at a radius or within limits, and radii of a tolerance; the record says which."""
    out = tmp_path / f"out.{suffix}"
    told = certify_file(regressor, prices, out, CertifySettings(**options))
    assert told["record"] == str(find_record(out))
    record = load_record(find_record(out))
    assert record.numbers is not None
    assert (record.numbers.radius, record.numbers.tolerance) == (told["radius"], told["tolerance"])
    summary = audit_file(regressor, prices, out, rows=6)
    assert summary["passed"], summary["not_proven"]
    assert (summary["radius"], summary["tolerance"]) == (told["radius"], told["tolerance"])
    table = pd.read_csv(out, float_precision="round_trip") if suffix == "csv" else pd.read_parquet(out)
    assert table["row"].is_monotonic_increasing
    forgeries = {"value": table.assign(value=table["value"] + 0.5)}
    if "tolerance" in options:
        forgeries["radius"] = table.assign(radius=table["radius"] * 1.01)
    elif options != NUMBERS["everything"]:  # whose ends are those of all answers
        forgeries["low"] = table.assign(low=table["value"] - 0.9 * (table["value"] - table["low"]))
    for claim, forged in forgeries.items():
        forged.to_csv(out, index=False) if suffix == "csv" else forged.to_parquet(out)
        found = audit_file(regressor, prices, out, rows=6)
        assert found["changed"] == [str(out)]
        assert claim in {one["claim"] for one in found["not_proven"]}
        shown = found["not_proven"][0]
        assert float(shown["label"]) == forged["value"][shown["row"] - 1]


def test_records_of_the_other_kind(model: Path, data: Path, regressor: Path, prices: Path, tmp_path: Path) -> None:
    """Labels of a regressor and numbers of a classifier are refused, and so is a record that asks for both."""
    out = tmp_path / "out.csv"
    certify_file(regressor, prices, out, CertifySettings(tolerance=1.0))
    content = find_record(out).read_text()
    find_record(out).write_text(content.replace('"radius": null', '"radius": 0.5'))
    with pytest.raises(ValueError, match=r"`numbers.tolerance` must be null where there is a radius"):
        audit_file(regressor, prices, out)
    parts = json.loads(content)
    del parts["numbers"]
    find_record(out).write_text(json.dumps(parts))
    with pytest.raises(ValueError, match="is about labels, but the model's answers are numbers"):
        audit_file(regressor, prices, out)
    certify_file(model, data, out)
    parts = json.loads(find_record(out).read_text())
    find_record(out).write_text(json.dumps({**parts, "numbers": {"radius": 0.1, "tolerance": None}}))
    with pytest.raises(ValueError, match="is about numbers, but the model is a classifier"):
        audit_file(model, data, out)


def forge(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Edit a certified file, and its checksum in the record, too."""
    edit(path, change)
    record = json.loads(find_record(path).read_text())
    record["certified"]["sha256"] = mark_file(path).sha256
    find_record(path).write_text(json.dumps(record))


def set_to(name: str, change: Callable[[str], str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.assign(**{name: [change(text) for text in frame[name]]})


def add(more: float) -> Callable[[str], str]:
    return lambda text: repr(float(text) + more)


def swap(words: dict[str, str]) -> Callable[[str], str]:
    return lambda text: words[text]


def try_audit(model: Path, data: Path, certified: Path) -> tuple[str, Summary | None]:
    """What an audit finds, or why it refuses the file."""
    try:
        return "", audit_file(model, data, certified, rows=20)
    except ValueError as error:
        return str(error), None


LABELS = {"yes": "no", "no": "yes"}
PROOF = {"none": "paper", "paper": "exact", "dual": "exact", "exact": "paper"}
TAMPERED: dict[str, tuple[dict[str, Any], dict[str, list[Callable[[str], str]]]]] = {
    "radii": (
        {},
        {
            "row": [add(1)],
            "label": [swap(LABELS), lambda text: ""],
            "failure": [lambda text: repr(float(text) * 0.999), lambda text: "", lambda text: "-1"],
            "radius": [add(0.5), lambda text: "", lambda text: "inf"],
            "proof": [swap(PROOF), lambda text: "none", lambda text: "", lambda text: "belief"],
        },
    ),
    "the rule mean": (
        {"rule": "mean"},
        {
            "row": [add(1)],
            "label": [swap(LABELS)],
            "failure": [lambda text: "0.25"],
            "radius": [add(0.5)],
            "proof": [lambda text: "paper", swap({"none": "dual", "dual": "none", "exact": "none"})],
        },
    ),
    "limits": (
        {"changes": {"norm": None, "limits": {"x": 0.4}}, "l0": 0},
        {
            "row": [add(1)],
            "label": [swap(LABELS)],
            "failure": [lambda text: ""],
            "verdict": [lambda text: "holds", lambda text: "maybe", lambda text: ""],
            "proof": [swap(PROOF)],
        },
    ),
    "intervals": (
        {},
        {
            "row": [add(1)],
            "value": [add(0.5), lambda text: ""],
            "low": [lambda text: "1e9", lambda text: ""],
            "high": [lambda text: "-1e9", lambda text: ""],
        },
    ),
    "a tolerance": (
        {"tolerance": 5.0},
        {"row": [add(1)], "value": [add(0.5)], "radius": [add(5.0), lambda text: ""]},
    ),
}
"""What is asked, and for each column that is written how a forger changes it."""


@pytest.mark.parametrize("name", TAMPERED)
def test_every_column_is_checked_or_named(
    name: str, model: Path, data: Path, regressor: Path, prices: Path, tmp_path: Path
) -> None:
    """Whatever column a forger changes, with its checksum: the audit refuses it or says that it did not look at it."""
    options, tampered = TAMPERED[name]
    out, of_numbers = tmp_path / "out.csv", "value" in tampered
    files = (regressor, prices) if of_numbers else (model, data)
    # one column of the data stands first, another one last
    first, last = ("job", "x") if of_numbers else ("name", "day")
    certify_file(*files, out, CertifySettings(identity=first, keep=[last], **options))
    honest, record = out.read_bytes(), find_record(out).read_bytes()
    assert audit_file(*files, out, rows=20)["passed"]
    written = list(pd.read_csv(out).columns)
    assert set(written) == {*tampered, first, last}
    for column in [*tampered, first, last]:
        for change in tampered.get(column, [lambda text: "another"]):
            out.write_bytes(honest)
            find_record(out).write_bytes(record)
            forge(out, set_to(column, change))
            message, found = try_audit(*files, out)
            if found is None:
                assert f"`{column}` of" in message
                continue
            assert found["changed"] == []
            assert not found["passed"] or column in found["not_checked"], column
            assert found["not_checked"][last] == "copied from the data"
            if column in (first, last):
                assert found["passed"]
                assert column not in found["checked"]


def test_columns_that_nobody_wrote_are_named(model: Path, data: Path, certified: Path) -> None:
    """A column that looks like a result, and one that a spreadsheet added; the others are said to be proven."""
    forge(certified, lambda frame: frame.assign(verdict="holds", note="fine"))
    found = audit_all(model, data, certified)
    assert found["passed"]
    assert found["checked"] == ["label", "failure", "radius", "proof"]
    assert found["not_checked"] == dict.fromkeys(["verdict", "note"], "no column of results")


def test_flips_are_not_told_from_what_is_undecided(model: Path, data: Path, tmp_path: Path) -> None:
    """Their changes are in another file: where the verdict is more than that a label holds, the audit says so."""
    out = tmp_path / "out.csv"
    certify_file(model, data, out, CertifySettings(changes={"norm": None, "limits": {"x": 0.4}}))
    forge(out, set_to("verdict", lambda text: "undecided" if text == "flips" else text))
    found = audit_file(model, data, out, rows=0)
    assert found["passed"]
    assert "not distinguished" in found["not_checked"]["verdict"]


def test_only_proofs_that_were_allowed(model: Path, data: Path, tmp_path: Path) -> None:
    """The record says that the paper's proof alone was asked for."""
    out = tmp_path / "out.csv"
    certify_file(model, data, out, CertifySettings(proof="paper"))
    assert audit_file(model, data, out, rows=5)["passed"]
    forge(out, set_to("proof", lambda text: "dual"))
    with pytest.raises(ValueError, match=r"`proof` of .* must be one of none, paper, got 'dual'"):
        audit_file(model, data, out, rows=5)
