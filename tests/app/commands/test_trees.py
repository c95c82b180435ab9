"""Trees that join many columns, from a file of their library to a report: import, certify, attack rows, report."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from derand import load
from tests.app.commands.running import run

COLUMNS = ["mean radius", "mean texture", "mean area", "mean smoothness", "mean compactness"]
LIMITS = ("--norm", "none", "--limits", "mean area=2%", "--limits", "mean texture=1%")


@pytest.fixture
def table(data: Path, tmp_path: Path) -> Path:
    """Forty rows with five columns and the label."""
    pd.read_csv(data)[[*COLUMNS, "label"]].iloc[:40].to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


@pytest.fixture
def boosted(data: Path, tmp_path: Path) -> Path:
    """A default XGBoost in its own file."""
    xgboost = pytest.importorskip("xgboost")
    frame = pd.read_csv(data)
    model = xgboost.XGBClassifier(n_jobs=1).fit(frame[COLUMNS], (frame["label"] == "benign").astype(int))
    model.save_model(tmp_path / "xgb.json")
    return tmp_path / "xgb.json"


@pytest.fixture
def forest(data: Path, tmp_path: Path) -> Path:
    """A forest of scikit-learn as a pickle."""
    frame = pd.read_csv(data)
    model = RandomForestClassifier(20, random_state=0).fit(frame[COLUMNS], frame["label"])
    (tmp_path / "forest.pkl").write_bytes(pickle.dumps(model))
    return tmp_path / "forest.pkl"


def test_a_default_xgboost_from_its_file_to_a_report(boosted: Path, table: Path, tmp_path: Path) -> None:
    """Imported, certified with witnesses that flip it, and reported on."""
    names = ("--classes", "malignant,benign", "--data", table, "--target", "label")
    imported = run("import", boosted, "-o", tmp_path / "m.json", *names)
    assert imported.exit_code == 0, imported.output
    assert "trees that join columns: 100" in imported.stdout
    asked = (*LIMITS, "--budget", "20000", "--witness", tmp_path / "w.csv", "--target", "label")
    certified = run("certify", tmp_path / "m.json", table, "-o", tmp_path / "c.csv", *asked, "--json")
    assert certified.exit_code == 0, certified.output
    summary = json.loads(certified.stdout)
    assert sum(summary["verdicts"].values()) == 40
    assert summary["ties"] <= summary["verdicts"]["undecided"]
    witnesses, model = pd.read_csv(tmp_path / "w.csv"), load(tmp_path / "m.json")
    assert len(witnesses) == summary["verdicts"]["flips"]
    assert (model.predict(witnesses[COLUMNS]) == witnesses["new_label"]).all()
    assert (witnesses["new_label"] != witnesses["label"]).all()
    report = tmp_path / "r.json"
    (tmp_path / "threat.toml").write_text('norm = "none"\nlimits = { "mean area" = "2%" }\n')
    made = run(
        "report", tmp_path / "m.json", table, "-o", report, "--target", "label", "--threat", tmp_path / "threat.toml"
    )
    assert made.exit_code == 0, made.output
    content = json.loads(report.read_text())
    told = " ".join(content["limitations"]["left_out"] if "limitations" in content else [json.dumps(content)])
    assert "trees join many columns" in told.lower()
    assert content["verdicts"]["counts"][0]["n_rows"] == 40


def test_radii_of_a_forest_stand_beside_attacks(forest: Path, table: Path, tmp_path: Path) -> None:
    """The file has both, and the certified one is never the larger."""
    assert run("import", forest, "--trust-pickle", "-o", tmp_path / "m.json").exit_code == 0
    asked = ("--norm", "inf", "--target", "label", "--budget", "300")
    certified = run("certify", tmp_path / "m.json", table, "-o", tmp_path / "c.parquet", *asked)
    assert certified.exit_code == 0, certified.output
    found = pd.read_parquet(tmp_path / "c.parquet")
    assert list(found.columns) == ["row", "label", "failure", "radius", "attacked", "proof"]
    assert (found["radius"] <= found["attacked"]).all()


def test_a_regressor_of_trees(data: Path, table: Path, tmp_path: Path) -> None:
    """Intervals, and radii of a tolerance."""
    frame = pd.read_csv(data)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(frame[COLUMNS[1:]], frame[COLUMNS[0]])
    (tmp_path / "reg.pkl").write_bytes(pickle.dumps(model))
    assert run("import", tmp_path / "reg.pkl", "--trust-pickle", "-o", tmp_path / "m.json").exit_code == 0
    options = ("--norm", "none", "--limits", "mean area=1%", "--budget", "1000")
    result = run("certify", tmp_path / "m.json", table, "-o", tmp_path / "c.csv", *options)
    assert result.exit_code == 0, result.output
    found = pd.read_csv(tmp_path / "c.csv")
    assert (found["low"] <= found["value"]).all()
    assert (found["value"] <= found["high"]).all()
    assert np.isfinite(found[["low", "high"]]).all(axis=None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--noise", "gaussian:0.25"), "Noise is not for a model whose trees join many columns"),
        (("--rule", "vote"), "noise"),
    ],
)
def test_bad_input_is_one_line(
    options: tuple[str, ...], message: str, forest: Path, table: Path, tmp_path: Path
) -> None:
    """And nothing is written."""
    assert run("import", forest, "--trust-pickle", "-o", tmp_path / "m.json").exit_code == 0
    result = run("certify", tmp_path / "m.json", table, "-o", tmp_path / "c.csv", *options)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize("budget", ["0", "-3", "many", "1.5"])
def test_a_budget_is_a_number_of_nodes(budget: str, forest: Path, table: Path, tmp_path: Path) -> None:
    """Said before anything is read."""
    result = run("certify", tmp_path / "m.json", table, "-o", tmp_path / "c.csv", "--budget", budget)
    assert result.exit_code == 2
    assert "Invalid value for '--budget'" in result.stderr


def test_limits_without_effect_are_said(forest: Path, data: Path, table: Path, tmp_path: Path) -> None:
    """A column that no tree asks."""
    frame = pd.read_csv(data)
    frame["constant"] = 1.0  # no tree asks it
    model = RandomForestClassifier(3, random_state=0).fit(frame[[*COLUMNS, "constant"]], frame["label"])
    forest.write_bytes(pickle.dumps(model))
    rows = pd.read_csv(table)
    rows.assign(constant=1.0).to_csv(table, index=False)
    assert run("import", forest, "--trust-pickle", "-o", tmp_path / "m.json").exit_code == 0
    options = ("--norm", "none", "--limits", "constant=5", "--target", "label")
    result = run("certify", tmp_path / "m.json", table, "-o", tmp_path / "c.csv", *options)
    assert result.exit_code == 0, result.output
    assert "The model does not use column 'constant'" in " ".join(result.output.split())
