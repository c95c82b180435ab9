"""`derand init`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.commands.running import read_help, run


def test_it_writes_a_configuration_and_says_what_is_next(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found in the table is printed as well."""
    monkeypatch.chdir(tmp_path)
    result = run("init", "data.csv", "--target", "label")
    assert result.exit_code == 0
    assert "target: label, benign (357), malignant (212) (text)" in result.output
    assert "left out: constant: constant" in result.output
    assert result.output.endswith("written: derand.toml\nnext: read it, then derand run\n")
    assert 'train = "data.csv"' in (tmp_path / "derand.toml").read_text()
    again = run("init", "data.csv", "--target", "label")
    assert again.exit_code == 2
    assert "derand.toml exists" in again.stderr
    assert run("init", "data.csv", "--target", "label", "--force").exit_code == 0


def test_paths_count_from_the_configuration(data: Path, tmp_path: Path) -> None:
    """It may lie in another folder than the table."""
    (tmp_path / "plans").mkdir()
    result = run("init", data, "--target", "label", "--test", data, "-o", tmp_path / "plans" / "one.toml", "--json")
    assert json.loads(result.stdout)["task"] == "classes"
    text = (tmp_path / "plans" / "one.toml").read_text()
    assert 'train = "../data.csv"' in text
    assert 'test = "../data.csv"' in text
    assert "holdout" not in text


def test_without_a_target_columns_are_listed(data: Path) -> None:
    """One line that says what to do."""
    result = run("init", data)
    assert result.exit_code == 2
    assert "such as --target 'label'" in result.stderr
    assert "of two values: 'size', 'label'" in result.stderr


def test_numbers_and_columns_are_named(prices: Path, tmp_path: Path) -> None:
    """Options become keys of the file."""
    result = run(
        "init", prices, "--target", "price", "-o", tmp_path / "a.toml", "--ignored", "same", "--task", "number"
    )
    assert result.exit_code == 0
    text = (tmp_path / "a.toml").read_text()
    assert 'ignored = ["same"]' in text
    assert 'task = "number"' in text
    assert run("init", prices, "--target", "price", "--task", "words").exit_code == 2


def test_the_help_says_what_is_written() -> None:
    """And which command reads it."""
    assert "write a commented derand.toml, which `derand run` runs" in read_help("init")
