"""`derand train`: what it prints and saves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from derand import learn, load
from derand.cli._train import SCALINGS
from derand.estimators import TRAINERS
from derand.noise import NOISES
from tests.cli.running import read_help, run


def test_training_prints_every_column_and_saves_the_model(data: Path, tmp_path: Path) -> None:
    """The table names each column and its use; the model carries the options."""
    options = ["--noise", "laplace:0.5", "--scaling", "range", "--class-weight", "balanced", "--ignore", "mean area"]
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", *options)
    assert result.exit_code == 0, result.output
    for line in ("mean radius", "categorical", "constant", "as asked", "benign (357), malignant (212)", "laplace:0.5"):
        assert line in result.output
    model = load(tmp_path / "model.json")
    assert (model.scaling, model.class_weight, str(model.noise_)) == ("range", "balanced", "laplace:0.5")
    assert "mean area" not in model.feature_names_in_


def test_training_as_json_is_one_document(data: Path, tmp_path: Path) -> None:
    """With --json the output is JSON and nothing else."""
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", "--scaling", "none", "--json")
    summary = json.loads(result.stdout)
    assert summary["rows"] == 569
    assert summary["scaling"] is None
    assert {column["use"] for column in summary["columns"]} == {"numerical", "categorical", "ignored"}


@pytest.mark.parametrize("model", TRAINERS)
def test_every_trainer_can_be_chosen(model: str, data: Path, tmp_path: Path) -> None:
    """The option names the trainer; the printed table says what became of each column."""
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", "--model", model)
    assert result.exit_code == 0, result.output
    assert "split at" in result.output
    assert type(load(tmp_path / "model.json")) is TRAINERS[model]


def test_stumps_are_the_default(data: Path, tmp_path: Path) -> None:
    """Without --model the independent stumps are trained."""
    run("train", data, "--target", "label", "-o", tmp_path / "a.json")
    run("train", data, "--target", "label", "-o", tmp_path / "b.json", "--model", "stumps")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def list_choices(about: str) -> list[str]:
    """The names that help lists after some words, without what stands in brackets."""
    listed = read_help("train").split(about)[1].split(".")[0]
    return re.sub(r" \([^)]*\)", "", listed).strip().replace(" or ", ", ").split(", ")


def test_the_help_names_all_that_can_be_chosen() -> None:
    """Trainers, noises and scalings are those that exist: the help is made from the registries."""
    assert list_choices("How it is trained: one of") == list(TRAINERS)
    assert list_choices("Kind and scale; kinds are") == list(NOISES)
    assert all(scaling in read_help("train") for scaling in SCALINGS)
    assert (*learn.SCALINGS, "none") == SCALINGS


def test_the_rule_is_the_model_s_own(tmp_path: Path) -> None:
    """What is trained with a rule answers by it from then on; one that does not exist is refused."""
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["x,y", *(f"{x},{'a' if x < 10 else 'b'}" for x in range(20))]))
    model = tmp_path / "m.json"
    assert run("train", table, "--target", "y", "-o", model, "--rule", "mean").exit_code == 0
    assert load(model).rule == "mean"
    refused = run("train", table, "--target", "y", "-o", model, "--rule", "dice")
    assert refused.exit_code == 2
    assert "--rule" in refused.output
