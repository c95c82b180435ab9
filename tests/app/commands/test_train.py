"""`derand train`: what it prints and saves."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from derand import Threat, load, train
from derand.app.settings import SCALINGS
from derand.estimators import REGRESSORS, TRAINERS
from derand.noise import NOISES
from tests.app.commands.running import read_help, run


def test_training_prints_every_column_and_saves_the_model(data: Path, tmp_path: Path) -> None:
    """The table names each column and its use; the model carries the options."""
    options = ["--noise", "laplace:0.5", "--scaling", "range", "--class-weight", "balanced", "--ignored", "mean area"]
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", "--model", "stumps", *options)
    assert result.exit_code == 0, result.output
    for line in ("mean radius", "categorical", "constant", "as asked", "benign (357), malignant (212)", "laplace:0.5"):
        assert line in result.output
    model = load(tmp_path / "model.json")
    assert (model.scaling, model.class_weight, str(model.noise_)) == ("range", "balanced", "laplace:0.5")
    assert "mean area" not in model.feature_names_in_


def test_training_as_json_is_one_document(data: Path, tmp_path: Path) -> None:
    """With --json the output is JSON and nothing else."""
    result = run(
        "train",
        data,
        "--target",
        "label",
        "-o",
        tmp_path / "model.json",
        "--model",
        "stumps",
        "--scaling",
        "none",
        "--json",
    )
    summary = json.loads(result.stdout)
    assert summary["rows"] == 569
    assert summary["scaling"] is None
    assert {column["use"] for column in summary["columns"]} == {"numerical", "categorical", "ignored"}


@pytest.mark.parametrize("model", TRAINERS)
def test_every_trainer_can_be_chosen(model: str, data: Path, tmp_path: Path) -> None:
    """The option names the trainer; the printed table says what became of each column."""
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", "--model", model)
    assert result.exit_code == 0, result.output
    assert "strongest" in result.output
    assert " is split at " not in result.output
    assert type(load(tmp_path / "model.json")) is TRAINERS[model]


def test_the_additive_model_is_the_default(data: Path, tmp_path: Path) -> None:
    """Without --model it is the additive one, in interquartile ranges; the summary says what came of it."""
    options = ["--target", "label", "--regularization", "1", "--radius", "0.25"]
    result = run("train", data, *options, "-o", tmp_path / "a.json")
    run("train", data, *options, "-o", tmp_path / "b.json", "--model", "additive", "--norm", "2")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    model = load(tmp_path / "a.json")
    assert (model.radius, model.norm, model.rule, model.scaling) == (0.25, 2, "mean", "robust")
    for fact in (
        "trained by: additive",
        "trained for radius: 0.25 (l2 balls, scaling robust)",
        "regularization: 1",
        "rule: mean",
        "right and certified at 0.25 on these rows: ",
    ):
        assert fact in result.output


def test_what_an_additive_model_is_trained_for(data: Path, tmp_path: Path) -> None:
    """Norm, frozen and monotone columns, changes of categories; without noise there is nothing but the model."""
    asked = ["--norm", "inf", "--radius", "0.1", "--l0", "1", "--frozen", "mean area", "--noise", "none"]
    asked += ["--monotone", "mean texture=decreasing", "--regularization", "1", "--json"]
    summary = json.loads(run("train", data, "--target", "label", "-o", tmp_path / "m.json", *asked).stdout)
    assert (summary["radius"], summary["norm"], summary["noise"]) == (0.1, "inf", "none")
    assert (summary["regularization"], summary["rule"]) == (1.0, "mean")
    assert 0.5 < summary["training_certified_at_radius"] <= summary["training_certified_accuracy"]
    model = load(tmp_path / "m.json")
    assert model.noise_ is None
    assert model.default_threat == Threat(norm=math.inf, l0=1, frozen=("mean area",))
    assert model.monotone == {"mean texture": "decreasing"}


def test_a_threat_in_a_file_is_trained_against(data: Path, tmp_path: Path) -> None:
    """It is read once the columns are known, and saved with the model; certifying then goes by it."""
    threat = tmp_path / "threat.toml"
    threat.write_text('norm = "inf"\nfrozen = ["mean radius"]\n[limits]\n"mean area" = "5%"\n')
    model, options = tmp_path / "m.json", ["--threat", threat, "--regularization", "1"]
    result = run("train", data, "--target", "label", "-o", model, *options)
    assert result.exit_code == 0, result.output
    trained = load(model).default_threat
    assert (trained.norm, trained.frozen, trained.limits) == (math.inf, ("mean radius",), {"mean area": "5%"})
    told = json.loads(run("certify", model, data, "-o", tmp_path / "out.csv", "--json").stdout)["threat"]
    assert (told["norm"], told["frozen"], told["limits"]) == ("inf", ["mean radius"], {"mean area": "5%"})
    other = json.loads(run("certify", model, data, "-o", tmp_path / "out.csv", "--norm", "1", "--json").stdout)[
        "threat"
    ]
    assert (other["norm"], other["frozen"]) == (1, ["mean radius"])
    threat.write_text('[units]\n"mean area" = 5\n')
    refused = run("train", data, "--target", "label", "-o", model, *options)
    assert refused.exit_code == 2
    assert "`units` must name every column" in refused.stderr


STUMPS = ("--model", "stumps")
REFUSED = {
    "radius": (
        [*STUMPS, "--radius", "1"],
        "--radius belongs to the models additive, tree-boost, ada-boost;",
    ),
    "norm": ([*STUMPS, "--norm", "inf"], "--norm belongs to the model additive; stumps has nothing"),
    "l0": (["--model", "tree-boost", "--l0", "1"], "--l0 belongs to the model additive;"),
    "freeze": ([*STUMPS, "--frozen", "size"], "--frozen belongs to the model additive;"),
    "monotone": (
        [*STUMPS, "--monotone", "mean area=increasing"],
        "--monotone belongs to the model additive;",
    ),
    "groups": ([*STUMPS, "--groups", "mean area,mean texture"], "--groups belongs to the model additive;"),
    "half a group": (["--groups", "mean area"], '--groups must be "auto" or groups of two columns or more'),
    "no such group": (["--groups", "mean area,mean aria"], "'mean aria', which does not exist"),
    "regularization": (
        [*STUMPS, "--regularization", "1"],
        "--regularization belongs to the model additive;",
    ),
    "threat": ([*STUMPS, "--threat", "t.toml"], "--threat belongs to the model additive;"),
    "threat and norm": (
        ["--threat", "t.toml", "--norm", "1"],
        "--threat says all of what may change: leave --norm out",
    ),
    "no norm": (["--norm", "3"], "--norm must be one of 1, 2, inf, got '3'"),
    "no direction": (["--monotone", "mean area=up"], "--monotone mean area must be one of increasing, decreasing"),
    "no pair": (["--monotone", "mean area"], "A direction must be written COLUMN=increasing"),
    "no radius": (["--radius", "-1"], "`radius` must be a finite number, 0 or larger, got -1.0"),
    "no column": (["--frozen", "mean aria"], "'mean aria', which does not exist; did you mean 'mean area'?"),
    "a vote without noise": (["--radius", "0", "--rule", "vote"], "`noise` must not be 'none' under the rule 'vote'"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_options_that_make_no_sense_are_one_line(options: list[str], message: str, data: Path, tmp_path: Path) -> None:
    """By the name that the user wrote, and without a model."""
    result = run("train", data, "--target", "label", "-o", tmp_path / "m.json", *options)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "m.json").exists()


def list_choices(about: str) -> list[str]:
    """The names that help lists after some words, without what stands in brackets."""
    listed = read_help("train").split(about)[1].split(".")[0]
    return re.sub(r" \([^)]*\)", "", listed).strip().replace(" or ", ", ").split(", ")


def test_the_help_names_all_that_can_be_chosen() -> None:
    """Trainers, noises and scalings are those that exist: the help is made from the registries."""
    names = list(TRAINERS)
    assert list_choices("How it is trained: one of") == [*names[:-1], f"{names[-1]}; additive if not given"]
    assert f"additive if not given. For numbers: {', '.join(REGRESSORS)}." in read_help("train")
    assert list_choices("Kind and scale, such as gaussian:0.25; kinds are") == list(NOISES)
    assert all(scaling in read_help("train") for scaling in SCALINGS)
    assert (*train.SCALINGS, "none") == SCALINGS


def test_the_rule_is_the_model_s_own(tmp_path: Path) -> None:
    """What is trained with a rule answers by it from then on; one that does not exist is refused."""
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["x,y", *(f"{x},{'a' if x < 10 else 'b'}" for x in range(20))]))
    model = tmp_path / "m.json"
    assert run("train", table, "--target", "y", "-o", model, "--model", "stumps", "--rule", "mean").exit_code == 0
    assert load(model).rule == "mean"
    refused = run("train", table, "--target", "y", "-o", model, "--rule", "dice")
    assert refused.exit_code == 2
    assert "--rule" in refused.output


def test_a_number_as_the_target(prices: Path, tmp_path: Path) -> None:
    """What was guessed, how to say the other, and how it does are printed; options of classes are refused by name."""
    model = tmp_path / "m.json"
    result = run("train", prices, "--target", "price", "-o", model, "--regularization", "1", "--radius", "0.1")
    assert result.exit_code == 0, result.output
    for fact in (
        "target: price, a number from ",
        "(fractions; if that is wrong, --task classes)",
        "root of the mean square error on these rows: ",
        "mean width of intervals at 0.1 on these rows: ",
    ):
        assert fact in result.output
    assert type(load(model)) is REGRESSORS["additive"]
    refusals = {
        "--class-weight is for classes": ["--class-weight", "balanced"],
        "--model tree-boost is for two classes": ["--model", "tree-boost"],
        "--task must be one of classes, number": ["--task", "price"],
    }
    for message, options in refusals.items():
        refused = run("train", prices, "--target", "price", "-o", tmp_path / "other.json", *options)
        assert refused.exit_code == 2
        (line,) = refused.stderr.splitlines()
        assert message in line


def test_numbers_with_groups_of_columns(tmp_path: Path) -> None:
    """Named or found, they explain what single columns do not, and certifying takes the model."""
    table, model, out = tmp_path / "areas.csv", tmp_path / "m.json", tmp_path / "out.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(150, 3)), columns=["width", "age", "height"])
    frame.assign(area=frame["width"] * frame["height"]).to_csv(table, index=False)
    for groups in ("auto", "width,height"):
        options = ("--groups", groups, "--regularization", "1", "--radius", "0.1", "--norm", "inf", "--json")
        result = run("train", table, "--target", "area", "-o", model, *options)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["training_rmse"] < 0.5 * float((frame["width"] * frame["height"]).std())
        assert load(model).groups_ == (("width", "height"),)
    assert run("certify", model, table, "-o", out).exit_code == 0
    assert (pd.read_csv(out)["high"] > pd.read_csv(out)["low"]).all()


def test_whole_numbers_are_classes_by_a_guess(tmp_path: Path) -> None:
    """The printed facts say how to say the other."""
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["x,y", *(f"{x},{x // 10}" for x in range(20))]))
    result = run("train", table, "--target", "y", "-o", tmp_path / "m.json", "--model", "stumps")
    assert "target: y, classes (2 different whole numbers; if that is wrong, --task number)" in result.output


def test_a_threshold_or_costs_move_where_the_model_cuts(data: Path, tmp_path: Path) -> None:
    """Both options are told in the output and kept in the model; a cost is a threshold."""
    options = ["--target", "label", "--regularization", "1", "--radius", "0", "-o", tmp_path / "model.json"]
    result = run("train", data, *options, "--cost", "false_negative=5, false_positive=1")
    assert result.exit_code == 0, result.output
    assert "decision: malignant from a probability of 16.7 % on" in result.output
    assert load(tmp_path / "model.json").cost == {"false_negative": 5, "false_positive": 1}
    told = json.loads(run("train", data, *options, "--decision-threshold", "0.2", "--json").stdout)
    assert told["decision_threshold"] == load(tmp_path / "model.json").decision_threshold_ == 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--decision-threshold", "0.2", "--cost", "false_negative=5,false_positive=1"], "got both"),
        (["--decision-threshold", "2"], "between 0 and 1"),
        (["--cost", "false_negative=many,false_positive=1"], "--cost must be numbers"),
        (["--cost", "false_negative"], "false_negative=5,false_positive=1"),
        (["--cost", "misses=5,alarms=1"], "must say what both mistakes cost"),
        (["--cost", "false_negative=5,false_positive=1", "--model", "stumps"], "its score is no probability"),
    ],
)
def test_thresholds_that_make_no_sense_are_one_line(
    options: list[str], message: str, data: Path, tmp_path: Path
) -> None:
    result = run("train", data, "--target", "label", "-o", tmp_path / "model.json", *options)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "model.json").exists()


def test_all_split_points_are_printed_where_asked(tmp_path: Path) -> None:
    """Else each number has a line: where it splits, whether it rises, where it jumps."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    frame["y"] = np.where(2 * frame["a"] - frame["b"] + rng.normal(0, 0.5, 300) > 0, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    asked = ["train", tmp_path / "data.csv", "--target", "y", "-o", tmp_path / "m.json", "--regularization", "1"]
    plain, full = (" ".join(run(*more).stdout.split()) for more in (asked, [*asked, "--verbose"]))
    assert "rises towards 'yes'" in plain
    assert "falls away from 'yes'" in plain
    assert "a is split at" not in plain
    (a, _) = json.loads(run(*asked, "--json").stdout)["columns"]
    assert "a is split at " + ", ".join(f"{one:.6g}" for one in a["splits"]) in full
    assert a["shape"].startswith(f"{len(a['splits'])} splits from ")
