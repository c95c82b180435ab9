"""`python -m experiments reproduce`, run as a user does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.reproduce import list_names
from tests.experiments.commands.process import ROOT, run_here


def test_a_pipe_gets_bare_names() -> None:
    """`--list` prints one name per line and nothing else."""
    done = run_here("reproduce", "--list")
    assert done.stdout.splitlines() == list_names()
    assert not done.stderr


def test_json_holds_paper_ours_and_ok(tmp_path: Path) -> None:
    """`--json` prints the cells."""
    done = run_here("reproduce", "tab:details-noise-levels", "--json", "--results", str(tmp_path))
    (table,) = json.loads(done.stdout)
    assert {"paper", "ours", "ok"} <= set(table["cells"][0])
    assert len(table["cells"]) == 20


def test_a_summary_is_written(tmp_path: Path) -> None:
    """`--document` writes the summary of what was carried out."""
    target = tmp_path / "summary.md"
    done = run_here("reproduce", "details-treeboost", "--results", str(tmp_path / "results"), "--document", str(target))
    assert done.returncode == 0
    assert "within tolerance" in done.stdout
    assert "tab:details-treeboost" in target.read_text(encoding="utf-8")


@pytest.mark.long
def test_an_interruption_says_how_to_go_on(data: Path, tmp_path: Path) -> None:
    """Exit code 130, and what is done is kept."""
    arguments = ["reproduce", "tab:joint-cv-balanced-l1", "--results", str(tmp_path)]
    command = [sys.executable, "-m", "experiments", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    while not list(tmp_path.glob("outcomes/*.json")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "run the same command again to go on" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tab:baseline-bot"], "Did you mean 'tab:baseline-both'?"),
        ([], "give --all"),
        (["claims", "--all"], "not both"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments: list[str], message: str) -> None:
    """Nothing is computed, and the line says what to do."""
    done = run_here("reproduce", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_data_folder_is_named_before_anything_runs(tmp_path: Path) -> None:
    """One line names the file, where it comes from and where to put it."""
    folders = {"DERAND_DATA": str(tmp_path / "absent"), "XDG_CACHE_HOME": str(tmp_path)}
    done = run_here("reproduce", "tab:categorical", "--results", str(tmp_path / "results"), **folders)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: mushroom.csv is missing. It comes from UCI, Mushroom")
    assert str(tmp_path / "absent") in line


def test_the_help_names_every_table() -> None:
    """The names come from the registry; line breaks may fall within them."""
    shown = run_here("reproduce", "--help", COLUMNS="400").stdout
    assert all(name in shown for name in list_names())
