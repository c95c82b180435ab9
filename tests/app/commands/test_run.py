"""`derand run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.commands.running import run, run_process

QUICK = """
[data]
train = "data.csv"
target = "label"
holdout = 0.2
[model]
trainer = "stumps"
[certify]
[audit]
rows = 2
[report]
output = "report.md"
"""


@pytest.fixture
def quick(data: Path) -> Path:
    """A configuration that is run in a moment."""
    (data.parent / "derand.toml").write_text(QUICK)
    return data.parent / "derand.toml"


def test_every_step_has_its_line(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file that it wrote, and its figures."""
    monkeypatch.chdir(quick.parent)
    result = run("run")
    assert result.exit_code == 0, result.stderr
    lines = dict(line.split(": ", 1) for line in result.output.splitlines())
    assert list(lines) == ["hold out", "train", "certify", "audit", "report", "record", "time"]
    assert lines["hold out"] == "113 rows, seed 0 -> results/held_out.csv"
    assert lines["train"].startswith("stumps on 456 rows, ")
    assert lines["train"].endswith("of these right -> results/model.json")
    assert "right and certified at 0.25" in lines["certify"]
    assert lines["certify"].endswith(" -> results/certified.csv")
    assert lines["audit"] == "2 of 2 rows proven again, drawn from 113"
    assert lines["report"] == "113 rows -> results/report.md"
    assert lines["record"].endswith("-> results/run.json")


def test_the_record_is_what_json_prints(quick: Path) -> None:
    """The same dict, to the last figure."""
    result = run("run", quick, "--json")
    assert json.loads(result.stdout) == json.loads((quick.parent / "results" / "run.json").read_text())


def test_checking_says_what_would_be_done(quick: Path) -> None:
    """And writes nothing."""
    result = run("run", quick, "--check")
    assert "all is well" in result.output
    assert "steps: train, certify, audit, report" in result.output
    assert not (quick.parent / "results").exists()
    assert json.loads(run("run", quick, "--check", "--json").output)["has_target"]


def test_checking_says_whether_results_are_as_recorded(quick: Path) -> None:
    """A cell that was changed since is an error of one line."""
    assert run("run", quick).exit_code == 0
    assert "written before: 6 files, with the checksums of run.json" in run("run", quick, "--check").output
    certified = quick.parent / "results" / "certified.csv"
    certified.write_text(certified.read_text().replace("0.", "1.", 1))
    result = run("run", quick, "--check")
    assert result.exit_code == 2
    assert f"{certified} has another checksum than run.json" in result.stderr


def test_numbers_are_told_as_numbers(prices: Path) -> None:
    """Errors and widths instead of accuracies."""
    config = prices.parent / "derand.toml"
    config.write_text(
        '[data]\ntrain = "prices.csv"\ntest = "prices.csv"\ntarget = "price"\n[model]\nradius = 0.1\n'
        "regularization = 1\n[certify]\n"
    )
    result = run("run", config)
    assert result.exit_code == 0, result.stderr
    assert "additive on 200 rows, radius 0.1, root of the mean square error on these" in result.output
    assert "mean width of intervals" in result.output


def test_other_results_need_force(quick: Path) -> None:
    """One line says so."""
    assert run("run", quick).exit_code == 0
    quick.write_text(QUICK.replace("0.2", "0.3"))
    result = run("run", quick)
    assert result.exit_code == 2
    assert "was made by another configuration" in result.stderr
    assert run("run", quick, "--force").exit_code == 0


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    """As a user starts it."""
    done = run_process("run", tmp_path / "nothing.toml")
    assert done.returncode == 2
    assert done.stderr.endswith("nothing.toml does not exist: `derand init DATA --target COLUMN` writes one.\n")
    assert done.stderr.count("\n") == 1
