"""`derand bench` and `derand reproduce` say where they went."""

from __future__ import annotations

import pytest

from tests.cli.running import run, run_process


@pytest.mark.parametrize("name", ["bench", "reproduce"])
@pytest.mark.parametrize("arguments", [[], ["core", "-o", "folder"], ["--all", "--quick", "--json", "--jobs", "2"]])
def test_what_moved_is_found_by_one_line(name: str, arguments: list[str]) -> None:
    """Whatever arguments follow, the line names the command to run, and the exit code is that of bad input."""
    result = run(name, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert f"run `python -m experiments {name} ...` from a clone of the repository" in line


def test_what_moved_is_not_listed() -> None:
    """The help names the commands that do something."""
    listed = run_process("--help").stdout
    assert "train" in listed
    assert "bench" not in listed
    assert "reproduce" not in listed
