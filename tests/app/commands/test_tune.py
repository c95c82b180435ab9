"""`derand tune`: what it prints, draws and recommends."""

from __future__ import annotations

import json
import math
from pathlib import Path

from derand.app.jobs import choose_model
from derand.app.settings import TuneSettings, list_options
from derand.estimators import TRAINERS
from derand.threat_text import NORMS as EVERY_NORM
from tests.app.commands.running import read_help, run


def test_tuning_prints_figures_a_recommendation_and_a_command(data: Path, tmp_path: Path) -> None:
    """Certified accuracy of every value at every radius, plain and balanced; the picture is there."""
    picture = tmp_path / "tune.png"
    options = ["--model", "stumps", "--noise", "gaussian:0.25", "--radii", "0.25,0.5", "--folds", "3"]
    result = run("tune", data, "--target", "label", *options, "-o", picture)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    for heading in ("Certified accuracy at radius", "Balanced (mean of all classes) at radius"):
        assert heading in lines
    assert sum("gaussian:0.125" in line for line in lines) >= 2
    (train,) = [line for line in lines if line.startswith("to train: derand train ")]
    marked = {line.split()[0] for line in lines if " * " in line}
    assert train.split("--noise ")[1].split()[0] in marked
    assert len(marked) == 1
    assert "of natural accuracy" in result.output or "best natural accuracy" in result.output
    assert f"picture: {picture}" in lines
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_tuning_as_json_is_one_document(data: Path) -> None:
    """With --json the output is JSON and nothing else; balanced figures count where that is asked for."""
    options = ["--model", "stumps", "--norm", "inf", "--balanced", "--scaling", "none", "--folds", "2", "--json"]
    summary = json.loads(run("tune", data, "--target", "label", *options).stdout)
    assert summary["norm"] in ("inf", math.inf)
    assert summary["by_balanced"] is True
    assert summary["constant"] == 0.5
    assert len(summary["certified"]) == len(summary["values"]) == 6


def test_a_table_that_tells_nothing_gives_no_command(tmp_path: Path) -> None:
    """It is said that nothing is recommended."""
    lines = [f"{row % 7},{'rare' if row % 9 == 0 else 'usual'}" for row in range(90)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]))
    result = run("tune", tmp_path / "data.csv", "--target", "y", "--model", "stumps", "--folds", "2")
    assert result.exit_code == 0, result.output
    assert "Nothing is recommended" in result.output
    assert "to train" not in result.output


def test_the_help_names_models_and_the_default() -> None:
    """From the registry; norms are those of threats with a ball."""
    listed = read_help("tune")
    assert all(name in listed for name in TRAINERS)
    assert f"{choose_model()} if not given" in listed
    norms = next(option.choices for one, option in list_options(TuneSettings) if one.name == "norm")
    assert set(norms) == set(EVERY_NORM) - {"auto", "none"}  # type: ignore[arg-type]
