"""`derand prove`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from derand import AdditiveClassifier, AdditiveRegressor, save
from tests.app.commands.running import run


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"late": rng.poisson(1.0, 300), "sex": rng.choice(["f", "m"], 300)})
    noisy = table.late + (table.sex == "m") + rng.normal(size=300)
    table["outcome"] = np.where(noisy > 1.5, "refused", "granted")
    table.to_csv(tmp_path / "loans.csv", index=False)
    clf = AdditiveClassifier(radius=0, regularization=0.1, monotone={"late": "increasing"})
    save(clf.fit(table[["late", "sex"]], table.outcome), tmp_path / "risk.json")
    return tmp_path / "loans.csv"


def test_a_promise_that_fails(loans: Path) -> None:
    """Exit code 1, a row that flips, and the share of the table."""
    result = run("prove", loans.parent / "risk.json", loans, "--target", "outcome", "--protected", "sex")
    assert result.exit_code == 1, result.output
    text = " ".join(result.output.split())
    assert "'sex' alone can change an answer: there is a row where changing 'sex'" in text
    assert "of the rows of the table" in text
    assert "such a row: late" in text
    assert "The score never falls where 'late' rises: proven." in text


def test_promises_that_hold(loans: Path) -> None:
    """Exit code 0; as JSON with columns by name."""
    flags = ("--domain", "sex=f", "--protected", "sex", "--radius", "0.1", "--norm", "2", "--json")
    result = run("prove", loans.parent / "risk.json", *flags)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["passed"]
    assert [(one["kind"], one["columns"], one["verdict"]) for one in found["promises"][:2]] == [
        ("protected", ["sex"], "proven"),
        ("monotone", ["late"], "proven"),
    ]
    assert found["change"]["norm"] == 2
    assert found["domain"].startswith("'sex' in 'f'")


def test_bad_input_gives_one_line(loans: Path, tmp_path: Path) -> None:
    result = run("prove", loans.parent / "risk.json", "--protected", "sec")
    assert result.exit_code == 2
    assert "`protected` names the column 'sec', which does not exist" in result.output
    result = run("prove", loans.parent / "risk.json", "--domain", "late=many:few")
    assert "`domain` of 'late', a column of numbers, must be written LOW:HIGH, got 'many:few'" in result.output
    result = run("prove", loans.parent / "risk.json", loans, "--target", "outcome", "--domain", "late=0:1")
    assert result.exit_code == 2
    assert "`domain` must hold the rows' own values" in result.output
    table = pd.read_csv(loans)
    save(AdditiveRegressor(radius=0, regularization=1.0).fit(table[["late"]], table.late), tmp_path / "reg.json")
    assert run("prove", tmp_path / "reg.json").exit_code == 0
    result = run("prove", tmp_path / "reg.json", "--protected", "late")
    assert result.exit_code == 2
    assert "predicts a number" in result.output
