"""`derand audit`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from derand import StumpRegressor, save
from derand.auditing import _balls
from tests.app.commands.running import run


@pytest.fixture
def certified(data: Path, model: Path, tmp_path: Path) -> Path:
    assert run("certify", model, data, "-o", tmp_path / "certified.csv").exit_code == 0
    return tmp_path / "certified.csv"


def test_an_audit_that_passes(data: Path, model: Path, certified: Path, tmp_path: Path) -> None:
    """Exit code 0; the machine's tests, how many rows and what a row costs are printed."""
    result = run("audit", model, data, certified, "--rows", 8, "-o", tmp_path / "audit.csv")
    assert result.exit_code == 0, result.output
    assert "audited: 8 of 569 rows, drawn at random (--seed " in result.output
    assert "proven: 8 of 8" in result.output
    assert "s a row" in result.output
    assert "tests of its arithmetic passed" in result.output
    assert "threat: l2 balls" in result.output
    assert "what label, failure, radius and proof say about these 8 rows was proven again" in result.output
    assert "not looked at" not in result.output
    assert len((tmp_path / "audit.csv").read_text().splitlines()) == 9


def test_an_audit_that_fails(data: Path, model: Path, certified: Path) -> None:
    """Exit code 1; rows that are not proven are listed, and the file that was changed is named."""
    lines = certified.read_text().splitlines()
    at = lines[0].replace('"', "").split(",").index("radius")
    forged = [lines[0]]
    for line in lines[1:]:
        cells = line.split(",")
        cells[at] = "1000.0"
        forged.append(",".join(cells))
    certified.write_text("\n".join(forged))
    result = run("audit", model, data, certified, "--rows", 2)
    assert result.exit_code == 1
    assert "is not the file that was certified" in result.output
    assert "Not proven" in result.output
    assert "NOT PROVEN: 2 of 2 rows" in result.output
    summary = json.loads(run("audit", model, data, certified, "--rows", 2, "--json").stdout)
    assert summary["proven"] == 0
    assert summary["not_proven"][0]["claim"] == "radius"


def test_intervals_and_a_table_without_names(tmp_path: Path) -> None:
    """Files of a regressor; columns by their position beside one that is no feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    save(StumpRegressor(regularization=1.0).fit(X, X[:, 0]), tmp_path / "model.json")
    table, out = tmp_path / "data.csv", tmp_path / "out.csv"
    lines = [f"{a},{b},{a}" for a, b in X.tolist()]
    table.write_text("\n".join(["a,b,truth", *lines]))
    for asked, told in (("--radius", "intervals at radius 0.1"), ("--tolerance", "move by +-0.1 at most")):
        certified = run("certify", tmp_path / "model.json", table, "-o", out, "--target", "truth", asked, 0.1)
        assert certified.exit_code == 0, certified.output
        refused = run("audit", tmp_path / "model.json", table, out)
        assert refused.exit_code == 2
        assert "has 3 columns of features" in refused.output
        result = run("audit", tmp_path / "model.json", table, out, "--target", "truth", "--rows", 5)
        assert result.exit_code == 0, result.output
        assert told in result.output


def test_bad_input(data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2 and one line: no record, a number of rows that is none, and no python-flint."""
    (tmp_path / "alone.csv").write_text("row,label,failure,radius\n")
    result = run("audit", model, data, tmp_path / "alone.csv")
    assert result.exit_code == 2
    assert "`derand certify` writes it" in result.output
    assert run("audit", model, data, tmp_path / "alone.csv", "--rows", -1).exit_code == 2
    assert run("certify", model, data, "-o", tmp_path / "out.csv").exit_code == 0
    monkeypatch.setitem(sys.modules, "flint", None)
    monkeypatch.setattr(_balls, "_flint", None)
    result = run("audit", model, data, tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "derand[audit]" in result.output


def test_what_is_proven_is_told_once(data: Path, model: Path, tmp_path: Path) -> None:
    """By the rule mean the failure mass is blank and the proof is not looked at: neither is said to be proven."""
    out = tmp_path / "mean.csv"
    assert run("certify", model, data, "-o", out, "--rule", "mean").exit_code == 0
    result = run("audit", model, data, out, "--rows", 2)
    assert result.exit_code == 0, result.output
    assert "what label and radius say about these 2 rows was proven again" in result.output
    left_out = "failure (blank: there is no failure mass); proof (whether a worst case is exact)"
    assert f"not looked at: {left_out}" in result.output


def test_what_is_asked_is_told(data: Path, model: Path, tmp_path: Path) -> None:
    """The threat of the record, rows without a guarantee, and a file that is another one though all is proven."""
    out = tmp_path / "verdicts.csv"
    limits = ["--norm", "none", "--limits", "mean radius=5%", "--frozen", "size"]
    assert run("certify", model, data, "-o", out, *limits).exit_code == 0
    result = run("audit", model, data, out, "--rows", 5, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "limits: mean radius by up to 5%" in result.output
    assert "frozen columns: size" in result.output
    out.write_text(re.sub('"holds","[a-z]+"', '"undecided","none"', out.read_text()))
    result = run("audit", model, data, out, "--rows", 5, "--seed", 3)
    assert result.exit_code == 1
    assert "no more than a label or number claimed: 5 rows" in result.output
    assert 'not looked at: verdict ("flips" and "undecided" are not distinguished' in result.output
    assert "what label, failure, verdict (in part) and proof say about these 5 rows was proven" in result.output
    assert "BUT not all files are those that were certified" in result.output
    missing = run("audit", model, data, tmp_path / "none.csv")
    assert missing.exit_code == 2
    assert "name a table that `derand certify` wrote" in missing.output
