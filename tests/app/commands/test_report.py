"""`derand report`: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.commands.running import run, run_process


def test_a_report_is_written_and_its_guarantee_printed(data: Path, model: Path, tmp_path: Path) -> None:
    """The page lies where it was asked for, and the command prints what it guarantees."""
    page = tmp_path / "report.html"
    options = ["--target", "label", "--subgroup", "size", "--radius", "0.25", "--title", "My report"]
    result = run("report", model, data, "-o", page, *options)
    assert result.exit_code == 0, result.output
    assert "smaller than 0.25 can alter it" in " ".join(result.output.split())
    assert f"written: {page}" in result.output
    written = page.read_text(encoding="utf-8")
    assert "<title>My report</title>" in written
    assert 'id="whatif"' in written
    alone = run("report", model, data, "-o", page, "--target", "label", "--subgroup", "size", "--one-page")
    assert alone.exit_code == 0, alone.output
    assert "Can a change smaller than" in page.read_text(encoding="utf-8")
    assert 'id="whatif"' not in page.read_text(encoding="utf-8")
    refused = run("report", model, data, "-o", tmp_path / "page.md", "--one-page")
    assert refused.exit_code == 1
    assert "must end with one of .html, .pdf" in " ".join(refused.output.split())
    options = ["--no-what-if", "--rows", "50", "--json", "--compare", model]
    told = json.loads(run("report", model, data, "-o", tmp_path / "report.md", *options).stdout)
    assert f"## Beside {model.name}" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "was left out on request" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "shows 50 rows of 569" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert told["rows"] == 569
    assert told["comparison"].startswith("Both give the same answer to 569 of 569 rows.")
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# Certificate report: data.csv")


@pytest.mark.parametrize("ending", ["html", pytest.param("json", marks=pytest.mark.long)])
def test_two_runs_with_a_fixed_date_write_the_same_bytes(
    ending: str, data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In processes of their own, which order sets differently."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    rows = tmp_path / "rows.csv"
    rows.write_text("".join(data.read_text().splitlines(keepends=True)[:61]))
    for name in ("one", "two"):
        options = ["-o", tmp_path / f"{name}.{ending}", "--target", "label", "--train", rows, "--subgroup", "size"]
        assert run_process("report", model, rows, *options).returncode == 0
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_a_report_within_limits(tmp_path: Path) -> None:
    """A threat in a file: the report counts the decisions that can flip, by the rule that was asked for."""
    table = tmp_path / "loans.csv"
    lines = [f"{age},{age * 100},{'yes' if age % 50 > 25 else 'no'}" for age in (*range(20, 90), *range(20, 90))]
    table.write_text("\n".join(["age,income,paid", *lines]))
    threat = tmp_path / "threat.toml"
    threat.write_text('norm = "none"\nfrozen = ["age"]\n[limits]\nincome = "5%"\n')
    model, page = tmp_path / "m.json", tmp_path / "report.md"
    assert run("train", table, "--target", "paid", "-o", model, "--model", "stumps").exit_code == 0
    asked = ("--rule", "mean", "--noise", "none", "--threat", threat)
    found = run("report", model, table, "--target", "paid", "-o", page, *asked)
    assert found.exit_code == 0, found.output
    text = page.read_text()
    assert "within these limits" in text
    assert "income" in text
    refused = run("report", model, table, "-o", page, "--threat", tmp_path / "none.toml")
    assert refused.exit_code == 2


def test_a_report_on_numbers(regressor: Path, prices: Path, tmp_path: Path) -> None:
    """A page of its own kind; options of classes are refused in one line."""
    page = tmp_path / "report.html"
    result = run("report", regressor, prices, "-o", page, "--target", "price", "--radius", "0.2", "--l0", "1")
    assert result.exit_code == 0, result.output
    assert "For half of the rows no change smaller than 0.2 moves the answer" in " ".join(result.output.split())
    assert "<title>Interval report: prices.csv</title>" in page.read_text(encoding="utf-8")
    for option, value in (("--train", prices), ("--subgroup", "job"), ("--compare", regressor)):
        refused = run("report", regressor, prices, "-o", tmp_path / "other.html", option, value)
        assert refused.exit_code == 2
        (line,) = refused.stderr.splitlines()
        assert f"{option} is for classification" in line
    assert not (tmp_path / "other.html").exists()
