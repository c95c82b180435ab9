"""What a target asks for: the guess, what may be said instead, and trainers of regressors from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import load
from derand.app.jobs import train_file, tune_file
from derand.app.jobs._tasks import Task, guess_task
from derand.estimators import REGRESSORS
from tests.app.jobs.tables import make_prices

GUESSES: dict[str, tuple[list[Any] | None, Task]] = {
    "text": (None, Task("classes", "text")),
    "two whole numbers": ([0, 1, 1], Task("classes", "2 different whole numbers", "number")),
    "whole numbers as doubles": ([1.0, 2.0], Task("classes", "2 different whole numbers", "number")),
    "twenty": (list(range(20)), Task("classes", "20 different whole numbers", "number")),
    "twenty-one": (list(range(21)), Task("number", "21 different whole numbers", "classes")),
    "too many to be classes": (list(range(257)), Task("number", "257 different whole numbers")),
    "fractions": ([0.5, 1.0], Task("number", "fractions", "classes")),
}


@pytest.mark.parametrize(("numbers", "task"), GUESSES.values(), ids=GUESSES)
def test_the_guess(numbers: list[Any] | None, task: Task) -> None:
    """Text and few whole numbers are classes; fractions and many are to be predicted."""
    assert guess_task(numbers) == task


@pytest.mark.parametrize("model", REGRESSORS)
def test_every_regressor_learns_from_a_file(model: str, prices: Path, tmp_path: Path) -> None:
    """As from a frame of the same columns; what is told of its own rows is what it says of them."""
    path = tmp_path / "model.json"
    trained_for: dict[str, Any] = {"radius": 0.25} if model == "additive" else {}
    summary = train_file(prices, "price", path, model=model, regularization=1.0, **trained_for)
    loaded, frame = load(path), make_prices()
    assert type(loaded) is REGRESSORS[model]
    rows = frame[["x", "job"]]
    direct = REGRESSORS[model](regularization=1.0, **trained_for).fit(rows, frame["price"])  # type: ignore[call-arg]
    assert loaded.predict(rows).tolist() == direct.predict(rows).tolist()
    assert (summary["task"], summary["task_reason"], summary["other_task"]) == ("number", "fractions", "classes")
    assert summary["target_range"] == (frame["price"].min(), frame["price"].max())
    error = np.sqrt(np.mean((direct.predict(rows) - frame["price"]) ** 2))
    assert summary["training_rmse"] == pytest.approx(error)
    assert "classes" not in summary
    if model == "additive":
        width = direct.certify_interval(rows, 0.25).width.mean()
        assert summary["training_mean_width"] == pytest.approx(width)
    else:  # it is not trained for a radius
        assert summary["training_mean_width"] is None


def test_the_task_can_be_said(tmp_path: Path) -> None:
    """Few whole numbers are classes or a number, and halves are classes, as asked."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    frame = pd.DataFrame({"x": np.arange(60) / 4, "stars": np.arange(60) // 20, "half": np.arange(60) // 30 + 0.5})
    frame.to_csv(data, index=False)
    options: dict[str, Any] = {"model": "stumps", "ignored": ["half"]}
    assert train_file(data, "stars", model, **options)["classes"] == {"0": 20, "1": 20, "2": 20}
    told = train_file(data, "stars", model, task="number", **options)
    assert (told["task"], told["task_reason"], told["other_task"]) == ("number", "as asked", None)
    assert train_file(data, "half", model, task="classes", model="stumps")["classes"] == {"0.5": 30, "1.5": 30}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no task": ({"task": "price"}, "`task` must be one of classes, number, got 'price'"),
    "weights of classes": ({"class_weight": "balanced"}, "`class_weight` is for classes; a model of numbers has"),
    "directions": ({"monotone": {"x": "increasing"}}, "`monotone` is for classes"),
    "a radius of stumps": ({"model": "stumps", "radius": 1.0}, "`radius` belongs to the models additive"),
    "boosting": ({"model": "tree-boost"}, r"for two classes, but 'price' holds a number to be predicted \(fractions\)"),
    "boosting as asked": ({"model": "ada-boost", "task": "number"}, "predicted: use additive or stumps"),
    "text": ({"target": "job", "task": "number"}, "has the text '(clerk|cook|driver)' in row 1 of the column 'job'"),
    "nothing to predict": ({"target": "same", "task": "number"}, "has the same number, 3, in every row"),
    "three classes boosted": (
        {"target": "job", "model": "tree-boost"},
        "'job' holds 3 classes: use additive or stumps",
    ),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_the_task_is_refused(
    options: dict[str, Any], message: str, prices: Path, tmp_path: Path
) -> None:
    """One clear error, and no model is written."""
    with pytest.raises(ValueError, match=message):
        train_file(**{"data": prices, "target": "price", "output": tmp_path / "model.json", **options})
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize("cell", ["", "inf"])
def test_targets_that_are_no_numbers_are_refused(cell: str, tmp_path: Path) -> None:
    """Missing or infinite: the column is named, and how many cells."""
    frame = make_prices().astype({"price": object})
    frame.loc[3, "price"] = cell
    frame.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match=r"cells in 'price' \(1 of 200 cells\)"):
        train_file(tmp_path / "data.csv", "price", tmp_path / "model.json")


def test_a_number_is_not_tuned(prices: Path) -> None:
    """Tuning knows classes alone, and says so."""
    with pytest.raises(ValueError, match=r"in the column 'price' \(fractions\), and tuning knows classes alone"):
        tune_file(prices, "price")


def test_one_bad_cell_of_a_number_is_named(tmp_path: Path) -> None:
    """Not the first cell, which is a number, though the column is read as text."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    price = [f"{value}.5" for value in range(400)]
    price[5] = "n/k"
    pd.DataFrame({"x": np.arange(400.0), "price": price}).to_csv(data, index=False)
    with pytest.raises(ValueError, match=r"the text 'n/k' in row 6 of the column 'price' \(1 of 400 cells"):
        train_file(data, "price", model, task="number")
    with pytest.raises(ValueError, match=r"400 different labels.*Most cells are numbers, but not 'n/k' in row 6"):
        train_file(data, "price", model)
