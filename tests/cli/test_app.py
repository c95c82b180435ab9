"""The command line: what it prints, what it writes, and one clear line with exit code 2 on bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner, Result

from derand import bench, load
from derand.cli import _app as cli
from derand.datasets import CATALOG

RUNNER = CliRunner()


def run(*arguments: object) -> Result:
    return RUNNER.invoke(cli.app, [str(argument) for argument in arguments])


def run_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a user starts it."""
    command = [sys.executable, "-c", "from derand.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "120"})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    bundle: Any = load_breast_cancer(as_frame=True)
    frame = bundle.data.iloc[:, :6].assign(
        size=bundle.data["mean area"].gt(600).map({True: "large", False: "small"}),
        constant=1,
        label=bundle.target.map({0: "malignant", 1: "benign"}),
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    assert run("train", data, "--target", "label", "-o", tmp_path / "model.json").exit_code == 0
    return tmp_path / "model.json"


def test_training_prints_every_column_and_saves_the_model(data: Path, tmp_path: Path) -> None:
    """The table names each column and its use; the model carries the options."""
    options = ["--noise", "laplace:0.5", "--scaling", "range", "--class-weight", "balanced", "--ignore", "mean area"]
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", *options)
    assert result.exit_code == 0, result.output
    for line in ("mean radius", "categorical", "constant", "as asked", "benign (357), malignant (212)", "laplace:0.5"):
        assert line in result.output
    model = load(tmp_path / "model.json")
    assert (model.scaling, model.class_weight, str(model.noise_)) == ("range", "balanced", "laplace:0.5")
    assert "mean area" not in model.feature_names_in_


def test_training_as_json_is_one_document(data: Path, tmp_path: Path) -> None:
    """With --json the output is JSON and nothing else."""
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", "--scaling", "none", "--json")
    summary = json.loads(result.stdout)
    assert summary["rows"] == 569
    assert summary["scaling"] is None
    assert {column["use"] for column in summary["columns"]} == {"numerical", "categorical", "ignored"}


def test_certifying_prints_accuracy_and_writes_rows(data: Path, model: Path, tmp_path: Path) -> None:
    """With a target the certified accuracy is printed at each radius, cut and not rounded."""
    out = tmp_path / "out.csv"
    result = run("certify", model, data, "-o", out, "--target", "label", "--radii", "0,0.125", "--l0", 1)
    assert result.exit_code == 0, result.output
    assert "columns not used: constant" in result.output
    assert "0.125" in result.output
    assert "569" in result.output
    assert len(pd.read_csv(out)) == 569
    summary = json.loads(run("certify", model, data, "-o", out, "--target", "label", "--json").stdout)
    share = summary["certified_accuracy"][1]["share"]
    cut = int(1000 * share) / 10
    shown = run("certify", model, data, "-o", out, "--target", "label").output
    assert f"{cut:.1f} %" in shown


def test_infinite_numbers_are_text_in_json(tmp_path: Path) -> None:
    """JSON has no infinity: a model that nothing flips reports the word."""
    (tmp_path / "data.csv").write_text("a,y\n" + "red,1\nblue,0\n" * 20)
    assert run("train", tmp_path / "data.csv", "--target", "y", "-o", tmp_path / "model.json").exit_code == 0
    arguments = [tmp_path / "model.json", tmp_path / "data.csv", "-o", tmp_path / "out.csv", "--target", "y"]
    summary = json.loads(run("certify", *arguments, "--json").stdout)
    assert summary["average_certified_radius"] == "inf"
    assert "rows that no change of numbers can flip: 40" in run("certify", *arguments).output


def test_the_catalog_is_listed() -> None:
    """Every dataset has a line, and a JSON entry that says whether it is here."""
    listed = run("datasets").output
    entries = json.loads(run("datasets", "--json").stdout)
    assert [entry["name"] for entry in entries] == list(CATALOG)
    assert all(name in listed for name in CATALOG)
    assert entries[0] == {**entries[0], "name": "sklearn_breast_cancer", "file": None, "available": True}


def test_a_report_is_written_and_its_guarantee_printed(data: Path, model: Path, tmp_path: Path) -> None:
    """The page lies where it was asked for, and the command prints what it guarantees."""
    page = tmp_path / "report.html"
    options = ["--target", "label", "--group", "size", "--radius", "0.25", "--title", "My report"]
    result = run("report", model, data, "-o", page, *options)
    assert result.exit_code == 0, result.output
    assert "smaller than 0.25 can alter it" in " ".join(result.output.split())
    assert f"written: {page}" in result.output
    assert "<title>My report</title>" in page.read_text(encoding="utf-8")
    told = json.loads(run("report", model, data, "-o", tmp_path / "report.md", "--json").stdout)
    assert told["rows"] == 569
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# Certificate report: data.csv")


def test_the_demo_prints_its_tables_and_names_what_it_wrote(tmp_path: Path) -> None:
    """Certified accuracy, the most and least certain rows, the time; a picture and a report in the folder asked for."""
    result = run("demo", "--output", tmp_path / "here")
    assert result.exit_code == 0, result.output
    for part in ("Certified accuracy", "Most certain", "Least certain", "average certified radius: ", "time: training"):
        assert part in result.output
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["certified_accuracy.png", "report.html"]
    assert str(tmp_path / "here" / "report.html") in result.output.splitlines()[-1]


def test_the_demo_writes_into_the_folder_demo_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an option the plot lies in ./demo."""
    monkeypatch.chdir(tmp_path)
    assert json.loads(run("demo", "--json").stdout)["plot"] == str(Path("demo") / "certified_accuracy.png")
    assert (tmp_path / "demo" / "certified_accuracy.png").exists()


def test_a_bench_prints_its_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and numbers of the results, and the machine in short."""
    monkeypatch.setattr(bench, "BENCHES", {"core": lambda: {"rows": 2000, "ratio": 12.34567, "peak": None}})
    result = run("bench", "core")
    assert "ratio: 12.35" in result.output
    assert "rows: 2,000" in result.output
    assert "cores" in result.output
    assert json.loads(run("bench", "core", "--json").stdout)["results"]["ratio"] == 12.34567


BAD_INPUT = {
    "missing target": (["train", "data.csv", "--target", "labell", "-o", "m.json"], "Did you mean 'label'?"),
    "missing file": (["train", "absent.csv", "--target", "label", "-o", "m.json"], "absent.csv does not exist"),
    "empty file": (["train", "empty.csv", "--target", "label", "-o", "m.json"], "empty.csv is empty"),
    "not a table": (["train", "noise.csv", "--target", "label", "-o", "m.json"], "noise.csv is not a CSV file"),
    "unknown noise": (["train", "data.csv", "--target", "label", "-o", "m.json", "--noise", "pink:1"], "pink"),
    "noise of zero": (["train", "data.csv", "--target", "label", "-o", "m.json", "--noise", "gaussian:0"], "positive"),
    "scaling": (
        ["train", "data.csv", "--target", "label", "-o", "m.json", "--scaling", "log"],
        "--scaling must be one",
    ),
    "no such folder": (["train", "data.csv", "--target", "label", "-o", "no/m.json"], "Cannot write no"),
    "radii": (["certify", "model.json", "data.csv", "-o", "o.csv", "--radii", "0,x"], "--radii must be numbers"),
    "negative radii": (
        ["certify", "model.json", "data.csv", "-o", "o.csv", "--radii", "-1"],
        "--radii must be numbers",
    ),
    "not a model": (["certify", "data.csv", "data.csv", "-o", "o.csv"], "data.csv is not a model file"),
    "no model": (["certify", "absent.json", "data.csv", "-o", "o.csv"], "absent.json"),
    "output name": (["certify", "model.json", "data.csv", "-o", "o.txt"], "must end with .csv or .parquet"),
    "negative l0": (["certify", "model.json", "data.csv", "-o", "o.csv", "--l0", "-2"], "`l0` must be"),
    "unknown bench": (["bench", "speed"], "must be one of core, train"),
    "a bench into a file": (["bench", "core", "-o", "data.csv"], "data.csv is not a folder"),
    "a report of no known kind": (["report", "model.json", "data.csv", "-o", "report.doc"], "must end with one of"),
    "a report on an unknown group": (["report", "model.json", "data.csv", "-o", "r.md", "--group", "x"], "'x'"),
    "a file as folder": (["demo", "-o", "data.csv"], "data.csv"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, nothing on stdout, no new file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "noise.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\xff,\xff\n\xff\n")
    before = sorted(tmp_path.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "data.csv"], "Error: Missing option '--target'"),
        (["nothing"], "Error: No such command 'nothing'"),
        (["certify", "a", "b", "-o", "c", "--l0", "two"], "Error: Invalid value for '--l0'"),
    ],
)
def test_wrong_usage_is_one_line_too(arguments: list[str], message: str) -> None:
    """The command itself, run as a process, answers wrong usage with a single line and exit code 2."""
    done = run_process(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert message in line


def test_the_command_alone_shows_its_help() -> None:
    """`derand` without a command lists the commands."""
    done = run_process()
    assert done.returncode == 0
    assert "certify" in done.stdout
    assert done.stderr == ""


def test_a_piped_run_is_quiet(data: Path, tmp_path: Path) -> None:
    """From start to end as a user would: no progress bar, no colour, nothing on stderr when piped."""
    model, out = tmp_path / "model.json", tmp_path / "out.parquet"
    trained = run_process("train", data, "--target", "label", "-o", model)
    assert (trained.returncode, trained.stderr) == (0, "")
    certified = run_process("certify", model, data, "-o", out, "--target", "label")
    assert (certified.returncode, certified.stderr) == (0, "")
    assert "\x1b" not in trained.stdout + certified.stdout
    assert len(pd.read_parquet(out)) == 569


def test_the_progress_bar_appears_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal, work that outlasts the patience shows a bar on stderr; shorter work shows none."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with cli._show_progress("digging", unit="rows") as advance:
        advance(5)
    assert "digging" not in capsys.readouterr().err
    monkeypatch.setattr(cli, "_PATIENCE", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with cli._show_progress("digging", unit="rows") as advance:
        advance(5)
        time.sleep(0.5)
    assert "digging" in capsys.readouterr().err
