"""Tuning on a file: the figures of `tune`, a picture, and the command to train by."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derand import StumpClassifier, estimators, load, tune
from derand.app.jobs import choose_model, tune_file
from derand.estimators import TRAINERS
from tests.app.commands.running import run
from tests.app.jobs.tables import make_frame
from tests.estimators.tuning.examples import RadiusClassifier


def test_a_file_is_tuned_on_as_its_rows_are(data: Path) -> None:
    """The same columns as for training, the same figures, and what was asked for."""
    asked: dict[str, Any] = {"model": "stumps", "noise": "gaussian:0.5", "rule": "mean", "radii": [0.3], "folds": 3}
    summary = tune_file(data, "label", categorical=["floor"], **asked)
    frame = make_frame()
    rows = frame[["x", "job", "floor", "member"]].astype({"floor": str, "member": str})
    estimator = StumpClassifier(noise="gaussian:0.5", scaling="standard", rule="mean")
    direct = tune(estimator, rows, frame["label"], radii=[0.3], cv=3).to_dict()
    assert {name: summary[name] for name in direct} == direct  # type: ignore[literal-required]
    assert (summary["rows"], summary["folds"], summary["trainer"], summary["picture"]) == (300, 3, "stumps", None)
    assert summary["classes"] == frame["label"].value_counts().sort_index().to_dict()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_drawn_where_asked(suffix: str, data: Path, tmp_path: Path) -> None:
    """As a file of the kind that its name says."""
    picture = tmp_path / f"tune.{suffix}"
    summary = tune_file(data, "label", picture, model="stumps", radii=[0.1], folds=2)
    assert summary["picture"] == str(picture)
    assert picture.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml", b"%PDF-")


def test_the_command_trains_what_is_recommended(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be run as it is, and the model has every option; a noise keeps its norm to itself."""
    monkeypatch.chdir(tmp_path)
    data = data.rename(tmp_path / "my data.csv")
    summary = tune_file(
        data,
        "label",
        model="stumps",
        norm=np.inf,
        scaling="robust",
        class_weight="balanced",
        rule="mean",
        folds=2,
        categorical=["floor"],
        ignored=["member"],
    )
    assert summary["command"] is not None
    words = shlex.split(summary["command"])
    assert words[:3] == ["derand", "train", str(data)]
    result = run(*words[1:])
    assert result.exit_code == 0, result.output
    model = load("model.json")
    assert (str(model.noise_), model.scaling, model.class_weight) == (summary["recommended"], "robust", "balanced")
    assert model.rule == "mean"
    assert model.feature_names_in_.tolist() == ["x", "job", "floor"]
    assert summary["norm"] == np.inf


def test_there_is_no_command_where_nothing_is_recommended(tmp_path: Path) -> None:
    """Labels that no column tells."""
    rng = np.random.default_rng(0)
    lines = [f"{x},{'rare' if row % 9 == 0 else 'usual'}" for row, x in enumerate(rng.normal(size=90))]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]))
    summary = tune_file(tmp_path / "data.csv", "y", model="stumps", folds=3)
    assert (summary["recommended"], summary["command"]) == (None, None)
    assert summary["text"].startswith("Nothing is recommended")


@pytest.fixture
def additive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimators, "AdditiveClassifier", RadiusClassifier, raising=False)


@pytest.mark.usefixtures("additive")
def test_training_radii_are_those_that_are_asked_for(data: Path) -> None:
    """Beside 0; a trainer that has a norm is trained for the one that is asked for, and is tuned by default."""
    assert choose_model() == "additive"
    summary = tune_file(data, "label", norm=1, radii=[0.2, 0.4], scaling=None, folds=2, ignored=["member"])
    assert (summary["trainer"], summary["parameter"]) == ("additive", "radius")
    assert (summary["values"], summary["radii"], summary["norm"]) == ([0.0, 0.2, 0.4], [0.2, 0.4], 1)
    value = {0.0: "0", 0.2: "0.2", 0.4: "0.4"}[summary["recommended"]]  # type: ignore[index]
    assert summary["command"] == (
        f"derand train {data} --target label --model additive --radius {value} --norm 1 --scaling none "
        "--ignored member -o model.json"
    )


ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown model": ({"model": "forest"}, "`model` must be one of"),
    "no norm": ({"norm": "none"}, "`threat` must have a ball to tune for"),
    "no picture": ({"output": "tune.txt"}, r"tune\.txt must end with one of \.png, \.svg, \.pdf"),
    "no folder": ({"output": "missing/tune.png"}, "Cannot write"),
    "many folds": ({"folds": 290}, "the number of folds, must be at most"),
    "no target": ({"target": "labell"}, "Did you mean 'label'"),
    "unknown weights": ({"class_weight": "equal"}, "`class_weight` must be"),
    "the target ignored": ({"ignored": ["label"]}, "'label' is the target"),
}


@pytest.mark.parametrize(("options", "message"), ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_tuned_is_refused(
    options: dict[str, Any], message: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clear error, and no picture."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises((ValueError, OSError), match=message):
        tune_file(**{"data": data, "target": "label", "folds": 2, **options})
    assert sorted(tmp_path.iterdir()) == before


def test_an_option_that_a_model_does_not_have_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name."""

    class Bare(RadiusClassifier):
        def __init__(self, *, radius: float = 0.1, norm: float = 2, scaling: str | None = None) -> None:
            super().__init__(radius=radius, norm=norm, scaling=scaling)

    monkeypatch.setitem(TRAINERS._names, "bare", "Bare")  # type: ignore[attr-defined]
    monkeypatch.setattr(estimators, "Bare", Bare, raising=False)
    with pytest.raises(
        ValueError, match=r"`rule` belongs to the models .*stumps.*; bare has nothing of the kind: leave it out"
    ):
        tune_file(data, "label", model="bare", rule="mean")


@pytest.mark.parametrize("rule", [None, "vote"])
def test_the_command_for_an_additive_model_runs_as_printed(
    rule: str | None, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the default, is tried at its own radii in its own units, and is trained for the recommended one."""
    monkeypatch.chdir(tmp_path)
    summary = tune_file(data, "label", norm=np.inf, radii=[0.05, 0.1], rule=rule, folds=2, ignored=["floor"])
    assert (summary["trainer"], summary["scaling"]) == ("additive", "robust")
    assert summary["values"] == ([0.05, 0.1] if rule == "vote" else [0.0, 0.05, 0.1])
    assert summary["command"] is not None
    result = run(*shlex.split(summary["command"])[1:])
    assert result.exit_code == 0, result.output
    model = load("model.json")
    assert (model.radius, model.norm, model.scaling) == (summary["recommended"], np.inf, "robust")
    assert model.rule == (rule or "mean")


def test_a_threat_is_tuned_for_as_it_is_trained_for(data: Path, tmp_path: Path) -> None:
    """Changes of categories and frozen columns count in the figures, and the command trains against them."""
    asked: dict[str, Any] = {"model": "additive", "folds": 2, "radii": [0.1], "norm": np.inf, "categorical": ["floor"]}
    plain = tune_file(data, "label", **asked)
    harder = tune_file(data, "label", l0=1, frozen=["member"], **asked)
    assert np.mean(harder["certified"]) < np.mean(plain["certified"])
    words = shlex.split(harder["command"] or "--l0 1 --frozen member --norm inf")
    assert words[words.index("--l0") + 1] == "1"
    assert words[words.index("--frozen") + 1] == "member"
    threat = tmp_path / "threat.toml"
    threat.write_text('norm = "inf"\nl0 = 1\nfrozen = ["member"]\n')
    del asked["norm"]
    by_file = tune_file(data, "label", threat=threat, **asked)
    assert (by_file["certified"], by_file["natural"]) == (harder["certified"], harder["natural"])
    with pytest.raises(ValueError, match="leave `norm`, `l0` and `frozen` out"):
        tune_file(data, "label", threat=threat, l0=1, **asked)
