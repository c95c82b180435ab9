"""`python -m experiments bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from experiments import bench
from experiments.__main__ import app
from experiments.bench import BENCHES
from tests.experiments.commands.process import run_here


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One benchmark that takes no time."""
    monkeypatch.setattr(bench, "BENCHES", {"core": lambda: {"rows": 2000, "ratio": 12.34567, "peak": None}})


@pytest.mark.usefixtures("small")
def test_a_bench_prints_its_ratio() -> None:
    """Names and numbers of the results, and the machine in short."""
    result = run("core")
    assert "ratio: 12.35" in result.output
    assert "rows: 2,000" in result.output
    assert "cores" in result.output
    assert json.loads(run("core", "--json").stdout)["results"]["ratio"] == 12.34567


@pytest.mark.usefixtures("small")
def test_a_bench_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    """The folder is made, and the file holds the report."""
    assert run("core", "--output", str(tmp_path / "new")).exit_code == 0
    assert json.loads((tmp_path / "new" / "core.json").read_text(encoding="utf-8"))["bench"] == "core"


def test_the_help_names_every_bench() -> None:
    """The names come from the registry."""
    assert ", ".join(BENCHES) in run_here("bench", "--help", COLUMNS="400").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "speed"], "must be one of core, train"),
        (["bench", "core", "-o", "pyproject.toml"], "pyproject.toml is not a folder"),
        (["bench"], "Missing argument"),
        (["nothing"], "No such command 'nothing'"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments: list[str], message: str) -> None:
    """Nothing is measured, and the line says what is wrong."""
    done = run_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
