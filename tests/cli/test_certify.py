"""`derand certify`: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from tests.cli.running import run


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


def test_radii_are_printed_as_they_were_asked_for(data: Path, model: Path, tmp_path: Path) -> None:
    """A radius is never rounded up: the share beside it was measured at that radius."""
    arguments = [model, data, "-o", tmp_path / "out.csv", "--target", "label", "--radii", "0,0.1234567,0.50,1"]
    result = run("certify", *arguments)
    rows = [line.split()[0] for line in result.output.splitlines() if "%" in line]
    assert rows == ["no", "0", "0.1234567", "0.5", "1"]


def test_a_column_that_is_empty_throughout_is_told(data: Path, model: Path, tmp_path: Path) -> None:
    """Like values that training did not see; `--safe-csv` goes well with the rest."""
    frame = pd.read_csv(data).assign(size=None)
    frame.to_csv(tmp_path / "empty.csv", index=False)
    result = run("certify", model, tmp_path / "empty.csv", "-o", tmp_path / "out.csv", "--safe-csv")
    assert result.exit_code == 0, result.output
    assert "values of 'size': none in any row, which counts as one that training did not see" in result.output
