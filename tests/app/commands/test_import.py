"""`derand import`: what it prints, and what it refuses in one line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from derand import load
from tests.app.commands.running import read_help, run


@pytest.fixture
def source(data: Path, tmp_path: Path) -> Path:
    frame = pd.read_csv(data)
    columns = ["mean radius", "mean texture"]
    model = GradientBoostingClassifier(max_depth=1, n_estimators=5, random_state=0)
    model.fit(frame[columns], (frame["label"] == "benign").astype(int))
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    return tmp_path / "model.pkl"


def test_what_was_read_is_printed_with_the_next_command(source: Path, data: Path, tmp_path: Path) -> None:
    """And that command runs."""
    result = run(
        "import", source, "--trust-pickle", "-o", tmp_path / "m.json", "--classes", "malignant,benign",
        "--data", data, "--target", "label", "--scaling", "robust",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for words in ("sklearn.GradientBoostingClassifier", "answers: malignant, benign", "score error:", "accuracy on"):
        assert words in result.stdout
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("next: derand certify")]
    assert "--limits '*=5%'" in line
    options = ("--norm", "none", "--limits", "*=5%")
    certified = run("certify", tmp_path / "m.json", data, "-o", tmp_path / "c.csv", "--target", "label", *options)
    assert certified.exit_code == 0, certified.output
    assert "decisions can be flipped within these limits" in certified.stdout


def test_json_holds_the_summary(source: Path, tmp_path: Path) -> None:
    """For other programs."""
    result = run("import", source, "--trust-pickle", "-o", tmp_path / "m.json", "--json")
    summary = json.loads(result.stdout)
    assert summary["columns"] == ["mean radius", "mean texture"]
    assert summary["terms"] <= 2
    assert summary["noise"] == "none"


def test_the_threshold_is_moved_as_asked(source: Path, tmp_path: Path) -> None:
    """The comparison is that of the model as it was read."""
    asked = ("--cost", "false_negative=1,false_positive=4")
    result = run("import", source, "--trust-pickle", "-o", tmp_path / "m.json", "--classes", "malignant,benign", *asked)
    assert "decision: benign from a probability of 80 % on" in result.stdout
    assert load(tmp_path / "m.json").decision_threshold_ == 0.8
    told = json.loads(run("import", source, "--trust-pickle", "-o", tmp_path / "m.json", *asked, "--json").stdout)
    assert told["largest_difference"] < 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "a pickle, which runs whatever code it holds when it is opened. If you trust"),
        (("--trust-pickle", "--scaling", "log"), "--scaling must be one of"),
        (("--trust-pickle", "--scaling", "robust"), "--scaling is about rows: give --data"),
        (("--trust-pickle", "--rule", "dice"), "--rule must be one of"),
        (("--trust-pickle", "--classes", "a,b,c"), "--classes must name 2 different classes"),
        (("--trust-pickle", "--noise", "pink:1"), "pink"),
    ],
)
def test_bad_input_is_one_line(options: tuple[str, ...], message: str, source: Path, tmp_path: Path) -> None:
    """With the option that cures it, and nothing is written."""
    result = run("import", source, "-o", tmp_path / "m.json", *options)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "m.json").exists()


def test_help_lists_noises_and_says_what_a_pickle_does() -> None:
    """From the registry."""
    words = read_help("import")
    assert "gaussian (l2 balls)" in words
    assert "runs whatever code it holds" in words
