"""A configuration is read, run as a whole, recorded, and never leaves anything half done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand._core.files import fill_when_done, restore_folder
from derand.app.jobs import check_run, init_file, run_file, train_file
from derand.app.run import _running, _starting
from derand.app.run._config import SECTIONS, read_config
from derand.app.run._splitting import choose_held_out, split_file
from derand.app.settings import AuditSettings, CertifySettings, ReportFileSettings, TrainSettings, list_options
from derand.storage import mark_file
from tests.app.jobs.tables import make_applications, make_prices

QUICK = """
[data]
train = "loans.csv"
target = "outcome"
holdout = 0.25
[model]
trainer = "stumps"
noise = "gaussian:0.25"
[certify]
[output]
folder = "out"
"""


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    make_applications().to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


@pytest.fixture
def quick(loans: Path) -> Path:
    """A configuration that is run in a moment."""
    path = loans.parent / "derand.toml"
    path.write_text(QUICK)
    return path


@pytest.fixture(autouse=True)
def quick_init(monkeypatch: pytest.MonkeyPatch) -> None:
    """`init_file` tunes nothing, which takes seconds; `test_starting` sees to that."""
    monkeypatch.setattr(_starting, "propose_radius", lambda read: _starting.Proposal(0.25, "not tried"))


def list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_init_writes_is_run(loans: Path, tmp_path: Path) -> None:
    """All steps run as written, and the record, the report and the files agree."""
    config = tmp_path / "derand.toml"
    found = init_file(loans, "outcome", config)
    assert found["left_out"].keys() == {"id", "opened"}
    assert found["classes"] == {"default": 48, "paid": 352}
    text = config.read_text().replace('# regularization = "cv"', "regularization = 1").replace("rows = 200", "rows = 5")
    config.write_text(text)
    steps: list[tuple[int, int, str]] = []
    done = run_file(config, told=lambda *step: steps.append(step))
    assert list(done["steps"]) == ["train", "certify", "audit", "report"]
    assert steps[-1] == (4, 4, "done")
    assert (2, 4, "auditing, 5 rows") in steps
    assert done["held_out"] == {"file": "held_out.csv", "rows": 100, "share": 0.25, "seed": 0}
    folder = tmp_path / "results"
    assert list_names(folder) == {*(one["file"] for one in done["files"]), "run.json"}
    assert all(one["sha256"] == mark_file(folder / one["file"]).sha256 for one in done["files"])
    assert done["inputs"] == [{"file": "loans.csv", "sha256": mark_file(loans).sha256}]
    record = json.loads((folder / "run.json").read_text())
    assert record["configuration"]["sha256"] == mark_file(config).sha256
    assert record["configuration"]["settings"] == tomllib.loads(text)
    evidence = (folder / "evidence.md").read_text()
    assert f"- File loans.csv: sha256 {mark_file(loans).sha256}" in evidence
    assert "the claims of 5 of 5 rows were proven again, drawn from 100" in evidence
    assert "Not asked: no protected columns were named, by `protected` of [report]." in evidence
    titles = [line for line in evidence.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Data and model",
        "## Accuracy",
        "## Robustness",
        "## Groups",
        "## Every row, seen or not",
        *titles[5:],
    ]
    assert str(tmp_path) not in evidence
    report = (folder / "report.html").read_text()
    assert f"derand.toml, sha256 {mark_file(config).sha256}" in report
    assert "loans.csv, 100 rows held out" in report
    assert done["steps"]["train"]["model"] == os.path.join("results", "model.json")
    assert str(tmp_path) not in (folder / "run.json").read_text()


def test_comments_say_what_was_found(loans: Path, tmp_path: Path) -> None:
    """What is left out and why, which class is rare, where numbers are missing."""
    init_file(loans, "outcome", tmp_path / "derand.toml")
    text = (tmp_path / "derand.toml").read_text()
    assert '# left out by itself: "id", text with 400 different values in 400 rows' in text
    assert "# 12.0 % of the rows are default" in text
    assert '# missing numbers, which are a value of their own: "income" (' in text
    config = read_config(tmp_path / "derand.toml")
    assert config.section("data")["train"] == "loans.csv"
    assert config.section("certify")["id"] == "id"


def test_other_groups_that_could_be_compared_are_named(tmp_path: Path) -> None:
    """One column is proposed, the others stand in the comment."""
    words = {"sex": ["f", "m"], "nationality": ["A", "B"], "job": ["cook", "clerk"], "y": ["no", "yes"]}
    lines = [
        ",".join(words),
        *(",".join(word[at // (1 + k) % 2] for k, word in enumerate(words.values())) for at in range(80)),
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    init_file(tmp_path / "data.csv", "y", tmp_path / "derand.toml")
    (line,) = (line for line in (tmp_path / "derand.toml").read_text().splitlines() if line.startswith("subgroups"))
    assert 'subgroups = ["sex"]' in line
    assert line.endswith('there are also "nationality", "job"')


@pytest.mark.parametrize("name", ['a "b"', "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "new\nline", "tab\t\x7f\\"])
def test_odd_names_are_written_as_toml(name: str, tmp_path: Path) -> None:
    """Names of columns with quotes, other letters and control signs come back as they are."""
    pd.DataFrame({name: [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "b"]}).to_csv(tmp_path / "data.csv", index=False)
    init_file(tmp_path / "data.csv", "y", tmp_path / "derand.toml", categorical=[name])
    assert read_config(tmp_path / "derand.toml").section("data")["categorical"] == [name]
    init_file(tmp_path / "data.csv", "y", tmp_path / "derand.toml", force=True)
    lines = (tmp_path / "derand.toml").read_text().splitlines()
    assert tomllib.loads(next(line for line in lines if line.startswith("# limits"))[2:]) == {"limits": {name: "5%"}}


def test_every_key_that_is_written_is_known(loans: Path, tmp_path: Path) -> None:
    """Also those in comments, with the signs taken away."""
    prices = tmp_path / "prices.csv"
    make_prices().to_csv(prices, index=False)
    for data, target in ((loans, "outcome"), (prices, "price")):
        init_file(data, target, tmp_path / "all.toml", force=True)
        lines = (tmp_path / "all.toml").read_text().splitlines()
        shown = [line.removeprefix("# ") for line in lines if " = " in line or line.startswith("[")]
        for section, keys in tomllib.loads("\n".join(shown)).items():
            assert set(keys) <= set(SECTIONS[section])


def test_every_setting_of_the_jobs_has_its_key() -> None:
    """What a step can be asked for can be written down, but for what the run itself or [threat] says."""
    by_itself = {"target", "threat", "norm", "l0", "frozen", "whole", "changes", "n_jobs", "train", "identity", "rule"}
    by_itself |= {"noise", "tolerance", "configuration", "notes", "left_out", "page"}
    for verb in (TrainSettings, CertifySettings, AuditSettings, ReportFileSettings):
        keys = {one.name for one, option in list_options(verb) if option.key is not None}
        assert {one.name for one in fields(verb)} - by_itself <= keys, verb.__name__
        for one, option in list_options(verb):
            assert option.key is None or option.key in SECTIONS[str(option.section)], one.name


def test_without_a_target_the_columns_are_listed(loans: Path, tmp_path: Path) -> None:
    """The error says what to do, with a column that may be the one."""
    with pytest.raises(ValueError, match=r"such as --target 'outcome'.*of two values: 'outcome'"):
        init_file(loans, output=tmp_path / "derand.toml")
    assert not (tmp_path / "derand.toml").exists()


def test_init_replaces_no_file_unless_told(loans: Path, tmp_path: Path) -> None:
    """What somebody wrote by hand stays."""
    (tmp_path / "derand.toml").write_text("mine")
    with pytest.raises(ValueError, match="exists: name another file, or replace it"):
        init_file(loans, "outcome", tmp_path / "derand.toml")
    assert (tmp_path / "derand.toml").read_text() == "mine"


def test_numbers_are_run_too(tmp_path: Path) -> None:
    """A regression target: intervals, their audit and their report."""
    make_prices().to_csv(tmp_path / "prices.csv", index=False)
    config = tmp_path / "derand.toml"
    assert init_file(tmp_path / "prices.csv", "price", config)["task"] == "number"
    text = config.read_text().replace('# regularization = "cv"', "regularization = 1").replace("rows = 200", "rows = 3")
    config.write_text(text)
    done = run_file(config)
    assert done["task"] == "number"
    assert done["steps"]["certify"]["rmse"] < 10  # type: ignore[typeddict-item]
    assert "Interval report: prices.csv, 50 rows held out" in (tmp_path / "results" / "report.html").read_text()


def test_a_model_that_exists_is_certified(loans: Path, tmp_path: Path) -> None:
    """In place of training: new rows without a target, under a threat of the file."""
    train_file(loans, "outcome", tmp_path / "known.json", model="stumps")
    make_applications(50, seed=1).drop(columns="outcome").to_csv(tmp_path / "new.csv", index=False)
    config = tmp_path / "derand.toml"
    config.write_text(
        '[data]\ntest = "new.csv"\ntarget = "outcome"\n[model]\nfile = "known.json"\n[threat]\nnorm = 2\nl0 = 1\n'
        '[certify]\n[report]\noutput = "report.md"\n'
    )
    assert not check_run(config)["has_target"]
    done = run_file(config)
    assert list(done["steps"]) == ["certify", "report"]
    assert done["steps"]["certify"]["threat"]["l0"] == 1
    assert "accuracy" not in done["steps"]["certify"]
    assert [one["file"] for one in done["inputs"]] == ["new.csv", "known.json"]
    assert list_names(tmp_path / "results") == {
        "certified.csv",
        "certified.csv.json",
        "evidence.md",
        "report.md",
        "run.json",
    }


def test_columns_are_copied_beside_results(quick: Path) -> None:
    """Which row is which, and what else is asked for; a column that does not exist is named beforehand."""
    quick.write_text(QUICK.replace("[certify]\n", '[certify]\nid = "id"\nkeep = ["job"]\n'))
    run_file(quick)
    certified = pd.read_csv(quick.parent / "out" / "certified.csv")
    assert [certified.columns[0], certified.columns[-1]] == ["id", "job"]
    assert certified["id"].tolist() == pd.read_csv(quick.parent / "out" / "held_out.csv")["id"].tolist()
    quick.write_text(QUICK.replace("[certify]\n", '[certify]\nid = "idd"\n'))
    with pytest.raises(ValueError, match="has no column 'idd'"):
        check_run(quick, force=True)


def test_the_report_names_rows_and_tells_of_columns(quick: Path) -> None:
    """Rows by their id; what is doubtful stands at the top, what the model does not read with what is left out."""
    table = pd.read_csv(quick.parent / "loans.csv")
    table["settled_code"] = table["outcome"].map({"default": "<b>X</b>", "paid": "A"})
    table.rename(columns={"settled_code": "<i>code"}).to_csv(quick.parent / "loans.csv", index=False)
    quick.write_text(QUICK.replace("[certify]\n", '[certify]\nid = "id"\n') + '[report]\noutput = "report.json"\n')
    assert "'<i>code' predicts the target almost alone" in check_run(quick)["warnings"][0]
    run_file(quick)
    report = json.loads((quick.parent / "out" / "report.json").read_text(encoding="utf-8"))
    assert "'<i>code' predicts the target almost alone" in report["notes"][0]
    assert "The model does not read these columns of the table: 'id' (" in report["left_out"][-1]
    held = pd.read_csv(quick.parent / "out" / "held_out.csv")["id"].astype(str)
    assert all(row["name"] == held[row["row"] - 1] for row in report["rows"]["table"])


def test_the_report_speaks_of_the_radius_and_the_model_that_are_named(quick: Path) -> None:
    """[report] radius, compare and rows; the other model is an input with a checksum, the same in record and report."""
    folder = quick.parent
    train_file(folder / "loans.csv", "outcome", folder / "other.json", model="stumps")
    asked = '[report]\noutput = "report.json"\nradius = 0.1\ncompare = "other.json"\nwhat_if = false\nrows = 20\n'
    asked += "one_page = true\n"
    quick.write_text(QUICK + asked)
    record = run_file(quick)
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert (report["scale"]["quoted"], report["scale"]["stated"]) == (0.1, True)
    assert report["comparison"]["names"][1] == "other.json"
    page = (folder / "out" / "one_page.html").read_text(encoding="utf-8")
    assert report["guarantee"]["question"] in page
    assert len(report["rows"]["listed"]["row"]) == 20 < report["rows"]["n_rows"]
    sums = {one["what"]: one["sha256"] for one in report["checksums"]}
    inputs = {one["file"]: one["sha256"] for one in record["inputs"]}
    files = {one["file"]: one["sha256"] for one in record["files"]}
    assert sums["other model"] == inputs["other.json"]
    assert (sums["model"], sums["data"]) == (files["model.json"], files["held_out.csv"])
    quick.write_text(QUICK + asked.replace('"other.json"', "3"))
    with pytest.raises(ValueError, match="compare must be true, false, or a saved model in quotes, got 3"):
        run_file(quick)
    quick.write_text(QUICK + asked.replace("rows = 20", "rows = 0"))
    with pytest.raises(ValueError, match="rows must be 1 or larger, got 0"):
        run_file(quick)


def test_dates_and_costs_reach_the_trainer(quick: Path) -> None:
    """What is said of columns and of mistakes is the trainer's."""
    more = 'trainer = "additive"\nregularization = 1\ncost = {false_negative = 1, false_positive = 3}\n'
    text = QUICK.replace('trainer = "stumps"\nnoise = "gaussian:0.25"\n', more)
    quick.write_text(text.replace("holdout = 0.25\n", 'holdout = 0.25\ndates = ["opened"]\nignored = ["job"]\n'))
    done = run_file(quick)["steps"]["train"]
    assert done["decision_threshold"] == 0.75
    assert {one["name"]: one["use"] for one in done["columns"]}["opened"] == "numerical"


def test_limits_and_witnesses(quick: Path) -> None:
    """Limits of the file hold in certificates; witnesses are written where they are asked for."""
    more = '[threat]\nnorm = "none"\nlimits = {income = "20%"}\n[certify]\nrule = "mean"\nwitness = "flips.csv"\n'
    quick.write_text(QUICK.replace("[certify]\n", more))
    done = run_file(quick)
    assert done["steps"]["certify"]["threat"]["limits"] == {"income": "20%"}
    assert "flips.csv" in list_names(quick.parent / "out")


def test_checking_writes_nothing(quick: Path) -> None:
    """It says what would be done."""
    before = list_names(quick.parent)
    found = check_run(quick)
    assert found["steps"] == ["train", "certify"]
    assert found["files"] == ["held_out.csv", "model.json", "certified.csv", "run.json"]
    assert list_names(quick.parent) == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[certify]", "[certfy]", r"there is no section \[certfy\]; did you mean 'certify'\?"),
        ("holdout", "holdot", r"\[data\] has no key 'holdot'; did you mean 'holdout'\?"),
        ("[certify]", "[certify]\nl0 = 1", r"\[certify\] has no key 'l0': it belongs to \[threat\]"),
        ("0.25\n[model]", "25\n[model]", r"\[data\] holdout must be a share above 0 and below 1.*got 25"),
        ("holdout = 0.25", "", r"\[data\] must say test .* or holdout .*got neither"),
        ('"loans.csv"', '"lons.csv"', r"\[data\] train is .*lons.csv, which does not exist"),
        ('"outcome"', '"outcom"', "has no column 'outcom'. Did you mean 'outcome'"),
        ('"outcome"', "7", r"\[data\] target must be text in quotes, got 7"),
        ('"stumps"', '"stump"', r"\[model\] trainer must be one of.*got 'stump'"),
        ('"stumps"', '"stumps"\nradius = 1', r"\[model\] radius belongs to the models additive"),
        ('"stumps"', '"stumps"\nfile = "m.json"', r"leave \[model\] trainer, \[model\] noise out"),
        ("[certify]", "[report]\n[audit]", r"\[audit\] proves certificates again, and there is no \[certify\]"),
        ("[certify]", '[certify]\noutput = "../x.csv"', r"\[certify\] output must be the name of a file in the folder"),
        ("[certify]", '[certify]\n[report]\noutput = "certified.csv"', "two results go to 'certified.csv'"),
        ("[certify]", "[certify]\ntolerance = 1", r"\[certify\] tolerance is for numbers, and the answer is classes"),
        ("[certify]", '[certify]\n[report]\nsubgroups = ["jb"]', "has no column 'jb'. Did you mean 'job'"),
        ("[certify]", '[threat]\nfrozen = ["jb"]', "jb"),
        ("[certify]", "[threat]\nnorms = 2", r"\[threat\] has no key 'norms'; did you mean 'norm'\?"),
        ("[certify]", "[certify\n", "is not a TOML file, or is damaged"),
        ('folder = "out"', 'folder = "loans.csv"', "is not a folder"),
        (
            '"stumps"',
            '"additive"\ncost = {falsenegative = 5, false_positive = 1}',
            r"`cost` must say what both mistakes cost.*'falsenegative': 5",
        ),
        ('"stumps"', '"additive"\nregularization = 0', "`regularization` must be"),
        (
            "[certify]",
            '[threat]\nunits = {income = "1:2"}',
            r"`units` for 'income' must be a positive number, got '1:2'",
        ),
        ("0.25\n[model]", f"{'9' * 400}\n[model]", "the number '9{60}'... is too large"),
        ("[certify]", "[certify]\nradii = [1e309]", "the number '1e309' is too large"),
        ('"stumps"', '"stumps"\ncost = 5', r"\[model\] cost must be such as \{false_negative = 5"),
    ],
)
def test_what_is_wrong_is_named(quick: Path, old: str, new: str, words: str) -> None:
    """Before anything is done, by `--check` and by the run alike."""
    quick.write_text(QUICK.replace(old, new, 1))
    before = list_names(quick.parent)
    for ask in (check_run, run_file):
        with pytest.raises((ValueError, OSError), match=words) as told:
            ask(quick)
        assert "\n" not in str(told.value).strip() or "TOML" in str(told.value)
    assert list_names(quick.parent) == before


def test_a_file_that_is_missing_says_how_to_begin(tmp_path: Path) -> None:
    """The first thing that a new user meets."""
    with pytest.raises(FileNotFoundError, match="`derand init DATA --target COLUMN` writes one"):
        run_file(tmp_path / "derand.toml")


def test_the_same_configuration_may_run_again(quick: Path) -> None:
    """Comments do not make it another one; data that changed since is told."""
    assert run_file(quick)["changed"] == []
    quick.write_text("# a word\n" + QUICK)
    assert run_file(quick)["changed"] == []
    make_applications(380).to_csv(quick.parent / "loans.csv", index=False)
    assert run_file(quick)["changed"] == ["loans.csv"]


def test_results_of_others_are_replaced_only_by_force(quick: Path) -> None:
    """What another configuration made, and what nobody knows, stays unless it is said otherwise."""
    run_file(quick)
    before = (quick.parent / "out" / "model.json").read_bytes()
    quick.write_text(QUICK.replace("gaussian:0.25", "gaussian:0.5"))
    for ask in (check_run, run_file):
        with pytest.raises(ValueError, match=r"was made by another configuration: name another \[output\] folder"):
            ask(quick)
    assert (quick.parent / "out" / "model.json").read_bytes() == before
    run_file(quick, force=True)
    assert (quick.parent / "out" / "model.json").read_bytes() != before
    (quick.parent / "out" / "run.json").write_text("{}")
    with pytest.raises(ValueError, match=r"run\.json was made by something else"):
        run_file(quick)


def test_results_are_compared_with_their_record(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `--check`, from any folder, also where all was moved elsewhere; changed inputs are told."""
    run_file(quick)
    moved = quick.parent / "elsewhere"
    moved.mkdir()
    for path in (quick, quick.parent / "loans.csv", quick.parent / "out"):
        path.rename(moved / path.name)
    config, certified = moved / quick.name, moved / "out" / "certified.csv"
    for folder in (quick.parent, moved, moved / "out"):
        monkeypatch.chdir(folder)
        found = check_run(os.path.relpath(config))
        assert (found["unchanged_results"], found["changed"]) == (4, [])
    make_applications(380).to_csv(moved / "loans.csv", index=False)
    assert check_run(config)["changed"] == ["loans.csv"]
    whole = certified.read_bytes()
    certified.write_bytes(whole.replace(b"1", b"2", 1))
    with pytest.raises(ValueError, match=r"certified\.csv has another checksum than run\.json: put the file back, or"):
        check_run(config)
    assert check_run(config, force=True)["unchanged_results"] == 0
    certified.unlink()
    with pytest.raises(ValueError, match=r"certified\.csv is missing, but stands in run\.json"):
        check_run(config)


def test_a_record_that_was_changed_is_noticed(quick: Path) -> None:
    """One figure is enough; the order of fields and spaces say nothing."""
    run_file(quick)
    record = json.loads((quick.parent / "out" / "run.json").read_text())
    (quick.parent / "out" / "run.json").write_text(json.dumps(dict(reversed(record.items()))))
    assert check_run(quick)["unchanged_results"] == len(record["files"])
    for changed in ({"seconds": 0.0}, {"files": record["files"][1:]}, {"files": [1]}, {"sha256": None}):
        (quick.parent / "out" / "run.json").write_text(json.dumps({**record, **changed}))
        with pytest.raises(ValueError, match=r"run\.json does not match its own checksum: it was damaged, or edited"):
            check_run(quick)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("place", [12, *(pytest.param(place, marks=pytest.mark.long) for place in range(0, 70, 3))])
def test_a_run_that_is_stopped_while_results_move_can_be_repeated(
    number: signal.Signals, place: int, quick: Path
) -> None:
    """What stood there is whole at once, or with the next run, which the same configuration may begin."""
    from scripts.kill_commands import crash_run

    run_file(quick)
    results = quick.parent / "out"
    old = {path.name: path.read_bytes() for path in results.iterdir()}
    make_applications(380).to_csv(quick.parent / "loans.csv", index=False)
    code = crash_run(quick, place, number)
    assert code in (0, -number, 128 + number)
    assert code or place > 40
    check_run(quick)
    if number == signal.SIGKILL:
        restore_folder(results)
    else:
        assert list_names(quick.parent) == {"derand.toml", "loans.csv", "out"}
    found = {path.name: path.read_bytes() for path in results.iterdir()}
    is_new = check_run(quick)["changed"] == []
    assert (found == old) is not is_new
    run_file(quick)
    assert check_run(quick)["unchanged_results"] == 4
    assert list_names(quick.parent) == {"derand.toml", "loans.csv", "out"}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_run_that_ends_early_leaves_all_as_it_was(
    error: BaseException, is_first: bool, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step fails, no file is new, and none is gone."""
    if not is_first:
        run_file(quick)
    before = {path: path.read_bytes() for path in quick.parent.rglob("*") if path.is_file()}

    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(_running, "certify_file", fail)
    with pytest.raises(type(error)):
        run_file(quick)
    assert {path: path.read_bytes() for path in quick.parent.rglob("*") if path.is_file()} == before
    assert (quick.parent / "out").exists() is not is_first


def test_errors_name_files_where_they_were_to_be(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows the folder that they are made in."""

    def fail(model: Path, *arguments: Any, **options: Any) -> None:
        raise ValueError(f"{model} is odd")

    monkeypatch.setattr(_running, "certify_file", fail)
    with pytest.raises(ValueError, match=r"out/model.json is odd") as told:
        run_file(quick)
    assert ".part" not in str(told.value)


def test_claims_that_are_not_proven_are_not_written(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit that fails ends the run: there is no report to sign."""
    quick.write_text(QUICK.replace("[certify]", "[certify]\n[audit]\nrows = 2"))
    audit = _running.audit_file

    def find_fault(*arguments: Any, **options: Any) -> Any:
        found = audit(*arguments, **options)
        wrong = {"row": 7, "claim": "radius", "label": "paid", "claimed": 1.0, "proven": 0.5}
        return {**found, "passed": False, "proven": 1, "not_proven": [wrong]}

    monkeypatch.setattr(_running, "audit_file", find_fault)
    with pytest.raises(ValueError, match=r"proved 1 of 2 rows again, not 7 \(radius\): nothing is written"):
        run_file(quick)
    assert not (quick.parent / "out").exists()


def test_rows_are_held_out_by_class_and_by_seed() -> None:
    """Every class gives its share, but for its last row; a seed repeats itself."""
    labels = np.array(["no"] * 80 + ["yes"] * 12 + ["rare"])
    held = choose_held_out(labels, "classes", 0.25, seed=3)
    assert {name: int((labels[held] == name).sum()) for name in ("no", "yes", "rare")} == {
        "no": 20,
        "yes": 3,
        "rare": 0,
    }
    np.testing.assert_array_equal(held, choose_held_out(labels, "classes", 0.25, seed=3))
    assert not np.array_equal(held, choose_held_out(labels, "classes", 0.25, seed=4))
    assert choose_held_out(np.arange(40.0), "number", 0.25, seed=0).size == 10
    with pytest.raises(ValueError, match="leaves none to certify"):
        choose_held_out(np.arange(3.0), "number", 0.01, seed=0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_parts_of_a_table_hold_its_cells(suffix: str, tmp_path: Path) -> None:
    """Numbers as text, gaps and quotes survive; the only gap of a column is trained on."""
    frame = pd.DataFrame({"code": ["007", "010", 'a "b", c', "x"], "x": [1.5, np.nan, 3.25, 4.0], "y": [1, 0, 1, 0]})
    whole = tmp_path / f"whole.{suffix}"
    frame.to_csv(whole, index=False) if suffix == "csv" else frame.to_parquet(whole)
    parts = [tmp_path / f"{name}.{suffix}" for name in ("train", "test")]
    held = split_file(whole, np.array([0, 1]), *parts)
    assert held.tolist() == [0]
    read = pd.read_parquet if suffix == "parquet" else lambda path: pd.read_csv(path, dtype={"code": str})
    train, test = map(read, parts)
    pd.testing.assert_frame_equal(test, frame.iloc[[0]].reset_index(drop=True))
    pd.testing.assert_frame_equal(train, frame.iloc[1:].reset_index(drop=True))


FILL_AND_WAIT = """
import sys, time
from derand._core.files import fill_when_done
with fill_when_done(sys.argv[1], "run.json") as draft:
    (draft / "half.txt").write_text("half")
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path: Path) -> None:
    """A folder that is being filled stays, one whose process is gone goes."""
    folder = tmp_path / "results"
    process = subprocess.Popen([sys.executable, "-c", FILL_AND_WAIT, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    with fill_when_done(folder, "run.json") as draft:
        (draft / "run.json").write_text("one")
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with fill_when_done(folder, "run.json") as draft:
        (draft / "run.json").write_text("two")
    assert list(tmp_path.iterdir()) == [folder]
    assert (folder / "run.json").read_text() == "two"


def test_a_folder_is_filled_whole_or_not_at_all(tmp_path: Path) -> None:
    """Other files of it stay; a folder in the place of a file is refused before anything is moved."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    (folder / "b.txt").mkdir()

    def fill() -> None:
        with fill_when_done(folder, "run.json") as draft:
            for name in ("a.txt", "b.txt", "run.json"):
                (draft / name).write_text("new")

    with pytest.raises(IsADirectoryError, match="it is a folder"):
        fill()
    assert list_names(folder) == {"mine.txt", "b.txt"}
    (folder / "b.txt").rmdir()
    fill()
    assert list_names(folder) == {"mine.txt", "a.txt", "b.txt", "run.json"}
    assert list(tmp_path.iterdir()) == [folder]
